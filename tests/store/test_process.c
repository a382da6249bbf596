/* Processes under threads, on a SQLite file and on PostgreSQL: what no single thread can show. */
#include <holdfast/process.h>
#include <holdfast/store.h>
#include <holdfast/sys/store.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/batch/ops.h"
#include "support/fail_alloc.h"
#include "support/pg.h"
#include "support/unit.h"

#define THREADS 4
#define EACH 20
#define ROUNDS 20

static struct pg_server server;
static char folder[64];

static struct hf_store *opened(const char *url)
{
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    if (hf_store_open(url, NULL, &store, &err))
        fail_msg("%s: %s", url, err.message);
    return store;
}

/* Each claim of this file on both engines, on a store of its own. */
static void on_both(const char *name, void (*check)(struct hf_store *store))
{
    char url[400];
    (void)snprintf(url, sizeof(url), "%s/%s.db", folder, name);
    struct hf_store *store = opened(url);
    check(store);
    hf_store_close(store);
    store = opened(pg_server_schema(server.url, name, url));
    check(store);
    hf_store_close(store);
}

struct name {
    char id[64];
};

static struct name registered(struct hf_store *store, const char *source_id,
                              enum hf_disposition disposition)
{
    struct name name;
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = source_id,
                                 .priority = -1,
                                 .disposition = disposition };
    struct hf_process_spec wanted = { .size = sizeof(wanted),
                                      .work = &unit,
                                      .identity_kind = "test",
                                      .wake_session = "w" };
    if (hf_process_register(store, NULL, &wanted, &answer, &err))
        fail_msg("%s", err.message);
    (void)snprintf(name.id, sizeof(name.id), "%s", hf_answer_at(answer, 0)->work.work_id);
    hf_answer_free(answer);
    return name;
}

static int told(struct hf_store *store, struct hf_process_tell tell)
{
    bool repeated = false;
    tell.size = sizeof(tell);
    return hf_process_tell(store, NULL, &tell, &repeated, NULL);
}

static int cancelled(struct hf_store *store, const char *id)
{
    struct hf_answer *answer = NULL;
    struct hf_change change = {
        .size = sizeof(change), .verb = HF_VERB_CANCEL, .id = id, .reason = "enough"
    };
    int rc = hf_work_change(store, NULL, &change, 1, HF_ALL_OR_NONE, &answer, NULL);
    hf_answer_free(answer);
    return rc;
}

static size_t queued_wakes(struct hf_store *store, const char *session)
{
    char queue[80];
    struct hf_answer *answer = NULL;
    (void)snprintf(queue, sizeof(queue), "session:%s", session);
    struct hf_filter filter = { .size = sizeof(filter), .queue = queue, .limit = 1000 };
    assert_int_equal(hf_work_list(store, NULL, &filter, &answer, NULL), 0);
    size_t count = hf_answer_count(answer);
    hf_answer_free(answer);
    return count;
}

static void assert_refolds(struct hf_store *store, const char *id)
{
    char *stored = NULL, *folded = NULL;
    assert_int_equal(hf_process_records(store, NULL, id, &stored, &folded, NULL), 0);
    assert_string_equal(stored, folded);
    hf_store_text_free(store, stored);
    hf_store_text_free(store, folded);
}

/* ---- the feed ------------------------------------------------------------------------------- */

struct writer {
    struct hf_store *store;
    int number;
};

/* The facts of each process: registered, a session more, a signal, an end. */
static void *write_lives(void *arg)
{
    const struct writer *writer = arg;
    for (int i = 0; i < EACH; i++) {
        char source_id[40];
        (void)snprintf(source_id, sizeof(source_id), "%d-%d", writer->number, i);
        struct name p = registered(writer->store, source_id, HF_DISPOSITION_RERUNNABLE);
        if (told(writer->store, (struct hf_process_tell){ .what = HF_TELL_OBSERVE,
                                                          .id = p.id,
                                                          .name = "s" }) ||
            told(writer->store, (struct hf_process_tell){ .what = HF_TELL_SIGNAL,
                                                          .id = p.id,
                                                          .name = "go" }) ||
            cancelled(writer->store, p.id))
            return arg; /* a write failed */
    }
    return NULL;
}

struct life {
    char id[64];
    size_t seen;
};

static const char *const life_types[] = { "work_created", "process_registered",
                                          "observer_added", "signal.go", "transition" };

/* Takes an event in; each life must go its way in order, and only once. */
static void take_event(struct life *lives, const struct hf_feed_item *item)
{
    if (strcmp(item->kind, "process") != 0)
        return; /* a wake */
    size_t i = 0;
    while (i < THREADS * EACH && lives[i].id[0] &&
           strcmp(lives[i].id, item->event.work_id) != 0)
        i++;
    assert_true(i < THREADS * EACH);
    (void)snprintf(lives[i].id, sizeof(lives[i].id), "%s", item->event.work_id);
    assert_true(lives[i].seen < 5);
    assert_string_equal(item->event.event_type, life_types[lives[i].seen]);
    lives[i].seen++;
}

static void feed_is_whole(struct hf_store *store)
{
    static struct life lives[THREADS * EACH];
    struct writer writers[THREADS];
    pthread_t threads[THREADS];
    size_t seen = 0;
    struct hf_feed *feed = NULL;
    memset(lives, 0, sizeof(lives));
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){ store, i };
        assert_int_equal(pthread_create(&threads[i], NULL, write_lives, &writers[i]), 0);
    }
    while (seen < (size_t)THREADS * EACH * 5) { /* while they write, page by page */
        struct hf_feed *next = NULL;
        struct hf_feed_query query = { .size = sizeof(query),
                                       .after = feed ? hf_feed_next(feed) : NULL,
                                       .limit = 7,
                                       .wait_ms = 20000 };
        assert_int_equal(hf_work_feed(store, NULL, &query, &next, NULL), 0);
        hf_feed_free(feed);
        feed = next;
        assert_int_equal(hf_feed_notices(feed), 0);
        assert_true(hf_feed_count(feed) > 0);
        for (size_t i = 0; i < hf_feed_count(feed); i++) {
            const struct hf_feed_item *item = hf_feed_at(feed, i);
            seen += strcmp(item->kind, "process") == 0;
            take_event(lives, item);
        }
    }
    hf_feed_free(feed);
    for (int i = 0; i < THREADS; i++) {
        void *failure = NULL;
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
    }
    for (size_t i = 0; i < (size_t)THREADS * EACH; i++) {
        assert_int_equal(lives[i].seen, 5);
        assert_refolds(store, lives[i].id);
    }
    assert_int_equal(queued_wakes(store, "w"), THREADS * EACH);
}

static void the_feed_misses_no_process_whoever_writes(void **state)
{
    (void)state;
    on_both("feed", feed_is_whole);
}

/* ---- at once -------------------------------------------------------------------------------- */

struct rival {
    struct hf_store *store;
    const char *id;
    pthread_barrier_t *start;
    int code;
};

static void *retarget(void *arg)
{
    struct rival *rival = arg;
    (void)pthread_barrier_wait(rival->start);
    rival->code = told(rival->store, (struct hf_process_tell){ .what = HF_TELL_RETARGET,
                                                               .id = rival->id,
                                                               .name = "v" });
    return NULL;
}

static void *end_it(void *arg)
{
    struct rival *rival = arg;
    (void)pthread_barrier_wait(rival->start);
    rival->code = cancelled(rival->store, rival->id);
    return NULL;
}

static void *tell_once(void *arg)
{
    struct rival *rival = arg;
    (void)pthread_barrier_wait(rival->start);
    rival->code = told(rival->store, (struct hf_process_tell){ .what = HF_TELL_APPEND,
                                                               .id = rival->id,
                                                               .name = "step",
                                                               .key = "k",
                                                               .payload = "{\"n\":1}",
                                                               .wake = true });
    return NULL;
}

/* All at the same moment; their codes. */
static void race(struct rival *rivals, void *(*const acts[])(void *), size_t n)
{
    pthread_barrier_t start;
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)n), 0);
    for (size_t i = 0; i < n; i++) {
        rivals[i].start = &start;
        assert_int_equal(pthread_create(&threads[i], NULL, acts[i], &rivals[i]), 0);
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)pthread_barrier_destroy(&start);
}

static void one_true_wake(struct hf_store *store)
{
    size_t to_v = 0, to_w = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char source_id[40];
        (void)snprintf(source_id, sizeof(source_id), "%d", i);
        struct name p = registered(store, source_id, HF_DISPOSITION_RERUNNABLE);
        struct rival rivals[2] = { { .store = store, .id = p.id },
                                   { .store = store, .id = p.id } };
        race(rivals, (void *(*const[])(void *)){ retarget, end_it }, 2);
        assert_int_equal(rivals[1].code, 0);
        assert_true(rivals[0].code == 0 || rivals[0].code == HF_ETRANSITION);
        if (rivals[0].code == 0)
            to_v++;
        else
            to_w++;
        assert_int_equal(queued_wakes(store, "v"), to_v);
        assert_int_equal(queued_wakes(store, "w"), to_w);
        assert_refolds(store, p.id);
    }
}

static void a_retarget_and_an_end_at_once_leave_one_true_wake(void **state)
{
    (void)state;
    on_both("retarget", one_true_wake);
}

static void told_by_one(struct hf_store *store)
{
    for (int i = 0; i < ROUNDS; i++) {
        char source_id[40];
        (void)snprintf(source_id, sizeof(source_id), "%d", i);
        struct name p = registered(store, source_id, HF_DISPOSITION_RERUNNABLE);
        struct rival rivals[THREADS];
        void *(*acts[THREADS])(void *);
        for (int k = 0; k < THREADS; k++) {
            rivals[k] = (struct rival){ .store = store, .id = p.id };
            acts[k] = tell_once;
        }
        race(rivals, acts, THREADS);
        for (int k = 0; k < THREADS; k++)
            assert_int_equal(rivals[k].code, 0);
        assert_int_equal(queued_wakes(store, "w"), i + 1);
    }
}

static void many_who_tell_one_key_tell_it_once(void **state)
{
    (void)state;
    on_both("keys", told_by_one);
}

/* ---- await ---------------------------------------------------------------------------------- */

struct waiter {
    struct hf_store *store;
    const char *id;
    char status[32];
};

static void *await_it(void *arg)
{
    struct waiter *waiter = arg;
    struct hf_answer *answer = NULL;
    if (hf_process_await(waiter->store, NULL, waiter->id, 60000, &answer, NULL) == 0)
        (void)snprintf(waiter->status, sizeof(waiter->status), "%s",
                       hf_answer_at(answer, 0)->work.status);
    hf_answer_free(answer);
    return NULL;
}

static void bell_of_the_end(struct hf_store *store)
{
    struct name p = registered(store, "a", HF_DISPOSITION_RERUNNABLE);
    struct waiter waiter = { .store = store, .id = p.id };
    pthread_t thread;
    uint32_t topic = hf_topic_of_end(p.id);
    assert_int_equal(pthread_create(&thread, NULL, await_it, &waiter), 0);
    assert_int_equal(told(store, (struct hf_process_tell){ .what = HF_TELL_APPEND,
                                                           .id = p.id,
                                                           .name = "step" }),
                     0);
    uint32_t before = store->methods->bell_seen(store, topic);
    assert_int_equal(cancelled(store, p.id), 0);
    assert_true(store->methods->bell_wait(store, topic, before, 20000)); /* it was rung */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(waiter.status, "cancelled");
}

static void an_await_is_rung_by_the_end_of_its_unit(void **state)
{
    (void)state;
    on_both("await", bell_of_the_end);
}

/* The first await waits; the second finds the end. */
static void await_plain_work(struct hf_store *store)
{
    struct hf_answer *answer = NULL;
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = "plain",
                                 .priority = -1 };
    assert_int_equal(hf_work_create(store, NULL, &unit, 1, 0, &answer, NULL), 0);
    const char *id = hf_answer_at(answer, 0)->work.work_id;
    struct waiter waiter = { .store = store, .id = id };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, await_it, &waiter), 0);
    assert_int_equal(cancelled(store, id), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(waiter.status, "cancelled");
    waiter.status[0] = '\0';
    (void)await_it(&waiter);
    assert_string_equal(waiter.status, "cancelled");
    hf_answer_free(answer);
}

static void work_that_is_no_process_is_awaited_too(void **state)
{
    (void)state;
    on_both("plain", await_plain_work);
}

/* ---- no memory ------------------------------------------------------------------------------ */

/* A life in steps, each of which can be done again. */
struct life_step {
    struct hf_store *store;
    struct name process;
    int step;
};

static int list_all(struct hf_store *store)
{
    struct hf_processes *found = NULL;
    struct hf_process_filter filter = { .size = sizeof(filter),
                                        .all = true,
                                        .label = "k=v" };
    int rc = hf_process_list(store, NULL, &filter, &found, NULL);
    hf_processes_free(found);
    return rc;
}

static int records(struct hf_store *store, const char *id)
{
    char *stored = NULL, *folded = NULL;
    int rc = hf_process_records(store, NULL, id, &stored, &folded, NULL);
    if (rc == 0) {
        hf_store_text_free(store, stored);
        hf_store_text_free(store, folded);
    }
    return rc;
}

static int registered_again(struct hf_store *store)
{
    static const char *const sessions[] = { "b", "a" };
    struct hf_answer *answer = NULL;
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = "again",
                                 .priority = -1,
                                 .disposition = HF_DISPOSITION_OWNER_BOUND };
    struct hf_process_spec wanted = { .size = sizeof(wanted),
                                      .work = &unit,
                                      .identity_kind = "test",
                                      .labels = "{\"k\":\"v\"}",
                                      .definition = "{}",
                                      .observers = sessions,
                                      .observer_count = 2,
                                      .event_types = sessions,
                                      .event_type_count = 2 };
    int rc = hf_process_register(store, NULL, &wanted, &answer, NULL);
    if (rc == 0)
        rc = hf_answer_at(answer, 0)->code;
    hf_answer_free(answer);
    return rc;
}

static int do_step(const struct life_step *life)
{
    const char *id = life->process.id;
    struct hf_prune_report report;
    switch (life->step) {
    case 0: return registered_again(life->store);
    case 1:
        return told(life->store, (struct hf_process_tell){
                                     .what = HF_TELL_OBSERVE, .id = id, .name = "s" });
    case 2:
        return told(life->store, (struct hf_process_tell){ .what = HF_TELL_APPEND,
                                                           .id = id,
                                                           .name = "step",
                                                           .key = "k",
                                                           .payload = "{\"n\":1}",
                                                           .wake = true });
    case 3:
        return told(life->store, (struct hf_process_tell){
                                     .what = HF_TELL_RETARGET, .id = id, .name = "v" });
    case 4: return list_all(life->store);
    case 5: return records(life->store, id);
    case 6: {
        int rc = cancelled(life->store, id);
        return rc == HF_ETRANSITION ? 0 : rc; /* it was, and the answer got lost */
    }
    default: return hf_process_prune(life->store, NULL, 0, &report, NULL);
    }
}

static void nothing_bad(void *user, const struct hf_finding *finding)
{
    (void)user;
    if (finding->bad)
        fail_msg("%s: %s", finding->what, finding->detail);
}

static void every_allocation_can_fail(void **state)
{
    struct fail_alloc fail;
    struct hf_store_options options = { .size = sizeof(options),
                                        .inline_mode = true,
                                        .alloc = &fail.alloc };
    struct life_step life = { 0 };
    (void)state;
    fail_alloc_init(&fail, 0);
    assert_int_equal(hf_store_open("sqlite::memory:", &options, &life.store, NULL), 0);
    life.process = registered(life.store, "a", HF_DISPOSITION_RERUNNABLE);
    for (life.step = 0; life.step < 8; life.step++) {
        int64_t nth = 0;
        int rc = HF_ENOMEM;
        while (rc) {
            fail.fail_at = fail.calls + ++nth;
            rc = do_step(&life);
            fail.fail_at = 0;
            assert_true(rc == 0 || rc == HF_ENOMEM);
            assert_true(nth < 2000);
            assert_int_equal(hf_store_check(life.store, nothing_bad, NULL, NULL), 0);
        }
    }
    assert_int_equal(queued_wakes(life.store, "v"), 1);
    hf_store_close(life.store);
    assert_int_equal(fail.live, 0);
}

/* ---------------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/hf-process-XXXXXX");
    pg_server_start(&server);
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    static const char *const names[] = { "feed", "retarget", "keys", "await", "plain" };
    static const char *const parts[] = { "", "-wal", "-shm", "-hf" };
    char path[120];
    (void)state;
    pg_server_stop(&server);
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 4; k++) {
            (void)snprintf(path, sizeof(path), "%s/%s.db%s", folder, names[i], parts[k]);
            (void)unlink(path);
        }
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_feed_misses_no_process_whoever_writes),
        cmocka_unit_test(a_retarget_and_an_end_at_once_leave_one_true_wake),
        cmocka_unit_test(many_who_tell_one_key_tell_it_once),
        cmocka_unit_test(an_await_is_rung_by_the_end_of_its_unit),
        cmocka_unit_test(work_that_is_no_process_is_awaited_too),
        cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests_name("process", tests, begin, end);
}
