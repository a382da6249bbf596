/* One request as a line of JSON, and back. holdfast/ingress.h lists the keys. */
#ifndef HF_RUN_INGRESS_SPOOL_LINE_H
#define HF_RUN_INGRESS_SPOOL_LINE_H

#include <holdfast/work.h>

#include "base/arena.h"
#include "base/buf.h"

struct hf_spool_line {
    struct hf_caller who;        /* NULL where the line does not say */
    struct hf_work_spec request; /* not checked: hf_work_spec_check does */
    const char *source;          /* as written, also where it is no source */
    hf_ms spooled_at;            /* for people */
};

/* Appends the line with its end. The request has been checked. */
void hf_spool_encode(const struct hf_caller *who, const struct hf_work_spec *request,
                     hf_ms spooled_at, struct hf_buf *out);

/* Reads a line without its end; texts are copied into the arena. HF_EINVAL or HF_ETOOBIG
 * naming the key; source and source_id are filled where they could be read. */
HF_MUST_USE int hf_spool_decode(struct hf_span text, struct hf_arena *arena,
                                struct hf_spool_line *ret_line, struct hf_err *err);

#endif
