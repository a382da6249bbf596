/* Receipts of operation ids. A caller may pass an operation id to a verb; the transaction then also
 * stores a receipt: the scope (which verb), the id, a hash of the request, and the result. The same
 * operation again is answered from the receipt, and other content under the same id is a
 * conflict. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "store/store.h"

int sql_receipt_find(struct hf_ops *ops, const struct hf_caller *who, const char *scope,
                     const uint8_t hash[HF_DIGEST_BYTES], const char **ret_result,
                     struct hf_err *err)
{
    hf_ops_call(ops, HF_SQL_RECEIPT_READ, HF_ANY_COUNT);
    hf_ops_text(ops, who->tenant);
    hf_ops_text(ops, scope);
    hf_ops_text(ops, who->operation_id);
    int rc = hf_ops_read(ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(ops, 0) : NULL;
    if (!found || found->out_count == 0)
        return rc;
    const struct hf_val *was = hf_out(found, 0, HF_COL_RECEIPT_READ_CONTENT_HASH);
    if (was->len != HF_DIGEST_BYTES || memcmp(was->at, hash, HF_DIGEST_BYTES) != 0)
        return hf_fail(err, HF_ECONFLICT, "operation_id",
                       "operation id %s was used earlier with other content",
                       who->operation_id);
    *ret_result = hf_out_text(found, 0, HF_COL_RECEIPT_READ_RESULT);
    return 1;
}

void sql_receipt_add(struct hf_ops *ops, const struct hf_caller *who, const char *scope,
                     const uint8_t hash[HF_DIGEST_BYTES], const char *result)
{
    const void *kept = hf_arena_copy(&ops->arena, hash, HF_DIGEST_BYTES);
    if (!kept) {
        ops->state = HF_ENOMEM;
        return;
    }
    hf_ops_call(ops, HF_SQL_RECEIPT_WRITE, 1);
    hf_ops_text(ops, who->tenant);
    hf_ops_text(ops, scope);
    hf_ops_text(ops, who->operation_id);
    hf_ops_bytes(ops, kept, HF_DIGEST_BYTES);
    hf_ops_text(ops, result);
}
