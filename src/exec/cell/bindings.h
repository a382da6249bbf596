/* Bindings as bytes, for all engines: docs/internals/cells.md. */
#ifndef HF_EXEC_CELL_BINDINGS_H
#define HF_EXEC_CELL_BINDINGS_H

#include <holdfast/exec.h>

#include "base/buf.h"

/* Whether an object with this key alone means something different: $hex, $map, $num. */
bool hf_bindings_is_tag(const char *key, size_t len);

/* A finite real, so that it reads back as a real: 5.0, -0.0, 1e300. */
void hf_bindings_put_real(struct hf_buf *out, double value);

/* The changes of a cell: {"set":{…},"unset":[…]}, without what is empty. Both are bindings. */
HF_MUST_USE int hf_bindings_delta(struct hf_span before, struct hf_span after,
                                  struct hf_buf *out);

/* exec/lua/convert.c: bindings of a JSON object, or of bindings again, which then come out the
 * same. HF_EINVAL, HF_ETOOBIG, HF_ENOMEM. */
HF_MUST_USE int hf_bindings_convert(const struct hf_alloc *alloc, struct hf_span json,
                                    bool are_bindings, struct hf_buf *out,
                                    struct hf_err *err);

/* 0 for the JSON object of bindings, as far as its form can be seen: an object whose keys
 * are words in order. */
HF_MUST_USE int hf_bindings_look(struct hf_span bindings, struct hf_err *err);

#endif
