/* The table of bounds, read at run time. */
#include <holdfast/bounds.h>

static const struct hf_bound_info bounds[] = {
#define X(name, lower, value, unit, what) { #lower, (value), (unit), (what) },
    HF_BOUNDS(X)
#undef X
};

const struct hf_bound_info *hf_bound_at(size_t i)
{
    return i < HF_BOUND_COUNT ? &bounds[i] : NULL;
}
