/* For tests of codecs: requests made by a real turn machine, and answers as a log of short
 * lines, so that a test can say by hand what must be heard:
 *
 *   text Hel | reasoning hm | part tool_call c1 add {"a":1} | usage 10 2 0 0 0
 *   evidence 200 req-1 resp-1 model-1 stop | end stop 1 | end error quota rate_limited ts
 *
 * After an error come "t" when it is transient and "s" when it is charge-safe. */
#ifndef TESTS_AGENT_KIT_H
#define TESTS_AGENT_KIT_H

#include <holdfast/provider.h>

#include "agent/wire/wire.h"
#include "support/fail_alloc.h"
#include "support/unit.h"

struct heard {
    char text[65536];
    size_t used;
    int ends;
};

/* Appends an event to a log; the user is a struct heard. */
void heard_event(void *user, const struct hf_model_event *event);
void heard_expect(const struct heard *heard, const char *lines);

/* A turn that has got to its model call, and its rendered request. */
struct asked {
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_turn *turn;
    struct hf_effect effect;
    struct hf_render *render;
    struct hf_model_call call;
};

/* The history is `count` messages; tools and options are JSON, "" for none. */
void asked_init(struct asked *asked, const struct hf_message *messages, size_t count,
                const char *tools, const char *options);
/* One user message "hi". */
void asked_simply(struct asked *asked, const char *tools, const char *options);
/* A user message "look" with an attachment "note" of four bytes, or of a line if it is text. */
void asked_image(struct asked *asked, const char *media_type, const char *options);
void asked_fini(struct asked *asked);

/* The request as the codec writes it must be these bytes; *ret_encode has the receipt. */
void expect_request(const struct asked *asked, const struct hf_codec *codec,
                    const struct hf_dialect *dialect, const char *json,
                    struct hf_encode *ret_encode);

/* A response given whole, and cut into pieces of `piece` bytes (0: whole). */
void play(const struct hf_codec *codec, const struct hf_alloc *alloc, int status,
          const char *type, const char *body, size_t piece, struct heard *heard);
/* The same heard, whole and with every two-way split and byte by byte. */
void play_every_way(const struct hf_codec *codec, const char *body, const char *lines);
/* The stream ends early at every byte before `needed`, and is an answer from there on. */
void play_cut_anywhere(const struct hf_codec *codec, const char *body, size_t needed);

struct hf_span span(const char *text);

#endif
