/* The records that a step or a commit adds to a session, and the values that a repeat is compared
 * by. */
#include <string.h>

#include <holdfast/bounds.h>
#include <holdfast/turn_json.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/session/session.h"

static bool is_transient(const struct hf_record *record)
{
    return record->kind == HF_RECORD_MESSAGE && record->message &&
           record->message->origin && record->message->origin->transient;
}

static void add_transient(struct hf_buf *out, int64_t before, const struct hf_bytes *json)
{
    hf_buf_i64(out, before);
    hf_buf_char(out, ' ');
    hf_buf_i64(out, (int64_t)json->len);
    hf_buf_char(out, ' ');
    hf_buf_bytes(out, json->at, json->len);
    hf_buf_char(out, '\n');
}

/* A decimal number and the space behind it. */
static bool read_number(const char **at, int64_t *ret_value)
{
    int64_t value = 0;
    const char *c = *at;
    for (; *c >= '0' && *c <= '9' && value < INT64_MAX / 16; c++)
        value = value * 10 + (*c - '0');
    if (c == *at || *c != ' ')
        return false;
    *at = c + 1;
    *ret_value = value;
    return true;
}

int hf_transient_next(const char **at, int64_t *ret_before, struct hf_span *ret_json,
                      struct hf_err *err)
{
    int64_t len = 0;
    const char *c = *at;
    if (!*c)
        return 0;
    bool well = read_number(&c, ret_before) && read_number(&c, &len);
    size_t left = well ? strlen(c) : 0;
    if (!well || (size_t)len >= left || c[len] != '\n')
        return hf_fail(err, HF_ECORRUPT, "transients",
                       "the transient records of the turn cannot be read");
    *ret_json = (struct hf_span){ c, (size_t)len };
    *at = c + len + 1;
    return 1;
}

/* One record: a node, or a transient record. */
static int pack_one(struct hf_arena *arena, const struct hf_record *record,
                    int64_t node_count, struct hf_packed *packed, struct hf_buf *apart,
                    struct hf_err *err)
{
    struct hf_bytes json = { 0 };
    int rc = hf_record_encode(arena->alloc, record, &json, err);
    if (rc)
        return rc;
    packed->bytes += json.len;
    if (is_transient(record)) {
        add_transient(apart, node_count + (int64_t)packed->count, &json);
        rc = hf_buf_state(apart) ? hf_fail_plain(err, hf_buf_state(apart)) : 0;
    } else {
        struct hf_packed_node *node = &packed->nodes[packed->count++];
        node->json = hf_arena_copy(arena, json.at, json.len);
        rc = node->json ? hf_record_chain(packed->chain, record, packed->chain, err)
                        : hf_fail_plain(err, HF_ENOMEM);
        memcpy(node->chain, packed->chain, sizeof node->chain);
    }
    hf_bytes_free(&json);
    return rc;
}

int hf_records_pack(struct hf_arena *arena, const struct hf_record *records, size_t count,
                    int64_t node_count, const uint8_t chain[32],
                    struct hf_packed *ret_packed, struct hf_err *err)
{
    struct hf_packed packed = { .count = 0 };
    struct hf_buf apart;
    struct hf_err why = { 0 };
    hf_buf_init(&apart, arena->alloc, 2 * (size_t)HF_MAX_COMMIT_BYTES);
    memcpy(packed.chain, chain, sizeof packed.chain);
    packed.nodes = hf_arena_array(arena, count, sizeof *packed.nodes);
    int rc = packed.nodes ? 0 : hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = pack_one(arena, &records[i], node_count, &packed, &apart, &why);
        if (rc)
            rc = hf_fail(err, rc, "records", "record %zu: %s", i, why.message);
    }
    if (rc == 0 && apart.len > 0) {
        packed.transients = hf_buf_keep(&apart, arena);
        rc = packed.transients ? 0 : hf_fail_plain(err, HF_ENOMEM);
    } else {
        hf_buf_fini(&apart);
    }
    if (rc == 0)
        *ret_packed = packed;
    return rc;
}

static void hash_usage(struct hf_digest *digest, const struct hf_session_spent *spent)
{
    hf_digest_text(digest, spent->source);
    hf_digest_text(digest, spent->model);
    hf_digest_i64(digest, spent->usage.input);
    hf_digest_i64(digest, spent->usage.output);
    hf_digest_i64(digest, spent->usage.cache_read);
    hf_digest_i64(digest, spent->usage.cache_write);
    hf_digest_i64(digest, spent->usage.reasoning);
}

int hf_commit_hash(const struct hf_session_commit *commit, const struct hf_caller *who,
                   const struct hf_packed *packed, uint8_t ret_hash[32],
                   struct hf_err *err)
{
    struct hf_digest digest;
    int rc = 0;
    hf_digest_begin(&digest, "session.commit", 1);
    hf_digest_text(&digest, commit->session_id);
    hf_digest_text(&digest, commit->turn_id);
    hf_digest_i64(&digest, commit->head_revision);
    hf_digest_i64(&digest, commit->record_count);
    hf_digest_i64(&digest, commit->node_count + (int64_t)packed->count);
    hf_digest_bytes(&digest, packed->chain, sizeof packed->chain);
    hf_digest_i64(&digest, commit->status);
    hf_digest_text(&digest, commit->outcome);
    hf_digest_text(&digest, commit->config);
    hf_digest_i64(&digest, (int64_t)commit->blob_count);
    for (size_t i = 0; i < commit->blob_count; i++)
        hf_digest_bytes(&digest, commit->blobs[i].hash, sizeof commit->blobs[i].hash);
    hf_digest_i64(&digest, (int64_t)commit->spent_count);
    for (size_t i = 0; i < commit->spent_count; i++)
        hash_usage(&digest, &commit->spent[i]);
    for (size_t i = 0; rc == 0 && i < commit->unit_count; i++) {
        uint8_t unit[HF_DIGEST_BYTES];
        rc = hf_work_spec_hash(&commit->units[i], who, unit, err);
        if (rc == 0)
            hf_digest_bytes(&digest, unit, sizeof unit);
    }
    int ended = hf_digest_end(&digest, ret_hash);
    if (rc)
        return rc;
    return ended ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

/* Appends the text, or what the buffer has room for. */
static void put_cut(struct hf_buf *out, const char *text)
{
    size_t len = strlen(text), room = out->max - out->len;
    hf_buf_bytes(out, text, len > room ? hf_utf8_cut(text, room) : len);
}

int hf_commit_reason(struct hf_arena *arena, const struct hf_session_commit *commit,
                     const char **ret_reason, struct hf_err *err)
{
    struct json_t *outcome = NULL;
    struct hf_buf reason;
    *ret_reason = NULL;
    if (commit->status == HF_STATUS_DONE)
        return 0;
    struct hf_span json = { commit->outcome, strlen(commit->outcome) };
    int rc = hf_json_parse(json, (size_t)HF_MAX_PAYLOAD_BYTES, "outcome", &outcome, err);
    if (rc)
        return rc;
    const char *kind = hf_json_as_text(hf_json_member(outcome, "kind"));
    const char *text = hf_json_as_text(hf_json_member(outcome, "text"));
    hf_buf_init(&reason, arena->alloc, (size_t)HF_MAX_REASON_BYTES);
    put_cut(&reason, kind ? kind : hf_status_word(commit->status));
    if (text) {
        put_cut(&reason, ": ");
        put_cut(&reason, text);
    }
    *ret_reason = hf_buf_keep(&reason, arena);
    hf_json_free(outcome);
    return *ret_reason ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

const char *hf_commit_result(struct hf_arena *arena, int64_t revision, int64_t records,
                             const uint8_t chain[32])
{
    struct hf_buf text;
    struct hf_json json;
    char hex[65];
    hf_hex(chain, 32, hex);
    hf_buf_init(&text, arena->alloc, 1024);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    hf_json_put_str(&json, "chain", hex);
    hf_json_put_i64(&json, "head_revision", revision);
    hf_json_put_i64(&json, "record_count", records);
    hf_json_end(&json);
    return hf_buf_keep(&text, arena);
}

static bool read_hex(const char *text, uint8_t ret_bytes[32])
{
    for (size_t i = 0; i < 64; i++) {
        char c = text ? text[i] : '\0';
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;
        if (digit < 0)
            return false;
        ret_bytes[i / 2] = (uint8_t)(i % 2 ? ret_bytes[i / 2] * 16 + digit : digit);
    }
    return text[64] == '\0';
}

int hf_commit_result_read(const char *json, struct hf_session_committed *ret_committed,
                          struct hf_err *err)
{
    struct json_t *value = NULL;
    struct hf_session_committed found = { .head_revision = 0 };
    struct hf_span text = { json ? json : "", json ? strlen(json) : 0 };
    int rc = hf_json_parse(text, 4096, "result", &value, NULL);
    if (rc == 0) {
        found.head_revision = hf_json_as_i64(hf_json_member(value, "head_revision"));
        found.record_count = hf_json_as_i64(hf_json_member(value, "record_count"));
        if (!read_hex(hf_json_as_text(hf_json_member(value, "chain")), found.chain))
            rc = HF_ECORRUPT;
    }
    hf_json_free(value);
    if (rc)
        return hf_fail(err, rc == HF_ENOMEM ? rc : HF_ECORRUPT, "result",
                       "the turn's stored result cannot be read");
    *ret_committed = found;
    return 0;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

size_t hf_commit_bytes(const struct hf_session_commit *commit,
                       const struct hf_packed *packed)
{
    size_t bytes = packed->bytes + strlen(commit->outcome) + text_bytes(commit->config);
    for (size_t i = 0; i < commit->blob_count; i++)
        bytes += commit->blobs[i].bytes.len;
    for (size_t i = 0; i < commit->spent_count; i++)
        bytes += text_bytes(commit->spent[i].source) + text_bytes(commit->spent[i].model);
    for (size_t i = 0; i < commit->unit_count; i++)
        bytes += hf_work_spec_bytes(&commit->units[i]);
    return bytes;
}

int hf_commit_budget(size_t bytes, size_t rows, struct hf_err *err)
{
    if (bytes > (size_t)HF_MAX_COMMIT_BYTES)
        return hf_fail(err, HF_ETOOBIG, "records",
                       "it has %zu bytes; commit_bytes allows %lld", bytes,
                       (long long)HF_MAX_COMMIT_BYTES);
    if (rows > (size_t)HF_MAX_COMMIT_ROWS)
        return hf_fail(err, HF_ETOOBIG, "records",
                       "it has %zu rows; commit_rows allows %lld", rows,
                       (long long)HF_MAX_COMMIT_ROWS);
    return 0;
}
