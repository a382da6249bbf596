/* The inputs of operations on effects of processes and operations. */
#include "core/inputs/inputs.h"

static const char *const scope_words[] = { "process", "operation", NULL };
static const char *const status_words[] = { "done", "failed", "unknown", NULL };

/* clang-format off */
#define END { .name = NULL }

const struct hf_input hf_effect_list_inputs[] = {
    { "limit", "N", HF_IN_INT, 0, "rows per page (default: 100)", .min = 1,
      .bound = HF_BOUND_PAGE, HF_IN_AT(hf_effect_page, limit) },
    { "after", "CURSOR", HF_IN_TEXT, 0, "continue after this cursor, from the previous page",
      HF_IN_AT(hf_effect_page, after) },
    END,
};

const struct hf_input hf_effect_resolve_inputs[] = {
    { "scope", "SCOPE", HF_IN_WORD, HF_IN_BARE | HF_IN_NEEDED, "what the effect belongs to",
      .words = scope_words, .min = HF_SCOPE_PROCESS, HF_IN_AT(hf_journal_resolve, of.scope) },
    { "scope_id", "ID", HF_IN_TEXT, HF_IN_BARE | HF_IN_NEEDED,
      "id of the process, or name of the operation", .bound = HF_BOUND_KEY_BYTES,
      HF_IN_AT(hf_journal_resolve, of.scope_id) },
    { "key", "KEY", HF_IN_TEXT, HF_IN_BARE | HF_IN_NEEDED, "key of the effect",
      .bound = HF_BOUND_KEY_BYTES, HF_IN_AT(hf_journal_resolve, of.key) },
    { "status", "WORD", HF_IN_WORD, HF_IN_NEEDED,
      "what became of it; unknown: it cannot be found out", .words = status_words,
      .min = HF_ENTRY_DONE, HF_IN_AT(hf_journal_resolve, status) },
    { "outcome", "JSON", HF_IN_JSON, 0, "the result, or the failure; or use --reason",
      .bound = HF_BOUND_PAYLOAD_BYTES, HF_IN_AT(hf_journal_resolve, outcome) },
    { "reason", "TEXT", HF_IN_TEXT, 0, "stored as the outcome {\"reason\":TEXT}",
      .bound = HF_BOUND_REASON_BYTES, HF_IN_AT(hf_journal_resolve, reason) },
    END,
};
/* clang-format on */
