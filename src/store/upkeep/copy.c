/* Moving house: one store's tables into another, empty one, on the same engine or another.
 *
 * Tables are read and written in pages by primary key, with the guards switched off and on
 * again within each transaction; then both are read once more and compared cell by cell. The
 * target counts as unfinished (incarnation 0, which no program opens) until all of it was
 * found equal. Nothing here knows a table by name: see tools/sqlcopy.py. */
#include <holdfast/store.h>

#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/sized.h"
#include "base/text.h"
#include "store/batch/ops.h"
#include "store/store.h"

#define PAGE_FIRST 16 /* of each table: nothing is known about its rows yet */
#define PAGE_MOST 2048
#define PAGE_BYTES_LOW (256u << 10)
#define PAGE_BYTES_HIGH (4u << 20)

struct side {
    struct hf_sql *sql;
    hf_ms lease_now;
    int64_t incarnation;
};

struct copying {
    struct hf_copy_options options;
    const struct hf_alloc *alloc;
    struct side from;
    struct side to;
    hf_ms lease_shift; /* lease clock of the target less that of the source */
    int64_t page;      /* rows at a time */
    struct hf_copy_report report;
    struct hf_err *err;
};

/* ---- a page ------------------------------------------------------------------------------ */

static void add_cell(struct hf_ops *ops, const struct hf_val *cell)
{
    switch (cell->type) {
    case HF_VAL_NULL: hf_ops_null(ops); break;
    case HF_VAL_I64: hf_ops_i64(ops, cell->i); break;
    case HF_VAL_TEXT: hf_ops_text(ops, cell->at); break;
    case HF_VAL_BYTES: hf_ops_bytes(ops, cell->at, cell->len); break;
    }
}

/* The rows after the last one of `before`, or the first ones. `ops` is empty. */
static int read_rows(struct copying *c, const struct side *side,
                     const struct hf_copy_table *table, const struct hf_call *before,
                     struct hf_ops *ops)
{
    bool first = !before || before->out_count == 0;
    hf_ops_init(ops, side->sql, c->alloc);
    hf_ops_call(ops, first ? table->first : table->next, HF_ANY_COUNT);
    for (size_t i = 0; !first && i < table->key_count; i++)
        add_cell(ops, hf_out(before, before->out_count - 1, table->keys[i]));
    hf_ops_i64(ops, c->page);
    int rc = hf_ops_read(ops, c->err);
    if (rc == 0 && hf_ops_result(ops, 0)->out_count &&
        hf_ops_result(ops, 0)->out_width != table->column_count)
        rc = hf_fail(c->err, HF_EINTERNAL, NULL, "%s returns %zu columns, not %zu",
                     table->name, hf_ops_result(ops, 0)->out_width, table->column_count);
    return rc;
}

/* As a cell of the source is in the target. */
static struct hf_val moved(const struct copying *c, const struct hf_copy_column *column,
                           const struct hf_val *cell)
{
    struct hf_val value = *cell;
    if (value.type == HF_VAL_I64 && column->lease_clock)
        value.i += c->lease_shift;
    if (value.type == HF_VAL_I64 && column->own)
        value.i = 0;
    return value;
}

/* Fewer at a time where rows are large, more where they are small. */
static void fit_page(struct copying *c, const struct hf_call *rows)
{
    size_t bytes = 0;
    for (size_t i = 0; i < rows->out_count * rows->out_width; i++)
        bytes += rows->out[i].len;
    if (bytes > PAGE_BYTES_HIGH)
        c->page = (int64_t)(rows->out_count * PAGE_BYTES_HIGH / bytes) + 1;
    else if (bytes < PAGE_BYTES_LOW && c->page < PAGE_MOST)
        c->page *= 2;
}

static void tell(struct copying *c, const struct hf_copy_table *table, bool verifying,
                 int64_t rows, int64_t of)
{
    struct hf_copy_progress progress = {
        .table = table->name, .verifying = verifying, .rows = rows, .of = of
    };
    if (c->options.progress)
        c->options.progress(c->options.user, &progress);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void switch_guards(struct hf_ops *ops, const enum hf_sql_id *statements)
{
    for (size_t i = 0; i < hf_copy_guard_count; i++)
        hf_ops_call(ops, statements[i], HF_ANY_COUNT);
}

static int write_rows(struct copying *c, const struct hf_copy_table *table,
                      const struct hf_call *rows)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->to.sql, c->alloc);
    switch_guards(&ops, hf_copy_off);
    hf_ops_call(&ops, table->write, (int64_t)rows->out_count);
    for (size_t i = 0; i < rows->out_count; i++) {
        if (i > 0)
            hf_ops_again(&ops);
        for (size_t f = 0; f < table->column_count; f++) {
            struct hf_val value = moved(c, &table->columns[f], hf_out(rows, i, f));
            add_cell(&ops, &value);
        }
    }
    switch_guards(&ops, hf_copy_on);
    int rc = hf_ops_write(&ops, c->err);
    hf_ops_fini(&ops);
    return rc;
}

static int count_rows(struct copying *c, const struct side *side,
                      const struct hf_copy_table *table, int64_t *ret_rows)
{
    struct hf_ops ops;
    hf_ops_init(&ops, side->sql, c->alloc);
    hf_ops_call(&ops, table->count, 1);
    int rc = hf_ops_read(&ops, c->err);
    if (rc == 0)
        *ret_rows = hf_out_i64(hf_ops_result(&ops, 0), 0, 0);
    hf_ops_fini(&ops);
    return rc;
}

static int copy_table(struct copying *c, const struct hf_copy_table *table)
{
    struct hf_ops pages[2]; /* one names where the other continues */
    const struct hf_call *rows = NULL;
    int64_t of = 0, done = 0;
    int held = -1;
    c->page = PAGE_FIRST;
    int rc = count_rows(c, &c->from, table, &of);
    while (rc == 0 && (!rows || rows->out_count)) {
        int next = held == 0 ? 1 : 0;
        rc = read_rows(c, &c->from, table, rows, &pages[next]);
        if (held >= 0)
            hf_ops_fini(&pages[held]);
        held = next;
        rows = rc == 0 ? hf_ops_result(&pages[held], 0) : NULL;
        if (rc == 0 && rows->out_count) {
            rc = write_rows(c, table, rows);
            done += (int64_t)rows->out_count;
            tell(c, table, false, done, of);
            fit_page(c, rows);
        }
    }
    if (held >= 0)
        hf_ops_fini(&pages[held]);
    return rc;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static bool same_cell(const struct hf_val *a, const struct hf_val *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case HF_VAL_NULL: return true;
    case HF_VAL_I64: return a->i == b->i;
    case HF_VAL_TEXT:
    case HF_VAL_BYTES: break;
    }
    return a->len == b->len && (a->len == 0 || memcmp(a->at, b->at, a->len) == 0);
}

static void digest_cell(struct hf_digest *digest, const struct hf_val *cell)
{
    switch (cell->type) {
    case HF_VAL_NULL: hf_digest_text(digest, NULL); break;
    case HF_VAL_I64: hf_digest_i64(digest, cell->i); break;
    case HF_VAL_TEXT: hf_digest_text(digest, cell->at); break;
    case HF_VAL_BYTES: hf_digest_bytes(digest, cell->at, cell->len); break;
    }
}

/* One table of both sides, page by page. */
struct comparing {
    struct copying *c;
    const struct hf_copy_table *table;
    int64_t done; /* rows that are equal */
    struct hf_digest digest;
};

static int differs(const struct comparing *m, size_t row, const char *column)
{
    return hf_fail(
        m->c->err, HF_ECONFLICT, "from",
        "row %lld of %s differs%s%s: one store was written to during the copy; stop all "
        "programs that use either, remove the target, copy again",
        (long long)(m->done + 1 + (int64_t)row), m->table->name,
        column ? ", column " : "", column ? column : "");
}

static int compare_pages(struct comparing *m, const struct hf_call *from,
                         const struct hf_call *to)
{
    size_t least = from->out_count < to->out_count ? from->out_count : to->out_count;
    for (size_t i = 0; i < least; i++) {
        for (size_t f = 0; f < m->table->column_count; f++) {
            const struct hf_copy_column *column = &m->table->columns[f];
            struct hf_val value = moved(m->c, column, hf_out(from, i, f));
            if (!same_cell(&value, hf_out(to, i, f)))
                return differs(m, i, column->name);
            digest_cell(&m->digest, &value);
        }
    }
    if (from->out_count != to->out_count)
        return differs(m, least, NULL);
    m->done += (int64_t)least;
    return 0;
}

static int compare_table(struct comparing *m)
{
    struct copying *c = m->c;
    struct hf_ops from[2], to[2]; /* one names where the other continues */
    const struct hf_call *rows[2] = { NULL, NULL };
    int64_t of = 0;
    int held = -1;
    c->page = PAGE_FIRST;
    int rc = count_rows(c, &c->from, m->table, &of);
    while (rc == 0 && (!rows[0] || rows[0]->out_count)) {
        int next = held == 0 ? 1 : 0;
        rc = read_rows(c, &c->from, m->table, rows[0], &from[next]);
        int also = read_rows(c, &c->to, m->table, rows[1], &to[next]);
        if (held >= 0) {
            hf_ops_fini(&from[held]);
            hf_ops_fini(&to[held]);
        }
        held = next;
        rc = rc ? rc : also;
        if (rc == 0) {
            rows[0] = hf_ops_result(&from[held], 0);
            rows[1] = hf_ops_result(&to[held], 0);
            rc = compare_pages(m, rows[0], rows[1]);
        }
        if (rc == 0 && rows[0]->out_count) {
            tell(c, m->table, true, m->done, of);
            fit_page(c, rows[0]);
        }
    }
    if (held >= 0) {
        hf_ops_fini(&from[held]);
        hf_ops_fini(&to[held]);
    }
    return rc;
}

static int verify_table(struct copying *c, const struct hf_copy_table *table)
{
    uint8_t bytes[HF_DIGEST_BYTES];
    struct comparing m = { .c = c, .table = table };
    struct hf_copied_table copied = { .name = table->name };
    hf_digest_begin(&m.digest, table->name, 1);
    int rc = compare_table(&m);
    int digested = hf_digest_end(&m.digest, bytes);
    copied.rows = m.done;
    if (rc == 0 && digested)
        rc = hf_fail_plain(c->err, digested);
    if (rc)
        return rc;
    hf_hex(bytes, sizeof bytes, copied.sha256);
    c->report.tables++;
    c->report.rows += copied.rows;
    if (c->options.copied)
        c->options.copied(c->options.user, &copied);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int look_at(struct copying *c, struct side *side)
{
    struct hf_ops ops;
    hf_ops_init(&ops, side->sql, c->alloc);
    hf_ops_call(&ops, HF_SQL_COPY_LOOK, 1);
    int rc = hf_ops_read(&ops, c->err);
    side->lease_now = ops.batch.lease_now;
    side->incarnation = ops.batch.incarnation;
    hf_ops_fini(&ops);
    return rc;
}

static int refuse_full_target(struct copying *c)
{
    for (size_t i = 0; i < hf_copy_table_count; i++) {
        int64_t rows = 0;
        int rc = count_rows(c, &c->to, &hf_copy_tables[i], &rows);
        if (rc)
            return rc;
        if (rows)
            return hf_fail(c->err, HF_ECONFLICT, "to",
                           "the target is not empty: %s has %lld rows",
                           hf_copy_tables[i].name, (long long)rows);
    }
    return 0;
}

/* Together with what only the owner of the tables may do: who may not copy spoils no target. */
static int mark(struct copying *c)
{
    struct hf_ops ops;
    hf_ops_init(&ops, c->to.sql, c->alloc);
    switch_guards(&ops, hf_copy_off);
    hf_ops_call(&ops, HF_SQL_COPY_MARK, 1);
    switch_guards(&ops, hf_copy_on);
    int rc = hf_ops_write(&ops, c->err);
    hf_ops_fini(&ops);
    return rc;
}

static void add_note(struct copying *c, struct hf_buf *note)
{
    hf_buf_text(note, "{\"from_incarnation\":");
    hf_buf_i64(note, c->from.incarnation);
    hf_buf_text(note, ",\"rows\":");
    hf_buf_i64(note, c->report.rows);
    hf_buf_char(note, '}');
}

/* A history of its own, in which no token of the source is good. */
static int finish(struct copying *c)
{
    struct hf_ops ops;
    struct hf_buf note;
    bool positions = hf_same(c->from.sql->methods->name, "sqlite");
    c->report.incarnation = 1 + (c->from.incarnation > c->to.incarnation
                                     ? c->from.incarnation
                                     : c->to.incarnation);
    hf_buf_init(&note, c->alloc, 256);
    add_note(c, &note);
    hf_ops_init(&ops, c->to.sql, c->alloc);
    for (size_t i = 0; i < hf_copy_table_count; i++)
        hf_ops_call(&ops, hf_copy_tables[i].sequence, HF_ANY_COUNT);
    hf_ops_call(&ops, HF_SQL_COPY_IDS, HF_ANY_COUNT);
    hf_ops_call(&ops, HF_SQL_STORE_LOG, 1);
    hf_ops_text(&ops, "copied");
    hf_ops_text(&ops, hf_buf_str(&note));
    hf_ops_call(&ops, HF_SQL_COPY_FINISH, 1);
    hf_ops_i64(&ops, c->report.incarnation);
    if (!positions) {
        hf_ops_call(&ops, HF_SQL_COPY_HISTORY, HF_ANY_COUNT);
        hf_ops_i64(&ops, c->report.incarnation);
    }
    int rc = hf_buf_state(&note) ? hf_fail_plain(c->err, hf_buf_state(&note))
                                 : hf_ops_write(&ops, c->err);
    hf_ops_fini(&ops);
    hf_buf_fini(&note);
    return rc;
}

static int run(struct copying *c)
{
    int rc = refuse_full_target(c);
    if (rc == 0)
        rc = look_at(c, &c->from);
    if (rc == 0)
        rc = look_at(c, &c->to);
    c->lease_shift = c->to.lease_now - c->from.lease_now;
    if (rc == 0)
        rc = mark(c);
    for (size_t i = 0; rc == 0 && i < hf_copy_table_count; i++)
        rc = copy_table(c, &hf_copy_tables[i]);
    for (size_t i = 0; rc == 0 && i < hf_copy_table_count; i++)
        rc = verify_table(c, &hf_copy_tables[i]);
    return rc ? rc : finish(c);
}

int hf_store_copy(const struct hf_copy_options *given, struct hf_copy_report *ret_report,
                  struct hf_err *err)
{
    struct hf_err why = { 0 };
    struct copying c = { .alloc = hf_alloc_system(), .err = &why };
    struct hf_sql_options options = { .size = sizeof options,
                                      .must_exist = true,
                                      .migrate = HF_MIGRATE_NEVER };
    int rc = hf_sized_copy(given, sizeof c.options, sizeof c.options, &c.options, &why);
    if (rc == 0 && (!c.options.from || !c.options.to))
        rc = hf_fail(&why, HF_EINVAL, c.options.from ? "to" : "from",
                     "the addresses of both stores are needed");
    if (rc == 0 && hf_same(c.options.from, c.options.to))
        rc = hf_fail(&why, HF_EINVAL, "to", "source and target are the same");
    if (rc == 0)
        rc = hf_sql_open(c.options.from, &options, &c.from.sql, &why);
    options.must_exist = false;
    options.migrate = HF_MIGRATE_DEFAULT;
    if (rc == 0)
        rc = hf_sql_open(c.options.to, &options, &c.to.sql, &why);
    if (rc == 0)
        rc = run(&c);
    if (c.to.sql)
        c.to.sql->methods->close(c.to.sql);
    if (c.from.sql)
        c.from.sql->methods->close(c.from.sql);
    if (rc == 0)
        *ret_report = c.report;
    return hf_fail_as(err, rc, &why);
}
