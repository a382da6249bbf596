/* Facts about the database for doctor and for people, as one JSON object. */
#include "base/json.h"
#include "db/pg/pg.h"

#define FACTS_BYTES_MAX 16384

static void put_counts(struct hf_json *json, const struct pg *pg)
{
    const struct pg_counts *counts = &pg->counts;
    const struct {
        const char *name;
        const _Atomic int64_t *value;
    } rows[] = {
        { "groups", &pg->group.groups },         { "batches", &pg->group.members },
        { "largest_group", &pg->group.largest }, { "replays", &counts->replays },
        { "two_trips", &counts->two_trips },     { "connects", &counts->connects },
        { "lost_answers", &counts->lost },       { "resolved", &counts->resolved },
        { "uncertain", &counts->uncertain },     { "rings", &counts->rings },
        { "notices", &counts->notices },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        hf_json_put_i64(json, rows[i].name,
                        atomic_load_explicit(rows[i].value, memory_order_relaxed));
}

static const char *bell_word(struct pg *pg)
{
    const char *word = "not needed yet";
    hf_lock(&pg->bell.lock);
    if (pg->bell.heard)
        word = "listening";
    else if (pg->bell.failed || pg->bell.wanted)
        word = "polling";
    hf_unlock(&pg->bell.lock);
    return word;
}

int pg_facts(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err)
{
    static const char *const poolers[] = { "none", "session", "transaction" };
    struct pg *pg = pg_of(sql);
    struct hf_batch look = { .alloc = pg->alloc, .read_only = true };
    int rc = pg_run_read(pg, &look, err);
    if (rc)
        return rc;
    struct hf_buf out;
    struct hf_json json;
    hf_buf_init(&out, pg->alloc, FACTS_BYTES_MAX);
    hf_json_begin(&json, &out);
    hf_json_object(&json);
    hf_json_put_str(&json, "engine", "postgres");
    hf_json_put_i64(&json, "engine_version", pg->server_version);
    hf_json_put_str(&json, "schema", pg->url.schema);
    hf_json_put_str(&json, "pooler", poolers[pg->url.pooler]);
    hf_json_put_str(&json, "bell", bell_word(pg));
    hf_json_put_i64(&json, "max_connections", pg->max_connections);
    hf_json_put_str(&json, "store_id", pg->store_id);
    hf_json_put_i64(&json, "schema_version", pg->schema_version);
    hf_json_put_i64(&json, "incarnation", look.incarnation);
    hf_json_put_i64(&json, "lease_now", look.lease_now);
    put_counts(&json, pg);
    hf_json_end(&json);
    rc = hf_buf_state(&out);
    if (rc != 0) {
        hf_buf_fini(&out);
        return hf_fail_plain(err, rc);
    }
    *ret_json = (struct hf_span){ .at = out.at, .len = out.len };
    return 0; /* the caller frees it */
}
