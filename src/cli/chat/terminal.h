/* The terminal itself: its modes, its size, its signals. The thin layer under the screen. */
#ifndef HF_CLI_CHAT_TERMINAL_H
#define HF_CLI_CHAT_TERMINAL_H

#include <termios.h>

#include <holdfast/types.h>

#include "base/buf.h"

struct terminal {
    bool raw;              /* keys come as they are pressed, and pastes are marked */
    struct termios before; /* the modes that are put back */
};

/* Columns and rows of the terminal behind a descriptor; 80 and 24 if it does not say. */
void terminal_measure(int fd, size_t *ret_width, size_t *ret_height);

/* Turns standard input and output to keys and sequences, and back. Ctrl-C and Ctrl-Z stay
 * signals. Both may be repeated. */
void terminal_begin(struct terminal *terminal);
void terminal_end(struct terminal *terminal);

/* Writes all of the buffer to standard output and empties it. False: the terminal is gone. */
HF_MUST_USE bool terminal_write(struct hf_buf *out);

/* A descriptor on which SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT and SIGWINCH arrive from now on;
 * called before there are other threads. -1: errno says why. */
int terminal_signals(void);
/* The next signal that came; 0: none. */
int terminal_next_signal(int fd);
/* Stops this process as Ctrl-Z does, and returns when it is continued. */
void terminal_suspend(struct terminal *terminal);

#endif
