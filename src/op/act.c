/* An act: the operation, with its inputs, that deals with a finding of `attention`. It is printed
 * as a command that a shell can run, and as JSON. */
#include <string.h>

#include "base/text.h"
#include "op/act.h"

static const struct hf_input *input_of(const struct op *op, const char *name)
{
    const struct hf_input *const tables[] = { op->in, op->more };
    for (size_t t = 0; t < 2; t++)
        for (const struct hf_input *in = tables[t]; in && in->name; in++)
            if (hf_same(in->name, name))
                return in;
    return NULL;
}

/* A word that a shell reads back as it was. */
void op_put_quoted(struct hf_buf *out, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+,";
    if (*text && text[strspn(text, plain)] == '\0') {
        hf_buf_text(out, text);
        return;
    }
    hf_buf_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            hf_buf_text(out, "'\\''");
        else
            hf_buf_char(out, *text);
    }
    hf_buf_char(out, '\'');
}

static void put_input(struct hf_buf *out, const struct hf_input *input,
                      const struct hf_fact *fact)
{
    char option[HF_INPUT_NAME];
    hf_buf_char(out, ' ');
    /* A value that begins with a dash is read as an option unless it has its name. */
    if (!(input->flags & HF_IN_BARE) || (fact->text && fact->text[0] == '-')) {
        hf_buf_text(out, "--");
        hf_buf_text(out, hf_input_option(input, option));
        if (input->kind == HF_IN_FLAG)
            return;
        hf_buf_char(out, fact->text && fact->text[0] == '-' ? '=' : ' ');
    }
    if (fact->text)
        op_put_quoted(out, fact->text);
    else
        hf_buf_i64(out, fact->number);
}

void op_put_command(struct hf_buf *out, const char *program,
                    const struct hf_attention_act *act)
{
    const struct op *op = op_find(act->op);
    char path[OP_PATH];
    hf_buf_text(out, program ? program : "holdfast");
    if (act->tenant) {
        hf_buf_text(out, " --tenant ");
        op_put_quoted(out, act->tenant);
    }
    hf_buf_char(out, ' ');
    hf_buf_text(out, op ? op_path(op, path) : act->op);
    for (size_t i = 0; op && i < act->count; i++) {
        const struct hf_input *input = input_of(op, act->inputs[i].name);
        hf_assert(input); /* the table and the library are of one build */
        put_input(out, input, &act->inputs[i]);
    }
}

static void put_value(struct hf_json *json, const struct hf_fact *fact)
{
    if (!fact->text)
        hf_json_i64(json, fact->number);
    else if (fact->json)
        hf_json_raw(json, fact->text);
    else
        hf_json_str(json, fact->text);
}

void op_put_facts(struct hf_json *json, const struct hf_fact *facts, size_t count)
{
    hf_json_object(json);
    for (size_t i = 0; i < count; i++) {
        hf_json_key(json, facts[i].name);
        put_value(json, &facts[i]);
    }
    hf_json_end(json);
}

/* Inputs that can be given more than once are arrays; their values follow each other. */
void op_put_act(struct hf_json *json, const struct hf_attention_act *act)
{
    const struct op *op = op_find(act->op);
    hf_json_object(json);
    hf_json_put_str(json, "op", act->op);
    hf_json_opt_str(json, "tenant", act->tenant);
    hf_json_key(json, "in");
    hf_json_object(json);
    for (size_t i = 0; i < act->count; i++) {
        const struct hf_fact *fact = &act->inputs[i];
        const struct hf_input *input = op ? input_of(op, fact->name) : NULL;
        bool many = input && hf_input_many(input);
        bool goes_on = i > 0 && hf_same(act->inputs[i - 1].name, fact->name);
        bool more = i + 1 < act->count && hf_same(act->inputs[i + 1].name, fact->name);
        if (!goes_on)
            hf_json_key(json, fact->name);
        if (!goes_on && many)
            hf_json_array(json);
        put_value(json, fact);
        if (!more && many)
            hf_json_end(json);
    }
    hf_json_end(json);
    hf_json_end(json);
}
