/* openai-chat: any endpoint that speaks "chat completions". */
#ifndef HF_AGENT_WIRE_CHAT_H
#define HF_AGENT_WIRE_CHAT_H

#include "agent/wire/codec.h"
#include "base/json_walk.h"

HF_MUST_USE int hf_chat_encode(struct hf_encode *encode, struct hf_err *err);

#endif
