/* What the figures of sessions and those of waits share. */
#ifndef HF_BENCH_LEDGER_SESSIONS_H
#define HF_BENCH_LEDGER_SESSIONS_H

#include <pthread.h>

#include <holdfast/session.h>

#include "bench.h"

#define BENCH_READY 1000
#define BENCH_SAMPLES 300

/* A session that was claimed: what its commit has to say. */
struct bench_held {
    char token[200];
    char turn_id[64];
    int64_t head_revision;
    int64_t record_count;
    uint8_t chain[32];
};

/* What a thread does with each session of its share. */
struct bench_crew {
    struct bench *bench;
    struct hf_store *store;
    struct bench_held *held;
    int (*each)(struct bench_crew *crew, size_t i);
    size_t first, count, every;
    int rc;
    struct hf_err err;
    pthread_t thread;
};

const char *bench_session_name(char id[32], const char *prefix, size_t i);
int bench_open_new(struct bench *bench, enum bench_place place,
                   struct hf_store **ret_store);
/* The session of that id; with NULL any that is ready. */
int bench_claim_session(struct hf_store *store, const char *id, struct bench_held *held,
                        struct hf_err *err);
/* `each` of 0 to count - 1, by so many threads. */
int bench_do_all(struct bench *bench, struct hf_store *store, struct bench_held *held,
                 size_t callers, size_t count, int (*each)(struct bench_crew *, size_t));
/* BENCH_READY sessions with a message each. */
int bench_make_ready(struct bench *bench, struct hf_store *store);
/* A session with a message, which is claimed. */
int bench_make_held(struct bench_crew *crew, const char *id, struct bench_held *held);
/* Claims of sessions that are ready, in two stores in turn, in microseconds; [0] is raw. */
int bench_claims(struct bench *bench, struct hf_store *const stores[2],
                 struct bench_pair *ret);

#endif
