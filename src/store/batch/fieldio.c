/* Rows that are described by a table of fields (core/ledger/fields.h), between C, SQL and answers:
 * read by the table, appended by it, copied by it. */
#include "store/batch/fieldio.h"

void hf_fields_read(const struct hf_call *call, size_t i, struct hf_field_table table,
                    void *ret_row)
{
    for (size_t f = 0; f < table.count; f++) {
        const struct hf_field *field = &table.fields[f];
        char *at = (char *)ret_row + field->offset;
        if (field->kind == HF_FIELD_I64)
            *(int64_t *)(void *)at = hf_out_i64(call, i, f);
        else
            *(const char **)(void *)at = hf_out_text(call, i, f);
    }
}

void hf_fields_append(struct hf_ops *ops, struct hf_field_table table, const void *row)
{
    for (size_t f = 0; f < table.count; f++) {
        const struct hf_field *field = &table.fields[f];
        if (field->kind != HF_FIELD_I64)
            hf_ops_text(ops, hf_field_text(field, row));
        else if (hf_field_null(field, row))
            hf_ops_null(ops);
        else
            hf_ops_i64(ops, hf_field_i64(field, row));
    }
}

int hf_fields_keep(struct hf_arena *arena, struct hf_field_table table, void *row)
{
    for (size_t f = 0; f < table.count; f++) {
        const struct hf_field *field = &table.fields[f];
        const char **text = (const char **)(void *)((char *)row + field->offset);
        if (field->kind == HF_FIELD_I64 || !*text)
            continue;
        *text = hf_arena_text(arena, *text);
        if (!*text)
            return HF_ENOMEM;
    }
    return 0;
}
