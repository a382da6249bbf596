/* The change feed, and what a monitor that saw a stall does: rule 13. */

#include "conform/kit.h"

#define TERM SEC(45)
#define GRACE SEC(30)

static void drop_feed(void *at)
{
    hf_feed_free(at);
}

static const struct hf_feed *kit_feed(struct hf_conform *t, struct hf_feed_query query)
{
    struct hf_feed *feed = NULL;
    if (t->failed)
        return NULL;
    query.size = sizeof(query);
    t->code = kit_called(t, hf_work_feed(t->store, &t->who, &query, &feed, kit_err(t)));
    if (feed)
        kit_keep(t, feed, drop_feed);
    return feed;
}

#define feed(...) kit_feed(AT(t), (struct hf_feed_query){ __VA_ARGS__ })

static size_t events_of(const struct hf_feed *feed)
{
    return feed ? hf_feed_count(feed) : 0;
}

static unsigned notices_of(const struct hf_feed *feed)
{
    return feed ? hf_feed_notices(feed) : 0;
}

static const char *next_of(const struct hf_feed *feed)
{
    return feed ? hf_feed_next(feed) : "end";
}

/* "work_created:queued transition:running …" of a page, so that order shows. */
static const char *told(struct hf_conform *t, const struct hf_feed *feed)
{
    const char *text = "";
    for (size_t i = 0; i < events_of(feed); i++) {
        const struct hf_event *event = &hf_feed_at(feed, i)->event;
        text = say("%s%s%s:%s", text, i ? " " : "", event->event_type,
                   event->to_status ? event->to_status : "-");
    }
    return text;
}

test_case(feed_gives_every_event_of_every_unit_in_order)
{
    struct held h = running(.queue = "q1");
    const char *b = new_id(.kind = "k2");
    change(.verb = HF_VERB_APPEND, .id = h.id, .token = h.token, .type = "note",
           .payload = "{\"n\":1}", .reason = "why");
    close_as(h, HF_STATUS_DONE);
    const struct hf_feed *all = feed(.after = NULL);
    SAME("work_created:queued claimed:running work_created:queued note:- close_out:done",
         told(t, all));
    EQ(0, notices_of(all));
    TRUE(all && !hf_feed_more(all));
    int64_t last = 0;
    for (size_t i = 0; i < events_of(all); i++) {
        const struct hf_feed_item *item = hf_feed_at(all, i);
        TRUE(item->event.event_id > last);
        last = item->event.event_id;
        SAME(i == 2 ? b : h.id, item->event.work_id);
        SAME(i == 2 ? "default" : "q1", item->queue);
        SAME(i == 2 ? "k2" : "work", item->kind);
        SAME("", item->tenant);
    }
    /* An event is shown as the row's own trail shows it. */
    const struct hf_event *note = &hf_feed_at(all, 3)->event;
    SAME("{\"n\":1}", note->payload);
    SAME("why", note->message);
    EQ(1, note->fence);
    EQ(1, note->attempt);
    EQ(0, events_of(feed(.after = next_of(all))));
}

test_case(feed_pages_have_no_gap_and_no_repeat)
{
    for (int i = 0; i < 7; i++)
        running(.disposition = HF_DISPOSITION_RERUNNABLE);
    for (size_t limit = 1; limit <= 15; limit++) {
        const char *after = NULL;
        int64_t last = 0;
        size_t count = 0;
        for (int page = 0; page < 20; page++) {
            const struct hf_feed *some = feed(.after = after, .limit = limit);
            TRUE(events_of(some) <= limit);
            for (size_t i = 0; i < events_of(some); i++) {
                TRUE(hf_feed_at(some, i)->event.event_id > last);
                last = hf_feed_at(some, i)->event.event_id;
                count++;
            }
            after = next_of(some);
            if (!some || !hf_feed_more(some))
                break;
        }
        EQ(14, count);
    }
    /* Each event has a cursor of its own. */
    const struct hf_feed *all = feed(.limit = 14);
    for (size_t i = 0; i < events_of(all); i++)
        EQ(13 - i, events_of(feed(.after = hf_feed_at(all, i)->cursor)));
}

test_case(feed_filters_and_still_moves_on)
{
    t->who.tenant = "t1";
    create(.queue = "q1", .kind = "k1");
    t->who.tenant = "t2";
    running(.queue = "q2", .kind = "k2");
    t->who.tenant = NULL;
    EQ(3, events_of(feed(.after = NULL)));
    EQ(1, events_of(feed(.queue = "q1")));
    EQ(2, events_of(feed(.kind = "k2")));
    EQ(1, events_of(feed(.type = "claimed")));
    EQ(2, events_of(feed(.type = "work_created")));
    const struct hf_feed *none = feed(.queue = "nowhere");
    EQ(0, events_of(none));
    EQ(0, events_of(feed(.after = next_of(none)))); /* it came to the end all the same */
    t->who.tenant = "t1";
    EQ(1, events_of(feed(.after = NULL)));
    t->who.tenant = NULL;
}

test_case(feed_from_the_end_gives_only_what_comes)
{
    create(.queue = "q1");
    const struct hf_feed *now = feed(.after = "end");
    EQ(0, events_of(now));
    const char *id = new_id(.queue = "q2");
    const struct hf_feed *then = feed(.after = next_of(now));
    EQ(1, events_of(then));
    SAME(id, events_of(then) ? hf_feed_at(then, 0)->event.work_id : NULL);
}

test_case(feed_says_once_that_prune_took_what_was_not_read)
{
    struct held a = running(), b = running();
    const char *start = next_of(feed(.after = "end"));
    close_as(a, HF_STATUS_DONE);
    const char *read = next_of(feed(.after = start));
    create(.queue = "later");
    advance(SEC(1));
    EQ(1, prune(0, 0));
    /* Who had read it all misses nothing; who had not is told, once. */
    EQ(0, notices_of(feed(.after = read)));
    EQ(1, events_of(feed(.after = read)));
    const struct hf_feed *gap = feed(.after = start, .limit = 1);
    EQ(HF_FEED_GAP, notices_of(gap));
    EQ(1, events_of(gap));
    EQ(0, notices_of(feed(.after = next_of(gap))));
    /* A reader that begins at the oldest event that is kept misses nothing that it asked
     * for. */
    EQ(0, notices_of(feed(.after = NULL)));
    close_as(b, HF_STATUS_DONE);
    advance(SEC(1));
    EQ(1, prune(0, 0));
    EQ(HF_FEED_GAP, notices_of(feed(.after = next_of(gap))));
}

test_case(feed_goes_on_over_a_new_history)
{
    struct held h = running();
    const struct hf_feed *some = feed(.limit = 1);
    const struct hf_feed *all = feed(.after = next_of(some));
    EQ(1, events_of(all));
    int64_t now = bump();
    create(.queue = "after");
    const struct hf_feed *on = feed(.after = next_of(all));
    EQ(HF_FEED_HISTORY, notices_of(on));
    EQ(1, events_of(on));
    EQ(now, on ? hf_feed_incarnation(on) : 0);
    EQ(0, notices_of(feed(.after = next_of(on))));
    /* Who was behind the new history's beginning has nothing to read again. */
    on = feed(.after = next_of(some));
    EQ(HF_FEED_HISTORY, notices_of(on));
    EQ(2, events_of(on));
    SAME(h.id, events_of(on) ? hf_feed_at(on, 0)->event.work_id : NULL);
}

test_case(feed_refuses_what_is_no_cursor)
{
    static const char *const bad[] = { "x",
                                       "hf1",
                                       "hf1.1.0.1.0",
                                       "hf1.1.0.-1.0.0",
                                       "hf1.1.0.1.0.0.0",
                                       "hf1.1.0.99999999999999999999.0.0" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        feed(.after = bad[i]);
        CODE(HF_EINVAL, t->code);
        SAME("after", t->err.field);
    }
    feed(.limit = (size_t)HF_MAX_PAGE + 1);
    CODE(HF_ETOOBIG, t->code);
    feed(.limit = (size_t)HF_MAX_PAGE);
    CODE(0, t->code);
    feed(.queue = kit_filled(t, 'q', (size_t)HF_MAX_KEY_BYTES + 1));
    CODE(HF_ETOOBIG, t->code);
    feed(.wait_ms = -1);
    CODE(HF_EINVAL, t->code);
}

test_case(feed_waits_for_the_first_event_as_long_as_it_was_told)
{
    hf_ms before = t->mono;
    EQ(0, events_of(feed(.after = "end", .wait_ms = SEC(3))));
    TRUE(t->mono - before >= SEC(3));
    TRUE(t->mono - before < SEC(4));
    create(.queue = "q");
    before = t->mono;
    EQ(1, events_of(feed(.wait_ms = SEC(3))));
    EQ(before, t->mono);
}

test_case(feed_goes_on_after_a_reopened_store)
{
    create(.queue = "q1");
    const char *after = next_of(feed(.after = NULL));
    reopen();
    create(.queue = "q2");
    const struct hf_feed *on = feed(.after = after);
    EQ(1, events_of(on));
    EQ(0, notices_of(on));
}

/* ---- rule 13 ------------------------------------------------------------------------- */

test_case(amnesty_gives_one_more_term_to_what_a_stall_kept_from_renewing)
{
    struct held lapsed = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    struct held expire = running(.disposition = HF_DISPOSITION_EXPIRE);
    advance(TERM);
    /* A third of the term is not longer than a third of it. */
    EQ(0, kit_amnesty(t, TERM / 3));
    EQ(2, kit_amnesty(t, TERM / 3 + 1));
    EQ(45000, row(lapsed.id)->lease_remaining_ms);
    EQ(45000, row(expire.id)->lease_remaining_ms);
    EQ(0, row(lapsed.id)->failures);
    advance(TERM - 1);
    EQ(0, sweep().requeued);
    EQ(0, count_of(claim_many(.owner = "bob")));
    CODE(0, renew(lapsed)->code); /* its holder continues with the same token */
    advance(1 + GRACE);
    EQ(1, sweep().timed_out);
    IS("timeout", expire.id);
    IS("running", lapsed.id);
}

test_case(amnesty_is_not_for_leases_that_had_lapsed_before_or_have_time)
{
    struct held before = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM);
    struct held fresh = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    struct held waits = running(.disposition = HF_DISPOSITION_RERUNNABLE);
    wait_for(waits, HF_STATUS_WAITING_USER, "r");
    advance(SEC(20)); /* all of it a stall: the first had lapsed when it began */
    EQ(0, kit_amnesty(t, SEC(20) - 1));
    EQ(-20000, row(before.id)->lease_remaining_ms);
    EQ(25000, row(fresh.id)->lease_remaining_ms);
    advance(SEC(11)); /* 14 s are left: less than a third of the term */
    EQ(1, kit_amnesty(t, SEC(16)));
    EQ(45000, row(fresh.id)->lease_remaining_ms);
    EQ(1, sweep().requeued);
    IS("queued", before.id);
}

struct logged {
    size_t count;
    char what[3][16];
    char detail[3][64];
};

static void keep_entry(void *user, const struct hf_store_log_entry *entry)
{
    struct logged *logged = user;
    if (logged->count < 3) {
        size_t i = logged->count;
        for (size_t c = 0; c + 1 < sizeof(logged->what[0]) && entry->what[c]; c++)
            logged->what[i][c] = entry->what[c];
        for (size_t c = 0;
             entry->detail && c + 1 < sizeof(logged->detail[0]) && entry->detail[c]; c++)
            logged->detail[i][c] = entry->detail[c];
    }
    logged->count++;
}

test_case(amnesty_and_bumps_stand_in_the_stores_log)
{
    struct logged log = { 0 };
    running(.disposition = HF_DISPOSITION_RERUNNABLE);
    advance(TERM);
    EQ(1, kit_amnesty(t, SEC(16)));
    EQ(0, kit_amnesty(t, SEC(16))); /* nothing was given, nothing is noted */
    bump();
    CODE(0, hf_store_log(t->store, 0, 0, keep_entry, &log, NULL));
    EQ(2, log.count);
    SAME("bump", log.what[0]);
    SAME("amnesty", log.what[1]);
    SAME("{\"stalled_ms\":16000,\"leases\":1}", log.detail[1]);
    log = (struct logged){ 0 };
    CODE(0, hf_store_log(t->store, 0, 1, keep_entry, &log, NULL));
    EQ(1, log.count);
    CODE(0, t->store->methods->pulse(t->store, NULL));
}
