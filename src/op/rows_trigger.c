/* The operations on `trigger` as rows of the table (struct op): their names, inputs, answers,
 * errors, help and examples, and the functions that run them. */
#include "op/overview.h"
#include "op/rows.h"
#include "op/shapes/ledger.h"
#include "op/shapes/trigger.h"
#include "op/trigger.h"

static const struct op_example subscribe_examples[] = {
    { "a command for every upload; it reads the occurrence from HOLDFAST_INPUT",
      "holdfast trigger subscribe thumbs --source-type upload --source-key photos -- "
      "./thumbnail.sh" },
    { "a triage job for every mail, and wake the session that asked for it",
      "holdfast trigger subscribe new-mail --source-type mail --source-key inbox --kind "
      "triage --template '{\"from\":{\"$event\":\"from\"}}' --wake-session s1" },
    { .what = NULL },
};
static const struct op_example update_examples[] = {
    { "change the kind of the target, if the revision is still 1",
      "holdfast trigger update new-mail --revision 1 --source-type mail --source-key "
      "inbox --kind sort" },
    { .what = NULL },
};
static const struct op_example enable_examples[] = {
    { "deliver again", "holdfast trigger enable new-mail" },
    { .what = NULL },
};
static const struct op_example disable_examples[] = {
    { "pause deliveries", "holdfast trigger disable new-mail" },
    { .what = NULL },
};
static const struct op_example remove_examples[] = {
    { "end the subscription; its history stays", "holdfast trigger remove new-mail" },
    { .what = NULL },
};
static const struct op_example revive_examples[] = {
    { "after all", "holdfast trigger revive new-mail" },
    { .what = NULL },
};
static const struct op_example show_examples[] = {
    { "one subscription with its target", "holdfast trigger show new-mail" },
    { .what = NULL },
};
static const struct op_example list_examples[] = {
    { "subscriptions to mail", "holdfast trigger list --source-type mail" },
    { .what = NULL },
};
static const struct op_example emit_examples[] = {
    { "a mail came; a repeated call starts nothing",
      "holdfast trigger emit --source-type mail --source-key inbox --idempotency-key "
      "msg-17 --payload '{\"from\":\"ann\"}'" },
    { .what = NULL },
};
static const struct op_example deliveries_examples[] = {
    { "the units that it started", "holdfast trigger deliveries \"$OCCURRENCE\"" },
    { .what = NULL },
};
static const struct op_example granted_examples[] = {
    { "the units that a session may see", "holdfast trigger granted s1" },
    { .what = NULL },
};

static const struct op_advice advice[] = {
    { HF_ECONFLICT, "revision", "read it with `trigger show`, then pass its revision" },
    { HF_ECONFLICT, "key",
      "choose another key, or use `trigger update` or `trigger revive`" },
    { HF_ETRANSITION, NULL, "read it with `trigger show`" },
    { 0, NULL, NULL },
};

/* clang-format off */
#define REQUEST                                                                          \
    BLANK(hf_subscribe_request,                                                          \
          .wanted = { .size = sizeof(struct hf_subscription_spec), .priority = -1 })
#define CHANGES                                                                          \
    .answer = OP_ROW, .shape = &hf_subscription_shape, .facts = &hf_changed_shape,       \
    .role = OP_OPERATOR, .actor_kind = "human", .advice = advice
#define ALTERS(verb_)                                                                    \
    BLANK(hf_trigger_change, .size = sizeof(struct hf_trigger_change),                   \
          .verb = HF_TRIGGER_##verb_)
#define ROUTE "/v1/triggers/{subscription_key}"

static const struct op_example occurrences_examples[] = {
    { "the latest occurrences", "holdfast trigger occurrences --limit 20" },
    { .what = NULL },
};

const struct op op_trigger_rows[] = {
    { "trigger.subscribe", "start a target for each occurrence of a source",
      "From now on every occurrence of the source creates one unit of work: its "
      "source is control, its source id the subscription, its run id the occurrence. "
      "A command after -- gets the data of the occurrence as JSON in HOLDFAST_INPUT. "
      "The same definition again changes nothing.",
      hf_subscribe_inputs, op_command_inputs, REQUEST, subscribe_examples, CHANGES,
      .errors = op_create_errors, .route = "POST /v1/triggers", .flags = OP_STORE,
      .did = "subscribed", .check = op_check_subscribe, .run = op_run_subscribe },
    { "trigger.update", "replace the definition of a subscription",
      "Replaces source and target together, if the subscription still has the given "
      "revision. It stays enabled or disabled.",
      hf_trigger_update_inputs, op_command_inputs, REQUEST, update_examples, CHANGES,
      .errors = op_operator_errors, .route = "PUT " ROUTE, .flags = OP_MUST_EXIST,
      .did = "updated", .check = op_check_subscribe, .run = op_run_trigger_update },
    { "trigger.enable", "resume the deliveries to a subscription", NULL, hf_trigger_change_inputs,
      NULL, ALTERS(ENABLE), enable_examples, CHANGES, .errors = op_operator_errors,
      .route = "POST " ROUTE "/enable", .flags = OP_MUST_EXIST, .did = "enabled",
      .run = op_run_trigger_change },
    { "trigger.disable", "pause the deliveries to a subscription", NULL,
      hf_trigger_change_inputs, NULL, ALTERS(DISABLE), disable_examples, CHANGES,
      .errors = op_operator_errors, .route = "POST " ROUTE "/disable",
      .flags = OP_MUST_EXIST, .did = "disabled", .run = op_run_trigger_change },
    { "trigger.remove", "end a subscription; its history stays",
      "Units that it started continue. The key can be revived, and cannot be used for "
      "another subscription.",
      hf_trigger_change_inputs, NULL, ALTERS(REMOVE), remove_examples, CHANGES,
      .errors = op_operator_errors, .route = "POST " ROUTE "/remove",
      .flags = OP_MUST_EXIST, .did = "removed", .run = op_run_trigger_change },
    { "trigger.revive", "revive a removed subscription", NULL,
      hf_trigger_change_inputs, NULL, ALTERS(REVIVE), revive_examples, CHANGES,
      .errors = op_operator_errors, .route = "POST " ROUTE "/revive",
      .flags = OP_MUST_EXIST, .did = "revived", .run = op_run_trigger_change },
    { "trigger.list", "list subscriptions", NULL, hf_trigger_list_inputs, NULL,
      BLANK(hf_trigger_filter, .size = sizeof(struct hf_trigger_filter)), list_examples,
      .answer = OP_LIST, .shape = &hf_subscription_shape, .errors = op_read_errors,
      READER(OP_PAGED), .route = "GET /v1/triggers", .run = op_run_trigger_list },
    { "trigger.show", "show a subscription", NULL, hf_trigger_show_inputs, NULL,
      BLANK(hf_trigger_change, .key = NULL), show_examples, .answer = OP_ROW,
      .shape = &hf_subscription_shape, .errors = op_get_errors, READER(0),
      .route = "GET " ROUTE, .run = op_run_trigger_show },
    { "trigger.emit", "emit an occurrence",
      "One transaction stores the occurrence and starts the target of every enabled "
      "subscription that matches. The same key again starts nothing and prints the "
      "deliveries of the first call; with other content it is refused with exit code "
      "7. If a template names a member that the payload lacks, nothing is stored and "
      "the exit code is 2.",
      hf_emit_inputs, NULL,
      BLANK(hf_occurrence_spec, .size = sizeof(struct hf_occurrence_spec)), emit_examples,
      .answer = OP_LIST, .shape = &hf_delivery_shape, .facts = &hf_emission_shape,
      .errors = op_create_errors, .role = OP_WORKER, .route = "POST /v1/occurrences",
      .flags = OP_STORE, .actor_kind = "webhook", .run = op_run_emit },
    { "trigger.deliveries", "list the units that an occurrence started", NULL, hf_deliveries_inputs, NULL,
      BLANK(hf_read_request, .id = NULL), deliveries_examples, .answer = OP_LIST,
      .shape = &hf_delivery_shape, .facts = &hf_emission_shape, .errors = op_get_errors,
      READER(0), .route = "GET /v1/occurrences/{occurrence_id}/deliveries",
      .run = op_run_deliveries },
    { "trigger.occurrences", "list occurrences, newest first",
      "Each occurrence is printed with the units that it started and their status.", hf_occurrence_inputs, NULL,
      BLANK(hf_occurrence_filter, .size = sizeof(struct hf_occurrence_filter)),
      .examples = occurrences_examples, .answer = OP_LIST, .shape = &hf_occurrence_shape,
      .errors = op_read_errors, READER(OP_PAGED), .route = "GET /v1/occurrences",
      .run = op_run_occurrences },
    { "trigger.granted", "list the units that a session was granted", NULL, hf_granted_inputs,
      NULL, BLANK(hf_read_request, .id = NULL), granted_examples, UNITS,
      .errors = op_read_errors, READER(OP_FIELD | OP_PAGED),
      .route = "GET /v1/sessions/{session_id}/granted", .run = op_run_granted },
    { .name = NULL },
};
/* clang-format on */
