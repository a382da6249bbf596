/* Tool values and what a model sees of them. */
#ifndef HF_CORE_TURN_VIEW_H
#define HF_CORE_TURN_VIEW_H

#include "core/turn/machine.h"

#define HF_ATTACHMENT_KEY "$attachment"

/* HF_EINVAL for a value with an attachment object that is not well formed. The value is
 * JSON or empty; the arena is for what is read on the way. */
HF_MUST_USE int hf_value_check(struct hf_arena *arena, struct hf_span value,
                               struct hf_err *err);

#endif
