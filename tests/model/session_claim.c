/* Claiming sessions: the lease, and what it does to the turn. */

#include "base/err.h"
#include "model/inside.h"

#define POISON 5
#define POISON_WINDOW_MS 3600000

enum claimed {
    CLAIMED,   /* shown in the answer */
    AGAIN,     /* a turn was ended: look again */
    NOTHING,   /* it has nothing to do */
    HELD_ALIVE /* another owner holds it */
};

/* ---- what becomes of the turn ------------------------------------------------------------ */

/* The input runs under the session's lease, and has none of its own. */
static void pin(struct m_call *call, struct m_row *row, const struct m_session *s)
{
    row->w.owner = s->owner;
    row->w.owner_incarnation = s->incarnation;
    row->nonce = s->nonce;
    row->session_fence = s->fence;
    row->lease_incarnation = call->disk->incarnation;
}

static void start(struct m_call *call, struct m_row *row, const struct m_session *s)
{
    const char *event = m_waits(row) ? "resumed" : "claimed";
    row->w.attempt_count++;
    row->w.lease_fence++;
    m_enter(call, row, HF_STATUS_RUNNING,
            (struct m_say_event){
                event, NULL, m_say(call->disk, "\"fence\":%lld", (long long)s->fence) });
    pin(call, row, s);
    row->w.started_at = call->now;
    row->w.active_at = call->now;
    if (row->w.first_started_at == 0)
        row->w.first_started_at = call->now;
}

/* No other turn keeps nodes behind the head when one begins. */
static void drop_nodes(struct model_disk *disk, const char *session_id)
{
    for (size_t i = 0; i < disk->turns.count; i++) {
        struct m_turn *turn = &disk->turns.at[i];
        size_t kept = 0;
        if (!m_same(turn->session_id, session_id))
            continue;
        for (size_t k = 0; k < turn->stored.count; k++)
            if (turn->stored.at[k].transient)
                turn->stored.at[kept++] = turn->stored.at[k];
        turn->stored.count = kept;
    }
}

static bool is_whole(const struct m_session *s, const struct m_turn *turn)
{
    int64_t nodes = 0;
    for (size_t i = 0; i < turn->stored.count; i++)
        nodes += !turn->stored.at[i].transient;
    return !turn->finished_at && turn->base_revision == s->s.head_revision &&
           turn->node_count == nodes;
}

int m_session_reopen(struct m_call *call, const struct m_row *row, bool anew)
{
    struct m_session *s = m_session_of(call->disk, row->w.session_id);
    struct m_turn *turn = m_turn_of(call->disk, row->w.session_id, row->w.work_id);
    if (!s || !turn)
        return 0;
    if (s->s.turn_id || s->nonce || s->s.deleted_at || !is_whole(s, turn))
        return anew || !m_effects_performed(turn) ? 0 : HF_ETRANSITION;
    s->s.turn_id = turn->turn_id;
    s->s.ready_at = call->now;
    m_waits_reopen(call->disk, turn->turn_id);
    for (size_t i = 0; i < call->disk->inputs.count; i++)
        if (call->disk->inputs.at[i].seq == row->seq)
            call->disk->inputs.at[i].turn_id = turn->turn_id;
    return 0;
}

static void begin(struct m_call *call, struct m_session *s)
{
    struct m_input *input = m_session_pending(call->disk, s);
    struct m_row *row = input ? m_row_by_seq(call->disk, input->seq) : NULL;
    if (!row)
        return;
    struct m_turn *turn = m_turn_of(call->disk, s->s.session_id, row->w.work_id);
    if (!turn)
        turn = m_add(call->disk->turns);
    drop_nodes(call->disk, s->s.session_id);
    turn->stored.count = 0; /* one that was held, and is not whole, begins anew */
    turn->effects_past = m_effects_leave(call, turn);
    turn->revoked = false;
    turn->session_id = s->s.session_id;
    turn->turn_id = row->w.work_id;
    turn->seq = row->seq;
    m_waits_drop(call->disk, turn->turn_id);
    turn->base_revision = s->s.head_revision;
    turn->step = turn->claimed_step = turn->node_count = 0;
    for (size_t i = 0; i < sizeof(turn->chain); i++)
        turn->chain[i] = s->s.chain[i];
    turn->save = (struct hf_span){ NULL, 0 };
    turn->started_at = call->now;
    input->turn_id = turn->turn_id;
    s->s.turn_id = turn->turn_id;
    start(call, row, s);
}

/* The turn ends without a commit, and the session is free. */
static void end_turn(struct m_call *call, struct m_session *s)
{
    (void)m_waits_end(call, s->s.turn_id, "end"); /* how many does not matter */
    s->s.turn_id = NULL;
    s->s.cancel_request = NULL;
    m_session_free(call, s, 0);
}

static void hold(struct m_call *call, struct m_session *s, struct m_row *row)
{
    for (size_t i = 0; i < call->disk->inputs.count; i++) {
        if (call->disk->inputs.at[i].seq == row->seq)
            call->disk->inputs.at[i].turn_id = NULL;
    }
    m_input_back(call, row, "held",
                 (struct m_say_event){ "transition", NULL, "\"reason\":\"poison\"" });
    row->w.status_reason = "poison";
    end_turn(call, s);
}

/* A claim was lost. True: once too often without a new step. */
static bool count_crash(struct m_call *call, const struct m_turn *turn, struct m_row *row)
{
    if (turn->step > turn->claimed_step) {
        row->crashes = row->crashed_at = 0;
        return false;
    }
    if (!row->crashed_at || call->now - row->crashed_at > POISON_WINDOW_MS) {
        row->crashed_at = call->now;
        row->crashes = 0;
    }
    return ++row->crashes >= POISON;
}

/* ---- one session -------------------------------------------------------------------------- */

struct taken {
    bool live; /* as it was before the claim */
    bool repeated;
    struct m_session was;
};

static void answer_with(struct m_call *call, const struct m_session *s,
                        const struct taken *taken, struct hf_session_answer *answer)
{
    m_session_show(call, answer, s);
    (void)m_turn_show(call, answer, s);
    answer->token = m_session_token(call->disk, s);
    if (!taken->live && taken->was.nonce) {
        answer->displaced = true;
        answer->displaced_owner = taken->was.owner;
        answer->displaced_fence = taken->was.fence;
    }
}

/* A turn is open, and its input runs under an earlier lease. */
static bool take_over(struct m_call *call, struct m_session *s, struct m_turn *turn,
                      struct m_row *row, const struct taken *taken)
{
    if (!taken->live && taken->was.nonce) {
        if (count_crash(call, turn, row)) {
            hold(call, s, row);
            return false;
        }
    } else if (!taken->live) {
        row->crashes = row->crashed_at = 0;
    }
    pin(call, row, s);
    if (!taken->live)
        m_note(call, row,
               (struct m_say_event){
                   "session_reclaimed", NULL,
                   m_say(call->disk, "\"fence\":%lld", (long long)s->fence) });
    return true;
}

static enum claimed with_turn(struct m_call *call, struct m_session *s,
                              const struct taken *taken, bool *ret_writes)
{
    struct m_turn *turn = m_turn_open(call->disk, s);
    struct m_row *row = m_row_by_seq(call->disk, turn->seq);
    bool ended = row && turn->step > 0 &&
                 (row->status == HF_STATUS_CANCELLED || row->status == HF_STATUS_TIMEOUT);
    bool starts = row && (row->status == HF_STATUS_QUEUED || m_waits(row));
    bool lost = ended && !taken->live && taken->was.nonce && count_crash(call, turn, row);
    if (!row || lost || (!starts && !ended && row->status != HF_STATUS_RUNNING)) {
        s->fence = taken->was.fence; /* it was not claimed */
        turn->finished_at = call->now;
        end_turn(call, s);
        return AGAIN;
    }
    *ret_writes = starts || !taken->repeated;
    if (!*ret_writes)
        return CLAIMED;
    if (starts) {
        m_waits_due(call, s);
        start(call, row, s);
    } else if (ended) {
        if (!taken->live && !taken->was.nonce) /* the last execution ended in order */
            row->crashes = row->crashed_at = 0;
        turn->claimed_step = turn->step;
        return CLAIMED;
    } else if (!take_over(call, s, turn, row, taken)) {
        s->fence = taken->was.fence;
        return AGAIN;
    }
    turn->claimed_step = turn->step;
    return CLAIMED;
}

static enum claimed claim_one(struct m_call *call, struct m_session *s,
                              const struct m_taker *taker, bool needs_turn,
                              struct hf_session_answer *answer)
{
    struct taken taken = { .live = m_session_live(call, s), .was = *s };
    bool writes = true;
    if (taken.live && !m_session_mine(call, s, taker))
        return HELD_ALIVE;
    if (needs_turn && !s->s.turn_id && !m_session_pending(call->disk, s)) {
        m_session_free(call, s, s->s.waiting_until); /* of a lease that lapsed, too */
        return NOTHING;
    }
    taken.repeated = taken.live && m_same(s->nonce, taker->nonce);
    if (taken.live)
        m_session_enter_again(call, s, taker);
    else
        m_session_acquire(call, s, taker);
    if (s->s.turn_id) {
        enum claimed what = with_turn(call, s, &taken, &writes);
        if (what != CLAIMED)
            return what;
    } else {
        begin(call, s);
    }
    if (writes) {
        m_session_extend(call, s);
        s->s.ready_at = s->s.waiting_until = 0;
    }
    answer_with(call, s, &taken, answer);
    return CLAIMED;
}

/* ---- which one ----------------------------------------------------------------------------- */

static bool of_agents(const struct hf_session_claim *claim, const struct m_session *s)
{
    for (size_t i = 0; i < claim->agent_count; i++) {
        if (m_same(claim->agents[i], s->s.agent))
            return true;
    }
    return false;
}

/* A lapsed lease comes first, then the one that is ready longest. */
static struct m_session *best(struct m_call *call, const struct hf_session_claim *claim)
{
    struct m_session *found = NULL;
    for (size_t i = 0; i < call->disk->sessions.count; i++) {
        struct m_session *s = &call->disk->sessions.at[i];
        bool lapsed = s->nonce && !m_session_live(call, s);
        bool ready = !s->nonce && s->s.ready_at && s->s.ready_at <= call->now;
        if (!of_agents(claim, s) || (!lapsed && !ready))
            continue;
        bool sooner = !found || (lapsed && !found->nonce) ||
                      (lapsed && s->expires_at < found->expires_at) ||
                      (!lapsed && !found->nonce && s->s.ready_at < found->s.ready_at);
        if (sooner)
            found = s;
    }
    return found;
}

/* The turn that this very claim has taken before. */
static struct m_session *claimed_before(struct m_call *call,
                                        const struct hf_session_claim *claim,
                                        const struct m_taker *taker)
{
    for (size_t i = 0; i < call->disk->sessions.count; i++) {
        struct m_session *s = &call->disk->sessions.at[i];
        if (of_agents(claim, s) && m_session_live(call, s) &&
            m_session_mine(call, s, taker) && m_same(s->nonce, taker->nonce) &&
            s->s.turn_id)
            return s;
    }
    return NULL;
}

static bool claim_ready(struct m_call *call, const struct hf_session_claim *claim,
                        const struct m_taker *taker, struct hf_session_answer *answer)
{
    struct m_session *s = claimed_before(call, claim, taker);
    if (s && claim_one(call, s, taker, true, answer) == CLAIMED)
        return true;
    while ((s = best(call, claim)) != NULL) {
        if (claim_one(call, s, taker, true, answer) == CLAIMED)
            return true;
    }
    return false;
}

static int claim_session(struct m_call *call, const struct hf_session_claim *claim,
                         struct hf_session_answer *answer)
{
    const struct m_taker taker = { .owner = claim->owner,
                                   .incarnation = claim->incarnation,
                                   .nonce = claim->nonce,
                                   .ttl_ms = claim->ttl_ms };
    int rc = 0;
    if (!claim->session_id) {
        struct hf_sweep_report report;
        if (claim_ready(call, claim, &taker, answer))
            return 0;
        m_sweep_all(call, &report);
        (void)claim_ready(call, claim, &taker, answer); /* nothing is fine */
        return 0;
    }
    struct m_session *s = m_session_find(call, claim->session_id, &rc);
    enum claimed what = AGAIN;
    while (rc == 0 && what == AGAIN)
        what = claim_one(call, s, &taker, false, answer);
    if (rc == 0 && what == HELD_ALIVE)
        rc = hf_fail(call->err, HF_ESESSIONBUSY, "session_id", "held");
    return rc;
}

int m_session_claim(struct hf_store *store, const struct hf_caller *who,
                    const struct hf_session_claim *claim,
                    struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    const struct hf_session_load load = { .limit = claim->records };
    int rc = claim_session(&call, claim, answer);
    answer->loaded = rc == 0 && claim->records > 0 && answer->session_count > 0;
    if (!answer->loaded)
        return rc;
    return m_session_page(
        &call, m_session_find(&call, answer->sessions[0].session_id, &rc), &load, answer);
}
