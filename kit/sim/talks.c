/* The rules for sessions: every acknowledged message is in exactly one committed turn, in
 * the order in which they were sent; the head moves by one per commit; fences do not fall, in
 * leases or in what is committed; a commit that was made is told as made. */

#include <string.h>

#include "sim/inside.h"

/* ---- answers --------------------------------------------------------------------- */

static void judge_sent(struct hf_sim *sim, const struct sim_op *op,
                       const struct sim_told *told)
{
    const struct sim_talk *talk = &sim->talks[op->key];
    struct sim_shadow *s = sim_shadow_add(sim, told->id);
    if (s)
        s->told_there = true;
    bool again = op->limit < talk->acked;
    if (again && !sim_same(talk->ids[op->limit], told->id) &&
        !(sim->may & (1u << HF_SIM_PRUNE)))
        sim_violate(sim, "session %d: message %d is unit %s, and was unit %s", op->key,
                    op->limit, told->id, talk->ids[op->limit]);
}

static void judge_opened(struct hf_sim *sim, const struct sim_op *op,
                         const struct sim_answer *answer)
{
    const struct sim_told *told = &answer->items[0];
    struct sim_key *lease = &sim->talks[told->unit].lease;
    hf_ms now = sim_lease_now(sim);
    bool mine = lease->actor == op->actor && lease->boot == op->boot;
    if (told->fence < lease->fence)
        sim_violate(sim, "session %d: fence %lld is given after %lld", told->unit,
                    (long long)told->fence, (long long)lease->fence);
    if (!mine && told->fence == lease->fence)
        sim_violate(sim, "session %d: two holders have fence %lld", told->unit,
                    (long long)told->fence);
    if (!mine && !lease->may_be_free && lease->expires_at > now &&
        !sim_is_dead(sim, lease->pid))
        sim_violate(sim, "session %d: claimed %lld ms before its holder's time",
                    told->unit, (long long)(lease->expires_at - now));
    if (answer->displaced && told->id[0])
        sim_mark(sim, HF_SIM_MARK_TALK_TAKEN_OVER);
    *lease = (struct sim_key){ told->fence, op->actor,        op->boot,
                               op->pid,     told->expires_at, false };
}

/* The same hand-back may have been made before. */
static bool was_made(const struct hf_sim *sim, const struct sim_op *op)
{
    for (size_t i = 0; i < SIM_BACKS; i++) {
        if (sim_same(sim->backs[i], op->name))
            return true;
    }
    return false;
}

/* A step, a commit or a hand-back was accepted. */
static void judge_written(struct hf_sim *sim, const struct sim_op *op,
                          const struct sim_answer *answer)
{
    struct sim_talk *talk = &sim->talks[op->key];
    bool back = op->kind == SIM_OP_BACK;
    bool repeated = back ? was_made(sim, op) : answer->items[0].repeated;
    if (op->kind == SIM_OP_COMMIT) {
        sim_mark(sim, repeated ? HF_SIM_MARK_TALK_COMMIT_REPEATED
                               : HF_SIM_MARK_TALK_COMMITTED);
        if (answer->place.head_revision != op->place.head_revision + 1)
            sim_violate(sim, "session %d: a commit on revision %lld made %lld", op->key,
                        (long long)op->place.head_revision,
                        (long long)answer->place.head_revision);
        if (answer->place.head_revision > talk->head)
            talk->head = answer->place.head_revision;
    }
    if (!repeated && op->fence < talk->lease.fence)
        sim_violate(sim, "session %d: %s under fence %lld is accepted after fence %lld",
                    op->key, sim_op_word(op), (long long)op->fence,
                    (long long)talk->lease.fence);
    if (back || (op->kind == SIM_OP_COMMIT && op->limit))
        talk->lease.may_be_free = true;
}

static void note_refusal(struct hf_sim *sim, const struct sim_op *op, int code)
{
    if (code == HF_ESESSIONLOST)
        sim_mark(sim, HF_SIM_MARK_TALK_REFUSED);
    if (op->kind != SIM_OP_COMMIT || (code != HF_ESESSIONLOST && code != HF_EHEADMOVED) ||
        sim->refusal_count == SIM_REFUSALS)
        return;
    struct sim_refusal *refusal = &sim->refusals[sim->refusal_count++];
    refusal->talk = op->key;
    refusal->code = code;
    sim_copy(refusal->name, sizeof(refusal->name), op->name);
}

void sim_judge_talk(struct hf_sim *sim, const struct sim_op *op,
                    const struct sim_answer *answer, bool known)
{
    if (!known) { /* a lease may have been taken, or released */
        for (int i = 0; i < SIM_TALKS && op->kind != SIM_OP_SEND; i++)
            sim->talks[i].lease.may_be_free = true;
    } else if (answer->code)
        note_refusal(sim, op, answer->code);
    else if (op->kind == SIM_OP_SEND)
        judge_sent(sim, op, &answer->items[0]);
    else if (op->kind != SIM_OP_OPEN)
        judge_written(sim, op, answer);
    else if (answer->count)
        judge_opened(sim, op, answer);
    if (op->kind == SIM_OP_BACK)
        sim_copy(sim->backs[sim->back_count++ % SIM_BACKS], SIM_NAME, op->name);
}

/* ---- inputs ---------------------------------------------------------------------- */

void sim_talk_left(struct hf_sim *sim, const struct sim_shadow *s,
                   const struct hf_event *event, enum hf_status to)
{
    bool poison = event->payload && strstr(event->payload, "\"poison\"");
    if (poison)
        sim->talks[s->talk - 1].held = true;
    for (size_t i = 0; i < sim->window_count; i++) {
        const struct sim_did *did = &sim->window[i];
        const struct sim_op *op = &did->op;
        bool refused = did->known && did->code;
        if (op->kind == SIM_OP_COMMIT && to == HF_STATUS_DONE &&
            sim_same(op->id, s->id) && !refused)
            return;
        if (to == HF_STATUS_QUEUED &&
            ((op->kind == SIM_OP_BACK && op->key == s->talk - 1 && !refused) ||
             (op->kind == SIM_OP_OPEN && poison)))
            return;
    }
    sim_violate(sim, "input %s of session %d became %s, and no call asked for it", s->id,
                s->talk - 1, hf_status_word(to));
}

/* ---- histories ------------------------------------------------------------------- */

/* What a walk along the records of a session finds. */
struct walk {
    int64_t turns;
    int64_t fence;
    int64_t last; /* message */
    int times[SIM_MESSAGES];
    const char *turn_id;
};

static const char *text_of(const struct hf_node *node)
{
    const struct hf_message *message = node->record->message;
    return message && message->part_count ? message->parts[0].content.at : "";
}

/* A letter and the number behind it; moves *at behind the blank that follows. */
static int64_t number_of(const char **at)
{
    int64_t number = 0;
    const char *c = *at + (**at != '\0');
    for (; *c >= '0' && *c <= '9'; c++)
        number = number * 10 + (*c - '0');
    *at = c + (*c == ' ');
    return number;
}

static void judge_node(struct hf_sim *sim, int at, const struct hf_node *node,
                       struct walk *walk)
{
    const struct sim_talk *talk = &sim->talks[at];
    const char *name = text_of(node); /* "m<message> f<fence> <name>" */
    int64_t message = number_of(&name), fence = number_of(&name);
    if (message >= talk->messages || fence == 0) {
        sim_violate(sim, "session %d: a record that no call wrote", at);
        return;
    }
    if (fence < walk->fence)
        sim_violate(sim, "session %d: a record under fence %lld follows fence %lld", at,
                    (long long)fence, (long long)walk->fence);
    walk->fence = fence;
    for (size_t i = 0; i < sim->refusal_count; i++) {
        if (sim->refusals[i].talk == at && sim_same(sim->refusals[i].name, name))
            sim_violate(sim, "session %d: commit %s was made, and refused as %s", at,
                        name, hf_err_wire(sim->refusals[i].code));
    }
    if (walk->turn_id && sim_same(walk->turn_id, node->turn_id))
        return;
    walk->turn_id = node->turn_id;
    walk->turns++;
    bool twice = ++walk->times[message] > 1 && !(sim->may & (1u << HF_SIM_PRUNE));
    if (twice || (message < walk->last && !talk->held && walk->times[message] == 1))
        sim_violate(sim, "session %d: message %lld %s", at, (long long)message,
                    twice ? "is in two turns" : "comes after a later one");
    walk->last = message;
    if (message < talk->acked && !sim_same(talk->ids[message], node->turn_id) &&
        !(sim->may & (1u << HF_SIM_PRUNE)))
        sim_violate(sim, "session %d: message %lld is unit %s, its turn is %s", at,
                    (long long)message, talk->ids[message], node->turn_id);
}

static void judge_history(struct hf_sim *sim, int at, struct walk *walk)
{
    struct sim_talk *talk = &sim->talks[at];
    char id[SIM_NAME];
    struct hf_err err = { 0 };
    struct hf_session_answer *answer = NULL;
    struct hf_session_load load = { .size = sizeof(load), .session_id = id };
    sim_format(id, sizeof(id), "t%d", at);
    *walk = (struct walk){ .last = -1 };
    if (hf_session_load(sim->handles[0], &load, &answer, &err)) {
        sim_violate(sim, "session %d cannot be read: %s", at, err.message);
        return;
    }
    int64_t head = answer->sessions->head_revision;
    for (size_t i = 0; i < answer->node_count; i++)
        judge_node(sim, at, &answer->nodes[i], walk);
    if (head != walk->turns)
        sim_violate(sim, "session %d: revision %lld of %lld committed turns", at,
                    (long long)head, (long long)walk->turns);
    if (head < talk->head || head < talk->seen_head)
        sim_violate(
            sim, "session %d: revision %lld was committed, and %lld is the head", at,
            (long long)(talk->head > talk->seen_head ? talk->head : talk->seen_head),
            (long long)head);
    if (answer->sessions->lease_fence < talk->lease.fence)
        sim_violate(sim, "session %d: its fence fell to %lld from %lld", at,
                    (long long)answer->sessions->lease_fence,
                    (long long)talk->lease.fence);
    talk->seen_head = head;
    hf_session_answer_free(answer);
}

void sim_talks_look(struct hf_sim *sim)
{
    struct walk walk;
    for (int i = 0; i < SIM_TALKS && sim_has_talks(sim); i++)
        judge_history(sim, i, &walk);
    sim->refusal_count = 0;
}

bool sim_talks_ended(const struct hf_sim *sim)
{
    for (int i = 0; i < SIM_TALKS; i++) {
        if (sim->talks[i].acked < sim->talks[i].messages)
            return false;
    }
    return true;
}

void sim_talks_judge(struct hf_sim *sim)
{
    struct walk walk;
    for (int i = 0; i < SIM_TALKS && sim_has_talks(sim); i++) {
        judge_history(sim, i, &walk);
        for (int m = 0; m < sim->talks[i].acked; m++) {
            if (walk.times[m] == 0)
                sim_violate(sim,
                            "session %d: message %d was acknowledged, and is in no "
                            "committed turn",
                            i, m);
        }
    }
}
