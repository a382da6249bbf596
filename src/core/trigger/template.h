/* Templates of payloads: a JSON value in which {"$event": "a.b.0"} means that member of
 * another value, and {"$event": ""} all of it. With "default" next to it the member
 * may be missing. Any other value means itself. Pure. */
#ifndef HF_CORE_TRIGGER_TEMPLATE_H
#define HF_CORE_TRIGGER_TEMPLATE_H

#include "base/arena.h"

/* HF_EINVAL naming "template" for JSON that is none, or a marker that is none. */
HF_MUST_USE int hf_template_check(const char *text, struct hf_err *err);

/* HF_EINVAL where a marker is outside the member `only` of the template, or there is no
 * template. The template was checked. */
HF_MUST_USE int hf_template_within(const char *text, const char *only,
                                   struct hf_err *err);

/* The template filled from `values` (JSON, NULL: null), canonical, in the arena. A member that
 * is missing is HF_EINVAL naming "template" and the member. A template of NULL returns
 * the values. Both have been checked. */
HF_MUST_USE int hf_template_fill(struct hf_arena *arena, const char *text,
                                 const char *values, const char **ret_json,
                                 struct hf_err *err);

#endif
