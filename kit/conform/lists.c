/* Lists of schedules and of subscriptions: order, pages, bounds and cursors. */

#include <string.h>

#include "conform/kit.h"

static void drop_schedules(void *at)
{
    hf_schedules_free(at);
}

static void drop_subscriptions(void *at)
{
    hf_subscriptions_free(at);
}

static void kit_add(struct hf_conform *t, struct hf_schedule_spec wanted)
{
    struct hf_schedules *made = NULL;
    wanted.size = sizeof(wanted);
    wanted.cron = "@daily";
    wanted.priority = -1;
    if (t->failed)
        return;
    CODE(0,
         kit_called(t, hf_schedule_add(t->store, &t->who, &wanted, &made, kit_err(t))));
    hf_schedules_free(made);
}
#define add(...) kit_add(AT(t), (struct hf_schedule_spec){ __VA_ARGS__ })

static void kit_subscribe(struct hf_conform *t, struct hf_subscription_spec wanted)
{
    struct hf_subscriptions *made = NULL;
    wanted.size = sizeof(wanted);
    wanted.source_type = "mail";
    wanted.source_key = wanted.source_key ? wanted.source_key : "inbox";
    wanted.priority = -1;
    if (t->failed)
        return;
    CODE(0, kit_called(
                t, hf_trigger_subscribe(t->store, &t->who, &wanted, &made, kit_err(t))));
    hf_subscriptions_free(made);
}
#define subscribe(...) kit_subscribe(AT(t), (struct hf_subscription_spec){ __VA_ARGS__ })

/* A page, kept until the case ends; NULL when the case has failed. */
static struct hf_schedules *schedules_of(struct hf_conform *t,
                                         const struct hf_schedule_filter *filter)
{
    struct hf_schedules *found = NULL;
    t->code = kit_called(t,
                         hf_schedule_list(t->store, &t->who, filter, &found, kit_err(t)));
    CODE(0, t->code);
    if (t->failed)
        return NULL;
    kit_keep(t, found, drop_schedules);
    return found;
}

test_case(schedules_are_listed_by_name_a_page_at_a_time)
{
    for (int i = 9; i >= 0; i--)
        add(.name = say("n%d", i), .paused = i % 2 == 1);
    struct hf_schedule_filter filter = { .size = sizeof(filter), .limit = 4 };
    size_t seen = 0;
    for (int page = 0; page < 3; page++) {
        struct hf_schedules *found = schedules_of(t, &filter);
        if (!found)
            return;
        for (size_t i = 0; i < hf_schedules_count(found); i++)
            SAME(say("n%zu", seen++), hf_schedules_at(found, i)->name);
        filter.after = hf_schedules_next(found);
        TRUE((filter.after != NULL) == (page < 2));
    }
    EQ(10, seen);
    struct hf_schedules *found = NULL;
    filter = (struct hf_schedule_filter){ .size = sizeof(filter), .state = "paused" };
    CODE(0, hf_schedule_list(t->store, &t->who, &filter, &found, NULL));
    EQ(5, hf_schedules_count(found));
    hf_schedules_free(found);
}

test_case(schedules_of_all_tenants_are_listed_where_none_is_named)
{
    static const char *const tenants[] = { "", "a", "b" };
    for (size_t i = 0; i < 6; i++) {
        t->who.tenant = tenants[i % 3];
        add(.name = i < 3 ? "n1" : "n2");
    }
    t->who.tenant = NULL;
    struct hf_schedule_filter filter = { .size = sizeof(filter), .limit = 1 };
    for (size_t i = 0; i < 6; i++) {
        struct hf_schedules *found = schedules_of(t, &filter);
        if (!found)
            return;
        EQ(1, hf_schedules_count(found));
        SAME(tenants[i / 2], hf_schedules_at(found, 0)->tenant);
        SAME(i % 2 ? "n2" : "n1", hf_schedules_at(found, 0)->name);
        filter.after = hf_schedules_next(found);
        TRUE((filter.after != NULL) == (i < 5));
    }
    struct hf_schedules *found = NULL;
    filter.after = "no cursor";
    CODE(HF_EINVAL, hf_schedule_list(t->store, &t->who, &filter, &found, kit_err(t)));
    SAME("after", t->err.field);
}

test_case(schedules_are_listed_newest_first)
{
    static const char *const names[] = { "b", "d", "a", "c" };
    for (size_t i = 0; i < 4; i++) {
        add(.name = names[i]);
        advance(SEC(1));
    }
    struct hf_schedule_filter filter = { .size = sizeof(filter),
                                         .limit = 2,
                                         .newest = true };
    struct hf_schedules *found = schedules_of(t, &filter);
    if (!found)
        return;
    EQ(2, hf_schedules_count(found));
    SAME("c", hf_schedules_at(found, 0)->name);
    SAME("a", hf_schedules_at(found, 1)->name);
    filter.after = hf_schedules_next(found);
    /* A new one pushes nothing out, and a change moves none; the cursor's own may go. */
    add(.name = "e");
    CODE(0, hf_schedule_remove(t->store, &t->who, "a", 0, kit_err(t)));
    found = schedules_of(t, &filter);
    if (!found)
        return;
    EQ(2, hf_schedules_count(found));
    SAME("d", hf_schedules_at(found, 0)->name);
    SAME("b", hf_schedules_at(found, 1)->name);
    SAME(NULL, hf_schedules_next(found));
}

test_case(a_cursor_of_schedules_is_of_its_list_and_filter)
{
    add(.name = "a");
    add(.name = "b");
    struct hf_schedule_filter filter = { .size = sizeof(filter), .limit = 1 };
    struct hf_schedules *found = schedules_of(t, &filter);
    const char *after = found ? hf_schedules_next(found) : NULL;
    TRUE(after != NULL);
    const struct hf_schedule_filter others[] = {
        { .newest = true, .after = after },
        { .state = "active", .after = after },
        { .origin = "set", .after = after },
        { .after = "seo00000000.1" }, /* of sessions */
        { .after = say("%.12s9999:a", after ? after : "") },
        { .after = say("%.12s0,0:1:ab", after ? after : "") },
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        filter = others[i];
        filter.size = sizeof(filter);
        CODE(HF_EINVAL, hf_schedule_list(t->store, &t->who, &filter, &found, kit_err(t)));
        SAME("after", t->err.field);
    }
    t->who.tenant = "other";
    filter = (struct hf_schedule_filter){ .size = sizeof(filter), .after = after };
    CODE(HF_EINVAL, hf_schedule_list(t->store, &t->who, &filter, &found, kit_err(t)));
    SAME("after", t->err.field);
}

test_case(a_page_of_schedules_ends_when_its_payloads_are_large)
{
    enum { BYTES = 1 << 20, SCHEDULES = 7 };
    char *payload = kit_memory(t, BYTES + 1);
    if (t->failed)
        return;
    memset(payload, '1', BYTES);
    payload[0] = payload[BYTES - 1] = '"';
    payload[BYTES] = 0;
    for (int i = 0; i < SCHEDULES; i++)
        add(.name = say("n%d", i), .payload = payload);
    for (int newest = 0; newest < 2; newest++) {
        struct hf_schedule_filter filter = { .size = sizeof(filter), .newest = newest };
        struct hf_schedules *found = schedules_of(t, &filter);
        if (!found)
            return;
        EQ(4, hf_schedules_count(found)); /* 4 MiB */
        filter.after = hf_schedules_next(found);
        found = schedules_of(t, &filter);
        if (!found)
            return;
        EQ(3, hf_schedules_count(found));
        SAME(NULL, hf_schedules_next(found));
    }
}

/* ---- subscriptions ------------------------------------------------------------------- */

static struct hf_subscriptions *subscriptions_of(struct hf_conform *t,
                                                 const struct hf_trigger_filter *filter)
{
    struct hf_subscriptions *found = NULL;
    t->code = kit_called(t,
                         hf_trigger_list(t->store, &t->who, filter, &found, kit_err(t)));
    CODE(0, t->code);
    if (t->failed)
        return NULL;
    kit_keep(t, found, drop_subscriptions);
    return found;
}

test_case(subscriptions_are_listed_a_page_at_a_time)
{
    for (int i = 0; i < 5; i++)
        subscribe(.key = say("k%d", i), .source_key = i % 2 ? "odd" : "even");
    struct hf_trigger_filter filter = { .size = sizeof(filter), .limit = 2 };
    size_t seen = 0;
    for (int page = 0; page < 3; page++) {
        struct hf_subscriptions *found = subscriptions_of(t, &filter);
        if (!found)
            return;
        for (size_t i = 0; i < hf_subscriptions_count(found); i++)
            SAME(say("k%zu", seen++), hf_subscriptions_at(found, i)->subscription_key);
        filter.after = hf_subscriptions_next(found);
        TRUE((filter.after != NULL) == (page < 2));
    }
    EQ(5, seen);
    struct hf_subscriptions *found = NULL;
    filter = (struct hf_trigger_filter){ .size = sizeof(filter), .source_key = "odd" };
    CODE(0, hf_trigger_list(t->store, &t->who, &filter, &found, NULL));
    EQ(2, hf_subscriptions_count(found));
    hf_subscriptions_free(found);
}

test_case(subscriptions_of_all_tenants_are_listed_where_none_is_named)
{
    static const char *const tenants[] = { "t2", "t1", NULL };
    for (size_t i = 0; i < 3; i++) {
        t->who.tenant = tenants[i];
        subscribe(.key = "k");
    }
    struct hf_trigger_filter filter = { .size = sizeof(filter), .limit = 2 };
    struct hf_subscriptions *found = NULL;
    CODE(0, hf_trigger_list(t->store, &t->who, &filter, &found, NULL));
    if (t->failed)
        return;
    kit_keep(t, found, drop_subscriptions);
    EQ(2, hf_subscriptions_count(found));
    SAME("", hf_subscriptions_at(found, 0)->tenant);
    SAME("t1", hf_subscriptions_at(found, 1)->tenant);
    filter.after = hf_subscriptions_next(found);
    CODE(0, hf_trigger_list(t->store, &t->who, &filter, &found, NULL));
    kit_keep(t, found, drop_subscriptions);
    EQ(1, hf_subscriptions_count(found));
    SAME("t2", hf_subscriptions_at(found, 0)->tenant);
    t->who.tenant = "t1";
    filter.after = NULL;
    CODE(0, hf_trigger_list(t->store, &t->who, &filter, &found, NULL));
    kit_keep(t, found, drop_subscriptions);
    EQ(1, hf_subscriptions_count(found));
}

test_case(subscriptions_are_listed_newest_first)
{
    static const char *const keys[] = { "b", "d", "a", "c" };
    for (size_t i = 0; i < 4; i++) {
        subscribe(.key = keys[i]);
        advance(SEC(1));
    }
    struct hf_trigger_filter filter = { .size = sizeof(filter),
                                        .limit = 2,
                                        .newest = true };
    struct hf_subscriptions *found = subscriptions_of(t, &filter);
    if (!found)
        return;
    EQ(2, hf_subscriptions_count(found));
    SAME("c", hf_subscriptions_at(found, 0)->subscription_key);
    SAME("a", hf_subscriptions_at(found, 1)->subscription_key);
    filter.after = hf_subscriptions_next(found);
    subscribe(.key = "e"); /* it is newer, and pushes nothing out */
    found = subscriptions_of(t, &filter);
    if (!found)
        return;
    EQ(2, hf_subscriptions_count(found));
    SAME("d", hf_subscriptions_at(found, 0)->subscription_key);
    SAME("b", hf_subscriptions_at(found, 1)->subscription_key);
    SAME(NULL, hf_subscriptions_next(found));
}

test_case(a_cursor_of_subscriptions_is_of_its_list_and_filter)
{
    subscribe(.key = "a");
    subscribe(.key = "b");
    struct hf_trigger_filter filter = { .size = sizeof(filter), .limit = 1 };
    struct hf_subscriptions *found = subscriptions_of(t, &filter);
    const char *after = found ? hf_subscriptions_next(found) : NULL;
    TRUE(after != NULL);
    const struct hf_trigger_filter others[] = {
        { .newest = true, .after = after },
        { .owner_scope = "host", .after = after },
        { .source_type = "mail", .after = after },
        { .source_key = "inbox", .after = after },
        { .state = "enabled", .after = after },
        { .after = "sco00000000.1" }, /* of schedules */
        { .after = say("%.12s0,0:4:host", after ? after : "") },
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        filter = others[i];
        filter.size = sizeof(filter);
        CODE(HF_EINVAL, hf_trigger_list(t->store, &t->who, &filter, &found, kit_err(t)));
        SAME("after", t->err.field);
    }
}

test_case(a_page_of_subscriptions_ends_when_its_templates_are_large)
{
    enum { BYTES = 1 << 20, SUBSCRIPTIONS = 6 };
    char *template = kit_memory(t, BYTES + 1);
    if (t->failed)
        return;
    memset(template, '1', BYTES);
    template[0] = template[BYTES - 1] = '"';
    template[BYTES] = 0;
    for (int i = 0; i < SUBSCRIPTIONS; i++)
        subscribe(.key = say("k%d", i), .payload_template = template);
    for (int newest = 0; newest < 2; newest++) {
        struct hf_trigger_filter filter = { .size = sizeof(filter), .newest = newest };
        struct hf_subscriptions *found = subscriptions_of(t, &filter);
        if (!found)
            return;
        EQ(4, hf_subscriptions_count(found)); /* 4 MiB */
        filter.after = hf_subscriptions_next(found);
        found = subscriptions_of(t, &filter);
        if (!found)
            return;
        EQ(2, hf_subscriptions_count(found));
        SAME(NULL, hf_subscriptions_next(found));
    }
}
