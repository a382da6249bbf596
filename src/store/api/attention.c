/* The public verbs of attention.h: what needs a person now.
 *
 * A finding (item) is of a kind (need), for example a wait without an answer or a lapsed lease. The
 * store reads rows of each kind; here a maker puts each into facts (named values), a severity, and
 * the act: the operation, with its inputs, that deals with it. What did not fit is counted per
 * kind, with the operation that lists it. */
#include <holdfast/bounds.h>
#include <holdfast/journal.h>

#include <string.h>

#include "base/arena.h"
#include "base/ident.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/ledger/fields.h"
#include "store/api/call.h"

#define ITEMS 200 /* findings of a kind, at most */
#define UNSERVED_MS 300000
#define FACTS 10
#define FACT_JSON 65536 /* a longer one is left out */
#define ACK_IDS 100

/* ---- words -------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum hf_severity severity;
} needs[HF_NEED_COUNT] = {
#define X(name, text, severity_, when)                                                   \
    [HF_NEED_##name] = { #text, HF_SEVERITY_##severity_ },
    HF_NEEDS(X)
#undef X
};

const char *hf_need_word(enum hf_need need)
{
    return (size_t)need < HF_NEED_COUNT ? needs[need].word : NULL;
}

enum hf_need hf_need_of(const char *word)
{
    for (int i = 1; i < HF_NEED_COUNT; i++)
        if (hf_same(needs[i].word, word))
            return (enum hf_need)i;
    return HF_NEED_NONE;
}

const char *hf_severity_word(enum hf_severity severity)
{
    static const char *const words[] = { NULL, "now", "soon", "note" };
    return (size_t)severity < sizeof words / sizeof words[0] ? words[severity] : NULL;
}

/* ---- what is being put together ----------------------------------------------------- */

struct made {
    struct hf_attention shown; /* first: callers see it alone */
    struct hf_arena arena;
    struct hf_attention_item *items;
    size_t room;
    struct hf_attention_more *more;
    size_t more_room;
};

/* One finding under construction: facts and inputs are collected here, then kept. */
struct maker {
    struct made *made;
    const struct hf_store *store;
    const struct hf_caller *who;
    enum hf_need what;
    struct hf_look_found shown; /* of this kind */
    int64_t rest;               /* bad ends that are not shown, told so far */
    bool failed;                /* there was no memory */
    struct hf_fact facts[FACTS];
    size_t fact_count;
    struct hf_fact inputs[FACTS];
    size_t input_count;
    const char *op;
    const char *op_tenant;
};

static const char *keep(struct maker *m, const char *text)
{
    const char *copy = text ? hf_arena_text(&m->made->arena, text) : NULL;
    m->failed = m->failed || (text && !copy);
    return copy;
}

static void put(struct maker *m, struct hf_fact *list, size_t *count, struct hf_fact fact)
{
    hf_assert(*count < FACTS);
    fact.text = keep(m, fact.text);
    list[(*count)++] = fact;
}

static void fact_text(struct maker *m, const char *name, const char *text)
{
    if (text)
        put(m, m->facts, &m->fact_count, (struct hf_fact){ .name = name, .text = text });
}

static void fact_number(struct maker *m, const char *name, int64_t number)
{
    put(m, m->facts, &m->fact_count, (struct hf_fact){ .name = name, .number = number });
}

static void act(struct maker *m, const char *op)
{
    m->op = op;
    m->op_tenant = NULL;
    m->input_count = 0;
}

static void fact_json(struct maker *m, const char *name, const struct json_t *value)
{
    struct hf_buf text;
    hf_buf_init(&text, m->made->arena.alloc, FACT_JSON);
    if (value && hf_json_canonical(&text, value) == 0)
        put(m, m->facts, &m->fact_count,
            (struct hf_fact){ .name = name, .text = hf_buf_str(&text), .json = true });
    hf_buf_fini(&text);
}

/* JSON as it is stored; NULL: no fact. */
static void fact_raw(struct maker *m, const char *name, const char *json)
{
    if (json)
        put(m, m->facts, &m->fact_count,
            (struct hf_fact){ .name = name, .text = json, .json = true });
}

static void input_text(struct maker *m, const char *name, const char *text)
{
    if (text)
        put(m, m->inputs, &m->input_count,
            (struct hf_fact){ .name = name, .text = text });
}

static void input_json(struct maker *m, const char *name, const char *text)
{
    put(m, m->inputs, &m->input_count,
        (struct hf_fact){ .name = name, .text = text, .json = true });
}

static void input_flag(struct maker *m, const char *name)
{
    input_json(m, name, "true");
}

static const struct hf_fact *kept_facts(struct maker *m, const struct hf_fact *facts,
                                        size_t count)
{
    const struct hf_fact *copy =
        count ? hf_arena_dup(&m->made->arena, facts, count * sizeof *facts) : NULL;
    m->failed = m->failed || (count && !copy);
    return copy;
}

static struct hf_attention_act kept_act(struct maker *m)
{
    return (struct hf_attention_act){ .op = m->op,
                                      .tenant = m->op_tenant,
                                      .inputs = kept_facts(m, m->inputs, m->input_count),
                                      .count = m->input_count };
}

/* A larger copy of an array of the answer; NULL: no memory. */
static void *grown(struct maker *m, const void *old, size_t count, size_t *room,
                   size_t each)
{
    size_t wanted = *room ? 2 * *room : 16;
    void *now = hf_arena_array(&m->made->arena, wanted, each);
    if (now && count)
        memcpy(now, old, count * each);
    if (now)
        *room = wanted;
    m->failed = m->failed || !now;
    return now;
}

static void add_item(struct maker *m, const struct hf_attention_item *item)
{
    struct made *made = m->made;
    if (made->shown.count == made->room) {
        void *more = grown(m, made->items, made->shown.count, &made->room, sizeof *item);
        if (!more)
            return;
        made->items = more;
    }
    made->items[made->shown.count++] = *item;
    made->shown.items = made->items;
}

static void add_more(struct maker *m, const struct hf_attention_more *more)
{
    struct made *made = m->made;
    if (made->shown.more_count == made->more_room) {
        void *larger = grown(m, made->more, made->shown.more_count, &made->more_room,
                             sizeof *more);
        if (!larger)
            return;
        made->more = larger;
    }
    made->more[made->shown.more_count++] = *more;
    made->shown.more = made->more;
}

static const struct hf_work *kept_unit(struct maker *m, const struct hf_work *work)
{
    struct hf_work *copy = hf_arena_dup(&m->made->arena, work, sizeof *work);
    m->failed = m->failed || !copy;
    for (size_t i = 0; copy && i < hf_work_field_count; i++) {
        const struct hf_field *field = &hf_work_fields[i];
        const char **text = (const char **)(void *)((char *)copy + field->offset);
        if (field->kind == HF_FIELD_TEXT || field->kind == HF_FIELD_JSON)
            *text = keep(m, *text);
    }
    return copy;
}

/* ---- what each kind says ------------------------------------------------------------ */

/* Fills what the kind adds: times, facts and the act. */
typedef void describe(struct maker *m, const struct hf_look_row *seen,
                      struct hf_attention_item *item);

static void act_on(struct maker *m, const char *op, const struct hf_work *work)
{
    act(m, op);
    input_text(m, "work_id", work->work_id);
}

static void describe_lease(struct maker *m, const struct hf_look_row *seen,
                           struct hf_attention_item *item, hf_ms left)
{
    hf_ms at = hf_store_now(m->store) + left;
    if (m->what == HF_NEED_SILENT) {
        item->since = at;
        fact_number(m, "lapsed_ms", -left);
        fact_text(m, "missing_proof", seen->text);
    } else {
        item->until = at;
        fact_number(m, "left_ms", left);
    }
}

static void describe_session(struct maker *m, const struct hf_look_row *seen,
                             struct hf_attention_item *item)
{
    item->subject = "session";
    fact_text(m, "owner", seen->owner);
    describe_lease(m, seen, item, seen->count);
    fact_number(m, "ttl_ms", seen->most);
    act(m, "session.show");
    input_text(m, "session_id", seen->id);
}

/* A lapsed lease of work that may run again is ended by a sweep; with work that is bound to its
 * owner a person accepts first that its outcome stays unknown. */
static void describe_leased(struct maker *m, const struct hf_look_row *seen,
                            struct hf_attention_item *item)
{
    const struct hf_work *work = seen->work;
    if (!work) {
        describe_session(m, seen, item);
        return;
    }
    bool bound = hf_disposition_of(work->disposition) == HF_DISPOSITION_OWNER_BOUND;
    fact_text(m, "owner", work->owner);
    describe_lease(m, seen, item, work->lease_remaining_ms);
    fact_number(m, "ttl_ms", work->lease_ttl_ms);
    fact_text(m, "disposition", work->disposition);
    if (m->what == HF_NEED_LAPSING) {
        act_on(m, "work.show", work);
    } else if (bound && !work->abandon_request) {
        act_on(m, "work.request_abandon", work);
        input_text(m, "reason", "its owner is gone");
    } else {
        act(m, "work.sweep");
    }
}

/* Waits for what its close rule asks, since its execution could not add it? */
static bool waits_for_rule(const struct hf_work *work)
{
    return work->close_rule && hf_same(work->waiting_ref, work->work_id) &&
           hf_status_of(work->status) == HF_STATUS_WAITING_USER;
}

/* The caller ends it in its own name. Evidence is what only a person knows: the act has a word that
 * is refused until a hash takes its place. */
static void act_of_rule(struct maker *m, const struct hf_work *work)
{
    const char *name = m->who->actor ? m->who->actor : "operator";
    act_on(m, "work.close_out", work);
    input_text(m, "authority", name);
    input_text(m, "status", hf_status_word(HF_STATUS_DONE));
    if (hf_same(work->close_rule, "evidence"))
        input_text(m, "evidence", "sha256:HASH");
    else
        input_text(m, "reviewer", name);
}

/* What ends a wait. Only its owner, in the same incarnation, continues a started owner_bound
 * unit. An externally_owned unit has no deadline and is no finding. */
static void act_of_wait(struct maker *m, const struct hf_work *work, const char *choice)
{
    if (waits_for_rule(work)) {
        act_of_rule(m, work);
        return;
    }
    if (choice) {
        act_on(m, "answer", work);
        input_text(m, "answer", choice);
        return;
    }
    act_on(m, "work.resume", work);
    input_json(m, "payload", "\"yes\"");
    if (work->owner) {
        input_text(m, "owner", work->owner);
        input_text(m, "owner_incarnation", work->owner_incarnation);
    }
}

/* NULL for what is no JSON. */
static struct json_t *parsed(const char *text)
{
    struct json_t *value = NULL;
    struct hf_span span = { text, strlen(text) };
    return hf_json_parse(span, span.len, "text", &value, NULL) ? NULL : value;
}

static void describe_urgency(struct maker *m, struct hf_attention_item *item,
                             bool overdue, bool escalated, hf_ms escalate_at)
{
    if (overdue || escalated)
        item->severity = HF_SEVERITY_NOW;
    if (overdue)
        fact_text(m, "state", "overdue");
    else if (escalated)
        fact_text(m, "state", "escalated");
    if (escalate_at)
        fact_number(m, "escalate_at", escalate_at);
}

/* Of a question with choices the choices are a fact, and the first one is the act's answer. */
static void describe_unit_wait(struct maker *m, const struct hf_look_row *seen,
                               struct hf_attention_item *item)
{
    const struct hf_work *work = seen->work;
    struct json_t *payload = work->payload ? parsed(work->payload) : NULL;
    const struct json_t *choices = payload ? hf_json_member(payload, "choices") : NULL;
    bool overdue = hf_same(work->status_reason, "wait_overdue") ||
                   (work->deadline_at && work->deadline_at <= hf_store_now(m->store));
    bool escalated = work->escalate && !work->escalate_at;
    item->since = work->updated_at;
    item->until = work->deadline_at;
    fact_text(m, "asked", seen->said);
    fact_text(m, "asked_by", seen->said_by);
    fact_json(m, "choices", choices);
    fact_text(m, "waiting_ref", work->waiting_ref);
    fact_text(m, "then", work->owner ? "overdue" : "timeout");
    describe_urgency(m, item, overdue, escalated, work->escalate_at);
    act_of_wait(m, work, hf_json_as_text(hf_json_item(choices, 0)));
    hf_json_free(payload);
}

/* A wait of a turn. An approval is answered by the same operation whatever the call is; any other
 * wait takes the value that the turn waits for. */
static void describe_turn_wait(struct maker *m, const struct hf_look_row *seen,
                               struct hf_attention_item *item)
{
    const struct hf_wait *wait = seen->wait;
    struct json_t *asked = wait->asked ? parsed(wait->asked) : NULL;
    bool overdue = wait->deadline_at <= hf_store_now(m->store);
    item->subject = "wait";
    item->since = wait->opened_at;
    item->until = wait->deadline_at;
    fact_text(m, "asked",
              asked ? hf_json_as_text(hf_json_member(asked, "question")) : NULL);
    fact_json(m, "call", asked ? hf_json_member(asked, "call") : NULL);
    fact_text(m, "asked_by", hf_arena_join(&m->made->arena, "agent:", wait->agent));
    fact_text(m, "session_id", wait->session_id);
    fact_text(m, "answerer", wait->answerer);
    fact_text(m, "then", wait->policy);
    fact_text(m, "next_answerer", wait->next_answerer);
    describe_urgency(m, item, overdue, wait->escalate && !wait->escalate_at,
                     wait->escalate_at);
    act(m, m->what == HF_NEED_QUESTION ? "approve" : "wait.resolve");
    input_text(m, "wait_id", wait->wait_id);
    hf_json_free(asked);
}

static void describe_wait(struct maker *m, const struct hf_look_row *seen,
                          struct hf_attention_item *item)
{
    if (seen->wait)
        describe_turn_wait(m, seen, item);
    else
        describe_unit_wait(m, seen, item);
}

static void describe_held(struct maker *m, const struct hf_look_row *seen,
                          struct hf_attention_item *item)
{
    const struct hf_work *work = seen->work;
    item->since = work->updated_at;
    fact_number(m, "failures", work->failures);
    fact_number(m, "attempts", work->attempt_count);
    fact_text(m, "error_class", work->error_class);
    act_on(m, "job.release", work);
    input_text(m, "reason", "its cause is removed");
}

static void describe_ended(struct maker *m, const struct hf_look_row *seen,
                           struct hf_attention_item *item)
{
    const struct hf_work *work = seen->work;
    item->since = work->finished_at;
    fact_text(m, "status", work->status);
    fact_text(m, "reason", work->status_reason);
    fact_text(m, "error_class", work->error_class);
    fact_number(m, "attempts", work->attempt_count);
    fact_text(m, "ended_by", seen->said_by);
    act(m, "attention.ack");
    input_text(m, "ids", work->work_id);
}

static void describe_unserved(struct maker *m, const struct hf_look_row *seen,
                              struct hf_attention_item *item)
{
    item->since = seen->since;
    if (!seen->kind) {
        item->subject = "agent";
        fact_number(m, "sessions", seen->count);
        act(m, "session.list");
        m->op_tenant = *seen->tenant ? keep(m, seen->tenant) : NULL;
        input_text(m, "agent", seen->id);
        return;
    }
    item->subject = "queue";
    fact_number(m, "units", seen->count);
    act(m, "work.list");
    m->op_tenant = *seen->tenant ? keep(m, seen->tenant) : NULL;
    input_text(m, "statuses", hf_status_word(HF_STATUS_QUEUED));
    input_text(m, "queue", seen->id);
    input_text(m, "kind", seen->kind);
}

static void describe_schedule(struct maker *m, const struct hf_look_row *seen,
                              struct hf_attention_item *item)
{
    item->subject = "schedule";
    item->since = seen->since;
    if (m->what == HF_NEED_SCHEDULE_LATE) {
        fact_number(m, "late_ms", hf_store_now(m->store) - seen->since);
        act(m, "monitor");
        input_flag(m, "once");
        return;
    }
    fact_text(m, "error", seen->text);
    fact_number(m, "failures", seen->count);
    act(m, "schedule.show");
    m->op_tenant = *seen->tenant ? keep(m, seen->tenant) : NULL;
    input_text(m, "name", seen->id);
}

static void describe_twins(struct maker *m, const struct hf_look_row *seen,
                           struct hf_attention_item *item)
{
    item->subject = "owner";
    item->since = seen->since;
    fact_number(m, "incarnations", seen->count);
    act(m, "holder.list");
    input_text(m, "owner", seen->id);
}

static void describe_limit(struct maker *m, const struct hf_look_row *seen,
                           struct hf_attention_item *item)
{
    item->subject = "limit";
    item->since = seen->since;
    fact_number(m, "max_running", seen->most);
    fact_number(m, "waiting", seen->count);
    act(m, "work.list");
    m->op_tenant = *seen->tenant ? keep(m, seen->tenant) : NULL;
    input_flag(m, "silent");
    input_text(m, "limit_name", seen->id);
}

static void describe_store(struct maker *m, const struct hf_look_row *seen,
                           struct hf_attention_item *item)
{
    item->subject = "store";
    fact_text(m, "problem", seen->text);
    fact_text(m, "advice", seen->advice);
    act(m, "doctor");
}

static describe *const describes[HF_NEED_COUNT] = {
    [HF_NEED_SILENT] = describe_leased,
    [HF_NEED_LAPSING] = describe_leased,
    [HF_NEED_QUESTION] = describe_wait,
    [HF_NEED_WAIT] = describe_wait,
    [HF_NEED_HELD] = describe_held,
    [HF_NEED_ENDED_BADLY] = describe_ended,
    [HF_NEED_UNSERVED] = describe_unserved,
    [HF_NEED_SCHEDULE_FAILING] = describe_schedule,
    [HF_NEED_SCHEDULE_LATE] = describe_schedule,
    [HF_NEED_TWINS] = describe_twins,
    [HF_NEED_LIMIT_STUCK] = describe_limit,
    [HF_NEED_STORE] = describe_store,
};

/* ---- reading ------------------------------------------------------------------------ */

static void begin_item(struct maker *m)
{
    m->fact_count = 0;
    act(m, NULL);
}

static int end_item(struct maker *m, struct hf_attention_item *item)
{
    item->facts = kept_facts(m, m->facts, m->fact_count);
    item->fact_count = m->fact_count;
    item->act = kept_act(m);
    add_item(m, item);
    return m->failed ? HF_ENOMEM : 0;
}

/* It is in another list than the units of this kind. */
static bool is_other(enum hf_need what, const struct hf_look_row *seen)
{
    bool leased = what == HF_NEED_SILENT || what == HF_NEED_LAPSING;
    return seen->wait || (leased && !seen->work) ||
           (what == HF_NEED_UNSERVED && !seen->kind);
}

static int on_seen(void *user, const struct hf_look_row *seen)
{
    struct maker *m = user;
    const struct hf_work *work = seen->work;
    *(is_other(m->what, seen) ? &m->shown.others : &m->shown.units) += 1;
    struct hf_attention_item item = { .what = m->what,
                                      .severity = needs[m->what].severity,
                                      .subject = "unit",
                                      .unit = work ? kept_unit(m, work) : NULL };
    const struct hf_wait *wait = seen->wait;
    item.id = keep(m, work ? work->work_id : wait ? wait->wait_id : seen->id);
    item.kind = keep(m, work ? work->kind : wait ? wait->kind : seen->kind);
    item.tenant = keep(m, work           ? work->tenant
                          : wait         ? wait->tenant
                          : seen->tenant ? seen->tenant
                                         : "");
    begin_item(m);
    describes[m->what](m, seen, &item);
    return end_item(m, &item);
}

/* Of bad ends that are not shown: how many of a kind and class, and the list that shows them. The
 * last may be all others, without a kind. */
static int on_rest(void *user, const struct hf_look_row *seen)
{
    struct maker *m = user;
    begin_item(m);
    act(m, "work.list");
    input_flag(m, "unacked");
    input_text(m, "kind", seen->kind);
    input_text(m, "error_class", seen->text);
    input_flag(m, "newest");
    m->rest += seen->count;
    const struct hf_attention_more more = { .what = m->what,
                                            .count = seen->count,
                                            .at_least = !seen->kind &&
                                                        m->rest >= HF_LOOK_BOUND,
                                            .kind = keep(m, seen->kind),
                                            .error_class = keep(m, seen->text),
                                            .act = kept_act(m) };
    add_more(m, &more);
    return m->failed ? HF_ENOMEM : 0;
}

/* The list that shows what did not fit: of units, or what a kind has instead. */
static void act_of_units(struct maker *m)
{
    act(m, "work.list");
    if (m->what == HF_NEED_SILENT)
        input_flag(m, "silent");
    else if (m->what == HF_NEED_QUESTION)
        input_text(m, "statuses", hf_status_word(HF_STATUS_WAITING_USER));
    else if (m->what == HF_NEED_WAIT)
        input_text(m, "statuses", hf_status_word(HF_STATUS_WAITING_EXTERNAL));
    else if (m->what == HF_NEED_HELD)
        input_text(m, "gate", "held");
    else if (m->what == HF_NEED_LAPSING)
        input_text(m, "statuses", hf_status_word(HF_STATUS_RUNNING));
    else if (m->what == HF_NEED_UNSERVED)
        act(m, "queue.list");
    else if (m->what == HF_NEED_TWINS)
        act(m, "holder.list");
    else if (m->what == HF_NEED_SCHEDULE_FAILING || m->what == HF_NEED_SCHEDULE_LATE)
        act(m, "schedule.list");
    else if (m->what == HF_NEED_LIMIT_STUCK)
        act(m, "limit.list");
    else if (m->what == HF_NEED_STORE)
        act(m, "doctor");
}

/* The same of sessions and of waits of turns. */
static void act_of_others(struct maker *m)
{
    if (m->what == HF_NEED_QUESTION || m->what == HF_NEED_WAIT) {
        act(m, "wait.list");
        input_text(m, "kind", m->what == HF_NEED_QUESTION ? "approval" : NULL);
        return;
    }
    act(m, "session.list");
    if (m->what != HF_NEED_UNSERVED)
        input_flag(m, "open");
}

static void more_of(struct maker *m, int64_t found, int64_t shown,
                    void (*act_of)(struct maker *), bool cut)
{
    act_of(m);
    const struct hf_attention_more more = { .what = m->what,
                                            .count = found - shown,
                                            .at_least = cut || found >= HF_LOOK_BOUND,
                                            .act = kept_act(m) };
    if (found > shown || cut)
        add_more(m, &more);
}

static int look(struct maker *m, struct hf_store *store,
                const struct hf_attention_query *query, struct hf_err *err)
{
    struct hf_look asked = { .what = m->what,
                             .limit = query->limit,
                             .unserved_ms = query->unserved_ms,
                             .each = on_seen,
                             .user = m };
    struct hf_look_found found = { .units = 0 };
    m->shown = found;
    int rc = store->methods->watch->look(store, m->who, &asked, &found, err);
    if (rc)
        return rc;
    if (m->what == HF_NEED_ENDED_BADLY && found.units > m->shown.units) {
        asked.rest = true;
        asked.each = on_rest;
        m->rest = 0;
        return store->methods->watch->look(store, m->who, &asked, &found, err);
    }
    more_of(m, found.units, m->shown.units, act_of_units, found.cut);
    more_of(m, found.others, m->shown.others, act_of_others, false);
    return m->failed ? HF_ENOMEM : 0;
}

/* The part of the turn's records that asks for this call; NULL: there is none. */
static const struct hf_part *call_of(const struct hf_session_answer *turned,
                                     const char *call_id)
{
    for (size_t i = 0; i < turned->node_count; i++) {
        const struct hf_message *message = turned->nodes[i].record->message;
        for (size_t k = 0; message && k < message->part_count; k++)
            if (message->parts[k].kind == HF_PART_TOOL_CALL &&
                hf_same(message->parts[k].call_id, call_id))
                return &message->parts[k];
    }
    return NULL;
}

/* Whether the call was made with these arguments: who approves a call may change them, and the
 * entry has the hash of what was used. */
static bool was_made_with(const struct hf_session_answer *turned, const char *key,
                          struct hf_span arguments)
{
    uint8_t digest[HF_DIGEST_BYTES];
    char hex[2 * HF_DIGEST_BYTES + 1];
    if (hf_sha256(arguments.at, arguments.len, digest))
        return false;
    hf_hex(digest, sizeof digest, hex);
    for (size_t i = 0; i < turned->effect_count; i++)
        if (hf_same(turned->effects[i].key, key))
            return strstr(turned->effects[i].envelope, hex) != NULL;
    return false;
}

/* The tool and its arguments, from the records of the turn. */
static void fact_call(struct maker *m, const struct hf_session_answer *turned,
                      const char *key)
{
    struct hf_effect_name name;
    const struct hf_part *call = hf_effect_key_read(key, &name) && name.call_id[0]
                                     ? call_of(turned, name.call_id)
                                     : NULL;
    if (!call)
        return;
    fact_text(m, "tool", call->tool);
    if (call->content.len <= FACT_JSON && was_made_with(turned, key, call->content))
        fact_raw(m, "arguments",
                 hf_arena_copy(&m->made->arena, call->content.at, call->content.len));
}

/* Why it is not known how the effect ended. */
static void fact_outcome(struct maker *m, const char *outcome)
{
    struct json_t *json = NULL;
    struct hf_span text = { outcome, strlen(outcome) };
    if (hf_json_parse(text, FACT_JSON, "outcome", &json, NULL))
        return; /* a long one, which `session turn` shows */
    fact_text(m, "reason", hf_json_as_text(hf_json_member(json, "reason")));
    hf_json_free(json);
}

static int show_effect(struct maker *m, struct hf_store *store,
                       const struct hf_session_effect *effect, struct hf_err *err)
{
    struct hf_attention_item item = { .what = m->what,
                                      .severity = HF_SEVERITY_NOW,
                                      .subject = "effect",
                                      .id = keep(m, effect->turn_id),
                                      .tenant = "",
                                      .kind = keep(m, effect->kind),
                                      .since = effect->started_at };
    struct hf_session_answer *turned = hf_session_answer_new(store->alloc);
    int rc = turned ? store->methods->sessions->turn(store, effect->session_id,
                                                     effect->turn_id, turned, err)
                    : HF_ENOMEM;
    begin_item(m);
    fact_text(m, "key", effect->key);
    fact_text(m, "session_id", effect->session_id);
    fact_text(m, "recovery", effect->recovery);
    fact_outcome(m, effect->outcome);
    if (rc == 0)
        fact_call(m, turned, effect->key);
    else if (rc == HF_ENOTFOUND || rc == HF_ECORRUPT)
        rc = 0; /* pruned since, or damaged: `doctor` says so */
    act(m, "session.turn");
    input_text(m, "session_id", effect->session_id);
    input_text(m, "turn", effect->turn_id);
    rc = rc ? rc : end_item(m, &item);
    hf_session_answer_free(turned);
    return rc;
}

/* There are more effects than were read; `list` shows them. */
static void more_effects(struct maker *m, const char *list)
{
    act(m, list);
    const struct hf_attention_more more = {
        .what = m->what, .count = 1, .at_least = true, .act = kept_act(m)
    };
    add_more(m, &more);
}

static int look_effects(struct maker *m, struct hf_store *store,
                        const struct hf_attention_query *query, struct hf_err *err)
{
    const struct hf_session_methods *sessions = store->methods->sessions;
    struct hf_session_answer *page = hf_session_answer_new(store->alloc);
    int rc = page ? sessions->unknown(store, m->who, NULL, query->limit, page, err)
                  : HF_ENOMEM;
    for (size_t i = 0; rc == 0 && i < page->effect_count; i++)
        rc = show_effect(m, store, &page->effects[i], err);
    if (rc == 0 && page->next)
        more_effects(m, "session.list");
    hf_session_answer_free(page);
    return rc;
}

/* The act makes no outcome up: it says that the effect stays unknown. */
static int show_scope_effect(struct maker *m, const struct hf_journal_effect *effect)
{
    struct hf_attention_item item = { .what = m->what,
                                      .severity = HF_SEVERITY_NOW,
                                      .subject = "effect",
                                      .tenant = keep(m, effect->tenant),
                                      .kind = keep(m, effect->kind),
                                      .since = effect->started_at };
    const char *scope_id = hf_arena_join(&m->made->arena, effect->scope_id, "/");
    item.id = scope_id ? hf_arena_join(&m->made->arena, scope_id, effect->key) : NULL;
    m->failed = m->failed || !item.id;
    begin_item(m);
    fact_text(m, "scope", effect->scope);
    fact_text(m, "scope_id", effect->scope_id);
    fact_text(m, "key", effect->key);
    fact_text(m, "recovery", effect->recovery);
    fact_text(m, "status", effect->status);
    fact_text(m, "owner", effect->owner);
    fact_raw(m, "envelope", effect->envelope);
    fact_raw(m, "outcome", effect->outcome);
    act(m, "effect.resolve");
    input_text(m, "scope", effect->scope);
    input_text(m, "scope_id", effect->scope_id);
    input_text(m, "key", effect->key);
    input_text(m, "status", hf_entry_status_name(HF_ENTRY_UNKNOWN));
    input_text(m, "reason", "it cannot be found out");
    return end_item(m, &item);
}

static int look_scope_effects(struct maker *m, struct hf_store *store,
                              const struct hf_attention_query *query, struct hf_err *err)
{
    struct hf_journal_effects *page = NULL;
    int rc = hf_journal_unknown(store, m->who, NULL, query->limit, &page, err);
    for (size_t i = 0; rc == 0 && i < page->count; i++)
        rc = show_scope_effect(m, &page->items[i]);
    if (rc == 0 && page->next)
        more_effects(m, "effect.list");
    hf_journal_effects_free(page);
    return rc;
}

static int read_all(struct maker *m, struct hf_store *store,
                    const struct hf_attention_query *query, struct hf_err *err)
{
    int rc = 0;
    for (int need = 1; rc == 0 && need < HF_NEED_COUNT; need++) {
        m->what = (enum hf_need)need;
        if (m->what != HF_NEED_UNKNOWN_EFFECT)
            rc = look(m, store, query, err);
        else if (store->methods->sessions && store->methods->sessions->unknown)
            rc = look_effects(m, store, query, err);
        if (rc == 0 && m->what == HF_NEED_UNKNOWN_EFFECT && store->methods->journal)
            rc = look_scope_effects(m, store, query, err);
    }
    return rc == HF_ENOMEM ? hf_fail_plain(err, HF_ENOMEM) : rc;
}

/* ---- the verbs ---------------------------------------------------------------------- */

static int check_watch(const struct hf_store *store, struct hf_err *err)
{
    return store->methods->watch ? 0
                                 : hf_fail(err, HF_EINVAL, "store",
                                           "this store does not implement attention");
}

static int complete_query(struct hf_attention_query *query, struct hf_err *err)
{
    if (query->limit > ITEMS)
        return hf_fail(err, HF_ETOOBIG, "limit", "at most %d findings of a kind are read",
                       ITEMS);
    if (query->limit == 0)
        query->limit = ITEMS;
    int rc = api_check_time(query->unserved_ms, "unserved_ms", err);
    if (query->unserved_ms == 0)
        query->unserved_ms = UNSERVED_MS;
    return rc;
}

int hf_attention_read(struct hf_store *store, const struct hf_caller *given,
                      const struct hf_attention_query *wanted,
                      struct hf_attention **ret_attention, struct hf_err *err)
{
    struct hf_attention_query query = { .size = sizeof query };
    struct api_call call = api_begin(given);
    if (wanted)
        API_COPY(call, wanted, &query);
    API_STEP(call, check_watch(store, &call.why));
    API_STEP(call, complete_query(&query, &call.why));
    struct made *made =
        call.rc ? NULL : store->alloc->realloc(store->alloc->user, NULL, sizeof *made);
    API_STEP(call, made ? 0 : HF_ENOMEM);
    if (made) {
        *made = (struct made){ .room = 0 };
        hf_arena_init(&made->arena, store->alloc);
        struct maker m = { .made = made, .store = store, .who = &call.who };
        API_STEP(call, read_all(&m, store, &query, &call.why));
        made->shown.now = hf_store_now(store);
    }
    if (call.rc)
        hf_attention_free(made ? &made->shown : NULL);
    else
        *ret_attention = &made->shown;
    return api_end(&call, err);
}

void hf_attention_free(struct hf_attention *shown)
{
    struct made *made = (struct made *)(void *)shown;
    if (!made)
        return;
    const struct hf_alloc *alloc = made->arena.alloc;
    hf_arena_fini(&made->arena);
    alloc->free(alloc->user, made);
}

static int check_ack(const struct hf_ack *ack, struct hf_err *err)
{
    int ways = (ack->id_count > 0) + (ack->kind != NULL) + ack->all;
    int rc = 0;
    if (ways != 1)
        return hf_fail(err, HF_EINVAL, "ids",
                       "name ids, a kind or all: one of the three");
    if (ack->id_count > ACK_IDS)
        return hf_fail(err, HF_ETOOBIG, "ids", "at most %d ids at a time", ACK_IDS);
    rc = hf_sized_array(ack->ids, ack->id_count, "ids", err);
    for (size_t i = 0; rc == 0 && i < ack->id_count; i++)
        rc = hf_check_key(ack->ids[i], (size_t)HF_MAX_KEY_BYTES, "ids", err);
    if (rc == 0)
        rc = hf_check_key_opt(ack->kind, (size_t)HF_MAX_KEY_BYTES, "kind", err);
    return rc ? rc
              : hf_check_text(ack->reason, (size_t)HF_MAX_REASON_BYTES, "reason", err);
}

int hf_attention_ack(struct hf_store *store, const struct hf_caller *given,
                     const struct hf_ack *wanted, int64_t *ret_count, struct hf_err *err)
{
    struct hf_ack ack;
    struct api_call call = api_begin(given);
    API_COPY(call, wanted, &ack);
    API_STEP(call, check_watch(store, &call.why));
    API_STEP(call, check_ack(&ack, &call.why));
    API_STEP(call,
             store->methods->watch->ack(store, &call.who, &ack, ret_count, &call.why));
    return api_end(&call, err);
}
