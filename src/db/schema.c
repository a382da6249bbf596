/* The options of a handle, as both drivers take them: checked, copied, and completed with the
 * system's memory, clock and randomness. The statements and migrations that a driver gets at open
 * are described in schema.h. */
#include "db/schema.h"

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/sized.h"

int db_options_read(const struct hf_sql_options *given,
                    struct hf_sql_options *ret_options, struct hf_err *err)
{
    struct hf_sql_options known = { .size = sizeof(known) };
    int rc = given ? hf_sized_copy(given, sizeof(known), sizeof(known), &known, err) : 0;
    if (rc)
        return rc;
    if (known.busy_ms < 0 || known.busy_ms > HF_MAX_DURATION_MAX_MS)
        return hf_fail(err, HF_EINVAL, "busy_ms", "busy_ms must be 0 to 100 years");
    if (!known.alloc)
        known.alloc = hf_alloc_system();
    if (!known.clock)
        known.clock = hf_clock_system();
    if (!known.random)
        known.random = hf_random_system();
    if (known.busy_ms == 0)
        known.busy_ms = HF_MAX_STORE_WAIT_MS;
    *ret_options = known;
    return 0;
}
