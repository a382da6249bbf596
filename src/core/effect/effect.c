/* The effect journal's rules: what an entry means, and what a key says. Pure. */
#include <holdfast/effect.h>

#include <string.h>

#include "base/err.h"
#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define X(name, word) #word,
static const char *const scope_words[] = { HF_SCOPES(X) };
static const char *const status_words[] = { HF_ENTRY_STATUSES(X) };
static const char *const recovery_words[] = { HF_RECOVERIES(X) };
static const char *const decision_words[] = { HF_DECISIONS(X) };
static const char *const act_words[] = { HF_RECOVER_ACTS(X) };
#undef X

static const char *word_of(const char *const *words, size_t count, size_t i)
{
    return i < count ? words[i] : "?";
}

const char *hf_scope_name(enum hf_scope scope)
{
    return word_of(scope_words, COUNT(scope_words), (size_t)scope);
}

const char *hf_entry_status_name(enum hf_entry_status status)
{
    return word_of(status_words, COUNT(status_words), (size_t)status);
}

const char *hf_recovery_name(enum hf_recovery recovery)
{
    return word_of(recovery_words, COUNT(recovery_words), (size_t)recovery);
}

const char *hf_decision_name(enum hf_decision decision)
{
    return word_of(decision_words, COUNT(decision_words), (size_t)decision);
}

const char *hf_recover_act_name(enum hf_recover_act act)
{
    return word_of(act_words, COUNT(act_words), (size_t)act);
}

bool hf_entry_status_read(const char *word, enum hf_entry_status *ret_status)
{
    for (size_t i = 0; i < COUNT(status_words); i++)
        if (hf_same(word, status_words[i])) {
            *ret_status = (enum hf_entry_status)i;
            return true;
        }
    return false;
}

bool hf_recovery_read(const char *word, enum hf_recovery *ret_recovery)
{
    for (size_t i = 0; i < COUNT(recovery_words); i++)
        if (hf_same(word, recovery_words[i])) {
            *ret_recovery = (enum hf_recovery)i;
            return true;
        }
    return false;
}

static bool same_bytes(struct hf_span a, struct hf_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Whether the worker that started the entry may still perform the effect. A turn's entry is
 * bound to the session's fence: only the claim with the highest fence may act. */
static bool held(const struct hf_effect_entry *entry, const struct hf_effect_ask *ask)
{
    if (ask->scope == HF_SCOPE_TURN)
        return entry->fence >= ask->fence;
    return entry->expires_at > ask->now;
}

enum hf_decision hf_effect_decide(const struct hf_effect_entry *entry,
                                  const struct hf_effect_ask *ask)
{
    if (!entry)
        return HF_DECISION_ABSENT;
    if (entry->recovery <= HF_RECOVERY_NONE || entry->recovery >= HF_RECOVERY_COUNT)
        return HF_DECISION_CORRUPT;
    if (!same_bytes(entry->envelope, ask->envelope))
        return HF_DECISION_MISMATCH;
    switch (entry->status) {
    case HF_ENTRY_STARTED:
        if (entry->outcome.len > 0)
            return HF_DECISION_CORRUPT;
        return held(entry, ask) ? HF_DECISION_BUSY : HF_DECISION_TAKE_OVER;
    case HF_ENTRY_DONE:
    case HF_ENTRY_FAILED:
    case HF_ENTRY_UNKNOWN:
        return entry->outcome.len > 0 ? HF_DECISION_REPLAY : HF_DECISION_CORRUPT;
    case HF_ENTRY_STATUS_COUNT: break;
    }
    return HF_DECISION_CORRUPT;
}

enum hf_recover_act hf_effect_recover(enum hf_recovery recovery, bool can_probe)
{
    if (recovery == HF_RECOVERY_SAFE || recovery == HF_RECOVERY_KEYED)
        return HF_RECOVER_RUN;
    if (recovery == HF_RECOVERY_PROBE && can_probe)
        return HF_RECOVER_PROBE;
    return HF_RECOVER_UNKNOWN;
}

/* Appends a decimal number; `at` has room for 20 digits. Returns the end. */
static char *put_number(char *at, uint64_t value)
{
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

void hf_effect_key(uint64_t effect, const char *call_id, int64_t attempt,
                   char ret_key[HF_EFFECT_KEY_ROOM])
{
    char *at = put_number(ret_key, effect);
    if (call_id) {
        size_t len = strlen(call_id);
        hf_assert(len < sizeof(((struct hf_effect_name *)NULL)->call_id) && attempt > 0);
        *at++ = '/';
        memcpy(at, call_id, len);
        at += len;
        *at++ = '/';
        at = put_number(at, (uint64_t)attempt);
    }
    *at = '\0';
}

/* Reads a number of 1 to INT64_MAX without leading zeros, and moves past it. */
static bool take_number(const char **at, int64_t *ret_value)
{
    int64_t value = 0;
    if (**at < '1' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        int digit = **at - '0';
        if (value > (INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

bool hf_effect_key_read(const char *key, struct hf_effect_name *ret_name)
{
    struct hf_effect_name name = { 0 };
    int64_t effect = 0;
    if (!take_number(&key, &effect))
        return false;
    name.effect = (uint64_t)effect;
    if (*key == '/') {
        size_t len = strcspn(++key, "/");
        if (len == 0 || len >= sizeof(name.call_id) || key[len] != '/')
            return false;
        memcpy(name.call_id, key, len);
        key += len + 1;
        if (!take_number(&key, &name.attempt))
            return false;
    }
    if (*key)
        return false;
    *ret_name = name;
    return true;
}
