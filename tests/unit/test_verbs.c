/* Every verb on every status of every disposition: what comes of it, written by hand. */
#include "support/unit.h"

#include <string.h>

#include "base/text.h"
#include "core/ledger/lifecycle.h"
#include "support/rig.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One letter an outcome. Written, into:
 *   Q queued  R running  U waiting_user  E waiting_external  S retry_scheduled
 *   D done  F failed  T timeout  C cancelled  A abandoned
 * .  written, no transition     =  repeated, nothing written
 * !  illegal transition (4)     x  lease lost (5)      h  held (6)
 * -  no such row exists
 * Columns: queued, running, waiting_user, waiting_external, retry_scheduled | done,
 * failed, timeout, cancelled, abandoned. */
struct expectation {
    const char *what;
    enum hf_verb verb;
    bool token;
    enum hf_status status;
    const char *with; /* error class, owner, or authority, by verb */
    const char *outcome;
};

#define NONE HF_STATUS_NONE
#define HELD(verb, status, with, outcome)                                                \
    {                                                                                    \
#        verb " (token)", HF_VERB_##verb, true, status, with, outcome                    \
    }
#define OPEN(verb, status, with, outcome)                                                \
    {                                                                                    \
#        verb, HF_VERB_##verb, false, status, with, outcome                              \
    }

/* clang-format off */
static const struct expectation free_rows[] = { /* expire and rerunnable */
    HELD(RENEW,           NONE,                NULL,                "x.xxxxxxxx"),
    HELD(TOUCH,           NONE,                NULL,                "x.xxxxxxxx"),
    HELD(APPEND,          NONE,                NULL,                "x.xxxxxxxx"),
    HELD(WAIT,            HF_STATUS_WAITING_USER,     NULL,                "xUxxxxxxxx"),
    HELD(WAIT,            HF_STATUS_WAITING_EXTERNAL, NULL,                "xExxxxxxxx"),
    OPEN(RESUME,          NONE,                NULL,                "!!QQ!!!!!!"),
    OPEN(RESUME,          NONE,                "ann",               "!!RR!!!!!!"),
    OPEN(RESUME,          NONE,                "bob",               "!!RR!!!!!!"),
    HELD(CLOSE_OUT,       HF_STATUS_DONE,             NULL,                "xDxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_FAILED,           NULL,                "xFxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_TIMEOUT,          NULL,                "xTxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_CANCELLED,        NULL,                "xCxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_ABANDONED,        NULL,                "x!xxxxxxxx"),
    OPEN(CLOSE_OUT,       HF_STATUS_DONE,             "gh",                "!!!!!!!!!!"),
    OPEN(CLOSE_OUT,       HF_STATUS_CANCELLED,        "gh",                "!!!!!!!!!!"),
    HELD(FAIL,            NONE,                "transient_network", "xSxxxxxxxx"),
    HELD(FAIL,            NONE,                "unheard_of",        "xSxxxxxxxx"),
    HELD(FAIL,            NONE,                "validation",        "xFxxxxxxxx"),
    HELD(HAND_BACK,       NONE,                NULL,                "xQxxxxxxxx"),
    OPEN(CANCEL,          NONE,                NULL,                "CCCCC!!!!!"),
    HELD(CANCEL,          NONE,                NULL,                "xCxxxxxxxx"),
    OPEN(REQUEUE,         NONE,                NULL,                "!!!!!QQQQQ"),
    OPEN(REQUEST_ABANDON, NONE,                NULL,                "!!!!!!!!!!"),
    HELD(ABANDON,         NONE,                NULL,                "x!xxxxxxxx"),
};

static const struct expectation bound_rows[] = { /* owner_bound; all but queued and retry started */
    HELD(RENEW,           NONE,                NULL,                "x.xxxxxxxx"),
    HELD(TOUCH,           NONE,                NULL,                "x.xxxxxxxx"),
    HELD(APPEND,          NONE,                NULL,                "x.xxxxxxxx"),
    HELD(WAIT,            HF_STATUS_WAITING_USER,     NULL,                "xUxxxxxxxx"),
    HELD(WAIT,            HF_STATUS_WAITING_EXTERNAL, NULL,                "xExxxxxxxx"),
    OPEN(RESUME,          NONE,                NULL,                "!!!!!!!!!!"),
    OPEN(RESUME,          NONE,                "ann",               "!!RR!!!!!!"),
    OPEN(RESUME,          NONE,                "bob",               "!!!!!!!!!!"),
    HELD(CLOSE_OUT,       HF_STATUS_DONE,             NULL,                "xDxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_FAILED,           NULL,                "xFxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_TIMEOUT,          NULL,                "xTxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_CANCELLED,        NULL,                "xCxxxxxxxx"),
    HELD(CLOSE_OUT,       HF_STATUS_ABANDONED,        NULL,                "x!xxxxxxxx"),
    OPEN(CLOSE_OUT,       HF_STATUS_DONE,             "gh",                "!!!!!!!!!!"),
    HELD(FAIL,            NONE,                "transient_network", "xFxxxxxxxx"),
    HELD(FAIL,            NONE,                "validation",        "xFxxxxxxxx"),
    HELD(HAND_BACK,       NONE,                NULL,                "x!xxxxxxxx"),
    OPEN(CANCEL,          NONE,                NULL,                "C.CCC!!!!!"),
    HELD(CANCEL,          NONE,                NULL,                "xCxxxxxxxx"),
    OPEN(REQUEUE,         NONE,                NULL,                "!!!!!QQQQQ"),
    OPEN(REQUEST_ABANDON, NONE,                NULL,                "!...!!!!!!"),
    HELD(ABANDON,         NONE,                NULL,                "xAxxxxxxxx"),
};

static const struct expectation external_rows[] = { /* externally_owned: waits, then has ended */
    HELD(RENEW,           NONE,                NULL,                "---x-xxxxx"),
    HELD(TOUCH,           NONE,                NULL,                "---x-xxxxx"),
    HELD(APPEND,          NONE,                NULL,                "---x-xxxxx"),
    HELD(WAIT,            HF_STATUS_WAITING_USER,     NULL,                "---x-xxxxx"),
    OPEN(RESUME,          NONE,                NULL,                "---!-!!!!!"),
    OPEN(RESUME,          NONE,                "ann",               "---!-!!!!!"),
    HELD(CLOSE_OUT,       HF_STATUS_DONE,             NULL,                "---x-xxxxx"),
    OPEN(CLOSE_OUT,       HF_STATUS_DONE,             "gh",                "---D-!!!!!"),
    OPEN(CLOSE_OUT,       HF_STATUS_FAILED,           "gh",                "---F-!!!!!"),
    OPEN(CLOSE_OUT,       HF_STATUS_TIMEOUT,          "gh",                "---!-!!!!!"),
    OPEN(CLOSE_OUT,       HF_STATUS_CANCELLED,        "gh",                "---C-!!!!!"),
    OPEN(CLOSE_OUT,       HF_STATUS_ABANDONED,        "gh",                "---!-!!!!!"),
    HELD(FAIL,            NONE,                "transient_network", "---x-xxxxx"),
    HELD(HAND_BACK,       NONE,                NULL,                "---x-xxxxx"),
    OPEN(CANCEL,          NONE,                NULL,                "---C-!!!!!"),
    HELD(CANCEL,          NONE,                NULL,                "---x-xxxxx"),
    OPEN(REQUEUE,         NONE,                NULL,                "---!-!!!!!"),
    OPEN(REQUEST_ABANDON, NONE,                NULL,                "---.-!!!!!"),
    HELD(ABANDON,         NONE,                NULL,                "---x-xxxxx"),
};

static const struct expectation session_rows[] = { /* moved by their session alone */
    HELD(RENEW,           NONE,                NULL,                "!!!!!!!!!!"),
    HELD(TOUCH,           NONE,                NULL,                "!!!!!!!!!!"),
    HELD(APPEND,          NONE,                NULL,                "!!!!!!!!!!"),
    HELD(WAIT,            HF_STATUS_WAITING_USER,     NULL,                "!!!!!!!!!!"),
    OPEN(RESUME,          NONE,                NULL,                "!!!!!!!!!!"),
    OPEN(RESUME,          NONE,                "ann",               "!!!!!!!!!!"),
    HELD(CLOSE_OUT,       HF_STATUS_DONE,             NULL,                "!!!!!!!!!!"),
    OPEN(CLOSE_OUT,       HF_STATUS_DONE,             "gh",                "!!!!!!!!!!"),
    HELD(FAIL,            NONE,                "transient_network", "!!!!!!!!!!"),
    HELD(HAND_BACK,       NONE,                NULL,                "!!!!!!!!!!"),
    OPEN(CANCEL,          NONE,                NULL,                "C.CCC!!!!!"),
    OPEN(REQUEUE,         NONE,                NULL,                "!!!!!!!!!!"),
    OPEN(REQUEST_ABANDON, NONE,                NULL,                "!!!!!!!!!!"),
    HELD(ABANDON,         NONE,                NULL,                "!!!!!!!!!!"),
};
/* clang-format on */

static struct hf_change change_of(const struct expectation *want)
{
    struct hf_change change = want->token ? rig_held(want->verb) : rig_change(want->verb);
    change.status = want->status;
    change.reason = "because";
    if (want->verb == HF_VERB_WAIT)
        change.ref = "ask-2";
    if (want->verb == HF_VERB_APPEND)
        change.type = "progress";
    if (want->verb == HF_VERB_FAIL)
        change.error_class = want->with;
    if (want->verb == HF_VERB_CLOSE_OUT)
        change.authority = want->with;
    if (want->verb == HF_VERB_RESUME && want->with) {
        change.owner = want->with;
        change.incarnation = "i1";
        change.nonce = "n9";
    }
    return change;
}

static char letter_of(int rc, const struct hf_step *step)
{
    static const char letters[HF_STATUS_COUNT + 1] = "?QRUESDFTCA";
    if (rc == HF_ETRANSITION)
        return '!';
    if (rc == HF_ELEASELOST)
        return 'x';
    if (rc == HF_EHELD)
        return 'h';
    if (rc != 0)
        return '?';
    if (step->kind == HF_STEP_WRITE)
        return letters[step->row.status];
    return step->kind == HF_STEP_QUIET ? '.' : step->kind == HF_STEP_REPEAT ? '=' : '?';
}

/* A step that is written is in the table of edges, says who, and carries its event. */
static void assert_sound(const struct hf_row *old, const struct hf_step *step)
{
    const struct hf_row *row = &step->row;
    bool running = row->status == HF_STATUS_RUNNING;
    assert_string_equal(row->w.status, hf_status_word(row->status));
    assert_true(row->w.lease_fence >= old->w.lease_fence);
    assert_int_equal(row->w.attempt_count - old->w.attempt_count,
                     step->kind == HF_STEP_WRITE && running ? 1 : 0);
    assert_string_equal(row->actor, "op");
    if (step->kind != HF_STEP_WRITE) {
        assert_int_equal(row->status, old->status);
        return;
    }
    assert_true(hf_edge_legal(old->status, row->status, NULL));
    assert_non_null(row->event_type);
    assert_non_null(row->note);
    assert_int_equal(row->w.updated_at, RIG_NOW);
    assert_int_equal(running, row->claim_group != NULL);
    assert_int_equal(running, row->w.lease_expires_at != 0);
    assert_int_equal(running, row->lease_check_at != 0);
    assert_int_equal(row->status == HF_STATUS_RETRY_SCHEDULED, row->w.next_retry_at != 0);
    assert_int_equal(row->status == HF_STATUS_WAITING_USER ||
                         row->status == HF_STATUS_WAITING_EXTERNAL,
                     row->w.waiting_kind != NULL);
    assert_int_equal(hf_status_terminal(row->status), row->w.finished_at != 0);
    /* every delay and every end that is no success has a reason */
    if (row->status != HF_STATUS_DONE && !running)
        assert_non_null(row->w.status_reason);
}

static void assert_outcomes(enum hf_disposition disposition,
                            const struct expectation *wanted, size_t count)
{
    struct rig rig;
    rig_init(&rig);
    for (size_t i = 0; i < count; i++) {
        struct hf_change change = change_of(&wanted[i]);
        for (int s = 1; s < HF_STATUS_COUNT; s++) {
            char letter = wanted[i].outcome[s - 1];
            if (letter == '-')
                continue;
            struct hf_row row = rig_row((enum hf_status)s, disposition);
            int rc = rig_apply(&rig, &row, &change);
            if (letter_of(rc, &rig.step) != letter)
                fail_msg("%s with %s on a %s row: '%c', wanted '%c' (%s)", wanted[i].what,
                         wanted[i].with ? wanted[i].with : "-",
                         hf_status_word((enum hf_status)s), letter_of(rc, &rig.step),
                         letter, rig.err.message);
            if (rc == 0)
                assert_sound(&row, &rig.step);
            else
                assert_int_equal(rig.err.code, rc);
        }
    }
    rig_fini(&rig);
}

static void verbs_on_expire_rows(void **state)
{
    (void)state;
    assert_outcomes(HF_DISPOSITION_EXPIRE, free_rows, COUNT(free_rows));
}

static void verbs_on_rerunnable_rows(void **state)
{
    (void)state;
    assert_outcomes(HF_DISPOSITION_RERUNNABLE, free_rows, COUNT(free_rows));
}

static void verbs_on_owner_bound_rows(void **state)
{
    (void)state;
    assert_outcomes(HF_DISPOSITION_OWNER_BOUND, bound_rows, COUNT(bound_rows));
}

static void verbs_on_externally_owned_rows(void **state)
{
    (void)state;
    assert_outcomes(HF_DISPOSITION_EXTERNALLY_OWNED, external_rows, COUNT(external_rows));
}

static void verbs_on_session_bound_rows(void **state)
{
    (void)state;
    assert_outcomes(HF_DISPOSITION_NONE, session_rows, COUNT(session_rows));
}

static void refused_writes_nothing(void **state)
{
    (void)state;
    const struct hf_step mark = { .kind = HF_STEP_NOTHING, .extra_event = "mark" };
    struct rig rig;
    rig_init(&rig);
    for (size_t i = 0; i < COUNT(bound_rows); i++) {
        struct hf_change change = change_of(&bound_rows[i]);
        for (int s = 1; s < HF_STATUS_COUNT; s++) {
            const struct hf_row row = rig_row((enum hf_status)s,
                                              HF_DISPOSITION_OWNER_BOUND);
            struct hf_row same = row;
            rig.step = mark;
            if (rig_apply(&rig, &same, &change) != 0)
                assert_memory_equal(&rig.step, &mark, sizeof(mark));
            assert_memory_equal(&same, &row, sizeof(row)); /* the old row is only read */
        }
    }
    rig_fini(&rig);
}

static void claims_take_queued_rows_only(void **state)
{
    (void)state;
    static const struct {
        enum hf_disposition disposition;
        const char *outcome;
    } wanted[] = {
        { HF_DISPOSITION_EXPIRE, "Rh!!!!!!!!" },
        { HF_DISPOSITION_RERUNNABLE, "Rh!!!!!!!!" },
        { HF_DISPOSITION_OWNER_BOUND, "Rh!!!!!!!!" },
        { HF_DISPOSITION_EXTERNALLY_OWNED, "---!-!!!!!" },
        { HF_DISPOSITION_NONE, "!!!!!!!!!!" },
    };
    struct rig rig;
    rig_init(&rig);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        for (int s = 1; s < HF_STATUS_COUNT; s++) {
            struct hf_row row = rig_row((enum hf_status)s, wanted[i].disposition);
            if (wanted[i].outcome[s - 1] == '-')
                continue;
            int rc = rig_claim(&rig, &row, "bob", "b1", "m1");
            assert_int_equal(letter_of(rc, &rig.step), wanted[i].outcome[s - 1]);
            if (rc == 0)
                assert_sound(&row, &rig.step);
        }
    }
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs_on_expire_rows),
        cmocka_unit_test(verbs_on_rerunnable_rows),
        cmocka_unit_test(verbs_on_owner_bound_rows),
        cmocka_unit_test(verbs_on_externally_owned_rows),
        cmocka_unit_test(verbs_on_session_bound_rows),
        cmocka_unit_test(refused_writes_nothing),
        cmocka_unit_test(claims_take_queued_rows_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
