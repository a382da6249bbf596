#include "support/rig.h"

#include "support/unit.h"

void rig_init(struct rig *rig)
{
    *rig = (struct rig){ 0 };
    hf_arena_init(&rig->arena, hf_alloc_system());
    rig->policy = hf_policy_builtin;
    rig->env = (struct hf_env){
        .now = RIG_NOW,
        .lease_now = RIG_LEASE_NOW,
        .store = RIG_STORE,
        .random = 0,
        .actor_kind = "human",
        .actor = "op",
        .correlation_id = "corr-1",
        .policy = &rig->policy,
    };
}

void rig_fini(struct rig *rig)
{
    hf_arena_fini(&rig->arena);
}

static void make_running(struct hf_row *row)
{
    row->w.owner = "ann";
    row->w.owner_incarnation = "i1";
    row->claim_group = "n1";
    row->lease_incarnation = RIG_STORE;
    row->w.holder = "{\"pid\":1}";
    row->w.lease_ttl_ms = RIG_TTL;
    row->w.lease_expires_at = RIG_LEASE_NOW + RIG_TTL;
    row->grace_ms = row->disposition == HF_DISPOSITION_EXPIRE ? RIG_GRACE : 0;
    row->lease_check_at = row->w.lease_expires_at + row->grace_ms;
    row->w.started_at = RIG_NOW - 1000;
}

static void make_waiting(struct hf_row *row)
{
    row->w.waiting_kind = row->status == HF_STATUS_WAITING_USER ? "user" : "external";
    row->w.waiting_ref = "ask-1";
    row->w.status_reason = row->w.status;
    if (row->disposition == HF_DISPOSITION_OWNER_BOUND) {
        row->w.owner = "ann";
        row->w.owner_incarnation = "i1";
        row->w.holder = "{\"pid\":1}";
    }
    if (row->disposition != HF_DISPOSITION_EXTERNALLY_OWNED)
        row->w.deadline_at = RIG_NOW + 3600000;
}

struct hf_row rig_row(enum hf_status status, enum hf_disposition disposition)
{
    bool begun = status != HF_STATUS_QUEUED &&
                 disposition != HF_DISPOSITION_EXTERNALLY_OWNED;
    struct hf_row row = {
        .seq = 1,
        .status = status,
        .source = HF_SOURCE_MANUAL,
        .disposition = disposition,
        .event_type = "earlier",
        .actor_kind = "system",
        .actor = "holdfast",
        .note = "{\"earlier\":1}",
    };
    row.w = (struct hf_work){
        .work_id = "w-1",
        .tenant = "",
        .source_system = "manual",
        .source_id = "src-1",
        .kind = "work",
        .queue = "default",
        .status = hf_status_word(status),
        .disposition = hf_disposition_word(disposition),
        .priority = 3,
        .max_attempts = 3,
        .due_at = RIG_NOW - 60000,
        .created_at = RIG_NOW - 60000,
        .updated_at = RIG_NOW - 2000,
        .attempt_count = begun ? 1 : 0,
        .lease_fence = begun ? 4 : 0,
    };
    if (disposition == HF_DISPOSITION_NONE)
        row.w.session_id = "s1";
    if (disposition == HF_DISPOSITION_OWNER_BOUND && status != HF_STATUS_QUEUED &&
        status != HF_STATUS_RETRY_SCHEDULED)
        row.w.first_started_at = RIG_NOW - 1000;
    if (status == HF_STATUS_RUNNING)
        make_running(&row);
    if (status == HF_STATUS_WAITING_USER || status == HF_STATUS_WAITING_EXTERNAL)
        make_waiting(&row);
    if (status == HF_STATUS_RETRY_SCHEDULED) {
        row.w.next_retry_at = RIG_NOW + 5000;
        row.w.failures = 1;
        row.w.error_class = "transient_network";
    }
    if (hf_status_terminal(status))
        row.w.finished_at = RIG_NOW - 2000;
    return row;
}

struct hf_change rig_change(enum hf_verb verb)
{
    return (
        struct hf_change){ .size = sizeof(struct hf_change), .verb = verb, .id = "w-1" };
}

struct hf_change rig_held(enum hf_verb verb)
{
    struct hf_change change = rig_change(verb);
    change.token = RIG_TOKEN;
    return change;
}

struct hf_work_spec rig_new(void)
{
    return (struct hf_work_spec){
        .size = sizeof(struct hf_work_spec),
        .source = HF_SOURCE_MANUAL,
        .source_id = "src-1",
        .priority = -1,
    };
}

int rig_apply(struct rig *rig, const struct hf_row *row, const struct hf_change *change)
{
    return hf_step_change(&rig->arena, row, change, &rig->env, &rig->step, &rig->err);
}

int rig_signal(struct rig *rig, const struct hf_row *row, const struct hf_change *wait,
               const char *payload)
{
    return hf_step_signal(&rig->arena, row, wait, payload, &rig->env, &rig->step,
                          &rig->err);
}

int rig_claim(struct rig *rig, const struct hf_row *row, const char *owner,
              const char *incarnation, const char *nonce)
{
    struct hf_claimant who = {
        .owner = owner,
        .incarnation = incarnation,
        .nonce = nonce,
        .store = rig->env.store,
    };
    return hf_step_claim(&rig->arena, row, &who, &rig->env, &rig->step, &rig->err);
}

int rig_sweep(struct rig *rig, const struct hf_row *row, const char *proof)
{
    return hf_step_sweep(&rig->arena, row, proof, &rig->env, &rig->step, &rig->err);
}

int rig_create(struct rig *rig, const struct hf_work_spec *request)
{
    const struct hf_caller who = { .size = sizeof(who), .tenant = "t1" };
    return hf_step_create(&rig->arena, request, "w-1", &who, &rig->env, &rig->made,
                          &rig->err);
}

int rig_setup(void **state)
{
    static struct rig rig;
    rig_init(&rig);
    *state = &rig;
    return 0;
}

int rig_teardown(void **state)
{
    rig_fini(*state);
    return 0;
}

struct hf_row rig_written(struct rig *rig, const struct hf_row *row,
                          const struct hf_change *change)
{
    int rc = rig_apply(rig, row, change);
    if (rc != 0 || rig->step.kind != HF_STEP_WRITE)
        fail_msg("%s: %d %s", hf_verb_word(change->verb), rc, rig->err.message);
    return rig->step.row;
}

void rig_refused(struct rig *rig, const struct hf_row *row,
                 const struct hf_change *change, int code, const char *field)
{
    struct hf_step untouched = { .kind = HF_STEP_NOTHING, .extra_event = "mark" };
    rig->step = untouched;
    rig->err = (struct hf_err){ 0 };
    assert_int_equal(rig_apply(rig, row, change), code);
    assert_string_equal(rig->err.field, field);
    assert_int_equal(rig->step.kind, HF_STEP_NOTHING); /* refused_writes_nothing */
    assert_string_equal(rig->step.extra_event, "mark");
}

void rig_no_lease(const struct hf_row *row)
{
    assert_null(row->w.owner);
    assert_null(row->w.owner_incarnation);
    assert_null(row->w.holder);
    assert_null(row->claim_group);
    assert_int_equal(row->w.lease_ttl_ms, 0);
    assert_int_equal(row->w.lease_expires_at, 0);
    assert_int_equal(row->lease_check_at, 0);
    assert_int_equal(row->lease_incarnation, 0);
    assert_int_equal(row->grace_ms, 0);
    assert_int_equal(row->w.lease_fence, 4);
}
