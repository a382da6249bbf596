/* Sweeping waits. A wait whose deadline has passed is closed by its policy, or passed on to the
 * next answerer; one whose time to escalate has come gets an event, and a unit if it names a kind.
 * One transaction per wait. Each write names the moment that was read, so that of several sweeps,
 * and of a sweep and an answer, one acts. */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "store/wait/wait.h"

struct sweeping {
    struct sql_store *store;
    const struct hf_caller *who;
    struct hf_sweep_report *report;
    char nonce[HF_NONCE_TEXT];
};

static const char *due_note(struct hf_ops *ops, const struct hf_wait *wait,
                            const struct hf_wait_due *due)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, ops->arena.alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_opt_str(&json, "answerer",
                    due->act == HF_WAIT_PASS_ON ? wait->next_answerer : wait->answerer);
    hf_json_put_i64(&json, "deadline_at", due->deadline_at);
    hf_json_opt_str(&json, "escalate", wait->escalate);
    hf_json_put_str(&json, "wait_id", wait->wait_id);
    hf_json_end(&json);
    const char *note = hf_buf_keep(&text, &ops->arena);
    if (!note)
        ops->state = HF_ENOMEM;
    return note;
}

/* The unit that an escalation creates: one per wait, since its source names the wait. */
static int add_unit(struct sweeping *s, struct hf_ops *ops, const struct hf_wait *wait,
                    const char *note, struct hf_err *err)
{
    struct hf_caller who = *s->who;
    struct hf_batch moment = { .now = sql_wall(s->store) };
    struct hf_env env;
    struct hf_row *row = hf_arena_new(&ops->arena, struct hf_row);
    uint8_t *hash = hf_arena_take(&ops->arena, HF_DIGEST_BYTES);
    struct hf_work_spec request = {
        .size = sizeof request,
        .source = HF_SOURCE_CONTROL,
        .source_id = wait->turn_id,
        .source_run_id = hf_arena_text(&ops->arena, wait->wait_id),
        .kind = wait->escalate + strlen("work:"),
        .queue = "default",
        .parent_work_id = wait->turn_id,
        .payload = note,
        .priority = -1,
    };
    who.tenant = wait->tenant;
    if (!row || !hash || !request.source_run_id)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = sql_env(s->store, &who, &moment, &env, err);
    if (rc == 0)
        rc = sql_make_row(s->store, &ops->arena, &who, &env, &request, row, hash, err);
    if (rc == 0) {
        hf_rows_insert(ops, &(struct hf_making){ .row = row, .hash = hash }, 1);
        hf_ops_ring_queue(ops, request.queue, 1);
    }
    return rc;
}

static void add_pass_on(struct hf_ops *ops, const struct hf_wait *wait, hf_ms next_ms,
                        hf_ms check_at, const struct hf_wait_due *due)
{
    bool next = due->act == HF_WAIT_PASS_ON;
    hf_ops_call(ops, HF_SQL_WAIT_PASS_ON, 1);
    hf_ops_text(ops, wait->wait_id);
    hf_ops_i64(ops, check_at);
    hf_ops_text(ops, next ? wait->next_answerer : wait->answerer);
    hf_ops_text(ops, next ? wait->next_policy : wait->policy);
    hf_ops_i64(ops, due->deadline_at);
    hf_ops_i64(ops, due->deadline_at);
    hf_ops_text(ops, next ? NULL : wait->next_answerer);
    hf_ops_text(ops, next ? NULL : wait->next_policy);
    hf_ops_i64_opt(ops, next ? 0 : next_ms);
    hf_ops_call(ops, HF_SQL_INPUTS_SHOW_WAIT, HF_ANY_COUNT);
    hf_ops_text(ops, wait->wait_id);
}

/* The wait stays open. HF_EGUARD: another sweep, or an answer, came first. */
static int pass_on(struct sweeping *s, const struct hf_wait *wait, hf_ms next_ms,
                   hf_ms check_at, const struct hf_wait_due *due, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    add_pass_on(&ops, wait, next_ms, check_at, due);
    const char *note = due_note(&ops, wait, due);
    (void)sql_note_add(&ops, s->who,
                       &(struct sql_note){ .work_id = wait->turn_id,
                                           .type = "escalated",
                                           .message = wait->wait_id,
                                           .payload = note });
    bool unit = due->act == HF_WAIT_ESCALATE && wait->escalate &&
                hf_starts_with(wait->escalate, "work:");
    int rc = unit ? add_unit(s, &ops, wait, note, err) : 0;
    if (rc == 0)
        rc = hf_ops_write(&ops, err);
    s->report->escalated += rc == 0;
    hf_ops_fini(&ops);
    return rc;
}

static int expire(struct sweeping *s, const struct hf_wait *wait, hf_ms check_at,
                  const struct hf_wait_due *due, struct hf_err *err)
{
    const struct wait_closing closing = { .wait_id = wait->wait_id,
                                          .state = HF_WAIT_IS_TIMED_OUT,
                                          .outcome = due->outcome,
                                          .closed_by = s->nonce,
                                          .check_at = check_at };
    struct hf_ops ops;
    hf_ops_init(&ops, s->store->sql, s->store->handle.alloc);
    wait_close_add(&ops, s->who, &closing);
    if (due->act == HF_WAIT_FAIL) {
        wait_fail_add(&ops, s->who, &closing);
        hf_ops_ring_ended(&ops, wait->turn_id);
    } else {
        wait_resume_add(&ops, s->who, &closing);
    }
    int rc = hf_ops_write(&ops, err);
    s->report->timed_out += rc == 0;
    hf_ops_fini(&ops);
    return rc;
}

static int sweep_one(struct sweeping *s, const struct hf_ops *seen, size_t i,
                     struct hf_err *err)
{
    const struct hf_call *found = hf_ops_result(seen, 0);
    hf_ms check_at = hf_out_i64(found, i, SESSION_WAIT_CHECK_AT);
    hf_ms next_ms = hf_out_i64(found, i, SESSION_WAIT_NEXT_MS);
    struct hf_wait wait;
    int rc = session_wait_read(found, i, &wait, err);
    if (rc)
        return rc;
    struct hf_wait_due due = hf_wait_due(&wait, next_ms, seen->batch.now);
    bool stays = due.act == HF_WAIT_ESCALATE || due.act == HF_WAIT_PASS_ON;
    rc = stays ? pass_on(s, &wait, next_ms, check_at, &due, err)
               : expire(s, &wait, check_at, &due, err);
    return rc == HF_EGUARD ? 0 : rc;
}

int sql_waits_sweep(struct sql_store *store, const struct hf_caller *who, size_t limit,
                    struct hf_sweep_report *report, struct hf_err *err)
{
    struct sweeping s = { .store = store, .who = who, .report = report };
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_WAITS_TO_SWEEP, HF_ANY_COUNT);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    size_t count = rc == 0 ? hf_ops_result(&ops, 0)->out_count : 0;
    if (count > 0)
        rc = hf_nonce(store->handle.random, s.nonce, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = sweep_one(&s, &ops, i, err);
    report->looked_at += (int64_t)count;
    report->more |= count >= limit;
    hf_ops_fini(&ops);
    return rc;
}
