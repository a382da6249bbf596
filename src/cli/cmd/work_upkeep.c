/* holdfast work sweep: the processes that lost units leave behind on this machine. */
#include "cli/cli.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cmd/upkeep.h"

#define ORPHAN_MS 20
#define ORPHAN_LOOKS (2 * HF_MONITOR_KILL_MS / ORPHAN_MS)

/* ---- sweep ------------------------------------------------------------------------- */

void cli_json_counts(struct hf_json *json, const struct hf_shape *shape,
                     const void *report)
{
    for (size_t i = 0; i < shape->count; i++)
        if (shape->fields[i].kind == HF_FIELD_I64 && !shape->fields[i].zero_is_null)
            op_put_field(json, &shape->fields[i], report);
}

void cli_text_sweep(const struct hf_sweep_report *report, char *out, size_t room)
{
    const struct {
        int64_t count;
        const char *what;
    } parts[] = {
        { report->requeued, "requeued" },
        { report->timed_out, "timed out" },
        { report->failed, "failed" },
        { report->abandoned, "abandoned" },
        { report->held, "held after repeated crashes" },
        { report->promoted, "promoted" },
        { report->escalated, "escalated" },
        { report->silent, "left silent" },
        { report->proven_dead, "holders proven dead" },
        { report->orphaned, "left until their processes have ended" },
    };
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].count == 0 || used + 64 > room)
            continue;
        int len = snprintf(out + used, room - used, "%s%lld %s", used ? ", " : "",
                           (long long)parts[i].count, parts[i].what);
        used += len > 0 ? (size_t)len : 0;
    }
}

/* Orphans go first: their units can be swept only when they have gone. What they wrote is
 * stored. */
static int end_orphans(struct cli *cli)
{
    struct hf_reaper *reaper = NULL;
    int64_t ending = 0;
    int rc = cli_reaper_new(cli, &reaper);
    if (rc || !reaper)
        return rc;
    for (int i = 0; rc == 0 && i < ORPHAN_LOOKS && (i == 0 || ending); i++) {
        if (ending)
            (void)poll(NULL, 0, ORPHAN_MS);
        rc = hf_reaper_pass(reaper, &cli->who, HF_MONITOR_KILL_MS, NULL, NULL, &ending,
                            &cli->err);
    }
    hf_reaper_free(reaper);
    return rc;
}

int cmd_work_sweep(struct cli *cli)
{
    int rc = cli_open_store(cli);
    if (rc == 0)
        rc = end_orphans(cli);
    if (rc == 0)
        rc = cli_perform(cli);
    return rc ? rc : end_orphans(cli); /* the last output of what was abandoned */
}
