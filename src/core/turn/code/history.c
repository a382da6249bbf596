/* Reading past cells back: for a cell that asks for a long output, and for people who look
 * into a save. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "core/turn/code/code.h"
#include "core/turn/image.h"
#include "core/turn/json.h"

/* The step of that number, and the message with its cell. The latest one: a number is
 * once in a history. */
struct found {
    struct hf_code_step step;
    const struct hf_message *cell; /* NULL: it cannot be had */
    struct hf_pin pin;             /* of the record with the cell */
};

static bool is_message(const struct hf_record *record, const char *id)
{
    return record->kind == HF_RECORD_MESSAGE && record->message &&
           hf_turn_span_same(hf_turn_span_of(record->message->id), hf_turn_span_of(id));
}

static int find_step(const struct hf_turn *turn, struct hf_arena *arena, int64_t number,
                     struct found *ret_found, struct hf_err *err)
{
    struct hf_code_peek peek = { 0 };
    bool found = false;
    for (uint64_t i = hf_turn_record_count(turn); i > 0; i--) {
        struct hf_pin pin;
        const struct hf_record *record = hf_turn_pin(turn, i - 1, &pin);
        bool is_step = false;
        if (!record)
            return hf_fail_plain(err, HF_EBASE);
        if (found && is_message(record, ret_found->step.cell)) {
            ret_found->cell = record->message;
            ret_found->pin = pin;
            return 0;
        }
        int rc = found ? 0 : hf_code_peek_step(arena, record, &peek, &is_step, err);
        if (rc == 0 && is_step && peek.step == number) {
            rc = hf_code_read_step(arena, record, &ret_found->step, &is_step, err);
            found = true;
        }
        hf_pin_drop(&pin);
        if (rc)
            return rc;
    }
    return found ? 0 : hf_fail(err, HF_ENOTFOUND, "step", "there is no such step");
}

static struct hf_span source_of(const struct hf_message *cell, const char **ret_language)
{
    for (size_t i = 0; cell && i < cell->part_count; i++) {
        if (cell->parts[i].kind != HF_PART_CODE)
            continue;
        *ret_language = cell->parts[i].tool;
        return cell->parts[i].content;
    }
    return (struct hf_span){ "", 0 };
}

struct asked {
    int64_t step;
    int64_t output; /* from 1; 0: all of the step */
    int64_t from;   /* bytes before it are left out */
    int64_t bytes;  /* 0: to the end */
};

/* clang-format off */
static const struct hf_member asked_members[] = {
    { .key = 1, .type = HF_M_I64, HF_AT(asked, step) },
    { .key = 2, .type = HF_M_I64, HF_AT(asked, output) },
    { .key = 3, .type = HF_M_I64, HF_AT(asked, from) },
    { .key = 4, .type = HF_M_I64, HF_AT(asked, bytes) },
};
static HF_SCHEMA(s_asked, asked, asked_members);
/* clang-format on */

/* Neither end splits a character: what is asked for again from where it ended is whole. */
static struct hf_span piece_of(struct hf_span text, const struct asked *asked)
{
    size_t from = (uint64_t)asked->from < text.len ? (size_t)asked->from : text.len;
    size_t left = text.len - from;
    size_t bytes = asked->bytes > 0 && (uint64_t)asked->bytes < left
                       ? (size_t)asked->bytes
                       : left;
    const char *at = text.at ? text.at : "";
    size_t start = from < text.len ? hf_utf8_cut(at, from) : from;
    size_t end = from + bytes < text.len ? hf_utf8_cut(at, from + bytes) : text.len;
    return (struct hf_span){ at + start, end - start };
}

static void put_text(struct hf_turn_json_out *out, struct hf_span text)
{
    hf_json_strn(&out->json, text.at ? text.at : "", text.len);
}

static void write_whole(struct hf_turn_json_out *out, const struct found *found)
{
    const char *language = NULL;
    struct hf_span code = source_of(found->cell, &language);
    hf_json_object(&out->json);
    hf_turn_json_put_span(out, "code", code);
    hf_json_key(&out->json, "output");
    hf_json_array(&out->json);
    for (size_t i = 0; i < found->step.output_count; i++)
        put_text(out, found->step.output[i].text);
    hf_json_end(&out->json);
    if (found->step.error.len > 0)
        hf_turn_json_put_span(out, "error", found->step.error);
    if (found->step.final.len > 0)
        hf_turn_json_put_json(out, "final", found->step.final);
    hf_json_end(&out->json);
}

static int take_text(struct hf_turn_json_out *out, struct hf_buf *text,
                     struct hf_bytes *ret_bytes, struct hf_err *err)
{
    int rc = out->out_of_memory ? HF_ENOMEM : hf_buf_state(text);
    if (rc) {
        hf_buf_fini(text);
        return hf_fail_plain(err, rc);
    }
    *ret_bytes = (struct hf_bytes){ text->alloc, text->at, text->len };
    return 0;
}

static int write_value(const struct asked *asked, const struct found *found,
                       struct hf_turn_json_out *out, struct hf_err *err)
{
    if (asked->output == 0) {
        write_whole(out, found);
        return 0;
    }
    if ((uint64_t)asked->output > found->step.output_count)
        return hf_fail(err, HF_ENOTFOUND, "output", "the step has no such output");
    struct hf_span piece = piece_of(found->step.output[asked->output - 1].text, asked);
    put_text(out, piece);
    return 0;
}

int hf_code_history(const struct hf_turn *turn, struct hf_span args,
                    struct hf_bytes *ret_value, struct hf_err *err)
{
    struct hf_arena arena;
    struct hf_buf text;
    struct asked asked = { 0 };
    struct found found = { 0 };
    int rc = hf_json_check(args, (size_t)HF_MAX_TURN_TEXT_BYTES, "args", err);
    if (rc)
        return rc;
    hf_arena_init(&arena, turn->alloc);
    hf_buf_init(&text, turn->alloc, 2 * (size_t)HF_MAX_TURN_TEXT_BYTES);
    struct hf_turn_json_out out = { .scratch = &arena };
    hf_json_begin(&out.json, &text);
    rc = hf_turn_json_take(&arena, &s_asked, args, &asked, err);
    if (rc == 0 &&
        (asked.step < 1 || asked.output < 0 || asked.from < 0 || asked.bytes < 0))
        rc = hf_fail(err, HF_EINVAL, "args",
                     "history takes step, output, from and bytes");
    if (rc == 0)
        rc = find_step(turn, &arena, asked.step, &found, err);
    if (rc == 0)
        rc = write_value(&asked, &found, &out, err);
    if (rc == 0)
        rc = take_text(&out, &text, ret_value, err);
    else
        hf_buf_fini(&text);
    hf_pin_drop(&found.pin);
    hf_arena_fini(&arena);
    return rc;
}

/* Saves */

/* A cell, and the step that it became, if it did. */
static void write_step(struct hf_turn_json_out *out, struct hf_span code,
                       const char *language, const struct hf_code_step *step)
{
    hf_json_object(&out->json);
    hf_json_put_str(&out->json, "language", language);
    hf_turn_json_put_span(out, "code", code);
    if (step)
        hf_turn_json_members(out, &hf_s_code_step, step);
    else
        hf_json_put_bool(&out->json, "running", true);
    hf_json_end(&out->json);
}

/* An export holds the history too. */
static const struct hf_record *record_at(const struct hf_image *image, size_t i)
{
    return i < image->base_count ? image->base[i]
                                 : image->body.own[i - image->base_count];
}

/* The cell of a step is before it, if the save holds it still. */
static const struct hf_message *cell_before(const struct hf_image *image, size_t i,
                                            const char *id)
{
    while (i-- > 0)
        if (is_message(record_at(image, i), id))
            return record_at(image, i)->message;
    return NULL;
}

static int write_steps(struct hf_turn_json_out *out, const struct hf_image *image,
                       struct hf_err *err)
{
    const struct hf_turn_body *body = &image->body;
    hf_json_array(&out->json);
    for (size_t i = 0; i < image->base_count + body->own_count; i++) {
        struct hf_code_step step;
        const char *language = NULL;
        bool is_step = false;
        int rc = hf_code_read_step(out->scratch, record_at(image, i), &step, &is_step,
                                   err);
        if (rc)
            return rc;
        if (!is_step)
            continue;
        struct hf_span code = source_of(cell_before(image, i, step.cell), &language);
        write_step(out, code, language, &step);
    }
    if (body->state == HF_TURN_WAITING_EXEC)
        write_step(out, body->wait.code, body->wait.language, NULL);
    hf_json_end(&out->json);
    return 0;
}

int hf_code_trajectory(const struct hf_alloc *alloc, struct hf_span save,
                       struct hf_bytes *ret_json, struct hf_err *err)
{
    struct hf_frame frame;
    struct hf_save_head head;
    struct hf_image image;
    struct hf_arena arena;
    struct hf_buf text;
    int rc = hf_frame_open(save, &frame, err);
    if (rc)
        return rc;
    if (!alloc)
        alloc = hf_alloc_system();
    hf_arena_init(&arena, alloc);
    hf_buf_init(&text, alloc, 4 * (size_t)HF_MAX_TURN_SAVE_BYTES);
    struct hf_turn_json_out out = { .scratch = &arena };
    hf_json_begin(&out.json, &text);
    rc = hf_image_read(&frame, &arena, &arena, &arena, &head, &image, err);
    if (rc == 0)
        rc = write_steps(&out, &image, err);
    if (rc == HF_EBASE) /* here the history is a part of the save */
        rc = hf_fail(err, HF_ECORRUPT, "records", "a step of the save cannot be read");
    if (rc == 0)
        rc = take_text(&out, &text, ret_json, err);
    else
        hf_buf_fini(&text);
    hf_arena_fini(&arena);
    return rc;
}
