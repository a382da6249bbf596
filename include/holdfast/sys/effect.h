/* Effect hosts: who keeps the effects of turns, and what a driver may leave to it.
 *
 *   journal  each step is one transaction of the store: outcome, intent and save
 *   inline   nothing is journaled: after a crash the turn begins again from the last commit
 *
 * An engine outside the store that replays effects by their keys is one more host: it says
 * that it retries by itself, whether effects may overlap, and after how many steps a worker
 * hands the turn back so that the engine can cut its own log.
 */
#ifndef HOLDFAST_SYS_EFFECT_H
#define HOLDFAST_SYS_EFFECT_H

#include <holdfast/effect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The facts about a host that a driver needs.
 *   promise        one sentence for people: what survives a crash. The library does not print
 *                  it. A program that runs turns under `inline`, or lets its user choose a host,
 *                  shows it where its user begins: no command of `holdfast` can choose `inline`
 *   journaled      steps are stored; otherwise only the commit is
 *   retries        the host repeats failed tool calls; the driver does not
 *   serial         no two effects of a turn may be out at once
 *   segment_steps  hand the turn back after this many steps; 0: never */
struct hf_effect_host {
    const char *name;
    const char *promise;
    bool journaled;
    bool retries;
    bool serial;
    int64_t segment_steps;
};

/* The two hosts of this library. They are static. */
HF_API const struct hf_effect_host *hf_effect_host_journal(void);
HF_API const struct hf_effect_host *hf_effect_host_inline(void);

#ifdef __cplusplus
}
#endif
#endif
