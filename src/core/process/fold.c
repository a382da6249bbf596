/* The record of a process, from its events alone. What an event says is in its columns
 * and in its payload (core/ledger/note.c); each sort of event has one rule here. */
#include <holdfast/bounds.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/json_get.h"
#include "base/text.h"
#include "core/process/process.h"

#define PAYLOAD_MAX (16 * (size_t)HF_MAX_EVENT_BYTES)

/* One event on its way in. */
struct reading {
    struct hf_fold *fold;
    const struct hf_event *event;
    const struct json_t *payload; /* NULL: none */
    bool failed;                  /* no memory */
};

/* Copies of a member of an object: a text, or anything as canonical JSON. NULL: none. */
static const char *text_in(struct reading *r, const struct json_t *object,
                           const char *key)
{
    const char *text = hf_json_as_text(hf_json_member(object, key));
    if (!text)
        return NULL;
    const char *copy = hf_arena_text(r->fold->arena, text);
    r->failed |= !copy;
    return copy;
}

static const char *json_of(struct reading *r, const struct json_t *value)
{
    struct hf_buf text;
    if (!value)
        return NULL;
    hf_buf_init(&text, r->fold->arena->alloc, PAYLOAD_MAX);
    if (hf_json_canonical(&text, value))
        text.state = HF_ENOMEM;
    const char *kept = hf_buf_keep(&text, r->fold->arena);
    r->failed |= !kept;
    return kept;
}

static const char *json_in(struct reading *r, const char *key)
{
    return json_of(r, hf_json_member(r->payload, key));
}

/* ---- transitions ------------------------------------------------------------------- */

static void fold_lease(struct reading *r, enum hf_status to)
{
    struct hf_work *w = &r->fold->process.work;
    bool bound = hf_disposition_of(w->disposition) == HF_DISPOSITION_OWNER_BOUND &&
                 w->first_started_at != 0;
    bool waits = to == HF_STATUS_WAITING_USER || to == HF_STATUS_WAITING_EXTERNAL;
    if (to == HF_STATUS_RUNNING) {
        const struct json_t *lease = hf_json_member(r->payload, "lease");
        w->owner = text_in(r, lease, "owner");
        w->owner_incarnation = text_in(r, lease, "incarnation");
        if (!w->first_started_at)
            w->first_started_at = r->event->created_at;
    } else if (!waits || !bound) {
        w->owner = NULL;
        w->owner_incarnation = NULL;
    }
}

static void fold_error(struct reading *r)
{
    struct hf_work *w = &r->fold->process.work;
    const char *class = text_in(r, r->payload, "error_class");
    if (class || hf_same(r->event->event_type, "close_out"))
        w->error_class = class;
}

/* A requeue begins another life. */
static void fold_generation(struct reading *r)
{
    struct hf_work *w = &r->fold->process.work;
    if (r->event->generation == w->generation)
        return;
    w->generation = r->event->generation;
    w->error_class = NULL;
    w->cancel_request = NULL;
    w->abandon_request = NULL;
    w->first_started_at = 0;
}

static void fold_transition(struct reading *r)
{
    const struct hf_event *event = r->event;
    struct hf_work *w = &r->fold->process.work;
    enum hf_status to = hf_status_of(event->to_status);
    bool waits = to == HF_STATUS_WAITING_USER || to == HF_STATUS_WAITING_EXTERNAL;
    w->status = hf_status_word(to);
    w->attempt_count = event->attempt;
    w->lease_fence = event->fence;
    fold_generation(r);
    w->waiting_kind = !waits ? NULL : to == HF_STATUS_WAITING_USER ? "user" : "external";
    w->waiting_ref = waits ? text_in(r, r->payload, "ref") : NULL;
    w->finished_at = hf_status_terminal(to) ? event->created_at : 0;
    fold_error(r);
    fold_lease(r, to);
}

static void fold_created(struct reading *r)
{
    struct hf_work *w = &r->fold->process.work;
    w->work_id = hf_arena_text(r->fold->arena, r->event->work_id);
    w->disposition = text_in(r, r->payload, "disposition");
    r->failed |= !w->work_id;
    fold_transition(r);
}

/* ---- facts ------------------------------------------------------------------------- */

static void fold_registered(struct reading *r)
{
    struct hf_process *p = &r->fold->process;
    for (size_t i = 0; i < hf_process_field_count; i++) {
        const struct hf_field *field = &hf_process_fields[i];
        const char **at = (const char **)(void *)((char *)p + field->offset);
        if (field->kind == HF_FIELD_JSON)
            *at = json_in(r, field->name);
        else
            *at = text_in(r, r->payload, field->name);
    }
}

/* The list with or without one session, in order. */
static void fold_observer(struct reading *r, bool added)
{
    struct hf_process *p = &r->fold->process;
    const char *who = hf_json_as_text(hf_json_member(r->payload, "session"));
    struct json_t *list = NULL;
    struct hf_span now = { p->observers, p->observers ? strlen(p->observers) : 0 };
    if (!who ||
        (p->observers && hf_json_parse(now, PAYLOAD_MAX, "observers", &list, NULL)))
        return;
    size_t count = hf_json_items(list), kept = 0;
    const char **all = hf_arena_array(r->fold->arena, count + 1, sizeof(*all));
    r->failed |= !all;
    for (size_t i = 0; all && i < count; i++) {
        const char *one = hf_json_as_text(hf_json_item(list, i));
        int order = one ? hf_text_order(one, who) : 0;
        if (added && order > 0) {
            all[kept++] = who;
            added = false;
        }
        if (order != 0)
            all[kept++] = one;
    }
    if (all && added)
        all[kept++] = who;
    p->observers = all ? hf_texts_json(r->fold->arena, all, kept) : NULL;
    r->failed |= !p->observers;
    hf_json_free(list);
}

static void fold_observed(struct reading *r)
{
    fold_observer(r, true);
}

static void fold_unobserved(struct reading *r)
{
    fold_observer(r, false);
}

static void fold_retargeted(struct reading *r)
{
    r->fold->process.wake_session = text_in(r, r->payload, "session");
}

static void fold_referred(struct reading *r)
{
    r->fold->process.external_ref = text_in(r, r->payload, "ref");
}

static void fold_cancel(struct reading *r)
{
    r->fold->process.work.cancel_request = json_of(r, r->payload);
}

static void fold_abandon(struct reading *r)
{
    r->fold->process.work.abandon_request = json_of(r, r->payload);
}

/* ---- together ---------------------------------------------------------------------- */

void hf_fold_begin(struct hf_fold *fold, struct hf_arena *arena)
{
    *fold = (struct hf_fold){ .arena = arena };
}

static void fold_one(struct reading *r)
{
    static const struct {
        const char *type;
        void (*fold)(struct reading *r);
    } rules[] = {
        { "work_created", fold_created },       { "process_registered", fold_registered },
        { "observer_added", fold_observed },    { "observer_removed", fold_unobserved },
        { "wake_retargeted", fold_retargeted }, { "external_ref_set", fold_referred },
        { "cancel_requested", fold_cancel },    { "abandon_requested", fold_abandon },
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (hf_same(rules[i].type, r->event->event_type)) {
            rules[i].fold(r);
            return;
        }
    }
    if (r->event->to_status)
        fold_transition(r);
}

int hf_fold_event(struct hf_fold *fold, const struct hf_event *event, struct hf_err *err)
{
    struct reading r = { .fold = fold, .event = event };
    struct json_t *payload = NULL;
    struct hf_span text = { event->payload, event->payload ? strlen(event->payload) : 0 };
    if (event->payload && hf_json_parse(text, SIZE_MAX, "payload", &payload, NULL))
        return hf_fail(err, HF_ECORRUPT, "payload", "event %lld cannot be read",
                       (long long)event->event_id);
    r.payload = payload;
    fold_one(&r);
    hf_json_free(payload);
    return r.failed ? hf_fail_plain(err, HF_ENOMEM) : 0;
}
