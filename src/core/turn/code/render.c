/* Showing cells and steps to a model. A cell is a piece of code that the model wrote, shown in the
 * form in which it must be written; a step is the record of what the cell did. A step has up to
 * three texts: what was printed, the error or that the end is unknown, and the final value. Long
 * output is cut, with the call that returns all of it. The sentences are prompts (prompts/), which
 * have places to fill.
 *
 * A step that failed and was followed by one that did not, in the same turn, is not shown any
 * more, nor are the corrections before it: they have done their work. They stay in the
 * history and can be read back. */
#include "core/turn/code/render.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"

/* What is hidden */

static struct hf_span last_part(struct hf_span *id)
{
    const char *at = id->at;
    size_t len = id->len;
    while (len > 0 && at[len - 1] != '.')
        len--;
    struct hf_span last = { at + len, id->len - len };
    id->len = len > 0 ? len - 1 : 0;
    return last;
}

/* Of an id "<turn>.<iteration>.<purpose>" the turn, and the purpose. */
static struct hf_span turn_of(const char *id, struct hf_span *ret_purpose)
{
    struct hf_span rest = hf_turn_span_of(id);
    *ret_purpose = last_part(&rest);
    (void)last_part(&rest); /* the iteration */
    return rest;
}

static bool is_fix(const struct hf_message *message)
{
    const struct hf_origin *origin = message->origin;
    return message->role == HF_ROLE_SYSTEM && origin && origin->transient &&
           origin->kind == HF_ORIGIN_PLUGIN &&
           hf_turn_span_same(hf_turn_span_of(origin->id), hf_text_of(HF_CODE_ID));
}

/* Seen from the end: the turn whose last step was good, and the cell of a step that is
 * hidden. */
struct backwards {
    struct hf_span repaired;
    const char *cell;
};

static bool hides_message(const struct hf_code_view *view,
                          const struct backwards *backwards,
                          const struct hf_message *message)
{
    struct hf_span purpose;
    struct hf_span turn = turn_of(message->id, &purpose);
    if (backwards->cell &&
        hf_turn_span_same(hf_turn_span_of(backwards->cell), hf_turn_span_of(message->id)))
        return true;
    bool repaired = backwards->repaired.at &&
                    hf_turn_span_same(turn, backwards->repaired);
    if (is_fix(message))
        return repaired || !hf_turn_span_same(turn, hf_turn_span_of(view->turn->turn_id));
    return repaired && message->role == HF_ROLE_ASSISTANT &&
           hf_turn_span_same(purpose, hf_text_of("prose"));
}

static bool hides_step(struct backwards *backwards, const struct hf_code_peek *step)
{
    struct hf_span purpose;
    struct hf_span turn = turn_of(step->cell, &purpose);
    if (step->good) {
        backwards->repaired = turn;
        return false;
    }
    bool hidden = backwards->repaired.at && hf_turn_span_same(turn, backwards->repaired);
    backwards->cell = hidden ? step->cell : NULL;
    return hidden;
}

static int hide(struct hf_code_view *view, uint64_t i)
{
    if (!view->hidden)
        view->hidden = hf_arena_take(view->arena, (size_t)(view->count / 8 + 1));
    if (!view->hidden)
        return HF_ENOMEM;
    view->hidden[i / 8] |= (uint8_t)(1u << i % 8);
    return 0;
}

/* `now` as the history is; `later` as if a good step of this turn came after it. */
struct looks {
    struct backwards now;
    struct backwards later;
    bool told; /* which variables there are */
};

static int view_record(struct hf_code_view *view, struct looks *looks, uint64_t i,
                       const struct hf_record *record, struct hf_err *err)
{
    struct hf_code_peek step;
    bool is_step = false;
    bool hidden = false;
    bool gone_later = false;
    int rc = hf_code_peek_step(view->arena, record, &step, &is_step, err);
    if (rc)
        return rc;
    if (is_step) {
        hidden = hides_step(&looks->now, &step);
        gone_later = hides_step(&looks->later, &step);
        if (!looks->told && (step.variables.len > 0 || (step.good && step.changed))) {
            looks->told = true; /* none at all, too */
            view->variables = step.variables;
            view->variables.at = hf_arena_copy(view->arena, step.variables.at,
                                               step.variables.len);
            if (!view->variables.at)
                return hf_fail_plain(err, HF_ENOMEM);
        }
    } else if (record->kind == HF_RECORD_MESSAGE && record->message) {
        hidden = hides_message(view, &looks->now, record->message);
        gone_later = hides_message(view, &looks->later, record->message);
    }
    if (gone_later && !hidden)
        view->stable = i;
    return hidden && hide(view, i) ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

int hf_code_view(struct hf_code_view *view, struct hf_err *err)
{
    struct looks looks = { .later.repaired = hf_turn_span_of(view->turn->turn_id) };
    int rc = 0;
    view->stable = view->count;
    for (uint64_t i = view->count; i > 0 && rc == 0; i--) {
        struct hf_pin pin;
        const struct hf_record *record = hf_turn_pin(view->turn, i - 1, &pin);
        rc = record ? view_record(view, &looks, i - 1, record, err)
                    : hf_fail_plain(err, HF_EBASE);
        hf_pin_drop(&pin);
    }
    return rc;
}

bool hf_code_hides(const struct hf_code_view *view, uint64_t i)
{
    return view->hidden && (view->hidden[i / 8] >> i % 8 & 1) != 0;
}

/* What is shown */

#define NO_FILL HF_FILL_COUNT /* a prompt without a place to fill */
/* A step may print several times: one output is cut at HF_MAX_CELL_SHOWN_BYTES, all at this. */
#define STEP_SHOWN_BYTES (4 * (size_t)HF_MAX_CELL_SHOWN_BYTES)

struct hf_span hf_code_show_cell(struct hf_arena *arena, const struct hf_part *part)
{
    struct hf_buf text;
    hf_buf_init(&text, arena->alloc, 2 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_code_put_cell(&text, part->tool, part->content);
    size_t len = text.len;
    return (struct hf_span){ hf_buf_keep(&text, arena), len };
}

struct showing {
    struct hf_arena *arena;
    struct hf_span texts[3]; /* output, end, final value */
    size_t count;
    size_t left; /* bytes of output that may still be shown */
};

static int add_text(struct showing *showing, struct hf_buf *text)
{
    size_t len = text->len;
    const char *copy = hf_buf_keep(text, showing->arena);
    if (!copy)
        return HF_ENOMEM;
    showing->texts[showing->count++] = (struct hf_span){ copy, len };
    return 0;
}

static int add_prompt(struct showing *showing, enum hf_prompt_id id, enum hf_fill_id name,
                      struct hf_span filled)
{
    struct hf_buf text;
    const struct hf_fill fill = { .id = name, .text = filled };
    hf_buf_init(&text, showing->arena->alloc, 2 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_prompt_put(&text, id, &fill, 1);
    return add_text(showing, &text);
}

/* One output, or what fits of it. */
static void put_output(struct showing *showing, const struct hf_code_step *step, size_t i,
                       struct hf_buf *out)
{
    const struct hf_observation *output = &step->output[i];
    size_t room = (size_t)HF_MAX_CELL_SHOWN_BYTES;
    room = room < showing->left ? room : showing->left;
    size_t shown = output->text.len <= room ? output->text.len
                                            : hf_utf8_cut(output->text.at, room);
    showing->left -= shown < showing->left ? shown + 1 : shown; /* and its line's end */
    const struct hf_fill fills[] = {
        { .id = HF_FILL_BYTES, .number = output->text.len - shown },
        { .id = HF_FILL_STEP, .number = step->step },
        { .id = HF_FILL_OUTPUT, .number = i + 1 },
    };
    hf_buf_text(out, i > 0 ? "\n" : "");
    hf_buf_bytes(out, output->text.at, shown);
    if (shown < output->text.len) {
        hf_buf_text(out, shown > 0 ? "\n" : "");
        hf_prompt_put(out, HF_PROMPT_CODE_STEP_MORE, fills, 3);
    }
    if (output->truncated) {
        hf_buf_char(out, '\n');
        hf_prompt_put(out, HF_PROMPT_CODE_STEP_CUT, NULL, 0);
    }
}

static int add_outputs(struct showing *showing, const struct hf_code_step *step)
{
    struct hf_buf text;
    size_t i = 0;
    if (step->output_count == 0)
        return 0;
    hf_buf_init(&text, showing->arena->alloc, 2 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    for (; i < step->output_count && showing->left > 0; i++)
        put_output(showing, step, i, &text);
    const struct hf_fill fills[] = {
        { .id = HF_FILL_OUTPUTS, .number = step->output_count - i },
        { .id = HF_FILL_STEP, .number = step->step },
    };
    if (i < step->output_count) {
        hf_buf_char(&text, '\n');
        hf_prompt_put(&text, HF_PROMPT_CODE_STEP_REST, fills, 2);
    }
    return add_text(showing, &text);
}

/* How the step ended, and its final value; a step of which nothing is shown yet is called
 * silent. */
static int add_end(struct showing *showing, const struct hf_code_step *step)
{
    int rc = 0;
    if (step->unknown)
        rc = add_prompt(showing, HF_PROMPT_CODE_STEP_UNKNOWN, NO_FILL,
                        (struct hf_span){ 0 });
    else if (!hf_code_step_good(step))
        rc = add_prompt(showing,
                        step->failed ? HF_PROMPT_CODE_STEP_FAILED
                                     : HF_PROMPT_CODE_STEP_ERROR,
                        HF_FILL_ERROR, step->error.at ? step->error : hf_text_of(""));
    if (rc == 0 && step->final.len > 0)
        rc = add_prompt(showing, HF_PROMPT_CODE_STEP_FINAL, HF_FILL_VALUE, step->final);
    if (rc == 0 && showing->count == 0)
        rc = add_prompt(showing, HF_PROMPT_CODE_STEP_SILENT, NO_FILL,
                        (struct hf_span){ 0 });
    return rc;
}

/* The texts of a step, in the arena. HF_ENOMEM. */
int hf_code_show_step(struct hf_arena *arena, const struct hf_code_step *step,
                      struct hf_code_shown *ret_shown)
{
    struct showing showing = { .arena = arena, .left = STEP_SHOWN_BYTES };
    int rc = add_outputs(&showing, step);
    if (rc == 0)
        rc = add_end(&showing, step);
    if (rc)
        return rc;
    memcpy(ret_shown->texts, showing.texts, sizeof(showing.texts));
    ret_shown->count = showing.count;
    return 0;
}
