/* holdfast chat: a conversation with an agent in the terminal, or one message in a pipe. */
#include "cli/chat/chat.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/chat/glyph.h"
#include "cli/model/config.h"

#define SCRIPTED_AGENT "scripted"
#define EXIT_FAILED 11 /* as `process await` has them */
#define EXIT_CANCELLED 13

/* ---- showing -------------------------------------------------------------------------- */

hf_ms chat_now(const struct chat *chat)
{
    const struct hf_clock *clock = hf_loop_clock(chat->loop);
    return clock->mono_ms(clock->user);
}

void chat_flush(struct chat *chat)
{
    if (chat_waits_typing(chat) && chat->screen.paint.rows == 0)
        chat_prompt(chat); /* something was written in its place */
    bool written = chat->on_screen ? terminal_write(&chat->screen.out)
                                   : cli_flush(chat->cli) == 0;
    if (written || chat->gone)
        return;
    chat->gone = chat->leave = true;
    if (chat->running)
        hf_agent_stop(chat->agent, 0);
}

void chat_note(struct chat *chat, bool failed, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (chat->on_screen)
        screen_note(&chat->screen, text, failed);
    else
        chat->show->methods->note(chat->show, text);
}

void chat_complain(struct chat *chat, int code)
{
    struct cli *cli = chat->cli;
    const char *action = cli->action ? cli->action : hf_err_action(code);
    chat_note(chat, true, "%s\n%s",
              cli->err.message[0] ? cli->err.message : hf_err_text(code),
              action ? action : "");
    cli->action = NULL;
    cli->err = (struct hf_err){ 0 };
}

/* ---- opening -------------------------------------------------------------------------- */

/* --agent, the session's own, or the only one that there is. */
static int choose_agent(struct chat *chat)
{
    struct cli *cli = chat->cli;
    const char *first = chat->config ? hf_config_name(chat->config, HF_CONFIG_AGENT, 0)
                                     : SCRIPTED_AGENT;
    if (chat->agent_name)
        return 0;
    if (!first) {
        cli->action =
            "add an [agent.NAME] with a model (`holdfast config init` writes one), "
            "or try `holdfast chat --scripted`";
        return hf_fail(&cli->err, HF_EINVAL, "agent", "the configuration has no agent");
    }
    if (chat->config && hf_config_name(chat->config, HF_CONFIG_AGENT, 1)) {
        cli->action = "name one with --agent (`holdfast config check` lists them)";
        return hf_fail(&cli->err, HF_EINVAL, "agent",
                       "the configuration has several agents");
    }
    chat->agent_name = first;
    return 0;
}

/* SESSION; a fresh one for "-" and --new; otherwise the user's own with this agent, so that the
 * same command continues with the same conversation. */
static int choose_session(struct chat *chat, bool *ret_open)
{
    struct cli *cli = chat->cli;
    const char *given = cli_text(cli, "session");
    bool fresh = cli_given(cli, "new") || hf_same(given, "-");
    int rc = 0;
    chat->agent_name = cli_text(cli, "agent");
    *ret_open = false;
    if (given && !fresh) {
        chat->session_id = given;
        rc = chat_look_up(chat, ret_open);
        return rc ? rc : choose_agent(chat);
    }
    rc = choose_agent(chat);
    if (rc || fresh)
        return rc;
    struct hf_buf id;
    hf_buf_init(&id, hf_alloc_system(), 1024);
    hf_buf_text(&id, cli->who.actor);
    hf_buf_char(&id, '-');
    hf_buf_text(&id, chat->agent_name);
    chat->session_id = hf_buf_keep(&id, &cli->arena);
    return chat->session_id ? chat_look_up(chat, ret_open)
                            : hf_fail_plain(&cli->err, HF_ENOMEM);
}

/* A session that has no name yet gets one before its first message. */
static int make_session(struct chat *chat)
{
    struct cli *cli = chat->cli;
    struct hf_session_spec request = { .size = sizeof(request),
                                       .agent = chat->agent_name };
    struct hf_session_answer *answer = NULL;
    if (chat->session_id)
        return 0;
    int rc = hf_session_create(cli->store, &cli->who, &request, &answer, &cli->err);
    if (rc)
        return rc;
    chat->session_id = hf_arena_text(&cli->arena, answer->sessions[0].session_id);
    hf_session_answer_free(answer);
    return chat->session_id ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

int chat_open_agent(struct chat *chat)
{
    struct cli_agents_request request = { .names = &chat->agent_name,
                                          .count = 1,
                                          .scripted = !chat->config,
                                          .model = chat->model_name,
                                          .loop = chat->loop,
                                          .store = chat->cli->store,
                                          .user = chat,
                                          .heard = chat_heard };
    struct cli_agents *agents = NULL;
    int rc = cli_agents_open(chat->cli, &request, &agents);
    if (rc)
        return rc;
    cli_agents_close(chat->agents);
    chat->agents = agents;
    chat->agent = cli_agents_at(agents, 0);
    return 0;
}

static void say_notices(const struct chat *chat)
{
    const char *notice = NULL;
    for (size_t i = 0; (notice = cli_agents_notice(chat->agents, 0, i)); i++)
        cli_note(chat->cli, "%s", notice);
}

static int open_chat(struct chat *chat, bool *ret_open)
{
    struct cli *cli = chat->cli;
    const char *path = NULL;
    chat->signal_fd = terminal_signals(); /* before there are threads */
    if (chat->signal_fd < 0)
        return hf_fail(&cli->err, HF_EINTERNAL, NULL, "cannot receive signals: %s",
                       strerror(errno));
    chat->model_name = cli_text(cli, "model");
    int rc = cli_given(cli, "scripted") ? 0 : cli_config_read(cli, &path, &chat->config);
    if (rc == HF_ENOTFOUND)
        cli->action = "`holdfast config init` writes a configuration; `holdfast chat "
                      "--scripted` needs none";
    if (rc == 0)
        rc = cli_open_store(cli);
    if (rc == 0)
        rc = hf_loop_new(NULL, &chat->loop, &cli->err);
    if (rc == 0)
        rc = choose_session(chat, ret_open);
    if (rc == 0)
        rc = chat_open_agent(chat);
    if (rc == 0)
        rc = make_session(chat);
    if (rc == 0)
        say_notices(chat);
    return rc ? rc : chat_listen(chat);
}

static void close_chat(struct chat *chat)
{
    cli_agents_close(chat->agents);
    hf_watch_free(chat->keys);
    hf_watch_free(chat->signals);
    hf_loop_free(chat->loop);
    hf_config_free(chat->config);
    if (chat->signal_fd >= 0)
        (void)close(chat->signal_fd); /* a descriptor of the kernel's */
    hf_buf_fini(&chat->ahead);
    editor_fini(&chat->editor);
    chat_waits_fini(chat);
    screen_fini(&chat->screen);
    lines_fini(&chat->lines);
    free(chat->last_text);
}

/* ---- in a terminal -------------------------------------------------------------------- */

static void show_title(struct chat *chat)
{
    char detail[256];
    (void)snprintf(detail, sizeof(detail), "agent %.60s · model %.60s · /help",
                   chat->agent_name, cli_agents_model(chat->agents, 0));
    screen_title(&chat->screen, chat->session_id, detail);
}

/* A failure inside a conversation is shown, and the conversation continues. */
static void act(struct chat *chat, const char *line)
{
    int rc = 0;
    if (line[strspn(line, " \n\t")] == 0)
        return;
    editor_remember(&chat->editor, line);
    screen_user(&chat->screen, line);
    if (line[0] == '/') {
        rc = chat_command(chat, line);
    } else {
        free(chat->last_text);
        chat->last_text = strdup(line);
        rc = chat_run(chat, line);
    }
    if (rc)
        chat_complain(chat, rc);
    chat_flush(chat);
}

static int converse(struct chat *chat, bool open)
{
    show_title(chat);
    int rc = chat_history(chat, open);
    terminal_begin(&chat->terminal);
    if (rc == 0 && open)
        rc = chat_run(chat, NULL);
    while (rc == 0 && !chat->leave) {
        chat_ask(chat);
        char *line = chat->sent ? strdup(editor_text(&chat->editor)) : NULL;
        editor_clear(&chat->editor);
        if (line)
            act(chat, line);
        free(line);
    }
    chat_flush(chat);
    terminal_end(&chat->terminal);
    return rc;
}

/* ---- in a pipe ------------------------------------------------------------------------ */

/* Control characters are fine: what a program printed is often asked about. */
static int read_message(struct cli *cli, const char **ret_text)
{
    struct hf_span bytes = { 0 };
    int rc = cli_read_file(cli, "-", (size_t)HF_MAX_INPUT_BYTES, &bytes);
    if (rc)
        return rc;
    char *text = hf_arena_copy(&cli->arena, bytes.at, bytes.len);
    if (!text)
        return hf_fail_plain(&cli->err, HF_ENOMEM);
    if (!hf_utf8_valid(text, bytes.len) || strlen(text) != bytes.len)
        return hf_fail(&cli->err, HF_EINVAL, "message",
                       "standard input is not UTF-8 text without NUL");
    while (bytes.len && strchr(" \n\r\t", text[bytes.len - 1]))
        text[--bytes.len] = 0;
    *ret_text = text;
    return bytes.len ? 0
                     : hf_fail(&cli->err, HF_EINVAL, "message",
                               "standard input is empty: there is nothing to send");
}

static int send_one(struct chat *chat, const char *text, bool open)
{
    int rc = open ? chat_run(chat, NULL) : 0;
    if (rc == 0 && !chat->leave)
        rc = chat_run(chat, text);
    if (rc == 0 && chat->failed)
        chat->cli->exit_code = chat->cancelled ? EXIT_CANCELLED : EXIT_FAILED;
    return rc;
}

int cmd_chat(struct cli *cli)
{
    static struct chat chat; /* it is large */
    const char *term = getenv("TERM"), *text = NULL;
    bool open = false;
    bool able = isatty(STDOUT_FILENO) && !cli->json && term && *term &&
                !hf_same(term, "dumb");
    size_t width = 0, height = 0;
    chat = (struct chat){ .cli = cli, .signal_fd = -1, .on_screen = able };
    chat.keys_wanted = able && isatty(STDIN_FILENO) &&
                       !hf_same(cli_text(cli, "session"), "-");
    glyph_setup();
    terminal_measure(STDOUT_FILENO, &width, &height);
    screen_init(&chat.screen, width, height, cli->colour);
    lines_init(&chat.lines, cli);
    chat.show = able ? &chat.screen.show : &chat.lines.show;
    editor_init(&chat.editor);
    chat_waits_init(&chat);
    hf_buf_init(&chat.ahead, hf_alloc_system(), 1u << 20);
    int rc = chat.keys_wanted ? 0 : read_message(cli, &text);
    if (rc == 0)
        rc = open_chat(&chat, &open);
    if (rc == 0)
        rc = chat.keys_wanted ? converse(&chat, open) : send_one(&chat, text, open);
    close_chat(&chat);
    return rc;
}
