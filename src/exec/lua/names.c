/* Which tools a cell names: those of `call("name"` and of the tables in `call_batch({`. An
 * unknown one is told before anything runs. Names that are made at run time are checked when
 * they are used; a cell that has a `call` of its own is left alone.
 */
#include "exec/lua/run.h"

#include <string.h>

#include "base/text.h"

enum kind { END, WORD, TEXT, MARK };

struct token {
    enum kind kind;
    const char *at; /* of a text, what is between the quotes */
    size_t len;
    int64_t line;
    bool exact; /* a text without escapes */
};

struct lexer {
    const char *at;
    const char *end;
    int64_t line;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= '0' && c <= '9');
}

/* After "[": the number of "=" up to a second "[", or -1. */
static int long_level(const struct lexer *in)
{
    const char *at = in->at + 1;
    while (at < in->end && *at == '=')
        at++;
    return at < in->end && *at == '[' ? (int)(at - in->at - 1) : -1;
}

/* At "[==[": moves past the closing "]==]". What is inside, in the token. */
static void take_long(struct lexer *in, int level, struct token *ret)
{
    in->at += level + 2;
    ret->at = in->at;
    ret->exact = true;
    for (; in->at < in->end; in->at++) {
        if (*in->at == '\n')
            in->line++;
        if (*in->at != ']')
            continue;
        const char *at = in->at + 1;
        while (at < in->end && *at == '=')
            at++;
        if (at - in->at - 1 == level && at < in->end && *at == ']') {
            ret->len = (size_t)(in->at - ret->at);
            in->at = at + 1;
            return;
        }
    }
    ret->len = (size_t)(in->at - ret->at);
}

static void take_quoted(struct lexer *in, struct token *ret)
{
    char quote = *in->at++;
    ret->at = in->at;
    ret->exact = true;
    while (in->at < in->end && *in->at != quote && *in->at != '\n') {
        if (*in->at == '\\') {
            ret->exact = false;
            in->at++;
        }
        if (in->at < in->end && *in->at == '\n')
            in->line++;
        if (in->at < in->end)
            in->at++;
    }
    ret->len = (size_t)(in->at - ret->at);
    if (in->at < in->end)
        in->at++;
}

static void skip_comment(struct lexer *in)
{
    struct token ignored;
    in->at += 2;
    int level = in->at < in->end && *in->at == '[' ? long_level(in) : -1;
    if (level >= 0)
        take_long(in, level, &ignored);
    else
        while (in->at < in->end && *in->at != '\n')
            in->at++;
}

static void skip_blank(struct lexer *in)
{
    while (in->at < in->end) {
        if (in->end - in->at > 1 && in->at[0] == '-' && in->at[1] == '-') {
            skip_comment(in);
            continue;
        }
        if (*in->at != ' ' && (*in->at < '\t' || *in->at > '\r'))
            return;
        in->line += *in->at == '\n' ? 1 : 0;
        in->at++;
    }
}

static struct token take(struct lexer *in)
{
    skip_blank(in);
    struct token token = { .kind = END, .at = in->at, .line = in->line };
    if (in->at >= in->end)
        return token;
    int level = *in->at == '[' ? long_level(in) : -1;
    if (level >= 0 || *in->at == '"' || *in->at == '\'') {
        token.kind = TEXT;
        if (level >= 0)
            take_long(in, level, &token);
        else
            take_quoted(in, &token);
        return token;
    }
    token.kind = is_letter(*in->at) ? WORD : MARK;
    do
        in->at++;
    while (token.kind == WORD && in->at < in->end && is_letter(*in->at));
    token.len = (size_t)(in->at - token.at);
    return token;
}

static bool is(const struct token *token, enum kind kind, const char *text)
{
    return token->kind == kind && token->len == strlen(text) &&
           memcmp(token->at, text, token->len) == 0;
}

static bool known(const struct token *name, const char *const *tools, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(tools[i]) == name->len && memcmp(tools[i], name->at, name->len) == 0)
            return true;
    return !name->exact;
}

/* A name of the cell's own: a local, a parameter, a field, or assigned to. */
static bool is_own(const struct token *before, const struct token *after)
{
    return is(before, WORD, "function") || is(before, WORD, "local") ||
           is(before, MARK, ".") || is(before, MARK, ":") || is(after, MARK, "=");
}

struct search {
    struct lexer in;
    int batch; /* brackets open since `call_batch`; 0: not in one */
};

/* After "call" or inside of a batch: the text that names a tool, or END. */
static struct token named_tool(struct search *search, const struct token *before,
                               const struct token *token)
{
    struct lexer ahead = search->in;
    struct token next = take(&ahead);
    struct token none = { .kind = END };
    if (search->batch > 0) {
        if (is(token, MARK, "(") || is(token, MARK, "{"))
            search->batch++;
        else if (is(token, MARK, ")") || is(token, MARK, "}"))
            search->batch--;
        if (search->batch == 1)
            search->batch = 0;
        /* ( { { "name" */
        return search->batch == 4 && is(token, MARK, "{") && next.kind == TEXT ? next
                                                                               : none;
    }
    if (token->kind != WORD || is_own(before, &next))
        return none;
    if (is(token, WORD, "call_batch"))
        search->batch = is(&next, MARK, "(") ? 1 : 2; /* without one: its bracket */
    if (!is(token, WORD, "call"))
        return none;
    if (is(&next, MARK, "("))
        next = take(&ahead);
    return next.kind == TEXT ? next : none;
}

/* True if the cell makes a `call` or `call_batch` of its own. */
static bool redefines(struct hf_span code)
{
    struct lexer in = { code.at, (const char *)code.at + code.len, 1 };
    struct token before = { .kind = END };
    for (struct token token = take(&in); token.kind != END; token = take(&in)) {
        struct lexer ahead = in;
        struct token next = take(&ahead);
        bool host = is(&token, WORD, "call") || is(&token, WORD, "call_batch");
        bool field = is(&before, MARK, ".") || is(&before, MARK, ":");
        if (host && !field && is_own(&before, &next))
            return true;
        before = token;
    }
    return false;
}

const char *hf_lua_unknown_tool(struct hf_span code, const char *const *tools,
                                size_t tool_count, struct hf_arena *arena,
                                int64_t *ret_line)
{
    struct search search = { .in = { code.at, (const char *)code.at + code.len, 1 } };
    struct token before = { .kind = END };
    if (redefines(code))
        return NULL;
    for (struct token token = take(&search.in); token.kind != END;
         token = take(&search.in)) {
        struct token name = named_tool(&search, &before, &token);
        if (name.kind == TEXT && !known(&name, tools, tool_count)) {
            *ret_line = name.line;
            return hf_arena_copy(arena, name.at, hf_utf8_cut(name.at, name.len));
        }
        before = token;
    }
    return NULL;
}
