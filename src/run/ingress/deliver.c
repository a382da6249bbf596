/* A message that may be the answer to a question: it goes to the unit that waits for it, or
 * becomes a unit of its own.
 *
 * It is delivered once, however often it comes. What became a unit is found by its source;
 * what ended a wait by the receipt of its operation id, which is made of the source too. Both
 * are looked for before anything is done. */
#include <holdfast/ingress.h>

#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "store/api/work.h"

#define OPERATION "reply:"
#define OPERATION_TEXT (sizeof OPERATION + 2 * HF_DIGEST_BYTES)
#define LOOKS 2

static int create(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_work_spec *request, struct hf_answer **ret_answer,
                  struct hf_err *err)
{
    struct hf_work_spec unit = *request;
    unit.reply_ref = NULL;
    return hf_work_create_checked(store, who, &unit, 1, HF_ALL_OR_NONE, ret_answer, err);
}

/* The same for every delivery of one message. */
static int name_operation(const struct hf_work_spec *request,
                          char ret_text[OPERATION_TEXT], struct hf_err *err)
{
    struct hf_digest digest;
    uint8_t bytes[HF_DIGEST_BYTES];
    hf_digest_begin(&digest, "work.reply", 1);
    hf_digest_i64(&digest, request->source);
    hf_digest_text(&digest, request->source_id);
    hf_digest_text(&digest, request->source_run_id ? request->source_run_id : "");
    if (hf_digest_end(&digest, bytes))
        return hf_fail_plain(err, HF_ENOMEM);
    memcpy(ret_text, OPERATION, sizeof OPERATION - 1);
    hf_hex(bytes, sizeof bytes, ret_text + sizeof OPERATION - 1);
    return 0;
}

/* HF_ENOTFOUND, HF_EAMBIGUOUS: no process waits for it, or several do. */
static int resume(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_work_spec *request, struct hf_answer **ret_answer,
                  struct hf_err *err)
{
    struct hf_change change = { .size = sizeof change,
                                .verb = HF_VERB_RESUME,
                                .ref = request->reply_ref,
                                .status = HF_STATUS_WAITING_USER,
                                .payload = request->payload };
    return hf_work_change(store, who, &change, 1, HF_ALL_OR_NONE, ret_answer, err);
}

static bool takes_nobody(int rc)
{
    return rc == HF_ENOTFOUND || rc == HF_EAMBIGUOUS || rc == HF_ETRANSITION;
}

/* Between the look for a receipt and the look for who waits, the same message may have ended
 * the wait by another way: so no process is believed only the second time. */
static int resume_if_one(struct hf_store *store, const struct hf_caller *who,
                         const struct hf_work_spec *request,
                         struct hf_answer **ret_answer, struct hf_err *err)
{
    int rc = HF_ENOTFOUND;
    for (int i = 0; takes_nobody(rc) && i < LOOKS; i++)
        rc = resume(store, who, request, ret_answer, err);
    return rc;
}

int hf_work_deliver(struct hf_store *store, const struct hf_caller *who,
                    const struct hf_work_spec *request, struct hf_answer **ret_answer,
                    bool *ret_resumed, struct hf_err *err)
{
    char operation[OPERATION_TEXT];
    struct hf_caller as = { .size = sizeof as };
    struct hf_err why = { 0 };
    bool known = false;
    *ret_resumed = false;
    int rc = hf_work_spec_check(request, err);
    if (rc)
        return rc;
    if (!request->reply_ref)
        return create(store, who, request, ret_answer, err);
    if (who)
        as = *who;
    if (!as.operation_id) {
        rc = name_operation(request, operation, err);
        as.operation_id = operation;
    }
    if (rc == 0)
        rc = hf_work_known(store, who, request, &known, err);
    if (rc == 0 && !known) {
        rc = resume_if_one(store, &as, request, ret_answer, &why);
        *ret_resumed = rc == 0;
        if (rc == HF_ECONFLICT && as.operation_id == operation)
            return hf_fail(
                err, rc, "source_id",
                "the same source id and run id was delivered earlier with other content");
        if (rc == HF_EINVAL && hf_same(why.field, "ref")) /* as the caller calls it */
            return hf_fail(err, rc, "reply_ref", "%s", why.message);
        if (!takes_nobody(rc))
            return hf_fail_as(err, rc, &why);
        rc = 0;
    }
    return rc ? rc : create(store, who, request, ret_answer, err);
}
