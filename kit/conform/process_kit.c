/* Verbs over processes in short form, for the conformance cases. As in kit.h, what they return
 * lives until the case ends. */

#include "conform/process_kit.h"

static void drop_answer(void *at)
{
    hf_answer_free(at);
}

static void drop_processes(void *at)
{
    hf_processes_free(at);
}

const struct hf_item *kit_register(struct hf_conform *t, struct hf_process_spec wanted,
                                   struct hf_work_spec unit)
{
    static const struct hf_item none;
    struct hf_answer *answer = NULL;
    if (t->failed)
        return &none;
    unit.size = sizeof(unit);
    unit.source = HF_SOURCE_MANUAL;
    unit.priority = -1;
    if (!unit.source_id)
        unit.source_id = kit_say(t, "p%lld", (long long)++t->made);
    wanted.size = sizeof(wanted);
    wanted.work = &unit;
    if (!wanted.identity_kind)
        wanted.identity_kind = "shell";
    t->code = kit_called(
        t, hf_process_register(t->store, &t->who, &wanted, &answer, kit_err(t)));
    if (t->code)
        return &none;
    kit_keep(t, answer, drop_answer);
    const struct hf_item *item = hf_answer_at(answer, 0);
    t->code = item->code;
    return item;
}

/* One of this disposition, all other fields left out. */
const char *kit_process_of(struct hf_conform *t, enum hf_disposition disposition)
{
    return kit_register(t, (struct hf_process_spec){ 0 },
                        (struct hf_work_spec){ .disposition = disposition })
        ->work.work_id;
}

const struct hf_processes *kit_processes(struct hf_conform *t,
                                         struct hf_process_filter filter)
{
    struct hf_processes *found = NULL;
    if (t->failed)
        return NULL;
    filter.size = sizeof(filter);
    t->code = kit_called(t,
                         hf_process_list(t->store, &t->who, &filter, &found, kit_err(t)));
    if (t->code == 0)
        kit_keep(t, found, drop_processes);
    return t->code == 0 ? found : NULL;
}

size_t how_many(const struct hf_processes *processes)
{
    return processes ? hf_processes_count(processes) : 0;
}

const struct hf_process *kit_process(struct hf_conform *t, const char *id)
{
    static const struct hf_process none;
    const struct hf_processes *found = kit_processes(
        t, (struct hf_process_filter){ .id = id });
    return how_many(found) == 1 ? hf_processes_at(found, 0) : &none;
}

/* Told anew: true. */
bool kit_tell(struct hf_conform *t, struct hf_process_tell tell)
{
    bool repeated = false;
    if (t->failed)
        return false;
    tell.size = sizeof(tell);
    t->code = kit_called(
        t, hf_process_tell(t->store, &t->who, &tell, &repeated, kit_err(t)));
    return t->code == 0 && !repeated;
}

/* The record in the tables is the one made of the events, byte for byte. */
void kit_refold(struct hf_conform *t, const char *id)
{
    char *stored = NULL, *folded = NULL;
    if (t->failed)
        return;
    int code = kit_called(
        t, hf_process_records(t->store, &t->who, id, &stored, &folded, kit_err(t)));
    kit_code(t, "hf_process_records", 0, code);
    if (code)
        return;
    kit_text(t, "the record from its events", stored, folded);
    hf_store_text_free(t->store, stored);
    hf_store_text_free(t->store, folded);
}

struct held kit_taken(struct hf_conform *t, const char *id, const char *owner,
                      const char *boot)
{
    const struct hf_item *item = claim(.owner = owner, .incarnation = boot, .id = id,
                                       .ttl_ms = SEC(30));
    return (struct held){ item->work.work_id, item->token };
}

size_t kit_wakes(struct hf_conform *t, const char *session, enum hf_status status)
{
    return count_of(list(.queue = say("session:%s", session), .statuses = &status,
                         .status_count = 1));
}
