/* Values on their way to the server and back: arguments from struct hf_val, and rows into struct
 * hf_val. Integers and text are sent as text, bytes as bytes, and the argument sets of one call as
 * binary arrays, one per column. */
#include <string.h>

#include "base/text.h"
#include "db/batch.h"
#include "db/pg/pg.h"

/* Types, as the server numbers them. */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_INT8_ARRAY = 1016,
    OID_NUMERIC = 1700
};

/* ---- arguments --------------------------------------------------------------------- */

const char *pg_i64_text(struct hf_arena *arena, int64_t value)
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

static int put_value(struct hf_arena *arena, const struct hf_val *val,
                     struct pg_args *args, uint32_t at)
{
    if (val->type == HF_VAL_NULL)
        return 0;
    if (val->len > INT32_MAX)
        return HF_ETOOBIG;
    if (val->type == HF_VAL_I64)
        args->values[at] = pg_i64_text(arena, val->i);
    else if (val->type == HF_VAL_TEXT) /* a text in format 0 ends at its NUL */
        args->values[at] = val->len ? hf_arena_copy(arena, val->at, val->len) : "";
    else
        args->values[at] = val->at ? val->at : "";
    args->lengths[at] = (int)val->len;
    args->formats[at] = val->type == HF_VAL_BYTES;
    return args->values[at] ? 0 : HF_ENOMEM;
}

int pg_args_set(struct hf_arena *arena, const struct hf_call *call, uint32_t set,
                struct pg_args *ret_args)
{
    int rc = make_room(arena, call->width, ret_args);
    const struct hf_val *vals = call->args ? call->args + (size_t)set * call->width
                                           : NULL;
    for (uint32_t i = 0; rc == 0 && i < call->width; i++)
        rc = put_value(arena, &vals[i], ret_args, i);
    return rc;
}

/* ---- sets: one array per column, as the server sends them itself, so that nothing is
 * quoted here and nothing read letter by letter there
 * ----------------------------------------- */

#define ARRAY_HEAD 20 /* dimensions, any nulls, type, length, first index */

static char *put_u32(char *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *out++ = (char)(value >> shift);
    return out;
}

/* The bytes of an element, without the four of its length; -1: the column cannot hold it. */
static int64_t element_bytes(const struct hf_val *val, char type)
{
    if (val->type == HF_VAL_NULL)
        return 0;
    if (type == 'i')
        return val->type == HF_VAL_I64 ? 8 : -1;
    return val->type == (type == 'b' ? HF_VAL_BYTES : HF_VAL_TEXT) ? (int64_t)val->len
                                                                   : -1;
}

static char *put_element(char *out, const struct hf_val *val)
{
    if (val->type == HF_VAL_NULL)
        return put_u32(out, UINT32_MAX);
    if (val->type == HF_VAL_I64) {
        out = put_u32(out, 8);
        out = put_u32(out, (uint32_t)((uint64_t)val->i >> 32));
        return put_u32(out, (uint32_t)(uint64_t)val->i);
    }
    out = put_u32(out, (uint32_t)val->len);
    if (val->len)
        memcpy(out, val->at, val->len);
    return out + val->len;
}

static const struct hf_val null_value = { .type = HF_VAL_NULL };

/* The value of a column in a set; NULL for a column that the call does not have. */
static const struct hf_val *element(const struct hf_call *call, uint32_t set,
                                    uint32_t column)
{
    return column < call->width
               ? &call->args[call->once + (size_t)set * call->width + column]
               : &null_value;
}

/* Arrays that end early continue with nulls, so a column without values is an empty array. But the
 * first is as long as there are sets. */
static int put_array(struct hf_arena *arena, const struct hf_call *call, uint32_t column,
                     char type, struct pg_args *args)
{
    int64_t bytes = ARRAY_HEAD;
    uint32_t values = 0;
    for (uint32_t set = 0; set < call->rows; set++) {
        const struct hf_val *val = element(call, set, column);
        int64_t more = element_bytes(val, type);
        if (more < 0)
            return HF_EINTERNAL;
        bytes += 4 + more;
        values += val->type != HF_VAL_NULL;
        if (bytes > INT32_MAX)
            return HF_ETOOBIG;
    }
    bool empty = values == 0 && column > 0;
    char *out = hf_arena_take(arena, (size_t)(empty ? ARRAY_HEAD : bytes));
    if (!out)
        return HF_ENOMEM;
    char *at = put_u32(out, !empty);
    at = put_u32(at, values < call->rows && !empty);
    at = put_u32(at, type == 'i' ? OID_INT8 : type == 'b' ? OID_BYTEA : OID_TEXT);
    if (!empty) {
        at = put_u32(at, call->rows);
        at = put_u32(at, 1);
    }
    for (uint32_t set = 0; !empty && set < call->rows; set++)
        at = put_element(at, element(call, set, column));
    args->values[call->once + column] = out;
    args->lengths[call->once + column] = (int)(at - out);
    args->formats[call->once + column] = 1;
    return 0;
}

int pg_args_sets(struct hf_arena *arena, const struct hf_call *call, const char *types,
                 struct pg_args *ret_args)
{
    uint32_t columns = (uint32_t)strlen(types);
    int rc = make_room(arena, call->once + columns, ret_args);
    for (uint32_t i = 0; rc == 0 && i < call->once; i++)
        rc = put_value(arena, &call->args[i], ret_args, i);
    for (uint32_t i = 0; rc == 0 && i < columns; i++)
        rc = put_array(arena, call, i, types[i], ret_args);
    return rc;
}

int pg_args_expect(struct hf_arena *arena, int64_t expect, struct pg_args *args)
{
    args->values[args->count] = pg_i64_text(arena, expect);
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

/* hf_results_full sets call->full once the rows have call->bytes_max bytes. The server has sent
 * the whole result; its remaining rows are dropped. */
int pg_rows_add(struct hf_batch *batch, struct hf_call *call, const PGresult *result)
{
    int width = PQnfields(result), rows = PQntuples(result);
    call->out_width = (size_t)width;
    int rc = rows ? hf_results_grow(batch, call, (size_t)rows) : 0;
    struct hf_arena *arena = rows && rc == 0 ? hf_results_of(batch) : NULL;
    size_t bytes = 0;
    for (int row = 0; arena && rc == 0 && !call->full && row < rows; row++) {
        struct hf_val *out = &call->out[call->out_count * call->out_width];
        for (int column = 0; rc == 0 && column < width; column++)
            rc = read_cell(arena, result, row, column, &out[column]);
        call->out_count += rc == 0;
        if (rc == 0)
            (void)hf_results_full(call, &bytes); /* call->full ends the loop */
    }
    return rc;
}
