/* The change feed over SQL.
 *
 * A cursor is "hf1.INCARNATION.XID.ID.PXID.PID": the last event that its reader was given
 * (or looked past), and the last pruned one that was reported to it. */
#include "base/err.h"
#include "base/text.h"
#include "core/ledger/fields.h"
#include "store/store.h"

#include <string.h>

#define FILTERED_WINDOW 1000 /* events looked at where few of them may match */

struct position {
    int64_t xid;
    int64_t id;
};

struct cursor {
    int64_t incarnation;
    struct position at;
    struct position pruned; /* reported so far */
};

struct facts {
    int64_t incarnation;
    struct position end;
    struct position pruned;
    struct position fork;
    bool forked;
    struct position last_fork;
    bool standby;
};

static bool before(struct position a, struct position b)
{
    return a.xid != b.xid ? a.xid < b.xid : a.id < b.id;
}

/* ---- cursors ------------------------------------------------------------------------ */

static int no_cursor(struct hf_err *err, const char *text)
{
    return hf_fail(err, HF_EINVAL, "after", "after: \"%.60s\" is no cursor of the feed",
                   text);
}

static int read_cursor(const char *text, struct cursor *ret_cursor, struct hf_err *err)
{
    int64_t numbers[5];
    char part[24];
    const char *at = text;
    if (!hf_starts_with(text, "hf1."))
        return no_cursor(err, text);
    at += 4;
    for (size_t i = 0; i < 5; i++) {
        const char *end = i < 4 ? strchr(at, '.') : at + strlen(at);
        size_t len = end ? (size_t)(end - at) : sizeof part;
        if (len == 0 || len >= sizeof part)
            return no_cursor(err, text);
        memcpy(part, at, len);
        part[len] = '\0';
        if (hf_parse_i64(part, 0, INT64_MAX, "after", &numbers[i], NULL))
            return no_cursor(err, text);
        at = end + 1;
    }
    *ret_cursor = (struct cursor){ numbers[0],
                                   { numbers[1], numbers[2] },
                                   { numbers[3], numbers[4] } };
    return 0;
}

static const char *write_cursor(struct hf_feed *feed, const struct cursor *cursor)
{
    const int64_t numbers[] = { cursor->incarnation, cursor->at.xid, cursor->at.id,
                                cursor->pruned.xid, cursor->pruned.id };
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), 128);
    hf_buf_text(&text, "hf1");
    for (size_t i = 0; i < 5; i++) {
        hf_buf_char(&text, '.');
        hf_buf_i64(&text, numbers[i]);
    }
    const char *copy = hf_buf_state(&text) ? NULL : hf_feed_text(feed, hf_buf_str(&text));
    hf_buf_fini(&text);
    return copy;
}

/* ---- where to begin ------------------------------------------------------------------ */

struct reading {
    struct hf_store *handle;
    const struct hf_feed_query *query;
    const char *tenant; /* NULL: all */
    bool given;         /* a cursor, and not a word */
    struct cursor cursor;
    int64_t asked_of; /* the history that the cursor was of */
    unsigned notices;
    int64_t window;
};

static struct facts facts_of(const struct hf_call *row)
{
    return (struct facts){
        .end = { hf_out_i64(row, 0, HF_COL_FEED_FACTS_END_XID),
                 hf_out_i64(row, 0, HF_COL_FEED_FACTS_END_ID) },
        .incarnation = hf_out_i64(row, 0, HF_COL_FEED_FACTS_INCARNATION),
        .pruned = { hf_out_i64(row, 0, HF_COL_FEED_FACTS_PRUNED_XID),
                    hf_out_i64(row, 0, HF_COL_FEED_FACTS_PRUNED_ID) },
        .fork = { hf_out_i64(row, 0, HF_COL_FEED_FACTS_FORK_XID),
                  hf_out_i64(row, 0, HF_COL_FEED_FACTS_FORK_ID) },
        .forked = hf_out(row, 0, HF_COL_FEED_FACTS_FORK_ID)->type == HF_VAL_I64,
        .last_fork = { hf_out_i64(row, 0, HF_COL_FEED_FACTS_LAST_FORK_XID),
                       hf_out_i64(row, 0, HF_COL_FEED_FACTS_LAST_FORK_ID) },
        .standby = hf_out_i64(row, 0, HF_COL_FEED_FACTS_STANDBY) != 0,
    };
}

static int read_facts(const struct reading *r, struct facts *ret_facts,
                      struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(r->handle)->sql, r->handle->alloc);
    hf_ops_call(&ops, HF_SQL_FEED_FACTS, 1);
    hf_ops_i64(&ops, r->asked_of);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0)
        *ret_facts = facts_of(hf_ops_result(&ops, 0));
    hf_ops_fini(&ops);
    return rc;
}

/* A cursor names an event, one that was pruned, or the beginning of a history. A standby may
 * be behind the server that returned the cursor: there the reader waits. */
static bool past_the_end(struct position at, const struct facts *facts)
{
    return !facts->standby && before(facts->end, at) && before(facts->pruned, at) &&
           before(facts->last_fork, at);
}

/* Moves the cursor to where reading continues in the present history. */
static int enter_history(struct reading *r, const struct facts *facts, struct hf_err *err)
{
    struct cursor *cursor = &r->cursor;
    if (!r->given) {
        cursor->at = r->query->after ? facts->end : (struct position){ 0, 0 };
    } else if (cursor->incarnation > facts->incarnation) {
        return hf_fail(
            err, HF_EINVAL, "after",
            "after: the cursor is of history %lld and the store is in %lld: it "
            "is another store, or one that was put back without `holdfast "
            "store bump`",
            (long long)cursor->incarnation, (long long)facts->incarnation);
    } else if (cursor->incarnation < facts->incarnation) {
        r->notices |= HF_FEED_HISTORY;
        if (facts->forked && before(facts->fork, cursor->at))
            cursor->at = facts->fork;
    } else if (past_the_end(cursor->at, facts)) {
        return hf_fail(
            err, HF_EINVAL, "after",
            "after: the cursor is past the end of the feed: it is of another "
            "store, or of one that was put back without `holdfast store bump`");
    }
    cursor->incarnation = facts->incarnation;
    return 0;
}

/* ---- a page --------------------------------------------------------------------------- */

static int read_item(struct hf_feed *feed, const struct hf_call *rows, size_t i,
                     struct cursor *cursor)
{
    struct hf_feed_item *item = hf_feed_add(feed);
    if (!item)
        return HF_ENOMEM;
    for (size_t f = 0; f < hf_event_field_count; f++) {
        const struct hf_field *field = &hf_event_fields[f];
        void *at = (char *)&item->event + field->offset;
        const char *text = hf_out_text(rows, i, f);
        if (field->kind == HF_FIELD_I64)
            *(int64_t *)at = hf_out_i64(rows, i, f);
        else if (text && !(*(const char **)at = hf_feed_text(feed, text)))
            return HF_ENOMEM;
    }
    cursor->at = (struct position){ hf_out_i64(rows, i, HF_COL_FEED_PAGE_XID),
                                    item->event.event_id };
    item->tenant = hf_feed_text(feed, hf_out_text(rows, i, HF_COL_FEED_PAGE_TENANT));
    item->queue = hf_feed_text(feed, hf_out_text(rows, i, HF_COL_FEED_PAGE_QUEUE));
    item->kind = hf_feed_text(feed, hf_out_text(rows, i, HF_COL_FEED_PAGE_KIND));
    item->cursor = write_cursor(feed, cursor);
    return item->tenant && item->queue && item->kind && item->cursor ? 0 : HF_ENOMEM;
}

static void add_window(struct hf_ops *ops, const struct reading *r)
{
    hf_ops_i64(ops, r->cursor.at.xid);
    hf_ops_i64(ops, r->cursor.at.id);
    hf_ops_i64(ops, r->window);
}

/* One snapshot: the end of what is looked at, what of it matches, and what was pruned. */
static int read_page(struct reading *r, struct hf_ops *ops, struct hf_err *err)
{
    const struct hf_feed_query *query = r->query;
    bool filtered = r->tenant || query->queue || query->kind || query->type;
    r->window = filtered && query->limit < FILTERED_WINDOW ? FILTERED_WINDOW
                                                           : (int64_t)query->limit;
    hf_ops_call(ops, HF_SQL_FEED_END, HF_ANY_COUNT);
    add_window(ops, r);
    hf_ops_call(ops, HF_SQL_FEED_PAGE, HF_ANY_COUNT);
    add_window(ops, r);
    hf_ops_text(ops, r->tenant);
    hf_ops_text(ops, query->queue);
    hf_ops_text(ops, query->kind);
    hf_ops_text(ops, query->type);
    hf_ops_i64(ops, (int64_t)query->limit);
    hf_ops_call(ops, HF_SQL_FEED_FACTS, 1);
    hf_ops_i64(ops, r->asked_of);
    return hf_ops_read(ops, err);
}

/* Whether something after the cursor went before it could be read, and was not told yet. */
static void note_pruned(struct reading *r, const struct facts *facts)
{
    if (r->given && before(r->cursor.at, facts->pruned) &&
        before(r->cursor.pruned, facts->pruned))
        r->notices |= HF_FEED_GAP;
    r->cursor.pruned = facts->pruned;
}

static int fill(struct reading *r, const struct hf_ops *ops, struct hf_feed *feed)
{
    const struct hf_call *end = hf_ops_result(ops, 0), *rows = hf_ops_result(ops, 1);
    bool whole = rows->out_count < r->query->limit; /* all of what was looked at */
    bool more = end->out_count &&
                (!whole || hf_out_i64(end, 0, HF_COL_FEED_END_EVENTS) == r->window);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++)
        rc = read_item(feed, rows, i, &r->cursor);
    if (whole && end->out_count)
        r->cursor.at = (struct position){ hf_out_i64(end, 0, HF_COL_FEED_END_XID),
                                          hf_out_i64(end, 0, HF_COL_FEED_END_EVENT_ID) };
    const char *next = rc == 0 ? write_cursor(feed, &r->cursor) : NULL;
    if (!next)
        return HF_ENOMEM;
    hf_feed_set(feed, next, r->cursor.incarnation, r->notices, more);
    return 0;
}

/* HF_EGUARD: another history began in between. */
static int page(struct reading *r, struct hf_feed *feed, struct hf_err *err)
{
    struct hf_ops ops;
    struct facts facts;
    int rc = read_facts(r, &facts, err);
    if (rc == 0)
        rc = enter_history(r, &facts, err);
    if (rc)
        return rc;
    hf_ops_init(&ops, sql_store_of(r->handle)->sql, r->handle->alloc);
    rc = read_page(r, &ops, err);
    if (rc == 0) {
        facts = facts_of(hf_ops_result(&ops, 2));
        if (facts.incarnation != r->cursor.incarnation)
            rc = HF_EGUARD;
    }
    if (rc == 0) {
        note_pruned(r, &facts);
        rc = fill(r, &ops, feed);
        rc = rc ? hf_fail_plain(err, rc) : 0;
    }
    hf_ops_fini(&ops);
    return rc;
}

int sql_feed(struct hf_store *handle, const struct hf_caller *who,
             const struct hf_feed_query *query, struct hf_feed *feed, struct hf_err *err)
{
    int rc = HF_EGUARD;
    for (int i = 0; rc == HF_EGUARD && i < HF_TRIES; i++) {
        struct reading r = { .handle = handle,
                             .query = query,
                             .tenant = who->tenant[0] ? who->tenant : NULL,
                             .given = query->after && !hf_same(query->after, "end"),
                             .asked_of = INT64_MAX };
        rc = r.given ? read_cursor(query->after, &r.cursor, err) : 0;
        if (rc == 0 && r.given)
            r.asked_of = r.cursor.incarnation;
        if (rc == 0)
            rc = page(&r, feed, err);
    }
    return rc == HF_EGUARD ? hf_fail_plain(err, HF_EBUSY) : rc;
}
