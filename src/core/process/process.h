/* The columns of a process next to its unit, its record as a fold of its events, and the unit
 * with which it wakes a session. Pure. */
#ifndef HF_CORE_PROCESS_PROCESS_H
#define HF_CORE_PROCESS_PROCESS_H

#include <holdfast/process.h>

#include "base/arena.h"
#include "core/ledger/fields.h"
#include "core/ledger/row.h"

/* All of struct hf_process but its unit, in the order of sql/process.sql's columns;
 * `observers`, which is in no column, is the last. */
extern const struct hf_field hf_process_fields[];
extern const size_t hf_process_field_count;
#define HF_PROCESS_COLUMNS 11

extern const struct hf_shape hf_process_shape; /* struct hf_process */

/* The facts of a registration as JSON, under the names of the fields: the payload of the
 * event that begins the record. NULL: no memory. */
const char *hf_process_facts(struct hf_arena *arena, const struct hf_process *process);

/* A list of texts as JSON; NULL: no memory. */
const char *hf_texts_json(struct hf_arena *arena, const char *const *texts, size_t count);

/* The record as JSON: what of a process is told by its events. NULL: no memory. */
const char *hf_process_record(struct hf_arena *arena, const struct hf_process *process);

/* The record in the making, from nothing but events in their order. Events that say nothing
 * about the record are passed over. Texts live in the arena. */
struct hf_fold {
    struct hf_arena *arena;
    struct hf_process process;
};
void hf_fold_begin(struct hf_fold *fold, struct hf_arena *arena);
/* HF_ECORRUPT: an event that cannot be read. */
HF_MUST_USE int hf_fold_event(struct hf_fold *fold, const struct hf_event *event,
                              struct hf_err *err);

/* A unit that wakes a session: in the session's own queue and lane, one a run id of its
 * source. Texts are borrowed or come from the arena; run_id and payload may be NULL, which
 * says that there was no memory for them. */
struct hf_waking {
    const char *session_id;
    const char *source_id;
    const char *run_id;
    const char *work_id; /* whose child it is */
    const char *payload; /* JSON */
};
HF_MUST_USE int hf_wake_unit(struct hf_arena *arena, const struct hf_waking *waking,
                             struct hf_work_spec *ret_new, struct hf_err *err);

/* The unit with which a unit wakes the session of its row, since `event` happened. */
struct hf_wake_cause {
    const char *event;
    const char *status;  /* that it has by then */
    const char *run_id;  /* tells the wakes of one unit apart */
    const char *payload; /* JSON; NULL: none */
};
HF_MUST_USE int hf_wake_of_row(struct hf_arena *arena, const struct hf_row *row,
                               const struct hf_wake_cause *cause,
                               struct hf_work_spec *ret_new, struct hf_err *err);

#endif
