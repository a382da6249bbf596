/* Damage to sessions that plain SQL without the guards has done: a check finds it, on both engines,
 * and nothing where there is none; verbs report it as damage, a commit does not build on it, and
 * other sessions continue. */
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/turn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/pg.h"
#include "support/unit.h"

static struct pg_server server;
static char folder[64];

static const char message[] =
    "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\",\"parts\":"
    "[{\"kind\":\"text\",\"content\":\"hi\"}]}}";

/* ---- a session with two turns ------------------------------------------------------- */

static struct hf_store *opened(const char *url)
{
    struct hf_store *store = NULL;
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    return store;
}

static void create(struct hf_store *store, const char *id)
{
    const struct hf_session_spec request = { .size = sizeof(request),
                                             .session_id = id,
                                             .agent = "helper" };
    struct hf_session_answer *made = NULL;
    assert_int_equal(hf_session_create(store, NULL, &request, &made, NULL), 0);
    hf_session_answer_free(made);
}

static int send_to(struct hf_store *store, const char *id)
{
    const struct hf_session_send send = { .size = sizeof(send),
                                          .session_id = id,
                                          .message = message };
    struct hf_answer *sent = NULL;
    int rc = hf_session_send(store, NULL, &send, &sent, NULL);
    hf_answer_free(sent);
    return rc;
}

static struct hf_session_answer *claimed(struct hf_store *store, const char *id)
{
    const struct hf_session_claim claim = { .size = sizeof(claim), .session_id = id };
    struct hf_session_answer *held = NULL;
    assert_int_equal(hf_session_claim(store, NULL, &claim, &held, NULL), 0);
    return held;
}

static struct hf_session_answer *begun(struct hf_store *store, const char *id)
{
    assert_int_equal(send_to(store, id), 0);
    return claimed(store, id);
}

static int committed(struct hf_store *store, const struct hf_session_answer *held,
                     const char *text, struct hf_err *err)
{
    const struct hf_part part = { .content = { text, strlen(text) } };
    const struct hf_message said = {
        .id = "m", .role = HF_ROLE_ASSISTANT, .parts = &part, .part_count = 1
    };
    const struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    const struct hf_session_spent spent = { "model", "m", { .input = 1 } };
    const struct hf_session_commit commit = {
        .size = sizeof(commit),
        .session_id = held->sessions[0].session_id,
        .token = held->token,
        .turn_id = held->turn->turn_id,
        .head_revision = held->sessions[0].head_revision,
        .record_count = held->sessions[0].record_count,
        .chain = held->turn->chain,
        .records = &record,
        .added_count = 1,
        .status = HF_STATUS_DONE,
        .outcome = "{\"kind\":\"assistant_message\"}",
        .spent = &spent,
        .spent_count = 1,
        .release = true,
    };
    struct hf_session_committed done;
    return hf_session_commit(store, NULL, &commit, &done, err);
}

static void commit_turn(struct hf_store *store, const char *id, const char *text)
{
    struct hf_session_answer *held = begun(store, id);
    assert_int_equal(committed(store, held, text, NULL), 0);
    hf_session_answer_free(held);
}

/* Where the session is when it is damaged. */
enum stage { IDLE, SENT, CLAIMED };

static void add_session(struct hf_store *store, const char *id, enum stage stage)
{
    create(store, id);
    commit_turn(store, id, "one");
    commit_turn(store, id, "two");
    if (stage >= SENT)
        assert_int_equal(send_to(store, id), 0);
    if (stage == CLAIMED)
        hf_session_answer_free(claimed(store, id));
}

static void make_session(const char *url, enum stage stage)
{
    struct hf_store *store = opened(url);
    add_session(store, "s", stage);
    hf_store_close(store);
}

/* ---- a session whose turn is open ---------------------------------------------------- */

#define SPAN(text) ((struct hf_span){ (text), sizeof(text) - 1 })

/* A turn of the machine whose model has replied with two tool calls, and its saves before and
 * after the reply. */
struct open_turn {
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_turn *turn;
    struct hf_bytes before, after;
    char keys[2][HF_EFFECT_KEY_ROOM];
};

static void poll_for(struct hf_turn *turn, enum hf_effect_kind kind,
                     struct hf_effect *ret_effect)
{
    do
        assert_int_equal(hf_turn_poll(turn, ret_effect, NULL), 0);
    while (ret_effect->kind != kind && ret_effect->kind != HF_EFFECT_NONE);
    assert_int_equal(ret_effect->kind, kind);
}

static void begin_turn(struct open_turn *open, const char *turn_id)
{
    const struct hf_part words = { .content = SPAN("pay twice") };
    const struct hf_message said = {
        .id = "in", .role = HF_ROLE_USER, .parts = &words, .part_count = 1
    };
    const struct hf_record input = { .kind = HF_RECORD_MESSAGE, .message = &said };
    const struct hf_turn_start start = { .size = sizeof(start),
                                         .session_id = "s",
                                         .turn_id = turn_id,
                                         .inputs = &input,
                                         .input_count = 1 };
    assert_int_equal(hf_surface_new(NULL, SPAN("You pay."),
                                    SPAN("[{\"name\":\"pay\"},{\"name\":\"ask\"}]"),
                                    &open->surface, NULL),
                     0);
    const struct hf_turn_config config = { .size = sizeof(config),
                                           .protocol = hf_protocol_standard(),
                                           .surface = open->surface,
                                           .model = "m",
                                           .turn_budget = 5 };
    assert_int_equal(hf_setup_new(&config, &open->setup, NULL), 0);
    assert_int_equal(hf_turn_new(open->setup, &start, &open->turn, NULL), 0);
}

static void make_open_turn(struct open_turn *open, const char *turn_id)
{
    const struct hf_part calls[] = {
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "a",
          .tool = "pay",
          .content = SPAN("{}") },
        { .kind = HF_PART_TOOL_CALL,
          .call_id = "b",
          .tool = "ask",
          .content = SPAN("{}") },
    };
    const struct hf_llm_response reply = { .size = sizeof(reply),
                                           .parts = calls,
                                           .part_count = 2,
                                           .reason = HF_REASON_TOOL_USE };
    struct hf_effect effect;
    begin_turn(open, turn_id);
    poll_for(open->turn, HF_EFFECT_LLM_CALL, &effect);
    assert_int_equal(effect.id, 1);
    assert_int_equal(hf_turn_save(open->turn, &open->before, NULL), 0);
    assert_int_equal(hf_turn_llm_done(open->turn, 1, &reply, NULL), 0);
    poll_for(open->turn, HF_EFFECT_TOOL_CALLS, &effect);
    assert_int_equal(effect.id, 2);
    assert_int_equal(effect.call_count, 2);
    for (size_t i = 0; i < 2; i++)
        hf_effect_key(2, effect.calls[i].call_id, 1, open->keys[i]);
    assert_int_equal(hf_turn_save(open->turn, &open->after, NULL), 0);
}

static void free_open_turn(struct open_turn *open)
{
    hf_bytes_free(&open->before);
    hf_bytes_free(&open->after);
    hf_turn_free(open->turn);
    hf_setup_free(open->setup);
    hf_surface_free(open->surface);
}

/* Two steps: the model call is begun; it is settled, and both tool calls are begun. */
static void open_turn(const char *url)
{
    struct hf_store *store = opened(url);
    struct hf_session_stepped at;
    struct open_turn open = { .turn = NULL };
    create(store, "s");
    struct hf_session_answer *held = begun(store, "s");
    make_open_turn(&open, held->turn->turn_id);
    const struct hf_effect_entry model = { .key = "1",
                                           .kind = "llm_call",
                                           .recovery = HF_RECOVERY_KEYED,
                                           .envelope = SPAN("{}") };
    const struct hf_effect_entry tools[] = {
        { open.keys[0], "tool_call", HF_RECOVERY_KEYED, .attempt = 1,
          .envelope = SPAN("{}") },
        { open.keys[1], "tool_call", HF_RECOVERY_ASK, .attempt = 1,
          .envelope = SPAN("{}") },
    };
    const struct hf_effect_settled replied = { .key = "1",
                                               .status = HF_ENTRY_DONE,
                                               .outcome = SPAN("{}") };
    struct hf_session_step step = { .size = sizeof(step),
                                    .session_id = "s",
                                    .token = held->token,
                                    .turn_id = held->turn->turn_id,
                                    .chain = held->turn->chain,
                                    .save = { open.before.at, open.before.len },
                                    .begun = &model,
                                    .begun_count = 1 };
    assert_int_equal(hf_session_step(store, NULL, &step, &at, NULL), 0);
    step.step = 1;
    step.save = (struct hf_span){ open.after.at, open.after.len };
    step.settled = &replied;
    step.settled_count = 1;
    step.begun = tools;
    step.begun_count = 2;
    assert_int_equal(hf_session_step(store, NULL, &step, &at, NULL), 0);
    free_open_turn(&open);
    hf_session_answer_free(held);
    hf_store_close(store);
}

/* ---- what a check finds -------------------------------------------------------------- */

struct finds {
    int bad;
    char detail[8000];
};

static void on_find(void *user, const struct hf_finding *finding)
{
    struct finds *finds = user;
    if (!finding->bad)
        return;
    finds->bad++;
    size_t len = strlen(finds->detail);
    (void)snprintf(finds->detail + len, sizeof(finds->detail) - len, "%s: %s; ",
                   finding->what, finding->detail);
}

static struct finds check(const char *url)
{
    struct finds finds = { .bad = 0 };
    struct hf_store *store = opened(url);
    assert_int_equal(hf_store_check(store, on_find, &finds, NULL), 0);
    hf_store_close(store);
    return finds;
}

/* Each is done to a session of its own, whose key and name have a number in place of '@'. */
static const struct {
    enum stage stage;
    const char *damage; /* changes one row */
    const char *detail;
} cases[] = {
    { IDLE,
      "UPDATE node SET record = replace(record, 'one', 'won') "
      "WHERE session_key = @ AND ordinal = 0",
      "sessions: session s@: the chain of its records is broken at ordinal 0" },
    { IDLE, "DELETE FROM node WHERE session_key = @ AND ordinal = 0",
      "session s@: its head counts 2 records" },
    { IDLE,
      "UPDATE session SET chain = (SELECT n.chain FROM node n "
      "WHERE n.session_key = @ AND n.ordinal = 0) WHERE session_key = @",
      "session s@: the digest of its head" },
    { IDLE,
      "UPDATE session SET turn_key = (SELECT max(t.turn_key) FROM session_turn t "
      "WHERE t.session_key = @) WHERE session_key = @",
      "session s@: its open turn is finished" },
    { IDLE, "UPDATE session SET head_revision = 3 WHERE session_key = @",
      "session s@: its head has revision 3, and 2 turns are committed" },
    { IDLE,
      "UPDATE session SET record_count = 1, chain = (SELECT n.chain FROM node n "
      "WHERE n.session_key = @ AND n.ordinal = 0) WHERE session_key = @",
      "session s@: record 1 is past its head, and not of its open turn" },
    { IDLE,
      "INSERT INTO node (session_key, ordinal, turn_key, chain, record) "
      "SELECT session_key, 2, turn_key, chain, record FROM node "
      "WHERE session_key = @ AND ordinal = 1",
      "session s@: record 2 is past its head, and not of its open turn" },
    { IDLE, "DELETE FROM session_meta WHERE session_key = @",
      "session s@: its row in session_meta is missing" },
    { SENT, "DELETE FROM session_input WHERE session_key = @ AND turn_key IS NULL",
      "is open, and is no input" },
    { SENT, "UPDATE session SET ready_at = NULL WHERE session_key = @",
      "session s@: an input is queued, and no claim looks for it" },
    { CLAIMED,
      "UPDATE session_input SET turn_key = NULL WHERE turn_key = "
      "(SELECT s.turn_key FROM session s WHERE s.session_key = @)",
      "session s@: a unit runs that its lease does not hold, or not in its open turn" },
    { IDLE,
      "UPDATE session_turn SET result = replace(result, ':1,', ':7,') "
      "WHERE session_key = @ AND base_revision = 0",
      "session s@: the receipt of its turn" },
    { IDLE,
      "UPDATE session_turn SET result = NULL WHERE session_key = @ AND base_revision = 1",
      "session s@: the receipt of its turn" },
    { IDLE,
      "UPDATE session_turn SET result = (SELECT t.result FROM session_turn t "
      "WHERE t.session_key = @ AND t.base_revision = 0) "
      "WHERE session_key = @ AND base_revision = 1",
      "session s@: the receipt of its turn" },
    { IDLE,
      "UPDATE session_turn SET commit_hash = NULL "
      "WHERE session_key = @ AND base_revision = 1",
      "session s@: its head has revision 2, and 1 turns are committed" },
    { IDLE,
      "UPDATE session_turn SET commit_hash = substr(commit_hash, 1, 31) "
      "WHERE session_key = @ AND base_revision = 1",
      "session s@: the receipt of its turn" },
    { IDLE,
      "UPDATE usage SET reasoning = -1 WHERE turn_key = "
      "(SELECT min(g.turn_key) FROM usage g WHERE g.session_key = @)",
      "session s@: a number of tokens of its usage is negative" },
    { IDLE,
      "UPDATE usage SET input = 9223372036854775807 WHERE turn_key = "
      "(SELECT min(g.turn_key) FROM usage g WHERE g.session_key = @)",
      "a sum of tokens of session s@ is too large" },
    { IDLE, "UPDATE session SET lease_fence = 9223372036854775807 WHERE session_key = @",
      "session s@: its fence is at its ceiling" },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static const char *with_number(const char *text, size_t number, char out[600])
{
    size_t len = 0;
    for (const char *at = text; *at && len < 599; at++) {
        if (*at == '@')
            len += (size_t)snprintf(out + len, 600 - len, "%zu", number);
        else
            out[len++] = *at;
    }
    out[len] = '\0';
    return out;
}

/* ---- the engines ---------------------------------------------------------------------- */

#define SESSION_TABLES                                                                   \
    "'node', 'session', 'session_meta', 'session_turn', 'session_input', 'usage', "      \
    "'effect'"

static void damage_file(const char *path, const char *sql)
{
    static const char guards[] =
        "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema "
        "WHERE type = 'trigger' AND tbl_name IN (" SESSION_TABLES ")";
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, guards, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    const char *drops = (const char *)sqlite3_column_text(st, 0);
    char *copy = strdup(drops ? drops : "");
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, copy, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    free(copy);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void damage_server(const char *schema, const char *sql)
{
    char text[900];
    (void)snprintf(text, sizeof(text),
                   "SET session_replication_role = replica; SET search_path = %s; "
                   "SET client_min_messages = warning; "
                   "ALTER TABLE usage DROP CONSTRAINT IF EXISTS usage_check; %s",
                   schema, sql);
    (void)pg_server_sql(&server, text);
}

/* A store of its own: a file, or a schema of the server. */
struct place {
    bool postgres;
    char name[24];
    char url[400];
};

static struct place place_of(bool postgres, const char *prefix, size_t i)
{
    struct place place = { .postgres = postgres };
    (void)snprintf(place.name, sizeof(place.name), "%s%zu", prefix, i);
    if (postgres)
        (void)pg_server_schema(server.url, place.name, place.url);
    else
        (void)snprintf(place.url, sizeof(place.url), "%s/%s.db", folder, place.name);
    return place;
}

static void damage(const struct place *place, const char *sql)
{
    if (place->postgres)
        damage_server(place->name, sql);
    else
        damage_file(place->url, sql);
}

static void remove_place(const struct place *place)
{
    static const char *const ends[] = { "", "-hf", "-shm", "-wal" };
    for (size_t i = 0; !place->postgres && i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[420];
        (void)snprintf(name, sizeof(name), "%s%s", place->url, ends[i]);
        (void)unlink(name); /* not each of them is there */
    }
}

/* The first session gets key 1. The last one is not damaged. */
static void find_each(bool postgres)
{
    struct place place = place_of(postgres, "damaged", 0);
    struct hf_store *store = opened(place.url);
    char text[600];
    for (size_t i = 1; i <= CASES; i++)
        add_session(store, with_number("s@", i, text), cases[i - 1].stage);
    add_session(store, "whole", CLAIMED);
    hf_store_close(store);
    assert_int_equal(check(place.url).bad, 0);
    for (size_t i = 1; i <= CASES; i++)
        damage(&place, with_number(cases[i - 1].damage, i, text));
    struct finds finds = check(place.url);
    for (size_t i = 1; i <= CASES; i++)
        if (!strstr(finds.detail, with_number(cases[i - 1].detail, i, text)))
            fail_msg("%s: not among %s", text, finds.detail);
    assert_null(strstr(finds.detail, "whole"));
    remove_place(&place);
}

static void damage_in_a_file_is_found(void **state)
{
    (void)state;
    find_each(false);
}

static void damage_on_a_server_is_found(void **state)
{
    (void)state;
    find_each(true);
}

/* ---- the journal of an open turn ------------------------------------------------------- */

#define OPEN_AGAIN                                                                       \
    "UPDATE effect SET status = 'started', outcome = NULL, settled_at = NULL "           \
    "WHERE effect_key = '1'"
/* One more entry, which the turn counts as begun. */
#define ANOTHER(key, kind, attempt)                                                      \
    "UPDATE session_turn SET effect_count = effect_count + 1 WHERE save IS NOT NULL; "   \
    "INSERT INTO effect (turn_key, effect_key, attempt, fence, started_at, kind, "       \
    "recovery, status, envelope) SELECT turn_key, '" key "', " attempt                   \
    ", fence, 1, '" kind "', 'keyed', 'started', '{}' FROM effect "                      \
    "WHERE recovery = 'ask'"

/* The turn waits for a batch, effect 2: a keyed call and an ask call. Effect 1 is done. */
static const struct {
    const char *damage, *detail;
} effects[] = {
    { "DELETE FROM effect WHERE recovery = 'ask'",
      ": its steps have begun 3 effects, and 2 are stored" },
    { "DELETE FROM effect WHERE effect_key = '1'",
      ": its steps have begun 3 effects, and 2 are stored" },
    { "UPDATE session_turn SET effect_count = 2 WHERE save IS NOT NULL",
      ": its steps have begun 2 effects, and 3 are stored" },
    { "UPDATE effect SET effect_key = '9' WHERE effect_key = '1'",
      ", effect 9: its turn has not come to this effect" },
    { ANOTHER("3", "llm_call", "0"), ", effect 3: its turn has not come to this effect" },
    { "UPDATE effect SET effect_key = '2/zz/1' WHERE recovery = 'ask'",
      ", effect 2/zz/1: its turn has no such call there" },
    { ANOTHER("2", "llm_call", "0"), ", effect 2: its turn has no such call there" },
    { OPEN_AGAIN, ", effect 1: it has no result, and its turn has gone past it" },
    { OPEN_AGAIN "; " ANOTHER("2", "llm_call", "0"),
      ", effect 1: another model call of the turn has no result either" },
    { "UPDATE effect SET kind = 'tool_call' WHERE effect_key = '1'",
      ", effect 1: its kind or its attempt is not that of its key" },
    { "UPDATE effect SET kind = 'llm_call' WHERE recovery = 'ask'",
      ": its kind or its attempt is not that of its key" },
    { "UPDATE effect SET attempt = 2 WHERE recovery = 'ask'",
      ": its kind or its attempt is not that of its key" },
    { "UPDATE effect SET attempt = 1 WHERE effect_key = '1'",
      ", effect 1: its kind or its attempt is not that of its key" },
    { "UPDATE effect SET effect_key = '' WHERE effect_key = '1'",
      ", effect : its key is malformed" },
    { "UPDATE effect SET effect_key = '01' WHERE effect_key = '1'",
      ", effect 01: its key is malformed" },
    { "UPDATE effect SET effect_key = '1/c' WHERE effect_key = '1'",
      ", effect 1/c: its key is malformed" },
    { "UPDATE effect SET effect_key = '1//1' WHERE effect_key = '1'",
      ", effect 1//1: its key is malformed" },
    { "UPDATE effect SET effect_key = '1/c/' WHERE effect_key = '1'",
      ", effect 1/c/: its key is malformed" },
    { "UPDATE effect SET effect_key = '1/c/1/2' WHERE effect_key = '1'",
      ", effect 1/c/1/2: its key is malformed" },
    { "UPDATE effect SET effect_key = '1/c/x1' WHERE effect_key = '1'",
      ", effect 1/c/x1: its key is malformed" },
    { "UPDATE effect SET fence = 9 WHERE recovery = 'ask'",
      ": it was begun under a fence that no claim had" },
    { "UPDATE session_turn SET save = substr(save, 1, length(save) - 1) "
      "WHERE save IS NOT NULL",
      ": its save is damaged: " },
};

static void find_effects(bool postgres)
{
    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
        struct place place = place_of(postgres, "effect", i);
        open_turn(place.url);
        struct finds finds = check(place.url);
        if (finds.bad)
            fail_msg("%s", finds.detail);
        damage(&place, effects[i].damage);
        finds = check(place.url);
        if (!strstr(finds.detail, effects[i].detail) ||
            !strstr(finds.detail, "effects: s, turn "))
            fail_msg("%s: %s", effects[i].damage, finds.detail);
        remove_place(&place);
    }
}

static void damage_to_a_journal_in_a_file_is_found(void **state)
{
    (void)state;
    find_effects(false);
}

static void damage_to_a_journal_on_a_server_is_found(void **state)
{
    (void)state;
    find_effects(true);
}

/* ---- what verbs make of it --------------------------------------------------------------- */

/* The session is claimed, and its owner can end that; only the records are left out. */
static void a_claim_does_not_load_a_damaged_history(void **state)
{
    (void)state;
    struct place place = place_of(false, "claimed", 0);
    struct hf_session_answer *held = NULL, *loaded = NULL;
    const struct hf_session_claim claim = { .size = sizeof(claim),
                                            .session_id = "s",
                                            .records = 10 };
    const struct hf_session_load load = { .size = sizeof(load), .session_id = "s" };
    make_session(place.url, IDLE);
    damage(&place, "UPDATE node SET record = replace(record, 'one', 'won') "
                   "WHERE ordinal = 0");
    struct hf_store *store = opened(place.url);
    assert_int_equal(hf_session_claim(store, NULL, &claim, &held, NULL), 0);
    assert_false(held->loaded);
    assert_int_equal(held->node_count, 0);
    assert_int_equal(hf_session_load(store, &load, &loaded, NULL), HF_ECORRUPT);
    assert_int_equal(hf_session_release(store, NULL, "s", held->token, NULL), 0);
    hf_session_answer_free(held);
    hf_store_close(store);
    remove_place(&place);
}

/* A turn is begun, before or after the damage, and its commit is refused and writes nothing. */
static void refused(bool postgres, const char *sql, bool before, int code,
                    const char *field)
{
    struct place place = place_of(postgres, before ? "before" : "after", 0);
    struct hf_session_answer *held = NULL, *now = NULL;
    struct hf_err err = { 0 };
    make_session(place.url, IDLE);
    struct hf_store *store = opened(place.url);
    if (!before)
        held = begun(store, "s");
    damage(&place, sql);
    if (before)
        held = begun(store, "s");
    assert_int_equal(committed(store, held, "three", &err), code);
    assert_string_equal(err.field, field);
    assert_int_equal(hf_session_head(store, "s", &now, NULL), 0);
    assert_int_equal(now->sessions->record_count, 2);
    assert_int_equal(now->sessions->head_revision, held->sessions->head_revision);
    assert_string_equal(now->sessions->turn_id, held->turn->turn_id);
    hf_session_answer_free(now);
    hf_session_answer_free(held);
    hf_store_close(store);
    remove_place(&place);
}

static void a_commit_refuses_what_it_cannot_build_on(void **state)
{
    static const char full[] = "UPDATE session SET head_revision = 9223372036854775807";
    static const char taken[] =
        "UPDATE work_state SET claim_group = 'another' WHERE status = 'running'";
    (void)state;
    for (int postgres = 0; postgres < 2; postgres++) {
        refused(postgres, full, true, HF_EOVERFLOW, "head_revision");
        refused(postgres, taken, false, HF_ESUPERSEDED, "turn_id");
    }
}

static int claim_any(struct hf_store *store, struct hf_session_answer **ret_held,
                     struct hf_err *err)
{
    static const char *const agents[] = { "helper" };
    const struct hf_session_claim claim = { .size = sizeof(claim),
                                            .agents = agents,
                                            .agent_count = 1 };
    return hf_session_claim(store, NULL, &claim, ret_held, err);
}

static const struct {
    const char *damage;
    int code;
    const char *why;
} blocks[] = {
    { "UPDATE session SET lease_fence = 9223372036854775807 WHERE session_id = 's'",
      HF_EOVERFLOW, "session s: the fence is at its ceiling" },
    { "DELETE FROM session_meta WHERE session_key = 1", HF_ECORRUPT,
      "session s has lost its row in session_meta" },
};

/* The damaged session is ready for longer than the other one. */
static void claim_others(bool postgres)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        struct place place = place_of(postgres, "others", i);
        struct hf_session_answer *held = NULL, *none = NULL;
        struct hf_err err = { 0 };
        make_session(place.url, SENT);
        damage(&place, blocks[i].damage);
        struct hf_store *store = opened(place.url);
        create(store, "t");
        assert_int_equal(send_to(store, "t"), 0);
        assert_int_equal(claim_any(store, &held, NULL), 0);
        assert_string_equal(held->sessions[0].session_id, "t");
        assert_int_equal(claim_any(store, &none, &err), blocks[i].code);
        assert_string_equal(err.message, blocks[i].why);
        hf_session_answer_free(held);
        hf_store_close(store);
        remove_place(&place);
    }
}

static void a_damaged_session_keeps_no_other_from_being_claimed(void **state)
{
    (void)state;
    claim_others(false);
    claim_others(true);
}

static void read_without_meta(bool postgres)
{
    struct place place = place_of(postgres, "lost", 0);
    struct hf_session_answer *read = NULL;
    const struct hf_session_load load = { .size = sizeof(load), .session_id = "s" };
    const struct hf_session_filter all = { .size = sizeof(all) };
    const struct hf_session_claim by_id = { .size = sizeof(by_id), .session_id = "s" };
    make_session(place.url, SENT);
    damage(&place, "DELETE FROM session_meta");
    struct hf_store *store = opened(place.url);
    assert_int_equal(hf_session_load(store, &load, &read, NULL), HF_ECORRUPT);
    assert_int_equal(hf_session_list(store, NULL, &all, &read, NULL), HF_ECORRUPT);
    assert_int_equal(hf_session_turn(store, "s", NULL, &read, NULL), HF_ECORRUPT);
    assert_int_equal(hf_session_node(store, "s", 0, &read, NULL), HF_ECORRUPT);
    assert_int_equal(hf_session_claim(store, NULL, &by_id, &read, NULL), HF_ECORRUPT);
    hf_store_close(store);
    remove_place(&place);
}

static void a_session_without_its_meta_is_damaged_and_not_absent(void **state)
{
    (void)state;
    read_without_meta(false);
    read_without_meta(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_in_a_file_is_found),
        cmocka_unit_test(damage_to_a_journal_in_a_file_is_found),
        cmocka_unit_test(damage_to_a_journal_on_a_server_is_found),
        cmocka_unit_test(a_claim_does_not_load_a_damaged_history),
        cmocka_unit_test(damage_on_a_server_is_found),
        cmocka_unit_test(a_commit_refuses_what_it_cannot_build_on),
        cmocka_unit_test(a_damaged_session_keeps_no_other_from_being_claimed),
        cmocka_unit_test(a_session_without_its_meta_is_damaged_and_not_absent),
    };
    (void)snprintf(folder, sizeof(folder), "/tmp/hf-session-doctor-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    pg_server_start(&server);
    int rc = cmocka_run_group_tests_name("session_doctor", tests, NULL, NULL);
    (void)rmdir(folder);
    return rc;
}
