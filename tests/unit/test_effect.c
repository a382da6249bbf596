/* The effect journal's rules. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include <holdfast/effect.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, text ? strlen(text) : 0 };
}

#define ENVELOPE "{\"kind\":\"llm_call\",\"records\":3}"
#define OTHER "{\"kind\":\"llm_call\",\"records\":4}"

/* Rows of durable-state 2.10, with a turn's fence and with the lease of other scopes. The
 * worker that asks holds fence 7, and the time is 1000. */
static const struct row {
    const char *what;
    enum hf_scope scope;
    int status; /* -1: there is no entry */
    enum hf_recovery recovery;
    const char *envelope;
    const char *outcome;
    int64_t fence;
    hf_ms expires_at;
    enum hf_decision want;
} rows[] = {
    { "no entry", HF_SCOPE_TURN, -1, 0, NULL, NULL, 0, 0, HF_DECISION_ABSENT },
    { "done", HF_SCOPE_TURN, HF_ENTRY_DONE, HF_RECOVERY_KEYED, ENVELOPE, "1", 6, 0,
      HF_DECISION_REPLAY },
    { "done under the own fence", HF_SCOPE_TURN, HF_ENTRY_DONE, HF_RECOVERY_KEYED,
      ENVELOPE, "1", 7, 0, HF_DECISION_REPLAY },
    { "failed", HF_SCOPE_TURN, HF_ENTRY_FAILED, HF_RECOVERY_ASK, ENVELOPE, "{}", 6, 0,
      HF_DECISION_REPLAY },
    { "unknown", HF_SCOPE_TURN, HF_ENTRY_UNKNOWN, HF_RECOVERY_ASK, ENVELOPE, "{}", 6, 0,
      HF_DECISION_REPLAY },
    { "started under an older fence", HF_SCOPE_TURN, HF_ENTRY_STARTED, HF_RECOVERY_ASK,
      ENVELOPE, NULL, 6, 0, HF_DECISION_TAKE_OVER },
    { "started under the own fence", HF_SCOPE_TURN, HF_ENTRY_STARTED, HF_RECOVERY_SAFE,
      ENVELOPE, NULL, 7, 0, HF_DECISION_BUSY },
    { "started under a newer fence", HF_SCOPE_TURN, HF_ENTRY_STARTED, HF_RECOVERY_SAFE,
      ENVELOPE, NULL, 8, 0, HF_DECISION_BUSY },
    { "a turn's entry has no lease", HF_SCOPE_TURN, HF_ENTRY_STARTED, HF_RECOVERY_SAFE,
      ENVELOPE, NULL, 6, 5000, HF_DECISION_TAKE_OVER },
    { "a live lease", HF_SCOPE_PROCESS, HF_ENTRY_STARTED, HF_RECOVERY_SAFE, ENVELOPE,
      NULL, 0, 1001, HF_DECISION_BUSY },
    { "a lease that ends now", HF_SCOPE_PROCESS, HF_ENTRY_STARTED, HF_RECOVERY_SAFE,
      ENVELOPE, NULL, 0, 1000, HF_DECISION_TAKE_OVER },
    { "another envelope", HF_SCOPE_TURN, HF_ENTRY_STARTED, HF_RECOVERY_KEYED, OTHER, NULL,
      6, 0, HF_DECISION_MISMATCH },
    { "another envelope, done", HF_SCOPE_OPERATION, HF_ENTRY_DONE, HF_RECOVERY_KEYED,
      OTHER, "1", 0, 0, HF_DECISION_MISMATCH },
    { "done without an outcome", HF_SCOPE_TURN, HF_ENTRY_DONE, HF_RECOVERY_KEYED,
      ENVELOPE, NULL, 6, 0, HF_DECISION_CORRUPT },
    { "failed without an error", HF_SCOPE_TURN, HF_ENTRY_FAILED, HF_RECOVERY_KEYED,
      ENVELOPE, NULL, 6, 0, HF_DECISION_CORRUPT },
    { "started with an outcome", HF_SCOPE_TURN, HF_ENTRY_STARTED, HF_RECOVERY_KEYED,
      ENVELOPE, "1", 6, 0, HF_DECISION_CORRUPT },
    { "no such status", HF_SCOPE_TURN, HF_ENTRY_STATUS_COUNT, HF_RECOVERY_KEYED, ENVELOPE,
      "1", 6, 0, HF_DECISION_CORRUPT },
    { "no class", HF_SCOPE_TURN, HF_ENTRY_STARTED, HF_RECOVERY_NONE, ENVELOPE, NULL, 6, 0,
      HF_DECISION_CORRUPT },
    { "no such class", HF_SCOPE_TURN, HF_ENTRY_DONE, HF_RECOVERY_COUNT, ENVELOPE, "1", 6,
      0, HF_DECISION_CORRUPT },
};

static void every_entry_has_one_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        struct hf_effect_entry entry = { .status = (enum hf_entry_status)row->status,
                                         .recovery = row->recovery,
                                         .envelope = span_of(row->envelope),
                                         .outcome = span_of(row->outcome),
                                         .fence = row->fence,
                                         .expires_at = row->expires_at };
        struct hf_effect_ask ask = { row->scope, span_of(ENVELOPE), 7, 1000 };
        enum hf_decision got = hf_effect_decide(row->status < 0 ? NULL : &entry, &ask);
        if (got != row->want)
            fail_msg("%s: %s", row->what, hf_decision_name(got));
    }
}

static void a_takeover_obeys_the_declared_class(void **state)
{
    (void)state;
    assert_int_equal(hf_effect_recover(HF_RECOVERY_SAFE, false), HF_RECOVER_RUN);
    assert_int_equal(hf_effect_recover(HF_RECOVERY_KEYED, false), HF_RECOVER_RUN);
    assert_int_equal(hf_effect_recover(HF_RECOVERY_PROBE, true), HF_RECOVER_PROBE);
    assert_int_equal(hf_effect_recover(HF_RECOVERY_PROBE, false), HF_RECOVER_UNKNOWN);
    assert_int_equal(hf_effect_recover(HF_RECOVERY_ASK, true), HF_RECOVER_UNKNOWN);
    assert_int_equal(hf_effect_recover(HF_RECOVERY_NONE, true), HF_RECOVER_UNKNOWN);
}

static const char *mismatch_of(const char *recorded, const char *wanted)
{
    static struct hf_err err;
    assert_int_equal(hf_effect_mismatch("3", span_of(recorded), span_of(wanted), &err),
                     HF_EEFFECT);
    return err.message;
}

#define SAID "effect 3 was recorded with another "
#define LONG "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"

/* The same in either direction. */
static const struct {
    const char *recorded;
    const char *wanted;
    const char *want;
} differ[] = {
    { ENVELOPE, OTHER, "/records" },
    { "{\"a\":1}", "{\"a\":1,\"b\":2}", "/b" },
    { "{\"a\":1,\"b\":2}", "{\"b\":2}", "/a" },
    { "{\"a\":1,\"c\":2}", "{\"b\":1,\"c\":2}", "/a" }, /* the first of two */
    { "{\"b\":{\"c\":1,\"d\":2}}", "{\"b\":{\"c\":1,\"d\":3}}", "/b/d" },
    { "{\"b\":{\"c\":1}}", "{\"b\":{}}", "/b/c" },
    { "{\"a\":[1,2,3]}", "{\"a\":[1,2,4]}", "/a/2" },
    { "{\"a\":[1,2]}", "{\"a\":[1,2,3]}", "/a/2" },
    { "{\"a\":[[],[{\"x\":null}]]}", "{\"a\":[[],[{\"x\":0}]]}", "/a/1/0/x" },
    { "{\"a\":{}}", "{\"a\":[]}", "/a" },
    { "{\"a\":{\"b\":1}}", "{\"a\":\"b\"}", "/a" },
    { "{\"a\":1}", "{\"a\":\"1\"}", "/a" },
    { "{\"a/b\":{\"~\":1}}", "{\"a/b\":{\"~\":2}}", "/a~1b/~0" },
    { "{\"\":1}", "{\"\":2}", "/" },
    { "{\"\\\"\":1,\"a\":1}", "{\"a\":1}", "/\"" },
    { "{\"b\":1, \"a\":{\"z\":1, \"y\":1}}", "{\"a\":{\"y\":2,\"z\":2},\"b\":1}",
      "/a/y" },
    { "{\"" LONG "\":{\"" LONG "\":{\"" LONG "\":1}}}",
      "{\"" LONG "\":{\"" LONG "\":{\"" LONG "\":2}}}", "/" LONG "/" LONG },
    { "[1]", "[2]", "/0" },
    { "1", "2", "envelope" },
    { "no JSON", "{}", "envelope" },
};

static void a_mismatch_names_the_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(differ); i++) {
        const char *said = mismatch_of(differ[i].recorded, differ[i].wanted);
        assert_memory_equal(said, SAID, strlen(SAID));
        assert_string_equal(said + strlen(SAID), differ[i].want);
        said = mismatch_of(differ[i].wanted, differ[i].recorded);
        assert_string_equal(said + strlen(SAID), differ[i].want);
    }
}

static void keys_say_effect_call_and_attempt(void **state)
{
    (void)state;
    struct hf_effect_name name;
    char key[HF_EFFECT_KEY_ROOM];
    hf_effect_key(3, NULL, 0, key);
    assert_string_equal(key, "3");
    assert_true(hf_effect_key_read(key, &name));
    assert_int_equal(name.effect, 3);
    assert_string_equal(name.call_id, "");
    assert_int_equal(name.attempt, 0);
    hf_effect_key(INT64_MAX, "cabcdefghijklmnopqrstuvwx", 12, key);
    assert_string_equal(key, "9223372036854775807/cabcdefghijklmnopqrstuvwx/12");
    assert_true(hf_effect_key_read(key, &name));
    assert_int_equal(name.effect, INT64_MAX);
    assert_string_equal(name.call_id, "cabcdefghijklmnopqrstuvwx");
    assert_int_equal(name.attempt, 12);
}

static void other_texts_are_no_keys(void **state)
{
    (void)state;
    static const char *const texts[] = { "",
                                         "0",
                                         "03",
                                         "-1",
                                         "3/",
                                         "3/c",
                                         "3//1",
                                         "3/c/",
                                         "3/c/0",
                                         "3/c/01",
                                         "3/c/1/",
                                         "3 ",
                                         "x",
                                         "9223372036854775808",
                                         "3/cabcdefghijklmnopqrstuvwxyzabcdefgh/1" };
    struct hf_effect_name name;
    for (size_t i = 0; i < COUNT(texts); i++)
        if (hf_effect_key_read(texts[i], &name))
            fail_msg("\"%s\" is read as a key", texts[i]);
}

static void words_are_read_back(void **state)
{
    (void)state;
    enum hf_entry_status status = HF_ENTRY_STARTED;
    enum hf_recovery recovery = HF_RECOVERY_NONE;
    assert_true(hf_entry_status_read("unknown", &status));
    assert_int_equal(status, HF_ENTRY_UNKNOWN);
    assert_false(hf_entry_status_read("lost", &status));
    assert_true(hf_recovery_read("probe", &recovery));
    assert_int_equal(recovery, HF_RECOVERY_PROBE);
    assert_false(hf_recovery_read("", &recovery));
    assert_string_equal(hf_scope_name(HF_SCOPE_OPERATION), "operation");
    assert_string_equal(hf_entry_status_name(HF_ENTRY_STATUS_COUNT), "?");
    assert_string_equal(hf_recover_act_name(HF_RECOVER_PROBE), "probe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_has_one_meaning),
        cmocka_unit_test(a_takeover_obeys_the_declared_class),
        cmocka_unit_test(a_mismatch_names_the_path),
        cmocka_unit_test(keys_say_effect_call_and_attempt),
        cmocka_unit_test(other_texts_are_no_keys),
        cmocka_unit_test(words_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
