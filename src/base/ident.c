/* UUIDv7, nonces, framed SHA-256 and CRC-32C.
 *
 * Preimage of a framed digest, all numbers big-endian:
 *
 *   "HFD1"  u64 length, family  u8 version  { u8 kind  u64 length  bytes }...
 *
 * It is stored and compared across versions, so it may never change; a new family version
 * is how a digest's meaning changes. Golden values are in the tests.
 */
#include "base/ident.h"

#include <string.h>

#define OPENSSL_SUPPRESS_DEPRECATED /* see state_of */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "base/err.h"
#include "base/text.h"

#define UUID_BYTES 16
#define COUNTER_BITS 12 /* rand_a of RFC 9562 */
#define TIME_MS_LIMIT (INT64_C(1) << 48)

/* Spelt out, which compilers make one store of. */
static inline void put_be64(uint8_t *out, uint64_t value)
{
    out[0] = (uint8_t)(value >> 56);
    out[1] = (uint8_t)(value >> 48);
    out[2] = (uint8_t)(value >> 40);
    out[3] = (uint8_t)(value >> 32);
    out[4] = (uint8_t)(value >> 24);
    out[5] = (uint8_t)(value >> 16);
    out[6] = (uint8_t)(value >> 8);
    out[7] = (uint8_t)value;
}

static void uuid_text(const uint8_t bytes[UUID_BYTES], char *out)
{
    static const size_t group_bytes[] = { 4, 2, 2, 2, 6 };
    for (size_t i = 0; i < 5; i++) {
        if (i > 0)
            *out++ = '-';
        hf_hex(bytes, group_bytes[i], out);
        bytes += group_bytes[i];
        out += 2 * group_bytes[i];
    }
}

/* *seq holds the last id's time and counter as one number. A full counter thus carries
 * into the time (RFC 9562, 6.2), and a clock that went back does not disturb the order. */
int hf_uuid7(hf_ms wall_ms, uint64_t *seq, const struct hf_random *random,
             char ret_text[HF_UUID_TEXT], struct hf_err *err)
{
    if (wall_ms < 0 || wall_ms >= TIME_MS_LIMIT)
        return hf_fail(err, HF_EINVAL, NULL, "the clock is out of range for an id");

    uint64_t stamp = (uint64_t)wall_ms << COUNTER_BITS;
    if (stamp <= *seq)
        stamp = *seq + 1;
    if (stamp >> COUNTER_BITS >= (uint64_t)TIME_MS_LIMIT)
        return hf_fail(err, HF_EOVERFLOW, NULL, "the id counter is used up");

    uint8_t bytes[UUID_BYTES];
    int rc = random->fill(random->user, bytes + 8, 8);
    if (rc)
        return hf_fail(err, rc, NULL, "the random source failed while an id was made");
    uint64_t counter = stamp & ((1U << COUNTER_BITS) - 1);
    put_be64(bytes, (stamp >> COUNTER_BITS) << 16 | UINT64_C(0x7000) | counter);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);

    *seq = stamp;
    uuid_text(bytes, ret_text);
    return 0;
}

bool hf_uuid_valid(const char *text)
{
    if (!text || strnlen(text, HF_UUID_TEXT) != HF_UUID_TEXT - 1)
        return false;
    for (size_t i = 0; i < HF_UUID_TEXT - 1; i++) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (text[i] >= '0' && text[i] <= '9') ||
                   (text[i] >= 'a' && text[i] <= 'f');
        if (hyphen ? text[i] != '-' : !hex)
            return false;
    }
    return true;
}

int hf_nonce(const struct hf_random *random, char ret_text[HF_NONCE_TEXT],
             struct hf_err *err)
{
    uint8_t bytes[(HF_NONCE_TEXT - 1) / 2];
    int rc = random->fill(random->user, bytes, sizeof(bytes));
    if (rc)
        return hf_fail(err, rc, NULL, "the random source failed while a nonce was made");
    hf_hex(bytes, sizeof(bytes), ret_text);
    return 0;
}

/* The functions for SHA-256 alone, which OpenSSL would rather see used through its generic ones:
 * those allocate and go through six layers, 3.9 us for a request after a sync of the disk has left
 * the caches cold, where these take 0.5 us. */
static SHA256_CTX *state_of(struct hf_digest *digest)
{
    _Static_assert(sizeof(SHA256_CTX) <= sizeof(digest->state),
                   "room for OpenSSL's state");
    return (SHA256_CTX *)(void *)digest->state;
}

static void hash(struct hf_digest *digest, const void *bytes, size_t len)
{
    digest->failed |= len > 0 && SHA256_Update(state_of(digest), bytes, len) != 1;
}

static void hash_pending(struct hf_digest *digest)
{
    hash(digest, digest->bytes, digest->pending);
    digest->pending = 0;
}

static inline void add(struct hf_digest *digest, const void *bytes, size_t len)
{
    if (len > sizeof(digest->bytes) - digest->pending)
        hash_pending(digest);
    if (len > sizeof(digest->bytes)) {
        hash(digest, bytes, len);
    } else if (len > 0) {
        memcpy(digest->bytes + digest->pending, bytes, len);
        digest->pending += len;
    }
}

#define HEAD_BYTES 9

static inline void add_field(struct hf_digest *digest, char kind, const void *bytes,
                             size_t len)
{
    if (HEAD_BYTES > sizeof(digest->bytes) - digest->pending)
        hash_pending(digest);
    uint8_t *head = digest->bytes + digest->pending;
    head[0] = (uint8_t)kind;
    put_be64(head + 1, len);
    digest->pending += HEAD_BYTES;
    add(digest, bytes, len);
}

void hf_digest_begin(struct hf_digest *digest, const char *family, uint8_t version)
{
    digest->pending = 0;
    digest->failed = SHA256_Init(state_of(digest)) != 1;

    uint8_t head[12] = "HFD1";
    size_t len = strlen(family);
    put_be64(head + 4, len);
    add(digest, head, sizeof(head));
    add(digest, family, len);
    add(digest, &version, 1);
}

void hf_digest_text(struct hf_digest *digest, const char *text)
{
    if (text)
        add_field(digest, 't', text, strlen(text));
    else
        add_field(digest, 'n', NULL, 0);
}

void hf_digest_bytes(struct hf_digest *digest, const void *bytes, size_t len)
{
    add_field(digest, 'b', bytes, len);
}

void hf_digest_i64(struct hf_digest *digest, int64_t value)
{
    uint8_t bytes[8];
    put_be64(bytes, (uint64_t)value);
    add_field(digest, 'i', bytes, sizeof(bytes));
}

int hf_digest_end(struct hf_digest *digest, uint8_t ret_bytes[HF_DIGEST_BYTES])
{
    uint8_t bytes[HF_DIGEST_BYTES];
    hash_pending(digest);
    if (digest->failed || SHA256_Final(bytes, state_of(digest)) != 1)
        return HF_ENOMEM;
    memcpy(ret_bytes, bytes, sizeof(bytes));
    return 0;
}

void hf_sha256_begin(struct hf_digest *digest)
{
    *digest = (struct hf_digest){ .failed = false };
    digest->failed = SHA256_Init(state_of(digest)) != 1;
}

void hf_sha256_more(struct hf_digest *digest, const void *bytes, size_t len)
{
    hash(digest, bytes, len);
}

int hf_sha256(const void *bytes, size_t len, uint8_t ret_bytes[HF_DIGEST_BYTES])
{
    struct hf_digest digest;
    hf_sha256_begin(&digest);
    hf_sha256_more(&digest, bytes, len);
    return hf_digest_end(&digest, ret_bytes);
}

int hf_hmac_sha256(const uint8_t secret[HF_DIGEST_BYTES], const void *bytes, size_t len,
                   uint8_t ret_mac[HF_DIGEST_BYTES])
{
    unsigned size = 0;
    const unsigned char *mac = HMAC(EVP_sha256(), secret, HF_DIGEST_BYTES, bytes, len,
                                    ret_mac, &size);
    return mac && size == HF_DIGEST_BYTES ? 0 : HF_ENOMEM;
}

bool hf_text_same_secret(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

/* Four bits a step: the table stays small, and the inputs are. Each entry is its index
 * run through the reflected polynomial 0x82f63b78. */
uint32_t hf_crc32c(uint32_t seed, const void *bytes, size_t len)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const uint8_t *at = bytes;
    uint32_t crc = ~seed;
    for (size_t i = 0; i < len; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}
