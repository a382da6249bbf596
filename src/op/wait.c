/* The operations on waits: list and show them, answer them (resolve, approve, deny), revoke
 * them, and make their keys; and the cancel of a turn. A wait is one thing that a turn of a session
 * waits for. */
#include "op/wait.h"

#include <string.h>

#include "core/wait/wait.h"
#include "op/shapes/wait.h"

/* ---- looking ------------------------------------------------------------------------ */

int op_run_wait_list(struct op_call *call)
{
    const struct op_sink *sink = call->out->sink;
    struct hf_wait_answer *answer = NULL;
    struct op_list list = {
        .key = "items", .shape = &hf_wait_shape, .none = "nothing waits", .paged = true
    };
    int rc = hf_wait_list(call->store, &call->who, call->in, &answer, call->err);
    if (rc == 0) {
        list.next = answer->next;
        sink->begin(call->out, &list);
    }
    for (size_t i = 0; rc == 0 && i < answer->wait_count; i++)
        rc = sink->item(call->out, &(struct op_row){ .shape = &hf_wait_shape,
                                                     .at = &answer->waits[i] });
    if (rc == 0)
        rc = sink->end(call->out, &list);
    hf_wait_answer_free(answer);
    return rc;
}

int op_run_wait_show(struct op_call *call)
{
    const struct hf_wait_request *in = call->in;
    struct hf_wait_answer *answer = NULL;
    int rc = hf_wait_get(call->store, &call->who, in->wait_id, &answer, call->err);
    if (rc == 0)
        rc = op_row(call, answer->waits);
    hf_wait_answer_free(answer);
    return rc;
}

/* ---- answering ---------------------------------------------------------------------- */

int op_wait_id(struct op_call *call, const char *given, const char **ret_id,
               struct hf_err *err)
{
    struct hf_wait_place place;
    struct hf_wait_answer *answer = NULL;
    *ret_id = given;
    if (!given || hf_wait_id_read(given, &place))
        return 0;
    int rc = hf_wait_get(call->store, &call->who, given, &answer, err);
    if (rc == 0) {
        *ret_id = hf_arena_text(call->arena, answer->waits->wait_id);
        rc = *ret_id ? 0 : hf_fail(err, HF_ENOMEM, NULL, "out of memory");
    }
    hf_wait_answer_free(answer);
    return rc;
}

static int answer_with(struct op_call *call, enum hf_wait_word word)
{
    const struct hf_wait_request *in = call->in;
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .key = in->key,
                                       .word = word,
                                       .value = in->value,
                                       .reason = in->reason };
    struct hf_wait_answer *answer = NULL;
    int rc = op_wait_id(call, in->wait_id, &request.wait_id, call->err);
    if (rc == 0)
        rc = hf_wait_resolve(call->store, &call->who, &request, &answer, call->err);
    if (rc == 0) {
        op_bool(call, "accepted", answer->accepted);
        const struct op_row row = { .shape = &hf_wait_shape,
                                    .key = "wait",
                                    .at = answer->waits,
                                    .did = answer->accepted ? "answered"
                                                            : "ended before:" };
        rc = call->out->sink->row(call->out, &row);
    }
    hf_wait_answer_free(answer);
    return rc;
}

int op_run_wait_resolve(struct op_call *call)
{
    const struct hf_wait_request *in = call->in;
    return answer_with(call, in->word);
}

int op_run_approve(struct op_call *call)
{
    return answer_with(call, HF_ANSWER_APPROVE);
}

int op_run_deny(struct op_call *call)
{
    return answer_with(call, HF_ANSWER_DENY);
}

int op_run_wait_revoke(struct op_call *call)
{
    struct hf_wait_revoke request = *(const struct hf_wait_revoke *)call->in;
    struct hf_wait_answer *answer = NULL;
    int rc = op_wait_id(call, request.wait_id, &request.wait_id, call->err);
    if (rc == 0)
        rc = hf_wait_revoke(call->store, &call->who, &request, &answer, call->err);
    if (rc == 0) {
        op_i64(call, "revoked", answer->revoked);
        op_say(call, "revoked: %lld", (long long)answer->revoked);
    }
    hf_wait_answer_free(answer);
    return rc;
}

/* ---- keys --------------------------------------------------------------------------- */

int op_run_wait_key(struct op_call *call)
{
    const struct hf_wait_request *in = call->in;
    const char *id = NULL;
    char key[HF_WAIT_KEY_TEXT];
    int rc = op_wait_id(call, in->wait_id, &id, call->err);
    if (rc == 0)
        rc = hf_wait_key(call->store, id, key, call->err);
    if (rc == 0) {
        op_text(call, "key", key);
        op_say(call, "%s", key);
    }
    return rc;
}

int op_run_wait_rotate(struct op_call *call)
{
    const struct hf_wait_request *in = call->in;
    int rc = hf_wait_rotate(call->store, &call->who, in->valid_ms, call->err);
    if (rc == 0) {
        op_bool(call, "rotated", true);
        op_say(call, "new keys are made with another secret");
    }
    return rc;
}

/* ---- turns -------------------------------------------------------------------------- */

/* The open turn, where the request names none. */
static int open_turn(struct op_call *call, struct hf_session_cancel *request)
{
    struct hf_session_answer *answer = NULL;
    if (request->turn_id)
        return 0;
    int rc = hf_session_head(call->store, request->session_id, &answer, call->err);
    if (rc == 0 && !answer->sessions->turn_id)
        rc = hf_fail(call->err, HF_ENOTFOUND, "turn_id",
                     "session %.100s has no open turn: name one, such as an input of "
                     "`session inputs`",
                     request->session_id);
    if (rc == 0) {
        request->turn_id = hf_arena_text(call->arena, answer->sessions->turn_id);
        rc = request->turn_id ? 0 : hf_fail(call->err, HF_ENOMEM, NULL, "out of memory");
    }
    hf_session_answer_free(answer);
    return rc;
}

int op_run_cancel_turn(struct op_call *call)
{
    struct hf_session_cancel request = *(const struct hf_session_cancel *)call->in;
    enum hf_session_turn_cancel got = HF_TURN_CANCEL_COUNT;
    int rc = open_turn(call, &request);
    if (rc == 0)
        rc = hf_session_cancel_turn(call->store, &call->who, &request, &got, call->err);
    if (rc == 0) {
        op_text(call, "answer", hf_session_turn_cancel_word(got));
        op_say(call, "%s", hf_session_turn_cancel_word(got));
    }
    return rc;
}
