/* Effects of processes and operations: the lines of durable-state.md 3.9 about leases, replay and
 * scopes. */

#include <string.h>

#include "conform/process_kit.h"

#define TERM SEC(30)

static void drop_answer(void *at)
{
    hf_journal_answer_free(at);
}

/* As the kit's other verbs: what is not said is that of one keyed effect of operation "o". */
static struct hf_journal_answer begin_as(struct hf_conform *t,
                                         struct hf_journal_begin request)
{
    struct hf_journal_answer *answer = NULL;
    request.size = sizeof(request);
    if (!request.of.scope)
        request.of.scope = HF_SCOPE_OPERATION;
    if (!request.of.scope_id)
        request.of.scope_id = "o";
    if (!request.of.key)
        request.of.key = "1";
    if (!request.kind)
        request.kind = "mail";
    if (!request.recovery)
        request.recovery = HF_RECOVERY_KEYED;
    if (!request.envelope)
        request.envelope = "{\"to\":\"anna\",\"what\":{\"price\":1}}";
    if (!request.owner)
        request.owner = "host";
    if (!t->failed)
        t->code = kit_called(
            t, hf_journal_begin(t->store, &t->who, &request, &answer, kit_err(t)));
    kit_keep(t, answer, drop_answer);
    return answer ? *answer : (struct hf_journal_answer){ .token = "" };
}
#define begin(...) begin_as(AT(t), (struct hf_journal_begin){ __VA_ARGS__ })

static const struct hf_journal_key first = { HF_SCOPE_OPERATION, "o", "1" };

static int settle_effect(struct hf_conform *t, const char *token,
                         enum hf_entry_status status, const char *outcome)
{
    if (!t->failed)
        t->code = kit_called(
            t, hf_journal_settle(t->store, &first, token, status, outcome, kit_err(t)));
    return t->code;
}

static int renew_effect(struct hf_conform *t, const char *token)
{
    if (!t->failed)
        t->code = kit_called(t, hf_journal_renew(t->store, &first, token, kit_err(t)));
    return t->code;
}

static int retire_scope(struct hf_conform *t, const char *scope_id, int64_t *ret_count)
{
    if (!t->failed)
        t->code = kit_called(t, hf_journal_retire(t->store, HF_SCOPE_OPERATION, scope_id,
                                                  ret_count, kit_err(t)));
    return t->code;
}

test_case(d39_a_recorded_outcome_replays_and_is_settled_once)
{
    struct hf_journal_answer seen = begin();
    CODE(0, t->code);
    EQ(HF_DECISION_ABSENT, seen.decision);
    EQ(HF_RECOVER_RUN, seen.act);
    EQ(1, seen.fence);
    CODE(0,
         settle_effect(AT(t), seen.token, HF_ENTRY_FAILED, "{\"why\":\"no such box\"}"));
    CODE(0,
         settle_effect(AT(t), seen.token, HF_ENTRY_FAILED, "{\"why\":\"no such box\"}"));
    CODE(HF_ECONFLICT, settle_effect(AT(t), seen.token, HF_ENTRY_DONE, "{}"));
    CODE(HF_ELEASELOST, renew_effect(AT(t), seen.token));
    seen = begin(.envelope = "{ \"what\":{\"price\":1}, \"to\":\"anna\" }");
    EQ(HF_DECISION_REPLAY, seen.decision);
    EQ(HF_ENTRY_FAILED, seen.status);
    SAME("{\"why\":\"no such box\"}", seen.outcome);
    TRUE(seen.token == NULL);
}

test_case(d39_a_key_with_another_envelope_is_a_mismatch)
{
    (void)begin();
    (void)begin(.envelope = "{\"to\":\"anna\",\"what\":{\"price\":2}}");
    CODE(HF_EEFFECT, t->code);
    TRUE(strstr(t->err.message, "/what/price"));
    EQ(HF_DECISION_ABSENT, begin(.of.scope_id = "other").decision);
    EQ(HF_DECISION_ABSENT, begin(.of.scope = HF_SCOPE_PROCESS).decision);
    EQ(HF_DECISION_ABSENT, begin(.of.key = "2").decision);
}

test_case(d39_a_renewed_effect_of_a_scope_keeps_others_busy)
{
    struct hf_journal_answer seen = begin();
    for (int i = 0; i < 4; i++) {
        advance(SEC(20));
        CODE(0, renew_effect(AT(t), seen.token));
        struct hf_journal_answer other = begin(.owner = "other");
        EQ(HF_DECISION_BUSY, other.decision);
        EQ(TERM, other.busy_ms);
        TRUE(other.token == NULL);
    }
    CODE(0, settle_effect(AT(t), seen.token, HF_ENTRY_DONE, "{}"));
}

test_case(d39_a_lapsed_effect_of_a_scope_is_taken_over_by_its_class)
{
    static const struct {
        enum hf_recovery recovery;
        bool can_probe;
        enum hf_recover_act act;
    } rows[] = { { HF_RECOVERY_SAFE, false, HF_RECOVER_RUN },
                 { HF_RECOVERY_KEYED, false, HF_RECOVER_RUN },
                 { HF_RECOVERY_PROBE, true, HF_RECOVER_PROBE },
                 { HF_RECOVERY_PROBE, false, HF_RECOVER_UNKNOWN },
                 { HF_RECOVERY_ASK, true, HF_RECOVER_UNKNOWN } };
    static const char *const ids[] = { "a", "b", "c", "d", "e" };
    for (size_t i = 0; i < 5; i++) {
        (void)begin(.of.scope_id = ids[i], .recovery = rows[i].recovery);
        advance(TERM);
        struct hf_journal_answer seen = begin(.of.scope_id = ids[i],
                                              .recovery = HF_RECOVERY_SAFE,
                                              .can_probe = rows[i].can_probe);
        EQ(HF_DECISION_TAKE_OVER, seen.decision); /* by the class that was recorded */
        EQ(rows[i].act, seen.act);
        EQ(2, seen.fence);
    }
}

test_case(d39_a_holder_that_lost_its_effect_records_nothing)
{
    struct hf_journal_answer old = begin();
    advance(TERM - 1);
    EQ(HF_DECISION_BUSY, begin(.owner = "other").decision);
    advance(1); /* at the expiry it has lapsed, for both */
    CODE(HF_ELEASELOST, settle_effect(AT(t), old.token, HF_ENTRY_DONE, "{}"));
    CODE(HF_ELEASELOST, renew_effect(AT(t), old.token));
    struct hf_journal_answer next = begin(.owner = "other");
    EQ(HF_DECISION_TAKE_OVER, next.decision);
    CODE(HF_ELEASELOST, settle_effect(AT(t), old.token, HF_ENTRY_DONE, "{}"));
    CODE(0, settle_effect(AT(t), next.token, HF_ENTRY_UNKNOWN, "{\"lost\":1}"));
    CODE(HF_ELEASELOST,
         settle_effect(AT(t), old.token, HF_ENTRY_UNKNOWN, "{\"lost\":1}"));
}

test_case(d39_a_begin_with_its_nonce_is_answered_again)
{
    struct hf_journal_answer one = begin(.nonce = "n1");
    advance(SEC(10));
    struct hf_journal_answer again = begin(.nonce = "n1");
    EQ(HF_DECISION_ABSENT, again.decision);
    SAME(one.token, again.token);
    EQ(HF_DECISION_BUSY, begin(.nonce = "n2").decision);
    EQ(HF_DECISION_BUSY, begin().decision);
    (void)bump();
    CODE(HF_ELEASELOST, settle_effect(AT(t), one.token, HF_ENTRY_DONE, "{}"));
    EQ(HF_DECISION_BUSY, begin(.nonce = "n1").decision); /* patience stays */
    advance(SEC(20));
    EQ(HF_DECISION_TAKE_OVER, begin(.nonce = "n1").decision);
}

test_case(d39_a_scope_is_retired_by_its_exact_name)
{
    int64_t count = -1;
    struct hf_journal_answer one = begin();
    (void)begin(.of.key = "2");
    (void)begin(.of.scope_id = "o2");
    CODE(HF_EHELD, retire_scope(AT(t), "o", &count));
    EQ(HF_DECISION_BUSY, begin().decision);
    CODE(0, settle_effect(AT(t), one.token, HF_ENTRY_DONE, "{}"));
    advance(TERM);
    CODE(0, retire_scope(AT(t), "o", &count));
    EQ(2, count);
    CODE(0, retire_scope(AT(t), "o", &count));
    EQ(0, count);
    EQ(HF_DECISION_ABSENT, begin().decision);
    EQ(HF_DECISION_TAKE_OVER, begin(.of.scope_id = "o2").decision);
}

test_case(d39_prune_takes_the_effects_of_a_process_with_it)
{
    const char *old = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    const char *living = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    cancel(old);
    advance(SEC(10));
    for (int again = 0; again < 2; again++)
        EQ(again ? HF_DECISION_BUSY : HF_DECISION_ABSENT,
           begin(.of = { HF_SCOPE_PROCESS, old, "1" }).decision);
    (void)begin(.of = { HF_SCOPE_PROCESS, living, "1" });
    (void)begin(.of = { HF_SCOPE_OPERATION, old, "1" });
    EQ(1, prune(SEC(5), 0));
    EQ(HF_DECISION_BUSY, begin(.of = { HF_SCOPE_PROCESS, living, "1" }).decision);
    EQ(HF_DECISION_BUSY, begin(.of = { HF_SCOPE_OPERATION, old, "1" }).decision);
    EQ(HF_DECISION_ABSENT, begin(.of = { HF_SCOPE_PROCESS, old, "1" }).decision);
}

test_case(d39_process_prune_takes_the_effects_of_a_process_with_it)
{
    struct hf_prune_report report = { 0 };
    const char *old = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    const char *living = kit_process_of(t, HF_DISPOSITION_RERUNNABLE);
    cancel(old);
    advance(SEC(10));
    (void)begin(.of = { HF_SCOPE_PROCESS, old, "1" });
    (void)begin(.of = { HF_SCOPE_PROCESS, living, "1" });
    CODE(0, hf_process_prune(t->store, &t->who, SEC(5), &report, kit_err(t)));
    EQ(1, report.processes);
    EQ(HF_DECISION_BUSY, begin(.of = { HF_SCOPE_PROCESS, living, "1" }).decision);
    EQ(HF_DECISION_ABSENT, begin(.of = { HF_SCOPE_PROCESS, old, "1" }).decision);
}

/* ---- effects that need a person ------------------------------------------------------- */

static void drop_effects(void *at)
{
    hf_journal_effects_free(at);
}

static struct hf_journal_effects unknown_after(struct hf_conform *t, const char *after,
                                               size_t limit)
{
    struct hf_journal_effects *page = NULL;
    if (!t->failed)
        t->code = kit_called(
            t, hf_journal_unknown(t->store, &t->who, after, limit, &page, kit_err(t)));
    kit_keep(t, page, drop_effects);
    return page ? *page : (struct hf_journal_effects){ .count = 0 };
}
#define unknown(after, limit) unknown_after(AT(t), (after), (limit))

static struct hf_journal_effect resolve_as(struct hf_conform *t,
                                           struct hf_journal_resolve request)
{
    struct hf_journal_effects *shown = NULL;
    request.size = sizeof(request);
    if (!request.of.scope)
        request.of = first;
    if (!t->failed)
        t->code = kit_called(
            t, hf_journal_resolve(t->store, &t->who, &request, &shown, kit_err(t)));
    kit_keep(t, shown, drop_effects);
    return shown && shown->count == 1 ? shown->items[0]
                                      : (struct hf_journal_effect){ .key = "" };
}
#define resolve(...) resolve_as(AT(t), (struct hf_journal_resolve){ __VA_ARGS__ })

test_case(d39_an_effect_of_a_scope_that_is_unknown_is_listed_until_it_is_resolved)
{
    struct hf_journal_answer seen = begin();
    advance(SEC(2));
    CODE(0, settle_effect(AT(t), seen.token, HF_ENTRY_UNKNOWN, "{\"lost\":1}"));
    EQ(1, unknown(NULL, 0).count);
    struct hf_journal_effect one = unknown(NULL, 0).items[0];
    SAME("operation", one.scope);
    SAME("o", one.scope_id);
    SAME("1", one.key);
    SAME("", one.tenant);
    SAME("mail", one.kind);
    SAME("keyed", one.recovery);
    SAME("unknown", one.status);
    SAME("host", one.owner);
    SAME("{\"to\":\"anna\",\"what\":{\"price\":1}}", one.envelope);
    SAME("{\"lost\":1}", one.outcome);
    EQ(t->wall - SEC(2), one.started_at);
    EQ(t->wall, one.settled_at);
    EQ(0, one.resolved_at);
    TRUE(one.actor == NULL && one.actor_kind == NULL && one.known == NULL);
    t->who.tenant = "acme"; /* has none */
    EQ(0, unknown(NULL, 0).count);
    t->who.tenant = NULL;
    advance(SEC(1));
    t->who.actor_kind = "human";
    t->who.actor = "anna";
    one = resolve(.status = HF_ENTRY_DONE, .outcome = "{ \"sent\": true }");
    CODE(0, t->code);
    SAME("done", one.status);
    SAME("{\"sent\":true}", one.outcome);
    SAME("{\"lost\":1}", one.known);
    SAME("human", one.actor_kind);
    SAME("anna", one.actor);
    EQ(t->wall - SEC(1), one.settled_at);
    EQ(t->wall, one.resolved_at);
    EQ(0, unknown(NULL, 0).count);
    seen = begin();
    EQ(HF_DECISION_REPLAY, seen.decision);
    EQ(HF_ENTRY_DONE, seen.status);
    SAME("{\"sent\":true}", seen.outcome);
}

test_case(d39_an_effect_of_a_scope_is_resolved_once)
{
    (void)resolve(.status = HF_ENTRY_DONE, .outcome = "1");
    CODE(HF_ENOTFOUND, t->code);
    struct hf_journal_answer seen = begin();
    (void)resolve(.status = HF_ENTRY_DONE, .outcome = "1");
    CODE(HF_EHELD, t->code);
    advance(TERM); /* its holder was lost */
    t->who.actor_kind = "human";
    t->who.actor = "anna";
    struct hf_journal_effect one = resolve(.status = HF_ENTRY_UNKNOWN,
                                           .reason = "closed");
    CODE(0, t->code);
    SAME("unknown", one.status);
    SAME("{\"reason\":\"closed\"}", one.outcome);
    TRUE(one.known == NULL);
    EQ(t->wall, one.settled_at);
    t->who.actor = "bert";
    one = resolve(.status = HF_ENTRY_UNKNOWN, .outcome = "{\"reason\": \"closed\"}");
    CODE(0, t->code);
    SAME("anna", one.actor);
    (void)resolve(.status = HF_ENTRY_UNKNOWN, .reason = "open");
    CODE(HF_ECONFLICT, t->code);
    (void)resolve(.status = HF_ENTRY_DONE, .reason = "closed");
    CODE(HF_ECONFLICT, t->code);
    CODE(HF_ECONFLICT, settle_effect(AT(t), seen.token, HF_ENTRY_DONE, "{}"));
    EQ(0, unknown(NULL, 0).count);
    seen = begin(.of.key = "2");
    const struct hf_journal_key second = { HF_SCOPE_OPERATION, "o", "2" };
    CODE(0, hf_journal_settle(t->store, &second, seen.token, HF_ENTRY_DONE, "{}",
                              kit_err(t)));
    (void)resolve(.of = second, .status = HF_ENTRY_FAILED, .reason = "no");
    CODE(HF_ECONFLICT, t->code);
    SAME("{}", begin(.of.key = "2").outcome);
}

test_case(d39_a_lapsed_effect_of_a_scope_is_listed_where_no_begin_helps)
{
    static const enum hf_recovery classes[] = { HF_RECOVERY_SAFE, HF_RECOVERY_KEYED,
                                                HF_RECOVERY_PROBE, HF_RECOVERY_ASK };
    static const char *const keys[] = { "a", "b", "c", "d" };
    const char *ended = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    const char *living = new_id(.disposition = HF_DISPOSITION_RERUNNABLE);
    cancel(ended);
    for (size_t i = 0; i < 4; i++) {
        (void)begin(.of.key = keys[i], .recovery = classes[i]);
        (void)begin(.of = { HF_SCOPE_PROCESS, ended, keys[i] }, .recovery = classes[i]);
        (void)begin(.of = { HF_SCOPE_PROCESS, living, keys[i] }, .recovery = classes[i]);
    }
    advance(TERM - 1);
    EQ(0, unknown(NULL, 0).count);
    advance(1);
    struct hf_journal_effects page = unknown(NULL, 0);
    EQ(5, page.count);
    SAME("operation", page.items[0].scope);
    SAME("d", page.items[0].key);
    SAME(ended, page.items[1].scope_id);
    SAME("b", page.items[1].key);
    SAME("started", page.items[1].status);
    TRUE(page.items[1].outcome == NULL);
    SAME("c", page.items[2].key);
    SAME("d", page.items[3].key);
    SAME(living, page.items[4].scope_id);
    SAME("d", page.items[4].key);
    (void)begin(.of.key = "d", .owner = "next"); /* taken over: performed again */
    EQ(4, unknown(NULL, 0).count);
}

test_case(d39_unknown_effects_of_scopes_are_listed_in_pages)
{
    static const char *const ids[] = { "o 1", "o", "o2" };
    for (size_t i = 0; i < 3; i++)
        for (int key = 0; key < 2; key++)
            (void)begin(.of = { HF_SCOPE_OPERATION, ids[i], key ? "k 2" : "k" },
                        .recovery = HF_RECOVERY_ASK);
    advance(TERM);
    struct hf_journal_effects page = unknown(NULL, 4);
    EQ(4, page.count);
    SAME("o", page.items[0].scope_id);
    SAME("k", page.items[0].key);
    SAME("k 2", page.items[1].key);
    SAME("o 1", page.items[3].scope_id);
    SAME("k 2", page.items[3].key);
    page = unknown(page.next, 4);
    EQ(2, page.count);
    SAME("o2", page.items[0].scope_id);
    SAME("k 2", page.items[1].key);
    TRUE(page.next == NULL);
    (void)unknown("nonsense", 0);
    CODE(HF_EINVAL, t->code);
    SAME("after", t->err.field);
    const char *cursor = unknown(NULL, 4).next;
    t->who.tenant = "acme";
    (void)unknown(cursor, 4);
    CODE(HF_EINVAL, t->code);
    t->who.tenant = NULL;
    (void)unknown(NULL, 1001);
    CODE(HF_ETOOBIG, t->code);
}

test_case(d39_a_bad_resolution_of_an_effect_is_refused_by_field)
{
    (void)begin();
    advance(TERM);
    (void)resolve(.status = HF_ENTRY_STARTED, .reason = "r");
    CODE(HF_EINVAL, t->code);
    SAME("status", t->err.field);
    (void)resolve(.status = HF_ENTRY_DONE);
    CODE(HF_EINVAL, t->code);
    SAME("outcome", t->err.field);
    (void)resolve(.status = HF_ENTRY_DONE, .outcome = "1", .reason = "r");
    CODE(HF_EINVAL, t->code);
    (void)resolve(.status = HF_ENTRY_DONE, .outcome = "{");
    CODE(HF_EINVAL, t->code);
    SAME("outcome", t->err.field);
    (void)resolve(.of = { HF_SCOPE_OPERATION, "o", "" }, .status = HF_ENTRY_DONE,
                  .reason = "r");
    CODE(HF_EINVAL, t->code);
    SAME("key", t->err.field);
    EQ(HF_DECISION_TAKE_OVER, begin().decision);
}

test_case(d39_bad_effects_of_scopes_are_refused_by_field)
{
    (void)begin(.of.scope_id = "");
    CODE(HF_EINVAL, t->code);
    SAME("scope_id", t->err.field);
    (void)begin(.envelope = "{");
    CODE(HF_EINVAL, t->code);
    SAME("envelope", t->err.field);
    (void)begin(.recovery = HF_RECOVERY_COUNT);
    CODE(HF_EINVAL, t->code);
    SAME("recovery", t->err.field);
    struct hf_journal_answer seen = begin();
    CODE(HF_EINVAL, settle_effect(AT(t), seen.token, HF_ENTRY_STARTED, "{}"));
    SAME("status", t->err.field);
    CODE(HF_EINVAL, settle_effect(AT(t), seen.token, HF_ENTRY_DONE, NULL));
    CODE(HF_EINVAL, settle_effect(AT(t), "mine", HF_ENTRY_DONE, "{}"));
    SAME("token", t->err.field);
    CODE(0, settle_effect(AT(t), seen.token, HF_ENTRY_DONE, "{}"));
}

test_case(d39_the_journal_of_scopes_survives_a_reopen)
{
    struct hf_journal_answer seen = begin();
    CODE(0, settle_effect(AT(t), seen.token, HF_ENTRY_DONE, "{\"id\":7}"));
    reopen();
    seen = begin();
    EQ(HF_DECISION_REPLAY, seen.decision);
    SAME("{\"id\":7}", seen.outcome);
}
