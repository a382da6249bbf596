/* Reading sessions. The model's histories are whole by construction, so no chain is checked. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "model/inside.h"

void *m_answer_memory(struct hf_session_answer *answer, size_t bytes)
{
    void *memory = hf_session_answer_memory(answer, bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

static struct hf_session shown(const struct m_call *call, const struct m_session *s)
{
    struct hf_session session = s->s;
    session.owner = s->owner;
    session.owner_incarnation = s->incarnation;
    session.lease_fence = s->fence;
    session.lease_ttl_ms = s->ttl_ms;
    session.lease_expires_at = s->expires_at;
    session.lease_remaining_ms = s->nonce ? s->expires_at - call->lease_now : 0;
    return session;
}

void m_session_show(struct m_call *call, struct hf_session_answer *answer,
                    const struct m_session *s)
{
    struct hf_session *one = m_answer_memory(answer, sizeof(*one));
    *one = shown(call, s);
    answer->sessions = one;
    answer->session_count = 1;
}

/* ---- inputs -------------------------------------------------------------------------------- */

static struct hf_session_input input_of(const struct m_input *input,
                                        const struct m_row *row)
{
    return (struct hf_session_input){ .kind = HF_INPUT_MESSAGE,
                                      .work_id = row->w.work_id,
                                      .status = row->w.status,
                                      .gate = row->w.gate,
                                      .payload = row->w.payload,
                                      .turn_id = input->turn_id,
                                      .attempt_count = row->w.attempt_count,
                                      .crashes = row->crashes,
                                      .created_at = row->w.created_at };
}

int m_session_inputs(struct hf_store *store, const char *session_id, const char *after,
                     size_t limit, struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    int rc = 0, code = 0;
    const struct m_session *s = m_session_find(&call, session_id, &rc);
    const struct m_row *last = after ? m_find(call.disk, after, &code) : NULL;
    if (!s)
        return rc;
    if (after && (!last || !m_same(last->w.session_id, session_id)))
        return hf_fail(err, HF_EINVAL, "after", "no such input");
    struct hf_session_input *all = m_answer_memory(answer, call.disk->inputs.count *
                                                               sizeof(*all));
    for (size_t i = 0; i < call.disk->inputs.count && answer->input_count < limit; i++) {
        const struct m_input *input = &call.disk->inputs.at[i];
        const struct m_row *row = m_row_by_seq(call.disk, input->seq);
        if (row && m_same(input->session_id, session_id) &&
            (!last || input->seq > last->seq))
            all[answer->input_count++] = input_of(input, row);
    }
    answer->inputs = all;
    return 0;
}

/* ---- the open turn -------------------------------------------------------------------------- */

struct hf_session_turn *m_turn_show(struct m_call *call, struct hf_session_answer *answer,
                                    const struct m_session *s)
{
    const struct m_turn *turn = m_turn_open(call->disk, s);
    if (!turn)
        return NULL;
    struct hf_session_turn *one = m_answer_memory(answer, sizeof(*one));
    struct hf_session_input *inputs = m_answer_memory(answer, sizeof(*inputs));
    const struct m_row *row = m_row_by_seq(call->disk, turn->seq);
    const struct m_input input = { s->s.session_id, turn->seq, turn->turn_id };
    *one = (struct hf_session_turn){ .turn_id = turn->turn_id,
                                     .base_revision = turn->base_revision,
                                     .step = turn->step,
                                     .node_count = turn->node_count,
                                     .effects_past = turn->effects_past,
                                     .save = turn->save,
                                     .started_at = turn->started_at,
                                     .inputs = inputs };
    memcpy(one->chain, turn->chain, sizeof(one->chain));
    if (row) {
        inputs[0] = input_of(&input, row);
        one->input_count = 1;
    }
    m_waits_show(call, answer, one);
    answer->turn = one;
    return one;
}

/* ---- histories ------------------------------------------------------------------------------ */

static int show_node(struct hf_session_answer *answer, const struct m_node *node,
                     int64_t ordinal, bool provisional, struct hf_node *out,
                     struct hf_err *err)
{
    *out = (struct hf_node){ .ordinal = ordinal,
                             .turn_id = node->turn_id,
                             .provisional = provisional,
                             .json = node->json };
    memcpy(out->chain, node->chain, sizeof(out->chain));
    return hf_session_answer_record(answer, node->json, &out->record, err);
}

static int show_stored(struct hf_session_answer *answer, const struct m_session *s,
                       const struct m_turn *turn, struct hf_session_turn *out,
                       struct hf_err *err)
{
    int64_t ordinal = s->s.record_count;
    struct hf_node *nodes = m_answer_memory(answer, turn->stored.count * sizeof(*nodes));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < turn->stored.count; i++) {
        const struct m_node *node = &turn->stored.at[i];
        rc = show_node(answer, node, node->transient ? -1 : ordinal, true, &nodes[i],
                       err);
        ordinal += !node->transient;
    }
    out->nodes = nodes;
    out->stored_count = turn->stored.count;
    return rc;
}

static int by_name(const void *a, const void *b)
{
    const struct hf_session_usage *x = a, *y = b;
    int order = strcmp(x->source, y->source);
    return order ? order : strcmp(x->model, y->model);
}

/* True: a counter does not have the room. */
static bool add_up(struct hf_usage *sum, const struct hf_usage *more)
{
    return __builtin_add_overflow(sum->input, more->input, &sum->input) ||
           __builtin_add_overflow(sum->output, more->output, &sum->output) ||
           __builtin_add_overflow(sum->cache_read, more->cache_read, &sum->cache_read) ||
           __builtin_add_overflow(sum->cache_write, more->cache_write,
                                  &sum->cache_write) ||
           __builtin_add_overflow(sum->reasoning, more->reasoning, &sum->reasoning);
}

/* The sums so far. */
struct sums {
    struct hf_session_usage *all;
    size_t count;
    bool too_large;
};

static void add_spent(struct sums *sums, const struct hf_session_usage *one)
{
    size_t k = 0;
    while (k < sums->count && (!m_same(sums->all[k].source, one->source) ||
                               !m_same(sums->all[k].model, one->model)))
        k++;
    if (k == sums->count)
        sums->all[sums->count++] = (struct hf_session_usage){ .source = one->source,
                                                              .model = one->model };
    sums->too_large = add_up(&sums->all[k].usage, &one->usage) || sums->too_large;
}

/* Of a turn that is not committed, and of one that began anew what came before. */
static void add_effects(struct m_call *call, struct sums *sums, const struct m_turn *turn)
{
    for (size_t i = 0; i < turn->effects.count; i++) {
        const struct m_effect *effect = &turn->effects.at[i];
        bool counted = turn->committed &&
                       strtoll(effect->entry.key, NULL, 10) > turn->effects_past;
        if (effect->spent && !counted)
            add_spent(sums, &(struct hf_session_usage){
                                "model", m_effect_model(call, effect), effect->usage });
    }
}

static int show_usage(struct m_call *call, struct hf_session_answer *answer,
                      const char *session_id)
{
    const struct model_disk *disk = call->disk;
    size_t most = disk->spent.count;
    for (size_t i = 0; i < disk->turns.count; i++)
        most += disk->turns.at[i].effects.count;
    struct sums sums = { .all = m_answer_memory(answer, most * sizeof(*sums.all)) };
    for (size_t i = 0; i < disk->spent.count; i++) {
        const struct m_spent *spent = &disk->spent.at[i];
        if (m_same(spent->session_id, session_id))
            add_spent(&sums,
                      &(struct hf_session_usage){ spent->spent.source, spent->spent.model,
                                                  spent->spent.usage });
    }
    for (size_t i = 0; i < disk->turns.count; i++)
        if (m_same(disk->turns.at[i].session_id, session_id))
            add_effects(call, &sums, &disk->turns.at[i]);
    if (sums.too_large)
        return hf_fail(call->err, HF_EOVERFLOW, "usage", "a sum is too large");
    if (sums.count)
        qsort(sums.all, sums.count, sizeof(*sums.all), by_name);
    answer->usage = sums.all;
    answer->usage_count = sums.count;
    return 0;
}

static int show_page(struct hf_session_answer *answer, const struct m_session *s,
                     const struct hf_session_load *request, struct hf_err *err)
{
    int64_t end = request->from_ordinal ? request->record_count : s->s.record_count;
    int64_t stop = request->from_ordinal + (int64_t)request->limit;
    int rc = 0;
    stop = stop < end ? stop : end;
    struct hf_node *nodes = m_answer_memory(
        answer, (size_t)(stop - request->from_ordinal) * sizeof(*nodes));
    for (int64_t at = request->from_ordinal; rc == 0 && at < stop; at++)
        rc = show_node(answer, &s->nodes.at[at], at, false, &nodes[answer->node_count++],
                       err);
    answer->nodes = nodes;
    answer->next_ordinal = stop < end ? stop : 0;
    return rc;
}

int m_session_page(struct m_call *call, const struct m_session *s,
                   const struct hf_session_load *request,
                   struct hf_session_answer *answer)
{
    int rc = show_page(answer, s, request, call->err);
    struct hf_session_turn *turn = rc == 0 ? m_turn_show(call, answer, s) : NULL;
    if (!turn)
        return rc;
    m_effects_show(answer, m_turn_open(call->disk, s), turn);
    return show_stored(answer, s, m_turn_open(call->disk, s), turn, call->err);
}

int m_session_load(struct hf_store *store, const struct hf_session_load *request,
                   struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    int rc = 0;
    const struct m_session *s = m_session_find(&call, request->session_id, &rc);
    if (!s)
        return rc;
    if (request->from_ordinal && (s->s.head_revision < request->head_revision ||
                                  s->s.record_count < request->record_count))
        return hf_fail(err, HF_EHEADMOVED, "head_revision", "no such head");
    m_session_show(&call, answer, s);
    if (request->from_ordinal)
        return show_page(answer, s, request, err);
    rc = m_session_page(&call, s, request, answer);
    return rc ? rc : show_usage(&call, answer, request->session_id);
}

/* The node of an ordinal: committed, or of the open turn. */
static const struct m_node *node_at(struct m_call *call, const struct m_session *s,
                                    int64_t ordinal)
{
    const struct m_turn *turn = m_turn_open(call->disk, s);
    int64_t at = s->s.record_count;
    if (ordinal < at)
        return &s->nodes.at[ordinal];
    for (size_t i = 0; turn && i < turn->stored.count; i++) {
        const struct m_node *node = &turn->stored.at[i];
        if (!node->transient && at++ == ordinal)
            return node;
    }
    return NULL;
}

int m_session_node(struct hf_store *store, const char *session_id, int64_t ordinal,
                   struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    int rc = 0;
    const struct m_session *s = m_session_find(&call, session_id, &rc);
    if (!s)
        return rc;
    const struct m_node *node = node_at(&call, s, ordinal);
    if (!node)
        return hf_fail(err, HF_ENOTFOUND, "ordinal", "no such node");
    struct hf_node *one = m_answer_memory(answer, sizeof(*one));
    m_session_show(&call, answer, s);
    answer->nodes = one;
    answer->node_count = 1;
    return show_node(answer, node, ordinal, ordinal >= s->s.record_count, one, err);
}

int m_session_head(struct hf_store *store, const char *session_id,
                   struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, NULL, err);
    int rc = 0;
    const struct m_session *s = m_session_find(&call, session_id, &rc);
    if (!s)
        return rc;
    struct hf_session *shown = m_answer_memory(answer, sizeof(*shown));
    *shown = (struct hf_session){ .session_id = s->s.session_id,
                                  .agent = s->s.agent,
                                  .turn_id = s->s.turn_id,
                                  .ready_at = s->s.ready_at,
                                  .owner = s->owner,
                                  .head_revision = s->s.head_revision,
                                  .record_count = s->s.record_count,
                                  .deleted_at = s->s.deleted_at };
    memcpy(shown->chain, s->s.chain, sizeof(shown->chain));
    answer->sessions = shown;
    answer->session_count = 1;
    return 0;
}

static bool listed(const struct m_call *call, const struct hf_session_filter *filter,
                   const struct m_session *s)
{
    const char *tenant = call->who->tenant;
    return (!tenant[0] || m_same(tenant, s->s.tenant)) &&
           (!filter->agent || m_same(filter->agent, s->s.agent)) &&
           (!filter->parent_id || m_same(filter->parent_id, s->s.parent_id)) &&
           (!filter->open || s->s.turn_id);
}

int m_session_list(struct hf_store *store, const struct hf_caller *who,
                   const struct hf_session_filter *filter,
                   struct hf_session_answer *answer, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    size_t limit = filter->limit, count = call.disk->sessions.count;
    int64_t i =
        0; /* how many were looked at; their number from the other end for `newest` */
    int rc = filter->after ? hf_parse_i64(filter->after, 0, INT64_MAX, "after", &i, err)
                           : 0;
    struct hf_session *all = m_answer_memory(answer, limit * sizeof(*all));
    if (filter->newest && filter->after)
        i = (int64_t)count - i;
    for (; rc == 0 && (size_t)i < count; i++) {
        size_t at = filter->newest ? count - 1 - (size_t)i : (size_t)i;
        const struct m_session *s = &call.disk->sessions.at[at];
        if (!listed(&call, filter, s))
            continue;
        all[answer->session_count++] = shown(&call, s);
        if (answer->session_count == limit) {
            answer->next = m_say(call.disk, "%lld",
                                 (long long)(filter->newest ? at : at + 1));
            break;
        }
    }
    answer->sessions = all;
    return rc;
}
