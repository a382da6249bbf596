/* Structs that a caller fills and that begin with their size (holdfast/types.h). */
#ifndef HF_BASE_SIZED_H
#define HF_BASE_SIZED_H

#include <holdfast/types.h>

/* The one rule: `size` is that of the first version at least and of ours at most; any
 * other value is HF_EINVAL naming "size". `first` is sizeof today, and offsetof of the
 * first field that a later version adds. */
int hf_sized_check(size_t size, size_t first, size_t ours, struct hf_err *err);

/* The same, and a copy of ours in which the fields that the caller does not know are zero.
 * `given` begins with a uint32_t; what it points to stays borrowed. */
int hf_sized_copy(const void *given, size_t first, size_t ours, void *ret_full,
                  struct hf_err *err);

/* HF_EINVAL naming the field where a count is above 0 and its array is NULL. */
int hf_sized_array(const void *items, size_t count, const char *field,
                   struct hf_err *err);

#endif
