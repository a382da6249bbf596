/* The table: all groups of rows, and the lists of errors that rows share. */
#include "op/rows.h"

const struct hf_input op_no_inputs[] = { { .name = NULL } };

/* What any store can answer; beyond that HF_EINVAL, HF_ETOOBIG, HF_ENOMEM, HF_EINTERNAL. */
#define STORE                                                                            \
    HF_EBUSY, HF_EUNREACHABLE, HF_ECORRUPT, HF_ENOTSTORE, HF_ESCHEMA, HF_ESCHEMAOLD,     \
        HF_EFULL, HF_EREADONLY, HF_ESTOREIO, HF_ECLOCK, HF_EOVERFLOW
#define FIND HF_ENOTFOUND, HF_EAMBIGUOUS

const int op_read_errors[] = { STORE, 0 };
const int op_get_errors[] = { FIND, STORE, 0 };
const int op_write_errors[] = { HF_EUNCERTAIN, STORE, 0 };
const int op_create_errors[] = { HF_ECONFLICT, HF_EUNCERTAIN, STORE, 0 };
const int op_change_errors[] = { FIND, HF_ECONFLICT, HF_EUNCERTAIN, STORE, 0 };
const int op_claim_errors[] = { FIND,          HF_ETRANSITION, HF_EPOLICY, HF_EHELD,
                                HF_EUNCERTAIN, STORE,          0 };
const int op_holder_errors[] = { FIND,          HF_ETRANSITION, HF_EPOLICY, HF_ELEASELOST,
                                 HF_EUNCERTAIN, STORE,          0 };
const int op_settle_errors[] = { FIND,         HF_ETRANSITION, HF_EPOLICY, HF_ELEASELOST,
                                 HF_ECONFLICT, HF_EUNCERTAIN,  STORE,      0 };
const int op_operator_errors[] = {
    FIND, HF_ETRANSITION, HF_EPOLICY, HF_ECONFLICT, HF_EUNCERTAIN, STORE, 0
};
const int op_session_errors[] = { HF_ENOTFOUND,  HF_ECONFLICT, HF_ESESSIONDELETED,
                                  HF_EUNCERTAIN, STORE,        0 };

const int op_effect_errors[] = { HF_ENOTFOUND,  HF_EHELD, HF_ECONFLICT,
                                 HF_EUNCERTAIN, STORE,    0 };
const int op_answer_errors[] = {
    FIND, HF_EWAITKEY, HF_EANSWERER, HF_EUNCERTAIN, STORE, 0
};

const struct op_group op_groups[] = {
    { "work", "create, claim, settle and show units of work", op_work_rows },
    { "job", "units of work that are run by the code of their kind", op_job_rows },
    { "queue", "open units per queue", op_queue_rows },
    { "holder", "owners that hold work", op_holder_rows },
    { "limit", "limits on units that run or start at once", op_limit_rows },
    { "policy", "timings, retries and rules for kinds and sources of work",
      op_policy_rows },
    { "schedule", "work that is created at set times", op_schedule_rows },
    { "process", "background processes", op_process_rows },
    { "store", "operations on a store as a whole", op_store_rows },
    { "trigger", "work that is started by outside events", op_trigger_rows },
    { "session", "conversations with one writer at a time", op_session_rows },
    { "effect", "effects of processes and operations", op_effect_rows },
    { "wait", "waits of turns, and their answers", op_wait_rows },
    { "turn", "inspection of saved turns", op_turn_rows },
    { "cell", "code cells, run from the shell", op_cell_rows },
    { "provider", "providers of models", op_provider_rows },
    { "config", "the configuration file", op_config_rows },
    { "", "a durable runtime for long-running agents", op_top_rows },
    { NULL, NULL, NULL },
};
