/* The lease clock: it continues over boots and never goes back. */
#include "lite_kit.h"

#define CASE(name) cmocka_unit_test_setup_teardown(name, kit_setup_closed, kit_teardown)

struct fake {
    hf_ms wall;
    hf_ms mono;
    int waits;
    struct hf_clock clock;
    struct hf_sql_options options;
};

static hf_ms fake_wall(void *user)
{
    return ((struct fake *)user)->wall;
}

static hf_ms fake_mono(void *user)
{
    return ((struct fake *)user)->mono;
}

static void fake_wait(void *user, hf_ms ms)
{
    struct fake *fake = user;
    fake->waits++;
    fake->mono += ms;
    fake->wall += ms;
}

static void fake_init(struct fake *fake)
{
    *fake = (struct fake){ .wall = 1000000, .mono = 500 };
    fake->clock = (struct hf_clock){
        .user = fake, .wall_ms = fake_wall, .mono_ms = fake_mono, .wait_ms = fake_wait
    };
    fake->options = (struct hf_sql_options){ .size = sizeof(fake->options),
                                             .clock = &fake->clock };
}

static void reopen(struct kit *kit, struct fake *fake)
{
    kit_close(kit);
    assert_int_equal(kit_try(kit, kit->path, &fake->options, &kit->sql), 0);
}

static hf_ms lease_now(struct kit *kit)
{
    struct kit_batch b;
    kit_begin(&b);
    b.batch.read_only = true;
    assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
    return b.batch.lease_now;
}

static void commit_one(struct kit *kit, int64_t id)
{
    assert_int_equal(kit_put_one(kit->sql, id, "ann", 1), 0);
}

static void the_lease_clock_starts_at_the_wall_and_ignores_its_jumps(void **state)
{
    struct kit *kit = *state;
    struct fake fake;
    fake_init(&fake);
    reopen(kit, &fake);
    assert_int_equal(lease_now(kit), 1000000);
    fake.mono += 5000;
    fake.wall = 5;
    assert_int_equal(lease_now(kit), 1005000);
    fake.wall = 99000000;
    assert_int_equal(lease_now(kit), 1005000);
}

static void the_lease_clock_never_goes_back_over_a_reopen(void **state)
{
    struct kit *kit = *state;
    struct fake fake;
    fake_init(&fake);
    reopen(kit, &fake);
    fake.mono += 5000;
    commit_one(kit, 1);
    fake.wall = 0; /* set back by a day's worth */
    fake.mono += 10;
    reopen(kit, &fake);
    assert_int_equal(lease_now(kit), 1005010);
    commit_one(kit, 2);
    fake.mono = 0; /* a clock that begins anew */
    reopen(kit, &fake);
    assert_int_equal(lease_now(kit), 1005010);
    fake.mono += 7;
    assert_int_equal(lease_now(kit), 1005017);
}

static void a_new_boot_continues_at_the_later_of_wall_and_high_water(void **state)
{
    struct kit *kit = *state;
    struct fake fake;
    fake_init(&fake);
    reopen(kit, &fake);
    fake.mono += 5000;
    commit_one(kit, 1);
    kit_close(kit);

    kit_sql(kit->path, "UPDATE hf_store SET boot_id = 'the boot before'");
    fake.mono = 3;
    fake.wall = 900000;
    reopen(kit, &fake);
    assert_int_equal(lease_now(kit), 1005000);
    kit_close(kit);

    kit_sql(kit->path, "UPDATE hf_store SET boot_id = 'the boot before'");
    fake.wall = 2000000;
    reopen(kit, &fake);
    assert_int_equal(lease_now(kit), 2000000);
}

static void every_commit_writes_the_high_water(void **state)
{
    struct kit *kit = *state;
    struct fake fake;
    fake_init(&fake);
    reopen(kit, &fake);
    for (int i = 0; i < 3; i++) {
        fake.mono += 100;
        commit_one(kit, i);
        assert_int_equal(kit_sql_int(kit->path, "SELECT lease_high_water FROM hf_store"),
                         lease_now(kit));
    }
}

static void another_time_namespace_of_this_boot_is_refused(void **state)
{
    struct kit *kit = *state;
    struct hf_sql *sql = NULL;
    kit_open(kit);
    kit_close(kit);
    kit_sql(kit->path, "UPDATE hf_store SET time_ns = '1'");
    assert_int_equal(kit_try(kit, kit->path, NULL, &sql), HF_ECLOCK);
    kit_sql(kit->path, "UPDATE hf_store SET boot_id = 'the boot before'");
    kit_open(kit);
    assert_int_equal(kit_sql_int(kit->path, "SELECT time_ns = '1' FROM hf_store"), 0);
}

/* The functions are constant for one run of a statement, not for its life. */
static void prepared_statements_see_each_transactions_own_time(void **state)
{
    struct kit *kit = *state;
    struct fake fake;
    fake_init(&fake);
    reopen(kit, &fake);
    for (int i = 0; i < 3; i++) {
        fake.wall += 1000;
        fake.mono += 7;
        struct kit_batch b;
        kit_begin(&b);
        struct hf_call *call = kit_call(&b, KIT_CLOCKS, 0, NULL, 1);
        assert_int_equal(kit_run(kit->sql, &b, NULL), 0);
        assert_int_equal(call->out[0].i, fake.wall);
        assert_int_equal(call->out[1].i, 1000000 + 7 * (i + 1));
        kit->sql->methods->forget(kit->sql, &b.batch);
    }
}

static void two_handles_show_one_lease_clock(void **state)
{
    struct kit *kit = *state;
    struct fake fake;
    struct kit second;
    fake_init(&fake);
    reopen(kit, &fake);
    fake.wall = 1;
    fake.mono += 50;
    kit_make(&second);
    assert_int_equal(kit_try(kit, kit->path, &fake.options, &second.sql), 0);
    assert_int_equal(lease_now(&second), lease_now(kit));
    assert_int_equal(lease_now(kit), 1000050);
    kit_drop(&second);
}

static void an_injected_clock_is_waited_on_and_not_the_machines(void **state)
{
    struct kit *kit = *state;
    struct fake fake;
    fake_init(&fake);
    reopen(kit, &fake);
    const struct hf_sql_methods *methods = kit->sql->methods;
    uint32_t seen = methods->bell_seen(kit->sql, 3);
    assert_false(methods->bell_wait(kit->sql, 3, seen, 100));
    assert_int_equal(fake.waits, 1);
    assert_int_equal(fake.mono, 600);
    methods->bell_ring(kit->sql, 3, 1);
    assert_true(methods->bell_wait(kit->sql, 3, seen, 3600000));
    assert_int_equal(fake.waits, 1);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(the_lease_clock_starts_at_the_wall_and_ignores_its_jumps),
        CASE(the_lease_clock_never_goes_back_over_a_reopen),
        CASE(a_new_boot_continues_at_the_later_of_wall_and_high_water),
        CASE(every_commit_writes_the_high_water),
        CASE(another_time_namespace_of_this_boot_is_refused),
        CASE(prepared_statements_see_each_transactions_own_time),
        CASE(two_handles_show_one_lease_clock),
        CASE(an_injected_clock_is_waited_on_and_not_the_machines),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
