/* The operations on units of work: create and enqueue, claim, the changes (one function for
 * all verbs of a change), requeueing many (redrive), lists and trails. Checks of inputs against
 * each other come first, so that no store is opened for a request that cannot be right. */
#include "op/work.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <holdfast/ingress.h>
#include <holdfast/monitor.h>
#include <holdfast/run.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/policy.h"
#include "core/ledger/step.h"
#include "core/wait/wait.h"
#include "op/shapes/ledger.h"
#include "op/wait.h"

#define REF_PART_MIN 8 /* characters by which a wait is taken to be meant */

/* ---- create ------------------------------------------------------------------------ */

/* Where there is no store yet, a request that the ledger would refuse makes none: a new
 * store has no policies, so the built-in one decides, and no unit that could be a parent. */
static int try_on_nothing(struct op_call *call, const struct hf_work_spec *request,
                          const char *parent)
{
    struct hf_row row;
    hf_ms now = hf_clock_system()->wall_ms(hf_clock_system()->user);
    struct hf_env env = { .now = now, .policy = &hf_policy_builtin };
    const struct hf_caller unnamed = { .size = sizeof(unnamed), .tenant = "" };
    if (parent && !hf_uuid_valid(parent))
        return op_fail(call, HF_ENOTFOUND, "{parent_work_id}",
                       "no unit's id begins or ends with %s: there is no store yet",
                       parent);
    return hf_step_create(call->arena, request, "", &unnamed, &env, &row, call->err);
}

/* What the library would refuse, before a store is made for it. */
static int check_whole_ref(struct op_call *call, const char *ref, const char *field)
{
    int rc = hf_wait_ref_check(ref, field, call->err);
    return rc ? op_named(call, rc) : 0;
}

/* A reference is no wait of a turn, also where a part of an id names the wait. A text that names no
 * wait may be any reference, and so may a shorter one, which might be the end of some id. */
static int check_ref(struct op_call *call, const char *ref, const char *field)
{
    struct hf_err why;
    const char *whole = NULL;
    if (!ref || strlen(ref) < REF_PART_MIN)
        return 0;
    int rc = op_wait_id(call, ref, &whole, &why);
    if (rc == HF_ENOTFOUND || rc == HF_EINVAL)
        return 0;
    return rc ? hf_fail_as(call->err, rc, &why) : check_whole_ref(call, whole, field);
}

int op_check_create(struct op_call *call)
{
    struct hf_work_spec request = *(const struct hf_work_spec *)call->in;
    const char *parent = request.parent_work_id;
    request.parent_work_id = NULL; /* a part of an id is enough */
    int rc = op_check_kind(call, request.kind);
    if (rc == 0)
        rc = check_whole_ref(call, request.reply_ref, "{reply_ref}");
    if (rc == 0)
        rc = hf_work_spec_check(&request, call->err);
    return rc == 0 && call->absent ? try_on_nothing(call, &request, parent) : rc;
}

int op_created(struct op_call *call, const struct hf_answer *answer, bool resumed)
{
    const struct hf_item *item = hf_answer_at(answer, 0);
    const char *did = item->created ? "created" : "exists already:";
    if (resumed)
        did = item->repeated ? "resumed before:" : "resumed";
    int rc = op_unit_row(call, item, did);
    if (rc == 0 && resumed)
        op_bool(call, "resumed", true);
    if (rc == 0 && item->repeated)
        op_bool(call, "repeated", true);
    return rc;
}

int op_run_create(struct op_call *call)
{
    struct hf_work_spec *request = call->in;
    struct hf_answer *answer = NULL;
    bool resumed = false;
    int rc = op_full_id(call, request->parent_work_id, &request->parent_work_id);
    if (rc == 0)
        rc = check_ref(call, request->reply_ref, "{reply_ref}");
    if (rc == 0)
        rc = hf_work_deliver(call->store, &call->who, request, &answer, &resumed,
                             call->err);
    if (rc == 0)
        rc = op_created(call, answer, resumed);
    hf_answer_free(answer);
    return rc;
}

int op_check_enqueue(struct op_call *call)
{
    const struct hf_job_spec *job = call->in;
    int rc = op_check_kind(call, job->kind);
    return rc ? rc : hf_job_check(job, call->err);
}

int op_run_enqueue(struct op_call *call)
{
    struct hf_answer *answer = NULL;
    int rc = hf_job_enqueue(call->store, &call->who, call->in, &answer, call->err);
    const struct hf_item *item = rc ? NULL : hf_answer_at(answer, 0);
    if (rc == 0)
        rc = op_unit(call, item, item->created ? "enqueued" : "there");
    hf_answer_free(answer);
    return rc;
}

/* ---- claim ------------------------------------------------------------------------- */

/* The library proves more of the process; this names the input where there is none. */
static int check_pid(struct op_call *call, int pid)
{
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
        return op_fail(call, HF_EINVAL, "{pid}",
                       "{pid}: there is no process %d on this machine", pid);
    return 0;
}

int op_run_claim(struct op_call *call)
{
    struct hf_claim *claim = call->in;
    struct hf_answer *answer = NULL;
    int rc = check_pid(call, claim->pid);
    if (rc == 0)
        rc = op_full_id(call, claim->id, &claim->id);
    if (rc == 0)
        rc = hf_work_claim(call->store, &call->who, claim, &answer, call->err);
    if (rc == 0)
        rc = op_units(call, answer,
                      (struct op_list){ .did = "claimed", .none = "nothing to claim" });
    hf_answer_free(answer);
    return rc;
}

/* ---- changes ----------------------------------------------------------------------- */

/* A cancel ends the unit, or only asks its owner to end it. */
static const char *what_was_done(const struct op_call *call, const struct hf_work *work)
{
    const struct hf_change *change = call->in;
    if (change->verb != HF_VERB_CANCEL)
        return call->op->did;
    return hf_status_of(work->status) == HF_STATUS_CANCELLED ? "cancelled"
                                                             : "asked its owner to end";
}

/* Who wants the one or the other need not say why; the library asks every caller for a reason. */
static void reason_where_none(struct hf_change *change)
{
    if (!change->reason &&
        (change->verb == HF_VERB_CANCEL || change->verb == HF_VERB_REQUEUE))
        change->reason = "no reason given";
}

int op_run_change(struct op_call *call)
{
    struct hf_change *change = call->in;
    reason_where_none(change);
    struct hf_answer *answer = NULL;
    int rc = check_pid(call, change->pid);
    if (rc == 0)
        rc = op_full_id(call, change->id, &change->id);
    if (rc == 0)
        rc = hf_work_change(call->store, &call->who, change, 1, HF_ALL_OR_NONE, &answer,
                            call->err);
    if (rc == 0)
        rc = op_unit(call, hf_answer_at(answer, 0),
                     what_was_done(call, &hf_answer_at(answer, 0)->work));
    hf_answer_free(answer);
    return rc;
}

int op_check_renew(struct op_call *call)
{
    const struct hf_renew_request *in = call->in;
    const struct hf_change *one = &in->change;
    if (one->owner)
        return one->id || one->token || one->ttl_ms
                   ? op_fail(call, HF_EINVAL, NULL,
                             "{owner} renews all leases of the owner: it takes no "
                             "{work_id}, {lease_token} or {lease_ttl_ms}")
                   : 0;
    if (one->incarnation || in->fresh_within_ms)
        return op_fail(call, HF_EINVAL, NULL,
                       "{owner_incarnation} and {fresh_within_ms} go with {owner}");
    return one->id && one->token
               ? 0
               : op_fail(call, HF_EINVAL, NULL,
                         "{work_id} and {lease_token} are required, or {owner}{help}");
}

/* Every lease of an owner, which takes no token: any caller of the store may do it. */
int op_run_renew(struct op_call *call)
{
    const struct hf_renew_request *in = call->in;
    struct hf_renew_all all = { .size = sizeof(all),
                                .owner = in->change.owner,
                                .incarnation = in->change.incarnation,
                                .fresh_within_ms = in->fresh_within_ms };
    struct hf_answer *answer = NULL;
    if (!all.owner)
        return op_run_change(call);
    int rc = hf_work_renew_all(call->store, &call->who, &all, &answer, call->err);
    if (rc == 0)
        rc = op_units(call, answer, (struct op_list){ .none = "no lease to renew" });
    hf_answer_free(answer);
    return rc;
}

int op_check_resume(struct op_call *call)
{
    const struct hf_change *change = call->in;
    if (!change->id == !change->ref)
        return op_fail(
            call, HF_EINVAL, NULL,
            "one of {work_id} and {waiting_ref} is required, and only one{help}");
    return check_whole_ref(call, change->ref, "{waiting_ref}");
}

int op_run_resume(struct op_call *call)
{
    const struct hf_change *change = call->in;
    int rc = check_ref(call, change->ref, "{waiting_ref}");
    return rc ? rc : op_run_change(call);
}

int op_check_close_out(struct op_call *call)
{
    const struct hf_change *change = call->in;
    if (!change->token == !change->authority)
        return op_fail(
            call, HF_EINVAL, NULL,
            "{lease_token} is required, or {authority} for a unit that is externally "
            "owned or waits for its close rule");
    return 0;
}

/* ---- redrive ----------------------------------------------------------------------- */

#define REDRIVE_PAGE 500 /* units of one change */

struct redrive {
    struct op_call *call;
    const struct hf_redrive_request *in;
    int64_t left;
    int64_t matched, requeued, refused;
    struct hf_change changes[REDRIVE_PAGE];
};

/* Each by itself: one that was requeued meanwhile, or whose key is taken, stops no other. */
static int requeue(struct redrive *r, size_t n)
{
    struct op_call *call = r->call;
    struct hf_answer *answer = NULL;
    int rc = hf_work_change(call->store, &call->who, r->changes, n, 0, &answer,
                            call->err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct hf_item *item = hf_answer_at(answer, i);
        r->requeued += item->code == 0;
        r->refused += item->code != 0;
        if (item->code)
            op_note(call, "%s was left: %s", r->changes[i].id, item->message);
        else
            op_say(call, "requeued %s", r->changes[i].id);
    }
    hf_answer_free(answer);
    return rc;
}

static int redrive_page(struct redrive *r, const struct hf_answer *page)
{
    const struct hf_redrive_request *in = r->in;
    size_t n = 0;
    for (size_t i = 0; i < hf_answer_count(page) && r->left > 0; i++) {
        const struct hf_work *work = &hf_answer_at(page, i)->work;
        if (in->error_class && !hf_same(in->error_class, work->error_class))
            continue;
        r->left--;
        r->matched++;
        if (in->dry_run)
            op_say(r->call, "would requeue %s: %s (%s)", work->work_id, work->status,
                   work->status_reason ? work->status_reason : "-");
        r->changes[n++] = (struct hf_change){ .size = sizeof(struct hf_change),
                                              .verb = HF_VERB_REQUEUE,
                                              .id = work->work_id,
                                              .reason = in->reason };
    }
    return n == 0 || in->dry_run ? 0 : requeue(r, n);
}

static int redrive_all(struct redrive *r)
{
    static const enum hf_status ended_badly[] = { HF_STATUS_FAILED, HF_STATUS_TIMEOUT };
    struct op_call *call = r->call;
    struct hf_filter filter = r->in->filter;
    struct hf_answer *page = NULL;
    int rc = 0;
    filter.limit = REDRIVE_PAGE;
    if (!filter.status_count) {
        filter.statuses = ended_badly;
        filter.status_count = 2;
    }
    do {
        struct hf_answer *before = page; /* whose cursor it continues from */
        page = NULL;
        filter.after = before ? hf_answer_next(before) : NULL;
        rc = hf_work_list(call->store, &call->who, &filter, &page, call->err);
        hf_answer_free(before);
        if (rc == 0)
            rc = redrive_page(r, page);
    } while (rc == 0 && r->left > 0 && hf_answer_next(page));
    hf_answer_free(page);
    return rc;
}

int op_run_redrive(struct op_call *call)
{
    const struct hf_redrive_request *in = call->in;
    struct redrive *r = hf_arena_new(call->arena, struct redrive);
    if (!r)
        return hf_fail_plain(call->err, HF_ENOMEM);
    r->call = call;
    r->in = in;
    r->left = in->most;
    int rc = redrive_all(r);
    if (rc)
        return rc;
    op_bool(call, "dry_run", in->dry_run);
    op_i64(call, "matched", r->matched);
    op_i64(call, "requeued", r->requeued);
    op_i64(call, "refused", r->refused);
    op_say(call, "%lld match, %lld were requeued%s", (long long)r->matched,
           (long long)r->requeued, in->dry_run ? " (--dry-run)" : "");
    return 0;
}

/* ---- reading ----------------------------------------------------------------------- */

int op_list_page(struct op_call *call, struct hf_filter *filter, struct hf_answer **ret)
{
    struct hf_answer *page = NULL;
    int rc = 0;
    do {
        struct hf_answer *before = page; /* whose cursor it continues from */
        page = NULL;
        filter->after = before ? hf_answer_next(before) : filter->after;
        rc = hf_work_list(call->store, &call->who, filter, &page, call->err);
        hf_answer_free(before);
    } while (rc == 0 && hf_answer_count(page) == 0 && hf_answer_next(page));
    if (rc == 0)
        *ret = page;
    return rc;
}

int op_run_list(struct op_call *call)
{
    struct hf_list_request *in = call->in;
    enum hf_status every[HF_STATUS_COUNT];
    struct hf_answer *answer = NULL;
    bool any = in->all && in->filter.status_count == 0;
    for (int i = 1; any && i < HF_STATUS_COUNT; i++)
        every[i - 1] = (enum hf_status)i;
    if (any) {
        in->filter.statuses = every;
        in->filter.status_count = HF_STATUS_COUNT - 1;
    }
    int rc = op_list_page(call, &in->filter, &answer);
    if (rc == 0)
        rc = op_units(call, answer,
                      (struct op_list){
                          .none = in->filter.status_count
                                      ? "no such work"
                                      : "no open work; --all lists ended units too" });
    hf_answer_free(answer);
    return rc;
}

int op_run_show(struct op_call *call)
{
    struct hf_read_request *in = call->in;
    struct hf_answer *answer = NULL;
    int rc = op_full_id(call, in->id, &in->id);
    if (rc == 0)
        rc = hf_work_get(call->store, &call->who, in->id, &answer, call->err);
    if (rc == 0)
        rc = op_unit(call, hf_answer_at(answer, 0), NULL);
    hf_answer_free(answer);
    return rc;
}

#define EVENTS_LIMIT 1000
#define EVENT_PARTS 3 /* rows that one event can be */

static int64_t event_id(const struct hf_events *events, size_t i)
{
    return hf_events_at(events, i)->event_id;
}

/* A cursor names an event, and one event may be several rows (a transition, the lease that
 * it took, the one that it returned), so a page ends at the end of an event. `asked`
 * is what the store was asked for: when it returned as much, the last event may be
 * cut. */
static size_t whole_events(const struct hf_events *events, size_t limit, size_t asked)
{
    size_t count = hf_events_count(events), whole = count;
    if (count == asked) {
        while (whole > 0 && event_id(events, whole - 1) == event_id(events, count - 1))
            whole--;
        whole = whole ? whole : count;
    }
    size_t shown = whole < limit ? whole : limit;
    while (shown < whole && event_id(events, shown) == event_id(events, shown - 1))
        shown++;
    return shown;
}

static int say_events(struct op_call *call, const struct hf_events *events, size_t shown)
{
    const struct op_sink *sink = call->out->sink;
    struct op_list list = {
        .key = "items", .shape = &hf_event_shape, .none = "no events", .paged = true
    };
    int rc = 0;
    if (shown < hf_events_count(events))
        list.next_id = event_id(events, shown - 1);
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < shown; i++) {
        const struct op_row row = { .shape = &hf_event_shape,
                                    .at = hf_events_at(events, i) };
        rc = sink->item(call->out, &row);
    }
    return rc ? rc : sink->end(call->out, &list);
}

int op_run_events(struct op_call *call)
{
    struct hf_read_request *in = call->in;
    struct hf_events *events = NULL;
    size_t limit = in->limit ? (size_t)in->limit : EVENTS_LIMIT;
    size_t asked = limit + EVENT_PARTS - 1;
    if (asked > (size_t)HF_MAX_PAGE)
        asked = (size_t)HF_MAX_PAGE;
    int rc = op_full_id(call, in->id, &in->id);
    if (rc == 0)
        rc = hf_work_events(call->store, &call->who, in->id, in->after, asked, &events,
                            call->err);
    if (rc == 0)
        rc = say_events(call, events, whole_events(events, limit, asked));
    hf_events_free(events);
    return rc;
}

int op_output(struct op_call *call, const char *work_id, int64_t attempt,
              struct hf_output **ret_output)
{
    const char *locks = NULL;
    int rc = call->locks ? call->locks(call, &locks) : 0;
    return rc ? rc
              : hf_run_output(call->store, locks, work_id, attempt, ret_output,
                              call->err);
}

int op_run_output(struct op_call *call)
{
    struct hf_read_request *in = call->in;
    struct hf_output *output = NULL;
    int rc = op_full_id(call, in->id, &in->id);
    if (rc == 0)
        rc = op_output(call, in->id, in->attempt, &output);
    if (rc)
        return rc;
    struct hf_output_streams streams;
    int64_t bytes = 0;
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        streams.of[s] = hf_output_view(output, (enum hf_stream)s);
        bytes += streams.of[s].bytes;
    }
    rc = op_row(call, &streams);
    if (rc == 0 && bytes == 0)
        op_note(call, "nothing was printed so far");
    hf_output_free(output);
    return rc;
}

int op_run_stats(struct op_call *call)
{
    struct hf_stats stats;
    int rc = hf_work_stats(call->store, &call->who, &stats, call->err);
    return rc ? rc : op_row(call, &stats);
}

/* ---- upkeep ------------------------------------------------------------------------ */

int op_run_sweep(struct op_call *call)
{
    const struct hf_read_request *in = call->in;
    struct hf_sweep_report report;
    int rc = in->limit ? hf_work_sweep(call->store, &call->who, (size_t)in->limit,
                                       &report, call->err)
                       : hf_sweep_all(call->store, &call->who, &report, call->err);
    return rc ? rc : op_row(call, &report);
}

#define PRUNE_CHUNK 1000

int op_check_prune(struct op_call *call)
{
    const char *tenant = call->who.tenant;
    if (tenant && *tenant)
        return hf_fail(call->err, HF_EINVAL, NULL,
                       "a prune deletes units of all tenants: leave %stenant out",
                       call->dashes ? "--" : "");
    return 0;
}

/* Chunk by chunk, so that others can write in between. */
int op_run_prune(struct op_call *call)
{
    const struct hf_prune_request *in = call->in;
    int64_t total = 0, got = 0, chunk = 0;
    do {
        chunk = in->limit && in->limit - total < PRUNE_CHUNK ? in->limit - total
                                                             : PRUNE_CHUNK;
        int rc = hf_work_prune(call->store, &call->who, in->older_than_ms, (size_t)chunk,
                               &got, call->err);
        if (rc)
            return rc;
        total += got;
    } while (got == chunk && (!in->limit || total < in->limit));
    op_i64(call, "pruned", total);
    op_say(call, total ? "pruned %lld" : "nothing to prune", (long long)total);
    return 0;
}
