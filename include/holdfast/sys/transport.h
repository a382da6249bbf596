/* Transports: how the bytes of one HTTP exchange reach a codec and come back.
 *
 * A transport is the seam below the codecs of providers. The library has three: HTTP
 * (hf_http_new), a script that plays recorded exchanges (hf_script_new), and a recorder
 * around another transport (hf_recorder_new). A transport makes one attempt and never
 * repeats it.
 *
 * Threads: all calls and all callbacks happen on the thread of the loop.
 */
#ifndef HOLDFAST_SYS_TRANSPORT_H
#define HOLDFAST_SYS_TRANSPORT_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_loop;
struct hf_secret;

/* Why an exchange ended without a whole answer, with the word that scripts use. */
#define HF_HTTP_FAULTS(X)                                                                \
    X(NONE, none)                                                                        \
    X(CONNECT, connect)     /* no connection: name, route, refusal, proxy */             \
    X(TLS, tls)             /* no trusted connection */                                  \
    X(CUT, cut)             /* the connection was lost during the exchange */            \
    X(START, start_timeout) /* no head of a response in time */                          \
    X(GAP, gap_timeout)     /* no byte for too long */                                   \
    X(WHOLE, whole_timeout) /* the exchange took too long */                             \
    X(LARGE, too_large)     /* the response is over its limit */                         \
    X(NOMEM, out_of_memory)

#define X(name, word) HF_HTTP_##name,
enum hf_http_fault { HF_HTTP_FAULTS(X) HF_HTTP_FAULT_COUNT };
#undef X
/* Its word; "?" for a value that is none. */
HF_API const char *hf_http_fault_name(enum hf_http_fault fault);

/* A header line. The value that is sent is `value`, then the bytes of `secret` if there is
 * one. A transport never passes on a header that carries a secret in another way. */
struct hf_http_header {
    const char *name;
    const char *value;
    const struct hf_secret *secret;
};

struct sockaddr;

/* Who decides which addresses a request may reach: `may_connect` is asked for the very address
 * that a connection is about to be opened to. */
struct hf_http_guard {
    void *user;
    bool (*may_connect)(void *user, const struct sockaddr *address);
};

/* A POST, or a GET without a body. Everything is borrowed until start returns, except the
 * secrets and what the guard points to, which are borrowed until the exchange has ended.
 *   guard  NULL: every address. With one, no proxy and no kept connection is used. Only the
 *          transport of hf_http_new has connections to guard */
struct hf_http_request {
    size_t size;
    const char *url;
    const struct hf_http_header *headers;
    size_t header_count;
    struct hf_span body;
    bool get;
    const struct hf_http_guard *guard;
};

/* The events that a caller of a transport receives, in this order: head at most once, body any
 * number of times, end exactly once, unless the exchange is cancelled. Arguments are borrowed
 * until the callback returns. Header names are lower case. Each callback may call cancel
 * and start of any transport. */
struct hf_http_sink {
    void *user;
    void (*head)(void *user, int status, const struct hf_http_header *headers,
                 size_t count);
    void (*body)(void *user, const void *bytes, size_t len);
    void (*end)(void *user, enum hf_http_fault fault);
};

struct hf_transport;

/* The functions of a transport.
 *   start   begins an exchange; its number is never 0 and never used again. The sink is
 *           not called before start returns. HF_EINVAL with the field at fault,
 *           HF_ENOTFOUND when a secret is missing, HF_ENOMEM
 *   cancel  ends the exchange now; its sink is not called afterwards. HF_ENOTFOUND when it
 *           has ended or never was: nothing happens
 *   finish  as cancel, but the caller has the whole answer: the transport may read on to
 *           keep the connection
 *   free    cancels everything and releases the transport; not from inside a callback   */
struct hf_transport_methods {
    int (*start)(struct hf_transport *transport, const struct hf_http_request *request,
                 const struct hf_http_sink *sink, uint64_t *ret_exchange,
                 struct hf_err *err);
    int (*cancel)(struct hf_transport *transport, uint64_t exchange);
    int (*finish)(struct hf_transport *transport, uint64_t exchange);
    void (*free)(struct hf_transport *transport);
};

/* The first member of every transport. */
struct hf_transport {
    const struct hf_transport_methods *methods;
};

/* Frees any transport; NULL is fine. */
HF_API void hf_transport_free(struct hf_transport *transport);

#ifdef __cplusplus
}
#endif
#endif
