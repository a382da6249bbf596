/* The public verbs of overview.h: counts of queues, of holders (owners that have units running) and
 * by age, and the list of occurrences. Each checks its input, completes the caller and calls the
 * store. */
#include <holdfast/bounds.h>

#include "base/text.h"
#include "store/api/call.h"

#define KEY_MAX ((size_t)HF_MAX_KEY_BYTES)
#define PAGE 100

static const struct hf_overview_methods *watch_of(struct api_call *call,
                                                  const struct hf_store *store)
{
    const struct hf_overview_methods *watch = store->methods->watch;
    if (!watch)
        API_STEP(*call, hf_fail(&call->why, HF_EINVAL, "store",
                                "this store does not implement counts"));
    return watch;
}

int hf_queue_list(struct hf_store *store, const struct hf_caller *given,
                  hf_each_queue *each, void *user, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    const struct hf_overview_methods *watch = watch_of(&call, store);
    API_STEP(call, watch->queues(store, &call.who, each, user, &call.why));
    return api_end(&call, err);
}

int hf_holder_list(struct hf_store *store, const struct hf_caller *given,
                   const char *owner, hf_each_holder_row *each, void *user,
                   struct hf_err *err)
{
    struct api_call call = api_begin(given);
    const struct hf_overview_methods *watch = watch_of(&call, store);
    API_STEP(call, hf_check_key_opt(owner, KEY_MAX, "owner", &call.why));
    API_STEP(call, watch->holders(store, &call.who, owner, each, user, &call.why));
    return api_end(&call, err);
}

int hf_work_ages(struct hf_store *store, const struct hf_caller *given,
                 struct hf_age_table *ret_ages, struct hf_err *err)
{
    struct api_call call = api_begin(given);
    const struct hf_overview_methods *watch = watch_of(&call, store);
    API_STEP(call, watch->ages(store, &call.who, ret_ages, &call.why));
    return api_end(&call, err);
}

static int check_occurrences(const struct hf_overview_methods *watch,
                             struct hf_occurrence_filter *filter, struct hf_err *err)
{
    int rc = watch->occurrences ? 0
                                : hf_fail(err, HF_EINVAL, "store",
                                          "this store does not implement triggers");
    if (rc == 0)
        rc = hf_check_key_opt(filter->source_type, KEY_MAX, "source_type", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->source_key, KEY_MAX, "source_key", err);
    if (rc == 0)
        rc = hf_check_key_opt(filter->after, KEY_MAX, "after", err);
    filter->limit = filter->limit ? filter->limit : PAGE;
    return rc ? rc : api_check_page(filter->limit, "occurrences", err);
}

int hf_occurrence_list(struct hf_store *store, const struct hf_caller *given,
                       const struct hf_occurrence_filter *wanted,
                       hf_each_occurrence *each, void *user, struct hf_err *err)
{
    struct hf_occurrence_filter filter = { .size = sizeof filter };
    struct api_call call = api_begin(given);
    const struct hf_overview_methods *watch = watch_of(&call, store);
    if (wanted)
        API_COPY(call, wanted, &filter);
    API_STEP(call, check_occurrences(watch, &filter, &call.why));
    API_STEP(call, watch->occurrences(store, &call.who, &filter, each, user, &call.why));
    return api_end(&call, err);
}
