/* Verbs over sessions in short form, for the conformance cases. What they return lives until the
 * case ends, and is zeroed after a failure. */
#include "conform/session_kit.h"

#include <string.h>

#include <holdfast/turn_json.h>

static void drop_answer(void *at)
{
    hf_session_answer_free(at);
}

/* An answer, kept; one without anything after a failure. */
static const struct hf_session_answer *kept(struct hf_conform *t,
                                            struct hf_session_answer *answer)
{
    static const struct hf_session_answer nothing;
    if (!answer)
        return &nothing;
    kit_keep(t, answer, drop_answer);
    return answer;
}

static const struct hf_session *first(const struct hf_session_answer *answer)
{
    static const struct hf_session nothing;
    return answer->session_count ? answer->sessions : &nothing;
}

const struct hf_session_answer *kit_new_session(struct hf_conform *t,
                                                struct hf_session_spec request)
{
    struct hf_session_answer *answer = NULL;
    request.size = sizeof(request);
    if (!request.agent)
        request.agent = "a";
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_create(t->store, &t->who, &request, &answer, kit_err(t)));
    return kept(t, answer);
}

const char *kit_message(struct hf_conform *t, const char *text)
{
    return kit_say(t,
                   "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"kind\":\"text\",\"content\":\"%s\"}]}}",
                   text);
}

static void drop_items(void *at)
{
    hf_answer_free(at);
}

const struct hf_item *kit_send(struct hf_conform *t, const char *session_id,
                               const char *key, const char *text)
{
    static const struct hf_item nothing;
    struct hf_answer *answer = NULL;
    struct hf_session_send request = { .size = sizeof(request),
                                       .session_id = session_id,
                                       .source_key = key,
                                       .message = kit_message(t, text) };
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_send(t->store, &t->who, &request, &answer, kit_err(t)));
    if (!answer)
        return &nothing;
    kit_keep(t, answer, drop_items);
    return hf_answer_at(answer, 0);
}

struct talk kit_open(struct hf_conform *t, struct hf_session_claim claim)
{
    struct hf_session_answer *answer = NULL;
    claim.size = sizeof(claim);
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_claim(t->store, &t->who, &claim, &answer, kit_err(t)));
    struct talk talk = { .answer = kept(t, answer) };
    const struct hf_session *session = first(talk.answer);
    const struct hf_session_turn *turn = talk.answer->turn;
    talk.session_id = session->session_id;
    talk.token = talk.answer->token;
    talk.head_revision = session->head_revision;
    talk.record_count = session->record_count;
    if (turn) {
        talk.turn_id = turn->turn_id;
        talk.step = turn->step;
        talk.node_count = turn->node_count;
        memcpy(talk.chain, turn->chain, sizeof(talk.chain));
    }
    return talk;
}

struct talk kit_open_any(struct hf_conform *t, const char *agent)
{
    return kit_open(t, (struct hf_session_claim){ .agents = &agent, .agent_count = 1 });
}

const struct hf_session *kit_head(struct hf_conform *t, const char *session_id)
{
    return first(
        kit_load(t, (struct hf_session_load){ .session_id = session_id, .limit = 1 }));
}

const struct hf_session *kit_fresh(struct hf_conform *t, const char *session_id)
{
    struct hf_session_answer *answer = NULL;
    if (!t->failed)
        t->code = kit_called(t,
                             hf_session_head(t->store, session_id, &answer, kit_err(t)));
    return first(kept(t, answer));
}

const struct hf_session_answer *kit_load(struct hf_conform *t,
                                         struct hf_session_load request)
{
    struct hf_session_answer *answer = NULL;
    request.size = sizeof(request);
    if (!t->failed)
        t->code = kit_called(t, hf_session_load(t->store, &request, &answer, kit_err(t)));
    return kept(t, answer);
}

const struct hf_session_answer *kit_inputs(struct hf_conform *t, const char *session_id)
{
    struct hf_session_answer *answer = NULL;
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_inputs(t->store, session_id, NULL, 0, &answer, kit_err(t)));
    return kept(t, answer);
}

const struct hf_session_answer *kit_unknown(struct hf_conform *t, const char *after,
                                            size_t limit)
{
    struct hf_session_answer *answer = NULL;
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_unknown(t->store, &t->who, after, limit, &answer, kit_err(t)));
    return kept(t, answer);
}

/* ---- records ------------------------------------------------------------------------- */

static struct hf_record made_record(struct hf_conform *t, const char *text,
                                    bool transient)
{
    struct hf_part *part = kit_memory(t, sizeof(*part));
    struct hf_message *message = kit_memory(t, sizeof(*message));
    struct hf_origin *origin = kit_memory(t, sizeof(*origin));
    *part = (struct hf_part){ .content = { text, strlen(text) } };
    *origin = (struct hf_origin){ .id = "o", .transient = transient };
    *message = (struct hf_message){ .id = "m",
                                    .role = HF_ROLE_ASSISTANT,
                                    .parts = part,
                                    .part_count = 1,
                                    .origin = transient ? origin : NULL };
    return (struct hf_record){ .kind = HF_RECORD_MESSAGE, .message = message };
}

struct hf_record kit_record(struct hf_conform *t, const char *text)
{
    return made_record(t, text, false);
}

struct hf_record kit_transient(struct hf_conform *t, const char *text)
{
    return made_record(t, text, true);
}

const char *kit_node_text(const struct hf_node *node)
{
    const struct hf_record *record = node ? node->record : NULL;
    if (!record || !record->message || record->message->part_count != 1)
        return "";
    return record->message->parts[0].content.at;
}

/* ---- under the lease -------------------------------------------------------------------- */

struct hf_session_step kit_step_of(struct hf_conform *t, const struct talk *talk)
{
    const char *save = kit_say(t, "save of %s after step %lld", talk->turn_id,
                               (long long)talk->step + 1);
    return (struct hf_session_step){ .size = sizeof(struct hf_session_step),
                                     .session_id = talk->session_id,
                                     .token = talk->token,
                                     .turn_id = talk->turn_id,
                                     .step = talk->step,
                                     .node_count = talk->node_count,
                                     .chain = talk->chain,
                                     .save = { save, strlen(save) } };
}

int kit_store_step(struct hf_conform *t, struct talk *talk, struct hf_session_step step)
{
    struct hf_session_stepped stepped = { .step = 0 };
    if (t->failed)
        return 0;
    t->code = kit_called(t,
                         hf_session_step(t->store, &t->who, &step, &stepped, kit_err(t)));
    if (t->code == 0) {
        talk->step = stepped.step;
        talk->node_count = stepped.node_count;
        memcpy(talk->chain, stepped.chain, sizeof(talk->chain));
    }
    return t->code;
}

int kit_step(struct hf_conform *t, struct talk *talk, const struct hf_record *records,
             size_t count)
{
    struct hf_session_step step = kit_step_of(t, talk);
    step.records = records;
    step.record_count = count;
    return kit_store_step(t, talk, step);
}

struct hf_session_commit kit_commit_of(const struct talk *talk)
{
    return (struct hf_session_commit){ .session_id = talk->session_id,
                                       .token = talk->token,
                                       .turn_id = talk->turn_id,
                                       .head_revision = talk->head_revision,
                                       .record_count = talk->record_count,
                                       .step = talk->step,
                                       .node_count = talk->node_count,
                                       .chain = talk->chain,
                                       .status = HF_STATUS_DONE,
                                       .outcome = "{\"kind\":\"assistant_message\"}" };
}

int kit_commit(struct hf_conform *t, struct hf_session_commit commit,
               struct hf_session_committed *ret_committed)
{
    struct hf_session_committed committed = { .head_revision = 0 };
    commit.size = sizeof(commit);
    if (t->failed)
        return 0;
    t->code = kit_called(
        t, hf_session_commit(t->store, &t->who, &commit, &committed, kit_err(t)));
    if (ret_committed)
        *ret_committed = committed;
    return t->code;
}

int kit_finish(struct hf_conform *t, const struct talk *talk, const char *text)
{
    struct hf_record one = kit_record(t, text);
    struct hf_session_commit commit = kit_commit_of(talk);
    commit.records = &one;
    commit.added_count = 1;
    commit.release = true;
    return kit_commit(t, commit, NULL);
}

int kit_release(struct hf_conform *t, const struct talk *talk)
{
    if (!t->failed)
        t->code = kit_called(t, hf_session_release(t->store, &t->who, talk->session_id,
                                                   talk->token, kit_err(t)));
    return t->code;
}

int kit_back(struct hf_conform *t, const struct talk *talk, hf_ms delay_ms)
{
    struct hf_session_back request = { .size = sizeof(request),
                                       .session_id = talk->session_id,
                                       .token = talk->token,
                                       .delay_ms = delay_ms };
    if (!t->failed)
        t->code = kit_called(
            t, hf_session_hand_back(t->store, &t->who, &request, kit_err(t)));
    return t->code;
}
