/* The checks. Written from docs/GUARANTEES.md and the lifecycle's table, sharing no code with the
 * library: a mistake there is not repeated here.
 *
 * A shadow is what the simulator knows of one row; the window is the calls since the last look at
 * the store, and a deed one of them that may have changed the row. Each event must have a cause: a
 * deed of the holder (with the token), one of an operator (without), or a peer, which may act on a
 * row only when its lease or its holder has ended. Several calls may be in the window, so two
 * causes may be possible; a check then accepts either. */

#include "sim/inside.h"

/* ---- who did it ------------------------------------------------------------------ */

static bool settling(enum hf_verb verb)
{
    return verb == HF_VERB_WAIT || verb == HF_VERB_CLOSE_OUT || verb == HF_VERB_FAIL ||
           verb == HF_VERB_HAND_BACK || verb == HF_VERB_ABANDON;
}

/* A call since the last look that may have done this to the row: it was not refused. */
static const struct sim_did *deed_on(const struct hf_sim *sim, const char *id,
                                     bool with_token, int64_t fence)
{
    for (size_t i = 0; i < sim->window_count; i++) {
        const struct sim_did *did = &sim->window[i];
        const struct sim_op *op = &did->op;
        if (op->kind != SIM_OP_CHANGE || !sim_same(op->id, id) ||
            (op->token[0] != '\0') != with_token || (did->known && did->code))
            continue;
        if (!with_token || (settling(op->verb) && op->fence == fence))
            return did;
    }
    return NULL;
}

bool sim_sweeps(enum sim_kind kind)
{
    /* A claim sweeps before it says that there is nothing. */
    return kind == SIM_OP_SWEEP || kind == SIM_OP_CLAIM || kind == SIM_OP_MONITOR ||
           kind == SIM_OP_OPEN;
}

static bool somebody_swept(const struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->window_count; i++) {
        if (sim_sweeps(sim->window[i].op.kind))
            return true;
    }
    return false;
}

/* ---- events ---------------------------------------------------------------------- */

#define BIT(status) (1u << (status))

static bool legal(enum hf_status from, enum hf_status to)
{
    static const unsigned next[HF_STATUS_COUNT] = {
        [HF_STATUS_NONE] = BIT(HF_STATUS_QUEUED) | BIT(HF_STATUS_WAITING_EXTERNAL) |
                           BIT(HF_STATUS_DONE),
        [HF_STATUS_QUEUED] = BIT(HF_STATUS_RUNNING) | BIT(HF_STATUS_CANCELLED) |
                             BIT(HF_STATUS_TIMEOUT),
        [HF_STATUS_RUNNING] = BIT(HF_STATUS_WAITING_USER) |
                              BIT(HF_STATUS_WAITING_EXTERNAL) | BIT(HF_STATUS_DONE) |
                              BIT(HF_STATUS_FAILED) | BIT(HF_STATUS_TIMEOUT) |
                              BIT(HF_STATUS_CANCELLED) | BIT(HF_STATUS_RETRY_SCHEDULED) |
                              BIT(HF_STATUS_QUEUED) | BIT(HF_STATUS_ABANDONED),
        [HF_STATUS_WAITING_USER] = BIT(HF_STATUS_QUEUED) | BIT(HF_STATUS_RUNNING) |
                                   BIT(HF_STATUS_TIMEOUT) | BIT(HF_STATUS_CANCELLED) |
                                   BIT(HF_STATUS_ABANDONED),
        [HF_STATUS_WAITING_EXTERNAL] = BIT(HF_STATUS_QUEUED) | BIT(HF_STATUS_RUNNING) |
                                       BIT(HF_STATUS_TIMEOUT) | BIT(HF_STATUS_CANCELLED) |
                                       BIT(HF_STATUS_ABANDONED) | BIT(HF_STATUS_DONE) |
                                       BIT(HF_STATUS_FAILED),
        [HF_STATUS_RETRY_SCHEDULED] = BIT(HF_STATUS_QUEUED) | BIT(HF_STATUS_CANCELLED),
        [HF_STATUS_DONE] = BIT(HF_STATUS_QUEUED),
        [HF_STATUS_FAILED] = BIT(HF_STATUS_QUEUED),
        [HF_STATUS_TIMEOUT] = BIT(HF_STATUS_QUEUED),
        [HF_STATUS_CANCELLED] = BIT(HF_STATUS_QUEUED),
        [HF_STATUS_ABANDONED] = BIT(HF_STATUS_QUEUED),
    };
    return (next[from] & BIT(to)) != 0;
}

/* A peer took a running row from its holder. What was known of the row before counts. */
static void judge_peer(struct hf_sim *sim, const struct sim_shadow *s, enum hf_status to)
{
    hf_ms lease_now = sim->mono_most + sim->lease_offset;
    bool expire = s->disposition == HF_DISPOSITION_EXPIRE;
    bool lapsed = lease_now >= s->was_expires_at + (expire ? SIM_GRACE_MS : 0);
    bool dead = sim_is_dead(sim, s->was_holder_pid);
    bool overran = s->was_deadline_at && sim->wall_most >= s->was_deadline_at &&
                   s->disposition != HF_DISPOSITION_OWNER_BOUND;
    bool spent = s->was_failures + 1 >= s->max_attempts;
    bool right = false;
    if (!somebody_swept(sim))
        sim_violate(sim, "row %s left running and no call asked for it", s->id);
    if (s->was_status != HF_STATUS_RUNNING || s->was_fence != s->fold_fence)
        return; /* it was claimed and lost between two looks */
    if (s->disposition == HF_DISPOSITION_RERUNNABLE)
        right = (to == HF_STATUS_QUEUED && (lapsed || dead) && !spent) ||
                (to == HF_STATUS_FAILED && (lapsed || dead) && spent) ||
                ((to == HF_STATUS_TIMEOUT || to == HF_STATUS_RETRY_SCHEDULED) && overran);
    else if (expire)
        right = (to == HF_STATUS_TIMEOUT || to == HF_STATUS_RETRY_SCHEDULED) &&
                (lapsed || dead || overran);
    else if (s->disposition == HF_DISPOSITION_OWNER_BOUND)
        right = to == HF_STATUS_ABANDONED &&
                (dead || (lapsed && (s->was_abandon_asked || s->abandon_asked ||
                                     deed_on(sim, s->id, false, 0))));
    if (!right)
        sim_violate(
            sim,
            "a peer made row %s (%s) %s: lapsed %d (at %lld, expires %lld), holder "
            "dead %d, overran %d, failures %lld of %lld",
            s->id, hf_disposition_word(s->disposition), hf_status_word(to), lapsed,
            (long long)lease_now, (long long)s->was_expires_at, dead, overran,
            (long long)s->was_failures, (long long)s->max_attempts);
    if (sim_spares(sim, s) && !dead && !overran)
        sim_violate(sim, "a monitor saw the store stall, and took row %s from its holder",
                    s->id);
    sim_mark(sim, to == HF_STATUS_FAILED   ? HF_SIM_MARK_EXHAUSTED
                  : to == HF_STATUS_QUEUED ? HF_SIM_MARK_LAPSED
                                           : HF_SIM_MARK_EXPIRED);
}

/* Time moved a row that was not held. */
static void judge_time(struct hf_sim *sim, const struct sim_shadow *s,
                       enum hf_status from, enum hf_status to)
{
    bool waits = from == HF_STATUS_WAITING_USER || from == HF_STATUS_WAITING_EXTERNAL;
    if (s->was_status != from || s->was_fence != s->fold_fence ||
        s->was_generation != s->fold_generation)
        return; /* it was elsewhere between two looks: what was read is of before */
    if (from == HF_STATUS_RETRY_SCHEDULED && to == HF_STATUS_QUEUED) {
        sim_mark(sim, HF_SIM_MARK_RETRIED);
        if (sim->wall_most < s->was_next_retry_at && !deed_on(sim, s->id, false, 0))
            sim_violate(sim, "row %s was promoted %lld ms before its time", s->id,
                        (long long)(s->was_next_retry_at - sim->wall_most));
    }
    if (to == HF_STATUS_TIMEOUT && (waits || from == HF_STATUS_QUEUED)) {
        if (waits)
            sim_mark(sim, HF_SIM_MARK_WAIT_TIMED_OUT);
        if (!s->was_deadline_at || sim->wall_most < s->was_deadline_at ||
            (waits && (s->bound || s->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)))
            sim_violate(sim,
                        "row %s timed out without reason: %s until %lld, at %lld at most",
                        s->id, hf_status_word(from), (long long)s->was_deadline_at,
                        (long long)sim->wall_most);
    }
    if (to == HF_STATUS_QUEUED && waits) {
        sim_mark(sim, HF_SIM_MARK_RESUMED);
        if (!deed_on(sim, s->id, false, 0))
            sim_violate(sim, "row %s was resumed without a call", s->id);
    }
}

static void judge_claim(struct hf_sim *sim, struct sim_shadow *s,
                        const struct hf_event *event)
{
    sim_mark(sim, HF_SIM_MARK_CLAIMED);
    if (event->fence != s->fold_fence + 1)
        sim_violate(sim, "row %s: fence %lld was taken after %lld", s->id,
                    (long long)event->fence, (long long)s->fold_fence);
    if (event->attempt != s->fold_attempts + 1)
        sim_violate(sim, "row %s: attempt %lld begins after %lld", s->id,
                    (long long)event->attempt, (long long)s->fold_attempts);
    if (s->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        sim_violate(sim, "row %s is owned outside, and was claimed", s->id);
    s->fold_fence = event->fence;
    s->fold_attempts = event->attempt;
    sim_limits_start_of(sim, s, event->created_at);
}

/* The row left `running`. A schedule that replaces its unit, and a session's input (`talk`), have
 * checks of their own. Otherwise the cause is the holder, an operator's cancel, or a peer. Where
 * the holder settled the row, the status is noted for judge_told; SIM_PERHAPS goes with it if a
 * cancel may have done the same. */
static void judge_from_running(struct hf_sim *sim, struct sim_shadow *s,
                               const struct hf_event *event, enum hf_status to)
{
    if (sim_cron_replaced(s, event))
        return;
    if (s->talk) {
        sim_talk_left(sim, s, event, to);
        return;
    }
    bool holder = deed_on(sim, s->id, true, s->fold_fence) != NULL;
    bool cancelled = deed_on(sim, s->id, false, 0) != NULL && to == HF_STATUS_CANCELLED;
    if (cancelled && !holder && s->bound && s->was_status == HF_STATUS_RUNNING)
        sim_violate(sim, "row %s is bound to its owner, and a foreign cancel ended it",
                    s->id);
    if (holder)
        s->settled[s->fold_fence % SIM_FENCES] = (uint8_t)((unsigned)to |
                                                           (cancelled ? SIM_PERHAPS : 0));
    else if (!cancelled)
        judge_peer(sim, s, to);
}

static void judge_generation(struct hf_sim *sim, struct sim_shadow *s,
                             const struct hf_event *event, enum hf_status from)
{
    bool requeued = hf_status_terminal(from);
    int64_t wanted = s->fold_generation + requeued;
    if (event->generation != wanted)
        sim_violate(sim, "row %s: generation %lld follows %lld", s->id,
                    (long long)event->generation, (long long)s->fold_generation);
    if (requeued) {
        sim_mark(sim, HF_SIM_MARK_REQUEUED);
        s->ends = 0;
        s->requeued_fence = s->fold_fence;
        if (!deed_on(sim, s->id, false, 0))
            sim_violate(sim, "row %s rose from the dead (%s)", s->id,
                        hf_status_word(from));
    }
    s->fold_generation = event->generation;
}

void sim_judge_event(struct hf_sim *sim, struct sim_shadow *s,
                     const struct hf_event *event)
{
    if (event->fence < s->fold_fence)
        sim_violate(sim, "row %s: an event of fence %lld after fence %lld", s->id,
                    (long long)event->fence, (long long)s->fold_fence);
    if (!event->to_status)
        return;
    enum hf_status from = event->from_status ? hf_status_of(event->from_status)
                                             : HF_STATUS_NONE;
    enum hf_status to = hf_status_of(event->to_status);
    if (from != s->at || !legal(from, to))
        sim_violate(sim, "row %s: an event from %s to %s while it is %s", s->id,
                    event->from_status ? event->from_status : "nothing", event->to_status,
                    s->at ? hf_status_word(s->at) : "nothing");
    if (from != HF_STATUS_NONE)
        judge_generation(sim, s, event, from);
    if (to == HF_STATUS_RUNNING)
        judge_claim(sim, s, event);
    else if (event->fence != s->fold_fence)
        sim_violate(sim, "row %s: it leaves %s under fence %lld, not %lld", s->id,
                    event->from_status ? event->from_status : "nothing",
                    (long long)event->fence, (long long)s->fold_fence);
    if (from == HF_STATUS_RUNNING)
        judge_from_running(sim, s, event, to);
    else
        judge_time(sim, s, from, to);
    if (hf_status_terminal(to) && ++s->ends > 1)
        sim_violate(sim, "row %s ended twice", s->id);
    if (to == HF_STATUS_ABANDONED)
        sim_mark(sim, HF_SIM_MARK_ABANDONED);
    if (to == HF_STATUS_CANCELLED)
        sim_mark(sim, HF_SIM_MARK_CANCELLED);
    if (to == HF_STATUS_WAITING_USER)
        sim_mark(sim, HF_SIM_MARK_WAITED);
    s->at = to;
}

/* ---- rows ------------------------------------------------------------------------ */

static void judge_fold(struct hf_sim *sim, const struct sim_shadow *s)
{
    if (s->status != s->at)
        sim_violate(sim, "row %s is %s, its events end at %s", s->id,
                    hf_status_word(s->status), s->at ? hf_status_word(s->at) : "nothing");
    if (s->generation != s->fold_generation || s->attempts != s->fold_attempts ||
        s->fence != s->fold_fence)
        sim_violate(sim,
                    "row %s has generation %lld, attempts %lld, fence %lld; its events "
                    "%lld, %lld, %lld",
                    s->id, (long long)s->generation, (long long)s->attempts,
                    (long long)s->fence, (long long)s->fold_generation,
                    (long long)s->fold_attempts, (long long)s->fold_fence);
    /* An input of a session runs under the session's lease, and has none of its own. */
    bool held = s->talk ? s->owned && !s->leased : s->leased;
    if ((s->status == HF_STATUS_RUNNING) != held ||
        (s->owned && hf_status_terminal(s->status)))
        sim_violate(sim, "row %s is %s, and its lease is %s", s->id,
                    hf_status_word(s->status), s->leased ? "held" : "free");
    if (sim->window_count == 1 && s->generation > s->was_generation && s->failures)
        sim_violate(sim, "row %s begins a generation with %lld failures", s->id,
                    (long long)s->failures);
    if (s->failures > s->max_attempts ||
        (s->failures < s->was_failures && s->generation == s->was_generation))
        sim_violate(sim, "row %s: %lld failures after %lld, of %lld", s->id,
                    (long long)s->failures, (long long)s->was_failures,
                    (long long)s->max_attempts);
}

/* A sweep that was answered has dealt with those whose holders were dead before it. */
static void judge_dead(struct hf_sim *sim, struct sim_shadow *s)
{
    bool dead = s->status == HF_STATUS_RUNNING && sim_is_dead(sim, s->holder_pid);
    for (size_t i = 0;
         dead && s->seen_dead && s->fence == s->was_fence && i < sim->window_count; i++) {
        const struct sim_did *did = &sim->window[i];
        if (did->op.kind != SIM_OP_CLAIM && did->op.kind != SIM_OP_OPEN &&
            sim_sweeps(did->op.kind) && did->known && did->code == 0)
            sim_violate(sim, "row %s: its holder is dead, and a sweep left it running",
                        s->id);
    }
    s->seen_dead = dead;
}

static void judge_told(struct hf_sim *sim, struct sim_shadow *s)
{
    if (s->told_fence) {
        unsigned settled = s->settled[s->told_fence % SIM_FENCES];
        enum hf_status there = (enum hf_status)(settled & ~SIM_PERHAPS);
        if (there != s->told_status)
            sim_violate(sim,
                        "row %s: the holder with fence %lld was told that it is %s; its "
                        "events say %s",
                        s->id, (long long)s->told_fence, hf_status_word(s->told_status),
                        there ? hf_status_word(there) : "nothing of that");
    }
    if (s->renewed_fence && s->renewed_fence == s->fence &&
        s->status == HF_STATUS_RUNNING && s->expires_at < s->renewed_until)
        sim_violate(sim, "row %s: renewed until %lld, as was told; it expires at %lld",
                    s->id, (long long)s->renewed_until, (long long)s->expires_at);
    s->told_fence = 0;
    s->renewed_fence = 0;
}

void sim_judge_row(struct hf_sim *sim, struct sim_shadow *s)
{
    judge_fold(sim, s);
    judge_told(sim, s);
    judge_dead(sim, s);
    sim_judge_verdict(sim, s);
    sim_judge_expiry(sim, s);
    if (s->status == HF_STATUS_RUNNING && s->was_status == HF_STATUS_RUNNING &&
        !s->fresh && s->fence == s->was_fence && s->expires_at < s->was_expires_at)
        sim_violate(sim, "row %s: its expiry moved back", s->id);
    if (s->waiting_lane)
        sim_mark(sim, HF_SIM_MARK_LANE_WAITED);
    if (s->status == HF_STATUS_RUNNING && s->bound &&
        s->expires_at + s->ttl_ms < sim_lease_now(sim))
        sim_mark(sim, HF_SIM_MARK_SILENT);
}

/* A ring has one token from its first hop on: each hop hands it to the next by making that,
 * so the hops that have none after them add up to one, whatever was repeated or lost. */
static void judge_tokens(struct hf_sim *sim)
{
    int8_t tokens[32] = { 0 };
    for (size_t i = 0; i < sim->unit_count; i++) {
        const struct sim_unit *u = &sim->units[i];
        if (u->workload != HF_SIM_OF_RING || !sim->row_of[i])
            continue;
        tokens[u->chain]++;
        if (u->next >= 0 && sim->row_of[u->next])
            tokens[u->chain]--;
        if (u->left == 0 && u->next >= 0)
            sim_violate(sim, "ring %d continued after its last hop", u->chain);
    }
    for (int i = 0; i < 32; i++) {
        if (tokens[i] > 1)
            sim_violate(sim, "ring %d has %d tokens", i, tokens[i]);
    }
}

void sim_judge_all(struct hf_sim *sim)
{
    uint32_t lanes = 0;
    judge_tokens(sim);
    for (size_t i = 0; i < sim->shadow_count; i++) {
        const struct sim_shadow *s = &sim->shadows[i];
        const struct sim_unit *u = s->unit >= 0 ? &sim->units[s->unit] : NULL;
        if (s->gone || !u || u->workload != HF_SIM_OF_CHAIN ||
            s->status != HF_STATUS_RUNNING)
            continue;
        if (lanes & (1u << u->chain))
            sim_violate(sim, "two units of lane %d run", u->chain);
        lanes |= 1u << u->chain;
    }
}

/* ---- answers --------------------------------------------------------------------- */

bool sim_was_pruned(const struct hf_sim *sim, const struct sim_op *op, int code)
{
    return code == HF_ENOTFOUND && op->name[0] && op->kind == SIM_OP_CREATE &&
           (sim->may & (1u << HF_SIM_PRUNE));
}

static void judge_created(struct hf_sim *sim, const struct sim_op *op,
                          const struct sim_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct sim_told *told = &answer->items[i];
        if (sim_was_pruned(sim, op, told->code))
            continue;
        if (told->code) {
            sim_violate(sim, "unit u%d is refused: %s", op->units[i],
                        hf_err_wire(told->code));
            continue;
        }
        bool registers = op->kind == SIM_OP_REGISTER;
        if (!told->created)
            sim_mark(sim, registers ? HF_SIM_MARK_REGISTER_REPEATED
                                    : HF_SIM_MARK_CREATE_REPEATED);
        else if (registers)
            sim_mark(sim, HF_SIM_MARK_REGISTERED);
        if (registers && told->created && op->name[0] && !told->token[0])
            sim_violate(sim, "process u%d was registered with a claim, and is not held",
                        op->units[i]);
        if (!told->id[0])
            continue; /* a repeat whose row was pruned meanwhile */
        struct sim_shadow *s = sim_shadow_add(sim, told->id);
        if (s)
            s->told_there = true;
        if (told->unit != op->units[i] && told->unit >= 0)
            sim_violate(sim, "unit u%d was asked for, u%d was given", op->units[i],
                        told->unit);
    }
}

/* A bump whose answer was lost shows in the tokens that are given out; one that is `new`
 * is of the incarnation of now. */
static void hear_incarnation(struct hf_sim *sim, int64_t store, bool new)
{
    if (store > sim->incarnation)
        sim->incarnation = store;
    if (new)
        sim->bumped = false;
}

static void judge_claimed(struct hf_sim *sim, const struct sim_op *op,
                          const struct sim_answer *answer)
{
    if (answer->count > (size_t)op->limit)
        sim_violate(sim, "a claim of %d took %zu", op->limit, answer->count);
    for (size_t i = 0; i < answer->count; i++) {
        const struct sim_told *told = &answer->items[i];
        struct sim_shadow *s = sim_shadow_add(sim, told->id);
        if (told->code || !told->token[0])
            continue;
        if (told->repeated)
            sim_mark(sim, HF_SIM_MARK_CLAIM_REPEATED);
        if (!s)
            continue;
        bool again = s->status == HF_STATUS_RUNNING && s->fence == told->fence;
        if (again && !told->repeated)
            sim_mark(sim, HF_SIM_MARK_REENTERED);
        bool other = s->actor != op->actor || s->boot != op->boot;
        if (again && s->token_sure && other && s->status == HF_STATUS_RUNNING)
            sim_violate(sim, "row %s: a%d/%d enters the lease of a%d/%d", s->id,
                        op->actor, op->boot, s->actor, s->boot);
        if (told->fence < s->fence)
            sim_violate(sim, "row %s: fence %lld is given out after %lld", s->id,
                        (long long)told->fence, (long long)s->fence);
        sim_copy(s->token, sizeof(s->token), told->token);
        s->token_sure = true;
        s->actor = op->actor;
        s->boot = op->boot;
        hear_incarnation(sim, told->store, !told->repeated && !op->id[0]);
    }
}

/* The call that settles a row tells its status; and from then on that is so. */
static void judge_accepted(struct hf_sim *sim, struct sim_shadow *s,
                           const struct sim_op *op, const struct sim_told *told)
{
    if (told->repeated) {
        sim_mark(sim, HF_SIM_MARK_SETTLE_REPEATED);
        return;
    }
    if (op->fence < s->fence)
        sim_violate(sim, "row %s: %s under fence %lld is accepted after fence %lld",
                    s->id, sim_op_word(op), (long long)op->fence, (long long)s->fence);
    if (op->store < sim->incarnation)
        sim_violate(
            sim, "row %s: %s with a token of store incarnation %lld is accepted in %lld",
            s->id, sim_op_word(op), (long long)op->store, (long long)sim->incarnation);
    if (s->status == HF_STATUS_RUNNING && s->fence == op->fence &&
        s->expires_at < sim_lease_now(sim))
        sim_mark(sim, HF_SIM_MARK_SETTLED_LATE);
    if (settling(op->verb)) {
        sim_mark(sim, HF_SIM_MARK_SETTLED);
        s->told_fence = op->fence;
        s->told_status = told->status;
    }
    if (op->verb == HF_VERB_RENEW) {
        s->renewed_fence = op->fence;
        s->renewed_until = sim_lease_now(sim) + told->ttl_ms;
    }
}

static void judge_refused(struct hf_sim *sim, const struct sim_shadow *s,
                          const struct sim_op *op, int code)
{
    bool same = sim->window_count == 1 && code != HF_ENOTFOUND && s->token_sure &&
                sim_same(s->token, op->token);
    if (same && op->verb == HF_VERB_CLOSE_OUT && s->status == op->status &&
        op->fence > s->requeued_fence &&
        s->settled[op->fence % SIM_FENCES] == (uint8_t)op->status)
        sim_violate(sim, "row %s: the repeat of its close-out is refused (%s)", s->id,
                    hf_err_wire(code));
    if (code != HF_ELEASELOST)
        return;
    if (op->store < sim->incarnation)
        sim_mark(sim, HF_SIM_MARK_OLD_STORE_REFUSED);
    if (op->fence < s->fence)
        sim_mark(sim, HF_SIM_MARK_STALE_REFUSED);
    if (same && s->status == HF_STATUS_RUNNING && op->store == sim->incarnation)
        sim_violate(sim, "row %s: the holder is told that its lease is lost; it is not",
                    s->id);
}

static void judge_changed(struct hf_sim *sim, const struct sim_op *op,
                          const struct sim_answer *answer)
{
    const struct sim_told *told = &answer->items[0];
    struct sim_shadow *s = sim_shadow_of(sim, op->id);
    if (!s || answer->count == 0)
        return;
    if (op->token[0] && told->code)
        judge_refused(sim, s, op, told->code);
    else if (op->token[0])
        judge_accepted(sim, s, op, told);
    else if (op->verb == HF_VERB_CLOSE_OUT && told->code == 0)
        sim_mark(sim, HF_SIM_MARK_COMPLETED);
}

static void judge_lease(struct hf_sim *sim, const struct sim_op *op,
                        const struct sim_answer *answer, bool known)
{
    struct sim_key *key = &sim->keys[op->key];
    const struct sim_told *told = &answer->items[0];
    hf_ms now = sim_lease_now(sim);
    bool mine = key->actor == op->actor && key->boot == op->boot;
    bool dead = sim_is_dead(sim, key->pid);
    if (!known)
        key->may_be_free = true; /* it may have been taken or let go */
    if (answer->code || !known)
        return;
    if (answer->displaced)
        sim_mark(sim, HF_SIM_MARK_SESSION_DISPLACED);
    if (op->kind == SIM_OP_RELEASE) {
        if (op->fence < key->fence)
            sim_violate(sim, "session %d: fence %lld is released after %lld", op->key,
                        (long long)op->fence, (long long)key->fence);
        key->may_be_free = true;
        return;
    }
    if (op->kind == SIM_OP_KEEP && op->fence < key->fence)
        sim_violate(sim, "session %d: fence %lld is renewed after %lld", op->key,
                    (long long)op->fence, (long long)key->fence);
    if (told->fence < key->fence)
        sim_violate(sim, "session %d: fence %lld is given after %lld", op->key,
                    (long long)told->fence, (long long)key->fence);
    if (op->kind == SIM_OP_TAKE && !mine && !key->may_be_free && key->expires_at > now &&
        !dead)
        sim_violate(sim, "session %d: taken %lld ms before its holder's time", op->key,
                    (long long)(key->expires_at - now));
    if (op->kind == SIM_OP_TAKE && !mine && told->fence == key->fence && key->fence)
        sim_violate(sim, "session %d: two holders have fence %lld", op->key,
                    (long long)key->fence);
    *key = (struct sim_key){ told->fence, op->actor,        op->boot,
                             op->pid,     told->expires_at, false };
}

void sim_judge_answer(struct hf_sim *sim, const struct sim_op *op,
                      const struct sim_answer *answer, bool known)
{
    if (op->kind == SIM_OP_TAKE || op->kind == SIM_OP_KEEP || op->kind == SIM_OP_RELEASE)
        judge_lease(sim, op, answer, known);
    if (op->kind >= SIM_OP_SEND)
        sim_judge_talk(sim, op, answer, known);
    sim_limits_answer(sim, op, answer, known);
    if (op->kind == SIM_OP_PRUNE)
        sim->pruned = true;
    if (op->kind == SIM_OP_BUMP && answer->code == 0)
        sim->incarnation = answer->items[0].fence;
    if (op->kind == SIM_OP_BUMP)
        sim->bumped = answer->code ? sim->bumped || !known : false;
    bool takes = op->kind == SIM_OP_CLAIM || op->kind == SIM_OP_REGISTER;
    if ((takes || op->kind == SIM_OP_BUMP) && !known) {
        for (size_t i = 0; i < sim->shadow_count; i++)
            sim->shadows[i].token_sure = false;
    }
    if (answer->code == HF_EINTERNAL || answer->code == HF_ECORRUPT)
        sim_violate(sim, "%s: %s", sim_op_word(op), hf_err_wire(answer->code));
    if (!known || answer->code)
        return;
    if (op->kind == SIM_OP_CREATE || op->kind == SIM_OP_REGISTER)
        judge_created(sim, op, answer);
    if (takes)
        judge_claimed(sim, op, answer);
    else if (op->kind == SIM_OP_EMIT)
        sim_emit_answer(sim, op, answer);
    else if (op->kind == SIM_OP_SCHEDULE && op->limit)
        sim_mark(sim, HF_SIM_MARK_SCHEDULE_RESUMED);
    else if (op->kind == SIM_OP_CHANGE)
        judge_changed(sim, op, answer);
}

/* ---- the end --------------------------------------------------------------------- */

/* Rings and chains have no reason to break: as many links as were planned, each done. */
static void judge_links(struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->unit_count; i++) {
        const struct sim_unit *u = &sim->units[i];
        if (u->workload != HF_SIM_OF_RING && u->workload != HF_SIM_OF_CHAIN)
            continue;
        const struct sim_shadow *s = u->acked ? sim_shadow_of(sim, u->id) : NULL;
        if (!u->acked || (u->left > 0 && u->next < 0))
            sim_violate(sim, "%s %d broke at unit u%zu",
                        hf_sim_workload_word(u->workload), u->chain, i);
        else if (s && !s->gone && s->status != HF_STATUS_DONE)
            sim_violate(sim, "unit u%zu of a %s ended as %s", i,
                        hf_sim_workload_word(u->workload), hf_status_word(s->status));
    }
}

static void judge_stats(struct hf_sim *sim)
{
    struct hf_stats stats;
    struct hf_err err = { 0 };
    if (hf_work_stats(sim->handles[0], NULL, &stats, &err))
        sim_violate(sim, "no stats: %s", err.message);
    else if (stats.by_status[HF_STATUS_QUEUED] || stats.by_status[HF_STATUS_RUNNING] ||
             stats.by_status[HF_STATUS_RETRY_SCHEDULED])
        sim_violate(sim, "all has ended, and the stats count what is left");
}

static void on_finding(void *user, const struct hf_finding *finding)
{
    if (finding->bad)
        sim_violate(user, "check: %s: %s", finding->what, finding->detail);
}

bool sim_ended(struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->unit_count; i++) {
        const struct sim_unit *u = &sim->units[i];
        bool wanted = u->parent < 0 || u->asked;
        if (wanted && !u->acked)
            return false;
    }
    for (size_t i = 0; i < sim->shadow_count; i++) {
        const struct sim_shadow *s = &sim->shadows[i];
        if (!s->gone && !hf_status_terminal(s->status))
            return false;
    }
    return sim_triggers_ended(sim) && sim_talks_ended(sim);
}

void sim_judge_end(struct hf_sim *sim)
{
    struct hf_err err = { 0 };
    judge_links(sim);
    sim_cron_judge(sim);
    sim_triggers_judge(sim);
    sim_turns_judge(sim);
    sim_talks_judge(sim);
    judge_stats(sim);
    if (hf_store_check(sim->handles[0], on_finding, sim, &err))
        sim_violate(sim, "the store cannot be checked: %s", err.message);
}
