/* The code protocol: what a reply means. The ladder is one table, below; what happens after
 * a cell is in core/turn/code/exec.c.
 *
 * Text of the model is copied only where it is kept; a mask over the whole reply finds
 * the cell, the same one that a host uses on the stream, so both see the same. */
#include "core/turn/code/code.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"

/* An iteration begins: the model is told where it is. The text is part of the request,
 * so a restored turn asks the same. */

static void put_tail(struct hf_buf *out, const struct hf_code_protocol *code,
                     const struct hf_move *move)
{
    struct hf_code_tags tags;
    hf_code_tags(code->language, &tags);
    uint64_t done = move->next.iteration - move->turn->now.run_offset;
    int64_t budget = hf_move_turn_budget(move);
    const struct hf_fill fills[] = {
        { .id = HF_FILL_ITERATION, .number = done + 1 },
        { .id = HF_FILL_LEFT,
          .number = budget > (int64_t)done ? (uint64_t)budget - done - 1 : 0 },
        { .id = HF_FILL_OPEN, .text = hf_turn_span_of(tags.open) },
        { .id = HF_FILL_SCHEMA, .text = code->schema_text },
    };
    const size_t count = sizeof(fills) / sizeof(fills[0]);
    hf_prompt_put(out, HF_PROMPT_CODE_TAIL, fills, count);
    if (budget != HF_UNBOUNDED) {
        hf_buf_char(out, ' ');
        hf_prompt_put(out, HF_PROMPT_CODE_TAIL_LEFT, fills, count);
    }
    hf_buf_char(out, '\n');
    hf_prompt_put(out,
                  code->finish_required ? HF_PROMPT_CODE_TAIL_REQUIRED
                                        : HF_PROMPT_CODE_TAIL_OPTIONAL,
                  fills, count);
    if (code->schema) {
        hf_buf_char(out, '\n');
        hf_prompt_put(out, HF_PROMPT_CODE_TAIL_SCHEMA, fills, count);
    }
}

static int prepare(const struct hf_protocol *protocol, struct hf_move *move,
                   struct hf_err *err)
{
    struct hf_buf text;
    hf_buf_init(&text, move->turn->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    put_tail(&text, hf_code_of(protocol), move);
    size_t len = text.len;
    const char *tail = hf_buf_keep(&text, move->arena);
    if (!tail)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_driver_state driver = { .owner = HF_CODE_ID, .data = { tail, len } };
    return hf_act_start_llm(move, false, &driver, err);
}

/* A reply, taken apart. */

/* What it is taken for, in the order in which it is asked. */
#define DECISIONS(X)                                                                     \
    X(NATIVE_CALL, native_call)                                                          \
    X(EMPTY, empty)                                                                      \
    X(LANGUAGE, language)                                                                \
    X(UNCLOSED_CUT, unclosed_cut)                                                        \
    X(UNCLOSED, unclosed)                                                                \
    X(SIZE, size)                                                                        \
    X(CELL, cell)                                                                        \
    X(CUT, cut)                                                                          \
    X(MALFORMED, malformed)                                                              \
    X(NO_FINISH, no_finish)                                                              \
    X(PROSE, prose)

#define X(name, word) name,
enum decision { DECISIONS(X) DECISION_COUNT };
#undef X
#define X(name, word) #word,
static const char *const decision_words[] = { DECISIONS(X) };
#undef X

/* The prompts for those that are corrected. */
static const enum hf_prompt_id fix_prompts[] = {
    [LANGUAGE] = HF_PROMPT_CODE_FIX_LANGUAGE,
    [UNCLOSED_CUT] = HF_PROMPT_CODE_FIX_UNCLOSED_CUT,
    [UNCLOSED] = HF_PROMPT_CODE_FIX_UNCLOSED,
    [SIZE] = HF_PROMPT_CODE_FIX_SIZE,
    [CUT] = HF_PROMPT_CODE_FIX_CUT,
    [MALFORMED] = HF_PROMPT_CODE_FIX_MALFORMED,
    [NO_FINISH] = HF_PROMPT_CODE_FIX_FINISH,
};

struct reply {
    const struct hf_code_protocol *code;
    const struct hf_llm_response *response;
    struct hf_span text; /* all text parts as one */
    struct hf_span prose;
    struct hf_span source;
    struct hf_mask mask;
    size_t reasoning_bytes;
    size_t reasoning_parts;
    bool native_call;
    bool fenced; /* a Markdown fence of the protocol's language */
};

/* Text parts as one, each beginning on a line of its own. One part, the usual case, is used
 * where it lies. */
static int join(struct hf_move *move, const struct hf_llm_response *response,
                struct hf_span *ret_text, struct hf_err *err)
{
    struct hf_span only = { "", 0 };
    size_t count = 0;
    size_t room = 1;
    for (size_t i = 0; i < response->part_count; i++) {
        if (response->parts[i].kind != HF_PART_TEXT ||
            response->parts[i].content.len == 0)
            continue;
        only = response->parts[i].content;
        room += only.len + 1;
        count++;
    }
    *ret_text = only;
    if (count < 2)
        return 0;
    char *text = hf_move_take(move, room);
    size_t used = 0;
    if (!text)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < response->part_count; i++) {
        struct hf_span part = response->parts[i].content;
        if (response->parts[i].kind != HF_PART_TEXT || part.len == 0)
            continue;
        if (used > 0 && text[used - 1] != '\n')
            text[used++] = '\n';
        memcpy(text + used, part.at, part.len);
        used += part.len;
    }
    if (used > (size_t)HF_MAX_TURN_TEXT_BYTES)
        used = hf_utf8_cut(text,
                           (size_t)HF_MAX_TURN_TEXT_BYTES); /* as one part would be */
    text[used] = '\0';
    *ret_text = (struct hf_span){ text, used };
    return 0;
}

static bool has_fence(struct hf_span text, const char *language)
{
    const char *at = text.at;
    const char *end = at + text.len;
    size_t len = strlen(language);
    while ((at = memmem(at, (size_t)(end - at), "```", 3)) != NULL) {
        at += 3;
        if ((size_t)(end - at) >= len && memcmp(at, language, len) == 0)
            return true;
    }
    return false;
}

struct range {
    uint64_t from;
    uint64_t to;
};

/* A piece of the text with a NUL after it; the whole text has one already. */
static int copy_range(struct hf_move *move, const struct reply *reply, struct range range,
                      struct hf_span *ret_text, struct hf_err *err)
{
    const char *at = reply->text.at;
    *ret_text = reply->text;
    if (range.to - range.from == reply->text.len)
        return 0;
    ret_text->len = (size_t)(range.to - range.from);
    ret_text->at = hf_arena_copy(move->arena, at + range.from, ret_text->len);
    return ret_text->at ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

static int take_apart(struct hf_move *move, struct reply *reply, struct hf_err *err)
{
    const struct hf_llm_response *response = reply->response;
    for (size_t i = 0; i < response->part_count; i++) {
        reply->native_call = reply->native_call ||
                             response->parts[i].kind == HF_PART_TOOL_CALL;
        if (response->parts[i].kind != HF_PART_REASONING)
            continue;
        reply->reasoning_parts++;
        if (!hf_turn_span_blank(response->parts[i].content))
            reply->reasoning_bytes += response->parts[i].content.len;
    }
    int rc = join(move, response, &reply->text, err);
    if (rc)
        return rc;
    hf_mask_init(&reply->mask);
    (void)hf_mask_feed(&reply->mask, reply->text.at,
                       reply->text.len); /* end says it too */
    hf_mask_end(&reply->mask);
    rc = copy_range(move, reply, (struct range){ 0, reply->mask.visible }, &reply->prose,
                    err);
    if (rc == 0 && reply->mask.state != HF_MASK_PROSE)
        rc = copy_range(move, reply,
                        (struct range){ reply->mask.code_from, reply->mask.code_to },
                        &reply->source, err);
    if (rc)
        return rc;
    if (reply->code->finish_required)
        reply->fenced = has_fence(reply->text,
                                  hf_code_language_name(reply->code->language));
    return 0;
}

static bool holds(const struct reply *reply, enum decision decision)
{
    bool cut = reply->response->reason == HF_REASON_OUTPUT_LIMIT;
    bool open = reply->mask.state == HF_MASK_OPEN;
    bool cell = reply->mask.state == HF_MASK_COMPLETE;
    switch (decision) {
    case NATIVE_CALL: return reply->native_call;
    case EMPTY: return hf_turn_span_blank(reply->text) && reply->reasoning_bytes == 0;
    case LANGUAGE: return (open || cell) && reply->mask.language != reply->code->language;
    case UNCLOSED_CUT: return open && cut;
    case UNCLOSED: return open;
    case SIZE: return cell && reply->source.len > (size_t)HF_MAX_CELL_BYTES;
    case CELL: return cell;
    case CUT: return cut;
    case MALFORMED:
        return reply->code->finish_required && (reply->mask.stray || reply->fenced);
    case NO_FINISH: return reply->code->finish_required;
    case PROSE:
    case DECISION_COUNT: break;
    }
    return true;
}

static enum decision decide(const struct reply *reply)
{
    enum decision decision = NATIVE_CALL;
    while (!holds(reply, decision))
        decision++;
    return decision;
}

static int show(struct hf_move *move, const struct reply *reply, struct hf_err *err)
{
    struct hf_emit delta = { .kind = HF_EMIT_TEXT_DELTA, .text = reply->prose };
    struct hf_emit whole = { .kind = HF_EMIT_LLM_RESPONSE,
                             .text = reply->prose,
                             .code = reply->response->response_id };
    int rc = reply->response->text_streamed || hf_turn_span_blank(reply->prose)
                 ? 0
                 : hf_move_emit(move, &delta, err);
    return rc ? rc : hf_move_emit(move, &whole, err);
}

/* Prose without the blanks at its end; nothing when it is blank. */
static struct hf_span trimmed(struct hf_span prose)
{
    const char *at = prose.at;
    while (prose.len > 0 && hf_turn_span_blank((struct hf_span){ at + prose.len - 1, 1 }))
        prose.len--;
    return prose;
}

/* One more part, of text that is clean; false when out of memory. */
static bool keep_part(struct hf_move *move, struct hf_kept *kept, enum hf_part_kind kind,
                      struct hf_span text)
{
    const char *copy = hf_arena_copy(&move->turn->keep, text.at, text.len);
    kept->parts[kept->message.part_count++] =
        (struct hf_part){ .kind = kind, .content = { copy, text.len } };
    return copy != NULL;
}

static int keep_reasoning(struct hf_move *move, struct hf_kept *kept,
                          const struct hf_llm_response *response, struct hf_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < response->part_count; i++)
        if (response->parts[i].kind == HF_PART_REASONING)
            rc = hf_value_copy(&move->turn->keep, &hf_s_part, HF_COPY_TRUST,
                               &response->parts[i],
                               &kept->parts[kept->message.part_count++], err);
    return rc;
}

/* Reasoning, prose, and the source if there is one; nothing when there was nothing to say. */
static int append_said(struct hf_move *move, const struct reply *reply, bool cell,
                       struct hf_err *err)
{
    struct hf_span prose = trimmed(reply->prose);
    size_t count = reply->reasoning_parts + (prose.len > 0) + cell;
    if (count == 0)
        return 0;
    struct hf_kept *kept = hf_move_keep(move, cell ? "cell" : "prose", HF_ROLE_ASSISTANT,
                                        count);
    if (!kept)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = keep_reasoning(move, kept, reply->response, err);
    if (rc)
        return rc;
    bool fine = prose.len == 0 || keep_part(move, kept, HF_PART_PROSE, prose);
    if (cell && fine) {
        fine = keep_part(move, kept, HF_PART_CODE, reply->source);
        kept->parts[kept->message.part_count - 1].tool = hf_code_language_name(
            reply->code->language);
    }
    if (!fine)
        return hf_fail_plain(err, HF_ENOMEM);
    return hf_move_adopt(move, &kept->record, err);
}

/* Ends and answers */

static int end_native(struct hf_move *move, struct hf_err *err)
{
    struct hf_span why = hf_text_of("the model made a native tool call, which the code "
                                    "protocol does not offer");
    struct hf_emit emit = { .name = "protocol", .code = "native_tool_call", .text = why };
    struct hf_outcome outcome = { .kind = HF_OUTCOME_RUNTIME_ERROR, .text = why };
    int rc = hf_move_error(move, &emit, err);
    return rc ? rc : hf_act_finish(move, &outcome, err);
}

/* The reasoning first, then the words; see plan_answer of the standard protocol. */
static int answer(struct hf_move *move, const struct reply *reply, struct hf_err *err)
{
    const struct hf_llm_response *response = reply->response;
    struct hf_outcome outcome = { .kind = HF_OUTCOME_ASSISTANT_MESSAGE,
                                  .text = reply->prose };
    struct hf_part *parts = hf_arena_array(move->arena, reply->reasoning_parts + 1,
                                           sizeof(*parts));
    size_t count = 0;
    if (!parts)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < response->part_count; i++)
        if (response->parts[i].kind == HF_PART_REASONING)
            parts[count++] = response->parts[i];
    parts[count++] = (struct hf_part){ .kind = HF_PART_PROSE, .content = reply->prose };
    int rc = hf_turn_span_blank(reply->prose)
                 ? 0
                 : hf_move_answer(move, parts, count, response, &outcome.message, err);
    if (rc)
        return rc;
    return hf_act_checkpoint(move, HF_CHECKPOINT_BEFORE_COMPLETION, &outcome, err);
}

static int run_cell(struct hf_move *move, const struct reply *reply, struct hf_err *err)
{
    const char *bindings = NULL;
    uint64_t step = 0;
    int rc = hf_code_last(move, &step, &bindings, err);
    if (rc == 0)
        rc = append_said(move, reply, true, err);
    if (rc)
        return rc;
    struct hf_emit live = { .kind = HF_EMIT_CUSTOM,
                            .name = HF_CODE_ID ".cell",
                            .text = reply->source };
    rc = hf_move_emit(move, &live, err);
    if (rc)
        return rc;
    const char *cursor = hf_join_id(move->arena, "step", step + 1, NULL);
    if (!cursor)
        return hf_fail_plain(err, HF_ENOMEM);
    struct hf_driver_state driver = { .owner = HF_CODE_ID,
                                      .data = hf_turn_span_of(cursor) };
    struct hf_exec_start start = { .language = hf_code_language_name(
                                       reply->code->language),
                                   .code = reply->source,
                                   .bindings = bindings,
                                   .driver = &driver };
    return hf_act_start_exec(move, &start, err);
}

static struct hf_span keep_text(struct hf_move *move, const struct reply *reply,
                                enum hf_prompt_id id)
{
    struct hf_code_tags tags;
    hf_code_tags(reply->code->language, &tags);
    const struct hf_fill fills[] = {
        { .id = HF_FILL_OPEN, .text = hf_turn_span_of(tags.open) },
        { .id = HF_FILL_CLOSE, .text = hf_turn_span_of(tags.close) },
        { .id = HF_FILL_LANGUAGE,
          .text = hf_turn_span_of(hf_code_language_name(reply->code->language)) },
        { .id = HF_FILL_OTHER,
          .text = hf_turn_span_of(hf_code_language_name(reply->mask.language)) },
        { .id = HF_FILL_BYTES, .number = reply->source.len },
        { .id = HF_FILL_CELL_BYTES, .number = (uint64_t)HF_MAX_CELL_BYTES },
    };
    return hf_prompt_text(&move->turn->keep, id, fills, sizeof(fills) / sizeof(fills[0]));
}

/* Tells replies apart, no more: a cryptographic hash would cost more than all the rest. */
static void fingerprint(struct hf_span text, char ret_hex[17])
{
    const unsigned char *at = text.at;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    uint8_t bytes[8];
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(hash >> (56 - 8 * i));
    hf_hex(bytes, sizeof(bytes), ret_hex);
}

/* Where a correction comes from says what the reply was taken for, its bytes and fingerprint. */
static const struct hf_origin *keep_origin(struct hf_move *move,
                                           const struct reply *reply,
                                           enum decision decision)
{
    struct hf_origin *origin = hf_arena_new(&move->turn->keep, struct hf_origin);
    char *hex = hf_arena_room(&move->turn->keep, 17, 1);
    if (!origin || !hex)
        return NULL;
    fingerprint(reply->text, hex);
    *origin = (struct hf_origin){ .kind = HF_ORIGIN_PLUGIN,
                                  .id = HF_CODE_ID,
                                  .transient = true,
                                  .event_type = decision_words[decision],
                                  .cause = hex,
                                  .sequence = (int64_t)reply->text.len };
    return origin;
}

static int append_fix(struct hf_move *move, const struct reply *reply,
                      enum decision decision, struct hf_err *err)
{
    struct hf_kept *kept = hf_move_keep(move, "fix", HF_ROLE_SYSTEM, 1);
    struct hf_span text = keep_text(move, reply, fix_prompts[decision]);
    const struct hf_origin *origin = keep_origin(move, reply, decision);
    if (!kept || !text.at || !origin)
        return hf_fail_plain(err, HF_ENOMEM);
    kept->parts[0] = (struct hf_part){ .kind = HF_PART_TEXT, .content = text };
    kept->message.part_count = 1;
    kept->message.origin = origin;
    return hf_move_adopt(move, &kept->record, err);
}

/* No caller would read a correction at the limit. */
static int correct(struct hf_move *move, const struct reply *reply,
                   enum decision decision, struct hf_err *err)
{
    int rc = append_said(move, reply, false, err);
    if (rc == 0 && !hf_turn_limit_reached(move->turn, move->next.iteration + 1))
        rc = append_fix(move, reply, decision, err);
    return rc ? rc : hf_code_go_on(reply->code, move, true, err);
}

static int act_on(struct hf_move *move, const struct reply *reply, enum decision decision,
                  struct hf_err *err)
{
    switch (decision) {
    case NATIVE_CALL: return end_native(move, err);
    case EMPTY: return hf_turn_end_empty(move, err);
    case CELL: return run_cell(move, reply, err);
    case PROSE: return answer(move, reply, err);
    case LANGUAGE:
    case UNCLOSED_CUT:
    case UNCLOSED:
    case SIZE:
    case CUT:
    case MALFORMED:
    case NO_FINISH: return correct(move, reply, decision, err);
    case DECISION_COUNT: break;
    }
    return hf_fail_plain(err, HF_EINTERNAL);
}

static int llm_done(const struct hf_protocol *protocol, struct hf_move *move,
                    const struct hf_llm_response *response,
                    const struct hf_driver_state *driver, struct hf_err *err)
{
    (void)driver; /* what the model was told; nothing to continue with */
    struct reply reply = { .code = hf_code_of(protocol), .response = response };
    int rc = take_apart(move, &reply, err);
    if (rc)
        return rc;
    enum decision decision = decide(&reply);
    rc = show(move, &reply, err);
    return rc ? rc : act_on(move, &reply, decision, err);
}

/* Continuing. At the limit a natural turn is asked once more for an answer in words; one that
 * must end with finish is over. */
int hf_code_go_on(const struct hf_code_protocol *code, struct hf_move *move, bool stalled,
                  struct hf_err *err)
{
    bool spent = false;
    bool limit = hf_turn_limit_reached(move->turn, move->next.iteration + 1);
    int rc = stalled ? hf_act_stall(move, &spent, err) : hf_act_progress(move, err);
    if (rc == 0)
        rc = hf_act_advance(move, err);
    if (rc)
        return rc;
    if (spent || (limit && (code->finish_required || hf_move_grace_used(move)))) {
        struct hf_outcome outcome = { .kind = spent ? HF_OUTCOME_NO_PROGRESS
                                                    : HF_OUTCOME_MAX_TURNS };
        return hf_act_finish(move, &outcome, err);
    }
    rc = hf_act_grace(move, err);
    return rc ? rc : hf_act_checkpoint(move, HF_CHECKPOINT_AFTER_WORK, NULL, err);
}

/* It never starts tools; the machine never asks. */
static int tools_done(const struct hf_protocol *protocol, struct hf_move *move,
                      const struct hf_tool_call *calls, size_t count, struct hf_err *err)
{
    (void)protocol;
    (void)move;
    (void)calls;
    (void)count;
    return hf_fail_plain(err, HF_EINTERNAL);
}

static struct hf_span visible(const struct hf_protocol *protocol, struct hf_span text)
{
    struct hf_mask mask;
    (void)protocol;
    hf_mask_init(&mask);
    (void)hf_mask_feed(&mask, text.at, text.len); /* the end says it too */
    hf_mask_end(&mask);
    return (struct hf_span){ text.at, (size_t)mask.visible };
}

static struct hf_span options(const struct hf_protocol *protocol)
{
    return hf_code_of(protocol)->options_text;
}

const struct hf_protocol_ops hf_code_ops = { .id = HF_CODE_ID,
                                             .takes_cut_replies = true,
                                             .prepare = prepare,
                                             .llm_done = llm_done,
                                             .tools_done = tools_done,
                                             .exec_done = hf_code_exec_done,
                                             .visible = visible,
                                             .options = options };

const struct hf_code_protocol *hf_code_of(const struct hf_protocol *protocol)
{
    return protocol->ops == &hf_code_ops ? (const struct hf_code_protocol *)protocol
                                         : NULL;
}

const struct hf_protocol *hf_protocol_code(void)
{
    static const struct hf_code_protocol natural = { .protocol = {
                                                         .ops = &hf_code_ops } };
    return &natural.protocol;
}
