/* Operations: finding one by its name, reading its inputs, performing it, and telling its answer.
 *
 * An operation is a row of the tables in rows_*.c (struct op): inputs, answer, errors, and the
 * function that runs it. A call (struct op_call) is one use of it. The answer goes to a sink: rows,
 * facts (members of the JSON envelope) and sentences for people. */
#include "op/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/run.h>

#include "base/ident.h"
#include "base/text.h"
#include "core/ledger/step.h"

#define SAID_BYTES 1024

const struct op *op_find(const char *name)
{
    for (const struct op_group *group = op_groups; group->name; group++)
        for (const struct op *op = group->ops; op->name; op++)
            if (hf_same(op->name, name))
                return op;
    return NULL;
}

const char *op_path(const struct op *op, char out[OP_PATH])
{
    size_t len = 0;
    for (; op->name[len] && len < OP_PATH - 1; len++) {
        char c = op->name[len];
        bool inner = c == '_' && len && op->name[0] != '_';
        out[len] = c == '.' ? ' ' : inner ? '-' : c;
    }
    out[len] = '\0';
    return out;
}

bool op_exits_with(const struct op *op, int code)
{
    for (const int *error = op->errors; error && *error; error++)
        if (hf_err_exit(*error) == code)
            return true;
    return false;
}

/* ---- the request ------------------------------------------------------------------- */

int op_begin(struct op_call *call)
{
    call->in = hf_arena_take(call->arena, call->op->in_size);
    call->given = 0;
    if (!call->in)
        return hf_fail_plain(call->err, HF_ENOMEM);
    if (call->op->blank)
        memcpy(call->in, call->op->blank, call->op->in_size);
    return 0;
}

int op_read(struct op_call *call, struct hf_span object)
{
    const struct hf_input_part parts[] = { { call->op->in, call->in },
                                           { call->op->more, call->in },
                                           { NULL, NULL } };
    struct hf_input_reading reading = { .parts = parts,
                                        .arena = call->arena,
                                        .err = call->err };
    int rc = hf_inputs_read(object, &reading);
    call->given = reading.given;
    return rc;
}

static const struct hf_input *find_input(const struct op *op, const char *name,
                                         size_t len, size_t *ret_index)
{
    const struct hf_input *const tables[] = { op->in, op->more };
    *ret_index = 0;
    for (size_t t = 0; t < 2; t++)
        for (const struct hf_input *input = tables[t]; input && input->name; input++) {
            if (strlen(input->name) == len && memcmp(input->name, name, len) == 0)
                return input;
            (*ret_index)++;
        }
    return NULL;
}

bool op_given(const struct op_call *call, const char *name)
{
    size_t index = 0;
    hf_assert(find_input(call->op, name, strlen(name), &index));
    return call->given >> index & 1;
}

/* ---- messages ---------------------------------------------------------------------- */

static void put_name(struct op_call *call, struct hf_buf *out, const char *name,
                     size_t len)
{
    char option[HF_INPUT_NAME], path[OP_PATH];
    size_t index;
    const struct hf_input *input = find_input(call->op, name, len, &index);
    if (input) {
        hf_buf_text(out, call->dashes ? "--" : "");
        hf_buf_text(out, call->dashes ? hf_input_option(input, option) : input->name);
    } else if (len == 4 && memcmp(name, "help", 4) == 0) {
        hf_buf_text(out, call->dashes ? " (holdfast " : "");
        hf_buf_text(out, call->dashes ? op_path(call->op, path) : "");
        hf_buf_text(out, call->dashes ? " --help)" : "");
    } else {
        hf_buf_char(out, '{');
        hf_buf_bytes(out, name, len);
        hf_buf_char(out, '}');
    }
}

static void expand(struct op_call *call, char *text, size_t room)
{
    struct hf_buf out;
    const char *at = text;
    hf_buf_init(&out, call->arena->alloc, 4096);
    while (*at) {
        size_t len = strcspn(at, "{");
        size_t inner = at[len] ? strcspn(at + len + 1, "}") : 0;
        hf_buf_bytes(&out, at, len);
        at += len;
        if (!*at)
            break;
        if (at[1 + inner] != '}') {
            hf_buf_text(&out, at);
            break;
        }
        put_name(call, &out, at + 1, inner);
        at += inner + 2;
    }
    if (hf_buf_state(&out) == 0) { /* otherwise the text stays as it was written */
        size_t len = out.len < room ? out.len : hf_utf8_cut(hf_buf_str(&out), room - 1);
        memcpy(text, hf_buf_str(&out), len);
        text[len] = '\0';
    }
    hf_buf_fini(&out);
}

int op_named(struct op_call *call, int code)
{
    expand(call, call->err->message, sizeof(call->err->message));
    expand(call, call->err->field, sizeof(call->err->field));
    return code;
}

/* ---- performing -------------------------------------------------------------------- */

int op_check_caller(const struct op_call *call)
{
    return hf_caller_check(&call->who, call->err);
}

int op_perform(struct op_call *call)
{
    const struct op *op = call->op;
    bool opens = op->flags & (OP_STORE | OP_MUST_EXIST | OP_READS) &&
                 !(op->flags & OP_OPENS);
    int rc = op->check ? op->check(call) : 0;
    if (rc == 0)
        rc = op_check_caller(call);
    if (rc == 0 && opens)
        rc = call->open(call);
    if (rc == 0)
        rc = op->run(call);
    for (const struct op_advice *a = op->advice; rc && a && a->code; a++)
        if (a->code == rc && !call->action &&
            (!a->field || hf_same(a->field, call->err->field)))
            call->action = a->text;
    return rc;
}

/* ---- what operations say ----------------------------------------------------------- */

static void fact(struct op_call *call, const char *name, enum hf_field_kind kind,
                 const void *value)
{
    const struct hf_field field = { .name = name, .kind = kind };
    call->out->sink->fact(call->out, &field, value);
}

void op_i64(struct op_call *call, const char *name, int64_t value)
{
    fact(call, name, HF_FIELD_I64, &value);
}

void op_bool(struct op_call *call, const char *name, bool value)
{
    fact(call, name, HF_FIELD_BOOL, &value);
}

void op_text(struct op_call *call, const char *name, const char *text)
{
    fact(call, name, HF_FIELD_TEXT, &text);
}

void op_json(struct op_call *call, const char *name, const char *json)
{
    fact(call, name, HF_FIELD_JSON, &json);
}

void op_facts(struct op_call *call, const struct hf_shape *shape, const void *row)
{
    for (size_t i = 0; i < shape->count; i++)
        call->out->sink->fact(call->out, &shape->fields[i], row);
}

static int say_row(struct op_call *call, const void *row, const char *did)
{
    const struct op *op = call->op;
    const char *key = op->key ? op->key : op->shape->name;
    const struct op_row one = { .key = op->answer == OP_FACTS ? NULL : key,
                                .shape = op->shape,
                                .at = row,
                                .did = did };
    return call->out->sink->row(call->out, &one);
}

int op_row(struct op_call *call, const void *row)
{
    return say_row(call, row, call->op->did);
}

int op_changed(struct op_call *call, bool changed, const void *row)
{
    op_bool(call, "changed", changed);
    return say_row(call, row, changed ? call->op->did : "unchanged");
}

static struct op_row unit_row(const struct hf_item *item, const char *did)
{
    return (struct op_row){ .key = "work",
                            .shape = &hf_work_shape,
                            .at = &item->work,
                            .token = item->token,
                            .did = did,
                            .repeated = item->repeated };
}

int op_unit_row(struct op_call *call, const struct hf_item *item, const char *did)
{
    if (item->code)
        return hf_fail(call->err, item->code, item->field, "%s",
                       item->message ? item->message : hf_err_text(item->code));
    const struct op_row row = unit_row(item, did);
    int rc = call->out->sink->row(call->out, &row);
    if (rc == 0 && call->op->flags & OP_CREATES)
        op_bool(call, "created", item->created);
    return rc;
}

int op_unit(struct op_call *call, const struct hf_item *item, const char *did)
{
    int rc = op_unit_row(call, item, did);
    if (rc == 0 && item->repeated)
        op_bool(call, "repeated", true);
    return rc;
}

int op_units(struct op_call *call, const struct hf_answer *answer, struct op_list list)
{
    const struct op_sink *sink = call->out->sink;
    int rc = 0;
    list.key = "items";
    list.shape = &hf_work_shape;
    list.paged = true;
    list.next = hf_answer_next(answer);
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < hf_answer_count(answer); i++) {
        const struct op_row row = unit_row(hf_answer_at(answer, i), list.did);
        rc = sink->item(call->out, &row);
    }
    return rc ? rc : sink->end(call->out, &list);
}

void op_say(struct op_call *call, const char *format, ...)
{
    char text[SAID_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hf_assert(len >= 0);
    call->out->sink->say(call->out, text);
}

void op_note(struct op_call *call, const char *format, ...)
{
    char text[SAID_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hf_assert(len >= 0);
    call->out->sink->note(call->out, text);
}

int op_check_kind(struct op_call *call, const char *kind)
{
    if (call->dashes || !hf_same(kind, HF_RUN_KIND))
        return 0;
    return hf_fail(call->err, HF_EINVAL, "kind",
                   "kind: the payload of \"%s\" is a command, which is taken from the "
                   "command line of this machine only: `holdfast run`, `schedule add ... "
                   "-- CMD`, `trigger subscribe ... -- CMD`",
                   HF_RUN_KIND);
}

const char *op_age(hf_ms ms, char out[24])
{
    ms = ms < 0 ? -ms : ms;
    return hf_duration_text(ms >= 1000 ? ms - ms % 1000 : ms, out, 24);
}

int op_full_id(struct op_call *call, const char *id, const char **ret_id)
{
    struct hf_answer *answer = NULL;
    if (!id || hf_uuid_valid(id)) {
        *ret_id = id;
        return 0;
    }
    int rc = hf_work_get(call->store, &call->who, id, &answer, call->err);
    if (rc == HF_ENOTFOUND || rc == HF_EINVAL)
        return op_named_unit(call, id, rc, ret_id);
    if (rc)
        return rc;
    *ret_id = hf_arena_text(call->arena, hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    return *ret_id ? 0 : hf_fail_plain(call->err, HF_ENOMEM);
}
