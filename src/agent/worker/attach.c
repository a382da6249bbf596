/* Attachments of a model call: their bytes are read on a store thread before the call is made.
 * While they are read the seat lives on, since the render shows its records; a call that was
 * given up meanwhile is not made. */
#include "agent/worker/worker.h"

#include <string.h>

#include "base/text.h"

#define REF "sha256:"

struct seat_fetch {
    struct worker_job job;
    struct seat *seat;
    struct hf_render *render;
    const struct hf_request *request; /* valid until the call is given up */
    uint64_t id;
    bool stopped;
    size_t count;
    struct hf_session_answer **blobs; /* one per attachment of the render */
    int code;
    struct hf_err err;
};

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_ref(const char *ref, uint8_t ret_hash[32])
{
    const char *hex = ref + sizeof(REF) - 1;
    if (!hf_starts_with(ref, REF) || strlen(hex) != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_hash[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* On a store thread. */
static void run_fetch(void *user)
{
    struct seat_fetch *fetch = user;
    struct hf_store *store = fetch->seat->worker->config.store;
    for (size_t i = 0; fetch->code == 0 && i < fetch->count; i++) {
        const struct hf_attachment *at = hf_render_attachment(fetch->render, i);
        uint8_t hash[32];
        fetch->code = read_ref(at->ref, hash)
                          ? hf_session_blob_get(store, hash, &fetch->blobs[i],
                                                &fetch->err)
                          : hf_fail(&fetch->err, HF_EINVAL, "attachment",
                                    "%.80s is not sha256: and 64 hex digits", at->ref);
    }
}

static int lend(void *user, const struct hf_attachment *attachment,
                struct hf_span *ret_bytes, struct hf_err *err)
{
    const struct seat_fetch *fetch = user;
    for (size_t i = 0; i < fetch->count; i++)
        if (hf_render_attachment(fetch->render, i) == attachment) {
            *ret_bytes = fetch->blobs[i]->blob;
            return 0;
        }
    return hf_fail(err, HF_EINVAL, "attachment", "the request does not have it");
}

static void free_fetch(struct seat_fetch *fetch)
{
    const struct hf_alloc *alloc = fetch->seat->worker->alloc;
    for (size_t i = 0; fetch->blobs && i < fetch->count; i++)
        hf_session_answer_free(fetch->blobs[i]);
    hf_render_free(fetch->render);
    alloc->free(alloc->user, fetch->blobs);
    alloc->free(alloc->user, fetch);
}

/* On the loop. */
static void on_fetched(void *user)
{
    struct seat_fetch *fetch = user;
    struct seat *seat = fetch->seat;
    struct hf_worker *worker = seat->worker;
    struct hf_model_call call = { .size = sizeof(call),
                                  .request = fetch->request,
                                  .render = fetch->render,
                                  .user = fetch,
                                  .attachment = lend };
    worker_enter(worker);
    if (seat->fetch == fetch)
        seat->fetch = NULL;
    fetch->err.code = fetch->code;
    if (!fetch->stopped && !seat->ended && seat_still_held(seat)) {
        if (fetch->code)
            seat_refuse_model(seat, fetch->id, &fetch->err);
        else
            seat_call_model(seat, &call);
    }
    free_fetch(fetch);
    seat->fetches--;
    seat_pump(seat); /* it may have waited for this to end */
    worker_leave(worker);
}

void seat_fetch_start(struct seat *seat, const struct hf_drive_action *action,
                      struct hf_render *render)
{
    const struct hf_alloc *alloc = seat->worker->alloc;
    struct hf_err err = { .code = HF_ENOMEM };
    size_t count = 0;
    while (hf_render_attachment(render, count))
        count++;
    struct seat_fetch *fetch = alloc->realloc(alloc->user, NULL, sizeof(*fetch));
    struct hf_session_answer **blobs = alloc->realloc(alloc->user, NULL,
                                                      count * sizeof(*blobs));
    if (!fetch || !blobs) {
        alloc->free(alloc->user, fetch);
        alloc->free(alloc->user, blobs);
        hf_render_free(render);
        seat_refuse_model(seat, action->id, &err);
        return;
    }
    memset(blobs, 0, count * sizeof(*blobs));
    *fetch = (struct seat_fetch){ .seat = seat,
                                  .render = render,
                                  .request = action->request,
                                  .id = action->id,
                                  .count = count,
                                  .blobs = blobs };
    fetch->job =
        (struct worker_job){ .user = fetch, .run = run_fetch, .done = on_fetched };
    seat->fetch = fetch;
    seat->fetches++;
    worker_threads_add(seat->worker->threads, &fetch->job);
}

void seat_fetch_stop(struct seat *seat, uint64_t id)
{
    if (!seat->fetch || seat->fetch->id != id)
        return;
    seat->fetch->stopped = true;
    seat->fetch = NULL;
}
