/* Damage to sessions that plain SQL without the guards has done is found by a check, on both
 * engines, and a store without damage has none. A commit does not build on it. */
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

/* ---- a session with two turns ------------------------------------------------------- */

static struct hf_session_answer *begun(struct hf_store *store)
{
    static const char message[] =
        "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\",\"parts\":"
        "[{\"kind\":\"text\",\"content\":\"hi\"}]}}";
    const struct hf_session_send send = { .size = sizeof(send),
                                          .session_id = "s",
                                          .message = message };
    const struct hf_session_claim claim = { .size = sizeof(claim), .session_id = "s" };
    struct hf_answer *sent = NULL;
    struct hf_session_answer *held = NULL;
    assert_int_equal(hf_session_send(store, NULL, &send, &sent, NULL), 0);
    assert_int_equal(hf_session_claim(store, NULL, &claim, &held, NULL), 0);
    hf_answer_free(sent);
    return held;
}

static int committed(struct hf_store *store, const struct hf_session_answer *held,
                     const char *text, struct hf_err *err)
{
    const struct hf_part part = { .content = { text, strlen(text) } };
    const struct hf_message said = {
        .id = "m", .role = HF_ROLE_ASSISTANT, .parts = &part, .part_count = 1
    };
    const struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &said };
    const struct hf_session_commit commit = {
        .size = sizeof(commit),
        .session_id = "s",
        .token = held->token,
        .turn_id = held->turn->turn_id,
        .head_revision = held->sessions[0].head_revision,
        .record_count = held->sessions[0].record_count,
        .chain = held->turn->chain,
        .records = &record,
        .added_count = 1,
        .status = HF_STATUS_DONE,
        .outcome = "{\"kind\":\"assistant_message\"}",
        .release = true,
    };
    struct hf_session_committed done;
    return hf_session_commit(store, NULL, &commit, &done, err);
}

static void commit_turn(struct hf_store *store, const char *text)
{
    struct hf_session_answer *held = begun(store);
    assert_int_equal(committed(store, held, text, NULL), 0);
    hf_session_answer_free(held);
}

static void make_session(const char *url)
{
    const struct hf_session_spec request = { .size = sizeof(request),
                                             .session_id = "s",
                                             .agent = "helper" };
    struct hf_session_answer *made = NULL;
    struct hf_store *store = NULL;
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    assert_int_equal(hf_session_create(store, NULL, &request, &made, NULL), 0);
    hf_session_answer_free(made);
    commit_turn(store, "one");
    commit_turn(store, "two");
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
    const struct hf_message message = {
        .id = "in", .role = HF_ROLE_USER, .parts = &words, .part_count = 1
    };
    const struct hf_record input = { .kind = HF_RECORD_MESSAGE, .message = &message };
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
    struct hf_store *store = NULL;
    struct hf_session_stepped at;
    struct open_turn open = { .turn = NULL };
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    struct hf_session_answer *held = begun(store);
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

static void make_open_session(const char *url)
{
    make_session(url);
    open_turn(url);
}

/* ---- what a check finds -------------------------------------------------------------- */

struct finds {
    int bad;
    char detail[800];
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
    assert_true(finding->advice[0]);
}

static struct finds check(const char *url)
{
    struct finds finds = { .bad = 0 };
    struct hf_store *store = NULL;
    assert_int_equal(hf_store_open(url, NULL, &store, NULL), 0);
    assert_int_equal(hf_store_check(store, on_find, &finds, NULL), 0);
    hf_store_close(store);
    return finds;
}

struct damage {
    const char *sql, *detail;
};

static const struct damage sessions[] = {
    { "UPDATE node SET record = replace(record, 'one', 'won') WHERE ordinal = 0",
      "sessions: session s: the chain of its records is broken at ordinal 0" },
    { "DELETE FROM node WHERE ordinal = 0", "head counts 2 records" },
    { "UPDATE session SET chain = (SELECT n.chain FROM node n WHERE n.ordinal = 0)",
      "digest of its head" },
    { "UPDATE session SET turn_key = (SELECT max(turn_key) FROM session_turn)",
      "its open turn is finished" },
};

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
static const struct damage effects[] = {
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

/* Sessions and damages of one kind. */
static const struct {
    const char *name;
    void (*make)(const char *url);
    const struct damage *damages;
    size_t count;
} groups[] = {
    { "rows", make_session, sessions, sizeof(sessions) / sizeof(sessions[0]) },
    { "effects", make_open_session, effects, sizeof(effects) / sizeof(effects[0]) },
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static void must_find(const char *url, const struct damage *damage)
{
    struct finds finds = check(url);
    if (finds.bad == 0 || !strstr(finds.detail, damage->detail))
        fail_msg("%s: %d findings: %s", damage->sql, finds.bad, finds.detail);
}

static void must_be_sound(const char *url)
{
    struct finds finds = check(url);
    if (finds.bad)
        fail_msg("%s", finds.detail);
}

/* ---- the engines ---------------------------------------------------------------------- */

static void damage_file(const char *path, const char *sql)
{
    static const char guards[] =
        "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema "
        "WHERE type = 'trigger' AND (tbl_name = 'node' OR tbl_name = 'session' "
        "OR tbl_name = 'effect' OR tbl_name = 'session_turn')";
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, guards, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    char *drops = strdup((const char *)sqlite3_column_text(st, 0));
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, drops, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    free(drops);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void remove_store(const char *path)
{
    static const char *const ends[] = { "", "-hf", "-shm", "-wal" };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[420];
        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name); /* not each of them is there */
    }
}

static void damage_in_a_file_is_found(void **state)
{
    (void)state;
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            char path[100];
            (void)snprintf(path, sizeof(path), "%s/%zu.db", folder, i);
            groups[g].make(path);
            must_be_sound(path);
            damage_file(path, groups[g].damages[i].sql);
            must_find(path, &groups[g].damages[i]);
            remove_store(path);
        }
}

static void damage_schema(const char *schema, const char *damage)
{
    char sql[900];
    (void)snprintf(sql, sizeof(sql),
                   "SET session_replication_role = replica; SET search_path = %s; %s",
                   schema, damage);
    (void)pg_server_sql(&server, sql);
}

static void damage_on_a_server_is_found(void **state)
{
    (void)state;
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            char url[400], schema[24];
            (void)snprintf(schema, sizeof(schema), "%s%zu", groups[g].name, i);
            (void)pg_server_schema(server.url, schema, url);
            groups[g].make(url);
            must_be_sound(url);
            damage_schema(schema, groups[g].damages[i].sql);
            must_find(url, &groups[g].damages[i]);
        }
}

/* A turn is begun, before or after the damage, and its commit is refused and writes nothing. */
static void refused(bool postgres, const char *damage, bool before, int code,
                    const char *field)
{
    static int number;
    char at[400], name[24];
    struct hf_store *store = NULL;
    struct hf_session_answer *held = NULL, *now = NULL;
    struct hf_err err = { 0 };
    (void)snprintf(name, sizeof(name), "refused%d", number++);
    if (postgres)
        (void)pg_server_schema(server.url, name, at);
    else
        (void)snprintf(at, sizeof(at), "%s/%s.db", folder, name);
    make_session(at);
    assert_int_equal(hf_store_open(at, NULL, &store, NULL), 0);
    if (!before)
        held = begun(store);
    if (postgres)
        damage_schema(name, damage);
    else
        damage_file(at, damage);
    if (before)
        held = begun(store);
    assert_int_equal(committed(store, held, "three", &err), code);
    assert_string_equal(err.field, field);
    assert_int_equal(hf_session_head(store, "s", &now, NULL), 0);
    assert_int_equal(now->sessions->record_count, 2);
    assert_int_equal(now->sessions->head_revision, held->sessions->head_revision);
    assert_string_equal(now->sessions->turn_id, held->turn->turn_id);
    hf_session_answer_free(now);
    hf_session_answer_free(held);
    hf_store_close(store);
    if (!postgres)
        remove_store(at);
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

/* The session is claimed, and its owner can end that; only the records are left out. */
static void a_claim_does_not_load_a_damaged_history(void **state)
{
    (void)state;
    char path[100];
    struct hf_store *store = NULL;
    struct hf_session_answer *held = NULL, *loaded = NULL;
    const struct hf_session_claim claim = { .size = sizeof(claim),
                                            .session_id = "s",
                                            .records = 10 };
    const struct hf_session_load load = { .size = sizeof(load), .session_id = "s" };
    (void)snprintf(path, sizeof(path), "%s/claimed.db", folder);
    make_session(path);
    damage_file(path, sessions[0].sql);
    assert_int_equal(hf_store_open(path, NULL, &store, NULL), 0);
    assert_int_equal(hf_session_claim(store, NULL, &claim, &held, NULL), 0);
    assert_false(held->loaded);
    assert_int_equal(held->node_count, 0);
    assert_int_equal(hf_session_load(store, &load, &loaded, NULL), HF_ECORRUPT);
    assert_int_equal(hf_session_release(store, NULL, "s", held->token, NULL), 0);
    hf_session_answer_free(held);
    hf_store_close(store);
    remove_store(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_in_a_file_is_found),
        cmocka_unit_test(a_claim_does_not_load_a_damaged_history),
        cmocka_unit_test(damage_on_a_server_is_found),
        cmocka_unit_test(a_commit_refuses_what_it_cannot_build_on),
    };
    (void)snprintf(folder, sizeof(folder), "/tmp/hf-session-doctor-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    pg_server_start(&server);
    int rc = cmocka_run_group_tests_name("session_doctor", tests, NULL, NULL);
    (void)rmdir(folder);
    return rc;
}
