/* anthropic-messages: endpoints that speak "messages". */
#ifndef HF_AGENT_WIRE_MESSAGES_H
#define HF_AGENT_WIRE_MESSAGES_H

#include "agent/wire/codec.h"
#include "base/json_walk.h"

#define HF_MESSAGES_MAX_TOKENS 32768 /* the cap of a request that has none */

HF_MUST_USE int hf_messages_encode(struct hf_encode *encode, struct hf_err *err);

#endif
