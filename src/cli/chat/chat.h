/* holdfast chat: what its files share.
 *
 * One thread and one loop. At the prompt the loop is stepped until a line was sent; a message is
 * then run by hf_agent_run, which steps the same loop, so that keys and signals are heard at all
 * times. Text that is typed while a turn runs is kept for the next prompt.
 */
#ifndef HF_CLI_CHAT_CHAT_H
#define HF_CLI_CHAT_CHAT_H

#include <holdfast/agent.h>
#include <holdfast/config.h>

#include "cli/chat/lines.h"
#include "cli/chat/screen.h"
#include "cli/chat/terminal.h"
#include "cli/cli.h"
#include "cli/model/agent.h"

#define CHAT_ATTACHED_MAX 8
#define CHAT_TOOLS_MAX 64 /* calls whose arguments are remembered until they end */

/* A tool call of the turn. */
struct chat_tool {
    char *call_id; /* NULL: the place is free */
    char *tool;
    char *args;
    hf_ms began;
    bool ended; /* kept, so that it is known to have been shown */
};

/* The purpose of the prompt of a question. */
enum chat_asks {
    ASKS_NOTHING, /* there is none */
    ASKS_SOON,    /* it was shown a moment ago: keys were not meant for it */
    ASKS_WORD,    /* yes, no, or another way to answer */
    ASKS_JSON     /* arguments, or a result */
};

#define CHAT_TOLD_MAX 16

/* A question that was told. */
struct chat_told {
    char wait_id[HF_WAIT_ID_TEXT]; /* "": the place is free */
    enum show_ask ask;
    char tool[80];
};

/* The waits of the turn. */
struct chat_waits {
    struct hf_timer timer;
    bool looking; /* for open waits, on the executor */
    bool wanted;  /* again at once */
    uint32_t bell;
    hf_ms looked_at;
    struct hf_wait_answer *found;
    int code;
    struct chat_told told[CHAT_TOLD_MAX];
    enum chat_asks asks;
    hf_ms asked_at;
    struct hf_arena arena; /* the question that is on the screen */
    struct show_wait shown;
    struct editor editor; /* its answer */
};

struct chat {
    struct cli *cli;
    const char *session_id; /* NULL: a fresh one, made with the first message */
    const char *agent_name;
    const char *model_name;   /* of /model or --model; NULL: the agent's own */
    struct hf_config *config; /* NULL: scripted */
    struct hf_loop *loop;
    struct cli_agents *agents;
    struct hf_agent *agent;

    struct show *show; /* the form: screen or lines */
    struct screen screen;
    struct lines lines;
    bool on_screen;
    struct terminal terminal;
    bool keys_wanted;      /* there is a prompt */
    struct hf_watch *keys; /* NULL: none */
    struct hf_watch *signals;
    int signal_fd;

    struct editor editor;
    bool asking;         /* the prompt is on the screen */
    bool sent;           /* the editor's text is complete */
    struct hf_buf ahead; /* keys that came while a turn ran */

    bool running;    /* a turn */
    int interrupts;  /* Ctrl-C since the turn or the prompt began */
    bool leave;      /* the conversation is over */
    bool gone;       /* and so is the terminal */
    bool text_shown; /* text of the last model call was shown */
    bool failed;     /* the last turn has no answer */
    bool cancelled;  /* because it was cancelled */
    hf_ms began;     /* the wait for a model */
    struct hf_timer tick;
    struct chat_tool tools[CHAT_TOOLS_MAX];
    struct chat_waits waits;
    char *last_text; /* the last message of the user, for /retry; NULL: none */
    const char *attached[CHAT_ATTACHED_MAX]; /* files of the next message */
    size_t attached_count;
    bool files_sent; /* with an earlier message */
};

/* ---- chat.c ------------------------------------------------------------------------- */

/* Writes what is to be shown. A terminal that is gone ends the conversation. */
void chat_flush(struct chat *chat);
/* A remark; `failed`: in red. Formatted text is cut at 1 KiB. */
void chat_note(struct chat *chat, bool failed, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A failure of a call, with what to do about it. The conversation continues. */
void chat_complain(struct chat *chat, int code);
hf_ms chat_now(const struct chat *chat);
/* Opens the agent again, with the model that is named now. */
HF_MUST_USE int chat_open_agent(struct chat *chat);

/* ---- keys.c: the keyboard and signals ------------------------------------------------ */

/* Begins to listen to keys and signals in the loop. */
HF_MUST_USE int chat_listen(struct chat *chat);
/* Shows the prompt that is there, if any: of the conversation or of a question. */
void chat_prompt(struct chat *chat);
/* The conversation is over; a turn continues without this process. */
void chat_leave(struct chat *chat);
/* Shows the prompt and returns when a text was sent, or the conversation is over. */
void chat_ask(struct chat *chat);

/* ---- turn.c: one message and its turn ------------------------------------------------ */

/* Sends a text, or what the session has still to do if it is NULL, and shows the turn. */
HF_MUST_USE int chat_run(struct chat *chat, const char *text);
/* Receives the events of the agent while it runs. `user` is the chat. */
void chat_heard(void *user, const struct hf_worker_event *event);

/* ---- waits.c: questions of the turn ---------------------------------------------------- */

void chat_waits_init(struct chat *chat);
void chat_waits_fini(struct chat *chat);
/* While a turn runs its open waits are looked for. Those that can be answered here are asked, one
 * at a time; others are told with the command that answers them. `look`: there may be one now. */
void chat_waits_begin(struct chat *chat, bool look);
void chat_waits_end(struct chat *chat);
/* A wait was opened. */
void chat_waits_look(struct chat *chat);
/* The turn continues, or has ended: tells how what was asked was answered. */
void chat_waits_refresh(struct chat *chat);
/* Takes the question off: it is not asked again. */
void chat_waits_drop(struct chat *chat);
/* Whether the answer to a question is being typed. */
bool chat_waits_typing(const struct chat *chat);
void chat_waits_keys(struct chat *chat, const char *bytes, size_t len);
/* Ctrl-C: whether it only took back what was typed. */
bool chat_waits_interrupted(struct chat *chat);

/* ---- commands.c: /help and the others ------------------------------------------------- */

/* Does what a line that begins with a slash says. */
HF_MUST_USE int chat_command(struct chat *chat, const char *line);

/* ---- history.c ----------------------------------------------------------------------- */

/* Finds the session's agent. *ret_open: it has something to do. A session that is not there yet is
 * fine. HF_EINVAL: it belongs to another agent than the one that was asked for. */
HF_MUST_USE int chat_look_up(struct chat *chat, bool *ret_open);
/* Shows what was said last. `open`: with what was sent and has not begun. */
HF_MUST_USE int chat_history(struct chat *chat, bool open);

#endif
