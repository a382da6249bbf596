/* Reading sessions: heads, histories with their chain checked, inputs, turns.
 *
 * A history is a row of nodes, each a record and the digest of all nodes up to it, the chain; a
 * node whose digest does not follow from the one before is HF_ECORRUPT. The open turn has nodes of
 * its own behind the committed ones, and records that are in no node. A load returns pages of
 * committed nodes, and with the first page those of the open turn. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/session/session.h"

static int not_found(const char *session_id, struct hf_err *err)
{
    return hf_fail(err, HF_ENOTFOUND, "session_id", "there is no session %.100s",
                   session_id);
}

#define HEAD(name) HF_COL_SESSION_HEAD_##name

static int show_head(struct hf_session_answer *answer, const char *session_id,
                     const struct hf_call *found, struct hf_err *err)
{
    struct hf_session *s = hf_session_answer_memory(answer, sizeof *s);
    bool failed = !s;
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    *s = (struct hf_session){
        .session_id = hf_session_answer_copy(
            answer, (struct hf_span){ session_id, strlen(session_id) }),
        .agent = session_copied(answer, hf_out(found, 0, HEAD(AGENT)), &failed),
        .turn_id = session_copied(answer, hf_out(found, 0, HEAD(TURN_ID)), &failed),
        .owner = session_copied(answer, hf_out(found, 0, HEAD(OWNER)), &failed),
        .head_revision = hf_out_i64(found, 0, HEAD(HEAD_REVISION)),
        .record_count = hf_out_i64(found, 0, HEAD(RECORD_COUNT)),
        .ready_at = hf_out_i64(found, 0, HEAD(READY_AT)),
        .deleted_at = hf_out_i64(found, 0, HEAD(DELETED_AT)),
    };
    if (failed || !s->session_id)
        return hf_fail_plain(err, HF_ENOMEM);
    answer->sessions = s;
    answer->session_count = 1;
    return session_chain_read(hf_out(found, 0, HEAD(CHAIN)), s->chain, err);
}

int sql_session_head(struct hf_store *handle, const char *session_id,
                     struct hf_session_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_HEAD, HF_ANY_COUNT);
    hf_ops_text(&ops, session_id);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = not_found(session_id, err);
    if (rc == 0)
        rc = show_head(answer, session_id, hf_ops_result(&ops, 0), err);
    hf_ops_fini(&ops);
    return rc;
}

/* The keys after which a page begins, and with which it ends at the latest. */
static int list_range(struct hf_store *handle, const struct hf_session_filter *filter,
                      int64_t ret_range[2], bool *ret_more, struct hf_err *err)
{
    struct hf_ops ops;
    int64_t after = filter->newest ? INT64_MAX : 0;
    int rc = filter->after
                 ? hf_parse_i64(filter->after, 0, INT64_MAX, "after", &after, err)
                 : 0;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops,
                filter->newest ? HF_SQL_SESSION_WINDOW_NEWEST : HF_SQL_SESSION_WINDOW, 1);
    hf_ops_i64(&ops, after);
    if (rc == 0)
        rc = hf_ops_read(&ops, err);
    if (rc == 0) {
        ret_range[0] = after;
        ret_range[1] = hf_out_i64(hf_ops_result(&ops, 0), 0, HF_COL_SESSION_WINDOW_LAST);
        *ret_more = hf_out_i64(hf_ops_result(&ops, 0), 0, HF_COL_SESSION_WINDOW_MORE);
    }
    hf_ops_fini(&ops);
    return rc;
}

static int list_next(struct hf_session_answer *answer, const struct hf_alloc *alloc,
                     int64_t key, struct hf_err *err)
{
    struct hf_buf next;
    hf_buf_init(&next, alloc, 32);
    hf_buf_i64(&next, key);
    answer->next = hf_session_answer_copy(
        answer, (struct hf_span){ hf_buf_str(&next), next.len });
    hf_buf_fini(&next);
    return answer->next ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

int sql_session_list(struct hf_store *handle, const struct hf_caller *who,
                     const struct hf_session_filter *filter,
                     struct hf_session_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    int64_t range[2] = { 0 };
    bool goes_on = false;
    int rc = list_range(handle, filter, range, &goes_on, err);
    if (rc)
        return rc;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, filter->newest ? HF_SQL_SESSION_LIST_NEWEST : HF_SQL_SESSION_LIST,
                HF_ANY_COUNT);
    hf_ops_i64(&ops, range[0]);
    hf_ops_text(&ops, who->tenant[0] ? who->tenant : NULL);
    hf_ops_text(&ops, filter->agent);
    hf_ops_text(&ops, filter->parent_id);
    hf_ops_i64(&ops, filter->open);
    hf_ops_i64(&ops, (int64_t)filter->limit);
    hf_ops_i64(&ops, range[1]);
    hf_ops_i64(&ops, HF_PAGE_BYTES);
    hf_ops_bytes_max(&ops, (size_t)HF_PAGE_BYTES);
    rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    if (rc == 0)
        rc = session_show(answer, found, found->out_count, err);
    if (rc == 0 && (found->full || found->out_count == filter->limit))
        rc = list_next(
            answer, handle->alloc,
            hf_out_i64(found, found->out_count - 1, HF_COL_SESSION_LIST_SESSION_KEY),
            err);
    else if (rc == 0 && goes_on)
        rc = list_next(answer, handle->alloc, range[1], err);
    hf_ops_fini(&ops);
    return rc;
}

/* A page after an input that is not there would begin at the first one again. */
static int check_after(const struct hf_call *known, const char *session_id,
                       const char *after, struct hf_err *err)
{
    return known->out_count > 0
               ? 0
               : hf_fail(err, HF_EINVAL, "after",
                         "session %.60s has no input %.60s: after takes the work_id of "
                         "one; leave it out to begin at the first",
                         session_id, after);
}

int sql_session_inputs(struct hf_store *handle, const char *session_id, const char *after,
                       size_t limit, struct hf_session_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_GET, HF_ANY_COUNT);
    hf_ops_text(&ops, session_id);
    hf_ops_call(&ops, HF_SQL_SESSION_INPUTS, HF_ANY_COUNT);
    hf_ops_text(&ops, session_id);
    hf_ops_text(&ops, after);
    hf_ops_i64(&ops, (int64_t)limit);
    if (after) {
        hf_ops_call(&ops, HF_SQL_SESSION_INPUT_KNOWN, HF_ANY_COUNT);
        hf_ops_text(&ops, session_id);
        hf_ops_text(&ops, after);
    }
    int rc = hf_ops_read(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = not_found(session_id, err);
    if (rc == 0 && after)
        rc = check_after(hf_ops_result(&ops, 2), session_id, after, err);
    if (rc == 0)
        rc = session_inputs_show(answer, hf_ops_result(&ops, 1), &answer->inputs,
                                 &answer->input_count, err);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- histories ----------------------------------------------------------------------- */

/* Both statements that return nodes have these columns. */
#define NODE(name) HF_COL_SESSION_NODES_##name

/* Records that are shown in order, while the chain is folded. */
struct history {
    struct hf_session_answer *answer;
    const char *session_id;
    int64_t committed; /* ordinals from here on are provisional */
    int64_t ordinal;   /* of the next node */
    uint8_t chain[32]; /* before it */
    struct hf_node *nodes;
    size_t count;
};

static int broken(const struct history *h, struct hf_err *err)
{
    return hf_fail(err, HF_ECORRUPT, "chain",
                   "session %.100s: the chain of its records is broken at ordinal %lld",
                   h->session_id, (long long)h->ordinal);
}

static int show_record(struct history *h, const char *json, size_t len,
                       struct hf_node *node, struct hf_err *err)
{
    node->json = hf_session_answer_copy(h->answer, (struct hf_span){ json, len });
    if (!node->json)
        return hf_fail_plain(err, HF_ENOMEM);
    return hf_session_answer_record(h->answer, node->json, &node->record, err);
}

/* The next node of a result; its digest must follow from the one before. */
static int add_node(struct history *h, const struct hf_call *found, size_t i,
                    struct hf_err *err)
{
    struct hf_node *node = &h->nodes[h->count];
    const struct hf_val *turn = hf_out(found, i, NODE(TURN_ID));
    const struct hf_val *record = hf_out(found, i, NODE(RECORD));
    if (hf_out_i64(found, i, NODE(ORDINAL)) != h->ordinal || record->type != HF_VAL_TEXT)
        return broken(h, err);
    int rc = show_record(h, record->at, record->len, node, err);
    if (rc == 0)
        rc = hf_record_chain(h->chain, node->record, h->chain, err);
    if (rc == 0 &&
        !session_bytes_same(hf_out(found, i, NODE(CHAIN)), h->chain, sizeof h->chain))
        rc = broken(h, err);
    if (rc)
        return rc;
    memcpy(node->chain, h->chain, sizeof node->chain);
    node->ordinal = h->ordinal++;
    node->provisional = node->ordinal >= h->committed;
    node->turn_id = turn->type == HF_VAL_TEXT
                        ? hf_session_answer_copy(h->answer,
                                                 (struct hf_span){ turn->at, turn->len })
                        : "";
    h->count++;
    return node->turn_id ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* Begin at the first row of a result: at ordinal 0, or behind a row that is only the chain's
 * start. Returns the first row to show. */
static int begin_at(struct history *h, const struct hf_call *found, int64_t from,
                    size_t *ret_first, struct hf_err *err)
{
    h->ordinal = from;
    *ret_first = 0;
    if (from == 0)
        return 0;
    const struct hf_val *chain = found->out_count ? hf_out(found, 0, NODE(CHAIN)) : NULL;
    if (!chain || hf_out_i64(found, 0, NODE(ORDINAL)) != from - 1 ||
        chain->type != HF_VAL_BYTES || chain->len != sizeof h->chain)
        return broken(h, err);
    memcpy(h->chain, chain->at, sizeof h->chain);
    *ret_first = 1;
    return 0;
}

static int make_room(struct history *h, size_t count, struct hf_err *err)
{
    h->nodes = hf_session_answer_memory(h->answer, count * sizeof *h->nodes);
    h->count = 0;
    return h->nodes ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

/* Committed nodes [from, end) as far as the page goes. */
static int show_page(struct history *h, const struct hf_call *found, int64_t from,
                     struct hf_err *err)
{
    size_t first = 0;
    int rc = make_room(h, found->out_count, err);
    if (rc == 0)
        rc = begin_at(h, found, from, &first, err);
    for (size_t i = first; rc == 0 && i < found->out_count; i++)
        rc = add_node(h, found, i, err);
    if (rc)
        return rc;
    h->answer->nodes = h->nodes;
    h->answer->node_count = h->count;
    return 0;
}

/* ---- the open turn's records ------------------------------------------------------- */

/* A record that is in no node: it comes before node `before` of the turn. */
struct apart {
    const char *at; /* the text behind it */
    int64_t before; /* -1: there is none */
    struct hf_span json;
};

static int next_apart(struct apart *apart, size_t *count, struct hf_err *err)
{
    apart->before = -1;
    int rc = hf_transient_next(&apart->at, &apart->before, &apart->json, err);
    *count += rc == 1;
    return rc < 0 ? rc : 0;
}

static int count_apart(const char *text, size_t *ret_count, struct hf_err *err)
{
    struct apart apart = { .at = text };
    int rc = 0;
    do
        rc = next_apart(&apart, ret_count, err);
    while (rc == 0 && apart.before >= 0);
    return rc;
}

static int show_apart(struct history *h, const struct apart *apart, const char *turn_id,
                      struct hf_err *err)
{
    struct hf_node *node = &h->nodes[h->count];
    int rc = show_record(h, apart->json.at, apart->json.len, node, err);
    memcpy(node->chain, h->chain, sizeof node->chain);
    node->ordinal = -1;
    node->provisional = true;
    node->turn_id = turn_id;
    h->count += rc == 0;
    return rc;
}

/* Nodes and transient records of the open turn, in the order in which steps stored them. */
static int show_turn_nodes(struct history *h, const struct hf_call *found,
                           const char *transients, struct hf_session_turn *turn,
                           struct hf_err *err)
{
    struct apart apart = { .at = transients };
    size_t i = 0, room = 0;
    int rc = count_apart(transients, &room, err);
    if (rc == 0)
        rc = make_room(h, found->out_count + room, err);
    if (rc == 0)
        rc = begin_at(h, found, h->committed, &i, err);
    if (rc == 0)
        rc = next_apart(&apart, &room, err);
    while (rc == 0 && (i < found->out_count || apart.before >= 0)) {
        bool now = apart.before >= 0 &&
                   (apart.before <= h->ordinal - h->committed || i == found->out_count);
        rc = now ? show_apart(h, &apart, turn->turn_id, err)
                 : add_node(h, found, i++, err);
        if (rc == 0 && now)
            rc = next_apart(&apart, &room, err);
    }
    if (rc == 0 && (h->ordinal - h->committed != turn->node_count ||
                    memcmp(h->chain, turn->chain, sizeof h->chain) != 0))
        rc = broken(h, err);
    turn->nodes = h->nodes;
    turn->stored_count = h->count;
    return rc;
}

/* ---- load ------------------------------------------------------------------------------ */

static int64_t less(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct session_load_reads session_load_add(struct hf_ops *ops,
                                           const struct hf_session_load *request)
{
    struct session_load_reads l = { .session = hf_ops_call(ops, HF_SQL_SESSION_GET,
                                                           HF_ANY_COUNT) };
    bool first = request->from_ordinal == 0;
    hf_ops_text(ops, request->session_id);
    l.nodes = hf_ops_call(ops, HF_SQL_SESSION_NODES, HF_ANY_COUNT);
    hf_ops_text(ops, request->session_id);
    hf_ops_i64(ops, first ? 0 : request->from_ordinal - 1);
    hf_ops_i64(ops, first ? INT64_MAX : request->record_count);
    hf_ops_i64(ops, (int64_t)request->limit + !first);
    if (!first)
        return l;
    l.turn = session_turn_add(ops, request->session_id, true);
    l.turn_nodes = hf_ops_call(ops, HF_SQL_SESSION_TURN_NODES, HF_ANY_COUNT);
    hf_ops_text(ops, request->session_id);
    l.effects = hf_ops_call(ops, HF_SQL_EFFECTS_OPEN, HF_ANY_COUNT);
    hf_ops_text(ops, request->session_id);
    return l;
}

#define USAGE(name) HF_COL_SESSION_USAGE_##name

static int show_usage(struct hf_session_answer *answer, const struct hf_call *found,
                      struct hf_err *err)
{
    struct hf_session_usage *all = hf_session_answer_memory(answer, found->out_count *
                                                                        sizeof *all);
    bool failed = !all;
    for (size_t i = 0; !failed && i < found->out_count; i++) {
        const struct hf_val *source = hf_out(found, i, USAGE(SOURCE));
        const struct hf_val *model = hf_out(found, i, USAGE(MODEL));
        all[i].source = hf_session_answer_copy(
            answer, (struct hf_span){ source->at, source->len });
        all[i].model = hf_session_answer_copy(answer,
                                              (struct hf_span){ model->at, model->len });
        all[i].usage =
            (struct hf_usage){ .input = hf_out_i64(found, i, USAGE(INPUT)),
                               .output = hf_out_i64(found, i, USAGE(OUTPUT)),
                               .cache_read = hf_out_i64(found, i, USAGE(CACHE_READ)),
                               .cache_write = hf_out_i64(found, i, USAGE(CACHE_WRITE)),
                               .reasoning = hf_out_i64(found, i, USAGE(REASONING)) };
        failed = !all[i].source || !all[i].model;
    }
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    answer->usage = all;
    answer->usage_count = found->out_count;
    return 0;
}

/* Whether the store has the head that later pages belong to. */
static int check_head(const struct hf_session_load *request, const struct hf_session *s,
                      struct hf_err *err)
{
    if (request->from_ordinal == 0 || (s->head_revision >= request->head_revision &&
                                       s->record_count >= request->record_count))
        return 0;
    return hf_fail(err, HF_EHEADMOVED, "head_revision",
                   "the head has revision %lld and %lld records, which is less than %lld "
                   "and %lld",
                   (long long)s->head_revision, (long long)s->record_count,
                   (long long)request->head_revision, (long long)request->record_count);
}

/* Only committed nodes are in a page: the snapshot's statement does not know the head. */
static void cut_page(struct hf_call *found, int64_t end, bool first)
{
    while (first && found->out_count > 0 &&
           hf_out_i64(found, found->out_count - 1, NODE(ORDINAL)) >= end)
        found->out_count--;
}

int session_load_show(const struct hf_session_load *request, struct hf_ops *ops,
                      const struct session_load_reads *reads,
                      struct hf_session_answer *answer, struct hf_err *err)
{
    const struct hf_session *s = answer->sessions;
    bool first = request->from_ordinal == 0;
    struct hf_session_turn *turn = NULL;
    struct history h = { .answer = answer, .session_id = request->session_id };
    h.committed = first ? s->record_count : request->record_count;
    struct hf_call *found = &ops->batch.calls[reads->nodes];
    cut_page(found, h.committed, first);
    int rc = show_page(&h, found, request->from_ordinal, err);
    int64_t wanted = less(h.committed, request->from_ordinal + (int64_t)request->limit);
    if (rc == 0 && h.ordinal != wanted)
        rc = broken(&h, err); /* some are missing */
    if (rc == 0 && first && h.ordinal == s->record_count &&
        memcmp(h.chain, s->chain, sizeof h.chain) != 0)
        rc = broken(&h, err);
    if (rc == 0 && h.ordinal < h.committed)
        answer->next_ordinal = h.ordinal;
    if (rc || !first)
        return rc;
    rc = session_turn_show(answer, ops, reads->turn, &turn, err);
    struct history t = { .answer = answer,
                         .session_id = request->session_id,
                         .committed = s->record_count };
    if (rc == 0 && turn) {
        const char *transients = hf_out_text(hf_ops_result(ops, reads->turn.turn), 0,
                                             HF_COL_TURN_OPEN_TRANSIENTS);
        rc = show_turn_nodes(&t, hf_ops_result(ops, reads->turn_nodes),
                             transients ? transients : "", turn, err);
    }
    if (rc == 0 && turn)
        rc = session_effects_show(answer, hf_ops_result(ops, reads->effects), turn, err);
    return rc;
}

int sql_session_load(struct hf_store *handle, const struct hf_session_load *request,
                     struct hf_session_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    struct session_load_reads reads = session_load_add(&ops, request);
    size_t usage = 0;
    if (request->from_ordinal == 0) {
        usage = hf_ops_call(&ops, HF_SQL_SESSION_USAGE, HF_ANY_COUNT);
        hf_ops_text(&ops, request->session_id);
    }
    int rc = hf_ops_read(&ops, err);
    if (rc == HF_EOVERFLOW)
        rc = hf_fail(err, rc, "usage", "a sum of tokens of session %.100s is too large",
                     request->session_id);
    if (rc == 0 && hf_ops_result(&ops, reads.session)->out_count == 0)
        rc = not_found(request->session_id, err);
    if (rc == 0)
        rc = session_show(answer, hf_ops_result(&ops, reads.session), 1, err);
    if (rc == 0)
        rc = check_head(request, answer->sessions, err);
    if (rc == 0)
        rc = session_load_show(request, &ops, &reads, answer, err);
    if (rc == 0 && usage)
        rc = show_usage(answer, hf_ops_result(&ops, usage), err);
    hf_ops_fini(&ops);
    return rc;
}

/* ---- one turn ------------------------------------------------------------------------ */

/* The statements that show a turn, in the order of their calls. */
enum turn_call {
    TURN_SESSION,
    TURN_FACTS,
    TURN_INPUTS,
    TURN_NODES,
    TURN_USAGE,
    TURN_EFFECTS
};

static void add_turn_reads(struct hf_ops *ops, const char *session_id, const char *name)
{
    static const enum hf_sql_id statements[] = { HF_SQL_TURN_SHOW, HF_SQL_TURN_INPUTS,
                                                 HF_SQL_TURN_NODES, HF_SQL_TURN_USAGE,
                                                 HF_SQL_TURN_EFFECTS };
    hf_ops_call(ops, HF_SQL_SESSION_GET, HF_ANY_COUNT);
    hf_ops_text(ops, session_id);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        hf_ops_call(ops, statements[i], HF_ANY_COUNT);
        hf_ops_text(ops, session_id);
        hf_ops_text(ops, name);
    }
}

#define SHOWN(name) HF_COL_TURN_SHOW_##name
#define EFFECT(name) HF_COL_TURN_EFFECTS_##name

static int show_turn_facts(struct hf_session_answer *answer, const struct hf_ops *ops,
                           struct hf_err *err)
{
    const struct hf_call *found = hf_ops_result(ops, TURN_FACTS);
    struct hf_session_turn *turn = hf_session_answer_memory(answer, sizeof *turn);
    bool failed = !turn;
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    turn->base_revision = hf_out_i64(found, 0, SHOWN(BASE_REVISION));
    turn->step = hf_out_i64(found, 0, SHOWN(STEP));
    turn->node_count = hf_out_i64(found, 0, SHOWN(NODE_COUNT));
    turn->active_ms = hf_out_i64(found, 0, SHOWN(ACTIVE_MS));
    turn->started_at = hf_out_i64(found, 0, SHOWN(STARTED_AT));
    turn->finished_at = hf_out_i64(found, 0, SHOWN(FINISHED_AT));
    turn->turn_id = session_copied(answer, hf_out(found, 0, SHOWN(TURN_ID)), &failed);
    turn->outcome = session_copied(answer, hf_out(found, 0, SHOWN(OUTCOME)), &failed);
    answer->turn = turn;
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    return session_inputs_show(answer, hf_ops_result(ops, TURN_INPUTS), &turn->inputs,
                               &turn->input_count, err);
}

static int show_turn_effects(struct hf_session_answer *answer,
                             const struct hf_call *found, const char *session_id,
                             struct hf_err *err)
{
    struct hf_session_effect *all = hf_session_answer_memory(answer, found->out_count *
                                                                         sizeof *all);
    struct hf_span id = { session_id, strlen(session_id) };
    const char *named = hf_session_answer_copy(answer, id);
    bool failed = !all || !named;
    for (size_t i = 0; !failed && i < found->out_count; i++)
        all[i] = (struct hf_session_effect){
            .session_id = named,
            .turn_id = answer->turn->turn_id,
            .started_at = hf_out_i64(found, i, EFFECT(STARTED_AT)),
            .settled_at = hf_out_i64(found, i, EFFECT(SETTLED_AT)),
            .attempt = hf_out_i64(found, i, EFFECT(ATTEMPT)),
            .due_at = hf_out_i64(found, i, EFFECT(DUE_AT)),
            .fence = hf_out_i64(found, i, EFFECT(FENCE)),
            .taken_over = hf_out_i64(found, i, EFFECT(TAKEN_OVER)) != 0,
            .key = session_copied(answer, hf_out(found, i, EFFECT(EFFECT_KEY)), &failed),
            .kind = session_copied(answer, hf_out(found, i, EFFECT(KIND)), &failed),
            .recovery = session_copied(answer, hf_out(found, i, EFFECT(RECOVERY)),
                                       &failed),
            .status = session_copied(answer, hf_out(found, i, EFFECT(STATUS)), &failed),
            .envelope = session_copied(answer, hf_out(found, i, EFFECT(ENVELOPE)),
                                       &failed),
            .outcome = session_copied(answer, hf_out(found, i, EFFECT(OUTCOME)), &failed),
            .usage = session_copied(answer, hf_out(found, i, EFFECT(USAGE)), &failed),
        };
    if (failed)
        return hf_fail_plain(err, HF_ENOMEM);
    answer->effects = all;
    answer->effect_count = found->out_count;
    return 0;
}

int sql_session_turn(struct hf_store *handle, const char *session_id, const char *name,
                     struct hf_session_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    struct history h = { .answer = answer, .session_id = session_id };
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    add_turn_reads(&ops, session_id, name);
    int rc = hf_ops_read(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, TURN_SESSION)->out_count == 0)
        rc = not_found(session_id, err);
    else if (rc == 0 && hf_ops_result(&ops, TURN_FACTS)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "turn", "session %.100s has no turn %.100s",
                     session_id, name ? name : "yet");
    if (rc == 0)
        rc = session_show(answer, hf_ops_result(&ops, TURN_SESSION), 1, err);
    if (rc == 0)
        rc = show_turn_facts(answer, &ops, err);
    if (rc == 0) {
        h.committed = answer->sessions->record_count;
        rc = show_page(&h, hf_ops_result(&ops, TURN_NODES),
                       hf_out_i64(hf_ops_result(&ops, TURN_FACTS), 0, 1), err);
    }
    if (rc == 0)
        rc = show_usage(answer, hf_ops_result(&ops, TURN_USAGE), err);
    if (rc == 0)
        rc = show_turn_effects(answer, hf_ops_result(&ops, TURN_EFFECTS), session_id,
                               err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_session_node(struct hf_store *handle, const char *session_id, int64_t ordinal,
                     struct hf_session_answer *answer, struct hf_err *err)
{
    struct hf_ops ops;
    int64_t from = ordinal > 0 ? ordinal - 1 : 0;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_SESSION_GET, HF_ANY_COUNT);
    hf_ops_text(&ops, session_id);
    hf_ops_call(&ops, HF_SQL_SESSION_NODES, HF_ANY_COUNT);
    hf_ops_text(&ops, session_id);
    hf_ops_i64(&ops, from);
    hf_ops_i64(&ops, INT64_MAX);
    hf_ops_i64(&ops, ordinal - from + 1);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 1) : NULL;
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = not_found(session_id, err);
    if (rc == 0)
        rc = session_show(answer, hf_ops_result(&ops, 0), 1, err);
    if (rc == 0 && (found->out_count == 0 ||
                    hf_out_i64(found, found->out_count - 1, NODE(ORDINAL)) != ordinal))
        rc = hf_fail(err, HF_ENOTFOUND, "ordinal", "session %.100s has no node %lld",
                     session_id, (long long)ordinal);
    struct history h = { .answer = answer, .session_id = session_id };
    if (rc == 0) {
        h.committed = answer->sessions->record_count;
        size_t first = 0;
        rc = make_room(&h, 1, err);
        if (rc == 0)
            rc = begin_at(&h, found, ordinal, &first, err);
        if (rc == 0)
            rc = add_node(&h, found, first, err);
        answer->nodes = h.nodes;
        answer->node_count = h.count;
    }
    hf_ops_fini(&ops);
    return rc;
}
