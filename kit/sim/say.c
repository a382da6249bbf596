/* Text: what is wrong, and what happens. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/inside.h"

bool sim_same(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    size_t len = strlen(a);
    return len == strlen(b) && memcmp(a, b, len) == 0;
}

void sim_copy(char *out, size_t room, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    if (len >= room)
        len = room - 1;
    if (len)
        memcpy(out, text, len);
    out[len] = '\0';
}

void sim_format(char *out, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out, room, format, args); /* cut where it is too long */
    va_end(args);
}

void sim_violate(struct hf_sim *sim, const char *format, ...)
{
    va_list args;
    if (sim->violation[0])
        return;
    va_start(args, format);
    (void)vsnprintf(sim->violation, sizeof(sim->violation), format, args);
    va_end(args);
    sim_trace(sim, "VIOLATION %s", sim->violation);
}

void sim_trace(struct hf_sim *sim, const char *format, ...)
{
    char line[800];
    va_list args;
    if (!sim->options->trace)
        return;
    int at = snprintf(line, sizeof(line), "%5u %lld  ", sim->step, (long long)sim->mono);
    va_start(args, format);
    (void)vsnprintf(line + at, sizeof(line) - (size_t)at, format, args);
    va_end(args);
    sim->options->trace(sim->options->user, line);
}

int sim_unit_of(const struct hf_sim *sim, const char *source_id)
{
    if (!source_id || source_id[0] != 'u')
        return -1;
    size_t value = 0;
    for (const char *c = source_id + 1; *c; c++) {
        if (*c < '0' || *c > '9' || value > SIM_UNITS)
            return -1;
        value = value * 10 + (size_t)(*c - '0');
    }
    return value < sim->unit_count ? (int)value : -1;
}

const char *sim_op_word(const struct sim_op *op)
{
    switch (op->kind) {
    case SIM_OP_NONE: return "nothing";
    case SIM_OP_CREATE: return "create";
    case SIM_OP_CLAIM: return "claim";
    case SIM_OP_CHANGE: return hf_verb_word(op->verb);
    case SIM_OP_RENEW_ALL: return "renew_all";
    case SIM_OP_SWEEP: return "sweep";
    case SIM_OP_PRUNE: return "prune";
    case SIM_OP_POLICY: return "policy_set";
    case SIM_OP_BUMP: return "bump";
    case SIM_OP_TAKE: return "lease_take";
    case SIM_OP_KEEP: return "lease_renew";
    case SIM_OP_RELEASE: return "lease_release";
    case SIM_OP_PASS: return "schedule_pass";
    case SIM_OP_SCHEDULE: return op->limit ? "schedule_resume" : "schedule_pause";
    case SIM_OP_LIMIT: return "limit_set";
    case SIM_OP_JOB: return "job_enqueue";
    case SIM_OP_EMIT: return "emit";
    case SIM_OP_SUBSCRIPTION: return op->limit ? "enable" : "disable";
    case SIM_OP_REGISTER: return "register";
    case SIM_OP_MONITOR: return "monitor";
    case SIM_OP_SEND: return "session_send";
    case SIM_OP_OPEN: return "session_claim";
    case SIM_OP_STEP: return "session_step";
    case SIM_OP_COMMIT: return "session_commit";
    case SIM_OP_BACK: return "session_hand_back";
    }
    return "?";
}

const char *hf_sim_fault_word(enum hf_sim_fault fault)
{
#define X(name, word) word,
    static const char *const words[] = { HF_SIM_FAULTS(X) };
#undef X
    return words[fault];
}

const char *hf_sim_workload_word(enum hf_sim_workload workload)
{
#define X(name, word) word,
    static const char *const words[] = { HF_SIM_WORKLOADS(X) };
#undef X
    return words[workload];
}

const char *hf_sim_mark_word(enum hf_sim_mark mark)
{
#define X(name, word) word,
    static const char *const words[] = { HF_SIM_MARKS(X) };
#undef X
    return words[mark];
}
