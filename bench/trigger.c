/* What an emission costs, by the number of its subscribers.
 *
 *     bench_trigger               the table; exit code 1 when it is not linear
 *     bench_trigger SUBSCRIBERS   one emission, as the table counts it
 *
 * On SQLite in memory, each target's payload made from a template. The first emission prepares
 * the statements; the second is counted. */
#include <holdfast/store.h>
#include <holdfast/trigger.h>
#include <stdio.h>
#include <stdlib.h>

#include "count.h"

/* A thousand may cost so many times what ten times a hundred do. */
#define MOST 1.1

static void die(const char *what, const struct hf_err *err)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, err->message);
    exit(1);
}

static void subscribe(struct hf_store *store, long count)
{
    struct hf_err err = { 0 };
    for (long i = 0; i < count; i++) {
        char key[24];
        struct hf_subscriptions *made = NULL;
        struct hf_subscription_spec wanted = {
            .size = sizeof(wanted),
            .owner_scope = "host:bench",
            .key = key,
            .source_type = "mail",
            .source_key = "inbox",
            .payload_template = "{\"from\":{\"$event\":\"mail.from\"}}",
            .priority = -1,
        };
        (void)snprintf(key, sizeof(key), "k%ld", i);
        if (hf_trigger_subscribe(store, NULL, &wanted, &made, &err))
            die("subscribe", &err);
        hf_subscriptions_free(made);
    }
}

static void emit(struct hf_store *store, const char *key, long count)
{
    struct hf_err err = { 0 };
    struct hf_emission *emission = NULL;
    struct hf_occurrence_spec occurrence = { .size = sizeof(occurrence),
                                             .source_type = "mail",
                                             .source_key = "inbox",
                                             .idempotency_key = key,
                                             .payload = "{\"mail\":{\"from\":\"ann\"}}" };
    if (hf_trigger_emit(store, NULL, &occurrence, &emission, &err))
        die("emit", &err);
    if (hf_emission_count(emission) != (size_t)count) {
        (void)fprintf(stderr, "bench: not all were reached\n");
        exit(1);
    }
    hf_emission_free(emission);
}

/* Not static, and never inlined: callgrind counts it by its name. */
void bench_emit_counted(struct hf_store *store, long count);
__attribute__((noinline)) void bench_emit_counted(struct hf_store *store, long count)
{
    emit(store, "second", count);
}

static void emit_to(long count)
{
    struct hf_err err = { 0 };
    struct hf_store *store = NULL;
    struct hf_store_options options = { .size = sizeof(options), .inline_mode = true };
    if (hf_store_open("sqlite::memory:", &options, &store, &err))
        die("open", &err);
    subscribe(store, count);
    emit(store, "first", count);
    bench_emit_counted(store, count);
    hf_store_close(store);
}

static double show(const char *count)
{
    const char *const args[] = { count, NULL };
    double all = bench_instructions("bench_emit_counted", args);
    double each = all / strtod(count, NULL);
    printf("emit to %5s subscribers  %12.0f instructions  %9.0f a delivery", count, all,
           each);
    return each;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        emit_to(strtol(argv[1], NULL, 10));
        return 0;
    }
    (void)show("10");
    bench_check(true);
    double hundred = show("100");
    bench_check(true);
    double thousand = show("1000");
    bench_check(thousand <= MOST * hundred);
    return bench_passed() ? 0 : 1;
}
