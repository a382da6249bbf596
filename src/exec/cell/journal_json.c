/* Journals of cells as JSON. See holdfast/turn_json.h. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "core/turn/codec.h"

/* An operation as it is written: args are JSON, except those of a print. */
struct op_text {
    uint64_t ordinal;
    enum hf_op_kind kind;
    const char *name;
    struct hf_span args;
    struct hf_span text;
    const struct hf_tool_result *results;
    size_t result_count;
    bool answered;
    struct hf_span value;
};

struct journal {
    struct op_text *ops;
    size_t op_count;
};

#define X(name, word) #word,
static const char *const op_words[] = { HF_OPS(X) };
#undef X
static const struct hf_words w_ops = { op_words, HF_OP_COUNT };

/* clang-format off */
#define RAW .type = HF_M_JSON, .max = 8388608
#define LIST(s, n) .type = HF_M_LIST, .of = &(s), .max = (n)
static const struct hf_member op_members[] = {
    { .key = 1, .type = HF_M_U64, HF_AT(op_text, ordinal) },
    { .key = 2, .type = HF_M_ENUM, .words = &w_ops, .flags = HF_M_REQUIRED, HF_AT(op_text, kind) },
    { .key = 3, .type = HF_M_TEXT, .max = 191, HF_AT(op_text, name) },
    { .key = 4, RAW, HF_AT(op_text, args) },
    { .key = 5, .type = HF_M_SPAN, .max = 8388608, HF_AT(op_text, text) },
    { .key = 6, LIST(hf_s_tool_result, 65536), HF_AT_LIST(op_text, results, result_count) },
    { .key = 7, .type = HF_M_BOOL, HF_AT(op_text, answered) },
    { .key = 8, RAW, HF_AT(op_text, value) },
};
static HF_SCHEMA(s_op, op_text, op_members);

static const struct hf_member journal_members[] = {
    { .key = 1, LIST(s_op, 65536), HF_AT_LIST(journal, ops, op_count) },
};
static HF_SCHEMA(s_journal, journal, journal_members);
/* clang-format on */

static int check_journal(const void *value, struct hf_err *err)
{
    const struct journal *journal = value;
    uint64_t before = 0;
    for (size_t i = 0; i < journal->op_count; i++) {
        const struct op_text *op = &journal->ops[i];
        if (op->ordinal <= before)
            return hf_fail(err, HF_EINVAL, "ordinal",
                           "operation %zu is out of order: ordinals ascend from 1", i);
        if (op->kind == HF_OP_PRINT ? op->args.len > 0 : op->text.len > 0)
            return hf_fail(err, HF_EINVAL, op->kind == HF_OP_PRINT ? "args" : "text",
                           "only a print has text instead of args");
        before = op->ordinal;
    }
    return 0;
}

static const struct hf_turn_codec codec = { .schema = &s_journal,
                                            .mode = HF_COPY_STRICT,
                                            .check = check_journal };

int hf_op_records_encode(const struct hf_alloc *alloc, const struct hf_op_record *ops,
                         size_t count, struct hf_bytes *ret_json, struct hf_err *err)
{
    struct hf_arena arena;
    if (count > 0 && !ops)
        return hf_fail(err, HF_EINVAL, "ops", "operations are missing");
    hf_arena_init(&arena, alloc ? alloc : hf_alloc_system());
    struct journal journal = { .op_count = count };
    journal.ops = hf_arena_array(&arena, count, sizeof(*journal.ops));
    int rc = journal.ops ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        bool print = ops[i].kind == HF_OP_PRINT;
        journal.ops[i] = (struct op_text){ .ordinal = ops[i].ordinal,
                                           .kind = ops[i].kind,
                                           .name = ops[i].name,
                                           .results = ops[i].results,
                                           .result_count = ops[i].result_count,
                                           .answered = ops[i].answered,
                                           .value = ops[i].value };
        *(print ? &journal.ops[i].text : &journal.ops[i].args) = ops[i].args;
    }
    if (rc == 0)
        rc = hf_turn_encode(&codec, alloc, &journal, ret_json, err);
    hf_arena_fini(&arena);
    return rc;
}

int hf_op_records_decode(const struct hf_alloc *alloc, struct hf_span json,
                         struct hf_decoded **ret_owner,
                         const struct hf_op_record **ret_ops, size_t *ret_count,
                         struct hf_err *err)
{
    struct hf_decoded *owner = NULL;
    void *value = NULL;
    int rc = hf_turn_decode(&codec, alloc, json, &owner, &value, err);
    if (rc)
        return rc;
    const struct journal *journal = value;
    struct hf_op_record *ops = hf_arena_array(hf_decoded_arena(owner), journal->op_count,
                                              sizeof(*ops));
    if (!ops) {
        hf_decoded_free(owner);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    for (size_t i = 0; i < journal->op_count; i++) {
        const struct op_text *op = &journal->ops[i];
        ops[i] = (struct hf_op_record){ .ordinal = op->ordinal,
                                        .kind = op->kind,
                                        .name = op->name,
                                        .args = op->kind == HF_OP_PRINT ? op->text
                                                                        : op->args,
                                        .results = op->results,
                                        .result_count = op->result_count,
                                        .answered = op->answered,
                                        .value = op->value };
    }
    *ret_owner = owner;
    *ret_ops = ops;
    *ret_count = journal->op_count;
    return 0;
}
