/* The store calls of a worker: claiming a session and loading its history, storing a step,
 * committing, handing back, renewing all leases. They block, and run on the worker's threads
 * (threads.c); each seat has at most one out, so that the thread and the loop never use a seat at
 * the same time. */
#include "agent/worker/worker.h"

#include <string.h>

bool seat_is_lost(int code)
{
    return code == HF_ESESSIONLOST || code == HF_ESUPERSEDED || code == HF_EHEADMOVED ||
           code == HF_ESESSIONDELETED;
}

/* ---- claim and load ---------------------------------------------------------------- */

static int add_page(struct seat *seat, const struct hf_session_load *load,
                    struct hf_session_answer **ret_page)
{
    struct hf_worker *worker = seat->worker;
    struct seat_page *page = hf_arena_new(&seat->arena, struct seat_page);
    if (!page)
        return hf_fail_plain(&seat->err, HF_ENOMEM);
    int rc = hf_session_load(worker->config.store, load, &page->answer, &seat->err);
    if (rc)
        return rc;
    page->next = seat->pages;
    seat->pages = page;
    *ret_page = page->answer;
    return 0;
}

static void add_records(struct seat *seat, const struct hf_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        seat->records[seat->record_count++] = nodes[i].record;
}

/* Records that a claim loads; a history that has more is loaded in larger pages. */
#define CLAIMED_RECORDS 100

/* The whole history. The lease is held, so that no page can change meanwhile. */
static int load(struct seat *seat)
{
    struct hf_session_load request = { .size = sizeof(request) };
    struct hf_session_answer *page = seat->claim;
    request.session_id = seat->claim->sessions[0].session_id;
    int rc = page->loaded ? 0 : add_page(seat, &request, &page);
    if (rc)
        return rc;
    seat->loaded = page;
    const struct hf_session_turn *turn = page->turn;
    if (!turn)
        return hf_fail(&seat->err, HF_ESESSIONLOST, "turn",
                       "the turn is not open any more");
    size_t room = (size_t)page->sessions[0].record_count + turn->stored_count;
    seat->records = hf_arena_array(&seat->arena, room + 1, sizeof(*seat->records));
    if (!seat->records)
        return hf_fail_plain(&seat->err, HF_ENOMEM);
    add_records(seat, page->nodes, page->node_count);
    request.head_revision = page->sessions[0].head_revision;
    request.record_count = page->sessions[0].record_count;
    while (rc == 0 && page->next_ordinal > 0) {
        request.from_ordinal = page->next_ordinal;
        rc = add_page(seat, &request, &page);
        if (rc == 0)
            add_records(seat, page->nodes, page->node_count);
    }
    if (rc == 0)
        add_records(seat, turn->nodes, turn->stored_count);
    return rc;
}

static int claim_any(struct seat *seat)
{
    const struct hf_worker_config *config = &seat->worker->config;
    const char *names[32];
    size_t count = 0;
    for (; count < config->agent_count && count < 32; count++)
        names[count] = config->agents[count].name;
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .agents = names,
                                      .agent_count = count,
                                      .pid = config->pid,
                                      .wait_ms = config->poll_ms,
                                      .ttl_ms = config->ttl_ms,
                                      .records = CLAIMED_RECORDS };
    return hf_session_claim(config->store, NULL, &claim, &seat->claim, &seat->err);
}

/* One look at the head first: a claim of a session that has nothing to do would write. */
static int claim_one(struct seat *seat)
{
    const struct hf_worker_config *config = &seat->worker->config;
    struct hf_session_answer *head = NULL;
    struct hf_session_claim claim = { .size = sizeof(claim),
                                      .session_id = config->session_id,
                                      .pid = config->pid,
                                      .ttl_ms = config->ttl_ms,
                                      .records = CLAIMED_RECORDS };
    int rc = hf_session_head(config->store, config->session_id, &head, &seat->err);
    if (rc)
        return rc;
    const struct hf_session *session = &head->sessions[0];
    bool ready = session->owner ||
                 (session->ready_at && session->ready_at <= worker_wall(seat->worker));
    hf_session_answer_free(head);
    if (ready)
        rc = hf_session_claim(config->store, NULL, &claim, &seat->claim, &seat->err);
    return rc == HF_ESESSIONBUSY ? 0 : rc;
}

void seat_run_claim(void *user)
{
    struct seat *seat = user;
    const struct hf_worker_config *config = &seat->worker->config;
    seat->valid_until = worker_mono(seat->worker) + config->ttl_ms;
    seat->code = config->session_id ? claim_one(seat) : claim_any(seat);
    if (seat->code || !seat->claim || seat->claim->session_count == 0)
        return;
    if (seat->claim->turn)
        seat->code = load(seat);
    else /* its input was cancelled meanwhile */
        seat->code = hf_session_release(config->store, NULL,
                                        seat->claim->sessions[0].session_id,
                                        seat->claim->token, &seat->err);
}

/* ---- actions ----------------------------------------------------------------------- */

static int store_step(struct seat *seat, const struct hf_drive_step *step)
{
    struct hf_session_stepped stepped;
    struct hf_session_step request = {
        .size = sizeof(request),
        .session_id = seat->claim->sessions[0].session_id,
        .token = seat->claim->token,
        .turn_id = seat->claim->turn->turn_id,
        .step = step->step,
        .node_count = step->node_count,
        .chain = step->chain,
        .records = step->records,
        .record_count = step->record_count,
        .save = step->save,
        .begun = step->begun,
        .begun_count = step->begun_count,
        .settled = step->settled,
        .settled_count = step->settled_count,
        .blobs = step->blobs,
        .blob_count = step->blob_count,
        .active_ms = step->active_ms,
        .waits = step->waits,
        .wait_count = step->wait_count,
        .away = step->away,
    };
    int rc = hf_session_step(seat->worker->config.store, NULL, &request, &stepped,
                             &seat->err);
    seat->cancel_requested = rc == 0 && stepped.cancel_requested;
    return rc;
}

static int store_commit(struct seat *seat, const struct hf_drive_commit *commit)
{
    const struct hf_session *session = &seat->loaded->sessions[0];
    struct hf_session_spent spent = { "model", seat->agent->model, *commit->usage };
    struct hf_session_committed committed;
    struct hf_session_commit request = {
        .size = sizeof(request),
        .session_id = session->session_id,
        .token = seat->claim->token,
        .turn_id = seat->claim->turn->turn_id,
        .head_revision = seat->loaded->turn->base_revision,
        .record_count = session->record_count,
        .step = commit->step,
        .node_count = commit->node_count,
        .chain = commit->chain,
        .records = commit->records,
        .added_count = commit->record_count,
        .status = commit->status,
        .outcome = commit->outcome.at,
        .spent = &spent,
        .spent_count = 1,
        .active_ms = commit->active_ms,
        .release = true,
    };
    return hf_session_commit(seat->worker->config.store, NULL, &request, &committed,
                             &seat->err);
}

static int hand_back(struct seat *seat, const struct hf_drive_action *action)
{
    struct hf_session_back back = { .size = sizeof(back),
                                    .session_id = seat->claim->sessions[0].session_id,
                                    .token = seat->claim->token,
                                    .reason = action->code ? action->message : NULL,
                                    .delay_ms = action->delay_ms,
                                    .active_ms = action->active_ms };
    return hf_session_hand_back(seat->worker->config.store, NULL, &back, &seat->err);
}

void seat_run_action(void *user)
{
    struct seat *seat = user;
    const struct hf_drive_action *action = &seat->action;
    if (action->kind == HF_DRIVE_STORE)
        seat->code = store_step(seat, action->step);
    else if (action->kind == HF_DRIVE_COMMIT)
        seat->code = store_commit(seat, action->commit);
    else if (action->kind == HF_DRIVE_BLOB)
        seat->code = hf_session_blob_get(seat->worker->config.store, action->hash,
                                         &seat->blob, &seat->err);
    else
        seat->code = hand_back(seat, action);
}

void worker_run_renewal(void *user)
{
    struct hf_worker *worker = user;
    worker->renewal_code = hf_session_renew_all(worker->config.store, worker->renewals,
                                                worker->renewal_count, NULL);
}
