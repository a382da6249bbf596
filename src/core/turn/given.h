/* Names in a cell's reach: those that its host returns, and how they and the variables of
 * earlier cells are shown to a model.
 *
 * A host passes values ("given": a JSON object), and references ("given_refs": an object
 * of what the host needs to find the value; a cell that reads such a name asks for it
 * then). A reference that is an object with a text "about" is described to the model by
 * that text; nothing more of a reference is shown. */
#ifndef HF_CORE_TURN_GIVEN_H
#define HF_CORE_TURN_GIVEN_H

#include "base/arena.h"
#include "base/buf.h"

struct hf_given {
    struct hf_span values; /* JSON objects, or empty */
    struct hf_span refs;
};

/* Objects whose names are words, no name in both, all in at most `max` bytes. HF_EINVAL and
 * HF_ETOOBIG name the field and the name at fault. */
HF_MUST_USE int hf_given_check(const struct hf_given *given, size_t max,
                               struct hf_err *err);

/* The same, checked, in canonical form and in the arena; an object without a name becomes
 * empty. */
HF_MUST_USE int hf_given_copy(struct hf_arena *arena, const struct hf_given *given,
                              size_t max, struct hf_given *ret_given, struct hf_err *err);

/* The members of a JSON object, checked and in order, as lines for a model: name, type, the
 * beginning of the value; past a bound only names, then only how many. At most
 * HF_MAX_CODE_VARIABLES_BYTES; nothing for an object without members. HF_ENOMEM. */
HF_MUST_USE int hf_given_put_variables(struct hf_buf *out, struct hf_span object);

/* The same of what is given, with its heading; nothing when nothing is given. */
HF_MUST_USE int hf_given_put(struct hf_buf *out, const struct hf_given *given);

#endif
