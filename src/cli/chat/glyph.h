/* Characters of untrusted text, made harmless, and the columns that they take.
 *
 * Text of models, tools and users may contain anything. A terminal obeys control characters,
 * so none is ever passed on: each is replaced by a character that shows what it was.
 */
#ifndef HF_CLI_CHAT_GLYPH_H
#define HF_CLI_CHAT_GLYPH_H

#include <holdfast/types.h>

/* One character that may be written to a terminal. A line feed and a tab are passed on as they
 * are, with no columns: what they do is decided where the text is laid out. */
struct glyph {
    char bytes[5]; /* UTF-8, NUL-terminated; "" for one that is left out */
    size_t len;
    size_t columns; /* 0 for a combining mark */
};

/* Makes widths known: the character type of the process becomes UTF-8. Called once, before
 * there are threads. Without it every character counts as one column. */
void glyph_setup(void);

/* Reads the character at `at`. Returns the bytes that it took; 0 if the text ends inside a
 * character that is well formed so far. */
size_t glyph_read(const char *at, size_t len, struct glyph *ret_glyph);

/* The columns of a text on one line. A control character takes one column. */
size_t glyph_columns(const char *text, size_t len);

#endif
