/* The codecs: what a request looks like to a family of endpoints, and what their answers
 * mean. No I/O, no clock: bytes in, bytes and events out. */
#ifndef HF_AGENT_WIRE_CODEC_H
#define HF_AGENT_WIRE_CODEC_H

#include "agent/wire/failure.h"
#include "agent/wire/reply.h"
#include "base/json.h"
#include "base/json_walk.h"

/* The options of a request: the raw JSON of each, empty where it is not given. */
struct hf_options {
    struct hf_span value[HF_OPTION_COUNT];
};

/* Reads and checks options; "" is an empty object. HF_EINVAL names the option. */
HF_MUST_USE int hf_options_read(struct hf_span json, struct hf_options *ret_options,
                                struct hf_err *err);
/* A word of `reasoning`: 0 is "none"; -1 when it is not given. */
int hf_options_effort(const struct hf_options *options);
bool hf_options_stream(const struct hf_options *options);
bool hf_options_images(const struct hf_options *options);

/* The differences between endpoints of one family. */
struct hf_dialect {
    const char *token_field; /* openai-chat: the name of the output cap */
    uint32_t omit;           /* a bit for each option that the endpoint does not have */
    bool no_stream_usage;    /* openai-chat: the endpoint refuses stream_options */
    int64_t max_tokens;      /* anthropic-messages: the cap when the request has none */
};

/* A request on its way out. */
struct hf_encode {
    const struct hf_model_call *call;
    const struct hf_dialect *dialect;
    struct hf_options options;
    const struct hf_alloc *alloc;
    struct hf_json json;
    uint32_t honoured;
    uint32_t omitted;
};

/* An answer on its way in. A decoder that finds an error object fills `fault` and returns
 * HF_EPROTOCOL. */
struct hf_decode {
    struct hf_reply reply;
    struct hf_fault fault;
};

/* A codec.
 *   encode  writes the whole request. HF_EINVAL names what it cannot express; HF_ENOMEM,
 *           HF_ETOOBIG, or what the caller's `attachment` returned
 *   event   one event of a stream; `whole` a body that is no stream. Valid JSON, except
 *           that an event may be any word. HF_EPROTOCOL with a fault, HF_EINVAL for JSON of
 *           another shape, HF_ECONFLICT for a changed identity, HF_ENOMEM, HF_ETOOBIG    */
struct hf_codec {
    const char *name;
    const char *path;
    int (*encode)(struct hf_encode *encode, struct hf_err *err);
    bool finish_ends; /* a stream that told its finish may end without a last event */
    bool (*is_last)(struct hf_span event); /* an event that is no JSON: the end */
    int (*event)(struct hf_decode *decode, struct hf_span json);
    int (*whole)(struct hf_decode *decode, struct hf_span json);
};

extern const struct hf_codec hf_codec_chat;
extern const struct hf_codec hf_codec_messages;

/* Whether an option is to be written; the receipt notes it. */
bool hf_encode_wants(struct hf_encode *encode, enum hf_model_option option);
/* key: the option's raw value, if it is wanted. */
void hf_encode_option(struct hf_encode *encode, const char *key,
                      enum hf_model_option option);
/* A JSON string "<before><base64 of the bytes>". HF_ENOMEM, HF_ETOOBIG. */
HF_MUST_USE int hf_encode_base64(struct hf_encode *encode, const char *before,
                                 struct hf_span bytes, struct hf_err *err);
/* Records that a buffer of the request failed with that code, and returns it. */
int hf_encode_fail(int code, struct hf_err *err);
/* An attachment as a codec shows it. */
struct hf_wire_attachment {
    const char *media_type;
    const char *name; /* never NULL */
    struct hf_span bytes;
    bool text; /* UTF-8 text; otherwise an image */
};

/* An attachment of a block. HF_EINVAL for one that is neither image nor text, or that cannot be
 * lent; otherwise as the caller's `attachment`. */
HF_MUST_USE int hf_encode_attachment(struct hf_encode *encode,
                                     const struct hf_block *block,
                                     struct hf_wire_attachment *ret_attachment,
                                     struct hf_err *err);
/* The members of a text part that shows a file, into the object that is open. */
HF_MUST_USE int hf_encode_attached_text(struct hf_encode *encode,
                                        const struct hf_wire_attachment *attachment,
                                        struct hf_err *err);
void hf_encode_span(struct hf_encode *encode, const char *key, struct hf_span text);
void hf_encode_raw(struct hf_encode *encode, const char *key, struct hf_span raw);

/* One tool of the request, raw; empty where a member is missing. */
struct hf_wire_tool {
    struct hf_span name;
    struct hf_span description;
    struct hf_span schema;
    struct hf_span strict;
    bool last;
};
/* The tools one by one: the walk begins at the request's array. False after the last. */
bool hf_encode_tool(struct hf_walk *tools, struct hf_wire_tool *ret_tool);
/* Steps into the array; false when there are no tools. */
bool hf_encode_tools(const struct hf_encode *encode, struct hf_walk *ret_tools);

/* Text that a model would refuse as empty. */
bool hf_blank(struct hf_span text);
/* True for exactly one JSON object. */
bool hf_wire_is_object(struct hf_span text);

/* The JSON of an event or body: as it came, or repaired where it is no UTF-8, has NULs or
 * halves of surrogate pairs. *ret_repaired is set when it was. HF_EINVAL when it is no
 * JSON; HF_ENOMEM. */
HF_MUST_USE int hf_clean_json(struct hf_arena *arena, struct hf_span text,
                              struct hf_span *ret_json, bool *ret_repaired);

#endif
