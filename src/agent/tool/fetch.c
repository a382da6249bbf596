/* The built-in tool fetch_url. Every hop is a request of its own, and the guard sees the very
 * address that is connected to: a name that changes its address between two look-ups reaches
 * nothing that the guard did not allow. */
#include <string.h>

#include <holdfast/bounds.h>
#include <holdfast/http.h>

#include "agent/tool/address.h"
#include "agent/tool/tools.h"
#include "base/err.h"
#include "base/json_get.h"
#include "base/repair.h"
#include "base/text.h"

#define HOPS_MAX 5
#define WHOLE_MS 25000 /* for all hops, below the limit of the call */
#define BODY_MAX ((size_t)1 << 20)

struct fetch {
    struct tool_live live;
    struct hf_tools *tools;
    struct hf_invocation *call;
    struct hf_transport *transport;
    uint64_t exchange; /* 0: none is out */
    struct hf_timer timer;
    char *url;
    struct hf_url place;
    enum address_rule allowed; /* the strictest rule that is waived for this host */
    enum address_rule refused; /* of an address that was not connected to */
    int hops;
    int status;
    char type[128];
    struct hf_buf body;
    bool cut;
    bool over;
};

/* ---- what may be reached ----------------------------------------------------------- */

static bool names_host(const char *entry, const struct hf_url *place)
{
    size_t len = strlen(place->host);
    int64_t port = 0;
    if (!hf_starts_with(entry, place->host))
        return false;
    return !entry[len] ||
           (entry[len] == ':' &&
            hf_parse_i64(entry + len + 1, 1, 65535, "allow", &port, NULL) == 0 &&
            port == place->port);
}

/* A name waives the rules for this machine and its networks, an address all of them. */
static enum address_rule allowance(const struct fetch *fetch)
{
    for (const char *const *at = fetch->tools->config.allow; *at; at++)
        if (names_host(*at, &fetch->place))
            return fetch->place.address ? ADDRESS_METADATA : ADDRESS_RESERVED;
    return ADDRESS_PUBLIC;
}

static bool may_connect(void *user, const struct sockaddr *address)
{
    struct fetch *fetch = user;
    enum address_rule rule = address_rule(address);
    if (rule <= fetch->allowed)
        return true;
    fetch->refused = rule;
    return false;
}

/* ---- answers ----------------------------------------------------------------------- */

/* Releases the call after this callback. */
static void end_soon(struct fetch *fetch)
{
    struct hf_task task = fetch->timer.task;
    fetch->over = true;
    int rc = hf_timer_start(hf_invocation_loop(fetch->call), &fetch->timer, 0, &task);
    hf_assert(rc == 0); /* it runs: moving it needs no memory */
}

static void fail_host(struct fetch *fetch, enum hf_failure_class class_, const char *code,
                      const char *what)
{
    struct hf_buf text;
    hf_buf_init(&text, fetch->tools->alloc, 4096);
    hf_buf_text(&text, fetch->place.host);
    hf_buf_text(&text, ": ");
    hf_buf_text(&text, what);
    tool_fail(fetch->call, class_, code, hf_buf_str(&text));
    hf_buf_fini(&text);
}

static void say_refused(struct fetch *fetch)
{
    struct hf_buf text;
    hf_buf_init(&text, fetch->tools->alloc, 4096);
    hf_buf_text(&text, "the address is ");
    hf_buf_text(&text, address_rule_name(fetch->refused));
    hf_buf_text(&text, ", and fetch_url reaches public addresses only; an operator can "
                       "name the host in `allow`");
    fail_host(fetch, HF_FAILURE_PERMISSION_DENIED, "address_refused", hf_buf_str(&text));
    hf_buf_fini(&text);
}

static bool is_text(const struct fetch *fetch)
{
    return hf_starts_with(fetch->type, "text/") ||
           hf_text_clean(fetch->body.at, fetch->body.len);
}

static void say_page(struct fetch *fetch)
{
    struct hf_buf text;
    if (fetch->body.len > 0 && !is_text(fetch)) {
        fail_host(fetch, HF_FAILURE_INVALID_REQUEST, "not_text",
                  "the response is not text");
        return;
    }
    hf_buf_init(&text, fetch->tools->alloc, BODY_MAX + 16384);
    hf_buf_text(&text, "HTTP ");
    hf_buf_i64(&text, fetch->status);
    hf_buf_char(&text, ' ');
    hf_buf_text(&text, fetch->type);
    hf_buf_char(&text, '\n');
    hf_buf_bytes(&text, fetch->url, strnlen(fetch->url, 8192));
    hf_buf_text(&text, "\n\n");
    hf_buf_bytes(&text, hf_buf_str(&fetch->body), fetch->body.len);
    if (fetch->cut)
        hf_buf_text(&text, "\n[cut: the response is over 1 MiB]");
    if (hf_buf_state(&text) == 0)
        tool_say(fetch->call, (struct hf_span){ hf_buf_str(&text), text.len });
    hf_buf_fini(&text);
}

/* ---- one hop ----------------------------------------------------------------------- */

static bool start_hop(struct fetch *fetch);

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 ||
           status == 308;
}

static const char *header(const struct hf_http_header *headers, size_t count,
                          const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (hf_same(headers[i].name, name))
            return headers[i].value;
    return NULL;
}

/* Continues at another address, which is checked as the first one was. */
static void follow(struct fetch *fetch, const char *location)
{
    const struct hf_alloc *alloc = fetch->tools->alloc;
    struct hf_err err = { 0 };
    char *url = NULL;
    uint64_t old = fetch->exchange;
    fetch->exchange = 0;
    (void)fetch->transport->methods->cancel(fetch->transport, old); /* it is out */
    int rc = ++fetch->hops > HOPS_MAX
                 ? hf_fail(&err, HF_EINVAL, "url", "more than %d redirects", HOPS_MAX)
                 : hf_url_follow(alloc, fetch->url, location, &url, &err);
    if (rc) {
        fail_host(fetch, HF_FAILURE_EXTERNAL, "redirect", err.message);
        end_soon(fetch);
        return;
    }
    alloc->free(alloc->user, fetch->url);
    fetch->url = url;
    if (!start_hop(fetch))
        end_soon(fetch);
}

static void on_head(void *user, int status, const struct hf_http_header *headers,
                    size_t count)
{
    struct fetch *fetch = user;
    const char *type = header(headers, count, "content-type");
    const char *location = header(headers, count, "location");
    size_t len = type ? hf_utf8_cut(type, strnlen(type, sizeof fetch->type - 1)) : 0;
    fetch->status = status;
    memcpy(fetch->type, type ? type : "", len);
    fetch->type[len] = '\0';
    if (is_redirect(status) && location)
        follow(fetch, location);
}

static void on_body(void *user, const void *bytes, size_t len)
{
    struct fetch *fetch = user;
    size_t room = BODY_MAX - fetch->body.len;
    hf_buf_bytes(&fetch->body, bytes, len < room ? len : room);
    if (len <= room)
        return;
    uint64_t old = fetch->exchange;
    fetch->cut = true;
    fetch->exchange = 0;
    (void)fetch->transport->methods->cancel(fetch->transport, old); /* it is out */
    say_page(fetch);
    end_soon(fetch);
}

static void on_end(void *user, enum hf_http_fault fault)
{
    struct fetch *fetch = user;
    fetch->exchange = 0;
    if (fault == HF_HTTP_NONE)
        say_page(fetch);
    else if (fetch->refused)
        say_refused(fetch);
    else if (fault == HF_HTTP_START || fault == HF_HTTP_GAP || fault == HF_HTTP_WHOLE)
        fail_host(fetch, HF_FAILURE_TIMEOUT, "timeout", "no answer in time");
    else
        fail_host(fetch, HF_FAILURE_EXTERNAL, hf_http_fault_name(fault),
                  fault == HF_HTTP_TLS ? "no trusted connection"
                                       : "no connection, or it was lost");
    end_soon(fetch);
}

/* False: the call is answered. */
static bool start_hop(struct fetch *fetch)
{
    static const struct hf_http_header headers[] = {
        { "User-Agent", "holdfast", NULL },
        { "Accept", "text/*, application/json, */*;q=0.1", NULL },
    };
    const struct hf_http_guard guard = { fetch, may_connect };
    const struct hf_http_sink sink = { fetch, on_head, on_body, on_end };
    struct hf_err err = { 0 };
    struct hf_http_request request = { .size = sizeof request,
                                       .url = fetch->url,
                                       .headers = headers,
                                       .header_count = sizeof headers / sizeof *headers,
                                       .get = true,
                                       .guard = &guard };
    int rc = hf_url_read(fetch->url, &fetch->place, &err);
    fetch->allowed = rc ? ADDRESS_PUBLIC : allowance(fetch);
    fetch->refused = ADDRESS_PUBLIC;
    if (rc == 0)
        rc = fetch->transport->methods->start(fetch->transport, &request, &sink,
                                              &fetch->exchange, &err);
    if (rc)
        tool_fail(fetch->call, HF_FAILURE_INVALID_REQUEST, "url", err.message);
    return rc == 0;
}

/* ---- the call ---------------------------------------------------------------------- */

static void release(struct fetch *fetch)
{
    const struct hf_alloc *alloc = fetch->tools->alloc;
    struct hf_invocation *call = fetch->call;
    hf_timer_stop(hf_invocation_loop(call), &fetch->timer);
    hf_transport_free(fetch->transport);
    hf_buf_fini(&fetch->body);
    tool_live_remove(fetch->tools, &fetch->live);
    alloc->free(alloc->user, fetch->url);
    alloc->free(alloc->user, fetch);
    hf_invocation_end(call);
}

static void on_timer(void *user)
{
    struct fetch *fetch = user;
    if (!fetch->over)
        fail_host(fetch, HF_FAILURE_TIMEOUT, "timeout", "no answer in time");
    release(fetch);
}

static void kill_fetch(struct tool_live *live)
{
    release((struct fetch *)(void *)live);
}

/* The URL of the call, its transport and its first hop. False: the call is answered. */
static bool begin(struct fetch *fetch)
{
    struct hf_loop *loop = hf_invocation_loop(fetch->call);
    struct hf_http_config config = { .size = sizeof config, .whole_ms = WHOLE_MS };
    struct json_t *args = NULL;
    struct hf_err err = { 0 };
    int rc = hf_json_parse(hf_invocation_args(fetch->call), 65536, "args", &args, &err);
    if (rc == 0) {
        fetch->url = hf_text_copy(fetch->tools->alloc,
                                  hf_json_as_text(hf_json_member(args, "url")));
        if (!fetch->url)
            rc = hf_fail(&err, HF_EINVAL, "url", "a url is needed");
    }
    hf_json_free(args);
    if (rc == 0)
        rc = hf_http_new(loop, &config, &fetch->transport, &err);
    if (rc)
        tool_fail(fetch->call, HF_FAILURE_INVALID_REQUEST, "url", err.message);
    return rc == 0 && start_hop(fetch);
}

void fetch_run(void *user, struct hf_invocation *call)
{
    struct hf_tools *tools = user;
    struct fetch *fetch = tools->alloc->realloc(tools->alloc->user, NULL, sizeof *fetch);
    struct hf_task task = { fetch, on_timer };
    if (fetch)
        *fetch = (struct fetch){ .tools = tools, .call = call, .live.kill = kill_fetch };
    if (!fetch ||
        hf_timer_start(hf_invocation_loop(call), &fetch->timer, WHOLE_MS, &task)) {
        tools->alloc->free(tools->alloc->user, fetch);
        tool_fail_again(call, "cannot_start", "no memory");
        hf_invocation_end(call);
        return;
    }
    hf_buf_init(&fetch->body, tools->alloc, BODY_MAX + 1);
    tool_live_add(tools, &fetch->live);
    if (!begin(fetch))
        end_soon(fetch);
}

void fetch_stop(void *user, struct hf_invocation *call)
{
    struct hf_tools *tools = user;
    for (struct tool_live *at = tools->live; at; at = at->next) {
        struct fetch *fetch = (struct fetch *)(void *)at;
        if (at->kill != kill_fetch || fetch->call != call)
            continue;
        end_soon(fetch);
        return;
    }
}
