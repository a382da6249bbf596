/* The HTTP client: starting and ending exchanges. See http_client.h. */
#include "net/http_client.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/sized.h"
#include "base/text.h"
#include "net/secret.h"

#define RECEIVE_BYTES 4096L /* libcurl's 16 KiB for each of 10,000 streams is too much */
#define UPLOAD_BYTES 16384L
#define START_MS 120000
#define GAP_MS 120000
#define WHOLE_MS 300000

static const struct hf_transport_methods methods;

/* The parts of an address that decide what may be sent to it. */
struct address {
    bool plain;
    bool loopback;
};

static bool is_loopback(const char *host)
{
    return hf_same(host, "localhost") || hf_starts_with(host, "127.") ||
           hf_same(host, "[::1]");
}

static int read_address(CURLU *parts, const char *url, const char *field,
                        struct address *ret_address, struct hf_err *err)
{
    char *scheme = NULL;
    char *host = NULL;
    char *user = NULL;
    int rc = 0;
    if (curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME))
        return hf_fail(err, HF_EINVAL, field, "this is no address of an endpoint");
    (void)curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0); /* NULL: none */
    (void)curl_url_get(parts, CURLUPART_HOST, &host, 0);
    (void)curl_url_get(parts, CURLUPART_USER, &user, 0);
    bool plain = scheme && hf_same(scheme, "http");
    if (!scheme || (!plain && !hf_same(scheme, "https")))
        rc = hf_fail(err, HF_EINVAL, field, "an address begins with https:// or http://");
    else if (user)
        rc = hf_fail(err, HF_EINVAL, field,
                     "an address has no user or password: use a key");
    else if (!host || !host[0])
        rc = hf_fail(err, HF_EINVAL, field, "the address has no host");
    else
        *ret_address = (struct address){ plain, is_loopback(host) };
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    return rc;
}

static int read_host(CURLU *parts, struct hf_url *ret_url, struct hf_err *err)
{
    struct hf_url url = { .port = 0 };
    char *host = NULL;
    char *port = NULL;
    int64_t number = 0;
    int rc = curl_url_get(parts, CURLUPART_HOST, &host, 0) ||
                     curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT)
                 ? hf_fail_plain(err, HF_ENOMEM)
                 : hf_parse_i64(port, 0, 65535, "url", &number, err);
    size_t len = host ? strlen(host) : 0;
    if (rc == 0 && len >= sizeof url.host)
        rc = hf_fail(err, HF_EINVAL, "url", "the name of the host is too long");
    if (rc == 0) {
        bool six = host[0] == '[';
        for (size_t i = six, to = 0; i < len - six; i++, to++)
            url.host[to] = host[i] >= 'A' && host[i] <= 'Z' ? (char)(host[i] - 'A' + 'a')
                                                            : host[i];
        url.port = (int)number;
        url.address = six || strspn(url.host, "0123456789.") == strlen(url.host);
        *ret_url = url;
    }
    curl_free(host);
    curl_free(port);
    return rc;
}

int hf_url_read(const char *url, struct hf_url *ret_url, struct hf_err *err)
{
    struct address address;
    CURLU *parts = curl_url();
    if (!parts)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = read_address(parts, url ? url : "", "url", &address, err);
    if (rc == 0)
        rc = read_host(parts, ret_url, err);
    curl_url_cleanup(parts);
    return rc;
}

int hf_url_follow(const struct hf_alloc *alloc, const char *url, const char *location,
                  char **ret_url, struct hf_err *err)
{
    CURLU *parts = curl_url();
    char *whole = NULL;
    char *copy = NULL;
    int rc = parts ? 0 : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0 && (curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) ||
                    curl_url_set(parts, CURLUPART_URL, location, CURLU_URLENCODE) ||
                    curl_url_set(parts, CURLUPART_FRAGMENT, NULL, 0) ||
                    curl_url_get(parts, CURLUPART_URL, &whole, 0)))
        rc = hf_fail(err, HF_EINVAL, "url", "the redirect leads to no address");
    if (rc == 0) {
        copy = hf_text_copy(alloc, whole);
        rc = copy ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    if (rc == 0)
        *ret_url = copy;
    curl_free(whole);
    curl_url_cleanup(parts);
    return rc;
}

static int address_of(const char *url, const char *field, struct address *ret_address,
                      struct hf_err *err)
{
    CURLU *parts = curl_url();
    if (!parts)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = read_address(parts, url ? url : "", field, ret_address, err);
    curl_url_cleanup(parts);
    return rc;
}

int hf_http_check_url(const char *url, const char *field, struct hf_err *err)
{
    struct address address;
    return address_of(url, field, &address, err);
}

/* What may be sent where: a secret only through TLS, or to this machine. */
static int check_request(const struct hf_http_request *request,
                         struct address *ret_address, struct hf_err *err)
{
    if (request->size != sizeof(*request))
        return hf_fail(err, HF_EINVAL, "size", "struct hf_http_request has another size");
    int rc = address_of(request->url, "url", ret_address, err);
    if (rc)
        return rc;
    if (request->body.len > (size_t)HF_MAX_MODEL_REQUEST_BYTES)
        return hf_fail(err, HF_ETOOBIG, "body", "the request is over %lld bytes",
                       (long long)HF_MAX_MODEL_REQUEST_BYTES);
    for (size_t i = 0; i < request->header_count; i++)
        if (request->headers[i].secret && ret_address->plain && !ret_address->loopback)
            return hf_fail(err, HF_EINVAL, "url",
                           "%s is sent over plain http to loopback only: use https",
                           hf_secret_text(request->headers[i].secret));
    return 0;
}

/* One header line as libcurl wants it. The line may hold a secret, so it is wiped. */
static int add_line(struct hf_exchange *exchange, const struct hf_http_header *header)
{
    struct hf_buf line;
    hf_buf_init(&line, exchange->http->alloc, 16384);
    hf_buf_text(&line, header->name);
    hf_buf_text(&line, ": ");
    hf_buf_text(&line, header->value ? header->value : "");
    if (header->secret) {
        struct hf_span secret = hf_secret_bytes(header->secret);
        hf_buf_bytes(&line, secret.at, secret.len);
    }
    int rc = hf_buf_state(&line);
    struct curl_slist *longer =
        rc ? NULL : curl_slist_append(exchange->lines, hf_buf_str(&line));
    if (rc == 0 && !longer)
        rc = HF_ENOMEM;
    if (longer)
        exchange->lines = longer;
    if (line.at)
        explicit_bzero(line.at, line.room);
    hf_buf_fini(&line);
    return rc;
}

static int add_lines(struct hf_exchange *exchange, const struct hf_http_request *request)
{
    static const struct hf_http_header no_expect = { "Expect", "", NULL };
    int rc = add_line(exchange, &no_expect);
    for (size_t i = 0; rc == 0 && i < request->header_count; i++)
        rc = add_line(exchange, &request->headers[i]);
    return rc;
}

static void drop_lines(struct hf_exchange *exchange)
{
    for (struct curl_slist *line = exchange->lines; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(exchange->lines);
    exchange->lines = NULL;
}

/* The body is read by a callback that cannot go back: libcurl then never sends a request a
 * second time on its own, as it otherwise does when a kept connection turns out closed. */
static size_t read_body(char *out, size_t size, size_t count, void *user)
{
    struct hf_exchange *exchange = user;
    size_t left = exchange->body_len - exchange->body_sent;
    size_t now = left < size * count ? left : size * count;
    if (now > 0)
        memcpy(out, exchange->body + exchange->body_sent, now);
    exchange->body_sent += now;
    if (exchange->body_sent == exchange->body_len) {
        const struct hf_alloc *alloc = exchange->http->alloc;
        alloc->free(alloc->user, exchange->body); /* a stream may take long */
        exchange->body = NULL;
    }
    return now;
}

/* libcurl is about to connect to this address. */
static curl_socket_t open_socket(void *user, curlsocktype purpose,
                                 struct curl_sockaddr *to)
{
    const struct hf_exchange *exchange = user;
    const struct hf_http_guard *guard = &exchange->guard;
    (void)purpose;
    if (!guard->may_connect(guard->user, &to->addr))
        return CURL_SOCKET_BAD;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static void set_guard(struct hf_exchange *exchange)
{
    CURL *easy = exchange->easy;
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
}

static void set_method(struct hf_exchange *exchange)
{
    CURL *easy = exchange->easy;
    if (exchange->get) {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body_len);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
}

static void set_options(struct hf_exchange *exchange, const char *url,
                        const struct address *address)
{
    const struct hf_http *http = exchange->http;
    CURL *easy = exchange->easy;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BYTES);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->config.start_ms);
    set_method(exchange);
    if (exchange->guard.may_connect)
        set_guard(exchange);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->lines);
    if (http->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca_file);
    if (address->loopback)
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
}

static void free_exchange(struct hf_exchange *exchange)
{
    const struct hf_alloc *alloc = exchange->http->alloc;
    drop_lines(exchange);
    curl_easy_cleanup(exchange->easy);
    hf_buf_fini(&exchange->pending);
    hf_arena_fini(&exchange->arena);
    alloc->free(alloc->user, exchange->body);
    alloc->free(alloc->user, exchange);
}

static int new_exchange(struct hf_http *http, const struct hf_http_request *request,
                        struct hf_exchange **ret_exchange)
{
    const struct hf_alloc *alloc = http->alloc;
    struct hf_exchange *exchange = alloc->realloc(alloc->user, NULL, sizeof(*exchange));
    if (!exchange)
        return HF_ENOMEM;
    *exchange = (struct hf_exchange){ .http = http };
    hf_buf_init(&exchange->pending, alloc, (size_t)HF_MAX_MODEL_RESPONSE_BYTES);
    hf_arena_init_small(&exchange->arena, alloc, 512, 4096);
    exchange->get = request->get;
    if (request->guard)
        exchange->guard = *request->guard;
    exchange->body_len = request->body.len;
    exchange->body = alloc->realloc(alloc->user, NULL, request->body.len + 1);
    exchange->easy = curl_easy_init();
    int rc = exchange->body && exchange->easy ? add_lines(exchange, request) : HF_ENOMEM;
    if (rc) {
        free_exchange(exchange);
        return rc;
    }
    if (request->body.len > 0)
        memcpy(exchange->body, request->body.at, request->body.len);
    *ret_exchange = exchange;
    return 0;
}

static int http_start(struct hf_transport *transport,
                      const struct hf_http_request *request,
                      const struct hf_http_sink *sink, uint64_t *ret_exchange,
                      struct hf_err *err)
{
    struct hf_http *http = (struct hf_http *)transport;
    struct hf_exchange *exchange = NULL;
    struct address address;
    int rc = check_request(request, &address, err);
    if (rc)
        return rc;
    rc = new_exchange(http, request, &exchange);
    if (rc)
        return hf_fail_plain(err, rc);
    exchange->sink = *sink;
    set_options(exchange, request->url, &address);
    hf_exchange_listen(exchange);
    rc = hf_exchange_arm(exchange);
    if (rc == 0 && curl_multi_add_handle(http->multi, exchange->easy)) {
        hf_timer_stop(http->loop, &exchange->timer);
        rc = HF_ENOMEM;
    }
    if (rc) {
        free_exchange(exchange);
        return hf_fail_plain(err, rc);
    }
    exchange->id = ++http->last_id;
    exchange->next = http->all;
    if (http->all)
        http->all->prev = exchange;
    http->all = exchange;
    *ret_exchange = exchange->id;
    return 0;
}

void hf_exchange_release(struct hf_exchange *exchange)
{
    struct hf_http *http = exchange->http;
    exchange->id = 0;
    hf_timer_stop(http->loop, &exchange->timer);
    if (exchange->easy)
        curl_multi_remove_handle(http->multi, exchange->easy);
    if (exchange->busy || exchange->queued)
        return; /* hf_http_tell comes back to it */
    if (exchange->prev)
        exchange->prev->next = exchange->next;
    else
        http->all = exchange->next;
    if (exchange->next)
        exchange->next->prev = exchange->prev;
    free_exchange(exchange);
}

static struct hf_exchange *find(struct hf_http *http, uint64_t id)
{
    struct hf_exchange *exchange = http->all;
    while (exchange && (id == 0 || exchange->id != id))
        exchange = exchange->next;
    return exchange;
}

static int http_cancel(struct hf_transport *transport, uint64_t id)
{
    struct hf_exchange *exchange = find((struct hf_http *)transport, id);
    if (!exchange)
        return HF_ENOTFOUND;
    hf_exchange_release(exchange);
    return 0;
}

/* The rest of the response, usually nothing, is read for a second at most. */
static int http_finish(struct hf_transport *transport, uint64_t id)
{
    struct hf_exchange *exchange = find((struct hf_http *)transport, id);
    if (!exchange)
        return HF_ENOTFOUND;
    if (exchange->over) {
        hf_exchange_release(exchange);
        return 0;
    }
    exchange->id = 0;
    exchange->linger = true;
    if (hf_exchange_arm(exchange)) {
        exchange->linger = false;
        hf_exchange_release(exchange);
    }
    return 0;
}

static void http_free(struct hf_transport *transport)
{
    struct hf_http *http = (struct hf_http *)transport;
    hf_assert(!http->all || !http->all->busy);
    http->first_told = http->last_told = NULL;
    while (http->all) {
        http->all->queued = false;
        hf_exchange_release(http->all);
    }
    hf_timer_stop(http->loop, &http->timer);
    curl_multi_cleanup(http->multi);
    hf_timer_stop(http->loop, &http->timer);
    http->alloc->free(http->alloc->user, http->ca_file);
    http->alloc->free(http->alloc->user, http);
    curl_global_cleanup();
}

static const struct hf_transport_methods methods = {
    .start = http_start,
    .cancel = http_cancel,
    .finish = http_finish,
    .free = http_free,
};

static int read_config(const struct hf_http_config *given,
                       struct hf_http_config *ret_full, struct hf_err *err)
{
    struct hf_http_config full = { .size = sizeof(full) };
    if (given && given->size != sizeof(full))
        return hf_fail(err, HF_EINVAL, "size", "struct hf_http_config has another size");
    if (given)
        full = *given;
    if (full.ca_file && access(full.ca_file, R_OK))
        return hf_fail(err, HF_EINVAL, "ca_file", "the file %.150s cannot be read",
                       full.ca_file);
    if (full.start_ms < 0 || full.gap_ms < 0 || full.whole_ms < -1)
        return hf_fail(err, HF_EINVAL, "timeout", "a time limit is negative");
    full.start_ms = full.start_ms ? full.start_ms : START_MS;
    full.gap_ms = full.gap_ms ? full.gap_ms : GAP_MS;
    full.whole_ms = full.whole_ms ? full.whole_ms : WHOLE_MS;
    *ret_full = full;
    return 0;
}

int hf_http_new(struct hf_loop *loop, const struct hf_http_config *config,
                struct hf_transport **ret_transport, struct hf_err *err)
{
    const struct hf_alloc *alloc = hf_loop_alloc(loop);
    struct hf_http_config full;
    int rc = read_config(config, &full, err);
    if (rc)
        return rc;
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return hf_fail(err, HF_EINTERNAL, "libcurl", "libcurl cannot be used");
    struct hf_http *http = alloc->realloc(alloc->user, NULL, sizeof(*http));
    CURLM *multi = curl_multi_init();
    char *ca_file = hf_text_copy(alloc, full.ca_file);
    if (!http || !multi || (full.ca_file && !ca_file)) {
        alloc->free(alloc->user, http);
        alloc->free(alloc->user, ca_file);
        if (multi)
            curl_multi_cleanup(multi);
        curl_global_cleanup();
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *http = (struct hf_http){ .handle = { &methods },
                              .loop = loop,
                              .alloc = alloc,
                              .config = full,
                              .ca_file = ca_file,
                              .multi = multi };
    hf_http_listen(http);
    *ret_transport = &http->handle;
    return 0;
}
