/* The outcome of a cell, as the turn machine takes it. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "core/turn/given.h"
#include "core/turn/schema.h"
#include "exec/cell/bindings.h"
#include "exec/cell/cell.h"

/* Room for one item more in an array of the arena. */
static int grow(struct hf_arena *arena, void **array, size_t count, size_t *room,
                size_t each)
{
    if (count < *room)
        return 0;
    size_t more = *room ? *room * 2 : 4;
    void *larger = hf_arena_array(arena, more, each);
    if (!larger)
        return HF_ENOMEM;
    if (count > 0)
        memcpy(larger, *array, count * each);
    *array = larger;
    *room = more;
    return 0;
}

int hf_cell_saw(struct hf_cell *cell, struct hf_span text)
{
    struct hf_span clean;
    void *array = cell->seen;
    int rc = hf_text_repair(&cell->arena, text, text.len * 3 + 1, &clean);
    if (rc == 0)
        rc = grow(&cell->arena, &array, cell->seen_count, &cell->seen_room,
                  sizeof(*cell->seen));
    if (rc)
        return rc;
    cell->seen = array;
    cell->seen[cell->seen_count++] = (struct hf_observation){ .text = clean };
    return 0;
}

/* In pieces: an array that doubles would be copied and cleared again and again. */
int hf_cell_did(struct hf_cell *cell, const struct hf_tool_result *result,
                uint64_t ordinal)
{
    struct hf_cell_done *last = cell->done;
    if (!last || last->count == HF_CELL_DONE_ITEMS) {
        last = hf_arena_new(&cell->arena, struct hf_cell_done);
        if (!last)
            return HF_ENOMEM;
        last->before = cell->done;
        cell->done = last;
    }
    last->ordinals[last->count] = ordinal;
    last->results[last->count++] = *result;
    cell->done_count++;
    return 0;
}

/* All calls as one array, in their order. */
static int join_done(struct hf_cell *cell, const struct hf_tool_result **ret_calls)
{
    struct hf_tool_result *calls = hf_arena_array(&cell->arena, cell->done_count,
                                                  sizeof(*calls));
    size_t end = cell->done_count;
    if (!calls)
        return HF_ENOMEM;
    for (const struct hf_cell_done *at = cell->done; at; at = at->before) {
        end -= at->count;
        memcpy(calls + end, at->results, at->count * sizeof(*calls));
        for (size_t i = 0; i < at->count; i++) {
            char id[HF_OP_ID_BYTES];
            if (at->ordinals[i] == 0)
                continue;
            size_t len = hf_cell_put_id(cell, at->ordinals[i], 0, id);
            calls[end + i].call_id = hf_arena_copy(&cell->arena, id, len);
            if (!calls[end + i].call_id)
                return HF_ENOMEM;
        }
    }
    *ret_calls = calls;
    return 0;
}

static int keep(struct hf_cell *cell, struct hf_span *text)
{
    char *copy = hf_arena_copy(&cell->arena, text->len ? text->at : "", text->len);
    text->at = copy;
    return copy ? 0 : HF_ENOMEM;
}

/* A cell that called fail says so as a tool would. */
static int did_fail(struct hf_cell *cell)
{
    struct hf_tool_result fail = { .tool = "fail",
                                   .control = HF_CONTROL_FAIL,
                                   .value = hf_text_of("null"),
                                   .control_value = cell->stop.value };
    int rc = keep(cell, &fail.control_value);
    size_t len = strlen(cell->id);
    char *id = hf_arena_take(&cell->arena, len + sizeof(":fail"));
    if (rc || !id)
        return HF_ENOMEM;
    memcpy(id, cell->id, len);
    memcpy(id + len, ":fail", sizeof(":fail"));
    fail.call_id = id;
    return hf_cell_did(cell, &fail, 0);
}

static int keep_bindings(struct hf_cell *cell, bool well)
{
    struct hf_err ignored = { 0 };
    if (well)
        cell->after = cell->stop.bindings;
    int rc = hf_bindings_hash(cell->before, cell->hash_before, &ignored);
    if (rc == 0)
        rc = hf_bindings_hash(cell->after, cell->hash_after, &ignored);
    return rc ? rc : hf_bindings_delta(cell->before, cell->after, &cell->delta);
}

/* What the model is shown of the bindings, in its next request. */
static int show_bindings(struct hf_cell *cell, struct hf_span *ret_text)
{
    struct hf_buf text;
    hf_buf_init(&text, cell->alloc, (size_t)HF_MAX_CODE_VARIABLES_BYTES);
    int rc = hf_given_put_variables(&text, cell->after);
    size_t len = text.len;
    const char *said = rc ? NULL : hf_buf_keep(&text, &cell->arena);
    if (rc)
        hf_buf_fini(&text);
    *ret_text = (struct hf_span){ said, len };
    return said ? 0 : HF_ENOMEM;
}

static int keep_message(struct hf_cell *cell, struct hf_span message,
                        struct hf_span *ret_text)
{
    struct hf_buf text;
    bool ran = cell->end != HF_CELL_SYNTAX && cell->end != HF_CELL_UNKNOWN_TOOL &&
               cell->end != HF_CELL_DIVERGED;
    hf_buf_init(&text, cell->alloc, (size_t)1 << 17);
    hf_buf_bytes(&text, message.len ? message.at : "", message.len);
    if (ran)
        hf_buf_text(&text, ". Nothing that this cell assigned was kept");
    size_t len = text.len;
    const char *said = hf_buf_keep(&text, &cell->arena);
    *ret_text = (struct hf_span){ said, len };
    return said ? 0 : HF_ENOMEM;
}

int hf_cell_close(struct hf_cell *cell, enum hf_cell_end end, struct hf_span message)
{
    bool well = end == HF_CELL_DONE || end == HF_CELL_FINISHED;
    struct hf_span said = { "", 0 };
    struct hf_span finish = { "", 0 };
    struct hf_cell_cost cost;
    cell->end = end;
    cell->is_out = false;
    int rc = 0;
    if (well && cell->journal_next < cell->journal_count) {
        struct hf_err ignored = { 0 };
        return hf_cell_ends_early(cell, &ignored);
    }
    if (!well)
        rc = keep_message(cell, message, &said);
    if (rc == 0 && end == HF_CELL_FAILED)
        rc = did_fail(cell);
    if (rc == 0 && end == HF_CELL_FINISHED) {
        finish = cell->stop.value;
        rc = keep(cell, &finish);
    }
    for (size_t i = 0; well && i < cell->stop.note_count && rc == 0; i++)
        rc = hf_cell_saw(cell, hf_turn_span_of(cell->stop.notes[i]));
    struct hf_span variables = { "", 0 };
    const struct hf_tool_result *calls = NULL;
    if (rc == 0)
        rc = join_done(cell, &calls);
    if (rc == 0)
        rc = keep_bindings(cell, well);
    if (rc == 0)
        rc = show_bindings(cell, &variables);
    if (rc)
        return rc;
    hf_cell_cost(cell, &cost);
    bool diverged = end == HF_CELL_DIVERGED;
    cell->result = (struct hf_exec_result){
        .size = sizeof(cell->result),
        .failed = diverged,
        .cancelled = end == HF_CELL_CANCELLED,
        .message = diverged ? said : (struct hf_span){ "", 0 },
        .error = diverged ? (struct hf_span){ "", 0 } : said,
        .observations = cell->seen,
        .observation_count = cell->seen_count,
        .calls = calls,
        .call_count = cell->done_count,
        .finish = finish,
        .bindings_delta = { hf_buf_str(&cell->delta), cell->delta.len },
        .bindings_before = cell->hash_before,
        .bindings_after = cell->hash_after,
        .duration_ms = cost.active_ms,
        .variables = variables
    };
    return 0;
}

const struct hf_exec_result *hf_cell_result(const struct hf_cell *cell)
{
    return cell->end == HF_CELL_RUNNING || cell->broken ? NULL : &cell->result;
}
