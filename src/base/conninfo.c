/* See conninfo.h. */
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

static void put(char url[HF_CONNINFO_URL], const char *before, struct part part,
                const char *otherwise)
{
    size_t at = strlen(url), lead = strlen(before);
    if (!part.at)
        part = (struct part){ otherwise, strlen(otherwise) };
    if (at + lead + part.len >= HF_CONNINFO_URL)
        return;
    memcpy(url + at, before, lead);
    memcpy(url + at + lead, part.at, part.len);
    url[at + lead + part.len] = '\0';
}

bool hf_conninfo_url(const char *text, char ret_url[HF_CONNINFO_URL])
{
    struct part key, value, host = { 0 }, port = { 0 }, user = { 0 }, name = { 0 };
    const char *at = next_pair(text, &key, &value);
    if (!at || !is_keyword(key))
        return false;
    for (; at; at = next_pair(at, &key, &value)) {
        if (is(key, "host") || is(key, "hostaddr"))
            host = value;
        else if (is(key, "port"))
            port = value;
        else if (is(key, "user"))
            user = value;
        else if (is(key, "dbname"))
            name = value;
    }
    ret_url[0] = '\0';
    put(ret_url, "postgres://", user, "");
    put(ret_url, user.at ? "@" : "", host, host.at ? "" : "localhost");
    if (port.at)
        put(ret_url, ":", port, "");
    put(ret_url, "/", name, "DATABASE");
    return true;
}
