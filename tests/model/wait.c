/* Waits of turns and the cancel of a turn, as the model has them. Keys have no secret here: a key
 * is its id and the number of its secret, with a check that any change breaks. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "model/inside.h"

static const char cancelled[] = "{\"kind\":\"cancelled\"}";

/* ---- finding ---------------------------------------------------------------------------- */

static struct m_wait *wait_of(struct model_disk *disk, const char *wait_id)
{
    for (size_t i = 0; i < disk->waits.count; i++) {
        if (m_same(disk->waits.at[i].w.wait_id, wait_id))
            return &disk->waits.at[i];
    }
    return NULL;
}

static bool is_open(const struct m_wait *wait)
{
    return m_same(wait->w.state, "open");
}

static bool of_turn(const struct m_wait *wait, const char *turn_id)
{
    return m_same(wait->w.turn_id, turn_id);
}

/* The turn that an id names, if it is its session's open one and the unit of its input is there: a
 * cancelled input may be pruned before a worker has ended its turn, which asks nothing more. */
static struct m_turn *turn_of_id(struct model_disk *disk, const char *wait_id)
{
    char turn_id[HF_UUID_TEXT];
    memcpy(turn_id, wait_id + 1, sizeof(turn_id) - 1);
    turn_id[sizeof(turn_id) - 1] = '\0';
    for (size_t i = 0; i < disk->turns.count; i++) {
        struct m_turn *turn = &disk->turns.at[i];
        const struct m_session *s = m_session_of(disk, turn->session_id);
        if (m_same(turn->turn_id, turn_id) && m_same(s->s.turn_id, turn_id) &&
            m_row_by_seq(disk, turn->seq))
            return turn;
    }
    return NULL;
}

static const char *kind_of_id(const char *wait_id)
{
    switch (wait_id[0]) {
    case 't': return "tool";
    case 'a': return "approval";
    case 's': return "signal";
    case 'i': return "timer";
    case 'c': return "custom";
    default: return NULL;
    }
}

/* ---- closing ---------------------------------------------------------------------------- */

static void make_turn_ready(struct m_call *call, struct m_session *s)
{
    if (!s->nonce && (!s->s.ready_at || s->s.ready_at > call->now))
        s->s.ready_at = call->now;
}

static void close_wait(struct m_call *call, struct m_wait *wait, const char *state,
                       const char *outcome, const char *closed_by)
{
    wait->w.state = state;
    wait->w.outcome = m_text(call->disk, outcome);
    wait->w.actor_kind = m_text(call->disk, call->who->actor_kind);
    wait->w.actor = m_text(call->disk, call->who->actor);
    wait->w.closed_at = call->now;
    wait->w.escalate_at = 0;
    wait->check_at = 0;
    wait->closed_by = m_text(call->disk, closed_by);
}

static struct m_row *unit_of(struct m_call *call, const char *session_id,
                             const char *turn_id)
{
    const struct m_turn *turn = m_turn_of(call->disk, session_id, turn_id);
    return turn ? m_row_by_seq(call->disk, turn->seq) : NULL;
}

static void resume_unit(struct m_call *call, struct m_row *row, const char *message,
                        const char *reason)
{
    if (!row || !row->w.waiting_kind)
        return;
    m_enter(call, row, HF_STATUS_QUEUED,
            (struct m_say_event){ "resumed", message, NULL });
    row->w.status_reason = reason;
}

static bool is_timer(const struct m_wait *wait)
{
    return m_same(wait->w.kind, "timer");
}

int64_t m_waits_end(struct m_call *call, const char *turn_id, const char *closed_by)
{
    int64_t count = 0;
    for (size_t i = 0; i < call->disk->waits.count; i++) {
        struct m_wait *wait = &call->disk->waits.at[i];
        if (!of_turn(wait, turn_id) || !is_open(wait))
            continue;
        close_wait(call, wait, "cancelled", cancelled, closed_by);
        count++;
    }
    return count;
}

/* The same without timers. */
static int64_t revoke_all(struct m_call *call, const char *turn_id, const char *outcome)
{
    int64_t count = 0;
    for (size_t i = 0; i < call->disk->waits.count; i++) {
        struct m_wait *wait = &call->disk->waits.at[i];
        if (!of_turn(wait, turn_id) || !is_open(wait) || is_timer(wait))
            continue;
        close_wait(call, wait, "cancelled", outcome, "revoke");
        count++;
    }
    return count;
}

void m_waits_drop(struct model_disk *disk, const char *turn_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->waits.count; i++) {
        if (!of_turn(&disk->waits.at[i], turn_id))
            disk->waits.at[kept++] = disk->waits.at[i];
    }
    disk->waits.count = kept;
}

void m_waits_reopen(struct model_disk *disk, const char *turn_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->waits.count; i++) {
        const struct m_wait *wait = &disk->waits.at[i];
        if (!of_turn(wait, turn_id) || !m_same(wait->closed_by, "end"))
            disk->waits.at[kept++] = *wait;
    }
    disk->waits.count = kept;
}

static bool is_of_open_turn(struct model_disk *disk, const struct m_wait *wait)
{
    const struct m_session *s = m_session_of(disk, wait->w.session_id);
    return m_same(s->s.turn_id, wait->w.turn_id);
}

void m_waits_prune(struct model_disk *disk, hf_ms before)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->waits.count; i++) {
        const struct m_wait *wait = &disk->waits.at[i];
        if (is_open(wait) || wait->w.closed_at >= before || is_of_open_turn(disk, wait))
            disk->waits.at[kept++] = *wait;
    }
    disk->waits.count = kept;
}

/* ---- opening, putting away --------------------------------------------------------------- */

static struct m_wait *open_one(struct m_call *call, struct m_turn *turn,
                               const struct hf_wait_spec *asked)
{
    struct model_disk *disk = call->disk;
    const struct m_session *s = m_session_of(disk, turn->session_id);
    char id[HF_WAIT_ID_TEXT];
    if (hf_wait_id(turn->turn_id, asked->kind, asked->name, id, NULL))
        abort();
    struct m_wait *wait = wait_of(disk, id);
    if (wait && wait->w.opened_at)
        return wait;
    struct hf_policy policy = m_policy_of(disk, HF_SOURCE_CONVERSATION, "input");
    hf_ms budget = asked->kind == HF_WAIT_APPROVAL ? policy.wait_user_ms
                                                   : policy.wait_external_ms;
    hf_ms deadline = asked->deadline_at ? asked->deadline_at : call->now + budget;
    bool fresh = !wait;
    if (!wait) {
        wait = m_add(disk->waits);
        wait->w.wait_id = m_text(disk, id);
    } else if (m_same(wait->w.state, "resolved") && asked->answerer &&
               !m_same(asked->answerer, wait->w.actor)) {
        fresh = true; /* an answer by an actor that may not */
        wait->w.outcome = NULL;
        wait->w.closed_at = 0;
        wait->closed_by = NULL;
    }
    if (fresh)
        wait->w.state = "open";
    wait->w.session_id = turn->session_id;
    wait->w.turn_id = turn->turn_id;
    wait->w.tenant = s->s.tenant;
    wait->w.agent = s->s.agent;
    wait->w.kind = hf_wait_kind_word(asked->kind);
    wait->w.name = m_text(disk, asked->name);
    wait->w.asked = m_text(disk, asked->asked);
    wait->w.answerer = m_text(disk, asked->answerer);
    wait->w.deadline_at = deadline;
    wait->w.opened_at = call->now;
    bool next = asked->policy == HF_AT_DEADLINE_NEXT;
    wait->w.policy = asked->policy ? hf_wait_policy_word(asked->policy) : NULL;
    wait->w.next_answerer = m_text(disk, asked->next_answerer);
    wait->w.next_policy = next ? hf_wait_policy_word(asked->next_policy) : NULL;
    wait->w.escalate = m_text(disk, asked->escalate);
    wait->w.escalate_at = asked->escalate_at;
    wait->next_ms = asked->next_ms ? asked->next_ms : deadline - call->now;
    if (!fresh)
        return wait;
    if (asked->kind != HF_WAIT_TIMER)
        wait->check_at = asked->escalate_at && asked->escalate_at < deadline
                             ? asked->escalate_at
                             : deadline;
    if (turn->revoked && asked->kind != HF_WAIT_TIMER) {
        hf_ms escalate_at = wait->w.escalate_at;
        const char *actor_kind = wait->w.actor_kind, *actor = wait->w.actor;
        close_wait(call, wait, "cancelled", cancelled, "revoked");
        wait->w.actor_kind = actor_kind;
        wait->w.actor = actor;
        wait->w.escalate_at = escalate_at;
    }
    return wait;
}

static const struct m_wait *urgent(struct model_disk *disk, const char *turn_id)
{
    const struct m_wait *found = NULL;
    for (size_t i = 0; i < disk->waits.count; i++) {
        const struct m_wait *wait = &disk->waits.at[i];
        if (!of_turn(wait, turn_id) || !is_open(wait))
            continue;
        if (!found || wait->w.deadline_at < found->w.deadline_at ||
            (wait->w.deadline_at == found->w.deadline_at &&
             strcmp(wait->w.wait_id, found->w.wait_id) < 0))
            found = wait;
    }
    return found;
}

static void show_urgent(struct m_call *call, struct m_row *row, const char *turn_id)
{
    const struct m_wait *wait = urgent(call->disk, turn_id);
    if (!row || !row->w.waiting_kind || !wait)
        return;
    row->w.waiting_ref = wait->w.wait_id;
    row->w.deadline_at = wait->w.deadline_at;
    row->w.escalate_at = wait->w.escalate_at;
}

void m_waits_open(struct m_call *call, struct m_turn *turn,
                  const struct hf_session_step *step)
{
    for (size_t i = 0; i < step->wait_count; i++)
        (void)open_one(call, turn, &step->waits[i]); /* the row is found by its id */
}

bool m_put_away(struct m_call *call, struct m_session *s, const struct m_turn *turn,
                const struct hf_session_step *step)
{
    struct m_row *row = m_row_by_seq(call->disk, turn->seq);
    bool mine = row && row->status == HF_STATUS_RUNNING && m_same(row->nonce, s->nonce) &&
                row->session_fence == s->fence;
    hf_ms ready_at = s->s.cancel_request ? call->now : 0;
    for (size_t i = 0; i < step->wait_count && !s->s.cancel_request; i++) {
        char id[HF_WAIT_ID_TEXT];
        if (hf_wait_id(turn->turn_id, step->waits[i].kind, step->waits[i].name, id, NULL))
            abort();
        const struct m_wait *wait = wait_of(call->disk, id);
        hf_ms at = !is_open(wait) ? call->now : is_timer(wait) ? wait->w.deadline_at : 0;
        if (at && (!ready_at || at < ready_at))
            ready_at = at;
    }
    const struct m_wait *wait = urgent(call->disk, turn->turn_id);
    bool ready = ready_at && ready_at <= call->now;
    m_session_free(call, s, 0);
    s->s.ready_at = ready_at;
    if (mine && !ready && wait) {
        bool user = m_same(wait->w.kind, "approval");
        m_enter(call, row, user ? HF_STATUS_WAITING_USER : HF_STATUS_WAITING_EXTERNAL,
                (struct m_say_event){ "waiting_set", NULL, NULL });
        row->w.status_reason = wait->w.kind;
        row->w.waiting_kind = user ? "user" : "external";
        row->w.escalate = wait->w.escalate;
        row->crashes = row->crashed_at = 0;
        show_urgent(call, row, turn->turn_id);
    } else if (mine) {
        m_input_back(call, row, "lane",
                     (struct m_say_event){ "transition", "resumed", NULL });
        row->w.status_reason = "resumed";
        row->crashes = row->crashed_at = 0;
    }
    return ready;
}

void m_waits_due(struct m_call *call, const struct m_session *s)
{
    for (size_t i = 0; i < call->disk->waits.count; i++) {
        struct m_wait *wait = &call->disk->waits.at[i];
        if (of_turn(wait, s->s.turn_id) && is_open(wait) && is_timer(wait) &&
            wait->w.deadline_at <= call->now)
            close_wait(call, wait, "resolved", "{\"kind\":\"ok\",\"value\":null}", "due");
    }
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct hf_wait *)a)->wait_id,
                  ((const struct hf_wait *)b)->wait_id);
}

void m_waits_show(struct m_call *call, struct hf_session_answer *answer,
                  struct hf_session_turn *turn)
{
    struct hf_wait *all = m_answer_memory(answer,
                                          (call->disk->waits.count + 1) * sizeof(*all));
    for (size_t i = 0; i < call->disk->waits.count; i++) {
        if (of_turn(&call->disk->waits.at[i], turn->turn_id))
            all[turn->wait_count++] = call->disk->waits.at[i].w;
    }
    qsort(all, turn->wait_count, sizeof(*all), by_id);
    turn->waits = all;
}

/* ---- sweeping --------------------------------------------------------------------------- */

static void page(struct m_call *call, const struct m_wait *wait)
{
    struct hf_caller who = *call->who;
    struct m_call as = *call;
    struct m_row *made = NULL;
    bool created = false;
    const char *by = wait->w.answerer
                         ? m_say(call->disk, "\"answerer\":\"%s\",", wait->w.answerer)
                         : "";
    struct hf_work_spec request = {
        .size = sizeof(request),
        .source = HF_SOURCE_CONTROL,
        .source_id = wait->w.turn_id,
        .source_run_id = wait->w.wait_id,
        .kind = wait->w.escalate + 5,
        .queue = "default",
        .parent_work_id = wait->w.turn_id,
        .payload = m_say(
            call->disk, "{%s\"deadline_at\":%lld,\"escalate\":\"%s\",\"wait_id\":\"%s\"}",
            by, (long long)wait->w.deadline_at, wait->w.escalate, wait->w.wait_id),
        .priority = -1,
    };
    who.tenant = wait->w.tenant;
    as.who = &who;
    (void)m_create_one(&as, &request, &made, &created); /* one per wait */
}

static void pass_on(struct m_call *call, struct m_wait *wait)
{
    struct m_row *row = unit_of(call, wait->w.session_id, wait->w.turn_id);
    bool escalates = wait->w.escalate_at != 0;
    if (row)
        m_note(call, row, (struct m_say_event){ "escalated", wait->w.wait_id, NULL });
    if (escalates && wait->w.escalate && strncmp(wait->w.escalate, "work:", 5) == 0)
        page(call, wait);
    wait->w.escalate_at = 0;
    if (!escalates) {
        wait->w.answerer = wait->w.next_answerer;
        wait->w.policy = wait->w.next_policy;
        wait->w.next_answerer = wait->w.next_policy = NULL;
        wait->w.deadline_at = call->now + wait->next_ms;
    }
    wait->check_at = wait->w.deadline_at;
    show_urgent(call, unit_of(call, wait->w.session_id, wait->w.turn_id),
                wait->w.turn_id);
}

static const char *outcome_at_deadline(const char *policy)
{
    if (m_same(policy, "approve"))
        return "{\"kind\":\"approve\"}";
    return m_same(policy, "deny")
               ? "{\"kind\":\"deny\",\"reason\":\"no answer came in time\"}"
               : "{\"kind\":\"timeout\"}";
}

static void expire(struct m_call *call, struct m_wait *wait)
{
    struct m_session *s = m_session_of(call->disk, wait->w.session_id);
    struct m_row *row = unit_of(call, wait->w.session_id, wait->w.turn_id);
    bool fails = m_same(wait->w.policy, "fail_turn");
    if (m_same(s->s.turn_id, wait->w.turn_id))
        make_turn_ready(call, s);
    close_wait(call, wait, "timed_out", outcome_at_deadline(wait->w.policy), "sweep");
    if (!fails) {
        resume_unit(call, row, wait->w.wait_id, "resumed");
        return;
    }
    if (row && row->w.waiting_kind) {
        m_enter(call, row, HF_STATUS_TIMEOUT,
                (struct m_say_event){ "timeout_marked", wait->w.wait_id, NULL });
        row->w.status_reason = "wait_timeout";
    }
    (void)m_waits_end(call, wait->w.turn_id, "end"); /* how many does not matter */
}

void m_waits_sweep(struct m_call *call, size_t limit, struct hf_sweep_report *report)
{
    size_t count = 0;
    struct m_wait **due = calloc(call->disk->waits.count + 1, sizeof(struct m_wait *));
    if (!due)
        abort();
    for (size_t i = 0; i < call->disk->waits.count; i++) {
        struct m_wait *wait = &call->disk->waits.at[i];
        if (wait->check_at && wait->check_at <= call->now)
            due[count++] = wait;
    }
    for (size_t i = 0; i < count; i++) /* in the order of their time */
        for (size_t j = i + 1; j < count; j++)
            if (due[j]->check_at < due[i]->check_at) {
                struct m_wait *one = due[i];
                due[i] = due[j];
                due[j] = one;
            }
    count = count < limit ? count : limit;
    for (size_t i = 0; i < count; i++) {
        if (!is_open(due[i]))
            continue; /* closed with another of its turn */
        if (due[i]->w.escalate_at || m_same(due[i]->w.policy, "next")) {
            pass_on(call, due[i]);
            report->escalated++;
        } else {
            expire(call, due[i]);
            report->timed_out++;
        }
    }
    report->looked_at += (int64_t)count;
    report->more |= count >= limit;
    free(due);
}

hf_ms m_waits_next(const struct model_disk *disk)
{
    hf_ms at = 0;
    for (size_t i = 0; i < disk->waits.count; i++) {
        hf_ms one = disk->waits.at[i].check_at;
        if (one && (!at || one < at))
            at = one;
    }
    return at;
}

/* ---- verbs ------------------------------------------------------------------------------ */

static int show(struct m_call *call, struct hf_wait_answer *answer,
                const struct m_wait *wait)
{
    struct hf_wait *one = hf_wait_answer_memory(answer, sizeof(*one));
    if (!one)
        return hf_fail_plain(call->err, HF_ENOMEM);
    *one = wait->w;
    answer->waits = one;
    answer->wait_count = 1;
    return 0;
}

static struct m_wait *add_early(struct m_call *call, const char *wait_id)
{
    const struct m_turn *turn = turn_of_id(call->disk, wait_id);
    if (!turn || turn->revoked)
        return NULL;
    const struct m_session *s = m_session_of(call->disk, turn->session_id);
    struct m_wait *wait = m_add(call->disk->waits);
    wait->w = (struct hf_wait){ .wait_id = m_text(call->disk, wait_id),
                                .session_id = turn->session_id,
                                .turn_id = turn->turn_id,
                                .tenant = s->s.tenant,
                                .agent = s->s.agent,
                                .kind = kind_of_id(wait_id),
                                .state = "open" };
    return wait;
}

static const char *fresh(struct m_call *call)
{
    char nonce[HF_NONCE_TEXT];
    if (call->who->operation_id)
        return call->who->operation_id;
    if (hf_nonce(call->m->handle.random, nonce, NULL))
        abort();
    return m_text(call->disk, nonce);
}

/* The end of one wait by a call; *ret_mine: by this very call. NULL: there is none. */
static struct m_wait *end_one(struct m_call *call, const char *wait_id, const char *state,
                              const char *outcome, bool *ret_mine)
{
    const char *closed_by = fresh(call);
    struct m_wait *wait = wait_of(call->disk, wait_id);
    bool early = !wait;
    if (early)
        wait = kind_of_id(wait_id) ? add_early(call, wait_id) : NULL;
    if (wait && is_open(wait)) {
        struct m_session *s = m_session_of(call->disk, wait->w.session_id);
        close_wait(call, wait, state, outcome, closed_by);
        if (!early) {
            if (m_same(s->s.turn_id, wait->w.turn_id))
                make_turn_ready(call, s);
            resume_unit(call, unit_of(call, wait->w.session_id, wait->w.turn_id), wait_id,
                        "resumed");
        }
    }
    *ret_mine = wait && m_same(wait->closed_by, closed_by) &&
                m_same(wait->w.outcome, outcome);
    return wait;
}

static const char *outcome_of(struct model_disk *disk, const struct hf_wait_resolve *r)
{
    const char *value = r->value ? r->value : "null";
    switch (r->word) {
    case HF_ANSWER_OK: return m_say(disk, "{\"kind\":\"ok\",\"value\":%s}", value);
    case HF_ANSWER_ERROR:
        return m_say(disk, "{\"kind\":\"error\",\"message\":\"%s\",\"value\":%s}",
                     r->reason ? r->reason : "failed", value);
    case HF_ANSWER_APPROVE:
        return r->value ? m_say(disk, "{\"arguments\":%s,\"kind\":\"approve\"}", r->value)
                        : "{\"kind\":\"approve\"}";
    case HF_ANSWER_DENY:
        return r->reason ? m_say(disk, "{\"kind\":\"deny\",\"reason\":\"%s\"}", r->reason)
                         : "{\"kind\":\"deny\"}";
    case HF_WAIT_WORD_COUNT: break;
    }
    return "";
}

/* Of schemas the model knows only those whose one member is an integer n. */
static bool edits_fit(const struct m_wait *wait, const char *value)
{
    const char *edits = wait->w.asked ? strstr(wait->w.asked, "\"edits\":") : NULL;
    const char *n = strstr(value, "\"n\":");
    return edits &&
           (strncmp(edits + 8, "true", 4) == 0 || (n && strspn(n + 4, "0123456789") > 0));
}

static int resolve(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_wait_resolve *request, bool by_key,
                   struct hf_wait_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    const char *id = request->wait_id;
    int missing = by_key ? HF_EWAITKEY : HF_ENOTFOUND;
    bool approves = request->word == HF_ANSWER_APPROVE || request->word == HF_ANSWER_DENY;
    if (strlen(id) != 62 || !kind_of_id(id))
        return hf_fail_plain(err, missing);
    if (approves != (id[0] == 'a') || id[0] == 'i')
        return hf_fail(err, HF_EINVAL, "answer", "it does not fit");
    struct m_wait *wait = wait_of(call.disk, id);
    if (approves && request->value && !wait) {
        const struct m_turn *turn = turn_of_id(call.disk, id);
        return turn && !turn->revoked
                   ? hf_fail(err, HF_EINVAL, "value", "it has not asked yet")
                   : hf_fail_plain(err, missing);
    }
    if (approves && request->value && is_open(wait) && !edits_fit(wait, request->value))
        return hf_fail(err, HF_EINVAL, "value", "it does not fit");
    if (wait && is_open(wait) && wait->w.answerer &&
        !m_same(wait->w.answerer, who->actor))
        return hf_fail(err, HF_EANSWERER, "actor", "another may");
    bool mine = false;
    wait = end_one(&call, id, "resolved", outcome_of(call.disk, request), &mine);
    if (!wait || (by_key && !mine && m_same(wait->w.state, "cancelled")))
        return hf_fail_plain(err, missing);
    answer->accepted = mine;
    return show(&call, answer, wait);
}

static int revoke(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_wait_revoke *request, struct hf_wait_answer *answer,
                  struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    const char *outcome = request->reason
                              ? m_say(call.disk,
                                      "{\"kind\":\"cancelled\",\"reason\":\"%s\"}",
                                      request->reason)
                              : cancelled;
    bool mine = false;
    if (request->wait_id) {
        const struct m_wait *wait = strlen(request->wait_id) == 62
                                        ? end_one(&call, request->wait_id, "cancelled",
                                                  outcome, &mine)
                                        : NULL;
        answer->accepted = mine;
        answer->revoked = mine;
        return wait ? show(&call, answer, wait) : hf_fail_plain(err, HF_ENOTFOUND);
    }
    int rc = 0;
    struct m_session *s = m_session_find(&call, request->session_id, &rc);
    if (rc)
        return rc;
    const char *turn_id = request->turn_id ? request->turn_id : s->s.turn_id;
    struct m_turn *turn = turn_id ? m_turn_of(call.disk, request->session_id, turn_id)
                                  : NULL;
    if (request->turn_id && !turn)
        return hf_fail(err, HF_ENOTFOUND, "turn_id", "none");
    if (!turn || turn->finished_at)
        return 0;
    turn->revoked = true;
    if (m_same(s->s.turn_id, turn_id))
        make_turn_ready(&call, s);
    answer->revoked = revoke_all(&call, turn_id, outcome);
    resume_unit(&call, m_row_by_seq(call.disk, turn->seq), NULL, "revoked");
    return 0;
}

static bool listed(const struct m_wait *wait, const struct hf_caller *who,
                   const struct hf_wait_filter *f)
{
    return (f->closed || is_open(wait)) &&
           (!*who->tenant || m_same(wait->w.tenant, who->tenant)) &&
           (!f->session_id || m_same(wait->w.session_id, f->session_id)) &&
           (!f->kind || m_same(wait->w.kind, f->kind)) &&
           (!f->answerer || m_same(wait->w.answerer, f->answerer));
}

static int by_deadline(const void *a, const void *b)
{
    const struct hf_wait *x = a, *y = b;
    return x->deadline_at != y->deadline_at
               ? (x->deadline_at > y->deadline_at) - (x->deadline_at < y->deadline_at)
               : by_id(a, b);
}

static int list(struct hf_store *store, const struct hf_caller *who,
                const struct hf_wait_filter *filter, struct hf_wait_answer *answer,
                struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    size_t count = 0;
    struct hf_wait *all = hf_wait_answer_memory(answer, (call.disk->waits.count + 1) *
                                                            sizeof(*all));
    if (!all)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < call.disk->waits.count; i++) {
        if (listed(&call.disk->waits.at[i], who, filter))
            all[count++] = call.disk->waits.at[i].w;
    }
    qsort(all, count, sizeof(*all), filter->closed ? by_id : by_deadline);
    answer->waits = all; /* without pages: no case has as many */
    answer->wait_count = count < filter->limit ? count : filter->limit;
    return 0;
}

static int get(struct hf_store *store, const char *wait_id, struct hf_wait_answer *answer,
               struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    const struct m_wait *wait = wait_of(call.disk, wait_id);
    return wait ? show(&call, answer, wait) : hf_fail_plain(err, HF_ENOTFOUND);
}

/* ---- keys ------------------------------------------------------------------------------- */

static void write_key(int64_t secret, const char *wait_id, char *out)
{
    struct hf_digest digest;
    uint8_t check[HF_DIGEST_BYTES];
    static const char hex[] = "0123456789abcdef";
    hf_digest_begin(&digest, "model.key", 1);
    hf_digest_i64(&digest, secret);
    hf_digest_text(&digest, wait_id);
    if (hf_digest_end(&digest, check))
        abort();
    memcpy(out, "hfw1.00000000.", 14);
    for (int i = 12; secret && i > 4; i--, secret /= 10)
        out[i] = (char)('0' + secret % 10);
    memcpy(out + 14, wait_id, 62);
    out[76] = '.';
    for (size_t i = 0; i < sizeof(check); i++) {
        out[77 + 2 * i] = hex[check[i] >> 4];
        out[78 + 2 * i] = hex[check[i] & 15];
    }
    out[141] = '\0';
}

static int key(struct hf_store *store, const char *wait_id,
               char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    write_key(call.disk->secret, wait_id, ret_key);
    return 0;
}

static int key_check(struct hf_store *store, const char *text,
                     char ret_wait_id[HF_WAIT_ID_TEXT], bool *ret_holds,
                     struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    struct model_disk *disk = call.disk;
    char made[HF_WAIT_KEY_TEXT];
    *ret_holds = false;
    if (strlen(text) != 141)
        return 0;
    memcpy(ret_wait_id, text + 14, 62);
    ret_wait_id[62] = '\0';
    write_key(disk->secret, ret_wait_id, made);
    *ret_holds = m_same(made, text);
    if (!*ret_holds && disk->secret > 0 && disk->secret_until > call.now) {
        write_key(disk->secret - 1, ret_wait_id, made);
        *ret_holds = m_same(made, text);
    }
    return 0;
}

static int rotate(struct hf_store *store, hf_ms valid_ms, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    call.disk->secret++;
    call.disk->secret_until = call.now + valid_ms;
    return 0;
}

const struct hf_wait_methods m_wait_methods = {
    .resolve = resolve,
    .revoke = revoke,
    .list = list,
    .get = get,
    .key = key,
    .key_check = key_check,
    .rotate = rotate,
};

/* ---- cancel ----------------------------------------------------------------------------- */

void m_cancel_waiting(struct m_call *call, const struct m_row *row)
{
    struct m_session *s = m_session_of(call->disk, row->w.session_id);
    if (m_same(s->s.turn_id, row->w.work_id)) {
        if (!s->s.cancel_request)
            s->s.cancel_request = "{}";
        make_turn_ready(call, s);
    }
    (void)m_waits_end(call, row->w.work_id, "cancel"); /* how many does not matter */
}

static void cancel_unit(struct m_call *call, struct m_row *row, const char *reason)
{
    m_enter(call, row, HF_STATUS_CANCELLED,
            (struct m_say_event){ "transition", reason, NULL });
    row->w.status_reason = m_text(call->disk, reason ? reason : "cancelled");
}

int m_cancel_turn(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_session_cancel *request,
                  enum hf_session_turn_cancel *ret_answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    int rc = 0;
    struct m_session *s = m_session_find(&call, request->session_id, &rc);
    struct m_row *row = NULL;
    struct m_input *input = NULL;
    for (size_t i = 0; rc == 0 && i < call.disk->inputs.count; i++) {
        struct m_input *one = &call.disk->inputs.at[i];
        struct m_row *unit = m_row_by_seq(call.disk, one->seq);
        if (m_same(one->session_id, request->session_id) && unit &&
            m_same(unit->w.work_id, request->turn_id)) {
            row = unit;
            input = one;
        }
    }
    const struct m_turn *turn =
        rc == 0 ? m_turn_of(call.disk, request->session_id, request->turn_id) : NULL;
    if (rc)
        return rc;
    if (!row && !(turn && turn->finished_at))
        return hf_fail(err, HF_ENOTFOUND, "turn_id", "none");
    *ret_answer = HF_TURN_CANCEL_COMPLETED;
    if (!row || (turn && turn->finished_at))
        return 0;
    if (m_same(s->s.turn_id, request->turn_id)) {
        bool first = !s->s.cancel_request;
        *ret_answer = first ? HF_TURN_CANCEL_REQUESTED : HF_TURN_CANCEL_ALREADY;
        if (!first)
            return 0;
        s->s.cancel_request = m_say(call.disk, "{\"reason\":\"%s\"}",
                                    request->reason ? request->reason : "");
        make_turn_ready(&call, s);
        if (!s->nonce && row->w.waiting_kind)
            cancel_unit(&call, row, request->reason);
        if (!s->nonce)
            (void)m_waits_end(&call, request->turn_id,
                              "cancel"); /* how many does not matter */
        return 0;
    }
    if (row->status == HF_STATUS_QUEUED && !input->turn_id) {
        cancel_unit(&call, row, request->reason);
        row->w.cancel_request = "{}";
        *ret_answer = HF_TURN_CANCEL_REQUESTED;
    } else if (row->w.cancel_request) {
        *ret_answer = HF_TURN_CANCEL_ALREADY;
    }
    return 0;
}
