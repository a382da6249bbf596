/* Subscriptions, and occurrences that are emitted to them, again and again until an actor
 * knows that they were. An occurrence starts each target once, all of them at one moment,
 * and every emission of it tells the same. */

#include "sim/inside.h"

static const char *const keys[SIM_SUBSCRIPTIONS] = { "first", "second", "third" };

bool sim_has_triggers(const struct hf_sim *sim)
{
    return (sim->workloads & (1u << HF_SIM_OF_TRIGGER)) &&
           sim->handles[0]->methods->triggers;
}

static struct hf_subscription_spec definition(int i)
{
    struct hf_subscription_spec new = { .size = sizeof(new),
                                        .source_type = "sim",
                                        .source_key = "door",
                                        .priority = -1,
                                        .max_attempts = 5 };
    new.key = keys[i];
    new.kind = i == 1 ? "expire" : "plain";
    new.disposition = i == 1 ? HF_DISPOSITION_EXPIRE : HF_DISPOSITION_RERUNNABLE;
    new.payload_template = i == 2 ? "{\"who\":{\"$event\":\"n\"}}" : NULL;
    return new;
}

int sim_triggers_start(struct hf_sim *sim, struct hf_err *err)
{
    int rc = 0;
    if (!sim_has_triggers(sim))
        return 0;
    sim->occurrence_count = 1 + sim_roll(&sim->dice, SIM_OCCURRENCES);
    sim->turning = sim_one_in(&sim->dice, 2);
    for (int i = 0; rc == 0 && i < SIM_SUBSCRIPTIONS; i++) {
        struct hf_subscriptions *made = NULL;
        struct hf_subscription_spec new = definition(i);
        rc = hf_trigger_subscribe(sim->handles[0], NULL, &new, &made, err);
        if (rc == 0)
            hf_subscriptions_free(made);
    }
    return rc;
}

/* ---- calls ----------------------------------------------------------------------- */

/* An emission delivers by each subscription as it is when the emission is written: a change
 * that was made before, also while the emission was under way, is in force. A repeat tells of
 * the past. */
static void judge_revisions(struct hf_sim *sim, const struct sim_op *op,
                            const struct hf_emission *emission)
{
    for (size_t i = 0; i < hf_emission_count(emission); i++) {
        const struct hf_delivery *d = hf_emission_at(emission, i);
        for (int k = 0; k < SIM_SUBSCRIPTIONS; k++) {
            if (sim_same(d->subscription_key, keys[k]) && d->revision < sim->revisions[k])
                sim_violate(sim,
                            "occurrence o%d was delivered by revision %lld of %s, after "
                            "revision %lld",
                            op->key, (long long)d->revision, keys[k],
                            (long long)sim->revisions[k]);
        }
    }
}

int sim_emit_call(struct hf_sim *sim, struct hf_store *store, const struct sim_op *op,
                  struct sim_answer *ret_answer)
{
    struct hf_occurrence_spec new = { .size = sizeof(new),
                                      .source_type = "sim",
                                      .source_key = "door" };
    struct hf_emission *emission = NULL;
    char key[SIM_NAME];
    char payload[SIM_NAME];
    sim_format(key, sizeof(key), "o%d", op->key);
    sim_format(payload, sizeof(payload), "{\"n\":%d}", op->key);
    new.idempotency_key = key;
    new.payload = payload;
    int rc = hf_trigger_emit(store, NULL, &new, &emission, NULL);
    if (rc)
        return rc;
    if (hf_emission_created(emission))
        judge_revisions(sim, op, emission);
    size_t count = hf_emission_count(emission);
    ret_answer->count = count < 4 ? count : 4;
    ret_answer->occurrence = sim_text_hash(hf_emission_occurrence(emission), NULL);
    for (size_t i = 0; i < ret_answer->count; i++) {
        struct sim_told *told = &ret_answer->items[i];
        *told = (struct sim_told){ .created = hf_emission_created(emission), .unit = -1 };
        sim_copy(told->id, sizeof(told->id), hf_emission_at(emission, i)->work_id);
    }
    ret_answer->created = hf_emission_created(emission);
    hf_emission_free(emission);
    return 0;
}

int sim_subscription_call(struct hf_sim *sim, struct hf_store *store,
                          const struct sim_op *op)
{
    struct hf_subscriptions *changed = NULL;
    struct hf_trigger_change change = { .size = sizeof(change) };
    struct hf_caller who = { .size = sizeof(who), .actor_kind = "human" };
    change.verb = op->limit ? HF_TRIGGER_ENABLE : HF_TRIGGER_DISABLE;
    change.key = keys[op->key];
    who.actor = "operator";
    who.operation_id = op->name;
    int rc = hf_trigger_change(store, &who, &change, &changed, NULL);
    if (rc)
        return rc;
    int64_t revision = hf_subscriptions_at(changed, 0)->revision;
    if (revision > sim->revisions[op->key])
        sim->revisions[op->key] = revision;
    hf_subscriptions_free(changed);
    return 0;
}

/* An operator switches a subscription while an emission is under way. */
void sim_turn_subscription(struct hf_sim *sim)
{
    struct sim_op op = sim_request(sim, sim->current, SIM_OP_SUBSCRIPTION);
    struct sim_answer answer;
    op.key = (int)sim_roll(&sim->dice, SIM_SUBSCRIPTIONS);
    op.limit = (int)sim_roll(&sim->dice, 2);
    sim_format(op.name, sizeof(op.name), "turn-%d-%d", sim->current,
               sim->actors[sim->current].nonces++);
    sim_execute(sim, &op, &answer);
}

/* ---- judging --------------------------------------------------------------------- */

static bool is_among(const struct sim_occurrence *o, const char *id)
{
    for (size_t i = 0; i < o->count && i < SIM_SUBSCRIPTIONS; i++) {
        if (sim_same(o->ids[i], id))
            return true;
    }
    return false;
}

static void judge_again(struct hf_sim *sim, const struct sim_op *op,
                        const struct sim_occurrence *o, const struct sim_answer *answer)
{
    bool prunes = (sim->may & (1u << HF_SIM_PRUNE)) != 0;
    sim_mark(sim, HF_SIM_MARK_EMIT_REPEATED);
    if (answer->created)
        sim_violate(sim, "occurrence o%d was made a second time", op->key);
    if (answer->occurrence != o->hash)
        sim_violate(sim, "occurrence o%d has another id than before", op->key);
    if (answer->count > o->count || (answer->count < o->count && !prunes))
        sim_violate(sim, "occurrence o%d had %zu deliveries, and has %zu", op->key,
                    o->count, answer->count);
    for (size_t i = 0; i < answer->count; i++) {
        if (!is_among(o, answer->items[i].id))
            sim_violate(sim, "occurrence o%d: row %s was not told of at first", op->key,
                        answer->items[i].id);
    }
}

/* What was told of an occurrence is so from then on. */
void sim_emit_answer(struct hf_sim *sim, const struct sim_op *op,
                     const struct sim_answer *answer)
{
    struct sim_occurrence *o = &sim->occurrences[op->key];
    if (o->hash) {
        judge_again(sim, op, o, answer);
        return;
    }
    o->hash = answer->occurrence;
    o->count = answer->count;
    if (answer->count != SIM_SUBSCRIPTIONS && !sim->turning &&
        !(sim->may & (1u << HF_SIM_PRUNE)))
        sim_violate(sim, "occurrence o%d reached %zu of %d subscribers", op->key,
                    answer->count, SIM_SUBSCRIPTIONS);
    for (size_t i = 0; i < answer->count && i < SIM_SUBSCRIPTIONS; i++) {
        sim_copy(o->ids[i], SIM_ID, answer->items[i].id);
        struct sim_shadow *s = answer->created ? sim_shadow_add(sim, answer->items[i].id)
                                               : NULL;
        if (s)
            s->told_there = true;
    }
    if (answer->count > 1)
        sim_mark(sim, HF_SIM_MARK_FANNED_OUT);
}

/* Of each occurrence that an actor was told of the units are there, and no others. */
void sim_triggers_judge(struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->occurrence_count; i++) {
        const struct sim_occurrence *o = &sim->occurrences[i];
        size_t rows = 0;
        for (size_t k = 0; k < sim->shadow_count; k++)
            rows += o->hash && sim->shadows[k].occurrence == o->hash;
        bool may_differ = sim->shadow_count == SIM_SHADOWS ||
                          (sim->may & (1u << HF_SIM_PRUNE));
        if (rows != o->count && !may_differ)
            sim_violate(sim, "occurrence o%zu was told to start %zu units, and %zu are",
                        i, o->count, rows);
    }
}

bool sim_triggers_ended(const struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->occurrence_count; i++) {
        if (!sim->occurrences[i].acked)
            return false;
    }
    return true;
}
