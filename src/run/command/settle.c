/* The end of a run, in the ledger: facts of the attempt, then the unit's outcome. */
#include "run/command/execute.h"

#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#define SETTLE_FOR_MS 60000 /* how long a store that does not answer is tried */

/* ---- facts ------------------------------------------------------------------------- */

int hf_run_flush(struct hf_run *run, const char *event, const char *payload)
{
    struct hf_output_chunk chunks[HF_STREAM_COUNT * HF_CAPTURE_SLOTS];
    struct hf_output_add add = { .size = sizeof add,
                                 .id = run->work_id,
                                 .attempt = run->attempt,
                                 .chunks = chunks,
                                 .event = event,
                                 .payload = payload };
    struct hf_err ignored;
    for (int s = 0; s < HF_STREAM_COUNT; s++)
        add.chunk_count += hf_capture_collect(&run->capture[s], (enum hf_stream)s,
                                              chunks + add.chunk_count, &add);
    if (add.chunk_count == 0 && !event)
        return 0;
    /* What could not be stored stays dirty and goes with the next. */
    int rc = hf_output_add(run->store, &run->who, &add, &ignored);
    for (int s = 0; rc == 0 && s < HF_STREAM_COUNT; s++)
        hf_capture_stored(&run->capture[s], run->capture[s].bytes);
    return rc;
}

void hf_run_note_start(struct hf_run *run)
{
    struct hf_buf text;
    struct hf_json json;
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1); /* without a name: "" */
    hf_buf_init(&text, run->alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "host", host);
    hf_json_put_i64(&json, "pid", hf_child_pid(run->child));
    hf_json_put_i64(&json, "runner_pid", getpid());
    hf_json_end(&json);
    if (hf_buf_state(&text) == 0) /* without it the trail lacks a pid, and nothing more */
        (void)hf_run_flush(run, "process_started", hf_buf_str(&text));
    hf_buf_fini(&text);
}

static const char *stop_word(enum hf_run_stop stop)
{
    switch (stop) {
    case HF_RUN_GOES_ON: return NULL;
    case HF_RUN_INTERRUPT: return "interrupt";
    case HF_RUN_DRAIN: return "drain";
    case HF_RUN_CANCEL: return "cancel";
    case HF_RUN_TIMEOUT: return "timeout";
    case HF_RUN_LOST: return "lease_lost";
    }
    return NULL;
}

static int note_exit(struct hf_run *run)
{
    const struct hf_run_result *result = &run->result;
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, run->alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_i64(&json, "duration_ms", run->ended - run->started);
    if (!result->exit.known)
        hf_json_put_bool(&json, "exit_unknown", true);
    else if (result->exit.signal)
        hf_json_put_i64(&json, "signal", result->exit.signal);
    else
        hf_json_put_i64(&json, "exit_code", result->exit.exit_code);
    hf_json_opt_i64(&json, "left_behind", result->left_behind);
    hf_json_put_i64(&json, "stderr_bytes", run->capture[HF_STDERR].bytes);
    hf_json_put_i64(&json, "stdout_bytes", run->capture[HF_STDOUT].bytes);
    hf_json_opt_str(&json, "stopped_by", stop_word(result->stop));
    hf_json_end(&json);
    int rc = hf_buf_state(&text);
    if (rc == 0)
        rc = hf_run_flush(run, "process_exited", hf_buf_str(&text));
    hf_buf_fini(&text);
    return rc;
}

/* ---- the outcome ------------------------------------------------------------------- */

/* The report of a run about its unit. `text` has room for its words. */
struct words {
    char class_[40];
    char reason[160];
};

static void put(char *out, size_t room, const char *text, int64_t number)
{
    struct hf_buf buf;
    hf_buf_init(&buf, hf_alloc_system(), room - 1);
    hf_buf_text(&buf, text);
    if (number >= 0)
        hf_buf_i64(&buf, number);
    const char *whole = hf_buf_str(&buf);
    size_t i = 0;
    for (; whole[i] && i + 1 < room; i++)
        out[i] = whole[i];
    out[i] = '\0';
    hf_buf_fini(&buf);
}

static void fail_as(struct hf_change *change, struct words *words, const char *class_,
                    int64_t number, const char *reason)
{
    put(words->class_, sizeof words->class_, class_, number);
    put(words->reason, sizeof words->reason, reason, number);
    change->verb = HF_VERB_FAIL;
    change->error_class = words->class_;
    change->reason = words->reason;
}

static void close_as(struct hf_change *change, enum hf_status status, const char *class_,
                     const char *reason)
{
    change->verb = HF_VERB_CLOSE_OUT;
    change->status = status;
    change->error_class = class_;
    change->reason = reason;
}

/* The evidence of files that are there; without one of them it is a failure. */
static void close_done(struct hf_run *run, struct hf_change *change, struct words *words)
{
    struct hf_err why = { 0 };
    if (hf_run_evidence(run, &why)) {
        fail_as(change, words, HF_RUN_NO_EVIDENCE, -1, why.message);
        return;
    }
    close_as(change, HF_STATUS_DONE, NULL, "exit code 0");
    change->evidence = run->evidence;
    change->evidence_count = run->evidence_count;
    change->outputs = run->command->evidence;
    change->output_count = run->evidence_count;
}

static bool clean_exit(const struct hf_run *run)
{
    const struct hf_child_exit *how = &run->result.exit;
    return how->known && how->signal == 0 && how->exit_code == 0;
}

static void drained(const struct hf_run *run, struct hf_change *change)
{
    change->verb = run->disposition == HF_DISPOSITION_OWNER_BOUND ? HF_VERB_ABANDON
                                                                  : HF_VERB_HAND_BACK;
    change->reason = "the runner got a signal to end";
}

/* A timeout that may be tried again is a failure; the last one is a timeout. */
static void timed_out(const struct hf_run *run, struct hf_change *change,
                      struct words *words)
{
    if (run->disposition == HF_DISPOSITION_RERUNNABLE &&
        run->failures + 1 < run->max_attempts)
        fail_as(change, words, "exec_timeout", -1, "the command ran out of time");
    else
        close_as(change, HF_STATUS_TIMEOUT, "exec_timeout",
                 "the command ran out of time");
}

/* How it ended by itself. */
static void ended(struct hf_run *run, struct hf_change *change, struct words *words)
{
    const struct hf_child_exit *how = &run->result.exit;
    if (!how->known)
        fail_as(change, words, "exit_unknown", -1, "the command's exit status was lost");
    else if (how->signal)
        fail_as(change, words, "signal_", how->signal, "ended by signal ");
    else if (how->exit_code)
        fail_as(change, words, "exit_", how->exit_code, "exit code ");
    else if (run->command->require_close_out)
        fail_as(change, words, HF_RUN_NOT_CLOSED, -1,
                "the command ended without closing its unit out");
    else
        close_done(run, change, words);
}

static struct hf_change outcome(struct hf_run *run, struct words *words)
{
    struct hf_change change = { .size = sizeof change,
                                .id = run->work_id,
                                .token = run->token };
    enum hf_run_stop stop = run->result.stop;
    if (clean_exit(run) && (stop == HF_RUN_DRAIN || stop == HF_RUN_TIMEOUT))
        stop = HF_RUN_GOES_ON; /* told to stop, it finished first */
    switch (stop) {
    case HF_RUN_INTERRUPT:
        close_as(&change, HF_STATUS_CANCELLED, NULL, "interrupted at its terminal");
        break;
    case HF_RUN_CANCEL:
        close_as(&change, HF_STATUS_CANCELLED, NULL, "cancelled on request");
        break;
    case HF_RUN_DRAIN: drained(run, &change); break;
    case HF_RUN_TIMEOUT: timed_out(run, &change, words); break;
    case HF_RUN_GOES_ON:
    case HF_RUN_LOST: ended(run, &change, words); break;
    }
    return change;
}

static int apply(struct hf_run *run, const struct hf_change *change)
{
    struct hf_answer *answer = NULL;
    struct hf_err *err = &run->result.err;
    int rc = hf_work_change(run->store, &run->who, change, 1, 0, &answer, err);
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(answer, 0);
    rc = item->code;
    if (rc) {
        (void)hf_fail(err, rc, item->field, "%s", item->message);
    } else {
        run->result.status = hf_status_word(hf_status_of(item->work.status));
        run->result.next_retry_at = item->work.next_retry_at;
    }
    hf_answer_free(answer);
    return rc;
}

/* The command resumed its unit under a token of its own and has ended: as its owner we come
 * in again, which yields one that holds. */
static int reenter(struct hf_run *run)
{
    struct hf_claim claim = { .size = sizeof claim,
                              .owner = run->owner,
                              .incarnation = run->incarnation,
                              .id = run->work_id,
                              .pid = getpid(),
                              .lock = run->lock.path };
    struct hf_answer *answer = NULL;
    int rc = hf_work_claim(run->store, &run->who, &claim, &answer, &run->result.err);
    if (rc == 0 && hf_answer_count(answer) == 1)
        run->token = hf_arena_text(&run->arena, hf_answer_at(answer, 0)->token);
    hf_answer_free(answer);
    return rc ? rc : run->token ? 0 : HF_ENOMEM;
}

static bool done(struct hf_run *run, enum hf_run_end end)
{
    run->result.end = end;
    return true;
}

/* The unit's close rule asks for evidence, or for a reviewer, that this run does not have. A
 * person does: the unit waits for one, and says for what. */
static int wait_for_person(struct hf_run *run)
{
    const struct hf_err rule = run->result.err;
    struct hf_change wait = { .size = sizeof wait,
                              .verb = HF_VERB_WAIT,
                              .id = run->work_id,
                              .token = run->token,
                              .status = HF_STATUS_WAITING_USER,
                              .ref = run->work_id,
                              .reason = rule.message,
                              .escalate_after_ms = 1 }; /* it needs a person now */
    int rc = apply(run, &wait);
    if (rc == 0)
        run->result.err = rule;
    return rc;
}

/* Records how the command ended. HF_RUN_OPEN: the store did not take it; `*ret_rc` says why. */
static enum hf_run_end settle_once(struct hf_run *run, int *ret_rc)
{
    struct words words;
    struct hf_change change = outcome(run, &words);
    *ret_rc = apply(run, &change);
    if (*ret_rc == 0)
        return HF_RUN_SETTLED;
    if (*ret_rc != HF_EPOLICY)
        return HF_RUN_OPEN;
    *ret_rc = wait_for_person(run);
    return *ret_rc == 0 ? HF_RUN_UNMET : HF_RUN_OPEN;
}

/* Refused, though the lease was not known to be lost: find out what it is now. */
static bool settle_again(struct hf_run *run)
{
    hf_run_look(run);
    switch (run->grip) {
    case HF_GRIP_WAITS:
    case HF_GRIP_SETTLED: return done(run, HF_RUN_ITSELF);
    case HF_GRIP_LOST: return done(run, HF_RUN_TAKEN);
    case HF_GRIP_HOLDS: break;
    }
    int rc = reenter(run);
    if (rc)
        return false;
    enum hf_run_end end = settle_once(run, &rc);
    if (end != HF_RUN_OPEN)
        return done(run, end);
    /* Refused under a token that is known to hold: it would be refused for ever. */
    return hf_err_class(rc) == HF_CLASS_TERMINAL && done(run, HF_RUN_UNRECORDED);
}

/* The exit and the last output go before the outcome: behind it no process would store
 * them. A unit that was pruned takes none. An event that may have been stored is not told
 * again. */
static bool note_end(struct hf_run *run, hf_ms now)
{
    int rc = run->told_exit ? hf_run_flush(run, NULL, NULL) : note_exit(run);
    run->told_exit |= rc == 0 || hf_err_class(rc) == HF_CLASS_UNKNOWN;
    run->noted = rc == 0 || rc == HF_ENOTFOUND || now >= run->end_by;
    return run->noted;
}

bool hf_run_settle(struct hf_run *run, hf_ms now)
{
    int rc = 0;
    if (!run->end_by)
        run->end_by = now + SETTLE_FOR_MS;
    if (!run->noted) {
        if (!note_end(run, now))
            return false;
        if (run->grip == HF_GRIP_WAITS || run->grip == HF_GRIP_HOLDS)
            hf_run_look(run);
    }
    if (run->grip == HF_GRIP_SETTLED || run->grip == HF_GRIP_WAITS)
        return done(run, HF_RUN_ITSELF);
    if (run->grip == HF_GRIP_LOST)
        return done(run, HF_RUN_TAKEN);
    enum hf_run_end end = settle_once(run, &rc);
    if (end != HF_RUN_OPEN)
        return done(run, end);
    bool settled = hf_err_class(rc) == HF_CLASS_TERMINAL && settle_again(run);
    if (!settled && now >= run->end_by)
        return done(run, HF_RUN_UNRECORDED);
    return settled;
}

void hf_run_fail_start(struct hf_run *run, const struct hf_err *why)
{
    struct hf_change change = { .size = sizeof change,
                                .verb = HF_VERB_FAIL,
                                .id = run->work_id,
                                .token = run->token,
                                .error_class = "spawn_failed",
                                .reason = why->message };
    run->result.err = *why;
    run->result.exit_code = 125;
    run->result.end = apply(run, &change) == 0 ? HF_RUN_SETTLED : HF_RUN_UNRECORDED;
    run->result.err = *why;
}
