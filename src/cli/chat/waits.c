/* Questions of a turn: what it waits for, as the store has it.
 *
 * The store is asked, and not the worker: another process may drive the turn, and another
 * terminal may answer. While the turn is driven here its worker tells when a wait is opened; in
 * all other cases the store is looked at when its bell was rung, and once per second.
 *
 * A question is answered by a line that begins with a word, never by a single key, and what was
 * typed before the question was on the screen is not taken for an answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_walk.h"
#include "base/text.h"
#include "cli/chat/chat.h"

#define TICK_MS 100
#define LOOK_MS 1000  /* between two looks without a bell */
#define PAUSE_MS 500  /* from a question to its prompt */
#define OPEN_WAITS 50 /* looked at; the next ones come when these are answered */

void chat_waits_init(struct chat *chat)
{
    chat->waits = (struct chat_waits){ .asks = ASKS_NOTHING };
    hf_arena_init(&chat->waits.arena, hf_alloc_system());
    editor_init(&chat->waits.editor);
}

void chat_waits_fini(struct chat *chat)
{
    editor_fini(&chat->waits.editor);
    hf_arena_fini(&chat->waits.arena);
}

bool chat_waits_typing(const struct chat *chat)
{
    return chat->waits.asks == ASKS_WORD || chat->waits.asks == ASKS_JSON;
}

/* ---- what a wait says ----------------------------------------------------------------- */

static struct hf_span member(struct hf_span object, const char *name)
{
    struct hf_walk walk;
    struct hf_span found = { NULL, 0 };
    hf_walk_begin(&walk, object);
    if (hf_walk_enter(&walk, '{'))
        while (hf_walk_more(&walk)) {
            bool it = hf_walk_is(hf_walk_key(&walk), name);
            struct hf_span value = hf_walk_value(&walk);
            if (it)
                found = value;
        }
    return found;
}

/* NULL: there is none, or no memory to show it. */
static const char *text_member(struct hf_arena *arena, struct hf_span object,
                               const char *name)
{
    struct hf_span raw = member(object, name), text = { NULL, 0 };
    return raw.len && hf_walk_text(arena, raw, &text) == 0 ? text.at : NULL;
}

/* The driver names the question whether a call happened after the call's effect and this. */
static enum show_ask ask_of(const struct hf_wait *wait)
{
    static const char end[] = "/happened";
    size_t len = wait->name ? strlen(wait->name) : 0, tail = sizeof(end) - 1;
    if (!hf_same(wait->kind, hf_wait_kind_word(HF_WAIT_APPROVAL)))
        return SHOW_OUTSIDE;
    return len > tail && hf_same(wait->name + len - tail, end) ? SHOW_HAPPENED
                                                               : SHOW_APPROVAL;
}

/* All of it is in the arena. */
static struct show_wait read_wait(const struct chat *chat, struct hf_arena *arena,
                                  const struct hf_wait *wait)
{
    struct hf_span asked = { "", 0 };
    if (wait->asked)
        asked = (struct hf_span){ hf_arena_text(arena, wait->asked),
                                  strlen(wait->asked) };
    if (!asked.at)
        asked = (struct hf_span){ "", 0 };
    struct hf_span call = member(asked, "call");
    struct show_wait shown = { .ask = ask_of(wait),
                               .session_id = chat->session_id,
                               .wait_id = hf_arena_text(arena, wait->wait_id),
                               .question = text_member(arena, asked, "question"),
                               .tool = text_member(arena, call, "name"),
                               .args = member(call, "arguments"),
                               .edits = member(asked, "edits").len > 0,
                               .answerer = hf_arena_text(arena, wait->answerer),
                               .deadline_at = wait->deadline_at,
                               .policy = hf_arena_text(arena, wait->policy) };
    shown.here = chat->keys_wanted && shown.ask != SHOW_OUTSIDE &&
                 (!wait->answerer || hf_same(wait->answerer, chat->cli->who.actor));
    return shown;
}

/* ---- what was told -------------------------------------------------------------------- */

static struct chat_told *told_of(struct chat *chat, const char *wait_id)
{
    for (size_t i = 0; i < CHAT_TOLD_MAX; i++)
        if (strcmp(chat->waits.told[i].wait_id, wait_id) == 0)
            return &chat->waits.told[i];
    return NULL;
}

/* Shows a wait and remembers it. Without a place the next look tells it. */
static void tell(struct chat *chat, const struct show_wait *wait)
{
    struct chat_told *place = told_of(chat, "");
    if (!place || !wait->wait_id)
        return;
    *place = (struct chat_told){ .ask = wait->ask };
    (void)snprintf(place->wait_id, sizeof(place->wait_id), "%s", wait->wait_id);
    (void)snprintf(place->tool, sizeof(place->tool), "%s", wait->tool ? wait->tool : "");
    chat->show->methods->asked(chat->show, wait);
}

/* Shows how a wait ended, once. `actor` is left out for what was typed here. */
static void tell_end(struct chat *chat, struct chat_told *told,
                     const struct hf_wait *wait, bool here)
{
    struct hf_arena arena;
    struct hf_span outcome = { wait->outcome, wait->outcome ? strlen(wait->outcome) : 0 };
    hf_arena_init_small(&arena, hf_alloc_system(), 512, 4096);
    struct show_answer answer = { .ask = told->ask,
                                  .wait_id = wait->wait_id,
                                  .tool = told->tool[0] ? told->tool : NULL,
                                  .kind = text_member(&arena, outcome, "kind"),
                                  .reason = text_member(&arena, outcome, "reason"),
                                  .outcome = wait->outcome,
                                  .actor = here ? NULL : wait->actor,
                                  .edited = member(outcome, "arguments").len > 0 };
    if (answer.kind && !answer.reason)
        answer.reason = text_member(&arena, outcome, "message");
    chat->show->methods->answered(chat->show, &answer);
    told->wait_id[0] = 0;
    hf_arena_fini(&arena);
}

void chat_waits_drop(struct chat *chat)
{
    chat->waits.asks = ASKS_NOTHING;
    editor_clear(&chat->waits.editor);
    screen_prompt_end(&chat->screen);
}

/* ---- looking -------------------------------------------------------------------------- */

static const struct hf_wait *open_wait(const struct hf_wait_answer *found, const char *id)
{
    for (size_t i = 0; i < found->wait_count; i++)
        if (hf_same(found->waits[i].wait_id, id))
            return &found->waits[i];
    return NULL;
}

/* Waits that were told and are open no more: answered elsewhere, or at their deadline. */
static void apply_closed(struct chat *chat, const struct hf_wait_answer *found)
{
    struct cli *cli = chat->cli;
    for (size_t i = 0; i < CHAT_TOLD_MAX; i++) {
        struct chat_told *told = &chat->waits.told[i];
        struct hf_wait_answer *answer = NULL;
        struct hf_err err = { 0 };
        if (!told->wait_id[0] || open_wait(found, told->wait_id))
            continue;
        if (chat->waits.asks != ASKS_NOTHING &&
            hf_same(told->wait_id, chat->waits.shown.wait_id))
            chat_waits_drop(chat);
        if (hf_wait_get(cli->store, &cli->who, told->wait_id, &answer, &err) == 0)
            tell_end(chat, told, &answer->waits[0], false);
        told->wait_id[0] = 0; /* it may have been pruned */
        hf_wait_answer_free(answer);
    }
}

/* Tells what was not told yet. One question at a time is asked here. */
static void apply_open(struct chat *chat, const struct hf_wait_answer *found)
{
    struct chat_waits *waits = &chat->waits;
    for (size_t i = 0; i < found->wait_count; i++) {
        const struct hf_wait *wait = &found->waits[i];
        struct show_wait shown;
        if (hf_same(wait->kind, hf_wait_kind_word(HF_WAIT_TIMER)) ||
            told_of(chat, wait->wait_id))
            continue;
        if (waits->asks == ASKS_NOTHING)
            hf_arena_reset(&waits->arena);
        shown = read_wait(chat, &waits->arena, wait);
        if (shown.here && waits->asks != ASKS_NOTHING)
            continue;
        tell(chat, &shown);
        if (!shown.here || !told_of(chat, wait->wait_id))
            continue;
        waits->shown = shown;
        waits->asks = ASKS_SOON;
        waits->asked_at = chat_now(chat);
    }
}

static void look(void *user)
{
    struct chat *chat = user;
    struct hf_wait_filter filter = { .size = sizeof(filter),
                                     .session_id = chat->session_id,
                                     .limit = OPEN_WAITS };
    struct hf_err err = { 0 };
    chat->waits.code = hf_wait_list(chat->cli->store, &chat->cli->who, &filter,
                                    &chat->waits.found, &err);
}

static void on_looked(void *user)
{
    struct chat *chat = user;
    struct hf_wait_answer *found = chat->waits.found;
    chat->waits.looking = false;
    chat->waits.found = NULL;
    if (chat->waits.code == 0 && chat->running && !chat->leave) {
        apply_closed(chat, found);
        apply_open(chat, found);
        chat_flush(chat);
    }
    if (chat->waits.code == 0)
        hf_wait_answer_free(found);
}

void chat_waits_refresh(struct chat *chat)
{
    bool told = false;
    for (size_t i = 0; i < CHAT_TOLD_MAX; i++)
        told |= chat->waits.told[i].wait_id[0] != 0;
    if (!told || chat->waits.looking)
        return;
    look(chat);
    if (chat->waits.code == 0) {
        apply_closed(chat, chat->waits.found);
        hf_wait_answer_free(chat->waits.found);
    }
    chat->waits.found = NULL;
}

static bool must_look(const struct chat *chat)
{
    const struct chat_waits *waits = &chat->waits;
    bool elsewhere = hf_agent_held(chat->agent) == 0 || waits->asks != ASKS_NOTHING;
    return !waits->looking &&
           (waits->wanted ||
            (elsewhere && (hf_session_bell(chat->cli->store) != waits->bell ||
                           chat_now(chat) - waits->looked_at >= LOOK_MS)));
}

static void on_tick(void *user)
{
    struct chat *chat = user;
    struct chat_waits *waits = &chat->waits;
    struct hf_task again = { chat, on_tick }, work = { chat, look },
                   done = { chat, on_looked };
    if (must_look(chat)) {
        waits->bell = hf_session_bell(chat->cli->store);
        waits->looked_at = chat_now(chat);
        waits->looking = hf_loop_work(chat->loop, &work, &done, NULL) == 0;
        waits->wanted = !waits->looking;
    }
    if (waits->asks == ASKS_SOON && chat_now(chat) - waits->asked_at >= PAUSE_MS) {
        waits->asks = ASKS_WORD;
        chat_prompt(chat);
        chat_flush(chat);
    }
    if (chat->running && hf_timer_start(chat->loop, &waits->timer, TICK_MS, &again))
        return; /* no memory: the commands of a shell answer too */
}

void chat_waits_look(struct chat *chat)
{
    chat->waits.wanted = true;
}

void chat_waits_begin(struct chat *chat, bool look_now)
{
    chat->waits.wanted = look_now;
    chat->waits.bell = hf_session_bell(chat->cli->store);
    chat->waits.looked_at = chat_now(chat);
    on_tick(chat);
}

void chat_waits_end(struct chat *chat)
{
    hf_timer_stop(chat->loop, &chat->waits.timer);
    while (chat->waits.looking)
        (void)hf_loop_step(chat->loop, -1);
    if (!chat->leave)
        chat_waits_refresh(chat);
    if (chat->waits.asks != ASKS_NOTHING)
        chat_waits_drop(chat);
    memset(chat->waits.told, 0, sizeof(chat->waits.told));
}

/* ---- answering ------------------------------------------------------------------------ */

/* The first answer counts: it may be another one than this. */
static void answer(struct chat *chat, enum hf_wait_word word, const char *value,
                   const char *reason)
{
    struct cli *cli = chat->cli;
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .wait_id = chat->waits.shown.wait_id,
                                       .word = word,
                                       .value = value,
                                       .reason = reason };
    struct hf_wait_answer *given = NULL;
    int rc = hf_wait_resolve(cli->store, &cli->who, &request, &given, &cli->err);
    if (rc == HF_EINVAL) { /* the question stays, with what was typed */
        chat_note(chat, true, "%s", cli->err.message);
        return;
    }
    if (rc) {
        chat_complain(chat, rc);
        return;
    }
    struct chat_told *told = told_of(chat, chat->waits.shown.wait_id);
    chat_waits_drop(chat);
    if (told)
        tell_end(chat, told, &given->waits[0], given->accepted);
    hf_wait_answer_free(given);
    chat_waits_look(chat);
}

/* Puts the arguments into the editor. */
static void edit(struct chat *chat)
{
    const struct show_wait *shown = &chat->waits.shown;
    const char *at = shown->ask == SHOW_APPROVAL ? shown->args.at : "";
    size_t len = shown->ask == SHOW_APPROVAL ? shown->args.len : 0;
    chat->waits.asks = ASKS_JSON;
    editor_clear(&chat->waits.editor);
    screen_prompt_end(&chat->screen);
    for (size_t i = 0; i < len; i++)
        (void)editor_feed(&chat->waits.editor, at[i]);
    chat_note(chat, false, "%s; Enter approves, Ctrl-C goes back",
              shown->ask == SHOW_APPROVAL ? "the arguments as JSON"
                                          : "the result as JSON");
}

static void show_again(struct chat *chat)
{
    struct show_wait whole = chat->waits.shown;
    whole.whole = true;
    chat->show->methods->asked(chat->show, &whole);
}

/* "n too dear": a word, and what is behind it. */
static void take_word(struct chat *chat, char *line)
{
    size_t len = strcspn(line, " \n\t");
    char *rest = line + len + strspn(line + len, " \n\t");
    bool more = *rest != 0;
    line[len] = 0;
    if ((hf_same(line, "y") || hf_same(line, "yes")) && !more)
        answer(chat, HF_ANSWER_APPROVE, NULL, NULL);
    else if (hf_same(line, "n") || hf_same(line, "no"))
        answer(chat, HF_ANSWER_DENY, NULL, more ? rest : NULL);
    else if (hf_same(line, "e") && !more && chat->waits.shown.edits)
        edit(chat);
    else if (hf_same(line, "v") && !more)
        show_again(chat);
    else if (*line)
        chat_note(chat, true, "%.40s is no answer: y, n or n REASON%s, or v", line,
                  chat->waits.shown.edits ? ", e" : "");
}

static void sent(struct chat *chat)
{
    char *line = strdup(editor_text(&chat->waits.editor));
    if (!line)
        return;
    if (chat->waits.asks == ASKS_JSON) {
        answer(chat, HF_ANSWER_APPROVE, line, NULL);
    } else {
        editor_clear(&chat->waits.editor);
        take_word(chat, line);
    }
    free(line);
}

/* Keys behind the answer to one question are no answer to the next. */
void chat_waits_keys(struct chat *chat, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && chat_waits_typing(chat) && !chat->leave; i++) {
        enum editor_event event = editor_feed(&chat->waits.editor, bytes[i]);
        if (event == EDITOR_SENT)
            sent(chat);
        else if (event == EDITOR_CLOSED)
            chat_leave(chat);
        else if (event == EDITOR_REDRAW)
            show_again(chat);
        else if (event == EDITOR_CHANGED)
            chat_prompt(chat);
    }
    chat_flush(chat);
}

bool chat_waits_interrupted(struct chat *chat)
{
    struct chat_waits *waits = &chat->waits;
    if (!chat_waits_typing(chat) || (waits->asks == ASKS_WORD && waits->editor.len == 0))
        return false;
    editor_clear(&waits->editor);
    waits->asks = ASKS_WORD;
    chat_prompt(chat);
    chat_flush(chat);
    return true;
}
