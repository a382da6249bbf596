/* Records while they are looked at, and the memory that live renders share with a turn.
 *
 * A base may hold its history in pages that come and go. So each record of the base is
 * taken with `get`, and returned with `put` once nothing points to it: that is a pin. An
 * own record needs none; its memory lives until the record moves to the base. */
#ifndef HF_CORE_TURN_PIN_H
#define HF_CORE_TURN_PIN_H

#include <holdfast/turn.h>

#include "base/arena.h"

/* A record that is held. It keeps what `put` needs, so it outlives a rebase. */
struct hf_pin {
    const struct hf_record *record;
    uint64_t i;
    void *user;
    void (*put)(void *user, uint64_t i, const struct hf_record *record);
};

/* Takes record i of a base; NULL when the base cannot lend it. */
const struct hf_record *hf_pin_take(struct hf_pin *pin, const struct hf_base *base,
                                    uint64_t i);
/* Returns the record; a zeroed pin is fine. */
void hf_pin_drop(struct hf_pin *pin);

/* Record i of the turn, base or own; NULL as hf_pin_take, and past the end. */
const struct hf_record *hf_turn_pin(const struct hf_turn *turn, uint64_t i,
                                    struct hf_pin *ret_pin);

/* The memory of own records, once a render points into it. The turn and each render hold
 * one share; whichever lets go last frees it. */
struct hf_share;

/* One more share of the turn's own records; NULL when out of memory. */
struct hf_share *hf_share_take(struct hf_turn *turn);
void hf_share_drop(struct hf_share *share);
/* The turn lets go of its own records: frees them, or leaves them to the renders. */
void hf_turn_leave_records(struct hf_turn *turn);

#endif
