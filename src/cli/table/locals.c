/* The operations that this program runs itself, since they are about this machine: processes,
 * files, signals, the terminal. Some do so around an operation of the table. */
#include "cli/cli.h"

#include "base/text.h"

static const struct cli_local locals[] = {
    { "work.tail", cmd_work_tail, check_tail },
    { "work.output", cmd_work_output, check_output },
    { "work.reconcile", cmd_work_reconcile, check_reconcile },
    { "work.claim", cli_perform, check_claim },
    { "work.create", cmd_work_create, check_create },
    { "work.sweep", cmd_work_sweep, NULL },
    { "schedule.add", cli_perform, check_schedule_add },
    { "schedule.update", cli_perform, check_schedule_update },
    { "trigger.subscribe", cli_perform, check_subscribe },
    { "trigger.update", cli_perform, check_subscribe },
    { "process.start", cmd_process_start, check_process_start },
    { "provider.list", cmd_provider_list, NULL },
    { "provider.check", cmd_provider_check, NULL },
    { "config.check", cmd_config_check, NULL },
    { "config.init", cmd_config_init, NULL },
    { "config.keys", cmd_config_keys, NULL },
    { "store.bump", cmd_store_bump, NULL },
    { "store.copy", cmd_store_copy, NULL },
    { "turn.inspect", cmd_turn_inspect, NULL },
    { "cell.run", cmd_cell_run, NULL },
    { "ask", cmd_ask, check_ask },
    { "run", cmd_run, check_run },
    { "monitor", cmd_monitor, NULL },
    { "chat", cmd_chat, NULL },
    { "worker", cmd_worker, check_worker_config },
    { "top", cmd_top, NULL },
    { "attention", cmd_attention, check_attention },
    { "migrate", cmd_migrate, NULL },
    { "demo", cmd_demo, check_demo },
    { "replay", cmd_replay, NULL },
    { "call", cmd_call, check_call },
    { "__man", cmd_man, NULL },
    { "__completion", cmd_completion, NULL },
    { "__complete", cmd_complete, NULL },
};

const struct cli_local *cli_local_of(const struct op *op)
{
    for (size_t i = 0; i < sizeof(locals) / sizeof(locals[0]); i++)
        if (hf_same(locals[i].name, op->name))
            return &locals[i];
    return NULL;
}
