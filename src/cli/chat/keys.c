/* Keys and signals of the chat. Both come through the loop, also while a turn runs; what is typed
 * then is kept for the next prompt (`ahead`). */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/chat.h"

#define AHEAD_BYTES_MAX (64u << 10)

/* ---- keys ----------------------------------------------------------------------------- */

void chat_leave(struct chat *chat)
{
    chat->leave = true;
    if (chat->running)
        hf_agent_stop(chat->agent, 0);
}

/* Feeds keys to the editor until one of them sends the text; the others wait. */
static void edit(struct chat *chat)
{
    size_t at = 0;
    bool changed = false;
    while (at < chat->ahead.len && !chat->sent && !chat->leave) {
        enum editor_event event = editor_feed(&chat->editor, chat->ahead.at[at++]);
        changed |= event != EDITOR_NONE;
        chat->sent = event == EDITOR_SENT;
        chat->leave = event == EDITOR_CLOSED;
        if (event == EDITOR_REDRAW)
            screen_clear(&chat->screen, &chat->editor);
    }
    if (at > 0) { /* otherwise there may be no memory yet */
        memmove(chat->ahead.at, chat->ahead.at + at, chat->ahead.len - at);
        chat->ahead.len -= at;
    }
    if (changed && !chat->sent)
        chat_prompt(chat);
    chat_flush(chat);
}

static void keys_ready(void *user, int events)
{
    struct chat *chat = user;
    char bytes[4096];
    (void)events;
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) { /* the terminal is gone */
        hf_watch_change(chat->keys, 0);
        chat->gone = true;
        chat_leave(chat);
        return;
    }
    if (chat_waits_typing(chat))
        chat_waits_keys(chat, bytes, (size_t)got);
    else if (chat->ahead.len + (size_t)got <= AHEAD_BYTES_MAX)
        hf_buf_bytes(&chat->ahead, bytes, (size_t)got);
    chat->interrupts = chat->running ? chat->interrupts : 0;
    if (chat->asking)
        edit(chat);
}

/* ---- signals -------------------------------------------------------------------------- */

/* The turn may be driven here, by another worker, or by none because it waits. */
static void cancel(struct chat *chat)
{
    const char *said = hf_agent_held(chat->agent)
                           ? "cancelling; Ctrl-C again leaves at once"
                           : "cancelling, by whichever worker has the turn; Ctrl-C again "
                             "leaves at once";
    if (!hf_agent_cancel(chat->agent))
        return; /* it has just ended */
    chat_waits_drop(chat);
    if (chat->on_screen)
        screen_status(&chat->screen, said);
    else
        chat_note(chat, false, "%s", said);
}

/* Ctrl-C: the first one cancels the turn or empties the line, the second one leaves. */
static void interrupted(struct chat *chat)
{
    if (chat_waits_interrupted(chat))
        return;
    chat->interrupts++;
    if (chat->running && chat->interrupts == 1) {
        cancel(chat);
    } else if (!chat->running && chat->editor.len > 0) {
        chat->interrupts = 0;
        editor_clear(&chat->editor);
        screen_prompt(&chat->screen, &chat->editor);
    } else if (!chat->running && chat->interrupts == 1) {
        chat_note(chat, false, "Ctrl-C again, or Ctrl-D, leaves");
        screen_prompt(&chat->screen, &chat->editor);
    } else {
        chat_leave(chat);
    }
    chat_flush(chat);
}

void chat_prompt(struct chat *chat)
{
    bool typing = chat_waits_typing(chat);
    chat->screen.mark = !typing                         ? SCREEN_MARK
                        : chat->waits.asks == ASKS_JSON ? "JSON › "
                        : chat->waits.shown.edits       ? "y, n or e › "
                                                        : "y or n › ";
    if (typing)
        screen_prompt(&chat->screen, &chat->waits.editor);
    else if (chat->asking)
        screen_prompt(&chat->screen, &chat->editor);
}

static void resized(struct chat *chat)
{
    size_t width = 0, height = 0;
    if (!chat->on_screen)
        return;
    terminal_measure(STDOUT_FILENO, &width, &height);
    screen_resize(&chat->screen, width, height);
    chat_prompt(chat);
    chat_flush(chat);
}

static void suspended(struct chat *chat)
{
    screen_prompt_end(&chat->screen);
    chat_flush(chat);
    terminal_suspend(&chat->terminal);
    resized(chat);
}

static void signal_ready(void *user, int events)
{
    struct chat *chat = user;
    int number = 0;
    (void)events;
    while ((number = terminal_next_signal(chat->signal_fd)) != 0) {
        if (number == SIGINT)
            interrupted(chat);
        else if (number == SIGWINCH)
            resized(chat);
        else if (number == SIGTSTP)
            suspended(chat);
        else if (number == SIGTERM || number == SIGHUP) {
            chat->gone |= number == SIGHUP;
            chat_leave(chat);
        }
    }
}

int chat_listen(struct chat *chat)
{
    struct hf_watcher on_signal = { chat, signal_ready };
    struct hf_watcher on_key = { chat, keys_ready };
    struct hf_err *err = &chat->cli->err;
    int rc = hf_watch_new(chat->loop, chat->signal_fd, HF_READABLE, &on_signal,
                          &chat->signals, err);
    if (rc == 0 && chat->keys_wanted)
        rc = hf_watch_new(chat->loop, STDIN_FILENO, HF_READABLE, &on_key, &chat->keys,
                          err);
    return rc;
}

void chat_ask(struct chat *chat)
{
    chat->asking = true;
    chat->sent = false;
    chat->interrupts = 0;
    chat_prompt(chat);
    edit(chat); /* what was typed meanwhile */
    while (!chat->sent && !chat->leave)
        (void)hf_loop_step(chat->loop, -1);
    chat->asking = false;
    screen_prompt_end(&chat->screen);
    chat_flush(chat);
}
