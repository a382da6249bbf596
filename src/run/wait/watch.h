/* Watching the processes that hold leases, so that a death is noticed when it happens and
 * not when the lease lapses. A pidfd a holder; one thread at a time. */
#ifndef HF_RUN_WAIT_WATCH_H
#define HF_RUN_WAIT_WATCH_H

#include <holdfast/sys/store.h>

#define HF_DEATH_WATCH_MAX 256
/* How long a death may go unnoticed while a process waits. */
#define HF_DEATH_WATCH_MS 20

struct hf_death_watched {
    int fd;
    bool seen; /* in the last look at the store */
    char *holder;
};

struct hf_death_watch {
    struct hf_store *store;
    struct hf_death_watched watched[HF_DEATH_WATCH_MAX];
    size_t count;
    bool gone;      /* a holder was dead before it could be watched */
    hf_ms look_at;  /* monotonic: when the store may be asked again, */
    hf_ms sure_to;  /* and when it must be, although */
    uint32_t taken; /* no process here has taken a lease since */
};

void hf_death_watch_init(struct hf_death_watch *watch, struct hf_store *store);
void hf_death_watch_fini(struct hf_death_watch *watch);

/* Look which holders there are now, if it is time to: a look costs a row of the store each,
 * so with many rows running it is taken more seldom (a fiftieth of the time at most), and where
 * the store counts who takes leases here, once per second and when that has changed. */
int hf_death_watch_refresh(struct hf_death_watch *watch, struct hf_err *err);

/* Has one of them died? Does not block. */
bool hf_death_watch_died(struct hf_death_watch *watch);

/* Waits for the bell of a topic, up to `ms`, and for a death meanwhile. `seen` is the bell's
 * ticket from before the caller looked. */
int hf_death_watch_wait(struct hf_death_watch *watch, uint32_t topic, uint32_t seen,
                        hf_ms ms, bool *ret_death, struct hf_err *err);

#endif
