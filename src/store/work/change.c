/* Changing rows: every verb of hf_work_change.
 *
 * A slot is one change of a batch. The common path is read all rows, decide each (core), and write
 * those that are still as they were read, in one transaction; a row that has changed meanwhile
 * makes the batch try again. A change that core refuses is an error on its item, or refuses the
 * batch with HF_ALL_OR_NONE. Two verbs of a holder are so frequent that they first try one guarded
 * statement without reading (store/work/fast.c); what that does not answer comes here. */
#include "store/work/change.h"

#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "os/liveness.h"
#include "store/batch/gates.h"

static bool whole(const struct changing *c)
{
    return (c->flags & HF_ALL_OR_NONE) != 0;
}

int change_refuse(struct changing *c, struct change_slot *slot, const struct hf_err *why)
{
    slot->answered = true;
    slot->refused = true;
    return hf_item_fail(c->answer, slot->item, why);
}

/* ---- find -------------------------------------------------------------------------- */

static int refuse_not_found(struct changing *c, struct change_slot *slot)
{
    struct hf_err why;
    (void)hf_fail(&why, HF_ENOTFOUND, slot->change->id ? "id" : "ref", "%s %s",
                  slot->change->id ? "there is no unit" : "nothing waits for",
                  slot->change->id ? slot->change->id : slot->change->ref);
    return change_refuse(c, slot, &why);
}

/* Ids are read together in one statement. */
static int read_together(struct changing *c, struct hf_ops *ops, struct hf_err *err)
{
    size_t call = 0, wanted = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        if (slot->answered || !slot->change->id)
            continue;
        if (wanted++ == 0)
            call = hf_ops_call(ops, HF_SQL_WORK_BY_ID, HF_ANY_COUNT);
        else
            hf_ops_again(ops);
        hf_ops_text(ops, slot->change->id);
    }
    if (wanted == 0)
        return 0;
    int rc = hf_ops_read(ops, err);
    if (rc)
        return rc;
    const struct hf_call *rows = hf_ops_result(ops, call);
    for (size_t i = 0, at = 0; i < c->n && at < rows->out_count; i++) {
        struct change_slot *slot = &c->slots[i];
        if (slot->answered || !hf_same(slot->change->id, hf_row_id(rows, at)))
            continue;
        rc = hf_row_read(rows, at++, &slot->was, err);
        if (rc)
            return rc;
        slot->seen = &ops->batch;
    }
    return 0;
}

/* The kind of wait that a resume asks for, NULL for either. */
static const char *wanted_kind(const struct hf_change *change)
{
    if (change->status == HF_STATUS_NONE)
        return NULL;
    return change->status == HF_STATUS_WAITING_USER ? "user" : "external";
}

static int begin_read(struct changing *c, struct hf_ops **ret_ops)
{
    struct hf_ops *ops = hf_arena_new(&c->arena, struct hf_ops);
    if (!ops)
        return HF_ENOMEM;
    hf_ops_init(ops, c->store->sql, c->store->handle.alloc);
    *ret_ops = ops;
    return 0;
}

/* A reference that is waited for: a read of its own, whose memory lives as long as the
 * slot needs it. */
static int read_by_ref(struct changing *c, struct change_slot *slot, struct hf_err *err)
{
    if (begin_read(c, &slot->ops))
        return hf_fail_plain(err, HF_ENOMEM);
    size_t call = hf_ops_call(slot->ops, HF_SQL_WORK_BY_WAITING_REF, HF_ANY_COUNT);
    hf_ops_text(slot->ops, c->who->tenant);
    hf_ops_text(slot->ops, slot->change->ref);
    hf_ops_text(slot->ops, wanted_kind(slot->change));
    int rc = hf_ops_read(slot->ops, err);
    if (rc)
        return rc;
    const struct hf_call *rows = hf_ops_result(slot->ops, call);
    if (rows->out_count == 0)
        return refuse_not_found(c, slot);
    if (rows->out_count > 1) {
        struct hf_err why;
        (void)hf_fail(&why, HF_EAMBIGUOUS, "ref", "several units wait for %s",
                      slot->change->ref);
        return change_refuse(c, slot, &why);
    }
    slot->seen = &slot->ops->batch;
    return hf_row_read(rows, 0, &slot->was, err);
}

/* A row may be named only once, by whatever way: two changes of it would be decided on the
 * same reading. Equal texts have been refused before; this is for rows that were found. */
static int check_named_once(const struct changing *c, const char *id, size_t at,
                            struct hf_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct change_slot *other = &c->slots[i];
        const char *named = other->change->id;
        if (!named && other->seen)
            named = other->was.w.work_id;
        if (i != at && !other->refused && hf_same(named, id))
            return hf_fail(err, HF_EINVAL, "id", "a batch may name unit %s only once",
                           id);
    }
    return 0;
}

static int read_rows(struct changing *c, struct hf_ops *ops, struct hf_err *err)
{
    int rc = read_together(c, ops, err);
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        if (!slot->answered && !slot->seen)
            rc = slot->change->id ? refuse_not_found(c, slot) : read_by_ref(c, slot, err);
        if (rc == 0 && slot->seen && !slot->change->id)
            rc = check_named_once(c, slot->was.w.work_id, i, err);
    }
    return rc;
}

/* ---- decide ------------------------------------------------------------------------ */

/* A resume straight into running brings a lease: its owner's defaults. */
static int complete_change(struct changing *c, struct change_slot *slot,
                           struct hf_change *change, const char **ret_holder,
                           struct hf_err *err)
{
    *change = *slot->change;
    *ret_holder = NULL;
    if (!change->owner)
        return 0;
    if (!change->incarnation)
        change->incarnation = c->store->handle.incarnation;
    if (!change->nonce) {
        char *nonce = hf_arena_take(&c->arena, HF_NONCE_TEXT);
        if (!nonce)
            return hf_fail_plain(err, HF_ENOMEM);
        int rc = hf_nonce(c->store->handle.random, nonce, err);
        if (rc)
            return rc;
        change->nonce = nonce;
    }
    return change->pid ? hf_life_describe(&c->arena, change->pid, NULL, ret_holder, err)
                       : 0;
}

/* The signal for which the row waits from now on, or from whose wait it is resumed; NULL: none. */
static const char *signal_of(const struct change_slot *slot)
{
    const char *ref = NULL;
    if (slot->step.kind == HF_STEP_WRITE && slot->change->verb == HF_VERB_WAIT)
        ref = slot->change->ref;
    if (slot->step.kind == HF_STEP_WRITE && slot->change->verb == HF_VERB_RESUME)
        ref = slot->was.w.waiting_ref;
    return ref && hf_starts_with(ref, "signal.") ? ref : NULL;
}

/* Reads the first signal of this name that no wait has taken. */
static int find_signal(struct changing *c, struct change_slot *slot, const char *ref,
                       const char **ret_payload, struct hf_err *err)
{
    if (begin_read(c, &slot->signals))
        return hf_fail_plain(err, HF_ENOMEM);
    hf_ops_call(slot->signals, HF_SQL_SIGNAL_FIRST, HF_ANY_COUNT);
    hf_ops_i64(slot->signals, slot->was.seq);
    hf_ops_text(slot->signals, ref);
    int rc = hf_ops_read(slot->signals, err);
    const struct hf_call *kept = rc ? NULL : hf_ops_result(slot->signals, 0);
    if (rc || kept->out_count == 0)
        return rc;
    slot->signal = hf_out_i64(kept, 0, HF_COL_SIGNAL_FIRST_NUMBER);
    *ret_payload = hf_out_text(kept, 0, HF_COL_SIGNAL_FIRST_PAYLOAD);
    return 0;
}

/* A wait whose signal is there goes through waiting into its queue, in one transaction. */
static int wait_through(struct changing *c, struct change_slot *slot, const char *payload,
                        const struct hf_env *env, struct hf_err *err)
{
    struct hf_change resume = { .size = sizeof resume,
                                .verb = HF_VERB_RESUME,
                                .id = slot->was.w.work_id,
                                .reason = slot->change->ref,
                                .payload = payload };
    slot->waited = slot->step.row;
    slot->waited.revision = slot->was.revision + 1;
    return hf_step_change(&c->arena, &slot->waited, &resume, env, &slot->step, err);
}

/* A signal that was sent before its process waited for it (store/process/tell.c) ends the wait in
 * the same transaction. A started owner_bound row keeps its lease then: no token can be lost with
 * the answer. A signal that came while its owner waited goes with the owner's resume. Sending
 * raises the revision, so none is missed between this read and the write. */
static int take_signal(struct changing *c, struct change_slot *slot,
                       const struct hf_change *change, const struct hf_env *env,
                       struct hf_err *err)
{
    const struct hf_row *was = &slot->was;
    struct hf_change with = *change;
    const char *payload = NULL, *ref = signal_of(slot);
    slot->signal = 0;
    int rc = ref ? find_signal(c, slot, ref, &payload, err) : 0;
    if (rc || slot->signal == 0)
        return rc;
    if (change->verb == HF_VERB_RESUME) {
        with.payload = change->payload ? change->payload : payload;
        return hf_step_change(&c->arena, was, &with, env, &slot->step, err);
    }
    if (was->disposition == HF_DISPOSITION_OWNER_BOUND)
        return hf_step_signal(&c->arena, was, change, payload, env, &slot->step, err);
    return wait_through(c, slot, payload, env, err);
}

static int decide(struct changing *c, struct change_slot *slot, struct hf_err *err)
{
    struct hf_env env;
    struct hf_policy policy;
    struct hf_change change;
    const char *holder;
    int rc = sql_env(c->store, c->who, slot->seen, &env, err);
    if (rc == 0)
        rc = sql_policy(c->store, &c->arena, slot->was.source, slot->was.w.kind, &policy,
                        err);
    if (rc)
        return rc;
    struct hf_err why;
    rc = complete_change(c, slot, &change, &holder, &why);
    env.policy = &policy;
    env.holder = holder;
    if (rc == 0)
        rc = hf_step_change(&c->arena, &slot->was, &change, &env, &slot->step, &why);
    if (rc == HF_ENOMEM)
        return hf_fail_plain(err, rc);
    return rc ? change_refuse(c, slot, &why) : take_signal(c, slot, &change, &env, err);
}

static int decide_all(struct changing *c, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n; i++)
        if (!c->slots[i].answered)
            rc = decide(c, &c->slots[i], err);
    return rc;
}

/* ---- write ------------------------------------------------------------------------- */

static bool writes(const struct change_slot *slot)
{
    return !slot->answered &&
           (slot->step.kind == HF_STEP_WRITE || slot->step.kind == HF_STEP_QUIET);
}

/* A row that may now be claimed, or a lane that has become free. */
static void ring_for(struct hf_ops *ops, const struct change_slot *slot)
{
    const struct hf_row *row = &slot->step.row;
    bool opened = slot->was.w.gate && !row->w.gate;
    if ((slot->step.kind == HF_STEP_WRITE || opened) &&
        (row->status == HF_STATUS_QUEUED || row->w.lane_key))
        hf_ops_ring_queue(ops, row->w.queue, 1);
}

/* A token is for the caller that took the lease by this call, or by the one that it
 * repeats: a resume repeats only under the nonce that holds the row. */
static bool took_lease(const struct change_slot *slot, const struct hf_row *row)
{
    if (row->status != HF_STATUS_RUNNING)
        return false;
    return slot->step.kind == HF_STEP_REPEAT
               ? slot->change->verb == HF_VERB_RESUME
               : writes(slot) && slot->step.kind == HF_STEP_WRITE;
}

/* Appends the read of a row that the statements themselves may change further: one that takes a
 * lease, whose term begins with the write, and one of a lane or a limit, which may have to wait for
 * it. */
static void add_read_back(struct changing *c, struct hf_ops *ops,
                          struct change_slot *slot)
{
    slot->read_back = 0;
    bool gated = slot->was.w.lane_key || slot->was.w.limit_name;
    if (!writes(slot))
        return;
    if (took_lease(slot, &slot->step.row)) {
        slot->read_back = change_begin_lease(ops, &slot->step.row);
    } else if (gated && !(c->flags & HF_BRIEF)) {
        slot->read_back = hf_ops_call(ops, HF_SQL_WORK_BY_ID, 1);
        hf_ops_text(ops, slot->change->id ? slot->change->id : slot->was.w.work_id);
    }
}

/* The input of a turn that waits was cancelled: so is the turn, which its next owner ends. */
static void cancel_waiting(struct hf_ops *ops, const struct change_slot *slot)
{
    const struct hf_row *row = &slot->step.row;
    hf_ops_call(ops, HF_SQL_SESSION_CANCEL, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.session_id);
    hf_ops_text(ops, row->w.work_id);
    hf_ops_text(ops, row->note);
    hf_ops_call(ops, HF_SQL_WAITS_CLOSE_TURN, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.session_id);
    hf_ops_text(ops, row->w.work_id);
    hf_ops_text(ops, HF_WAIT_OUTCOME_CANCELLED);
    hf_ops_text(ops, row->actor_kind);
    hf_ops_text(ops, row->actor);
    hf_ops_text(ops, "cancel");
    hf_ops_null(ops);
    hf_ops_ring_queue(ops, "session", 64);
}

static size_t put_turn(struct hf_ops *ops, enum hf_sql_id statement,
                       const struct hf_row *row)
{
    size_t call = hf_ops_call(ops, statement, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.session_id);
    hf_ops_text(ops, row->w.work_id);
    return call;
}

/* The turn of a released input continues if it is whole, and is then the session's open turn.
 * Otherwise it begins anew, but only on a person's word if it has called a tool that is not safe:
 * the new call has another key. */
static void add_reopen(struct hf_ops *ops, struct change_slot *slot)
{
    const struct hf_row *row = &slot->step.row;
    hf_ops_call(ops, HF_SQL_LEASE_LOCK_SESSION, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.session_id);
    put_turn(ops, HF_SQL_SESSION_REOPEN, row);
    put_turn(ops, HF_SQL_WAITS_REOPEN, row);
    if (!slot->change->anew)
        slot->performed = put_turn(ops, HF_SQL_EFFECTS_NONE_PERFORMED, row);
    hf_ops_call(ops, HF_SQL_TURN_TAKE_INPUT, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.session_id);
}

/* A session is informed that its running input got a request, or that one may begin a turn. */
static void tell_session(struct hf_ops *ops, struct change_slot *slot)
{
    const struct hf_row *row = &slot->step.row;
    if (row->w.session_id && slot->was.w.waiting_kind &&
        row->status == HF_STATUS_CANCELLED)
        cancel_waiting(ops, slot);
    if (!row->w.session_id || hf_status_terminal(row->status))
        return;
    if (slot->change->verb == HF_VERB_RELEASE)
        add_reopen(ops, slot);
    hf_ops_call(ops, HF_SQL_SESSION_MAKE_READY, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.session_id);
    hf_ops_text(ops, row->status == HF_STATUS_RUNNING ? row->w.cancel_request : NULL);
    hf_ops_null(ops);
}

static void add_row(struct hf_ops *ops, const struct change_slot *slot)
{
    bool through = slot->signal != 0 && slot->change->verb == HF_VERB_WAIT &&
                   slot->step.kind == HF_STEP_WRITE;
    if (through)
        hf_row_write(ops, &slot->was, &slot->waited);
    if (slot->signal != 0) {
        hf_ops_call(ops, HF_SQL_SIGNAL_TAKE, 1);
        hf_ops_i64(ops, slot->was.seq);
        hf_ops_i64(ops, slot->signal);
    }
    hf_row_write(ops, through ? &slot->waited : &slot->was, &slot->step.row);
}

/* Waiting statuses and such change through one statement; an appended event or a touch
 * writes no transition. */
static int add_writes(struct changing *c, struct hf_ops *ops, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        slot->first_call = ops->batch.call_count;
        slot->performed = 0;
        if (!writes(slot))
            continue;
        if (slot->change->verb == HF_VERB_RENEW)
            change_add_renewal(c, ops, slot);
        else if (slot->change->verb != HF_VERB_APPEND)
            add_row(ops, slot);
        if (slot->step.extra_event)
            hf_event_append(ops, &slot->step.row, slot->step.extra_event);
        ring_for(ops, slot);
        tell_session(ops, slot);
        rc = sql_wake_ended(c->store, c->who, ops, &slot->was, &slot->step.row, err);
    }
    hf_gates_grant(ops);
    for (size_t i = 0; i < c->n; i++) /* after all: a lane may have changed hands twice */
        add_read_back(c, ops, &c->slots[i]);
    change_add_receipt(c, ops);
    return rc;
}

static struct change_slot *slot_of_call(struct changing *c, size_t call)
{
    for (size_t i = c->n; i > 0; i--)
        if (writes(&c->slots[i - 1]) && c->slots[i - 1].first_call <= call)
            return &c->slots[i - 1];
    return NULL;
}

/* A unique key was in the way of one item: the lane's slot, or a dedup key that a requeue
 * would use twice. The driver says which; any other is no answer to return to a
 * caller. */
static int refuse_key(struct changing *c, size_t call, const struct hf_err *met,
                      struct hf_err *err)
{
    struct change_slot *slot = slot_of_call(c, call);
    bool lane = strstr(met->field, "lane_key") != NULL;
    bool dedup = strstr(met->field, "dedup_key") != NULL;
    if (!slot || (!lane && !dedup))
        return hf_fail(err, HF_EINTERNAL, met->field, "%s", met->message);
    struct hf_err why;
    if (lane)
        (void)hf_fail(&why, HF_EHELD, "lane_key", "another unit of lane %s is running",
                      slot->was.w.lane_key ? slot->was.w.lane_key : "?");
    else
        (void)hf_fail(&why, HF_ECONFLICT, "dedup_key",
                      "another unit with this dedup key is not finished");
    return change_refuse(c, slot, &why);
}

/* A release was refused, since the turn would perform an effect again. */
static int refuse_performed(struct changing *c, struct change_slot *slot,
                            struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_err why;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_EFFECT_PERFORMED, HF_ANY_COUNT);
    hf_ops_text(&ops, slot->step.row.w.work_id);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    if (found && found->out_count > 0) {
        (void)hf_fail(
            &why, HF_ETRANSITION, "anew",
            "the turn of %.60s would perform effect %.60s again (%s, %s), since "
            "its session continued: release it with anew, or cancel it",
            slot->step.row.w.work_id,
            hf_out_text(found, 0, HF_COL_EFFECT_PERFORMED_EFFECT_KEY),
            hf_out_text(found, 0, HF_COL_EFFECT_PERFORMED_RECOVERY),
            hf_out_text(found, 0, HF_COL_EFFECT_PERFORMED_STATUS));
        rc = change_refuse(c, slot, &why);
    }
    hf_ops_fini(&ops);
    return rc;
}

static bool any_write(const struct changing *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (writes(&c->slots[i]))
            return true;
    return false;
}

static bool any_refused(const struct changing *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->slots[i].refused)
            return true;
    return false;
}

/* ---- answer ------------------------------------------------------------------------ */

int change_read_written(const struct hf_ops *ops, size_t call, size_t at,
                        const struct hf_row *written, struct hf_row *ret_now,
                        struct hf_err *err)
{
    const struct hf_call *rows = hf_ops_result(ops, call);
    if (rows->out_count <= at)
        return hf_fail(err, ops->batch.lost ? HF_EUNCERTAIN : HF_EINTERNAL, NULL,
                       "it was done, and its unit was not found again");
    int rc = hf_row_read(rows, at, ret_now, err);
    if (rc || (ret_now->status == written->status &&
               (written->status != HF_STATUS_RUNNING ||
                hf_same(ret_now->claim_group, written->claim_group))))
        return rc;
    if (ops->batch.lost)
        return hf_fail(
            err, HF_EUNCERTAIN, NULL,
            "it was done, but the answer was lost, and unit %s was changed since",
            ret_now->w.work_id);
    return hf_fail(err, HF_EINTERNAL, NULL,
                   "unit %s was written as %s and read back as %s", ret_now->w.work_id,
                   hf_status_word(written->status), hf_status_word(ret_now->status));
}

size_t change_begin_lease(struct hf_ops *ops, const struct hf_row *row)
{
    hf_ops_call(ops, HF_SQL_WORK_RENEW, 1);
    hf_ops_text(ops, row->w.work_id);
    hf_ops_i64(ops, row->lease_incarnation);
    hf_ops_i64(ops, row->w.lease_fence);
    hf_ops_text(ops, row->claim_group);
    hf_ops_null(ops);
    size_t call = hf_ops_call(ops, HF_SQL_WORK_BY_ID, HF_ANY_COUNT);
    hf_ops_text(ops, row->w.work_id);
    return call;
}

static int show(struct changing *c, const struct hf_ops *write, struct change_slot *slot,
                struct hf_err *err)
{
    bool wrote = writes(slot);
    struct hf_row now;
    const struct hf_row *row = wrote ? &slot->step.row : &slot->was;
    slot->item->repeated = slot->step.kind == HF_STEP_REPEAT;
    int rc = 0;
    if (wrote && slot->read_back) {
        rc = change_read_written(write, slot->read_back, 0, row, &now, err);
        row = &now;
    }
    if (rc)
        return rc;
    rc = hf_item_show(c->answer, slot->item, row, (c->flags & HF_BRIEF) != 0);
    if (rc == 0 && took_lease(slot, row))
        rc = sql_item_token(c->answer, slot->item, row);
    return rc ? hf_fail_plain(err, rc) : 0;
}

static int show_all(struct changing *c, const struct hf_ops *write, struct hf_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        if (slot->answered)
            continue;
        int rc = show(c, write, slot, err);
        if (rc)
            return rc;
        slot->answered = true;
    }
    return 0;
}

/* ---- together ---------------------------------------------------------------------- */

static void forget_reads(struct changing *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        if (slot->ops)
            hf_ops_fini(slot->ops);
        if (slot->signals)
            hf_ops_fini(slot->signals);
        slot->ops = slot->signals = NULL;
        slot->seen = NULL;
    }
}

/* HF_EGUARD: a caller changed a row meanwhile; try again. */
static int attempt(struct changing *c, struct hf_ops *reads, struct hf_ops *write,
                   struct hf_err *err)
{
    hf_ops_reset(reads);
    int rc = read_rows(c, reads, err);
    if (rc == 0)
        rc = decide_all(c, err);
    /* The same operation may have been applied since it was looked for, by a call whose
     * answer was lost: then what refuses it now is what it did. */
    if (rc == 0 && any_refused(c))
        rc = change_repeat(c, err);
    if (rc || c->answered || (whole(c) && any_refused(c)))
        return rc;
    if (any_write(c)) {
        hf_ops_reset(write);
        struct hf_err met = { 0 };
        rc = add_writes(c, write, &met);
        if (rc == 0)
            rc = hf_ops_write(write, &met);
        if (rc == HF_ECONFLICT && change_is_receipt(c, write))
            return HF_EGUARD; /* the same operation was applied at the same moment */
        if (rc == HF_ECONFLICT) {
            rc = refuse_key(c, write->batch.failed_call, &met, err);
            return rc ? rc : HF_EGUARD;
        }
        struct change_slot *slot = slot_of_call(c, write->batch.failed_call);
        if (rc == HF_EGUARD && slot && slot->performed &&
            slot->performed == write->batch.failed_call) {
            rc = refuse_performed(c, slot, err);
            return rc ? rc : HF_EGUARD;
        }
        (void)hf_fail_as(err, rc, &met); /* `rc` is used below */
    }
    if (rc)
        return rc;
    rc = show_all(c, write, err);
    return any_write(c) ? sql_answered(rc, err) : rc;
}

int change_slowly(struct changing *c, struct hf_err *err)
{
    struct hf_ops reads, write;
    hf_ops_init(&reads, c->store->sql, c->store->handle.alloc);
    hf_ops_init(&write, c->store->sql, c->store->handle.alloc);
    int rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++) {
        rc = change_repeat(c, err);
        if (rc == 0 && !c->answered)
            rc = attempt(c, &reads, &write, err);
        forget_reads(c);
    }
    hf_ops_fini(&write);
    hf_ops_fini(&reads);
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}

/* The first refusal speaks for a batch that is refused whole. */
static int refuse_whole(struct changing *c, struct hf_err *err)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->slots[i].refused)
            return hf_fail(err, c->slots[i].item->code, c->slots[i].item->field, "%s",
                           c->slots[i].item->message);
    return 0;
}

/* A prefix or suffix becomes the full id once, here. */
static int full_id(struct changing *c, struct change_slot *slot, struct hf_err *err)
{
    struct hf_err why;
    struct hf_row row;
    struct hf_ops ops;
    hf_ops_init(&ops, c->store->sql, c->store->handle.alloc);
    int rc = sql_find(&ops, slot->own.id, &row, &why);
    if (rc == 0) {
        slot->own.id = hf_arena_text(&c->arena, row.w.work_id);
        rc = slot->own.id ? 0 : hf_fail_plain(err, HF_ENOMEM);
    } else if (rc == HF_ENOTFOUND || rc == HF_EAMBIGUOUS) {
        rc = change_refuse(c, slot, &why);
    } else if (err) {
        *err = why;
    }
    hf_ops_fini(&ops);
    return rc;
}

static int make_slots(struct changing *c, const struct hf_change *changes,
                      struct hf_err *err)
{
    c->slots = hf_arena_array(&c->arena, c->n, sizeof *c->slots);
    int rc = c->slots ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        slot->own = changes[i];
        slot->change = &slot->own;
        slot->item = hf_answer_add(c->answer);
        if (!slot->item)
            rc = hf_fail_plain(err, HF_ENOMEM);
    }
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        struct change_slot *slot = &c->slots[i];
        if (!slot->own.id || hf_uuid_valid(slot->own.id))
            continue;
        rc = full_id(c, slot, err);
        if (rc == 0 && !slot->refused)
            rc = check_named_once(c, slot->own.id, i, err);
    }
    return rc;
}

int sql_change(struct hf_store *handle, const struct hf_caller *who,
               const struct hf_change *changes, size_t n, unsigned flags,
               struct hf_answer *ret_answer, struct hf_err *err)
{
    struct changing c = { .store = sql_store_of(handle),
                          .who = who,
                          .n = n,
                          .flags = flags,
                          .answer = ret_answer };
    hf_arena_init(&c.arena, handle->alloc);
    int rc = make_slots(&c, changes, err);
    if (rc == 0)
        rc = change_fast(&c, err);
    if (rc == 0 && !c.answered)
        rc = change_slowly(&c, err);
    if (rc == 0)
        change_note_refusals(&c);
    if (rc == 0 && whole(&c))
        rc = refuse_whole(&c, err);
    hf_arena_fini(&c.arena);
    return rc;
}
