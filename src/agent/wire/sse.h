/* Server-sent events: bytes in, the data of each event out.
 *
 * Lines end in LF, CR LF or CR. The data lines of one event are joined by a newline; other
 * fields and comments are ignored. Data that no blank line ended is an event at the end of
 * the stream. However the bytes are cut into chunks, the events are the same. */
#ifndef HF_AGENT_WIRE_SSE_H
#define HF_AGENT_WIRE_SSE_H

#include "base/buf.h"

struct hf_sse {
    struct hf_buf line; /* the line that is not at its end */
    struct hf_buf data; /* the data of the event that is not at its end */
    size_t max;         /* bytes of one event */
    bool has_data;
    bool after_cr; /* a LF at the beginning of the next chunk ends no line */
    bool begun;    /* a byte order mark can come no more */
    void *user;
    /* One event; the bytes are valid until it returns. Anything but 0 ends the feeding,
     * which returns it. */
    int (*event)(void *user, struct hf_span data);
};

void hf_sse_init(struct hf_sse *sse, const struct hf_alloc *alloc, size_t max);
void hf_sse_fini(struct hf_sse *sse);

/* HF_ETOOBIG for an event or line over the maximum, HF_ENOMEM, or what `event` returned;
 * then the framer must not be fed again. */
HF_MUST_USE int hf_sse_feed(struct hf_sse *sse, const void *bytes, size_t len);
HF_MUST_USE int hf_sse_end(struct hf_sse *sse);

#endif
