/* Triggers: the lines of durable-state.md 3.8. */

#include "conform/kit.h"

/* ---- short forms ------------------------------------------------------------------- */

static void drop_subscriptions(void *at)
{
    hf_subscriptions_free(at);
}

static void drop_emission(void *at)
{
    hf_emission_free(at);
}

static const struct hf_subscription *kept(struct hf_conform *t,
                                          struct hf_subscriptions *found)
{
    static const struct hf_subscription none;
    if (t->code != 0 || !found)
        return &none;
    kit_keep(t, found, drop_subscriptions);
    const struct hf_subscription *one = hf_subscriptions_at(found, 0);
    return one ? one : &none;
}

static struct hf_subscription_spec filled(struct hf_subscription_spec wanted)
{
    wanted.size = sizeof(wanted);
    wanted.key = wanted.key ? wanted.key : "k";
    wanted.source_type = wanted.source_type ? wanted.source_type : "mail";
    wanted.source_key = wanted.source_key ? wanted.source_key : "inbox";
    wanted.priority = -1;
    return wanted;
}

static const struct hf_subscription *kit_subscribe(struct hf_conform *t,
                                                   struct hf_subscription_spec wanted)
{
    struct hf_subscriptions *found = NULL;
    if (t->failed)
        return kept(t, NULL);
    wanted = filled(wanted);
    t->code = kit_called(
        t, hf_trigger_subscribe(t->store, &t->who, &wanted, &found, kit_err(t)));
    return kept(t, found);
}

static const struct hf_subscription *kit_update(struct hf_conform *t, int64_t revision,
                                                struct hf_subscription_spec wanted)
{
    struct hf_subscriptions *found = NULL;
    if (t->failed)
        return kept(t, NULL);
    wanted = filled(wanted);
    t->code = kit_called(
        t, hf_trigger_update(t->store, &t->who, &wanted, revision, &found, kit_err(t)));
    return kept(t, found);
}

static const struct hf_subscription *kit_alter(struct hf_conform *t,
                                               enum hf_trigger_verb verb,
                                               int64_t revision)
{
    struct hf_subscriptions *found = NULL;
    struct hf_trigger_change change = {
        .size = sizeof(change), .verb = verb, .key = "k", .revision = revision
    };
    if (t->failed)
        return kept(t, NULL);
    t->code = kit_called(
        t, hf_trigger_change(t->store, &t->who, &change, &found, kit_err(t)));
    return kept(t, found);
}

static const struct hf_subscription *kit_look(struct hf_conform *t, const char *key)
{
    struct hf_subscriptions *found = NULL;
    if (t->failed)
        return kept(t, NULL);
    t->code = kit_called(
        t, hf_trigger_get(t->store, &t->who, NULL, key, &found, kit_err(t)));
    return kept(t, found);
}

static const struct hf_emission *kit_emit(struct hf_conform *t,
                                          struct hf_occurrence_spec occurrence)
{
    struct hf_emission *emission = NULL;
    occurrence.size = sizeof(occurrence);
    if (!occurrence.source_type)
        occurrence.source_type = "mail";
    if (!occurrence.source_key)
        occurrence.source_key = "inbox";
    if (!occurrence.idempotency_key)
        occurrence.idempotency_key = "1";
    if (t->failed)
        return NULL;
    t->code = kit_called(
        t, hf_trigger_emit(t->store, &t->who, &occurrence, &emission, kit_err(t)));
    if (t->code == 0)
        kit_keep(t, emission, drop_emission);
    return t->code == 0 ? emission : NULL;
}

static size_t reached(const struct hf_emission *emission)
{
    return emission ? hf_emission_count(emission) : 0;
}

static const struct hf_delivery *delivery(const struct hf_emission *emission, size_t i)
{
    static const struct hf_delivery none;
    const struct hf_delivery *found = emission ? hf_emission_at(emission, i) : NULL;
    return found ? found : &none;
}

static size_t granted(struct hf_conform *t, const char *session_id, const char *work_id)
{
    struct hf_answer *answer = NULL;
    size_t count = 0;
    if (t->failed || hf_trigger_granted(t->store, &t->who, session_id, 0, &answer, NULL))
        return 0;
    for (size_t i = 0; i < hf_answer_count(answer); i++)
        count += same(hf_answer_at(answer, i)->work.work_id, work_id);
    hf_answer_free(answer);
    return count;
}

#define subscribe(...) kit_subscribe(AT(t), (struct hf_subscription_spec){ __VA_ARGS__ })
#define update(revision, ...)                                                            \
    kit_update(AT(t), (revision), (struct hf_subscription_spec){ __VA_ARGS__ })
#define enable(revision) kit_alter(AT(t), HF_TRIGGER_ENABLE, (revision))
#define disable(revision) kit_alter(AT(t), HF_TRIGGER_DISABLE, (revision))
#define remove_it(revision) kit_alter(AT(t), HF_TRIGGER_REMOVE, (revision))
#define revive(revision) kit_alter(AT(t), HF_TRIGGER_REVIVE, (revision))
#define look(key) kit_look(AT(t), (key))
#define emit(...) kit_emit(AT(t), (struct hf_occurrence_spec){ __VA_ARGS__ })

static int64_t all_units(struct hf_conform *t)
{
    static const enum hf_status all[] = { HF_STATUS_QUEUED, HF_STATUS_RUNNING,
                                          HF_STATUS_DONE, HF_STATUS_CANCELLED };
    int64_t units = 0;
    const char *after = NULL;
    do {
        const struct hf_answer *page = kit_list(
            t, (struct hf_filter){
                   .statuses = all, .status_count = 4, .limit = 1000, .after = after });
        units += (int64_t)count_of(page);
        after = page ? hf_answer_next(page) : NULL;
    } while (after);
    return units;
}

/* ---- subscriptions ----------------------------------------------------------------- */

test_case(d38_ids_are_stable_and_the_same_definition_changes_nothing)
{
    const struct hf_subscription *s = subscribe(.kind = "triage");
    SAME("enabled", s->state);
    EQ(1, s->revision);
    SAME("host", s->owner_scope);
    SAME("system:holdfast", s->registrant);
    TRUE(begins(s->subscription_id, "sub:v1:"));
    advance(SEC(1));
    const struct hf_subscription *again = subscribe(.kind = "triage");
    SAME(s->subscription_id, again->subscription_id);
    SAME(s->incarnation, again->incarnation);
    EQ(1, again->revision);
    EQ(s->updated_at, again->updated_at);
    TRUE(!same(s->subscription_id,
               subscribe(.owner_scope = "host:b", .kind = "triage")->subscription_id));
}

test_case(d38_a_second_registration_never_replaces_the_first)
{
    subscribe(.kind = "triage");
    subscribe(.kind = "other");
    CODE(HF_ECONFLICT, t->code);
    SAME("key", t->err.field);
    SAME("triage", look("k")->kind);
    remove_it(0);
    subscribe(.kind = "triage");
    CODE(HF_ECONFLICT, t->code);
    TRUE(contains(t->err.message, "revive"));
}

test_case(d38_an_update_needs_the_revision_that_was_seen)
{
    const char *incarnation = subscribe(.kind = "a")->incarnation;
    const struct hf_subscription *s = update(1, .kind = "b");
    EQ(2, s->revision);
    SAME(incarnation, s->incarnation);
    update(1, .kind = "c");
    CODE(HF_ECONFLICT, t->code);
    SAME("revision", t->err.field);
    SAME("b", look("k")->kind);
    EQ(2, update(2, .kind = "b")->revision); /* nothing new */
    update(0, .kind = "c");
    CODE(HF_EINVAL, t->code);
    update(1, .key = "none", .kind = "c");
    CODE(HF_ENOTFOUND, t->code);
}

test_case(d38_enabling_and_disabling_are_fenced_and_disabled_gets_nothing)
{
    subscribe(.kind = "a");
    EQ(1, enable(1)->revision); /* it is */
    EQ(2, disable(1)->revision);
    disable(1);
    CODE(HF_ECONFLICT, t->code);
    SAME("disabled", update(2, .kind = "b")->state);
    const struct hf_emission *e = emit(.idempotency_key = "off");
    CODE(0, t->code);
    EQ(0, reached(e));
    EQ(4, enable(3)->revision);
    EQ(0, reached(emit(.idempotency_key = "off"))); /* it happened then, not now */
    EQ(1, reached(emit(.idempotency_key = "on")));
    EQ(1, look("k")->deliveries);
}

test_case(d38_a_removed_one_keeps_its_history_and_is_revived_as_another)
{
    const char *first = subscribe(.kind = "a")->incarnation;
    const struct hf_emission *e = emit();
    EQ(1, reached(e));
    const struct hf_subscription *s = remove_it(1);
    SAME("deleted", s->state);
    EQ(2, s->revision);
    EQ(2, remove_it(0)->revision);
    enable(0);
    CODE(HF_ETRANSITION, t->code);
    update(2, .kind = "b");
    CODE(HF_ETRANSITION, t->code);
    EQ(0, reached(emit(.idempotency_key = "2")));
    EQ(1, reached(emit())); /* what was delivered stays so */
    s = revive(2);
    SAME("enabled", s->state);
    EQ(3, s->revision);
    EQ(1, s->deliveries);
    TRUE(!same(first, s->incarnation));
    revive(0);
    CODE(HF_ETRANSITION, t->code);
    EQ(1, reached(emit(.idempotency_key = "3")));
}

test_case(d38_receipts_give_success_and_conflict_again_whatever_came_since)
{
    t->who.operation_id = "op-1";
    EQ(1, subscribe(.kind = "a")->revision);
    t->who.operation_id = "op-2";
    update(7, .kind = "b");
    CODE(HF_ECONFLICT, t->code);
    t->who.operation_id = NULL;
    EQ(2, update(1, .kind = "c")->revision);
    t->who.operation_id = "op-1";
    const struct hf_subscription *s = subscribe(.kind = "a");
    CODE(0, t->code);
    EQ(1, s->revision);
    SAME("a", s->kind);
    t->who.operation_id = "op-2";
    update(7, .kind = "b");
    CODE(HF_ECONFLICT, t->code);
    SAME("revision", t->err.field);
    update(2, .kind = "b"); /* the same id with other content */
    CODE(HF_ECONFLICT, t->code);
    SAME("operation_id", t->err.field);
    subscribe(.owner_scope = "host:b", .kind = "a"); /* another owner's ids are its own */
    CODE(0, t->code);
    t->who.operation_id = NULL;
    SAME("c", look("k")->kind);
}

/* ---- occurrences ------------------------------------------------------------------- */

test_case(d38_a_delivery_is_the_row_of_its_target)
{
    const struct hf_subscription *s =
        subscribe(.kind = "triage", .queue = "q",
                  .payload_template =
                      "{\"from\":{\"$event\":\"mail.from\"},\"fixed\":[1,2]}");
    const struct hf_emission *e =
        emit(.payload = "{\"mail\":{\"from\":\"ann\",\"n\":1}}");
    CODE(0, t->code);
    EQ(1, reached(e));
    TRUE(e && hf_emission_created(e));
    const struct hf_delivery *d = delivery(e, 0);
    TRUE(begins(d->delivery_id, "dlv:v1:"));
    SAME(s->subscription_id, d->subscription_id);
    const struct hf_work *w = row(d->work_id);
    SAME("control", w->source_system);
    SAME(s->subscription_id, w->source_id);
    SAME(e ? hf_emission_occurrence(e) : NULL, w->source_run_id);
    SAME("triage", w->kind);
    SAME("q", w->queue);
    SAME("rerunnable", w->disposition);
    SAME("{\"fixed\":[1,2],\"from\":\"ann\"}", w->payload);
    TRUE(contains(d->snapshot, "\"kind\":\"triage\""));
    TRUE(contains(d->snapshot, "\"revision\":1"));
}

test_case(d38_the_same_occurrence_twice_starts_each_target_once)
{
    for (int i = 0; i < 3; i++)
        subscribe(.key = say("k%d", i));
    const struct hf_emission *first = emit(.payload = "{\"a\":1,\"b\":2}");
    EQ(3, reached(first));
    const struct hf_emission *again = emit(.payload = "{ \"b\": 2, \"a\": 1 }");
    CODE(0, t->code);
    TRUE(again && !hf_emission_created(again));
    EQ(3, reached(again));
    for (size_t i = 0; i < 3; i++) {
        SAME(delivery(first, i)->delivery_id, delivery(again, i)->delivery_id);
        SAME(delivery(first, i)->work_id, delivery(again, i)->work_id);
    }
    EQ(3, all_units(t));
    emit(.payload = "{\"a\":2}");
    CODE(HF_ECONFLICT, t->code);
    SAME("idempotency_key", t->err.field);
    EQ(3, reached(emit(.source_key = "inbox", .payload = "{\"a\":1,\"b\":2}")));
    EQ(0, reached(emit(.source_key = "other"))); /* a key is its source's own */
    CODE(0, t->code);
    EQ(3, all_units(t));
}

test_case(d38_two_handles_emit_one_occurrence_once)
{
    for (int i = 0; i < 5; i++)
        subscribe(.key = say("k%d", i));
    struct hf_store *first = t->store, *second = kit_second(AT(t));
    const struct hf_emission *a = emit();
    kit_use(t, second);
    const struct hf_emission *b = emit();
    kit_use(t, first);
    EQ(5, reached(a));
    EQ(5, reached(b));
    TRUE(a && b && hf_emission_created(a) && !hf_emission_created(b));
    EQ(5, all_units(t));
}

test_case(d38_no_payload_and_null_are_the_same)
{
    subscribe();
    EQ(1, reached(emit()));
    EQ(1, reached(emit(.payload = "null")));
    CODE(0, t->code);
    TRUE(row(delivery(emit(), 0)->work_id)->payload == NULL);
}

test_case(d38_deliveries_are_in_the_order_of_owners_and_keys)
{
    subscribe(.owner_scope = "session:b", .key = "1");
    subscribe(.owner_scope = "host", .key = "z");
    subscribe(.owner_scope = "session:a", .key = "9");
    subscribe(.owner_scope = "host", .key = "a");
    const struct hf_emission *e = emit();
    SAME("a", delivery(e, 0)->subscription_key);
    SAME("z", delivery(e, 1)->subscription_key);
    SAME("9", delivery(e, 2)->subscription_key);
    SAME("1", delivery(e, 3)->subscription_key);
    /* Only those of one owner. */
    e = emit(.idempotency_key = "2", .scope = "session:a");
    EQ(1, reached(e));
    SAME("session:a", delivery(e, 0)->owner_scope);
}

test_case(d38_what_was_delivered_stays_as_it_was)
{
    subscribe(.kind = "old");
    const struct hf_emission *e = emit();
    update(1, .kind = "new");
    disable(0);
    remove_it(0);
    const struct hf_emission *again = emit();
    SAME(delivery(e, 0)->snapshot, delivery(again, 0)->snapshot);
    TRUE(contains(delivery(again, 0)->snapshot, "\"kind\":\"old\""));
    EQ(1, delivery(again, 0)->revision);
    SAME("old", claim(.limit = 1)->work.kind);
}

test_case(d38_nobody_who_waits_is_no_failure)
{
    const struct hf_emission *e = emit();
    CODE(0, t->code);
    EQ(0, reached(e));
    subscribe(); /* too late for that one */
    EQ(0, reached(emit()));
    EQ(0, all_units(t));
}

test_case(d38_a_pruned_target_is_not_started_again)
{
    subscribe();
    const char *id = delivery(emit(), 0)->work_id;
    CODE(0, cancel(id)->code);
    advance(HOUR(48));
    EQ(1, kit_prune(AT(t), HOUR(24), 0));
    const struct hf_emission *again = emit();
    CODE(0, t->code);
    TRUE(again && !hf_emission_created(again));
    EQ(0, reached(again));
    EQ(0, all_units(t));
}

test_case(d38_an_occurrence_goes_when_its_last_unit_is_gone)
{
    emit(.source_key = "unheard"); /* made no delivery, so nothing holds it */
    subscribe();
    const char *id = delivery(emit(), 0)->work_id;
    advance(HOUR(31 * 24));
    EQ(0, prune(HOUR(24), 0)); /* a cutoff ends nothing that is not over */
    IS("queued", id);
    const struct hf_emission *again = emit();
    TRUE(again && !hf_emission_created(again));
    again = emit(.source_key = "unheard");
    TRUE(again && hf_emission_created(again));
    CODE(0, cancel(id)->code);
    advance(HOUR(48));
    EQ(1, prune(HOUR(24), 0));
    prune(HOUR(24), 0); /* the unit's delivery is gone by now, so the rest can go */
    again = emit();
    TRUE(again && hf_emission_created(again));
    EQ(1, reached(again));
}

test_case(a_session_is_woken_and_granted_the_handle)
{
    subscribe(.kind = "triage", .wake_session = "s1");
    const struct hf_emission *e = emit();
    const struct hf_delivery *d = delivery(e, 0);
    const struct hf_work *wake = row(d->wake_work_id);
    SAME("wake", wake->kind);
    SAME("session:s1", wake->queue);
    SAME("session:s1", wake->lane_key);
    SAME(d->work_id, wake->parent_work_id);
    TRUE(contains(wake->payload, d->work_id));
    EQ(1, granted(t, "s1", d->work_id));
    EQ(0, granted(t, "s2", d->work_id));
    emit(); /* again: no session is woken twice */
    EQ(2, all_units(t));
}

test_case(a_template_that_names_a_missing_member_writes_nothing)
{
    subscribe(.key = "a");
    subscribe(.key = "b", .payload_template = "{\"x\":{\"$event\":\"mail.subject\"}}");
    emit(.payload = "{\"mail\":{\"from\":\"ann\"}}");
    CODE(HF_EINVAL, t->code);
    SAME("template", t->err.field);
    TRUE(contains(t->err.message, "mail.subject"));
    TRUE(contains(t->err.message, "subscription b"));
    EQ(0, all_units(t));
    EQ(0, look("a")->deliveries);
    update(0, .key = "b");
    update(1, .key = "b",
           .payload_template = "{\"x\":{\"$event\":\"mail.subject\",\"default\":null},"
                               "\"all\":{\"$event\":\"\"},\"n\":{\"$event\":\"l.1\"}}");
    CODE(0, t->code);
    const struct hf_emission *e = emit(.payload = "{\"l\":[7,8]}");
    CODE(0, t->code);
    SAME("{\"all\":{\"l\":[7,8]},\"n\":8,\"x\":null}",
         row(delivery(e, 1)->work_id)->payload);
}

test_case(a_thousand_subscribers_are_one_transaction)
{
    for (int i = 0; i < 1000; i++)
        subscribe(.key = say("k%04d", i));
    const struct hf_emission *e = emit(.payload = "{\"a\":1}");
    CODE(0, t->code);
    EQ(1000, reached(e));
    EQ(1000, all_units(t));
    EQ(1000, reached(emit(.payload = "{\"a\":1}")));
    EQ(1000, all_units(t));
}

test_case(tenants_share_no_subscriptions)
{
    t->who.tenant = "a";
    subscribe();
    t->who.tenant = "b";
    look("k");
    CODE(HF_ENOTFOUND, t->code);
    EQ(0, reached(emit()));
    t->who.tenant = "a";
    EQ(1, reached(emit()));
}

/* ---- reading and input ------------------------------------------------------------- */

test_case(bad_subscriptions_and_occurrences_are_refused_by_field)
{
    static const struct {
        struct hf_subscription_spec wanted;
        const char *field;
    } bad[] = {
        { { .key = "" }, "key" },
        { { .source_type = "" }, "source_type" },
        { { .source_key = "" }, "source_key" },
        { { .owner_scope = "" }, "owner_scope" },
        { { .owner_scope = "anything" }, "owner_scope" },
        { { .owner_scope = "session:" }, "owner_scope" },
        { { .payload_template = "{" }, "template" },
        { { .payload_template = "{\"$event\":1}" }, "template" },
        { { .payload_template = "[{\"a\":{\"$event\":\"x\",\"y\":1}}]" }, "template" },
        { { .kind = "hf.x" }, "kind" },
        { { .retry_policy = "7" }, "retry_policy" },
        { { .disposition = HF_DISPOSITION_OWNER_BOUND, .exec_timeout_ms = 5 },
          "exec_timeout_ms" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        kit_subscribe(AT(t), bad[i].wanted);
        if (t->code != HF_EINVAL || !same(t->err.field, bad[i].field))
            kit_fail(t, "number %zu: %d %s: %s", i, t->code, t->err.field,
                     t->err.message);
        look("k");
        CODE(HF_ENOTFOUND, t->code);
    }
    emit(.idempotency_key = "");
    CODE(HF_EINVAL, t->code);
    SAME("idempotency_key", t->err.field);
    emit(.payload = "{");
    CODE(HF_EINVAL, t->code);
    SAME("payload", t->err.field);
}

test_case(a_target_that_is_a_process_begins_in_the_emission)
{
    struct hf_processes *found = NULL;
    const struct hf_subscription *s = subscribe(.owner_scope = "session:s9",
                                                .process_kind = "agent",
                                                .process_name = "reader",
                                                .wake_session = "s1");
    SAME("process", s->kind);
    SAME("rerunnable", s->disposition);
    const struct hf_emission *e = emit(.payload = "{\"n\":1}");
    const char *id = delivery(e, 0)->work_id;
    struct hf_process_filter filter = { .size = sizeof(filter), .id = id };
    t->code = kit_called(t,
                         hf_process_list(t->store, &t->who, &filter, &found, kit_err(t)));
    CODE(0, t->code);
    if (t->failed)
        return;
    const struct hf_process *p = hf_processes_at(found, 0);
    SAME("agent", p->identity_kind);
    SAME("reader", p->identity_label);
    SAME("s9", p->originator);
    SAME("s1", p->wake_session);
    SAME("[\"s1\"]", p->observers);
    SAME(e ? hf_emission_occurrence(e) : NULL, p->cause_occurrence);
    SAME(s->subscription_id, p->cause_subscription);
    SAME("{\"n\":1}", p->work.payload);
    hf_processes_free(found);
    EQ(1, granted(t, "s1", id));
    EQ(1, reached(emit(.payload = "{\"n\":1}"))); /* once, for any emitter */
    EQ(2, all_units(t));                          /* it, and the wake of its beginning */
    cancel(id);
    EQ(3, all_units(t)); /* and of its end */
}

test_case(a_target_that_is_a_process_is_as_declared)
{
    subscribe(.process_kind = "agent", .disposition = HF_DISPOSITION_EXPIRE);
    CODE(HF_EINVAL, t->code);
    SAME("disposition", t->err.field);
    subscribe(.process_name = "reader");
    CODE(HF_EINVAL, t->code);
    SAME("process_kind", t->err.field);
    SAME("owner_bound",
         subscribe(.process_kind = "agent", .disposition = HF_DISPOSITION_OWNER_BOUND)
             ->disposition);
    SAME("owner_bound", row(delivery(emit(), 0)->work_id)->disposition);
    update(1, .process_kind = "other", .disposition = HF_DISPOSITION_OWNER_BOUND);
    EQ(2, look("k")->revision);
    SAME("other", look("k")->process_kind);
}
