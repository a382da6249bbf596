/* The output of a unit for a reader: what the store has, and what the files of an execution on this
 * machine have in addition until a sweep stores it. */
#include <holdfast/run.h>
#include <holdfast/sys/store.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "os/tree.h"
#include "run/command/keeper.h"

struct reading {
    struct hf_store *store;
    struct hf_arena arena;
    const char *id;
    int64_t attempt; /* 0: the last that wrote */
    struct hf_output *output;
    int rc;
};

static void read_left(void *user, const char *path)
{
    struct reading *r = user;
    struct hf_lock_facts facts;
    struct hf_tree tree;
    if (r->rc || !hf_keeper_left(path) ||
        hf_lock_look(&r->arena, path, &facts, &tree) == HF_LOCK_GONE)
        return;
    if (hf_same(facts.work_id, r->id) && (!r->attempt || r->attempt == facts.attempt))
        r->rc = hf_keeper_show(r->store->alloc, path, facts.attempt, r->output);
}

int hf_run_output(struct hf_store *store, const char *lock_folder, const char *id,
                  int64_t attempt, struct hf_output **ret_output, struct hf_err *err)
{
    struct reading r = { .store = store, .id = id, .attempt = attempt };
    int rc = hf_output_read(store, id, attempt, &r.output, err);
    if (rc || !lock_folder) {
        if (rc == 0)
            *ret_output = r.output;
        return rc;
    }
    hf_arena_init(&r.arena, store->alloc);
    hf_lock_each(lock_folder, read_left, &r);
    hf_arena_fini(&r.arena);
    if (r.rc) {
        hf_output_free(r.output);
        return hf_fail_plain(err, r.rc);
    }
    *ret_output = r.output;
    return 0;
}
