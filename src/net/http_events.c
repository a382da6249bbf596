/* The HTTP client: what libcurl and the loop call.
 *
 * libcurl's callbacks only note what came, and queue the exchange (`queued`); its sink is called
 * afterwards (hf_http_tell), so that it may do anything. An exchange is `over` when it has ended,
 * with a fault or without; `told` when the sink has its head; and its id is 0 when the sink will
 * not be called any more. A caller that forgets an exchange may let it linger: the rest of a small
 * body is read for LINGER_MS and dropped, so that the connection can be used again. */
#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"
#include "net/http_client.h"

#define LINGER_MS 1000
#define HEADERS_MAX 256

static hf_ms now_of(const struct hf_http *http)
{
    const struct hf_clock *clock = hf_loop_clock(http->loop);
    return clock->mono_ms(clock->user);
}

static void enqueue(struct hf_exchange *exchange)
{
    struct hf_http *http = exchange->http;
    if (exchange->queued)
        return;
    exchange->queued = true;
    exchange->next_told = NULL;
    if (http->last_told)
        http->last_told->next_told = exchange;
    else
        http->first_told = exchange;
    http->last_told = exchange;
}

void hf_exchange_over(struct hf_exchange *exchange, enum hf_http_fault fault)
{
    if (exchange->over)
        return;
    exchange->over = true;
    exchange->fault = fault;
    enqueue(exchange);
}

/* Each sink is called in the order head, body, end; any of them may end the exchange. */
static void tell_sink(struct hf_exchange *exchange)
{
    struct hf_http_sink *sink = &exchange->sink;
    struct hf_buf body = exchange->pending;
    hf_buf_init(&exchange->pending, body.alloc, body.max);
    exchange->busy = true;
    if (exchange->id && exchange->head && !exchange->told) {
        exchange->told = true;
        if (hf_exchange_arm(exchange)) /* another limit counts from now on */
            hf_exchange_over(exchange, HF_HTTP_NOMEM);
        sink->head(sink->user, exchange->status, exchange->headers,
                   exchange->header_count);
        hf_arena_fini(&exchange->arena);
    }
    if (exchange->id && body.len > 0)
        sink->body(sink->user, body.at, body.len);
    if (exchange->id && exchange->over) {
        exchange->id = 0;
        sink->end(sink->user, exchange->fault);
    }
    exchange->busy = false;
    hf_buf_fini(&body);
}

void hf_http_tell(struct hf_http *http)
{
    struct hf_exchange *exchange = NULL;
    while ((exchange = http->first_told)) {
        http->first_told = exchange->next_told;
        if (!http->first_told)
            http->last_told = NULL;
        exchange->queued = false;
        tell_sink(exchange);
        if (exchange->id == 0 && !(exchange->linger && !exchange->over))
            hf_exchange_release(exchange);
    }
}

/* libcurl's codes that are no lost connection. */
static const struct {
    CURLcode code;
    enum hf_http_fault fault;
} faults[] = {
    { CURLE_OK, HF_HTTP_NONE },
    { CURLE_COULDNT_RESOLVE_PROXY, HF_HTTP_CONNECT },
    { CURLE_COULDNT_RESOLVE_HOST, HF_HTTP_CONNECT },
    { CURLE_COULDNT_CONNECT, HF_HTTP_CONNECT },
    { CURLE_SSL_CONNECT_ERROR, HF_HTTP_CONNECT },
    { CURLE_PROXY, HF_HTTP_CONNECT },
    { CURLE_PEER_FAILED_VERIFICATION, HF_HTTP_TLS },
    { CURLE_SSL_CACERT_BADFILE, HF_HTTP_TLS },
    { CURLE_SSL_ISSUER_ERROR, HF_HTTP_TLS },
    { CURLE_OPERATION_TIMEDOUT, HF_HTTP_START },
    { CURLE_OUT_OF_MEMORY, HF_HTTP_NOMEM },
};

static enum hf_http_fault fault_of(CURLcode code)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (faults[i].code == code)
            return faults[i].fault;
    return HF_HTTP_CUT;
}

/* Notes the exchanges that libcurl has ended, then calls the sinks. */
static void collect(struct hf_http *http)
{
    CURLMsg *message = NULL;
    int left = 0;
    while ((message = curl_multi_info_read(http->multi, &left))) {
        char *private = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        struct hf_exchange *exchange = (struct hf_exchange *)(void *)private;
        hf_exchange_over(exchange, fault_of(code));
        enqueue(exchange);
    }
    for (struct hf_exchange *each = http->failed ? http->all : NULL; each;
         each = each->next)
        hf_exchange_over(each, HF_HTTP_NOMEM);
    http->failed = false;
    hf_http_tell(http);
}

static void act(struct hf_http *http, curl_socket_t fd, int what)
{
    int running = 0;
    (void)curl_multi_socket_action(http->multi, fd, what, &running); /* collect looks */
    collect(http);
}

/* One socket of libcurl's. */
struct socket_watch {
    struct hf_http *http;
    struct hf_watch *watch;
    curl_socket_t fd;
};

static void on_ready(void *user, int events)
{
    struct socket_watch *at = user;
    act(at->http, at->fd,
        (events & HF_READABLE ? CURL_CSELECT_IN : 0) |
            (events & HF_WRITABLE ? CURL_CSELECT_OUT : 0));
}

static void watch_socket(struct hf_http *http, curl_socket_t fd, int events)
{
    struct socket_watch *at = http->alloc->realloc(http->alloc->user, NULL, sizeof(*at));
    struct hf_watcher watcher = { at, on_ready };
    if (!at) {
        http->failed = true;
        return;
    }
    *at = (struct socket_watch){ http, NULL, fd };
    if (hf_watch_new(http->loop, fd, events, &watcher, &at->watch, NULL)) {
        http->alloc->free(http->alloc->user, at);
        http->failed = true;
        return;
    }
    (void)curl_multi_assign(http->multi, fd, at); /* the socket is known to libcurl */
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket)
{
    struct hf_http *http = user;
    struct socket_watch *at = socket;
    int events = (what & CURL_POLL_IN ? HF_READABLE : 0) |
                 (what & CURL_POLL_OUT ? HF_WRITABLE : 0);
    (void)easy;
    if (what == CURL_POLL_REMOVE && at) {
        hf_watch_free(at->watch);
        http->alloc->free(http->alloc->user, at);
        (void)curl_multi_assign(http->multi, fd, NULL);
    } else if (what != CURL_POLL_REMOVE && at) {
        hf_watch_change(at->watch, events);
    } else if (what != CURL_POLL_REMOVE) {
        watch_socket(http, fd, events);
    }
    return 0;
}

static void on_multi_timer(void *user)
{
    act(user, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long after_ms, void *user)
{
    struct hf_http *http = user;
    struct hf_task task = { http, on_multi_timer };
    (void)multi;
    if (after_ms < 0)
        hf_timer_stop(http->loop, &http->timer);
    else if (hf_timer_start(http->loop, &http->timer, after_ms, &task))
        http->failed = true;
    return 0;
}

void hf_http_listen(struct hf_http *http)
{
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
}

static struct hf_http_header *header_room(struct hf_exchange *exchange)
{
    if (exchange->header_count == HEADERS_MAX)
        return NULL;
    if (exchange->header_count == exchange->header_room) {
        size_t room = exchange->header_room ? exchange->header_room * 2 : 16;
        struct hf_http_header *grown = hf_arena_array(&exchange->arena, room,
                                                      sizeof(*grown));
        if (!grown)
            return NULL;
        if (exchange->header_count > 0)
            memcpy(grown, exchange->headers, exchange->header_count * sizeof(*grown));
        exchange->headers = grown;
        exchange->header_room = room;
    }
    return &exchange->headers[exchange->header_count];
}

/* "Name: value" without its line end; names become lower case. */
static bool take_header(struct hf_exchange *exchange, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    struct hf_http_header *header = colon ? header_room(exchange) : NULL;
    if (!header)
        return !colon; /* a line without a colon is passed over */
    char *name = hf_arena_copy(&exchange->arena, line, (size_t)(colon - line));
    const char *value = colon + 1;
    const char *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    header->value = hf_arena_copy(&exchange->arena, value, (size_t)(end - value));
    header->name = name;
    for (char *at = name; at && *at; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    exchange->header_count += name && header->value;
    return name && header->value;
}

static size_t on_header(char *line, size_t size, size_t count, void *user)
{
    struct hf_exchange *exchange = user;
    size_t len = size * count;
    long status = 0;
    exchange->last = now_of(exchange->http);
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        len--;
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        exchange->header_count = 0; /* an interim response came before */
    } else if (len > 0 && !exchange->head) {
        if (!take_header(exchange, line, len))
            hf_exchange_over(exchange, HF_HTTP_LARGE);
    } else if (len == 0 && !exchange->head) {
        curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
        exchange->status = (int)status;
        exchange->head = status >= 200;
        enqueue(exchange);
    }
    return exchange->over ? 0 : size * count;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *user)
{
    struct hf_exchange *exchange = user;
    size_t len = size * count;
    exchange->last = now_of(exchange->http);
    exchange->received += len;
    if (exchange->linger)
        return len;
    if (exchange->received > (size_t)HF_MAX_MODEL_RESPONSE_BYTES) {
        hf_exchange_over(exchange, HF_HTTP_LARGE);
        return 0;
    }
    hf_buf_bytes(&exchange->pending, bytes, len);
    if (hf_buf_state(&exchange->pending)) {
        hf_exchange_over(exchange, HF_HTTP_NOMEM);
        return 0;
    }
    enqueue(exchange);
    return len;
}

void hf_exchange_listen(struct hf_exchange *exchange)
{
    CURL *easy = exchange->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    exchange->started = exchange->last = now_of(exchange->http);
}

/* The next moment at which a limit can be passed, and which limit that is. */
static hf_ms next_limit(const struct hf_exchange *exchange, enum hf_http_fault *ret_fault)
{
    const struct hf_http_config *config = &exchange->http->config;
    hf_ms due = exchange->started + config->start_ms;
    *ret_fault = HF_HTTP_START;
    if (exchange->head) {
        due = exchange->last + config->gap_ms;
        *ret_fault = HF_HTTP_GAP;
    }
    if (config->whole_ms > 0 && exchange->started + config->whole_ms < due) {
        due = exchange->started + config->whole_ms;
        *ret_fault = HF_HTTP_WHOLE;
    }
    return due;
}

/* The timer of an exchange: ends it with the fault of the limit that it has passed. A limit that
 * has moved since the timer was started (something came) starts the timer again. One that lingers
 * ends without a fault, as no sink waits for it. */
static void on_limit_timer(void *user)
{
    struct hf_exchange *exchange = user;
    struct hf_http *http = exchange->http;
    enum hf_http_fault fault;
    if (exchange->linger)
        hf_exchange_over(exchange, HF_HTTP_NONE);
    else if (next_limit(exchange, &fault) <= now_of(http))
        hf_exchange_over(exchange, fault);
    else if (hf_exchange_arm(exchange))
        hf_exchange_over(exchange, HF_HTTP_NOMEM);
    hf_http_tell(http);
}

int hf_exchange_arm(struct hf_exchange *exchange)
{
    struct hf_task task = { exchange, on_limit_timer };
    enum hf_http_fault fault;
    hf_ms after = exchange->linger
                      ? LINGER_MS
                      : next_limit(exchange, &fault) - now_of(exchange->http);
    return hf_timer_start(exchange->http->loop, &exchange->timer, after, &task);
}
