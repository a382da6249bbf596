/* Schedules at scale: many of them due within one minute, made second by second under a clock
 * of the program's own, and every slot looked at afterwards.
 *
 *     bench/schedule STORE [SCHEDULES]
 *
 * STORE is a file that is not there yet, or the address of an empty database. It prints the
 * processor's time of one minute, which must stay below 60 s: one core. Exit code 1 when it
 * does not, or when a slot is missing or doubled. */
#include <holdfast/schedule.h>
#include <holdfast/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"

#define START ((hf_ms)1800000000000) /* 2027-01-15T08:00:00Z */

static hf_ms wall = START;

static void die(const char *what, const struct hf_err *err)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, err ? err->message : "");
    exit(1);
}

static hf_ms wall_ms(void *user)
{
    (void)user;
    return wall;
}

static hf_ms mono_ms(void *user)
{
    (void)user;
    return wall - START + 1000000;
}

static void wait_ms(void *user, hf_ms ms)
{
    (void)user;
    wall += ms;
}

static double cpu_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One file of at most a thousand schedules, each at a second of the minute. */
static void declare(struct hf_buf *out, long first, long count)
{
    struct hf_json json;
    char text[40];
    hf_json_begin(&json, out);
    hf_json_object(&json);
    (void)snprintf(text, sizeof(text), "b%ld", first);
    hf_json_put_str(&json, "set", text);
    hf_json_key(&json, "schedules");
    hf_json_array(&json);
    for (long i = first; i < first + count; i++) {
        hf_json_object(&json);
        (void)snprintf(text, sizeof(text), "s%ld", i);
        hf_json_put_str(&json, "name", text);
        (void)snprintf(text, sizeof(text), "%ld * * * * *", i % 60);
        hf_json_put_str(&json, "cron", text);
        hf_json_put_str(&json, "zone", i % 3 ? "Europe/Berlin" : "UTC");
        hf_json_put_i64(&json, "payload", i);
        hf_json_end(&json);
    }
    hf_json_end(&json);
    hf_json_end(&json);
}

static void fill(struct hf_store *store, long count)
{
    struct hf_err err = { 0 };
    struct hf_buf json;
    hf_buf_init(&json, hf_alloc_system(), 1 << 20);
    for (long first = 0; first < count; first += 1000) {
        struct hf_sync_report report;
        hf_buf_reset(&json);
        declare(&json, first, count - first < 1000 ? count - first : 1000);
        if (hf_schedule_sync(store, NULL, hf_buf_str(&json), &report, &err))
            die("sync", &err);
    }
    hf_buf_fini(&json);
}

/* Every schedule made exactly one unit, and its slot is the one it should be. */
static void judge(struct hf_store *store, long count)
{
    struct hf_err err = { 0 };
    struct hf_schedule_filter filter = { .size = sizeof(filter), .limit = 1000 };
    struct hf_schedules *page = NULL, *before = NULL;
    long seen = 0;
    do {
        if (hf_schedule_list(store, NULL, &filter, &page, &err))
            die("list", &err);
        hf_schedules_free(before);
        before = page;
        for (size_t i = 0; i < hf_schedules_count(page); i++, seen++) {
            const struct hf_schedule *s = hf_schedules_at(page, i);
            long n = strtol(s->name + 1, NULL, 10);
            hf_ms slot = START + n % 60 * 1000;
            if (s->made != 1 || s->skipped != 0 || s->last_slot_at != slot)
                die("a slot is missing or doubled", NULL);
        }
        filter.after = hf_schedules_next(page);
    } while (filter.after);
    hf_schedules_free(before);
    if (seen != count)
        die("schedules are missing", NULL);
}

int main(int argc, char **argv)
{
    const struct hf_clock clock = { NULL, wall_ms, mono_ms, wait_ms };
    struct hf_store_options options = { .size = sizeof(options), .clock = &clock };
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
    if (argc < 2 || count < 1)
        die("usage: bench/schedule STORE [SCHEDULES]", NULL);
    wall = START - 1000;
    if (hf_store_open(argv[1], &options, &store, &err))
        die("open", &err);
    double begun = cpu_s();
    fill(store, count);
    double filled = cpu_s();
    int64_t made = 0;
    double worst = 0;
    for (int second = 0; second < 60; second++) {
        struct hf_schedule_report report;
        double before = cpu_s();
        wall += 1000;
        if (hf_schedule_pass(store, NULL, &report, &err))
            die("pass", &err);
        made += report.made;
        worst = cpu_s() - before > worst ? cpu_s() - before : worst;
    }
    double spent = cpu_s() - filled;
    judge(store, count);
    (void)printf("schedules            %ld\n", count);
    (void)printf("added, cpu           %.2f s\n", filled - begun);
    (void)printf("units made           %lld\n", (long long)made);
    (void)printf("passes, cpu          %.2f s for 60 s of slots (%.1f %% of one core)\n",
                 spent, spent / 60 * 100);
    (void)printf("worst second, cpu    %.3f s\n", worst);
    (void)printf("a unit, cpu          %.1f us\n", spent / (double)made * 1e6);
    hf_store_close(store);
    return made == count && spent < 60 ? 0 : 1;
}
