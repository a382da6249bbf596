/* Telling a process something: a fact and its event, in one transaction that is guarded by
 * the row as it was read. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/json_get.h"
#include "base/text.h"
#include "store/batch/gates.h"
#include "store/process/process.h"

struct telling {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_process_tell *tell;
    struct hf_arena arena;
    struct hf_ops read;
    struct hf_ops look;
    struct hf_ops write;
    struct hf_row was;
    struct hf_process process;
    const char *type; /* of the event */
    uint8_t content[HF_DIGEST_BYTES];
};

/* ---- what is told ------------------------------------------------------------------- */

static const char *const tell_types[HF_TELL_COUNT] = {
    [HF_TELL_OBSERVE] = "observer_added",
    [HF_TELL_UNOBSERVE] = "observer_removed",
    [HF_TELL_RETARGET] = "wake_retargeted",
    [HF_TELL_EXTERNAL_REF] = "external_ref_set",
};

/* An event whose name and payload are the caller's. */
static bool is_event(const struct hf_process_tell *tell)
{
    return tell->what == HF_TELL_APPEND || tell->what == HF_TELL_SIGNAL;
}

static int name_event(struct telling *t, struct hf_err *err)
{
    struct hf_digest digest;
    t->type = t->tell->what == HF_TELL_APPEND ? t->tell->name : tell_types[t->tell->what];
    if (t->tell->what == HF_TELL_SIGNAL)
        t->type = hf_arena_join(&t->arena, "signal.", t->tell->name);
    hf_digest_begin(&digest, "process.tell", 1);
    hf_digest_text(&digest, t->type);
    hf_digest_text(&digest, t->tell->payload);
    hf_digest_i64(&digest, t->tell->wake);
    return !t->type || hf_digest_end(&digest, t->content) ? hf_fail_plain(err, HF_ENOMEM)
                                                          : 0;
}

static const char *note_of(struct telling *t)
{
    struct hf_buf text;
    struct hf_json json;
    if (is_event(t->tell))
        return t->tell->payload;
    hf_buf_init(&text, t->arena.alloc, 4096);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, t->tell->what == HF_TELL_EXTERNAL_REF ? "ref" : "session",
                    t->tell->name);
    hf_json_end(&json);
    const char *note = hf_buf_keep(&text, &t->arena);
    if (!note)
        t->write.state = HF_ENOMEM;
    return note;
}

/* ---- is it so already? 1: yes ------------------------------------------------ */

static bool listed(const char *list, const char *text)
{
    struct json_t *all = NULL;
    bool there = false;
    struct hf_span span = { list, strlen(list) };
    if (hf_json_parse(span, SIZE_MAX, "list", &all, NULL))
        return false;
    for (size_t i = 0; i < hf_json_items(all); i++)
        there |= hf_same(hf_json_as_text(hf_json_item(all, i)), text);
    hf_json_free(all);
    return there;
}

static int told_by_key(struct telling *t, struct hf_err *err)
{
    if (!t->tell->key)
        return 0;
    hf_ops_reset(&t->look);
    hf_ops_call(&t->look, HF_SQL_PROCESS_KEY_READ, HF_ANY_COUNT);
    hf_ops_i64(&t->look, t->was.seq);
    hf_ops_text(&t->look, t->tell->key);
    int rc = hf_ops_read(&t->look, err);
    if (rc || hf_ops_result(&t->look, 0)->out_count == 0)
        return rc;
    const struct hf_val *content = hf_out(hf_ops_result(&t->look, 0), 0,
                                          HF_COL_PROCESS_KEY_READ_CONTENT);
    bool same = content->len == sizeof t->content &&
                memcmp(content->at, t->content, sizeof t->content) == 0;
    return same ? 1
                : hf_fail(err, HF_ECONFLICT, "key",
                          "the key was used earlier with other content");
}

static int stands_already(struct telling *t, struct hf_err *err)
{
    const struct hf_process_tell *tell = t->tell;
    switch (tell->what) {
    case HF_TELL_RETARGET: return hf_same(t->process.wake_session, tell->name);
    case HF_TELL_OBSERVE: return listed(t->process.observers, tell->name);
    case HF_TELL_UNOBSERVE: return !listed(t->process.observers, tell->name);
    case HF_TELL_EXTERNAL_REF:
        if (t->process.external_ref && !hf_same(t->process.external_ref, tell->name))
            return hf_fail(err, HF_ECONFLICT, "external_ref",
                           "the external reference is written once: it is %.100s",
                           t->process.external_ref);
        return t->process.external_ref != NULL;
    case HF_TELL_APPEND:
    case HF_TELL_SIGNAL:
    case HF_TELL_COUNT: break;
    }
    return told_by_key(t, err);
}

static int check_told(const struct telling *t, struct hf_err *err)
{
    if (hf_status_terminal(t->was.status))
        return hf_fail(err, HF_ETRANSITION, "status", "the process has ended (%s)",
                       hf_status_word(t->was.status));
    if (t->tell->what == HF_TELL_APPEND && t->process.event_types &&
        !listed(t->process.event_types, t->type))
        return hf_fail(err, HF_EINVAL, "type",
                       "the process declared no events of type %.80s", t->type);
    return 0;
}

/* ---- writing ------------------------------------------------------------------------ */

static void add_fact(struct telling *t)
{
    static const int statements[HF_TELL_COUNT] = {
        [HF_TELL_OBSERVE] = HF_SQL_PROCESS_OBSERVE,
        [HF_TELL_UNOBSERVE] = HF_SQL_PROCESS_UNOBSERVE,
        [HF_TELL_RETARGET] = HF_SQL_PROCESS_RETARGET,
        [HF_TELL_EXTERNAL_REF] = HF_SQL_PROCESS_REFER,
    };
    const struct hf_process_tell *tell = t->tell;
    struct hf_ops *ops = &t->write;
    if (!is_event(tell)) {
        hf_ops_call(ops, (enum hf_sql_id)statements[tell->what], 1);
        hf_ops_text(ops, tell->name);
        hf_ops_i64(ops, t->was.seq);
    } else if (tell->key) {
        hf_ops_call(ops, HF_SQL_PROCESS_KEY_WRITE, 1);
        hf_ops_i64(ops, t->was.seq);
        hf_ops_text(ops, tell->key);
        hf_ops_bytes(ops, t->content, sizeof t->content);
    }
}

/* Decides a change of a row and appends it. HF_ETRANSITION: the row does not take it. */
static int add_change(struct telling *t, const struct hf_row *row,
                      const struct hf_batch *seen, const struct hf_change *change,
                      struct hf_err *err)
{
    struct hf_env env;
    struct hf_policy policy;
    struct hf_step step;
    int rc = sql_env(t->store, t->who, seen, &env, err);
    if (rc == 0)
        rc = sql_policy(t->store, &t->arena, row->source, row->w.kind, &policy, err);
    if (rc)
        return rc;
    env.policy = &policy;
    rc = hf_step_change(&t->arena, row, change, &env, &step, err);
    if (rc || step.kind != HF_STEP_WRITE)
        return rc;
    hf_row_write(&t->write, row, &step.row);
    hf_ops_ring_queue(&t->write, row->w.queue, 1);
    return 0;
}

/* A signal that no wait has taken yet: the next wait for it, or the owner's resume from one, takes
 * it (store/work/change.c). */
static void keep_signal(struct telling *t)
{
    struct hf_ops *ops = &t->write;
    hf_ops_call(ops, HF_SQL_SIGNAL_KEEP, 1);
    hf_ops_i64(ops, t->was.seq);
    hf_ops_text(ops, t->type);
    hf_ops_text(ops, t->tell->payload);
    hf_ops_call(ops, HF_SQL_SIGNAL_KEPT, 1);
    hf_ops_i64(ops, t->was.seq);
}

/* A signal that its process waits for ends the wait in the same transaction; any other is kept for
 * the next wait. What only its owner may continue is left to the owner, whose resume takes the
 * signal. */
static int add_signal(struct telling *t, struct hf_err *err)
{
    struct hf_err why = { 0 };
    struct hf_change change = { .size = sizeof change,
                                .verb = HF_VERB_RESUME,
                                .id = t->was.w.work_id,
                                .payload = t->tell->payload,
                                .reason = t->type };
    if (t->was.disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return 0;
    if (t->was.disposition == HF_DISPOSITION_OWNER_BOUND ||
        !hf_same(t->was.w.waiting_ref, t->type)) {
        keep_signal(t);
        return 0;
    }
    int rc = add_change(t, &t->was, &t->read.batch, &change, &why);
    return hf_fail_as(err, rc, &why);
}

static int add_wake(struct telling *t, struct hf_err *err)
{
    char *nonce = hf_arena_take(&t->arena, HF_NONCE_TEXT);
    int rc = nonce ? hf_nonce(t->store->handle.random, nonce, err)
                   : hf_fail_plain(err, HF_ENOMEM);
    if (rc || !t->tell->wake || !*t->was.wake_session)
        return rc;
    struct hf_wake_cause cause = { .event = t->type,
                                   .status = t->was.w.status,
                                   .run_id = nonce,
                                   .payload = t->tell->payload };
    return sql_wake_add(t->store, t->who, &t->write, &t->was, &cause, err);
}

/* Wakes of the session that is the target no more, and that no caller has taken: each
 * ends as cancelled, which says why. One that was taken continues; it told the truth. */
static int drop_wakes(struct telling *t, struct hf_err *err)
{
    hf_ops_reset(&t->look);
    hf_ops_call(&t->look, HF_SQL_PROCESS_WAKES_WAITING, HF_ANY_COUNT);
    hf_ops_text(&t->look, t->was.w.work_id);
    int rc = hf_ops_read(&t->look, err);
    size_t count = rc == 0 ? hf_ops_result(&t->look, 0)->out_count : 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct hf_row *wake = hf_arena_new(&t->arena, struct hf_row);
        rc = wake ? hf_row_read(hf_ops_result(&t->look, 0), i, wake, err)
                  : hf_fail_plain(err, HF_ENOMEM);
        struct hf_change change = { .size = sizeof change,
                                    .verb = HF_VERB_CANCEL,
                                    .id = rc ? NULL : wake->w.work_id,
                                    .reason = "retargeted" };
        if (rc == 0)
            rc = add_change(t, wake, &t->look.batch, &change, err);
    }
    return rc;
}

static int add_rest(struct telling *t, struct hf_err *err)
{
    switch (t->tell->what) {
    case HF_TELL_APPEND: return add_wake(t, err);
    case HF_TELL_SIGNAL: return add_signal(t, err);
    case HF_TELL_RETARGET: return drop_wakes(t, err);
    case HF_TELL_OBSERVE:
    case HF_TELL_UNOBSERVE:
    case HF_TELL_EXTERNAL_REF:
    case HF_TELL_COUNT: break;
    }
    return 0;
}

static int write_all(struct telling *t, struct hf_err *err)
{
    hf_ops_reset(&t->write);
    hf_ops_call(&t->write, HF_SQL_PROCESS_OPEN, 1);
    hf_ops_i64(&t->write, t->was.seq);
    hf_ops_i64(&t->write, t->was.revision);
    add_fact(t);
    (void)sql_note_add(&t->write, t->who,
                       &(struct sql_note){ .work_id = t->was.w.work_id,
                                           .type = t->type,
                                           .message = t->tell->key,
                                           .payload = note_of(t) });
    int rc = add_rest(t, err);
    if (rc == 0)
        rc = hf_ops_write(&t->write, err);
    return rc == HF_ECONFLICT ? HF_EGUARD : rc; /* the same at the same moment */
}

/* 0: told; 1: it was so before; HF_EGUARD: something moved meanwhile. */
static int tell_once(struct telling *t, struct hf_err *err)
{
    int rc = sql_process_find(t->store, &t->read, t->tell->id, &t->was, &t->process, err);
    if (rc == 0)
        rc = stands_already(t, err);
    if (rc == 0)
        rc = check_told(t, err);
    return rc ? rc : write_all(t, err);
}

int sql_process_tell(struct hf_store *handle, const struct hf_caller *who,
                     const struct hf_process_tell *tell, bool *ret_repeated,
                     struct hf_err *err)
{
    struct telling t = { .store = sql_store_of(handle), .who = who, .tell = tell };
    hf_arena_init(&t.arena, handle->alloc);
    hf_ops_init(&t.read, t.store->sql, handle->alloc);
    hf_ops_init(&t.look, t.store->sql, handle->alloc);
    hf_ops_init(&t.write, t.store->sql, handle->alloc);
    int rc = name_event(&t, err);
    if (rc == 0)
        rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++)
        rc = tell_once(&t, err);
    hf_ops_fini(&t.write);
    hf_ops_fini(&t.look);
    hf_ops_fini(&t.read);
    hf_arena_fini(&t.arena);
    if (rc == HF_EGUARD)
        return hf_fail_plain(err, HF_EBUSY);
    if (rc < 0)
        return rc;
    *ret_repeated = rc == 1;
    return 0;
}
