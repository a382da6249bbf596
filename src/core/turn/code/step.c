/* Steps: what became of a cell, as an event of the history. The table below is how they are
 * written, read, and shown by inspection. */
#include <stddef.h>
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "core/turn/code/code.h"
#include "core/turn/json.h"

/* clang-format off */
#define KEY .type = HF_M_TEXT, .max = 1024
#define LONG .type = HF_M_SPAN, .max = 8388608
#define RAW .type = HF_M_JSON, .max = 8388608
#define NUMBER .type = HF_M_U64
#define FLAG .type = HF_M_BOOL
#define LIST(s, n) .type = HF_M_LIST, .of = &(s), .max = (n)

static const struct hf_member call_members[] = {
    { .key = 1, KEY, HF_AT(hf_code_call, id) },
    { .key = 2, KEY, HF_AT(hf_code_call, tool) },
    { .key = 3, .type = HF_M_ENUM, .words = &hf_w_tool_outcomes, .flags = HF_M_REQUIRED, HF_AT(hf_code_call, outcome) },
    { .key = 4, .type = HF_M_ENUM, .words = &hf_w_controls, HF_AT(hf_code_call, control) },
    { .key = 5, KEY, HF_AT(hf_code_call, code) },
    { .key = 6, .type = HF_M_I64, HF_AT(hf_code_call, duration_ms) },
    { .key = 7, .type = HF_M_ENUM, .words = &hf_w_failures,
      .offset = offsetof(struct hf_code_call, class_), .name = "class" },
    { .key = 8, LONG, HF_AT(hf_code_call, message) },
    { .key = 9, RAW, HF_AT(hf_code_call, value) },
    { .key = 10, NUMBER, HF_AT(hf_code_call, value_bytes) },
};
static HF_SCHEMA(s_call, hf_code_call, call_members);

static const struct hf_member step_members[] = {
    { .key = 1, NUMBER, HF_AT(hf_code_step, step) },
    { .key = 2, KEY, HF_AT(hf_code_step, cell) },
    { .key = 3, NUMBER, HF_AT(hf_code_step, iteration) },
    { .key = 4, FLAG, HF_AT(hf_code_step, failed) },
    { .key = 5, FLAG, HF_AT(hf_code_step, unknown) },
    { .key = 17, FLAG, HF_AT(hf_code_step, cancelled) },
    { .key = 6, KEY, HF_AT(hf_code_step, before) },
    { .key = 7, KEY, HF_AT(hf_code_step, after) },
    { .key = 8, LONG, HF_AT(hf_code_step, error) },
    { .key = 9, .type = HF_M_SPAN, .max = 4096, HF_AT(hf_code_step, variables) },
    { .key = 10, LIST(hf_s_observation, 65536), HF_AT_LIST(hf_code_step, output, output_count) },
    { .key = 11, LIST(s_call, HF_CODE_CALLS), HF_AT_LIST(hf_code_step, calls, call_count) },
    { .key = 12, NUMBER, HF_AT(hf_code_step, calls_omitted) },
    { .key = 13, LIST(hf_s_attachment, 1024), HF_AT_LIST(hf_code_step, images, image_count) },
    { .key = 14, RAW, HF_AT(hf_code_step, final) },
    { .key = 15, RAW, HF_AT(hf_code_step, delta) },
    { .key = 16, .type = HF_M_I64, HF_AT(hf_code_step, duration_ms) },
};
HF_SCHEMA(hf_s_code_step, hf_code_step, step_members);
/* clang-format on */

bool hf_code_step_good(const struct hf_code_step *step)
{
    return !step->failed && !step->unknown && !step->cancelled && step->error.len == 0;
}

bool hf_record_is_step(const struct hf_record *record)
{
    return record->kind == HF_RECORD_EVENT && record->name &&
           hf_turn_span_same(hf_turn_span_of(record->name), hf_text_of(HF_CODE_STEP));
}

int hf_code_read_step(struct hf_arena *arena, const struct hf_record *record,
                      struct hf_code_step *ret_step, bool *ret_is, struct hf_err *err)
{
    *ret_is = hf_record_is_step(record);
    if (!*ret_is)
        return 0;
    struct hf_err why = { 0 };
    *ret_step = (struct hf_code_step){ 0 };
    int rc = hf_turn_json_take(arena, &hf_s_code_step, record->data, ret_step, &why);
    if (rc && rc != HF_ENOMEM)
        rc = hf_fail(err, HF_EBASE, "base", "a step cannot be read: %s", why.message);
    return rc == HF_ENOMEM ? hf_fail_plain(err, rc) : rc;
}

/* Stops before what is long: it is behind what is asked for. */
int hf_code_peek_step(struct hf_arena *arena, const struct hf_record *record,
                      struct hf_code_peek *ret_peek, bool *ret_is, struct hf_err *err)
{
    struct hf_walk walk;
    *ret_is = hf_record_is_step(record);
    if (!*ret_is)
        return 0;
    *ret_peek = (struct hf_code_peek){ .good = true };
    struct hf_span before = { 0 };
    hf_walk_begin(&walk, record->data);
    int rc = hf_walk_enter(&walk, '{') ? 0 : HF_EBASE;
    while (rc == 0 && hf_walk_more(&walk)) {
        struct hf_span key = hf_walk_key(&walk);
        if (hf_walk_is(key, "output"))
            break;
        struct hf_span raw = hf_walk_value(&walk);
        struct hf_span text = { 0 };
        bool cell = hf_walk_is(key, "cell");
        bool after = hf_walk_is(key, "after");
        if (hf_walk_is(key, "step") &&
            (!hf_walk_i64(raw, &ret_peek->step) || ret_peek->step < 1))
            rc = HF_EBASE;
        if (hf_walk_is(key, "failed") || hf_walk_is(key, "unknown") ||
            hf_walk_is(key, "cancelled") || hf_walk_is(key, "error"))
            ret_peek->good = false;
        if (cell || after)
            rc = hf_walk_text(arena, raw, &text);
        if (hf_walk_is(key, "before"))
            before = raw;
        if (after)
            ret_peek->changed = !hf_turn_span_same(before, raw);
        if (hf_walk_is(key, "variables"))
            ret_peek->variables = raw;
        if (cell)
            ret_peek->cell = text.at;
        if (after)
            ret_peek->after = text.at;
    }
    if (rc == 0 && (!ret_peek->cell || ret_peek->step < 1))
        rc = HF_EBASE;
    return rc ? hf_fail_plain(err, rc == HF_ENOMEM ? rc : HF_EBASE) : 0;
}

/* Looks for the last step, from the last record on, and keeps where it is. */
static int find_last(struct hf_move *move, struct hf_err *err)
{
    uint64_t i = hf_move_record_count(move);
    for (; i > 0; i--) {
        const struct hf_record *record = hf_move_record(move, i - 1);
        if (!record)
            return hf_fail_plain(err, HF_EBASE);
        if (hf_record_is_step(record))
            break;
    }
    move->next.last_step_known = true;
    move->next.last_step = i;
    return 0;
}

int hf_code_last(struct hf_move *move, uint64_t *ret_step, const char **ret_bindings,
                 struct hf_err *err)
{
    struct hf_code_peek peek = { 0 };
    bool is_step = true;
    int rc = move->next.last_step_known ? 0 : find_last(move, err);
    uint64_t last = move->next.last_step;
    if (rc == 0 && last > 0) {
        const struct hf_record *record = hf_move_record(move, last - 1);
        rc = record ? hf_code_peek_step(move->arena, record, &peek, &is_step, err)
                    : hf_fail_plain(err, HF_EBASE);
    }
    if (rc == 0 && !is_step)
        rc = hf_fail(err, HF_EBASE, "last_step",
                     "last_step of the base is %llu, but that record is no step",
                     (unsigned long long)last);
    if (rc)
        return rc;
    *ret_step = (uint64_t)peek.step;
    *ret_bindings = peek.after;
    return 0;
}

/* The name lives for ever. */
static int keep_event(struct hf_move *move, const char *name, struct hf_span json,
                      struct hf_err *err)
{
    struct hf_arena *keep = &move->turn->keep;
    struct hf_record *record = hf_arena_new(keep, struct hf_record);
    const char *data = hf_arena_copy(keep, json.at, json.len);
    if (!record || !data)
        return hf_fail_plain(err, HF_ENOMEM);
    *record = (struct hf_record){ .kind = HF_RECORD_EVENT,
                                  .name = name,
                                  .data = { data, json.len } };
    return hf_move_adopt(move, record, err);
}

int hf_code_event(struct hf_move *move, const char *name, const struct hf_schema *schema,
                  const void *from, struct hf_err *err)
{
    struct hf_buf text;
    struct hf_turn_json_out out = { .scratch = move->arena };
    hf_buf_init(&text, move->turn->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_json_begin(&out.json, &text);
    hf_json_object(&out.json);
    hf_turn_json_members(&out, schema, from);
    hf_json_end(&out.json);
    int rc = out.out_of_memory ? HF_ENOMEM : hf_buf_state(&text);
    if (rc)
        rc = rc == HF_ETOOBIG
                 ? hf_fail(err, rc, "result",
                           "what is recorded of a cell must have at most %lld bytes",
                           (long long)HF_MAX_TURN_TEXT_BYTES)
                 : hf_fail_plain(err, rc);
    else
        rc = keep_event(move, name, (struct hf_span){ text.at, text.len }, err);
    hf_buf_fini(&text);
    return rc;
}

/* Tags and cells */

void hf_code_tags(enum hf_code_language language, struct hf_code_tags *ret_tags)
{
    const char *word = hf_code_language_name(language);
    size_t len = strlen(word);
    *ret_tags = (struct hf_code_tags){ "<", "</" };
    memcpy(ret_tags->open + 1, word, len);
    memcpy(ret_tags->close + 2, word, len);
    ret_tags->open[len + 1] = '>';
    ret_tags->close[len + 2] = '>';
}

/* A source of one line that has a "</" in it may be one that only a cell on one line can
 * hold. */
void hf_code_put_cell(struct hf_buf *out, const char *language, struct hf_span code)
{
    bool one_line = code.len > 0 && !memchr(code.at, '\n', code.len) &&
                    memmem(code.at, code.len, "</", 2) != NULL;
    const char *gap = one_line ? "" : "\n";
    hf_buf_char(out, '<');
    hf_buf_text(out, language);
    hf_buf_char(out, '>');
    hf_buf_text(out, gap);
    hf_buf_bytes(out, code.at, code.len);
    hf_buf_text(out, code.len > 0 ? gap : "");
    hf_buf_text(out, "</");
    hf_buf_text(out, language);
    hf_buf_char(out, '>');
}
