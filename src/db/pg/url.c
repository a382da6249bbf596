/* The address of a store on PostgreSQL: postgres://user@host/database?parameters.
 *
 * Three parameters are ours and are taken out before libpq sees the rest, which it would
 * refuse: `schema`, `pooler`, `listen_url`. Nothing of an address is ever shown, since it may
 * hold a password.
 */
#include <string.h>

#include "base/text.h"
#include "db/pg/pg.h"

static const struct {
    const char *word;
    enum pg_pooler pooler;
} poolers[] = {
    { "none", PG_POOLER_NONE },
    { "session", PG_POOLER_SESSION },
    { "transaction", PG_POOLER_TRANSACTION },
};

struct parameter {
    const char *name;
    char **value;
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent escapes of a parameter's value, undone. */
static int decode(const struct hf_alloc *alloc, const char *at, size_t len,
                  const char *name, char **ret_text, struct hf_err *err)
{
    char *text = alloc->realloc(alloc->user, NULL, len + 1);
    if (!text)
        return hf_fail_plain(err, HF_ENOMEM);
    size_t out = 0;
    for (size_t i = 0; i < len; i++) {
        int high = at[i] == '%' && i + 2 < len ? hex_digit(at[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(at[i + 2]) : -1;
        if (at[i] == '%' && (low < 0 || high + low == 0)) { /* a NUL would end it */
            alloc->free(alloc->user, text);
            return hf_fail(err, HF_EINVAL, "db",
                           "%s: a %% must be followed by two hex digits, not 00", name);
        }
        text[out++] = low >= 0 ? (char)(high * 16 + low) : at[i];
        i += low >= 0 ? 2 : 0;
    }
    text[out] = '\0';
    *ret_text = text;
    return 0;
}

static int take_own(const struct hf_alloc *alloc, const char *at, size_t len,
                    const struct parameter *own, bool *ret_taken, struct hf_err *err)
{
    size_t name = strlen(own->name);
    *ret_taken = len > name && memcmp(at, own->name, name) == 0 && at[name] == '=';
    if (!*ret_taken)
        return 0;
    if (*own->value)
        return hf_fail(err, HF_EINVAL, "db", "%s is given twice", own->name);
    return decode(alloc, at + name + 1, len - name - 1, own->name, own->value, err);
}

/* Copies the address without our parameters. */
static int split(const struct hf_alloc *alloc, const char *url,
                 const struct parameter *own, struct hf_buf *rest, struct hf_err *err)
{
    const char *query = strchr(url, '?');
    size_t before = query ? (size_t)(query - url) : strlen(url);
    char between = '?';
    hf_buf_bytes(rest, url, before);
    while (query) {
        const char *at = query + 1;
        size_t len = strcspn(at, "&");
        bool taken = false;
        for (const struct parameter *one = own; one->name && !taken; one++) {
            int rc = take_own(alloc, at, len, one, &taken, err);
            if (rc)
                return rc;
        }
        if (!taken && len) {
            hf_buf_char(rest, between);
            hf_buf_bytes(rest, at, len);
            between = '&';
        }
        query = at[len] ? at + len : NULL;
    }
    return hf_buf_state(rest) ? hf_fail_plain(err, hf_buf_state(rest)) : 0;
}

static int check_schema(const char *name, struct hf_err *err)
{
    size_t len = strlen(name);
    bool fine = len > 0 && len <= PG_SCHEMA_MAX && !(name[0] >= '0' && name[0] <= '9') &&
                !hf_starts_with(name, "pg_");
    for (size_t i = 0; fine && i < len; i++)
        fine = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
               name[i] == '_';
    return fine
               ? 0
               : hf_fail(
                     err, HF_EINVAL, "db",
                     "schema must be 1 to %d of a-z, 0-9 and _, beginning with neither a "
                     "digit nor pg_",
                     PG_SCHEMA_MAX);
}

static int read_pooler(const char *word, enum pg_pooler *ret_pooler, struct hf_err *err)
{
    for (size_t i = 0; i < sizeof(poolers) / sizeof(poolers[0]); i++) {
        if (hf_same(word ? word : "none", poolers[i].word)) {
            *ret_pooler = poolers[i].pooler;
            return 0;
        }
    }
    return hf_fail(err, HF_EINVAL, "db", "pooler must be none, session or transaction");
}

static char *keep(const struct hf_alloc *alloc, const char *before, const char *text,
                  const char *after)
{
    struct hf_buf buf;
    hf_buf_init(&buf, alloc, 8192);
    hf_buf_text(&buf, before);
    hf_buf_text(&buf, text);
    hf_buf_text(&buf, after);
    if (hf_buf_state(&buf) == 0)
        return buf.at; /* the buffer's memory is the allocator's */
    hf_buf_fini(&buf);
    return NULL;
}

/* A password that was not encoded ends early, and what is left of it is taken for a host or a
 * port. */
static bool is_torn(const PQconninfoOption *option)
{
    const char *text = option->val ? option->val : "";
    if (hf_same(option->keyword, "port"))
        return text[strspn(text, "0123456789,")] != '\0';
    return hf_same(option->keyword, "host") && *text && *text != '/' &&
           strchr(text + 1, '@');
}

/* The message of libpq about an address that it cannot read quotes it, with its password. */
static int check_address(const char *address, struct hf_err *err)
{
    char *said = NULL;
    PQconninfoOption *options = PQconninfoParse(address, &said);
    int rc = options || said ? 0 : hf_fail_plain(err, HF_ENOMEM);
    if (said)
        rc = hf_fail(err, HF_EINVAL, "db", "the address cannot be read: %.*s",
                     (int)strcspn(said, "\":\n"), said);
    for (PQconninfoOption *o = options; rc == 0 && o && o->keyword; o++)
        if (is_torn(o))
            rc = hf_fail(
                err, HF_EINVAL, "db",
                "the address has no such %s: in a password write @ as %%40, / as "
                "%%2F and : as %%3A",
                o->keyword);
    PQconninfoFree(options);
    PQfreemem(said);
    return rc;
}

int pg_url_read(const struct hf_alloc *alloc, const char *url, struct pg_url *ret_url,
                struct hf_err *err)
{
    struct pg_url made = { 0 };
    char *pooler = NULL;
    const struct parameter own[] = { { "schema", &made.schema },
                                     { "pooler", &pooler },
                                     { "listen_url", &made.listen },
                                     { NULL, NULL } };
    struct hf_buf rest;
    hf_buf_init(&rest, alloc, 8192);
    int rc = split(alloc, url, own, &rest, err);
    if (rc == 0 && !made.schema) {
        made.schema = keep(alloc, "", "holdfast", "");
        rc = made.schema ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    if (rc == 0)
        rc = check_address(hf_buf_str(&rest), err);
    if (rc == 0 && made.listen)
        rc = check_address(made.listen, err);
    if (rc == 0)
        rc = check_schema(made.schema, err);
    if (rc == 0)
        rc = read_pooler(pooler, &made.pooler, err);
    if (rc == 0) {
        made.conninfo = keep(alloc, "", hf_buf_str(&rest), "");
        made.quoted = keep(alloc, "\"", made.schema, "\"");
        rc = made.conninfo && made.quoted ? 0 : hf_fail_plain(err, HF_ENOMEM);
    }
    hf_buf_fini(&rest);
    alloc->free(alloc->user, pooler);
    if (rc == 0)
        *ret_url = made;
    else
        pg_url_free(alloc, &made);
    return rc;
}

/* An address may hold a password: it is not left behind in free memory. */
static void wipe(const struct hf_alloc *alloc, char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    alloc->free(alloc->user, text);
}

void pg_url_free(const struct hf_alloc *alloc, struct pg_url *url)
{
    wipe(alloc, url->conninfo);
    wipe(alloc, url->listen);
    alloc->free(alloc->user, url->schema);
    alloc->free(alloc->user, url->quoted);
    *url = (struct pg_url){ 0 };
}
