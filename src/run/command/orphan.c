/* Processes that outlived their runner: found by their locks. Those of a unit are ended where the
 * unit may run again or has ended, and left alone where it is owner_bound. Those of a tool call are
 * always ended.
 *
 * A runner is the process that supervises a command, or the worker that supervises a tool call. The
 * command and its children, a tree, hold a lock on a file of the lock folder, which also has the
 * facts: whose unit or call it is, and the runner (`holder`). The lock is free when the last
 * process of the tree has gone. A reaper looks at all these files in one pass. It ends a tree by
 * TERM, and by KILL in a later pass. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "run/command/execute.h"

#define TREES_MAX 256
#define OLD_MS ((hf_ms)7 * 24 * 3600 * 1000)

/* A tree that was told to end. */
struct ending {
    char path[HF_LOCK_PATH];
    hf_ms kill_at;
    bool seen;
};

/* Output of a dead runner's command: how much of it is in the store. */
struct followed {
    char path[HF_LOCK_PATH];
    int64_t bytes[HF_STREAM_COUNT];
    bool seen;
};

struct hf_reaper {
    struct hf_store *store;
    char folder[HF_LOCK_PATH];
    struct followed followed[TREES_MAX];
    size_t followed_count;
    struct ending endings[TREES_MAX];
    size_t count;
};

int hf_reaper_new(struct hf_store *store, const char *lock_folder,
                  struct hf_reaper **ret_reaper, struct hf_err *err)
{
    size_t len = lock_folder ? strlen(lock_folder) : 0;
    if (!lock_folder || lock_folder[0] != '/' || len >= HF_LOCK_PATH)
        return hf_fail(err, HF_EINVAL, "lock_folder",
                       "lock_folder must be an absolute path of less than %d bytes",
                       HF_LOCK_PATH);
    struct hf_reaper *reaper = store->alloc->realloc(store->alloc->user, NULL,
                                                     sizeof *reaper);
    if (!reaper)
        return hf_fail_plain(err, HF_ENOMEM);
    memset(reaper, 0, sizeof *reaper);
    reaper->store = store;
    memcpy(reaper->folder, lock_folder, len + 1);
    *ret_reaper = reaper;
    return 0;
}

void hf_reaper_free(struct hf_reaper *reaper)
{
    if (reaper)
        reaper->store->alloc->free(reaper->store->alloc->user, reaper);
}

/* ---- one pass ---------------------------------------------------------------------- */

struct pass {
    struct hf_reaper *reaper;
    const struct hf_caller *who;
    hf_ms now, kill_after_ms;
    hf_each_orphan *each;
    void *user;
    int64_t ending;
    struct hf_arena arena;
    int rc;
    struct hf_err *err;
};

enum fate {
    FATE_FINE, /* its runner looks after it */
    FATE_SHOW, /* left behind, and left alone */
    FATE_END
};

/* What a silent holder has beyond its term: a grace where the unit would end as a timeout. That of
 * the claim is the row's secret, so it is the policy's; -1 where that cannot be read now. */
static hf_ms grace_of(const struct pass *pass, const struct hf_work *work)
{
    struct hf_policy_answer *answer = NULL;
    struct hf_err ignored;
    if (hf_disposition_of(work->disposition) != HF_DISPOSITION_EXPIRE)
        return 0;
    if (hf_policy_get(pass->reaper->store, hf_source_of(work->source_system), work->kind,
                      &answer, &ignored))
        return -1;
    hf_ms grace = hf_policy_answer_get(answer)->grace_ms;
    hf_policy_answer_free(answer);
    return grace;
}

/* May peers act on the row by now? What a sweep would find due. */
static bool is_due(const struct pass *pass, const struct hf_work *work)
{
    if (work->deadline_at && work->deadline_at <= hf_store_now(pass->reaper->store))
        return true;
    hf_ms grace = work->lease_remaining_ms <= 0 ? grace_of(pass, work) : -1;
    return grace >= 0 && work->lease_remaining_ms <= -grace;
}

/* `work` is NULL where the unit was pruned, or was never made. */
static enum fate fate_of(const struct pass *pass, const struct hf_lock_facts *facts,
                         const struct hf_work *work)
{
    bool dead = hf_life_dead(facts->holder);
    bool bound = hf_disposition_of(facts->disposition) == HF_DISPOSITION_OWNER_BOUND;
    enum hf_status status = work ? hf_status_of(work->status) : HF_STATUS_NONE;
    bool ours = work && work->attempt_count == facts->attempt;
    if (bound)
        return dead ? FATE_SHOW : FATE_FINE;
    if (status == HF_STATUS_RUNNING && ours)
        return dead || is_due(pass, work) ? FATE_END : FATE_FINE;
    if (status == HF_STATUS_RUNNING) /* another execution of it has begun */
        return FATE_END;
    if ((status == HF_STATUS_WAITING_USER || status == HF_STATUS_WAITING_EXTERNAL) &&
        ours)
        return dead ? FATE_SHOW : FATE_FINE;
    return dead ? FATE_END : FATE_FINE; /* a living runner ends it itself */
}

static struct ending *ending_of(struct hf_reaper *reaper, const char *path)
{
    for (size_t i = 0; i < reaper->count; i++)
        if (hf_same(reaper->endings[i].path, path))
            return &reaper->endings[i];
    return NULL;
}

/* TERM the first time, KILL when the time is up. More trees than there is room for wait for
 * the next pass. */
static bool end_tree(struct pass *pass, const struct hf_tree *tree)
{
    struct hf_reaper *reaper = pass->reaper;
    struct ending *ending = ending_of(reaper, tree->path);
    if (!ending && reaper->count == TREES_MAX)
        return false;
    if (!ending) {
        ending = &reaper->endings[reaper->count++];
        memcpy(ending->path, tree->path, strlen(tree->path) + 1);
        ending->kill_at = pass->now + pass->kill_after_ms;
        (void)hf_tree_signal(tree, SIGTERM);
        (void)hf_tree_signal(tree, SIGCONT);
    } else if (pass->now >= ending->kill_at) {
        (void)hf_tree_signal(tree, SIGKILL);
    }
    ending->seen = true;
    pass->ending++;
    return true;
}

static int find_unit(const struct pass *pass, const char *id,
                     struct hf_answer **ret_answer)
{
    struct hf_err why;
    int rc = hf_work_get(pass->reaper->store, pass->who, id, ret_answer, &why);
    if (rc == HF_ENOTFOUND)
        return 0;
    return rc ? hf_fail_as(pass->err, rc, &why) : 0;
}

static int named_in_page(const struct pass *pass, const char *path, const char *after,
                         struct hf_answer **ret_page, bool *ret_named)
{
    static const enum hf_status statuses[] = { HF_STATUS_RUNNING, HF_STATUS_WAITING_USER,
                                               HF_STATUS_WAITING_EXTERNAL };
    const struct hf_caller all = { .size = sizeof all }; /* of every tenant */
    struct hf_filter filter = { .size = sizeof filter,
                                .statuses = statuses,
                                .status_count = sizeof statuses / sizeof statuses[0],
                                .after = after,
                                .limit = (size_t)HF_MAX_PAGE };
    int rc = hf_work_list(pass->reaper->store, &all, &filter, ret_page, pass->err);
    for (size_t i = 0; rc == 0 && !*ret_named && i < hf_answer_count(*ret_page); i++)
        *ret_named = hf_life_names(hf_answer_at(*ret_page, i)->work.holder, path);
    return rc;
}

/* A runner died between its claim and its note in the file: only the row, if there is one,
 * knows whose lock it was, and no process could ever prove that death without the file. A
 * claim that was sent may still be on its way, so a fresh file is left alone. */
static int forget_unclaimed(const struct pass *pass, const struct hf_tree *tree)
{
    const struct hf_clock *clock = pass->reaper->store->clock;
    struct hf_answer *page = NULL;
    bool named = false, more = true;
    int rc = 0;
    if (clock->wall_ms(clock->user) - tree->touched < HF_LOCK_FRESH_MS)
        return 0;
    while (rc == 0 && more && !named) {
        struct hf_answer *before = page;
        page = NULL;
        rc = named_in_page(pass, tree->path, before ? hf_answer_next(before) : NULL,
                           &page, &named);
        hf_answer_free(before);
        more = rc == 0 && hf_answer_next(page);
    }
    hf_answer_free(page);
    if (rc == 0 && !named)
        (void)unlink(tree->path); /* tried again at the next pass */
    return rc;
}

/* ---- output that no process reads
 * ------------------------------------------------------ */

/* Without room for one more a fresh one is given: then all of its output is stored again. */
static struct followed *follow(struct hf_reaper *reaper, const char *path,
                               struct followed *fresh)
{
    size_t n = reaper->followed_count;
    for (size_t i = 0; i < n; i++)
        if (hf_same(reaper->followed[i].path, path))
            return &reaper->followed[i];
    struct followed *one = n < TREES_MAX ? &reaper->followed[reaper->followed_count++]
                                         : fresh;
    *one = (struct followed){ 0 };
    memcpy(one->path, path, strlen(path) + 1);
    return one;
}

/* This process watches what the dead runner watched: the output continues into the store. The
 * files are removed when nothing writes to them any more. A store that does not answer, or
 * a file that changes too fast, is tried again at the next pass. */
static void collect_output(struct pass *pass, const char *path,
                           const struct hf_lock_facts *facts, bool gone)
{
    struct followed fresh;
    struct hf_err ignored;
    bool last = gone && !hf_lock_output_busy(path);
    if (!last && !hf_life_dead(facts->holder))
        return;
    pass->ending += gone && !last; /* its keeper ends in a moment */
    struct followed *one = follow(pass->reaper, path, &fresh);
    one->seen = true;
    int rc = hf_keeper_collect(pass->reaper->store, pass->who, path, facts, one->bytes,
                               &ignored);
    if (last && (rc == 0 || rc == HF_ENOTFOUND))
        hf_keeper_remove(path);
}

/* Nothing runs under it. The row may still name it for a proof of death. */
static void forget_file(const struct pass *pass, const struct hf_lock_facts *facts,
                        const struct hf_tree *tree, const struct hf_work *work)
{
    const struct hf_clock *clock = pass->reaper->store->clock;
    bool old = clock->wall_ms(clock->user) - tree->touched > OLD_MS; /* another boot's */
    enum hf_status status = work ? hf_status_of(work->status) : HF_STATUS_NONE;
    bool needed = status == HF_STATUS_RUNNING || status == HF_STATUS_WAITING_USER ||
                  status == HF_STATUS_WAITING_EXTERNAL;
    if (!needed && (old || !facts->holder || hf_life_dead(facts->holder)))
        (void)unlink(tree->path); /* tried again at the next pass */
}

/* The lock of a tool call. While the worker that started it may live (it is not proven dead, or the
 * file does not say which one it is), that worker looks after the processes. After its death they
 * are ended here, if no worker that takes the call over has ended them first. The report has the id
 * of the call in the place of a unit's. */
static void look_at_call(struct pass *pass, const struct hf_lock_facts *facts,
                         struct hf_tree *tree, enum hf_lock_look look)
{
    if (!hf_life_dead(facts->holder))
        return;
    if (look == HF_LOCK_FREE) {
        (void)unlink(tree->path); /* tried again at the next pass */
        return;
    }
    bool ending = end_tree(pass, tree);
    struct hf_orphan orphan = {
        .work_id = facts->call,
        .disposition = facts->disposition,
        .attempt = facts->attempt,
        .processes = (int64_t)hf_tree_signal(tree, 0),
        .lock = tree->path,
        .ending = ending,
    };
    if (pass->each)
        pass->each(pass->user, &orphan);
}

static void look_at(void *user, const char *path)
{
    struct pass *pass = user;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    struct hf_answer *answer = NULL;
    if (pass->rc)
        return;
    enum hf_lock_look look = hf_lock_look(&pass->arena, path, &facts, &tree);
    if (look != HF_LOCK_GONE && facts.call) {
        look_at_call(pass, &facts, &tree, look);
        return;
    }
    if (look == HF_LOCK_GONE || (look == HF_LOCK_HELD && !facts.work_id))
        return; /* nothing was started under it yet */
    pass->rc = facts.work_id ? find_unit(pass, facts.work_id, &answer)
                             : forget_unclaimed(pass, &tree);
    if (pass->rc || !facts.work_id)
        return;
    const struct hf_work *work = answer ? &hf_answer_at(answer, 0)->work : NULL;
    if (hf_keeper_left(path))
        collect_output(pass, path, &facts, look == HF_LOCK_FREE);
    if (look == HF_LOCK_FREE && hf_keeper_left(path)) {
        hf_answer_free(answer); /* its output is not in the store yet */
        return;
    }
    if (look == HF_LOCK_FREE) {
        forget_file(pass, &facts, &tree, work);
        hf_answer_free(answer);
        return;
    }
    tree.spare = hf_life_living(facts.holder);
    enum fate fate = fate_of(pass, &facts, work);
    bool ending = fate == FATE_END && end_tree(pass, &tree);
    if (fate != FATE_FINE && pass->each) {
        struct hf_orphan orphan = {
            .work_id = facts.work_id,
            .status = work ? work->status : NULL,
            .disposition = facts.disposition,
            .attempt = facts.attempt,
            .processes = (int64_t)hf_tree_signal(&tree, 0),
            .lock = path,
            .ending = ending,
        };
        pass->each(pass->user, &orphan);
    }
    hf_answer_free(answer);
}

int hf_reaper_pass(struct hf_reaper *reaper, const struct hf_caller *who,
                   hf_ms kill_after_ms, hf_each_orphan *each, void *user,
                   int64_t *ret_ending, struct hf_err *err)
{
    const struct hf_clock *clock = reaper->store->clock;
    struct pass pass = { .reaper = reaper,
                         .who = who,
                         .now = clock->mono_ms(clock->user),
                         .kill_after_ms = kill_after_ms,
                         .each = each,
                         .user = user,
                         .err = err };
    hf_arena_init(&pass.arena, reaper->store->alloc);
    for (size_t i = 0; i < reaper->count; i++)
        reaper->endings[i].seen = false;
    for (size_t i = 0; i < reaper->followed_count; i++)
        reaper->followed[i].seen = false;
    hf_lock_each(reaper->folder, look_at, &pass);
    for (size_t i = reaper->count; i > 0; i--)
        if (!reaper->endings[i - 1].seen)
            reaper->endings[i - 1] = reaper->endings[--reaper->count];
    for (size_t i = reaper->followed_count; i > 0; i--)
        if (!reaper->followed[i - 1].seen)
            reaper->followed[i - 1] = reaper->followed[--reaper->followed_count];
    hf_arena_fini(&pass.arena);
    if (pass.rc == 0)
        *ret_ending = pass.ending;
    return pass.rc;
}

/* ---- before a start ---------------------------------------------------------------- */

struct rival {
    const struct hf_run *run;
    struct hf_arena *arena;
    int signal;
    size_t found;
};

static void each_rival(void *user, const char *path)
{
    struct rival *rival = user;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    if (hf_same(path, rival->run->lock.path) ||
        hf_lock_look(rival->arena, path, &facts, &tree) != HF_LOCK_HELD ||
        !facts.work_id || !hf_same(facts.work_id, rival->run->work_id))
        return;
    tree.spare = hf_life_living(facts.holder);
    size_t found = hf_tree_signal(&tree, rival->signal);
    if (found && rival->signal == SIGTERM)
        (void)hf_tree_signal(&tree, SIGCONT);
    rival->found += found;
}

static size_t signal_rivals(const struct hf_run *run, int signal)
{
    struct hf_arena arena;
    char folder[HF_LOCK_PATH];
    const char *slash = strrchr(run->lock.path, '/');
    size_t len = (size_t)(slash - run->lock.path);
    memcpy(folder, run->lock.path, len);
    folder[len] = '\0';
    hf_arena_init(&arena, run->alloc);
    struct rival rival = { .run = run, .arena = &arena, .signal = signal };
    hf_lock_each(folder, each_rival, &rival);
    hf_arena_fini(&arena);
    return rival.found;
}

int hf_run_clear_way(struct hf_run *run, hf_ms most_ms, struct hf_err *err)
{
    bool may_end = run->disposition == HF_DISPOSITION_RERUNNABLE;
    size_t left = signal_rivals(run, may_end ? SIGTERM : 0);
    hf_ms begun = hf_run_mono(run), now = begun;
    while (left && may_end && now - begun < most_ms) {
        (void)poll(NULL, 0, 20);
        now = hf_run_mono(run);
        hf_asker_take(run);
        hf_asker_ask(run, now); /* the lease is ours already */
        left = signal_rivals(run, now - begun < most_ms / 2 ? 0 : SIGKILL);
    }
    if (left)
        return hf_fail(
            err, HF_EHELD, "work_id",
            "%zu processes of an earlier execution of this unit still run here", left);
    return 0;
}
