/* The operations on processes. A process is a unit of work with facts of its own; what is
 * done to a process (cancel, complete, an event) is done to its unit. A drain ends what an owner
 * has started. */
#include "op/process.h"

#include <holdfast/process.h>

#include "base/ident.h"
#include "op/shapes/ledger.h"
#include "op/shapes/process.h"
#include "op/work.h"

/* Of a unit that the ledger does not have, processes remember for a while how it ended. */
static int or_pruned(struct op_call *call, const char *id, int rc)
{
    struct hf_processes *processes = NULL;
    struct hf_err why = { 0 };
    struct hf_process_filter filter = { .size = sizeof(filter), .id = id, .limit = 1 };
    if (rc != HF_ENOTFOUND)
        return rc;
    if (hf_process_list(call->store, &call->who, &filter, &processes, &why) == rc)
        *call->err = why;
    hf_processes_free(processes);
    return rc;
}

int op_run_process_events(struct op_call *call)
{
    const struct hf_read_request *in = call->in;
    return or_pruned(call, in->id, op_run_events(call));
}

int op_run_process_change(struct op_call *call)
{
    const struct hf_change *in = call->in;
    const char *id = in->id;
    return or_pruned(call, id, op_run_change(call));
}

int op_run_complete(struct op_call *call)
{
    struct hf_complete_request *in = call->in;
    in->change.status = hf_status_of(in->status);
    return op_run_process_change(call);
}

/* ---- start ------------------------------------------------------------------------- */

int op_check_process_start(struct op_call *call)
{
    const struct hf_work_spec *work = &((const struct hf_start_request *)call->in)->work;
    if (work->max_attempts > 1 && work->disposition != HF_DISPOSITION_RERUNNABLE)
        return op_fail(call, HF_EINVAL, "{max_attempts}",
                       "{max_attempts} above 1 needs {disposition} rerunnable: other "
                       "units are never run again");
    return 0;
}

int op_run_process_start(struct op_call *call)
{
    struct hf_start_request *in = call->in;
    struct hf_answer *answer = NULL;
    char nonce[HF_NONCE_TEXT];
    int rc = hf_nonce(hf_random_system(), nonce, call->err);
    if (rc)
        return rc;
    in->process.work = &in->work;
    if (!in->process.identity_kind)
        in->process.identity_kind = "process";
    in->work.source_id = in->work.idempotency_key ? in->work.idempotency_key : nonce;
    if (in->process.identity_label) { /* its name; each start is a run of that name */
        in->work.source_run_id = in->work.source_id;
        in->work.source_id = in->process.identity_label;
    }
    if (!in->work.max_attempts && in->work.disposition == HF_DISPOSITION_OWNER_BOUND)
        in->work.max_attempts = 1; /* it is never run again */
    rc = hf_process_register(call->store, &call->who, &in->process, &answer, call->err);
    const struct hf_item *item = rc ? NULL : hf_answer_at(answer, 0);
    if (rc == 0)
        rc = op_unit(call, item, item->created ? "started" : "exists already:");
    if (rc == 0 && item->created) {
        in->created_id = hf_arena_text(call->arena, item->work.work_id);
        rc = in->created_id ? 0 : hf_fail_plain(call->err, HF_ENOMEM);
    }
    hf_answer_free(answer);
    return rc;
}

/* ---- looking ----------------------------------------------------------------------- */

/* The first page that has a row. */
static int processes_page(struct op_call *call, struct hf_processes **ret)
{
    struct hf_process_filter filter = *(const struct hf_process_filter *)call->in;
    struct hf_processes *page = NULL;
    int rc = 0;
    do {
        struct hf_processes *before = page; /* whose cursor it continues */
        page = NULL;
        filter.after = before ? hf_processes_next(before) : filter.after;
        rc = hf_process_list(call->store, &call->who, &filter, &page, call->err);
        hf_processes_free(before);
    } while (rc == 0 && hf_processes_count(page) == 0 && hf_processes_next(page));
    if (rc == 0)
        *ret = page;
    return rc;
}

int op_run_process_list(struct op_call *call)
{
    const struct hf_process_filter *in = call->in;
    const struct op_sink *sink = call->out->sink;
    struct op_list list = { .key = "items", .shape = &hf_process_shape, .paged = true };
    struct hf_processes *found = NULL;
    int rc = processes_page(call, &found);
    if (rc)
        return rc;
    list.next = hf_processes_next(found);
    if (hf_processes_count(found) == 0)
        op_note(call, in->all ? "no such process"
                              : "no open process; --all lists ended ones too");
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < hf_processes_count(found); i++) {
        const struct op_row row = { .shape = list.shape,
                                    .at = hf_processes_at(found, i) };
        rc = sink->item(call->out, &row);
    }
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_processes_free(found);
    return rc;
}

static int say_output(struct op_call *call, const struct hf_output *output)
{
    struct hf_output_streams streams;
    const struct op_row row = { .key = "output",
                                .shape = &hf_output_shape,
                                .at = &streams };
    for (int i = 0; i < HF_STREAM_COUNT; i++)
        streams.of[i] = hf_output_view(output, (enum hf_stream)i);
    return call->out->sink->row(call->out, &row);
}

/* A name becomes an id. What is not found stays as it is: processes that were pruned are
 * remembered for a while. */
static int by_name(struct op_call *call, const char **id)
{
    const char *full = NULL;
    int rc = op_full_id(call, *id, &full);
    if (rc == 0)
        *id = full;
    return rc == HF_ENOTFOUND || rc == HF_EINVAL ? 0 : rc;
}

int op_run_process_show(struct op_call *call)
{
    struct hf_read_request *in = call->in;
    struct hf_processes *found = NULL;
    struct hf_output *output = NULL;
    int rc = by_name(call, &in->id);
    struct hf_process_filter filter = { .size = sizeof(filter),
                                        .id = in->id,
                                        .limit = 1 };
    if (rc == 0)
        rc = hf_process_list(call->store, &call->who, &filter, &found, call->err);
    const struct hf_process *one = rc ? NULL : hf_processes_at(found, 0);
    if (rc == 0)
        rc = op_output(call, one->work.work_id, in->attempt, &output);
    if (rc == 0)
        rc = op_row(call, one);
    if (rc == 0)
        rc = say_output(call, output);
    hf_output_free(output);
    hf_processes_free(found);
    return rc;
}

/* ---- what is told ------------------------------------------------------------------ */

int op_check_retarget(struct op_call *call)
{
    const struct hf_tell_request *in = call->in;
    if (!in->tell.name != in->none)
        return op_fail(call, HF_EINVAL, "session",
                       "name the session to wake, or use {none}");
    return 0;
}

/* Tells it, and says its row: what was done, or that it was so before. */
int op_run_tell(struct op_call *call)
{
    static const char *const done[HF_TELL_COUNT][2] = {
        [HF_TELL_SIGNAL] = { "signalled", "signalled before:" },
        [HF_TELL_OBSERVE] = { "observed:", "observed before:" },
        [HF_TELL_UNOBSERVE] = { "no longer observed:", "was not observed:" },
        [HF_TELL_RETARGET] = { "retargeted:", "was requested earlier:" },
    };
    struct hf_tell_request *in = call->in;
    struct hf_answer *answer = NULL;
    bool repeated = false;
    if (in->end)
        in->tell.what = HF_TELL_UNOBSERVE;
    int rc = hf_process_tell(call->store, &call->who, &in->tell, &repeated, call->err);
    if (rc == 0)
        rc = hf_work_get(call->store, &call->who, in->tell.id, &answer, call->err);
    if (rc == 0)
        rc = op_unit(call, hf_answer_at(answer, 0), done[in->tell.what][repeated]);
    hf_answer_free(answer);
    return rc;
}

/* As the table of exit codes has it: a script need not read the row to know that it is done. */
static int outcome_code(enum hf_status status)
{
    static const int codes[HF_STATUS_COUNT] = { [HF_STATUS_FAILED] = 11,
                                                [HF_STATUS_TIMEOUT] = 12,
                                                [HF_STATUS_CANCELLED] = 13,
                                                [HF_STATUS_ABANDONED] = 14 };
    return codes[status];
}

int op_run_await(struct op_call *call)
{
    struct hf_await_request *in = call->in;
    struct hf_answer *answer = NULL;
    int rc = by_name(call, &in->id);
    if (rc == 0)
        rc = hf_process_await(call->store, &call->who, in->id, in->wait_ms, &answer,
                              call->err);
    if (rc == 0)
        rc = op_unit(call, hf_answer_at(answer, 0), call->op->did);
    if (rc == 0)
        call->exit_code = outcome_code(
            hf_status_of(hf_answer_at(answer, 0)->work.status));
    hf_answer_free(answer);
    return rc;
}

/* ---- upkeep ------------------------------------------------------------------------ */

int op_run_process_prune(struct op_call *call)
{
    const struct hf_prune_request *in = call->in;
    struct hf_prune_report report = { 0 };
    int rc = hf_process_prune(call->store, &call->who, in->older_than_ms, &report,
                              call->err);
    if (rc)
        return rc;
    op_facts(call, &hf_process_prune_shape, &report);
    op_say(call, "pruned %lld processes, %lld events, %lld grants, %lld chunks",
           (long long)report.processes, (long long)report.events,
           (long long)report.grants, (long long)report.chunks);
    return 0;
}

/* What a drain left, kept until its counts are known. */
struct left {
    struct hf_process_deferred deferred;
    struct left *next;
};
struct draining {
    struct hf_arena *arena;
    struct left *first, **last;
    bool failed; /* out of memory */
};

static void keep_deferred(void *user, const char *work_id, const struct hf_err *why)
{
    struct draining *d = user;
    struct left *left = hf_arena_new(d->arena, struct left);
    const char *id = hf_arena_text(d->arena, work_id);
    const char *message = hf_arena_text(d->arena, why->message);
    d->failed |= !left || !id || !message;
    if (d->failed)
        return;
    left->deferred = (struct hf_process_deferred){ id, hf_err_wire(why->code), message };
    *d->last = left;
    d->last = &left->next;
}

static int say_drained(struct op_call *call, const struct hf_drain_report *report,
                       const struct left *left)
{
    const struct op_sink *sink = call->out->sink;
    const struct op_list list = { .key = "items", .shape = &hf_process_deferred_shape };
    int rc = 0;
    op_facts(call, &hf_drain_shape, report);
    op_say(call, "abandoned %lld, not changed %lld", (long long)report->ended,
           (long long)report->deferred);
    sink->begin(call->out, &list);
    for (; rc == 0 && left; left = left->next) {
        const struct op_row row = { .shape = list.shape, .at = &left->deferred };
        rc = sink->item(call->out, &row);
    }
    return rc ? rc : sink->end(call->out, &list);
}

int op_run_drain(struct op_call *call)
{
    struct hf_drain *in = call->in;
    struct hf_drain_report report = { 0 };
    struct draining d = { .arena = call->arena };
    d.last = &d.first;
    in->deferred = keep_deferred;
    in->user = &d;
    int rc = hf_process_drain(call->store, &call->who, in, &report, call->err);
    if (rc == 0 && d.failed)
        rc = hf_fail_plain(call->err, HF_ENOMEM);
    return rc ? rc : say_drained(call, &report, d.first);
}
