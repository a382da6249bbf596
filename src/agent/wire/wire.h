/* One attempt without I/O: what a transport heard comes in, events of the provider seam go
 * out. It decides between stream and body, and between response and error. Pure. */
#ifndef HF_AGENT_WIRE_WIRE_H
#define HF_AGENT_WIRE_WIRE_H

#include "agent/wire/codec.h"
#include "agent/wire/sse.h"

struct hf_wire {
    const struct hf_codec *codec;
    struct hf_decode decode;
    struct hf_sse sse;
    struct hf_buf body; /* of a response that is no stream */
    struct hf_arena scratch;
    size_t received;
    bool streams;
    bool head;
    bool ended; /* no more bytes will come */
    bool failed;
    struct hf_llm_error error; /* of a failed one; its texts are static */
};

/* The route and the sink's user are lent until hf_wire_fini. The receipt is of the request. */
void hf_wire_init(struct hf_wire *wire, const struct hf_alloc *alloc,
                  const struct hf_codec *codec, const char *route,
                  const struct hf_model_sink *sink);
void hf_wire_fini(struct hf_wire *wire);
void hf_wire_receipt(struct hf_wire *wire, const struct hf_encode *encode);

/* An event of the transport. `wall_ms` is now, for a Retry-After that is a date. Nothing is
 * read once hf_wire_is_over. */
void hf_wire_head(struct hf_wire *wire, int status, const struct hf_http_header *headers,
                  size_t count, hf_ms wall_ms);
void hf_wire_body(struct hf_wire *wire, const void *bytes, size_t len);

/* The answer is complete, or cannot become so: the transport is needed no more. */
bool hf_wire_is_over(const struct hf_wire *wire);
/* It came to a good end. */
bool hf_wire_is_whole(const struct hf_wire *wire);

/* Tells EVIDENCE and END, once: the exchange is over, with the transport's fault if it had
 * one. The pointers of END live until hf_wire_fini. */
void hf_wire_end(struct hf_wire *wire, enum hf_http_fault fault);

#endif
