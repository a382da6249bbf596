/* Identities: the published vectors, and goldens computed apart from this code. */
#include "support/unit.h"

#include <string.h>

#include "base/ident.h"
#include "base/text.h"

static int fill_ff(void *user, void *out, size_t bytes)
{
    (void)user;
    memset(out, 0xff, bytes);
    return 0;
}

static int fill_00(void *user, void *out, size_t bytes)
{
    (void)user;
    memset(out, 0, bytes);
    return 0;
}

static int fill_none(void *user, void *out, size_t bytes)
{
    (void)user;
    (void)out;
    (void)bytes;
    return HF_EINTERNAL;
}

static const struct hf_random ones = { .fill = fill_ff };
static const struct hf_random zeros = { .fill = fill_00 };
static const struct hf_random broken = { .fill = fill_none };

/* RFC 9562, 5.7: 48 bits of time, version 7, 12 bits, variant 10, 62 bits. The time is that
 * of its example in A.6: 2022-02-22T19:22:22.000Z = 0x017F22E279B0. */
static void uuid7_has_the_shape_of_rfc_9562(void **state)
{
    (void)state;
    char id[HF_UUID_TEXT];
    uint64_t seq = 0;
    assert_int_equal(hf_uuid7(1645557742000, &seq, &ones, id, NULL), 0);
    assert_string_equal(id, "017f22e2-79b0-7000-bfff-ffffffffffff");
    assert_int_equal(hf_uuid7(1645557742000, &seq, &zeros, id, NULL), 0);
    assert_string_equal(id, "017f22e2-79b0-7001-8000-000000000000");
    assert_int_equal(hf_uuid7(1645557742001, &seq, &zeros, id, NULL), 0);
    assert_string_equal(id, "017f22e2-79b1-7000-8000-000000000000");
}

static void uuid7_is_ordered_within_a_millisecond_and_past_its_counter(void **state)
{
    (void)state;
    char last[HF_UUID_TEXT] = "";
    char id[HF_UUID_TEXT];
    uint64_t seq = 0;
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(hf_uuid7(1645557742000, &seq, hf_random_system(), id, NULL), 0);
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof(id));
    }
    assert_memory_equal(id, "017f22e2-79b2-7", 15); /* 10,000 = 2 * 4096 + 1808 */
}

static void uuid7_stays_ordered_when_the_clock_goes_back(void **state)
{
    (void)state;
    char id[HF_UUID_TEXT];
    uint64_t seq = 0;
    assert_int_equal(hf_uuid7(1645557742000, &seq, &zeros, id, NULL), 0);
    assert_int_equal(hf_uuid7(1645557700000, &seq, &zeros, id, NULL), 0);
    assert_string_equal(id, "017f22e2-79b0-7001-8000-000000000000");
}

static void uuid7_refuses_a_time_that_does_not_fit(void **state)
{
    (void)state;
    char id[HF_UUID_TEXT] = "untouched";
    uint64_t seq = 0;
    struct hf_err err = { 0 };
    assert_int_equal(hf_uuid7(-1, &seq, &zeros, id, &err), HF_EINVAL);
    assert_int_equal(hf_uuid7(INT64_C(1) << 48, &seq, &zeros, id, &err), HF_EINVAL);
    assert_string_equal(id, "untouched");
    assert_int_equal(hf_uuid7((INT64_C(1) << 48) - 1, &seq, &zeros, id, &err), 0);
    assert_string_equal(id, "ffffffff-ffff-7000-8000-000000000000");
    seq = (UINT64_C(1) << 60) - 1;
    assert_int_equal(hf_uuid7(1, &seq, &zeros, id, &err), HF_EOVERFLOW);
    assert_int_equal(hf_uuid7(0, &(uint64_t){ 0 }, &zeros, id, &err), 0);
    assert_string_equal(id, "00000000-0000-7001-8000-000000000000");
}

static void no_randomness_means_no_id(void **state)
{
    (void)state;
    char id[HF_UUID_TEXT] = "untouched";
    uint64_t seq = 0;
    struct hf_err err = { 0 };
    assert_int_equal(hf_uuid7(5, &seq, &broken, id, &err), HF_EINTERNAL);
    assert_int_equal(err.code, HF_EINTERNAL);
    assert_int_equal(seq, 0);
    assert_int_equal(hf_nonce(&broken, id, &err), HF_EINTERNAL);
    assert_string_equal(id, "untouched");
}

static void uuid_text_is_lower_case_and_whole(void **state)
{
    (void)state;
    assert_true(hf_uuid_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"));
    assert_true(hf_uuid_valid("00000000-0000-0000-0000-000000000000"));
    assert_false(hf_uuid_valid("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"));
    assert_false(hf_uuid_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398"));
    assert_false(hf_uuid_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f0"));
    assert_false(hf_uuid_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398g"));
    assert_false(hf_uuid_valid("017f22e279b0-7cc3-98c4-dc0c0c07398f--"));
    assert_false(hf_uuid_valid("017f22e2-79b0-7cc3-98c4_dc0c0c07398f"));
    assert_false(hf_uuid_valid("{17f22e2-79b0-7cc3-98c4-dc0c0c07398}"));
    assert_false(hf_uuid_valid(""));
    assert_false(hf_uuid_valid(NULL));
}

static void nonces_are_32_hex_digits(void **state)
{
    (void)state;
    char a[HF_NONCE_TEXT];
    char b[HF_NONCE_TEXT];
    assert_int_equal(hf_nonce(&ones, a, NULL), 0);
    assert_string_equal(a, "ffffffffffffffffffffffffffffffff");
    assert_int_equal(hf_nonce(hf_random_system(), a, NULL), 0);
    assert_int_equal(hf_nonce(hf_random_system(), b, NULL), 0);
    assert_int_equal(strlen(a), 32);
    assert_string_not_equal(a, b);
}

static void sha256_is(const void *bytes, size_t len, const char *expected)
{
    uint8_t digest[HF_DIGEST_BYTES];
    char text[65];
    assert_int_equal(hf_sha256(bytes, len, digest), 0);
    hf_hex(digest, sizeof(digest), text);
    assert_string_equal(text, expected);
}

/* FIPS 180-2, appendix B, and the empty message of NIST's CAVP. */
static void sha256_gives_the_published_values(void **state)
{
    (void)state;
    sha256_is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_is(NULL, 0,
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_is("abc", 3,
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    static char million[1000000];
    memset(million, 'a', sizeof(million));
    sha256_is(million, sizeof(million),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void end_is(struct hf_digest *digest, const char *expected)
{
    uint8_t bytes[HF_DIGEST_BYTES];
    char text[65];
    assert_int_equal(hf_digest_end(digest, bytes), 0);
    hf_hex(bytes, sizeof(bytes), text);
    assert_string_equal(text, expected);
}

/* SHA-256 of the preimage that ident.c documents, computed with another program. Stored
 * digests depend on it: a change here needs a new family version, not a new value. */
static void framed_digest_keeps_its_bytes(void **state)
{
    (void)state;
    struct hf_digest digest;
    hf_digest_begin(&digest, "test", 1);
    end_is(&digest, "32a071f1c2290f291cd0499f0fff9acb7d992cbe09ef44b525f081a678c5be58");

    hf_digest_begin(&digest, "work.create", 2);
    hf_digest_text(&digest, "alpha");
    hf_digest_text(&digest, NULL);
    hf_digest_bytes(&digest, "\0\1\2", 3);
    hf_digest_i64(&digest, -5);
    end_is(&digest, "71f3001aef29005dc52affaf3cdf00af94f3f2da09ec3a518dcfe8163728e88c");
}

struct shape {
    const char *family;
    uint8_t version;
    const char *fields[3];
    int count;
};

static void framed_digest_tells_shapes_apart(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        { "f", 1, { "ab", "c" }, 2 },       { "f", 1, { "a", "bc" }, 2 },
        { "f", 1, { "abc" }, 1 },           { "f", 1, { "ab", "c", "" }, 3 },
        { "f", 1, { "ab", "c", NULL }, 3 }, { "f", 2, { "ab", "c" }, 2 },
        { "g", 1, { "ab", "c" }, 2 },       { "f", 1, { NULL, "ab", "c" }, 3 },
    };
    enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };
    uint8_t digests[SHAPES + 2][HF_DIGEST_BYTES];
    struct hf_digest digest;
    for (int i = 0; i < SHAPES; i++) {
        hf_digest_begin(&digest, shapes[i].family, shapes[i].version);
        for (int f = 0; f < shapes[i].count; f++)
            hf_digest_text(&digest, shapes[i].fields[f]);
        assert_int_equal(hf_digest_end(&digest, digests[i]), 0);
    }
    hf_digest_begin(&digest, "f", 1); /* the same bytes as other kinds */
    hf_digest_bytes(&digest, "abc", 3);
    assert_int_equal(hf_digest_end(&digest, digests[SHAPES]), 0);
    hf_digest_begin(&digest, "f", 1);
    hf_digest_i64(&digest, 0x6162630000000000);
    assert_int_equal(hf_digest_end(&digest, digests[SHAPES + 1]), 0);

    for (int i = 0; i < SHAPES + 2; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(digests[i], digests[j], HF_DIGEST_BYTES);
}

static void failed_digest_reports_at_its_end(void **state)
{
    (void)state;
    struct hf_digest digest = { .failed = true };
    uint8_t bytes[HF_DIGEST_BYTES] = { 7 };
    hf_digest_text(&digest, "ignored");
    hf_digest_i64(&digest, 1);
    assert_int_equal(hf_digest_end(&digest, bytes), HF_ENOMEM);
    assert_int_equal(bytes[0], 7);
}

/* RFC 3720, B.4, and the check value of the CRC catalogue. */
static void crc32c_gives_the_published_values(void **state)
{
    (void)state;
    uint8_t block[32] = { 0 };
    assert_int_equal(hf_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(hf_crc32c(0, "", 0), 0);
    assert_int_equal(hf_crc32c(0, block, 32), 0x8a9136aa);
    memset(block, 0xff, sizeof(block));
    assert_int_equal(hf_crc32c(0, block, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        block[i] = i;
    assert_int_equal(hf_crc32c(0, block, 32), 0x46dd794e);
}

static void crc32c_goes_on_from_its_result(void **state)
{
    (void)state;
    uint32_t part = hf_crc32c(0, "1234", 4);
    assert_int_equal(hf_crc32c(part, "56789", 5), 0xe3069283);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uuid7_has_the_shape_of_rfc_9562),
        cmocka_unit_test(uuid7_is_ordered_within_a_millisecond_and_past_its_counter),
        cmocka_unit_test(uuid7_stays_ordered_when_the_clock_goes_back),
        cmocka_unit_test(uuid7_refuses_a_time_that_does_not_fit),
        cmocka_unit_test(no_randomness_means_no_id),
        cmocka_unit_test(uuid_text_is_lower_case_and_whole),
        cmocka_unit_test(nonces_are_32_hex_digits),
        cmocka_unit_test(sha256_gives_the_published_values),
        cmocka_unit_test(framed_digest_keeps_its_bytes),
        cmocka_unit_test(framed_digest_tells_shapes_apart),
        cmocka_unit_test(failed_digest_reports_at_its_end),
        cmocka_unit_test(crc32c_gives_the_published_values),
        cmocka_unit_test(crc32c_goes_on_from_its_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
