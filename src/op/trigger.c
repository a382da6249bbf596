/* The operations on triggers.
 *
 * `trigger` is the word of the shell for a subscription: the rule that an occurrence of a source
 * creates a unit. It is named by its owner scope and its key. An emission is an occurrence with the
 * deliveries (units) that it created. */
#include "op/trigger.h"

#include "op/shapes/trigger.h"

/* ---- subscriptions ----------------------------------------------------------------- */

int op_check_subscribe(struct op_call *call)
{
    const struct hf_subscription_spec *wanted =
        call->in; /* comes first in an update too */
    int rc = op_check_kind(call, wanted->kind);
    return rc ? rc : hf_subscription_check(wanted, call->err);
}

/* The one subscription of an answer, which is freed, or the failure `rc`. */
static int say_changed(struct op_call *call, int rc, struct hf_subscriptions *found)
{
    if (rc == 0)
        rc = op_changed(call, hf_subscriptions_changed(found),
                        hf_subscriptions_at(found, 0));
    hf_subscriptions_free(found);
    return rc;
}

int op_run_subscribe(struct op_call *call)
{
    struct hf_subscriptions *found = NULL;
    int rc = hf_trigger_subscribe(call->store, &call->who, call->in, &found, call->err);
    return say_changed(call, rc, found);
}

int op_run_trigger_update(struct op_call *call)
{
    const struct hf_subscribe_request *in = call->in;
    struct hf_subscriptions *found = NULL;
    int rc = hf_trigger_update(call->store, &call->who, &in->wanted, in->revision, &found,
                               call->err);
    return say_changed(call, rc, found);
}

int op_run_trigger_change(struct op_call *call)
{
    struct hf_subscriptions *found = NULL;
    int rc = hf_trigger_change(call->store, &call->who, call->in, &found, call->err);
    return say_changed(call, rc, found);
}

/* ---- looking ----------------------------------------------------------------------- */

/* The first page that has a row. */
static int subscriptions_page(struct op_call *call, struct hf_subscriptions **ret)
{
    struct hf_trigger_filter filter = *(const struct hf_trigger_filter *)call->in;
    struct hf_subscriptions *page = NULL;
    int rc = 0;
    do {
        struct hf_subscriptions *before = page; /* whose cursor it continues */
        page = NULL;
        filter.after = before ? hf_subscriptions_next(before) : filter.after;
        rc = hf_trigger_list(call->store, &call->who, &filter, &page, call->err);
        hf_subscriptions_free(before);
    } while (rc == 0 && hf_subscriptions_count(page) == 0 && hf_subscriptions_next(page));
    if (rc == 0)
        *ret = page;
    return rc;
}

int op_run_trigger_list(struct op_call *call)
{
    const struct op_sink *sink = call->out->sink;
    struct op_list list = { .key = "items",
                            .shape = &hf_subscription_shape,
                            .none = "no subscriptions",
                            .paged = true };
    struct hf_subscriptions *found = NULL;
    int rc = subscriptions_page(call, &found);
    if (rc)
        return rc;
    list.next = hf_subscriptions_next(found);
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < hf_subscriptions_count(found); i++) {
        const struct op_row row = { .shape = list.shape,
                                    .at = hf_subscriptions_at(found, i) };
        rc = sink->item(call->out, &row);
    }
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_subscriptions_free(found);
    return rc;
}

/* Tells the sink the one subscription of that name. */
int op_run_trigger_show(struct op_call *call)
{
    const struct hf_trigger_change *name =
        call->in; /* its scope and key alone are read */
    struct hf_subscriptions *found = NULL;
    int rc = hf_trigger_get(call->store, &call->who, name->owner_scope, name->key, &found,
                            call->err);
    if (rc == 0)
        rc = op_row(call, hf_subscriptions_at(found, 0));
    hf_subscriptions_free(found);
    return rc;
}

int op_run_granted(struct op_call *call)
{
    const struct hf_read_request *in = call->in;
    struct hf_answer *answer = NULL;
    int rc = hf_trigger_granted(call->store, &call->who, in->id, (size_t)in->limit,
                                &answer, call->err);
    if (rc == 0)
        rc = op_units(call, answer, (struct op_list){ .none = "no units" });
    hf_answer_free(answer);
    return rc;
}

/* ---- occurrences ------------------------------------------------------------------- */

/* An occurrence and its deliveries, which are freed, or the failure `rc`. */
static int say_emission(struct op_call *call, int rc, struct hf_emission *emission)
{
    const struct op_sink *sink = call->out->sink;
    const struct op_list list = { .key = "items",
                                  .shape = &hf_delivery_shape,
                                  .report = !(call->op->flags & OP_READS) };
    if (rc)
        return rc;
    size_t count = hf_emission_count(emission);
    bool created = hf_emission_created(emission);
    op_text(call, "occurrence_id", hf_emission_occurrence(emission));
    op_bool(call, "created", created);
    op_say(call, "%s: %zu %s%s", hf_emission_occurrence(emission), count,
           count == 1 ? "delivery" : "deliveries", created ? "" : ", made before");
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct op_row row = { .shape = list.shape,
                                    .at = hf_emission_at(emission, i) };
        rc = sink->item(call->out, &row);
    }
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_emission_free(emission);
    return rc;
}

int op_run_emit(struct op_call *call)
{
    struct hf_emission *emission = NULL;
    int rc = hf_trigger_emit(call->store, &call->who, call->in, &emission, call->err);
    return say_emission(call, rc, emission);
}

int op_run_deliveries(struct op_call *call)
{
    const struct hf_read_request *in = call->in;
    struct hf_emission *emission = NULL;
    int rc = hf_trigger_deliveries(call->store, &call->who, in->id, &emission, call->err);
    return say_emission(call, rc, emission);
}
