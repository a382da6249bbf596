/* Watching the processes that hold leases, so that a death is noticed when it happens and not when
 * the lease lapses: one pidfd per holder (watch.h). */
#include "run/wait/watch.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "os/liveness.h"
#include "store/api/work.h"

/* How long a count that does not change is believed: other users' processes do not count. */
#define SURE_MS 1000

void hf_death_watch_init(struct hf_death_watch *watch, struct hf_store *store)
{
    watch->store = store;
    watch->count = 0;
    watch->gone = false;
    watch->look_at = 0;
    watch->sure_to = 0;
    watch->taken = 0;
}

static void drop(struct hf_death_watch *watch, size_t i)
{
    struct hf_death_watched *one = &watch->watched[i];
    (void)close(one->fd);
    watch->store->alloc->free(watch->store->alloc->user, one->holder);
    *one = watch->watched[--watch->count];
}

void hf_death_watch_fini(struct hf_death_watch *watch)
{
    while (watch->count > 0)
        drop(watch, watch->count - 1);
}

/* A holder that this process cannot judge, or that there is no room for, is left to its
 * lease's term. */
static void add(struct hf_death_watch *watch, const char *holder)
{
    const struct hf_alloc *alloc = watch->store->alloc;
    if (watch->count == HF_DEATH_WATCH_MAX)
        return;
    bool gone = false;
    int fd = hf_life_pidfd(holder, &gone);
    watch->gone |= gone;
    if (fd < 0)
        return;
    size_t bytes = strlen(holder) + 1;
    char *copy = alloc->realloc(alloc->user, NULL, bytes);
    if (!copy) {
        (void)close(fd);
        return;
    }
    memcpy(copy, holder, bytes);
    watch->watched[watch->count++] = (struct hf_death_watched){ fd, true, copy };
}

static void each_holder(void *user, const char *holder)
{
    struct hf_death_watch *watch = user;
    for (size_t i = 0; i < watch->count; i++) {
        if (hf_same(watch->watched[i].holder, holder)) {
            watch->watched[i].seen = true;
            return;
        }
    }
    add(watch, holder);
}

/* Since the last look. Where no process counts, something may always be. */
static bool nothing_new(struct hf_death_watch *watch, hf_ms now)
{
    const struct hf_store_methods *methods = watch->store->methods;
    uint32_t taken = 0;
    if (!methods->taken_here || !methods->taken_here(watch->store, &taken))
        return false;
    bool same = taken == watch->taken && now < watch->sure_to;
    watch->taken = taken; /* as of before the look: what comes during it is new */
    return same;
}

int hf_death_watch_refresh(struct hf_death_watch *watch, struct hf_err *err)
{
    hf_ms start = hf_store_mono(watch->store);
    if (!watch->store->methods->holders || start < watch->look_at ||
        nothing_new(watch, start))
        return 0;
    for (size_t i = 0; i < watch->count; i++)
        watch->watched[i].seen = false;
    watch->gone = false;
    int rc = watch->store->methods->holders(watch->store, each_holder, watch, err);
    for (size_t i = watch->count; rc == 0 && i > 0; i--)
        if (!watch->watched[i - 1].seen)
            drop(watch, i - 1);
    hf_ms end = hf_store_mono(watch->store);
    watch->look_at = end + 50 * (end - start);
    watch->sure_to = end + SURE_MS;
    return rc;
}

bool hf_death_watch_died(struct hf_death_watch *watch)
{
    struct pollfd fds[HF_DEATH_WATCH_MAX];
    for (size_t i = 0; i < watch->count; i++)
        fds[i] = (struct pollfd){ .fd = watch->watched[i].fd, .events = POLLIN };
    bool dead = watch->gone || (watch->count > 0 && poll(fds, watch->count, 0) > 0);
    if (dead) /* the process that is swept now is not to be found dead again */
        watch->look_at = watch->sure_to = 0;
    return dead;
}

int hf_death_watch_wait(struct hf_death_watch *watch, uint32_t topic, uint32_t seen,
                        hf_ms ms, bool *ret_death, struct hf_err *err)
{
    struct hf_store *store = watch->store;
    hf_ms end = hf_store_mono(store) + ms;
    *ret_death = false;
    for (;;) {
        int rc = hf_death_watch_refresh(watch, err);
        if (rc)
            return rc;
        *ret_death = hf_death_watch_died(watch);
        hf_ms left = end - hf_store_mono(store);
        if (*ret_death || left <= 0)
            return 0;
        if (store->methods->bell_wait(
                store, topic, seen, left < HF_DEATH_WATCH_MS ? left : HF_DEATH_WATCH_MS))
            return 0;
    }
}
