/* The delivery at a checkpoint: the only way by which new messages enter a running turn. */
#include <string.h>

#include "base/err.h"
#include "core/turn/machine.h"

bool hf_turn_delivery_empty(const struct hf_turn_delivery *delivery)
{
    return !delivery || (delivery->committed_count == 0 && delivery->message_count == 0 &&
                         delivery->transient_count == 0 && delivery->cause_count == 0);
}

static int append(struct hf_move *move, const struct hf_message *message,
                  struct hf_err *err)
{
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = message };
    return hf_move_append(move, HF_COPY_STRICT, &record, err);
}

static int append_committed(struct hf_move *move, const struct hf_turn_delivery *delivery,
                            struct hf_err *err)
{
    for (size_t i = 0; i < delivery->committed_count; i++) {
        if (delivery->committed[i].role != HF_ROLE_USER)
            return hf_fail(err, HF_EINVAL, "committed",
                           "a committed message is the user's");
        int rc = append(move, &delivery->committed[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

/* New messages get ids from a counter that is saved, so that they are the same again. */
static int append_drafts(struct hf_move *move, const struct hf_message *drafts,
                         size_t count, bool transient, struct hf_err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_origin origin = { .kind = HF_ORIGIN_PLUGIN, .id = "checkpoint" };
        struct hf_message message = drafts[i];
        if (message.role != HF_ROLE_USER && message.role != HF_ROLE_SYSTEM)
            return hf_fail(err, HF_EINVAL, "role",
                           "a checkpoint brings user and system messages");
        if (message.origin)
            origin = *message.origin;
        origin.transient = transient;
        message.origin = &origin;
        message.id = hf_join_id(move->arena, move->turn->turn_id,
                                move->next.next_message++, "checkpoint");
        if (!message.id)
            return hf_fail_plain(err, HF_ENOMEM);
        int rc = append(move, &message, err);
        if (rc)
            return rc;
    }
    return 0;
}

int hf_turn_deliver(struct hf_move *move, const struct hf_turn_delivery *delivery,
                    struct hf_err *err)
{
    int rc = append_committed(move, delivery, err);
    if (rc == 0)
        rc = append_drafts(move, delivery->messages, delivery->message_count, false, err);
    if (rc == 0)
        rc = append_drafts(move, delivery->transient, delivery->transient_count, true,
                           err);
    for (size_t i = 0; rc == 0 && i < delivery->cause_count; i++)
        rc = hf_move_add_cause(move, &delivery->causes[i], err);
    if (rc == 0)
        move->dirty = true; /* also when every cause was known: the host hears that */
    return rc;
}
