/* JSON of a request: checked, and made canonical. */
#ifndef HF_STORE_API_REQUEST_H
#define HF_STORE_API_REQUEST_H

#include "base/arena.h"

/* Replace *json by its canonical form in the arena, so that the same facts are the same bytes.
 * NULL stays. HF_EINVAL or HF_ETOOBIG naming the field. */
HF_MUST_USE int hf_api_json(struct hf_arena *arena, const char **json, const char *field,
                            struct hf_err *err);

/* Labels are a flat object of texts, so that a list can look for one of them. NULL is none. */
HF_MUST_USE int hf_api_labels(const char *labels, struct hf_err *err);

#endif
