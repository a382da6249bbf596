/* Scripts: recorded exchanges as text. The first line is {"holdfast_script":1}; each further
 * line is one step:
 *
 *     {"status":200,"headers":{"content-type":"text/event-stream"}}
 *     {"body":"data: …\n\n"}     or, for bytes that are no UTF-8, {"base64":"…"}
 *     {"wait_ms":250}
 *     {"end":"none"}             or a word of HF_HTTP_FAULTS; ends the exchange
 */
#ifndef HF_NET_SCRIPT_H
#define HF_NET_SCRIPT_H

#include <holdfast/sys/transport.h>

#include "base/arena.h"

enum hf_script_kind { HF_SCRIPT_HEAD, HF_SCRIPT_BODY, HF_SCRIPT_WAIT, HF_SCRIPT_END };

struct hf_script_step {
    enum hf_script_kind kind;
    int status;
    const struct hf_http_header *headers;
    size_t header_count;
    struct hf_span body;
    hf_ms wait_ms;
    enum hf_http_fault fault;
};

/* All steps of a script, in the arena. HF_EINVAL names the line. HF_ENOMEM. */
HF_MUST_USE int hf_script_read(struct hf_arena *arena, struct hf_span text,
                               struct hf_script_step **ret_steps, size_t *ret_count,
                               struct hf_err *err);

#endif
