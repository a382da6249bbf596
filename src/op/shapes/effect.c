/* The shape of effects of processes and operations: which fields are shown, in their order, with
 * the text that documents each. JSON and tables are made from it. */
#include "op/shapes/effect.h"

/* clang-format off */
#define TEXT(member, ...) HF_FIELD(TEXT, hf_journal_effect, member, false, __VA_ARGS__)
#define JSON(member, ...) HF_FIELD(JSON, hf_journal_effect, member, false, __VA_ARGS__)
#define MS(member, ...)   HF_FIELD(I64, hf_journal_effect, member, true, __VA_ARGS__)

static const char *const scope_words[] = { "process", "operation", NULL };
static const char *const recovery_words[] = { "safe", "keyed", "probe", "ask", NULL };
static const char *const status_words[] = { "started", "done", "failed", "unknown", NULL };

static const struct hf_field effect_fields[] = {
    TEXT(scope, "what the effect belongs to", .words = scope_words),
    TEXT(scope_id, "id of the process, or name of the operation"),
    TEXT(key, "key of the effect in its scope"),
    TEXT(tenant, "tenant; empty: none"),
    TEXT(kind, "kind of the effect, as its host named it"),
    TEXT(recovery, "declared class", .words = recovery_words),
    TEXT(status, "status; started: its holder was lost", .words = status_words),
    TEXT(owner, "the last holder"),
    JSON(envelope, "what was performed; null: longer than 2,048 characters"),
    JSON(outcome, "outcome; null: none, or longer than 2,048 characters"),
    JSON(known, "of a resolved effect: its outcome before; null: none, or longer"),
    MS(started_at, "time at which it was begun"),
    MS(settled_at, "time at which its outcome was stored; null: there is none"),
    MS(resolved_at, "time at which an operator said what became of it; null: none did"),
    TEXT(actor_kind, "kind of the actor that resolved it"),
    TEXT(actor, "the actor that resolved it"),
};
const struct hf_shape hf_effect_shape = HF_SHAPE("effect", effect_fields);
/* clang-format on */
