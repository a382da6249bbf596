/* Retry policy and its arithmetic. */
#ifndef HF_CORE_LEDGER_RETRY_H
#define HF_CORE_LEDGER_RETRY_H

#include <holdfast/types.h>

#include "base/buf.h"

enum hf_jitter { HF_JITTER_FULL, HF_JITTER_NONE };

/* JSON form, all optional: {"max_attempts":3,"initial_backoff_ms":5000,
 * "backoff_multiplier":2,"max_backoff_ms":300000,"jitter":"full"|"none",
 * "retry_on":["heartbeat_timeout",…],"never_on":[…]}; also the seconds forms
 * initial_backoff_sec and max_backoff_sec. Unknown keys are errors. Error classes that
 * never retry: validation, policy_denied, misconfigured; all others do, unknown ones too,
 * bounded by max_attempts. `retry_on` / `never_on` override by class or timeout reason. */
struct hf_retry {
    int64_t max_attempts; /* executions; 0: not given */
    hf_ms initial_ms;
    double multiplier;
    hf_ms max_ms;
    enum hf_jitter jitter;
    const char *json; /* the text it was read from, NULL for the default */
};

extern const struct hf_retry hf_retry_default; /* 3, 5 s, 2, 5 min, full */
extern const char hf_retry_default_text[];     /* as hf_retry_write writes it */

/* Reads a retry policy from JSON. A field that is left out has its default, and so has the whole
 * policy where `json` is NULL. */
int hf_retry_read(const char *json, struct hf_retry *ret_retry, struct hf_err *err);

/* Canonical JSON with every field, as it is fixed in the row. */
int hf_retry_write(struct hf_buf *out, const struct hf_retry *retry);

/* May a failure of this class be retried at all? `timeout` asks for a timeout reason, which
 * retries only when retry_on lists it. */
bool hf_retry_allows(const struct hf_retry *retry, const char *error_class, bool timeout);

/* Delay before execution number failures + 1: min(max, initial * multiplier^(failures-1)),
 * then jitter: full = uniform in [0, that], from 64 random bits. Never above max, never
 * negative, no overflow for any input. failures >= 1. */
hf_ms hf_retry_delay(const struct hf_retry *retry, int64_t failures, uint64_t random);

#endif
