/* Proof of death between processes: a killed holder's unit goes to a waiting peer at once,
 * and a holder that lives, or that no process here can judge, keeps its unit.
 *
 * The director below only forks, kills and reads pipes; stores are opened in the children,
 * since a handle does not outlive a fork, and in the director after the last fork. One unit
 * serves all rounds: it waits for a user, each holder resumes it straight into running, and
 * the peer that reclaimed it lets it wait again. So the peer sits in one claim all the
 * time, as a worker does. */
#include "support/pg.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/store.h>
#include <holdfast/work.h>

#define ROUNDS 60
#define MEDIAN_MAX_MS 50.0
#define TTL_MS 600000 /* longer than any run */
#define QUEUE "q"
#define REF "next-round"
#define NOBODY 65534
#define PATIENCE_MS 20000

/* What a child tells: it holds the unit, or the peer took one. */
struct news {
    pid_t pid;
    int64_t at_ns;
    int64_t attempt;
    char work_id[40];
};

enum bystander {
    STOPPED,
    ZOMBIE_LEADER,
    OTHER_USER,
    OPAQUE,
    OTHER_NAMESPACE,
    BYSTANDERS
};
static const char *const bystander_names[] = { "stopped", "zombie-leader", "other-user",
                                               "opaque", "other-namespace" };

#define FILES 4
static const char *const files[FILES] = { "ledger.db", "ledger.db-wal", "ledger.db-shm",
                                          "ledger.db-hf" };

struct scene {
    char folder[128];
    char db[400];
    struct pg_server *server; /* NULL: a file in the folder */
    int news[2];
    pid_t peer;
    pid_t bystanders[BYSTANDERS]; /* 0: could not be staged */
    char unit[40];
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- in the children --------------------------------------------------------------- */

/* A child has no test to fail: it says why and ends, and the director sees it end. */
static _Noreturn void give_up(const char *what, const struct hf_err *err)
{
    (void)fprintf(stderr, "# %s: %s\n", what, err ? err->message : strerror(errno));
    _exit(3);
}

static void tell(const struct scene *scene, struct news news)
{
    if (write(scene->news[1], &news, sizeof(news)) != (ssize_t)sizeof(news))
        _exit(4);
}

static struct hf_store *open_store(const struct scene *scene)
{
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    if (hf_store_open(scene->db, NULL, &store, &err))
        give_up("open", &err);
    return store;
}

static struct hf_answer *change(struct hf_store *store, struct hf_change wanted)
{
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    wanted.size = sizeof(wanted);
    if (hf_work_change(store, NULL, &wanted, 1, HF_ALL_OR_NONE, &answer, &err))
        give_up(hf_verb_word(wanted.verb), &err);
    return answer;
}

static void create(struct hf_store *store, const char *name)
{
    struct hf_work_spec request = { .size = sizeof(request),
                                    .source = HF_SOURCE_MANUAL,
                                    .source_id = name,
                                    .queue = QUEUE,
                                    .disposition = HF_DISPOSITION_RERUNNABLE,
                                    .priority = -1,
                                    .max_attempts = 1000 };
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    if (hf_work_create(store, NULL, &request, 1, HF_ALL_OR_NONE, &answer, &err))
        give_up("create", &err);
    hf_answer_free(answer);
}

/* Claims the one unit there is, for `pid` (0: opaque). */
static struct hf_answer *claim(struct hf_store *store, const char *owner, int pid,
                               hf_ms wait_ms)
{
    struct hf_claim wanted = { .size = sizeof(wanted),
                               .owner = owner,
                               .pid = pid,
                               .queue = QUEUE,
                               .ttl_ms = TTL_MS,
                               .wait_ms = wait_ms };
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    if (hf_work_claim(store, NULL, &wanted, &answer, &err))
        give_up("claim", &err);
    if (hf_answer_count(answer) == 0) {
        hf_answer_free(answer);
        return NULL;
    }
    return answer;
}

static struct news news_of(const struct hf_work *work)
{
    struct news news = { .pid = getpid(),
                         .at_ns = now_ns(),
                         .attempt = work->attempt_count };
    (void)snprintf(news.work_id, sizeof(news.work_id), "%s", work->work_id);
    return news;
}

static void let_wait(struct hf_store *store, const struct hf_item *item)
{
    hf_answer_free(change(store, (struct hf_change){ .verb = HF_VERB_WAIT,
                                                     .id = item->work.work_id,
                                                     .token = item->token,
                                                     .status = HF_STATUS_WAITING_USER,
                                                     .ref = REF }));
}

/* Makes the unit of the rounds, then takes whatever can be taken until it is killed. */
static _Noreturn void be_peer(const struct scene *scene)
{
    struct hf_store *store = open_store(scene);
    create(store, "round");
    struct hf_answer *first = claim(store, "peer", getpid(), 0);
    if (!first)
        give_up("the first claim", NULL);
    let_wait(store, hf_answer_at(first, 0));
    tell(scene, news_of(&hf_answer_at(first, 0)->work));
    hf_answer_free(first);
    for (;;) {
        struct hf_answer *got = claim(store, "peer", getpid(), PATIENCE_MS);
        if (!got)
            continue;
        struct news news = news_of(&hf_answer_at(got, 0)->work);
        let_wait(store, hf_answer_at(got, 0));
        tell(scene, news);
        hf_answer_free(got);
    }
}

static _Noreturn void stay(void)
{
    for (;;)
        (void)pause();
}

/* Takes the unit of the rounds and stays until it is killed. */
static _Noreturn void be_holder(const struct scene *scene)
{
    struct hf_store *store = open_store(scene);
    struct hf_answer *answer = change(store, (struct hf_change){ .verb = HF_VERB_RESUME,
                                                                 .ref = REF,
                                                                 .owner = "holder",
                                                                 .pid = getpid(),
                                                                 .ttl_ms = TTL_MS });
    tell(scene, news_of(&hf_answer_at(answer, 0)->work));
    stay();
}

/* ---- children that must keep their unit -------------------------------------------- */

static void hold_own(const struct scene *scene, enum bystander which, int pid)
{
    struct hf_store *store = open_store(scene);
    create(store, bystander_names[which]);
    struct hf_answer *got = claim(store, bystander_names[which], pid, 0);
    if (!got)
        give_up("a bystander's claim", NULL);
    struct news news = news_of(&hf_answer_at(got, 0)->work);
    hf_answer_free(got);
    hf_store_close(
        store); /* takes the turn: a process stopped in it would block the others */
    tell(scene, news);
}

static bool leader_is_zombie(void)
{
    char text[512], path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void)close(fd);
    text[len > 0 ? len : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'Z';
}

/* The other thread: reports only once its leader looks dead to every process. */
static void *outlive(void *user)
{
    const struct scene *scene = user;
    while (!leader_is_zombie())
        (void)sched_yield();
    tell(scene, (struct news){ .pid = getpid() });
    stay();
}

static _Noreturn void be_bystander(struct scene *scene, enum bystander which)
{
    pthread_t thread;
    if (which == OTHER_NAMESPACE &&
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        give_up("mount", NULL);
    hold_own(scene, which, which == OPAQUE ? 0 : getpid());
    if (which == ZOMBIE_LEADER) {
        if (pthread_create(&thread, NULL, outlive, scene) != 0)
            give_up("pthread_create", NULL);
        pthread_exit(NULL);
    }
    stay();
}

/* ---- the director ------------------------------------------------------------------ */

static struct news hear(const struct scene *scene)
{
    struct news news;
    struct pollfd fd = { .fd = scene->news[0], .events = POLLIN };
    if (poll(&fd, 1, PATIENCE_MS) != 1)
        fail_msg("nothing was heard for %d s", PATIENCE_MS / 1000);
    assert_int_equal(read(scene->news[0], &news, sizeof(news)), sizeof(news));
    return news;
}

/* In the child: to die with the director, whatever happens to it. */
static void be_child(pid_t director)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != director)
        _exit(5);
}

static pid_t start_holder(const struct scene *scene)
{
    pid_t director = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        be_child(director);
        be_holder(scene);
    }
    return pid;
}

static void end_child(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A process of another user, held for by one that may open the store. */
static pid_t stage_other_user(struct scene *scene)
{
    if (geteuid() != 0)
        return 0;
    pid_t director = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
            _exit(6);
        be_child(director); /* a change of user forgets it */
        stay();
    }
    pid_t claimer = fork();
    assert_true(claimer >= 0);
    if (claimer == 0) {
        hold_own(scene, OTHER_USER, pid);
        _exit(0);
    }
    (void)hear(scene);
    assert_int_equal(waitpid(claimer, NULL, 0), claimer);
    return pid;
}

/* A process in a pid namespace of its own, with a /proc that shows it. */
static pid_t stage_other_namespace(struct scene *scene)
{
    pid_t director = getpid(), pid = fork();
    int status = 0;
    assert_true(pid >= 0);
    if (pid == 0) {
        be_child(director);
        if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
            _exit(77);
        pid_t inner = fork();
        if (inner == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            be_bystander(scene, OTHER_NAMESPACE);
        }
        _exit(inner > 0 && waitpid(inner, &status, 0) == inner && WIFSIGNALED(status)
                  ? 0
                  : 77);
    }
    struct pollfd fd = { .fd = scene->news[0], .events = POLLIN };
    while (poll(&fd, 1, 5) != 1)
        if (waitpid(pid, &status, WNOHANG) == pid)
            return 0; /* not allowed here */
    (void)hear(scene);
    return pid;
}

static pid_t stage(struct scene *scene, enum bystander which)
{
    if (which == OTHER_USER)
        return stage_other_user(scene);
    if (which == OTHER_NAMESPACE)
        return stage_other_namespace(scene);
    pid_t director = getpid(), pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        be_child(director);
        be_bystander(scene, which);
    }
    (void)hear(scene);
    if (which == ZOMBIE_LEADER)
        (void)hear(scene);
    if (which == STOPPED) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    }
    return pid;
}

static struct pg_server server;
static bool on_postgres;

static bool dies_unseen(enum bystander which)
{
    return which == OPAQUE || which == OTHER_NAMESPACE;
}

static int setup(void **state)
{
    static struct scene scene;
    scene = (struct scene){ .server = on_postgres ? &server : NULL };
    const char *base = getenv("TMPDIR");
    int n = snprintf(scene.folder, sizeof(scene.folder), "%s/hf-kill-XXXXXX",
                     base && *base ? base : "/tmp");
    assert_true(n > 0 && (size_t)n < sizeof(scene.folder));
    assert_non_null(mkdtemp(scene.folder));
    (void)snprintf(scene.db, sizeof(scene.db), "%s/ledger.db", scene.folder);
    if (scene.server) {
        pg_server_start(scene.server);
        (void)pg_server_schema(scene.server->url, "kills", scene.db);
    }
    assert_int_equal(pipe2(scene.news, O_CLOEXEC), 0);
    pid_t director = getpid();
    for (size_t i = 0; i < BYSTANDERS;
         i++) /* before there is a peer to take their unit */
        scene.bystanders[i] = stage(&scene, (enum bystander)i);
    scene.peer = fork();
    assert_true(scene.peer >= 0);
    if (scene.peer == 0) {
        be_child(director);
        be_peer(&scene);
    }
    struct news ready = hear(&scene);
    memcpy(scene.unit, ready.work_id, sizeof(scene.unit));
    /* Their ends prove nothing to any process that looks from here. */
    for (size_t i = 0; i < BYSTANDERS; i++)
        if (dies_unseen((enum bystander)i) && scene.bystanders[i])
            end_child(scene.bystanders[i]);
    *state = &scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    end_child(scene->peer);
    for (size_t i = 0; i < BYSTANDERS; i++)
        if (scene->bystanders[i] && !dies_unseen((enum bystander)i))
            end_child(scene->bystanders[i]);
    for (size_t i = 0; i < FILES; i++) {
        char path[200];
        (void)snprintf(path, sizeof(path), "%s/%s", scene->folder, files[i]);
        (void)unlink(path); /* there is none of PostgreSQL */
    }
    if (scene->server)
        pg_server_stop(scene->server);
    return rmdir(scene->folder);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* ---- the claims -------------------------------------------------------------------- */

static pid_t killed[ROUNDS];

static void a_killed_holders_unit_is_with_a_waiting_peer_at_once(void **state)
{
    const struct scene *scene = *state;
    double took[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        pid_t holder = start_holder(scene);
        struct news held = hear(scene);
        assert_int_equal(held.pid, holder);
        int64_t at = now_ns();
        assert_int_equal(kill(holder, SIGKILL), 0);
        if (i % 2 == 0) /* gone altogether, or dead and not yet collected */
            assert_int_equal(waitpid(holder, NULL, 0), holder);
        struct news got = hear(scene);
        assert_int_equal(got.pid, scene->peer);
        assert_string_equal(got.work_id, scene->unit); /* and no bystander's */
        assert_int_equal(got.attempt, held.attempt + 1);
        if (i % 2 == 1)
            assert_int_equal(waitpid(holder, NULL, 0), holder);
        took[i] = (double)(got.at_ns - at) / 1e6;
        killed[i] = holder;
    }
    qsort(took, ROUNDS, sizeof(took[0]), by_size);
    printf("# kill to claim over %d kills: median %.1f ms, p99 %.1f ms, most %.1f ms\n",
           ROUNDS, took[ROUNDS / 2], took[ROUNDS * 99 / 100], took[ROUNDS - 1]);
    assert_true(took[ROUNDS / 2] < MEDIAN_MAX_MS);
}

/* The pid that the proof in this event names, or 0. */
static int proven_pid(const struct hf_event *event)
{
    const char *proof = event->payload ? strstr(event->payload, "\"proof\":") : NULL;
    const char *pid = proof ? strstr(proof, "\"pid\":") : NULL;
    return pid ? (int)strtol(pid + strlen("\"pid\":"), NULL, 10) : 0;
}

static void every_reclaim_has_a_proof_that_names_the_killed_process(void **state)
{
    const struct scene *scene = *state;
    struct hf_store *store = open_store(scene);
    int64_t after = 0;
    size_t found = 0, count = 0;
    do {
        struct hf_events *events = NULL;
        assert_int_equal(
            hf_work_events(store, NULL, scene->unit, after, 500, &events, NULL), 0);
        count = hf_events_count(events);
        for (size_t i = 0; i < count; i++) {
            const struct hf_event *event = hf_events_at(events, i);
            after = event->event_id;
            if (!event->to_status || hf_status_of(event->to_status) != HF_STATUS_QUEUED ||
                hf_status_of(event->from_status) != HF_STATUS_RUNNING)
                continue;
            assert_in_range(found, 0, ROUNDS - 1);
            assert_int_equal(proven_pid(event), killed[found]);
            found++;
        }
        hf_events_free(events);
    } while (count > 0);
    assert_int_equal(found, ROUNDS);
    hf_store_close(store);
}

/* A user who may signal none of the holders can prove no more than their owner. */
static void nobody_finds_anything(const struct scene *scene)
{
    int status = 0;
    assert_int_equal(chmod(scene->folder, 0777), 0);
    for (size_t i = 0; i < FILES && !scene->server; i++) {
        char path[200];
        (void)snprintf(path, sizeof(path), "%s/%s", scene->folder, files[i]);
        assert_int_equal(chmod(path, 0666), 0);
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct hf_sweep_report report = { 0 };
        if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
            _exit(6);
        struct hf_store *store = open_store(scene);
        if (hf_work_sweep(store, NULL, 1000, &report, NULL))
            _exit(7);
        hf_store_close(store);
        _exit(report.requeued ? 8 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void whoever_lives_or_cannot_be_judged_keeps_the_unit(void **state)
{
    const struct scene *scene = *state;
    if (geteuid() == 0)
        nobody_finds_anything(scene);
    struct hf_store *store = open_store(scene);
    struct hf_sweep_report report;
    assert_int_equal(hf_work_sweep(store, NULL, 1000, &report, NULL), 0);
    assert_int_equal(report.requeued, 0);
    for (size_t i = 0; i < BYSTANDERS; i++) {
        struct hf_filter filter = { .size = sizeof(filter), .owner = bystander_names[i] };
        struct hf_answer *rows = NULL;
        if (!scene->bystanders[i]) {
            printf("# %s: this needs rights that there are none of here\n",
                   bystander_names[i]);
            continue;
        }
        assert_int_equal(hf_work_list(store, NULL, &filter, &rows, NULL), 0);
        assert_int_equal(hf_answer_count(rows), 1);
        const struct hf_work *work = &hf_answer_at(rows, 0)->work;
        assert_int_equal(hf_status_of(work->status), HF_STATUS_RUNNING);
        assert_int_equal(work->attempt_count, 1);
        assert_int_equal(work->failures, 0);
        assert_true(work->lease_remaining_ms > 0);
        hf_answer_free(rows);
    }
    hf_store_close(store);
}

/* The number in another namespace's /proc is another process: its start time would prove the
 * death of a living holder. */
static void a_proc_of_another_namespace_ties_no_lease(void **state)
{
    const struct scene *scene = *state;
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(77);
        pid_t inner = fork();
        if (inner == 0) {
            struct hf_err err = { 0 };
            struct hf_answer *answer = NULL;
            struct hf_claim wanted = { .size = sizeof(wanted),
                                       .owner = "inner",
                                       .pid = getpid(),
                                       .queue = "another" };
            int rc = hf_work_claim(open_store(scene), NULL, &wanted, &answer, &err);
            _exit(rc == HF_EINVAL && strcmp(err.field, "pid") == 0 ? 0 : 1);
        }
        (void)waitpid(inner, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77)
        printf("# a pid namespace needs rights that there are none of here\n");
    else
        assert_int_equal(status, 0);
}

/* With an argument, on PostgreSQL. */
int main(int argc, char **argv)
{
    (void)argv;
    on_postgres = argc > 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_holders_unit_is_with_a_waiting_peer_at_once),
        cmocka_unit_test(every_reclaim_has_a_proof_that_names_the_killed_process),
        cmocka_unit_test(whoever_lives_or_cannot_be_judged_keeps_the_unit),
        cmocka_unit_test(a_proc_of_another_namespace_ties_no_lease),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
