/* A drive carries one turn of the turn machine from its claim to its commit: events go in
 * (hf_drive_feed), actions come out (hf_drive_next), and a worker performs them.
 *
 * This file makes and frees drives, chooses the next action, and takes events. The machine asks for
 * effects (effects.c); what is to be stored of them is collected in a pending step (step.c), and
 * while one step is being stored (`storing`) the machine is not polled. A fault inside a drive is
 * never returned: the drive stops what runs, and its next action is BACK, with the error, so that
 * the turn is handed back as its last stored step left it. */
#include "agent/drive/drive.h"

#include <string.h>

#include "base/err.h"
#include "base/sized.h"

/* Defaults of struct hf_drive_config, for members that are 0. */
#define TOOL_LIMIT 8   /* calls of a batch that run at once */
#define TOOL_RETRIES 3 /* of a recorded failure */
#define AWAY_MS 30000  /* a turn that waits for a time further away leaves its worker */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define X(name, word) #word,
static const char *const action_words[] = { HF_DRIVE_ACTIONS(X) };
static const char *const event_words[] = { HF_DRIVE_EVENTS(X) };
#undef X

const char *hf_drive_action_name(enum hf_drive_action_kind kind)
{
    return (size_t)kind < COUNT(action_words) ? action_words[kind] : "?";
}

const char *hf_drive_event_name(enum hf_drive_event_kind kind)
{
    return (size_t)kind < COUNT(event_words) ? event_words[kind] : "?";
}

const struct hf_effect_host *hf_effect_host_journal(void)
{
    static const struct hf_effect_host host = {
        .name = "journal",
        .promise =
            "a turn continues from its last step, with the one effect that is open",
        .journaled = true,
    };
    return &host;
}

const struct hf_effect_host *hf_effect_host_inline(void)
{
    static const struct hf_effect_host host = {
        .name = "inline",
        .promise =
            "nothing is journaled: after a crash a turn begins again from the last "
            "commit, and its effects may be performed twice",
    };
    return &host;
}

/* ---- beginning and end ------------------------------------------------------------- */

/* Copies the journal's entries of the turn, of effects that were begun before this claim. */
static int copy_entries(struct hf_drive *drive, const struct hf_drive_turn *turn)
{
    if (turn->entry_count == 0)
        return 0;
    drive->entries = hf_arena_array(&drive->stay, turn->entry_count,
                                    sizeof(*drive->entries));
    if (!drive->entries)
        return HF_ENOMEM;
    for (size_t i = 0; i < turn->entry_count; i++) {
        const struct hf_effect_entry *given = &turn->entries[i];
        struct hf_effect_entry *entry = &drive->entries[i];
        *entry = *given;
        entry->key = hf_arena_text(&drive->stay, given->key);
        entry->kind = NULL; /* not needed: the key tells a model call from a tool call */
        entry->envelope.at = hf_arena_copy(&drive->stay, given->envelope.at,
                                           given->envelope.len);
        entry->outcome.at = hf_arena_copy(&drive->stay, given->outcome.at,
                                          given->outcome.len);
        if (!entry->key || !entry->envelope.at || !entry->outcome.at)
            return HF_ENOMEM;
    }
    drive->entry_count = turn->entry_count;
    return 0;
}

/* Lends the machine a blob that was fetched. HF_EBLOB: it was not, and `wanted` is its hash now. */
static int resolve(void *user, const uint8_t hash[32], struct hf_span *ret_blob)
{
    struct hf_drive *drive = user;
    for (const struct drive_blob *at = drive->blobs; at; at = at->next)
        if (memcmp(at->blob.hash, hash, 32) == 0) {
            *ret_blob = at->blob.bytes;
            return 0;
        }
    memcpy(drive->wanted, hash, sizeof(drive->wanted));
    return HF_EBLOB;
}

/* Cancels the turn, and the model call that is out. A turn that has ended, or is being cancelled,
 * stays as it is. */
static void cancel(struct hf_drive *drive, const struct hf_evidence *evidence)
{
    uint64_t open = hf_turn_outstanding(drive->turn);
    int rc = hf_turn_cancel(drive->turn, evidence, &drive->err);
    if (rc == HF_EFINISHED || rc == HF_EANSWERED)
        return;
    drive->sleep_due = 0;
    drive_pending(drive)->dirty = true;
    if (rc == 0)
        rc = drive_give_up_model(drive, open);
    if (rc)
        drive_fail(drive, rc, &drive->err);
}

/* Restores the turn, or asks for a blob that it needs. */
static void restore(struct hf_drive *drive)
{
    struct hf_restore restore = { .size = sizeof(restore),
                                  .session_id = drive->session_id,
                                  .turn_id = drive->turn_id,
                                  .base = &drive->base,
                                  .user = drive,
                                  .resolve = resolve };
    memset(drive->wanted, 0, sizeof(drive->wanted));
    int rc = hf_turn_restore(drive->setup, drive->save, &restore, &drive->turn,
                             &drive->err);
    drive->phase = DRIVE_RUNNING;
    if (rc == HF_EBLOB) {
        drive->phase = DRIVE_FETCHING;
        drive->blob_out = false;
    } else if (rc)
        drive_fail(drive, rc, &drive->err);
    else if (drive->cancel)
        cancel(drive, drive->cancel);
}

/* Begins a new turn, or restores the saved one. A restore that fails is no error here: the drive is
 * made, and its first action is BACK with the reason. */
static int begin(struct hf_drive *drive, const struct hf_drive_turn *turn,
                 struct hf_err *err)
{
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = turn->session_id,
                                   .turn_id = turn->turn_id,
                                   .base = &drive->base,
                                   .inputs = turn->inputs,
                                   .input_count = turn->input_count,
                                   .causes = turn->causes,
                                   .cause_count = turn->cause_count,
                                   .effects_past = (uint64_t)turn->effects_past };
    if (turn->save.len == 0) {
        drive->phase = DRIVE_RUNNING;
        return hf_turn_new(drive->setup, &start, &drive->turn, err);
    }
    drive->save.at = hf_arena_copy(&drive->stay, turn->save.at, turn->save.len);
    drive->save.len = turn->save.len;
    if (!drive->save.at)
        return hf_fail_plain(err, HF_ENOMEM);
    restore(drive);
    return 0;
}

/* Fills a new drive from the configuration and the turn, except what needs memory. `counted` is the
 * monotonic time up to which the turn's active time was reported; at first, that of the claim. The
 * base is the history that the machine reads. `batch` is the arena of the tool calls of one effect.
 * Of the two pending steps one is filled while the other is being stored. */
static void set_up(struct hf_drive *drive, const struct hf_drive_config *config,
                   const struct hf_drive_turn *turn)
{
    drive->setup = config->setup;
    drive->tools = hf_toolset_ref(config->tools);
    drive->host = config->host ? config->host : hf_effect_host_journal();
    drive->tool_limit = config->tool_limit > 0 ? config->tool_limit : TOOL_LIMIT;
    drive->tool_retries = config->tool_retries ? config->tool_retries : TOOL_RETRIES;
    drive->away_ms = config->away_ms > 0 ? config->away_ms : AWAY_MS;
    drive->fence = turn->fence;
    drive->step = turn->step;
    drive->node_count = turn->node_count;
    drive->wall = turn->wall_ms;
    drive->mono = drive->counted = turn->mono_ms;
    drive_base_init(drive, turn->base);
    hf_arena_init_small(&drive->stay, drive->alloc, 512, 4096);
    hf_arena_init_small(&drive->batch, drive->alloc, 512, 4096);
    hf_arena_init_small(&drive->pending[0].arena, drive->alloc, 1024, 16384);
    hf_arena_init_small(&drive->pending[1].arena, drive->alloc, 1024, 16384);
}

/* Ids, entries, waits and the save are copied, inputs and causes too, by the machine. The setup,
 * the host, and what turn->base lends must outlive the drive; it takes a reference to the tools. */
int hf_drive_new(const struct hf_drive_config *config, const struct hf_drive_turn *turn,
                 struct hf_drive **ret_drive, struct hf_err *err)
{
    int rc = hf_sized_check(config->size, sizeof(*config), sizeof(*config), err);
    if (rc == 0)
        rc = hf_sized_check(turn->size, sizeof(*turn), sizeof(*turn), err);
    if (rc == 0 && (!config->setup || !turn->base))
        rc = hf_fail(err, HF_EINVAL, config->setup ? "base" : "setup",
                     "a turn needs a setup and a base");
    if (rc)
        return rc;
    const struct hf_alloc *alloc = config->alloc ? config->alloc : hf_alloc_system();
    struct hf_drive *drive = alloc->realloc(alloc->user, NULL, sizeof(*drive));
    if (!drive)
        return hf_fail_plain(err, HF_ENOMEM);
    *drive = (struct hf_drive){ .alloc = alloc };
    set_up(drive, config, turn);
    drive->session_id = hf_arena_text(&drive->stay, turn->session_id);
    drive->turn_id = hf_arena_text(&drive->stay, turn->turn_id);
    if (!drive->session_id || !drive->turn_id || copy_entries(drive, turn) ||
        drive_copy_waits(drive, turn))
        rc = hf_fail_plain(err, HF_ENOMEM);
    else
        rc = begin(drive, turn, err);
    if (rc) {
        hf_drive_free(drive);
        return rc;
    }
    *ret_drive = drive;
    return 0;
}

void hf_drive_free(struct hf_drive *drive)
{
    if (!drive)
        return;
    hf_turn_free(drive->turn); /* it may put records of the base */
    for (size_t i = 0; i < drive->held_count; i++)
        hf_decoded_free(drive->held[i].owner);
    drive->alloc->free(drive->alloc->user, drive->held);
    hf_bytes_free(&drive->stored_save);
    hf_bytes_free(&drive->outcome);
    hf_toolset_unref(drive->tools);
    hf_arena_fini(&drive->pending[0].arena);
    hf_arena_fini(&drive->pending[1].arena);
    hf_arena_fini(&drive->batch);
    hf_arena_fini(&drive->stay);
    drive->alloc->free(drive->alloc->user, drive);
}

size_t hf_drive_bytes(const struct hf_drive *drive, size_t *ret_record_bytes)
{
    size_t records = 0;
    size_t bytes = sizeof(*drive) + drive->stay.held + drive->batch.held +
                   drive->pending[0].arena.held + drive->pending[1].arena.held +
                   drive->stored_save.len + drive->held_room * sizeof(*drive->held);
    if (drive->turn)
        bytes += hf_turn_bytes(drive->turn, &records);
    if (ret_record_bytes)
        *ret_record_bytes = records + drive->held_bytes;
    return bytes + drive->held_bytes;
}

/* ---- ways out ---------------------------------------------------------------------- */

/* Marks the model call and the tool calls that run: the next actions are to stop them. */
static void stop_all(struct hf_drive *drive)
{
    if (drive->model.at == DRIVE_OUT)
        drive->model.stop = true;
    for (size_t i = 0; i < drive->call_count; i++)
        if (drive->calls[i].run.at == DRIVE_OUT)
            drive->calls[i].run.stop = true;
}

/* Ends the drive: what runs is stopped, and the turn is handed back, to be claimed again after the
 * delay. */
static void hand_back(struct hf_drive *drive, hf_ms delay_ms)
{
    drive->phase = DRIVE_BACKING;
    drive->back_ms = delay_ms;
    stop_all(drive);
}

void drive_fail(struct hf_drive *drive, int code, const struct hf_err *why)
{
    struct hf_err kept = why && why->code == code ? *why : (struct hf_err){ 0 };
    if (drive->phase == DRIVE_ENDING || drive->phase == DRIVE_OVER)
        return;
    if (kept.code == 0)
        (void)hf_fail_plain(&kept, code); /* for its text */
    drive->err = kept;
    hand_back(drive, hf_err_class(code) == HF_CLASS_RETRYABLE ? 1000 : DRIVE_BACK_MS);
}

/* ---- actions ----------------------------------------------------------------------- */

static bool next_stop(struct hf_drive *drive, struct hf_drive_action *action)
{
    if (drive->model.stop) {
        drive->model.stop = false;
        *action = (struct hf_drive_action){ .kind = HF_DRIVE_STOP_MODEL,
                                            .id = drive->effect.id };
        return true;
    }
    for (size_t i = 0; i < drive->call_count; i++)
        if (drive->calls[i].run.stop) {
            drive->calls[i].run.stop = false;
            *action = (struct hf_drive_action){ .kind = HF_DRIVE_STOP_TOOL,
                                                .call = &drive->calls[i].shown };
            return true;
        }
    return false;
}

static bool startable(struct hf_drive *drive, struct drive_run *run)
{
    if (run->at != DRIVE_ARMED || run->due > drive->wall)
        return false;
    run->at = DRIVE_OUT;
    run->due = 0;
    return true;
}

static bool next_start(struct hf_drive *drive, struct hf_drive_action *action)
{
    if (startable(drive, &drive->model)) {
        *action = (struct hf_drive_action){ .kind = HF_DRIVE_MODEL,
                                            .id = drive->effect.id,
                                            .turn = drive->turn,
                                            .request = drive->effect.request };
        return true;
    }
    for (size_t i = 0; i < drive->call_count; i++)
        if (startable(drive, &drive->calls[i].run)) {
            struct drive_call *call = &drive->calls[i];
            call->shown.key.attempt = call->attempt;
            call->shown.args = call->args;
            call->shown.tools = drive->tools;
            *action = (struct hf_drive_action){ .kind = HF_DRIVE_TOOL,
                                                .call = &call->shown };
            return true;
        }
    return false;
}

static bool next_store(struct hf_drive *drive, struct hf_drive_action *action)
{
    if (!drive->storing || drive->store_said || drive->store_due)
        return false;
    drive->store_said = true;
    *action = (struct hf_drive_action){
        .kind = drive->committing ? HF_DRIVE_COMMIT : HF_DRIVE_STORE,
        .step = drive->committing ? NULL : &drive->stored,
        .commit = drive->committing ? &drive->commit : NULL,
    };
    return true;
}

static void sooner(hf_ms due, hf_ms *at)
{
    if (due > 0 && (*at == 0 || due < *at))
        *at = due;
}

/* When something is due next; 0: never. `begun`: without calls that are not begun. */
static hf_ms next_due(const struct hf_drive *drive, bool begun)
{
    hf_ms at = 0;
    if (drive->storing) {
        sooner(drive->store_due, &at);
        return at;
    }
    sooner(drive->sleep_due, &at);
    if (drive->model.at == DRIVE_ARMED)
        sooner(drive->model.due, &at);
    for (size_t i = 0; i < drive->call_count; i++)
        if (drive->calls[i].run.at == DRIVE_ARMED ||
            (drive->calls[i].run.at == DRIVE_NOT_BEGUN && !begun))
            sooner(drive->calls[i].run.due, &at);
    return at;
}

/* A call that has no room needs no timer: it is begun when another one has ended. */
static bool next_timer(struct hf_drive *drive, struct hf_drive_action *action)
{
    hf_ms at = next_due(drive, !drive_has_room(drive));
    if (at == 0 || at == drive->timer)
        return false;
    drive->timer = at;
    *action = (struct hf_drive_action){ .kind = HF_DRIVE_TIMER, .due_ms = at };
    return true;
}

/* Nothing is out, and nothing is about to start. */
static bool idle(const struct hf_drive *drive)
{
    bool busy = drive->storing ||
                (drive->model.at > DRIVE_NOT_BEGUN && drive->model.at < DRIVE_SETTLED);
    for (size_t i = 0; i < drive->call_count; i++)
        busy = busy || (drive->calls[i].run.at > DRIVE_NOT_BEGUN &&
                        drive->calls[i].run.at < DRIVE_SETTLED);
    return !busy;
}

/* The end of a phase that is not RUNNING; true: *action is one. */
static bool next_end(struct hf_drive *drive, struct hf_drive_action *action)
{
    if (drive->phase == DRIVE_FETCHING && !drive->blob_out) {
        drive->blob_out = true;
        *action = (struct hf_drive_action){ .kind = HF_DRIVE_BLOB };
        memcpy(action->hash, drive->wanted, sizeof(action->hash));
        return true;
    }
    if (drive->phase == DRIVE_BACKING) {
        if (drive->storing && drive->store_said && !drive->store_due)
            return false; /* what it comes to decides what is handed back */
        *action = (struct hf_drive_action){ .kind = HF_DRIVE_BACK,
                                            .delay_ms = drive->back_ms,
                                            .active_ms = drive->mono - drive->counted,
                                            .code = drive->err.code,
                                            .message = drive->err.message };
        drive->phase = DRIVE_ENDING; /* END comes next */
        return true;
    }
    if (drive->phase == DRIVE_ENDING) {
        drive->phase = DRIVE_OVER;
        *action = (struct hf_drive_action){ .kind = HF_DRIVE_END };
        return true;
    }
    return false;
}

static void advance(struct hf_drive *drive, enum drive_at from, enum drive_at to)
{
    if (drive->model.at == from)
        drive->model.at = to;
    for (size_t i = 0; i < drive->call_count; i++)
        if (drive->calls[i].run.at == from)
            drive->calls[i].run.at = to;
}

void drive_send(struct hf_drive *drive)
{
    advance(drive, DRIVE_INTENT, DRIVE_STORING);
}

void drive_arm(struct hf_drive *drive)
{
    advance(drive, DRIVE_STORING, DRIVE_ARMED);
}

bool hf_drive_next(struct hf_drive *drive, struct hf_drive_action *ret_action)
{
    for (;;) {
        if (next_stop(drive, ret_action))
            return true;
        if (drive->phase != DRIVE_RUNNING)
            return next_end(drive, ret_action);
        if (drive->storing)
            return next_store(drive, ret_action) || next_timer(drive, ret_action);
        if (next_start(drive, ret_action) || drive_poll(drive, ret_action))
            return true;
        if (drive->phase != DRIVE_RUNNING || drive->storing)
            continue;
        if (next_start(drive, ret_action))
            return true;
        if (drive->stopping && idle(drive) && !drive->done) {
            hf_ms due = next_due(drive, false);
            hand_back(drive, due > drive->wall ? due - drive->wall : 0);
            continue;
        }
        return next_timer(drive, ret_action);
    }
}

/* ---- events ------------------------------------------------------------------------ */

static void on_stored(struct hf_drive *drive, int code)
{
    if (!drive->storing || !drive->store_said)
        return;
    if (code == 0 && (drive->committing || drive->stored.away)) {
        drive->phase = DRIVE_ENDING; /* nothing is left here: END comes next */
        drive->storing = false;
        return;
    }
    if (code == HF_ECANCELASKED && drive->phase == DRIVE_RUNNING &&
        drive->commit.status != HF_STATUS_CANCELLED) {
        int rc = drive_commit_cancelled(drive); /* the cancel came first */
        if (rc)
            drive_fail(drive, rc, &drive->err);
        return;
    }
    if (code == 0) {
        drive_stored(drive);
        drive_arm(drive);
        if (drive->host->segment_steps > 0 &&
            drive->step % drive->host->segment_steps == 0)
            drive->stopping = true;
        return;
    }
    if (hf_err_class(code) == HF_CLASS_TERMINAL) {
        drive->storing = false;
        drive_fail(drive, code, NULL);
        return;
    }
    /* The store is away, or what it did is not known: the same step again, which answers as
     * the first did. */
    hf_ms wait = DRIVE_STORE_MS << (drive->store_tries < 6 ? drive->store_tries : 6);
    drive->store_due = drive->wall +
                       (wait < DRIVE_STORE_MAX_MS ? wait : DRIVE_STORE_MAX_MS);
    drive->store_tries++;
}

static int on_timer(struct hf_drive *drive)
{
    drive->timer = 0;
    if (drive->store_due && drive->store_due <= drive->wall) {
        drive->store_due = 0;
        drive->store_said = false;
    }
    if (drive->phase != DRIVE_RUNNING || drive->storing)
        return 0;
    if (drive->sleep_due && drive->sleep_due <= drive->wall) {
        drive->sleep_due = 0;
        return hf_turn_sleep_over(drive->turn, drive->effect.id, &drive->err);
    }
    return drive_fill(drive);
}

static int on_fetched(struct hf_drive *drive, const struct hf_drive_event *event)
{
    if (drive->phase != DRIVE_FETCHING)
        return 0;
    if (event->code)
        return event->code;
    struct drive_blob *blob = hf_arena_new(&drive->stay, struct drive_blob);
    const char *bytes = hf_arena_copy(&drive->stay, event->bytes.at, event->bytes.len);
    if (!blob || !bytes)
        return HF_ENOMEM;
    memcpy(blob->blob.hash, drive->wanted, sizeof(blob->blob.hash));
    blob->blob.bytes = (struct hf_span){ bytes, event->bytes.len };
    blob->next = drive->blobs;
    drive->blobs = blob;
    restore(drive);
    return 0;
}

static int on_synced(struct hf_drive *drive, const struct hf_drive_event *event)
{
    if (drive->effect.kind != HF_EFFECT_SYNC)
        return 0;
    uint64_t id = drive->effect.id;
    drive->effect.kind = HF_EFFECT_NONE;
    if (event->tools) {
        hf_toolset_unref(drive->tools);
        drive->tools = hf_toolset_ref(event->tools);
    }
    if (event->code)
        return hf_turn_sync_failed(drive->turn, id, hf_err_text(event->code),
                                   &drive->err);
    return hf_turn_synced(drive->turn, id, event->surface, &drive->err);
}

static int on_cancel(struct hf_drive *drive, const struct hf_drive_event *event)
{
    if (event->status)
        drive->ended = event->status;
    if (drive->turn) {
        cancel(drive, event->evidence);
        return 0;
    }
    struct hf_evidence *kept = hf_arena_new(&drive->stay, struct hf_evidence);
    const struct hf_evidence *given = event->evidence;
    if (!kept)
        return HF_ENOMEM;
    kept->request_id = hf_arena_text(&drive->stay, given->request_id);
    kept->origin = given->origin ? hf_arena_text(&drive->stay, given->origin) : NULL;
    kept->reason = given->reason ? hf_arena_text(&drive->stay, given->reason) : NULL;
    if (!kept->request_id || (given->origin && !kept->origin) ||
        (given->reason && !kept->reason))
        return HF_ENOMEM;
    drive->cancel = kept;
    return 0;
}

static int take(struct hf_drive *drive, const struct hf_drive_event *event)
{
    switch (event->kind) {
    case HF_DRIVEN_STORED: on_stored(drive, event->code); return 0;
    case HF_DRIVEN_REPLY: drive_reply(drive, event); return 0;
    case HF_DRIVEN_ANSWER: return drive_answer(drive, event);
    case HF_DRIVEN_SYNCED: return on_synced(drive, event);
    case HF_DRIVEN_FETCHED: return on_fetched(drive, event);
    case HF_DRIVEN_TIMER: return on_timer(drive);
    case HF_DRIVEN_CANCEL: return on_cancel(drive, event);
    case HF_DRIVEN_STOP: drive->stopping = true; return 0;
    case HF_DRIVEN_GIVE_UP:
        drive->stopping = true;
        hand_back(drive, 0);
        return 0;
    case HF_DRIVEN_LEASE_LOST:
        stop_all(drive);
        drive->phase = DRIVE_ENDING;
        return 0;
    }
    return HF_EINVAL;
}

void hf_drive_feed(struct hf_drive *drive, const struct hf_drive_event *event)
{
    drive->wall = event->wall_ms;
    drive->mono = event->mono_ms > drive->mono ? event->mono_ms : drive->mono;
    if (drive->phase == DRIVE_OVER || drive->phase == DRIVE_ENDING)
        return;
    if (drive->phase == DRIVE_BACKING && event->kind != HF_DRIVEN_STORED &&
        event->kind != HF_DRIVEN_LEASE_LOST)
        return;
    drive->err = (struct hf_err){ 0 };
    int rc = take(drive, event);
    if (rc)
        drive_fail(drive, rc, &drive->err);
}
