/* The steps that all public verbs share: beginning a call, making its answer, ending it. A call
 * (struct api_call) carries the code and the detail of the first step that failed; the macro
 * API_STEP does nothing after that. */
#include "store/api/call.h"

#include <holdfast/bounds.h>

#include "store/api/work.h"

struct api_call api_begin_as(const struct hf_caller *given, const char *actor)
{
    struct api_call call = { .rc = 0 };
    call.rc = hf_caller_complete(given, "system", actor, &call.who, &call.why);
    return call;
}

struct api_call api_begin(const struct hf_caller *given)
{
    return api_begin_as(given, "holdfast");
}

int api_end(const struct api_call *call, struct hf_err *err)
{
    return hf_fail_as(err, call->rc, &call->why);
}

struct hf_answer *api_answer(struct api_call *call, const struct hf_store *store)
{
    struct hf_answer *answer = call->rc ? NULL : hf_answer_new(store->alloc);
    API_STEP(*call, answer ? 0 : HF_ENOMEM);
    return answer;
}

int api_answered(const struct api_call *call, struct hf_answer *answer,
                 struct hf_answer **ret_answer, struct hf_err *err)
{
    if (call->rc)
        hf_answer_free(answer);
    else
        *ret_answer = answer;
    return api_end(call, err);
}

int api_check_page(size_t limit, const char *what, struct hf_err *err)
{
    return limit > (size_t)HF_MAX_PAGE
               ? hf_fail(err, HF_ETOOBIG, "limit", "a page must hold at most %lld %s",
                         (long long)HF_MAX_PAGE, what)
               : 0;
}

int api_check_time(hf_ms ms, const char *field, struct hf_err *err)
{
    return ms < 0 || ms > HF_MAX_DURATION_MAX_MS
               ? hf_fail(err, HF_EINVAL, field,
                         "%s must not be negative or beyond 100 years", field)
               : 0;
}
