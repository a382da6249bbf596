/* A conversation on a terminal: blocks of text from top to bottom, and below them either the
 * line editor or one line that shows the current activity.
 *
 * It is pure: what is to be written to the terminal is in `out`. Nothing that has scrolled away
 * is ever touched; only the last rows are (the editor, the status, the current line of text).
 */
#ifndef HF_CLI_CHAT_SCREEN_H
#define HF_CLI_CHAT_SCREEN_H

#include "cli/chat/flow.h"
#include "cli/chat/paint.h"
#include "cli/chat/show.h"

#define SCREEN_MARK "› " /* of the usual prompt */

/* The kind of block that was written last; a blank line is between two blocks, except between
 * tools. */
enum screen_block { BLOCK_NONE, BLOCK_TEXT, BLOCK_TOOL, BLOCK_NOTE };

struct screen {
    struct show show;
    struct hf_buf out;
    size_t width;
    size_t height;
    bool colour;
    enum screen_block last;
    bool gap; /* the blank line after it was written */
    struct flow flow;
    bool streaming; /* the flow has the current block */
    struct paint paint;
    const char *mark;      /* what the editor is shown behind */
    size_t status_columns; /* of the line that is shown; 0: none */
    struct hf_buf status;  /* its text, to be shown again; "": none */
};

void screen_init(struct screen *screen, size_t width, size_t height, bool colour);
void screen_fini(struct screen *screen);
void screen_resize(struct screen *screen, size_t width, size_t height);

/* The first lines: what this is. `detail` is dim. */
void screen_title(struct screen *screen, const char *title, const char *detail);
/* A message of the user, whole. */
void screen_user(struct screen *screen, const char *text);
/* An answer, whole. */
void screen_answer(struct screen *screen, struct hf_span text);
/* A remark, dim or in red. It may have several lines. */
void screen_note(struct screen *screen, const char *text, bool failed);

/* One dim line that is replaced by what comes next; NULL: none. Ignored while text streams. */
void screen_status(struct screen *screen, const char *text);

/* Shows the editor as it is now behind the mark, or takes it off the screen. */
void screen_prompt(struct screen *screen, const struct editor *editor);
void screen_prompt_end(struct screen *screen);
/* An empty screen with the editor on its first row. */
void screen_clear(struct screen *screen, const struct editor *editor);

/* "12.3k tokens in · 34 out · 1.5s" */
void screen_usage(const struct hf_usage *usage, hf_ms ms, char *out, size_t room);

#endif
