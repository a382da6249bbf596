/* The system calls of a terminal: its size, its modes, its signals, and writing to it (contracts:
 * terminal.h). */
#include "cli/chat/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

void terminal_measure(int fd, size_t *ret_width, size_t *ret_height)
{
    struct winsize size = { 0 };
    (void)ioctl(fd, TIOCGWINSZ, &size); /* it stays 0, then */
    *ret_width = size.ws_col > 1 ? size.ws_col : 80;
    *ret_height = size.ws_row > 1 ? size.ws_row : 24;
}

static void put(const char *text)
{
    struct hf_buf out;
    hf_buf_init(&out, hf_alloc_system(), 64);
    hf_buf_text(&out, text);
    if (!terminal_write(&out))
        hf_buf_reset(&out); /* the next write notices too that it is gone */
    hf_buf_fini(&out);
}

void terminal_begin(struct terminal *terminal)
{
    if (terminal->raw || tcgetattr(STDIN_FILENO, &terminal->before))
        return;
    struct termios raw = terminal->before;
    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    terminal->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    put("\x1b[?2004h");
}

void terminal_end(struct terminal *terminal)
{
    if (!terminal->raw)
        return;
    put("\x1b[?2004l");
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before); /* or it is gone */
    terminal->raw = false;
}

bool terminal_write(struct hf_buf *out)
{
    struct pollfd ready = { .fd = STDOUT_FILENO, .events = POLLOUT };
    size_t at = 0;
    while (at < out->len) {
        ssize_t wrote = write(STDOUT_FILENO, out->at + at, out->len - at);
        if (wrote >= 0)
            at += (size_t)wrote;
        else if (errno == EAGAIN)
            (void)poll(&ready, 1, -1); /* the terminal was left in that mode by another */
        else if (errno != EINTR)
            return false;
    }
    hf_buf_reset(out);
    return true;
}

int terminal_signals(void)
{
    static const int told[] = { SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH };
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        sigaddset(&set, told[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int terminal_next_signal(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo
                                                                  : 0;
}

void terminal_suspend(struct terminal *terminal)
{
    terminal_end(terminal);
    (void)kill(getpid(), SIGSTOP); /* a signal to ourselves is always allowed */
    terminal_begin(terminal);
}
