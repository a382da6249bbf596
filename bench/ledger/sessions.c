/* Sessions: commits, reads of heads, claims and renewals through the public library, next to a
 * raw program that puts and gets one fenced row. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sessions.h"

#define AGENT "bench"
#define RECORD_BYTES 2048
#define SHORT_HISTORY 10
#define LONG_HISTORY 10000
#define COMMIT_RECORDS 500 /* of one commit, when a history is made */
#define RENEWED 10000
#define LEASE_MS 3600000 /* none lapses while the figure is measured */

static char body[RECORD_BYTES + 1];

/* ---- the verbs ------------------------------------------------------------------------ */

const char *bench_session_name(char id[32], const char *prefix, size_t i)
{
    (void)snprintf(id, 32, "%s%zu", prefix, i);
    return id;
}

static int create(struct hf_store *store, const char *id, struct hf_err *err)
{
    struct hf_session_spec wanted = { .size = sizeof wanted,
                                      .session_id = id,
                                      .agent = AGENT };
    struct hf_session_answer *answer;
    int rc = hf_session_create(store, NULL, &wanted, &answer, err);
    if (rc == 0)
        hf_session_answer_free(answer);
    return rc;
}

static int send(struct hf_store *store, const char *id, struct hf_err *err)
{
    struct hf_session_send wanted = {
        .size = sizeof wanted,
        .session_id = id,
        .message = "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"kind\":\"text\",\"content\":\"go on\"}]}}"
    };
    struct hf_answer *answer;
    int rc = hf_session_send(store, NULL, &wanted, &answer, err);
    if (rc == 0)
        hf_answer_free(answer);
    return rc;
}

/* The session of that id; with NULL any that is ready. */
int bench_claim_session(struct hf_store *store, const char *id, struct bench_held *held,
                        struct hf_err *err)
{
    static const char *const agents[] = { AGENT };
    struct hf_session_claim wanted = { .size = sizeof wanted,
                                       .session_id = id,
                                       .agents = id ? NULL : agents,
                                       .agent_count = id ? 0 : 1,
                                       .ttl_ms = LEASE_MS };
    struct hf_session_answer *answer;
    int rc = hf_session_claim(store, NULL, &wanted, &answer, err);
    if (rc)
        return rc;
    if (answer->session_count == 0 || (!id && !answer->turn)) {
        rc = hf_fail(err, HF_EINTERNAL, NULL, "no session was ready");
    } else {
        (void)snprintf(held->token, sizeof held->token, "%s", answer->token);
        held->head_revision = answer->sessions->head_revision;
        held->record_count = answer->sessions->record_count;
        held->turn_id[0] = '\0';
        if (answer->turn) {
            (void)snprintf(held->turn_id, sizeof held->turn_id, "%s",
                           answer->turn->turn_id);
            memcpy(held->chain, answer->turn->chain, sizeof held->chain);
        }
    }
    hf_session_answer_free(answer);
    return rc;
}

/* `count` records of `bytes` bytes, at most COMMIT_RECORDS. */
static int commit(struct hf_store *store, const char *id, const struct bench_held *held,
                  size_t count, size_t bytes, bool release, struct hf_err *err)
{
    const struct hf_part part = { .content = { body, bytes } };
    const struct hf_message message = {
        .id = "m", .role = HF_ROLE_ASSISTANT, .parts = &part, .part_count = 1
    };
    struct hf_record records[COMMIT_RECORDS];
    struct hf_session_committed done;
    for (size_t i = 0; i < count; i++)
        records[i] = (struct hf_record){ .kind = HF_RECORD_MESSAGE, .message = &message };
    struct hf_session_commit wanted = { .size = sizeof wanted,
                                        .session_id = id,
                                        .token = held->token,
                                        .turn_id = held->turn_id,
                                        .head_revision = held->head_revision,
                                        .record_count = held->record_count,
                                        .chain = held->chain,
                                        .records = records,
                                        .added_count = count,
                                        .status = HF_STATUS_DONE,
                                        .outcome = "{\"kind\":\"assistant_message\"}",
                                        .release = release };
    return hf_session_commit(store, NULL, &wanted, &done, err);
}

/* A message, and the claim of its turn. */
static int begin_turn(struct hf_store *store, const char *id, struct bench_held *held,
                      struct hf_err *err)
{
    int rc = send(store, id, err);
    return rc ? rc : bench_claim_session(store, id, held, err);
}

/* ---- many at once ----------------------------------------------------------------------- */

static void *do_share(void *arg)
{
    struct bench_crew *crew = arg;
    for (size_t i = crew->first; crew->rc == 0 && i < crew->count; i += crew->every)
        crew->rc = bench_stopped() ? hf_fail_plain(&crew->err, HF_EBUSY)
                                   : crew->each(crew, i);
    return NULL;
}

/* `each` of 0 to count - 1, by so many threads. */
int bench_do_all(struct bench *bench, struct hf_store *store, struct bench_held *held,
                 size_t callers, size_t count, int (*each)(struct bench_crew *, size_t))
{
    struct bench_crew all[BENCH_CALLERS];
    size_t started = 0;
    int rc = 0;
    for (; rc == 0 && started < callers; started += rc == 0) {
        all[started] = (struct bench_crew){ .bench = bench,
                                            .store = store,
                                            .held = held,
                                            .each = each,
                                            .first = started,
                                            .count = count,
                                            .every = callers };
        if (pthread_create(&all[started].thread, NULL, do_share, &all[started]))
            rc = hf_fail(&bench->err, HF_ENOMEM, NULL, "no thread could be started");
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(all[i].thread, NULL);
        if (rc == 0 && all[i].rc)
            rc = hf_fail_as(&bench->err, all[i].rc, &all[i].err);
    }
    return rc;
}

static int make_idle(struct bench_crew *crew, size_t i)
{
    char id[32];
    return create(crew->store, bench_session_name(id, "idle", i), &crew->err);
}

static int make_one(struct bench_crew *crew, const char *id)
{
    int rc = create(crew->store, id, &crew->err);
    return rc ? rc : send(crew->store, id, &crew->err);
}

static int make_ready(struct bench_crew *crew, size_t i)
{
    char id[32];
    return make_one(crew, bench_session_name(id, "s", i));
}

int bench_make_ready(struct bench *bench, struct hf_store *store)
{
    return bench_do_all(bench, store, NULL, BENCH_CALLERS, BENCH_READY, make_ready);
}

int bench_make_held(struct bench_crew *crew, const char *id, struct bench_held *held)
{
    int rc = make_one(crew, id);
    return rc ? rc : bench_claim_session(crew->store, id, held, &crew->err);
}

static int make_held(struct bench_crew *crew, size_t i)
{
    char id[32];
    return bench_make_held(crew, bench_session_name(id, "s", i), &crew->held[i]);
}

static int commit_held(struct bench_crew *crew, size_t i)
{
    char id[32];
    return commit(crew->store, bench_session_name(id, "s", i), &crew->held[i], 1,
                  RECORD_BYTES, false, &crew->err);
}

int bench_open_new(struct bench *bench, enum bench_place place,
                   struct hf_store **ret_store)
{
    memset(body, 'x', RECORD_BYTES);
    return bench_open(bench, place, ret_store);
}

/* ---- commits ---------------------------------------------------------------------------- */

/* The sessions are claimed before the clock starts: only the commits are measured. */
static int commit_rate(struct bench *bench, size_t callers, double *ret_rate)
{
    size_t count = bench->jobs / 10;
    struct hf_store *store;
    struct bench_held *held = calloc(count, sizeof *held);
    if (!held)
        return hf_fail_plain(&bench->err, HF_ENOMEM);
    int rc = bench_open_new(bench, BENCH_OURS, &store);
    if (rc == 0) {
        rc = bench_do_all(bench, store, held, BENCH_CALLERS, count, make_held);
        double start = bench_seconds();
        if (rc == 0)
            rc = bench_do_all(bench, store, held, callers, count, commit_held);
        *ret_rate = (double)count / (bench_seconds() - start);
        hf_store_close(store);
    }
    free(held);
    return rc;
}

int bench_commit_one(struct bench *bench, struct bench_pair *ret)
{
    int rc = bench_raw(bench)->put(bench, 1, &ret->raw);
    return rc ? rc : commit_rate(bench, 1, &ret->ours);
}

/* SQLite has one writer: raw is the single put. */
int bench_commit_many(struct bench *bench, struct bench_pair *ret)
{
    int rc = bench_raw(bench)->put(bench, bench->postgres ? BENCH_CALLERS : 1, &ret->raw);
    return rc ? rc : commit_rate(bench, BENCH_CALLERS, &ret->ours);
}

/* ---- steps ------------------------------------------------------------------------------ */

#define SAVE_BYTES 1024

/* One step of a driver, after a reply of 2 KiB: its outcome and its record, the intent of the next
 * effect, and the machine's save. */
static int store_step(struct hf_store *store, const char *id,
                      const struct bench_held *held, struct hf_session_stepped *at,
                      struct hf_err *err)
{
    static const char envelope[] =
        "{\"kind\":\"llm_call\",\"model\":\"m\",\"records\":1}";
    char outcome[RECORD_BYTES + 32], save[SAVE_BYTES], done[24], next[24];
    const struct hf_part part = { .content = { body, RECORD_BYTES } };
    const struct hf_message message = {
        .id = "m", .role = HF_ROLE_ASSISTANT, .parts = &part, .part_count = 1
    };
    const struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &message };
    int len = snprintf(outcome, sizeof outcome, "{\"reply\":\"%s\"}", body);
    (void)snprintf(done, sizeof done, "%lld", (long long)at->step);
    (void)snprintf(next, sizeof next, "%lld", (long long)at->step + 1);
    memset(save, (int)('a' + at->step % 26), sizeof save);
    struct hf_effect_entry begun = { .key = next,
                                     .kind = "llm_call",
                                     .recovery = HF_RECOVERY_KEYED,
                                     .envelope = { envelope, sizeof envelope - 1 } };
    struct hf_effect_settled settled = { .key = done,
                                         .status = HF_ENTRY_DONE,
                                         .outcome = { outcome, (size_t)len } };
    struct hf_session_step step = { .size = sizeof step,
                                    .session_id = id,
                                    .token = held->token,
                                    .turn_id = held->turn_id,
                                    .step = at->step,
                                    .node_count = at->node_count,
                                    .chain = at->chain,
                                    .records = &record,
                                    .record_count = 1,
                                    .save = { save, sizeof save },
                                    .begun = &begun,
                                    .begun_count = 1,
                                    .settled = &settled,
                                    .settled_count = at->step > 0 ? 1 : 0 };
    return hf_session_step(store, NULL, &step, at, err);
}

/* All steps of one session, one after the other. */
static int step_held(struct bench_crew *crew, size_t i)
{
    char id[32];
    struct hf_session_stepped at = { .step = 0 };
    size_t count = crew->bench->jobs / 10 / crew->count;
    int rc = 0;
    memcpy(at.chain, crew->held[i].chain, sizeof at.chain);
    for (size_t n = 0; rc == 0 && n < count && !bench_stopped(); n++)
        rc = store_step(crew->store, bench_session_name(id, "s", i), &crew->held[i], &at,
                        &crew->err);
    return rc;
}

/* So many sessions that are stepped at once. */
static int step_rate(struct bench *bench, size_t sessions, double *ret_rate)
{
    struct hf_store *store;
    struct bench_held held[BENCH_CALLERS];
    size_t count = bench->jobs / 10 / sessions * sessions;
    int rc = bench_open_new(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    rc = bench_do_all(bench, store, held, sessions, sessions, make_held);
    double start = bench_seconds();
    if (rc == 0)
        rc = bench_do_all(bench, store, held, sessions, sessions, step_held);
    *ret_rate = (double)count / (bench_seconds() - start);
    hf_store_close(store);
    return rc;
}

int bench_step_one(struct bench *bench, struct bench_pair *ret)
{
    int rc = bench_raw(bench)->put(bench, 1, &ret->raw);
    return rc ? rc : step_rate(bench, 1, &ret->ours);
}

int bench_step_many(struct bench *bench, struct bench_pair *ret)
{
    int rc = bench_raw(bench)->put(bench, bench->postgres ? BENCH_CALLERS : 1, &ret->raw);
    return rc ? rc : step_rate(bench, BENCH_CALLERS, &ret->ours);
}

/* A session with so many nodes. */
static int make_history(struct bench *bench, struct hf_store *store, const char *id,
                        size_t nodes)
{
    struct bench_held held;
    int rc = create(store, id, &bench->err);
    for (size_t done = 0; rc == 0 && done < nodes;) {
        size_t n = nodes - done < COMMIT_RECORDS ? nodes - done : COMMIT_RECORDS;
        rc = begin_turn(store, id, &held, &bench->err);
        if (rc == 0)
            rc = commit(store, id, &held, n, 100, true, &bench->err);
        done += n;
    }
    return rc;
}

int bench_commit_history(struct bench *bench, struct bench_pair *ret)
{
    static const char *const ids[] = { "short", "long" };
    double took[2][BENCH_SAMPLES];
    struct hf_store *store;
    struct bench_held held;
    int rc = bench_open_new(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    rc = make_history(bench, store, ids[0], SHORT_HISTORY);
    if (rc == 0)
        rc = make_history(bench, store, ids[1], LONG_HISTORY);
    for (size_t i = 0; rc == 0 && i < (size_t)2 * BENCH_SAMPLES; i++) {
        rc = begin_turn(store, ids[i % 2], &held, &bench->err);
        double start = bench_seconds();
        if (rc == 0)
            rc = commit(store, ids[i % 2], &held, 1, RECORD_BYTES, true, &bench->err);
        took[i % 2][i / 2] = (bench_seconds() - start) * 1e6;
    }
    hf_store_close(store);
    if (rc == 0) {
        ret->raw = bench_median(took[0], BENCH_SAMPLES);
        ret->ours = bench_median(took[1], BENCH_SAMPLES);
    }
    return rc;
}

/* ---- reads, claims, renewals --------------------------------------------------------------- */

int bench_session_head(struct bench *bench, struct bench_pair *ret)
{
    struct hf_store *store;
    int rc = bench_raw(bench)->get(bench, &ret->raw);
    if (rc == 0)
        rc = bench_open_new(bench, BENCH_OURS, &store);
    if (rc)
        return rc;
    rc = bench_do_all(bench, store, NULL, BENCH_CALLERS, BENCH_READY, make_idle);
    double start = bench_seconds();
    for (size_t i = 0; rc == 0 && i < bench->jobs; i++) {
        char id[32];
        struct hf_session_answer *answer;
        rc = hf_session_head(store, bench_session_name(id, "idle", i % BENCH_READY),
                             &answer, &bench->err);
        if (rc == 0)
            hf_session_answer_free(answer);
    }
    ret->ours = (double)bench->jobs / (bench_seconds() - start);
    hf_store_close(store);
    return rc;
}

/* Claims of ready sessions in two stores, in turn: [0] is raw. */
int bench_claims(struct bench *bench, struct hf_store *const stores[2],
                 struct bench_pair *ret)
{
    double took[2][BENCH_SAMPLES];
    struct bench_held held;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < (size_t)2 * BENCH_SAMPLES; i++) {
        double start = bench_seconds();
        rc = bench_claim_session(stores[i % 2], NULL, &held, &bench->err);
        took[i % 2][i / 2] = (bench_seconds() - start) * 1e6;
    }
    if (rc == 0) {
        ret->raw = bench_median(took[0], BENCH_SAMPLES);
        ret->ours = bench_median(took[1], BENCH_SAMPLES);
    }
    return rc;
}

int bench_session_claim(struct bench *bench, struct bench_pair *ret)
{
    struct hf_store *stores[2] = { NULL, NULL };
    int rc = bench_open_new(bench, BENCH_OURS, &stores[0]);
    if (rc == 0)
        rc = bench_open_new(bench, BENCH_LARGE, &stores[1]);
    if (rc == 0)
        rc = bench_do_all(bench, stores[1], NULL, BENCH_CALLERS, bench->finished / 10,
                          make_idle);
    for (size_t s = 0; rc == 0 && s < 2; s++)
        rc = bench_make_ready(bench, stores[s]);
    if (rc == 0)
        rc = bench_claims(bench, stores, ret);
    hf_store_close(stores[0]);
    hf_store_close(stores[1]);
    return rc;
}

static int hold_idle(struct bench_crew *crew, size_t i)
{
    char id[32];
    int rc = make_idle(crew, i);
    return rc ? rc
              : bench_claim_session(crew->store, bench_session_name(id, "idle", i),
                                    &crew->held[i], &crew->err);
}

static int renew(struct bench *bench, struct hf_store *store, struct bench_held *held,
                 double *ret_ms)
{
    struct hf_session_renewal *all = calloc(RENEWED, sizeof *all);
    char(*ids)[32] = calloc(RENEWED, sizeof *ids);
    int rc = all && ids ? 0 : hf_fail_plain(&bench->err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < RENEWED; i++)
        all[i] = (struct hf_session_renewal){
            .session_id = bench_session_name(ids[i], "idle", i), .token = held[i].token
        };
    double start = bench_seconds();
    if (rc == 0)
        rc = hf_session_renew_all(store, all, RENEWED, &bench->err);
    *ret_ms = (bench_seconds() - start) * 1e3;
    for (size_t i = 0; rc == 0 && i < RENEWED; i++)
        if (all[i].code)
            rc = hf_fail(&bench->err, all[i].code, NULL, "a lease was not renewed");
    free(all);
    free(ids);
    return rc;
}

int bench_session_renew(struct bench *bench, struct bench_pair *ret)
{
    struct hf_store *store;
    struct bench_held *held = calloc(RENEWED, sizeof *held);
    if (!held)
        return hf_fail_plain(&bench->err, HF_ENOMEM);
    int rc = bench_open_new(bench, BENCH_OURS, &store);
    if (rc == 0) {
        rc = bench_do_all(bench, store, held, BENCH_CALLERS, RENEWED, hold_idle);
        if (rc == 0)
            rc = renew(bench, store, held, &ret->ours);
        hf_store_close(store);
    }
    free(held);
    return rc;
}
