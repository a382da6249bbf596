/* Running a cell again over what was recorded of it. */
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "core/turn/schema.h"
#include "exec/cell/cell.h"

int hf_op_envelope(const struct hf_op *op, uint8_t ret_digest[32])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "cell operation", 1);
    hf_digest_text(&digest, hf_op_name(op->kind));
    hf_digest_text(&digest, op->name);
    hf_digest_bytes(&digest, op->args.at, op->args.len);
    return hf_digest_end(&digest, ret_digest);
}

static int copy_span(struct hf_arena *arena, struct hf_span from, struct hf_span *ret_to)
{
    char *copy = hf_arena_copy(arena, from.len ? from.at : "", from.len);
    *ret_to = (struct hf_span){ copy, from.len };
    return copy ? 0 : HF_ENOMEM;
}

static int copy_record(struct hf_cell *cell, const struct hf_op_record *from,
                       struct hf_op_record *to, struct hf_err *err)
{
    struct hf_arena *arena = &cell->arena;
    *to = *from;
    int rc = copy_span(arena, from->args, &to->args);
    if (rc == 0)
        rc = copy_span(arena, from->value, &to->value);
    to->name = hf_arena_text(arena, from->name);
    struct hf_tool_result *results = hf_arena_array(arena, from->result_count,
                                                    sizeof(*results));
    if (rc || (from->name && !to->name) || !results)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < from->result_count && rc == 0; i++)
        rc = hf_value_copy(arena, &hf_s_tool_result, HF_COPY_STRICT, &from->results[i],
                           &results[i], err);
    to->results = results;
    return rc;
}

int hf_cell_keep_journal(struct hf_cell *cell, const struct hf_cell_start *start,
                         struct hf_err *err)
{
    size_t count = start->journal_count;
    struct hf_op_record *journal = hf_arena_array(&cell->arena, count, sizeof(*journal));
    if (!journal)
        return hf_fail_plain(err, HF_ENOMEM);
    uint64_t before = 0;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (start->journal[i].ordinal <= before)
            return hf_fail(err, HF_EINVAL, "journal", "record %zu is out of order", i);
        before = start->journal[i].ordinal;
        rc = copy_record(cell, &start->journal[i], &journal[i], err);
    }
    cell->journal = journal;
    cell->journal_count = count;
    return rc;
}

bool hf_cell_was_shown(const struct hf_cell *cell, uint64_t ordinal)
{
    return cell->journal_count > 0 &&
           ordinal < cell->journal[cell->journal_count - 1].ordinal;
}

#define SHOWN_MAX ((size_t)200)

static void put_op(struct hf_buf *out, enum hf_op_kind kind, const char *name,
                   struct hf_span args)
{
    hf_buf_text(out, hf_op_name(kind));
    hf_buf_char(out, ' ');
    hf_buf_text(out, name ? name : "");
    hf_buf_text(out, name ? " " : "");
    bool cut = args.len > SHOWN_MAX;
    hf_buf_bytes(out, args.len ? args.at : "",
                 cut ? hf_utf8_cut(args.at, SHOWN_MAX) : args.len);
    hf_buf_text(out, cut ? "…" : "");
}

/* Names both: what was recorded, and what the cell does now (`now` NULL: nothing). */
static int diverge(struct hf_cell *cell, const struct hf_op_record *was,
                   const struct hf_op *now, struct hf_err *err)
{
    struct hf_buf text;
    hf_buf_init(&text, cell->alloc, 4096);
    hf_buf_text(&text, "operation ");
    hf_buf_i64(&text, (int64_t)was->ordinal);
    hf_buf_text(&text, " was recorded as ");
    put_op(&text, was->kind, was->name, was->args);
    hf_buf_text(&text, now ? ", and is now " : ", and the cell now ends before it");
    if (now)
        put_op(&text, now->kind, now->name, now->args);
    const char *said = hf_buf_keep(&text, &cell->arena);
    int rc = said ? hf_cell_close(cell, HF_CELL_DIVERGED, hf_turn_span_of(said))
                  : HF_ENOMEM;
    return rc ? hf_fail_plain(err, rc) : 0;
}

int hf_cell_ends_early(struct hf_cell *cell, struct hf_err *err)
{
    return diverge(cell, &cell->journal[cell->journal_next], NULL, err);
}

static bool same_op(const struct hf_op_record *was, const struct hf_op *now)
{
    return was->kind == now->kind && hf_same(was->name, now->name) &&
           hf_turn_span_same(was->args, now->args);
}

int hf_cell_replay(struct hf_cell *cell, struct hf_err *err)
{
    if (cell->journal_next == cell->journal_count)
        return 0;
    const struct hf_op_record *record = &cell->journal[cell->journal_next];
    if (record->ordinal > cell->op.ordinal) {
        bool print = cell->op.kind == HF_OP_PRINT;
        return print ? 0 : diverge(cell, record, &cell->op, err);
    }
    cell->journal_next++;
    if (!same_op(record, &cell->op))
        return diverge(cell, record, &cell->op, err);
    if (cell->op.kind == HF_OP_PRINT)
        return 0;
    if (cell->calls)
        return hf_cell_take_results(cell, record->results, record->result_count, err);
    return record->answered ? hf_cell_take_value(cell, record->value, err) : 0;
}
