/* The work for each effect of the turn machine, and the answer that a model's reply is.
 *
 * An effect goes out only after the store has its intent. A model call is decided by the journal:
 * without an entry its intent joins the pending step (DRIVE_INTENT); while that step
 * is stored it is STORING; then it is ARMED, and the next action is the call (OUT). Its reply
 * settles it (SETTLED) in the next step. With a settled entry the stored outcome answers the
 * machine, without a call. An entry that a lost worker left open is armed again, under the same
 * key. The envelope is canonical JSON of what identifies the request: if a stored one differs, the
 * turn would continue from another history, and it fails. */
#include "agent/drive/drive.h"

#include <string.h>

#include "base/err.h"
#include "base/json_walk.h"

int drive_contradiction(struct hf_drive *drive, enum hf_decision decision,
                        const struct hf_effect_entry *entry, struct hf_span envelope)
{
    struct hf_err why = { 0 };
    if (decision == HF_DECISION_BUSY) { /* a later claim started it: this one is over */
        drive->phase = DRIVE_ENDING;
        return 0;
    }
    if (decision == HF_DECISION_MISMATCH) {
        int code = hf_effect_mismatch(entry->key, entry->envelope, envelope, &why);
        return hf_turn_fail(drive->turn, hf_err_wire(code), why.message, &drive->err);
    }
    (void)hf_fail(&why, HF_ECORRUPT, "effect",
                  "the journal's entry %s contradicts itself",
                  entry->key); /* for its text */
    return hf_turn_fail(drive->turn, "effect_corrupt", why.message, &drive->err);
}

/* ---- model calls ------------------------------------------------------------------- */

/* Adds the intent of the outstanding model call to the pending step: a journal entry, copied, and
 * the blobs that the request refers to, which recovery will need. Nothing is called yet; the call
 * becomes an action when the step is stored. */
static int add_model_intent(struct hf_drive *drive, const char *envelope)
{
    char key[HF_EFFECT_KEY_ROOM];
    hf_effect_key(drive->effect.id, NULL, 0, key);
    struct hf_effect_entry entry = { .key = key,
                                     .kind = "llm_call",
                                     .recovery = HF_RECOVERY_KEYED,
                                     .envelope = { envelope, strlen(envelope) } };
    drive->model.at = DRIVE_INTENT;
    int rc = drive_begin(drive, &entry);
    return rc ? rc : drive_add_blobs(drive, drive->effect.request);
}

struct hf_span drive_member(struct hf_span object, const char *word)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, object);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            struct hf_span key = hf_walk_key(&walk);
            struct hf_span value = hf_walk_value(&walk);
            if (hf_walk_is(key, word))
                return value;
        }
    return (struct hf_span){ 0 };
}

/* Answers the machine with what the journal holds. */
static int replay_model(struct hf_drive *drive, const struct hf_effect_entry *entry)
{
    struct hf_decoded *owner = NULL;
    const struct hf_llm_response *reply = NULL;
    const struct hf_llm_error *error = NULL;
    struct hf_span json = drive_member(entry->outcome, "reply");
    int rc = 0;
    drive->model.at = DRIVE_SETTLED;
    if (json.len > 0) {
        rc = hf_llm_response_decode(drive->alloc, json, &owner, &reply, &drive->err);
        if (rc == 0)
            rc = hf_turn_llm_done(drive->turn, drive->effect.id, reply, &drive->err);
    } else {
        json = drive_member(entry->outcome, "error");
        rc = hf_llm_error_decode(drive->alloc, json, &owner, &error, &drive->err);
        if (rc == 0)
            rc = hf_turn_llm_failed(drive->turn, drive->effect.id, error, &drive->err);
    }
    hf_decoded_free(owner);
    drive_pending(drive)->dirty = true;
    return rc;
}

/* The machine asks for a model call: begins it, answers it from the journal, or takes it over. */
static int on_model(struct hf_drive *drive)
{
    struct hf_arena *arena = &drive_pending(drive)->arena;
    const char *text = drive_model_envelope(arena, drive->effect.request);
    if (!text)
        return HF_ENOMEM;
    struct hf_effect_entry *entry = drive_entry(drive, drive->effect.id, NULL);
    struct hf_effect_ask ask = { HF_SCOPE_TURN, { text, strlen(text) }, drive->fence, 0 };
    enum hf_decision decision = hf_effect_decide(entry, &ask);
    drive->model = (struct drive_run){ 0 };
    if (decision == HF_DECISION_ABSENT && drive->stopping) {
        drive_pending(drive)->dirty = true; /* the next worker begins it */
        return 0;
    }
    if (decision == HF_DECISION_ABSENT)
        return add_model_intent(drive, text);
    if (decision == HF_DECISION_REPLAY)
        return replay_model(drive, entry);
    if (decision != HF_DECISION_TAKE_OVER)
        return drive_contradiction(drive, decision, entry, ask.envelope);
    drive->model.at = DRIVE_ARMED; /* model calls are keyed: the same key again */
    drive->model.taken_over = true;
    return 0;
}

/* Settles a model call with {"word": json}. */
static int settle_call(struct hf_drive *drive, uint64_t id, const char *word,
                       struct hf_span json, const struct hf_usage *usage)
{
    char key[HF_EFFECT_KEY_ROOM];
    struct hf_buf text;
    hf_effect_key(id, NULL, 0, key);
    hf_buf_init(&text, drive->alloc, SIZE_MAX / 2);
    hf_buf_text(&text, "{\"");
    hf_buf_text(&text, word);
    hf_buf_text(&text, "\":");
    hf_buf_bytes(&text, json.at, json.len);
    hf_buf_char(&text, '}');
    struct hf_effect_settled settled = { .key = key,
                                         .status = HF_ENTRY_FAILED,
                                         .outcome = { hf_buf_str(&text), text.len },
                                         .usage = usage,
                                         .taken_over = drive->model.taken_over };
    if (word[0] == 'r')
        settled.status = HF_ENTRY_DONE;
    int rc = hf_buf_state(&text);
    if (rc == 0)
        rc = drive_settle(drive, &settled);
    hf_buf_fini(&text);
    drive->model.at = DRIVE_SETTLED;
    return rc;
}

/* The same of the call that is out. */
static int settle_model(struct hf_drive *drive, const char *word, struct hf_span json,
                        const struct hf_usage *usage)
{
    return settle_call(drive, drive->effect.id, word, json, usage);
}

void drive_reply(struct hf_drive *drive, const struct hf_drive_event *event)
{
    struct hf_bytes json = { 0 };
    int rc = 0;
    if (drive->model.at != DRIVE_OUT || event->id != drive->effect.id ||
        drive->effect.kind != HF_EFFECT_LLM_CALL)
        return;
    if (event->code) { /* nothing was sent: not a fact about the call */
        drive->model.at = DRIVE_ARMED;
        drive->model.due = drive->wall + DRIVE_AGAIN_MS;
        return;
    }
    if (event->response) {
        rc = hf_llm_response_encode(drive->alloc, event->response, &json, &drive->err);
        if (rc == 0)
            rc = settle_model(drive, "reply", (struct hf_span){ json.at, json.len },
                              &event->response->usage);
        if (rc == 0)
            rc = hf_turn_llm_done(drive->turn, event->id, event->response, &drive->err);
    } else {
        rc = hf_llm_error_encode(drive->alloc, event->error, &json, &drive->err);
        if (rc == 0)
            rc = settle_model(drive, "error", (struct hf_span){ json.at, json.len },
                              &event->error->usage);
        if (rc == 0)
            rc = hf_turn_llm_failed(drive->turn, event->id, event->error, &drive->err);
    }
    hf_bytes_free(&json);
    if (rc)
        drive_fail(drive, rc, &drive->err);
}

static const char cancelled_text[] = "{\"cancelled\":true}";
static const struct hf_span cancelled = { cancelled_text, sizeof(cancelled_text) - 1 };

static int on_cancel_model(struct hf_drive *drive)
{
    if (drive->model.at == DRIVE_SETTLED || drive->model.at == DRIVE_NOT_BEGUN)
        return 0;
    drive->model.stop = drive->model.at == DRIVE_OUT;
    return settle_model(drive, "error", cancelled, NULL);
}

int drive_give_up_model(struct hf_drive *drive, uint64_t id)
{
    const struct hf_effect_entry *entry = drive_entry(drive, id, NULL);
    if (!entry || entry->status != HF_ENTRY_STARTED || drive->effect.id == id)
        return 0; /* the machine says so with CANCEL_LLM, if it has to be given up */
    drive->model.taken_over = true;
    return settle_call(drive, id, "error", cancelled, NULL);
}

/* ---- the others -------------------------------------------------------------------- */

static int on_sleep(struct hf_drive *drive)
{
    const struct hf_effect *effect = &drive->effect;
    drive->sleep_due = effect->due_ms;
    if (effect->due_ms)
        return drive_recall_timer(drive, NULL, &drive->sleep_due);
    drive->sleep_due = drive->wall + effect->duration_ms;
    drive_pending(drive)->dirty = true; /* its due time is in the save */
    return hf_turn_sleep_noted(drive->turn, effect->id, drive->sleep_due, &drive->err);
}

static int on_exec(struct hf_drive *drive)
{
    static const char text[] = "this worker runs no code cells";
    struct hf_exec_result result = { .size = sizeof(result),
                                     .failed = true,
                                     .message = { text, sizeof(text) - 1 } };
    drive_pending(drive)->dirty = true;
    return hf_turn_exec_done(drive->turn, drive->effect.id, &result, &drive->err);
}

/* Records of a PROGRESS join the base with the next step. Without a journal they stay the
 * machine's own until the commit. */
static int on_progress(struct hf_drive *drive, const struct hf_effect *effect)
{
    if (!drive->host->journaled)
        return 0;
    drive_pending(drive)->dirty = true;
    return drive_hold(drive, effect->from, effect->to);
}

/* An effect that must be answered or stored; EMIT and SYNC are actions. */
static int on_effect(struct hf_drive *drive, const struct hf_effect *effect)
{
    if (effect->kind == HF_EFFECT_PROGRESS)
        return on_progress(drive, effect);
    if (effect->kind == HF_EFFECT_CANCEL_LLM)
        return on_cancel_model(drive);
    if (effect->kind == HF_EFFECT_CANCEL_TOOLS)
        return drive_cancel_batch(drive);
    if (effect->kind == HF_EFFECT_DONE) {
        drive->done = true;
        return 0;
    }
    if (effect->id == 0 || effect->kind == HF_EFFECT_CANCEL_EXEC)
        return 0;
    drive->effect = *effect;
    if (effect->kind == HF_EFFECT_LLM_CALL)
        return on_model(drive);
    if (effect->kind == HF_EFFECT_TOOL_CALLS)
        return drive_batch(drive);
    if (effect->kind == HF_EFFECT_SLEEP)
        return on_sleep(drive);
    if (effect->kind == HF_EFFECT_EXEC_CODE)
        return on_exec(drive);
    return hf_turn_checkpoint_done(drive->turn, effect->id, NULL, &drive->err);
}

/* The machine waits: what it came to is stored, or committed. A SYNC writes no step of its
 * own: what came before it is stored with what comes after it. */
static int on_pause(struct hf_drive *drive)
{
    if (hf_turn_state(drive->turn) == HF_TURN_WAITING_SURFACE)
        return 0;
    bool away = drive_may_go_away(drive);
    if ((drive_pending(drive)->dirty || away) && drive->host->journaled)
        return drive_flush(drive, away);
    if (drive_pending(drive)->dirty) {
        drive_clear(drive_pending(drive));
        drive_send(drive);
        drive_arm(drive);
    }
    return drive->done ? drive_make_commit(drive) : 0;
}

bool drive_poll(struct hf_drive *drive, struct hf_drive_action *action)
{
    while (drive->phase == DRIVE_RUNNING && !drive->storing) {
        struct hf_effect effect = { 0 };
        int rc = hf_turn_poll(drive->turn, &effect, &drive->err);
        if (rc == HF_EPROTOCOL)
            rc = hf_turn_fail(drive->turn, "protocol_fault", drive->err.message,
                              &drive->err);
        else if (rc == 0 && effect.kind == HF_EFFECT_EMIT) {
            *action = (struct hf_drive_action){ .kind = HF_DRIVE_EMIT,
                                                .emit = effect.emit };
            return true;
        } else if (rc == 0 && effect.kind == HF_EFFECT_SYNC) {
            drive->effect = effect;
            *action = (struct hf_drive_action){ .kind = HF_DRIVE_SYNC, .id = effect.id };
            return true;
        } else if (rc == 0 && effect.kind != HF_EFFECT_NONE)
            rc = on_effect(drive, &effect);
        else if (rc == 0)
            rc = on_pause(drive);
        if (rc)
            drive_fail(drive, rc, &drive->err);
        if (rc == 0 && effect.kind == HF_EFFECT_NONE)
            return false;
    }
    return false;
}
