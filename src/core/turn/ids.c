/* Ids of tool calls: "c" and 24 characters of [a-z0-5], which are 120 bits of a hash of
 * session, turn, iteration and the number of the call in its turn. Providers accept them
 * (^[a-zA-Z0-9_-]+$, at most 40 characters), and no other call of any session has the same
 * one, so histories can be joined and sent. They follow from what a save holds: a restored
 * turn makes the same ids.
 *
 * The hash tells calls apart and protects nothing; SHA-256 would cost more than all the
 * rest of a call. It is stored in histories, so it may never change once released.
 */
#include <string.h>

#include "core/turn/machine.h"

#define LANE_CHARS 12
#define ID_CHARS (1 + 2 * (size_t)LANE_CHARS)

struct lanes {
    uint64_t a;
    uint64_t b;
};

static struct lanes add_text(struct lanes lanes, const char *text)
{
    for (const char *at = text;; at++) { /* its NUL too: it sets texts apart */
        lanes.a = (lanes.a ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
        lanes.b = (lanes.b + (unsigned char)*at) * UINT64_C(0x9e3779b97f4a7c15);
        lanes.b ^= lanes.b >> 32;
        if (*at == '\0')
            return lanes;
    }
}

static uint64_t mixed(uint64_t value)
{
    value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
    value = (value ^ value >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return value ^ value >> 33;
}

static struct lanes add_number(struct lanes lanes, uint64_t number)
{
    lanes.a = mixed(lanes.a ^ number);
    lanes.b = mixed(lanes.b + number * UINT64_C(0xd1342543de82ef95));
    return lanes;
}

static void put_lane(char *out, uint64_t lane)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345";
    for (size_t i = 0; i < LANE_CHARS; i++, lane >>= 5)
        out[i] = digits[lane & 31];
}

const char *hf_move_call_id(struct hf_move *move)
{
    struct lanes lanes = { UINT64_C(0xcbf29ce484222325), UINT64_C(0x243f6a8885a308d3) };
    char *id = hf_arena_room(move->arena, ID_CHARS + 1, 1);
    if (!id)
        return NULL;
    lanes = add_text(lanes, move->turn->session_id);
    lanes = add_text(lanes, move->turn->turn_id);
    lanes = add_number(lanes, move->next.iteration);
    lanes = add_number(lanes, move->next.next_call++);
    id[0] = 'c';
    put_lane(id + 1, lanes.a);
    put_lane(id + 1 + LANE_CHARS, lanes.b);
    id[ID_CHARS] = '\0';
    return id;
}

bool hf_turn_is_call_id(const char *id)
{
    if (!id || id[0] != 'c' || strlen(id) != ID_CHARS)
        return false;
    for (const char *at = id; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '5')))
            return false;
    return true;
}
