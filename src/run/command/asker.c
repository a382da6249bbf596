/* The thread by which a run asks the store. See struct hf_asker. */
#include "run/command/execute.h"

#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"

#define MEMORY ((size_t)HF_STREAM_COUNT * HF_CAPTURE_SLOTS * HF_OUTPUT_CHUNK)

/* ---- the thread -------------------------------------------------------------------- */

/* A lease that was just seen to be another's is not renewed. */
static void answer(const struct hf_run *run, struct hf_asker *asker)
{
    struct hf_err ignored;
    asker->seen = (struct hf_seen){ 0 };
    if (asker->look)
        asker->seen = hf_run_seen(run, asker->attempt);
    if (asker->renew && (!asker->seen.told || asker->seen.ours)) {
        struct hf_seen renewed = hf_run_renew(run, asker->attempt);
        asker->seen = renewed.told ? renewed : asker->seen;
    }
    /* What could not be stored stays dirty and goes with the next. */
    asker->stored = asker->flush &&
                    hf_output_add(run->store, &run->who, &asker->add, &ignored) == 0;
}

static void *asker_main(void *user)
{
    struct hf_run *run = user;
    struct hf_asker *asker = &run->asker;
    const uint64_t one = 1;
    hf_lock(&asker->lock);
    while (!asker->thread.stopping) {
        if (!asker->busy || asker->answered) {
            (void)hf_threads_sleep(&asker->thread, HF_NO_END);
            continue;
        }
        hf_unlock(&asker->lock);
        answer(run, asker);
        hf_lock(&asker->lock);
        asker->answered = true;
        ssize_t rung = write(asker->bell, &one, sizeof one);
        (void)rung; /* the stepper looks by itself once per second */
    }
    hf_unlock(&asker->lock);
    return NULL;
}

/* Signals are the host's: none is to end up here. */
static int start_thread(struct hf_run *run)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = hf_threads_start(&run->asker.thread, asker_main, run);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int hf_asker_start(struct hf_run *run, struct hf_err *err)
{
    struct hf_asker *asker = &run->asker;
    asker->memory = run->alloc->realloc(run->alloc->user, NULL, MEMORY);
    if (!asker->memory)
        return hf_fail_plain(err, HF_ENOMEM);
    asker->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (asker->bell < 0)
        return 0;
    hf_lock_init(&asker->lock);
    hf_threads_init(&asker->thread, &asker->lock, NULL);
    asker->started = start_thread(run) == 0;
    return 0;
}

void hf_asker_end(struct hf_run *run)
{
    struct hf_asker *asker = &run->asker;
    if (asker->memory && asker->bell >= 0) {
        hf_threads_stop(&asker->thread);
        hf_threads_fini(&asker->thread);
        hf_lock_fini(&asker->lock);
        (void)close(asker->bell);
    }
    run->alloc->free(run->alloc->user, asker->memory);
    asker->memory = NULL;
}

/* ---- the stepper ------------------------------------------------------------------- */

void hf_asker_take(struct hf_run *run)
{
    struct hf_asker *asker = &run->asker;
    uint64_t rung;
    if (!asker->busy)
        return;
    if (asker->started) {
        hf_lock(&asker->lock);
        asker->busy = !asker->answered;
        asker->answered = false;
        hf_unlock(&asker->lock);
        if (asker->busy)
            return;
        ssize_t got = read(asker->bell, &rung, sizeof rung);
        (void)got; /* it does not block */
    } else {
        asker->busy = false;
    }
    hf_run_judge(run, &asker->seen);
    for (int s = 0; asker->stored && s < HF_STREAM_COUNT; s++)
        hf_capture_stored(&run->capture[s], asker->bytes[s]);
}

/* A copy of what the store has not got yet. */
static void collect(struct hf_run *run)
{
    struct hf_asker *asker = &run->asker;
    asker->add = (struct hf_output_add){ .size = sizeof asker->add,
                                         .id = run->work_id,
                                         .attempt = run->attempt,
                                         .chunks = asker->chunks };
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        asker->add.chunk_count += hf_capture_collect(
            &run->capture[s], (enum hf_stream)s, asker->chunks + asker->add.chunk_count,
            &asker->add);
        asker->bytes[s] = run->capture[s].bytes;
    }
    for (size_t i = 0; i < asker->add.chunk_count; i++) {
        struct hf_span *data = &asker->chunks[i].data;
        char *copy = asker->memory + i * HF_OUTPUT_CHUNK;
        memcpy(copy, data->at, data->len);
        data->at = copy;
    }
    asker->flush = asker->add.chunk_count > 0;
}

static bool due(hf_ms *at, hf_ms now, hf_ms every)
{
    bool is = now >= *at;
    if (is)
        *at = now + every;
    return is;
}

void hf_asker_ask(struct hf_run *run, hf_ms now)
{
    struct hf_asker *asker = &run->asker;
    bool over = run->grip == HF_GRIP_LOST || run->grip == HF_GRIP_SETTLED;
    if (asker->busy)
        return;
    asker->look = !over && due(&run->look_at, now, HF_RUN_LOOK_MS);
    asker->renew = run->grip == HF_GRIP_HOLDS &&
                   due(&run->renew_at, now, run->ttl_ms / 3);
    asker->flush = false;
    asker->attempt = run->grip_attempt;
    if (due(&run->flush_at, now, HF_RUN_FLUSH_MS))
        collect(run);
    if (!asker->look && !asker->renew && !asker->flush)
        return;
    if (!asker->started) {
        answer(run, asker);
        asker->busy = true;
        hf_asker_take(run);
        return;
    }
    hf_lock(&asker->lock);
    asker->busy = true;
    hf_threads_wake(&asker->thread);
    hf_unlock(&asker->lock);
}
