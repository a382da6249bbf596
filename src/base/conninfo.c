/* Connection strings in the form of libpq, "host=db.example dbname=work", and servers as
 * "db.example:5432/work", recognised so that they are not taken for the name of a file. */
#include "base/conninfo.h"

#include <string.h>

static const char *const keywords[] = {
    "application_name",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "passfile",
    "password",
    "port",
    "requiressl",
    "service",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
    "target_session_attrs",
};

/* A keyword or a value of the string. */
struct part {
    const char *at;
    size_t len;
};

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static bool is(struct part part, const char *word)
{
    return strlen(word) == part.len && memcmp(part.at, word, part.len) == 0;
}

static bool is_keyword(struct part part)
{
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (is(part, keywords[i]))
            return true;
    return false;
}

/* Reads "KEYWORD = VALUE", where VALUE may be quoted; NULL when there is none. */
static const char *next_pair(const char *at, struct part *ret_key, struct part *ret_value)
{
    at = skip_space(at);
    *ret_key = (struct part){ at, strcspn(at, "= \t\r\n") };
    at = skip_space(at + ret_key->len);
    if (*at != '=')
        return NULL;
    at = skip_space(at + 1);
    if (*at != '\'') {
        *ret_value = (struct part){ at, strcspn(at, " \t\r\n") };
        return at + ret_value->len;
    }
    const char *end = ++at;
    while (*end && *end != '\'')
        end += *end == '\\' && end[1] ? 2 : 1;
    *ret_value = (struct part){ at, (size_t)(end - at) };
    return *end ? end + 1 : end;
}

/* Whether the byte means itself wherever it is in an address. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~,", c));
}

/* Appends `before` and the part, percent-encoded; what does not fit is left out whole. */
static void put(char url[HF_CONNINFO_URL], const char *before, struct part part)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t start = strlen(url), at = start + strlen(before);
    if (!part.at || at + 3 * part.len >= HF_CONNINFO_URL)
        return;
    memcpy(url + start, before, at - start);
    for (size_t i = 0; i < part.len; i++) {
        unsigned char c = (unsigned char)part.at[i];
        if (is_plain(part.at[i])) {
            url[at++] = part.at[i];
            continue;
        }
        url[at++] = '%';
        url[at++] = hex[c >> 4];
        url[at++] = hex[c & 15];
    }
    url[at] = '\0';
}

/* Reads "[USER[:PASSWORD]@]HOST:PORT[/NAME]". False: there is a "/" before the port, as in a path,
 * or there is no port. */
static bool read_server(const char *text, struct part *ret_user, struct part *ret_host,
                        struct part *ret_port, struct part *ret_name)
{
    size_t head = strcspn(text, "/"), at = head;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    if (at < 2 || text[at - 1] != ':' || at == head || head - at > 5)
        return false;
    *ret_port = (struct part){ text + at, head - at };
    size_t host = at - 1;
    while (host > 0 && text[host - 1] != '@')
        host--;
    *ret_host = (struct part){ text + host, at - 1 - host };
    if (host > 0)
        *ret_user = (struct part){ text, strcspn(text, ":@") };
    if (text[head] && text[head + 1])
        *ret_name = (struct part){ text + head + 1, strcspn(text + head + 1, "?") };
    return ret_host->len > 0 && strcspn(text + host, ": \t\r\n") == ret_host->len;
}

bool hf_conninfo_url(const char *text, char ret_url[HF_CONNINFO_URL])
{
    static const struct part nothing = { "", 0 }, unnamed = { "DATABASE", 8 };
    struct part key, value, host = { 0 }, port = { 0 }, user = { 0 }, name = { 0 };
    struct part folder = { 0 }, service = { 0 };
    const char *at = next_pair(text, &key, &value);
    if ((!at || !is_keyword(key)) && !read_server(text, &user, &host, &port, &name))
        return false;
    if (port.at)
        at = NULL; /* no pairs */
    for (; at; at = next_pair(at, &key, &value)) {
        if (is(key, "host") && value.at[0] == '/')
            folder = value; /* of a socket: no address has it in the place of a host */
        else if (is(key, "host") || is(key, "hostaddr"))
            host = value;
        else if (is(key, "port"))
            port = value;
        else if (is(key, "user"))
            user = value;
        else if (is(key, "dbname"))
            name = value;
        else if (is(key, "service"))
            service = value;
    }
    ret_url[0] = '\0';
    put(ret_url, "postgres://", user.at ? user : nothing);
    put(ret_url, user.at ? "@" : "", host.at ? host : nothing);
    put(ret_url, ":", port);
    put(ret_url, "/", name.at ? name : service.at ? nothing : unnamed);
    put(ret_url, "?host=", folder);
    put(ret_url, folder.at ? "&service=" : "?service=", service);
    return true;
}
