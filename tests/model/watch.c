/* What needs a person, and what a person has seen: by walking all rows, without any index. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "model/inside.h"

struct looking {
    struct m_call call;
    const struct hf_look *look;
    size_t shown;
    struct hf_look_found found;
    int rc;
};

static bool of_tenant(const struct looking *l, const char *tenant)
{
    return !l->call.who->tenant[0] || m_same(l->call.who->tenant, tenant);
}

static void show(struct looking *l, int64_t *count, const struct hf_look_row *seen)
{
    (*count)++;
    if (l->rc == 0 && l->shown < l->look->limit) {
        l->shown++;
        l->rc = l->look->each(l->look->user, seen);
    }
}

/* ---- units -------------------------------------------------------------------------- */

static bool bad_end(const struct m_row *row)
{
    return row->status == HF_STATUS_FAILED || row->status == HF_STATUS_TIMEOUT ||
           row->status == HF_STATUS_ABANDONED;
}

static bool waits_long(const struct m_call *call, const struct hf_work *w)
{
    hf_ms half = (w->deadline_at - w->updated_at) / 2;
    return m_same(w->status_reason, "wait_overdue") || (w->escalate && !w->escalate_at) ||
           (w->deadline_at && call->now - w->updated_at > half);
}

static bool is_found(const struct looking *l, const struct m_row *row)
{
    const struct hf_work *w = &row->w;
    hf_ms left = w->lease_expires_at - l->call.lease_now;
    switch ((int)l->look->what) {
    case HF_NEED_SILENT: return w->lease_expires_at && left <= 0;
    case HF_NEED_LAPSING:
        return w->lease_expires_at && left > 0 && 3 * left < w->lease_ttl_ms;
    case HF_NEED_QUESTION: return m_same(w->waiting_kind, "user") && !w->session_id;
    case HF_NEED_WAIT:
        return m_same(w->waiting_kind, "external") && !w->session_id &&
               waits_long(&l->call, w);
    case HF_NEED_HELD: return m_same(w->gate, "held");
    case HF_NEED_ENDED_BADLY: return bad_end(row) && !w->acked_at;
    default: return false;
    }
}

/* The time by which a kind is ordered; the least is shown first. */
static hf_ms order_of(enum hf_need what, const struct m_row *row)
{
    if (what == HF_NEED_SILENT || what == HF_NEED_LAPSING)
        return row->w.lease_expires_at;
    if (what == HF_NEED_QUESTION || what == HF_NEED_WAIT)
        return row->w.deadline_at;
    return what == HF_NEED_ENDED_BADLY ? -row->w.finished_at : 0;
}

static bool comes_first(enum hf_need what, const struct m_row *a, const struct m_row *b)
{
    hf_ms x = order_of(what, a), y = order_of(what, b);
    if (x != y)
        return x < y;
    return what == HF_NEED_ENDED_BADLY ? a->seq > b->seq : a->seq < b->seq;
}

static void show_unit(struct looking *l, const struct m_row *row)
{
    struct hf_work w = row->w;
    struct hf_look_row seen = { .work = &w };
    bool names = m_same(w.kind, "run") || m_same(w.kind, "question");
    w.lease_remaining_ms = w.lease_expires_at - l->call.lease_now;
    w.resume_payload = NULL;
    w.result = NULL;
    w.retry_policy = NULL;
    w.payload = names ? w.payload : NULL;
    for (size_t i = 0; i < l->call.disk->events.count; i++) {
        const struct hf_event *e = &l->call.disk->events.at[i].e;
        if (l->call.disk->events.at[i].seq == row->seq &&
            m_same(e->to_status, w.status)) {
            seen.said = e->message;
            seen.said_by = m_say(l->call.disk, "%s:%s", e->actor_kind, e->actor);
        }
    }
    if (l->look->what == HF_NEED_SILENT)
        seen.text = "no_pid";
    show(l, &l->found.units, &seen);
}

/* The found rows in their order, by picking the first of those that are left. */
static void look_units(struct looking *l)
{
    struct model_disk *disk = l->call.disk;
    bool *done = calloc(disk->rows.count + 1, sizeof(*done));
    for (;;) {
        const struct m_row *next = NULL;
        for (size_t i = 0; done && i < disk->rows.count; i++) {
            const struct m_row *row = &disk->rows.at[i];
            if (!done[i] && of_tenant(l, row->w.tenant) && is_found(l, row) &&
                (!next || comes_first(l->look->what, row, next)))
                next = row;
        }
        if (!next)
            break;
        done[next - disk->rows.at] = true;
        show_unit(l, next);
    }
    free(done);
}

/* ---- waits of turns ----------------------------------------------------------------- */

static bool wait_is_found(const struct looking *l, const struct hf_wait *w)
{
    hf_ms half = (w->deadline_at - w->opened_at) / 2;
    if (!m_same(w->state, "open") || !of_tenant(l, w->tenant))
        return false;
    if (l->look->what == HF_NEED_QUESTION)
        return m_same(w->kind, "approval");
    return !m_same(w->kind, "approval") && !m_same(w->kind, "timer") &&
           ((w->escalate && !w->escalate_at) || l->call.now - w->opened_at > half);
}

static bool wait_comes_first(const struct hf_wait *a, const struct hf_wait *b)
{
    return a->deadline_at != b->deadline_at ? a->deadline_at < b->deadline_at
                                            : strcmp(a->wait_id, b->wait_id) < 0;
}

/* Those that are found in their order: the first that comes after the last. */
static void look_waits(struct looking *l)
{
    const struct model_disk *disk = l->call.disk;
    for (const struct hf_wait *last = NULL;;) {
        const struct hf_wait *next = NULL;
        for (size_t i = 0; i < disk->waits.count; i++) {
            const struct hf_wait *w = &disk->waits.at[i].w;
            if (wait_is_found(l, w) && (!last || wait_comes_first(last, w)) &&
                (!next || wait_comes_first(w, next)))
                next = w;
        }
        if (!next)
            return;
        show(l, &l->found.others, &(struct hf_look_row){ .wait = next });
        last = next;
    }
}

/* ---- the rest of bad ends ----------------------------------------------------------- */

struct group {
    const char *kind;
    const char *class;
    int64_t count;
};

static void count_into(struct group *groups, size_t *count, const struct hf_work *w)
{
    size_t g = 0;
    while (g < *count &&
           !(m_same(groups[g].kind, w->kind) && m_same(groups[g].class, w->error_class)))
        g++;
    *count += g == *count;
    groups[g].kind = w->kind;
    groups[g].class = w->error_class;
    groups[g].count++;
}

struct rest {
    struct group *groups;
    size_t count;
    size_t skip;
};

static int rest_row(void *user, const struct hf_look_row *seen)
{
    struct rest *rest = user;
    if (rest->skip > 0)
        rest->skip--;
    else
        count_into(rest->groups, &rest->count, seen->work);
    return 0;
}

#define GROUPS 50

static void look_rest(struct looking *l)
{
    struct rest rest = { .skip = l->look->limit };
    struct hf_look_row others = { .count = 0 };
    rest.groups = calloc(l->call.disk->rows.count + 1, sizeof(*rest.groups));
    struct hf_look all = { .what = HF_NEED_ENDED_BADLY,
                           .limit = HF_LOOK_BOUND,
                           .each = rest_row,
                           .user = &rest };
    struct looking inner = { .call = l->call, .look = &all };
    look_units(&inner);
    for (size_t n = 0; n < rest.count; n++) {
        struct group *most = rest.groups;
        for (size_t g = 0; g < rest.count; g++)
            if (rest.groups[g].count > most->count)
                most = &rest.groups[g];
        const struct hf_look_row seen = { .kind = most->kind,
                                          .text = most->class,
                                          .count = most->count };
        l->found.units += most->count;
        if (n < GROUPS)
            l->rc = l->rc ? l->rc : l->look->each(l->look->user, &seen);
        else
            others.count += most->count;
        most->count = 0;
    }
    if (l->rc == 0 && others.count)
        l->rc = l->look->each(l->look->user, &others);
    free(rest.groups);
}

/* ---- sessions, queues, owners, limits ----------------------------------------------- */

static void look_sessions(struct looking *l)
{
    struct model_disk *disk = l->call.disk;
    bool silent = l->look->what == HF_NEED_SILENT;
    for (size_t i = 0; i < disk->sessions.count; i++) {
        const struct m_session *s = &disk->sessions.at[i];
        hf_ms left = s->expires_at - l->call.lease_now;
        bool found = silent ? left <= 0 : left > 0 && 3 * left < s->ttl_ms;
        const struct hf_look_row seen = { .id = s->s.session_id,
                                          .tenant = s->s.tenant,
                                          .kind = s->s.agent,
                                          .owner = s->owner,
                                          .text = silent ? "no_pid" : NULL,
                                          .count = left,
                                          .most = s->ttl_ms };
        if (s->nonce && found && of_tenant(l, s->s.tenant))
            show(l, &l->found.others, &seen);
    }
}

static bool is_served(const struct model_disk *disk, const struct hf_work *w)
{
    for (size_t i = 0; i < disk->rows.count; i++) {
        const struct m_row *row = &disk->rows.at[i];
        if (!m_same(row->w.queue, w->queue) || !m_same(row->w.kind, w->kind))
            continue;
        if (row->status == HF_STATUS_RUNNING)
            return true;
        for (size_t e = 0; e < disk->events.count; e++)
            if (disk->events.at[e].seq == row->seq &&
                m_same(disk->events.at[e].e.to_status, "running"))
                return true;
    }
    return false;
}

static hf_ms claimable_since(const struct hf_work *w)
{
    return w->updated_at > w->due_at ? w->updated_at : w->due_at;
}

static bool same_front(const struct hf_work *a, const struct hf_work *b)
{
    return m_same(a->queue, b->queue) && m_same(a->tenant, b->tenant) &&
           m_same(a->kind, b->kind);
}

static bool front_before(const struct hf_work *a, const struct hf_work *b)
{
    int order = strcmp(a->queue, b->queue);
    order = order ? order : strcmp(a->tenant, b->tenant);
    return (order ? order : strcmp(a->kind, b->kind)) < 0;
}

/* The fronts one after the other: the least that comes after the last. */
static void look_unserved(struct looking *l)
{
    const struct model_disk *disk = l->call.disk;
    for (const struct hf_work *last = NULL;;) {
        const struct hf_work *next = NULL;
        struct hf_look_row seen = { .count = 0 };
        for (size_t i = 0; i < disk->rows.count; i++) {
            const struct hf_work *w = &disk->rows.at[i].w;
            if (disk->rows.at[i].status != HF_STATUS_QUEUED || w->gate ||
                !of_tenant(l, w->tenant) || (last && !front_before(last, w)))
                continue;
            if (!next || front_before(w, next)) {
                next = w;
                seen = (struct hf_look_row){ .id = w->queue,
                                             .tenant = w->tenant,
                                             .kind = w->kind,
                                             .since = claimable_since(w),
                                             .count = 1 };
            } else if (same_front(w, next)) {
                hf_ms since = claimable_since(w);
                seen.since = since < seen.since ? since : seen.since;
                seen.count++;
            }
        }
        if (!next)
            return;
        if (seen.since <= l->call.now - l->look->unserved_ms && !is_served(disk, next))
            show(l, &l->found.units, &seen);
        last = next;
    }
}

/* A lease on one of its sessions holds, or one was claimed: its inputs have run. */
static bool is_taken(const struct looking *l, const char *agent)
{
    const struct model_disk *disk = l->call.disk;
    for (size_t i = 0; i < disk->sessions.count; i++) {
        const struct m_session *s = &disk->sessions.at[i];
        if (!m_same(s->s.agent, agent))
            continue;
        if (s->nonce && s->expires_at > l->call.lease_now)
            return true;
        for (size_t k = 0; k < disk->rows.count; k++)
            if (m_same(disk->rows.at[k].w.session_id, s->s.session_id) &&
                disk->rows.at[k].w.first_started_at)
                return true;
    }
    return false;
}

static bool agent_before(const struct hf_session *a, const struct hf_session *b)
{
    int order = strcmp(a->agent, b->agent);
    return (order ? order : strcmp(a->tenant, b->tenant)) < 0;
}

/* By agent and tenant: the least that comes after the last. */
static void look_agents(struct looking *l)
{
    const struct model_disk *disk = l->call.disk;
    for (const struct hf_session *last = NULL;;) {
        const struct hf_session *next = NULL;
        struct hf_look_row seen = { .count = 0 };
        for (size_t i = 0; i < disk->sessions.count; i++) {
            const struct hf_session *s = &disk->sessions.at[i].s;
            if (!s->ready_at || s->ready_at > l->call.now - l->look->unserved_ms ||
                !of_tenant(l, s->tenant) || (last && !agent_before(last, s)))
                continue;
            if (!next || agent_before(s, next)) {
                next = s;
                seen = (struct hf_look_row){
                    .id = s->agent, .tenant = s->tenant, .since = s->ready_at, .count = 1
                };
            } else if (!agent_before(next, s)) {
                seen.since = s->ready_at < seen.since ? s->ready_at : seen.since;
                seen.count++;
            }
        }
        if (!next)
            return;
        if (!is_taken(l, next->agent))
            show(l, &l->found.others, &seen);
        last = next;
    }
}

struct twins {
    struct looking *l;
    struct hf_look_row seen; /* of the owner that is being counted */
};

static void end_twins(struct twins *twins)
{
    if (twins->seen.count)
        show(twins->l, &twins->l->found.units, &twins->seen);
    twins->seen = (struct hf_look_row){ .count = 0 };
}

static void count_twin(void *user, const struct hf_holder *holder)
{
    struct twins *twins = user;
    if (!m_same(twins->seen.id, holder->owner))
        end_twins(twins);
    twins->seen.id = holder->owner;
    if (holder->twin) {
        twins->seen.count++;
        twins->seen.since = holder->started_at;
    }
}

static void look_twins(struct looking *l, struct hf_store *store)
{
    struct twins twins = { .l = l };
    l->rc = m_holder_list(store, l->call.who, NULL, count_twin, &twins, l->call.err);
    end_twins(&twins);
}

static void look_limits(struct looking *l)
{
    struct model_disk *disk = l->call.disk;
    for (size_t k = 0; k < disk->limits.count; k++) {
        const struct m_limit *limit = &disk->limits.at[k];
        int64_t silent = 0, used = 0, waiting = 0;
        hf_ms since = 0;
        for (size_t i = 0; i < disk->rows.count; i++) {
            const struct m_row *row = &disk->rows.at[i];
            if (!m_same(row->w.limit_name, limit->name))
                continue;
            bool lapsed = row->w.lease_expires_at &&
                          row->w.lease_expires_at <= l->call.lease_now;
            hf_ms at = row->w.lease_expires_at + l->call.now - l->call.lease_now;
            used += row->status == HF_STATUS_RUNNING ||
                    (row->status == HF_STATUS_QUEUED && !row->w.gate);
            waiting += m_same(row->w.gate, "limit") || m_same(row->w.gate, "rate");
            silent += lapsed;
            if (lapsed && (!since || at < since))
                since = at;
        }
        const char *tenant = strchr(limit->name, '\x1f');
        size_t len = tenant ? (size_t)(tenant - limit->name) : strlen(limit->name);
        const struct hf_look_row seen = {
            .id = m_say(disk, "%.*s", (int)len, limit->name),
            .tenant = tenant ? tenant + 1 : "",
            .since = since,
            .count = waiting,
            .most = limit->max,
        };
        if (limit->max && silent && silent >= used && used >= limit->max && waiting &&
            (!*seen.tenant || of_tenant(l, seen.tenant)))
            show(l, &l->found.units, &seen);
    }
}

/* ---- the verbs ---------------------------------------------------------------------- */

static int m_look(struct hf_store *store, const struct hf_caller *who,
                  const struct hf_look *look, struct hf_look_found *ret_found,
                  struct hf_err *err)
{
    struct looking l = { .call = m_begin(store, who, err), .look = look };
    if (look->rest) {
        look_rest(&l);
    } else if (look->what == HF_NEED_UNSERVED) {
        look_unserved(&l);
        look_agents(&l);
    } else if (look->what == HF_NEED_TWINS) {
        look_twins(&l, store);
    } else if (look->what == HF_NEED_LIMIT_STUCK) {
        look_limits(&l);
    } else {
        look_units(&l);
        if (look->what == HF_NEED_SILENT || look->what == HF_NEED_LAPSING)
            look_sessions(&l);
        if (look->what == HF_NEED_QUESTION || look->what == HF_NEED_WAIT)
            look_waits(&l);
    }
    *ret_found = l.found;
    return l.rc;
}

static void acknowledge(struct m_call *call, struct m_row *row, const struct hf_ack *ack,
                        int64_t *count)
{
    if (row->w.acked_at)
        return;
    row->w.acked_at = call->now;
    m_note(call, row, (struct m_say_event){ "work_acknowledged", ack->reason, NULL });
    (*count)++;
}

static int m_ack(struct hf_store *store, const struct hf_caller *who,
                 const struct hf_ack *ack, int64_t *ret_count, struct hf_err *err)
{
    struct m_call call = m_begin(store, who, err);
    int64_t count = 0;
    int code = 0;
    for (size_t i = 0; i < ack->id_count; i++) {
        const struct m_row *row = m_find(call.disk, ack->ids[i], &code);
        if (!row || !bad_end(row))
            return hf_fail(err, row ? HF_ETRANSITION : code, "ids", "not a bad end");
    }
    for (size_t i = 0; i < ack->id_count; i++)
        acknowledge(&call, m_find(call.disk, ack->ids[i], &code), ack, &count);
    for (size_t i = 0; ack->id_count == 0 && i < call.disk->rows.count; i++) {
        struct m_row *row = &call.disk->rows.at[i];
        if (bad_end(row) && (!ack->kind || m_same(ack->kind, row->w.kind)) &&
            (!who->tenant[0] || m_same(who->tenant, row->w.tenant)))
            acknowledge(&call, row, ack, &count);
    }
    *ret_count = count;
    return 0;
}

const struct hf_overview_methods m_overview_methods = {
    .look = m_look,
    .ack = m_ack,
    .queues = m_queues,
    .holders = m_holder_list,
    .ages = m_ages,
};
