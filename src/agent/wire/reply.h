/* A model's reply while it is put together: what codecs say comes in, the events of
 * <holdfast/provider.h> go out, and at the end the response is there. Pure. */
#ifndef HF_AGENT_WIRE_REPLY_H
#define HF_AGENT_WIRE_REPLY_H

#include <holdfast/provider.h>

#include "base/arena.h"
#include "base/buf.h"

/* One part in the making. Texts are in buffers of their own, since parts grow in turn. */
struct hf_reply_part {
    enum hf_part_kind kind;
    int64_t slot; /* the codec's number for it */
    struct hf_buf text;
    struct hf_buf replay;
    const char *call_id;
    const char *tool;
    bool sealed; /* `replay` is as it will be sent back */
    bool complete;
};

struct hf_reply {
    struct hf_arena arena;
    const char *route;
    struct hf_model_sink sink;
    struct hf_reply_part *parts; /* grows by doubling, in the allocator's memory */
    size_t count;
    size_t room;
    size_t bytes; /* of all texts */
    struct hf_usage usage;
    struct hf_model_evidence evidence;
    enum hf_reason reason;
    bool output;   /* something of the answer has come */
    bool terminal; /* the stream said that it is complete */
    bool streamed; /* text was handed to the sink while it came */
};

void hf_reply_init(struct hf_reply *reply, const struct hf_alloc *alloc,
                   const char *route, const struct hf_model_sink *sink);
void hf_reply_fini(struct hf_reply *reply);

/* The part of that kind and slot, made if it is not there. It is valid until the next part
 * is made. HF_ENOMEM; HF_EOVERFLOW when there are too many. */
HF_MUST_USE int hf_reply_part(struct hf_reply *reply, enum hf_part_kind kind,
                              int64_t slot, struct hf_reply_part **ret_part);

/* More of a part: `raw` is a JSON string with its quotes. The text is told to the sink for
 * text and reasoning. HF_ENOMEM, HF_ETOOBIG. */
HF_MUST_USE int hf_reply_text(struct hf_reply *reply, struct hf_reply_part *part,
                              struct hf_span raw);

/* The part is complete and the sink is told; a second time is nothing. */
void hf_reply_complete(struct hf_reply *reply, struct hf_reply_part *part);
void hf_reply_complete_all(struct hf_reply *reply);

/* A text of the evidence (response_id, model, finish) or of a call, from a raw JSON string;
 * "" and what is no string leave *text alone. HF_ECONFLICT when another one is there,
 * HF_ENOMEM. */
HF_MUST_USE int hf_reply_note(struct hf_reply *reply, struct hf_span raw,
                              const char **text);

/* A counter of usage: 0 and what is no number leave it alone. */
void hf_reply_count(struct hf_span raw, int64_t *counter);
/* Tells the usage so far. */
void hf_reply_tell_usage(struct hf_reply *reply);

/* The content so far as a response: parts with content, in the order in which they began. It
 * borrows from the reply. HF_ENOMEM. */
HF_MUST_USE int hf_reply_response(struct hf_reply *reply,
                                  struct hf_llm_response *ret_response);

/* A raw JSON value that is a string, as a word of a table: its number, or -1. */
int hf_wire_word_of(struct hf_span raw, const char *const *words, size_t count);

#endif
