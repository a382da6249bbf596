/* Answers of the ready-made tools. */
#include <string.h>

#include <holdfast/bounds.h>

#include "agent/tool/tools.h"
#include "base/repair.h"

#define AGAIN_MS 1000

enum kind { SAY, FAIL, UNKNOWN };

static int set_answer(struct hf_invocation *call, enum kind kind, struct hf_arena *arena,
                      struct hf_span text, struct hf_failure failure)
{
    int rc = hf_text_repair(arena, text, (size_t)HF_MAX_PAYLOAD_BYTES, &text);
    if (rc)
        return rc;
    if (kind == SAY)
        return hf_invocation_text(call, text);
    failure.message = text;
    if (kind == FAIL)
        return hf_invocation_fail(call, &failure);
    const char *why = hf_arena_copy(arena, text.at, text.len);
    return why ? hf_invocation_unknown(call, why) : HF_ENOMEM;
}

static void answer(struct hf_invocation *call, enum kind kind, struct hf_span text,
                   struct hf_failure failure)
{
    struct hf_arena arena;
    hf_arena_init_small(&arena, hf_loop_alloc(hf_invocation_loop(call)), 1024, 8192);
    int rc = set_answer(call, kind, &arena, text, failure);
    (void)rc; /* no memory: the call has no answer */
    hf_arena_fini(&arena);
}

static struct hf_span span_of(const char *text)
{
    return (struct hf_span){ text, strlen(text) };
}

void tool_say(struct hf_invocation *call, struct hf_span text)
{
    answer(call, SAY, text, (struct hf_failure){ 0 });
}

void tool_fail(struct hf_invocation *call, enum hf_failure_class class_, const char *code,
               const char *message)
{
    struct hf_failure failure = { .class_ = class_, .code = code };
    answer(call, FAIL, span_of(message), failure);
}

void tool_fail_again(struct hf_invocation *call, const char *code, const char *message)
{
    struct hf_failure failure = { .class_ = HF_FAILURE_UNAVAILABLE,
                                  .code = code,
                                  .retry = HF_RETRY_SAFE,
                                  .after_ms = AGAIN_MS };
    answer(call, FAIL, span_of(message), failure);
}

void tool_unknown(struct hf_invocation *call, const char *why)
{
    answer(call, UNKNOWN, span_of(why), (struct hf_failure){ 0 });
}
