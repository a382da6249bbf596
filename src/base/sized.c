/* Structs that a caller fills and that begin with their size, so that a caller of another version
 * is understood: checked, and copied to this version's size. */
#include "base/sized.h"

#include <string.h>

#include "base/err.h"

int hf_sized_check(size_t size, size_t first, size_t ours, struct hf_err *err)
{
    if (size < first || size > ours)
        return hf_fail(err, HF_EINVAL, "size",
                       "size is %zu, the struct has %zu bytes: set it to its sizeof",
                       size, ours);
    return 0;
}

int hf_sized_copy(const void *given, size_t first, size_t ours, void *ret_full,
                  struct hf_err *err)
{
    uint32_t size;
    if (!given)
        return hf_fail(err, HF_EINVAL, "size", "a struct is needed, and NULL was given");
    memcpy(&size, given, sizeof(size));
    int rc = hf_sized_check(size, first, ours, err);
    if (rc)
        return rc;
    uint32_t full = (uint32_t)ours;
    memset(ret_full, 0, ours);
    memcpy(ret_full, given, size);
    memcpy(ret_full, &full, sizeof(full));
    return 0;
}

int hf_sized_array(const void *items, size_t count, const char *field, struct hf_err *err)
{
    return count && !items
               ? hf_fail(err, HF_EINVAL, field,
                         "the count of %s is above 0, and the array is NULL", field)
               : 0;
}
