/* A reader of a subset of TOML, for configuration files (docs/configuration.md lists what is left
 * out). The text becomes tables of pairs in an arena; errors name the line. */
#include "base/toml.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

#define NUMBER_BYTES 64

/* A reader. `failed` keeps the first failure; at the end of the text peek() is -1. */
struct toml {
    const unsigned char *at;
    const unsigned char *end;
    int line;
    int items;
    int failed;
    struct hf_arena *arena;
    struct hf_err *err;
    struct hf_toml_table *tables;
    struct hf_toml_table *table; /* the one that pairs go to */
    struct hf_toml_pair **tail;  /* where its next pair goes */
};

const char *hf_toml_type_name(enum hf_toml_type type)
{
    static const char *const names[] = { "a string", "an integer", "a decimal number",
                                         "true or false", "an array" };
    return names[type];
}

static int peek(const struct toml *toml)
{
    return toml->at < toml->end ? *toml->at : -1;
}

static int peek_after(const struct toml *toml, size_t n)
{
    return (size_t)(toml->end - toml->at) > n ? toml->at[n] : -1;
}

static bool fail(struct toml *toml, const char *what)
{
    if (!toml->failed)
        toml->failed = hf_fail(toml->err, HF_EINVAL, "config", "line %d: %s", toml->line,
                               what);
    return false;
}

static bool no_memory(struct toml *toml)
{
    if (!toml->failed)
        toml->failed = hf_fail_plain(toml->err, HF_ENOMEM);
    return false;
}

static bool count_item(struct toml *toml)
{
    if (toml->items++ < HF_TOML_ITEMS_MAX)
        return true;
    if (!toml->failed)
        toml->failed = hf_fail(toml->err, HF_ETOOBIG, "config",
                               "line %d: a configuration has at most %d entries",
                               toml->line, HF_TOML_ITEMS_MAX);
    return false;
}

static bool take(struct toml *toml, int c)
{
    if (peek(toml) != c)
        return false;
    toml->at++;
    return true;
}

static void skip_blanks(struct toml *toml)
{
    while (peek(toml) == ' ' || peek(toml) == '\t')
        toml->at++;
}

static bool at_line_end(const struct toml *toml)
{
    int c = peek(toml);
    return c == -1 || c == '\n' || (c == '\r' && peek_after(toml, 1) == '\n');
}

static bool is_control(int c)
{
    return (c < ' ' && c != '\t') || c == 0x7f;
}

static bool skip_comment(struct toml *toml)
{
    if (!take(toml, '#'))
        return true;
    while (!at_line_end(toml)) {
        if (is_control(*toml->at))
            return fail(toml, "a comment contains a control character");
        toml->at++;
    }
    return true;
}

/* Past blanks, a comment and the end of the line. */
static bool end_line(struct toml *toml)
{
    skip_blanks(toml);
    if (!skip_comment(toml))
        return false;
    if (!at_line_end(toml))
        return fail(toml, "text follows a complete entry; write it on its own line");
    (void)take(toml, '\r');
    if (take(toml, '\n'))
        toml->line++;
    return true;
}

/* Past everything that may be between the items of an array. */
static bool skip_space(struct toml *toml)
{
    for (;;) {
        skip_blanks(toml);
        if (peek(toml) != '#' && (!at_line_end(toml) || peek(toml) == -1))
            return true;
        if (!end_line(toml))
            return false;
    }
}

/* ---- strings and numbers ------------------------------------------------------------ */

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t put_utf8(char *out, uint32_t rune)
{
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    size_t len = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = len - 1; i > 0; i--, rune >>= 6)
        out[i] = (char)(0x80 | (rune & 0x3f));
    out[0] = (char)(marks[len] | rune);
    return len;
}

/* \uXXXX or \UXXXXXXXX, behind its letter. */
static bool read_rune(struct toml *toml, int digits, char *out, size_t *used)
{
    uint32_t rune = 0;
    for (int i = 0; i < digits; i++) {
        int digit = hex_digit(peek(toml));
        if (digit < 0)
            return fail(toml, "\\u has 4 hexadecimal digits and \\U has 8");
        rune = rune << 4 | (uint32_t)digit;
        toml->at++;
    }
    if (rune == 0 || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
        return fail(toml, "\\u and \\U name a Unicode character other than U+0000");
    *used += put_utf8(out + *used, rune);
    return true;
}

static bool read_escape(struct toml *toml, char *out, size_t *used)
{
    static const char letters[] = "btnfr\"\\";
    static const char meanings[] = "\b\t\n\f\r\"\\";
    int c = peek(toml);
    const char *letter = c > 0 ? strchr(letters, c) : NULL;
    toml->at += c != -1;
    if (letter) {
        out[(*used)++] = meanings[letter - letters];
        return true;
    }
    if (c == 'u' || c == 'U')
        return read_rune(toml, c == 'u' ? 4 : 8, out, used);
    return fail(toml, "after a backslash comes one of b t n f r \" \\ u U; a string "
                      "in single quotes has no escapes");
}

/* Bytes that the string can have at most: an escape is longer than what it means. */
static size_t string_room(const struct toml *toml, int quote)
{
    const unsigned char *at = toml->at;
    while (at < toml->end && *at != quote && *at != '\n')
        at += *at == '\\' && quote == '"' && toml->end - at > 1 ? 2 : 1;
    return (size_t)(at - toml->at) + 1;
}

/* "…" or '…'. */
static const char *read_string(struct toml *toml)
{
    int quote = *toml->at++;
    if (peek(toml) == quote && peek_after(toml, 1) == quote) {
        (void)fail(toml, "strings of several lines are not supported; use \\n");
        return NULL;
    }
    char *out = hf_arena_room(toml->arena, string_room(toml, quote), 1);
    size_t used = 0;
    if (!out) {
        (void)no_memory(toml);
        return NULL;
    }
    while (!take(toml, quote)) {
        int c = peek(toml);
        if (at_line_end(toml))
            (void)fail(toml, "a string has no end on its line");
        else if (is_control(c))
            (void)fail(toml, "a string contains a control character; use an escape");
        if (toml->failed)
            return NULL;
        toml->at++;
        if (c != '\\' || quote == '\'')
            out[used++] = (char)c;
        else if (!read_escape(toml, out, &used))
            return NULL;
    }
    out[used] = '\0';
    return out;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* One or more digits, with single underscores between them. */
static bool copy_digits(const char **at, char **out)
{
    if (!is_digit(**at))
        return false;
    while (is_digit(**at) || (**at == '_' && is_digit((*at)[1]))) {
        if (**at != '_')
            *(*out)++ = **at;
        ++*at;
    }
    return true;
}

/* The JSON of a number in TOML's decimal form. False when the word is no such number. */
static bool copy_number(const char *at, char *out, bool *ret_float)
{
    *ret_float = false;
    if (*at == '-')
        *out++ = '-';
    at += *at == '-' || *at == '+';
    if (*at == '0' && at[1] != '\0' && at[1] != '.' && (at[1] | 0x20) != 'e')
        return false;
    if (!copy_digits(&at, &out))
        return false;
    if (*at == '.') {
        *ret_float = true;
        *out++ = *at++;
        if (!copy_digits(&at, &out))
            return false;
    }
    if ((*at | 0x20) == 'e') {
        *ret_float = true;
        *out++ = *at++;
        if (*at == '-' || *at == '+')
            *out++ = *at++;
        if (!copy_digits(&at, &out))
            return false;
    }
    *out = '\0';
    return *at == '\0';
}

static bool is_bare(int c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '-';
}

/* A number, true or false. */
static bool read_word(struct toml *toml, struct hf_toml_value *value)
{
    char word[NUMBER_BYTES];
    size_t len = 0;
    bool decimal = false;
    while (is_bare(peek(toml)) || peek(toml) == '+' || peek(toml) == '.') {
        if (len + 1 == sizeof(word))
            return fail(toml, "a value without quotes is too long");
        word[len++] = (char)*toml->at++;
    }
    word[len] = '\0';
    if (hf_same(word, "true") || hf_same(word, "false")) {
        *value = (struct hf_toml_value){ .type = HF_TOML_BOOLEAN,
                                         .integer = word[0] == 't' };
    } else {
        char number[NUMBER_BYTES];
        if (!copy_number(word, number, &decimal))
            return fail(toml, "a value is a \"string\", a decimal number, true, false or "
                              "an [array]");
        value->type = decimal ? HF_TOML_FLOAT : HF_TOML_INTEGER;
        if (!decimal &&
            hf_parse_i64(number, INT64_MIN, INT64_MAX, "config", &value->integer, NULL))
            return fail(toml, "an integer has at most 64 bits");
        memcpy(word, number, sizeof(word));
    }
    value->text = hf_arena_text(toml->arena, word);
    return value->text ? true : no_memory(toml);
}

static bool read_scalar(struct toml *toml, struct hf_toml_value *value)
{
    int c = peek(toml);
    int line = toml->line;
    if (c == '{')
        return fail(toml, "inline tables are not supported; write a [table]");
    if (c == '[')
        return fail(toml, "an array cannot contain another array");
    if (c == '"' || c == '\'') {
        value->type = HF_TOML_STRING;
        value->text = read_string(toml);
    } else {
        (void)read_word(toml, value);
    }
    value->line = line;
    return !toml->failed;
}

static bool read_array(struct toml *toml, struct hf_toml_value *value)
{
    const struct hf_toml_value **tail = &value->items;
    value->type = HF_TOML_ARRAY;
    value->line = toml->line;
    toml->at++;
    for (;;) {
        if (!skip_space(toml))
            return false;
        if (take(toml, ']'))
            return true;
        if (!count_item(toml))
            return false;
        struct hf_toml_value *item = hf_arena_take(toml->arena, sizeof(*item));
        if (!item)
            return no_memory(toml);
        if (!read_scalar(toml, item) || !skip_space(toml))
            return false;
        *tail = item;
        tail = &item->next;
        if (!take(toml, ',') && peek(toml) != ']')
            return fail(toml,
                        "the items of an array are separated by commas and end in ]");
    }
}

/* ---- tables and pairs --------------------------------------------------------------- */

/* A bare or quoted key; NULL after a failure. */
static const char *read_key(struct toml *toml)
{
    if (peek(toml) == '"' || peek(toml) == '\'')
        return read_string(toml);
    const unsigned char *start = toml->at;
    while (is_bare(peek(toml)))
        toml->at++;
    if (toml->at == start) {
        (void)fail(toml, "a key is expected: letters, digits, - and _, or a \"string\"");
        return NULL;
    }
    const char *key = hf_arena_copy(toml->arena, start, (size_t)(toml->at - start));
    if (!key)
        (void)no_memory(toml);
    return key;
}

static bool is_same_table(const struct hf_toml_table *a, const struct hf_toml_table *b)
{
    if (a->depth != b->depth)
        return false;
    for (int i = 0; i < a->depth; i++)
        if (!hf_same(a->path[i], b->path[i]))
            return false;
    return true;
}

static const struct hf_toml_pair *find_pair(const struct hf_toml_table *table,
                                            const char *key)
{
    const struct hf_toml_pair *pair = table->pairs;
    while (pair && !hf_same(pair->key, key))
        pair = pair->next;
    return pair;
}

/* Is table.key the name of a table, or the first part of one? */
static bool names_table(const struct toml *toml, const struct hf_toml_table *table,
                        const char *key)
{
    for (const struct hf_toml_table *t = toml->tables; t; t = t->next) {
        struct hf_toml_table front = *t;
        front.depth = table->depth;
        if (t->depth > table->depth && is_same_table(&front, table) &&
            hf_same(t->path[table->depth], key))
            return true;
    }
    return false;
}

/* Is a part of the table's name a key that has a value already? */
static bool names_pair(const struct toml *toml, const struct hf_toml_table *table)
{
    for (const struct hf_toml_table *t = toml->tables; t; t = t->next) {
        struct hf_toml_table front = *table;
        front.depth = t->depth;
        if (table->depth > t->depth && is_same_table(&front, t) &&
            find_pair(t, table->path[t->depth]))
            return true;
    }
    return false;
}

static bool add_table(struct toml *toml, const struct hf_toml_table *given)
{
    struct hf_toml_table **tail = &toml->tables;
    for (; *tail; tail = &(*tail)->next)
        if (is_same_table(*tail, given))
            return fail(toml, "this table is in the file twice");
    if (names_pair(toml, given))
        return fail(toml, "this name is a key with a value, and cannot be a table");
    *tail = hf_arena_dup(toml->arena, given, sizeof(*given));
    if (!*tail)
        return no_memory(toml);
    toml->table = *tail;
    toml->tail = &toml->table->pairs;
    return true;
}

static bool read_header(struct toml *toml)
{
    struct hf_toml_table table = { .line = toml->line };
    toml->at++;
    if (peek(toml) == '[')
        return fail(toml, "arrays of tables are not supported; write [KIND.NAME]");
    do {
        skip_blanks(toml);
        if (table.depth == HF_TOML_DEPTH)
            return fail(toml, "the name of a table has at most two parts: [KIND.NAME]");
        table.path[table.depth] = read_key(toml);
        if (!table.path[table.depth++])
            return false;
        skip_blanks(toml);
    } while (take(toml, '.'));
    if (!take(toml, ']'))
        return fail(toml, "the name of a table ends in ]");
    return count_item(toml) && add_table(toml, &table) && end_line(toml);
}

static bool read_pair(struct toml *toml)
{
    struct hf_toml_pair pair = { .key = read_key(toml) };
    if (!pair.key)
        return false;
    skip_blanks(toml);
    if (peek(toml) == '.')
        return fail(toml, "dotted keys are not supported; write a [table]");
    if (!take(toml, '='))
        return fail(toml, "a key is followed by = and its value");
    if (find_pair(toml->table, pair.key))
        return fail(toml, "this key is in its table twice");
    if (names_table(toml, toml->table, pair.key))
        return fail(toml, "this key is a table, and cannot have a value");
    skip_blanks(toml);
    bool read = peek(toml) == '[' ? read_array(toml, &pair.value)
                                  : read_scalar(toml, &pair.value);
    if (!read || !count_item(toml))
        return false;
    *toml->tail = hf_arena_dup(toml->arena, &pair, sizeof(pair));
    if (!*toml->tail)
        return no_memory(toml);
    toml->tail = &(*toml->tail)->next;
    return end_line(toml);
}

int hf_toml_read(struct hf_arena *arena, struct hf_span text,
                 const struct hf_toml_table **ret_tables, struct hf_err *err)
{
    static const struct hf_toml_table top = { .line = 1 };
    struct toml toml = { .at = text.at, .line = 1, .arena = arena, .err = err };
    toml.end = toml.at ? toml.at + text.len : NULL;
    if (!hf_utf8_valid(text.at, text.len))
        return hf_fail(err, HF_EINVAL, "config", "the configuration is not UTF-8");
    (void)add_table(&toml, &top);
    while (!toml.failed && toml.at < toml.end) {
        skip_blanks(&toml);
        if (peek(&toml) == '[')
            (void)read_header(&toml);
        else if (at_line_end(&toml) || peek(&toml) == '#')
            (void)end_line(&toml);
        else
            (void)read_pair(&toml);
    }
    *ret_tables = toml.failed ? NULL : toml.tables;
    return toml.failed;
}
