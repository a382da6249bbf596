/* The turn machine: one turn of an agent as a pure state machine.
 *
 * It does no I/O, reads no clock and draws no random numbers. hf_turn_poll yields what the
 * host must do (an effect); one function per kind of response feeds the result back. Its
 * whole state can be saved as bytes at any moment and restored by another process, which
 * then sees the same effect, with the same id and the same contents.
 *
 *     while (!hf_turn_is_done(turn)) {
 *         poll; handle the effect; respond if it has an id; save if you like
 *     }
 *
 * Threads: a handle is used by one thread at a time; different handles are independent. A
 * setup and a surface never change once made, so any number of turns on any threads may
 * share them; they must outlive those turns.
 *
 * Errors: a call that fails leaves the handle as it was, also when out of memory, unless
 * its comment says otherwise. examples/turn_loop.c is a whole host.
 */
#ifndef HOLDFAST_TURN_H
#define HOLDFAST_TURN_H

#include <holdfast/turn_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_turn;
struct hf_setup;
struct hf_surface;
struct hf_protocol;

#define HF_UNBOUNDED INT64_C(-1)

/* Surface: the instructions and the tools that the model is shown.
 *   prompt  the system prompt; may be empty
 *   tools   JSON array of objects, each with a "name"; empty means none
 * Both are copied, checked and hashed here, once, so that no turn has to. HF_EINVAL,
 * HF_ETOOBIG, HF_ENOMEM. alloc NULL: the system's. */
HF_API HF_MUST_USE int hf_surface_new(const struct hf_alloc *alloc, struct hf_span prompt,
                                      struct hf_span tools,
                                      struct hf_surface **ret_surface,
                                      struct hf_err *err);
HF_API void hf_surface_free(struct hf_surface *surface);

/* When the machine repeats a failed model call. Only failures that are transient and
 * charge_safe are repeated. The n-th wait is initial_ms * 2^(n-1), at most cap_ms, less up
 * to a quarter of it (from a hash of turn and attempt), and at least what the provider
 * asked for; a provider that asks for more than retry_after_max_ms ends the turn. */
struct hf_llm_retry {
    size_t size;
    int64_t attempts;         /* all in all; 1: never repeat. 0: the default, 4 */
    hf_ms initial_ms;         /* 0: 2,000 */
    hf_ms cap_ms;             /* 0: 10,000 */
    hf_ms retry_after_max_ms; /* 0: 60,000 */
};

/* The configuration that all turns of one kind share. Copied by hf_setup_new, except the protocol
 * and the surface, which are lent.
 *   turn_budget         iterations a turn may take: at least 1, or HF_UNBOUNDED; a choice
 *                       that must be made
 *   no_progress_budget  failed attempts in a row; 0: 12; or HF_UNBOUNDED
 *   sync                ask for the surface before each iteration
 *   trace               yield LOG effects
 *   options             JSON object for the provider (generation, reasoning, …)
 *   route               names provider, endpoint and model; replay data is bound to it
 *   max_context_tokens  0: not known
 *   limit_text          the note of the grace turn; NULL: ours                         */
struct hf_turn_config {
    size_t size;
    const struct hf_alloc *alloc; /* NULL: the system's; also that of the turns */
    const struct hf_protocol *protocol;
    const struct hf_surface *surface;
    const char *model;
    const char *route;
    struct hf_span options;
    int64_t max_context_tokens;
    int64_t turn_budget;
    int64_t no_progress_budget;
    bool sync;
    bool trace;
    const struct hf_llm_retry *retry; /* NULL: the defaults */
    const char *limit_text;
};

/* HF_EINVAL with the field at fault, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_setup_new(const struct hf_turn_config *config,
                                    struct hf_setup **ret_setup, struct hf_err *err);
HF_API void hf_setup_free(struct hf_setup *setup);

/* The history before a turn: records that are stored already. The machine refers to them
 * and never copies them. They need not all be in memory: each is pinned while the machine
 * looks at it.
 *   id      opaque, up to 191 bytes; NULL only with a count of 0
 *   digest  hf_record_chain over all of them
 *   last_step        number of the last record that hf_record_is_step names, plus 1; 0: there
 *                    is no such record. At most count
 *   last_step_known  last_step is right. false: it is 0, and the first cell of a turn looks
 *                    for that record from the end of the base on
 *   get     pins record i < count and returns it; it stays where it is, unchanged, until it
 *           is put. NULL means that it cannot be had now: the call that needed it then
 *           fails with HF_EBASE, nothing has changed, and it can be made again
 *   put     ends one pin of record i; called once for each record that get returned. NULL:
 *           records live as long as the turn and its renders
 * A record may be pinned more than once at a time. Both run on the thread of the call that
 * caused them; hf_render_free and hf_turn_free call put too. */
struct hf_base {
    const char *id;
    uint64_t count;
    uint8_t digest[32];
    bool last_step_known;
    uint64_t last_step;
    void *user;
    const struct hf_record *(*get)(void *user, uint64_t i);
    void (*put)(void *user, uint64_t i, const struct hf_record *record);
};

/* The digest of a history with `record` added; `previous` is its digest without. 32 zero
 * bytes are the digest of the empty history. A transient record leaves the digest as it
 * was: hosts drop it when they commit the turn. HF_EINVAL for a record that is not well
 * formed. */
HF_API HF_MUST_USE int hf_record_chain(const uint8_t previous[32],
                                       const struct hf_record *record,
                                       uint8_t ret_digest[32], struct hf_err *err);

/* Whether a record is a step: the event with what became of a cell. A host that stores a
 * record of which this is true sets last_step of its base to the count after it. */
HF_API bool hf_record_is_step(const struct hf_record *record);

/* One turn to begin. Inputs are new records, not in the base; they are copied, and come
 * with a PROGRESS before the first model call or with DONE. Causes are shown to the model
 * and kept as messages of role event. run_offset is the iteration to count from, and
 * effects_past the effect: the first one has the number after it.
 *   given       JSON object of values that cells can read by name and not change; names
 *               are words
 *   given_refs  JSON object of references, by name: the cell that first reads such a name
 *               asks the host for its value. A reference is any JSON; the model is shown
 *               the text "about" of one that is an object and has it
 * Both are saved with the turn, shown to the model and handed out with each EXEC_CODE. */
struct hf_turn_start {
    size_t size;
    const char *session_id;
    const char *turn_id;
    const struct hf_base *base; /* NULL: empty; copied, except what get lends */
    const struct hf_record *inputs;
    size_t input_count;
    const struct hf_cause *causes;
    size_t cause_count;
    uint64_t run_offset;
    struct hf_span given;
    struct hf_span given_refs;
    uint64_t effects_past;
};

/* HF_EINVAL with the field at fault, HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_turn_new(const struct hf_setup *setup,
                                   const struct hf_turn_start *start,
                                   struct hf_turn **ret_turn, struct hf_err *err);
HF_API void hf_turn_free(struct hf_turn *turn);

/* The next effect; kind HF_EFFECT_NONE when the host owes a response or the turn is done.
 * An effect with an id is yielded once by a handle, and again by each restored one.
 * HF_EPROTOCOL when the protocol broke its rules: nothing changed, and hf_turn_fail is the
 * way on. HF_EBASE, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_turn_poll(struct hf_turn *turn, struct hf_effect *ret_effect,
                                    struct hf_err *err);

/* Finished, and every effect was polled, DONE too. */
HF_API bool hf_turn_is_done(const struct hf_turn *turn);

/* Responses. Each is accepted only if it names the effect that is out and is of its kind:
 *   HF_ESTALE     another effect is out, or none
 *   HF_ERESPONSE  that effect takes another kind of response
 *   HF_EFINISHED  the turn has ended
 *   HF_EINVAL     the response is not well formed; field says where
 *   HF_EPROTOCOL  as hf_turn_poll
 * An effect need not have been polled: a host that knows the answer may pass it. */
HF_API HF_MUST_USE int hf_turn_synced(struct hf_turn *turn, uint64_t id,
                                      const struct hf_surface *update, /* NULL: keep */
                                      struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_sync_failed(struct hf_turn *turn, uint64_t id,
                                           const char *message, struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_llm_done(struct hf_turn *turn, uint64_t id,
                                        const struct hf_llm_response *response,
                                        struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_llm_failed(struct hf_turn *turn, uint64_t id,
                                          const struct hf_llm_error *error,
                                          struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_exec_done(struct hf_turn *turn, uint64_t id,
                                         const struct hf_exec_result *result,
                                         struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_checkpoint_done(struct hf_turn *turn, uint64_t id,
                                               const struct hf_turn_delivery *delivery,
                                               struct hf_err *err); /* NULL: nothing */

/* Answers to 1..n calls of the batch, in any order; the turn continues when all are
 * answered. The first answer to a call is kept. HF_ENOCALL for a call that is not in the
 * batch, HF_EANSWERED when one of the calls was answered before; then no answer of this
 * call counts. */
HF_API HF_MUST_USE int hf_turn_tool_results(struct hf_turn *turn, uint64_t id,
                                            const struct hf_tool_result *results,
                                            size_t count, struct hf_err *err);

/* A sleep has two answers. Noting when it is due may be repeated with the same time;
 * another time is HF_EANSWERED. Over may come without it. */
HF_API HF_MUST_USE int hf_turn_sleep_noted(struct hf_turn *turn, uint64_t id,
                                           hf_ms due_ms, struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_sleep_over(struct hf_turn *turn, uint64_t id,
                                          struct hf_err *err);

/* Asks for the end of the turn; it is saved with the turn, and a later request changes
 * nothing. A model call that is out is ended with CANCEL_LLM, a sleep and a checkpoint
 * end at once. For tools and a cell CANCEL_TOOLS or CANCEL_EXEC tells the host to stop
 * them; the turn ends when it has answered them, with whatever came of them. Only
 * effects that were polled get such an effect. HF_EFINISHED, HF_EANSWERED on a repeat. */
HF_API HF_MUST_USE int hf_turn_cancel(struct hf_turn *turn,
                                      const struct hf_evidence *evidence,
                                      struct hf_err *err);

/* The cancellation that was asked for, also in a restored turn; NULL: none was. A host that is
 * yielded tools or a cell of such a turn again answers what it does not run as cancelled.
 * Lives as long as the handle. */
HF_API const struct hf_evidence *hf_turn_cancelling(const struct hf_turn *turn);

/* The cost of a model call that was ended with CANCEL_LLM, once it is known. Accepted
 * once, after the end of the turn; the host's commit should wait for it, or do without.
 * It yields no effect: hf_turn_usage has it. HF_ESTALE for any other id, HF_EANSWERED on
 * a repeat, HF_EOVERFLOW with the bucket in field. */
HF_API HF_MUST_USE int hf_turn_account(struct hf_turn *turn, uint64_t id,
                                       const struct hf_usage *usage, struct hf_err *err);

/* Ends the turn now. Effects that are out are stopped, as by a cancellation; open tool calls
 * and a running cell are recorded as unknown. fail is the outcome runtime_error after an
 * EMIT of the error. HF_EFINISHED. */
HF_API HF_MUST_USE int hf_turn_fail(struct hf_turn *turn, const char *code,
                                    const char *message, struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_finish(struct hf_turn *turn,
                                      const struct hf_outcome *outcome,
                                      struct hf_err *err);

/* Puts the turn onto a base that now also holds records the turn made, so that later
 * saves refer to them. Only records that a PROGRESS reported can move; the machine checks
 * the digest over those. Afterwards the records that hf_turn_record returned are invalid;
 * effects that are out, renders, texts, causes and the outcome stay. The old base must
 * last until the renders that were made over it are freed. HF_EBASE (also with
 * "last_step" in field, when the turn knows another last step), HF_EINVAL, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_turn_rebase(struct hf_turn *turn, const struct hf_base *base,
                                      struct hf_err *err);

/* Looking in. Texts live as long as the handle; outcome is NULL until the turn has ended;
 * outstanding is 0 when no effect is out. */
HF_API const char *hf_turn_session_id(const struct hf_turn *turn);
HF_API const char *hf_turn_id(const struct hf_turn *turn);
HF_API enum hf_turn_state hf_turn_state(const struct hf_turn *turn);
HF_API uint64_t hf_turn_outstanding(const struct hf_turn *turn);
HF_API uint64_t hf_turn_iteration(const struct hf_turn *turn);
HF_API const struct hf_usage *hf_turn_usage(const struct hf_turn *turn);
HF_API const struct hf_outcome *hf_turn_outcome(const struct hf_turn *turn);
HF_API uint64_t hf_turn_base_count(const struct hf_turn *turn);
HF_API uint64_t hf_turn_record_count(const struct hf_turn *turn);

/* Record i of base and own records; NULL past the end, and when the base cannot lend it
 * now. The pointer lives until the next hf_turn_record or hf_turn_rebase of the handle,
 * or its end: one of the base is pinned for that time. */
HF_API const struct hf_record *hf_turn_record(struct hf_turn *turn, uint64_t i);
/* Cause i, NULL past the end. It lives as long as the handle. */
HF_API uint64_t hf_turn_cause_count(const struct hf_turn *turn);
HF_API const struct hf_cause *hf_turn_cause(const struct hf_turn *turn, uint64_t i);

/* Bytes that the handle holds, and how many of them are its own records. */
HF_API size_t hf_turn_bytes(const struct hf_turn *turn, size_t *ret_record_bytes);

/* Bytes that a call made. Free them with hf_bytes_free; a zeroed one is fine too. */
struct hf_bytes {
    const struct hf_alloc *alloc;
    void *at;
    size_t len;
};
HF_API void hf_bytes_free(struct hf_bytes *bytes);

/* The turn as bytes (docs/internals/turn-format.md): same state, same bytes. The handle is
 * unchanged. The last 32 bytes are a digest of the others and the save's identity. An
 * export holds the base and all blobs too. HF_ENOMEM, HF_ETOOBIG; export also HF_EBASE. */
HF_API HF_MUST_USE int hf_turn_save(const struct hf_turn *turn, struct hf_bytes *ret_save,
                                    struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_export(const struct hf_turn *turn,
                                      struct hf_bytes *ret_save, struct hf_err *err);

/* The turn of a save; enough to load its base. */
struct hf_save_info {
    uint32_t version;
    bool exported; /* needs neither base nor resolver */
    char session_id[192];
    char turn_id[192];
    char protocol[192];
    char base_id[192]; /* "" for an empty base */
    uint64_t base_count;
    uint8_t base_digest[32];
};

/* Checks the digest, then reads the head. HF_ENOTSAVE, HF_ECORRUPT, HF_ENEWER. */
HF_API HF_MUST_USE int hf_turn_peek(struct hf_span save, struct hf_save_info *ret_info,
                                    struct hf_err *err);

/* The arguments of a restore, in addition to the setup. Of a save that is no export:
 *   base      must have the id, count and digest that the save names; a last step that it
 *             names must be the save's, if the save knows one
 *   resolve   lends the blob of that SHA-256, for as long as the turn lives: prompts, tool
 *             lists and options that are not those of the setup. 0, or HF_EBLOB when it is
 *             not known. NULL: there are none
 * session_id and turn_id, if given, must be the save's. */
struct hf_restore {
    size_t size;
    const char *session_id;
    const char *turn_id;
    const struct hf_base *base;
    void *user;
    int (*resolve)(void *user, const uint8_t hash[32], struct hf_span *ret_blob);
};

/* A turn from its bytes. HF_ENOTSAVE (foreign bytes), HF_ECORRUPT (damaged or cut),
 * HF_ENEWER, HF_EFOREIGN (another turn's), HF_EBASE, HF_EBLOB, HF_EPROTOCOL (the setup has
 * another protocol), HF_ENOMEM. */
HF_API HF_MUST_USE int hf_turn_restore(const struct hf_setup *setup, struct hf_span save,
                                       const struct hf_restore *restore,
                                       struct hf_turn **ret_turn, struct hf_err *err);

/* A save for people and diffs: one line "path: value" for each thing in it, in a fixed
 * order. Needs no base. Errors as hf_turn_peek. */
HF_API HF_MUST_USE int hf_turn_describe(const struct hf_alloc *alloc, struct hf_span save,
                                        struct hf_bytes *ret_text, struct hf_err *err);

/* The same effects and responses as JSON (docs/internals/turn.md): for other languages and
 * for recorded turns. The text is NUL-terminated and lives until the next poll or poll_json
 * of the handle; *ret_json is NULL when there is nothing to do. Errors as hf_turn_poll. */
HF_API HF_MUST_USE int hf_turn_poll_json(struct hf_turn *turn, const char **ret_json,
                                         struct hf_err *err);
/* Takes every response and every lever. Errors as of the call that the response names;
 * HF_EINVAL, HF_ETOOBIG for text that is no response. */
HF_API HF_MUST_USE int hf_turn_respond_json(struct hf_turn *turn, struct hf_span json,
                                            struct hf_err *err);

/* Recorded turns, for `holdfast replay`: the line below, then the text of every
 * hf_turn_poll_json and every hf_turn_respond_json, one per line. It is a text that ends
 * in a NUL but not in a newline. HF_EBASE, HF_ENOMEM, HF_ETOOBIG. */
HF_API HF_MUST_USE int hf_recording_head(const struct hf_setup *setup,
                                         const struct hf_turn_start *start,
                                         struct hf_bytes *ret_line, struct hf_err *err);

struct hf_replay;

/* A turn as the first line of a recording says. protocol NULL: standard or code, as the
 * recording says, with the options it was recorded with. HF_EINVAL,
 * HF_ENEWER, HF_EPROTOCOL (recorded under another one), HF_ENOMEM. */
HF_API HF_MUST_USE int hf_replay_new(const struct hf_alloc *alloc, struct hf_span head,
                                     const struct hf_protocol *protocol,
                                     struct hf_replay **ret_replay, struct hf_err *err);
HF_API void hf_replay_free(struct hf_replay *replay);

/* The next line. HF_ECONFLICT when this build yields another effect; *ret_actual is then
 * its text ("" for none) and the replay is over. For a response that this build refuses,
 * the code of the refusal. end: nothing more may come. */
HF_API HF_MUST_USE int hf_replay_line(struct hf_replay *replay, struct hf_span line,
                                      struct hf_bytes *ret_actual, struct hf_err *err);
HF_API HF_MUST_USE int hf_replay_end(struct hf_replay *replay,
                                     struct hf_bytes *ret_actual, struct hf_err *err);

/* A request as a provider needs it: messages of blocks, in order. At most one message has
 * cache_breakpoint: all up to its end comes again, byte for byte, as the beginning of the
 * next request of this turn, so it is what a provider's prompt cache should keep. What
 * follows it is about this very request, or may yet be left out: attempts that a later one
 * can repair. */
enum hf_block_kind {
    HF_BLOCK_TEXT,
    HF_BLOCK_ATTACHMENT,
    HF_BLOCK_TOOL_CALL,
    HF_BLOCK_TOOL_RESULT,
    HF_BLOCK_REASONING
};

struct hf_block {
    enum hf_block_kind kind;
    struct hf_span text; /* text; raw arguments; result; "" for reasoning */
    const char *call_id;
    const char *tool;
    struct hf_span replay;   /* only if it was made on the request's route */
    const char *provider_id; /* likewise; of a call */
    size_t attachment;       /* number in the list of attachments */
};

struct hf_rendered {
    enum hf_role role; /* system, user or assistant */
    const struct hf_block *blocks;
    size_t block_count;
    bool cache_breakpoint;
};

struct hf_render;

/* Renders a request of this turn, whose effect must still be out. The result lives until
 * it is freed, whatever becomes of the effect and the turn: it holds what it shows, and pins
 * the records of the base that it shows. It is made and freed by the thread that uses the
 * turn; other threads may read it in between. HF_EBASE, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_render_new(struct hf_turn *turn,
                                     const struct hf_request *request,
                                     struct hf_render **ret_render, struct hf_err *err);
HF_API void hf_render_free(struct hf_render *render);

/* The i-th message or attachment, NULL past the last. */
HF_API const struct hf_rendered *hf_render_message(const struct hf_render *render,
                                                   size_t i);
HF_API const struct hf_attachment *hf_render_attachment(const struct hf_render *render,
                                                        size_t i);

/* Usage. add: all five buckets or none; HF_EOVERFLOW names the bucket in field. prompt and
 * total: checked sums (input + cache_read + cache_write; and output). */
HF_API HF_MUST_USE int hf_usage_add(struct hf_usage *sum, const struct hf_usage *more,
                                    struct hf_err *err);
HF_API HF_MUST_USE int hf_usage_prompt(const struct hf_usage *usage, int64_t *ret_tokens,
                                       struct hf_err *err);
HF_API HF_MUST_USE int hf_usage_total(const struct hf_usage *usage, int64_t *ret_tokens,
                                      struct hf_err *err);

/* Whether a provider will take this history: every tool call is in an assistant message
 * and has an id of its own, every result is in a user message after its call, once, and
 * no call is open. *ret_safe is false otherwise. HF_EBASE, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_turn_resumable(const struct hf_turn *turn, bool *ret_safe,
                                         struct hf_err *err);

/* The weight of a part when history is cut to size: its bytes, 0 for reasoning. */
HF_API size_t hf_part_weight(const struct hf_part *part);

/* Tool values are JSON with attachments as leaves: {"$attachment": {"ref": …}}. escape
 * turns any JSON into a value that means itself (a key "$attachment", "$$attachment", …
 * gets one more "$"); HF_EINVAL if it is not JSON. */
HF_API HF_MUST_USE int hf_value_escape(const struct hf_alloc *alloc, struct hf_span json,
                                       struct hf_bytes *ret_value, struct hf_err *err);

/* Whether an effect of this kind takes a response: those that have an id of their own. */
HF_API bool hf_effect_takes_response(enum hf_effect_kind kind);

/* Words of the enums; "?" for a value that is none. */
HF_API const char *hf_turn_state_name(enum hf_turn_state state);
HF_API const char *hf_effect_name(enum hf_effect_kind kind);
HF_API const char *hf_outcome_name(enum hf_outcome_kind kind);
HF_API const char *hf_role_name(enum hf_role role);

/* The protocol of native tool calls. The object is static. */
HF_API const struct hf_protocol *hf_protocol_standard(void);

#ifdef __cplusplus
}
#endif
#endif
