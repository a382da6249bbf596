/* The table of edges against the matrix as DESIGN draws it, written out by hand. */
#include "support/unit.h"

#include <string.h>

#include "base/text.h"
#include "core/ledger/lifecycle.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Rows: (new), queued, running, waiting_user, waiting_external, retry_scheduled, done,
 * failed, timeout, cancelled, abandoned. Columns: the ten statuses in the same order. */
static const char *const matrix[HF_STATUS_COUNT] = {
    "+..+.+....", /* (new)            */
    ".+.....++.", /* queued           */
    "+.++++++++", /* running          */
    "++...+++++", /* waiting_user     */
    "++...+++++", /* waiting_external */
    "+.......+.", /* retry_scheduled  */
    "+.........", /* done             */
    "+.........", /* failed           */
    "+.........", /* timeout          */
    "+.........", /* cancelled        */
    "+.........", /* abandoned        */
};

static void the_edge_matrix_is_exactly_the_design(void **state)
{
    (void)state;
    for (int from = 0; from < HF_STATUS_COUNT; from++) {
        for (int to = 1; to < HF_STATUS_COUNT; to++) {
            bool wanted = matrix[from][to - 1] == '+';
            bool legal = hf_edge_legal((enum hf_status)from, (enum hf_status)to, NULL);
            if (legal != wanted)
                fail_msg("%d -> %d: legal is %d", from, to, legal);
        }
        assert_false(hf_edge_legal((enum hf_status)from, HF_STATUS_NONE, NULL));
    }
}

struct verb_edge {
    const char *verb;
    const char *edges; /* "from>to ..." */
};

/* What each verb may do, and nothing more. */
static const struct verb_edge verb_edges[] = {
    { "create", "->queued ->waiting_external ->done" },
    { "claim", "queued->running" },
    { "wait", "running->waiting_user running->waiting_external" },
    { "close_out", "running->done running->failed running->timeout running->cancelled" },
    { "complete", "waiting_external->done waiting_external->failed "
                  "waiting_external->cancelled waiting_user->done waiting_user->failed" },
    { "fail", "running->retry_scheduled running->failed" },
    { "reschedule", "retry_scheduled->queued" },
    { "hand_back", "running->queued" },
    { "cancel", "queued->cancelled running->cancelled waiting_user->cancelled "
                "waiting_external->cancelled retry_scheduled->cancelled" },
    { "resume", "waiting_user->queued waiting_user->running waiting_external->queued "
                "waiting_external->running" },
    { "requeue", "done->queued failed->queued timeout->queued cancelled->queued "
                 "abandoned->queued" },
    { "drain", "running->abandoned waiting_user->abandoned waiting_external->abandoned" },
    { "reconcile", "running->abandoned waiting_user->abandoned "
                   "waiting_external->abandoned" },
    { "sweep", "queued->timeout running->queued running->failed running->timeout "
               "running->retry_scheduled running->abandoned waiting_user->timeout "
               "waiting_external->timeout waiting_user->abandoned "
               "waiting_external->abandoned retry_scheduled->queued" },
};

/* Is "from->to" one of the words of `edges`? */
static bool names_edge(const char *edges, enum hf_status from, enum hf_status to)
{
    const char *from_word = hf_status_word(from) ? hf_status_word(from) : "";
    const char *to_word = hf_status_word(to);
    size_t from_len = strlen(from_word), to_len = strlen(to_word);
    const char *at = edges;
    while (*at) {
        size_t len = strcspn(at, " ");
        if (len == from_len + 2 + to_len && memcmp(at, from_word, from_len) == 0 &&
            memcmp(at + from_len, "->", 2) == 0 &&
            memcmp(at + from_len + 2, to_word, to_len) == 0)
            return true;
        at += len + strspn(at + len, " ");
    }
    return false;
}

static void every_verb_has_exactly_its_edges(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT(verb_edges); v++) {
        for (int from = 0; from < HF_STATUS_COUNT; from++) {
            for (int to = 1; to < HF_STATUS_COUNT; to++) {
                bool wanted = names_edge(verb_edges[v].edges, (enum hf_status)from,
                                         (enum hf_status)to);
                if (hf_edge_legal((enum hf_status)from, (enum hf_status)to,
                                  verb_edges[v].verb) != wanted)
                    fail_msg("%s: %d -> %d", verb_edges[v].verb, from, to);
            }
        }
    }
}

static void no_edge_has_a_verb_of_its_own_making(void **state)
{
    (void)state;
    assert_int_equal(hf_edge_count, 50);
    for (size_t i = 0; i < hf_edge_count; i++) {
        size_t known = 0;
        for (size_t v = 0; v < COUNT(verb_edges); v++)
            known += hf_same(verb_edges[v].verb, hf_edges[i].verb);
        assert_int_equal(known, 1);
    }
    assert_false(hf_edge_legal(HF_STATUS_QUEUED, HF_STATUS_RUNNING, "finish"));
}

static void only_a_requeue_leaves_a_terminal_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_edge_count; i++) {
        if (hf_status_terminal(hf_edges[i].from))
            assert_string_equal(hf_edges[i].verb, "requeue");
    }
    assert_false(hf_edge_legal(HF_STATUS_DONE, HF_STATUS_RUNNING, NULL));
    assert_false(hf_edge_legal(HF_STATUS_FAILED, HF_STATUS_WAITING_USER, NULL));
    assert_false(hf_edge_legal(HF_STATUS_TIMEOUT, HF_STATUS_DONE, NULL));
}

struct event_case {
    enum hf_status from, to;
    const char *verb, *type;
};

static void exactly_one_event_type_carries_a_transition(void **state)
{
    (void)state;
    static const struct event_case cases[] = {
        { HF_STATUS_NONE, HF_STATUS_QUEUED, "create", "work_created" },
        { HF_STATUS_NONE, HF_STATUS_DONE, "create", "work_created" },
        { HF_STATUS_QUEUED, HF_STATUS_RUNNING, "claim", "claimed" },
        { HF_STATUS_RUNNING, HF_STATUS_WAITING_USER, "wait", "waiting_set" },
        { HF_STATUS_WAITING_USER, HF_STATUS_QUEUED, "resume", "resumed" },
        { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_RUNNING, "resume", "resumed" },
        { HF_STATUS_RUNNING, HF_STATUS_DONE, "close_out", "close_out" },
        { HF_STATUS_RUNNING, HF_STATUS_TIMEOUT, "close_out", "close_out" },
        { HF_STATUS_WAITING_EXTERNAL, HF_STATUS_DONE, "complete", "close_out" },
        { HF_STATUS_RUNNING, HF_STATUS_RETRY_SCHEDULED, "fail", "retry_scheduled" },
        { HF_STATUS_RUNNING, HF_STATUS_RETRY_SCHEDULED, "sweep", "retry_scheduled" },
        { HF_STATUS_RUNNING, HF_STATUS_FAILED, "fail", "transition" },
        { HF_STATUS_RETRY_SCHEDULED, HF_STATUS_QUEUED, "sweep", "retry_promoted" },
        { HF_STATUS_RUNNING, HF_STATUS_TIMEOUT, "sweep", "timeout_marked" },
        { HF_STATUS_QUEUED, HF_STATUS_TIMEOUT, "sweep", "timeout_marked" },
        { HF_STATUS_DONE, HF_STATUS_QUEUED, "requeue", "requeued" },
        { HF_STATUS_RUNNING, HF_STATUS_QUEUED, "hand_back", "transition" },
        { HF_STATUS_RUNNING, HF_STATUS_QUEUED, "sweep", "transition" },
        { HF_STATUS_QUEUED, HF_STATUS_CANCELLED, "cancel", "transition" },
        { HF_STATUS_RUNNING, HF_STATUS_ABANDONED, "drain", "transition" },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(hf_edge_event(cases[i].from, cases[i].to, cases[i].verb),
                            cases[i].type);
}

static void words_go_both_ways(void **state)
{
    (void)state;
    assert_string_equal(hf_status_word(HF_STATUS_WAITING_EXTERNAL), "waiting_external");
    assert_int_equal(hf_status_of("waiting_external"), HF_STATUS_WAITING_EXTERNAL);
    for (int i = 1; i < HF_STATUS_COUNT; i++)
        assert_int_equal(hf_status_of(hf_status_word((enum hf_status)i)), i);
    for (int i = 1; i < HF_SOURCE_COUNT; i++)
        assert_int_equal(hf_source_of(hf_source_word((enum hf_source)i)), i);
    for (int i = 1; i < HF_DISPOSITION_COUNT; i++)
        assert_int_equal(hf_disposition_of(hf_disposition_word((enum hf_disposition)i)),
                         i);
    for (int i = 1; i < HF_VERB_COUNT; i++)
        assert_non_null(hf_verb_word((enum hf_verb)i));
}

static void unknown_words_and_values_are_none(void **state)
{
    (void)state;
    assert_null(hf_status_word(HF_STATUS_NONE));
    assert_null(hf_status_word(HF_STATUS_COUNT));
    assert_null(hf_status_word((enum hf_status)99));
    assert_null(hf_source_word(HF_SOURCE_NONE));
    assert_null(hf_disposition_word(HF_DISPOSITION_NONE));
    assert_null(hf_verb_word(HF_VERB_NONE));
    assert_null(hf_verb_word(HF_VERB_COUNT));
    assert_int_equal(hf_status_of(NULL), HF_STATUS_NONE);
    assert_int_equal(hf_status_of(""), HF_STATUS_NONE);
    assert_int_equal(hf_status_of("Queued"), HF_STATUS_NONE);
    assert_int_equal(hf_source_of("cron"), HF_SOURCE_NONE);
    assert_int_equal(hf_disposition_of("none"), HF_DISPOSITION_NONE);
}

static void five_statuses_are_terminal(void **state)
{
    (void)state;
    static const enum hf_status terminal[] = { HF_STATUS_DONE, HF_STATUS_FAILED,
                                               HF_STATUS_TIMEOUT, HF_STATUS_CANCELLED,
                                               HF_STATUS_ABANDONED };
    static const enum hf_status open[] = {
        HF_STATUS_NONE,         HF_STATUS_QUEUED,           HF_STATUS_RUNNING,
        HF_STATUS_WAITING_USER, HF_STATUS_WAITING_EXTERNAL, HF_STATUS_RETRY_SCHEDULED,
        HF_STATUS_COUNT
    };
    for (size_t i = 0; i < COUNT(terminal); i++)
        assert_true(hf_status_terminal(terminal[i]));
    for (size_t i = 0; i < COUNT(open); i++)
        assert_false(hf_status_terminal(open[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_edge_matrix_is_exactly_the_design),
        cmocka_unit_test(every_verb_has_exactly_its_edges),
        cmocka_unit_test(no_edge_has_a_verb_of_its_own_making),
        cmocka_unit_test(only_a_requeue_leaves_a_terminal_status),
        cmocka_unit_test(exactly_one_event_type_carries_a_transition),
        cmocka_unit_test(words_go_both_ways),
        cmocka_unit_test(unknown_words_and_values_are_none),
        cmocka_unit_test(five_statuses_are_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
