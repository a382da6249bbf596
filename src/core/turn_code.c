/* The code protocol: what a reply means. The ladder is one table, below; what happens after
 * a cell is in turn_code_exec.c.
 *
 * Text of the model is copied where it is kept and nowhere else; a mask over the whole reply
 * finds the cell, the same one that a host uses on the stream, so both see the same.
 */
#include "core/turn_code.h"

#include <string.h>

#include <holdfast/limits.h>

#include "base/err.h"
#include "base/text.h"

const char *hf_code_text(struct hf_move *move, enum hf_prompt_id id,
                         const struct hf_fill *fills, size_t count)
{
    struct hf_buf text;
    hf_buf_init(&text, move->turn->alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_prompt_put(&text, id, fills, count);
    return hf_buf_keep(&text, move->arena);
}

/* An iteration begins: the model is told where it stands. The text is part of the request,
 * so a restored turn asks the same. */

static void put_tail(struct hf_buf *out, const struct hf_code_protocol *code,
                     const struct hf_move *move)
{
    struct hf_code_tags tags;
    hf_code_tags(code->language, &tags);
    uint64_t done = move->next.iteration - move->turn->now.run_offset;
    int64_t budget = hf_move_turn_budget(move);
    const struct hf_fill fills[] = {
        { .name = "iteration", .number = done + 1 },
        { .name = "left",
          .number = budget > (int64_t)done ? (uint64_t)budget - done - 1 : 0 },
        { .name = "open", .text = hf_span_of(tags.open) },
        { .name = "schema", .text = code->schema_text },
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
static const struct hf_words w_decisions = { decision_words, DECISION_COUNT };

struct reply {
    const struct hf_code_protocol *code;
    const struct hf_llm_response *response;
    struct hf_span text; /* all text parts as one */
    struct hf_span prose;
    struct hf_span source;
    struct hf_mask mask;
    size_t reasoning_bytes;
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
        if (response->parts[i].kind == HF_PART_REASONING &&
            !hf_span_blank(response->parts[i].content))
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
    case EMPTY: return hf_span_blank(reply->text) && reply->reasoning_bytes == 0;
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

/* What is written down of every reply. */

struct note {
    const char *phase;
    const char *turn;
    uint64_t iteration;
    uint32_t decision;
    uint64_t prose_bytes;
    uint64_t code_bytes;
    uint64_t reasoning_bytes;
    const char *reply;
};

/* clang-format off */
static const struct hf_member note_members[] = {
    { .key = 1, .type = HF_M_TEXT, .max = 191, HF_AT(note, phase) },
    { .key = 2, .type = HF_M_TEXT, .max = 191, HF_AT(note, turn) },
    { .key = 3, .type = HF_M_U64, HF_AT(note, iteration) },
    { .key = 4, .type = HF_M_ENUM, .words = &w_decisions, .flags = HF_M_REQUIRED, HF_AT(note, decision) },
    { .key = 5, .type = HF_M_U64, HF_AT(note, prose_bytes) },
    { .key = 6, .type = HF_M_U64, HF_AT(note, code_bytes) },
    { .key = 7, .type = HF_M_U64, HF_AT(note, reasoning_bytes) },
    { .key = 8, .type = HF_M_TEXT, .max = 16, HF_AT(note, reply) },
};
static HF_SCHEMA(s_note, note, note_members);
/* clang-format on */

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

static int note_reply(struct hf_move *move, const struct reply *reply,
                      enum decision decision, struct hf_err *err)
{
    char hex[17];
    fingerprint(reply->text, hex);
    struct note note = { .phase = "llm_extraction",
                         .turn = move->turn->turn_id,
                         .iteration = move->next.iteration,
                         .decision = decision,
                         .prose_bytes = hf_span_blank(reply->prose) ? 0
                                                                    : reply->prose.len,
                         .code_bytes = reply->source.len,
                         .reasoning_bytes = reply->reasoning_bytes,
                         .reply = hex };
    return hf_code_event(move, HF_CODE_REPLY, &s_note, &note, err);
}

static int show(struct hf_move *move, const struct reply *reply, struct hf_err *err)
{
    struct hf_emit delta = { .kind = HF_EMIT_TEXT_DELTA, .text = reply->prose };
    struct hf_emit whole = { .kind = HF_EMIT_LLM_RESPONSE,
                             .text = reply->prose,
                             .code = reply->response->response_id };
    int rc = reply->response->text_streamed || hf_span_blank(reply->prose)
                 ? 0
                 : hf_move_emit(move, &delta, err);
    return rc ? rc : hf_move_emit(move, &whole, err);
}

/* Prose without the blanks at its end; nothing when it is blank. */
static struct hf_span trimmed(struct hf_span prose)
{
    const char *at = prose.at;
    while (prose.len > 0 && hf_span_blank((struct hf_span){ at + prose.len - 1, 1 }))
        prose.len--;
    return prose;
}

/* Reasoning, prose, and the source if there is one. *ret_id is NULL when there was nothing
 * to say. */
static int append_said(struct hf_move *move, const struct reply *reply, bool cell,
                       const char **ret_id, struct hf_err *err)
{
    const struct hf_llm_response *response = reply->response;
    struct hf_span prose = trimmed(reply->prose);
    struct hf_part *parts = hf_move_take(move,
                                         (response->part_count + 2) * sizeof(*parts));
    const char *id = hf_move_id(move, cell ? "cell" : "prose");
    size_t count = 0;
    *ret_id = NULL;
    if (!parts || !id)
        return hf_fail_plain(err, HF_ENOMEM);
    for (size_t i = 0; i < response->part_count; i++)
        if (response->parts[i].kind == HF_PART_REASONING)
            parts[count++] = response->parts[i];
    if (prose.len > 0)
        parts[count++] = (struct hf_part){ .kind = HF_PART_PROSE, .content = prose };
    if (cell)
        parts[count++] =
            (struct hf_part){ .kind = HF_PART_CODE,
                              .tool = hf_code_language_name(reply->code->language),
                              .content = reply->source };
    if (count == 0)
        return 0;
    struct hf_message message = {
        .id = id, .role = HF_ROLE_ASSISTANT, .parts = parts, .part_count = count
    };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &message };
    *ret_id = id;
    return hf_move_append(move, HF_COPY_TRUST, &record, err);
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

static int answer(struct hf_move *move, const struct reply *reply, struct hf_err *err)
{
    struct hf_outcome outcome = { .kind = HF_OUTCOME_ASSISTANT_MESSAGE,
                                  .text = reply->prose };
    return hf_act_checkpoint(move, HF_CHECKPOINT_BEFORE_COMPLETION, &outcome, err);
}

static int run_cell(struct hf_move *move, const struct reply *reply, struct hf_err *err)
{
    const char *bindings = NULL;
    const char *id = NULL;
    uint64_t step = 0;
    int rc = hf_code_last(move, &step, &bindings, err);
    if (rc == 0)
        rc = append_said(move, reply, true, &id, err);
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
    struct hf_driver_state driver = { .owner = HF_CODE_ID, .data = hf_span_of(cursor) };
    struct hf_exec_start start = { .language = hf_code_language_name(
                                       reply->code->language),
                                   .code = reply->source,
                                   .bindings = bindings,
                                   .driver = &driver };
    return hf_act_start_exec(move, &start, err);
}

static const char *fix_text(struct hf_move *move, const struct reply *reply,
                            enum hf_prompt_id id)
{
    struct hf_code_tags tags;
    hf_code_tags(reply->code->language, &tags);
    const struct hf_fill fills[] = {
        { .name = "open", .text = hf_span_of(tags.open) },
        { .name = "close", .text = hf_span_of(tags.close) },
        { .name = "language",
          .text = hf_span_of(hf_code_language_name(reply->code->language)) },
        { .name = "other",
          .text = hf_span_of(hf_code_language_name(reply->mask.language)) },
        { .name = "bytes", .number = reply->source.len },
        { .name = "cell_bytes", .number = (uint64_t)HF_MAX_CELL_BYTES },
    };
    return hf_code_text(move, id, fills, sizeof(fills) / sizeof(fills[0]));
}

static int correct(struct hf_move *move, const struct reply *reply, enum hf_prompt_id id,
                   struct hf_err *err)
{
    const char *said = NULL;
    const char *fix = fix_text(move, reply, id);
    int rc = fix ? append_said(move, reply, false, &said, err)
                 : hf_fail_plain(err, HF_ENOMEM);
    return rc ? rc : hf_code_go_on(reply->code, move, true, fix, err);
}

static int act_on(struct hf_move *move, const struct reply *reply, enum decision decision,
                  struct hf_err *err)
{
    switch (decision) {
    case NATIVE_CALL: return end_native(move, err);
    case EMPTY: return hf_turn_end_empty(move, err);
    case UNCLOSED_CUT: return correct(move, reply, HF_PROMPT_CODE_FIX_UNCLOSED_CUT, err);
    case LANGUAGE: return correct(move, reply, HF_PROMPT_CODE_FIX_LANGUAGE, err);
    case UNCLOSED: return correct(move, reply, HF_PROMPT_CODE_FIX_UNCLOSED, err);
    case SIZE: return correct(move, reply, HF_PROMPT_CODE_FIX_SIZE, err);
    case CELL: return run_cell(move, reply, err);
    case CUT: return correct(move, reply, HF_PROMPT_CODE_FIX_CUT, err);
    case MALFORMED: return correct(move, reply, HF_PROMPT_CODE_FIX_MALFORMED, err);
    case NO_FINISH: return correct(move, reply, HF_PROMPT_CODE_FIX_FINISH, err);
    case PROSE: return answer(move, reply, err);
    case DECISION_COUNT: break;
    }
    return hf_fail_plain(err, HF_EINTERNAL);
}

static int llm_done(const struct hf_protocol *protocol, struct hf_move *move,
                    const struct hf_llm_response *response,
                    const struct hf_driver_state *driver, struct hf_err *err)
{
    (void)driver; /* what the model was told; nothing to go on with */
    struct reply reply = { .code = hf_code_of(protocol), .response = response };
    int rc = take_apart(move, &reply, err);
    if (rc)
        return rc;
    enum decision decision = decide(&reply);
    rc = show(move, &reply, err);
    if (rc == 0)
        rc = note_reply(move, &reply, decision, err);
    return rc ? rc : act_on(move, &reply, decision, err);
}

/* Going on */

static int append_fix(struct hf_move *move, const char *text, struct hf_err *err)
{
    struct hf_origin origin = { .kind = HF_ORIGIN_PLUGIN,
                                .id = HF_CODE_ID,
                                .transient = true };
    struct hf_part part = { .kind = HF_PART_TEXT, .content = hf_span_of(text) };
    struct hf_message message = { .id = hf_move_id(move, "fix"),
                                  .role = HF_ROLE_SYSTEM,
                                  .parts = &part,
                                  .part_count = 1,
                                  .origin = &origin };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &message };
    if (!message.id)
        return hf_fail_plain(err, HF_ENOMEM);
    return hf_move_append(move, HF_COPY_TRUST, &record, err);
}

/* At the limit a natural turn is asked once more for an answer in words; one that must end
 * with finish is over. Nobody would read a correction then. */
int hf_code_go_on(const struct hf_code_protocol *code, struct hf_move *move, bool stalled,
                  const char *fix, struct hf_err *err)
{
    bool spent = false;
    bool limit = hf_limit_reached(move->turn, move->next.iteration + 1);
    int rc = stalled ? hf_act_stall(move, &spent, err) : hf_act_progress(move, err);
    if (rc)
        return rc;
    if (spent || (limit && (code->finish_required || hf_move_grace_used(move)))) {
        struct hf_outcome outcome = { .kind = spent ? HF_OUTCOME_NO_PROGRESS
                                                    : HF_OUTCOME_MAX_TURNS };
        rc = hf_act_advance(move, err);
        return rc ? rc : hf_act_finish(move, &outcome, err);
    }
    if (fix && !limit)
        rc = append_fix(move, fix, err);
    if (rc == 0)
        rc = hf_act_advance(move, err);
    if (rc == 0)
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
