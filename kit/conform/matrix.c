/* The edge matrix: every status, disposition and verb against a table written by hand. */

#include "conform/kit.h"

enum act {
    A_CLAIM,
    A_RENEW,
    A_TOUCH,
    A_APPEND,
    A_WAIT_USER,
    A_WAIT_EXTERNAL,
    A_RESUME,
    A_RESUME_OWNER,
    A_DONE,
    A_FAILED,
    A_TIMEOUT,
    A_CANCELLED,
    A_COMPLETE_DONE,
    A_COMPLETE_FAILED,
    A_COMPLETE_CANCELLED,
    A_FAIL,
    A_HAND_BACK,
    A_CANCEL,
    A_REQUEUE,
    A_ASK_ABANDON,
    A_DRAIN,
    A_COUNT
};

/* How an outcome is spelled in the table: a new status, or
 *   =  allowed, the status stays    L  lease lost    H  held by another owner
 *   .  illegal transition           (a blank row cannot be reached)                      */
static const char letters[] = "?qrUXsdftca";

struct line {
    enum hf_disposition disposition;
    enum hf_status from;
    const char *outcomes; /* one letter an act */
};

#define R(disposition, status) HF_DISPOSITION_##disposition, HF_STATUS_##status

/* Holder verbs use the row's token while it runs, and a foreign one otherwise. */
/* clang-format off */
static const struct line table[] = {
    /*                                    c  rta WW rR dftc dfc f h c r a D
     *                                    l  eop UX so (tok (aut i b a q s r */
    { R(EXPIRE, QUEUED),              "r" "LLL" "LL" ".." "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(EXPIRE, RUNNING),             "H" "===" "UX" ".." "dftc" "..." "s" "q" "c" "." "." "." },
    { R(EXPIRE, WAITING_USER),        "." "LLL" "LL" "qr" "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(EXPIRE, WAITING_EXTERNAL),    "." "LLL" "LL" "qr" "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(EXPIRE, RETRY_SCHEDULED),     "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(EXPIRE, DONE),                "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(EXPIRE, FAILED),              "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(EXPIRE, TIMEOUT),             "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(EXPIRE, CANCELLED),           "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },

    { R(RERUNNABLE, QUEUED),          "r" "LLL" "LL" ".." "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(RERUNNABLE, RUNNING),         "H" "===" "UX" ".." "dftc" "..." "s" "q" "c" "." "." "." },
    { R(RERUNNABLE, WAITING_USER),    "." "LLL" "LL" "qr" "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(RERUNNABLE, WAITING_EXTERNAL), "." "LLL" "LL" "qr" "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(RERUNNABLE, RETRY_SCHEDULED), "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(RERUNNABLE, DONE),            "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(RERUNNABLE, FAILED),          "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(RERUNNABLE, TIMEOUT),         "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(RERUNNABLE, CANCELLED),       "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },

    { R(OWNER_BOUND, QUEUED),         "r" "LLL" "LL" ".." "LLLL" "..." "L" "L" "c" "." "." "L" },
    { R(OWNER_BOUND, RUNNING),        "H" "===" "UX" ".." "dftc" "..." "f" "." "=" "." "=" "a" },
    { R(OWNER_BOUND, WAITING_USER),   "." "LLL" "LL" ".r" "LLLL" "..." "L" "L" "c" "." "=" "L" },
    { R(OWNER_BOUND, WAITING_EXTERNAL), "." "LLL" "LL" ".r" "LLLL" "..." "L" "L" "c" "." "=" "L" },
    { R(OWNER_BOUND, DONE),           "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(OWNER_BOUND, FAILED),         "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(OWNER_BOUND, TIMEOUT),        "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(OWNER_BOUND, CANCELLED),      "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },
    { R(OWNER_BOUND, ABANDONED),      "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "q" "." "L" },

    { R(EXTERNALLY_OWNED, WAITING_EXTERNAL), "." "LLL" "LL" ".." "LLLL" "dfc" "L" "L" "c" "." "=" "L" },
    { R(EXTERNALLY_OWNED, DONE),      "." "LLL" "LL" ".." "LLLL" "=.." "L" "L" "." "." "." "L" },
    { R(EXTERNALLY_OWNED, FAILED),    "." "LLL" "LL" ".." "LLLL" ".=." "L" "L" "." "." "." "L" },
    { R(EXTERNALLY_OWNED, CANCELLED), "." "LLL" "LL" ".." "LLLL" "..=" "L" "L" "." "." "." "L" },
    { R(EXTERNALLY_OWNED, ABANDONED), "." "LLL" "LL" ".." "LLLL" "..." "L" "L" "." "." "." "L" },
};

static const char *const act_names[A_COUNT] = {
    "claim", "renew", "touch", "append_event", "wait user", "wait external", "resume",
    "resume --owner", "close-out done", "close-out failed", "close-out timeout",
    "close-out cancelled", "complete done", "complete failed", "complete cancelled", "fail",
    "hand-back", "cancel", "requeue", "request-abandon", "abandon",
};
/* clang-format on */

static const char foreign_token[] = "hf1.1.1.foreign";

/* A row in that status, with its token while it runs. */
static struct held made(struct hf_conform *t, const struct line *line)
{
    if (line->disposition == HF_DISPOSITION_EXTERNALLY_OWNED) {
        struct held h = { new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED),
                          foreign_token };
        if (line->from == HF_STATUS_ABANDONED) {
            CODE(0, ask_abandon(h.id)->code);
            sweep();
        } else if (line->from != HF_STATUS_WAITING_EXTERNAL) {
            CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .authority = "engine",
                           .status = line->from)
                        ->code);
        }
        return h;
    }
    if (line->from == HF_STATUS_QUEUED)
        return (struct held){ new_id(.disposition = line->disposition), foreign_token };
    struct held h = running(.disposition = line->disposition);
    if (line->from == HF_STATUS_RUNNING)
        return h;
    if (line->from == HF_STATUS_WAITING_USER || line->from == HF_STATUS_WAITING_EXTERNAL)
        wait_for(h, line->from, say("ref-%s", h.id));
    else if (line->from == HF_STATUS_RETRY_SCHEDULED)
        fail_as(h, "rate_limit");
    else if (line->from == HF_STATUS_ABANDONED)
        drain(h);
    else
        close_as(h, line->from);
    return (struct held){ h.id, foreign_token };
}

static const enum hf_status settled_to[A_COUNT] = {
    [A_WAIT_USER] = HF_STATUS_WAITING_USER,
    [A_WAIT_EXTERNAL] = HF_STATUS_WAITING_EXTERNAL,
    [A_DONE] = HF_STATUS_DONE,
    [A_FAILED] = HF_STATUS_FAILED,
    [A_TIMEOUT] = HF_STATUS_TIMEOUT,
    [A_CANCELLED] = HF_STATUS_CANCELLED,
    [A_COMPLETE_DONE] = HF_STATUS_DONE,
    [A_COMPLETE_FAILED] = HF_STATUS_FAILED,
    [A_COMPLETE_CANCELLED] = HF_STATUS_CANCELLED,
};

static int tried(struct hf_conform *t, struct held h, enum act act)
{
    switch (act) {
    case A_CLAIM: return claim(.id = h.id, .owner = "bob", .incarnation = "b")->code;
    case A_RENEW: return renew(h)->code;
    case A_TOUCH: return touch(h)->code;
    case A_APPEND:
        return change(.verb = HF_VERB_APPEND, .id = h.id, .token = h.token,
                      .type = "progress", .payload = "1")
            ->code;
    case A_WAIT_USER:
    case A_WAIT_EXTERNAL: return wait_for(h, settled_to[act], "another")->code;
    case A_RESUME: return resume(h.id)->code;
    case A_RESUME_OWNER:
        return change(.verb = HF_VERB_RESUME, .id = h.id, .owner = "alice",
                      .incarnation = "boot-1")
            ->code;
    case A_DONE:
    case A_FAILED:
    case A_TIMEOUT:
    case A_CANCELLED: return close_as(h, settled_to[act])->code;
    case A_COMPLETE_DONE:
    case A_COMPLETE_FAILED:
    case A_COMPLETE_CANCELLED:
        return change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .authority = "engine",
                      .status = settled_to[act])
            ->code;
    case A_FAIL: return fail_as(h, "rate_limit")->code;
    case A_HAND_BACK: return hand_back(h)->code;
    case A_CANCEL: return cancel(h.id)->code;
    case A_REQUEUE: return requeue(h.id)->code;
    case A_ASK_ABANDON: return ask_abandon(h.id)->code;
    case A_DRAIN: return drain(h)->code;
    case A_COUNT: break;
    }
    return HF_EINTERNAL;
}

static char outcome(struct hf_conform *t, const char *id, enum hf_status from, int code)
{
    if (code == HF_ELEASELOST)
        return 'L';
    if (code == HF_EHELD)
        return 'H';
    if (code == HF_ETRANSITION)
        return '.';
    if (code)
        return '!';
    enum hf_status now = hf_status_of(row(id)->status);
    return now == from ? '=' : letters[now];
}

static void try_one(struct hf_conform *t, const struct line *line, enum act act)
{
    struct held h = made(t, line);
    IS(hf_status_word(line->from), h.id);
    char expected = line->outcomes[act];
    const char *before = picture();
    char found = outcome(t, h.id, line->from, tried(t, h, act));
    if (!t->failed && found != expected)
        kit_fail(t, "%s, %s, by %s: expected %c, found %c (%s)",
                 hf_disposition_word(line->disposition), hf_status_word(line->from),
                 act_names[act], expected, found, t->err.message);
    if (expected == '.' || expected == 'L' || expected == 'H')
        UNCHANGED(before);
}

static void try_lines(struct hf_conform *t, enum hf_disposition disposition)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].disposition != disposition)
            continue;
        for (int act = 0; act < A_COUNT && !t->failed; act++)
            try_one(t, &table[i], (enum act)act);
    }
}

test_case(r22_edge_matrix_of_rows_that_expire)
{
    try_lines(t, HF_DISPOSITION_EXPIRE);
}

test_case(r22_edge_matrix_of_rerunnable_rows)
{
    try_lines(t, HF_DISPOSITION_RERUNNABLE);
}

test_case(r22_edge_matrix_of_owner_bound_rows)
{
    try_lines(t, HF_DISPOSITION_OWNER_BOUND);
}

test_case(r22_edge_matrix_of_externally_owned_rows)
{
    try_lines(t, HF_DISPOSITION_EXTERNALLY_OWNED);
}

/* A running row refuses a token that is not its own, whatever the verb. */
test_case(r22_edge_matrix_of_foreign_tokens)
{
    static const enum act acts[] = { A_RENEW, A_TOUCH,     A_APPEND,  A_WAIT_USER,
                                     A_DONE,  A_FAILED,    A_TIMEOUT, A_CANCELLED,
                                     A_FAIL,  A_HAND_BACK, A_DRAIN,   A_WAIT_EXTERNAL };
    for (int d = HF_DISPOSITION_EXPIRE; d <= HF_DISPOSITION_OWNER_BOUND; d++) {
        struct held h = running(.disposition = (enum hf_disposition)d);
        const char *before = picture();
        h.token = foreign_token;
        for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
            CODE(HF_ELEASELOST, tried(t, h, acts[i]));
            UNCHANGED(before);
        }
    }
}

/* The pairs that R20 names. */
test_case(r20_named_illegal_pairs_are_refused)
{
    struct held done_one = running();
    close_as(done_one, HF_STATUS_DONE);
    CODE(HF_ETRANSITION, claim(.id = done_one.id)->code);
    struct held failed_one = running();
    close_as(failed_one, HF_STATUS_FAILED);
    CODE(HF_ETRANSITION, wait_for(failed_one, HF_STATUS_WAITING_USER, "r")->code);
    struct held late = running();
    advance(SEC(75));
    sweep();
    CODE(HF_ELEASELOST, close_as(late, HF_STATUS_DONE)->code);
    IS("done", done_one.id);
    IS("failed", failed_one.id);
    IS("timeout", late.id);
}

test_case(r14_one_change_cannot_both_wait_and_close)
{
    struct held h = running();
    const char *before = picture();
    CODE(HF_EINVAL, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                           .status = HF_STATUS_WAITING_USER)
                        ->code);
    CODE(HF_EINVAL, change(.verb = HF_VERB_WAIT, .id = h.id, .token = h.token,
                           .status = HF_STATUS_DONE, .ref = "r")
                        ->code);
    CODE(HF_EINVAL, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                           .status = HF_STATUS_DONE, .ref = "r")
                        ->code);
    UNCHANGED(before);
}

/* transition_work: the holder's edges under one name. */
test_case(r59_transition_offers_the_edges_of_a_holder)
{
    struct hf_answer *answer = NULL;
    struct held h = running();
    struct hf_change to = { .size = sizeof(to), .id = h.id, .token = h.token };
    static const enum hf_status never[] = { HF_STATUS_RUNNING, HF_STATUS_ABANDONED };
    const char *before = picture();
    for (size_t i = 0; i < 2 && !t->failed; i++) {
        to.status = never[i];
        t->code = kit_called(
            t, hf_work_transition(t->store, &t->who, &to, &answer, kit_err(t)));
        CODE(HF_ETRANSITION, t->code);
    }
    UNCHANGED(before);
    if (t->failed)
        return;
    to.status = HF_STATUS_QUEUED;
    t->code = kit_called(t,
                         hf_work_transition(t->store, &t->who, &to, &answer, kit_err(t)));
    CODE(0, t->code);
    if (t->code == 0)
        hf_answer_free(answer);
    IS("queued", h.id);
}
