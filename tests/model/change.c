/* The verbs of hf_work_change: who may, from where, to where. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "model/inside.h"

static int no(struct m_call *call, int code)
{
    return hf_fail_plain(call->err, code);
}

/* ---- tokens ---------------------------------------------------------------------------- */

static bool settles(enum hf_verb verb)
{
    return verb == HF_VERB_WAIT || verb == HF_VERB_CLOSE_OUT || verb == HF_VERB_FAIL ||
           verb == HF_VERB_HAND_BACK || verb == HF_VERB_CANCEL || verb == HF_VERB_ABANDON;
}

/* What the row keeps of the call that its token settled it with. */
static const char *settlement(struct m_call *call, const struct hf_change *change)
{
    if (change->verb != HF_VERB_WAIT)
        return hf_verb_word(change->verb);
    return m_say(call->disk, "wait %s %s",
                 change->status == HF_STATUS_WAITING_USER ? "user" : "external",
                 change->ref);
}

/* A token that settled the row itself: its own repeat is answered, another settle is
 * illegal, any other call has lost the lease. 1: a repeat. */
static int after_settling(struct m_call *call, const struct m_row *row,
                          const struct hf_change *change)
{
    bool again = m_same(row->settled_verb, settlement(call, change));
    if (change->verb == HF_VERB_CLOSE_OUT)
        again = again && row->status == change->status;
    if (again)
        return 1;
    if (change->verb == HF_VERB_ABANDON && m_waits(row) && m_bound(row))
        return 0;
    return no(call, settles(change->verb) ? HF_ETRANSITION : HF_ELEASELOST);
}

/* 0: the token is the row's. A lapsed lease is fine while no peer acted. */
static int check_token(struct m_call *call, const struct m_row *row,
                       const struct hf_change *change)
{
    if (m_same(row->settled_token, change->token))
        return after_settling(call, row, change);
    if (!row->nonce || row->lease_incarnation != call->disk->incarnation ||
        !m_same(change->token, m_token(call->disk, row)))
        return no(call, HF_ELEASELOST);
    return 0;
}

/* ---- verbs of the holder ------------------------------------------------------------------ */

static int do_renew(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    hf_ms until = m_later(call->lease_now, c->ttl_ms ? c->ttl_ms : row->w.lease_ttl_ms);
    if (until > row->w.lease_expires_at)
        row->w.lease_expires_at = until;
    m_note_renewal(call, row);
    return 0;
}

static int do_append(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    const char *facts = NULL;
    if (c->payload) {
        size_t len = strlen(c->payload);
        char *exact = malloc(len + 2);
        if (!exact)
            abort();
        exact[0] = '=';
        memcpy(exact + 1, c->payload, len + 1);
        facts = m_text(call->disk, exact);
        free(exact);
    }
    m_note(call, row, (struct m_say_event){ c->type, c->reason, facts });
    return 0;
}

static int do_wait(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    struct hf_policy policy = m_policy_of(call->disk, row->source, row->w.kind);
    bool user = c->status == HF_STATUS_WAITING_USER;
    hf_ms budget = c->timeout_ms ? c->timeout_ms
                   : user        ? policy.wait_user_ms
                                 : policy.wait_external_ms;
    if (policy.wait_rule && !c->escalate_after_ms)
        return no(call, HF_EPOLICY);
    if (c->escalate_after_ms > budget)
        return no(call, HF_EINVAL);
    m_enter(call, row, c->status,
            (struct m_say_event){
                "waiting_set", c->reason,
                m_say(call->disk, "\"timeout_ms\":%lld", (long long)budget) });
    row->w.waiting_kind = user ? "user" : "external";
    row->w.waiting_ref = m_text(call->disk, c->ref);
    row->w.deadline_at = m_later(call->now, budget);
    row->w.resume_payload = NULL;
    if (c->escalate_after_ms) {
        row->w.escalate_at = m_later(call->now, c->escalate_after_ms);
        row->w.escalate = m_text(call->disk, c->escalate ? c->escalate : "event");
    }
    row->w.status_reason = c->reason ? m_text(call->disk, c->reason) : row->w.status;
    return 0;
}

static int do_fail(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    bool may = !m_bound(row) &&
               m_retry_allows(row->w.retry_policy, c->error_class, false);
    row->w.failures++;
    bool retries = may && row->w.failures < row->w.max_attempts;
    m_enter(call, row, retries ? HF_STATUS_RETRY_SCHEDULED : HF_STATUS_FAILED,
            (struct m_say_event){
                retries ? "retry_scheduled" : "transition", c->reason,
                m_say(call->disk, "\"failures\":%lld", (long long)row->w.failures) });
    if (retries)
        row->w.next_retry_at = m_later(
            call->now, m_retry_delay(call, row->w.retry_policy, row->w.failures));
    row->w.error_class = m_text(call->disk, c->error_class);
    row->w.status_reason = may && !retries
                               ? "attempts_exhausted"
                               : m_text(call->disk,
                                        c->reason ? c->reason : c->error_class);
    return 0;
}

static int do_hand_back(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    if (m_bound(row))
        return no(call, HF_ETRANSITION);
    m_enter(call, row, HF_STATUS_QUEUED,
            (struct m_say_event){ "transition", c->reason, NULL });
    row->w.status_reason = m_text(call->disk, c->reason ? c->reason : "handed_back");
    return 0;
}

static int do_abandon(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    if (!m_bound(row) || (row->status != HF_STATUS_RUNNING && !m_waits(row)))
        return no(call, HF_ETRANSITION);
    m_enter(
        call, row, HF_STATUS_ABANDONED,
        (struct m_say_event){ "transition", c->reason, "\"writer\":\"owner_drain\"" });
    row->w.status_reason = "owner_drain";
    return 0;
}

/* ---- close-out -------------------------------------------------------------------------- */

static void put_list(struct hf_json *json, const char *key, const char *const *items,
                     size_t n)
{
    if (n == 0)
        return;
    hf_json_key(json, key);
    hf_json_array(json);
    for (size_t i = 0; i < n; i++)
        hf_json_str(json, items[i]);
    hf_json_end(json);
}

static const char *result_of(struct m_call *call, const struct hf_change *c)
{
    if (!c->evidence_count && !c->output_count && !c->reviewer && !c->summary)
        return NULL;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), 1 << 20);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    put_list(&json, "evidence", c->evidence, c->evidence_count);
    put_list(&json, "outputs", c->outputs, c->output_count);
    hf_json_opt_str(&json, "reviewer", c->reviewer);
    hf_json_opt_str(&json, "summary", c->summary);
    hf_json_end(&json);
    const char *text = m_text(call->disk, hf_buf_str(&buf));
    hf_buf_fini(&buf);
    return text;
}

/* What the row asks of a close-out as done. */
static bool rule_met(const struct m_row *row, const struct hf_change *c)
{
    bool external = row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED;
    const char *closer = external ? c->authority : row->w.owner;
    if (c->status != HF_STATUS_DONE || !row->w.close_rule)
        return true;
    if (m_same(row->w.close_rule, "evidence"))
        return c->evidence_count > 0;
    return c->reviewer && !m_same(c->reviewer, closer);
}

/* What the row keeps of the authority that ended it. */
static const char *completion(struct m_call *call, const struct hf_change *c)
{
    return m_say(call->disk, "complete %s", c->authority);
}

/* An authority's repeat: the row has ended by it, as it says. */
static bool ended_so(struct m_call *call, const struct m_row *row,
                     const struct hf_change *c)
{
    const char *reason = c->reason;
    if (c->status != HF_STATUS_DONE && !reason)
        reason = c->error_class ? c->error_class : hf_status_word(c->status);
    return row->status == c->status && m_same(row->settled_verb, completion(call, c)) &&
           m_same(row->w.result, result_of(call, c)) &&
           m_same(row->w.error_class, c->error_class) &&
           m_same(row->w.status_reason, reason);
}

static int do_close_out(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    bool external = row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED;
    bool by_holder = c->token && row->status == HF_STATUS_RUNNING &&
                     c->status != HF_STATUS_ABANDONED;
    bool done_or_failed = c->status == HF_STATUS_DONE || c->status == HF_STATUS_FAILED;
    bool by_authority = !c->token && external &&
                        row->status == HF_STATUS_WAITING_EXTERNAL &&
                        (done_or_failed || c->status == HF_STATUS_CANCELLED);
    bool by_person = !c->token && m_waits_for_rule(row) && done_or_failed;
    if (!c->token && ended_so(call, row, c))
        return 1;
    if (!by_holder && !by_authority && !by_person)
        return no(call, HF_ETRANSITION);
    if (!rule_met(row, c))
        return no(call, HF_EPOLICY);
    const char *result = result_of(call, c);
    const char *facts = m_say(call->disk, "\"status\":\"%s\"", hf_status_word(c->status));
    if (c->authority)
        facts = m_say(call->disk, "%s\n\"authority\":\"%s\"", facts, c->authority);
    for (size_t i = 0; i < c->output_count && i < 4; i++)
        facts = m_say(call->disk, "%s\n\"%s\"", facts, c->outputs[i]);
    m_enter(call, row, c->status, (struct m_say_event){ "close_out", c->reason, facts });
    row->w.result = result;
    row->w.error_class = m_text(call->disk, c->error_class);
    row->w.status_reason = m_text(call->disk, c->reason);
    if (c->status != HF_STATUS_DONE && !c->reason)
        row->w.status_reason = c->error_class ? row->w.error_class : row->w.status;
    if (!c->token) {
        row->settled_token = NULL;
        row->settled_verb = completion(call, c);
    }
    return 0;
}

/* ---- verbs of any caller ------------------------------------------------------------------ */

/* Recorded once; a later request is answered as the first. 1: a repeat. */
static int record(struct m_call *call, struct m_row *row, const char **column,
                  const struct hf_change *c, const char *event)
{
    if (*column)
        return 1;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, hf_alloc_system(), 1 << 16);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_put_i64(&json, "at", call->now);
    hf_json_put_str(&json, "by",
                    m_say(call->disk, "%s:%s", call->who->actor_kind, call->who->actor));
    hf_json_opt_str(&json, "reason", c->reason);
    hf_json_end(&json);
    *column = m_text(call->disk, hf_buf_str(&buf));
    hf_buf_fini(&buf);
    row->w.updated_at = call->now;
    m_note(call, row,
           (struct m_say_event){ event, c->reason, m_say(call->disk, "=%s", *column) });
    return 0;
}

static int do_cancel(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    if (hf_status_terminal(row->status))
        return no(call, HF_ETRANSITION);
    bool asks = row->w.session_id ||
                (row->disposition == HF_DISPOSITION_OWNER_BOUND && !c->token);
    if (row->status == HF_STATUS_RUNNING && asks)
        return record(call, row, &row->w.cancel_request, c, "cancel_requested");
    m_enter(call, row, HF_STATUS_CANCELLED,
            (struct m_say_event){ "transition", c->reason, NULL });
    row->w.status_reason = m_text(call->disk, c->reason);
    return 0;
}

static bool dedup_taken(const struct model_disk *disk, const struct m_row *row)
{
    for (size_t i = 0; row->w.dedup_key && i < disk->rows.count; i++) {
        const struct m_row *other = &disk->rows.at[i];
        if (other->seq != row->seq && !hf_status_terminal(other->status) &&
            m_same(other->w.dedup_key, row->w.dedup_key) &&
            m_same(other->w.tenant, row->w.tenant))
            return true;
    }
    return false;
}

static int do_requeue(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    if (!hf_status_terminal(row->status) ||
        row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return no(call, HF_ETRANSITION);
    if (dedup_taken(call->disk, row))
        return no(call, HF_ECONFLICT);
    row->w.generation++;
    m_enter(call, row, HF_STATUS_QUEUED,
            (struct m_say_event){
                "requeued", c->reason,
                m_say(call->disk, "\"generation\":%lld", (long long)row->w.generation) });
    row->w.status_reason = m_text(call->disk, c->reason);
    row->w.failures = 0;
    row->w.result = NULL;
    row->w.error_class = NULL;
    row->w.resume_payload = NULL;
    row->w.cancel_request = NULL;
    row->w.abandon_request = NULL;
    row->w.active_at = 0;
    row->w.first_started_at = 0;
    row->w.started_at = 0;
    row->crashes = 0;
    row->crashed_at = 0;
    row->settled_token = NULL;
    row->settled_verb = NULL;
    return 0;
}

static void due_again(struct m_call *call, struct m_row *row, hf_ms at)
{
    if (m_same(row->w.gate, "due") && at <= call->now)
        m_fair_come(call, row);
    row->w.due_at = at;
    row->w.gate = at > call->now ? "due" : m_first_gate(row);
    row->entered = at <= call->now && row->w.limit_name;
    row->w.deadline_at = row->w.start_timeout_ms ? m_later(at, row->w.start_timeout_ms)
                                                 : 0;
    row->w.updated_at = call->now;
}

static int do_reschedule(struct m_call *call, struct m_row *row,
                         const struct hf_change *c)
{
    hf_ms at = m_later(call->now, c->timeout_ms);
    struct m_say_event say = { "rescheduled", c->reason, NULL };
    if (row->status == HF_STATUS_QUEUED && m_same(row->w.gate, "due")) {
        due_again(call, row, at);
        m_note(call, row, say);
    } else if (row->status == HF_STATUS_RETRY_SCHEDULED && at > call->now) {
        row->w.next_retry_at = at;
        row->w.updated_at = call->now;
        m_note(call, row, say);
    } else if (row->status == HF_STATUS_RETRY_SCHEDULED) {
        m_enter(call, row, HF_STATUS_QUEUED, say);
        row->w.status_reason = "rescheduled";
    } else {
        return no(call, HF_ETRANSITION);
    }
    return 0;
}

static int do_release(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    int rc = m_same(row->w.gate, "held") ? 0 : HF_ETRANSITION;
    if (rc == 0 && row->w.session_id)
        rc = m_session_reopen(call, row, c->anew);
    if (rc)
        return no(call, rc);
    due_again(call, row, call->now);
    row->crashes = 0;
    row->crashed_at = 0;
    row->w.status_reason = "released";
    m_note(call, row, (struct m_say_event){ "released", c->reason, NULL });
    return 0;
}

static int do_ask_abandon(struct m_call *call, struct m_row *row,
                          const struct hf_change *c)
{
    bool external = row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED;
    if (hf_status_terminal(row->status) || (!external && !m_bound(row)))
        return no(call, HF_ETRANSITION);
    int rc = record(call, row, &row->w.abandon_request, c, "abandon_requested");
    if (rc == 0 && row->status == HF_STATUS_RUNNING)
        row->check_at = call->lease_now; /* the next sweep looks */
    return rc;
}

static int do_resume(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    struct m_taker taker = { c->owner, c->incarnation, c->nonce, c->ttl_ms, 0 };
    const char *ref = row->w.waiting_ref;
    if (c->owner && !taker.incarnation)
        taker.incarnation = call->m->handle.incarnation;
    char fresh[HF_NONCE_TEXT];
    if (c->owner && !c->nonce) {
        int rc = hf_nonce(call->m->handle.random, fresh, call->err);
        if (rc)
            return rc;
        taker.nonce = fresh;
    }
    if (row->status == HF_STATUS_RUNNING && c->owner && c->nonce &&
        row->lease_incarnation == call->disk->incarnation &&
        m_same(row->w.owner, c->owner) &&
        m_same(row->w.owner_incarnation, taker.incarnation) &&
        m_same(row->nonce, c->nonce))
        return 1;
    if (!m_waits(row) || row->disposition == HF_DISPOSITION_EXTERNALLY_OWNED)
        return no(call, HF_ETRANSITION);
    bool own = c->owner && m_same(row->w.owner, c->owner) &&
               m_same(row->w.owner_incarnation, taker.incarnation);
    if (m_bound(row) && !own)
        return no(call, HF_ETRANSITION);
    if (c->owner && m_lane_runs(call->disk, row))
        return no(call, HF_EHELD);
    struct m_say_event say = { "resumed", ref, NULL };
    if (c->owner) {
        m_acquire(call, row, &taker, say);
    } else {
        m_enter(call, row, HF_STATUS_QUEUED, say);
        row->w.status_reason = m_text(call->disk, c->reason ? c->reason : "resumed");
    }
    row->w.resume_payload = m_text(call->disk, c->payload);
    return 0;
}

static int do_touch(struct m_call *call, struct m_row *row, const struct hf_change *c)
{
    (void)c;
    row->w.active_at = call->now;
    return 0;
}

/* ---- a batch ------------------------------------------------------------------------------ */

typedef int m_verb(struct m_call *call, struct m_row *row, const struct hf_change *c);

static m_verb *const verbs[HF_VERB_COUNT] = {
    [HF_VERB_RENEW] = do_renew,
    [HF_VERB_TOUCH] = do_touch,
    [HF_VERB_APPEND] = do_append,
    [HF_VERB_WAIT] = do_wait,
    [HF_VERB_RESUME] = do_resume,
    [HF_VERB_CLOSE_OUT] = do_close_out,
    [HF_VERB_FAIL] = do_fail,
    [HF_VERB_HAND_BACK] = do_hand_back,
    [HF_VERB_CANCEL] = do_cancel,
    [HF_VERB_REQUEUE] = do_requeue,
    [HF_VERB_REQUEST_ABANDON] = do_ask_abandon,
    [HF_VERB_ABANDON] = do_abandon,
    [HF_VERB_RESCHEDULE] = do_reschedule,
    [HF_VERB_RELEASE] = do_release,
};

static struct m_row *by_ref(struct m_call *call, const struct hf_change *change,
                            int *ret_code)
{
    struct m_row *found = NULL;
    *ret_code = HF_ENOTFOUND;
    for (size_t i = 0; i < call->disk->rows.count; i++) {
        struct m_row *row = &call->disk->rows.at[i];
        if (!m_waits(row) || !m_same(row->w.waiting_ref, change->ref) ||
            !m_same(row->w.tenant, call->who->tenant) ||
            (change->status && change->status != row->status))
            continue;
        if (found) {
            *ret_code = HF_EAMBIGUOUS;
            return NULL;
        }
        found = row;
    }
    return found;
}

/* 1: applied before. */
static int apply(struct m_call *call, const struct hf_change *change,
                 struct m_row **ret_row)
{
    int code = 0;
    struct m_row *row = change->id ? m_find(call->disk, change->id, &code)
                                   : by_ref(call, change, &code);
    if (!row)
        return no(call, code);
    *ret_row = row;
    if (row->w.session_id && change->verb != HF_VERB_CANCEL &&
        change->verb != HF_VERB_RELEASE)
        return no(call, HF_ETRANSITION); /* its session alone moves it */
    int rc = change->token ? check_token(call, row, change) : 0;
    if (rc)
        return rc;
    enum hf_status before = row->status;
    rc = verbs[change->verb](call, row, change);
    if (rc == 0 && before == HF_STATUS_RUNNING && row->status != before)
        row->crashes = row->crashed_at = 0;
    if (rc == 0 && change->token && row->status != before) {
        row->settled_token = m_text(call->disk, change->token);
        row->settled_verb = settlement(call, change);
    }
    bool waited = before == HF_STATUS_WAITING_USER ||
                  before == HF_STATUS_WAITING_EXTERNAL;
    if (rc == 0 && row->w.session_id && waited && row->status == HF_STATUS_CANCELLED)
        m_cancel_waiting(call, row);
    if (rc == 0 && row->w.session_id && !hf_status_terminal(row->status))
        m_session_make_ready(call, row->w.session_id,
                             row->status == HF_STATUS_RUNNING ? row->w.cancel_request
                                                              : NULL);
    m_lanes(call->disk);
    return rc;
}

static int change_all(struct m_call *call, const struct hf_change *changes, size_t n,
                      unsigned flags, struct hf_answer *answer)
{
    int first = 0;
    for (size_t i = 0; i < n; i++) {
        struct m_row *row = NULL;
        struct hf_item *item = hf_answer_add(answer);
        int rc = apply(call, &changes[i], &row);
        item->repeated = rc == 1;
        item->code = rc < 0 ? rc : 0;
        if (rc < 0 && !first)
            first = rc;
        if (rc < 0)
            continue;
        item->work.work_id = row->w.work_id;
        if (changes[i].verb == HF_VERB_RESUME && row->status == HF_STATUS_RUNNING)
            item->token = m_token(call->disk, row);
    }
    if (!(flags & HF_ALL_OR_NONE) || !first)
        (void)m_limits(call);
    m_show_all(call, answer, flags);
    return (flags & HF_ALL_OR_NONE) ? first : 0;
}

static void digest_of(const struct hf_change *changes, size_t n, uint8_t out[32])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "model.change", 1);
    for (size_t i = 0; i < n; i++) {
        const struct hf_change *c = &changes[i];
        const char *const texts[] = { c->id,       c->token,       c->authority,
                                      c->reason,   c->summary,     c->error_class,
                                      c->type,     c->ref,         c->payload,
                                      c->owner,    c->incarnation, c->nonce,
                                      c->reviewer, c->escalate };
        hf_digest_i64(&digest, (int64_t)c->verb);
        hf_digest_i64(&digest, (int64_t)c->status);
        hf_digest_i64(&digest, c->timeout_ms);
        hf_digest_i64(&digest, c->escalate_after_ms);
        hf_digest_i64(&digest, c->ttl_ms);
        hf_digest_i64(&digest, (int64_t)c->output_count);
        hf_digest_i64(&digest, (int64_t)c->evidence_count);
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
            hf_digest_text(&digest, texts[k]);
    }
    if (hf_digest_end(&digest, out) != 0)
        abort();
}

/* Close-outs and renewals by token repeat by their token and leave no receipt. */
static bool any_written(const struct hf_answer *answer)
{
    for (size_t i = 0; i < hf_answer_count(answer); i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        if (item->code == 0 && !item->repeated)
            return true;
    }
    return false;
}

/* A row may be named only once, by whatever way. */
static bool named_twice(struct m_call *call, const struct hf_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int code = 0;
        const struct m_row *row = changes[i].id ? m_find(call->disk, changes[i].id, &code)
                                                : by_ref(call, &changes[i], &code);
        for (size_t k = 0; row && k < i; k++) {
            const struct m_row *other = changes[k].id
                                            ? m_find(call->disk, changes[k].id, &code)
                                            : by_ref(call, &changes[k], &code);
            if (row == other)
                return true;
        }
    }
    return false;
}

int m_change(struct hf_store *store, const struct hf_caller *who,
             const struct hf_change *changes, size_t n, unsigned flags,
             struct hf_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    struct model_disk *disk = call.disk;
    uint8_t asked[32];
    const struct m_receipt *receipt = NULL;
    digest_of(changes, n, asked);
    int rc = m_receipt_find(&call, "change", asked, &receipt);
    if (rc == 1)
        m_receipt_show(&call, receipt, flags, answer);
    if (rc)
        return rc == 1 ? 0 : rc;
    if (named_twice(&call, changes, n))
        return hf_fail(err, HF_EINVAL, "id", "a row is named twice");

    size_t events = disk->events.count;
    size_t bytes = disk->rows.count * sizeof(*disk->rows.at);
    struct m_row *before = malloc(bytes ? bytes : 1);
    if (!before)
        abort();
    if (bytes)
        memcpy(before, disk->rows.at, bytes);
    size_t session_bytes = disk->sessions.count * sizeof(*disk->sessions.at);
    struct m_session *sessions = malloc(session_bytes ? session_bytes : 1);
    if (!sessions)
        abort();
    if (session_bytes)
        memcpy(sessions, disk->sessions.at, session_bytes);
    struct m_shares shares = m_shares_keep(disk);
    rc = change_all(&call, changes, n, flags, answer);
    if (rc) {
        m_shares_back(disk, &shares); /* nothing of it happened */
        if (bytes)
            memcpy(disk->rows.at, before, bytes);
        if (session_bytes) /* their histories are as they were */
            memcpy(disk->sessions.at, sessions, session_bytes);
        disk->events.count = events;
    } else if (any_written(answer)) {
        m_receipt_add(&call, "change", asked, answer);
    }
    m_shares_drop(&shares);
    free(before);
    free(sessions);
    return rc;
}

/* ---- renewals ------------------------------------------------------------------------------ */

/* Sampled: one in three and a third terms, that is about every tenth. */
void m_note_renewal(struct m_call *call, const struct m_row *row)
{
    hf_ms since = call->now - row->w.lease_ttl_ms * 10 / 3;
    for (size_t i = 0; i < call->disk->events.count; i++) {
        const struct m_event *event = &call->disk->events.at[i];
        if (event->seq == row->seq && m_same(event->e.event_type, "lease_renewed") &&
            event->e.created_at > since)
            return;
    }
    m_note(call, row, (struct m_say_event){ .type = "lease_renewed" });
}

int m_renew_all(struct hf_store *store, const struct hf_caller *who,
                const struct hf_renew_all *renew, struct hf_answer *answer,
                struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    for (size_t i = 0; i < call.disk->rows.count; i++) {
        struct m_row *row = &call.disk->rows.at[i];
        hf_ms active = row->w.active_at ? row->w.active_at : row->w.started_at;
        bool fresh = !renew->fresh_within_ms ||
                     active >= call.now - renew->fresh_within_ms;
        if (row->status != HF_STATUS_RUNNING || row->w.session_id ||
            row->lease_incarnation != call.disk->incarnation ||
            !m_same(row->w.owner, renew->owner) || !fresh ||
            (renew->incarnation && !m_same(row->w.owner_incarnation, renew->incarnation)))
            continue;
        (void)do_renew(&call, row, &(struct hf_change){ .verb = HF_VERB_RENEW });
        m_show(&call, answer, hf_answer_add(answer), row, false);
    }
    return 0;
}
