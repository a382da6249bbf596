/* Reading: get, list, events, stats; and what makes the store smaller: prune. */

#include <holdfast/attention.h>

#include <string.h>

#include "conform/kit.h"

test_case(get_by_unique_prefix_or_suffix)
{
    const char *id = new_id();
    advance(HOUR(2000)); /* ids begin with their time */
    const char *other = new_id();
    if (t->failed)
        return;
    SAME(id, row(say("%.13s", id))->work_id);
    SAME(other, row(other + 20)->work_id);
    row("00000000-no-such");
    CODE(HF_ENOTFOUND, t->code);
}

test_case(get_by_an_ambiguous_prefix_is_refused)
{
    const char *id = new_id();
    create();
    row(say("%.8s", id)); /* made in the same millisecond */
    CODE(HF_EAMBIGUOUS, t->code);
}

test_case(list_gives_open_rows_in_order_of_creation)
{
    const char *one = new_id(.priority = 9);
    struct held ended = running();
    close_as(ended, HF_STATUS_DONE);
    const char *two = new_id(.priority = 1);
    const struct hf_answer *all = list();
    EQ(2, count_of(all));
    SAME(one, item_of(all, 0)->work.work_id);
    SAME(two, item_of(all, 1)->work.work_id);
}

test_case(list_filters_by_each_column)
{
    const char *control = new_id(.source = HF_SOURCE_CONTROL);
    const char *mail = new_id(.queue = "mail");
    const char *kind = new_id(.kind = "k");
    struct held h = running();
    struct held waits = running();
    wait_for(waits, HF_STATUS_WAITING_USER, "ref");
    SAME(control, item_of(list(.source = HF_SOURCE_CONTROL), 0)->work.work_id);
    EQ(1, count_of(list(.source = HF_SOURCE_CONTROL)));
    SAME(mail, item_of(list(.queue = "mail"), 0)->work.work_id);
    SAME(kind, item_of(list(.kind = "k"), 0)->work.work_id);
    SAME(h.id, item_of(list(.owner = "alice"), 0)->work.work_id);
    EQ(1, count_of(list(.owner = "alice")));
    SAME(waits.id, item_of(list(.ref = "ref"), 0)->work.work_id);
    EQ(1, count_of(list(.ref = "ref")));
    EQ(0, count_of(list(.queue = "nothing")));
}

test_case(list_by_status_finds_terminal_rows_too)
{
    struct held one = running();
    close_as(one, HF_STATUS_DONE);
    struct held two = running();
    close_as(two, HF_STATUS_FAILED);
    const char *three = new_id();
    static const enum hf_status wanted[] = { HF_STATUS_DONE, HF_STATUS_QUEUED };
    const struct hf_answer *both = list(.statuses = wanted, .status_count = 2);
    EQ(2, count_of(both));
    SAME(one.id, item_of(both, 0)->work.work_id);
    SAME(three, item_of(both, 1)->work.work_id);
    EQ(1, count_of(list(.statuses = wanted, .status_count = 1)));
}

test_case(list_by_age_looks_at_the_last_change)
{
    const char *old = new_id();
    const char *changed = new_id();
    advance(SEC(60));
    struct held h = { changed, claim(.id = changed)->token };
    (void)h;
    const struct hf_answer *aged = list(.older_than_ms = SEC(60));
    EQ(1, count_of(aged));
    SAME(old, item_of(aged, 0)->work.work_id);
    EQ(0, count_of(list(.older_than_ms = SEC(61))));
}

test_case(list_begins_with_the_newest_and_a_cursor_keeps_its_direction)
{
    const char *ids[5];
    for (int i = 0; i < 5; i++)
        ids[i] = new_id();
    const struct hf_answer *first = list(.newest = true, .limit = 2);
    EQ(2, count_of(first));
    SAME(ids[4], item_of(first, 0)->work.work_id);
    SAME(ids[3], item_of(first, 1)->work.work_id);
    const char *after = first ? hf_answer_next(first) : NULL;
    TRUE(after != NULL);
    create(); /* it is newer, and pushes nothing out */
    const struct hf_answer *rest = list(.newest = true, .after = after);
    EQ(3, count_of(rest));
    SAME(ids[2], item_of(rest, 0)->work.work_id);
    SAME(ids[0], item_of(rest, 2)->work.work_id);
    TRUE(!rest || !hf_answer_next(rest));
    list(.after = after);
    CODE(HF_EINVAL, t->code);
    const struct hf_answer *up = list(.limit = 1);
    list(.newest = true, .after = up ? hf_answer_next(up) : NULL);
    CODE(HF_EINVAL, t->code);
}

test_case(list_filters_by_what_a_unit_belongs_to)
{
    const char *parent = new_id(.source_id = "a", .source_run_id = "r1");
    const char *child = new_id(.parent_work_id = parent, .lane_key = "l",
                               .disposition = HF_DISPOSITION_RERUNNABLE);
    struct held bad = running(.max_attempts = 1);
    fail_as(bad, "oom");
    static const enum hf_status ended[] = { HF_STATUS_FAILED, HF_STATUS_DONE };
    SAME(parent, item_of(list(.source_id = "a"), 0)->work.work_id);
    EQ(1, count_of(list(.source_run_id = "r1")));
    EQ(1, count_of(list(.parent_work_id = parent)));
    SAME(child, item_of(list(.lane_key = "l"), 0)->work.work_id);
    EQ(1, count_of(list(.disposition = HF_DISPOSITION_RERUNNABLE)));
    EQ(1, count_of(list(.statuses = ended, .status_count = 2, .error_class = "oom")));
    EQ(0, count_of(list(.statuses = ended, .status_count = 2, .error_class = "net")));
    EQ(0, count_of(list(.session_id = "none")));
    EQ(0, count_of(list(.correlation_id = "none")));
}

test_case(list_of_bad_ends_leaves_out_what_was_acknowledged)
{
    static const enum hf_status failed[] = { HF_STATUS_FAILED };
    struct held seen = running(), bad = running(), good = running();
    int64_t count = 0;
    close_as(seen, HF_STATUS_FAILED);
    close_as(bad, HF_STATUS_FAILED);
    close_as(good, HF_STATUS_DONE);
    running();
    EQ(2, count_of(list(.unacked = true)));
    const struct hf_ack ack = { .size = sizeof(ack),
                                .ids = (const char *const[]){ seen.id },
                                .id_count = 1 };
    CODE(0, kit_called(t, hf_attention_ack(t->store, &t->who, &ack, &count, kit_err(t))));
    EQ(2, count_of(list(.statuses = failed, .status_count = 1)));
    EQ(1, count_of(list(.unacked = true)));
    SAME(bad.id, item_of(list(.unacked = true), 0)->work.work_id);
    EQ(0, count_of(list(.unacked = true, .kind = "none")));
}

test_case(list_by_limit_shows_the_units_under_it)
{
    create();
    t->who.tenant = "t1";
    const char *id = new_id(.limit_key = "k");
    EQ(1, count_of(list(.limit_name = "key:k")));
    SAME(id, item_of(list(.limit_name = "key:k"), 0)->work.work_id);
    EQ(0, count_of(list(.limit_name = "key:")));
    t->who.tenant = NULL;
    EQ(1, count_of(list(.limit_name = "key:k")));
}

test_case(list_of_a_period_is_by_creation_or_by_end)
{
    static const enum hf_status failed[] = { HF_STATUS_FAILED };
    struct held old = running();
    advance(HOUR(2));
    hf_ms now = t->wall;
    close_as(old, HF_STATUS_FAILED); /* late, but not taken by another owner */
    const char *fresh = new_id();
    EQ(1, count_of(list(.since_ms = HOUR(1))));
    SAME(fresh, item_of(list(.since_ms = HOUR(1)), 0)->work.work_id);
    EQ(1, count_of(list(.from = now, .before = now + 1)));
    EQ(0, count_of(list(.before = now)));
    EQ(0, count_of(list(.statuses = failed, .status_count = 1, .since_ms = HOUR(1))));
    EQ(1, count_of(list(.statuses = failed, .status_count = 1, .since_ms = HOUR(1),
                        .finished = true)));
    list(.from = 5, .before = 5);
    CODE(HF_EINVAL, t->code);
}

test_case(a_brief_list_has_no_long_texts)
{
    const char *id = new_id(.payload = "{\"n\":1}");
    const struct hf_work *w = &item_of(list(.brief = true), 0)->work;
    SAME(id, w->work_id);
    SAME(NULL, w->payload);
    SAME(NULL, w->retry_policy);
    SAME("{\"n\":1}", item_of(list(), 0)->work.payload);
}

test_case(list_finds_ids_and_names_by_their_beginnings_and_ends)
{
    const char *one = new_id(.source_id = "deploy-of-monday");
    struct held two = running(.source_id = "nightly");
    wait_for(two, HF_STATUS_WAITING_USER, "ticket-4711");
    SAME(one, item_of(list(.find = one), 0)->work.work_id);
    EQ(1, count_of(list(.find = one)));
    EQ(1, count_of(list(.find = one + strlen(one) - 8)));
    EQ(2, count_of(list(.find = say("%.6s", one)))); /* made at the same time */
    SAME(one, item_of(list(.find = "deploy-of-monday"), 0)->work.work_id);
    SAME(one, item_of(list(.find = "deploy"), 0)->work.work_id);
    SAME(one, item_of(list(.find = "monday"), 0)->work.work_id);
    SAME(two.id, item_of(list(.find = "4711"), 0)->work.work_id);
    EQ(0, count_of(list(.find = "y-of-m")));
    EQ(0, count_of(list(.find = "deploy-of-monday-and-more")));
    EQ(0, count_of(list(.find = "deploy", .queue = "other")));
    list(.find = "dep");
    CODE(HF_EINVAL, t->code);
    SAME("find", t->err.field);
}

test_case(a_cursor_is_of_its_list_and_filter)
{
    for (int i = 0; i < 3; i++)
        create(.kind = "a");
    const struct hf_answer *page = list(.kind = "a", .limit = 1);
    const char *after = page ? hf_answer_next(page) : NULL;
    TRUE(after != NULL);
    EQ(2, count_of(list(.kind = "a", .limit = 5, .after = after)));
    static const enum hf_status queued[] = { HF_STATUS_QUEUED };
    const struct hf_filter others[] = {
        { .after = after },
        { .kind = "b", .after = after },
        { .queue = "a", .after = after },
        { .kind = "a", .since_ms = 1, .after = after },
        { .kind = "a", .statuses = queued, .status_count = 1, .after = after },
        { .kind = "a", .after = "1" },
        { .kind = "a", .after = "zo00000000.1" },
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        kit_list(AT(t), others[i]);
        CODE(HF_EINVAL, t->code);
        SAME("after", t->err.field);
    }
}

test_case(a_page_ends_when_its_texts_are_large)
{
    enum { BYTES = 1 << 20, UNITS = 7 };
    char *payload = kit_memory(t, BYTES + 1);
    if (t->failed)
        return;
    memset(payload, 49, BYTES); /* one text of JSON */
    payload[0] = '"';
    payload[BYTES - 1] = '"';
    payload[BYTES] = 0;
    const char *ids[UNITS];
    for (int i = 0; i < UNITS; i++)
        ids[i] = new_id(.payload = payload);
    for (int newest = 0; newest < 2; newest++) {
        const struct hf_answer *page = list(.newest = newest);
        TRUE(count_of(page) >= 4 && count_of(page) < UNITS);
        size_t first = count_of(page);
        page = list(.newest = newest, .after = page ? hf_answer_next(page) : NULL);
        EQ(UNITS - first, count_of(page));
        TRUE(page && !hf_answer_next(page));
        SAME(ids[newest ? 0 : UNITS - 1],
             item_of(page, count_of(page) - 1)->work.work_id);
        EQ(UNITS, count_of(list(.newest = newest, .brief = true)));
    }
}

test_case(pages_have_no_gap_and_no_repeat)
{
    const char *ids[23];
    for (int i = 0; i < 23; i++)
        ids[i] = new_id();
    const char *after = NULL;
    int seen = 0;
    for (int page = 0; page < 10 && !t->failed; page++) {
        const struct hf_answer *some = list(.limit = 5, .after = after);
        CODE(0, t->code);
        for (size_t i = 0; i < count_of(some) && seen < 23; i++)
            SAME(ids[seen++], item_of(some, i)->work.work_id);
        create(); /* newer rows come last and push nothing out */
        after = some ? hf_answer_next(some) : NULL;
        if (!after || seen == 23)
            break;
    }
    EQ(23, seen);
}

test_case(a_last_page_has_no_cursor)
{
    for (int i = 0; i < 4; i++)
        create();
    const struct hf_answer *first = list(.limit = 3);
    TRUE(first && hf_answer_next(first) != NULL);
    const struct hf_answer *last = list(.limit = 3,
                                        .after = first ? hf_answer_next(first) : NULL);
    EQ(1, count_of(last));
    SAME(NULL, last ? hf_answer_next(last) : "-");
    list(.after = "nonsense");
    CODE(HF_EINVAL, t->code);
}

test_case(paging_by_terminal_status_has_no_gap_either)
{
    for (int i = 0; i < 7; i++) {
        struct held h = running();
        close_as(h, i % 2 ? HF_STATUS_DONE : HF_STATUS_FAILED);
        create();
    }
    static const enum hf_status ended[] = { HF_STATUS_DONE, HF_STATUS_FAILED };
    const char *after = NULL;
    size_t seen = 0;
    for (int page = 0; page < 9 && !t->failed; page++) {
        const struct hf_answer *some = list(.statuses = ended, .status_count = 2,
                                            .limit = 2, .after = after);
        seen += count_of(some);
        after = some ? hf_answer_next(some) : NULL;
        if (!after)
            break;
    }
    EQ(7, seen);
}

test_case(r10_a_trail_is_a_chain)
{
    struct held h = running(.disposition = HF_DISPOSITION_RERUNNABLE,
                            .retry_policy = "{\"jitter\":\"none\"}");
    fail_as(h, "rate_limit");
    advance(SEC(5));
    h.token = claim()->token;
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    resume(h.id);
    h.token = claim()->token;
    close_as(h, HF_STATUS_DONE);
    requeue(h.id);
    static const char *const expected[] = {
        "queued",       "running", "retry_scheduled", "queued", "running",
        "waiting_user", "queued",  "running",         "done",   "queued",
    };
    const struct hf_events *trail = events(h.id);
    const char *before = NULL;
    size_t step = 0;
    for (size_t i = 0; trail && i < hf_events_count(trail); i++) {
        const struct hf_event *event = hf_events_at(trail, i);
        if (!event->to_status)
            continue;
        SAME(before, event->from_status);
        SAME(step < 10 ? expected[step] : "nothing", event->to_status);
        before = event->to_status;
        step++;
    }
    EQ(10, step);
    SAME(before, row(h.id)->status);
}

test_case(r09_each_transition_is_one_event)
{
    struct held h = running();
    const struct hf_events *trail = events(h.id);
    size_t transitions = 0;
    for (size_t i = 0; trail && i < hf_events_count(trail); i++)
        transitions += hf_events_at(trail, i)->to_status != NULL;
    EQ(2, transitions);
}

test_case(events_are_read_on_from_where_a_reader_stopped)
{
    struct held h = running();
    close_as(h, HF_STATUS_DONE);
    struct hf_events *rest = NULL;
    const struct hf_events *all = events(h.id);
    if (t->failed)
        return;
    const struct hf_event *first = hf_events_at(all, 0);
    t->code = kit_called(t, hf_work_events(t->store, &t->who, h.id, first->event_id, 1,
                                           &rest, kit_err(t)));
    CODE(0, t->code);
    if (t->code)
        return;
    EQ(2,
       hf_events_count(rest)); /* one event: the claim, and the lease that it acquired */
    TRUE(hf_events_at(rest, 0)->event_id > first->event_id);
    TRUE(hf_events_at(rest, 1)->event_id == hf_events_at(rest, 0)->event_id);
    hf_events_free(rest);
}

test_case(r67_stats_show_what_an_operator_asks)
{
    struct held silent = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    advance(SEC(100));
    create(.source = HF_SOURCE_CONTROL);
    advance(SEC(7));
    create(.delay_ms = SEC(60));
    struct held waits = running();
    wait_for(waits, HF_STATUS_WAITING_USER, "r");
    struct held later = running(.retry_policy = "{\"jitter\":\"none\"}");
    fail_as(later, "rate_limit");
    struct held ended = running();
    close_as(ended, HF_STATUS_DONE);
    struct held lapsing = running();
    advance(SEC(31));
    struct hf_stats s = stats();
    EQ(2, s.by_status[HF_STATUS_QUEUED]);
    EQ(2, s.by_status[HF_STATUS_RUNNING]);
    EQ(1, s.by_status[HF_STATUS_WAITING_USER]);
    EQ(1, s.by_status[HF_STATUS_RETRY_SCHEDULED]);
    EQ(0, s.by_status[HF_STATUS_DONE]);
    EQ(1, s.by_source[HF_SOURCE_CONTROL]);
    EQ(5, s.by_source[HF_SOURCE_MANUAL]);
    EQ(1, s.gated);
    EQ(1, s.silent);
    EQ(1, s.lapsing);
    EQ(38000, s.oldest_queued_ms);
    EQ(138000, s.oldest_running_ms);
    EQ(1800000107000 + 86400000, s.next_wait_deadline_at);
    EQ(1800000112000, s.next_retry_at);
    SAME("running", row(silent.id)->status);
    SAME("running", row(lapsing.id)->status);
}

static void new_id_of(struct hf_conform *t, const char *tenant, hf_ms delay_ms)
{
    t->who.tenant = tenant;
    CODE(0, create(.delay_ms = delay_ms)->code);
    t->who.tenant = NULL;
}

test_case(tenants_are_counted_apart)
{
    new_id_of(t, "acme", 0);
    advance(SEC(5));
    new_id_of(t, "bravo", SEC(60));
    struct held mine = running();
    advance(SEC(5));
    struct hf_stats s = stats();
    EQ(2, s.by_status[HF_STATUS_QUEUED]);
    EQ(1, s.by_status[HF_STATUS_RUNNING]);
    EQ(10000, s.oldest_queued_ms);
    t->who.tenant = "acme";
    s = stats();
    EQ(1, s.by_status[HF_STATUS_QUEUED]);
    EQ(0, s.by_status[HF_STATUS_RUNNING]);
    EQ(1, s.by_source[HF_SOURCE_MANUAL]);
    EQ(0, s.gated);
    EQ(10000, s.oldest_queued_ms);
    EQ(0, s.oldest_running_ms);
    t->who.tenant = "bravo";
    s = stats();
    EQ(1, s.by_status[HF_STATUS_QUEUED]);
    EQ(1, s.gated);
    EQ(0, s.oldest_queued_ms);
    t->who.tenant = "no-such-tenant";
    EQ(0, stats().by_status[HF_STATUS_QUEUED]);
    t->who.tenant = NULL;
    IS("running", mine.id);
}

test_case(stats_of_an_empty_store_are_zero)
{
    struct hf_stats s = stats();
    EQ(0, s.by_status[HF_STATUS_QUEUED]);
    EQ(0, s.oldest_queued_ms);
    EQ(0, s.oldest_running_ms);
    EQ(0, s.next_wait_deadline_at);
    EQ(0, s.next_retry_at);
}

/* ---- prune --------------------------------------------------------------------------------- */

test_case(prune_keeps_chains)
{
    struct held old = running();
    close_as(old, HF_STATUS_DONE);
    advance(HOUR(1));
    struct held young = running();
    close_as(young, HF_STATUS_DONE);
    struct held live = running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    const char *queued = new_id();
    advance(HOUR(1));
    EQ(1, prune(HOUR(1) + 1, 0));
    row(old.id);
    CODE(HF_ENOTFOUND, t->code);
    IS("done", young.id);
    IS("running", live.id);
    IS("queued", queued);
}

static void see_no_row(void *user, const struct hf_work *work, const char *settled_verb,
                       hf_ms check_at, int64_t lease_incarnation)
{
    (void)user;
    (void)work;
    (void)settled_verb;
    (void)check_at;
    (void)lease_incarnation;
}

static void see_newest(void *user, const struct hf_event *event)
{
    int64_t *newest = user;
    if (event->event_id > *newest)
        *newest = event->event_id;
}

static int64_t newest_event(struct hf_conform *t)
{
    int64_t newest = 0;
    struct hf_dump dump = { &newest, see_no_row, see_newest };
    if (!t->failed)
        t->code = kit_called(t, t->store->methods->dump(t->store, &dump, kit_err(t)));
    return newest;
}

test_case(prune_keeps_chains_and_never_reuses_event_ids)
{
    struct held h = running();
    close_as(h, HF_STATUS_DONE);
    int64_t newest = newest_event(t);
    advance(1);
    EQ(1, prune(0, 0));
    EQ(0, newest_event(t));
    const char *fresh = new_id();
    TRUE(newest_event(t) > newest);
    IS("queued", fresh);
}

test_case(t10_prune_takes_terminal_rows_only_and_at_most_its_limit)
{
    for (int i = 0; i < 5; i++) {
        struct held h = running();
        close_as(h, HF_STATUS_DONE);
    }
    create();
    advance(1);
    EQ(2, prune(0, 2));
    EQ(3, prune(0, 0));
    EQ(0, prune(0, 0));
    EQ(1, count_of(list()));
}

test_case(r16_prune_frees_the_keys_of_what_it_took)
{
    struct held h = running(.source_id = "a", .idempotency_key = "k");
    close_as(h, HF_STATUS_DONE);
    advance(1);
    EQ(1, prune(0, 0));
    const struct hf_item *fresh = create(.source_id = "a", .idempotency_key = "k");
    TRUE(fresh->created);
    TRUE(!same(h.id, fresh->work.work_id));
}

/* ---- sweeps -------------------------------------------------------------------------------- */

test_case(r66_a_sweep_is_bounded_and_says_that_there_is_more)
{
    for (int i = 0; i < 5; i++)
        running();
    advance(SEC(75));
    struct hf_sweep_report report = { 0 };
    if (t->failed)
        return;
    t->code = kit_called(t, hf_work_sweep(t->store, &t->who, 2, &report, kit_err(t)));
    CODE(0, t->code);
    EQ(2, report.timed_out);
    TRUE(report.more);
    report = sweep();
    EQ(3, report.timed_out);
    TRUE(!report.more);
    EQ(0, stats().by_status[HF_STATUS_RUNNING]);
}

test_case(r65_one_sweep_does_all_that_is_due)
{
    struct held lapsed = running();
    struct held again = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    struct held waits = running();
    change(.verb = HF_VERB_WAIT, .id = waits.id, .token = waits.token,
           .status = HF_STATUS_WAITING_USER, .ref = "r", .timeout_ms = SEC(60));
    struct held later = running(.retry_policy = "{\"jitter\":\"none\"}");
    fail_as(later, "rate_limit");
    const char *delayed = new_id(.delay_ms = SEC(30));
    const char *unstarted = new_id(.start_timeout_ms = SEC(70));
    advance(SEC(75));
    struct hf_sweep_report report = sweep();
    EQ(3, report.timed_out);
    EQ(1, report.requeued);
    EQ(2, report.promoted);
    IS("timeout", lapsed.id);
    IS("queued", again.id);
    IS("timeout", waits.id);
    IS("queued", later.id);
    IS("queued", delayed);
    SAME(NULL, row(delayed)->gate);
    IS("timeout", unstarted);
}

test_case(a_sweep_says_when_it_is_needed_next)
{
    EQ(0, sweep().next_at);
    create(.delay_ms = SEC(90));
    EQ(1800000090000, sweep().next_at);
    running();
    EQ(1800000075000, sweep().next_at);
}

test_case(silent_owner_bound_rows_are_counted_and_left_alone)
{
    running(.disposition = HF_DISPOSITION_OWNER_BOUND);
    advance(SEC(45));
    EQ(1, sweep().silent);
    EQ(1, stats().silent);
    EQ(1, stats().by_status[HF_STATUS_RUNNING]);
}

/* ---- reopening ------------------------------------------------------------------------------- */

test_case(everything_survives_a_reopened_store)
{
    struct held h = running(.payload = "{\"a\":1}", .lane_key = "L");
    create(.lane_key = "L");
    struct held waits = running();
    wait_for(waits, HF_STATUS_WAITING_USER, "r");
    CODE(0, policy("kind:k", .grace_ms = -1, .max_attempts = 9));
    const char *before = picture();
    reopen();
    UNCHANGED(before);
    EQ(9, row(new_id(.kind = "k"))->max_attempts);
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
}

test_case(two_handles_see_one_store)
{
    struct hf_store *second = kit_second(AT(t));
    struct held h = running();
    struct hf_store *first = kit_use(t, second);
    EQ(0, count_of(claim_many(.owner = "bob")));
    SAME("alice", row(h.id)->owner);
    CODE(0, close_as(h, HF_STATUS_DONE)->code);
    kit_use(t, first);
    IS("done", h.id);
}

test_case(a_bump_is_seen_by_the_other_handle)
{
    struct hf_store *second = kit_second(AT(t));
    struct held h = running();
    struct hf_store *first = kit_use(t, second);
    bump();
    kit_use(t, first);
    CODE(HF_ELEASELOST, renew(h)->code);
}
