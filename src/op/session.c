/* The operations on sessions. A session is a conversation with an agent: its history is a
 * list of records, its inputs are messages and wakes, and a turn is the work on one of them. */
#include "op/session.h"

#include <string.h>

#include <holdfast/attach.h>
#include <holdfast/process.h>
#include <holdfast/turn_json.h>

#include "op/shapes/session.h"

/* ---- create and send --------------------------------------------------------------- */

int op_run_session_create(struct op_call *call)
{
    struct hf_session_answer *answer = NULL;
    int rc = hf_session_create(call->store, &call->who, call->in, &answer, call->err);
    const struct op_row row = { .shape = &hf_session_shape,
                                .key = "session",
                                .at = rc ? NULL : answer->sessions,
                                .did = rc == 0 && answer->created ? "created"
                                                                  : "exists already:" };
    if (rc == 0)
        op_bool(call, "created", answer->created);
    if (rc == 0)
        rc = call->out->sink->row(call->out, &row);
    hf_session_answer_free(answer);
    return rc;
}

int op_check_say(struct op_call *call)
{
    const struct hf_say_request *in = call->in;
    bool said = in->text || in->attach_count > 0;
    if (said == (in->message != NULL))
        return op_fail(call, HF_EINVAL, "{text}",
                       "one of {text} and {message} is needed");
    return 0;
}

/* How a turn ended, as a row of its own. */
static int say_answer(struct op_call *call, const struct hf_session_answer *turned)
{
    const struct hf_session_turn *turn = turned->turn;
    struct hf_turn_answer answer = { .turn_id = turn->turn_id };
    const struct op_row row = {
        .key = "answer", .shape = &hf_turn_answer_shape, .at = &answer, .did = "answered"
    };
    struct hf_decoded *owner = NULL;
    const struct hf_outcome *outcome = NULL;
    struct hf_span json = { turn->outcome, turn->outcome ? strlen(turn->outcome) : 0 };
    int rc = turn->outcome ? hf_outcome_decode(NULL, json, &owner, &outcome, call->err)
                           : 0;
    if (rc == 0 && outcome) {
        struct hf_span text = outcome->text.len ? outcome->text : outcome->value;
        answer.outcome = hf_outcome_name(outcome->kind);
        answer.text = text.at ? hf_arena_copy(call->arena, text.at, text.len) : NULL;
    }
    for (size_t i = 0; i < turned->usage_count; i++) {
        answer.input += turned->usage[i].usage.input;
        answer.output += turned->usage[i].usage.output;
    }
    if (rc == 0)
        rc = call->out->sink->row(call->out, &row);
    hf_decoded_free(owner);
    return rc;
}

/* The unit once its turn has ended, and how. */
static int await_turn(struct op_call *call, const struct hf_say_request *in,
                      const char *work_id, bool created)
{
    struct hf_answer *ended = NULL;
    struct hf_session_answer *turned = NULL;
    int rc = hf_process_await(call->store, &call->who, work_id, in->timeout_ms, &ended,
                              call->err);
    if (rc == HF_EBUSY)
        call->action =
            "look at it with `holdfast session inputs`; a `holdfast worker` must be "
            "running that serves the session's agent";
    if (rc == HF_EBUSY)
        return op_fail(call, rc, NULL,
                       "the turn has not ended yet; input %s stays in the session",
                       work_id);
    if (rc)
        return rc;
    struct hf_item item = *hf_answer_at(ended, 0);
    item.created = created;
    rc = op_unit(call, &item, created ? "sent" : "sent before:");
    if (rc == 0)
        rc = hf_session_turn(call->store, in->session_id, work_id, &turned, call->err);
    if (rc == 0)
        rc = say_answer(call, turned);
    else if (rc == HF_ENOTFOUND)
        rc = 0; /* it was cancelled before a turn began */
    hf_session_answer_free(turned);
    hf_answer_free(ended);
    return rc;
}

int op_run_session_send(struct op_call *call)
{
    const struct hf_say_request *in = call->in;
    struct hf_session_send request = { .size = sizeof(request),
                                       .session_id = in->session_id,
                                       .source_key = in->source_key,
                                       .message = in->message };
    /* The id is the key, so that the same request is the same record. */
    const struct hf_user_message said = { .size = sizeof(said),
                                          .id = in->source_key,
                                          .text = in->text,
                                          .paths = in->attach,
                                          .path_count = in->attach_count };
    struct hf_answer *answer = NULL;
    char *message = NULL;
    int rc = in->message ? 0
                         : hf_user_message_write(call->store, &said, &message, call->err);
    if (message)
        request.message = message;
    if (rc == 0)
        rc = hf_session_send(call->store, &call->who, &request, &answer, call->err);
    const struct hf_item *item = rc ? NULL : hf_answer_at(answer, 0);
    if (rc == 0 && in->wait)
        rc = await_turn(call, in, item->work.work_id, item->created);
    else if (rc == 0)
        rc = op_unit(call, item, item->created ? "sent" : "sent before:");
    hf_store_text_free(call->store, message);
    hf_answer_free(answer);
    return rc;
}

/* ---- looking ----------------------------------------------------------------------- */

/* The rows of one kind of an answer as a list; each row is `stride` bytes. */
static int say_rows(struct op_call *call, const struct op_list *list, const void *rows,
                    size_t count, size_t stride)
{
    const struct op_sink *sink = call->out->sink;
    int rc = 0;
    sink->begin(call->out, list);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct op_row row = { .shape = list->shape,
                                    .at = (const char *)rows + i * stride,
                                    .did = list->did };
        rc = sink->item(call->out, &row);
    }
    return rc ? rc : sink->end(call->out, list);
}

/* The first page that has a row. */
static int sessions_page(struct op_call *call, struct hf_session_answer **ret)
{
    struct hf_session_filter filter = *(const struct hf_session_filter *)call->in;
    struct hf_session_answer *page = NULL;
    int rc = 0;
    do {
        struct hf_session_answer *before = page; /* whose cursor it continues */
        page = NULL;
        filter.after = before ? before->next : filter.after;
        rc = hf_session_list(call->store, &call->who, &filter, &page, call->err);
        hf_session_answer_free(before);
    } while (rc == 0 && page->session_count == 0 && page->next);
    if (rc == 0)
        *ret = page;
    return rc;
}

int op_run_session_list(struct op_call *call)
{
    struct hf_session_answer *answer = NULL;
    struct op_list list = {
        .key = "items", .shape = &hf_session_shape, .none = "no sessions", .paged = true
    };
    int rc = sessions_page(call, &answer);
    if (rc == 0) {
        list.next = answer->next;
        rc = say_rows(call, &list, answer->sessions, answer->session_count,
                      sizeof(answer->sessions[0]));
    }
    hf_session_answer_free(answer);
    return rc;
}

static int say_shown(struct op_call *call, const struct hf_session_answer *answer)
{
    const struct op_list usage = { .key = "usage",
                                   .shape = &hf_session_usage_shape,
                                   .did = "usage" };
    const struct op_row turn = { .key = "turn",
                                 .shape = &hf_session_turn_shape,
                                 .at = answer->turn };
    int rc = op_row(call, answer->sessions);
    if (rc == 0 && answer->turn)
        rc = call->out->sink->row(call->out, &turn);
    return rc ? rc
              : say_rows(call, &usage, answer->usage, answer->usage_count,
                         sizeof(answer->usage[0]));
}

int op_run_session_show(struct op_call *call)
{
    const struct hf_session_page *in = call->in;
    const struct hf_session_load request = { .size = sizeof(request),
                                             .session_id = in->session_id,
                                             .limit = 1 };
    struct hf_session_answer *answer = NULL;
    int rc = hf_session_load(call->store, &request, &answer, call->err);
    if (rc == 0)
        rc = say_shown(call, answer);
    hf_session_answer_free(answer);
    return rc;
}

static const struct op_list effect_list = { .key = "effects",
                                            .shape = &hf_session_effect_shape,
                                            .none = "no effects" };

int op_run_session_turn(struct op_call *call)
{
    const struct hf_session_turn_request *in = call->in;
    const struct op_list usage = { .key = "usage",
                                   .shape = &hf_session_usage_shape,
                                   .did = "usage" };
    struct hf_session_answer *turned = NULL;
    int rc = hf_session_turn(call->store, in->session_id, in->name, &turned, call->err);
    if (rc)
        return rc;
    rc = op_row(call, turned->turn);
    if (rc == 0)
        rc = say_rows(call, &effect_list, turned->effects, turned->effect_count,
                      sizeof(turned->effects[0]));
    if (rc == 0)
        rc = say_rows(call, &usage, turned->usage, turned->usage_count,
                      sizeof(turned->usage[0]));
    if (rc == 0)
        rc = say_answer(call, turned);
    hf_session_answer_free(turned);
    return rc;
}

int op_run_session_effects(struct op_call *call)
{
    const struct hf_session_turn_request *in = call->in;
    struct hf_session_answer *turned = NULL;
    struct op_list list = effect_list;
    int rc = hf_session_turn(call->store, in->session_id, in->name, &turned, call->err);
    list.key = "items";
    if (rc == 0)
        rc = say_rows(call, &list, turned->effects, turned->effect_count,
                      sizeof(turned->effects[0]));
    hf_session_answer_free(turned);
    return rc;
}

/* A later page is of the head as it is now: records up to it never change. No answer: there are
 * none behind the one that was named. */
static int load_page(struct op_call *call, const struct hf_session_page *in,
                     struct hf_session_answer **ret_answer)
{
    struct hf_session_load request = { .size = sizeof(request),
                                       .session_id = in->session_id,
                                       .limit = (size_t)in->limit,
                                       .from_ordinal = in->ordinal + 1 };
    struct hf_session_answer *head = NULL;
    int rc = request.from_ordinal
                 ? hf_session_head(call->store, in->session_id, &head, call->err)
                 : 0;
    if (rc == 0 && head) {
        request.head_revision = head->sessions[0].head_revision;
        request.record_count = head->sessions[0].record_count;
    }
    if (rc == 0 && (!head || request.from_ordinal < request.record_count))
        rc = hf_session_load(call->store, &request, ret_answer, call->err);
    hf_session_answer_free(head);
    return rc;
}

/* Committed records, and behind the last page what the open turn has stored. */
int op_run_session_log(struct op_call *call)
{
    struct hf_session_answer *answer = NULL;
    const struct op_sink *sink = call->out->sink;
    struct op_list list = {
        .key = "items", .shape = &hf_node_shape, .none = "no records", .paged = true
    };
    int rc = load_page(call, call->in, &answer);
    if (rc)
        return rc;
    list.next_id = answer && answer->next_ordinal ? answer->next_ordinal - 1 : 0;
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && answer && i < answer->node_count; i++)
        rc = sink->item(call->out,
                        &(struct op_row){ .shape = list.shape, .at = &answer->nodes[i] });
    const struct hf_session_turn *turn = answer && !answer->next_ordinal ? answer->turn
                                                                         : NULL;
    for (size_t i = 0; rc == 0 && turn && i < turn->stored_count; i++)
        rc = sink->item(call->out,
                        &(struct op_row){ .shape = list.shape, .at = &turn->nodes[i] });
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_session_answer_free(answer);
    return rc;
}

int op_run_session_inputs(struct op_call *call)
{
    const struct hf_session_page *in = call->in;
    struct hf_session_answer *answer = NULL;
    const struct op_sink *sink = call->out->sink;
    struct op_list list = { .key = "items",
                            .shape = &hf_session_input_shape,
                            .none = "no inputs",
                            .paged = true };
    int rc = hf_session_inputs(call->store, in->session_id, in->after, (size_t)in->limit,
                               &answer, call->err);
    if (rc)
        return rc;
    if (answer->input_count == (size_t)in->limit)
        list.next = answer->inputs[answer->input_count - 1].work_id;
    sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < answer->input_count; i++) {
        const struct hf_input_shown shown = { .kind = hf_session_input_kind_word(
                                                  answer->inputs[i].kind),
                                              .input = answer->inputs[i] };
        rc = sink->item(call->out, &(struct op_row){ .shape = list.shape, .at = &shown });
    }
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_session_answer_free(answer);
    return rc;
}
