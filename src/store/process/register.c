/* Processes: registering one, next to its unit. */
#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/ident.h"
#include "store/process/process.h"

#define KIND "process"

void sql_process_add(struct hf_ops *ops, const struct hf_caller *who, const char *work_id,
                     const struct sql_facts *facts)
{
    hf_ops_call(ops, HF_SQL_PROCESS_INSERT, HF_ANY_COUNT);
    hf_ops_text(ops, work_id);
    hf_ops_text(ops, facts->process.identity_kind);
    hf_ops_text(ops, facts->process.identity_label);
    hf_ops_text(ops, facts->process.definition);
    hf_ops_text(ops, facts->process.labels);
    hf_ops_text(ops, facts->process.originator);
    hf_ops_text(ops, facts->process.cause_occurrence);
    hf_ops_text(ops, facts->process.cause_subscription);
    hf_ops_text(ops, facts->process.env_ref);
    hf_ops_text(ops, facts->process.event_types);
    const char *session = facts->process.wake_session;
    hf_ops_call(ops, HF_SQL_PROCESS_WAKES, HF_ANY_COUNT);
    hf_ops_text(ops, work_id);
    hf_ops_text(ops, session ? session : "");
    for (size_t i = 0; i < facts->observer_count; i++) {
        hf_ops_call(ops, HF_SQL_PROCESS_GRANTED, HF_ANY_COUNT);
        hf_ops_text(ops, work_id);
        hf_ops_text(ops, facts->observers[i]);
    }
    size_t note = sql_note_add(ops, who,
                               &(struct sql_note){ .work_id = work_id,
                                                   .type = "process_registered",
                                                   .payload = facts->note });
    if (ops->state == 0)
        ops->batch.calls[note].expect = HF_ANY_COUNT; /* none where no unit was made */
}

int sql_facts_fill(struct hf_arena *arena, struct sql_facts *facts, struct hf_err *err)
{
    facts->process.observers = hf_texts_json(arena, facts->observers,
                                             facts->observer_count);
    facts->note = facts->process.observers ? hf_process_facts(arena, &facts->process)
                                           : NULL;
    return facts->note ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* A registration on its way. */
struct registration {
    struct sql_store *store;
    const struct hf_caller *who;
    const struct hf_process_spec *request;
    struct sql_facts facts;
};

static int add_facts(void *user, struct hf_ops *ops, const char *work_id,
                     struct hf_err *err)
{
    const struct registration *e = user;
    const struct hf_claim *claim = e->request->claim;
    sql_process_add(ops, e->who, work_id, &e->facts);
    return claim ? sql_claim_add(e->store, e->who, claim, work_id, ops, err) : 0;
}

static int hash_facts(const struct registration *e, uint8_t ret_hash[HF_DIGEST_BYTES])
{
    struct hf_digest digest;
    hf_digest_begin(&digest, "process.register", 1);
    hf_digest_text(&digest, e->facts.note);
    return hf_digest_end(&digest, ret_hash);
}

static int fill_facts(struct registration *e, struct hf_arena *arena, struct hf_err *err)
{
    const struct hf_process_spec *request = e->request;
    e->facts = (struct sql_facts){
        .process = { .identity_kind = request->identity_kind,
                     .identity_label = request->identity_label,
                     .definition = request->definition,
                     .labels = request->labels,
                     .originator = request->originator,
                     .wake_session = request->wake_session,
                     .cause_occurrence = request->cause_occurrence,
                     .cause_subscription = request->cause_subscription,
                     .env_ref = request->env_ref },
        .observers = request->observers,
        .observer_count = request->observer_count,
    };
    if (request->event_type_count > 0) {
        e->facts.process.event_types = hf_texts_json(arena, request->event_types,
                                                     request->event_type_count);
        if (!e->facts.process.event_types)
            return hf_fail_plain(err, HF_ENOMEM);
    }
    return sql_facts_fill(arena, &e->facts, err);
}

int sql_process_register(struct hf_store *handle, const struct hf_caller *who,
                         const struct hf_process_spec *request, struct hf_answer *answer,
                         struct hf_err *err)
{
    struct registration e = { .store = sql_store_of(handle),
                              .who = who,
                              .request = request };
    struct hf_arena arena;
    uint8_t hash[HF_DIGEST_BYTES];
    struct sql_beside beside = { .add = add_facts, .user = &e, .hash = hash };
    struct hf_work_spec work = *request->work;
    if (!work.kind)
        work.kind = KIND;
    hf_arena_init(&arena, handle->alloc);
    int rc = fill_facts(&e, &arena, err);
    if (rc == 0 && hash_facts(&e, hash))
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = sql_create_with(handle, who, &work, &beside, answer, err);
    hf_arena_fini(&arena);
    return rc;
}
