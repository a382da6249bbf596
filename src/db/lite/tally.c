/* What a batch counts and whom it wakes, by functions in its statements.
 *
 * hf_tally(name, n, value) adds n to the batch's tally of the name, and gives value; a null name
 * counts nothing. hf_tallied(name, many) is the tally as a table. hf_ring(name) wakes one who
 * waits for the topic of that name, once the batch is durable, and gives null. So a statement
 * can tell a later one, or its caller, of rows that it wrote: RETURNING copies every column of
 * each row, and to find the rows again costs a third of writing them.
 *
 * The tally lives as long as the batch runs. A batch that is run again counts anew; it may ring
 * twice, which is harmless.
 */
#include <string.h>

#include "base/ident.h"
#include "db/batch.h"
#include "db/lite/table.h"

#define ROOM_LEAST 64

struct lite_count {
    char *name;
    size_t bytes;
    int64_t many;
};

/* ---- counting ------------------------------------------------------------------------- */

/* Where the place of a name stands, or would. There always is a free one. */
static uint32_t *find(const struct lite_tally *tally, const char *name, size_t bytes)
{
    size_t at = hf_crc32c(0, name, bytes) & (tally->room - 1);
    for (;; at = (at + 1) & (tally->room - 1)) {
        uint32_t place = tally->places[at];
        const struct lite_count *count = &tally->counts[place - (place > 0)];
        if (place == 0 ||
            (count->bytes == bytes && memcmp(count->name, name, bytes) == 0))
            return &tally->places[at];
    }
}

static void place_all(struct lite_tally *tally)
{
    memset(tally->places, 0, tally->room * sizeof *tally->places);
    for (size_t i = 0; i < tally->count; i++)
        *find(tally, tally->counts[i].name, tally->counts[i].bytes) = (uint32_t)i + 1;
}

static bool grow(struct lite_conn *conn)
{
    const struct hf_alloc *alloc = conn->lite->alloc;
    struct lite_tally *tally = &conn->tally;
    size_t room = tally->room ? tally->room * 2 : ROOM_LEAST;
    void *counts = alloc->realloc(alloc->user, tally->counts,
                                  room / 2 * sizeof *tally->counts);
    if (!counts)
        return false;
    tally->counts = counts;
    void *places = alloc->realloc(alloc->user, tally->places,
                                  room * sizeof *tally->places);
    if (!places)
        return false;
    tally->places = places;
    tally->room = room;
    place_all(tally);
    return true;
}

static bool add(struct lite_conn *conn, const char *name, size_t bytes, int64_t n)
{
    const struct hf_alloc *alloc = conn->lite->alloc;
    struct lite_tally *tally = &conn->tally;
    if (2 * tally->count >= tally->room && !grow(conn))
        return false;
    uint32_t *place = find(tally, name, bytes);
    if (*place == 0) {
        char *copy = alloc->realloc(alloc->user, NULL, bytes + 1);
        if (!copy)
            return false;
        memcpy(copy, name, bytes);
        tally->counts[tally->count++] = (struct lite_count){ copy, bytes, 0 };
        *place = (uint32_t)tally->count;
    }
    tally->counts[*place - 1].many += n;
    return true;
}

void lite_tally_clear(struct lite_conn *conn)
{
    const struct hf_alloc *alloc = conn->lite->alloc;
    struct lite_tally *tally = &conn->tally;
    if (tally->count == 0)
        return;
    while (tally->count > 0)
        alloc->free(alloc->user, tally->counts[--tally->count].name);
    place_all(tally);
}

void lite_tally_fini(struct lite_conn *conn)
{
    const struct hf_alloc *alloc = conn->lite->alloc;
    lite_tally_clear(conn);
    alloc->free(alloc->user, conn->tally.counts);
    alloc->free(alloc->user, conn->tally.places);
    conn->tally = (struct lite_tally){ 0 };
}

/* ---- what statements see -------------------------------------------------------------- */

static void sql_tally(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct lite_conn *conn = sqlite3_user_data(context);
    if (sqlite3_value_type(argv[0]) != SQLITE_NULL) {
        const char *name = (const char *)sqlite3_value_text(argv[0]);
        size_t bytes = (size_t)sqlite3_value_bytes(argv[0]);
        if (!name || !add(conn, name, bytes, sqlite3_value_int64(argv[1]))) {
            sqlite3_result_error_nomem(context);
            return;
        }
    }
    sqlite3_result_value(context, argv[2]);
}

static void sql_ring(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    const struct lite_conn *conn = sqlite3_user_data(context);
    const char *name = (const char *)sqlite3_value_text(argv[0]);
    if (name) /* a hint, so it may be lost */
        hf_batch_ring(conn->batch, hf_topic_of_name(name), 1);
    sqlite3_result_null(context);
}

static size_t count_names(const struct lite_conn *conn)
{
    return conn->tally.count;
}

static int show_count(struct lite_conn *conn, size_t row, int column,
                      sqlite3_context *context)
{
    const struct lite_count *count = &conn->tally.counts[row];
    if (column == 0)
        sqlite3_result_text64(context, count->name, count->bytes, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
    else
        sqlite3_result_int64(context, count->many);
    return SQLITE_OK;
}

static const struct lite_table table = {
    .name = "hf_tallied",
    .declaration = "CREATE TABLE x(name TEXT, many INTEGER)",
    .count = count_names,
    .show = show_count,
};

int lite_tally(struct lite_conn *conn, struct hf_err *err)
{
    int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function_v2(conn->db, "hf_tally", 3, flags, conn, sql_tally,
                                        NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(conn->db, "hf_ring", 1, flags, conn, sql_ring,
                                        NULL, NULL, NULL);
    return rc == SQLITE_OK ? lite_table_add(conn, &table, err)
                           : lite_fail(conn->db, rc, "hf_tally", err);
}
