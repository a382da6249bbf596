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
#include <holdfast/wait.h>

#include "support/pg.h"
#include "support/unit.h"

#define KEPT 66 /* rows of each list that live through every walk */
#define WAITS 3 /* of one turn; the kept ones are of the first sessions */
#define BATCH 1000
#define BATCHES 22 /* of units that stay queued; more than a page looks at */
#define ROUNDS 8   /* as often each list is walked: half of them from the newest */
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

/* What the kept rows of one number are, from which follows which filters show them. */
enum fate { STAYS, RUNS, RETRIES, MOVES, FATES };

static enum fate fate_of(int number)
{
    return (enum fate)(number / 3 % FATES);
}

/* Kept units and processes: their ids and when they were created. */
static struct kept {
    char id[40];
    hf_ms created_at;
} units[KEPT], processes[KEPT];

static const struct hf_caller acme = { .size = sizeof(acme), .tenant = "acme" };

static const struct hf_caller *who_of(int number)
{
    return number % 5 == 0 ? &acme : NULL;
}

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

static void keep(struct kept *kept, struct hf_answer *answer)
{
    const struct hf_work *made = &hf_answer_at(answer, 0)->work;
    (void)snprintf(kept->id, sizeof(kept->id), "%s", made->work_id);
    kept->created_at = made->created_at;
    hf_answer_free(answer);
}

static void create_kept(int number)
{
    char name[32];
    struct hf_work_spec one = unit(name, "keep-", number, "keep");
    struct hf_answer *answer = NULL;
    one.parent_work_id = number % 4 == 0 ? "parent" : NULL;
    one.disposition = number % 2 ? HF_DISPOSITION_EXPIRE : HF_DISPOSITION_RERUNNABLE;
    one.retry_policy = "{\"initial_backoff_ms\":3600000,\"max_backoff_sec\":3600}";
    assert_int_equal(hf_work_create(store, who_of(number), &one, 1, 0, &answer, NULL), 0);
    keep(&units[number], answer);
}

static void create_process(const struct hf_caller *who, const char *name,
                           const char *kind, struct kept *ret_kept)
{
    const struct hf_work_spec work = { .size = sizeof(work),
                                       .source = HF_SOURCE_MANUAL,
                                       .source_id = name,
                                       .kind = kind,
                                       .queue = "processes",
                                       .disposition = HF_DISPOSITION_RERUNNABLE };
    const struct hf_process_spec request = { .size = sizeof(request),
                                             .work = &work,
                                             .identity_kind = kind };
    struct hf_answer *answer = NULL;
    assert_int_equal(hf_process_register(store, who, &request, &answer, NULL), 0);
    keep(ret_kept, answer);
}

static void create_session(const struct hf_caller *who, const char *name,
                           const char *agent)
{
    const struct hf_session_spec request = { .size = sizeof(request),
                                             .session_id = name,
                                             .agent = agent };
    struct hf_session_answer *answer = NULL;
    assert_int_equal(hf_session_create(store, who, &request, &answer, NULL), 0);
    hf_session_answer_free(answer);
}

/* Takes a unit by its id and does one thing to it: nothing, if the verb is none. */
static void take(const struct hf_caller *who, const struct kept *kept, const char *owner,
                 enum hf_verb verb)
{
    const struct hf_claim claim = {
        .size = sizeof(claim), .owner = owner, .id = kept->id, .ttl_ms = 3600000
    };
    struct hf_answer *taken = NULL, *done = NULL;
    assert_int_equal(hf_work_claim(store, who, &claim, &taken, NULL), 0);
    assert_int_equal(hf_answer_count(taken), 1);
    const struct hf_change change = {
        .size = sizeof(change),
        .verb = verb,
        .id = kept->id,
        .token = hf_answer_at(taken, 0)->token,
        .error_class = verb == HF_VERB_FAIL ? "transient_network" : NULL,
        .status = verb == HF_VERB_CLOSE_OUT ? HF_STATUS_DONE : HF_STATUS_NONE
    };
    if (verb) {
        assert_int_equal(hf_work_change(store, who, &change, 1, 0, &done, NULL), 0);
        assert_int_equal(hf_answer_at(done, 0)->code, 0);
    }
    hf_answer_free(done);
    hf_answer_free(taken);
}

static void cancel(const struct hf_caller *who, const struct kept *kept)
{
    const struct hf_change change = { .size = sizeof(change),
                                      .verb = HF_VERB_CANCEL,
                                      .id = kept->id,
                                      .reason = "it may go" };
    struct hf_answer *done = NULL;
    assert_int_equal(hf_work_change(store, who, &change, 1, 0, &done, NULL), 0);
    assert_int_equal(hf_answer_at(done, 0)->code, 0);
    hf_answer_free(done);
}

static void send(const struct hf_caller *who, const char *session_id,
                 struct kept *ret_input)
{
    const struct hf_session_send message = {
        .size = sizeof(message),
        .session_id = session_id,
        .message = "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"kind\":\"text\",\"content\":\"go\"}]}}"
    };
    struct hf_answer *sent = NULL;
    assert_int_equal(hf_session_send(store, who, &message, &sent, NULL), 0);
    keep(ret_input, sent);
}

/* A turn of the session that waits, with `count` waits: PREFIX-FROM and those after it. Their
 * deadlines are between those of the kept ones. */
static void put_away(const struct hf_caller *who, const char *session_id,
                     const char *prefix, int from, size_t count)
{
    static const char save[] = "a save of thirty-two bytes or more";
    struct hf_wait_spec waits[WAITS];
    char names[WAITS][32];
    struct hf_session_answer *claimed = NULL;
    struct hf_session_stepped stepped;
    const struct hf_session_claim claim = { .size = sizeof(claim),
                                            .session_id = session_id,
                                            .owner = "talker" };
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s%d", prefix, from + (int)i);
        waits[i] =
            (struct hf_wait_spec){ .size = sizeof(waits[i]),
                                   .kind = HF_WAIT_CUSTOM,
                                   .name = names[i],
                                   .answerer = count == WAITS ? "keeper" : "other",
                                   .deadline_at = units[0].created_at + 3600000 +
                                                  1000 * ((from + (int)i) * 29 % KEPT),
                                   .policy = HF_AT_DEADLINE_RESULT };
    }
    assert_int_equal(hf_session_claim(store, who, &claim, &claimed, NULL), 0);
    const struct hf_session_step step = { .size = sizeof(step),
                                          .session_id = session_id,
                                          .token = claimed->token,
                                          .turn_id = claimed->turn->turn_id,
                                          .chain = claimed->turn->chain,
                                          .save = { save, sizeof(save) },
                                          .waits = waits,
                                          .wait_count = count,
                                          .away = true };
    assert_int_equal(hf_session_step(store, who, &step, &stepped, NULL), 0);
    hf_session_answer_free(claimed);
}

static void create_schedule(const struct hf_caller *who, const char *name)
{
    const struct hf_schedule_spec wanted = {
        .size = sizeof(wanted), .name = name, .every_ms = 3600000, .priority = -1
    };
    struct hf_schedules *made = NULL;
    assert_int_equal(hf_schedule_add(store, who, &wanted, &made, NULL), 0);
    hf_schedules_free(made);
}

static void create_subscription(const struct hf_caller *who, const char *key)
{
    const struct hf_subscription_spec wanted = { .size = sizeof(wanted),
                                                 .key = key,
                                                 .source_type = "walk",
                                                 .source_key = "walk",
                                                 .priority = -1 };
    struct hf_subscriptions *made = NULL;
    assert_int_equal(hf_trigger_subscribe(store, who, &wanted, &made, NULL), 0);
    hf_subscriptions_free(made);
}

static void emit(const struct hf_caller *who, const char *prefix, int number,
                 const char *source)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "%s%d", prefix, number);
    const struct hf_occurrence_spec one = { .size = sizeof(one),
                                            .source_type = "seen",
                                            .source_key = source,
                                            .idempotency_key = key };
    struct hf_emission *made = NULL;
    assert_int_equal(hf_trigger_emit(store, who, &one, &made, NULL), 0);
    hf_emission_free(made);
}

/* A schedule and a subscription, before and behind the rows that are kept; those of three rounds
 * before go. */
static void churn_named(int round)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%sgone-%d", round % 2 ? "a-" : "z-", round);
    create_schedule(NULL, name);
    create_subscription(NULL, name);
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

/* Processes and sessions come; those of earlier rounds end. Of the processes every second one stays
 * open. */
static void churn_owned(int round, struct kept inputs[4])
{
    char name[32];
    struct kept process;
    struct hf_prune_report pruned;
    (void)snprintf(name, sizeof(name), "gone-process-%d", round);
    create_process(NULL, name, "gone", &process);
    if (round % 2)
        take(NULL, &process, "w", HF_VERB_CLOSE_OUT);
    assert_int_equal(hf_process_prune(store, NULL, 0, &pruned, NULL), 0);
    (void)snprintf(name, sizeof(name), "gone-session-%d", round);
    create_session(NULL, name, "gone");
    if (round >= 4)
        cancel(NULL, &inputs[round % 4]); /* its waits end with it */
    send(NULL, name, &inputs[round % 4]);
    put_away(NULL, name, "gone-", round, 1);
}

/* One kept unit, process and session changes its status and has it again. */
static void churn_kept(int round)
{
    int number = round % KEPT;
    char name[32];
    struct kept input;
    if (fate_of(number) == MOVES) {
        take(who_of(number), &units[number], "mover", HF_VERB_HAND_BACK);
        take(who_of(number), &processes[number], "mover", HF_VERB_HAND_BACK);
    }
    if (number * WAITS < KEPT)
        return;
    (void)snprintf(name, sizeof(name), "keep-session-%d", number);
    send(who_of(number), name, &input);
    cancel(who_of(number), &input);
}

static void *churn(void *unused)
{
    struct kept inputs[4];
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
        churn_owned(round, inputs);
        churn_kept(round);
        emit(NULL, "gone-", round, "gone");
        churn_named(round);
        settle(15);
        assert_int_equal(hf_work_prune(store, NULL, 0, 50, &pruned, NULL), 0);
    }
    return NULL;
}

static void fill_one(int number)
{
    static const enum hf_verb verbs[FATES] = { [RETRIES] = HF_VERB_FAIL };
    const struct hf_caller *who = who_of(number);
    enum fate fate = fate_of(number);
    char name[32];
    create_kept(number);
    (void)snprintf(name, sizeof(name), "keep-process-%d", number);
    create_process(who, name, "kept", &processes[number]);
    if (fate == RUNS || fate == RETRIES)
        take(who, &units[number], "runner", verbs[fate]);
    (void)snprintf(name, sizeof(name), "keep-session-%d", number);
    create_session(who, name, "kept");
    if (number * WAITS < KEPT) {
        struct kept input;
        send(who, name, &input);
        put_away(who, name, "keep-", number * WAITS, WAITS);
    }
    emit(who, "keep-", number, "kept");
    (void)snprintf(name, sizeof(name), "keep-%d", number);
    create_schedule(who, name);
    create_subscription(who, name);
}

static void fill(void)
{
    for (int batch = 0; batch < BATCHES; batch++) {
        create("stay-", batch * BATCH, BATCH, "stay");
        for (int i = KEPT * batch / BATCHES; i < KEPT * (batch + 1) / BATCHES; i++)
            fill_one(i);
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
    bool kept;     /* by kind or agent */
    bool found;    /* by the beginning of the source id */
    bool open;     /* with an open turn */
    bool finished; /* the times are of the end */
    bool expires;  /* by the disposition */
    const struct hf_caller *who;
    const char *queue; /* NULL: any; the same for the next three */
    const char *owner;
    const char *parent;
    const char *error_class;
    hf_ms from, before; /* 0: any */
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
        .owner = draw->owner,
        .parent_work_id = draw->parent,
        .error_class = draw->error_class,
        .disposition = draw->expires ? HF_DISPOSITION_EXPIRE : HF_DISPOSITION_NONE,
        .finished = draw->finished,
        .from = draw->from,
        .before = draw->before,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    if (hf_work_list(store, draw->who, &filter, &answer, &err))
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
        .created_from = draw->from,
        .created_before = draw->before,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_processes *found = NULL;
    struct hf_err err = { 0 };
    if (hf_process_list(store, draw->who, &filter, &found, &err))
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
        .open = draw->open,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_session_answer *found = NULL;
    struct hf_err err = { 0 };
    if (hf_session_list(store, draw->who, &filter, &found, &err))
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
    if (hf_schedule_list(store, draw->who, &filter, &found, &err))
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
    if (hf_trigger_list(store, draw->who, &filter, &found, &err))
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
    if (hf_occurrence_list(store, draw->who, &filter, see_occurrence, seen, &next, &err))
        fail_msg("%s", err.message);
    keep_cursor(next.cursor, cursor);
}

/* There is one direction, of deadlines. */
static void wait_page(const struct draw *draw, char cursor[256], struct seen *seen)
{
    const struct hf_wait_filter filter = {
        .size = sizeof(filter),
        .answerer = draw->kept ? "keeper" : NULL,
        .kind = draw->found ? "custom" : NULL,
        .limit = draw->limit,
        .after = *cursor ? cursor : NULL,
    };
    struct hf_wait_answer *found = NULL;
    struct hf_err err = { 0 };
    if (hf_wait_list(store, draw->who, &filter, &found, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < found->wait_count; i++)
        see(seen, found->waits[i].name);
    keep_cursor(found->next, cursor);
    hf_wait_answer_free(found);
}

/* Does the list show the kept row of this number? */
typedef bool wanted(const struct draw *draw, int number);

static bool in_period(const struct draw *draw, const struct kept *kept)
{
    return kept->created_at >= draw->from &&
           (!draw->before || kept->created_at < draw->before);
}

static bool work_wanted(const struct draw *draw, int number)
{
    bool timed = draw->from || draw->before;
    return (!draw->queue || strcmp(draw->queue, queue_of(number)) == 0) &&
           (!draw->owner || fate_of(number) == RUNS) &&
           (!draw->parent || number % 4 == 0) &&
           (!draw->error_class || fate_of(number) == RETRIES) &&
           (!draw->expires || number % 2 == 1) && !(timed && draw->finished) &&
           in_period(draw, &units[number]);
}

static bool process_wanted(const struct draw *draw, int number)
{
    return in_period(draw, &processes[number]);
}

static bool session_wanted(const struct draw *draw, int number)
{
    return !draw->open || number * WAITS < KEPT;
}

static const struct {
    const char *label;
    page *page;
    wanted *wanted;     /* NULL: each of the tenant */
    const char *prefix; /* of the names that are kept */
    int each;           /* kept rows that one number of a tenant has */
} lists[] = {
    { "work", work_page, work_wanted, "keep-", 1 },
    { "processes", process_page, process_wanted, "keep-process-", 1 },
    { "sessions", session_page, session_wanted, "keep-session-", 1 },
    { "schedules", schedule_page, NULL, "keep-", 1 },
    { "subscriptions", subscription_page, NULL, "keep-", 1 },
    { "occurrences", occurrence_page, NULL, "keep-", 1 },
    { "waits", wait_page, NULL, "keep-", WAITS },
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
        bool due = (!draw->who || who_of(i / lists[list].each)) &&
                   (!lists[list].wanted || lists[list].wanted(draw, i));
        bool shown = bsearch(name, seen->names, seen->count, sizeof(seen->names[0]),
                             by_name) != NULL;
        if (due != shown)
            fail_msg("%s newest=%d all=%d kept=%d found=%d tenant=%d queue=%s owner=%s "
                     "parent=%s class=%s expires=%d finished=%d from=%lld before=%lld "
                     "limit=%zu: %s was %s",
                     lists[list].label, draw->newest, draw->all, draw->kept, draw->found,
                     draw->who != NULL, draw->queue ? draw->queue : "-",
                     draw->owner ? draw->owner : "-", draw->parent ? draw->parent : "-",
                     draw->error_class ? draw->error_class : "-", draw->expires,
                     draw->finished, (long long)draw->from, (long long)draw->before,
                     draw->limit, name, shown ? "shown" : "not shown");
    }
}

static struct draw draw_one(size_t list, bool newest)
{
    struct draw draw = { .newest = newest,
                         .brief = roll(2),
                         .all = roll(2),
                         .kept = roll(3) > 0,
                         .found = roll(3) == 0,
                         .open = roll(3) == 0,
                         .finished = roll(4) == 0,
                         .expires = roll(4) == 0,
                         .who = roll(3) == 0 ? &acme : NULL,
                         .queue = roll(3) == 0 ? queue_of((int)roll(3)) : NULL,
                         .owner = roll(6) == 0 ? "runner" : NULL,
                         .parent = roll(4) == 0 ? "parent" : NULL,
                         .error_class = roll(6) == 0 ? "transient_network" : NULL };
    bool few = list > 0 || draw.kept || draw.found || draw.who || draw.expires ||
               draw.owner || draw.parent || draw.error_class;
    if (roll(3) == 0)
        draw.from = units[roll(KEPT)].created_at;
    if (roll(3) == 0)
        draw.before = units[roll(KEPT)].created_at;
    if (draw.before && draw.before <= draw.from)
        draw.before = draw.from + 1;
    draw.limit = few ? 1 + roll(60) : 1000; /* a walk over all units has large pages */
    return draw;
}

static void walk(struct seen *seen, size_t list, bool newest)
{
    const struct draw draw = draw_one(list, newest);
    char cursor[256] = "";
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
    for (int round = 0; round < ROUNDS; round++)
        for (size_t list = 0; list < sizeof(lists) / sizeof(lists[0]); list++)
            walk(&seen, list, round % 2);
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
