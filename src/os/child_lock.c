/* Locks of tool calls: holdfast/child.h, over the lock files of os/tree.h. */
#include <holdfast/child.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "os/tree.h"

#define YOUNG_MS 1000 /* a lock that says nothing for longer is not being written */

struct hf_child_lock {
    const struct hf_alloc *alloc;
    struct hf_arena arena;
    struct hf_lockfile file;
    const char *folder;
    struct hf_lock_facts facts;
    struct hf_tree tree; /* once it was passed */
    bool passed;
};

static int copy_plan(struct hf_child_lock *lock, const struct hf_child_lock_plan *plan,
                     struct hf_err *err)
{
    lock->folder = hf_arena_text(&lock->arena, plan->folder);
    lock->facts.session = hf_arena_text(&lock->arena, plan->session);
    lock->facts.call = hf_arena_text(&lock->arena, plan->call);
    lock->facts.fence = plan->fence;
    lock->facts.disposition = "rerunnable"; /* what a reaper does about its tree */
    if (!lock->folder || !lock->facts.session || !lock->facts.call)
        return hf_fail_plain(err, HF_ENOMEM);
    return hf_life_describe(&lock->arena, getpid(), NULL, &lock->facts.holder, err);
}

int hf_child_lock_new(const struct hf_alloc *alloc, const struct hf_child_lock_plan *plan,
                      struct hf_child_lock **ret_lock, struct hf_err *err)
{
    int rc = hf_sized_check(plan->size, sizeof(*plan), sizeof(*plan), err);
    if (rc)
        return rc;
    if (!plan->folder || !plan->session || !plan->call)
        return hf_fail(err, HF_EINVAL, "lock_folder",
                       "a lock needs a folder, a session and a call");
    struct hf_child_lock *lock = alloc->realloc(alloc->user, NULL, sizeof(*lock));
    if (!lock)
        return hf_fail_plain(err, HF_ENOMEM);
    *lock = (struct hf_child_lock){ .alloc = alloc, .file = { .fd = -1 } };
    hf_arena_init_small(&lock->arena, alloc, 512, 4096);
    rc = copy_plan(lock, plan, err);
    if (rc == 0)
        rc = hf_lock_new(plan->folder, hf_random_system(), &lock->file, err);
    /* Written before clear looks for others: of two starters one at least sees the other. */
    if (rc == 0)
        rc = hf_lock_write(&lock->file, &lock->facts, alloc, err);
    if (rc)
        hf_child_lock_free(lock);
    else
        *ret_lock = lock;
    return rc;
}

struct clearing {
    struct hf_child_lock *lock;
    struct hf_arena arena;
    int signal;
    size_t left;
    bool later; /* a later claim executes the call */
};

/* Its starter may be about to write it. */
static bool may_become_rival(const struct hf_lock_facts *facts,
                             const struct hf_tree *tree)
{
    const struct hf_clock *clock = hf_clock_system();
    return !facts->work_id && clock->wall_ms(clock->user) - tree->touched < YOUNG_MS;
}

static void each_lock(void *user, const char *path)
{
    struct clearing *clearing = user;
    const struct hf_lock_facts *own = &clearing->lock->facts;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    if (hf_same(path, clearing->lock->file.path))
        return;
    enum hf_lock_look look = hf_lock_look(&clearing->arena, path, &facts, &tree);
    if (look == HF_LOCK_HELD && !facts.call)
        clearing->left += may_become_rival(&facts, &tree);
    if (look == HF_LOCK_GONE || !facts.call || !hf_same(facts.session, own->session))
        return;
    bool same = hf_same(facts.call, own->call);
    bool dead = hf_life_dead(facts.holder);
    if (look == HF_LOCK_FREE && dead)
        (void)unlink(path); /* nothing runs under it; a later call tries again */
    if (look == HF_LOCK_FREE || (!same && !dead))
        return;
    if (same && !dead && facts.fence > own->fence) {
        clearing->later = true;
        return;
    }
    clearing->left++;
    tree.spare = hf_life_living(facts.holder);
    if (clearing->signal == 0)
        return;
    (void)hf_tree_signal(&tree, clearing->signal);
    (void)hf_tree_signal(&tree, SIGCONT); /* a stopped process takes no other signal */
}

int hf_child_lock_clear(struct hf_child_lock *lock, int signal, size_t *ret_left,
                        struct hf_err *err)
{
    struct clearing clearing = { .lock = lock, .signal = signal };
    hf_arena_init_small(&clearing.arena, lock->alloc, 1024, 8192);
    hf_lock_each(lock->folder, each_lock, &clearing);
    hf_arena_fini(&clearing.arena);
    if (clearing.later)
        return hf_fail(err, HF_EHELD, "call",
                       "a later claim of the session executes this call");
    *ret_left = clearing.left;
    return 0;
}

const char *hf_child_lock_path(const struct hf_child_lock *lock)
{
    return lock->file.path;
}

int hf_child_lock_fd(const struct hf_child_lock *lock)
{
    return lock->file.fd;
}

void hf_child_lock_pass(struct hf_child_lock *lock, const struct hf_child *child)
{
    struct hf_lock_facts facts;
    struct hf_err ignored;
    lock->facts.group = hf_child_pid(child);
    if (hf_lock_write(&lock->file, &lock->facts, lock->alloc, &ignored))
        lock->facts.group = 0; /* it only helps to find who closed the descriptor */
    hf_lock_close(&lock->file);
    if (hf_lock_look(&lock->arena, lock->file.path, &facts, &lock->tree) == HF_LOCK_GONE)
        lock->tree = (struct hf_tree){ 0 };
    lock->tree.path = lock->file.path;
    lock->tree.group = hf_child_pid(child);
    lock->passed = true;
}

bool hf_child_lock_held(const struct hf_child_lock *lock)
{
    struct hf_arena arena;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    hf_arena_init_small(&arena, lock->alloc, 512, 4096);
    bool held = hf_lock_look(&arena, lock->file.path, &facts, &tree) == HF_LOCK_HELD;
    hf_arena_fini(&arena);
    return held;
}

size_t hf_child_lock_signal(const struct hf_child_lock *lock, int signal)
{
    return lock->passed ? hf_tree_signal(&lock->tree, signal) : 0;
}

void hf_child_lock_free(struct hf_child_lock *lock)
{
    if (!lock)
        return;
    if (lock->passed && hf_child_lock_held(lock))
        hf_lock_close(&lock->file);
    else
        hf_lock_remove(&lock->file);
    hf_arena_fini(&lock->arena);
    lock->alloc->free(lock->alloc->user, lock);
}
