/* Rows and a moment for tests of core. The two clocks are far apart, so that code which
 * mixes them up cannot pass. */
#ifndef TESTS_SUPPORT_RIG_H
#define TESTS_SUPPORT_RIG_H

#include "core/ledger/policy.h"
#include "core/ledger/step.h"

#define RIG_NOW ((hf_ms)1700000000000)   /* wall */
#define RIG_LEASE_NOW ((hf_ms)900000000) /* lease clock */
#define RIG_STORE 7
#define RIG_TTL 45000
#define RIG_GRACE 30000
#define RIG_TOKEN "hf1.7.4.n1" /* of every running row */

struct rig {
    struct hf_arena arena;
    struct hf_policy policy;
    struct hf_env env;
    struct hf_err err;
    struct hf_step step; /* of the last call */
    struct hf_row made;  /* by the last create */
};

void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);

/* A row as the ledger would have it: running under ann/i1, nonce n1, fence 4; waiting for
 * "ask-1"; retry in 5 s; and so on. HF_DISPOSITION_NONE makes a row of session "s1". */
struct hf_row rig_row(enum hf_status status, enum hf_disposition disposition);

/* A change with its size set, the verb and the id of every row here. */
struct hf_change rig_change(enum hf_verb verb);
/* The same with the token of a running row. */
struct hf_change rig_held(enum hf_verb verb);

struct hf_work_spec rig_new(void);

int rig_apply(struct rig *rig, const struct hf_row *row, const struct hf_change *change);
int rig_signal(struct rig *rig, const struct hf_row *row, const struct hf_change *wait,
               const char *payload);
int rig_claim(struct rig *rig, const struct hf_row *row, const char *owner,
              const char *incarnation, const char *nonce);
int rig_sweep(struct rig *rig, const struct hf_row *row, const char *proof);
int rig_create(struct rig *rig, const struct hf_work_spec *request);

/* Fixture: *state is a struct rig. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* The row that the change writes as a transition; another one fails the test. */
struct hf_row rig_written(struct rig *rig, const struct hf_row *row,
                          const struct hf_change *change);

/* The change is refused with this code and field, and leaves the answer untouched. */
void rig_refused(struct rig *rig, const struct hf_row *row,
                 const struct hf_change *change, int code, const char *field);

/* No lease column is left but the fence, which rows here have at 4. */
void rig_no_lease(const struct hf_row *row);

#endif
