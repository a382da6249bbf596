/* fleet_load: one worker of a fleet that goes on whatever happens to its server, and writes
 * down what it was told.
 *
 *   fleet_load --url URL --name NAME --log FILE [--units N] [--ttl MS]
 *
 * It makes N units, takes each under a nonce of its own, and finishes it. A call that answers
 * "nothing was written" or "not known" is done again, the same, until it is answered. A log has
 * one line a thing that the library acknowledged, written before the next call:
 *   C source id       created
 *   T id fence        taken
 *   D id fence        finished
 *   L id fence verb   refused: the lease is no longer ours
 *   U verb code       not known, or not done: the same call follows
 *   E verb code       any other code; there must be none */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/store.h>
#include <holdfast/work.h>

#define PAUSE_MS 20
#define TRIES_MAX 3000

struct worker {
    const char *url;
    const char *name;
    int log;
    int units;
    hf_ms ttl_ms;
    struct hf_store *store;
    char id[40];
    char token[256];
    long long fence;
    struct hf_err err; /* of the last call that failed */
};

static void note(struct worker *w, const char *kind, const char *a, const char *b)
{
    char line[400];
    int len = snprintf(line, sizeof(line), "%s %s %s\n", kind, a, b);
    if (len < 0 || write(w->log, line, (size_t)len) != len)
        _exit(3);
}

static void rest(void)
{
    hf_clock_system()->wait_ms(hf_clock_system()->user, PAUSE_MS);
}

static void must_open(struct worker *w)
{
    struct hf_err err = { 0 };
    int rc = HF_EUNREACHABLE;
    for (int i = 0; rc && i < TRIES_MAX; i++) {
        rc = hf_store_open(w->url, NULL, &w->store, &err);
        if (rc)
            rest();
    }
    if (rc) {
        note(w, "E", "open", hf_err_wire(rc));
        _exit(3);
    }
}

/* Whether the same call is to be made again. */
static bool again(struct worker *w, const char *verb, int rc)
{
    if (rc == 0 || hf_err_class(rc) == HF_CLASS_TERMINAL)
        return false;
    note(w, "U", verb, hf_err_wire(rc));
    rest();
    return true;
}

static int create(struct worker *w, int n)
{
    char source[64];
    struct hf_answer *answer = NULL;
    (void)snprintf(source, sizeof(source), "%s-%d", w->name, n);
    struct hf_work_spec request = { .size = sizeof(request),
                                    .source = HF_SOURCE_MANUAL,
                                    .source_id = source,
                                    .queue = w->name,
                                    .disposition = HF_DISPOSITION_RERUNNABLE,
                                    .priority = -1 };
    int rc;
    do
        rc = hf_work_create(w->store, NULL, &request, 1, HF_ALL_OR_NONE, &answer,
                            &w->err);
    while (again(w, "create", rc));
    if (rc == 0) {
        (void)snprintf(w->id, sizeof(w->id), "%s", hf_answer_at(answer, 0)->work.work_id);
        hf_answer_free(answer);
        note(w, "C", source, w->id);
    }
    return rc;
}

/* HF_EHELD while another process has it, or the lease of a lost history runs. */
static int take(struct worker *w, int n)
{
    char nonce[64], fence[24];
    struct hf_answer *answer = NULL;
    (void)snprintf(nonce, sizeof(nonce), "%s-%d", w->name, n);
    struct hf_claim claim = { .size = sizeof(claim),
                              .owner = w->name,
                              .incarnation = w->name,
                              .nonce = nonce,
                              .id = w->id,
                              .ttl_ms = w->ttl_ms };
    int rc;
    do
        rc = hf_work_claim(w->store, NULL, &claim, &answer, &w->err);
    while (again(w, "claim", rc));
    if (rc)
        return rc;
    const struct hf_item *item = hf_answer_count(answer) ? hf_answer_at(answer, 0) : NULL;
    rc = item ? item->code : HF_EHELD;
    if (rc == 0) {
        w->fence = (long long)item->work.lease_fence;
        (void)snprintf(w->token, sizeof(w->token), "%s", item->token);
        (void)snprintf(fence, sizeof(fence), "%lld", w->fence);
        note(w, "T", w->id, fence);
    }
    hf_answer_free(answer);
    return rc;
}

static int finish(struct worker *w)
{
    char fence[24];
    struct hf_answer *answer = NULL;
    struct hf_change change = { .size = sizeof(change),
                                .verb = HF_VERB_CLOSE_OUT,
                                .id = w->id,
                                .token = w->token,
                                .status = HF_STATUS_DONE };
    int rc;
    do
        rc = hf_work_change(w->store, NULL, &change, 1, HF_ALL_OR_NONE, &answer, &w->err);
    while (again(w, "close_out", rc));
    hf_answer_free(rc == 0 ? answer : NULL);
    (void)snprintf(fence, sizeof(fence), "%lld", w->fence);
    if (rc == 0)
        note(w, "D", w->id, fence);
    return rc;
}

static void renew(struct worker *w)
{
    struct hf_answer *answer = NULL;
    struct hf_change change = {
        .size = sizeof(change), .verb = HF_VERB_RENEW, .id = w->id, .token = w->token
    };
    if (hf_work_change(w->store, NULL, &change, 1, 0, &answer, NULL) == 0)
        hf_answer_free(answer);
}

/* One unit's life. What was lost with a history, or taken by another, is left to others. */
static void work_on(struct worker *w, int n)
{
    char fence[24];
    int rc = create(w, n);
    if (rc == 0)
        rc = take(w, n);
    if (rc == HF_EHELD || rc == HF_ENOTFOUND || rc == HF_ETRANSITION) {
        note(w, "L", w->id, "0 claim");
        return;
    }
    if (rc == 0) {
        renew(w);
        rc = finish(w);
        (void)snprintf(fence, sizeof(fence), "%lld close_out", w->fence);
        if (rc == HF_ELEASELOST || rc == HF_ENOTFOUND || rc == HF_ETRANSITION) {
            note(w, "L", w->id, fence);
            return;
        }
    }
    if (rc) {
        (void)fprintf(stderr, "%s: %s\n", w->name, w->err.message);
        note(w, "E", "work", hf_err_wire(rc));
    }
}

int main(int argc, char **argv)
{
    struct worker w = { .log = -1, .units = 100, .ttl_ms = 30000 };
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--url") == 0)
            w.url = value;
        else if (strcmp(argv[i], "--name") == 0)
            w.name = value;
        else if (strcmp(argv[i], "--log") == 0)
            w.log = open(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        else if (strcmp(argv[i], "--units") == 0)
            w.units = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--ttl") == 0)
            w.ttl_ms = strtoll(value, NULL, 10);
    }
    if (!w.url || !w.name || w.log < 0) {
        (void)fputs("usage: fleet_load --url URL --name NAME --log FILE\n", stderr);
        return 2;
    }
    must_open(&w);
    for (int n = 0; n < w.units; n++)
        work_on(&w, n);
    hf_store_close(w.store);
    return 0;
}
