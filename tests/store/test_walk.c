/* A walk over any list, in both directions and with any filter, shows each row that lives through
 * it once and no row twice, while another thread creates, settles and prunes. On a SQLite file and
 * on PostgreSQL, with more open rows than a page looks at. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/overview.h>
#include <holdfast/process.h>
#include <holdfast/schedule.h>
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/trigger.h>

#include "support/pg.h"
#include "support/unit.h"

#define KEPT 66 /* rows of each list that live through every walk */
#define BATCH 1000
#define BATCHES 22 /* of units that stay queued; more than a page looks at */
#define WALKS 48   /* as often each list */
#define SEEN_MOST 200000

static struct pg_server server;
static struct hf_store *store;
static atomic_bool stop;
static unsigned dice = 4711;

static unsigned roll(unsigned below)
{
    dice = dice * 1103515245u + 12345u;
    return (dice >> 16) % below;
}

/* ---- rows ------------------------------------------------------------------------------ */

static const char *queue_of(int number)
{
    static const char *const queues[] = { "q0", "q1", "q2" };
    return queues[number % 3];
}

static struct hf_work_spec unit(char name[32], const char *prefix, int number,
                                const char *kind)
{
    (void)snprintf(name, 32, "%s%d", prefix, number);
    return (struct hf_work_spec){ .size = sizeof(struct hf_work_spec),
                                  .source = HF_SOURCE_MANUAL,
                                  .source_id = name,
                                  .kind = kind,
                                  .queue = queue_of(number),
                                  .disposition = HF_DISPOSITION_RERUNNABLE };
}

static void create(const char *prefix, int from, size_t count, const char *kind)
{
    static _Thread_local struct hf_work_spec news[BATCH];
    static _Thread_local char names[BATCH][32];
    struct hf_answer *answer = NULL;
    for (size_t i = 0; i < count; i++)
        news[i] = unit(names[i], prefix, from + (int)i, kind);
    assert_int_equal(hf_work_create(store, NULL, news, count, HF_BRIEF, &answer, NULL),
                     0);
    hf_answer_free(answer);
}

static void create_process(const char *prefix, int number, const char *kind)
{
    char name[32];
    const struct hf_work_spec work = unit(name, prefix, number, kind);
    const struct hf_process_spec request = { .size = sizeof(request),
                                             .work = &work,
                                             .identity_kind = kind };
    struct hf_answer *answer = NULL;
    assert_int_equal(hf_process_register(store, NULL, &request, &answer, NULL), 0);
    hf_answer_free(answer);
}

static void create_session(const char *prefix, int number, const char *agent)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%s%d", prefix, number);
    const struct hf_session_spec request = { .size = sizeof(request),
                                             .session_id = name,
                                             .agent = agent };
    struct hf_session_answer *answer = NULL;
    assert_int_equal(hf_session_create(store, NULL, &request, &answer, NULL), 0);
    hf_session_answer_free(answer);
}

static void create_schedule(const char *name)
{
    const struct hf_schedule_spec wanted = {
        .size = sizeof(wanted), .name = name, .every_ms = 3600000, .priority = -1
    };
    struct hf_schedules *made = NULL;
    assert_int_equal(hf_schedule_add(store, NULL, &wanted, &made, NULL), 0);
    hf_schedules_free(made);
}

static void create_subscription(const char *key)
{
    const struct hf_subscription_spec wanted = { .size = sizeof(wanted),
                                                 .key = key,
                                                 .source_type = "walk",
                                                 .source_key = "walk",
                                                 .priority = -1 };
    struct hf_subscriptions *made = NULL;
    assert_int_equal(hf_trigger_subscribe(store, NULL, &wanted, &made, NULL), 0);
    hf_subscriptions_free(made);
}

static void emit(const char *prefix, int number, const char *source)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "%s%d", prefix, number);
    const struct hf_occurrence_spec one = { .size = sizeof(one),
                                            .source_type = "seen",
                                            .source_key = source,
                                            .idempotency_key = key };
    struct hf_emission *made = NULL;
    assert_int_equal(hf_trigger_emit(store, NULL, &one, &made, NULL), 0);
    hf_emission_free(made);
}

/* A schedule and a subscription, before and behind the rows that are kept; those of three rounds
 * before go. */
static void churn_named(int round)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%sgone-%d", round % 2 ? "a-" : "z-", round);
    create_schedule(name);
    create_subscription(name);
    if (round < 3)
        return;
    (void)snprintf(name, sizeof(name), "%sgone-%d", round % 2 ? "z-" : "a-", round - 3);
    const struct hf_trigger_change remove = { .size = sizeof(remove),
                                              .verb = HF_TRIGGER_REMOVE,
                                              .key = name };
    struct hf_subscriptions *removed = NULL;
    assert_int_equal(hf_schedule_remove(store, NULL, name, 0, NULL), 0);
    assert_int_equal(hf_trigger_change(store, NULL, &remove, &removed, NULL), 0);
    hf_subscriptions_free(removed);
}

/* Takes some units that may go and ends them. */
static void settle(size_t count)
{
    const struct hf_claim claim = {
        .size = sizeof(claim), .owner = "w", .queue = "gone", .limit = count
    };
    struct hf_answer *taken = NULL, *done = NULL;
    assert_int_equal(hf_work_claim(store, NULL, &claim, &taken, NULL), 0);
    for (size_t i = 0; i < hf_answer_count(taken); i++) {
        const struct hf_item *item = hf_answer_at(taken, i);
        const struct hf_change change = { .size = sizeof(change),
                                          .verb = HF_VERB_CLOSE_OUT,
                                          .id = item->work.work_id,
                                          .token = item->token,
                                          .status = i % 2 ? HF_STATUS_DONE
                                                          : HF_STATUS_FAILED };
        assert_int_equal(hf_work_change(store, NULL, &change, 1, 0, &done, NULL), 0);
        hf_answer_free(done);
    }
    hf_answer_free(taken);
}

static void *churn(void *unused)
{
    (void)unused;
    for (int round = 0; !atomic_load(&stop); round++) {
        char names[20][32];
        struct hf_work_spec news[20];
        struct hf_answer *answer = NULL;
        int64_t pruned = 0;
        for (int i = 0; i < 20; i++) {
            news[i] = unit(names[i], "go-", 20 * round + i, "gone");
            news[i].queue = "gone";
        }
        assert_int_equal(hf_work_create(store, NULL, news, 20, HF_BRIEF, &answer, NULL),
                         0);
        hf_answer_free(answer);
        create_process("gone-process-", round, "gone");
        create_session("gone-session-", round, "gone");
        emit("gone-", round, "gone");
        churn_named(round);
        settle(15);
        assert_int_equal(hf_work_prune(store, NULL, 0, 50, &pruned, NULL), 0);
    }
    return NULL;
}

static void fill(void)
{
    for (int batch = 0; batch < BATCHES; batch++) {
        create("stay-", batch * BATCH, BATCH, "stay");
        int from = KEPT * batch / BATCHES, to = KEPT * (batch + 1) / BATCHES;
        if (to > from)
            create("keep-", from, (size_t)(to - from), "keep");
        for (int i = from; i < to; i++) {
            create_process("keep-process-", i, "kept");
            create_session("keep-", i, "kept");
            emit("keep-", i, "kept");
            char name[32];
            (void)snprintf(name, sizeof(name), "keep-%d", i);
            create_schedule(name);
            create_subscription(name);
        }
    }
}

/* ---- walks ----------------------------------------------------------------------------- */

/* The names that a walk has shown. */
struct seen {
    char (*names)[32];
    size_t count;
};

static void see(struct seen *seen, const char *name)
{
    assert_true(seen->count < SEEN_MOST);
    (void)snprintf(seen->names[seen->count++], 32, "%s", name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* What is drawn for one walk. */
struct draw {
    bool newest;
    bool brief;
    bool all;
    bool kept;         /* by kind or agent */
    bool found;        /* by the beginning of the source id */
    const char *queue; /* NULL: any */
    size_t limit;
};

/* One page; the cursor of the next, or "". */
typedef void page(const struct draw *draw, char cursor[256], struct seen *seen);

static void keep_cursor(const char *next, char cursor[256])
{
    (void)snprintf(cursor, 256, "%s", next ? next : "");
}

static void work_page(const struct draw *draw, char cursor[256], struct seen *seen)
{
    static const enum hf_status every[] = {
        HF_STATUS_QUEUED,    HF_STATUS_RUNNING,  HF_STATUS_RETRY_SCHEDULED,
        HF_STATUS_DONE,      HF_STATUS_FAILED,   HF_STATUS_TIMEOUT,
        HF_STATUS_CANCELLED, HF_STATUS_ABANDONED
    };
    const struct hf_filter filter = {
        .size = sizeof(filter),
        .newest = draw->newest,
        .brief = draw->brief,
        .statuses = draw->all ? every : NULL,
        .status_count = draw->all ? sizeof(every) / sizeof(every[0]) : 0,
        .kind = draw->kept ? "keep" : NULL,
        .find = draw->found ? "keep" : NULL,
        .queue = draw->queue,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    if (hf_work_list(store, NULL, &filter, &answer, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < hf_answer_count(answer); i++)
        see(seen, hf_answer_at(answer, i)->work.source_id);
    keep_cursor(hf_answer_next(answer), cursor);
    hf_answer_free(answer);
}

static void process_page(const struct draw *draw, char cursor[256], struct seen *seen)
{
    const struct hf_process_filter filter = {
        .size = sizeof(filter),
        .newest = draw->newest,
        .brief = draw->brief,
        .all = draw->all,
        .identity_kind = draw->kept ? "kept" : NULL,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_processes *found = NULL;
    struct hf_err err = { 0 };
    if (hf_process_list(store, NULL, &filter, &found, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < hf_processes_count(found); i++)
        see(seen, hf_processes_at(found, i)->work.source_id);
    keep_cursor(hf_processes_next(found), cursor);
    hf_processes_free(found);
}

static void session_page(const struct draw *draw, char cursor[256], struct seen *seen)
{
    const struct hf_session_filter filter = {
        .size = sizeof(filter),
        .newest = draw->newest,
        .agent = draw->kept ? "kept" : NULL,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_session_answer *found = NULL;
    struct hf_err err = { 0 };
    if (hf_session_list(store, NULL, &filter, &found, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < found->session_count; i++)
        see(seen, found->sessions[i].session_id);
    keep_cursor(found->next, cursor);
    hf_session_answer_free(found);
}

static void schedule_page(const struct draw *draw, char cursor[256], struct seen *seen)
{
    const struct hf_schedule_filter filter = {
        .size = sizeof(filter),
        .newest = draw->newest,
        .state = draw->kept ? "active" : NULL,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_schedules *found = NULL;
    struct hf_err err = { 0 };
    if (hf_schedule_list(store, NULL, &filter, &found, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < hf_schedules_count(found); i++)
        see(seen, hf_schedules_at(found, i)->name);
    keep_cursor(hf_schedules_next(found), cursor);
    hf_schedules_free(found);
}

static void subscription_page(const struct draw *draw, char cursor[256],
                              struct seen *seen)
{
    const struct hf_trigger_filter filter = {
        .size = sizeof(filter),
        .newest = draw->newest,
        .state = draw->kept ? "enabled" : NULL,
        .source_type = draw->found ? "walk" : NULL,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_subscriptions *found = NULL;
    struct hf_err err = { 0 };
    if (hf_trigger_list(store, NULL, &filter, &found, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < hf_subscriptions_count(found); i++)
        see(seen, hf_subscriptions_at(found, i)->subscription_key);
    keep_cursor(hf_subscriptions_next(found), cursor);
    hf_subscriptions_free(found);
}

static void see_occurrence(void *seen, const struct hf_occurrence *one)
{
    see(seen, one->idempotency_key);
}

/* There is one direction. */
static void occurrence_page(const struct draw *draw, char cursor[256], struct seen *seen)
{
    const struct hf_occurrence_filter filter = {
        .size = sizeof(filter),
        .source_type = draw->found ? "seen" : NULL,
        .source_key = draw->kept ? "kept" : NULL,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_occurrence_next next;
    struct hf_err err = { 0 };
    if (hf_occurrence_list(store, NULL, &filter, see_occurrence, seen, &next, &err))
        fail_msg("%s", err.message);
    keep_cursor(next.cursor, cursor);
}

static const struct {
    const char *label;
    page *page;
    const char *prefix; /* of the names that are kept */
} lists[] = {
    { "work", work_page, "keep-" },
    { "processes", process_page, "keep-process-" },
    { "sessions", session_page, "keep-" },
    { "schedules", schedule_page, "keep-" },
    { "subscriptions", subscription_page, "keep-" },
    { "occurrences", occurrence_page, "keep-" },
};

static void judge(size_t list, const struct draw *draw, struct seen *seen)
{
    qsort(seen->names, seen->count, sizeof(seen->names[0]), by_name);
    for (size_t i = 1; i < seen->count; i++)
        if (strcmp(seen->names[i - 1], seen->names[i]) == 0)
            fail_msg("%s: %s was shown twice", lists[list].label, seen->names[i]);
    for (int i = 0; i < KEPT; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%s%d", lists[list].prefix, i);
        bool wanted = list != 0 || !draw->queue || strcmp(draw->queue, queue_of(i)) == 0;
        bool shown = bsearch(name, seen->names, seen->count, sizeof(seen->names[0]),
                             by_name) != NULL;
        if (wanted != shown)
            fail_msg("%s newest=%d all=%d kept=%d found=%d limit=%zu: %s was %s",
                     lists[list].label, draw->newest, draw->all, draw->kept, draw->found,
                     draw->limit, name, shown ? "shown" : "not shown");
    }
}

static void walk(struct seen *seen, size_t list)
{
    struct draw draw = { .newest = roll(2),
                         .brief = roll(2),
                         .all = roll(2),
                         .kept = roll(3) > 0,
                         .found = roll(3) == 0,
                         .queue = roll(3) == 0 ? queue_of((int)roll(3)) : NULL };
    char cursor[256] = "";
    /* A walk over all units has large pages. */
    draw.limit = list > 2 || draw.kept || draw.found ? 1 + roll(60) : 1000;
    seen->count = 0;
    size_t pages = 0;
    do {
        lists[list].page(&draw, cursor, seen);
        assert_true(++pages < 10000);
    } while (*cursor);
    judge(list, &draw, seen);
}

static void walk_all(void)
{
    struct seen seen = { .names = malloc(SEEN_MOST * sizeof(seen.names[0])) };
    pthread_t thread;
    assert_non_null(seen.names);
    fill();
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);
    for (size_t i = 0; i < WALKS; i++)
        walk(&seen, i % (sizeof(lists) / sizeof(lists[0])));
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    free(seen.names);
}

static void a_walk_shows_each_row_once_on_a_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/hf-walk-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/walk.db", folder);
    const struct hf_store_options options = { .size = sizeof(options) };
    assert_int_equal(hf_store_open(path, &options, &store, NULL), 0);
    walk_all();
    hf_store_close(store);
    char remove[100];
    static const char *const ends[] = { "", "-wal", "-shm", "-hf" };
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(remove, sizeof(remove), "%s%s", path, ends[i]);
        (void)unlink(remove);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void a_walk_shows_each_row_once_on_postgres(void **state)
{
    (void)state;
    store = pg_server_store(&server, "walk");
    walk_all();
    hf_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_shows_each_row_once_on_a_file),
        cmocka_unit_test(a_walk_shows_each_row_once_on_postgres),
    };
    pg_server_start(&server);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    pg_server_stop(&server);
    return rc;
}
