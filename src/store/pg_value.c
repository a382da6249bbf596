/* Arguments and results: integers and text go as text, bytes as bytes, sets as arrays. */
#include <string.h>

#include "base/text.h"
#include "store/pg.h"
#include "store/results.h"

/* Types of results, as the server numbers them. */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_NUMERIC = 1700
};

/* ---- arguments --------------------------------------------------------------------- */

static const char *i64_text(struct hf_arena *arena, int64_t value)
{
    char *out = hf_arena_take(arena, 21);
    if (!out)
        return NULL;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t at = 20;
    do
        out[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        out[--at] = '-';
    return out + at; /* the arena's memory is zeroed, so it ends in a NUL */
}

static int make_room(struct hf_arena *arena, uint32_t width, struct pg_args *args)
{
    args->count = (int)width;
    args->values = hf_arena_array(arena, width + 1, sizeof(*args->values));
    args->lengths = hf_arena_array(arena, width + 1, sizeof(*args->lengths));
    args->formats = hf_arena_array(arena, width + 1, sizeof(*args->formats));
    return args->values && args->lengths && args->formats ? 0 : HF_ENOMEM;
}

int pg_args_set(struct hf_arena *arena, const struct hf_call *call, uint32_t set,
                struct pg_args *ret_args)
{
    int rc = make_room(arena, call->width, ret_args);
    const struct hf_val *vals = call->args ? call->args + (size_t)set * call->width
                                           : NULL;
    for (uint32_t i = 0; rc == 0 && i < call->width; i++) {
        const struct hf_val *val = &vals[i];
        if (val->type == HF_VAL_NULL)
            continue;
        if (val->len > INT32_MAX)
            return HF_ETOOBIG;
        if (val->type == HF_VAL_I64)
            ret_args->values[i] = i64_text(arena, val->i);
        else if (val->type == HF_VAL_TEXT) /* a text in format 0 ends at its NUL */
            ret_args->values[i] = val->len ? hf_arena_copy(arena, val->at, val->len) : "";
        else
            ret_args->values[i] = val->at ? val->at : "";
        ret_args->lengths[i] = (int)val->len;
        ret_args->formats[i] = val->type == HF_VAL_BYTES;
        if (!ret_args->values[i])
            rc = HF_ENOMEM;
    }
    return rc;
}

/* One element of an array's text: quoted, since it may be anything. */
static void put_element(struct hf_buf *out, const struct hf_val *val)
{
    const char *text = val->at;
    if (val->type == HF_VAL_NULL) {
        hf_buf_text(out, "NULL");
    } else if (val->type == HF_VAL_I64) {
        hf_buf_i64(out, val->i);
    } else if (val->type == HF_VAL_BYTES) {
        hf_buf_text(out, "\"\\\\x");
        hf_buf_hex(out, val->at, val->len);
        hf_buf_char(out, '"');
    } else {
        hf_buf_char(out, '"');
        size_t done = 0;
        for (size_t i = 0; i < val->len; i++) {
            if (text[i] != '"' && text[i] != '\\')
                continue;
            hf_buf_bytes(out, text + done, i - done);
            hf_buf_char(out, '\\');
            done = i;
        }
        hf_buf_bytes(out, text + done, val->len - done);
        hf_buf_char(out, '"');
    }
}

int pg_args_sets(struct hf_arena *arena, const struct hf_call *call, const char *types,
                 struct pg_args *ret_args)
{
    uint32_t width = (uint32_t)strlen(types);
    struct hf_buf out;
    int rc = make_room(arena, width, ret_args);
    hf_buf_init(&out, arena->alloc, INT32_MAX);
    for (uint32_t i = 0; rc == 0 && i < width; i++) {
        hf_buf_reset(&out);
        hf_buf_char(&out, '{');
        for (uint32_t set = 0; set < call->rows; set++) {
            static const struct hf_val null = { .type = HF_VAL_NULL };
            if (set)
                hf_buf_char(&out, ',');
            put_element(&out, i < call->width ? &call->args[(size_t)set * call->width + i]
                                              : &null);
        }
        hf_buf_char(&out, '}');
        ret_args->values[i] = hf_buf_state(&out)
                                  ? NULL
                                  : hf_arena_copy(arena, hf_buf_str(&out), out.len);
        rc = ret_args->values[i] ? 0 : HF_ENOMEM;
    }
    hf_buf_fini(&out);
    return rc;
}

int pg_args_expect(struct hf_arena *arena, int64_t expect, struct pg_args *args)
{
    args->values[args->count] = i64_text(arena, expect);
    return args->values[args->count++] ? 0 : HF_ENOMEM;
}

/* ---- results ----------------------------------------------------------------------- */

static int64_t read_i64(const char *text)
{
    bool negative = *text == '-';
    uint64_t value = 0;
    for (text += negative; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return (int64_t)(negative ? 0 - value : value);
}

int64_t pg_cell_i64(const PGresult *result, int row, int column)
{
    const char *text = PQgetvalue(result, row, column);
    if (PQgetisnull(result, row, column))
        return 0;
    return PQftype(result, column) == OID_BOOL ? text[0] == 't' : read_i64(text);
}

static int nibble(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* "\x0011": the server writes bytes in lower-case hex. */
static int read_bytes(struct hf_arena *arena, const char *text, size_t len,
                      struct hf_val *ret_val)
{
    size_t bytes = len >= 2 ? (len - 2) / 2 : 0;
    char *out = hf_arena_take(arena, bytes + 1);
    if (!out)
        return HF_ENOMEM;
    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)(nibble(text[2 + 2 * i]) * 16 + nibble(text[3 + 2 * i]));
    *ret_val = (struct hf_val){ .type = HF_VAL_BYTES, .at = out, .len = bytes };
    return 0;
}

static int read_cell(struct hf_arena *arena, const PGresult *result, int row, int column,
                     struct hf_val *ret_val)
{
    if (PQgetisnull(result, row, column)) {
        *ret_val = (struct hf_val){ .type = HF_VAL_NULL };
        return 0;
    }
    const char *text = PQgetvalue(result, row, column);
    size_t len = (size_t)PQgetlength(result, row, column);
    switch (PQftype(result, column)) {
    case OID_BOOL:
    case OID_INT8:
    case OID_INT4:
    case OID_INT2:
    case OID_NUMERIC:
        *ret_val = (struct hf_val){ .type = HF_VAL_I64,
                                    .i = pg_cell_i64(result, row, column) };
        return 0;
    case OID_BYTEA: return read_bytes(arena, text, len, ret_val);
    default: break;
    }
    const char *copy = hf_arena_copy(arena, text, len);
    *ret_val = (struct hf_val){ .type = HF_VAL_TEXT, .at = copy, .len = len };
    return copy ? 0 : HF_ENOMEM;
}

int pg_rows_add(struct hf_batch *batch, struct hf_call *call, const PGresult *result)
{
    int width = PQnfields(result), rows = PQntuples(result);
    call->out_width = (size_t)width;
    int rc = rows ? hf_results_grow(batch, call, (size_t)rows) : 0;
    struct hf_arena *arena = rows && rc == 0 ? hf_results_of(batch) : NULL;
    for (int row = 0; arena && rc == 0 && row < rows; row++) {
        struct hf_val *out = &call->out[call->out_count * call->out_width];
        for (int column = 0; rc == 0 && column < width; column++)
            rc = read_cell(arena, result, row, column, &out[column]);
        call->out_count += rc == 0;
    }
    return rc;
}
