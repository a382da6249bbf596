/* A page of processes: it owns every byte it shows. */
#include "store/process/process.h"

struct hf_processes {
    struct hf_arena arena;
    struct hf_process *items;
    size_t room;
    size_t count;
    const char *next;
};

struct hf_processes *hf_processes_new(const struct hf_alloc *alloc)
{
    struct hf_processes *made = alloc->realloc(alloc->user, NULL, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct hf_processes){ 0 };
    hf_arena_init(&made->arena, alloc);
    return made;
}

void hf_processes_free(struct hf_processes *processes)
{
    if (!processes)
        return;
    const struct hf_alloc *alloc = processes->arena.alloc;
    hf_arena_fini(&processes->arena);
    alloc->free(alloc->user, processes);
}

static int make_room(struct hf_processes *processes)
{
    size_t room = processes->room ? 2 * processes->room : 8;
    struct hf_process *items = hf_arena_array(&processes->arena, room, sizeof *items);
    if (!items)
        return HF_ENOMEM;
    for (size_t i = 0; i < processes->count; i++)
        items[i] = processes->items[i];
    processes->items = items;
    processes->room = room;
    return 0;
}

int hf_processes_add(struct hf_processes *processes, const struct hf_process *process)
{
    if (processes->count == processes->room && make_room(processes))
        return HF_ENOMEM;
    struct hf_process *copy = &processes->items[processes->count];
    *copy = *process;
    if (hf_fields_keep(&processes->arena,
                       (struct hf_field_table){ hf_work_fields, hf_work_field_count },
                       &copy->work) ||
        hf_fields_keep(
            &processes->arena,
            (struct hf_field_table){ hf_process_fields, hf_process_field_count }, copy))
        return HF_ENOMEM;
    processes->count++;
    return 0;
}

int hf_processes_set_next(struct hf_processes *processes, const char *cursor)
{
    processes->next = hf_arena_text(&processes->arena, cursor);
    return processes->next ? 0 : HF_ENOMEM;
}

size_t hf_processes_count(const struct hf_processes *processes)
{
    return processes->count;
}

const struct hf_process *hf_processes_at(const struct hf_processes *processes, size_t i)
{
    return i < processes->count ? &processes->items[i] : NULL;
}

const char *hf_processes_next(const struct hf_processes *processes)
{
    return processes->next;
}
