/* The operations on limits, policies and the store as a whole: its log, its facts, and the
 * doctor, which examines it. The library reports rows one by one, and each goes to the sink of the
 * call. */
#include "op/store.h"

#include <holdfast/version.h>

#include <sqlite3.h>

#include "base/text.h"
#include "core/ledger/limit.h"
#include "op/shapes/ledger.h"

/* Rows that the library reports one by one. */
struct each {
    struct op_call *call;
    const struct hf_shape *shape;
    const char *did;
    int rc;
};

static void say_item(struct each *each, const void *at)
{
    const struct op_row row = { .shape = each->shape, .at = at, .did = each->did };
    if (each->rc == 0)
        each->rc = each->call->out->sink->item(each->call->out, &row);
}

/* ---- limits ------------------------------------------------------------------------ */

int op_check_limit(struct op_call *call)
{
    const struct hf_limit_request *in = call->in;
    const char *name;
    bool rate = op_given(call, "rate_count");
    if (rate != op_given(call, "rate_ms"))
        return op_fail(call, HF_EINVAL, NULL, "{rate_count} and {rate_ms} go together");
    if (op_given(call, "burst") && !rate)
        return op_fail(call, HF_EINVAL, NULL, "{burst} goes with {rate_count}");
    if ((op_given(call, "max_running") || rate) == in->none)
        return op_fail(call, HF_EINVAL, NULL,
                       "{max_running}, or {rate_count} and {rate_ms}, or {none} to "
                       "remove the limit is required");
    int rc = hf_limit_check(&in->limit, call->err);
    return rc ? rc
              : hf_limit_name_of(call->arena, in->limit.name, NULL, &name, call->err);
}

int op_run_limit(struct op_call *call)
{
    const struct hf_limit_request *in = call->in;
    int rc = hf_limit_set(call->store, &call->who, &in->limit, call->err);
    if (rc)
        return rc;
    op_text(call, "name", in->limit.name);
    op_say(call, "limit %s %s", in->limit.name, in->none ? "lifted" : "set");
    return 0;
}

static void say_limit(void *user, const struct hf_limit_state *state)
{
    say_item(user, state);
}

int op_run_limit_list(struct op_call *call)
{
    struct each each = { .call = call, .shape = &hf_limit_shape };
    const struct op_list list = { .key = "items",
                                  .shape = &hf_limit_shape,
                                  .none = "no limits" };
    call->out->sink->begin(call->out, &list);
    int rc = hf_limit_list(call->store, &call->who, say_limit, &each, call->err);
    if (rc == 0)
        rc = each.rc;
    return rc ? rc : call->out->sink->end(call->out, &list);
}

/* ---- policies ---------------------------------------------------------------------- */

int op_run_policy(struct op_call *call)
{
    const struct hf_policy_request *in = call->in;
    int rc = hf_policy_set(call->store, &call->who, in->scope, &in->policy, call->err);
    if (rc)
        return rc;
    op_text(call, "scope", in->scope);
    op_say(call, "policy of %s set", in->scope);
    return 0;
}

int op_run_policy_show(struct op_call *call)
{
    const struct hf_filter *in = call->in;
    struct hf_policy_answer *answer = NULL;
    int rc = hf_policy_get(call->store, in->source, in->kind, &answer, call->err);
    if (rc == 0)
        rc = op_row(call, hf_policy_answer_get(answer));
    hf_policy_answer_free(answer);
    return rc;
}

/* ---- the store --------------------------------------------------------------------- */

static void say_entry(void *user, const struct hf_store_log_entry *entry)
{
    say_item(user, entry);
}

int op_run_log(struct op_call *call)
{
    const struct hf_read_request *in = call->in;
    struct each each = { .call = call, .shape = &hf_log_shape, .did = "logged" };
    const struct op_list list = { .key = "items",
                                  .shape = &hf_log_shape,
                                  .did = each.did,
                                  .none = "the log of the store is empty" };
    call->out->sink->begin(call->out, &list);
    int rc = hf_store_log(call->store, 0, (size_t)in->limit, say_entry, &each, call->err);
    if (rc == 0)
        rc = each.rc;
    return rc ? rc : call->out->sink->end(call->out, &list);
}

int op_run_facts(struct op_call *call)
{
    char *facts = NULL;
    int rc = hf_store_facts(call->store, &facts, call->err);
    if (rc == 0)
        rc = op_row(call, &(const struct hf_store_facts_row){ facts });
    hf_store_text_free(call->store, facts);
    return rc;
}

/* The findings are kept until the verdict is known, since an envelope begins with it. */
struct examination {
    struct op_call *call;
    struct found {
        struct hf_finding finding;
        struct found *next;
    } * first, **last;
    int64_t bad;
    bool damaged; /* some fault is of the data, not of the disk's room */
    bool failed;  /* out of memory */
};

static void keep_finding(void *user, const struct hf_finding *finding)
{
    struct examination *exam = user;
    struct hf_arena *arena = exam->call->arena;
    struct found *found = hf_arena_new(arena, struct found);
    exam->bad += finding->bad;
    exam->damaged |= finding->bad && !hf_same(finding->what, "disk");
    exam->failed |= !found;
    if (exam->failed)
        return;
    found->finding = (struct hf_finding){
        .what = hf_arena_text(arena, finding->what),
        .detail = hf_arena_text(arena, finding->detail),
        .advice = hf_arena_text(arena, finding->advice),
        .bad = finding->bad,
    };
    exam->failed = !found->finding.what || !found->finding.detail ||
                   (finding->advice && !found->finding.advice);
    *exam->last = found;
    exam->last = &found->next;
}

static void judge(struct op_call *call, const struct examination *exam)
{
    const struct found *worst = exam->first;
    while (worst && !worst->finding.bad)
        worst = worst->next;
    if (worst)
        call->verdict = hf_fail(call->err, exam->damaged ? HF_ECORRUPT : HF_EFULL, NULL,
                                "%lld faults; the first is %s: %s", (long long)exam->bad,
                                worst->finding.what, worst->finding.detail);
}

static int say_findings(struct op_call *call, const struct examination *exam)
{
    const struct op_list list = { .key = "findings", .shape = &hf_finding_shape };
    struct each each = { .call = call, .shape = &hf_finding_shape, .did = "found" };
    call->out->sink->begin(call->out, &list);
    for (const struct found *found = exam->first; found; found = found->next)
        say_item(&each, &found->finding);
    if (each.rc == 0)
        each.rc = call->out->sink->end(call->out, &list);
    if (each.rc == 0 && !exam->bad)
        op_say(call, "the store is in order");
    return each.rc;
}

int op_run_doctor(struct op_call *call)
{
    char *facts = NULL;
    struct examination exam = { .call = call };
    exam.last = &exam.first;
    int rc = hf_store_facts(call->store, &facts, call->err);
    if (rc == 0)
        rc = hf_store_check(call->store, keep_finding, &exam, call->err);
    if (rc == 0 && exam.failed)
        rc = hf_fail_plain(call->err, HF_ENOMEM);
    if (rc == 0) {
        judge(call, &exam);
        rc = op_row(call, &(const struct hf_store_facts_row){ facts });
    }
    if (rc == 0)
        rc = say_findings(call, &exam);
    hf_store_text_free(call->store, facts);
    return rc;
}

/* ---- without a store --------------------------------------------------------------- */

int op_run_bounds(struct op_call *call)
{
    const struct op_list list = { .key = "items",
                                  .shape = &hf_bound_shape,
                                  .paged = true };
    struct each each = { .call = call, .shape = &hf_bound_shape };
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; hf_bound_at(i); i++)
        say_item(&each, hf_bound_at(i));
    return each.rc ? each.rc : call->out->sink->end(call->out, &list);
}

int op_run_version(struct op_call *call)
{
    const struct hf_version_row row = { hf_version(), hf_store_schema_version(),
                                        sqlite3_libversion() };
    return op_row(call, &row);
}
