/* Findings that need a person: about units, sessions, schedules, owners and the store.
 *
 * A finding is data: numbers and words, and the operation that deals with it. A shell prints it
 * as a line and a command, another transport as a link. All times are those of the store's
 * clock. Reading findings changes nothing.
 */
#ifndef HOLDFAST_ATTENTION_H
#define HOLDFAST_ATTENTION_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, word, severity, when */
#define HF_NEEDS(X)                                                                      \
    X(SILENT, silent, NOW, "running, and its lease has lapsed")                          \
    X(LAPSING, lapsing, SOON, "running, and less than a third of the lease is left")     \
    X(QUESTION, question, NOW, "it waits for a person")                                  \
    X(WAIT, wait, SOON, "another wait that is past half of its time")                    \
    X(HELD, held, NOW, "it lost its worker too often")                                   \
    X(ENDED_BADLY, ended_badly, NOW, "failed, timeout or abandoned, not acknowledged")   \
    X(UNSERVED, unserved, NOW, "claimable for long, and no worker claims such units")    \
    X(SCHEDULE_FAILING, schedule_failing, NOW, "its last slot could not be made")        \
    X(SCHEDULE_LATE, schedule_late, NOW, "its slot is over and was not made")            \
    X(TWINS, twins, NOW, "two processes of one owner name hold work at once")            \
    X(LIMIT_STUCK, limit_stuck, NOW, "every place of the limit has a silent holder")     \
    X(UNKNOWN_EFFECT, unknown_effect, NOW, "it is not known whether an effect happened") \
    X(STORE, store, NOW, "the store itself")

enum hf_need {
    HF_NEED_NONE,
#define X(name, word, severity, when) HF_NEED_##name,
    HF_NEEDS(X)
#undef X
        HF_NEED_COUNT
};

enum hf_severity {
    HF_SEVERITY_NONE,
    HF_SEVERITY_NOW,
    HF_SEVERITY_SOON,
    HF_SEVERITY_NOTE
};

/* A number or a word with its name. */
struct hf_fact {
    const char *name;
    const char *text; /* NULL: it is the number */
    int64_t number;
    bool json; /* the text is JSON */
};

/* An operation of the table (`holdfast call --list`) with its inputs. */
struct hf_attention_act {
    const char *op;
    const char *tenant; /* of the caller, where the operation needs it; NULL: any */
    const struct hf_fact *inputs;
    size_t count;
};

struct hf_attention_item {
    enum hf_need what;
    enum hf_severity severity;
    const char *
        subject; /* unit, session, wait, schedule, queue, agent, owner, limit, effect, store */
    const char
        *id; /* of the subject: an id or a name; of an effect outside a turn: ID/KEY */
    const char *tenant;
    const char *kind; /* of a unit, wait or effect; NULL */
    /* The unit, without resume_payload, result and retry_policy, and with a payload only where its
     * kind is run or question: what names it to its user. NULL for other subjects. */
    const struct hf_work *unit;
    hf_ms since; /* 0: not known */
    hf_ms until; /* when it ends by itself; 0: never */
    const struct hf_fact *facts;
    size_t fact_count;
    struct hf_attention_act act;
};

/* Findings of one kind that are not shown: units, and apart from them sessions and waits. */
struct hf_attention_more {
    enum hf_need what;
    int64_t count;               /* 0: there may be some, since not all was looked at */
    bool at_least;               /* it was counted only so far */
    const char *kind;            /* of these units; NULL: of all */
    const char *error_class;     /* the same */
    struct hf_attention_act act; /* the list that shows them */
};

/* Owns all the memory that it shows. */
struct hf_attention {
    hf_ms now;
    const struct hf_attention_item *items; /* by kind, in the order of HF_NEEDS */
    size_t count;
    const struct hf_attention_more *more;
    size_t more_count;
};

struct hf_attention_query {
    uint32_t size;
    size_t limit;      /* findings per kind; 0: 200, which is the most */
    hf_ms unserved_ms; /* claimable for this long without a worker; 0: 5 minutes */
};

/* The words of the enums; NULL where there is none. */
HF_API const char *hf_need_word(enum hf_need need);
HF_API enum hf_need hf_need_of(const char *word); /* NONE when unknown */
HF_API const char *hf_severity_word(enum hf_severity severity);

/* All findings of the caller's tenant, or of all tenants where it names none. `query` may be
 * NULL. Each kind is one bounded read; the kinds are not one snapshot. HF_EINVAL, HF_ETOOBIG,
 * HF_ENOMEM, and the errors of a store. */
HF_API HF_MUST_USE int hf_attention_read(struct hf_store *store,
                                         const struct hf_caller *who,
                                         const struct hf_attention_query *query,
                                         struct hf_attention **ret_attention,
                                         struct hf_err *err);
HF_API void hf_attention_free(struct hf_attention *attention); /* NULL is fine */

/* Which bad ends a person has seen: those of `ids`, of a kind, or all; exactly one of the three. */
struct hf_ack {
    uint32_t size;
    const char *const *ids; /* ids, or unique beginnings or ends of them */
    size_t id_count;
    const char *kind;
    bool all;
    const char *reason; /* kept with the event; NULL: none */
};

/* Marks units that ended `failed`, `timeout` or `abandoned` as seen: an event
 * `work_acknowledged` names the actor. A unit that is requeued and ends badly again is a finding
 * again. *ret_count is how many were marked now; a unit that was marked before is not counted.
 * HF_EINVAL, HF_ENOTFOUND, HF_EAMBIGUOUS; HF_ETRANSITION naming the unit that has not ended badly,
 * and then none of `ids` is marked. */
HF_API HF_MUST_USE int hf_attention_ack(struct hf_store *store,
                                        const struct hf_caller *who,
                                        const struct hf_ack *ack, int64_t *ret_count,
                                        struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
