/* The fetch tool against a server of this machine. The program answers name look-ups itself and
 * sees every connection: getaddrinfo and connect are the ones below. A connection to a public
 * address is led to the server, so that nothing leaves the machine. */
#include "agent/tool_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/tool/address.h"

/* ---- the world --------------------------------------------------------------------- */

#define PUBLIC "93.184.216.34"

static int server_port;
static atomic_int reached;  /* connections to addresses that are not public */
static atomic_int led;      /* connections to the public address */
static atomic_int lookups;  /* of flip.test */
static atomic_bool hostile; /* flip.test has changed to loopback */

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
    struct sockaddr_in in;
    if (to->sa_family == AF_INET || to->sa_family == AF_INET6) {
        if (address_rule(to) == ADDRESS_PUBLIC) {
            atomic_fetch_add(&led, 1);
            in = (struct sockaddr_in){ .sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)server_port) };
            in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            to = (const struct sockaddr *)&in;
            len = sizeof in;
        } else {
            atomic_fetch_add(&reached, 1);
        }
    }
    return (int)syscall(SYS_connect, fd, to, len);
}

static struct addrinfo *entry(const char *address, const char *service,
                              struct addrinfo *next)
{
    struct {
        struct addrinfo info;
        struct sockaddr_in6 room;
    } *made = calloc(1, sizeof *made);
    struct sockaddr_in four = { .sin_family = AF_INET };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    uint16_t port = htons((uint16_t)strtol(service ? service : "80", NULL, 10));
    assert_non_null(made);
    made->info = (struct addrinfo){ .ai_socktype = SOCK_STREAM,
                                    .ai_protocol = IPPROTO_TCP,
                                    .ai_addr = (struct sockaddr *)&made->room,
                                    .ai_next = next };
    if (inet_pton(AF_INET, address, &four.sin_addr) == 1) {
        four.sin_port = port;
        made->info.ai_family = AF_INET;
        made->info.ai_addrlen = sizeof four;
        memcpy(&made->room, &four, sizeof four);
    } else {
        assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
        six.sin6_port = port;
        made->info.ai_family = AF_INET6;
        made->info.ai_addrlen = sizeof six;
        memcpy(&made->room, &six, sizeof six);
    }
    return &made->info;
}

/* Names and their addresses. */
static const struct {
    const char *name;
    const char *address;
} names[] = {
    { "public.test", PUBLIC },
    { "front.test", "127.0.0.1" },
    { "localhost", "127.0.0.1" },
    { "a.localhost", "127.0.0.1" },
    { "localhost.localdomain", "127.0.0.1" },
    { "ip6-localhost", "::1" },
    { "loop.test", "127.0.0.1" },
    { "127.0.0.1.nip.io", "127.0.0.1" },
    { "zero.test", "0.0.0.0" },
    { "ten.test", "10.0.0.1" },
    { "lan.test", "192.168.1.1" },
    { "mid.test", "172.31.255.255" },
    { "cgn.test", "100.64.0.1" },
    { "link.test", "169.254.1.1" },
    { "metadata.google.internal", "169.254.169.254" },
    { "instance-data", "169.254.169.254" },
    { "six.test", "::1" },
    { "ula.test", "fd00::1" },
    { "mapped.test", "::ffff:127.0.0.1" },
};

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    unsigned char bytes[16];
    struct in_addr four;
    (void)hints;
    if (strcmp(name, "flip.test") == 0) {
        atomic_fetch_add(&lookups, 1);
        *ret = entry(atomic_load(&hostile) ? "127.0.0.1" : PUBLIC, service, NULL);
        return 0;
    }
    if (strcmp(name, "both.test") ==
        0) { /* the second one is tried when the first fails */
        *ret = entry("127.0.0.1", service, entry("::1", service, NULL));
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i].name) == 0) {
            *ret = entry(names[i].address, service, NULL);
            return 0;
        }
    if (inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1) {
        *ret = entry(name, service, NULL);
        return 0;
    }
    if (inet_aton(name, &four)) { /* forms such as 127.1, as the C library has them */
        char text[INET_ADDRSTRLEN];
        *ret = entry(inet_ntop(AF_INET, &four, text, sizeof text), service, NULL);
        return 0;
    }
    return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

/* ---- the server -------------------------------------------------------------------- */

static int listener;
static pthread_t server;

static void answer(int fd)
{
    static const char large[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                "Connection: close\r\n\r\n";
    char request[4096] = "", reply[1024] = "", path[256] = "", block[4096];
    ssize_t got = read(fd, request, sizeof request - 1);
    if (got <= 0 || strncmp(request, "GET ", 4) != 0)
        return;
    size_t len = strcspn(request + 4, " ");
    memcpy(path, request + 4, len < sizeof path - 1 ? len : sizeof path - 1);
    const char *to = strstr(path, "?to=");
    if (strcmp(path, "/large") == 0) {
        memset(block, 'x', sizeof block);
        got = write(fd, large, sizeof large - 1);
        for (int i = 0; got > 0 && i < 600; i++)
            got = send(fd, block, sizeof block, MSG_NOSIGNAL);
        return;
    }
    if (strcmp(path, "/image") == 0) {
        static const char image[] = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"
                                    "Content-Length: 4\r\n\r\n\x89PN\xff";
        (void)send(fd, image, sizeof image - 1, MSG_NOSIGNAL);
        return;
    }
    if (strcmp(path, "/round") == 0)
        to = "?to=/round";
    if (strcmp(path, "/slow") == 0)
        return; /* cut without an answer */
    if (to)
        (void)snprintf(reply, sizeof reply,
                       "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                       to + 4);
    else
        (void)snprintf(
            reply, sizeof reply,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n"
            "\r\nhello");
    (void)send(fd, reply, strlen(reply), MSG_NOSIGNAL);
}

static void *serve(void *user)
{
    (void)user;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        answer(fd);
        (void)close(fd);
    }
}

static int start_server(void **state)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof at;
    (void)state;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 64) ||
        getsockname(listener, (struct sockaddr *)&at, &len))
        return -1;
    server_port = ntohs(at.sin_port);
    return pthread_create(&server, NULL, serve, NULL);
}

static int stop_server(void **state)
{
    (void)state;
    (void)shutdown(listener, SHUT_RDWR);
    (void)close(listener);
    return pthread_join(server, NULL);
}

/* ---- calls ------------------------------------------------------------------------- */

static struct tool_kit kit;

static void open_with(const char *const *allow)
{
    struct hf_tools_config config = { .size = sizeof config,
                                      .builtins = 1U << HF_BUILTIN_FETCH_URL,
                                      .allow = allow };
    tool_kit_open(&kit, &config);
    atomic_store(&reached, 0);
    atomic_store(&led, 0);
    atomic_store(&lookups, 0);
    atomic_store(&hostile, false);
}

static const struct tool_said *fetch(const char *url)
{
    char args[1024];
    (void)snprintf(args, sizeof args, "{\"url\":\"%s\"}", url);
    return tool_kit_call(&kit, "fetch_url", args);
}

static void a_public_page_is_fetched(void **state)
{
    (void)state;
    open_with(NULL);
    const struct tool_said *got = fetch("http://public.test/page");
    assert_int_equal(got->outcome, HF_TOOL_SUCCESS);
    assert_string_equal(got->text,
                        "\"HTTP 200 text/html\\nhttp://public.test/page\\n\\nhello\"");
    got = fetch("http://" PUBLIC "/page?to=/other");
    assert_string_equal(got->text,
                        "\"HTTP 200 text/html\\nhttp://" PUBLIC "/other\\n\\nhello\"");
    assert_int_equal(atomic_load(&led), 3);
    assert_int_equal(atomic_load(&reached), 0);
    tool_kit_close(&kit);
}

static void what_is_too_large_is_cut_and_no_text_is_refused(void **state)
{
    (void)state;
    open_with(NULL);
    const struct tool_said *got = fetch("http://public.test/large");
    assert_int_equal(got->outcome, HF_TOOL_SUCCESS);
    assert_true(strlen(got->text) < 66000);
    assert_non_null(strstr(got->text, "bytes are left out]"));
    assert_string_equal(fetch("http://public.test/image")->code, "not_text");
    assert_string_equal(fetch("http://public.test/slow")->code, "cut");
    tool_kit_close(&kit);
}

/* Addresses that a rule refuses, in forms that parsers read differently. %P is the port of the
 * server. */
static const char *const hosts[] = {
    "127.0.0.1",

    "127.1",
    "127.0.1",
    "127.000.000.001",
    "0177.0.0.1",
    "0177.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "0x7f000001",
    "0x7F.0x0.0x0.0x1",
    "2130706433",
    "017700000001",
    "127.255.255.254",
    "127.0.0.2",
    "127.127.127.127",
    "0.0.0.0",
    "0",
    "0.0.0.1",
    "0x0",
    "00",
    "localhost",
    "LOCALHOST",
    "a.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "loop.test",
    "127.0.0.1.nip.io",
    "zero.test",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[::ffff:0:127.0.0.1]",
    "[2001:0:7f00:1::1]",
    "six.test",
    "mapped.test",
    "both.test",
    "10.0.0.1",
    "10.255.255.255",
    "10.1",
    "0xa.0.0.1",
    "012.0.0.1",
    "167772161",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "3232235521",
    "100.64.0.1",
    "100.127.255.255",
    "ten.test",
    "lan.test",
    "mid.test",
    "cgn.test",
    "[fc00::1]",
    "[fd00::1]",
    "[fdff:ffff::1]",
    "[fec0::1]",
    "ula.test",
    "[::ffff:10.0.0.1]",
    "[::ffff:192.168.1.1]",
    "[64:ff9b::10.0.0.1]",
    "[2002:a00:1::1]",
    "169.254.169.254",
    "169.254.0.1",
    "169.254.255.255",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "2852039166",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "link.test",
    "metadata.google.internal",
    "instance-data",
    "[fe80::1]",
    "[febf::1]",
    "[fd00:ec2::254]",
    "169.254.170.2",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.0.1",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "198.18.0.1",
    "198.19.255.255",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[ff02::1]",
    "[ff01::1]",
    "[2001:db8::1]",
    "[100::1]",
    "[3fff::1]",
    "[4000::1]",
    "[::ffff:255.255.255.255]",
};
#define HOSTS (sizeof hosts / sizeof hosts[0])

/* Whole addresses: other schemes, user info, odd separators. */
static const char *const urls[] = {
    "http://127.0.0.1.:%P/",
    "http://localhost.:%P/",
    "http://user@127.0.0.1:%P/",
    "http://user:pass@127.0.0.1:%P/",
    "http://public.test@127.0.0.1:%P/",
    "http://public.test:80@127.0.0.1:%P/",
    "http://127.0.0.1:%P@public.test/",
    "http://public.test#@127.0.0.1:%P/",
    "http://127.0.0.1:%P#public.test/",
    "http://127.0.0.1:%P?public.test/",
    "http:127.0.0.1:%P/",
    "http:/127.0.0.1:%P/",
    "http:///127.0.0.1:%P/",
    "http:////127.0.0.1:%P/",
    "//127.0.0.1:%P/",
    "127.0.0.1:%P/",
    "127.0.0.1",
    "localhost",
    "HTTP://127.0.0.1:%P/",
    "hTtP://LocalHost:%P/",
    " http://127.0.0.1:%P/",
    "http://127.0.0.1:%P/ ",
    "http://%31%32%37.0.0.1:%P/",
    "http://127%2e0%2e0%2e1:%P/",
    "http://localhost%00.public.test:%P/",
    "http://127.0.0.1%00.public.test:%P/",
    "http://127.0.0.1%2f.public.test:%P/",
    "http://127.0.0.1\\\\@public.test:%P/",
    "http://public.test\\\\@127.0.0.1:%P/",
    "http://127.0.0.1\\t:%P/",
    "http://127.0.0.1\\n:%P/",
    "http://\\u2460\\u2461\\u2466.0.0.1:%P/",
    "http://127\\u30020\\u30020\\u30021:%P/",
    "http://\\uff11\\uff12\\uff17.0.0.1:%P/",
    "http://[::1%25lo]:%P/",
    "http://[fe80::1%25eth0]:%P/",
    "http://[::1]:%P:80/",
    "http://[::1:%P/",
    "http://::1:%P/",
    "http://[127.0.0.1]:%P/",
    "http://[[::1]]:%P/",
    "http://127.0.0.1:0%P/",
    "http://127.0.0.1:+%P/",
    "http://127.0.0.1:-1/",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:/",
    "http://:%P/",
    "http://",
    "http:",
    "",
    "ftp://127.0.0.1:%P/",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:%P/_GET%20/",
    "dict://127.0.0.1:%P/x",
    "ldap://127.0.0.1:%P/",
    "tftp://127.0.0.1:%P/",
    "smb://127.0.0.1/",
    "telnet://127.0.0.1:%P/",
    "ws://127.0.0.1:%P/",
    "wss://127.0.0.1:%P/",
    "scp://127.0.0.1/",
    "imap://127.0.0.1/",
    "data:text/plain,x",
    "javascript:alert(1)",
    "view-source:http://127.0.0.1:%P/",
    "unix:///run/docker.sock",
    "http+unix://%2frun%2fdocker.sock/",
    "jar:http://127.0.0.1!/",
    "url:http://127.0.0.1:%P/",
    "https://127.0.0.1:%P/",
    "https://localhost:%P/",
    "https://[::1]:%P/",
    "http://0:%P/",
    "http://0.0:%P/",
    "http://127.0.0.1:%P/..;/",
    "http://127.0.0.1:%P/%0d%0aHost:%20x",
    "http://256.256.256.256:%P/",
    "http://127.0.0.0.1:%P/",
    "http://0x7f.0x0.0x0.0x1.:%P/",
    "http://08.0.0.1:%P/",
    "http://0xg.0.0.1:%P/",
    "http://127.0.0.1.0x0:%P/",
    "http://1.127.0.0.1.test:%P/",
    "http://-127.0.0.1:%P/",
    "http://127..1:%P/",
    "http://.127.0.0.1:%P/",
    "http://[0:0:0:0:0:0:127.0.0.1]:%P/",
    "http://[::ffff:0x7f.1]:%P/",
    "http://[0:0:0:0:0:0:0:0:1]:%P/",
    "http://[::FFFF:127.0.0.1]:%P/",
};
#define URLS (sizeof urls / sizeof urls[0])

static void put_port(char out[512], const char *url)
{
    size_t to = 0;
    for (const char *at = url; *at && to < 480; at++) {
        if (at[0] == '%' && at[1] == 'P') {
            to += (size_t)snprintf(out + to, 512 - to, "%d", server_port);
            at++;
        } else {
            out[to++] = *at;
        }
    }
    out[to] = '\0';
}

static void no_form_of_an_address_reaches_what_is_refused(void **state)
{
    (void)state;
    char url[512], form[512];
    assert_true(HOSTS + URLS >= 200);
    open_with(NULL);
    for (size_t i = 0; i < HOSTS; i++) {
        (void)snprintf(form, sizeof form, "http://%s:%%P/", hosts[i]);
        put_port(url, form);
        const struct tool_said *got = fetch(url);
        if (got->outcome != HF_TOOL_FAILURE || atomic_load(&reached) ||
            strcmp(got->code, "address_refused") != 0)
            fail_msg("%s: %s %s", url, got->code, got->text);
    }
    for (size_t i = 0; i < URLS; i++) {
        put_port(url, urls[i]);
        const struct tool_said *got = fetch(url);
        if (atomic_load(&reached))
            fail_msg("%s: %s", url, got->text);
        bool shown = strncmp(url, "http://public.test#", 19) == 0; /* a fragment */
        if ((got->outcome == HF_TOOL_SUCCESS) != shown)
            fail_msg("%s: %s", url, got->text);
    }
    tool_kit_close(&kit);
}

static void a_redirect_is_checked_as_the_first_address_was(void **state)
{
    (void)state;
    char url[512], form[512];
    open_with(NULL);
    for (size_t i = 0; i < HOSTS; i++) {
        (void)snprintf(form, sizeof form, "http://public.test/?to=http://%s:%%P/",
                       hosts[i]);
        put_port(url, form);
        const struct tool_said *got = fetch(url);
        if (got->outcome != HF_TOOL_FAILURE || atomic_load(&reached))
            fail_msg("%s: %s", url, got->text);
    }
    assert_int_equal(atomic_load(&led), (int)HOSTS);
    assert_string_equal(fetch("http://public.test/?to=file:///etc/passwd")->code, "url");
    assert_string_equal(fetch("http://public.test/?to=ftp://public.test/")->code, "url");
    assert_string_equal(fetch("http://public.test/?to=//loop.test/")->code,
                        "address_refused");
    tool_kit_close(&kit);
}

static void redirects_end(void **state)
{
    (void)state;
    open_with(NULL);
    const struct tool_said *got = fetch("http://public.test/round");
    assert_int_equal(got->outcome, HF_TOOL_FAILURE);
    assert_string_equal(got->text, "public.test: more than 5 redirects");
    assert_int_equal(atomic_load(&led), 6);
    tool_kit_close(&kit);
}

/* A name whose first look-up is public and whose second is this machine. */
static void a_name_that_changes_its_address_reaches_nothing(void **state)
{
    (void)state;
    open_with(NULL);
    assert_int_equal(fetch("http://flip.test/")->outcome, HF_TOOL_SUCCESS);
    assert_int_equal(atomic_load(&lookups), 1); /* what was checked is what was used */
    atomic_store(&hostile, true);
    const struct tool_said *got = fetch("http://flip.test/");
    assert_string_equal(got->code, "address_refused");
    assert_string_equal(
        got->text, "flip.test: the address is loopback, and fetch_url reaches public "
                   "addresses only; an operator can name the host in `allow`");
    atomic_store(&hostile, false);
    assert_int_equal(fetch("http://flip.test/?to=http://flip.test/")->outcome,
                     HF_TOOL_SUCCESS);
    assert_int_equal(atomic_load(&lookups), 3); /* a call asks once per name */
    assert_int_equal(atomic_load(&reached), 0);
    tool_kit_close(&kit);
}

static void what_is_named_is_reached(void **state)
{
    (void)state;
    static const char *const allow[] = { "front.test", "link.test",
                                         "metadata.google.internal", NULL };
    char url[512];
    open_with(allow);
    put_port(url, "http://front.test:%P/");
    assert_int_equal(fetch(url)->outcome, HF_TOOL_SUCCESS);
    assert_int_equal(atomic_load(&reached), 1);
    put_port(url, "http://front.test:%P/?to=http://loop.test/"); /* it waives no other */
    assert_string_equal(fetch(url)->code, "address_refused");
    put_port(url, "http://loop.test:%P/?to=http://front.test/");
    assert_string_equal(fetch(url)->code, "address_refused");
    put_port(url, "http://xfront.test:%P/");
    assert_int_equal(fetch(url)->outcome, HF_TOOL_FAILURE);
    assert_string_equal(fetch("http://link.test/")->code, "address_refused");
    assert_string_equal(fetch("http://metadata.google.internal/")->code,
                        "address_refused");
    assert_int_equal(atomic_load(&reached), 2);
    tool_kit_close(&kit);
}

static void a_port_can_be_named(void **state)
{
    (void)state;
    char entry_text[32];
    (void)snprintf(entry_text, sizeof entry_text, "127.0.0.1:%d", server_port);
    const char *const allow[] = { entry_text, NULL };
    char url[512];
    open_with(allow);
    put_port(url, "http://127.1:%P/"); /* another form of the same address */
    assert_int_equal(fetch(url)->outcome, HF_TOOL_SUCCESS);
    assert_string_equal(fetch("http://127.0.0.1:9/")->code, "address_refused");
    assert_string_equal(fetch("http://loop.test/")->code, "address_refused");
    tool_kit_close(&kit);
}

static void a_proxy_of_the_environment_is_not_used(void **state)
{
    (void)state;
    char proxy[64];
    (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", server_port);
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    open_with(NULL);
    assert_int_equal(fetch("http://public.test/")->outcome, HF_TOOL_SUCCESS);
    assert_int_equal(atomic_load(&reached), 0);
    assert_int_equal(atomic_load(&led), 1);
    assert_string_equal(fetch("http://ten.test/")->code, "address_refused");
    tool_kit_close(&kit);
    assert_int_equal(unsetenv("http_proxy"), 0);
}

static void a_fetch_that_is_given_up_ends(void **state)
{
    (void)state;
    open_with(NULL);
    struct hf_invocation *call = tool_kit_start(
        &kit, "fetch_url", "c", "{\"url\":\"http://public.test/\"}", false);
    hf_invocation_stop(call);
    assert_true(tool_kit_wait(&kit)->stopped);
    tool_kit_close(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_public_page_is_fetched),
        cmocka_unit_test(what_is_too_large_is_cut_and_no_text_is_refused),
        cmocka_unit_test(no_form_of_an_address_reaches_what_is_refused),
        cmocka_unit_test(a_redirect_is_checked_as_the_first_address_was),
        cmocka_unit_test(redirects_end),
        cmocka_unit_test(a_name_that_changes_its_address_reaches_nothing),
        cmocka_unit_test(what_is_named_is_reached),
        cmocka_unit_test(a_port_can_be_named),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_used),
        cmocka_unit_test(a_fetch_that_is_given_up_ends),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
