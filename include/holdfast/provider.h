/* Providers: they answer model calls, and report events while a call runs.
 *
 * A provider makes one attempt per call. Retries belong to the turn machine: it yields an
 * LLM_CALL, the host starts a call, and the end of the call is the response or the error
 * that hf_turn_llm_done and hf_turn_llm_failed take. A host that wants windows, lanes or
 * breakers wraps a provider in one of its own; the wrapper sees every attempt.
 *
 * Threads: all calls and all callbacks happen on the thread of the provider's loop.
 */
#ifndef HOLDFAST_PROVIDER_H
#define HOLDFAST_PROVIDER_H

#include <holdfast/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The features that the options of a request can ask a model for (struct hf_request, a JSON
 * object). An option that the endpoint does not have is left out of the request.
 *   max_output_tokens  integer above 0
 *   temperature        number, 0 or above
 *   seed               integer
 *   stop               array of 1 to 16 strings
 *   reasoning          "none", "minimal", "low", "medium" or "high"
 *   output             {"type": "json_object"}, or {"type": "json_schema", "name": …,
 *                      "schema": {…}, "strict": true or false}
 *   tool_choice        "required", or {"name": …}: that tool
 *   parallel_tools     true or false
 *   stream             true (the default) or false
 *   images             true (the default) or false: the model takes none, and reads in their
 *                      place that there is one                                          */
#define HF_MODEL_OPTIONS(X)                                                              \
    X(MAX_OUTPUT_TOKENS, max_output_tokens)                                              \
    X(TEMPERATURE, temperature)                                                          \
    X(SEED, seed)                                                                        \
    X(STOP, stop)                                                                        \
    X(REASONING, reasoning)                                                              \
    X(OUTPUT, output)                                                                    \
    X(TOOL_CHOICE, tool_choice)                                                          \
    X(PARALLEL_TOOLS, parallel_tools)                                                    \
    X(STREAM, stream)                                                                    \
    X(IMAGES, images)

#define X(name, word) HF_OPTION_##name,
enum hf_model_option { HF_MODEL_OPTIONS(X) HF_OPTION_COUNT };
#undef X
/* Its word; "?" for a value that is none. */
HF_API const char *hf_model_option_name(enum hf_model_option option);

/* Facts of a server about a reply, as far as they are known. */
struct hf_model_evidence {
    int status;              /* of HTTP; 0: none */
    const char *request_id;  /* of the server's log */
    const char *response_id; /* NULL: not known, as below */
    const char *model;       /* that answered */
    const char *finish;      /* why it ended, in the server's words */
    uint32_t honoured; /* receipt: a bit (1 << option) for each option in the request */
    uint32_t omitted;  /* and for each that this endpoint does not have */
    bool repaired;     /* bytes that are no UTF-8 were replaced */
    bool streamed;     /* the response came as a stream of events */
};

#define HF_MODEL_EVENTS(X)                                                               \
    X(RESET, reset)         /* forget the streamed text: another attempt begins */       \
    X(TEXT, text)           /* more text */                                              \
    X(REASONING, reasoning) /* more reasoning */                                         \
    X(PART, part)           /* a part is complete */                                     \
    X(USAGE, usage)         /* tokens so far */                                          \
    X(EVIDENCE, evidence)   /* once, before the end */                                   \
    X(END, end)             /* once, last: response or error */

#define X(name, word) HF_MODEL_##name,
enum hf_model_event_kind { HF_MODEL_EVENTS(X) };
#undef X
/* Its word; "?" for a value that is none. */
HF_API const char *hf_model_event_name(enum hf_model_event_kind kind);

/* One event of a call. Its pointers live until the callback returns.
 * Texts are whole UTF-8 characters and need not end in a NUL. */
struct hf_model_event {
    enum hf_model_event_kind kind;
    struct hf_span text;                      /* TEXT, REASONING */
    const struct hf_part *part;               /* PART */
    const struct hf_usage *usage;             /* USAGE */
    const struct hf_model_evidence *evidence; /* EVIDENCE */
    const struct hf_llm_response *response;   /* END of a call that was answered */
    const struct hf_llm_error *error;         /* END of one that was not */
};

/* Who listens to one call. The callback may start and cancel calls, and close the provider. */
struct hf_model_sink {
    void *user;
    void (*event)(void *user, const struct hf_model_event *event);
};

/* One call to make. All of it is borrowed until start returns.
 *   request     of an LLM_CALL effect
 *   render      hf_render_new of that request
 *   attachment  lends the bytes of an attachment until start returns; any failure ends
 *               start with its code. NULL: a request with attachments is refused        */
struct hf_model_call {
    size_t size;
    const struct hf_request *request;
    const struct hf_render *render;
    void *user;
    int (*attachment)(void *user, const struct hf_attachment *attachment,
                      struct hf_span *ret_bytes, struct hf_err *err);
};

/* Who hears that a provider is closed. */
struct hf_closed {
    void *user;
    void (*closed)(void *user);
};

struct hf_provider;

/* The functions of a provider.
 *   name    for people; lives as long as the provider
 *   start   begins a call; its number is never 0 and never used again. The sink is not
 *           called before start returns. HF_EINVAL names the member that the codec cannot express,
 *           HF_ENOTFOUND a secret that is missing, HF_EFINISHED a closed provider,
 *           HF_ENOMEM
 *   cancel  ends the call now; its sink is not called afterwards. HF_ENOTFOUND when the
 *           call has ended or never was: nothing happens
 *   close   cancels every call, refuses new ones and releases connections; it may talk to
 *           the server. `closed` is called when that is over, never before close
 *           returns; NULL: none. May be repeated, with another `closed`.
 *           HF_ENOMEM
 *   free    as close, without talking, then releases the provider. Nothing is called
 *           afterwards. Not from inside a callback                                      */
struct hf_provider_methods {
    const char *(*name)(const struct hf_provider *provider);
    int (*start)(struct hf_provider *provider, const struct hf_model_call *call,
                 const struct hf_model_sink *sink, uint64_t *ret_call,
                 struct hf_err *err);
    int (*cancel)(struct hf_provider *provider, uint64_t call);
    int (*close)(struct hf_provider *provider, const struct hf_closed *closed);
    void (*free)(struct hf_provider *provider);
};

/* The first member of every provider. */
struct hf_provider {
    const struct hf_provider_methods *methods;
};

/* The functions above, for callers. hf_provider_free(NULL) is nothing. */
HF_API const char *hf_provider_name(const struct hf_provider *provider);
/* The errors of the provider's own `start`. */
HF_API HF_MUST_USE int hf_provider_start(struct hf_provider *provider,
                                         const struct hf_model_call *call,
                                         const struct hf_model_sink *sink,
                                         uint64_t *ret_call, struct hf_err *err);
HF_API int hf_provider_cancel(struct hf_provider *provider, uint64_t call);
/* The errors of the provider's own `close`. */
HF_API HF_MUST_USE int hf_provider_close(struct hf_provider *provider,
                                         const struct hf_closed *closed);
HF_API void hf_provider_free(struct hf_provider *provider);

#ifdef __cplusplus
}
#endif
#endif
