/* Those who are no workers: senders, answerers, an operator who cancels, a monitor. */
#include "sim/drives.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/process.h>
#include <holdfast/trigger.h>

static void rest(struct drives *d, struct drives_actor *actor, unsigned most_ms)
{
    actor->wake_at = d->mono + 1 + (hf_ms)drives_roll(&d->dice, most_ms);
}

bool drives_uncertain(int code)
{
    return code && hf_err_class(code) != HF_CLASS_TERMINAL;
}

/* ---- what begins turns -------------------------------------------------------------- */

static void name_source(const struct drives_session *session, int turn, char text[32])
{
    snprintf(text, 32, "door-%s-%d", session->id, turn);
}

/* A subscription for each turn that a trigger begins: it wakes the session. */
int drives_subscribe(struct drives *d, struct hf_err *err)
{
    int rc = 0;
    for (int s = 0; s < d->session_count; s++) {
        const struct drives_session *session = &d->sessions[s];
        for (int t = 0; rc == 0 && t < session->turn_count; t++) {
            char source[32], key[32], scope[32];
            struct hf_subscriptions *made = NULL;
            struct hf_subscription_spec new = { .size = sizeof(new),
                                                .owner_scope = scope,
                                                .key = key,
                                                .source_type = "sim",
                                                .source_key = source,
                                                .kind = "door",
                                                .priority = -1,
                                                .wake_session = session->id };
            if (session->turns[t].cause != DRIVES_BY_TRIGGER)
                continue;
            name_source(session, t, source);
            snprintf(key, sizeof(key), "plan-%d", t);
            snprintf(scope, sizeof(scope), "session:%s", session->id);
            rc = hf_trigger_subscribe(d->store, NULL, &new, &made, err);
            if (rc == 0)
                hf_subscriptions_free(made);
        }
    }
    return rc;
}

static int send_message(struct drives *d, const struct drives_session *session, int turn)
{
    char key[32], message[200];
    struct hf_answer *answer = NULL;
    struct hf_session_send send = { .size = sizeof(send),
                                    .session_id = session->id,
                                    .source_key = key,
                                    .message = message };
    snprintf(key, sizeof(key), "m%d", turn);
    snprintf(message, sizeof(message),
             "{\"kind\":\"message\",\"message\":{\"id\":\"m%d\",\"role\":\"user\","
             "\"parts\":[{\"kind\":\"text\",\"content\":\"plan-%d\"}]}}",
             turn, turn);
    int rc = hf_session_send(d->store, NULL, &send, &answer, NULL);
    hf_answer_free(answer);
    return rc;
}

static int emit(struct drives *d, const struct drives_session *session, int turn)
{
    char source[32];
    struct hf_emission *emission = NULL;
    struct hf_occurrence_spec new = { .size = sizeof(new),
                                      .source_type = "sim",
                                      .source_key = source,
                                      .idempotency_key = "once" };
    name_source(session, turn, source);
    int rc = hf_trigger_emit(d->store, NULL, &new, &emission, NULL);
    if (rc == 0 && hf_emission_count(emission) != 1)
        drives_violate(d, "%s: an occurrence reached %zu subscribers", session->id,
                       hf_emission_count(emission));
    if (rc == 0)
        hf_emission_free(emission);
    return rc;
}

/* A process outside of the fleet; its end is the wake. */
static int end_process(struct drives *d, const struct drives_session *session,
                       struct drives_turn *turn)
{
    char source[32];
    struct hf_answer *answer = NULL;
    struct hf_work_spec work = { .size = sizeof(work),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = source,
                                 .disposition = HF_DISPOSITION_EXTERNALLY_OWNED,
                                 .priority = -1 };
    struct hf_process_spec new = { .size = sizeof(new),
                                   .work = &work,
                                   .identity_kind = "sim",
                                   .wake_session = session->id };
    struct hf_caller who = { .size = sizeof(who),
                             .actor_kind = "worker",
                             .actor = "outside",
                             .operation_id = source };
    name_source(session, (int)(turn - session->turns), source);
    if (!turn->process[0]) {
        int rc = hf_process_register(d->store, NULL, &new, &answer, NULL);
        if (rc == 0)
            snprintf(turn->process, sizeof(turn->process), "%s",
                     hf_answer_at(answer, 0)->work.work_id);
        hf_answer_free(answer);
        return rc ? rc : HF_EBUSY; /* its end is another call */
    }
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_CLOSE_OUT,
                                .id = turn->process,
                                .authority = "outside",
                                .status = HF_STATUS_DONE };
    int rc = hf_work_change(d->store, &who, &change, 1, 0, &answer, NULL);
    if (rc == 0)
        rc = hf_answer_at(answer, 0)->code;
    hf_answer_free(answer);
    return rc;
}

static void step_sender(struct drives *d, struct drives_actor *actor)
{
    struct drives_session *session =
        &d->sessions[drives_roll(&d->dice, (unsigned)d->session_count)];
    int number = session->sent;
    rest(d, actor, 2500);
    if (number == session->turn_count)
        return;
    struct drives_turn *turn = &session->turns[number];
    drives_before_call(d, false);
    int rc = turn->cause == DRIVES_BY_MESSAGE   ? send_message(d, session, number)
             : turn->cause == DRIVES_BY_TRIGGER ? emit(d, session, number)
                                                : end_process(d, session, turn);
    (void)drives_after_call(d, "send", rc);
    if (rc == 0)
        session->sent++;
    else if (!drives_uncertain(rc) && rc != HF_ESTOREIO)
        drives_violate(d, "%s: what begins turn %d was refused: %s", session->id, number,
                       hf_err_wire(rc));
}

/* ---- answers ------------------------------------------------------------------------ */

static void choose_answer(struct drives *d, struct drives_actor *actor,
                          const struct drives_wait *wait)
{
    bool tool = strcmp(wait->kind, "approval") != 0;
    bool truth = strstr(wait->name, "/happened") != NULL;
    bool good = drives_roll(&d->dice, 4) > 0;
    actor->pending = true;
    actor->pending_revoke = !d->healing && drives_one_in(&d->dice, 12);
    actor->pending_scope = actor->pending_revoke ? drives_roll(&d->dice, 3) : 0;
    actor->pending_by_key = wait->key[0] && drives_one_in(&d->dice, 2);
    actor->word = tool   ? (good ? HF_ANSWER_OK : HF_ANSWER_ERROR)
                  : good ? HF_ANSWER_APPROVE
                         : HF_ANSWER_DENY;
    actor->value[0] = '\0';
    if (good && tool)
        snprintf(actor->value, sizeof(actor->value), "{\"told\":%u}",
                 drives_roll(&d->dice, 1000));
    if (good && !tool && !truth && wait->number >= 0 && drives_one_in(&d->dice, 3))
        snprintf(actor->value, sizeof(actor->value), "{\"a\":%d}",
                 100 * (1 + (int)drives_roll(&d->dice, 9)) + wait->number);
    snprintf(actor->pending_id, sizeof(actor->pending_id), "%s", wait->id);
}

/* All waits of the turn or session of a timer, which stays. */
static void choose_revocation(struct drives *d, struct drives_actor *actor,
                              const struct drives_wait *timer)
{
    actor->pending = true;
    actor->pending_revoke = true;
    actor->pending_scope = 1 + drives_roll(&d->dice, 2);
    snprintf(actor->pending_id, sizeof(actor->pending_id), "%s", timer->id);
}

/* One of the waits that are known: most often an open one, at times one that is closed or that
 * its turn has not opened yet. */
static void choose_wait(struct drives *d, struct drives_actor *actor)
{
    for (int tries = 0; tries < 12 && d->wait_count > 0; tries++) {
        const struct drives_wait *wait =
            &d->waits[drives_roll(&d->dice, (unsigned)d->wait_count)];
        bool open = strcmp(wait->state, "open") == 0;
        bool early = !wait->opened && wait->key[0] && !d->healing;
        if (strcmp(wait->kind, "timer") == 0) {
            if (!open || d->healing || !drives_one_in(&d->dice, 3))
                continue;
            choose_revocation(d, actor, wait);
            return;
        }
        if (open || early || (!d->healing && drives_one_in(&d->dice, 10))) {
            choose_answer(d, actor, wait);
            return;
        }
    }
}

static int resolve(struct drives *d, const struct drives_actor *actor,
                   struct hf_wait_answer **ret_answer)
{
    struct hf_err err = { 0 };
    const struct drives_wait *wait = drives_wait_of(d, actor->pending_id);
    struct hf_caller who = { .size = sizeof(who),
                             .actor_kind = "human",
                             .actor = "anna" };
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .word = actor->word,
                                       .value = actor->value[0] ? actor->value : NULL };
    if (actor->pending_by_key)
        request.key = wait->key;
    else
        request.wait_id = actor->pending_id;
    if (actor->word == HF_ANSWER_DENY || actor->word == HF_ANSWER_ERROR)
        request.reason = "no good";
    int rc = hf_wait_resolve(d->store, &who, &request, ret_answer, &err);
    if (rc)
        drives_say(d, "  %s %s", request.value ? request.value : "", err.message);
    return rc;
}

/* The wait; or those of its turn, or of its session, which may have timers too. */
static int revoke(struct drives *d, const struct drives_actor *actor,
                  struct hf_wait_answer **ret_answer)
{
    const struct drives_wait *wait = drives_wait_of(d, actor->pending_id);
    char turn_id[37];
    struct hf_wait_revoke request = { .size = sizeof(request),
                                      .reason = DRIVES_REVOKED_REASON };
    snprintf(turn_id, sizeof(turn_id), "%.36s", actor->pending_id + 1);
    if (actor->pending_scope == 0 || wait->session < 0)
        request.wait_id = actor->pending_id;
    else
        request.session_id = d->sessions[wait->session].id;
    if (!request.wait_id && actor->pending_scope == 1)
        request.turn_id = turn_id;
    return hf_wait_revoke(d->store, NULL, &request, ret_answer, NULL);
}

static void hear_answer(struct drives *d, const struct drives_actor *actor,
                        const struct hf_wait_answer *answer)
{
    struct drives_wait *wait = drives_wait_of(d, actor->pending_id);
    if (actor->pending_revoke) {
        if (answer->revoked > 0)
            drives_mark(d, DRIVES_MARK_REVOKED);
        return;
    }
    if (answer->accepted && wait && !wait->opened)
        drives_mark(d, DRIVES_MARK_RESOLVED_EARLY);
    if (!answer->accepted)
        drives_mark(d, DRIVES_MARK_RESOLVED_SECOND);
    if (answer->accepted && actor->value[0] && actor->word == HF_ANSWER_APPROVE)
        drives_mark(d, DRIVES_MARK_EDITED);
    if (answer->accepted && actor->word == HF_ANSWER_DENY)
        drives_mark(d, DRIVES_MARK_DENIED);
    drives_judge_told(d, &answer->waits[0], answer->accepted);
}

static void step_answerer(struct drives *d, struct drives_actor *actor)
{
    struct hf_wait_answer *answer = NULL;
    rest(d, actor, d->healing ? 2000 : d->answer_ms);
    if (!actor->pending)
        choose_wait(d, actor);
    if (!actor->pending)
        return;
    drives_before_call(d, false);
    int rc = actor->pending_revoke ? revoke(d, actor, &answer)
                                   : resolve(d, actor, &answer);
    (void)drives_after_call(d, actor->pending_revoke ? "revoke" : "resolve", rc);
    drives_say(d, "%s %s: %s%s", actor->pending_revoke ? "revoke" : "resolve",
               actor->pending_id, rc ? hf_err_wire(rc) : "ok",
               rc == 0 && answer->accepted ? ", accepted" : "");
    if (rc == 0)
        hear_answer(d, actor, answer);
    hf_wait_answer_free(answer);
    actor->pending = drives_uncertain(rc) || rc == HF_ESTOREIO;
    /* Edits of what was not asked: of a turn that was held its waits are forgotten. */
    bool early = rc == HF_EINVAL && actor->value[0];
    if (!actor->pending && rc && rc != HF_ENOTFOUND && rc != HF_EWAITKEY && !early)
        drives_violate(d, "%s of %s was refused: %s",
                       actor->pending_revoke ? "revoke" : "answer", actor->pending_id,
                       hf_err_wire(rc));
}

/* ---- cancel ------------------------------------------------------------------------- */

/* The id of a turn, if its input is there. */
static bool find_turn(struct drives *d, struct drives_session *session,
                      const struct drives_turn *turn, char id[HF_WAIT_ID_TEXT])
{
    struct hf_session_answer *answer = NULL;
    bool found = false;
    d->judging = true;
    int rc = hf_session_inputs(d->store, session->id, NULL, 0, &answer, NULL);
    d->judging = false;
    for (size_t i = 0; rc == 0 && i < answer->input_count; i++)
        if (drives_turn_of(session, answer->inputs[i].payload) == turn) {
            snprintf(id, HF_WAIT_ID_TEXT, "%s", answer->inputs[i].work_id);
            found = true;
        }
    hf_session_answer_free(answer);
    return found;
}

static void step_canceller(struct drives *d, struct drives_actor *actor)
{
    struct drives_session *session =
        &d->sessions[drives_roll(&d->dice, (unsigned)d->session_count)];
    struct drives_turn *turn =
        &session->turns[drives_roll(&d->dice, (unsigned)session->turn_count)];
    char id[HF_WAIT_ID_TEXT];
    enum hf_session_turn_cancel told = HF_TURN_CANCEL_COUNT;
    bool committed = turn->committed;
    rest(d, actor, 60000);
    if (d->healing || !find_turn(d, session, turn, id))
        return;
    struct hf_session_cancel request = { .size = sizeof(request),
                                         .session_id = session->id,
                                         .turn_id = id,
                                         .reason = "enough" };
    turn->cancel_perhaps = true;
    drives_before_call(d, false);
    int rc = hf_session_cancel_turn(d->store, NULL, &request, &told, NULL);
    (void)drives_after_call(d, "cancel", rc);
    drives_say(d, "cancel %s turn %d: %s", session->id, (int)(turn - session->turns),
               rc ? hf_err_wire(rc) : hf_session_turn_cancel_word(told));
    if (rc)
        return;
    if (told == HF_TURN_CANCEL_COMPLETED)
        drives_mark(d, DRIVES_MARK_CANCEL_LATE);
    else if (committed)
        drives_violate(d, "%s: turn %d had ended, and a cancel was told %s", session->id,
                       (int)(turn - session->turns), hf_session_turn_cancel_word(told));
    else
        turn->cancel_told = true;
}

/* ---- the monitor -------------------------------------------------------------------- */

/* It sweeps when the store says that there is something to do, and at the latest after five
 * seconds, as a bell may tell it. A sweep that is over and still says so would spin. */
static void step_monitor(struct drives *d, struct drives_actor *actor)
{
    struct hf_caller who = { .size = sizeof(who),
                             .actor_kind = "system",
                             .actor = "monitor" };
    struct hf_sweep_report report = { 0 };
    hf_ms due = 0;
    drives_before_call(d, false);
    int rc = hf_work_sweep(d->store, &who, 64, &report, NULL);
    if (rc == 0)
        rc = d->store->methods->next_due(d->store, &due, NULL);
    (void)drives_after_call(d, "sweep", rc);
    d->sweeps++;
    actor->wake_at = d->mono + 5000;
    if (rc)
        return;
    bool busy = report.more || (due && due <= d->wall);
    if (due && due - d->wall < 5000)
        actor->wake_at = d->mono + (due > d->wall ? due - d->wall : 0);
    actor->idle_sweeps = busy ? actor->idle_sweeps + 1 : 0;
    if (actor->idle_sweeps > 3)
        drives_violate(d, "the monitor spins: after %lld sweeps one is still due",
                       (long long)actor->idle_sweeps);
}

void drives_other_step(struct drives *d, struct drives_actor *actor)
{
    if (actor->role == DRIVES_SENDER)
        step_sender(d, actor);
    else if (actor->role == DRIVES_ANSWERER)
        step_answerer(d, actor);
    else if (actor->role == DRIVES_CANCELLER)
        step_canceller(d, actor);
    else
        step_monitor(d, actor);
}
