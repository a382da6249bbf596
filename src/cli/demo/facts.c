/* The ending of the demonstration: read only from the ledger's rows and events, so that
 * it says what happened and not what was meant to happen. */
#include "cli/demo/demo.h"

#include <stdio.h>
#include <string.h>

#include "base/json_get.h"
#include "base/text.h"

static int parse(struct cli *cli, const char *text, struct json_t **ret_value)
{
    struct hf_span span = { text, strlen(text) };
    return hf_json_parse(span, (size_t)HF_MAX_PAYLOAD_BYTES, "payload", ret_value,
                         &cli->err);
}

/* The reclaim: who was proven dead, and how. */
static void read_proof(struct demo_facts *facts, const struct json_t *note)
{
    const struct json_t *proof = hf_json_member(note, "proof");
    const char *how = hf_json_as_text(hf_json_member(proof, "how"));
    if (!how)
        return;
    facts->reclaims++;
    facts->proven_pid = hf_json_as_i64(
        hf_json_member(hf_json_member(proof, "holder"), "pid"));
    facts->ttl_ms = hf_json_as_i64(
        hf_json_member(hf_json_member(note, "lease_released"), "ttl_ms"));
    (void)snprintf(facts->how, sizeof(facts->how), "%s", how);
}

static void count_event(struct demo_facts *facts, const struct hf_event *event,
                        const struct json_t *note)
{
    enum hf_status from = event->from_status ? hf_status_of(event->from_status)
                                             : HF_STATUS_NONE;
    enum hf_status to = event->to_status ? hf_status_of(event->to_status)
                                         : HF_STATUS_NONE;
    facts->steps += strcmp(event->event_type, "step") == 0;
    facts->transitions += to != HF_STATUS_NONE;
    facts->resumes += from == HF_STATUS_WAITING_USER && to == HF_STATUS_QUEUED;
    facts->retries += from == HF_STATUS_RETRY_SCHEDULED && to == HF_STATUS_QUEUED;
    facts->evidence += (int64_t)hf_json_items(hf_json_member(note, "evidence"));
    if (from == HF_STATUS_RUNNING && to == HF_STATUS_QUEUED)
        read_proof(facts, note);
    if (to != HF_STATUS_RUNNING)
        return;
    facts->attempts++;
    if (facts->reclaims && !facts->reclaimed_at) {
        facts->reclaimed_at = event->created_at;
        (void)snprintf(facts->reclaimed_id, sizeof(facts->reclaimed_id), "%s",
                       event->work_id);
    }
}

static int read_trail(struct cli *cli, struct demo_facts *facts, const char *work_id)
{
    struct hf_events *events = NULL;
    int rc = hf_work_events(cli->store, &cli->who, work_id, 0, 1000, &events, &cli->err);
    if (rc)
        return rc;
    for (size_t i = 0; rc == 0 && i < hf_events_count(events); i++) {
        const struct hf_event *event = hf_events_at(events, i);
        struct json_t *note = NULL;
        if (event->payload)
            rc = parse(cli, event->payload, &note);
        if (rc == 0)
            count_event(facts, event, note);
        hf_json_free(note);
    }
    hf_events_free(events);
    return rc;
}

static int read_unit(struct cli *cli, struct demo_facts *facts,
                     const struct hf_work *work)
{
    size_t used = strlen(facts->names);
    facts->units++;
    (void)snprintf(facts->names + used, sizeof(facts->names) - used, "%s%s",
                   used ? ", " : "", work->kind);
    facts->done += hf_status_of(work->status) == HF_STATUS_DONE;
    if (strcmp(work->kind, DEMO_KILL) == 0 && work->payload) {
        struct json_t *payload = NULL;
        int rc = parse(cli, work->payload, &payload);
        if (rc)
            return rc;
        facts->killed_at = work->created_at;
        facts->killed_pid = hf_json_as_i64(hf_json_member(payload, "pid"));
        hf_json_free(payload);
    }
    return read_trail(cli, facts, work->work_id);
}

static void found(void *user, const struct hf_finding *finding)
{
    struct demo_facts *facts = user;
    facts->bad += finding->bad;
}

int demo_gather(struct cli *cli, struct demo_facts *ret_facts)
{
    struct demo_facts facts = { 0 };
    enum hf_status all[HF_STATUS_COUNT - 1];
    for (size_t i = 0; i < HF_STATUS_COUNT - 1; i++)
        all[i] = (enum hf_status)(i + 1);
    struct hf_filter filter = { .size = sizeof(filter),
                                .statuses = all,
                                .status_count = HF_STATUS_COUNT - 1,
                                .limit = 1000 };
    struct hf_answer *rows = NULL;
    int rc = hf_work_list(cli->store, &cli->who, &filter, &rows, &cli->err);
    for (size_t i = 0; rc == 0 && i < hf_answer_count(rows); i++)
        rc = read_unit(cli, &facts, &hf_answer_at(rows, i)->work);
    hf_answer_free(rows);
    if (rc == 0)
        rc = hf_store_check(cli->store, found, &facts, &cli->err);
    if (rc == 0)
        *ret_facts = facts;
    return rc;
}

const char *demo_objection(const struct demo_facts *facts)
{
    const struct {
        bool holds;
        const char *objection;
    } claims[] = {
        { facts->units == DEMO_TASKS + 1, "the ledger does not hold every unit once" },
        { facts->done == facts->units, "not every unit is done" },
        { facts->reclaims == 1, "there is not exactly one reclaim with a proof" },
        { facts->killed_pid > 0 && facts->proven_pid == facts->killed_pid,
          "the proof does not name the process that was killed" },
        { facts->reclaimed_at >= facts->killed_at, "the reclaim is older than the kill" },
        { facts->steps == DEMO_STEPS, "a step was lost or done twice" },
        { facts->resumes == 1, "the waiting unit was not resumed once" },
        { facts->retries == 1, "the failed unit was not retried once" },
        { facts->attempts == DEMO_TASKS + 3, "there are attempts that nothing explains" },
        { facts->evidence == 1, "the evidence is missing" },
        { facts->bad == 0, "the check of the store found faults" },
    };
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
        if (!claims[i].holds)
            return claims[i].objection;
    return NULL;
}

void demo_print_facts(struct cli *cli, const struct demo_facts *facts)
{
    char term[24];
    cli_colour(cli, CLI_BOLD);
    cli_put(cli, "\nWhat the ledger's own events prove\n");
    cli_colour(cli, CLI_PLAIN);
    cli_putf(cli, "  units      %lld, of which %lld done; %lld attempts\n             ",
             (long long)facts->units, (long long)facts->done, (long long)facts->attempts);
    cli_put_clean(cli, facts->names);
    cli_put(cli, " (the kill itself is one)\n");
    cli_putf(cli,
             "  reclaim    %lld ms from the kill of process %lld to the next claim, of a "
             "lease of %s\n",
             (long long)(facts->reclaimed_at - facts->killed_at),
             (long long)facts->killed_pid, cli_duration(facts->ttl_ms, term));
    cli_putf(cli, "  proof      process %lld, %s\n", (long long)facts->proven_pid,
             facts->how);
    cli_putf(cli, "  steps      %lld of %d, none twice\n", (long long)facts->steps,
             DEMO_STEPS);
    cli_putf(cli, "  waits      %lld resumed;  retries %lld;  evidence %lld\n",
             (long long)facts->resumes, (long long)facts->retries,
             (long long)facts->evidence);
    cli_putf(cli, "  trails     %lld changes of status; every trail folds to its row\n",
             (long long)facts->transitions);
}

void demo_json_facts(struct hf_json *json, const struct demo_facts *facts)
{
    hf_json_put_i64(json, "units", facts->units);
    hf_json_put_str(json, "unit_kinds", facts->names);
    hf_json_put_i64(json, "done", facts->done);
    hf_json_put_i64(json, "attempts", facts->attempts);
    hf_json_put_i64(json, "transitions", facts->transitions);
    hf_json_put_i64(json, "steps", facts->steps);
    hf_json_put_i64(json, "resumes", facts->resumes);
    hf_json_put_i64(json, "retries", facts->retries);
    hf_json_put_i64(json, "evidence", facts->evidence);
    hf_json_put_i64(json, "faults", facts->bad);
    hf_json_key(json, "reclaim");
    hf_json_object(json);
    hf_json_put_str(json, "work_id", facts->reclaimed_id);
    hf_json_put_i64(json, "killed_pid", facts->killed_pid);
    hf_json_put_i64(json, "proven_pid", facts->proven_pid);
    hf_json_put_str(json, "how", facts->how);
    hf_json_put_i64(json, "ms", facts->reclaimed_at - facts->killed_at);
    hf_json_put_i64(json, "lease_ttl_ms", facts->ttl_ms);
    hf_json_end(json);
}
