/* Steps: what one transaction holds, the commit, and the history that the machine is lent.
 *
 * What a turn came to since the last step is pending: intents (begun), outcomes (settled), blobs
 * and records. drive_flush makes the pending part the step that is being stored, and the other of
 * the two becomes the one that is filled. The machine reads its history as one base: the records
 * that the worker lent, and behind them those that the drive holds, which the turn itself has
 * added. */
#include "agent/drive/drive.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

/* ---- the history ------------------------------------------------------------------- */

static const struct hf_record *get_record(void *user, uint64_t i)
{
    struct hf_drive *drive = user;
    if (i < drive->lent.count)
        return drive->lent.get(drive->lent.user, i);
    return drive->held[i - drive->lent.count].record;
}

static void put_record(void *user, uint64_t i, const struct hf_record *record)
{
    struct hf_drive *drive = user;
    if (i < drive->lent.count && drive->lent.put)
        drive->lent.put(drive->lent.user, i, record);
}

void drive_base_init(struct hf_drive *drive, const struct hf_base *lent)
{
    drive->lent = *lent;
    drive->base = *lent;
    drive->base.user = drive;
    drive->base.get = get_record;
    drive->base.put = put_record;
}

static bool is_transient(const struct hf_record *record)
{
    return record->kind == HF_RECORD_MESSAGE && record->message->origin &&
           record->message->origin->transient;
}

static int grow(struct hf_drive *drive)
{
    size_t room = drive->held_room ? 2 * drive->held_room : 8;
    void *more = drive->alloc->realloc(drive->alloc->user, drive->held,
                                       room * sizeof(*drive->held));
    if (!more)
        return HF_ENOMEM;
    drive->held = more;
    drive->held_room = room;
    return 0;
}

/* A copy of one of the machine's own records, which it forgets when it is rebased. */
static int hold_one(struct hf_drive *drive, const struct hf_record *record)
{
    struct drive_held held = { 0 };
    struct hf_bytes json = { 0 };
    if (drive->held_count == drive->held_room && grow(drive))
        return HF_ENOMEM;
    int rc = hf_record_encode(drive->alloc, record, &json, &drive->err);
    if (rc == 0)
        rc = hf_record_decode(drive->alloc, (struct hf_span){ json.at, json.len },
                              &held.owner, &held.record, &drive->err);
    drive->held_bytes += json.len;
    hf_bytes_free(&json);
    if (rc)
        return rc;
    drive->held[drive->held_count++] = held;
    return 0;
}

int drive_hold(struct hf_drive *drive, uint64_t from, uint64_t to)
{
    int rc = 0;
    for (uint64_t i = from; rc == 0 && i < to; i++) {
        const struct hf_record *record = hf_turn_record(drive->turn, i);
        rc = record ? hold_one(drive, record) : HF_EBASE;
    }
    return rc;
}

/* ---- what is pending --------------------------------------------------------------- */

/* Room for one more item in an array of the arena; the old one is left to the arena. */
static void *more_room(struct hf_arena *arena, void *old, size_t count, size_t each)
{
    void *made = hf_arena_array(arena, count ? 2 * count : 4, each);
    if (made && count > 0)
        memcpy(made, old, count * each);
    return made;
}

int drive_begin(struct hf_drive *drive, const struct hf_effect_entry *entry)
{
    struct drive_pending *pending = drive_pending(drive);
    if (pending->begun_count == pending->begun_room) {
        void *made = more_room(&pending->arena, pending->begun, pending->begun_count,
                               sizeof(*entry));
        if (!made)
            return HF_ENOMEM;
        pending->begun = made;
        pending->begun_room = pending->begun_count ? 2 * pending->begun_count : 4;
    }
    struct hf_effect_entry *kept = &pending->begun[pending->begun_count];
    *kept = *entry;
    kept->status = HF_ENTRY_STARTED;
    kept->fence = drive->fence;
    kept->key = hf_arena_text(&pending->arena, entry->key);
    if (!kept->key)
        return HF_ENOMEM;
    pending->begun_count++;
    pending->dirty = true;
    return 0;
}

int drive_settle(struct hf_drive *drive, const struct hf_effect_settled *settled)
{
    struct drive_pending *pending = drive_pending(drive);
    if (pending->settled_count == pending->settled_room) {
        void *made = more_room(&pending->arena, pending->settled, pending->settled_count,
                               sizeof(*settled));
        if (!made)
            return HF_ENOMEM;
        pending->settled = made;
        pending->settled_room = pending->settled_count ? 2 * pending->settled_count : 4;
    }
    struct hf_effect_settled *kept = &pending->settled[pending->settled_count];
    *kept = *settled;
    kept->key = hf_arena_text(&pending->arena, settled->key);
    kept->outcome.at = hf_arena_copy(&pending->arena, settled->outcome.at,
                                     settled->outcome.len);
    if (settled->usage)
        kept->usage = hf_arena_dup(&pending->arena, settled->usage,
                                   sizeof(*settled->usage));
    if (!kept->key || !kept->outcome.at || (settled->usage && !kept->usage))
        return HF_ENOMEM;
    pending->settled_count++;
    pending->dirty = true;
    return 0;
}

static void add_blob(struct drive_pending *pending, const uint8_t hash[32],
                     struct hf_span bytes)
{
    struct hf_effect_blob *blob = &pending->blobs[pending->blob_count++];
    memcpy(blob->hash, hash, sizeof(blob->hash));
    blob->bytes = bytes;
}

int drive_add_blobs(struct hf_drive *drive, const struct hf_request *request)
{
    struct drive_pending *pending = drive_pending(drive);
    pending->blob_count = 0; /* one model call is begun in a step at most */
    add_blob(pending, request->prompt_hash, request->prompt);
    add_blob(pending, request->tools_hash, request->tools);
    add_blob(pending, request->options_hash, request->options);
    return 0;
}

/* ---- a step ------------------------------------------------------------------------ */

/* Moves the records that were held since the last step into the base. */
static int rebase(struct hf_drive *drive, size_t from)
{
    struct hf_base base = drive->base;
    int rc = 0;
    for (size_t i = from; rc == 0 && i < drive->held_count; i++) {
        const struct hf_record *record = drive->held[i].record;
        rc = hf_record_chain(base.digest, record, base.digest, &drive->err);
        base.count++;
        if (hf_record_is_step(record) && base.last_step_known)
            base.last_step = base.count;
    }
    if (rc == 0)
        rc = hf_turn_rebase(drive->turn, &base, &drive->err);
    if (rc == 0)
        drive->base = base;
    return rc;
}

/* The records of a step, as one array; how many of them become nodes is added to *nodes. */
static int show_records(struct hf_drive *drive, struct hf_arena *arena, size_t from,
                        int64_t *nodes)
{
    size_t count = drive->held_count - from;
    drive->records = hf_arena_array(arena, count + 1, sizeof(struct hf_record));
    if (!drive->records)
        return HF_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        drive->records[i] = *drive->held[from + i].record;
        *nodes += is_transient(&drive->records[i]) ? 0 : 1;
    }
    return 0;
}

int drive_flush(struct hf_drive *drive, bool away)
{
    struct drive_pending *pending = drive_pending(drive);
    size_t from = pending->record_from;
    size_t count = drive->held_count - from;
    memcpy(drive->chain, drive->base.digest, sizeof(drive->chain));
    drive->nodes = drive->node_count;
    int rc = show_records(drive, &pending->arena, from, &drive->nodes);
    if (rc == 0 && count > 0)
        rc = rebase(drive, from);
    if (rc == 0)
        rc = hf_turn_save(drive->turn, &drive->stored_save, &drive->err);
    if (rc)
        return rc;
    drive->stored = (struct hf_drive_step){
        .step = drive->step,
        .node_count = drive->node_count,
        .chain = drive->chain,
        .records = drive->records,
        .record_count = count,
        .save = { drive->stored_save.at, drive->stored_save.len },
        .begun = pending->begun,
        .begun_count = pending->begun_count,
        .settled = pending->settled,
        .settled_count = pending->settled_count,
        .blobs = pending->blobs,
        .blob_count = pending->blob_count,
        .away = away,
        .active_ms = drive->mono - drive->counted,
    };
    rc = drive_list_waits(drive, &pending->arena, &drive->stored);
    if (rc)
        return rc;
    drive_send(drive);
    drive->storing = true;
    drive->store_said = false;
    drive->now ^= 1;
    drive_pending(drive)->record_from = drive->held_count;
    return 0;
}

void drive_clear(struct drive_pending *pending)
{
    hf_arena_trim(&pending->arena, 4096);
    pending->begun = NULL;
    pending->settled = NULL;
    pending->begun_count = pending->begun_room = 0;
    pending->settled_count = pending->settled_room = 0;
    pending->blob_count = 0;
    pending->dirty = false;
}

void drive_stored(struct hf_drive *drive)
{
    drive->storing = false;
    drive->store_tries = 0;
    drive->step++;
    drive->node_count = drive->nodes;
    drive->counted += drive->stored.active_ms;
    hf_bytes_free(&drive->stored_save);
    drive->stored_save = (struct hf_bytes){ 0 };
    drive_clear(&drive->pending[drive->now ^ 1]);
}

static enum hf_status status_of(enum hf_outcome_kind kind)
{
    if (kind <= HF_OUTCOME_FRAME_SWITCH)
        return HF_STATUS_DONE;
    return kind == HF_OUTCOME_CANCELLED ? HF_STATUS_CANCELLED : HF_STATUS_FAILED;
}

/* No record of the turn holds the final answer. */
static bool has_answer(const struct hf_outcome *outcome)
{
    return outcome->kind == HF_OUTCOME_ASSISTANT_MESSAGE && outcome->message;
}

int drive_make_commit(struct hf_drive *drive)
{
    struct drive_pending *pending = drive_pending(drive);
    const struct hf_outcome *outcome = hf_turn_outcome(drive->turn);
    size_t from = drive->held_count;
    int64_t nodes = 0;
    int rc = drive_hold(drive, drive->base.count, hf_turn_record_count(drive->turn));
    if (rc == 0)
        rc = show_records(drive, &pending->arena, from, &nodes);
    if (rc == 0)
        rc = hf_outcome_encode(drive->alloc, outcome, &drive->outcome, &drive->err);
    if (rc)
        return rc;
    size_t count = drive->held_count - from;
    if (has_answer(outcome))
        drive->records[count++] = (struct hf_record){ .message = outcome->message };
    drive->commit = (struct hf_drive_commit){
        .step = drive->step,
        .node_count = drive->node_count,
        .chain = drive->base.digest,
        .records = drive->records,
        .record_count = count,
        .status = drive->ended ? drive->ended : status_of(outcome->kind),
        .outcome = { drive->outcome.at, drive->outcome.len },
        .usage = hf_turn_usage(drive->turn),
        .active_ms = drive->mono - drive->counted,
    };
    drive->committing = true;
    drive->storing = true;
    drive->store_said = false;
    return 0;
}

int drive_commit_cancelled(struct hf_drive *drive)
{
    const struct hf_evidence evidence = { .request_id = "session", .origin = "session" };
    struct hf_outcome outcome = { .kind = HF_OUTCOME_CANCELLED, .evidence = &evidence };
    const struct hf_outcome *was = hf_turn_outcome(drive->turn);
    hf_bytes_free(&drive->outcome);
    drive->outcome = (struct hf_bytes){ 0 };
    int rc = hf_outcome_encode(drive->alloc, &outcome, &drive->outcome, &drive->err);
    if (rc)
        return rc;
    if (has_answer(was))
        drive->commit.record_count--;
    drive->commit.status = HF_STATUS_CANCELLED;
    drive->commit.outcome = (struct hf_span){ drive->outcome.at, drive->outcome.len };
    drive->store_said = false;
    return 0;
}

struct hf_effect_entry *drive_entry(struct hf_drive *drive, uint64_t effect,
                                    const char *call_id)
{
    struct hf_effect_entry *found = NULL;
    int64_t attempt = -1;
    for (size_t i = 0; i < drive->entry_count; i++) {
        struct hf_effect_name name;
        struct hf_effect_entry *entry = &drive->entries[i];
        if (hf_effect_key_read(entry->key, &name) && name.effect == effect &&
            hf_same(name.call_id, call_id ? call_id : "") && name.attempt > attempt) {
            found = entry;
            attempt = name.attempt;
        }
    }
    return found;
}
