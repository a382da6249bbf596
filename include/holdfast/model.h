/* Endpoints and models: a provider for one HTTP endpoint, and the entry of one model.
 *
 * examples/model_call.c is a whole host.
 */
#ifndef HOLDFAST_MODEL_H
#define HOLDFAST_MODEL_H

#include <holdfast/http.h>
#include <holdfast/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An endpoint. Texts are copied; the key is lent until the provider is freed.
 *   name             for people, and part of the default route
 *   kind             "openai-chat" or "anthropic-messages"
 *   base_url         what comes before /chat/completions or /v1/messages
 *   key              NULL: none is sent
 *   token_field      openai-chat: the name of the output cap; NULL: "max_tokens"
 *   omit             bits (1 << option) of the options that the endpoint does not have
 *   no_stream_usage  openai-chat: the endpoint refuses stream_options
 *   max_tokens       anthropic-messages: the cap of requests without one; 0: 32,768     */
struct hf_endpoint {
    size_t size;
    const char *name;
    const char *kind;
    const char *base_url;
    const struct hf_secret *key;
    const char *token_field;
    uint32_t omit;
    bool no_stream_usage;
    int64_t max_tokens;
};

/* The transport belongs to the provider from now on, also when this fails. The loop is lent.
 * HF_EINVAL names the field, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_endpoint_new(struct hf_loop *loop,
                                       const struct hf_endpoint *endpoint,
                                       struct hf_transport *transport,
                                       struct hf_provider **ret_provider,
                                       struct hf_err *err);

/* One model of a provider, checked when it is made.
 *   provider        lent until the model is freed
 *   id              as the endpoint names it
 *   context_tokens  what fits into a request and its answer; above 0
 *   output_tokens   the most of an answer; above 0 and below the window
 *   route           names provider, endpoint and model; NULL: "<provider>/<id>"
 *   options         as HF_MODEL_OPTIONS says; max_output_tokens, if it is there, is at most
 *                   output_tokens, and otherwise becomes output_tokens                  */
struct hf_model_config {
    size_t size;
    struct hf_provider *provider;
    const char *id;
    int64_t context_tokens;
    int64_t output_tokens;
    const char *route;
    struct hf_span options;
};

struct hf_model;

/* HF_EINVAL names the field, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_model_new(const struct hf_model_config *config,
                                    struct hf_model **ret_model, struct hf_err *err);
HF_API void hf_model_free(struct hf_model *model); /* NULL is fine */

/* The provider that calls go to. */
HF_API struct hf_provider *hf_model_provider(const struct hf_model *model);

/* Sets model, route, options and max_context_tokens of a turn's configuration. They borrow
 * from the model until hf_setup_new has copied them. */
HF_API void hf_model_apply(const struct hf_model *model, struct hf_turn_config *config);

#ifdef __cplusplus
}
#endif
#endif
