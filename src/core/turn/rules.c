/* The transition table, and the one function that obeys it.
 *
 * Rules of one state and event are tried in order; the first whose guard holds acts. The
 * last of each group has no guard. Nothing more decides what may happen: a pair without a
 * rule is a refused call. docs/internals/turn.md is generated from the table. */
#include "base/err.h"
#include "core/turn/machine.h"

const char *hf_turn_event_name(enum hf_turn_event event)
{
    static const char *const names[] = {
        "poll",        "synced",       "sync_failed", "llm_done",
        "llm_failed",  "tool_results", "exec_done",   "checkpoint",
        "sleep_noted", "sleep_over",   "cancel",      "finish",
    };
    return event < HF_ON_COUNT ? names[event] : "?";
}

/* Guards */

static bool sync_wanted(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)input;
    return move->turn->setup->config.sync;
}

static bool sync_due(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)input;
    return move->turn->setup->config.sync &&
           move->next.synced != move->next.iteration + 1;
}

static const struct hf_llm_response *response_of(const struct hf_turn_input *input)
{
    return input->data;
}

static const struct hf_llm_error *error_of(const struct hf_turn_input *input)
{
    return input->data;
}

static bool reply_overflows(const struct hf_move *move, const struct hf_turn_input *input)
{
    return !hf_turn_usage_fits(move, &response_of(input)->usage);
}

static bool error_overflows(const struct hf_move *move, const struct hf_turn_input *input)
{
    return !hf_turn_usage_fits(move, &error_of(input)->usage);
}

static bool reply_cut(const struct hf_move *move, const struct hf_turn_input *input)
{
    return response_of(input)->reason == HF_REASON_OUTPUT_LIMIT &&
           !move->turn->setup->config.protocol->ops->takes_cut_replies;
}

static bool reply_refused(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)move;
    enum hf_reason reason = response_of(input)->reason;
    return reason == HF_REASON_CONTEXT_OVERFLOW || reason == HF_REASON_CONTENT_FILTER ||
           reason == HF_REASON_PROVIDER_ERROR;
}

static bool reply_cancelled(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)move;
    return response_of(input)->reason == HF_REASON_CANCELLED;
}

static bool call_cancelled(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)move;
    return error_of(input)->cancelled;
}

static bool call_repeatable(const struct hf_move *move, const struct hf_turn_input *input)
{
    return hf_turn_may_retry(move, error_of(input));
}

static bool calls_open(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)input;
    return !hf_turn_all_answered(&move->next.wait);
}

static bool delivered_nothing(const struct hf_move *move,
                              const struct hf_turn_input *input)
{
    (void)move;
    return hf_turn_delivery_empty(input->data);
}

static bool nothing_and_go_on(const struct hf_move *move,
                              const struct hf_turn_input *input)
{
    return delivered_nothing(move, input) && !move->next.wait.on_empty;
}

static bool after_work(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)input;
    return move->next.wait.checkpoint == HF_CHECKPOINT_AFTER_WORK;
}

static bool grace_spent(const struct hf_move *move, const struct hf_turn_input *input)
{
    (void)input;
    return move->next.grace;
}

/* Actions */

static int sync_surface(struct hf_move *move, bool update)
{
    hf_move_enter(move, HF_TURN_WAITING_SURFACE, true);
    move->next.wait.update = update;
    return 0;
}

static int first_sync(struct hf_move *move, const struct hf_turn_input *input,
                      struct hf_err *err)
{
    (void)input;
    (void)err;
    return sync_surface(move, false);
}

static int next_sync(struct hf_move *move, const struct hf_turn_input *input,
                     struct hf_err *err)
{
    (void)input;
    (void)err;
    return sync_surface(move, true);
}

static int prepare(struct hf_move *move, const struct hf_turn_input *input,
                   struct hf_err *err)
{
    (void)input;
    return hf_move_prepare(move, err);
}

static int take_surface(struct hf_move *move, const struct hf_turn_input *input,
                        struct hf_err *err)
{
    (void)err;
    const struct hf_surface *update = input->data;
    if (update)
        move->next.face = update->face;
    hf_move_enter(move, HF_TURN_PREPARE_ITERATION, false);
    move->next.synced = move->next.iteration + 1;
    return 0;
}

static int sync_failed(struct hf_move *move, const struct hf_turn_input *input,
                       struct hf_err *err)
{
    struct hf_emit emit = { .name = "execution_surface",
                            .code = "sync_failed",
                            .text = hf_turn_span_of(input->data) };
    int rc = hf_move_error(move, &emit, err);
    return rc ? rc
              : hf_move_end_kind(move, HF_OUTCOME_RUNTIME_ERROR,
                                 hf_turn_span_of(input->data), err);
}

static int reply_overflowed(struct hf_move *move, const struct hf_turn_input *input,
                            struct hf_err *err)
{
    return hf_turn_overflowed(move, &response_of(input)->usage, err);
}

static int error_overflowed(struct hf_move *move, const struct hf_turn_input *input,
                            struct hf_err *err)
{
    return hf_turn_overflowed(move, &error_of(input)->usage, err);
}

static int end_incomplete(struct hf_move *move, const struct hf_turn_input *input,
                          struct hf_err *err)
{
    return hf_turn_bad_end(move, response_of(input), HF_OUTCOME_INCOMPLETE, err);
}

static int end_refused(struct hf_move *move, const struct hf_turn_input *input,
                       struct hf_err *err)
{
    return hf_turn_bad_end(move, response_of(input), HF_OUTCOME_PROVIDER_ERROR, err);
}

static int end_reply_cancelled(struct hf_move *move, const struct hf_turn_input *input,
                               struct hf_err *err)
{
    return hf_turn_bad_end(move, response_of(input), HF_OUTCOME_CANCELLED, err);
}

static int take_reply(struct hf_move *move, const struct hf_turn_input *input,
                      struct hf_err *err)
{
    int rc = hf_move_account(move, &response_of(input)->usage, err);
    if (rc == 0)
        rc = hf_move_log(move, HF_LOG_LLM_DEBUG, response_of(input)->raw, err);
    return rc ? rc : hf_move_llm_done(move, response_of(input), err);
}

static int end_call_cancelled(struct hf_move *move, const struct hf_turn_input *input,
                              struct hf_err *err)
{
    return hf_turn_call_cancelled(move, error_of(input), err);
}

static int repeat_call(struct hf_move *move, const struct hf_turn_input *input,
                       struct hf_err *err)
{
    return hf_turn_retry(move, error_of(input), err);
}

static int end_call_failed(struct hf_move *move, const struct hf_turn_input *input,
                           struct hf_err *err)
{
    return hf_turn_call_failed(move, error_of(input), err);
}

static int keep_waiting(struct hf_move *move, const struct hf_turn_input *input,
                        struct hf_err *err)
{
    (void)move;
    (void)input;
    (void)err;
    return 0; /* the answers are in the batch already */
}

static int tools_done(struct hf_move *move, const struct hf_turn_input *input,
                      struct hf_err *err)
{
    (void)input;
    return hf_move_tools_done(move, err);
}

static int exec_done(struct hf_move *move, const struct hf_turn_input *input,
                     struct hf_err *err)
{
    const struct hf_exec_result *result = input->data;
    for (size_t i = 0; i < result->call_count; i++) {
        int rc = hf_result_check(&result->calls[i], err);
        if (rc)
            return rc;
    }
    return hf_move_exec_done(move, result, err);
}

static int go_on(struct hf_move *move, const struct hf_turn_input *input,
                 struct hf_err *err)
{
    (void)input;
    int rc = hf_move_flush(move, err);
    if (rc == 0)
        hf_move_enter(move, HF_TURN_PREPARE_ITERATION, false);
    return rc;
}

static int end_as_planned(struct hf_move *move, const struct hf_turn_input *input,
                          struct hf_err *err)
{
    (void)input;
    return hf_move_end(move, move->next.wait.on_empty, err);
}

/* What the model said before new input came is part of the conversation: it would be lost
 * if only the outcome held it. */
static int deliver_after_answer(struct hf_move *move, const struct hf_turn_input *input,
                                struct hf_err *err)
{
    const struct hf_outcome *planned = move->next.wait.on_empty;
    if (planned && planned->message) {
        struct hf_record record = { .kind = HF_RECORD_MESSAGE,
                                    .message = planned->message };
        int rc = hf_move_append(move, HF_COPY_TRUST, &record, err);
        if (rc)
            return rc;
    }
    int rc = hf_turn_deliver(move, input->data, err);
    if (rc == 0) {
        move->next.iteration++;
        move->next.synced = 0;
    }
    return rc;
}

static int deliver_and_go_on(struct hf_move *move, const struct hf_turn_input *input,
                             struct hf_err *err)
{
    int rc = hf_turn_deliver(move, input->data, err);
    return rc ? rc : go_on(move, input, err);
}

static int deliver_and_end(struct hf_move *move, const struct hf_turn_input *input,
                           struct hf_err *err)
{
    int rc = deliver_after_answer(move, input, err);
    if (rc)
        return rc;
    return hf_move_end_kind(move, HF_OUTCOME_MAX_TURNS, (struct hf_span){ 0 }, err);
}

static int deliver_and_resume(struct hf_move *move, const struct hf_turn_input *input,
                              struct hf_err *err)
{
    int rc = deliver_after_answer(move, input, err);
    if (rc == 0)
        rc = hf_move_give_grace(move, err);
    return rc ? rc : go_on(move, input, err);
}

static int note_due(struct hf_move *move, const struct hf_turn_input *input,
                    struct hf_err *err)
{
    (void)err;
    move->next.wait.due_ms = input->ms;
    return 0;
}

/* The same request under a new id. */
static int call_again(struct hf_move *move, const struct hf_turn_input *input,
                      struct hf_err *err)
{
    (void)input;
    struct hf_request *request = hf_arena_new(move->arena, struct hf_request);
    if (!request)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_value_copy(move->arena, &hf_s_request, HF_COPY_TRUST,
                           move->next.wait.request, request, err);
    if (rc)
        return rc;
    request->attempt++;
    hf_move_enter(move, HF_TURN_WAITING_LLM, true);
    move->next.wait.request = request;
    return 0;
}

static int remember_cancel(struct hf_move *move, const struct hf_turn_input *input,
                           struct hf_err *err)
{
    const void *copy = NULL;
    int rc = hf_value_copy_ref(&move->turn->stay, &hf_s_evidence, HF_COPY_TRUST,
                               input->data, &copy, err);
    move->next.cancel = copy;
    return rc;
}

static int cancel_now(struct hf_move *move, const struct hf_turn_input *input,
                      struct hf_err *err)
{
    int rc = remember_cancel(move, input, err);
    return rc ? rc : hf_move_end_cancelled(move, NULL, err);
}

/* Tells the host to stop what is out, unless it never saw it. */
static int stop(struct hf_move *move, enum hf_effect_kind kind, struct hf_err *err)
{
    struct hf_queued stop = { .kind = kind, .id = move->next.wait.id };
    return move->next.wait.yielded ? hf_move_queue(move, &stop, err) : 0;
}

/* A model call is not waited for; what it cost may be told later. */
static int give_up_call(struct hf_move *move, struct hf_err *err)
{
    if (move->next.wait.yielded)
        move->next.given_up = move->next.wait.id;
    return stop(move, HF_EFFECT_CANCEL_LLM, err);
}

static int cancel_tools(struct hf_move *move, const struct hf_turn_input *input,
                        struct hf_err *err)
{
    int rc = remember_cancel(move, input, err);
    return rc ? rc : stop(move, HF_EFFECT_CANCEL_TOOLS, err);
}

static int cancel_exec(struct hf_move *move, const struct hf_turn_input *input,
                       struct hf_err *err)
{
    int rc = remember_cancel(move, input, err);
    return rc ? rc : stop(move, HF_EFFECT_CANCEL_EXEC, err);
}

static int cancel_call(struct hf_move *move, const struct hf_turn_input *input,
                       struct hf_err *err)
{
    int rc = give_up_call(move, err);
    return rc ? rc : cancel_now(move, input, err);
}

/* hf_turn_fail is a finish with an error to show. */
static int show_failure(struct hf_move *move, const struct hf_turn_input *input,
                        struct hf_err *err)
{
    const struct hf_outcome *outcome = input->data;
    struct hf_emit emit = { .name = "host", .code = input->code, .text = outcome->text };
    return input->code ? hf_move_error(move, &emit, err) : 0;
}

static int finish_now(struct hf_move *move, const struct hf_turn_input *input,
                      struct hf_err *err)
{
    int rc = show_failure(move, input, err);
    return rc ? rc : hf_move_end(move, input->data, err);
}

static int finish_call(struct hf_move *move, const struct hf_turn_input *input,
                       struct hf_err *err)
{
    int rc = give_up_call(move, err);
    return rc ? rc : finish_now(move, input, err);
}

/* The protocol records what is known; what is not known is recorded as unknown. A lever
 * must work even when the protocol does not: then the turn just ends. */
static int finish_after(struct hf_move *move, const struct hf_turn_input *input,
                        bool tools, struct hf_err *err)
{
    static const struct hf_exec_result gone = { .size = sizeof(gone), .unknown = true };
    struct hf_turn_body before = move->next;
    struct hf_err ignored = { 0 };
    int rc = show_failure(move, input, err);
    if (rc)
        return rc;
    move->ending = input->data;
    rc = tools ? hf_turn_mark_unknown(move, &ignored) : 0;
    if (rc == 0)
        rc = tools ? hf_move_tools_done(move, &ignored)
                   : hf_move_exec_done(move, &gone, &ignored);
    if (rc == 0)
        return 0;
    if (rc == HF_ENOMEM)
        return hf_fail_plain(err, HF_ENOMEM);
    move->next = before;
    move->next.own = move->turn->now.own;
    move->ended = move->dirty = move->tools_due = false;
    return finish_now(move, input, err);
}

static int finish_tools(struct hf_move *move, const struct hf_turn_input *input,
                        struct hf_err *err)
{
    int rc = stop(move, HF_EFFECT_CANCEL_TOOLS, err);
    return rc ? rc : finish_after(move, input, true, err);
}

static int finish_exec(struct hf_move *move, const struct hf_turn_input *input,
                       struct hf_err *err)
{
    int rc = stop(move, HF_EFFECT_CANCEL_EXEC, err);
    return rc ? rc : finish_after(move, input, false, err);
}

/* clang-format off */
#define TO(name) (1u << HF_TURN_##name)
#define TO_NEXT \
    (TO(WAITING_LLM) | TO(WAITING_TOOLS) | TO(WAITING_EXEC) | TO(WAITING_CHECKPOINT) | TO(FINISHED))
#define IN(state, event) .from = HF_TURN_##state, .on = HF_ON_##event

const struct hf_turn_rule hf_turn_rules[] = {
    { IN(PREPARING, POLL), sync_wanted, first_sync, TO(WAITING_SURFACE),
      "sync is on", "ask for the surface (update = false)" },
    { IN(PREPARING, POLL), NULL, prepare, TO_NEXT,
      "", "protocol: prepare" },
    { IN(PREPARING, CANCEL), NULL, cancel_now, TO(FINISHED),
      "", "end cancelled" },
    { IN(PREPARING, FINISH), NULL, finish_now, TO(FINISHED),
      "", "end as told" },

    { IN(PREPARE_ITERATION, POLL), sync_due, next_sync, TO(WAITING_SURFACE),
      "sync is on, not yet for this iteration", "ask for the surface (update = true)" },
    { IN(PREPARE_ITERATION, POLL), NULL, prepare, TO_NEXT,
      "", "protocol: prepare" },
    { IN(PREPARE_ITERATION, CANCEL), NULL, cancel_now, TO(FINISHED),
      "", "end cancelled" },
    { IN(PREPARE_ITERATION, FINISH), NULL, finish_now, TO(FINISHED),
      "", "end as told" },

    { IN(WAITING_SURFACE, SYNCED), NULL, take_surface, TO(PREPARE_ITERATION),
      "", "use the new surface, if there is one" },
    { IN(WAITING_SURFACE, SYNC_FAILED), NULL, sync_failed, TO(FINISHED),
      "", "emit the error; end runtime_error" },
    { IN(WAITING_SURFACE, CANCEL), NULL, cancel_now, TO(FINISHED),
      "", "end cancelled" },
    { IN(WAITING_SURFACE, FINISH), NULL, finish_now, TO(FINISHED),
      "", "end as told" },

    { IN(WAITING_LLM, LLM_DONE), reply_overflows, reply_overflowed, TO(FINISHED),
      "usage overflows", "emit the error, no usage; end runtime_error" },
    { IN(WAITING_LLM, LLM_DONE), reply_cut, end_incomplete, TO(FINISHED),
      "output limit, and the protocol takes no cut replies", "account; emit text and error; end incomplete" },
    { IN(WAITING_LLM, LLM_DONE), reply_refused, end_refused, TO(FINISHED),
      "context overflow, content filter, provider error", "account; emit text and error; end provider_error" },
    { IN(WAITING_LLM, LLM_DONE), reply_cancelled, end_reply_cancelled, TO(FINISHED),
      "cancelled", "account; emit text; end cancelled" },
    { IN(WAITING_LLM, LLM_DONE), NULL, take_reply, TO_NEXT,
      "", "account; protocol: llm_done" },
    { IN(WAITING_LLM, LLM_FAILED), error_overflows, error_overflowed, TO(FINISHED),
      "usage overflows", "emit the error, no usage; end runtime_error" },
    { IN(WAITING_LLM, LLM_FAILED), call_cancelled, end_call_cancelled, TO(FINISHED),
      "cancelled", "account; emit text; end cancelled" },
    { IN(WAITING_LLM, LLM_FAILED), call_repeatable, repeat_call, TO(WAITING_SLEEP),
      "transient, charge-safe, attempts left", "account; retract streamed text; sleep" },
    { IN(WAITING_LLM, LLM_FAILED), NULL, end_call_failed, TO(FINISHED),
      "", "account; emit text and error; end provider_error" },
    { IN(WAITING_LLM, CANCEL), NULL, cancel_call, TO(FINISHED),
      "", "cancel_llm if it was polled; end cancelled" },
    { IN(WAITING_LLM, FINISH), NULL, finish_call, TO(FINISHED),
      "", "cancel_llm if it was polled; end as told" },

    { IN(WAITING_TOOLS, TOOL_RESULTS), calls_open, keep_waiting, TO(WAITING_TOOLS),
      "some calls are still open", "emit and keep the answers" },
    { IN(WAITING_TOOLS, TOOL_RESULTS), NULL, tools_done, TO_NEXT,
      "", "emit the answers; protocol: tools_done" },
    { IN(WAITING_TOOLS, CANCEL), NULL, cancel_tools, TO(WAITING_TOOLS),
      "", "remember it; cancel_tools; the turn ends cancelled after the batch" },
    { IN(WAITING_TOOLS, FINISH), NULL, finish_tools, TO(FINISHED),
      "", "cancel_tools; open calls become unknown; protocol: tools_done; end as told" },

    { IN(WAITING_EXEC, EXEC_DONE), NULL, exec_done, TO_NEXT,
      "", "protocol: exec_done" },
    { IN(WAITING_EXEC, CANCEL), NULL, cancel_exec, TO(WAITING_EXEC),
      "", "remember it; cancel_exec; the turn ends cancelled after the cell" },
    { IN(WAITING_EXEC, FINISH), NULL, finish_exec, TO(FINISHED),
      "", "cancel_exec; the cell becomes unknown; protocol: exec_done; end as told" },

    { IN(WAITING_CHECKPOINT, CHECKPOINT), nothing_and_go_on, go_on, TO(PREPARE_ITERATION),
      "nothing delivered, another iteration planned", "go on" },
    { IN(WAITING_CHECKPOINT, CHECKPOINT), delivered_nothing, end_as_planned, TO(FINISHED),
      "nothing delivered, an end planned", "end as planned" },
    { IN(WAITING_CHECKPOINT, CHECKPOINT), after_work, deliver_and_go_on, TO(PREPARE_ITERATION),
      "after_work", "append; progress" },
    { IN(WAITING_CHECKPOINT, CHECKPOINT), grace_spent, deliver_and_end, TO(FINISHED),
      "before_completion, grace was used", "append answer and delivery; progress; end max_turns" },
    { IN(WAITING_CHECKPOINT, CHECKPOINT), NULL, deliver_and_resume, TO(PREPARE_ITERATION),
      "before_completion",
      "append answer and delivery; iteration + 1; grant grace at the limit; progress" },
    { IN(WAITING_CHECKPOINT, CANCEL), NULL, cancel_now, TO(FINISHED),
      "", "end cancelled" },
    { IN(WAITING_CHECKPOINT, FINISH), NULL, finish_now, TO(FINISHED),
      "", "end as told" },

    { IN(WAITING_SLEEP, SLEEP_NOTED), NULL, note_due, TO(WAITING_SLEEP),
      "", "keep the due time" },
    { IN(WAITING_SLEEP, SLEEP_OVER), NULL, call_again, TO(WAITING_LLM),
      "", "the same request under a new id" },
    { IN(WAITING_SLEEP, CANCEL), NULL, cancel_now, TO(FINISHED),
      "", "end cancelled" },
    { IN(WAITING_SLEEP, FINISH), NULL, finish_now, TO(FINISHED),
      "", "end as told" },
};
/* clang-format on */
const size_t hf_turn_rule_count = sizeof(hf_turn_rules) / sizeof(hf_turn_rules[0]);

/* The rules of a state are together, in the order of the states; a test keeps that so. */
static const uint8_t first_rule[] = { 0, 4, 8, 12, 23, 27, 30, 37, 41 };
_Static_assert(sizeof(first_rule) == HF_TURN_FINISHED + 1, "a first rule a state");

static size_t first_of(enum hf_turn_state state)
{
    return first_rule[state];
}

static size_t end_of(enum hf_turn_state state)
{
    return state < HF_TURN_FINISHED ? first_rule[state + 1] : hf_turn_rule_count;
}

int hf_turn_expect(const struct hf_turn *turn, enum hf_turn_event event, uint64_t id,
                   struct hf_err *err)
{
    const struct hf_turn_body *now = &turn->now;
    bool lever = event == HF_ON_CANCEL || event == HF_ON_FINISH;
    if (now->state == HF_TURN_FINISHED)
        return hf_fail(err, HF_EFINISHED, "id", "the turn has ended (%s)",
                       hf_outcome_name(now->outcome->kind));
    if (!lever && (id == 0 || now->wait.id != id))
        return hf_fail(err, HF_ESTALE, "id", "effect %llu is not out",
                       (unsigned long long)id);
    for (size_t i = first_of(now->state); i < end_of(now->state); i++)
        if (hf_turn_rules[i].on == event)
            return 0;
    return hf_fail(err, HF_ERESPONSE, "id", "effect %llu does not take %s",
                   (unsigned long long)id, hf_turn_event_name(event));
}

int hf_turn_apply(struct hf_move *move, const struct hf_turn_input *input,
                  struct hf_err *err)
{
    enum hf_turn_state state = move->turn->now.state;
    for (size_t i = first_of(state); i < end_of(state); i++) {
        const struct hf_turn_rule *rule = &hf_turn_rules[i];
        if (rule->on != input->event || (rule->guard && !rule->guard(move, input)))
            continue;
        hf_assert(rule->from == state);
        int rc = rule->act(move, input, err);
        if (rc == 0)
            hf_assert((rule->to & 1u << move->next.state) != 0);
        return rc;
    }
    return hf_fail_plain(err, HF_EINTERNAL);
}
