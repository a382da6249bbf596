/* A random host: for a seed, everything it ever does is a function of the seed and of the
 * effect it sees. So a turn that is cut and restored at any point must come out the same.
 */
#ifndef TESTS_TURN_WORLD_H
#define TESTS_TURN_WORLD_H

#include <holdfast/turn.h>

#include "base/arena.h"
#include "base/buf.h"
#include "turn/pages.h"

enum world_cut {
    WORLD_WHOLE,
    WORLD_CUT_POLLED,   /* after the n-th effect was polled */
    WORLD_CUT_ANSWERED, /* after it was answered */
    WORLD_CUT_PARTLY    /* within the answers to a batch of tools, or within a cell */
};

/* When a stored PROGRESS becomes the base. */
enum world_rebase {
    WORLD_REBASE_SEED, /* about every other one, the same ones for a seed */
    WORLD_REBASE_NEVER,
    WORLD_REBASE_ALWAYS,
    WORLD_REBASE_SALT /* about every other one, others for another salt */
};

struct world {
    uint64_t seed;
    enum world_rebase rebase;
    uint64_t salt;
    size_t rebased; /* how often it was */
    const struct hf_alloc
        *alloc;               /* of the turn; the world's own memory is the system's */
    struct hf_protocol *code; /* of some seeds: with options */
    bool writes_code;         /* the model writes cells */
    bool runs_lua;            /* and they are run */
    bool cut_cells;           /* each is dropped at every operation, and run again */
    struct hf_surface *surfaces[2];
    struct hf_setup *setup;
    struct pages pages; /* what is stored */
    struct hf_turn *turn;
    struct hf_turn *twin; /* driven through JSON; NULL without one */
    bool twinned;         /* to be set before world_begin */
    struct hf_buf log;
    size_t effects;
    struct hf_bytes end; /* the save of the finished turn */
    int64_t refused;     /* calls that ran out of memory and were made again */
    uint64_t restores;   /* how often the turn was cut and restored */
};

void world_open(struct world *world, uint64_t seed, const struct hf_alloc *alloc);
void world_close(struct world *world);

/* Begins the turn; 0 or HF_ENOMEM. */
int world_begin(struct world *world);
/* Goes on until the turn is done, with one cut. Nothing but HF_ENOMEM may go wrong, and it
 * is answered by doing the same again, `patience` times in all. Returns 0, or HF_ENOMEM. */
int world_run(struct world *world, enum world_cut cut, size_t at, int64_t patience);
/* The save of the finished turn with all that was reported moved to the base. */
void world_save_bare(struct world *world, struct hf_bytes *ret_save);
/* The turn as an export after `at` effects, for another process. */
void world_export_at(struct world *world, size_t at, struct hf_bytes *ret_save);
/* Goes on in this process from such an export. */
void world_resume(struct world *world, struct hf_span save);

#endif
