/* The ids of all calls that a turn has had, whether their records are its own still or went
 * to the base: so a repeated id is seen, and ids come out the same, wherever the host
 * rebases.
 *
 * An id is kept as 64 bits (FNV-1a), in ascending order. Two ids that share them cost the
 * later one its name and nothing else: it is replaced as a repeated one is.
 *
 * What a move adds lies behind the committed ids, unsorted, and counts when it is
 * committed; a dropped move leaves nothing to undo.
 */
#include <string.h>

#include "base/err.h"
#include "core/turn/machine.h"

static uint64_t mark_of(const char *id)
{
    uint64_t mark = UINT64_C(0xcbf29ce484222325);
    for (const char *at = id; *at; at++)
        mark = (mark ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return mark;
}

/* How many of the sorted marks are below this one. */
static size_t place_of(const uint64_t *marks, size_t count, uint64_t mark)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (marks[middle] < mark)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* The new ones first: what is asked for most is a call of the reply at hand. */
static bool has_mark(const struct hf_move *move, uint64_t mark)
{
    const uint64_t *marks = move->next.call_ids;
    size_t sorted = move->turn->now.call_id_count;
    for (size_t i = move->next.call_id_count; i > sorted; i--)
        if (marks[i - 1] == mark)
            return true;
    size_t place = place_of(marks, sorted, mark);
    return place < sorted && marks[place] == mark;
}

int hf_turn_room_for_ids(struct hf_turn *turn, size_t count)
{
    if (count <= turn->id_room)
        return 0;
    size_t room = turn->id_room * 2;
    room = room < count ? count : room;
    size_t bytes = 0;
    if (__builtin_mul_overflow(room, sizeof(*turn->now.call_ids), &bytes))
        return HF_ENOMEM;
    bool few = turn->now.call_ids == turn->few_ids;
    uint64_t *marks = turn->alloc->realloc(turn->alloc->user,
                                           few ? NULL : turn->now.call_ids, bytes);
    if (!marks)
        return HF_ENOMEM;
    if (few)
        memcpy(marks, turn->few_ids, sizeof(turn->few_ids));
    turn->now.call_ids = marks;
    turn->id_room = room;
    return 0;
}

int hf_move_note_call(struct hf_move *move, const char *id)
{
    uint64_t mark = mark_of(id);
    if (has_mark(move, mark))
        return 0;
    if (hf_turn_room_for_ids(move->turn, move->next.call_id_count + 1))
        return HF_ENOMEM;
    move->next.call_ids = move->turn->now.call_ids;
    move->next.call_ids[move->next.call_id_count++] = mark;
    return 1;
}

int hf_move_note_calls(struct hf_move *move, const struct hf_message *message,
                       struct hf_err *err)
{
    size_t made =
        0; /* those that hf_move_calls gave out are noted, and mostly it is they */
    for (size_t i = 0; i < message->part_count; i++) {
        const struct hf_part *part = &message->parts[i];
        if (part->kind != HF_PART_TOOL_CALL)
            continue;
        if (made < move->made_count && part->call_id == move->made[made].call_id)
            made++;
        else if (hf_move_note_call(move, part->call_id) < 0)
            return hf_fail_plain(err, HF_ENOMEM);
    }
    return 0;
}

void hf_move_sort_calls(struct hf_move *move)
{
    uint64_t *marks = move->next.call_ids;
    for (size_t i = move->turn->now.call_id_count; i < move->next.call_id_count; i++) {
        uint64_t mark = marks[i];
        size_t place = place_of(marks, i, mark);
        if (place == i)
            continue;
        memmove(marks + place + 1, marks + place, (i - place) * sizeof(*marks));
        marks[place] = mark;
    }
}
