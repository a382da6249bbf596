/* Background processes, and the output of the commands that units run.
 *
 * A process is a unit of work (work.h) with facts of its own: who it is, who began it,
 * who is woken by it, who may see it. Its status is that of its unit, and the verbs of
 * work.h change it. Its disposition says what becomes of it when its owner is lost; the
 * caller that registers it must declare one, there is no default.
 *
 * Threads: all functions may be called from any thread on one store handle.
 */
#ifndef HOLDFAST_PROCESS_H
#define HOLDFAST_PROCESS_H

#include <holdfast/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- register ---------------------------------------------------------------------- */

struct hf_process_spec {
    uint32_t size;
    const struct hf_work_spec
        *work; /* its unit; the disposition must be rerunnable, owner_bound
                                  or externally_owned, the kind is "process" if not given */
    const char *identity_kind; /* what sort of process: "shell", "subagent"; needed */
    const char *identity_label;
    const char *definition;   /* JSON: the definition that it was made from */
    const char *labels;       /* JSON object of texts */
    const char *originator;   /* a session's id, "host" or "host:SCOPE"; NULL: "host" */
    const char *wake_session; /* gets a unit "wake" in its queue, session:ID, when the
                                 process ends; does not make it an observer */
    const char *cause_occurrence;
    const char *cause_subscription;
    const char *env_ref;
    const char *const
        *event_types; /* that it may append; none: any that is not reserved */
    size_t event_type_count;
    const char *const *observers; /* sessions that get its handle */
    size_t observer_count;
    const struct hf_claim *claim; /* or NULL: register claims it too, in one transaction,
                                     and the item has the token; id and queue are ignored */
};

/* Register a process. A repeated request returns the same process (created = false), with
 * other content HF_ECONFLICT. HF_EINVAL names the field at fault: "disposition" when it
 * was left out. */
HF_API HF_MUST_USE int hf_process_register(struct hf_store *store,
                                           const struct hf_caller *who,
                                           const struct hf_process_spec *request,
                                           struct hf_answer **ret_answer,
                                           struct hf_err *err);

/* ---- read -------------------------------------------------------------------------- */

/* One process: its unit, with the raw facts for the question whether it is stuck
 * (disposition, first_started_at, owner, holder, lease_remaining_ms, abandon_request),
 * and its own facts. No verdict is derived. */
struct hf_process {
    struct hf_work work;
    const char *identity_kind;
    const char *identity_label;
    const char *definition; /* JSON */
    const char *labels;     /* JSON object of texts */
    const char *originator;
    const char *wake_session;
    const char *cause_occurrence;
    const char *cause_subscription;
    const char *env_ref;
    const char *external_ref;
    const char *event_types; /* JSON array; NULL: any */
    const char *observers;   /* JSON array of session ids, in order */
};

struct hf_process_filter {
    uint32_t size;
    const char *id;        /* this one only, or a unique prefix or suffix of it */
    bool all;              /* finished ones too */
    enum hf_status status; /* NONE: any; a finished one needs no `all` */
    bool waiting;          /* only those that wait */
    const char *originator;
    const char *identity_kind;
    const char *identity_label;
    const char *definition; /* equal as JSON */
    const char *label;      /* "KEY=VALUE": has this label */
    const char *cause_occurrence;
    const char *cause_subscription;
    const char *env_ref;
    const char *observer; /* a session that may see it */
    hf_ms created_from;   /* at or after; 0: any */
    hf_ms created_before; /* before; 0: any */
    size_t limit;         /* 0: 100 */
    const char *after;    /* cursor of an earlier page */
    bool newest;          /* from the newest down */
    bool brief; /* without payload, resume_payload, result, retry_policy and holder */
};

/* A page of processes, oldest first or newest first; it owns the memory it shows. Pages end as
 * those of hf_work_list, and so do their cursors. By id: finished ones too,
 * HF_ENOTFOUND for none, naming "retained" where it was pruned and "id" where it was not. */
struct hf_processes;
HF_API HF_MUST_USE int hf_process_list(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_process_filter *filter,
                                       struct hf_processes **ret_processes,
                                       struct hf_err *err);
HF_API size_t hf_processes_count(const struct hf_processes *processes);
HF_API const struct hf_process *hf_processes_at(const struct hf_processes *processes,
                                                size_t i);
HF_API const char *hf_processes_next(const struct hf_processes *processes);
HF_API void hf_processes_free(struct hf_processes *processes); /* NULL is fine */

/* The record of a process as JSON, twice: as the tables hold it, and as its events alone
 * tell it. Both are read at one moment, and are the same bytes unless tables were changed
 * outside the store. Free each with hf_store_text_free. HF_EINVAL, HF_ENOTFOUND, HF_EAMBIGUOUS,
 * and the errors of a store. */
HF_API HF_MUST_USE int hf_process_records(struct hf_store *store,
                                          const struct hf_caller *who, const char *id,
                                          char **ret_stored, char **ret_folded,
                                          struct hf_err *err);

/* ---- facts that come later ----------------------------------------------------------- */

enum hf_tell {
    HF_TELL_APPEND,    /* name: type, [payload key wake]: an event of its own         */
    HF_TELL_SIGNAL,    /* name, [payload key]: event "signal.NAME"; ends a wait for
                             the reference "signal.NAME". One that is not waited for yet
                             is kept, and ends the next wait for it. A started
                             owner_bound process stays running then, with the same
                             token; if it waits, its owner's resume takes the signal     */
    HF_TELL_OBSERVE,   /* name: a session that may see it from now on                 */
    HF_TELL_UNOBSERVE, /* name: a session that may not any more                       */
    HF_TELL_RETARGET,  /* [name]: the session that is woken; NULL: none. Queued wakes
                             are cancelled as "retargeted"              */
    HF_TELL_EXTERNAL_REF, /* name: its name in another system; written once              */
    HF_TELL_COUNT
};

struct hf_process_tell {
    uint32_t size;
    enum hf_tell what;
    const char *id;
    const char *name;
    const char *payload; /* JSON */
    const char *key;     /* the same key with the same content is stored once */
    bool wake;           /* of an append: wakes its session, in the same transaction */
};

/* Tell a process something: its fact and its event in one transaction. *ret_repeated says
 * that the fact is stored already and nothing was written. HF_ETRANSITION once it has
 * ended (except for a repeat), HF_ECONFLICT for a key or an external reference with other
 * content, HF_EINVAL for an event type that is the ledger's own or was not declared. */
HF_API HF_MUST_USE int hf_process_tell(struct hf_store *store,
                                       const struct hf_caller *who,
                                       const struct hf_process_tell *tell,
                                       bool *ret_repeated, struct hf_err *err);

/* Wait, at most wait_ms, until the process has ended, and return its row; woken by its
 * end. HF_EBUSY when it has not ended by then, HF_ENOTFOUND naming "retained" when it was
 * pruned. Every second it sweeps a bounded number of rows (hf_work_sweep), so that it sees the
 * end of a process whose owner is dead. A unit that is no process can be awaited too;
 * such a waiter is woken by every commit, and looks at most every 20 ms. */
HF_API HF_MUST_USE int hf_process_await(struct hf_store *store,
                                        const struct hf_caller *who, const char *id,
                                        hf_ms wait_ms, struct hf_answer **ret_answer,
                                        struct hf_err *err);

/* A unit that could not be ended, and why: HF_EHELD where another owner holds it or its
 * lane, HF_ETRANSITION where it has ended meanwhile, or an error of the store. */
typedef void hf_each_deferred(void *user, const char *work_id, const struct hf_err *why);

struct hf_drain {
    uint32_t size;
    const char *owner;
    const char *incarnation;
    hf_each_deferred *deferred; /* NULL: only counted */
    void *user;
};
struct hf_drain_report {
    int64_t ended; /* abandoned by its own drain */
    int64_t deferred;
};
/* The lever of a host that goes down: end, as abandoned by its own drain, every started
 * owner_bound unit of this owner and incarnation. Units that are rerunnable, never
 * started, externally owned or another owner's stay as they are. HF_EINVAL, and the
 * errors of a store; an error of one unit is passed to `deferred`. */
HF_API HF_MUST_USE int hf_process_drain(struct hf_store *store,
                                        const struct hf_caller *who,
                                        const struct hf_drain *drain,
                                        struct hf_drain_report *ret_report,
                                        struct hf_err *err);

struct hf_prune_report {
    int64_t processes;
    int64_t events;
    int64_t grants; /* of their handles */
    int64_t chunks; /* of output */
};
/* Delete the processes that ended before now - older_than_ms, with all that is theirs, in
 * chunks. A row with its id, its outcome and the time of its deletion remains for 30 days.
 * HF_EINVAL, and the errors of a store. */
HF_API HF_MUST_USE int hf_process_prune(struct hf_store *store,
                                        const struct hf_caller *who, hf_ms older_than_ms,
                                        struct hf_prune_report *ret_report,
                                        struct hf_err *err);

/* ---- output ------------------------------------------------------------------------ */

/* The output of a command is kept by attempt, in chunks of HF_OUTPUT_CHUNK bytes: chunk k
 * begins at byte k * HF_OUTPUT_CHUNK. The beginning and the end are kept (limits
 * output_head_bytes and output_tail_bytes), the middle is counted. */
#define HF_OUTPUT_CHUNK 16384

enum hf_stream { HF_STDOUT, HF_STDERR, HF_STREAM_COUNT };

/* "stdout" or "stderr"; NULL for any other value. */
HF_API const char *hf_stream_word(enum hf_stream stream);

struct hf_output_chunk {
    enum hf_stream stream;
    int64_t chunk;
    struct hf_span data; /* the whole chunk so far; replaces the old one */
};

/* Facts about one attempt of a unit, in one transaction: chunks of output, chunks to forget,
 * and an event. They need no lease, since they say nothing about the outcome; but the attempt
 * must have been made (HF_ENOTFOUND). */
struct hf_output_add {
    uint32_t size;
    const char *id;
    int64_t attempt;
    const struct hf_output_chunk *chunks;
    size_t chunk_count;
    int64_t drop_from[HF_STREAM_COUNT]; /* forget the chunks from .. before */
    int64_t drop_before[HF_STREAM_COUNT];
    const char *event;   /* type, or NULL */
    const char *payload; /* JSON of the event */
};
/* Stores chunks of the output of an attempt. HF_EINVAL; HF_ENOTFOUND: the unit has no
 * such attempt; and the errors of a store. */
HF_API HF_MUST_USE int hf_output_add(struct hf_store *store, const struct hf_caller *who,
                                     const struct hf_output_add *add, struct hf_err *err);

/* Captured output owns the memory it shows. */
struct hf_output;
/* HF_EINVAL, HF_ENOTFOUND, HF_EAMBIGUOUS, and the errors of a store. */
HF_API HF_MUST_USE int hf_output_read(struct hf_store *store, const char *id,
                                      int64_t attempt, /* 0: the last that wrote */
                                      struct hf_output **ret_output, struct hf_err *err);
HF_API void hf_output_free(struct hf_output *output); /* NULL is fine */

struct hf_output_view {
    int64_t attempt;     /* 0: nothing was captured */
    int64_t bytes;       /* written by the command */
    int64_t lost;        /* of them not kept: the middle */
    struct hf_span head; /* all of it when nothing was lost */
    struct hf_span tail; /* empty when nothing was lost */
};
/* The kept parts of a stream; the spans live as long as the output. */
HF_API struct hf_output_view hf_output_view(const struct hf_output *output,
                                            enum hf_stream stream);

#ifdef __cplusplus
}
#endif
#endif
