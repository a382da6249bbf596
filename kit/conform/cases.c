/* The table of cases. */

#include "conform/cases.h"

#define X(name, needs) { #name, (needs), conform_##name },
static const struct hf_conform_case cases[] = { CASES(X) };
#undef X

size_t hf_conform_case_count(void)
{
    return sizeof(cases) / sizeof(cases[0]);
}

const struct hf_conform_case *hf_conform_case_at(size_t i)
{
    return i < hf_conform_case_count() ? &cases[i] : NULL;
}
