/* The table of limits read at run time. */
#include <holdfast/limits.h>

static const struct hf_limit_info limits[] = {
#define X(name, lower, value, unit, what) { #lower, (value), (unit), (what) },
    HF_LIMITS(X)
#undef X
};

const struct hf_limit_info *hf_limit_at(size_t i)
{
    return i < HF_LIMIT_COUNT ? &limits[i] : NULL;
}
