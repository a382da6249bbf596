/* The answer as JSON: {"ok":true,…} or {"ok":false,"error":{…}}, one object per call. */
#include <string.h>

#include "base/text.h"
#include "op/op.h"

#define TOKEN_FIELD "lease_token"
#define DIGEST_BYTES 32

/* ---- fields ------------------------------------------------------------------------ */

/* The first byte from `at` on that is white space outside strings, or the end. */
static const char *run_end(const char *at, bool *in_string)
{
    for (; *at; at++) {
        if (*in_string && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            *in_string = !*in_string;
        else if (!*in_string && (*at == ' ' || (*at >= '\t' && *at <= '\r')))
            return at;
    }
    return at;
}

/* Appends JSON without the white space around its values; the first piece by the writer. */
static void put_compact(struct hf_buf *out, struct hf_json *json, const char *text)
{
    bool in_string = false, first = json != NULL;
    while (*text) {
        const char *end = run_end(text, &in_string);
        size_t len = (size_t)(end - text);
        if (len && first)
            hf_json_rawn(json, text, len);
        else if (len)
            hf_buf_bytes(out, text, len);
        first = first && !len;
        text = *end ? end + 1 : end;
    }
    if (first)
        hf_json_null(json); /* nothing but white space: not JSON, and never stored */
}

static void put_time(struct hf_json *json, hf_ms at)
{
    char text[HF_INSTANT_TEXT];
    hf_json_str(json, hf_instant_text(at, text));
}

static void put_digest(struct hf_json *json, const void *bytes)
{
    char text[2 * DIGEST_BYTES + 1];
    hf_hex(bytes, DIGEST_BYTES, text);
    hf_json_str(json, text);
}

static void put_times(struct hf_json *json, const struct hf_times *times)
{
    hf_json_array(json);
    for (size_t i = 0; i < times->count; i++)
        put_time(json, times->at[i]);
    hf_json_end(json);
}

static void put_value(struct hf_json *json, const struct hf_field *field, const void *row)
{
    const void *at = (const char *)row + field->offset;
    const struct hf_span *bytes = at;
    if (hf_field_null(field, row)) {
        hf_json_null(json);
        return;
    }
    switch (field->kind) {
    case HF_FIELD_TEXT:
    case HF_FIELD_WORD: hf_json_str(json, hf_field_text(field, row)); return;
    case HF_FIELD_JSON: put_compact(json->out, json, hf_field_text(field, row)); return;
    case HF_FIELD_I64:
    case HF_FIELD_INT: hf_json_i64(json, hf_field_i64(field, row)); return;
    case HF_FIELD_BOOL: hf_json_bool(json, hf_field_i64(field, row)); return;
    case HF_FIELD_TIME: put_time(json, hf_field_i64(field, row)); return;
    case HF_FIELD_BYTES: hf_json_strn(json, bytes->at, bytes->len); return;
    case HF_FIELD_ROW: op_put_shape(json, field->of, at); return;
    case HF_FIELD_TIMES: put_times(json, at); return;
    case HF_FIELD_DIGEST: put_digest(json, at); return;
    }
}

void op_put_field(struct hf_json *json, const struct hf_field *field, const void *row)
{
    hf_json_key(json, field->name);
    put_value(json, field, row);
}

static void put_fields(struct hf_json *json, const struct hf_shape *shape,
                       const void *row)
{
    for (size_t i = 0; i < shape->count; i++)
        if (!shape->fields[i].optional || !hf_field_null(&shape->fields[i], row))
            op_put_field(json, &shape->fields[i], row);
}

void op_put_shape(struct hf_json *json, const struct hf_shape *shape, const void *row)
{
    hf_json_object(json);
    put_fields(json, shape, row);
    hf_json_end(json);
}

void op_put_plain(struct hf_buf *out, const struct hf_field *field, const void *row)
{
    if (hf_field_null(field, row))
        return;
    if (field->kind == HF_FIELD_JSON)
        put_compact(out, NULL, hf_field_text(field, row));
    else if (field->kind == HF_FIELD_DIGEST)
        hf_buf_hex(out, (const char *)row + field->offset, DIGEST_BYTES);
    else if (hf_field_text(field, row))
        hf_buf_text(out, hf_field_text(field, row));
    else
        hf_buf_i64(out, hf_field_i64(field, row));
}

/* ---- failures ---------------------------------------------------------------------- */

const char *op_message(const struct hf_err *err, char out[OP_MESSAGE])
{
    const char *text = *err->message ? err->message : hf_err_text(err->code);
    bool input = err->code == HF_EINVAL || err->code == HF_ETOOBIG;
    bool named = !input || !*err->field || strstr(text, err->field);
    size_t at = 0;
    for (const char *from = named ? "" : err->field; *from; from++)
        out[at++] = *from;
    for (const char *from = at ? ": " : ""; *from; from++)
        out[at++] = *from;
    for (; *text && at < OP_MESSAGE - 1; text++)
        out[at++] = *text;
    out[at] = '\0';
    return out;
}

void op_put_error(struct hf_json *json, const struct hf_err *err, const char *action)
{
    char message[OP_MESSAGE];
    hf_json_key(json, "error");
    hf_json_object(json);
    hf_json_put_str(json, "code", hf_err_wire(err->code));
    hf_json_put_str(json, "message", op_message(err, message));
    hf_json_put_str(json, "class", hf_class_name(hf_err_class(err->code)));
    hf_json_put_str(json, "action", action ? action : hf_err_action(err->code));
    hf_json_put_bool(json, "retryable", hf_err_class(err->code) == HF_CLASS_RETRYABLE);
    hf_json_end(json);
}

/* ---- the envelope ------------------------------------------------------------------ */

static struct hf_json *opened(struct op_json_out *json)
{
    if (json->open)
        return &json->writer;
    json->open = true;
    hf_json_begin(&json->writer, json->buf);
    hf_json_object(&json->writer);
    if (json->id.len) {
        hf_json_key(&json->writer, "id");
        hf_json_rawn(&json->writer, json->id.at, json->id.len);
    }
    hf_json_put_bool(&json->writer, "ok", json->call->verdict == 0);
    if (json->call->verdict)
        op_put_error(&json->writer, json->call->err, json->call->action);
    return &json->writer;
}

static struct op_json_out *of(struct op_out *out)
{
    return (struct op_json_out *)out; /* its first member */
}

static void say_fact(struct op_out *out, const struct hf_field *field, const void *row)
{
    op_put_field(opened(of(out)), field, row);
}

static void put_row(struct hf_json *json, const struct op_row *row)
{
    hf_json_object(json);
    put_fields(json, row->shape, row->at);
    hf_json_opt_str(json, TOKEN_FIELD, row->token);
    hf_json_end(json);
}

static int say_row(struct op_out *out, const struct op_row *row)
{
    struct hf_json *json = opened(of(out));
    if (!row->key) {
        put_fields(json, row->shape, row->at);
        return 0;
    }
    hf_json_key(json, row->key);
    put_row(json, row);
    return 0;
}

static void say_begin(struct op_out *out, const struct op_list *list)
{
    hf_json_key(opened(of(out)), list->key);
    hf_json_array(&of(out)->writer);
}

static int say_item(struct op_out *out, const struct op_row *row)
{
    struct op_json_out *json = of(out);
    put_row(&json->writer, row);
    return json->flush ? json->flush(json) : 0;
}

static int say_end(struct op_out *out, const struct op_list *list)
{
    struct hf_json *json = &of(out)->writer;
    hf_json_end(json);
    if (list->paged && list->next_id)
        hf_json_put_i64(json, "next", list->next_id);
    else if (list->paged)
        hf_json_put_str(json, "next", list->next);
    return 0;
}

static void say_nothing(struct op_out *out, const char *text)
{
    (void)out;
    (void)text;
}

static const struct op_sink json_sink = { .fact = say_fact,
                                          .row = say_row,
                                          .begin = say_begin,
                                          .item = say_item,
                                          .end = say_end,
                                          .say = say_nothing,
                                          .note = say_nothing };

void op_json_init(struct op_json_out *json, struct op_call *call, struct hf_buf *buf)
{
    *json = (struct op_json_out){ .out.sink = &json_sink, .call = call, .buf = buf };
}

void op_json_end(struct op_json_out *json)
{
    hf_json_end(opened(json));
    hf_buf_char(json->buf, '\n');
}

void op_json_fail(struct op_json_out *json, int code)
{
    hf_buf_reset(json->buf);
    json->open = false;
    json->call->err->code = code;
    json->call->verdict = code;
    op_json_end(json);
}
