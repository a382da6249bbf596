/* What must be true of it: written from docs/GUARANTEES.md and the headers. */
#include "sim/drives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = text ? text : ""; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash | 1;
}

/* ---- what is known ------------------------------------------------------------------ */

struct drives_wait *drives_wait_of(struct drives *d, const char *id)
{
    for (size_t i = 0; i < d->wait_count; i++)
        if (strcmp(d->waits[i].id, id) == 0)
            return &d->waits[i];
    if (d->wait_count == DRIVES_WAITS)
        return NULL;
    struct drives_wait *wait = &d->waits[d->wait_count++];
    *wait = (struct drives_wait){ .session = -1, .number = -1 };
    snprintf(wait->id, sizeof(wait->id), "%s", id);
    return wait;
}

struct drives_key *drives_key_of(struct drives *d, const char *session, const char *turn,
                                 const char *key)
{
    char text[160];
    snprintf(text, sizeof(text), "%s/%s/%s", session, turn, key);
    for (size_t i = 0; i < d->key_count; i++)
        if (strcmp(d->keys[i].text, text) == 0)
            return &d->keys[i];
    if (d->key_count == DRIVES_KEYS)
        return NULL;
    struct drives_key *made = &d->keys[d->key_count++];
    *made = (struct drives_key){ .performed = 0 };
    snprintf(made->text, sizeof(made->text), "%s", text);
    return made;
}

/* ---- effects ------------------------------------------------------------------------ */

static int64_t fence_of(struct drives *d, const char *session)
{
    struct hf_session_answer *answer = NULL;
    struct hf_session_load load = { .size = sizeof(load),
                                    .session_id = session,
                                    .limit = 1 };
    int64_t fence = -1;
    if (hf_session_load(d->store, &load, &answer, NULL) == 0)
        fence = answer->sessions[0].lease_fence;
    hf_session_answer_free(answer);
    return fence;
}

static void judge_journal(struct drives *d, const struct drives_worker *w,
                          const char *key)
{
    struct hf_session_answer *answer = NULL;
    const char *session = w->claim->sessions[0].session_id;
    const char *status = "absent";
    if (hf_session_turn(d->store, session, w->loaded->turn->turn_id, &answer, NULL))
        drives_violate(d, "%s: its turn cannot be read", session);
    for (size_t i = 0; answer && i < answer->effect_count; i++)
        if (strcmp(answer->effects[i].key, key) == 0)
            status = answer->effects[i].status;
    if (strcmp(status, "started") != 0)
        drives_violate(d, "%s: effect %s is performed, and its entry is %s", session, key,
                       status);
    hf_session_answer_free(answer);
}

void drives_judge_effect(struct drives *d, struct drives_worker *w, const char *key,
                         enum hf_recovery recovery)
{
    const char *session = w->claim->sessions[0].session_id;
    int64_t fence = w->claim->sessions[0].lease_fence;
    struct drives_key *known = drives_key_of(d, session, w->loaded->turn->turn_id, key);
    d->judging = true;
    judge_journal(d, w, key);
    if (fence_of(d, session) != fence)
        drives_violate(d, "%s: effect %s is performed under a lost lease", session, key);
    d->judging = false;
    drives_say(d, "%s performs %s", session, key);
    if (!known)
        return;
    if (known->performed > 0 && recovery != HF_RECOVERY_SAFE &&
        recovery != HF_RECOVERY_KEYED)
        drives_violate(d, "%s: effect %s is performed twice, and is not repeatable",
                       session, key);
    if (known->performed > 0 && known->fence == fence)
        drives_violate(d, "%s: effect %s is performed twice by one owner", session, key);
    if (known->performed > 0)
        drives_mark(d, DRIVES_MARK_REPERFORMED);
    known->performed++;
    known->fence = fence;
}

void drives_judge_stored(struct drives *d, const struct drives_worker *w)
{
    const char *session = w->claim->sessions[0].session_id;
    bool judging = d->judging;
    d->changes++;
    d->judging = true;
    int64_t fence = fence_of(d, session);
    d->judging = judging;
    if (fence != w->claim->sessions[0].lease_fence)
        drives_violate(d, "%s: a write under fence %lld was taken after fence %lld",
                       session, (long long)w->claim->sessions[0].lease_fence,
                       (long long)fence);
}

/* A settled entry never changes, and its effect was performed, unless it was given up. */
static void look_at_effect(struct drives *d, const char *session, const char *turn,
                           const struct hf_session_effect *effect)
{
    struct drives_key *key = drives_key_of(d, session, turn, effect->key);
    if (!key || strcmp(effect->status, "started") == 0)
        return;
    uint64_t outcome = hash_of(effect->outcome) ^ hash_of(effect->status);
    if (key->settled && key->outcome != outcome)
        drives_violate(d, "%s: effect %s was settled twice, now %s", session, effect->key,
                       effect->status);
    if (strcmp(effect->status, "done") == 0 && key->performed == 0 &&
        !strstr(effect->outcome, "\\\"said_by\\\"") &&
        !strstr(effect->outcome, "\"said_by\""))
        drives_violate(d, "%s: effect %s is done, and was never performed", session,
                       effect->key);
    key->settled = true;
    key->outcome = outcome;
}

static void look_at_effects(struct drives *d, const char *session)
{
    struct hf_session_answer *answer = NULL;
    if (hf_session_turn(d->store, session, NULL, &answer, NULL))
        return; /* there is no turn yet */
    for (size_t i = 0; i < answer->effect_count; i++)
        look_at_effect(d, session, answer->turn->turn_id, &answer->effects[i]);
    hf_session_answer_free(answer);
}

/* ---- waits -------------------------------------------------------------------------- */

static void judge_outcome(struct drives *d, struct drives_wait *known,
                          const char *outcome)
{
    if (!outcome)
        return;
    if (!known->told[0])
        snprintf(known->told, sizeof(known->told), "%s", outcome);
    else if (strcmp(known->told, outcome) != 0)
        drives_violate(d, "wait %s: its outcome was %s, and is %s", known->id,
                       known->told, outcome);
}

void drives_judge_told(struct drives *d, const struct hf_wait *wait, bool accepted)
{
    struct drives_wait *known = drives_wait_of(d, wait->wait_id);
    if (!known)
        return;
    judge_outcome(d, known, wait->outcome);
    if (accepted && known->accepted)
        drives_violate(d, "wait %s: two answers were accepted", wait->wait_id);
    known->accepted = known->accepted || accepted;
}

/* What a deadline does, by the tool's terms. */
static void judge_deadline(struct drives *d, const struct drives_wait *known,
                           const struct hf_wait *wait)
{
    bool trusts = wait->asked && strstr(wait->asked, "\"trust\"");
    bool denies = wait->asked && strstr(wait->asked, "\"buy\"");
    bool truth = wait->name && strstr(wait->name, "/happened");
    const char *kind = truth    ? "{\"kind\":\"timeout\""
                       : trusts ? "{\"kind\":\"approve\""
                       : denies ? "{\"kind\":\"deny\""
                                : "{\"kind\":\"timeout\"";
    drives_mark(d, DRIVES_MARK_TIMED_OUT);
    if (d->wall < known->deadline_at)
        drives_violate(d, "wait %s timed out %lld ms before its deadline", wait->wait_id,
                       (long long)(known->deadline_at - d->wall));
    if (strncmp(wait->outcome, kind, strlen(kind)) != 0)
        drives_violate(d, "wait %s: its deadline made %s", wait->wait_id, wait->outcome);
}

static void look_at_wait(struct drives *d, int session, const struct hf_wait *wait)
{
    struct drives_wait *known = drives_wait_of(d, wait->wait_id);
    const char *args = wait->asked ? strstr(wait->asked, "{\"a\":") : NULL;
    if (!known)
        return;
    bool was_open = known->opened && strcmp(known->state, "open") == 0;
    bool is_open = strcmp(wait->state, "open") == 0;
    known->session = session;
    snprintf(known->kind, sizeof(known->kind), "%s", wait->kind);
    if (wait->name)
        snprintf(known->name, sizeof(known->name), "%s", wait->name);
    if (args)
        known->number = drives_number(args);
    known->fails = wait->asked && strstr(wait->asked, "\"urgent\"");
    if (known->state[0] && !was_open && strcmp(known->state, wait->state) != 0)
        drives_violate(d, "wait %s was %s, and is %s", wait->wait_id, known->state,
                       wait->state);
    if (wait->opened_at && known->deadline_at && known->deadline_at != wait->deadline_at)
        drives_violate(d, "wait %s: its time moved by %lld ms", wait->wait_id,
                       (long long)(wait->deadline_at - known->deadline_at));
    if (wait->opened_at) {
        known->deadline_at = wait->deadline_at;
        known->opened = true;
    }
    if (strcmp(wait->state, "timed_out") == 0 && strcmp(known->state, "timed_out") != 0)
        judge_deadline(d, known, wait);
    if (!is_open && strcmp(wait->kind, "timer") != 0)
        judge_outcome(d, known, wait->outcome);
    else if (!is_open && strstr(wait->outcome, DRIVES_REVOKED_REASON))
        drives_violate(d, "wait %s: a timer was revoked", wait->wait_id);
    if (!known->state[0] && strcmp(wait->kind, "timer") == 0)
        drives_mark(d, DRIVES_MARK_TIMER);
    if (!known->state[0] && strstr(known->name, "/happened"))
        drives_mark(d, DRIVES_MARK_ASKED_TRUTH);
    if (!known->state[0] && strcmp(wait->kind, "tool") == 0)
        drives_mark(d, DRIVES_MARK_DEFERRED);
    snprintf(known->state, sizeof(known->state), "%s", wait->state);
}

static void look_at_waits(struct drives *d, int session)
{
    struct hf_wait_answer *answer = NULL;
    struct hf_wait_filter filter = { .size = sizeof(filter),
                                     .session_id = d->sessions[session].id,
                                     .closed = true,
                                     .limit = 1000 };
    if (hf_wait_list(d->store, NULL, &filter, &answer, NULL))
        drives_violate(d, "the waits of s%d cannot be read", session);
    for (size_t i = 0; answer && i < answer->wait_count; i++)
        look_at_wait(d, session, &answer->waits[i]);
    hf_wait_answer_free(answer);
}

/* ---- inputs ------------------------------------------------------------------------- */

/* A wait of this turn whose deadline fails the turn. */
static bool has_failed(const struct drives *d, const char *turn_id)
{
    for (size_t i = 0; i < d->wait_count; i++) {
        const struct drives_wait *wait = &d->waits[i];
        if (wait->fails && strstr(wait->id, turn_id) &&
            strcmp(wait->state, "timed_out") == 0)
            return true;
    }
    return false;
}

static bool is_over(const char *status)
{
    static const char *const words[] = { "done", "failed", "timeout", "cancelled",
                                         "abandoned" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(status, words[i]) == 0)
            return true;
    return false;
}

/* An input ends with the commit of its turn, by a cancel, or by a deadline that fails it. */
static void look_at_input(struct drives *d, const struct drives_session *session,
                          const struct drives_turn *turn,
                          const struct hf_session_input *input)
{
    int number = (int)(turn - session->turns);
    if (strcmp(input->status, "cancelled") == 0 && !turn->cancel_perhaps)
        drives_violate(d, "%s: turn %d is cancelled, and no cancel was asked for",
                       session->id, number);
    if (strcmp(input->status, "timeout") == 0 && !has_failed(d, input->work_id))
        drives_violate(d, "%s: turn %d has timed out, and no wait of it has", session->id,
                       number);
    if (strcmp(input->status, "done") == 0 && has_failed(d, input->work_id))
        drives_violate(d, "%s: turn %d is done, and a deadline has failed it",
                       session->id, number);
    if (strcmp(input->status, "failed") == 0 || strcmp(input->status, "abandoned") == 0)
        drives_violate(d, "%s: turn %d has %s", session->id, number, input->status);
    if (strcmp(input->status, "done") == 0 && turn->cancel_told)
        drives_violate(d, "%s: turn %d is done after its cancel was told as requested",
                       session->id, number);
}

static void look_at_inputs(struct drives *d, struct drives_session *session)
{
    struct hf_session_answer *answer = NULL;
    if (hf_session_inputs(d->store, session->id, NULL, 0, &answer, NULL))
        drives_violate(d, "the inputs of %s cannot be read", session->id);
    for (size_t i = 0; answer && i < answer->input_count; i++) {
        const struct drives_turn *turn = drives_turn_of(session,
                                                        answer->inputs[i].payload);
        if (turn)
            look_at_input(d, session, turn, &answer->inputs[i]);
        else
            drives_violate(d, "%s has an input that was not sent", session->id);
    }
    hf_session_answer_free(answer);
}

void drives_look(struct drives *d, int session)
{
    struct hf_session_answer *head = NULL;
    struct drives_session *seen = &d->sessions[session];
    d->judging = true;
    look_at_waits(d, session);
    look_at_effects(d, seen->id);
    look_at_inputs(d, seen);
    if (hf_session_head(d->store, seen->id, &head, NULL) == 0) {
        if (head->sessions[0].head_revision < seen->head)
            drives_violate(d, "%s: its head moved back", seen->id);
        seen->head = head->sessions[0].head_revision;
    }
    hf_session_answer_free(head);
    d->judging = false;
}

/* ---- the end ------------------------------------------------------------------------ */

static bool session_ended(struct drives *d, struct drives_session *session)
{
    struct hf_session_answer *answer = NULL, *head = NULL;
    bool ended = session->sent == session->turn_count;
    int rc = hf_session_inputs(d->store, session->id, NULL, 0, &answer, NULL);
    for (size_t i = 0; rc == 0 && i < answer->input_count; i++) {
        const struct hf_session_input *input = &answer->inputs[i];
        bool held = input->gate && strcmp(input->gate, "held") == 0;
        ended = ended && (is_over(input->status) || held);
    }
    if (rc == 0)
        rc = hf_session_head(d->store, session->id, &head, NULL);
    ended = ended && rc == 0 && !head->sessions[0].turn_id;
    hf_session_answer_free(answer);
    hf_session_answer_free(head);
    return ended;
}

/* For the trace: what is left. */
void drives_say_left(struct drives *d)
{
    d->judging = true;
    for (int s = 0; s < d->session_count; s++) {
        const struct drives_session *session = &d->sessions[s];
        struct hf_session_answer *answer = NULL, *head = NULL;
        if (hf_session_head(d->store, session->id, &head, NULL) == 0)
            drives_say(d, "%s: %d of %d sent, head %lld, turn %s, ready %lld, owner %s",
                       session->id, session->sent, session->turn_count,
                       (long long)head->sessions[0].head_revision,
                       head->sessions[0].turn_id ? head->sessions[0].turn_id : "none",
                       (long long)head->sessions[0].ready_at,
                       head->sessions[0].owner ? head->sessions[0].owner : "none");
        if (hf_session_inputs(d->store, session->id, NULL, 0, &answer, NULL) == 0)
            for (size_t i = 0; i < answer->input_count; i++)
                drives_say(d, "  %s %s %s, %lld crashes", answer->inputs[i].work_id,
                           answer->inputs[i].status,
                           answer->inputs[i].gate ? answer->inputs[i].gate : "",
                           (long long)answer->inputs[i].crashes);
        hf_session_answer_free(head);
        hf_session_answer_free(answer);
    }
    for (size_t i = 0; i < d->wait_count; i++)
        drives_say(d, "  wait %s %s %s, due in %lld", d->waits[i].id, d->waits[i].name,
                   d->waits[i].state, (long long)(d->waits[i].deadline_at - d->wall));
    d->judging = false;
}

bool drives_ended(struct drives *d)
{
    bool ended = true;
    d->judging = true;
    for (int s = 0; ended && s < d->session_count; s++)
        ended = session_ended(d, &d->sessions[s]);
    d->judging = false;
    return ended;
}

/* The outcome of the wait of a call; NULL: there is none. */
static const char *outcome_for(const struct drives *d, const char *call_id,
                               const char *kind, bool truth)
{
    for (size_t i = 0; i < d->wait_count; i++) {
        const struct drives_wait *wait = &d->waits[i];
        bool counts = wait->opened || strcmp(kind, "tool") == 0;
        if (counts && strstr(wait->name, call_id) && strcmp(wait->kind, kind) == 0 &&
            (strstr(wait->name, "/happened") != NULL) == truth && wait->told[0])
            return wait->told;
    }
    return NULL;
}

static bool begins(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

/* A text that must be in what the model was shown of a call. */
static void expect_shown(const struct drives *d, const struct drives_call *call,
                         const char *call_id, char *text, size_t room)
{
    const char *approval = outcome_for(d, call_id, "approval", false);
    const char *truth = outcome_for(d, call_id, "approval", true);
    const char *end = outcome_for(d, call_id, "tool", false);
    snprintf(text, room, "{\"%s\":%d}", drives_tool_word(call->tool), call->number);
    if (begins(approval, "{\"kind\":\"deny\""))
        snprintf(text, room, "denied");
    else if (begins(approval, "{\"kind\":\"timeout\"}"))
        snprintf(text, room, "no approval came in time");
    else if (begins(approval, "{\"kind\":\"cancelled\""))
        snprintf(text, room, "the request for approval was withdrawn");
    else if (begins(truth, "{\"kind\":\"approve\""))
        snprintf(text, room, "\"happened\":true");
    else if (begins(truth, "{\"kind\":\"deny\""))
        snprintf(text, room, "says that the call did not happen");
    else if (truth)
        snprintf(text, room, "no answer came");
    else if (begins(end, "{\"kind\":\"ok\""))
        snprintf(text, room, "%.*s", (int)(strlen(strstr(end, "{\"told\"")) - 1),
                 strstr(end, "{\"told\""));
    else if (begins(end, "{\"kind\":\"error\""))
        snprintf(text, room, "no good");
    else if (begins(end, "{\"kind\":\"timeout\"}"))
        snprintf(text, room, "not completed in time");
    else if (end)
        snprintf(text, room, "withdrawn");
}

/* A turn's committed records, one after the other. */
struct reading {
    struct drives *d;
    const struct drives_session *session;
    const struct drives_turn *turn;
    const struct hf_node *const *nodes;
    size_t count;
    size_t at;
    bool whole; /* it was done: all of the plan must be there */
};

static void wrong(struct reading *r, const char *what)
{
    const char *json = r->at < r->count ? r->nodes[r->at]->json : "the end";
    drives_violate(r->d, "%s: turn %d: expected %s, found %.300s", r->session->id,
                   (int)(r->turn - r->session->turns), what, json);
}

static const struct hf_message *peek(const struct reading *r)
{
    return r->at < r->count && r->nodes[r->at]->record->kind == HF_RECORD_MESSAGE
               ? r->nodes[r->at]->record->message
               : NULL;
}

static bool same_text(struct hf_span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.at, text, span.len) == 0;
}

/* The calls of a round, and after them one answer to each. */
static bool read_round(struct reading *r, const struct drives_round *round)
{
    const struct hf_message *asked = peek(r);
    char args[16], text[160];
    if (!asked || asked->part_count != (size_t)round->call_count) {
        wrong(r, "the calls of a round");
        return false;
    }
    for (int c = 0; c < round->call_count; c++) {
        const struct hf_part *part = &asked->parts[c];
        snprintf(args, sizeof(args), "{\"a\":%d}", round->calls[c].number);
        if (part->kind != HF_PART_TOOL_CALL ||
            strcmp(part->tool, drives_tool_word(round->calls[c].tool)) != 0 ||
            !same_text(part->content, args)) {
            wrong(r, args);
            return false;
        }
    }
    r->at++;
    const struct hf_message *answers = peek(r);
    if (!answers || answers->part_count != asked->part_count) {
        wrong(r, "an answer to each call");
        return false;
    }
    for (int c = 0; c < round->call_count; c++) {
        const struct hf_part *part = &answers->parts[c];
        bool names = part->kind == HF_PART_TOOL_RESULT && part->call_id &&
                     strcmp(part->call_id, asked->parts[c].call_id) == 0;
        expect_shown(r->d, &round->calls[c], asked->parts[c].call_id, text, sizeof(text));
        if (!names || (r->whole && !memmem(part->content.at, part->content.len, text,
                                           strlen(text)))) {
            wrong(r, text);
            return false;
        }
    }
    r->at++;
    return true;
}

/* The message that began it, or the event of the wake. */
static bool read_cause(struct reading *r)
{
    const struct hf_message *message = peek(r);
    bool wakes = r->turn->cause != DRIVES_BY_MESSAGE;
    char text[DRIVES_ID];
    snprintf(text, sizeof(text), "plan-%d", (int)(r->turn - r->session->turns));
    if (r->turn->cause == DRIVES_BY_PROCESS)
        snprintf(text, sizeof(text), "%s", r->turn->process);
    if (!message && !r->whole)
        return true;
    if (!message || message->role != (wakes ? HF_ROLE_EVENT : HF_ROLE_USER) ||
        message->part_count != 1 ||
        !memmem(message->parts[0].content.at, message->parts[0].content.len, text,
                strlen(text))) {
        wrong(r, text);
        return false;
    }
    r->at++;
    return true;
}

static void read_turn(struct reading *r)
{
    if (!read_cause(r))
        return;
    for (int i = 0; i < r->turn->round_count && (r->whole || r->at < r->count); i++)
        if (!read_round(r, &r->turn->rounds[i]))
            return;
    const struct hf_message *message = peek(r);
    if (r->whole &&
        (!message || message->role != HF_ROLE_ASSISTANT || message->part_count != 1 ||
         !same_text(message->parts[0].content, "finished"))) {
        wrong(r, "the final answer");
        return;
    }
    r->at += r->whole ? 1 : 0;
    if (r->at < r->count)
        wrong(r, "no more");
}

static void judge_turn(struct drives *d, struct drives_session *session,
                       const struct hf_session_input *input,
                       const struct hf_session_answer *loaded)
{
    const struct hf_node *nodes[64];
    struct reading r = { .d = d, .session = session, .nodes = nodes };
    bool held = input->gate && strcmp(input->gate, "held") == 0;
    r.turn = drives_turn_of(session, input->payload);
    r.whole = strcmp(input->status, "done") == 0;
    for (size_t i = 0; i < loaded->node_count; i++)
        if (strcmp(loaded->nodes[i].turn_id, input->work_id) == 0 && r.count < 64)
            nodes[r.count++] = &loaded->nodes[i];
    if (strcmp(input->status, "cancelled") == 0)
        drives_mark(d, DRIVES_MARK_CANCELLED);
    if (strcmp(input->status, "timeout") == 0)
        drives_mark(d, DRIVES_MARK_TURN_FAILED);
    if (r.turn && !held)
        read_turn(&r);
    else if (r.count > 0)
        wrong(&r, "nothing");
}

static void judge_session(struct drives *d, struct drives_session *session)
{
    struct hf_session_answer *inputs = NULL, *loaded = NULL;
    struct hf_session_load load = { .size = sizeof(load), .session_id = session->id };
    int64_t commits = 0;
    int rc = hf_session_inputs(d->store, session->id, NULL, 0, &inputs, NULL);
    if (rc == 0)
        rc = hf_session_load(d->store, &load, &loaded, NULL);
    if (rc)
        drives_violate(d, "%s cannot be loaded: %s", session->id, hf_err_wire(rc));
    if (rc == 0 && inputs->input_count != (size_t)session->turn_count)
        drives_violate(d, "%s has %zu inputs, and %d were sent", session->id,
                       inputs->input_count, session->turn_count);
    for (size_t i = 0; rc == 0 && i < inputs->input_count; i++) {
        if (drives_turn_of(session, inputs->inputs[i].payload) != &session->turns[i])
            drives_violate(d, "%s: input %zu is out of order", session->id, i);
        judge_turn(d, session, &inputs->inputs[i], loaded);
        commits += inputs->inputs[i].turn_id && is_over(inputs->inputs[i].status);
    }
    if (rc == 0 && loaded->sessions[0].head_revision != commits)
        drives_violate(d, "%s: %lld turns have ended, and its head is %lld", session->id,
                       (long long)commits, (long long)loaded->sessions[0].head_revision);
    hf_session_answer_free(inputs);
    hf_session_answer_free(loaded);
}

static void on_finding(void *user, const struct hf_finding *finding)
{
    if (finding->bad)
        drives_violate(user, "doctor: %s: %s", finding->what, finding->detail);
}

void drives_judge_end(struct drives *d)
{
    for (int s = 0; s < d->session_count; s++)
        drives_look(d, s);
    d->judging = true;
    for (int s = 0; s < d->session_count; s++)
        judge_session(d, &d->sessions[s]);
    if (hf_store_check(d->store, on_finding, d, NULL))
        drives_violate(d, "the store cannot be checked");
    d->judging = false;
}
