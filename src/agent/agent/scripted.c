/* A provider without a network. What it says follows from the last message alone, so that the same
 * request has the same answer. */
#include <string.h>

#include "agent/agent/agent.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define SHOWN_BYTES 400 /* of what was said, in the answer */

/* A call that is out. It lies in its own arena, so a copy of the arena is taken before it is
 * freed. */
struct call {
    struct call *next;
    struct hf_arena arena;
    struct scripted *owner;
    uint64_t number;
    struct hf_model_sink sink;
    struct hf_timer timer;
    const char *text; /* the answer */
    size_t len;
    size_t sent;      /* of it */
    const char *tool; /* to call; NULL: none */
    const char *args;
    int64_t asked; /* bytes of the request */
};

struct scripted {
    struct hf_provider provider; /* first */
    struct hf_loop *loop;
    const struct hf_alloc *alloc;
    hf_ms word_ms;
    uint64_t numbers;
    struct call *calls;
    bool closed;
};

/* ---- what it says --------------------------------------------------------------------- */

/* The last block with a text, and what the request has in all. */
struct heard {
    const struct hf_block *last;
    size_t messages;
    int64_t bytes;
};

static struct heard hear(const struct hf_render *render)
{
    struct heard heard = { 0 };
    const struct hf_rendered *message = NULL;
    for (size_t i = 0; (message = hf_render_message(render, i)); i++) {
        heard.messages += message->role == HF_ROLE_USER && message->block_count &&
                          message->blocks[0].kind != HF_BLOCK_TOOL_RESULT;
        for (size_t j = 0; j < message->block_count; j++) {
            const struct hf_block *block = &message->blocks[j];
            heard.bytes += (int64_t)block->text.len;
            if (block->kind == HF_BLOCK_TEXT || block->kind == HF_BLOCK_TOOL_RESULT)
                heard.last = block;
        }
    }
    return heard;
}

static void put_quoted(struct hf_buf *buf, struct hf_span text)
{
    size_t len = text.len;
    if (len > SHOWN_BYTES)
        len = hf_utf8_cut(text.at, SHOWN_BYTES);
    hf_buf_bytes(buf, text.at, len);
    if (len < text.len)
        hf_buf_text(buf, " …");
}

/* "use TOOL {arguments}": the call, and what is said about it. */
static bool takes_order(struct call *call, struct hf_span said, struct hf_buf *buf)
{
    const char *text = hf_arena_copy(&call->arena, said.at, said.len);
    if (!text || !hf_starts_with(text, "use "))
        return false;
    text += strlen("use ");
    size_t len = strcspn(text, " \t\r\n");
    if (len == 0)
        return false;
    const char *args = text + len + strspn(text + len, " \t\r\n");
    call->tool = hf_arena_copy(&call->arena, text, len);
    call->args = args[0] ? args : "{}";
    hf_buf_text(buf, "I will use ");
    hf_buf_bytes(buf, text, len);
    hf_buf_text(buf, ".");
    return true;
}

static int plan(struct call *call, const struct hf_render *render)
{
    struct heard heard = hear(render);
    struct hf_buf buf;
    call->asked = heard.bytes;
    hf_buf_init(&buf, call->arena.alloc, 4096);
    if (!heard.last)
        hf_buf_text(&buf, "Nothing was said.");
    else if (heard.last->kind == HF_BLOCK_TOOL_RESULT) {
        hf_buf_text(&buf, "The tool answered: ");
        put_quoted(&buf, heard.last->text);
    } else if (!takes_order(call, heard.last->text, &buf)) {
        hf_buf_text(&buf, "You said: ");
        put_quoted(&buf, heard.last->text);
        hf_buf_text(&buf,
                    "\n\nI am a scripted model and understand nothing, but I remember "
                    "what you said: ");
        hf_buf_i64(&buf, (int64_t)heard.messages);
        hf_buf_text(&buf, heard.messages == 1 ? " message" : " messages");
        hf_buf_text(&buf, " so far. Write \"use TOOL {arguments}\", and I call "
                          "that tool.");
    }
    call->len = buf.len;
    call->text = hf_buf_keep(&buf, &call->arena);
    return call->text ? 0 : HF_ENOMEM;
}

/* ---- a call ---------------------------------------------------------------------------- */

/* Takes the call off its provider's list and stops its timer. */
static void detach(struct call *call)
{
    struct call **at = &call->owner->calls;
    while (*at && *at != call)
        at = &(*at)->next;
    if (*at)
        *at = call->next;
    hf_timer_stop(call->owner->loop, &call->timer);
}

static void call_free(struct call *call)
{
    detach(call);
    struct hf_arena arena = call->arena;
    hf_arena_fini(&arena);
}

/* About four bytes of text are one token. */
static int64_t tokens(int64_t bytes)
{
    return bytes / 4 + 1;
}

/* Ends a call whose text was sent: its sink gets the whole response, with the tool call if one was
 * ordered, and the call is freed. It leaves the list first, so that a cancel from inside the sink
 * finds no call. */
static void end_call(struct call *call)
{
    struct hf_part parts[2] = { { .kind = HF_PART_TEXT,
                                  .content = { call->text, call->len } } };
    struct hf_llm_response response = {
        .size = sizeof(response),
        .parts = parts,
        .part_count = call->tool ? 2 : 1,
        .reason = call->tool ? HF_REASON_TOOL_USE : HF_REASON_STOP,
        .text_streamed = true,
        .usage = { .input = tokens(call->asked), .output = tokens((int64_t)call->len) },
        .model = "scripted"
    };
    struct hf_model_event event = { .kind = HF_MODEL_END, .response = &response };
    struct hf_model_sink sink = call->sink;
    if (call->tool)
        parts[1] = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                     .call_id = "s1",
                                     .tool = call->tool,
                                     .content = { call->args, strlen(call->args) } };
    detach(call);
    sink.event(sink.user, &event);
    struct hf_arena arena = call->arena;
    hf_arena_fini(&arena);
}

/* The next word with the blanks after it, or all that is left. */
static size_t next_word(const struct call *call)
{
    const char *rest = call->text + call->sent;
    if (call->owner->word_ms == 0)
        return call->len - call->sent;
    size_t word = strcspn(rest, " \n");
    return word + strspn(rest + word, " \n");
}

static void on_tick(void *user)
{
    struct call *call = user;
    struct hf_task task = { call, on_tick };
    struct hf_model_event event = { .kind = HF_MODEL_TEXT };
    if (call->sent == call->len) {
        end_call(call);
        return;
    }
    event.text.at = call->text + call->sent;
    event.text.len = next_word(call);
    call->sent += event.text.len;
    /* The timer has just fired, so that its place needs no memory. */
    int rc = hf_timer_start(call->owner->loop, &call->timer, call->owner->word_ms, &task);
    hf_assert(rc == 0);
    call->sink.event(call->sink.user, &event); /* it may cancel the call */
}

/* ---- the provider ---------------------------------------------------------------------- */

static const char *scripted_name(const struct hf_provider *provider)
{
    (void)provider;
    return "scripted";
}

static int scripted_start(struct hf_provider *provider, const struct hf_model_call *asked,
                          const struct hf_model_sink *sink, uint64_t *ret_call,
                          struct hf_err *err)
{
    struct scripted *scripted = (struct scripted *)provider;
    struct hf_arena arena;
    if (scripted->closed)
        return hf_fail(err, HF_EFINISHED, "provider", "the provider is closed");
    hf_arena_init_small(&arena, scripted->alloc, 1024, 16384);
    struct call *call = hf_arena_new(&arena, struct call);
    if (!call)
        return hf_fail_plain(err, HF_ENOMEM);
    call->arena = arena;
    call->owner = scripted;
    call->sink = *sink;
    struct hf_task task = { call, on_tick };
    int rc = plan(call, asked->render);
    if (rc == 0)
        rc = hf_timer_start(scripted->loop, &call->timer, scripted->word_ms, &task);
    if (rc) {
        call_free(call);
        return hf_fail_plain(err, rc);
    }
    call->next = scripted->calls;
    scripted->calls = call;
    *ret_call = call->number = ++scripted->numbers;
    return 0;
}

static int scripted_cancel(struct hf_provider *provider, uint64_t number)
{
    struct scripted *scripted = (struct scripted *)provider;
    for (struct call *call = scripted->calls; call; call = call->next)
        if (call->number == number) {
            call_free(call);
            return 0;
        }
    return HF_ENOTFOUND;
}

static int scripted_close(struct hf_provider *provider, const struct hf_closed *closed)
{
    struct scripted *scripted = (struct scripted *)provider;
    scripted->closed = true;
    while (scripted->calls)
        call_free(scripted->calls);
    if (!closed)
        return 0;
    struct hf_task task = { closed->user, closed->closed };
    return hf_loop_post(scripted->loop, &task);
}

static void scripted_free(struct hf_provider *provider)
{
    struct scripted *scripted = (struct scripted *)provider;
    while (scripted->calls)
        call_free(scripted->calls);
    scripted->alloc->free(scripted->alloc->user, scripted);
}

int hf_scripted_new(struct hf_loop *loop, hf_ms word_ms,
                    struct hf_provider **ret_provider, struct hf_err *err)
{
    static const struct hf_provider_methods methods = { scripted_name, scripted_start,
                                                        scripted_cancel, scripted_close,
                                                        scripted_free };
    const struct hf_alloc *alloc = hf_loop_alloc(loop);
    struct scripted *scripted = alloc->realloc(alloc->user, NULL, sizeof(*scripted));
    if (!scripted)
        return hf_fail_plain(err, HF_ENOMEM);
    *scripted = (struct scripted){
        .provider = { &methods }, .loop = loop, .alloc = alloc, .word_ms = word_ms
    };
    *ret_provider = &scripted->provider;
    return 0;
}
