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
#include "core/turn_machine.h"

#define FIRST_ROOM ((size_t)8)

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

static bool has_mark(const struct hf_move *move, uint64_t mark)
{
    const uint64_t *marks = move->next.call_ids;
    size_t sorted = move->turn->now.call_id_count;
    size_t place = place_of(marks, sorted, mark);
    if (place < sorted && marks[place] == mark)
        return true;
    for (size_t i = sorted; i < move->next.call_id_count; i++)
        if (marks[i] == mark)
            return true;
    return false;
}

bool hf_move_had_call(const struct hf_move *move, const char *id)
{
    return has_mark(move, mark_of(id));
}

int hf_turn_room_for_ids(struct hf_turn *turn, size_t count)
{
    if (count <= turn->id_room)
        return 0;
    size_t room = turn->id_room < FIRST_ROOM ? FIRST_ROOM : turn->id_room * 2;
    room = room < count ? count : room;
    size_t bytes = 0;
    if (__builtin_mul_overflow(room, sizeof(*turn->now.call_ids), &bytes))
        return HF_ENOMEM;
    uint64_t *marks = turn->alloc->realloc(turn->alloc->user, turn->now.call_ids, bytes);
    if (!marks)
        return HF_ENOMEM;
    turn->now.call_ids = marks;
    turn->id_room = room;
    return 0;
}

int hf_move_note_call(struct hf_move *move, const char *id, struct hf_err *err)
{
    uint64_t mark = mark_of(id);
    if (has_mark(move, mark))
        return 0;
    if (hf_turn_room_for_ids(move->turn, move->next.call_id_count + 1))
        return hf_fail_plain(err, HF_ENOMEM);
    move->next.call_ids = move->turn->now.call_ids;
    move->next.call_ids[move->next.call_id_count++] = mark;
    return 0;
}

int hf_move_note_calls(struct hf_move *move, const struct hf_record *record,
                       struct hf_err *err)
{
    int rc = 0;
    if (record->kind != HF_RECORD_MESSAGE || record->message->role != HF_ROLE_ASSISTANT)
        return 0;
    for (size_t i = 0; rc == 0 && i < record->message->part_count; i++)
        if (record->message->parts[i].kind == HF_PART_TOOL_CALL)
            rc = hf_move_note_call(move, record->message->parts[i].call_id, err);
    return rc;
}

void hf_move_sort_calls(struct hf_move *move)
{
    uint64_t *marks = move->next.call_ids;
    for (size_t i = move->turn->now.call_id_count; i < move->next.call_id_count; i++) {
        uint64_t mark = marks[i];
        size_t place = place_of(marks, i, mark);
        memmove(marks + place + 1, marks + place, (i - place) * sizeof(*marks));
        marks[place] = mark;
    }
}
