/* Opening a wait, answering it, and what its deadline does. */
#include <holdfast/bounds.h>

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_get.h"
#include "base/json_schema.h"
#include "base/text.h"
#include "core/wait/wait.h"

#define NAME_MAX_BYTES ((size_t)HF_MAX_KEY_BYTES)
#define SIGNAL_MAX 100

/* ---- opening ------------------------------------------------------------------------ */

static bool plain_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-';
}

static int check_signal(const char *name, struct hf_err *err)
{
    size_t i = 0;
    while (name[i] && i <= SIGNAL_MAX && plain_letter(name[i]))
        i++;
    return name[i] || i == 0
               ? hf_fail(err, HF_EINVAL, "name",
                         "a signal's name is up to %d letters, digits, _ and -",
                         SIGNAL_MAX)
               : 0;
}

static int check_policy(const struct hf_wait_spec *wait, enum hf_wait_policy policy,
                        const char *field, struct hf_err *err)
{
    bool answers = policy == HF_AT_DEADLINE_DENY || policy == HF_AT_DEADLINE_APPROVE;
    if (policy == HF_AT_DEADLINE_NONE || !hf_wait_policy_word(policy))
        return hf_fail(err, HF_EINVAL, field,
                       "policy must be result, fail_turn, deny, approve or next");
    if (answers && wait->kind != HF_WAIT_APPROVAL)
        return hf_fail(err, HF_EINVAL, field, "%s is for approvals",
                       hf_wait_policy_word(policy));
    return 0;
}

static int check_next(const struct hf_wait_spec *wait, struct hf_err *err)
{
    if (wait->policy != HF_AT_DEADLINE_NEXT)
        return wait->next_answerer || wait->next_ms || wait->next_policy
                   ? hf_fail(err, HF_EINVAL, "next_answerer",
                             "a next answerer needs the policy next")
                   : 0;
    if (wait->next_policy == HF_AT_DEADLINE_NEXT)
        return hf_fail(err, HF_EINVAL, "next_policy",
                       "after the next answerer comes another policy than next");
    int rc = check_policy(wait, wait->next_policy, "next_policy", err);
    if (rc == 0)
        rc = hf_check_key(wait->next_answerer, NAME_MAX_BYTES, "next_answerer", err);
    return rc;
}

static int check_times(const struct hf_wait_spec *wait, struct hf_err *err)
{
    if (wait->deadline_at < 0 || wait->next_ms < 0 || wait->escalate_at < 0 ||
        wait->next_ms > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, "deadline_at", "a time must not be negative");
    if (wait->escalate_at && wait->deadline_at && wait->escalate_at > wait->deadline_at)
        return hf_fail(err, HF_EINVAL, "escalate_at",
                       "the escalation would come after the wait's deadline");
    if (wait->escalate && !wait->escalate_at)
        return hf_fail(err, HF_EINVAL, "escalate", "an escalation needs escalate_at");
    if (wait->escalate && !hf_same(wait->escalate, "event") &&
        !(hf_starts_with(wait->escalate, "work:") && wait->escalate[5]))
        return hf_fail(err, HF_EINVAL, "escalate", "escalate is event or work:KIND");
    return 0;
}

static int check_timer(const struct hf_wait_spec *wait, struct hf_err *err)
{
    if (!wait->deadline_at)
        return hf_fail(err, HF_EINVAL, "deadline_at", "a timer has a due time");
    return wait->policy || wait->escalate_at || wait->answerer
               ? hf_fail(err, HF_EINVAL, "policy",
                         "a timer has no policy, escalation or answerer")
               : 0;
}

static int check_asked(const char *asked, struct hf_err *err)
{
    struct json_t *value = NULL;
    if (!asked)
        return 0;
    int rc = hf_json_parse((struct hf_span){ asked, strlen(asked) },
                           (size_t)HF_MAX_PAYLOAD_BYTES, "asked", &value, err);
    if (rc == 0 && hf_json_type_of(value) != HF_JSON_OBJECT)
        rc = hf_fail(err, HF_EINVAL, "asked", "asked must be a JSON object");
    hf_json_free(value);
    return rc;
}

int hf_wait_spec_check(const struct hf_wait_spec *wait, struct hf_err *err)
{
    if (!hf_wait_kind_word(wait->kind))
        return hf_fail(err, HF_EINVAL, "kind",
                       "kind must be tool, approval, signal, timer or custom");
    int rc = hf_check_key(wait->name, NAME_MAX_BYTES, "name", err);
    if (rc == 0 && wait->kind == HF_WAIT_SIGNAL)
        rc = check_signal(wait->name, err);
    if (rc == 0)
        rc = wait->kind == HF_WAIT_TIMER
                 ? check_timer(wait, err)
                 : check_policy(wait, wait->policy, "policy", err);
    if (rc == 0)
        rc = check_next(wait, err);
    if (rc == 0)
        rc = check_times(wait, err);
    if (rc == 0 && wait->answerer)
        rc = hf_check_key(wait->answerer, NAME_MAX_BYTES, "answerer", err);
    return rc ? rc : check_asked(wait->asked, err);
}

struct hf_wait_opening hf_wait_open(const struct hf_wait_spec *wait, hf_ms now,
                                    hf_ms budget_ms)
{
    struct hf_wait_opening opening = { .deadline_at = wait->deadline_at };
    if (!opening.deadline_at)
        opening.deadline_at = now + budget_ms;
    if (wait->kind == HF_WAIT_TIMER)
        return opening;
    opening.check_at = opening.deadline_at;
    if (wait->escalate_at && wait->escalate_at < opening.check_at)
        opening.check_at = wait->escalate_at;
    if (wait->policy == HF_AT_DEADLINE_NEXT)
        opening.next_ms = wait->next_ms ? wait->next_ms : opening.deadline_at - now;
    if (opening.next_ms < 0)
        opening.next_ms = 0;
    return opening;
}

/* ---- answers ------------------------------------------------------------------------ */

static bool fits(enum hf_wait_kind kind, enum hf_wait_word word)
{
    bool approval = word == HF_ANSWER_APPROVE || word == HF_ANSWER_DENY;
    return kind != HF_WAIT_TIMER && approval == (kind == HF_WAIT_APPROVAL);
}

static int check_answer(enum hf_wait_kind kind, const struct hf_wait_resolve *answer,
                        struct hf_err *err)
{
    if (!hf_wait_answer_word(answer->word) || !fits(kind, answer->word))
        return hf_fail(err, HF_EINVAL, "answer",
                       "an approval takes approve or deny, a timer nothing, any other "
                       "wait ok or error");
    if (answer->value && answer->word == HF_ANSWER_DENY)
        return hf_fail(err, HF_EINVAL, "value", "a denial has a reason and no value");
    if (answer->reason &&
        (answer->word == HF_ANSWER_OK || answer->word == HF_ANSWER_APPROVE))
        return hf_fail(err, HF_EINVAL, "reason", "a reason is for deny and error");
    return 0;
}

int hf_wait_outcome(struct hf_arena *arena, enum hf_wait_kind kind,
                    const struct hf_wait_resolve *answer, const char **ret_outcome,
                    struct hf_err *err)
{
    struct hf_buf text;
    struct hf_json json;
    int rc = check_answer(kind, answer, err);
    if (rc)
        return rc;
    hf_buf_init(&text, arena->alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    if (answer->word == HF_ANSWER_APPROVE && answer->value)
        hf_json_put_raw(&json, "arguments", answer->value);
    hf_json_put_str(&json, "kind", hf_wait_answer_word(answer->word));
    if (answer->word == HF_ANSWER_ERROR)
        hf_json_put_str(&json, "message", answer->reason ? answer->reason : "failed");
    if (answer->word == HF_ANSWER_DENY)
        hf_json_opt_str(&json, "reason", answer->reason);
    if (answer->word == HF_ANSWER_OK || answer->word == HF_ANSWER_ERROR)
        hf_json_put_raw(&json, "value", answer->value ? answer->value : "null");
    hf_json_end(&json);
    *ret_outcome = hf_buf_keep(&text, arena);
    return *ret_outcome ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

int hf_wait_cancelled(struct hf_arena *arena, const char *reason,
                      const char **ret_outcome, struct hf_err *err)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, arena->alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "kind", hf_wait_state_word(HF_WAIT_IS_CANCELLED));
    hf_json_opt_str(&json, "reason", reason);
    hf_json_end(&json);
    *ret_outcome = hf_buf_keep(&text, arena);
    return *ret_outcome ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int check_schema(const struct hf_alloc *alloc, const struct json_t *edits,
                        const struct json_t *value, struct hf_err *err)
{
    struct hf_buf text;
    struct hf_json_schema *schema = NULL;
    struct hf_err why = { 0 };
    hf_buf_init(&text, alloc, 2 * (size_t)HF_MAX_PAYLOAD_BYTES);
    int rc = hf_json_canonical(&text, edits);
    if (rc == 0)
        rc = hf_json_schema_new(alloc, (struct hf_span){ hf_buf_str(&text), text.len },
                                (size_t)HF_MAX_PAYLOAD_BYTES, &schema, &why);
    if (rc == 0)
        rc = hf_json_schema_check(schema, value, &why);
    hf_json_schema_free(schema);
    hf_buf_fini(&text);
    return rc ? hf_fail(err, rc, "value", "the edited arguments do not fit: %.180s",
                        why.message)
              : 0;
}

int hf_wait_edits_check(const struct hf_alloc *alloc, const char *asked,
                        const char *value, struct hf_err *err)
{
    struct json_t *question = NULL, *given = NULL;
    size_t max = (size_t)HF_MAX_PAYLOAD_BYTES;
    const char *text = asked ? asked : "{}";
    int rc = hf_json_parse((struct hf_span){ text, strlen(text) }, max, "asked",
                           &question, err);
    if (rc == 0)
        rc = hf_json_parse((struct hf_span){ value, strlen(value) }, max, "value", &given,
                           err);
    const struct json_t *edits = rc ? NULL : hf_json_member(question, "edits");
    bool any = hf_json_type_of(edits) == HF_JSON_BOOL && hf_json_as_bool(edits);
    if (rc == 0 && (!edits || (hf_json_type_of(edits) == HF_JSON_BOOL && !any)))
        rc = hf_fail(err, HF_EINVAL, "value",
                     "the arguments of this call may not be edited");
    if (rc == 0)
        rc = check_schema(alloc, edits, given, err);
    hf_json_free(question);
    hf_json_free(given);
    return rc;
}

/* ---- deadlines ---------------------------------------------------------------------- */

struct hf_wait_due hf_wait_due(const struct hf_wait *wait, hf_ms next_ms, hf_ms now)
{
    static const char *const outcomes[] = {
        [HF_AT_DEADLINE_NONE] = "{\"kind\":\"timeout\"}",
        [HF_AT_DEADLINE_RESULT] = "{\"kind\":\"timeout\"}",
        [HF_AT_DEADLINE_FAIL_TURN] = "{\"kind\":\"timeout\"}",
        [HF_AT_DEADLINE_DENY] =
            "{\"kind\":\"deny\",\"reason\":\"no answer came in time\"}",
        [HF_AT_DEADLINE_APPROVE] = "{\"kind\":\"approve\"}",
        [HF_AT_DEADLINE_NEXT] = "{\"kind\":\"timeout\"}",
    };
    enum hf_wait_policy policy = HF_AT_DEADLINE_RESULT;
    (void)hf_wait_policy_of(wait->policy, &policy); /* a CHECK keeps others out */
    struct hf_wait_due due = { .act = HF_WAIT_EXPIRE,
                               .outcome = outcomes[policy],
                               .deadline_at = wait->deadline_at };
    if (wait->escalate_at || wait->deadline_at > now)
        due.act = HF_WAIT_ESCALATE;
    else if (policy == HF_AT_DEADLINE_NEXT)
        due.act = HF_WAIT_PASS_ON;
    else if (policy == HF_AT_DEADLINE_FAIL_TURN)
        due.act = HF_WAIT_FAIL;
    if (due.act == HF_WAIT_PASS_ON)
        due.deadline_at = now + next_ms;
    return due;
}
