/* The name of a unit for the person who made it: its name, its command or its question. */
#include <string.h>

#include <holdfast/run.h>

#include "base/json_get.h"
#include "base/text.h"
#include "op/op.h"

/* Appends a text, as far as there is room. */
static void add(char out[OP_WHAT], const char *text)
{
    size_t used = strlen(out), len = strlen(text), room = OP_WHAT - 1 - used;
    if (len > room)
        len = hf_utf8_cut(text, room);
    memcpy(out + used, text, len);
    out[used + len] = '\0';
}

/* An argument that a shell would split is shown in quotes. */
static void add_argument(char out[OP_WHAT], const char *argument)
{
    bool quoted = !*argument || strpbrk(argument, " \t\n\"'$&|;<>()*?`\\");
    add(out, *out ? " " : "");
    add(out, quoted ? "'" : "");
    add(out, argument);
    add(out, quoted ? "'" : "");
}

bool op_command_text(const char *payload, char out[OP_WHAT])
{
    struct hf_command_text *text = NULL;
    out[0] = '\0';
    if (!payload || hf_command_read(payload, &text, NULL))
        return false;
    for (const char *const *word = hf_command_of(text)->argv; *word; word++)
        add_argument(out, *word);
    hf_command_free(text);
    return true;
}

static bool question_text(const char *payload, char out[OP_WHAT])
{
    struct json_t *all = NULL;
    struct hf_span text = { payload ? payload : "", payload ? strlen(payload) : 0 };
    out[0] = '\0';
    if (hf_json_parse(text, (size_t)HF_MAX_PAYLOAD_BYTES, "payload", &all, NULL))
        return false;
    const char *question = hf_json_as_text(hf_json_member(all, "question"));
    add(out, question ? question : "");
    hf_json_free(all);
    return *out;
}

/* Runs of one name are told apart by their run id; a run without a name has a random source
 * id, which tells a person nothing. */
static bool is_named(const struct hf_work *work)
{
    return work->source_run_id && hf_source_of(work->source_system) != HF_SOURCE_CONTROL;
}

const char *op_what(const struct hf_work *work, char out[OP_WHAT])
{
    bool command = hf_same(work->kind, HF_RUN_KIND) && !is_named(work);
    if (command && op_command_text(work->payload, out))
        return out;
    if (hf_same(work->kind, OP_QUESTION_KIND) && question_text(work->payload, out))
        return out;
    bool hashed = work->source_id && hf_starts_with(work->source_id, "sub:");
    out[0] = '\0'; /* the id of a subscription is a hash: its kind says more */
    add(out, hashed ? work->kind : work->source_id ? work->source_id : "");
    return out;
}
