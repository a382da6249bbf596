/* The line editor on the screen: its rows, broken at the width, and the cursor in them.
 *
 * It is pure. The last painting is stored, so that the next painting can begin at its first
 * row and overwrite it. A text with more rows than the screen is shown in part, around the
 * cursor.
 */
#ifndef HF_CLI_CHAT_PAINT_H
#define HF_CLI_CHAT_PAINT_H

#include "cli/chat/editor.h"

struct paint {
    size_t rows;       /* on the screen; 0: none */
    size_t cursor_row; /* where the cursor is, from the first of them */
    size_t cursor_column;
    size_t *columns; /* of each of them */
    size_t room;
};

/* How it looks. */
struct paint_style {
    size_t width; /* of the terminal */
    size_t height;
    const char *mark; /* what the first row begins with */
    size_t mark_columns;
    const char *mark_colour; /* escape sequences, or "" */
    const char *plain;
};

void paint_fini(struct paint *paint);

/* Shows the editor where it was painted before, otherwise from the cursor's row on, which is
 * empty. */
void paint_draw(struct paint *paint, struct hf_buf *out, const struct editor *editor,
                const struct paint_style *style);
/* Takes what was painted off the screen; the cursor is at the start of an empty row. A terminal
 * whose width has changed since is assumed to have broken the rows that were too long. */
void paint_erase(struct paint *paint, struct hf_buf *out, size_t width);

#endif
