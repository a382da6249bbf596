/* The public verbs in the short form that cases use. */

#include "conform/kit.h"

static void drop_answer(void *at)
{
    hf_answer_free(at);
}

static void drop_events(void *at)
{
    hf_events_free(at);
}

static const struct hf_answer *kept(struct hf_conform *t, struct hf_answer *answer)
{
    if (t->code == 0 && answer)
        kit_keep(t, answer, drop_answer);
    return t->code == 0 ? answer : NULL;
}

/* The only item of an answer, or a zeroed one that carries the call's own code. */
static const struct hf_item *only(struct hf_conform *t, const struct hf_answer *answer)
{
    if (answer && hf_answer_count(answer) > 0) {
        const struct hf_item *item = hf_answer_at(answer, 0);
        if (item->code && !t->failed) {
            t->err.code = item->code;
            t->err.field[0] = 0;
            t->err.message[0] = 0;
            for (size_t i = 0; item->field && item->field[i] && i < 39; i++) {
                t->err.field[i] = item->field[i];
                t->err.field[i + 1] = 0;
            }
            for (size_t i = 0; item->message && item->message[i] && i < 239; i++) {
                t->err.message[i] = item->message[i];
                t->err.message[i + 1] = 0;
            }
        }
        return item;
    }
    struct hf_item *item = kit_memory(t, sizeof(*item));
    static const struct hf_item none;
    if (!item)
        return &none;
    item->code = t->code;
    return item;
}

size_t count_of(const struct hf_answer *answer)
{
    return answer ? hf_answer_count(answer) : 0;
}

const struct hf_item *item_of(const struct hf_answer *answer, size_t i)
{
    static const struct hf_item none;
    const struct hf_item *item = answer ? hf_answer_at(answer, i) : NULL;
    return item ? item : &none;
}

static void complete_new(struct hf_conform *t, struct hf_work_spec *request)
{
    request->size = sizeof(*request);
    t->made++;
    if (request->source == HF_SOURCE_NONE)
        request->source = HF_SOURCE_MANUAL;
    if (!request->source_id)
        request->source_id = kit_say(t, "unit-%lld", (long long)t->made);
    if (request->priority == 0)
        request->priority = -1;
    else if (request->priority == MOST_URGENT)
        request->priority = 0;
}

const struct hf_answer *kit_create_many(struct hf_conform *t,
                                        struct hf_work_spec *requests, size_t n,
                                        unsigned flags)
{
    struct hf_answer *answer = NULL;
    for (size_t i = 0; i < n; i++)
        complete_new(t, &requests[i]);
    if (t->failed)
        return NULL;
    t->code = kit_called(
        t, hf_work_create(t->store, &t->who, requests, n, flags, &answer, kit_err(t)));
    return kept(t, answer);
}

const struct hf_item *kit_create(struct hf_conform *t, struct hf_work_spec request)
{
    return only(t, kit_create_many(t, &request, 1, 0));
}

const struct hf_answer *kit_claim(struct hf_conform *t, struct hf_claim request)
{
    struct hf_answer *answer = NULL;
    request.size = sizeof(request);
    if (!request.owner)
        request.owner = "alice";
    if (!request.incarnation)
        request.incarnation = "boot-1";
    if (t->failed)
        return NULL;
    t->code = kit_called(t,
                         hf_work_claim(t->store, &t->who, &request, &answer, kit_err(t)));
    return kept(t, answer);
}

const struct hf_item *kit_claim_one(struct hf_conform *t, struct hf_claim request)
{
    return only(t, kit_claim(t, request));
}

const struct hf_answer *kit_change_many(struct hf_conform *t, struct hf_change *changes,
                                        size_t n, unsigned flags)
{
    struct hf_answer *answer = NULL;
    for (size_t i = 0; i < n; i++)
        changes[i].size = sizeof(changes[i]);
    if (t->failed)
        return NULL;
    t->code = kit_called(
        t, hf_work_change(t->store, &t->who, changes, n, flags, &answer, kit_err(t)));
    return kept(t, answer);
}

const struct hf_item *kit_change(struct hf_conform *t, struct hf_change request)
{
    return only(t, kit_change_many(t, &request, 1, 0));
}

const struct hf_answer *kit_renew_all(struct hf_conform *t, struct hf_renew_all request)
{
    struct hf_answer *answer = NULL;
    request.size = sizeof(request);
    if (!request.owner)
        request.owner = "alice";
    if (t->failed)
        return NULL;
    t->code = kit_called(
        t, hf_work_renew_all(t->store, &t->who, &request, &answer, kit_err(t)));
    return kept(t, answer);
}

const struct hf_answer *kit_list(struct hf_conform *t, struct hf_filter filter)
{
    struct hf_answer *answer = NULL;
    filter.size = sizeof(filter);
    if (t->failed)
        return NULL;
    t->code = kit_called(t,
                         hf_work_list(t->store, &t->who, &filter, &answer, kit_err(t)));
    return kept(t, answer);
}

struct held kit_running(struct hf_conform *t, struct hf_work_spec request)
{
    const struct hf_item *made = kit_create(t, request);
    kit_code(t, "create", 0, made->code);
    const struct hf_item *taken = kit_claim_one(
        t, (struct hf_claim){ .id = made->work.work_id });
    kit_code(t, "claim", 0, taken->code);
    if (!t->failed && !taken->token)
        kit_fail(t, "claim by id: nothing was claimed");
    return (struct held){ made->work.work_id, taken->token };
}

struct hf_sweep_report kit_sweep(struct hf_conform *t)
{
    struct hf_sweep_report report = { 0 };
    if (!t->failed) {
        t->code = kit_called(t, hf_work_sweep(t->store, &t->who, 0, &report, kit_err(t)));
        kit_code(t, "sweep", 0, t->code);
    }
    return report;
}

struct hf_stats kit_stats(struct hf_conform *t)
{
    struct hf_stats found = { .gated = 0 };
    if (!t->failed) {
        t->code = kit_called(t, hf_work_stats(t->store, &t->who, &found, kit_err(t)));
        kit_code(t, "stats", 0, t->code);
    }
    return found;
}

int64_t kit_prune(struct hf_conform *t, hf_ms older_than_ms, size_t limit)
{
    int64_t rows = 0;
    if (!t->failed) {
        t->code = kit_called(
            t, hf_work_prune(t->store, &t->who, older_than_ms, limit, &rows, kit_err(t)));
        kit_code(t, "prune", 0, t->code);
    }
    return rows;
}

int kit_policy(struct hf_conform *t, const char *scope, struct hf_policy request)
{
    request.size = sizeof(request);
    if (t->failed)
        return 0;
    t->code = kit_called(t,
                         hf_policy_set(t->store, &t->who, scope, &request, kit_err(t)));
    return t->code;
}

int64_t kit_bump(struct hf_conform *t)
{
    int64_t now = 0;
    if (!t->failed) {
        t->code = kit_called(t, hf_store_bump(t->store, &now, kit_err(t)));
        kit_code(t, "bump", 0, t->code);
    }
    return now;
}

int64_t kit_amnesty(struct hf_conform *t, hf_ms stalled_ms)
{
    int64_t rows = 0;
    if (!t->failed) {
        t->code = kit_called(
            t, t->store->methods->amnesty(t->store, stalled_ms, &rows, kit_err(t)));
        kit_code(t, "amnesty", 0, t->code);
    }
    return rows;
}

const struct hf_work *kit_row(struct hf_conform *t, const char *id)
{
    struct hf_answer *answer = NULL;
    if (!t->failed)
        t->code = kit_called(t, hf_work_get(t->store, &t->who, id, &answer, kit_err(t)));
    return &only(t, t->failed ? NULL : kept(t, answer))->work;
}

const struct hf_events *kit_events(struct hf_conform *t, const char *id)
{
    struct hf_events *trail = NULL;
    if (t->failed)
        return NULL;
    t->code = kit_called(
        t, hf_work_events(t->store, &t->who, id, 0, 1000, &trail, kit_err(t)));
    kit_code(t, "events", 0, t->code);
    if (t->code == 0)
        kit_keep(t, trail, drop_events);
    return t->code == 0 ? trail : NULL;
}

size_t kit_count_events(struct hf_conform *t, const char *id, const char *type)
{
    const struct hf_events *trail = kit_events(t, id);
    size_t count = 0;
    for (size_t i = 0; trail && i < hf_events_count(trail); i++)
        count += same(type, hf_events_at(trail, i)->event_type);
    return count;
}

const struct hf_event *kit_last_event(struct hf_conform *t, const char *id,
                                      const char *type)
{
    static const struct hf_event none;
    const struct hf_event *last = &none;
    const struct hf_events *trail = kit_events(t, id);
    for (size_t i = 0; trail && i < hf_events_count(trail); i++) {
        const struct hf_event *event = hf_events_at(trail, i);
        if (same(type, event->event_type))
            last = event;
    }
    return last;
}

const struct hf_event *kit_last_change(struct hf_conform *t, const char *id)
{
    static const struct hf_event none;
    const struct hf_event *last = &none;
    const struct hf_events *trail = kit_events(t, id);
    for (size_t i = 0; trail && i < hf_events_count(trail); i++) {
        const struct hf_event *event = hf_events_at(trail, i);
        if (event->to_status)
            last = event;
    }
    return last;
}

const char *kit_session(struct hf_conform *t, const char *session_id)
{
    struct hf_session_answer *made = NULL;
    struct hf_session_spec request = { .size = sizeof(request),
                                       .session_id = session_id,
                                       .agent = "a" };
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_create(t->store, &t->who, &request, &made, kit_err(t)));
    hf_session_answer_free(made);
    if (!t->failed && t->code)
        kit_fail(t, "session %s was not created: %s", session_id, t->err.message);
    return session_id;
}
