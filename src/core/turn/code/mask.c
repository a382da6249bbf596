/* The stream mask: where the prose of a reply ends and its cell lies, byte by byte.
 *
 * Every line starts in doubt. It leaves doubt as soon as it can be no tag line any more; until
 * then, and while it may still become a cell on one line, none of it is shown. What lies
 * between one "<" and the next is skipped with memchr, which is nearly all of the text. What
 * the mask knows is numbers, so nothing is ever copied and nothing depends on where the chunks
 * were cut.
 *
 * `visible` is the end of the prose that may be shown; a line in doubt is not part of it. `stray`
 * is set by a line of prose that looks like a tag line and is none: a close tag, or an open tag
 * with more text after it that no close tag ends. */
#include <string.h>

#include <holdfast/code.h>

#include "base/err.h"
#include "core/turn/schema.h"

#define INDENT_MAX 256

enum phase {
    START,       /* nothing but blanks so far */
    NAME,        /* "<" and a part of a name */
    AFTER_TAG,   /* a whole tag, blanks after it */
    INLINE,      /* an open tag and more: it may end in a close tag */
    INLINE_TAIL, /* … a close tag, blanks after it */
    ORDINARY,    /* an ordinary line */
    PHASES
};

#define X(name, word) #word,
static const char *const words[] = { HF_CODE_LANGUAGES(X) };
#undef X
#define LANGUAGES (sizeof(words) / sizeof(words[0]))

const char *hf_code_language_name(enum hf_code_language language)
{
    return (size_t)language < LANGUAGES ? words[language] : "?";
}

void hf_mask_init(struct hf_mask *mask)
{
    *mask = (struct hf_mask){ .state = HF_MASK_PROSE };
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool closing(const struct hf_mask *mask)
{
    return mask->name[0] == '/';
}

/* Whether the language's name begins with what was read. */
static bool may_be(const struct hf_mask *mask, size_t language)
{
    const char *word = words[language];
    for (size_t i = closing(mask); i < mask->matched; i++)
        if (!*word || *word++ != mask->name[i]) /* a NUL in the text is no name's end */
            return false;
    return true;
}

/* One more byte of a name: on to the first language that it may still be, of which LANGUAGES
 * is none. Most names are the first one tried. */
static void narrow(struct hf_mask *mask, char c)
{
    size_t len = (size_t)mask->matched - closing(mask);
    mask->name[mask->matched++] = c; /* never full: a longer one is no name's start */
    if (closing(mask) && mask->matched == 1)
        return;
    if (c && words[mask->candidate][len] == c)
        return;
    while (mask->candidate < LANGUAGES && !may_be(mask, mask->candidate))
        mask->candidate++;
}

/* The language whose name is what was read, or LANGUAGES. */
static size_t named_language(const struct hf_mask *mask)
{
    size_t len = (size_t)mask->matched - closing(mask);
    size_t i = mask->candidate;
    while (i < LANGUAGES && (!may_be(mask, i) || words[i][len]))
        i++;
    return i;
}

/* One byte of a close tag, of which `matched` bytes are before it: how many then do. A
 * "<" is only at its start, so there is nothing to fall back to but that. */
static uint8_t match_close(const struct hf_mask *mask, char c)
{
    const char *word = words[mask->language];
    size_t len = strlen(word);
    size_t at = mask->matched;
    bool fits = at == 0         ? c == '<'
                : at == 1       ? c == '/'
                : at == len + 2 ? c == '>'
                                : c == word[at - 2];
    return fits ? (uint8_t)(at + 1) : c == '<';
}

static uint8_t close_tag_bytes(const struct hf_mask *mask)
{
    return (uint8_t)(strlen(words[mask->language]) + 3);
}

static void leave_doubt(struct hf_mask *mask)
{
    mask->phase = ORDINARY;
}

static void read_start(struct hf_mask *mask, char c)
{
    if (blank(c)) {
        if (++mask->indent > INDENT_MAX)
            leave_doubt(mask);
    } else if (c == '<') {
        mask->phase = NAME;
        mask->matched = 0;
        mask->candidate = 0;
        mask->name[0] = '\0';
    } else {
        leave_doubt(mask);
    }
}

/* In a cell only its own close tag is a tag line; in prose any tag of a known language is
 * looked at. */
static void read_name(struct hf_mask *mask, char c)
{
    if (c != '>') {
        narrow(mask, c);
        if (mask->candidate == LANGUAGES)
            leave_doubt(mask);
        return;
    }
    size_t language = named_language(mask);
    bool in_cell = mask->state == HF_MASK_OPEN;
    if (language == LANGUAGES ||
        (in_cell && (!closing(mask) || language != (size_t)mask->language))) {
        leave_doubt(mask);
        return;
    }
    mask->phase = AFTER_TAG;
    if (in_cell)
        return;
    mask->language = (enum hf_code_language)language;
    mask->code_from = mask->fed + 1;
}

static void read_inline(struct hf_mask *mask, char c)
{
    mask->matched = match_close(mask, c);
    if (mask->matched < close_tag_bytes(mask))
        return;
    mask->phase = INLINE_TAIL;
    mask->tag = mask->fed + 1 - mask->matched;
    mask->matched = 0;
}

/* A tag and something after it is a tag line no more; after an open tag it may be a cell on
 * one line. */
static void read_after_tag(struct hf_mask *mask, char c)
{
    if (blank(c))
        return;
    if (mask->state == HF_MASK_OPEN) {
        leave_doubt(mask);
    } else if (closing(mask)) {
        mask->stray = true;
        leave_doubt(mask);
    } else {
        mask->phase = INLINE;
        mask->matched = 0;
        read_inline(mask, c);
    }
}

static void read_tail(struct hf_mask *mask, char c)
{
    if (blank(c))
        return;
    mask->phase = INLINE;
    read_inline(mask, c);
}

/* A cell begins with the current line: the prose is all before it. */
static void open_cell(struct hf_mask *mask)
{
    mask->state = HF_MASK_OPEN;
    mask->visible = mask->line;
}

static void complete(struct hf_mask *mask, uint64_t code_to, uint64_t end)
{
    mask->state = HF_MASK_COMPLETE;
    mask->code_to = code_to;
    mask->end = end;
}

/* Decides what the line was that has ended. `end` is past it and its line feed, if it has one.
 *   in a cell, the cell's close tag: the cell is complete
 *   in prose, an open tag alone: opens a cell, whose source begins at `end`
 *   in prose, an open tag, source and close tag: a complete cell
 *   any other line: source of the cell; in prose it becomes visible
 * After a complete cell nothing more is read; otherwise the next line begins. */
static void end_line(struct hf_mask *mask, uint64_t end)
{
    bool in_cell = mask->state == HF_MASK_OPEN;
    if (mask->phase == AFTER_TAG && in_cell) {
        /* The newline before the close tag is the tag's, unless the source is empty. */
        bool empty = mask->line == mask->code_from;
        complete(mask, mask->line - !empty, end);
        return;
    }
    if (mask->phase == AFTER_TAG && !closing(mask)) {
        open_cell(mask);
        mask->code_from = end;
    } else if (mask->phase == INLINE_TAIL) {
        open_cell(mask);
        complete(mask, mask->tag, end);
        return;
    } else if (!in_cell) {
        mask->stray = mask->stray || mask->phase == AFTER_TAG || mask->phase == INLINE;
        mask->visible = end;
    }
    mask->line = end;
    mask->indent = 0;
    mask->phase = START;
}

static void read_byte(struct hf_mask *mask, char c)
{
    switch ((enum phase)mask->phase) {
    case START: read_start(mask, c); break;
    case NAME: read_name(mask, c); break;
    case AFTER_TAG: read_after_tag(mask, c); break;
    case INLINE: read_inline(mask, c); break;
    case INLINE_TAIL: read_tail(mask, c); break;
    case ORDINARY:
    case PHASES: break;
    }
}

/* Bytes of a chunk from which on skipping pays. */
#define SKIP_MIN 32

/* Up to the next "<", or to the end, at once: only the last line of it can still matter. At
 * the start of a line, or in an ordinary one. */
static const char *skip(struct hf_mask *mask, const char *at, const char *end)
{
    const char *stop = memchr(at, '<', (size_t)(end - at));
    stop = stop ? stop : end;
    const char *newline = memrchr(at, '\n', (size_t)(stop - at));
    if (newline) {
        mask->phase = START;
        mask->indent = 0;
        mask->fed += (uint64_t)(newline + 1 - at);
        mask->line = mask->fed;
        at = newline + 1;
    }
    if (mask->state == HF_MASK_PROSE && newline)
        mask->visible = mask->line;
    for (; at < stop && mask->phase == START; at++, mask->fed++)
        read_start(mask, *at);
    mask->fed += (uint64_t)(stop - at);
    return stop;
}

bool hf_mask_feed(struct hf_mask *mask, const void *bytes, size_t len)
{
    const char *at = bytes;
    const char *end = at + len;
    while (at < end && mask->state != HF_MASK_COMPLETE) {
        if (end - at >= SKIP_MIN && (mask->phase == START || mask->phase == ORDINARY)) {
            at = skip(mask, at, end);
            if (at == end)
                break;
        }
        if (*at == '\n')
            end_line(mask, mask->fed + 1);
        else if (mask->phase != ORDINARY)
            read_byte(mask, *at);
        mask->fed++;
        at++;
    }
    if (mask->state == HF_MASK_PROSE && mask->phase == ORDINARY)
        mask->visible = mask->fed;
    return mask->state == HF_MASK_COMPLETE;
}

void hf_mask_end(struct hf_mask *mask)
{
    if (mask->state != HF_MASK_COMPLETE && mask->fed > mask->line)
        end_line(mask, mask->fed);
    if (mask->state == HF_MASK_OPEN)
        mask->code_to = mask->fed;
}
