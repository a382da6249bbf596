/* Checks of the requests that change a unit, before its row is read. */

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/ledger/step.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *past(const char *text, const char *prefix)
{
    while (*prefix && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix ? NULL : text;
}

static int check_json(const char *text, int64_t max, struct hf_err *err)
{
    if (!text)
        return 0;
    return hf_json_check((struct hf_span){ text, strlen(text) }, (size_t)max, "payload",
                         err);
}

static int check_span(hf_ms value, const char *field, struct hf_err *err)
{
    if (value < 0 || value > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, field, "%s must be 0 to %lld ms", field,
                       (long long)HF_MAX_DURATION_MAX_MS);
    return 0;
}

static int check_renew(const struct hf_change *change, struct hf_err *err)
{
    return change->ttl_ms ? hf_lease_timing(change->ttl_ms, 0, err) : 0;
}

/* Types that only the ledger writes: an appended event cannot pass for a transition. */
bool hf_event_reserved(const char *type)
{
    static const char *const types[] = {
        "work_created",      "claimed",
        "transition",        "waiting_set",
        "wait_overdue",      "resumed",
        "retry_scheduled",   "retry_promoted",
        "timeout_marked",    "close_out",
        "requeued",          "cancel_requested",
        "abandon_requested", "transition_rejected",
        "late_result",       "escalated",
        "observer_added",    "observer_removed",
        "wake_retargeted",   "external_ref_set",
        "signal_taken",      "rescheduled",
        "released",          "pruned",
    };
    for (size_t i = 0; i < COUNT(types); i++) {
        if (hf_same(types[i], type))
            return true;
    }
    return past(type, "lease_") || past(type, "hf.") || past(type, "process_") ||
           past(type, "signal.");
}

static int check_append(const struct hf_change *change, struct hf_err *err)
{
    int rc = hf_check_key(change->type, KEY_MAX, "type", err);
    if (rc == 0 && hf_event_reserved(change->type))
        rc = hf_fail(err, HF_EINVAL, "type", "this event type is the ledger's own");
    return rc ? rc : check_json(change->payload, HF_MAX_EVENT_BYTES, err);
}

static int check_escalation(const struct hf_change *change, struct hf_err *err)
{
    const char *how = change->escalate;
    if (!how)
        return 0;
    if (change->escalate_after_ms == 0)
        return hf_fail(err, HF_EINVAL, "escalate_after_ms",
                       "escalate needs escalate_after_ms");
    const char *kind = past(how, "work:");
    if (!kind && !hf_same(how, "event"))
        return hf_fail(err, HF_EINVAL, "escalate", "escalate must be event or work:KIND");
    if (kind && past(kind, "hf."))
        return hf_fail(err, HF_EINVAL, "escalate",
                       "kinds that begin with hf. are reserved");
    return kind ? hf_check_key(kind, KEY_MAX - strlen("work:"), "escalate", err) : 0;
}

static int check_wait(const struct hf_change *change, struct hf_err *err)
{
    if (change->status != HF_STATUS_WAITING_USER &&
        change->status != HF_STATUS_WAITING_EXTERNAL)
        return hf_fail(err, HF_EINVAL, "status",
                       "a wait must go to waiting_user or waiting_external");
    if (change->summary || change->output_count || change->evidence_count ||
        change->reviewer)
        return hf_fail(err, HF_EINVAL, "status", "one change cannot both wait and close");
    int rc = hf_check_key(change->ref, KEY_MAX, "ref", err);
    if (rc == 0)
        rc = check_span(change->timeout_ms, "timeout_ms", err);
    if (rc == 0)
        rc = check_span(change->escalate_after_ms, "escalate_after_ms", err);
    return rc ? rc : check_escalation(change, err);
}

static int check_resume(const struct hf_change *change, struct hf_err *err)
{
    if (change->id && change->ref)
        return hf_fail(err, HF_EINVAL, "ref", "resume takes an id or a ref, not both");
    if (change->status != HF_STATUS_NONE && change->status != HF_STATUS_WAITING_USER &&
        change->status != HF_STATUS_WAITING_EXTERNAL)
        return hf_fail(err, HF_EINVAL, "status",
                       "resume narrows a ref to waiting_user or waiting_external only");
    if (change->status != HF_STATUS_NONE && !change->ref)
        return hf_fail(err, HF_EINVAL, "status",
                       "a status narrows a ref; an id names the row already");
    int rc = hf_check_key_opt(change->ref, KEY_MAX, "ref", err);
    if (rc == 0)
        rc = hf_check_key_opt(change->owner, KEY_MAX, "owner", err);
    if (rc == 0)
        rc = hf_check_key_opt(change->incarnation, KEY_MAX, "incarnation", err);
    if (rc == 0)
        rc = hf_check_key_opt(change->nonce, KEY_MAX, "nonce", err);
    if (rc == 0 && change->pid < 0)
        rc = hf_fail(err, HF_EINVAL, "pid", "pid must be 0 or above");
    if (rc == 0 && !change->owner &&
        (change->pid || change->ttl_ms || change->nonce || change->incarnation))
        rc = hf_fail(err, HF_EINVAL, "owner", "a resume takes a lease only for an owner");
    if (rc == 0)
        rc = check_renew(change, err);
    return rc ? rc : check_json(change->payload, HF_MAX_PAYLOAD_BYTES, err);
}

static bool is_sha256(const char *digits)
{
    size_t len = strlen(digits);
    for (size_t i = 0; i < len; i++) {
        bool hex = (digits[i] >= '0' && digits[i] <= '9') ||
                   (digits[i] >= 'a' && digits[i] <= 'f');
        if (!hex)
            return false;
    }
    return len == 64;
}

static int check_refs(const char *const *refs, size_t count, const char *field,
                      struct hf_err *err)
{
    if (count > (size_t)HF_MAX_REFS)
        return hf_fail(err, HF_ETOOBIG, field, "%s must be at most %lld references",
                       field, (long long)HF_MAX_REFS);
    int rc = hf_sized_array(refs, count, field, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = hf_check_key(refs[i], KEY_MAX, field, err);
        const char *digits = rc == 0 ? past(refs[i], "sha256:") : NULL;
        if (digits && !is_sha256(digits))
            rc = hf_fail(err, HF_EINVAL, field,
                         "%s: sha256: must be followed by 64 lower-case hex digits",
                         field);
    }
    return rc;
}

static int check_close_out(const struct hf_change *change, struct hf_err *err)
{
    if (!hf_status_terminal(change->status))
        return hf_fail(err, HF_EINVAL, "status",
                       "status must be done, failed, timeout or cancelled");
    if (change->ref || change->timeout_ms || change->escalate ||
        change->escalate_after_ms)
        return hf_fail(err, HF_EINVAL, "status", "one change cannot both wait and close");
    if (!change->token == !change->authority)
        return hf_fail(err, HF_EINVAL, change->token ? "authority" : "token",
                       "a close-out takes the holder's token or an authority, not both");
    if (change->status == HF_STATUS_DONE && change->error_class)
        return hf_fail(err, HF_EINVAL, "error_class",
                       "status done excludes an error class");
    int rc = hf_check_key_opt(change->authority, KEY_MAX, "authority", err);
    if (rc == 0)
        rc = hf_check_key_opt(change->error_class, KEY_MAX, "error_class", err);
    if (rc == 0)
        rc = hf_check_key_opt(change->reviewer, KEY_MAX, "reviewer", err);
    if (rc == 0)
        rc = hf_check_text(change->summary, (size_t)HF_MAX_SUMMARY_BYTES, "summary", err);
    if (rc == 0)
        rc = check_refs(change->outputs, change->output_count, "outputs", err);
    return rc ? rc
              : check_refs(change->evidence, change->evidence_count, "evidence", err);
}

static int check_fail(const struct hf_change *change, struct hf_err *err)
{
    return hf_check_key(change->error_class, KEY_MAX, "error_class", err);
}

static int check_reasoned(const struct hf_change *change, struct hf_err *err)
{
    if (!change->reason || !*change->reason)
        return hf_fail(err, HF_EINVAL, "reason", "%s needs a reason",
                       hf_verb_word(change->verb));
    return 0;
}

static int check_reschedule(const struct hf_change *change, struct hf_err *err)
{
    return check_span(change->timeout_ms, "timeout_ms", err);
}

struct change_rule {
    bool needs_token;
    int (*check)(const struct hf_change *change, struct hf_err *err); /* or NULL */
};

static const struct change_rule change_rules[HF_VERB_COUNT] = {
    [HF_VERB_RENEW] = { true, check_renew },
    [HF_VERB_TOUCH] = { true, NULL },
    [HF_VERB_APPEND] = { true, check_append },
    [HF_VERB_WAIT] = { true, check_wait },
    [HF_VERB_RESUME] = { false, check_resume },
    [HF_VERB_CLOSE_OUT] = { false, check_close_out },
    [HF_VERB_FAIL] = { true, check_fail },
    [HF_VERB_HAND_BACK] = { true, NULL },
    [HF_VERB_CANCEL] = { false, check_reasoned },
    [HF_VERB_REQUEUE] = { false, check_reasoned },
    [HF_VERB_REQUEST_ABANDON] = { false, check_reasoned },
    [HF_VERB_ABANDON] = { true, NULL },
    [HF_VERB_RESCHEDULE] = { false, check_reschedule },
    [HF_VERB_RELEASE] = { false, check_reasoned },
};

int hf_change_check(const struct hf_change *change, struct hf_err *err)
{
    if (!change)
        return hf_fail(err, HF_EINVAL, "change", "a change is needed");
    int rc = hf_sized_check(change->size, sizeof(*change), sizeof(*change), err);
    if (rc)
        return rc;
    if (!hf_verb_word(change->verb))
        return hf_fail(err, HF_EINVAL, "verb",
                       "verb must be a value of enum hf_verb, not %d", (int)change->verb);
    const struct change_rule *rule = &change_rules[change->verb];
    if (change->verb != HF_VERB_RESUME || !change->ref)
        rc = hf_check_key(change->id, KEY_MAX, "id", err);
    if (rc == 0 && rule->needs_token && !change->token)
        rc = hf_fail(err, HF_EINVAL, "token", "%s needs the holder's token",
                     hf_verb_word(change->verb));
    struct hf_token token;
    if (rc == 0 && change->token)
        rc = hf_token_read(change->token, &token, err);
    if (rc == 0)
        rc = hf_check_text(change->reason, (size_t)HF_MAX_REASON_BYTES, "reason", err);
    if (rc == 0 && rule->check)
        rc = rule->check(change, err);
    return rc;
}
