/* Code turns as work: a unit is a turn in which a scripted model writes cells (code.h). Who
 * holds the unit takes the turn up where it is durable, continues for a few answers, and drops
 * it; it may die or lose its lease at any of them, and its last save may never be written.
 * Whatever happened, nothing was asked of the world twice, and the turn comes to the end of
 * one that nothing happened to.
 *
 * The fence of the unit's lease is what keeps an old holder out: it is raised when a turn is
 * opened, as a session's commit will do it in the store.
 */
#include <string.h>

#include "sim/code.h"
#include "sim/inside.h"

struct sim_turns {
    struct code_kit kit;
    struct code_turn *turns[SIM_UNITS];
};

static struct sim_turns *turns_of(struct hf_sim *sim)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    if (sim->turns)
        return sim->turns;
    struct sim_turns *turns = alloc->realloc(alloc->user, NULL, sizeof(*turns));
    if (!turns)
        return NULL;
    memset(turns, 0, sizeof(*turns));
    if (code_kit_open(&turns->kit)) {
        code_kit_close(&turns->kit);
        alloc->free(alloc->user, turns);
        return NULL;
    }
    sim->turns = turns;
    return turns;
}

static struct code_turn *turn_of(struct hf_sim *sim, int unit)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    struct sim_turns *turns = turns_of(sim);
    if (!turns || turns->turns[unit])
        return turns ? turns->turns[unit] : NULL;
    struct code_turn *turn = alloc->realloc(alloc->user, NULL, sizeof(*turn));
    if (turn) {
        memset(turn, 0, sizeof(*turn));
        turn->script = (int)((sim->seed + (uint64_t)unit) % CODE_SCRIPTS);
        turn->actor = -1;
    }
    turns->turns[unit] = turn;
    return turn;
}

static void judge(struct hf_sim *sim, int unit, const struct code_turn *turn)
{
    struct code_turn whole = { .script = turn->script };
    int rc = code_run_whole(&sim->turns->kit, &whole);
    const struct code_end *a = &turn->end;
    const struct code_end *b = &whole.end;
    if (rc)
        sim_violate(sim, "u%d: script %d fails by itself: %s", unit, turn->script,
                    whole.wrong);
    else if (a->outcome != b->outcome || a->records != b->records ||
             memcmp(a->digest, b->digest, sizeof(a->digest)) != 0)
        sim_violate(sim,
                    "u%d: the turn came to another end than one that nothing "
                    "happened to (script %d, %llu records, not %llu)",
                    unit, turn->script, (unsigned long long)a->records,
                    (unsigned long long)b->records);
    else if (a->answers != b->answers)
        sim_violate(sim, "u%d: %zu things were asked of the world, not %zu", unit,
                    a->answers, b->answers);
    code_drop(&whole);
}

/* The row is another one than the turn was opened for: a unit that was done and pruned can be
 * asked for again, and is a new turn. False while the other row is there. */
static bool begin_again(struct hf_sim *sim, int unit, struct code_turn *turn)
{
    const struct sim_shadow *row = sim_shadow_of(sim, turn->row);
    int script = turn->script;
    if (row && !row->gone)
        return false;
    if (turn->finished)
        judge(sim, unit, turn);
    code_drop(turn);
    turn->script = script;
    return true;
}

/* False for a holder whose lease is an old one. */
static bool enter(struct hf_sim *sim, struct code_turn *turn, int actor,
                  const struct sim_hold *hold)
{
    int boot = sim->actors[actor].boot;
    if (turn->row[0] && !sim_same(turn->row, hold->id) &&
        !begin_again(sim, hold->unit, turn))
        return false;
    sim_copy(turn->row, sizeof(turn->row), hold->id);
    bool old = hold->store < turn->store ||
               (hold->store == turn->store && hold->fence < turn->fence);
    bool same = hold->store == turn->store && hold->fence == turn->fence;
    if (old) {
        sim_trace(sim, "a%d comes to u%d with an old fence", actor, hold->unit);
        return false;
    }
    if (same && (turn->actor != actor || turn->boot != boot))
        sim_violate(sim, "u%d: a%d/%d and a%d/%d hold it under one fence %lld",
                    hold->unit, turn->actor, turn->boot, actor, boot,
                    (long long)hold->fence);
    if (!same && turn->save.at)
        sim_mark(sim, HF_SIM_MARK_TURN_RESUMED);
    turn->store = hold->store;
    turn->fence = hold->fence;
    turn->actor = actor;
    turn->boot = boot;
    return true;
}

/* Some answers by one host. The world may end it after any, before what it did is saved. */
static int go_on(struct hf_sim *sim, struct code_turn *turn, int answers)
{
    struct code_live live;
    bool saves = false;
    int rc = code_open(&sim->turns->kit, turn, &live);
    for (int i = 0; rc == 0 && i < answers && !turn->finished; i++) {
        rc = code_advance(&live, &saves);
        if (rc || turn->finished)
            break;
        if (!sim->healing && sim_one_in(&sim->dice, 8)) {
            sim_mark(sim, HF_SIM_MARK_TURN_CUT);
            break;
        }
        if (saves)
            rc = code_save(&live);
    }
    code_close(&live);
    return rc;
}

enum sim_work sim_turn_work(struct hf_sim *sim, int actor, int hold)
{
    const struct sim_hold *h = &sim->actors[actor].holds[hold];
    struct code_turn *turn = turn_of(sim, h->unit);
    if (!turn) {
        sim_violate(sim, "no memory for the turn of u%d", h->unit);
        return SIM_WORK_LOST;
    }
    if (!enter(sim, turn, actor, h))
        return SIM_WORK_LOST;
    if (turn->finished)
        return SIM_WORK_DONE;
    int answers = sim->healing ? CODE_ANSWERS : 1 + (int)sim_roll(&sim->dice, 6);
    int rc = go_on(sim, turn, answers);
    sim_trace(sim, "a%d continues with the turn of u%d: %zu answers%s", actor, h->unit,
              turn->answer_count, turn->finished ? ", done" : "");
    sim_note(sim, 0xc0de0000u + turn->answer_count);
    if (turn->wrong[0])
        sim_violate(sim, "u%d, script %d: %s", h->unit, turn->script, turn->wrong);
    else if (rc)
        sim_violate(sim, "u%d: its turn fails with %d", h->unit, rc);
    return turn->finished ? SIM_WORK_DONE : SIM_WORK_MORE;
}

/* ---- the end --------------------------------------------------------------------- */

void sim_turns_judge(struct hf_sim *sim)
{
    for (size_t i = 0; i < sim->unit_count; i++) {
        const struct sim_shadow *row = sim->row_of[i] ? &sim->shadows[sim->row_of[i] - 1]
                                                      : NULL;
        const struct code_turn *turn = sim->turns ? sim->turns->turns[i] : NULL;
        if (sim->units[i].workload != HF_SIM_OF_TURN || !row)
            continue;
        if (row->status == HF_STATUS_DONE && (!turn || !turn->finished))
            sim_violate(sim, "u%zu is done, and its turn is not", i);
        else if (turn && turn->finished)
            judge(sim, (int)i, turn);
    }
}

void sim_turns_free(struct hf_sim *sim)
{
    const struct hf_alloc *alloc = hf_alloc_system();
    if (!sim->turns)
        return;
    for (size_t i = 0; i < SIM_UNITS; i++) {
        if (!sim->turns->turns[i])
            continue;
        code_drop(sim->turns->turns[i]);
        alloc->free(alloc->user, sim->turns->turns[i]);
    }
    code_kit_close(&sim->turns->kit);
    alloc->free(alloc->user, sim->turns);
    sim->turns = NULL;
}
