/* Records while they are looked at. A base may hold its history in pages that come and go, so a
 * record is taken with `get` and returned with `put` (a pin). Also the memory that live renders
 * share with a turn (pin.h). */
#include "core/turn/pin.h"

#include "core/turn/machine.h"

const struct hf_record *hf_pin_take(struct hf_pin *pin, const struct hf_base *base,
                                    uint64_t i)
{
    *pin = (struct hf_pin){ .record = base->get(base->user, i), .i = i };
    if (pin->record) {
        pin->user = base->user;
        pin->put = base->put;
    }
    return pin->record;
}

void hf_pin_drop(struct hf_pin *pin)
{
    if (pin->put)
        pin->put(pin->user, pin->i, pin->record);
    *pin = (struct hf_pin){ 0 };
}

const struct hf_record *hf_turn_pin(const struct hf_turn *turn, uint64_t i,
                                    struct hf_pin *ret_pin)
{
    if (i < turn->base.count)
        return hf_pin_take(ret_pin, &turn->base, i);
    uint64_t own = i - turn->base.count;
    *ret_pin = (struct hf_pin){ .i = i };
    if (own < turn->now.own_count)
        ret_pin->record = turn->now.own[own];
    return ret_pin->record;
}

const struct hf_record *hf_turn_record(struct hf_turn *turn, uint64_t i)
{
    hf_pin_drop(&turn->shown);
    return hf_turn_pin(turn, i, &turn->shown);
}

struct hf_share {
    const struct hf_alloc *alloc;
    size_t holders;
    struct hf_arena records; /* empty while the turn holds its share */
};

struct hf_share *hf_share_take(struct hf_turn *turn)
{
    const struct hf_alloc *alloc = turn->alloc;
    if (!turn->share) {
        struct hf_share *share = alloc->realloc(alloc->user, NULL, sizeof(*share));
        if (!share)
            return NULL;
        *share = (struct hf_share){ .alloc = alloc, .holders = 1 };
        hf_arena_init(&share->records, alloc);
        turn->share = share;
    }
    turn->share->holders++;
    return turn->share;
}

void hf_share_drop(struct hf_share *share)
{
    if (!share || --share->holders > 0)
        return;
    hf_arena_fini(&share->records);
    share->alloc->free(share->alloc->user, share);
}

void hf_turn_leave_records(struct hf_turn *turn)
{
    if (turn->share && turn->share->holders > 1)
        turn->share->records = turn->keep;
    else
        hf_arena_fini(&turn->keep);
    hf_share_drop(turn->share);
    turn->share = NULL;
}
