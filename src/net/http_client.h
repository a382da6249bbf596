/* The HTTP client's parts: http_client.c starts and ends exchanges, http_events.c is what
 * libcurl and the loop call. */
#ifndef HF_NET_HTTP_CLIENT_H
#define HF_NET_HTTP_CLIENT_H

#include <curl/curl.h>

#include <holdfast/http.h>

#include "base/arena.h"
#include "base/buf.h"

struct hf_http;

/* One exchange. It is in the client's list until it is released. */
struct hf_exchange {
    struct hf_http *http;
    struct hf_exchange *prev;
    struct hf_exchange *next;
    struct hf_exchange *next_told; /* in the queue of what the sink must be told */
    uint64_t id;                   /* 0: forgotten, the sink is not called any more */
    struct hf_http_sink sink;
    CURL *easy;
    struct curl_slist *lines;   /* headers of the request */
    struct hf_http_guard guard; /* may_connect NULL: none */
    bool get;
    char *body;
    size_t body_len;
    size_t body_sent;

    struct hf_arena arena; /* of the response's head */
    struct hf_http_header *headers;
    size_t header_count;
    size_t header_room;
    int status;
    struct hf_buf pending; /* of the response's body, not yet told */
    size_t received;

    struct hf_timer timer;
    hf_ms started;
    hf_ms last;  /* when something came */
    bool queued; /* for the sink */
    bool busy;   /* the sink is being called */
    bool head;   /* the response's head is complete */
    bool told;   /* and the sink knows it */
    bool over;   /* `fault` says how */
    bool linger; /* forgotten, but read on to keep the connection */
    enum hf_http_fault fault;
};

struct hf_http {
    struct hf_transport handle;
    struct hf_loop *loop;
    const struct hf_alloc *alloc;
    struct hf_http_config config;
    char *ca_file;
    CURLM *multi;
    struct hf_timer timer;
    struct hf_exchange *all;
    struct hf_exchange *first_told;
    struct hf_exchange *last_told;
    uint64_t last_id;
    bool failed; /* a watch could not be made: exchanges are given up */
};

/* Sets the callbacks of the multi handle and of one exchange. */
void hf_http_listen(struct hf_http *http);
void hf_exchange_listen(struct hf_exchange *exchange);
HF_MUST_USE int hf_exchange_arm(struct hf_exchange *exchange);

/* The exchange is over with that fault, if it was not before; its sink will be told. */
void hf_exchange_over(struct hf_exchange *exchange, enum hf_http_fault fault);
/* Calls the sinks of what is queued. Not from inside libcurl. */
void hf_http_tell(struct hf_http *http);
/* Ends an exchange and frees it; later, when its sink is being called. */
void hf_exchange_release(struct hf_exchange *exchange);

#endif
