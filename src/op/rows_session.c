/* The operations on `session` as rows of the table (struct op): their names, inputs, answers,
 * errors, help and examples, and the functions that run them. */
#include "op/rows.h"
#include "op/session.h"
#include "op/shapes/ledger.h"
#include "op/shapes/session.h"
#include "op/shapes/wait.h"
#include "op/wait.h"

static const struct op_example create_examples[] = {
    { "a conversation for workers of the agent `helper`",
      "holdfast session create support-17 --agent helper" },
    { .what = NULL },
};

static const struct op_example send_examples[] = {
    { "a message; a repeated call with the same key sends nothing",
      "holdfast session send support-17 'Where is my parcel?' --key mail-1" },
    { "send it and wait for the answer",
      "holdfast session send support-17 'Where is my parcel?' --wait" },
    { "an image, for a model that accepts images",
      "holdfast session send support-17 'What is this?' --attach photo.png" },
    { .what = NULL },
};

static const struct op_example turn_examples[] = {
    { "the last turn", "holdfast session turn support-17" },
    { .what = NULL },
};

static const struct op_example effects_examples[] = {
    { "the effects of the last turn", "holdfast session effects support-17" },
    { .what = NULL },
};

static const struct op_example list_examples[] = {
    { "sessions with an open turn", "holdfast session list --open" },
    { .what = NULL },
};

static const struct op_example show_examples[] = {
    { "head, lease, open turn and usage", "holdfast session show support-17" },
    { .what = NULL },
};

static const struct op_example log_examples[] = {
    { "the history", "holdfast session log support-17" },
    { .what = NULL },
};

static const struct op_example inputs_examples[] = {
    { "messages and wakes, with the turn that took each",
      "holdfast session inputs support-17" },
    { .what = NULL },
};

static const struct op_example cancel_examples[] = {
    { "cancel the running turn",
      "holdfast session cancel-turn support-17 --reason 'not needed'" },
    { .what = NULL },
};

static const struct op_advice create_advice[] = {
    { HF_ECONFLICT, NULL, "read it with `session show`, or choose another id" },
    { 0, NULL, NULL },
};

static const struct op_advice send_advice[] = {
    { HF_ECONFLICT, NULL, "send other content under another key" },
    { HF_ENOTFOUND, NULL, "create it with `session create`" },
    { 0, NULL, NULL },
};

/* clang-format off */
#define PAGE BLANK(hf_session_page, .ordinal = -1, .limit = 100)

const struct op op_session_rows[] = {
    { "session.create", "create a session",
      "A repeated request returns the same session; other content under its id is "
      "refused.",
      hf_session_spec_inputs, NULL,
      BLANK(hf_session_spec, .size = sizeof(struct hf_session_spec)), create_examples,
      .answer = OP_ROW, .shape = &hf_session_shape, .facts = &hf_session_made_shape,
      .errors = op_session_errors, .advice = create_advice, .role = OP_OPERATOR,
      .route = "POST /v1/sessions", .flags = OP_STORE | OP_CREATES | OP_SHELL,
      .actor_kind = "human", .run = op_run_session_create },
    { "session.send", "send a message to a session",
      "The message is stored when the command returns, and begins a turn when a "
      "worker claims the session. With --wait the command also waits for the end of "
      "that turn, in whatever worker it runs. If the wait ends first, the command "
      "exits with 6 and the message stays in the session.",
      hf_session_send_inputs, NULL, BLANK(hf_say_request, .timeout_ms = 600000),
      send_examples, UNIT, .facts = &hf_session_sent_shape, .errors = op_session_errors,
      .advice = send_advice, .role = OP_OPERATOR,
      .route = "POST /v1/sessions/{session_id}/inputs",
      .flags = OP_MUST_EXIST | OP_CREATES | OP_SHELL, .actor_kind = "human",
      .check = op_check_say, .run = op_run_session_send },
    { "session.list", "list sessions", NULL, hf_session_list_inputs, NULL,
      BLANK(hf_session_filter, .size = sizeof(struct hf_session_filter)), list_examples,
      .answer = OP_LIST, .shape = &hf_session_shape, .errors = op_read_errors,
      READER(OP_PAGED), .route = "GET /v1/sessions", .run = op_run_session_list },
    { "session.show", "show a session with its open turn and usage", NULL,
      hf_session_show_inputs, NULL, PAGE, show_examples, .answer = OP_ROW,
      .shape = &hf_session_shape, .facts = &hf_session_shown_shape,
      .errors = op_get_errors, READER(0), .route = "GET /v1/sessions/{session_id}",
      .run = op_run_session_show },
    { "session.turn", "show one turn as a timeline",
      "Prints its model calls and tool calls with attempts and results, its usage and "
      "its outcome.",
      hf_session_turn_inputs, NULL, BLANK(hf_session_turn_request, .name = NULL),
      turn_examples, .answer = OP_ROW, .shape = &hf_session_turn_shape,
      .facts = &hf_session_turned_shape, .errors = op_get_errors, READER(0),
      .route = "GET /v1/sessions/{session_id}/turn", .run = op_run_session_turn },
    { "session.effects", "list the effects of one turn",
      "Prints the effect journal: each effect that was begun, its outcome, and "
      "effects that were taken over from a lost worker.",
      hf_session_turn_inputs, NULL, BLANK(hf_session_turn_request, .name = NULL),
      effects_examples, .answer = OP_LIST, .shape = &hf_session_effect_shape,
      .errors = op_get_errors, READER(0),
      .route = "GET /v1/sessions/{session_id}/effects", .run = op_run_session_effects },
    { "session.log", "print the history of a session",
      "Prints committed records, followed by those that the open turn has stored so far.",
      hf_session_log_inputs, NULL, PAGE, log_examples, .answer = OP_LIST,
      .shape = &hf_node_shape, .errors = op_get_errors, READER(OP_PAGED),
      .route = "GET /v1/sessions/{session_id}/log", .run = op_run_session_log },
    { "session.inputs", "list the inputs of a session", NULL,
      hf_session_inputs_inputs, NULL, PAGE, inputs_examples, .answer = OP_LIST,
      .shape = &hf_session_input_shape, .errors = op_get_errors, READER(OP_PAGED),
      .route = "GET /v1/sessions/{session_id}/inputs", .run = op_run_session_inputs },
    { "session.cancel-turn", "cancel a turn of a session",
      "A waiting turn ends at once, a turn that has not begun never begins, and a "
      "running turn is ended by its worker. The answer is requested, "
      "already_requested or completed_before.",
      hf_turn_cancel_inputs, NULL,
      BLANK(hf_session_cancel, .size = sizeof(struct hf_session_cancel)), cancel_examples,
      .shape = &hf_turn_cancel_shape, .errors = op_session_errors, .role = OP_OPERATOR,
      .route = "POST /v1/sessions/{session_id}/cancel-turn",
      .flags = OP_MUST_EXIST | OP_SHELL, .actor_kind = "human", .run = op_run_cancel_turn },
    { .name = NULL },
};
/* clang-format on */
