/* The operations on `wait` as rows of the table (struct op): their names, inputs, answers, errors,
 * help and examples, and the functions that run them. */
#include "op/rows.h"
#include "op/shapes/wait.h"
#include "op/wait.h"

static const struct op_example list_examples[] = {
    { "open waits, the next deadline first", "holdfast wait list" },
    { "all waits of a session", "holdfast wait list --session support-17 --closed" },
    { .what = NULL },
};

static const struct op_example show_examples[] = {
    { "one wait, by a part of its id", "holdfast wait show 4c1f" },
    { .what = NULL },
};

static const struct op_example resolve_examples[] = {
    { "the result of a deferred call",
      "holdfast wait resolve 4c1f --value '{\"paid\":true}'" },
    { "report that it failed",
      "holdfast wait resolve 4c1f --answer error --reason 'no such account'" },
    { .what = NULL },
};

static const struct op_example revoke_examples[] = {
    { "all waits of a session", "holdfast wait revoke --session support-17" },
    { .what = NULL },
};

static const struct op_example key_examples[] = {
    { "for a program without access to the store", "holdfast wait key 4c1f" },
    { .what = NULL },
};

static const struct op_example rotate_examples[] = {
    { "earlier keys stay valid for one more hour", "holdfast wait rotate --valid 1h" },
    { .what = NULL },
};

/* clang-format off */
#define WAIT BLANK(hf_wait_request, .valid_ms = 86400000)
#define WRITER(more)                                                                     \
    .role = OP_OPERATOR, .actor_kind = "human",                                          \
    .flags = OP_MUST_EXIST | OP_SHELL | (more)

const struct op op_wait_rows[] = {
    { "wait.list", "list the waits of turns", NULL, hf_waits_list_inputs, NULL,
      BLANK(hf_wait_filter, .size = sizeof(struct hf_wait_filter)), list_examples,
      .answer = OP_LIST, .shape = &hf_wait_shape, .errors = op_read_errors, READER(OP_PAGED),
      .route = "GET /v1/waits", .run = op_run_wait_list },
    { "wait.show", "show one wait", NULL, hf_waits_show_inputs, NULL, WAIT, show_examples,
      .answer = OP_ROW, .shape = &hf_wait_shape, .errors = op_get_errors, READER(0),
      .route = "GET /v1/waits/{wait_id}", .run = op_run_wait_show },
    { "wait.resolve", "answer a wait",
      "The first answer is final; a later one gets the outcome and accepted: false. "
      "An approval is answered by approve or deny, any other wait by ok or error.",
      hf_waits_resolve_inputs, NULL, WAIT, resolve_examples, .answer = OP_ROW,
      .shape = &hf_wait_shape, .facts = &hf_wait_resolved_shape, .errors = op_answer_errors,
      WRITER(0), .route = "POST /v1/waits/resolve", .run = op_run_wait_resolve },
    { "wait.revoke", "revoke waits",
      "Turns continue with the outcome cancelled, and keys of these waits are refused "
      "from now on. The turn itself is not cancelled: use `session cancel-turn` for "
      "that.",
      hf_waits_revoke_inputs, NULL,
      BLANK(hf_wait_revoke, .size = sizeof(struct hf_wait_revoke)), revoke_examples,
      .shape = &hf_wait_revoked_shape, .errors = op_answer_errors, WRITER(0),
      .route = "POST /v1/waits/revoke", .run = op_run_wait_revoke },
    { "wait.key", "print the key that answers a wait",
      "A program with the key can answer this wait and no other. The key stays the "
      "same until "
      "the secret is rotated.",
      hf_waits_show_inputs, NULL, WAIT, key_examples, .shape = &hf_wait_key_shape,
      .errors = op_answer_errors, WRITER(0), .route = "POST /v1/waits/{wait_id}/key",
      .run = op_run_wait_key },
    { "wait.rotate", "create keys with a new secret",
      "Keys of the previous secret stay valid for --valid; older keys are refused.",
      hf_waits_rotate_inputs, NULL, WAIT, rotate_examples, .shape = &hf_wait_rotated_shape,
      .errors = op_write_errors, WRITER(0), .route = "POST /v1/waits/rotate",
      .run = op_run_wait_rotate },
    { .name = NULL },
};
/* clang-format on */
