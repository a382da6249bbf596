/* Answers about processes, and what the verbs over them share. */
#ifndef HF_STORE_PROCESS_PROCESS_H
#define HF_STORE_PROCESS_PROCESS_H

#include "core/process/process.h"
#include "store/batch/fieldio.h"
#include "store/store.h"

struct hf_processes *hf_processes_new(const struct hf_alloc *alloc); /* NULL: no memory */

/* The rows that are stored next to a new unit that is a process. */
struct sql_facts {
    struct hf_process process; /* without its unit */
    const char *const *observers;
    size_t observer_count;
    const char *note; /* the event's payload */
};
/* Fills process.observers and note. */
int sql_facts_fill(struct hf_arena *arena, struct sql_facts *facts, struct hf_err *err);
/* Append the facts of a unit that the same batch makes; nothing where it makes none. */
void sql_process_add(struct hf_ops *ops, const struct hf_caller *who, const char *work_id,
                     const struct sql_facts *facts);

/* Read one process by its id, or a unique prefix or suffix of it; texts live in `ops`, which
 * is begun anew. HF_ENOTFOUND names "retained" where it was pruned. */
int sql_process_find(struct sql_store *store, struct hf_ops *ops, const char *id,
                     struct hf_row *ret_row, struct hf_process *ret_process,
                     struct hf_err *err);

#endif
