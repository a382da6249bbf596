/* Creating: rule 15, keys, births, defaults. */

#include "conform/kit.h"

static size_t open_rows(struct hf_conform *t)
{
    const struct hf_answer *all = list(.limit = 1000);
    return count_of(all);
}

test_case(create_is_idempotent)
{
    const struct hf_item *first = create(.source_id = "a", .payload = "{\"n\":1}");
    CODE(0, first->code);
    TRUE(first->created);
    const char *before = picture();
    advance(SEC(5));
    const struct hf_item *again = create(.source_id = "a", .payload = "{\"n\":1}");
    CODE(0, again->code);
    TRUE(!again->created);
    SAME(first->work.work_id, again->work.work_id);
    CODE(HF_ECONFLICT, create(.source_id = "a", .payload = "{\"n\":2}")->code);
    CODE(HF_ECONFLICT, create(.source_id = "a")->code);
    UNCHANGED(before);
}

test_case(create_is_idempotent_after_the_row_ended)
{
    struct held h = running(.source_id = "a", .payload = "1");
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    const struct hf_item *again = create(.source_id = "a", .payload = "1");
    CODE(0, again->code);
    TRUE(!again->created);
    SAME(h.id, again->work.work_id);
    SAME("done", again->work.status);
    EQ(0, open_rows(t));
}

test_case(create_compares_the_request_as_typed_not_as_completed)
{
    const struct hf_item *first = create(.source_id = "a");
    CODE(0, policy("default", .grace_ms = -1, .max_attempts = 9));
    const struct hf_item *again = create(.source_id = "a");
    CODE(0, again->code);
    TRUE(!again->created);
    EQ(3, again->work.max_attempts);
    /* The default's own value, but typed: another request. */
    CODE(HF_ECONFLICT, create(.source_id = "a", .priority = 3)->code);
    SAME(first->work.work_id, again->work.work_id);
}

test_case(r01_a_row_has_what_was_asked_and_the_defaults)
{
    const struct hf_item *made = create(.source = HF_SOURCE_CONVERSATION,
                                        .source_id = "chat-7", .source_run_id = "m1",
                                        .kind = "reply", .queue = "fast", .lane_key = "L",
                                        .dedup_key = "D", .idempotency_key = "I",
                                        .ref = "R", .payload = "[1, 2]");
    const struct hf_work *w = row(made->work.work_id);
    SAME("conversation", w->source_system);
    SAME("chat-7", w->source_id);
    SAME("m1", w->source_run_id);
    SAME("reply", w->kind);
    SAME("fast", w->queue);
    SAME("L", w->lane_key);
    SAME("D", w->dedup_key);
    SAME("I", w->idempotency_key);
    SAME("R", w->ref);
    SAME("[1, 2]", w->payload);
    SAME("queued", w->status);
    SAME("expire", w->disposition);
    SAME("", w->tenant);
    SAME(NULL, w->gate);
    SAME(NULL, w->owner);
    SAME(NULL, w->payload_ref);
    EQ(3, w->priority);
    EQ(3, w->max_attempts);
    EQ(0, w->attempt_count);
    EQ(0, w->failures);
    EQ(0, w->generation);
    EQ(0, w->lease_fence);
    EQ(1800000000000, w->created_at);
    EQ(1800000000000, w->updated_at);
    EQ(1800000000000, w->due_at);
    EQ(0, w->started_at);
    EQ(0, w->finished_at);
    SAME("work", row(new_id())->kind);
    SAME("default", row(new_id())->queue);
}

test_case(r04_creation_is_an_event)
{
    const char *id = new_id();
    EQ(1, count_events(id, "work_created"));
    const struct hf_event *event = last_change(id);
    SAME("work_created", event->event_type);
    SAME(NULL, event->from_status);
    SAME("queued", event->to_status);
    SAME("system", event->actor_kind);
    SAME("holdfast", event->actor);
    EQ(1800000000000, event->created_at);
}

test_case(r08_one_row_per_inbound_unit)
{
    struct hf_work_spec same_unit[] = { { .source_id = "u" },
                                        { .source_id = "u" },
                                        { .source_id = "v" } };
    const struct hf_answer *answer = kit_create_many(AT(t), same_unit, 3, 0);
    CODE(0, t->code);
    EQ(3, count_of(answer));
    TRUE(item_of(answer, 0)->created);
    TRUE(!item_of(answer, 1)->created);
    TRUE(item_of(answer, 2)->created);
    SAME(item_of(answer, 0)->work.work_id, item_of(answer, 1)->work.work_id);
    create(.source_id = "v");
    EQ(2, open_rows(t));
}

/* What a driver that writes many rows at once might mix up, drop or quote wrongly. */
static void check_many(struct hf_conform *t, struct hf_work_spec *news, size_t n)
{
    const struct hf_answer *answer = kit_create_many(AT(t), news, n, HF_BRIEF);
    CODE(0, t->code);
    EQ(n, count_of(answer));
    for (size_t i = 0; i < n; i++) {
        TRUE(item_of(answer, i)->created);
        const struct hf_work *w = row(item_of(answer, i)->work.work_id);
        SAME(news[i].source_id, w->source_id);
        SAME(news[i].source_run_id, w->source_run_id);
        SAME(news[i].kind, w->kind);
        SAME(news[i].idempotency_key, w->idempotency_key);
        SAME(news[i].ref, w->ref);
        SAME(news[i].payload, w->payload);
        SAME(news[i].payload_ref, w->payload_ref);
        SAME("queued", w->status);
        EQ(1, count_events(w->work_id, "work_created"));
    }
}

test_case(many_units_of_one_call_keep_their_own)
{
    struct hf_work_spec alike[] = {
        { .source_id = "plain", .kind = "k" },
        { .source_id = "a \"quoted\" \\ name",
          .kind = "k",
          .payload = "\"\\\\ {,} NULL\"" },
        { .source_id = "{1,2}", .kind = "k", .source_run_id = "NULL", .ref = "r,\"" },
        { .source_id = "Größe €",
          .kind = "k",
          .idempotency_key = "i\\",
          .payload = "{}" },
        { .source_id = "at", .kind = "k", .payload_ref = "blob:'x'" },
    };
    struct hf_work_spec mixed[] = {
        { .source_id = "m1", .kind = "k", .payload = "[1]" },
        { .source_id = "m2", .kind = "other", .ref = "\\\"" },
        { .source_id = "m3", .kind = "k", .source_run_id = "{}", .idempotency_key = "j" },
    };
    check_many(t, alike, sizeof alike / sizeof alike[0]);
    check_many(t, mixed, sizeof mixed / sizeof mixed[0]);
    /* A stored one keeps out only itself. */
    struct hf_work_spec again[] = { { .source_id = "plain", .kind = "k" },
                                    { .source_id = "new", .kind = "k", .payload = "7" } };
    const struct hf_answer *answer = kit_create_many(AT(t), again, 2, HF_BRIEF);
    CODE(0, t->code);
    TRUE(!item_of(answer, 0)->created);
    TRUE(item_of(answer, 1)->created);
    SAME("7", row(item_of(answer, 1)->work.work_id)->payload);
    EQ(9, open_rows(t));
}

/* Units that differ in names and contents alone, of which one is stored already: the
 * first, one between, the last, or none. */
test_case(many_alike_units_are_whole_whichever_of_them_stands)
{
    static const char *const ids[] = { "a1", "a2", "a3", "b1", "b2", "b3",
                                       "c1", "c2", "c3", "d1", "d2", "d3" };
    static const char *const payloads[] = { "1", "2", "3" };
    for (size_t round = 0; round < 4; round++) {
        const char *const *names = ids + 3 * round;
        struct hf_work_spec alike[3];
        for (size_t i = 0; i < 3; i++)
            alike[i] = (struct hf_work_spec){ .source_id = names[i],
                                              .kind = "k",
                                              .idempotency_key = names[i],
                                              .payload = payloads[i] };
        if (round < 3)
            create(.source_id = names[round], .kind = "k",
                   .idempotency_key = names[round], .payload = payloads[round]);
        const struct hf_answer *answer = kit_create_many(AT(t), alike, 3, HF_BRIEF);
        CODE(0, t->code);
        for (size_t i = 0; i < 3; i++) {
            TRUE(item_of(answer, i)->created == (i != round));
            const struct hf_work *w = row(item_of(answer, i)->work.work_id);
            SAME(names[i], w->source_id);
            SAME(names[i], w->idempotency_key);
            SAME(payloads[i], w->payload);
            SAME("queued", w->status);
            EQ(1, count_events(w->work_id, "work_created"));
        }
        EQ(3 * (round + 1), open_rows(t));
    }
    EQ(12, count_of(claim_many(.limit = 20)));
}

test_case(r15_scheduler_work_needs_a_run_id)
{
    CODE(HF_EINVAL, create(.source = HF_SOURCE_SCHEDULER, .source_id = "nightly")->code);
    EQ(0, open_rows(t));
    const char *one = new_id(.source = HF_SOURCE_SCHEDULER, .source_id = "n",
                             .source_run_id = "1");
    const char *two = new_id(.source = HF_SOURCE_SCHEDULER, .source_id = "n",
                             .source_run_id = "2");
    const char *again = new_id(.source = HF_SOURCE_SCHEDULER, .source_id = "n",
                               .source_run_id = "1");
    TRUE(!same(one, two));
    SAME(one, again);
    EQ(2, open_rows(t));
}

test_case(a13_no_run_id_reads_as_null_and_is_unique_all_the_same)
{
    const char *one = new_id(.source_id = "a");
    SAME(NULL, row(one)->source_run_id);
    SAME(one, new_id(.source_id = "a"));
    TRUE(!same(one, new_id(.source_id = "a", .source_run_id = "r")));
    TRUE(!same(one, new_id(.source_id = "a", .source = HF_SOURCE_CONTROL)));
}

test_case(idempotency_key_gives_the_first_row_again)
{
    const struct hf_item *first = create(.source_id = "a", .idempotency_key = "k");
    const struct hf_item *again = create(.source_id = "a", .idempotency_key = "k");
    CODE(0, again->code);
    TRUE(!again->created);
    SAME(first->work.work_id, again->work.work_id);
    const char *before = picture();
    CODE(HF_ECONFLICT, create(.source_id = "b", .idempotency_key = "k")->code);
    CODE(HF_ECONFLICT,
         create(.source_id = "a", .idempotency_key = "k", .payload = "1")->code);
    UNCHANGED(before);
}

test_case(t11_dedup_key_admits_one_live_row)
{
    struct held h = running(.dedup_key = "d");
    const struct hf_item *again = create(.dedup_key = "d", .payload = "2");
    CODE(0, again->code);
    TRUE(!again->created);
    SAME(h.id, again->work.work_id);
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    TRUE(!create(.dedup_key = "d")->created);
    cancel(h.id);
    const struct hf_item *fresh = create(.dedup_key = "d");
    TRUE(fresh->created);
    TRUE(!same(h.id, fresh->work.work_id));
    TRUE(!create(.dedup_key = "d")->created);
}

test_case(dedup_holds_inside_one_batch)
{
    struct hf_work_spec batch[] = { { .dedup_key = "d" },
                                    { .dedup_key = "d" },
                                    { .dedup_key = "e" } };
    const struct hf_answer *answer = kit_create_many(AT(t), batch, 3, 0);
    CODE(0, t->code);
    TRUE(item_of(answer, 0)->created);
    TRUE(!item_of(answer, 1)->created);
    TRUE(item_of(answer, 2)->created);
    SAME(item_of(answer, 0)->work.work_id, item_of(answer, 1)->work.work_id);
    EQ(2, open_rows(t));
}

test_case(source_triple_is_looked_at_before_the_dedup_key)
{
    const char *one = new_id(.source_id = "a", .dedup_key = "d");
    const char *two = new_id(.source_id = "b");
    SAME(one, new_id(.source_id = "a", .dedup_key = "d"));
    /* b exists with another request; that d is live elsewhere does not hide it. */
    CODE(HF_ECONFLICT, create(.source_id = "b", .dedup_key = "d")->code);
    TRUE(!same(one, two));
}

test_case(tenants_share_no_keys)
{
    struct held h = running(.source_id = "a", .lane_key = "l", .dedup_key = "d",
                            .idempotency_key = "i");
    t->who.tenant = "acme";
    const struct hf_item *other = create(.source_id = "a", .lane_key = "l",
                                         .dedup_key = "d", .idempotency_key = "i",
                                         .payload = "1");
    CODE(0, other->code);
    TRUE(other->created);
    SAME("acme", other->work.tenant);
    SAME(NULL, other->work.gate);
    TRUE(!same(h.id, other->work.work_id));
    /* Queues are global: a claim without the tenant takes it. */
    t->who.tenant = NULL;
    SAME(other->work.work_id, claim()->work.work_id);
}

test_case(tenants_share_no_waiting_references)
{
    struct held mine = running();
    wait_for(mine, HF_STATUS_WAITING_EXTERNAL, "invoice-1");
    t->who.tenant = "acme";
    struct held theirs = running();
    wait_for(theirs, HF_STATUS_WAITING_EXTERNAL, "invoice-1");
    const struct hf_item *woken = change(.verb = HF_VERB_RESUME, .ref = "invoice-1");
    CODE(0, woken->code);
    SAME(theirs.id, woken->work.work_id);
    IS("waiting_external", mine.id);
}

test_case(t14_falsy_payloads_round_trip)
{
    SAME("0", row(new_id(.payload = "0"))->payload);
    SAME("false", row(new_id(.payload = "false"))->payload);
    SAME("\"\"", row(new_id(.payload = "\"\""))->payload);
    SAME("null", row(new_id(.payload = "null"))->payload);
    SAME("[]", row(new_id(.payload = "[]"))->payload);
    SAME("{}", row(new_id(.payload = "{}"))->payload);
}

test_case(payload_is_kept_as_it_was_given)
{
    const char *payload = "{ \"b\" : 1.0,\n \"a\" : \"\\u00e9 \xc3\xa9\" }";
    struct held h = running(.payload = payload);
    SAME(payload, row(h.id)->payload);
    const char *id = new_id(.payload_ref = "blob:1");
    SAME("blob:1", row(id)->payload_ref);
    SAME(NULL, row(id)->payload);
    CODE(HF_EINVAL, create(.payload = "1", .payload_ref = "blob:1")->code);
}

test_case(detached_is_born_done)
{
    const struct hf_item *made = create(.detached = true);
    CODE(0, made->code);
    SAME("done", made->work.status);
    EQ(1800000000000, made->work.finished_at);
    const struct hf_event *event = last_change(made->work.work_id);
    SAME("work_created", event->event_type);
    SAME(NULL, event->from_status);
    SAME("done", event->to_status);
    TRUE(contains(event->payload, "detached"));
    EQ(0, count_of(claim_many(.limit = 10)));
    made = create(.detached = true, .disposition = HF_DISPOSITION_EXTERNALLY_OWNED);
    CODE(0, made->code);
    SAME("done", made->work.status);
    SAME("externally_owned", made->work.disposition);
    CODE(HF_ETRANSITION, requeue(made->work.work_id)->code);
}

test_case(externally_owned_is_born_waiting)
{
    const char *id = new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED,
                            .ref = "job-9");
    const struct hf_work *w = row(id);
    SAME("waiting_external", w->status);
    SAME("external", w->waiting_kind);
    SAME("job-9", w->waiting_ref);
    EQ(0, w->deadline_at);
    SAME("waiting_external",
         row(new_id(.disposition = HF_DISPOSITION_EXTERNALLY_OWNED))->status);
    EQ(0, count_of(claim_many(.limit = 10)));
    advance(HOUR(1000));
    sweep();
    IS("waiting_external", id);
}

test_case(parent_and_correlation_are_kept)
{
    const char *parent = new_id();
    t->who.correlation_id = "trace-1";
    const char *child = new_id(.parent_work_id = parent);
    SAME(parent, row(child)->parent_work_id);
    SAME("trace-1", row(child)->correlation_id);
    SAME("trace-1", last_change(child)->correlation_id);
}

test_case(r70_events_name_their_actor)
{
    t->who.actor_kind = "human";
    t->who.actor = "ada";
    struct held h = running();
    t->who.actor_kind = "worker";
    t->who.actor = "w-1";
    close_as(h, HF_STATUS_DONE);
    SAME("human", last_event(h.id, "work_created")->actor_kind);
    SAME("ada", last_event(h.id, "work_created")->actor);
    SAME("worker", last_change(h.id)->actor_kind);
    SAME("w-1", last_change(h.id)->actor);
}

test_case(create_answers_each_item_of_a_batch)
{
    struct hf_work_spec batch[] = {
        { .source_id = "a" },
        { .source_id = "a", .payload = "1" },
        { .source_id = "b" },
    };
    const struct hf_answer *answer = kit_create_many(AT(t), batch, 3, 0);
    CODE(0, t->code);
    CODE(0, item_of(answer, 0)->code);
    CODE(HF_ECONFLICT, item_of(answer, 1)->code);
    CODE(0, item_of(answer, 2)->code);
    EQ(2, open_rows(t));
}

test_case(create_all_or_none_refuses_the_whole_batch)
{
    create(.source_id = "a");
    const char *before = picture();
    struct hf_work_spec batch[] = {
        { .source_id = "x" },
        { .source_id = "a", .payload = "1" },
    };
    kit_create_many(AT(t), batch, 2, HF_ALL_OR_NONE);
    CODE(HF_ECONFLICT, t->code);
    UNCHANGED(before);
    struct hf_work_spec good[] = { { .source_id = "x" }, { .source_id = "y" } };
    kit_create_many(AT(t), good, 2, HF_ALL_OR_NONE);
    CODE(0, t->code);
    EQ(3, open_rows(t));
}

test_case(r59_bad_input_names_the_field_and_writes_nothing)
{
    const char *before = picture();
    CODE(HF_EINVAL, create(.payload = "{oops")->code);
    SAME("payload", t->err.field);
    CODE(HF_EINVAL, create(.source_id = "\xff")->code);
    SAME("source_id", t->err.field);
    CODE(HF_EINVAL, create(.kind = "hf.wake")->code);
    SAME("kind", t->err.field);
    CODE(HF_EINVAL, create(.delay_ms = -1)->code);
    SAME("delay_ms", t->err.field);
    CODE(HF_EINVAL, create(.delay_ms = 1, .due_at = 1)->code);
    CODE(HF_EINVAL, create(.close_rule = "vote")->code);
    SAME("close_rule", t->err.field);
    CODE(HF_EINVAL, create(.retry_policy = "{\"tries\":1}")->code);
    SAME("retry_policy", t->err.field);
    CODE(HF_EINVAL, create(.priority = 10)->code);
    SAME("priority", t->err.field);
    UNCHANGED(before);
}
