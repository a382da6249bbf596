/* The public verbs of overview.h: counts of queues, of holders (owners that have units running) and
 * by age, and the list of occurrences. Each checks its input, completes the caller and calls the
 * store. */
#include <holdfast/bounds.h>

#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "store/api/call.h"
#include "store/api/page.h"

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

/* The store's cursor as callers see it. */
static int mark_next(const struct api_page *page, const struct hf_store *store,
                     struct hf_occurrence_next *next)
{
    struct hf_arena arena;
    hf_arena_init(&arena, store->alloc);
    const char *marked = *next->cursor ? api_page_close(page, &arena, next->cursor) : "";
    int rc = marked && strlen(marked) < sizeof(next->cursor) ? 0 : HF_ENOMEM;
    if (rc == 0)
        memcpy(next->cursor, marked, strlen(marked) + 1);
    hf_arena_fini(&arena);
    return rc;
}

int hf_occurrence_list(struct hf_store *store, const struct hf_caller *given,
                       const struct hf_occurrence_filter *wanted,
                       hf_each_occurrence *each, void *user,
                       struct hf_occurrence_next *ret_next, struct hf_err *err)
{
    struct hf_occurrence_filter filter = { .size = sizeof filter };
    struct api_call call = api_begin(given);
    struct api_page page = { .what = "occurrences", .newest = true };
    struct hf_occurrence_next next = { "" };
    const struct hf_overview_methods *watch = watch_of(&call, store);
    if (wanted)
        API_COPY(call, wanted, &filter);
    API_STEP(call, check_occurrences(watch, &filter, &call.why));
    if (call.rc == 0) {
        api_page_text(&page, call.who.tenant);
        api_page_text(&page, filter.source_type);
        api_page_text(&page, filter.source_key);
    }
    API_STEP(call, api_page_open(&page, filter.after, &filter.after, &call.why));
    API_STEP(call,
             watch->occurrences(store, &call.who, &filter, each, user, &next, &call.why));
    API_STEP(call, mark_next(&page, store, &next));
    if (call.rc == 0)
        *ret_next = next;
    return api_end(&call, err);
}
