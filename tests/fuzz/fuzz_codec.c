/* The decoders of stored values. The first byte of an input chooses the kind, the rest is the
 * text. What is accepted must be encoded, and read again to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include <holdfast/turn_json.h>

#include "fuzz/fuzz.h"

typedef int again_fn(struct hf_span json, struct hf_bytes *ret_json);

#define AGAIN(name, type)                                                                \
    static int name##_again(struct hf_span json, struct hf_bytes *ret_json)              \
    {                                                                                    \
        struct hf_err err = { 0 };                                                       \
        struct hf_decoded *owner = NULL;                                                 \
        const struct type *value = NULL;                                                 \
        if (hf_##name##_decode(NULL, json, &owner, &value, &err))                        \
            return -1;                                                                   \
        fuzz_require(hf_##name##_encode(NULL, value, ret_json, &err) == 0);              \
        hf_decoded_free(owner);                                                          \
        return 0;                                                                        \
    }
AGAIN(record, hf_record)
AGAIN(tool_result, hf_tool_result)
AGAIN(outcome, hf_outcome)
AGAIN(llm_response, hf_llm_response)
AGAIN(llm_error, hf_llm_error)
AGAIN(exec_result, hf_exec_result)
AGAIN(turn_delivery, hf_turn_delivery)
AGAIN(base, hf_base)
AGAIN(turn_start, hf_turn_start)
AGAIN(restore, hf_restore)

static int journal_again(struct hf_span json, struct hf_bytes *ret_json)
{
    struct hf_err err = { 0 };
    struct hf_decoded *owner = NULL;
    const struct hf_op_record *ops = NULL;
    size_t count = 0;
    if (hf_op_records_decode(NULL, json, &owner, &ops, &count, &err))
        return -1;
    fuzz_require(hf_op_records_encode(NULL, ops, count, ret_json, &err) == 0);
    hf_decoded_free(owner);
    return 0;
}

static again_fn *const kinds[] = {
    record_again,    tool_result_again,   outcome_again, llm_response_again,
    llm_error_again, exec_result_again,   base_again,    turn_start_again,
    restore_again,   turn_delivery_again, journal_again,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    again_fn *again = kinds[data[0] % (sizeof(kinds) / sizeof(kinds[0]))];
    struct hf_bytes first = { 0 };
    struct hf_bytes second = { 0 };
    if (again((struct hf_span){ data + 1, size - 1 }, &first))
        return 0;
    fuzz_require(again((struct hf_span){ first.at, first.len }, &second) == 0);
    fuzz_require(first.len == second.len && memcmp(first.at, second.at, first.len) == 0);
    hf_bytes_free(&first);
    hf_bytes_free(&second);
    return 0;
}
