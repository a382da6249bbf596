/* Identities: UUIDv7, random nonces, and framed SHA-256.
 *
 * A framed digest covers: magic, family name, family version, then each field with its kind
 * and its length, so that ("ab","c") and ("a","bc") differ, and so do NULL and "".
 */
#ifndef HF_BASE_IDENT_H
#define HF_BASE_IDENT_H

#include <holdfast/types.h>

#define HF_UUID_TEXT 37 /* with the NUL */
#define HF_NONCE_TEXT 33
#define HF_DIGEST_BYTES 32

/* A version 7 UUID for the given time: ordered by time, then by a counter kept by the
 * caller in *seq (so that ids made in one millisecond by one handle are ordered too; start
 * at 0), then random. Lower case. When the time goes back, or over 4096 ids are made in a
 * millisecond, the id's time runs ahead of the given one: a handle's ids are always in
 * order. *seq is one thread's at a time. */
HF_MUST_USE int hf_uuid7(hf_ms wall_ms, uint64_t *seq, const struct hf_random *random,
                         char ret_text[HF_UUID_TEXT], struct hf_err *err);

/* True for the lower-case text form of a UUID of any version; NULL is not one. */
bool hf_uuid_valid(const char *text);

/* 128 random bits as 32 lower-case hex digits. */
HF_MUST_USE int hf_nonce(const struct hf_random *random, char ret_text[HF_NONCE_TEXT],
                         struct hf_err *err);

/* Fields are gathered before they are hashed: a request has many short ones. */
struct hf_digest {
    uint64_t state[14]; /* OpenSSL's */
    bool failed;        /* hf_digest_end reports it */
    size_t pending;
    uint8_t bytes[500];
};

void hf_digest_begin(struct hf_digest *digest, const char *family, uint8_t version);
void hf_digest_text(struct hf_digest *digest, const char *text); /* NULL is a value */
void hf_digest_bytes(struct hf_digest *digest, const void *bytes, size_t len);
void hf_digest_i64(struct hf_digest *digest, int64_t value);
/* 0 or HF_ENOMEM. A digest holds nothing that must be released. */
HF_MUST_USE int hf_digest_end(struct hf_digest *digest,
                              uint8_t ret_bytes[HF_DIGEST_BYTES]);

/* Plain SHA-256 of bytes that come in pieces; hf_digest_end ends it. */
void hf_sha256_begin(struct hf_digest *digest);
void hf_sha256_more(struct hf_digest *digest, const void *bytes, size_t len);
/* The same of some bytes, for golden tests. */
HF_MUST_USE int hf_sha256(const void *bytes, size_t len,
                          uint8_t ret_bytes[HF_DIGEST_BYTES]);

/* HMAC-SHA-256 of some bytes. 0 or HF_ENOMEM. */
HF_MUST_USE int hf_hmac_sha256(const uint8_t secret[HF_DIGEST_BYTES], const void *bytes,
                               size_t len, uint8_t ret_mac[HF_DIGEST_BYTES]);
/* Whether two secrets are the same, in a time that does not depend on where they differ. */
bool hf_text_same_secret(const void *a, const void *b, size_t len);

/* CRC-32C, for small self-checks. Start with seed 0; a result is the seed to continue with. */
uint32_t hf_crc32c(uint32_t seed, const void *bytes, size_t len);

#endif
