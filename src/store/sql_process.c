/* Processes: the facts that a unit has beside its row. */
#include <holdfast/limits.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "store/sqlstore.h"

#define KIND "process"

/* A registration on its way. */
struct enrolling {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_process_new *request;
    const char *event_types; /* JSON array, NULL for any */
    const char *note;        /* the event's payload: every fact */
};

static const char *types_json(struct hf_arena *arena,
                              const struct hf_process_new *request)
{
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, 65536);
    hf_json_begin(&json, &buf);
    hf_json_array(&json);
    for (size_t i = 0; i < request->event_type_count; i++)
        hf_json_str(&json, request->event_types[i]);
    hf_json_end(&json);
    return hf_buf_keep(&buf, arena);
}

static void opt_raw(struct hf_json *json, const char *key, const char *text)
{
    if (text)
        hf_json_put_raw(json, key, text);
}

/* Every fact, under the names of its columns: the base that a process's record is folded
 * from. */
static const char *facts_json(struct hf_arena *arena, const struct enrolling *e)
{
    const struct hf_process_new *request = e->request;
    struct hf_buf buf;
    struct hf_json json;
    hf_buf_init(&buf, arena->alloc, 4 * (size_t)HF_MAX_EVENT_BYTES);
    hf_json_begin(&json, &buf);
    hf_json_object(&json);
    hf_json_opt_str(&json, "cause_occurrence", request->cause_occurrence);
    hf_json_opt_str(&json, "cause_subscription", request->cause_subscription);
    opt_raw(&json, "definition", request->definition);
    hf_json_opt_str(&json, "env_ref", request->env_ref);
    opt_raw(&json, "event_types", e->event_types);
    hf_json_put_str(&json, "identity_kind", request->identity_kind);
    hf_json_opt_str(&json, "identity_label", request->identity_label);
    opt_raw(&json, "labels", request->labels);
    hf_json_put_str(&json, "originator", request->originator);
    hf_json_opt_str(&json, "wake_session", request->wake_session);
    hf_json_end(&json);
    return hf_buf_keep(&buf, arena);
}

static int add_facts(void *user, struct hf_ops *ops, const char *work_id,
                     struct hf_err *err)
{
    const struct enrolling *e = user;
    const struct hf_process_new *request = e->request;
    hf_ops_call(ops, HF_SQL_PROCESS_INSERT, HF_ANY_COUNT);
    hf_ops_text(ops, work_id);
    hf_ops_text(ops, request->identity_kind);
    hf_ops_text(ops, request->identity_label);
    hf_ops_text(ops, request->definition);
    hf_ops_text(ops, request->labels);
    hf_ops_text(ops, request->originator);
    hf_ops_text(ops, request->wake_session);
    hf_ops_text(ops, request->cause_occurrence);
    hf_ops_text(ops, request->cause_subscription);
    hf_ops_text(ops, request->env_ref);
    hf_ops_text(ops, e->event_types);
    size_t note = sql_note_add(ops, e->who,
                               &(struct sql_note){ .work_id = work_id,
                                                   .type = "process_registered",
                                                   .payload = e->note });
    if (ops->state == 0)
        ops->batch.calls[note].expect = HF_ANY_COUNT; /* none where no unit was made */
    return request->claim
               ? sql_claim_add(e->store, e->who, request->claim, work_id, ops, err)
               : 0;
}

static int hash_facts(const struct enrolling *e, uint8_t ret_hash[HF_DIGEST_BYTES])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "process.register", 1);
    hf_digest_text(&digest, e->note);
    return hf_digest_end(&digest, ret_hash);
}

int sql_process_register(struct hf_store *base, const struct hf_caller *who,
                         const struct hf_process_new *request, struct hf_answer *answer,
                         struct hf_err *err)
{
    struct enrolling e = { .store = sql_store_of(base), .who = who, .request = request };
    struct hf_arena arena;
    uint8_t hash[HF_DIGEST_BYTES];
    hf_arena_init(&arena, base->alloc);
    bool typed = request->event_type_count > 0;
    e.event_types = typed ? types_json(&arena, request) : NULL;
    e.note = facts_json(&arena, &e);
    struct sql_beside beside = { .add = add_facts, .user = &e, .hash = hash };
    struct hf_new work = *request->work;
    if (!work.kind)
        work.kind = KIND;
    int rc = (typed && !e.event_types) || !e.note || hash_facts(&e, hash)
                 ? hf_fail_plain(err, HF_ENOMEM)
                 : sql_create_with(base, who, &work, &beside, answer, err);
    hf_arena_fini(&arena);
    return rc;
}
