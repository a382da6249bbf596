/* One call of the public API on its way to the store.
 *
 * Each verb is a list of steps: begin, copy what has a size, check it, make the answer, call the
 * store, end. After a step has failed, the following ones are skipped. Input is checked here and
 * not again below.
 *
 * A store may try, fail and do it another way before it answers. So each step writes its detail
 * into the call's own record, and the caller's is written by the end of a call that failed. */
#ifndef HF_STORE_API_CALL_H
#define HF_STORE_API_CALL_H

#include <holdfast/sys/store.h>

#include "base/err.h"
#include "base/sized.h"

struct api_call {
    struct hf_caller who; /* complete */
    int rc;               /* of the first step that failed */
    struct hf_err why;
};

/* Does a step that returns a code, unless one before it has failed. */
#define API_STEP(call, step) ((call).rc = (call).rc ? (call).rc : (step))

/* The step that copies a struct of another version's size. */
#define API_COPY(call, from, to)                                                         \
    API_STEP(call, hf_sized_copy(from, sizeof *(to), sizeof *(to), to, &(call).why))

/* Completes a caller, who is "system" "holdfast" where it does not say. */
struct api_call api_begin(const struct hf_caller *given);
/* The same by the name of a part of the library. */
struct api_call api_begin_as(const struct hf_caller *given, const char *actor);

/* Returns the call's code; fills `err` where it failed. */
int api_end(const struct api_call *call, struct hf_err *err);

/* An answer to fill; NULL where a step has failed, or there is no memory, which is one. */
struct hf_answer *api_answer(struct api_call *call, const struct hf_store *store);
/* As api_end; the answer goes to the caller, or is freed. */
int api_answered(const struct api_call *call, struct hf_answer *answer,
                 struct hf_answer **ret_answer, struct hf_err *err);

/* Checks: a page of at most HF_MAX_PAGE of `what`; a time that is not negative. */
int api_check_page(size_t limit, const char *what, struct hf_err *err);
int api_check_time(hf_ms ms, const char *field, struct hf_err *err);

#endif
