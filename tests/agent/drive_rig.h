/* A world for drives in tests: a store in memory, a scripted model, four tools, and a clock that
 * only the test moves. Each action is one short line, so that a test can say by hand what must
 * happen:
 *
 *   store 0 records 1 begin 1              step 0 stores a record and the intent of effect 1
 *   model 1 | stop model 1
 *   store 1 records 1 settle 1:done begin 2/add/1 2/pay/1
 *   tool 2/add/1 {"a":1} | probe 2/mail/1 | stop tool 2/pay/1
 *   store 2 settle 2/add/1:done
 *   store 1 records 1 settle 1:done ask approval:2/pay/1 away      puts the turn away; end follows
 *   timer +1000 | sync | blob | back +0 | end
 *   commit done records 1 "text"
 *
 * Calls are named by their tool. The store refuses a step that does not continue the last one,
 * an effect that is settled twice, and one that is performed before its intent is stored.
 */
#ifndef TESTS_AGENT_DRIVE_RIG_H
#define TESTS_AGENT_DRIVE_RIG_H

#include <holdfast/sys/drive.h>
#include <holdfast/turn_json.h>

#include "support/fail_alloc.h"
#include "support/unit.h"

#define DRIG_MAX 64

struct drig_entry {
    char key[HF_EFFECT_KEY_ROOM];
    char envelope[1024];
    char outcome[4096];
    struct hf_effect_entry entry;
    bool taken_over;
};

struct drig_wait {
    char name[HF_EFFECT_KEY_ROOM + 16];
    char asked[1024];
    char id[HF_WAIT_ID_TEXT];
    char outcome[512];
    char actor[32];
    struct hf_wait wait;
};

struct drig {
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_toolset *tools;
    struct fail_alloc memory;
    struct hf_drive_config config;
    struct hf_drive *drive;
    struct hf_drive_action action; /* the last one */
    bool hold_store;               /* steps are not stored until drig_store */
    bool waiting;                  /* a step is held */

    /* The store. */
    char records[DRIG_MAX][4096]; /* JSON */
    size_t record_count;
    size_t committed; /* of them */
    uint8_t chain[32];
    int64_t step;
    int64_t node_count;
    int64_t effects_past;
    char save[65536];
    size_t save_len;
    struct drig_entry entries[DRIG_MAX];
    size_t entry_count;
    struct drig_wait waits[DRIG_MAX];
    size_t wait_count;
    bool away; /* the last step put the turn away */
    struct hf_effect_blob blobs[DRIG_MAX];
    size_t blob_count;
    int64_t fence;
    bool ended; /* committed */
    char outcome[4096];
    int64_t tokens;
    hf_ms active_ms;

    /* The world. */
    hf_ms now;
    struct {
        char key[HF_EFFECT_KEY_ROOM];
        int count;
    } performed[DRIG_MAX]; /* tools that were started, by key */
    size_t performed_count;
    struct {
        char id[32];
        char tool[16];
    } calls[DRIG_MAX];
    size_t call_count;
    char log[65536];

    struct hf_decoded *lent_owner[DRIG_MAX];
    const struct hf_record *lent[DRIG_MAX];
    size_t lent_count;
};

/* An empty session with one message to answer. */
void drig_init(struct drig *rig);
void drig_fini(struct drig *rig);

/* A claim: a new fence, and a drive over what is stored. */
void drig_claim(struct drig *rig);
int drig_try_claim(struct drig *rig, struct hf_err *err);
/* The worker is gone; what it had stored stays. */
void drig_kill(struct drig *rig);

/* Takes actions until there are none; the log since the last look must be `lines`. */
void drig_expect(struct drig *rig, const char *lines);
/* The next action, done as far as the rig can by itself; false: there is none. */
bool drig_act(struct drig *rig);
void drig_store(struct drig *rig); /* a step that was held */

/* Events. */
void drig_event(struct drig *rig, enum hf_drive_event_kind kind, int code);
/* A cancel; status: of inputs that have ended already, or NONE. */
void drig_cancel(struct drig *rig, enum hf_status status);
void drig_pass(struct drig *rig, hf_ms ms); /* the clock moves, and a TIMER comes */
void drig_say(struct drig *rig, uint64_t id, const char *text);
/* The model asks for tools: pairs of name and arguments, ended by NULL. */
void drig_ask(struct drig *rig, uint64_t id, ...);
void drig_model_fails(struct drig *rig, uint64_t id);
void drig_answer(struct drig *rig, const char *tool, const char *json);
void drig_fail_tool(struct drig *rig, const char *tool, enum hf_failure_retry retry);
void drig_cut_tool(struct drig *rig, const char *tool, bool timed_out);
void drig_probe(struct drig *rig, const char *tool, enum hf_probe probe,
                const char *json);

/* A tool that has started something outside. */
void drig_defer(struct drig *rig, const char *tool);
/* An actor answers a wait ("2/pay/1", "2/pay/1/happened") with an outcome; "" is the first one. */
void drig_resolve(struct drig *rig, const char *name, const char *actor,
                  const char *outcome);
/* The first call of a tool in an effect is completed before its wait is opened. */
void drig_resolve_early(struct drig *rig, uint64_t effect, const char *tool,
                        const char *outcome);
/* The deadline of a wait passes, and fails the turn. */
void drig_fail_turn(struct drig *rig, const char *name);
/* What was asked, and when it is due; fails when there is no such wait. */
const struct drig_wait *drig_wait(struct drig *rig, const char *name);

/* The status of the newest entry that ends in this ("1", "2/add/1"); "" when there is none. */
const char *drig_status(struct drig *rig, const char *key);
/* How often the tool with this key ("2/add/1") was started. */
int drig_performed(struct drig *rig, const char *key);

#endif
