/* A run's hand in the store. See struct hf_hand. */
#include "run/command/execute.h"

#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"

#define MEMORY ((size_t)HF_STREAM_COUNT * HF_CAPTURE_SLOTS * HF_OUTPUT_CHUNK)

/* ---- the thread -------------------------------------------------------------------- */

/* A lease that was just seen to be another's is not renewed. */
static void answer(const struct hf_run *run, struct hf_hand *hand)
{
    struct hf_err ignored;
    hand->seen = (struct hf_seen){ 0 };
    if (hand->look)
        hand->seen = hf_run_seen(run, hand->attempt);
    if (hand->renew && (!hand->seen.told || hand->seen.ours)) {
        struct hf_seen renewed = hf_run_renew(run, hand->attempt);
        hand->seen = renewed.told ? renewed : hand->seen;
    }
    /* What could not be stored stays dirty and goes with the next. */
    hand->stored = hand->flush &&
                   hf_output_add(run->store, &run->who, &hand->add, &ignored) == 0;
}

static void *hand_main(void *user)
{
    struct hf_run *run = user;
    struct hf_hand *hand = &run->hand;
    const uint64_t one = 1;
    hf_lock(&hand->lock);
    while (!hand->thread.stopping) {
        if (!hand->busy || hand->answered) {
            (void)hf_threads_sleep(&hand->thread, HF_NO_END);
            continue;
        }
        hf_unlock(&hand->lock);
        answer(run, hand);
        hf_lock(&hand->lock);
        hand->answered = true;
        ssize_t rung = write(hand->bell, &one, sizeof one);
        (void)rung; /* the stepper looks by itself once per second */
    }
    hf_unlock(&hand->lock);
    return NULL;
}

/* Signals are the host's: none is to end up here. */
static int start_thread(struct hf_run *run)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = hf_threads_start(&run->hand.thread, hand_main, run);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int hf_hand_start(struct hf_run *run, struct hf_err *err)
{
    struct hf_hand *hand = &run->hand;
    hand->memory = run->alloc->realloc(run->alloc->user, NULL, MEMORY);
    if (!hand->memory)
        return hf_fail_plain(err, HF_ENOMEM);
    hand->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (hand->bell < 0)
        return 0;
    hf_lock_init(&hand->lock);
    hf_threads_init(&hand->thread, &hand->lock, NULL);
    hand->started = start_thread(run) == 0;
    return 0;
}

void hf_hand_end(struct hf_run *run)
{
    struct hf_hand *hand = &run->hand;
    if (hand->memory && hand->bell >= 0) {
        hf_threads_stop(&hand->thread);
        hf_threads_fini(&hand->thread);
        hf_lock_fini(&hand->lock);
        (void)close(hand->bell);
    }
    run->alloc->free(run->alloc->user, hand->memory);
    hand->memory = NULL;
}

/* ---- the stepper ------------------------------------------------------------------- */

void hf_hand_hear(struct hf_run *run)
{
    struct hf_hand *hand = &run->hand;
    uint64_t rung;
    if (!hand->busy)
        return;
    if (hand->started) {
        hf_lock(&hand->lock);
        hand->busy = !hand->answered;
        hand->answered = false;
        hf_unlock(&hand->lock);
        if (hand->busy)
            return;
        ssize_t got = read(hand->bell, &rung, sizeof rung);
        (void)got; /* it does not block */
    } else {
        hand->busy = false;
    }
    hf_run_judge(run, &hand->seen);
    for (int s = 0; hand->stored && s < HF_STREAM_COUNT; s++)
        hf_capture_stored(&run->capture[s], hand->bytes[s]);
}

/* A copy of what the store has not got yet. */
static void collect(struct hf_run *run)
{
    struct hf_hand *hand = &run->hand;
    hand->add = (struct hf_output_add){ .size = sizeof hand->add,
                                        .id = run->work_id,
                                        .attempt = run->attempt,
                                        .chunks = hand->chunks };
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        hand->add.chunk_count += hf_capture_collect(&run->capture[s], (enum hf_stream)s,
                                                    hand->chunks + hand->add.chunk_count,
                                                    &hand->add);
        hand->bytes[s] = run->capture[s].bytes;
    }
    for (size_t i = 0; i < hand->add.chunk_count; i++) {
        struct hf_span *data = &hand->chunks[i].data;
        char *copy = hand->memory + i * HF_OUTPUT_CHUNK;
        memcpy(copy, data->at, data->len);
        data->at = copy;
    }
    hand->flush = hand->add.chunk_count > 0;
}

static bool due(hf_ms *at, hf_ms now, hf_ms every)
{
    bool is = now >= *at;
    if (is)
        *at = now + every;
    return is;
}

void hf_hand_ask(struct hf_run *run, hf_ms now)
{
    struct hf_hand *hand = &run->hand;
    bool over = run->grip == HF_GRIP_LOST || run->grip == HF_GRIP_SETTLED;
    if (hand->busy)
        return;
    hand->look = !over && due(&run->look_at, now, HF_RUN_LOOK_MS);
    hand->renew = run->grip == HF_GRIP_HOLDS && due(&run->renew_at, now, run->ttl_ms / 3);
    hand->flush = false;
    hand->attempt = run->grip_attempt;
    if (due(&run->flush_at, now, HF_RUN_FLUSH_MS))
        collect(run);
    if (!hand->look && !hand->renew && !hand->flush)
        return;
    if (!hand->started) {
        answer(run, hand);
        hand->busy = true;
        hf_hand_hear(run);
        return;
    }
    hf_lock(&hand->lock);
    hand->busy = true;
    hf_threads_wake(&hand->thread);
    hf_unlock(&hand->lock);
}
