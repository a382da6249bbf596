/* A turn in which a scripted model writes cells, as a host keeps it: on its way, and what of
 * it outlives the host.
 *
 * Durable are the save, the bindings by their hash, and a journal: every answer that was
 * bought, of the model, of a tool or by a reference. An answer is journaled in the moment
 * in which it is bought, under a fence: a host that opens the turn with a higher one
 * shuts all others out. A save may be lost with the host that did not come to write it,
 * an answer never.
 */
#ifndef HF_SIM_CODE_H
#define HF_SIM_CODE_H

#include <holdfast/code.h>
#include <holdfast/exec.h>

#define CODE_ANSWERS 64
#define CODE_BINDINGS 16
#define CODE_TEXT 240

struct code_answer {
    uint64_t effect;
    uint64_t ordinal; /* 0: the model's */
    size_t child;     /* of a batch, from 1 */
    enum hf_op_kind kind;
    bool failed;
    char id[40];
    char name[24];
    char args[CODE_TEXT]; /* of the operation */
    const char *answer;   /* JSON, static */
};

struct code_bindings {
    char hash[65];
    struct hf_bytes bytes;
};

/* What came of a turn: the same, however often it was cut. */
struct code_end {
    enum hf_outcome_kind outcome;
    uint64_t records;
    uint8_t digest[32]; /* over the records, so over cells, outputs, calls, bindings */
    size_t answers;
};

/* What is durable of one turn. */
struct code_turn {
    int script;
    struct hf_bytes save;
    struct code_answer answers[CODE_ANSWERS];
    size_t answer_count;
    struct code_bindings bindings[CODE_BINDINGS];
    size_t binding_count;
    char row[40];  /* of the unit, in the ledger */
    int64_t store; /* the highest fence that opened it, and who did */
    int64_t fence;
    int actor;
    int boot;
    bool finished;
    struct code_end end;
    char wrong[200]; /* the first thing that must not happen */
};

/* One host at work on it. */
struct code_live {
    struct code_turn *durable;
    struct hf_turn *turn;
    struct hf_cell *cell;
    struct hf_effect effect;
    bool has_effect;
};

/* What all turns share; also the end of each script when nothing goes wrong. */
struct code_kit {
    struct hf_surface *surface;
    struct hf_setup *setup;
};

int code_kit_open(struct code_kit *kit);
void code_kit_close(struct code_kit *kit);

/* Takes the turn up where its durable parts have it. A code when it cannot be. */
int code_open(const struct code_kit *kit, struct code_turn *durable,
              struct code_live *ret_live);
void code_close(struct code_live *live);

/* Continues by one answer, from whichever source it is bought. *ret_saves: it is time for a
 * save. */
int code_advance(struct code_live *live, bool *ret_saves);
int code_save(struct code_live *live);

/* From the first effect to the end, by one host that nothing happens to. */
int code_run_whole(const struct code_kit *kit, struct code_turn *durable);
void code_drop(struct code_turn *durable);

#define CODE_SCRIPTS 4

#endif
