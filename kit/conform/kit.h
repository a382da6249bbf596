/* The tools of the cases: a store under virtual time, verbs in short form, and
 * checks that record the first failure. Not public.
 *
 * After a failure every helper does nothing and returns zeroed rows, so a case needs no
 * branches for it. The results of a helper live until the case ends.
 */
#ifndef HF_CONFORM_KIT_H
#define HF_CONFORM_KIT_H

#include <holdfast/bounds.h>
#include <holdfast/sys/conformance.h>

#include "conform/cases.h"

#define test_case(name) void conform_##name(struct hf_conform *t)

/* Units of time. */
#define MS(n) ((hf_ms)(n))
#define SEC(n) ((hf_ms)(n)*1000)
#define MINUTE(n) ((hf_ms)(n)*60000)
#define HOUR(n) ((hf_ms)(n)*3600000)

/* 0 in a request of a case means "the default", so the most urgent priority is spelled so. */
#define MOST_URGENT 100

/* A claimed row. */
struct held {
    const char *id;
    const char *token;
};

typedef void kit_drop(void *at);

struct keep {
    struct keep *next;
    void *at;
    kit_drop *drop;
};

struct hf_conform {
    const struct hf_conform_factory *factory;
    struct hf_conform_failure *failure;
    bool failed;
    const char *file;
    int line;
    struct hf_store *store; /* the handle that verbs go to */
    struct hf_store_options options;
    struct hf_clock clock;
    struct hf_random random;
    hf_ms wall;
    hf_ms mono;
    uint64_t seed;
    struct hf_caller who; /* of the next verbs; a case may change it */
    int64_t made;
    struct keep *kept;
    struct hf_err err; /* of the last call */
    int code;          /* the last call's own answer */
};

/* Where the next helper is called, for the failure's text. */
struct hf_conform *kit_at(struct hf_conform *t, const char *file, int line);
#define AT(t) kit_at((t), __FILE__, __LINE__)

/* Around every call: `t->code = kit_called(t, hf_…(…, kit_err(t)))`. The record is given
 * with marks in it, and a call that answers 0 must have left them as they were. */
struct hf_err *kit_err(struct hf_conform *t);
int kit_called(struct hf_conform *t, int code);

/* ---- checks ------------------------------------------------------------------------- */

void kit_fail(struct hf_conform *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void kit_int(struct hf_conform *t, const char *what, int64_t expected, int64_t found);
void kit_text(struct hf_conform *t, const char *what, const char *expected,
              const char *found);
void kit_code(struct hf_conform *t, const char *what, int expected, int found);
void kit_true(struct hf_conform *t, const char *what, bool found);
void kit_status(struct hf_conform *t, const char *expected, const char *id);

#define EQ(expected, found) kit_int(AT(t), #found, (int64_t)(expected), (int64_t)(found))
#define SAME(expected, found) kit_text(AT(t), #found, (expected), (found))
#define CODE(expected, found) kit_code(AT(t), #found, (expected), (found))
#define TRUE(found) kit_true(AT(t), #found, (found))
#define IS(expected_status, id) kit_status(AT(t), (expected_status), (id))

bool same(const char *a, const char *b);
bool begins(const char *text, const char *prefix);
bool contains(const char *text, const char *part);

/* ---- the store ---------------------------------------------------------------------- */

void kit_advance(struct hf_conform *t, hf_ms ms);
/* Another handle; it takes the place of t->store. The old one is closed first, or kept
 * open and returned for kit_use. */
void kit_reopen(struct hf_conform *t);
struct hf_store *kit_second(struct hf_conform *t);
struct hf_store *kit_use(struct hf_conform *t, struct hf_store *store);

/* Text kept until the case ends. */
const char *kit_say(struct hf_conform *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *kit_filled(struct hf_conform *t, char c, size_t bytes);
void *kit_memory(struct hf_conform *t, size_t bytes);
void kit_keep(struct hf_conform *t, void *at, kit_drop *drop);

#define advance(ms) kit_advance(AT(t), (ms))
#define reopen() kit_reopen(AT(t))
#define say(...) kit_say(t, __VA_ARGS__)

/* ---- verbs -------------------------------------------------------------------------- */

/* Each returns one item (never NULL): of a refused call one that carries its code.
 * Source, source id and sizes are filled in where the request leaves them out. */
const struct hf_item *kit_create(struct hf_conform *t, struct hf_work_spec request);
const struct hf_answer *kit_create_many(struct hf_conform *t,
                                        struct hf_work_spec *requests, size_t n,
                                        unsigned flags);
const struct hf_answer *kit_claim(struct hf_conform *t, struct hf_claim claim);
const struct hf_item *kit_claim_one(struct hf_conform *t, struct hf_claim claim);
const struct hf_item *kit_change(struct hf_conform *t, struct hf_change change);
const struct hf_answer *kit_change_many(struct hf_conform *t, struct hf_change *changes,
                                        size_t n, unsigned flags);
const struct hf_answer *kit_renew_all(struct hf_conform *t, struct hf_renew_all renew);
const struct hf_answer *kit_list(struct hf_conform *t, struct hf_filter filter);
/* Create and claim by id, as alice's first boot. */
struct held kit_running(struct hf_conform *t, struct hf_work_spec request);
struct hf_sweep_report kit_sweep(struct hf_conform *t);
struct hf_stats kit_stats(struct hf_conform *t);
int64_t kit_prune(struct hf_conform *t, hf_ms older_than_ms, size_t limit);
int kit_policy(struct hf_conform *t, const char *scope, struct hf_policy policy);
int64_t kit_bump(struct hf_conform *t);
/* How many leases got another term. */
int64_t kit_amnesty(struct hf_conform *t, hf_ms stalled_ms);
/* A session of agent "a"; its id. */
const char *kit_session(struct hf_conform *t, const char *session_id);
/* The row as it is; zeroed when there is none (t->code says why). */
const struct hf_work *kit_row(struct hf_conform *t, const char *id);
const struct hf_events *kit_events(struct hf_conform *t, const char *id);

/* Of an answer that may be NULL after a failure. */
size_t count_of(const struct hf_answer *answer);
const struct hf_item *item_of(const struct hf_answer *answer, size_t i);

#define create(...) kit_create(AT(t), (struct hf_work_spec){ __VA_ARGS__ })
#define new_id(...) (create(__VA_ARGS__)->work.work_id)
#define claim(...) kit_claim_one(AT(t), (struct hf_claim){ __VA_ARGS__ })
#define claim_many(...) kit_claim(AT(t), (struct hf_claim){ __VA_ARGS__ })
#define change(...) kit_change(AT(t), (struct hf_change){ __VA_ARGS__ })
#define renew_all(...) kit_renew_all(AT(t), (struct hf_renew_all){ __VA_ARGS__ })
#define list(...) kit_list(AT(t), (struct hf_filter){ __VA_ARGS__ })
#define running(...) kit_running(AT(t), (struct hf_work_spec){ __VA_ARGS__ })
#define sweep() kit_sweep(AT(t))
#define stats() kit_stats(AT(t))
#define prune(age, limit) kit_prune(AT(t), (age), (limit))
#define policy(scope, ...) kit_policy(AT(t), (scope), (struct hf_policy){ __VA_ARGS__ })
#define bump() kit_bump(AT(t))
#define row(id) kit_row(AT(t), (id))
#define events(id) kit_events(AT(t), (id))

/* Verbs that most cases need. */
#define renew(h) change(.verb = HF_VERB_RENEW, .id = (h).id, .token = (h).token)
#define touch(h) change(.verb = HF_VERB_TOUCH, .id = (h).id, .token = (h).token)
#define close_as(h, to)                                                                  \
    change(.verb = HF_VERB_CLOSE_OUT, .id = (h).id, .token = (h).token, .status = (to))
#define fail_as(h, class_)                                                               \
    change(.verb = HF_VERB_FAIL, .id = (h).id, .token = (h).token,                       \
           .error_class = (class_))
#define hand_back(h) change(.verb = HF_VERB_HAND_BACK, .id = (h).id, .token = (h).token)
#define wait_for(h, to, ref_)                                                            \
    change(.verb = HF_VERB_WAIT, .id = (h).id, .token = (h).token, .status = (to),       \
           .ref = (ref_))
#define resume(id_) change(.verb = HF_VERB_RESUME, .id = (id_))
#define cancel(id_) change(.verb = HF_VERB_CANCEL, .id = (id_), .reason = "not wanted")
#define requeue(id_) change(.verb = HF_VERB_REQUEUE, .id = (id_), .reason = "once more")
#define ask_abandon(id_)                                                                 \
    change(.verb = HF_VERB_REQUEST_ABANDON, .id = (id_), .reason = "gone")
#define drain(h) change(.verb = HF_VERB_ABANDON, .id = (h).id, .token = (h).token)

/* ---- events ------------------------------------------------------------------------- */

size_t kit_count_events(struct hf_conform *t, const char *id, const char *type);
/* The newest event of this type, or a zeroed one. */
const struct hf_event *kit_last_event(struct hf_conform *t, const char *id,
                                      const char *type);
/* The newest event that changed the status. */
const struct hf_event *kit_last_change(struct hf_conform *t, const char *id);
#define count_events(id, type) kit_count_events(AT(t), (id), (type))
#define last_event(id, type) kit_last_event(AT(t), (id), (type))
#define last_change(id) kit_last_change(AT(t), (id))

/* ---- the whole store ---------------------------------------------------------------- */

/* All rows and events as text, except what moves by itself and the diagnostics that rule
 * 14 allows. */
const char *kit_picture(struct hf_conform *t);
void kit_unchanged(struct hf_conform *t, const char *picture);
#define picture() kit_picture(AT(t))
#define UNCHANGED(before) kit_unchanged(AT(t), (before))

/* Folds every trail and checks what must hold of every store at any time. */
void kit_fold(struct hf_conform *t);

#endif
