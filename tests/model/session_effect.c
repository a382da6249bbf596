/* The effect journal of turns, and blobs. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json_get.h"
#include "model/inside.h"

static struct hf_span copy(struct model_disk *disk, struct hf_span bytes)
{
    const char *at = hf_arena_copy(&disk->arena, bytes.at, bytes.len);
    if (!at)
        abort();
    return (struct hf_span){ at, bytes.len };
}

/* ---- blobs -------------------------------------------------------------------------------- */

static const struct m_blob *blob_of(const struct model_disk *disk, const uint8_t hash[32])
{
    for (size_t i = 0; i < disk->blobs.count; i++) {
        if (memcmp(disk->blobs.at[i].hash, hash, 32) == 0)
            return &disk->blobs.at[i];
    }
    return NULL;
}

bool m_blob_there(const struct model_disk *disk, const uint8_t hash[32])
{
    return blob_of(disk, hash) != NULL;
}

void m_blob_add(struct model_disk *disk, const uint8_t hash[32], struct hf_span bytes)
{
    if (blob_of(disk, hash))
        return;
    struct m_blob *blob = m_add(disk->blobs);
    memcpy(blob->hash, hash, sizeof(blob->hash));
    blob->bytes = copy(disk, bytes);
}

int m_session_blob_put(struct hf_store *store, const uint8_t hash[32],
                       struct hf_span bytes, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    m_blob_add(call.disk, hash, bytes);
    return 0;
}

int m_session_blob(struct hf_store *store, const uint8_t hash[32],
                   struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    const struct m_blob *blob = blob_of(call.disk, hash);
    if (!blob)
        return hf_fail(err, HF_EBLOB, "hash", "not stored");
    answer->blob = blob->bytes;
    return 0;
}

/* ---- a step's effects --------------------------------------------------------------------- */

static struct m_effect *effect_of(const struct m_turn *turn, const char *key)
{
    for (size_t i = 0; i < turn->effects.count; i++) {
        if (m_same(turn->effects.at[i].entry.key, key))
            return &turn->effects.at[i];
    }
    return NULL;
}

/* Outcomes come before intents: what is settled was begun by an earlier step. No key may come
 * twice. */
int m_effects_check(const struct m_call *call, const struct m_turn *turn,
                    const struct hf_session_step *step)
{
    bool fits = true;
    for (size_t i = 0; i < step->settled_count; i++) {
        const struct m_effect *effect = effect_of(turn, step->settled[i].key);
        fits = fits && effect && effect->entry.status == HF_ENTRY_STARTED;
        for (size_t j = 0; j < i; j++)
            fits = fits && !m_same(step->settled[i].key, step->settled[j].key);
    }
    for (size_t i = 0; i < step->begun_count; i++) {
        fits = fits && !effect_of(turn, step->begun[i].key);
        for (size_t j = 0; j < i; j++)
            fits = fits && !m_same(step->begun[i].key, step->begun[j].key);
    }
    return fits ? 0 : hf_fail(call->err, HF_EEFFECT, "effects", "does not fit");
}

void m_effects_store(struct m_call *call, struct m_turn *turn,
                     const struct hf_session_step *step, int64_t fence)
{
    struct model_disk *disk = call->disk;
    for (size_t i = 0; i < step->settled_count; i++) {
        struct m_effect *effect = effect_of(turn, step->settled[i].key);
        effect->entry.status = step->settled[i].status;
        effect->entry.outcome = copy(disk, step->settled[i].outcome);
        effect->entry.due_at = step->settled[i].due_at;
        effect->settled_at = call->now;
        effect->spent = step->settled[i].usage != NULL;
        if (effect->spent)
            effect->usage = *step->settled[i].usage;
    }
    for (size_t i = 0; i < step->begun_count; i++) {
        const struct hf_effect_entry *begun = &step->begun[i];
        struct m_effect *effect = m_add(turn->effects);
        *effect = (struct m_effect){
            .entry = { .key = m_text(disk, begun->key),
                       .kind = m_text(disk, begun->kind),
                       .recovery = begun->recovery,
                       .attempt = begun->attempt,
                       .envelope = copy(disk, begun->envelope),
                       .fence = fence },
            .started_at = call->now,
        };
    }
}

static bool asks(const struct m_effect *effect)
{
    return effect->entry.recovery == HF_RECOVERY_ASK ||
           effect->entry.recovery == HF_RECOVERY_PROBE;
}

int64_t m_effects_leave(struct m_call *call, struct m_turn *turn)
{
    static const char left[] = "{\"reason\":\"the turn was set aside, and began anew\"}";
    int64_t last = 0;
    for (size_t i = 0; i < turn->effects.count; i++) {
        struct m_effect *effect = &turn->effects.at[i];
        int64_t number = strtoll(effect->entry.key, NULL, 10);
        last = number > last ? number : last;
        if (effect->entry.status != HF_ENTRY_STARTED)
            continue;
        effect->entry.status = asks(effect) ? HF_ENTRY_UNKNOWN : HF_ENTRY_FAILED;
        effect->entry.outcome = (struct hf_span){ left, sizeof(left) - 1 };
        effect->settled_at = call->now;
    }
    return last;
}

const char *m_effect_model(struct m_call *call, const struct m_effect *effect)
{
    struct json_t *envelope = NULL;
    if (hf_json_parse(effect->entry.envelope, 1 << 20, "envelope", &envelope, NULL))
        abort();
    const char *model = hf_json_as_text(hf_json_member(envelope, "model"));
    model = m_text(call->disk, model ? model : "");
    hf_json_free(envelope);
    return model;
}

bool m_effects_performed(const struct m_turn *turn)
{
    bool any = false;
    for (size_t i = 0; i < turn->effects.count; i++)
        any = any || (!m_same(turn->effects.at[i].entry.kind, "llm_call") &&
                      turn->effects.at[i].entry.recovery != HF_RECOVERY_SAFE);
    return any;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int by_key(const void *a, const void *b)
{
    const struct hf_effect_entry *x = a, *y = b;
    return strcmp(x->key, y->key);
}

void m_effects_show(struct hf_session_answer *answer, const struct m_turn *turn,
                    struct hf_session_turn *out)
{
    struct hf_effect_entry *entries = m_answer_memory(answer, turn->effects.count *
                                                                  sizeof(*entries));
    for (size_t i = 0; i < turn->effects.count; i++) {
        const struct hf_effect_entry *entry = &turn->effects.at[i].entry;
        if (entry->status == HF_ENTRY_STARTED || entry->due_at)
            entries[out->entry_count++] = *entry;
    }
    if (out->entry_count)
        qsort(entries, out->entry_count, sizeof(*entries), by_key);
    out->entries = entries;
}

static bool is_last(const struct model_disk *disk, size_t at)
{
    for (size_t i = at + 1; i < disk->turns.count; i++) {
        if (m_same(disk->turns.at[i].session_id, disk->turns.at[at].session_id))
            return false;
    }
    return true;
}

static struct hf_session_effect shown(const struct m_turn *turn,
                                      const struct m_effect *effect)
{
    return (struct hf_session_effect){
        .session_id = turn->session_id,
        .turn_id = turn->turn_id,
        .key = effect->entry.key,
        .kind = effect->entry.kind,
        .recovery = hf_recovery_name(effect->entry.recovery),
        .attempt = effect->entry.attempt,
        .started_at = effect->started_at,
        .settled_at = effect->settled_at,
        .outcome = effect->entry.outcome.at,
    };
}

static int by_effect_key(const void *a, const void *b)
{
    const struct hf_session_effect *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* The unknown effects of a turn, in order, behind `after` (NULL: all); their number. */
static size_t unknown_of(const struct m_turn *turn, const char *after,
                         struct hf_session_effect *all)
{
    size_t count = 0;
    for (size_t i = 0; i < turn->effects.count; i++) {
        const struct m_effect *effect = &turn->effects.at[i];
        if (effect->entry.status == HF_ENTRY_UNKNOWN &&
            (!after || strcmp(effect->entry.key, after) > 0))
            all[count++] = shown(turn, effect);
    }
    if (count)
        qsort(all, count, sizeof(*all), by_effect_key);
    return count;
}

static bool is_shown(const struct m_call *call, size_t at)
{
    const struct m_session *s = m_session_of(call->disk,
                                             call->disk->turns.at[at].session_id);
    const char *tenant = call->who->tenant;
    return is_last(call->disk, at) && !s->s.deleted_at &&
           (!tenant[0] || m_same(tenant, s->s.tenant));
}

/* A cursor is "TURN KEY" with the turn's place, from 1. */
int m_session_unknown(struct hf_store *store, const struct hf_caller *who,
                      const char *after, size_t limit, struct hf_session_answer *answer,
                      struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    char *rest = NULL;
    size_t from = after ? (size_t)strtoull(after, &rest, 10) : 1;
    if (after && (from == 0 || *rest != ' '))
        return hf_fail(err, HF_EINVAL, "after", "not a cursor");
    struct hf_session_effect *all = m_answer_memory(answer, limit * sizeof(*all));
    for (size_t i = from; i <= call.disk->turns.count; i++) {
        const struct m_turn *turn = &call.disk->turns.at[i - 1];
        struct hf_session_effect *some = m_answer_memory(answer, turn->effects.count *
                                                                     sizeof(*some));
        size_t count = is_shown(&call, i - 1)
                           ? unknown_of(turn, after && i == from ? rest + 1 : NULL, some)
                           : 0;
        for (size_t k = 0; k < count && answer->effect_count < limit; k++) {
            all[answer->effect_count++] = some[k];
            if (answer->effect_count == limit)
                answer->next = m_say(call.disk, "%zu %s", i, some[k].key);
        }
    }
    answer->effects = all;
    return 0;
}
