/* monitor STORE
 *
 * What `holdfast monitor` does, inside a program: passes over a store, and the time between them.
 * SIGTERM and SIGINT end it. Any number of monitors may work on one store.
 *
 *   cc monitor.c $(pkg-config --cflags --libs holdfast) -o monitor
 */
#define _POSIX_C_SOURCE 200809L /* also under -std=c11 */

#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>

#define INTERVAL_MS 1000

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* One pass, and the wait until the next one. An error that may go away is no end. */
static int pass(struct hf_store *store, const struct hf_monitor_plan *plan,
                struct hf_err *err)
{
    struct hf_monitor_report report;
    int rc = hf_monitor_pass(store, NULL, plan, &report, err);
    if (rc)
        (void)fprintf(stderr, "monitor: %s\n", err->message);
    if (rc && hf_err_class(rc) == HF_CLASS_TERMINAL && rc != HF_EFULL)
        return rc;
    if (rc == 0 && hf_sweep_changes(&report.sweep))
        (void)printf("changed %lld units\n", (long long)hf_sweep_changes(&report.sweep));
    if (rc == 0 && report.schedules.made)
        (void)printf("made %lld units\n", (long long)report.schedules.made);
    (void)fflush(stdout);
    rc = stop ? 0 : hf_work_await(store, INTERVAL_MS, err);
    if (rc && hf_err_class(rc) != HF_CLASS_TERMINAL) {
        const struct hf_clock *clock = hf_clock_system();
        clock->wait_ms(clock->user, INTERVAL_MS);
        rc = 0;
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct hf_monitor_witness witness = { 0 };
    struct hf_monitor_plan plan = { .size = sizeof(plan), .witness = &witness };
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    if (argc != 2) {
        (void)fprintf(stderr, "usage: monitor STORE\n");
        return 2;
    }
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGINT, on_signal);
    int rc = hf_store_open(argv[1], NULL, &store, &err);
    while (rc == 0 && !stop)
        rc = pass(store, &plan, &err);
    hf_store_close(store);
    if (rc)
        (void)fprintf(stderr, "monitor: %s: %s\n", err.message, hf_err_action(rc));
    return rc ? hf_err_exit(rc) : 0;
}
