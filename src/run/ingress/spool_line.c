/* See run/ingress/spool_line.h. The keys of a line are the inputs of a create and of its
 * caller. */
#include "run/ingress/spool_line.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_walk.h"
#include "core/inputs/inputs.h"

/* For people: when it was written. It is read as any other key and not used. */
static const struct hf_input spooled_inputs[] = {
    { "spooled_at", "MS", HF_IN_INT, 0, "when the line was written", .min = INT64_MIN,
      .max = INT64_MAX, HF_IN_AT(hf_spool_line, spooled_at) },
    { .name = NULL },
};

void hf_spool_encode(const struct hf_caller *who, const struct hf_work_spec *request,
                     hf_ms spooled_at, struct hf_buf *out)
{
    static const struct hf_caller unnamed;
    struct hf_json json;
    hf_json_begin(&json, out);
    hf_json_object(&json);
    hf_inputs_write(&json, hf_work_spec_inputs, request, &hf_work_spec_blank);
    hf_inputs_write(&json, hf_work_spec_limit_inputs, request, &hf_work_spec_blank);
    hf_inputs_write(&json, hf_caller_inputs, who ? who : &unnamed, &unnamed);
    hf_json_put_i64(&json, "spooled_at", spooled_at);
    hf_json_end(&json);
    hf_buf_char(out, '\n');
}

/* What names the line in a report, also where the rest of it is wrong. */
static void read_source(struct hf_span text, struct hf_arena *arena,
                        struct hf_spool_line *line)
{
    struct hf_walk walk;
    hf_walk_begin(&walk, text);
    if (!hf_walk_enter(&walk, '{'))
        return;
    while (hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk), value = hf_walk_value(&walk), name;
        if (*(const char *)value.at != '"' || hf_walk_text(arena, value, &name))
            continue; /* no memory: the report does without it */
        if (hf_walk_is(key, "source_system"))
            line->source = name.at;
        else if (hf_walk_is(key, "source_id"))
            line->request.source_id = name.at;
    }
}

int hf_spool_decode(struct hf_span text, struct hf_arena *arena,
                    struct hf_spool_line *ret_line, struct hf_err *err)
{
    struct hf_spool_line line = { .request = hf_work_spec_blank,
                                  .who.size = sizeof(line.who) };
    const struct hf_input_part parts[] = { { hf_work_spec_inputs, &line.request },
                                           { hf_work_spec_limit_inputs, &line.request },
                                           { hf_caller_inputs, &line.who },
                                           { spooled_inputs, &line },
                                           { NULL, NULL } };
    struct hf_input_reading reading = {
        .parts = parts,
        .arena = arena,
        .local = true,
        .canonical = true,
        .unknown = "is no key of a request (holdfast/ingress.h lists them)",
        .err = err
    };
    int rc = hf_json_check(text, (size_t)HF_MAX_SPOOL_LINE_BYTES, "line", err);
    if (rc == 0) {
        rc = hf_inputs_read(text, &reading);
        line.source = hf_source_word(line.request.source);
        if (rc)
            read_source(text, arena, &line);
    }
    *ret_line = line; /* also a part of it, so that a problem can name its source */
    return rc;
}
