/* The operations on `effect` as rows of the table (struct op): their names, inputs, answers,
 * errors, help and examples, and the functions that run them. */
#include "op/effect.h"
#include "op/rows.h"
#include "op/shapes/effect.h"

static const struct op_example list_examples[] = {
    { "effects that need a person", "holdfast effect list" },
    { .what = NULL },
};

static const struct op_example resolve_examples[] = {
    { "it happened", "holdfast effect resolve operation june invoice-17 --status done "
                     "--outcome '{\"paid\":true}'" },
    { "it did not happen", "holdfast effect resolve operation june invoice-17 "
                           "--status failed --reason 'no such payment'" },
    { "it cannot be found out", "holdfast effect resolve operation june invoice-17 "
                                "--status unknown --reason 'the bank is closed'" },
    { .what = NULL },
};

static const struct op_advice resolve_advice[] = {
    { HF_EHELD, NULL, "wait until its holder has stored the outcome, or lost its lease" },
    { HF_ECONFLICT, NULL, "nothing: the outcome is known" },
    { 0, NULL, NULL },
};

/* clang-format off */
const struct op op_effect_rows[] = {
    { "effect.list", "list effects that need a person",
      "Lists effects of processes and operations of which it is not known whether they "
      "happened: those that their host settled as unknown, and those that a lost holder "
      "left open and that no host may begin again. Effects of turns are listed by "
      "`session effects`.",
      hf_effect_list_inputs, NULL, BLANK(hf_effect_page, .limit = 100), list_examples,
      .answer = OP_LIST, .shape = &hf_effect_shape, .errors = op_read_errors,
      READER(OP_PAGED), .route = "GET /v1/effects", .run = op_run_effect_list },
    { "effect.resolve", "say what became of an effect",
      "Stores the outcome and who said it. The host gets it when it begins the effect "
      "again. With --status unknown the effect stays unknown, and `attention` does not "
      "list it any more.",
      hf_effect_resolve_inputs, NULL,
      BLANK(hf_journal_resolve, .size = sizeof(struct hf_journal_resolve)),
      resolve_examples, .answer = OP_ROW, .shape = &hf_effect_shape,
      .errors = op_effect_errors, .advice = resolve_advice, .role = OP_OPERATOR,
      .actor_kind = "human", .did = "resolved",
      .flags = OP_MUST_EXIST | OP_SHELL, .route = "POST /v1/effects/resolve",
      .check = op_check_effect_resolve, .run = op_run_effect_resolve },
    { .name = NULL },
};
/* clang-format on */
