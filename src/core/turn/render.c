/* A request as a provider needs it, and whether a history can be sent at all.
 *
 * Rendering is a function of the request alone (its records, causes and blobs), so a
 * restored turn renders the same. HF_RENDER_VERSION is in the request; a change of what
 * is rendered is a new version. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "core/turn/code/render.h"

static const char note_prefix[] = "[runtime note] ";
static const char event_prefix[] = "[runtime event] ";
static const char causes_intro[] = "This turn was caused by:\n";
static const char pruned_text[] = "[removed to save space]";

struct hf_render {
    const struct hf_alloc *alloc;
    struct hf_arena arena;
    const struct hf_turn *turn;       /* only while it is made */
    const struct hf_request *request; /* likewise */
    struct hf_rendered *messages;
    size_t count;
    size_t room;
    const struct hf_attachment **attachments;
    size_t attachment_count;
    size_t attachment_room;
    struct hf_share *share; /* own records that it shows */
    struct hf_pin *pins;    /* records of the base that it shows */
    size_t pin_count;
    size_t pin_room;
};

/* Room for one more pointer-sized or larger item; the arrays double. */
static void *grow(struct hf_render *render, void *items, size_t *room, size_t each)
{
    size_t more = *room ? *room * 2 : 8;
    char *grown = hf_arena_array(&render->arena, more, each);
    if (grown && *room > 0)
        memcpy(grown, items, *room * each);
    if (grown)
        *room = more;
    return grown;
}

static int add_message(struct hf_render *render, enum hf_role role,
                       const struct hf_block *blocks, size_t count)
{
    if (count == 0)
        return 0;
    if (render->count == render->room) {
        struct hf_rendered *grown = grow(render, render->messages, &render->room,
                                         sizeof(*render->messages));
        if (!grown)
            return HF_ENOMEM;
        render->messages = grown;
    }
    render->messages[render->count++] =
        (struct hf_rendered){ .role = role, .blocks = blocks, .block_count = count };
    return 0;
}

static int add_attachment(struct hf_render *render,
                          const struct hf_attachment *attachment, size_t *ret_number)
{
    if (render->attachment_count == render->attachment_room) {
        void *grown = grow(render, (void *)render->attachments, &render->attachment_room,
                           sizeof(*render->attachments));
        if (!grown)
            return HF_ENOMEM;
        render->attachments = grown;
    }
    *ret_number = render->attachment_count;
    render->attachments[render->attachment_count++] = attachment;
    return 0;
}

/* A record that is shown stays where it is until the render is freed. */
static int keep_pin(struct hf_render *render, const struct hf_pin *pin)
{
    if (!pin->put)
        return 0;
    if (render->pin_count == render->pin_room) {
        struct hf_pin *grown = grow(render, render->pins, &render->pin_room,
                                    sizeof(*render->pins));
        if (!grown)
            return HF_ENOMEM;
        render->pins = grown;
    }
    render->pins[render->pin_count++] = *pin;
    return 0;
}

static int prefixed(struct hf_render *render, const char *prefix, struct hf_span text,
                    struct hf_span *ret_text)
{
    size_t before = strlen(prefix);
    char *joined = hf_arena_take(&render->arena, before + text.len + 1);
    if (!joined)
        return HF_ENOMEM;
    memcpy(joined, prefix, before);
    if (text.len > 0)
        memcpy(joined + before, text.at, text.len);
    *ret_text = (struct hf_span){ joined, before + text.len };
    return 0;
}

static bool same_route(const struct hf_render *render, const struct hf_part *part)
{
    return part->route && render->request->route &&
           hf_turn_span_same(hf_turn_span_of(part->route),
                             hf_turn_span_of(render->request->route));
}

/* Replay data is shown only on the route it came from. */
static struct hf_span usable_replay(const struct hf_render *render,
                                    const struct hf_part *part)
{
    return same_route(render, part) ? part->replay : (struct hf_span){ "", 0 };
}

static int text_block(struct hf_render *render, enum hf_role role, struct hf_span text,
                      struct hf_block *ret_block, bool *ret_shown)
{
    const char *prefix = role == HF_ROLE_SYSTEM  ? note_prefix
                         : role == HF_ROLE_EVENT ? event_prefix
                                                 : NULL;
    *ret_shown = !hf_turn_span_blank(text);
    *ret_block = (struct hf_block){ .kind = HF_BLOCK_TEXT, .text = text };
    return prefix && *ret_shown ? prefixed(render, prefix, text, &ret_block->text) : 0;
}

/* *ret_shown is false for a part that a provider never sees. */
static int block_of(struct hf_render *render, enum hf_role role,
                    const struct hf_part *part, struct hf_block *ret_block,
                    bool *ret_shown)
{
    struct hf_span text = part->content;
    if (part->pruned)
        text = (struct hf_span){ pruned_text, sizeof(pruned_text) - 1 };
    *ret_shown = true;
    switch (part->kind) {
    case HF_PART_CODE:
        if (part->tool && !part->pruned)
            text = hf_code_show_cell(&render->arena, part);
        return text.at ? text_block(render, role, text, ret_block, ret_shown) : HF_ENOMEM;
    case HF_PART_TEXT:
    case HF_PART_OUTPUT:
    case HF_PART_ERROR:
    case HF_PART_PROSE: return text_block(render, role, text, ret_block, ret_shown);
    case HF_PART_TOOL_CALL:
        *ret_block = (struct hf_block){ .kind = HF_BLOCK_TOOL_CALL,
                                        .text = part->content,
                                        .call_id = part->call_id,
                                        .tool = part->tool,
                                        .replay = usable_replay(render, part) };
        if (same_route(render, part))
            ret_block->provider_id = part->provider_id;
        return 0;
    case HF_PART_TOOL_RESULT:
        *ret_block = (struct hf_block){ .kind = HF_BLOCK_TOOL_RESULT,
                                        .text = text,
                                        .call_id = part->call_id,
                                        .tool = part->tool };
        return 0;
    case HF_PART_REASONING:
        *ret_block = (struct hf_block){ .kind = HF_BLOCK_REASONING,
                                        .text = { "", 0 },
                                        .replay = usable_replay(render, part) };
        *ret_shown = ret_block->replay.len > 0;
        return 0;
    case HF_PART_ATTACHMENT:
        *ret_shown = role == HF_ROLE_USER && part->attachment;
        *ret_block = (struct hf_block){ .kind = HF_BLOCK_ATTACHMENT,
                                        .call_id = part->call_id };
        return *ret_shown
                   ? add_attachment(render, part->attachment, &ret_block->attachment)
                   : 0;
    }
    *ret_shown = false;
    return 0;
}

static int render_message(struct hf_render *render, const struct hf_message *message)
{
    size_t count = 0;
    struct hf_block *blocks = hf_arena_array(&render->arena, message->part_count,
                                             sizeof(*blocks));
    if (!blocks)
        return HF_ENOMEM;
    for (size_t i = 0; i < message->part_count; i++) {
        bool shown = false;
        int rc = block_of(render, message->role, &message->parts[i], &blocks[count],
                          &shown);
        if (rc)
            return rc;
        count += shown;
    }
    enum hf_role role = message->role == HF_ROLE_ASSISTANT ? HF_ROLE_ASSISTANT
                                                           : HF_ROLE_USER;
    return add_message(render, role, blocks, count);
}

/* A cause of this turn is at the end, so its message in the history is left out. */
static bool is_active_cause(const struct hf_render *render,
                            const struct hf_message *message)
{
    for (uint64_t i = 0; i < render->request->causes; i++)
        if (hf_turn_span_same(hf_turn_span_of(render->turn->now.causes[i]->id),
                              hf_turn_span_of(message->id)))
            return true;
    return false;
}

static int render_prompt(struct hf_render *render)
{
    struct hf_span prompt = render->request->prompt;
    struct hf_block *block = hf_arena_new(&render->arena, struct hf_block);
    const char *copy = hf_arena_copy(&render->arena, prompt.at, prompt.len);
    if (!block || !copy)
        return HF_ENOMEM;
    *block = (struct hf_block){ .kind = HF_BLOCK_TEXT, .text = { copy, prompt.len } };
    return add_message(render, HF_ROLE_SYSTEM, block, !hf_turn_span_blank(block->text));
}

static int render_causes(struct hf_render *render)
{
    uint64_t count = render->request->causes;
    size_t bytes = sizeof(causes_intro);
    for (uint64_t i = 0; i < count; i++) {
        const struct hf_cause *cause = render->turn->now.causes[i];
        bytes += cause->text.len + hf_turn_span_of(cause->event_type).len + 5;
    }
    char *text = hf_arena_take(&render->arena, bytes);
    struct hf_block *block = hf_arena_new(&render->arena, struct hf_block);
    if (!text || !block)
        return HF_ENOMEM;
    size_t used = sizeof(causes_intro) - 1;
    memcpy(text, causes_intro, used);
    for (uint64_t i = 0; i < count; i++) {
        const struct hf_cause *cause = render->turn->now.causes[i];
        struct hf_span type = hf_turn_span_of(cause->event_type);
        text[used++] = '-';
        text[used++] = ' ';
        memcpy(text + used, type.at, type.len);
        used += type.len;
        if (type.len > 0) {
            text[used++] = ':';
            text[used++] = ' ';
        }
        if (cause->text.len > 0)
            memcpy(text + used, cause->text.at, cause->text.len);
        used += cause->text.len;
        text[used++] = '\n';
    }
    *block = (struct hf_block){ .kind = HF_BLOCK_TEXT, .text = { text, used } };
    return add_message(render, HF_ROLE_USER, block, count > 0);
}

/* What a cell came to is the next thing that its writer reads. */
static int render_step(struct hf_render *render, const struct hf_code_step *step)
{
    struct hf_code_shown shown;
    int rc = hf_code_show_step(&render->arena, step, &shown);
    if (rc)
        return rc;
    size_t count = shown.count + step->image_count;
    struct hf_block *blocks = hf_arena_array(&render->arena, count, sizeof(*blocks));
    if (!blocks)
        return HF_ENOMEM;
    for (size_t i = 0; i < shown.count; i++)
        blocks[i] = (struct hf_block){ .kind = HF_BLOCK_TEXT, .text = shown.texts[i] };
    for (size_t i = 0; rc == 0 && i < step->image_count; i++) {
        struct hf_block *block = &blocks[shown.count + i];
        block->kind = HF_BLOCK_ATTACHMENT;
        rc = add_attachment(render, &step->images[i], &block->attachment);
    }
    return rc ? rc : add_message(render, HF_ROLE_USER, blocks, count);
}

static int render_record(struct hf_render *render, const struct hf_record *record,
                         struct hf_err *err)
{
    struct hf_code_step step;
    bool is_step = false;
    if (record->kind == HF_RECORD_MESSAGE)
        return record->message && !is_active_cause(render, record->message)
                   ? render_message(render, record->message)
                   : 0;
    int rc = hf_code_read_step(&render->arena, record, &step, &is_step, err);
    return rc || !is_step ? rc : render_step(render, &step);
}

/* One more text of the tail, unless it is empty. */
static int add_tail(struct hf_render *render, struct hf_buf *text,
                    struct hf_block *blocks, size_t *count)
{
    size_t len = text->len;
    const char *copy = hf_buf_keep(text, &render->arena);
    if (!copy)
        return HF_ENOMEM;
    if (len > 0)
        blocks[(*count)++] = (struct hf_block){ .kind = HF_BLOCK_TEXT,
                                                .text = { copy, len } };
    return 0;
}

static int tail_variables(struct hf_render *render, struct hf_span raw,
                          struct hf_block *blocks, size_t *count)
{
    struct hf_span lines = { 0 };
    struct hf_buf text;
    int rc = raw.len > 0 ? hf_walk_text(&render->arena, raw, &lines) : 0;
    if (rc || lines.len == 0)
        return rc == HF_ENOMEM ? rc : 0;
    hf_buf_init(&text, render->alloc, 2 * (size_t)HF_MAX_CODE_VARIABLES_BYTES);
    hf_prompt_put(&text, HF_PROMPT_CODE_VARIABLES, NULL, 0);
    hf_buf_char(&text, '\n');
    hf_buf_bytes(&text, lines.at, lines.len);
    return add_tail(render, &text, blocks, count);
}

static int tail_given(struct hf_render *render, struct hf_block *blocks, size_t *count)
{
    struct hf_buf text;
    hf_buf_init(&text, render->alloc, 4 * (size_t)HF_MAX_CODE_VARIABLES_BYTES);
    int rc = hf_given_put(&text, &render->turn->now.given);
    if (rc) {
        hf_buf_fini(&text);
        return rc;
    }
    return add_tail(render, &text, blocks, count);
}

/* What a protocol tells the model of this very request; of code also what names there are.
 * All of it is made of the records that the request shows and of what the turn was started
 * with, so a restored turn says the same, and nothing of it need be saved. */
static int render_driver(struct hf_render *render, const struct hf_code_view *view)
{
    const struct hf_driver_state *driver = render->request->driver;
    size_t count = 0;
    if (!driver ||
        !hf_turn_span_same(hf_turn_span_of(driver->owner), hf_text_of(HF_CODE_ID)))
        return 0;
    struct hf_block *blocks = hf_arena_array(&render->arena, 3, sizeof(*blocks));
    if (!blocks)
        return HF_ENOMEM;
    int rc = tail_variables(render, view->variables, blocks, &count);
    if (rc == 0)
        rc = tail_given(render, blocks, &count);
    if (rc)
        return rc;
    const char *copy = hf_arena_copy(&render->arena, driver->data.at, driver->data.len);
    if (!copy)
        return HF_ENOMEM;
    blocks[count++] = (struct hf_block){ .kind = HF_BLOCK_TEXT,
                                         .text = { copy, driver->data.len } };
    return add_message(render, HF_ROLE_USER, blocks, count);
}

static int render_pinned(struct hf_render *render, uint64_t i, struct hf_err *err)
{
    struct hf_pin pin;
    size_t before = render->count;
    const struct hf_record *record = hf_turn_pin(render->turn, i, &pin);
    if (!record)
        return HF_EBASE;
    int rc = render_record(render, record, err);
    bool shown = record->kind == HF_RECORD_MESSAGE && render->count > before;
    if (rc == 0 && shown)
        rc = keep_pin(render, &pin);
    if (rc || !shown)
        hf_pin_drop(&pin); /* of a step the render has copies */
    return rc;
}

static int render_records(struct hf_render *render, const struct hf_code_view *view,
                          struct hf_err *err)
{
    size_t stable = render->count; /* messages that later requests begin with too */
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < view->count; i++) {
        if (!hf_code_hides(view, i))
            rc = render_pinned(render, i, err);
        if (i < view->stable)
            stable = render->count;
    }
    if (rc == 0 && stable > 0)
        render->messages[stable - 1].cache_breakpoint = true;
    return rc;
}

static int render_all(struct hf_render *render, struct hf_err *err)
{
    struct hf_code_view view = { .arena = &render->arena,
                                 .turn = render->turn,
                                 .count = render->request->records };
    int rc = hf_code_view(&view, err);
    if (rc == 0)
        rc = render_prompt(render);
    if (rc == 0)
        rc = render_records(render, &view, err);
    if (rc == 0)
        rc = render_causes(render);
    return rc ? rc : render_driver(render, &view);
}

int hf_render_new(struct hf_turn *turn, const struct hf_request *request,
                  struct hf_render **ret_render, struct hf_err *err)
{
    if (request->causes > turn->now.cause_count ||
        request->records > hf_turn_record_count(turn))
        return hf_fail(err, HF_EINVAL, "request", "the request is not of this turn");
    struct hf_render *render = turn->alloc->realloc(turn->alloc->user, NULL,
                                                    sizeof(*render));
    if (!render)
        return hf_fail_plain(err, HF_ENOMEM);
    *render = (struct hf_render){ .alloc = turn->alloc,
                                  .turn = turn,
                                  .request = request,
                                  .share = hf_share_take(turn) };
    hf_arena_init(&render->arena, turn->alloc);
    struct hf_err why = { 0 };
    int rc = render->share ? render_all(render, &why) : HF_ENOMEM;
    if (rc) {
        hf_render_free(render);
        return why.code ? hf_fail_as(err, rc, &why) : hf_fail_plain(err, rc);
    }
    *ret_render = render;
    return 0;
}

void hf_render_free(struct hf_render *render)
{
    if (!render)
        return;
    for (size_t i = 0; i < render->pin_count; i++)
        hf_pin_drop(&render->pins[i]);
    hf_share_drop(render->share);
    hf_arena_fini(&render->arena);
    render->alloc->free(render->alloc->user, render);
}

const struct hf_rendered *hf_render_message(const struct hf_render *render, size_t i)
{
    return i < render->count ? &render->messages[i] : NULL;
}

const struct hf_attachment *hf_render_attachment(const struct hf_render *render, size_t i)
{
    return i < render->attachment_count ? render->attachments[i] : NULL;
}

/* Whether a history can be sent */

struct call_slot {
    const char *id;  /* in the arena: the record may be gone by then */
    uint64_t result; /* number of the record that answers it, from 1; 0: none yet */
};

struct pairing {
    struct hf_arena *arena;
    struct call_slot *slots; /* open addressing; at least half are free */
    size_t mask;
    size_t open;
    bool safe;
};

static struct call_slot *slot_of(const struct pairing *pairing, const char *id)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *at = id; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    size_t i = (size_t)hash & pairing->mask;
    while (pairing->slots[i].id &&
           !hf_turn_span_same(hf_turn_span_of(pairing->slots[i].id), hf_turn_span_of(id)))
        i = (i + 1) & pairing->mask;
    return &pairing->slots[i];
}

/* Sets pairing->safe to false at the first fault. HF_ENOMEM. */
static int pair_part(struct pairing *pairing, enum hf_role role, uint64_t number,
                     const struct hf_part *part)
{
    bool call = part->kind == HF_PART_TOOL_CALL;
    if (!call && part->kind != HF_PART_TOOL_RESULT)
        return 0;
    pairing->safe = part->call_id && part->call_id[0] &&
                    role == (call ? HF_ROLE_ASSISTANT : HF_ROLE_USER);
    if (!pairing->safe)
        return 0;
    struct call_slot *slot = slot_of(pairing, part->call_id);
    if (call) {
        pairing->safe = !slot->id;
        pairing->open++;
        slot->id = hf_arena_text(pairing->arena, part->call_id);
        return slot->id ? 0 : HF_ENOMEM;
    }
    pairing->safe = slot->id && (!slot->result || slot->result == number);
    pairing->open -= slot->result ? 0 : 1; /* further parts of the same answer are fine */
    slot->result = number;
    return 0;
}

static int pair_record(struct pairing *pairing, uint64_t number,
                       const struct hf_record *record)
{
    const struct hf_message *message = record->message;
    int rc = 0;
    if (record->kind != HF_RECORD_MESSAGE || !message)
        return 0;
    for (size_t p = 0; rc == 0 && pairing->safe && p < message->part_count; p++)
        rc = pair_part(pairing, message->role, number, &message->parts[p]);
    return rc;
}

static size_t calls_of(const struct hf_record *record)
{
    size_t count = 0;
    if (record->kind == HF_RECORD_MESSAGE && record->message)
        for (size_t p = 0; p < record->message->part_count; p++)
            count += record->message->parts[p].kind == HF_PART_TOOL_CALL;
    return count;
}

/* One pass over all records; without `pairing` it only counts calls. */
static int pass(const struct hf_turn *turn, struct pairing *pairing, size_t *ret_calls)
{
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < hf_turn_record_count(turn); i++) {
        struct hf_pin pin;
        const struct hf_record *record = hf_turn_pin(turn, i, &pin);
        if (!record)
            return HF_EBASE;
        if (pairing)
            rc = pair_record(pairing, i + 1, record);
        else
            *ret_calls += calls_of(record);
        hf_pin_drop(&pin);
    }
    return rc;
}

int hf_turn_resumable(const struct hf_turn *turn, bool *ret_safe, struct hf_err *err)
{
    size_t count = 0;
    size_t room = 2;
    struct hf_arena arena;
    int rc = pass(turn, NULL, &count);
    if (rc)
        return hf_fail_plain(err, rc);
    while (room < 2 * count + 1)
        room *= 2;
    hf_arena_init(&arena, turn->alloc);
    struct pairing pairing = { .arena = &arena, .mask = room - 1, .safe = true };
    pairing.slots = hf_arena_array(&arena, room, sizeof(*pairing.slots));
    rc = pairing.slots ? pass(turn, &pairing, NULL) : HF_ENOMEM;
    if (rc == 0)
        *ret_safe = pairing.safe && pairing.open == 0;
    hf_arena_fini(&arena);
    return rc ? hf_fail_plain(err, rc) : 0;
}
