/* Requests as data: one row per value that a caller can pass.
 *
 * A table describes the members of one request struct: their names, kinds, bounds and help.
 * The command line, JSON objects and the spool read requests by these rows, and help, manual
 * pages and `holdfast call --list` are printed from them. A name is that of the column where
 * there is one. This part reads no file and no clock. */
#ifndef HF_CORE_INPUTS_INPUTS_H
#define HF_CORE_INPUTS_INPUTS_H

#include <holdfast/attention.h>
#include <holdfast/bounds.h>
#include <holdfast/job.h>
#include <holdfast/journal.h>
#include <holdfast/overview.h>
#include <holdfast/process.h>
#include <holdfast/schedule.h>
#include <holdfast/session.h>
#include <holdfast/trigger.h>
#include <holdfast/wait.h>
#include <holdfast/work.h>

#include "base/arena.h"
#include "base/json.h"
#include "core/ledger/fields.h" /* words */

enum hf_in_kind {
    HF_IN_FLAG,  /* bool */
    HF_IN_TEXT,  /* const char *; `words` are usual values, and others are legal */
    HF_IN_TEXTS, /* const char *const *, and a size_t count next to it */
    HF_IN_PATH,  /* const char *: any bytes; always HF_IN_LOCAL */
    HF_IN_JSON,  /* const char *: the text as it was received */
    HF_IN_WORD,  /* one of `words`: const char *, or an enum whose first value is `min` */
    HF_IN_WORDS, /* const enum *, and a size_t count next to it */
    HF_IN_INT,   /* a whole number from min to max */
    HF_IN_MS,    /* hf_ms; the shell writes "45s", JSON a number of milliseconds */
    HF_IN_INSTANT, /* hf_ms; a time as text, or a number of milliseconds in JSON */
};

#define HF_IN_NEEDED 1u /* it is an error to leave it out */
#define HF_IN_BARE 2u   /* the shell takes it without its name too */
#define HF_IN_LOCAL                                                                      \
    4u /* means something on this machine only: taken from the shell alone */
#define HF_IN_PAIRS 8u /* JSON: the shell takes KEY=VALUE several times, for an object */
#define HF_IN_FILE 16u /* JSON: the shell takes the name of a file that holds it */

struct hf_input {
    const char *name;  /* NULL ends a table */
    const char *value; /* what help calls the value; NULL for a flag */
    enum hf_in_kind kind;
    unsigned flags;
    const char *help;
    const char *const *words; /* NULL ends */
    int64_t min;
    int64_t max;
    enum hf_bound
        bound; /* instead of `max`, where it is in the table of bounds; 0: none */
    const char *option; /* the shell's name; NULL: the name, with dashes */
    size_t offset;      /* in the request */
    size_t width; /* of the member; 0: it is no member, and only the shell reads it */
};

/* The columns `offset` and `width` of a member. */
#define HF_IN_AT(type, member)                                                           \
    .offset = offsetof(struct type, member), .width = sizeof(((struct type *)0)->member)

/* The largest number, or size in bytes, that the input takes. INT64_MAX: no bound. */
int64_t hf_input_max(const struct hf_input *input);

/* Whether the input is one of several values: it may be given more than once. */
bool hf_input_many(const struct hf_input *input);

/* The shell's name without its dashes, in `out`. */
#define HF_INPUT_NAME 40
const char *hf_input_option(const struct hf_input *input, char out[HF_INPUT_NAME]);

/* Checks one value that was written as text. `label` names the input in errors. Numbers,
 * times and words of an enum are stored in *ret_number; it stays untouched for other kinds.
 * HF_IN_JSON is not checked here. */
HF_MUST_USE int hf_input_parse(const struct hf_input *input, const char *label,
                               const char *text, int64_t *ret_number, struct hf_err *err);

/* Stores a value that was checked. A text stays borrowed. */
void hf_input_store_text(const struct hf_input *input, const char *text, void *request);
void hf_input_store_number(const struct hf_input *input, int64_t number, void *request);
/* Stores several texts. HF_IN_WORDS takes its array from the arena; HF_ENOMEM. */
HF_MUST_USE int hf_input_store_texts(const struct hf_input *input,
                                     const char *const *texts, size_t count,
                                     struct hf_arena *arena, void *request);

/* The checks of hf_input_parse for a number that was not written as text. */
HF_MUST_USE int hf_input_check_number(const struct hf_input *input, int64_t number,
                                      struct hf_err *err);

/* The member of a request: its number, whatever its width; its text. */
int64_t hf_input_number(const struct hf_input *input, const void *request);
const char *hf_input_text(const struct hf_input *input, const void *request);

/* ---- JSON ------------------------------------------------------------------------- */

/* A table and the request that it describes. A list of parts ends with a NULL table. */
struct hf_input_part {
    const struct hf_input *table;
    void *request;
};

struct hf_input_reading {
    const struct hf_input_part *parts;
    struct hf_arena *arena;
    bool local;     /* local inputs are accepted, and texts that begin with @ */
    bool canonical; /* JSON values are stored in canonical form */
    const char
        *unknown; /* "colour …": of a member that no table has; NULL: a general text */
    uint64_t given; /* out: bit i is input i of all parts, in their order */
    struct hf_err *err;
};

/* Reads an object, whose text hf_json_check accepted, into the requests. Null is as good as
 * leaving a member out. A JSON input NAME can be given as NAME_text, a string that holds it.
 * HF_EINVAL or HF_ETOOBIG naming the member: one that no table has (with the nearest name), a
 * wrong type, a word or number out of bounds, a local one, one that is needed and missing.
 * The requests may be filled in part then. */
HF_MUST_USE int hf_inputs_read(struct hf_span object, struct hf_input_reading *reading);

/* Writes each member that differs from the blank request, into the object that is open. JSON
 * is written as NAME_text, since its exact bytes matter. */
void hf_inputs_write(struct hf_json *json, const struct hf_input *table,
                     const void *request, const void *blank);

/* ---- the tables ------------------------------------------------------------------- */

/* Requests that combine a public struct with what one operation needs in addition. The public
 * struct comes first, so that its rows serve both. */
struct hf_create_request {
    struct hf_work_spec work;
    const char *spool;
    hf_ms budget_ms;
};
struct hf_renew_request {
    struct hf_change change;
    hf_ms fresh_within_ms; /* of struct hf_renew_all */
};
struct hf_list_request {
    struct hf_filter filter;
    bool all;
};
struct hf_redrive_request {
    struct hf_filter filter;
    const char *reason;
    const char *error_class;
    int64_t most;
    bool dry_run;
};
struct hf_read_request { /* of one unit, or of a page */
    const char *id;
    int64_t after;
    int64_t limit;
    int64_t attempt;
    const char *stream;
    bool follow; /* for the machine that shows it */
};
struct hf_limit_request {
    struct hf_limit limit;
    bool none;
};
struct hf_policy_request {
    struct hf_policy policy;
    const char *scope;
};
struct hf_complete_request {
    struct hf_change change;
    const char *status; /* a word, since those of this verb are not all in a row */
};
struct hf_attention_request {
    struct hf_attention_query query;
    bool watch; /* the rest is for the machine that watches */
    hf_ms interval_ms;
    const char *exec;
    hf_ms exec_timeout_ms;
};
struct hf_prune_request {
    hf_ms older_than_ms;
    int64_t limit;
};
struct hf_start_request {
    struct hf_process_spec process;
    struct hf_work_spec work;
    const char *const *command; /* the rest is for the machine that runs a command */
    size_t command_count;
    const char *const *evidence;
    size_t evidence_count;
    hf_ms timeout_ms;
    bool no_run;
    const char *created_id; /* stored by the operation: the new process; NULL: none */
};
struct hf_tell_request {
    struct hf_process_tell tell;
    bool end; /* of an observation */
    bool none;
};
struct hf_await_request {
    const char *id;
    hf_ms wait_ms;
};
#define HF_SLOTS_MAX 1000 /* slots to come that one answer shows */
struct hf_schedule_request {
    struct hf_schedule_spec wanted;
    int64_t revision;
    const char *reason;
    hf_ms from; /* slots after this */
    int64_t count;
    int64_t skips;
};
struct hf_subscribe_request {
    struct hf_subscription_spec wanted;
    int64_t revision;
};
struct hf_sync_request {
    const char *set; /* the JSON; the shell stores the name of its file first */
};
struct hf_say_request {
    const char *session_id;
    const char *text;
    const char *message;       /* JSON */
    const char *const *attach; /* files of this machine */
    size_t attach_count;
    const char *source_key;
    bool wait;
    hf_ms timeout_ms;
};
struct hf_session_turn_request {
    const char *session_id;
    const char *name; /* of the turn or of an input; NULL: the last turn */
};
struct hf_wait_request {
    const char *wait_id;
    const char *key;
    enum hf_wait_word word;
    const char *value; /* JSON */
    const char *reason;
    hf_ms valid_ms;
};
struct hf_effect_page {
    const char *after;
    int64_t limit;
};
struct hf_session_page {
    const char *session_id;
    int64_t ordinal;   /* records after this one; -1: from the first */
    const char *after; /* inputs after this one */
    int64_t limit;
};

extern const struct hf_work_spec hf_work_spec_blank;
extern const struct hf_input hf_caller_inputs[];
extern const struct hf_input hf_work_spec_inputs[];
extern const struct hf_input
    hf_work_spec_limit_inputs[]; /* more of hf_work_spec: limits and shares */
extern const struct hf_input hf_spool_inputs[]; /* more of hf_create_request */
extern const struct hf_input hf_claim_inputs[];
extern const struct hf_input hf_renew_inputs[];
extern const struct hf_input hf_holder_inputs[];
extern const struct hf_input hf_hand_back_inputs[];
extern const struct hf_input hf_wait_inputs[];
extern const struct hf_input hf_close_out_inputs[];
extern const struct hf_input hf_fail_inputs[];
extern const struct hf_input hf_append_inputs[];
extern const struct hf_input hf_resume_inputs[];
extern const struct hf_input hf_reason_inputs[];
extern const struct hf_input hf_requeue_inputs[];
extern const struct hf_input hf_cancel_inputs[];
extern const struct hf_input hf_redrive_inputs[];
extern const struct hf_input hf_list_inputs[];
extern const struct hf_input hf_id_inputs[];
extern const struct hf_input hf_events_inputs[];
extern const struct hf_input hf_output_inputs[];
extern const struct hf_input hf_sweep_inputs[];
extern const struct hf_input hf_prune_inputs[];
extern const struct hf_input hf_job_inputs[];
extern const struct hf_input hf_job_list_inputs[];
extern const struct hf_input hf_job_id_inputs[];
extern const struct hf_input hf_job_reason_inputs[];
extern const struct hf_input hf_job_release_inputs[];
extern const struct hf_input hf_job_now_inputs[];
extern const struct hf_input hf_schedule_inputs[];
extern const struct hf_input hf_schedule_update_inputs[];
extern const struct hf_input hf_schedule_pause_inputs[];
extern const struct hf_input hf_schedule_name_inputs[];
extern const struct hf_input hf_schedule_run_now_inputs[];
extern const struct hf_input hf_schedule_show_inputs[];
extern const struct hf_input hf_schedule_list_inputs[];
extern const struct hf_input hf_preview_inputs[];
extern const struct hf_input hf_sync_inputs[];
extern const struct hf_input hf_limit_inputs[];
extern const struct hf_input hf_policy_inputs[];
extern const struct hf_input hf_policy_show_inputs[];
extern const struct hf_input hf_log_inputs[];
extern const struct hf_input hf_attention_inputs[];
extern const struct hf_input hf_ack_inputs[];
extern const struct hf_input hf_holder_list_inputs[];
extern const struct hf_input hf_occurrence_inputs[];
extern const struct hf_input hf_subscribe_inputs[];
extern const struct hf_input hf_trigger_update_inputs[];
extern const struct hf_input hf_trigger_change_inputs[];
extern const struct hf_input hf_trigger_show_inputs[];
extern const struct hf_input hf_trigger_list_inputs[];
extern const struct hf_input hf_emit_inputs[];
extern const struct hf_input hf_deliveries_inputs[];
extern const struct hf_input hf_granted_inputs[];
extern const struct hf_input hf_process_start_inputs[];
extern const struct hf_input hf_process_list_inputs[];
extern const struct hf_input hf_process_show_inputs[];
extern const struct hf_input hf_process_signal_inputs[];
extern const struct hf_input hf_process_observe_inputs[];
extern const struct hf_input hf_process_retarget_inputs[];
extern const struct hf_input hf_process_await_inputs[];
extern const struct hf_input hf_process_prune_inputs[];
extern const struct hf_input hf_process_drain_inputs[];
extern const struct hf_input hf_process_granted_inputs[];
extern const struct hf_input hf_process_events_inputs[];
extern const struct hf_input hf_process_cancel_inputs[];
extern const struct hf_input hf_process_reason_inputs[];
extern const struct hf_input hf_complete_inputs[];
extern const struct hf_input hf_session_spec_inputs[]; /* of hf_session_spec */
extern const struct hf_input hf_session_send_inputs[];
extern const struct hf_input hf_session_list_inputs[];
extern const struct hf_input hf_session_show_inputs[];
extern const struct hf_input hf_session_turn_inputs[];
extern const struct hf_input hf_session_log_inputs[];
extern const struct hf_input hf_session_inputs_inputs[];
extern const struct hf_input hf_turn_cancel_inputs[]; /* of hf_session_cancel */
extern const struct hf_input hf_waits_list_inputs[];  /* of hf_wait_filter */
extern const struct hf_input hf_waits_show_inputs[];
extern const struct hf_input hf_waits_resolve_inputs[];
extern const struct hf_input hf_waits_approve_inputs[];
extern const struct hf_input hf_waits_deny_inputs[];
extern const struct hf_input hf_waits_revoke_inputs[]; /* of hf_wait_revoke */
extern const struct hf_input hf_waits_rotate_inputs[];
extern const struct hf_input hf_effect_list_inputs[];
extern const struct hf_input hf_effect_resolve_inputs[]; /* of hf_journal_resolve */

#endif
