/* Questions to people: a unit that waits for a person, and the word that ends its wait.
 *
 * The payload of kind "question" is {"choices":[...],"question":"..."}; without choices any text
 * is an answer. Every other unit that waits for a person can be answered too. */
#include "op/question.h"

#include <string.h>

#include "base/json.h"
#include "base/json_get.h"
#include "base/near.h"
#include "base/text.h"
#include "op/work.h"

#define LIST_ROOM 256

/* ---- choices ------------------------------------------------------------------------- */

static struct json_t *parse(const char *text)
{
    struct json_t *value = NULL;
    struct hf_span span = { text ? text : "", text ? strlen(text) : 0 };
    return hf_json_parse(span, (size_t)HF_MAX_PAYLOAD_BYTES, "payload", &value, NULL)
               ? NULL
               : value;
}

int op_choice_place(const char *payload, const char *word)
{
    struct json_t *all = parse(payload);
    const struct json_t *choices = all ? hf_json_member(all, "choices") : NULL;
    int place = choices ? -1 : 0;
    for (size_t i = 0; choices && i < hf_json_items(choices); i++)
        if (hf_same(hf_json_as_text(hf_json_item(choices, i)), word))
            place = (int)i;
    hf_json_free(all);
    return place;
}

/* "yes, no", as far as there is room, and the choice that is nearest to the word. */
static const char *list_choices(const struct json_t *choices, char out[LIST_ROOM])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < hf_json_items(choices); i++) {
        const char *text = hf_json_as_text(hf_json_item(choices, i));
        size_t len = text ? strlen(text) : 0;
        if (!text || used + len + 3 > LIST_ROOM)
            break;
        memcpy(out + used, i ? ", " : "", i ? 2 : 0);
        used += i ? 2 : 0;
        memcpy(out + used, text, len + 1);
        used += len;
    }
    return out;
}

static int refuse_word(struct op_call *call, const char *payload, const char *word)
{
    struct json_t *all = parse(payload);
    char list[LIST_ROOM] = "";
    if (all && hf_json_member(all, "choices"))
        (void)list_choices(hf_json_member(all, "choices"), list);
    hf_json_free(all);
    return op_fail(call, HF_EINVAL, "{answer}", "{answer}: \"%.60s\" is none of: %s",
                   word, list);
}

bool op_answer_text(const struct hf_work *work, struct hf_arena *arena,
                    const char **ret_text)
{
    struct json_t *value = parse(work->resume_payload);
    const char *text = value ? hf_json_as_text(value) : NULL;
    *ret_text = text ? hf_arena_text(arena, text) : NULL;
    hf_json_free(value);
    return *ret_text != NULL;
}

/* ---- answer -------------------------------------------------------------------------- */

/* The first answer is the one that counts; the same word again is no mistake. */
static int say_answered(struct op_call *call, const struct hf_item *item,
                        const char *word)
{
    const char *first = NULL;
    char what[OP_WHAT];
    if (!op_answer_text(&item->work, call->arena, &first))
        return op_fail(call, HF_ETRANSITION, NULL,
                       "\"%s\" does not wait for an answer: its status is %s",
                       op_what(&item->work, what), item->work.status);
    if (!hf_same(first, word))
        return op_fail(
            call, HF_ECONFLICT, "{answer}",
            "it was answered earlier with \"%.60s\": the first answer is final", first);
    op_note(call, "it was answered earlier with the same answer; nothing was written");
    return op_unit(call, item, "answered earlier:");
}

static int write_answer(struct op_call *call, const struct hf_work *work)
{
    const struct op_answer_request *in = call->in;
    struct hf_answer *done = NULL;
    struct hf_buf json;
    struct hf_json writer;
    hf_buf_init(&json, hf_alloc_system(), (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&writer, &json);
    hf_json_str(&writer, in->answer);
    int rc = hf_buf_state(&json);
    const struct hf_change change = { .size = sizeof(change),
                                      .verb = HF_VERB_RESUME,
                                      .id = work->work_id,
                                      .payload = hf_buf_str(&json),
                                      .reason = in->reason };
    rc = rc ? hf_fail_plain(call->err, rc)
            : hf_work_change(call->store, &call->who, &change, 1, HF_ALL_OR_NONE, &done,
                             call->err);
    if (rc == 0)
        rc = op_unit(call, hf_answer_at(done, 0), "answered");
    hf_answer_free(done);
    hf_buf_fini(&json);
    return rc;
}

int op_run_answer(struct op_call *call)
{
    struct op_answer_request *in = call->in;
    struct hf_answer *found = NULL;
    int rc = op_full_id(call, in->id, &in->id);
    if (rc == 0)
        rc = hf_work_get(call->store, &call->who, in->id, &found, call->err);
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_at(found, 0);
    if (op_choice_place(item->work.payload, in->answer) < 0)
        rc = refuse_word(call, item->work.payload, in->answer);
    else if (hf_status_of(item->work.status) != HF_STATUS_WAITING_USER)
        rc = say_answered(call, item, in->answer);
    else
        rc = write_answer(call, &item->work);
    struct hf_answer *again = NULL;
    if (rc == HF_ETRANSITION &&
        hf_status_of(item->work.status) == HF_STATUS_WAITING_USER &&
        hf_work_get(call->store, &call->who, item->work.work_id, &again, call->err) == 0)
        rc = say_answered(call, hf_answer_at(again, 0),
                          in->answer); /* at the same time */
    hf_answer_free(again);
    hf_answer_free(found);
    return rc;
}
