/* Background processes, and the output of the commands that units run.
 *
 * A process is a unit of work (work.h) with facts of its own: who it is, who began it, who
 * is woken by it, who may see it. Its status is its unit's and stands nowhere else; what is
 * done to it is done with the verbs of work.h. What becomes of it when its owner is lost is
 * its disposition, which whoever registers it must declare: there is no default.
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

struct hf_process_new {
    uint32_t size;
    const struct hf_new
        *work; /* its unit; the disposition must be rerunnable, owner_bound
                                  or externally_owned, the kind is "process" if not given */
    const char *identity_kind; /* what sort of process: "shell", "subagent"; needed */
    const char *identity_label;
    const char *definition;   /* JSON: what it was made from */
    const char *labels;       /* JSON object of texts */
    const char *originator;   /* a session's id, "host" or "host:SCOPE"; NULL: "host" */
    const char *wake_session; /* woken by its events; does not make it an observer */
    const char *cause_occurrence;
    const char *cause_subscription;
    const char *env_ref;
    const char *const
        *event_types; /* that it may append; none: any that is not reserved */
    size_t event_type_count;
    const struct hf_claim *claim; /* NULL; else it is made and claimed in one transaction,
                                     and the item has the token; id and queue are ignored */
};

/* Register a process. The same request again gives the same process (created = false), with
 * other content HF_ECONFLICT. HF_EINVAL names the field at fault: "disposition" when it was
 * left out. */
HF_API HF_MUST_USE int hf_process_register(struct hf_store *store,
                                           const struct hf_caller *who,
                                           const struct hf_process_new *request,
                                           struct hf_answer **ret_answer,
                                           struct hf_err *err);

/* ---- output ------------------------------------------------------------------------ */

/* What a command wrote is kept by attempt, in chunks of HF_OUTPUT_CHUNK bytes: chunk k
 * begins at byte k * HF_OUTPUT_CHUNK. The beginning and the end are kept (limits
 * output_head_bytes and output_tail_bytes), the middle is counted. */
#define HF_OUTPUT_CHUNK 16384

enum hf_stream { HF_STDOUT, HF_STDERR, HF_STREAM_COUNT };

/* "stdout" or "stderr"; NULL for anything else. */
HF_API const char *hf_stream_word(enum hf_stream stream);

struct hf_output_chunk {
    enum hf_stream stream;
    int64_t chunk;
    struct hf_span data; /* the whole chunk so far; replaces what was there */
};

/* Facts about one attempt of a unit, in one transaction: chunks of output, chunks to forget,
 * and an event. They need no lease, since they say nothing of the outcome; but the attempt
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
HF_API HF_MUST_USE int hf_output_add(struct hf_store *store, const struct hf_caller *who,
                                     const struct hf_output_add *add, struct hf_err *err);

/* Captured output owns the memory it shows. */
struct hf_output;
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
/* What is kept of a stream; the spans live as long as the output. */
HF_API struct hf_output_view hf_output_view(const struct hf_output *output,
                                            enum hf_stream stream);

#ifdef __cplusplus
}
#endif
#endif
