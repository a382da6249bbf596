/* The commands of the chat: lines that begin with a slash, such as /model. They change the
 * conversation on this side, and are never sent to the agent. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/near.h"
#include "base/text.h"
#include "cli/chat/chat.h"

static int help(struct chat *chat, const char *rest);

static int quit(struct chat *chat, const char *rest)
{
    (void)rest;
    chat->leave = true;
    return 0;
}

static int retry(struct chat *chat, const char *rest)
{
    (void)rest;
    if (!chat->last_text) {
        chat_note(chat, false, "there is no message to send again");
        return 0;
    }
    screen_user(&chat->screen, chat->last_text);
    return chat_run(chat, chat->last_text);
}

/* ---- /model --------------------------------------------------------------------------- */

static void list_models(struct chat *chat)
{
    struct hf_buf names;
    const char *name = NULL;
    hf_buf_init(&names, hf_alloc_system(), 4096);
    for (size_t i = 0; (name = hf_config_name(chat->config, HF_CONFIG_MODEL, i)); i++) {
        hf_buf_text(&names, i ? ", " : "");
        hf_buf_text(&names, name);
    }
    chat_note(chat, false, "model %.100s; there %s %s", cli_agents_model(chat->agents, 0),
              strchr(hf_buf_str(&names), ',') ? "are" : "is", hf_buf_str(&names));
    hf_buf_fini(&names);
}

/* The agent with another model, from the next message on. */
static int model(struct chat *chat, const char *rest)
{
    const char *before = chat->model_name;
    if (!chat->config) {
        chat_note(chat, false,
                  "the scripted model is the only one without a configuration");
        return 0;
    }
    if (!*rest) {
        list_models(chat);
        return 0;
    }
    chat->model_name = hf_arena_text(&chat->cli->arena, rest);
    int rc = chat->model_name ? chat_open_agent(chat)
                              : hf_fail_plain(&chat->cli->err, HF_ENOMEM);
    if (rc) {
        chat->model_name = before;
        chat_complain(chat, rc);
        return 0;
    }
    chat_note(chat, false, "model %.100s from the next message on", rest);
    return 0;
}

/* ---- /attach -------------------------------------------------------------------------- */

/* A file for the next message. It is read and stored when that is sent. */
static int attach(struct chat *chat, const char *rest)
{
    struct stat file;
    if (!*rest) {
        chat_note(chat, false, "/attach FILE: the name of the file is missing");
    } else if (stat(rest, &file) || access(rest, R_OK)) {
        chat_note(chat, true, "%.200s: %s", rest, strerror(errno));
    } else if (!S_ISREG(file.st_mode)) {
        chat_note(chat, true, "%.200s is not a file", rest);
    } else if (chat->attached_count == CHAT_ATTACHED_MAX) {
        chat_note(chat, true, "a message has at most %d files", CHAT_ATTACHED_MAX);
    } else {
        const char *path = hf_arena_text(&chat->cli->arena, rest);
        if (!path)
            return hf_fail_plain(&chat->cli->err, HF_ENOMEM);
        chat->attached[chat->attached_count++] = path;
        chat_note(chat, false, "%.200s goes with the next message", rest);
    }
    return 0;
}

/* ---- the table ------------------------------------------------------------------------ */

static const struct command {
    const char *name;
    const char *value;
    const char *text;
    int (*run)(struct chat *chat, const char *rest);
} commands[] = {
    { "help", "", "list the commands", help },
    { "attach", " FILE", "send a file with the next message", attach },
    { "model", " [NAME]", "show the models, or use another one", model },
    { "retry", "", "send the last message again", retry },
    { "quit", "", "leave; the conversation is kept", quit },
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static int help(struct chat *chat, const char *rest)
{
    struct hf_buf text;
    (void)rest;
    hf_buf_init(&text, hf_alloc_system(), 4096);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        size_t width = strlen(commands[i].name) + strlen(commands[i].value);
        hf_buf_text(&text, "/");
        hf_buf_text(&text, commands[i].name);
        hf_buf_text(&text, commands[i].value);
        for (; width < 15; width++)
            hf_buf_char(&text, ' ');
        hf_buf_text(&text, commands[i].text);
        hf_buf_text(&text, "\n");
    }
    hf_buf_text(&text, "Enter           send; Alt-Enter or Ctrl-J begins a new line\n"
                       "Ctrl-C          cancel the turn; again: leave\n"
                       "Ctrl-D          leave");
    screen_note(&chat->screen, hf_buf_str(&text), false);
    hf_buf_fini(&text);
    return 0;
}

int chat_command(struct chat *chat, const char *line)
{
    char word[40] = "";
    struct hf_near near;
    size_t len = strcspn(line + 1, " \n");
    const char *rest = line + 1 + len;
    while (*rest == ' ')
        rest++;
    if (len < sizeof(word))
        memcpy(word, line + 1, len);
    hf_near_begin(&near, word);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, word) == 0)
            return commands[i].run(chat, rest);
        hf_near_try(&near, commands[i].name);
    }
    if (near.best)
        chat_note(chat, true, "there is no /%s; did you mean /%s?", word, near.best);
    else
        chat_note(chat, true, "there is no /%s; /help lists the commands", word);
    return 0;
}
