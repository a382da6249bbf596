/* Input checks: every bad field gets its name and its code, and limits hold at the limit. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "core/ledger/lifecycle.h"
#include "support/rig.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* n times the letter k. */
static const char *key_of(size_t n)
{
    static char text[400];
    assert_true(n < sizeof(text));
    memset(text, 'k', n);
    text[n] = 0;
    return text;
}

static void assert_new(const struct hf_work_spec *request, int code, const char *field)
{
    struct hf_err err = { 0 };
    int rc = hf_work_spec_check(request, &err);
    if (rc != code)
        fail_msg("%s: %d, wanted %d (%s)", field ? field : "request", rc, code,
                 err.message);
    if (field)
        assert_string_equal(err.field, field);
}

static void the_least_request_is_accepted(void **state)
{
    (void)state;
    struct hf_work_spec request = rig_new();
    assert_new(&request, 0, NULL);
}

static void bad_requests_name_the_field(void **state)
{
    (void)state;
#define BAD(member, value, code)                                                         \
    do {                                                                                 \
        struct hf_work_spec request = rig_new();                                         \
        request.member = value;                                                          \
        assert_new(&request, code, #member);                                             \
    } while (0)
    BAD(size, 8, HF_EINVAL);
    BAD(source, HF_SOURCE_NONE, HF_EINVAL);
    BAD(source, (enum hf_source)99, HF_EINVAL);
    BAD(source_id, NULL, HF_EINVAL);
    BAD(source_id, "", HF_EINVAL);
    BAD(source_id, "a\nb", HF_EINVAL);
    BAD(source_id, "\xc0\x80", HF_EINVAL);
    BAD(source_run_id, "", HF_EINVAL);
    BAD(kind, "hf.turn", HF_EINVAL);
    BAD(kind, "", HF_EINVAL);
    BAD(queue, "", HF_EINVAL);
    BAD(lane_key, "", HF_EINVAL);
    BAD(dedup_key, "\x01", HF_EINVAL);
    BAD(idempotency_key, "", HF_EINVAL);
    BAD(ref, "", HF_EINVAL);
    BAD(parent_work_id, "", HF_EINVAL);
    BAD(payload_ref, "", HF_EINVAL);
    BAD(payload, "{", HF_EINVAL);
    BAD(payload, "", HF_EINVAL);
    BAD(payload, "\"\xff\"", HF_EINVAL);
    BAD(disposition, HF_DISPOSITION_COUNT, HF_EINVAL);
    BAD(priority, 10, HF_EINVAL);
    BAD(priority, -2, HF_EINVAL);
    BAD(max_attempts, -1, HF_EINVAL);
    BAD(max_attempts, 1000001, HF_EINVAL);
    BAD(retry_policy, "[]", HF_EINVAL);
    BAD(delay_ms, -1, HF_EINVAL);
    BAD(delay_ms, INT64_MAX, HF_EINVAL);
    BAD(due_at, -1, HF_EINVAL);
    BAD(due_at, INT64_MAX, HF_EINVAL);
    BAD(start_timeout_ms, -1, HF_EINVAL);
    BAD(exec_timeout_ms, 3155760000001, HF_EINVAL);
    BAD(close_rule, "trust", HF_EINVAL);
#undef BAD
}

static void what_excludes_each_other_is_refused(void **state)
{
    (void)state;
    struct hf_work_spec request = rig_new();
    request.payload = "1";
    request.payload_ref = "blob:1";
    assert_new(&request, HF_EINVAL, "payload_ref");
    request = rig_new();
    request.due_at = 5;
    request.delay_ms = 5;
    assert_new(&request, HF_EINVAL, "due_at");
    request = rig_new();
    request.detached = true;
    request.delay_ms = 5;
    assert_new(&request, HF_EINVAL, "detached");
}

static void scheduler_work_needs_a_run_id(void **state)
{
    (void)state;
    struct hf_work_spec request = rig_new();
    request.source = HF_SOURCE_SCHEDULER;
    assert_new(&request, HF_EINVAL, "source_run_id");
    request.source_run_id = "2026-01-01T00:00Z";
    assert_new(&request, 0, NULL);
}

static void keys_hold_at_the_limit(void **state)
{
    (void)state;
    struct hf_work_spec request = rig_new();
    request.lane_key = key_of(191);
    assert_new(&request, 0, NULL);
    request.lane_key = key_of(192);
    assert_new(&request, HF_ETOOBIG, "lane_key");
    request = rig_new();
    request.kind = "hfx"; /* only the dot makes it reserved */
    assert_new(&request, 0, NULL);
}

static void numbers_hold_at_the_limit(void **state)
{
    (void)state;
    struct hf_work_spec request = rig_new();
    request.priority = 9;
    request.max_attempts = 1000000;
    request.delay_ms = 3155760000000;
    request.start_timeout_ms = 3155760000000;
    request.retry_policy = "{\"max_attempts\":1000000}";
    assert_new(&request, 0, NULL);
    request.delay_ms = 0;
    request.due_at = 253402300799999;
    assert_new(&request, 0, NULL);
    request.due_at++;
    assert_new(&request, HF_EINVAL, "due_at");
}

static void payloads_hold_at_the_limit(void **state)
{
    (void)state;
    size_t max = (size_t)HF_MAX_PAYLOAD_BYTES;
    char *text = test_malloc(max + 2);
    memset(text, 'a', max);
    text[0] = '"';
    text[max - 1] = '"';
    text[max] = 0;
    struct hf_work_spec request = rig_new();
    request.payload = text;
    assert_new(&request, 0, NULL);
    text[max - 1] = 'a';
    text[max] = '"';
    text[max + 1] = 0;
    assert_new(&request, HF_ETOOBIG, "payload");
    test_free(text);
}

static void assert_claim(const struct hf_claim *claim, int code, const char *field)
{
    struct hf_err err = { 0 };
    assert_int_equal(hf_claim_check(claim, &err), code);
    if (field)
        assert_string_equal(err.field, field);
}

static void bad_claims_name_the_field(void **state)
{
    (void)state;
    const char *kinds[33];
    for (size_t i = 0; i < COUNT(kinds); i++)
        kinds[i] = "k";
    const struct hf_claim good = { .size = sizeof(good), .owner = "ann" };
    assert_claim(&good, 0, NULL);
    struct hf_claim most = good;
    most.kinds = kinds;
    most.kind_count = 32;
    most.limit = 1000;
    most.ttl_ms = 750;
    most.wait_ms = 30000;
    assert_claim(&most, 0, NULL);
#define BAD(member, value, code, field)                                                  \
    do {                                                                                 \
        struct hf_claim claim = most;                                                    \
        claim.member = value;                                                            \
        assert_claim(&claim, code, field);                                               \
    } while (0)
    BAD(size, 0, HF_EINVAL, "size");
    BAD(owner, NULL, HF_EINVAL, "owner");
    BAD(owner, "", HF_EINVAL, "owner");
    BAD(incarnation, "", HF_EINVAL, "incarnation");
    BAD(nonce, key_of(192), HF_ETOOBIG, "nonce");
    BAD(id, "", HF_EINVAL, "id");
    BAD(queue, "", HF_EINVAL, "queue");
    BAD(pid, -1, HF_EINVAL, "pid");
    BAD(kind_count, 33, HF_ETOOBIG, "kinds");
    BAD(limit, 1001, HF_ETOOBIG, "limit");
    BAD(ttl_ms, 749, HF_EINVAL, "ttl_ms");
    BAD(ttl_ms, -1, HF_EINVAL, "ttl_ms");
    BAD(wait_ms, -1, HF_EINVAL, "wait_ms");
#undef BAD
    kinds[3] = NULL;
    assert_claim(&most, HF_EINVAL, "kinds");
}

static void callers_are_checked(void **state)
{
    (void)state;
    struct hf_err err = { 0 };
    assert_int_equal(hf_caller_check(NULL, &err), 0);
    struct hf_caller who = { .size = sizeof(who), .tenant = "" };
    assert_int_equal(hf_caller_check(&who, &err), 0);
    who.actor_kind = "webhook";
    who.actor = "github";
    who.operation_id = "op-1";
    assert_int_equal(hf_caller_check(&who, &err), 0);
    who.actor_kind = "robot";
    assert_int_equal(hf_caller_check(&who, &err), HF_EINVAL);
    assert_string_equal(err.field, "actor_kind");
    who.actor_kind = "human";
    who.operation_id = "";
    assert_int_equal(hf_caller_check(&who, &err), HF_EINVAL);
    assert_string_equal(err.field, "operation_id");
    who.operation_id = NULL;
    who.tenant = "\t";
    assert_int_equal(hf_caller_check(&who, &err), HF_EINVAL);
    assert_string_equal(err.field, "tenant");
}

/* ---- changes ----------------------------------------------------------------------- */

static void assert_change(const struct hf_change *change, int code, const char *field)
{
    struct hf_err err = { 0 };
    int rc = hf_change_check(change, &err);
    if (rc != code)
        fail_msg("%s: %d, wanted %d (%s)", hf_verb_word(change->verb), rc, code,
                 err.message);
    if (field)
        assert_string_equal(err.field, field);
}

static void holders_verbs_need_a_token(void **state)
{
    (void)state;
    static const enum hf_verb verbs[] = { HF_VERB_RENEW,     HF_VERB_TOUCH,
                                          HF_VERB_APPEND,    HF_VERB_WAIT,
                                          HF_VERB_CLOSE_OUT, HF_VERB_FAIL,
                                          HF_VERB_HAND_BACK, HF_VERB_ABANDON };
    for (size_t i = 0; i < COUNT(verbs); i++) {
        struct hf_change change = rig_change(verbs[i]);
        change.status = HF_STATUS_DONE;
        assert_change(&change, HF_EINVAL, "token");
        change.token = "secret";
        assert_change(&change, HF_EINVAL, "token");
    }
}

static void operators_verbs_need_a_reason(void **state)
{
    (void)state;
    static const enum hf_verb verbs[] = { HF_VERB_CANCEL, HF_VERB_REQUEUE,
                                          HF_VERB_REQUEST_ABANDON };
    for (size_t i = 0; i < COUNT(verbs); i++) {
        struct hf_change change = rig_change(verbs[i]);
        assert_change(&change, HF_EINVAL, "reason");
        change.reason = "";
        assert_change(&change, HF_EINVAL, "reason");
        change.reason = "because";
        assert_change(&change, 0, NULL);
    }
}

static void every_change_names_a_row_and_a_known_verb(void **state)
{
    (void)state;
    struct hf_change change = rig_held(HF_VERB_TOUCH);
    assert_change(&change, 0, NULL);
    change.id = NULL;
    assert_change(&change, HF_EINVAL, "id");
    change = rig_held(HF_VERB_TOUCH);
    change.size = 0;
    assert_change(&change, HF_EINVAL, "size");
    change = rig_held(HF_VERB_NONE);
    struct hf_err err = { 0 };
    assert_int_equal(hf_change_check(&change, &err), HF_EINVAL);
    assert_string_equal(err.field, "verb");
    change = rig_held(HF_VERB_HAND_BACK);
    char *reason = test_malloc(1026);
    memset(reason, 'r', 1025);
    reason[1024] = 0;
    change.reason = reason;
    assert_change(&change, 0, NULL);
    reason[1024] = 'r';
    reason[1025] = 0;
    assert_change(&change, HF_ETOOBIG, "reason");
    test_free(reason);
}

static void append_event_cannot_forge_a_transition(void **state)
{
    (void)state;
    static const char *const reserved[] = {
        "work_created",
        "claimed",
        "lease_acquired",
        "lease_renewed",
        "lease_released",
        "lease_anything",
        "transition",
        "waiting_set",
        "resumed",
        "retry_scheduled",
        "retry_promoted",
        "timeout_marked",
        "close_out",
        "requeued",
        "cancel_requested",
        "wait_overdue",
        "abandon_requested",
        "late_result",
        "transition_rejected",
        "escalated",
        "rescheduled",
        "released",
        "pruned",
        "hf.x",
        "hf.",
    };
    struct hf_change change = rig_held(HF_VERB_APPEND);
    for (size_t i = 0; i < hf_edge_count; i++) {
        const struct hf_edge *edge = &hf_edges[i];
        change.type = hf_edge_event(edge->from, edge->to, edge->verb);
        assert_change(&change, HF_EINVAL, "type");
    }
    for (size_t i = 0; i < COUNT(reserved); i++) {
        change.type = reserved[i];
        assert_change(&change, HF_EINVAL, "type");
    }
    change.type = NULL;
    assert_change(&change, HF_EINVAL, "type");
    change.type = "progress";
    change.payload = "{\"done\":3}";
    assert_change(&change, 0, NULL);
    change.payload = "{done:3}";
    assert_change(&change, HF_EINVAL, "payload");
}

static void event_payloads_hold_at_the_limit(void **state)
{
    (void)state;
    struct hf_change change = rig_held(HF_VERB_APPEND);
    change.type = "progress";
    char *text = test_malloc(65536 + 2);
    memset(text, 'a', 65538);
    text[0] = '"';
    text[65535] = '"';
    text[65536] = 0;
    change.payload = text;
    assert_change(&change, 0, NULL);
    text[65535] = 'a';
    text[65536] = '"';
    text[65537] = 0;
    assert_change(&change, HF_ETOOBIG, "payload");
    test_free(text);
}

static struct hf_change good_wait(void)
{
    struct hf_change change = rig_held(HF_VERB_WAIT);
    change.status = HF_STATUS_WAITING_USER;
    change.ref = "ask-1";
    return change;
}

static void a_wait_needs_a_reference_and_sane_times(void **state)
{
    (void)state;
    struct hf_change change = good_wait();
    assert_change(&change, 0, NULL);
    change.escalate_after_ms = 1000;
    change.escalate = "work:page-a-person";
    change.timeout_ms = 2000;
    assert_change(&change, 0, NULL);
#define BAD(member, value, field)                                                        \
    do {                                                                                 \
        struct hf_change bad = change;                                                   \
        bad.member = value;                                                              \
        assert_change(&bad, HF_EINVAL, field);                                           \
    } while (0)
    BAD(ref, NULL, "ref");
    BAD(ref, "", "ref");
    BAD(status, HF_STATUS_DONE, "status");
    BAD(status, HF_STATUS_NONE, "status");
    BAD(timeout_ms, -1, "timeout_ms");
    BAD(timeout_ms, INT64_MAX, "timeout_ms");
    BAD(escalate_after_ms, -1, "escalate_after_ms");
    BAD(escalate_after_ms, 0, "escalate_after_ms"); /* escalate without a time */
    BAD(escalate, "mail", "escalate");
    BAD(escalate, "work:", "escalate");
    BAD(escalate, "work:hf.turn", "escalate");
    BAD(summary, "all done", "status"); /* one change cannot both wait and close */
#undef BAD
}

static struct hf_change good_close(void)
{
    struct hf_change change = rig_held(HF_VERB_CLOSE_OUT);
    change.status = HF_STATUS_DONE;
    return change;
}

static void a_close_out_has_a_terminal_status_and_one_proof_of_right(void **state)
{
    (void)state;
    struct hf_change change = good_close();
    assert_change(&change, 0, NULL);
#define BAD(member, value, field)                                                        \
    do {                                                                                 \
        struct hf_change bad = good_close();                                             \
        bad.member = value;                                                              \
        assert_change(&bad, HF_EINVAL, field);                                           \
    } while (0)
    BAD(status, HF_STATUS_RUNNING, "status");
    BAD(status, HF_STATUS_WAITING_USER, "status");
    BAD(status, (enum hf_status)99, "status");
    BAD(authority, "github", "authority"); /* next to the token */
    BAD(token, NULL, "token");
    BAD(error_class, "validation", "error_class"); /* done has none */
    BAD(ref, "ask-1", "status");
    BAD(timeout_ms, 5, "status");
    BAD(reviewer, "", "reviewer");
#undef BAD
    change.status = HF_STATUS_FAILED;
    change.error_class = "validation";
    assert_change(&change, 0, NULL);
    change.error_class = "";
    assert_change(&change, HF_EINVAL, "error_class");
    change = good_close();
    change.token = NULL;
    change.authority = "github";
    assert_change(&change, 0, NULL);
    change.authority = "";
    assert_change(&change, HF_EINVAL, "authority");
}

static void references_are_hashes_or_names(void **state)
{
    (void)state;
    const char *refs[65];
    for (size_t i = 0; i < COUNT(refs); i++)
        refs[i] = "file:/tmp/report.pdf";
    struct hf_change change = good_close();
    change.evidence = refs;
    change.evidence_count = 64;
    refs[0] = "sha256:" HEX64;
    refs[1] = "https://example.org/1";
    assert_change(&change, 0, NULL);
    change.evidence_count = 65;
    assert_change(&change, HF_ETOOBIG, "evidence");
    static const char *const bad[] = { "sha256:",
                                       "sha256:12",
                                       "sha256:" HEX64 "0",
                                       "sha256:X"
                                       "123456789abcdef0123456789abcdef"
                                       "0123456789abcdef0123456789abcdef",
                                       "",
                                       "a\nb" };
    change.evidence_count = 1;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf_err err = { 0 };
        refs[0] = bad[i];
        assert_change(&change, HF_EINVAL, "evidence");
        assert_int_equal(hf_change_check(&change, &err), HF_EINVAL);
        assert_non_null(strstr(err.message, "evidence")); /* for people too */
    }
    change = good_close();
    change.outputs = refs;
    change.output_count = 1;
    assert_change(&change, HF_EINVAL, "outputs");
}

static void a_resume_names_a_row_or_a_reference(void **state)
{
    (void)state;
    struct hf_change change = rig_change(HF_VERB_RESUME);
    assert_change(&change, 0, NULL);
    change.ref = "ask-1";
    assert_change(&change, HF_EINVAL, "ref"); /* both */
    change.id = NULL;
    assert_change(&change, 0, NULL);
    change.status = HF_STATUS_WAITING_USER;
    assert_change(&change, 0, NULL);
    change.status = HF_STATUS_RUNNING;
    assert_change(&change, HF_EINVAL, "status");
    change = rig_change(HF_VERB_RESUME);
    change.status = HF_STATUS_WAITING_USER; /* nothing to narrow */
    assert_change(&change, HF_EINVAL, "status");
    change.status = HF_STATUS_NONE;
    change.id = NULL;
    assert_change(&change, HF_EINVAL, "id");
    change = rig_change(HF_VERB_RESUME);
    change.payload = "{\"answer\":";
    assert_change(&change, HF_EINVAL, "payload");
    change.payload = NULL;
    change.ttl_ms = 750; /* a lease without a holder */
    assert_change(&change, HF_EINVAL, "owner");
    change.owner = "bob";
    assert_change(&change, 0, NULL);
    change.incarnation = "";
    assert_change(&change, HF_EINVAL, "incarnation");
    change.incarnation = NULL;
    change.nonce = "";
    assert_change(&change, HF_EINVAL, "nonce");
    change.nonce = NULL;
    change.owner = "";
    assert_change(&change, HF_EINVAL, "owner");
    change.owner = "bob";
    change.ttl_ms = 749;
    assert_change(&change, HF_EINVAL, "ttl_ms");
    change.ttl_ms = 0;
    change.pid = -1;
    assert_change(&change, HF_EINVAL, "pid");
}

static void a_failure_needs_its_class(void **state)
{
    (void)state;
    struct hf_change change = rig_held(HF_VERB_FAIL);
    assert_change(&change, HF_EINVAL, "error_class");
    change.error_class = "rate_limit";
    assert_change(&change, 0, NULL);
}

/* ---- the hash of a request --------------------------------------------------------- */

static void assert_hash(const struct hf_work_spec *request, const struct hf_caller *who,
                        const uint8_t *like, bool same)
{
    uint8_t hash[32];
    struct hf_err err;
    assert_int_equal(hf_work_spec_hash(request, who, hash, &err), 0);
    assert_int_equal(memcmp(hash, like, sizeof(hash)) == 0, same);
}

static void the_hash_is_of_the_request_as_typed(void **state)
{
    (void)state;
    const struct hf_caller ann = { .size = sizeof(ann),
                                   .actor_kind = "human",
                                   .actor = "ann" };
    const struct hf_caller bob = {
        .size = sizeof(bob), .actor_kind = "human", .actor = "bob", .tenant = ""
    };
    const struct hf_caller other = { .size = sizeof(other), .tenant = "t2" };
    const struct hf_work_spec request = rig_new();
    uint8_t first[32];
    struct hf_err err;
    assert_int_equal(hf_work_spec_hash(&request, NULL, first, &err), 0);
    assert_hash(&request, &ann, first, true); /* who asks is not what is asked */
    assert_hash(&request, &bob, first, true);
    assert_hash(&request, &other, first, false);
#define DIFFERS(member, value)                                                           \
    do {                                                                                 \
        struct hf_work_spec changed = request;                                           \
        changed.member = value;                                                          \
        assert_hash(&changed, NULL, first, false);                                       \
    } while (0)
    DIFFERS(source, HF_SOURCE_CONTROL);
    DIFFERS(source_id, "src-2");
    DIFFERS(source_run_id, "r");
    DIFFERS(kind, "work"); /* the default, but typed */
    DIFFERS(queue, "default");
    DIFFERS(lane_key, "l");
    DIFFERS(dedup_key, "d");
    DIFFERS(idempotency_key, "k");
    DIFFERS(ref, "r");
    DIFFERS(parent_work_id, "p");
    DIFFERS(payload, "null");
    DIFFERS(payload_ref, "b");
    DIFFERS(disposition, HF_DISPOSITION_EXPIRE);
    DIFFERS(priority, 3);
    DIFFERS(max_attempts, 3);
    DIFFERS(retry_policy, "{}");
    DIFFERS(delay_ms, 1);
    DIFFERS(due_at, 1);
    DIFFERS(start_timeout_ms, 1);
    DIFFERS(exec_timeout_ms, 1);
    DIFFERS(close_rule, "evidence");
    DIFFERS(detached, true);
#undef DIFFERS
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_request_is_accepted),
        cmocka_unit_test(bad_requests_name_the_field),
        cmocka_unit_test(what_excludes_each_other_is_refused),
        cmocka_unit_test(scheduler_work_needs_a_run_id),
        cmocka_unit_test(keys_hold_at_the_limit),
        cmocka_unit_test(numbers_hold_at_the_limit),
        cmocka_unit_test(payloads_hold_at_the_limit),
        cmocka_unit_test(bad_claims_name_the_field),
        cmocka_unit_test(callers_are_checked),
        cmocka_unit_test(holders_verbs_need_a_token),
        cmocka_unit_test(operators_verbs_need_a_reason),
        cmocka_unit_test(every_change_names_a_row_and_a_known_verb),
        cmocka_unit_test(append_event_cannot_forge_a_transition),
        cmocka_unit_test(event_payloads_hold_at_the_limit),
        cmocka_unit_test(a_wait_needs_a_reference_and_sane_times),
        cmocka_unit_test(a_close_out_has_a_terminal_status_and_one_proof_of_right),
        cmocka_unit_test(references_are_hashes_or_names),
        cmocka_unit_test(a_resume_names_a_row_or_a_reference),
        cmocka_unit_test(a_failure_needs_its_class),
        cmocka_unit_test(the_hash_is_of_the_request_as_typed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
