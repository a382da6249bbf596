/* Reading characters of untrusted text (contracts: glyph.h): UTF-8 is decoded, and what a terminal
 * would obey, or what makes a text look like another one, is replaced. */
#include "cli/chat/glyph.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

void glyph_setup(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        (void)setlocale(LC_CTYPE, ""); /* widths are those of the user's locale */
}

static uint32_t decode(const unsigned char *at, size_t len)
{
    static const unsigned char first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = at[0] & first[len];
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (at[i] & 0x3f);
    return code;
}

/* Marks that change the order in which characters are shown, and tags that are never shown:
 * with them a text looks like another text. */
static bool deceives(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           (code >= 0xe0000 && code <= 0xe007f);
}

static void set(struct glyph *glyph, const char *bytes, size_t len, size_t columns)
{
    memcpy(glyph->bytes, bytes, len);
    glyph->bytes[len] = 0;
    glyph->len = len;
    glyph->columns = columns;
}

/* Control pictures: U+2400 to U+2421. */
static void set_picture(struct glyph *glyph, unsigned char control)
{
    char bytes[] = "\xe2\x90\x80";
    bytes[2] = (char)(0x80 + (control == 0x7f ? 0x21 : control));
    set(glyph, bytes, 3, 1);
}

static size_t columns_of(uint32_t code)
{
    int columns = code < 0x80 ? 1 : wcwidth((wchar_t)code);
    if (columns < 0) /* not known to the library: emoji that are newer than it are wide */
        columns = code >= 0x1f000 && code < 0x1fb00 ? 2 : 1;
    return (size_t)columns;
}

/* Whether more bytes can make a character of those at the end of a text. */
static bool may_grow(const unsigned char *at, size_t len)
{
    size_t need = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || len >= need)
        return false;
    for (size_t i = 1; i < len; i++)
        if ((at[i] & 0xc0) != 0x80)
            return false;
    return true;
}

size_t glyph_read(const char *at, size_t len, struct glyph *ret_glyph)
{
    size_t used = hf_utf8_next(at, len);
    if (used == 0) {
        if (may_grow((const unsigned char *)at, len))
            return 0;
        set(ret_glyph, "\xef\xbf\xbd", 3, 1);
        return 1;
    }
    uint32_t code = decode((const unsigned char *)at, used);
    if (code == '\n' || code == '\t')
        set(ret_glyph, at, 1, 0);
    else if (code == '\r')
        set(ret_glyph, "", 0, 0);
    else if (code < 0x20 || code == 0x7f)
        set_picture(ret_glyph, (unsigned char)code);
    else if (code == 0x2028 || code == 0x2029)
        set(ret_glyph, "\n", 1, 0);
    else if ((code >= 0x80 && code < 0xa0) || deceives(code))
        set(ret_glyph, "\xef\xbf\xbd", 3, 1);
    else
        set(ret_glyph, at, used, columns_of(code));
    return used;
}

size_t glyph_columns(const char *text, size_t len)
{
    struct glyph glyph;
    size_t columns = 0;
    while (len) {
        size_t used = glyph_read(text, len, &glyph);
        if (used == 0)
            return columns + 1;
        columns += *glyph.bytes == '\n' || *glyph.bytes == '\t' ? 1 : glyph.columns;
        text += used;
        len -= used;
    }
    return columns;
}
