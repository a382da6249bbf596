/* A terminal for tests: bytes go in, rows of text come out.
 *
 * It knows what the programs under test may send and nothing more: printable characters, CR, LF,
 * moving, erasing, colours, and the modes of cursor and paste. Any other control sequence is
 * counted in `strange`, so a test can claim that none came. */
#ifndef TESTS_SUPPORT_VT_H
#define TESTS_SUPPORT_VT_H

#include <stddef.h>

#define VT_ROWS_MAX 160
#define VT_COLUMNS_MAX 240

struct vt {
    size_t width;
    size_t height;
    size_t top; /* the first row of the screen; those above have scrolled away */
    size_t row;
    size_t column;
    size_t wrapped; /* rows that the terminal itself broke */
    size_t strange; /* sequences and characters that it does not know */
    char cells[VT_ROWS_MAX][VT_COLUMNS_MAX][24];
    char text[VT_ROWS_MAX * 8];
};

struct vt *vt_new(size_t width, size_t height);
void vt_free(struct vt *vt);
void vt_feed(struct vt *vt, const char *bytes, size_t len);
/* A row from the first one that was ever written, without the spaces at its end; until the next
 * call. */
const char *vt_row(struct vt *vt, size_t row);
/* All rows up to the last one with text, each with a line feed; the caller frees it. */
char *vt_text(struct vt *vt);

#endif
