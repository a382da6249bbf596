/* Tools of the cases about processes, in addition to kit.h. */
#ifndef HF_CONFORM_PROCESS_KIT_H
#define HF_CONFORM_PROCESS_KIT_H

#include "conform/kit.h"

/* Register one; source, kind and sizes are filled in where they are left out. */
const struct hf_item *kit_register(struct hf_conform *t, struct hf_process_spec wanted,
                                   struct hf_work_spec unit);
/* One of this disposition, all other fields left out: its id. */
const char *kit_process_of(struct hf_conform *t, enum hf_disposition disposition);
/* NULL where the call failed (t->code). */
const struct hf_processes *kit_processes(struct hf_conform *t,
                                         struct hf_process_filter filter);
size_t how_many(const struct hf_processes *processes);
/* One by its id; zeroed when there is none. */
const struct hf_process *kit_process(struct hf_conform *t, const char *id);
/* Told anew: true. */
bool kit_tell(struct hf_conform *t, struct hf_process_tell tell);
/* The record in the tables is the one made of the events, byte for byte. */
void kit_refold(struct hf_conform *t, const char *id);
/* Claimed by this owner's boot, for 30 seconds. */
struct held kit_taken(struct hf_conform *t, const char *id, const char *owner,
                      const char *boot);
/* Units of a session's queue in this status. */
size_t kit_wakes(struct hf_conform *t, const char *session, enum hf_status status);

#define registered(unit, ...)                                                            \
    kit_register(AT(t), (struct hf_process_spec){ __VA_ARGS__ },                         \
                 (struct hf_work_spec)unit)
#define UNIT(...)                                                                        \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }
#define processes(...) kit_processes(AT(t), (struct hf_process_filter){ __VA_ARGS__ })
#define process(id) kit_process(AT(t), (id))
#define tell(...) kit_tell(AT(t), (struct hf_process_tell){ __VA_ARGS__ })
#define REFOLDS(id) kit_refold(AT(t), (id))

#endif
