/* Words of waits, their ids and their keys. */
#include "core/wait/wait.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define NAME_BYTES 12 /* of the digest of a name that are in an id */
#define ID_LENGTH (1 + (HF_UUID_TEXT - 1) + 1 + 2 * NAME_BYTES)
_Static_assert(ID_LENGTH < HF_WAIT_ID_TEXT, "an id fits");

static const char version[] = "hfw1.";
#define VERSION_LENGTH (sizeof version - 1)
#define MAC_LENGTH ((size_t)2 * HF_DIGEST_BYTES)
#define KEY_LENGTH                                                                       \
    (VERSION_LENGTH + (HF_WAIT_KEYID_TEXT - 1) + 1 + ID_LENGTH + 1 + MAC_LENGTH)
_Static_assert(KEY_LENGTH < HF_WAIT_KEY_TEXT, "a key fits");

/* ---- words -------------------------------------------------------------------------- */

#define X(name, word, letter) word,
static const char *const kinds[] = { HF_WAIT_KINDS(X) };
#undef X
#define X(name, word, letter) letter,
static const char letters[] = { HF_WAIT_KINDS(X) };
#undef X
#define X(name, word) word,
static const char *const states[] = { HF_WAIT_STATES(X) };
static const char *const policies[] = { HF_WAIT_POLICIES(X) };
static const char *const answers[] = { HF_WAIT_ANSWERS(X) };
#undef X

const char *hf_wait_kind_word(enum hf_wait_kind kind)
{
    return (unsigned)kind < HF_WAIT_KIND_COUNT ? kinds[kind] : NULL;
}

const char *hf_wait_state_word(enum hf_wait_state state)
{
    return (unsigned)state < HF_WAIT_STATE_COUNT ? states[state] : NULL;
}

const char *hf_wait_policy_word(enum hf_wait_policy policy)
{
    return (unsigned)policy < HF_WAIT_POLICY_COUNT ? policies[policy] : NULL;
}

const char *hf_wait_answer_word(enum hf_wait_word word)
{
    return (unsigned)word < HF_WAIT_WORD_COUNT ? answers[word] : NULL;
}

bool hf_wait_kind_of(const char *word, enum hf_wait_kind *ret_kind)
{
    unsigned at = 0;
    bool found = hf_word_find(kinds, HF_WAIT_KIND_COUNT, word, &at);
    if (found)
        *ret_kind = (enum hf_wait_kind)at;
    return found;
}

bool hf_wait_state_of(const char *word, enum hf_wait_state *ret_state)
{
    unsigned at = 0;
    bool found = hf_word_find(states, HF_WAIT_STATE_COUNT, word, &at);
    if (found)
        *ret_state = (enum hf_wait_state)at;
    return found;
}

bool hf_wait_policy_of(const char *word, enum hf_wait_policy *ret_policy)
{
    unsigned at = 0;
    bool found = hf_word_find(policies, HF_WAIT_POLICY_COUNT, word ? word : "", &at);
    if (found)
        *ret_policy = (enum hf_wait_policy)at;
    return found;
}

bool hf_wait_answer_of(const char *word, enum hf_wait_word *ret_word)
{
    unsigned at = 0;
    bool found = hf_word_find(answers, HF_WAIT_WORD_COUNT, word, &at);
    if (found)
        *ret_word = (enum hf_wait_word)at;
    return found;
}

/* ---- ids ---------------------------------------------------------------------------- */

int hf_wait_id(const char *turn_id, enum hf_wait_kind kind, const char *name,
               char ret_id[HF_WAIT_ID_TEXT], struct hf_err *err)
{
    struct hf_digest digest;
    uint8_t hash[HF_DIGEST_BYTES];
    if (!hf_wait_kind_word(kind))
        return hf_fail(err, HF_EINVAL, "kind",
                       "kind must be tool, approval, signal, timer or custom");
    if (!hf_uuid_valid(turn_id))
        return hf_fail(err, HF_EINVAL, "turn_id", "this is no id of a turn");
    if (!name || !*name)
        return hf_fail(err, HF_EINVAL, "name", "a wait has a name");
    hf_digest_begin(&digest, "wait", 1);
    hf_digest_text(&digest, kinds[kind]);
    hf_digest_text(&digest, name);
    if (hf_digest_end(&digest, hash))
        return hf_fail_plain(err, HF_ENOMEM);
    ret_id[0] = letters[kind];
    memcpy(ret_id + 1, turn_id, HF_UUID_TEXT - 1);
    ret_id[HF_UUID_TEXT] = '-';
    hf_hex(hash, NAME_BYTES, ret_id + HF_UUID_TEXT + 1);
    ret_id[ID_LENGTH] = '\0';
    return 0;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hex(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && nibble(text[i]) >= 0)
        i++;
    return i == len;
}

bool hf_wait_id_read(const char *wait_id, struct hf_wait_place *ret_place)
{
    struct hf_wait_place place = { .kind = HF_WAIT_KIND_COUNT };
    if (!wait_id || strnlen(wait_id, HF_WAIT_ID_TEXT) != ID_LENGTH)
        return false;
    for (unsigned i = 0; i < HF_WAIT_KIND_COUNT; i++)
        if (letters[i] == wait_id[0])
            place.kind = (enum hf_wait_kind)i;
    memcpy(place.turn_id, wait_id + 1, HF_UUID_TEXT - 1);
    bool good = place.kind < HF_WAIT_KIND_COUNT && hf_uuid_valid(place.turn_id) &&
                wait_id[HF_UUID_TEXT] == '-' &&
                is_hex(wait_id + HF_UUID_TEXT + 1, (size_t)2 * NAME_BYTES);
    if (good)
        *ret_place = place;
    return good;
}

int hf_wait_ref_check(const char *ref, const char *field, struct hf_err *err)
{
    struct hf_wait_place place;
    return hf_wait_id_read(ref, &place)
               ? hf_fail(err, HF_EINVAL, field,
                         "this is a wait of a turn: answer it with hf_wait_resolve "
                         "(`holdfast wait resolve`, `holdfast approve`, `holdfast deny`)")
               : 0;
}

/* ---- keys --------------------------------------------------------------------------- */

/* The MAC is over version, key id, scope (the turn), kind and id. */
static int mac_of(const struct hf_wait_secret *secret, const char *wait_id,
                  const struct hf_wait_place *place, uint8_t ret_mac[HF_DIGEST_BYTES])
{
    const char *const parts[] = { version, secret->key_id, place->turn_id,
                                  hf_wait_kind_word(place->kind), wait_id };
    char text[256];
    size_t len = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t part = strlen(parts[i]);
        hf_assert(len + part + 1 <= sizeof text);
        memcpy(text + len, parts[i], part);
        text[len + part] = '\n';
        len += part + 1;
    }
    return hf_hmac_sha256(secret->bytes, text, len, ret_mac);
}

int hf_wait_key_write(const struct hf_wait_secret *secret, const char *wait_id,
                      char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err)
{
    struct hf_wait_place place;
    uint8_t mac[HF_DIGEST_BYTES];
    if (!hf_wait_id_read(wait_id, &place))
        return hf_fail(err, HF_EINVAL, "wait_id", "this is no id of a wait");
    if (mac_of(secret, wait_id, &place, mac))
        return hf_fail_plain(err, HF_ENOMEM);
    char *at = ret_key;
    memcpy(at, version, VERSION_LENGTH);
    at += VERSION_LENGTH;
    memcpy(at, secret->key_id, HF_WAIT_KEYID_TEXT - 1);
    at += HF_WAIT_KEYID_TEXT - 1;
    *at++ = '.';
    memcpy(at, wait_id, ID_LENGTH);
    at += ID_LENGTH;
    *at++ = '.';
    hf_hex(mac, sizeof mac, at);
    at[MAC_LENGTH] = '\0';
    return 0;
}

bool hf_wait_key_read(const char *key, struct hf_wait_claim *ret_claim)
{
    struct hf_wait_claim claim = { .key_id = "" };
    struct hf_wait_place place;
    if (!key || strnlen(key, HF_WAIT_KEY_TEXT) != KEY_LENGTH ||
        memcmp(key, version, VERSION_LENGTH) != 0)
        return false;
    const char *at = key + VERSION_LENGTH;
    memcpy(claim.key_id, at, HF_WAIT_KEYID_TEXT - 1);
    at += HF_WAIT_KEYID_TEXT - 1;
    if (*at++ != '.' || !is_hex(claim.key_id, HF_WAIT_KEYID_TEXT - 1))
        return false;
    memcpy(claim.wait_id, at, ID_LENGTH);
    at += ID_LENGTH;
    if (*at++ != '.' || !hf_wait_id_read(claim.wait_id, &place) ||
        !is_hex(at, MAC_LENGTH))
        return false;
    for (size_t i = 0; i < sizeof claim.mac; i++)
        claim.mac[i] = (uint8_t)(nibble(at[2 * i]) << 4 | nibble(at[2 * i + 1]));
    *ret_claim = claim;
    return true;
}

bool hf_wait_key_holds(const struct hf_wait_claim *claim,
                       const struct hf_wait_secret *secret)
{
    struct hf_wait_place place;
    uint8_t mac[HF_DIGEST_BYTES];
    return hf_same(claim->key_id, secret->key_id) &&
           hf_wait_id_read(claim->wait_id, &place) &&
           mac_of(secret, claim->wait_id, &place, mac) == 0 &&
           hf_text_same_secret(mac, claim->mac, sizeof mac);
}
