/* A model's reply while it is put together: a codec adds texts and calls to parts, the events of
 * the provider seam go to a sink as they come, and at the end the parts are the response
 * (reply.h). */
#include "agent/wire/reply.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/json_scan.h"
#include "base/json_walk.h"
#include "base/text.h"

#define ARENA_FIRST 512
#define ARENA_LARGEST 4096

void hf_reply_init(struct hf_reply *reply, const struct hf_alloc *alloc,
                   const char *route, const struct hf_model_sink *sink)
{
    *reply = (struct hf_reply){ .route = route, .sink = *sink };
    hf_arena_init_small(&reply->arena, alloc, ARENA_FIRST, ARENA_LARGEST);
}

void hf_reply_fini(struct hf_reply *reply)
{
    const struct hf_alloc *alloc = reply->arena.alloc;
    for (size_t i = 0; i < reply->count; i++) {
        hf_buf_fini(&reply->parts[i].text);
        hf_buf_fini(&reply->parts[i].replay);
    }
    alloc->free(alloc->user, reply->parts);
    hf_arena_fini(&reply->arena);
}

static void tell(struct hf_reply *reply, const struct hf_model_event *event)
{
    reply->sink.event(reply->sink.user, event);
}

static int new_part(struct hf_reply *reply, enum hf_part_kind kind, int64_t slot,
                    struct hf_reply_part **ret_part)
{
    const struct hf_alloc *alloc = reply->arena.alloc;
    if (reply->count == (size_t)HF_MAX_TURN_PARTS)
        return HF_EOVERFLOW;
    if (reply->count == reply->room) {
        size_t room = reply->room ? reply->room * 2 : 4;
        void *grown = alloc->realloc(alloc->user, reply->parts,
                                     room * sizeof(*reply->parts));
        if (!grown)
            return HF_ENOMEM;
        reply->parts = grown;
        reply->room = room;
    }
    struct hf_reply_part *part = &reply->parts[reply->count++];
    *part = (struct hf_reply_part){ .kind = kind, .slot = slot };
    hf_buf_init(&part->text, alloc, (size_t)HF_MAX_MODEL_RESPONSE_BYTES);
    hf_buf_init(&part->replay, alloc, (size_t)HF_MAX_MODEL_RESPONSE_BYTES);
    *ret_part = part;
    return 0;
}

int hf_reply_part(struct hf_reply *reply, enum hf_part_kind kind, int64_t slot,
                  struct hf_reply_part **ret_part)
{
    for (size_t i = reply->count; i > 0; i--) {
        struct hf_reply_part *part = &reply->parts[i - 1];
        if (part->kind == kind && part->slot == slot) {
            *ret_part = part;
            return 0;
        }
    }
    return new_part(reply, kind, slot, ret_part);
}

int hf_reply_text(struct hf_reply *reply, struct hf_reply_part *part, struct hf_span raw)
{
    const char *at = raw.at;
    if (raw.len <= 2 || at[0] != '"')
        return 0;
    char *to = hf_buf_room(&part->text, raw.len - 2);
    if (!to)
        return hf_buf_state(&part->text);
    size_t len = hf_json_unescape(at + 1, raw.len - 2, to);
    hf_buf_grew(&part->text, len);
    reply->bytes += len;
    reply->output = true;
    if (part->kind == HF_PART_TOOL_CALL)
        return 0;
    bool text = part->kind == HF_PART_TEXT;
    reply->streamed |= text;
    tell(reply,
         &(struct hf_model_event){ .kind = text ? HF_MODEL_TEXT : HF_MODEL_REASONING,
                                   .text = { to, len } });
    return 0;
}

static struct hf_part part_of(const struct hf_reply *reply,
                              const struct hf_reply_part *from)
{
    bool replay = from->replay.len > 0;
    return (struct hf_part){
        .kind = from->kind,
        .content = { hf_buf_str(&from->text), from->text.len },
        .call_id = from->call_id,
        .tool = from->tool,
        .route = replay ? reply->route : NULL,
        .replay = { hf_buf_str(&from->replay), from->replay.len },
    };
}

/* A part that says nothing is left out. */
static bool is_empty(const struct hf_reply_part *part)
{
    return part->kind != HF_PART_TOOL_CALL && part->text.len == 0 &&
           part->replay.len == 0;
}

void hf_reply_complete(struct hf_reply *reply, struct hf_reply_part *part)
{
    if (part->complete)
        return;
    part->complete = true;
    if (is_empty(part))
        return;
    struct hf_part whole = part_of(reply, part);
    tell(reply, &(struct hf_model_event){ .kind = HF_MODEL_PART, .part = &whole });
}

void hf_reply_complete_all(struct hf_reply *reply)
{
    for (size_t i = 0; i < reply->count; i++)
        hf_reply_complete(reply, &reply->parts[i]);
}

int hf_reply_note(struct hf_reply *reply, struct hf_span raw, const char **text)
{
    struct hf_span said = { 0 };
    const char *at = raw.at;
    if (raw.len <= 2 || at[0] != '"')
        return 0;
    size_t known = *text ? strlen(*text) : 0;
    if (*text && raw.len - 2 == known && memcmp(at + 1, *text, known) == 0)
        return 0; /* the same again, as in every event of a stream */
    int rc = hf_walk_text(&reply->arena, raw, &said);
    if (rc == 0 && *text && !hf_same(said.at, *text))
        rc = HF_ECONFLICT;
    if (rc == 0 && !*text)
        *text = said.at;
    return rc;
}

void hf_reply_count(struct hf_span raw, int64_t *counter)
{
    int64_t value = 0;
    if (hf_walk_i64(raw, &value) && value > 0)
        *counter = value;
}

void hf_reply_tell_usage(struct hf_reply *reply)
{
    tell(reply,
         &(struct hf_model_event){ .kind = HF_MODEL_USAGE, .usage = &reply->usage });
}

int hf_reply_response(struct hf_reply *reply, struct hf_llm_response *ret_response)
{
    size_t count = 0;
    struct hf_part *parts = hf_arena_array(&reply->arena, reply->count + 1,
                                           sizeof(*parts));
    if (!parts)
        return HF_ENOMEM;
    for (size_t i = 0; i < reply->count; i++)
        if (!is_empty(&reply->parts[i]))
            parts[count++] = part_of(reply, &reply->parts[i]);
    *ret_response = (struct hf_llm_response){
        .size = sizeof(*ret_response),
        .parts = parts,
        .part_count = count,
        .reason = reply->reason,
        .text_streamed = reply->streamed,
        .usage = reply->usage,
        .response_id = reply->evidence.response_id,
        .model = reply->evidence.model,
    };
    return 0;
}

int hf_wire_word_of(struct hf_span raw, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hf_walk_is(raw, words[i]))
            return (int)i;
    return -1;
}
