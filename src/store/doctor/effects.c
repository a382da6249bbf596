/* Entries of the effect journal that do not fit: those of turns to their turn and, while it is
 * open, to its save; those of processes and operations to themselves. */
#include "store/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include <holdfast/effect.h>
#include <holdfast/turn.h>

#include "base/err.h"
#include "base/text.h"

#define LOOK                                                                             \
    "look at the session's turn before it continues; if rows were edited, restore the "  \
    "store from a backup, then run `holdfast store bump`"

static void say_entry(struct doctor_finder *finder, const struct hf_call *rows, size_t i)
{
    doctor_say(finder, hf_out_text(rows, i, 0));
    doctor_say(finder, ", effect ");
    doctor_say(finder, hf_out_text(rows, i, 1));
    doctor_say(finder, ": ");
    doctor_say(finder, hf_out_text(rows, i, 2));
}

static int check_turns(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_EFFECTS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        say_entry(finder, hf_ops_result(&ops, 0), i);
        doctor_tell(finder, true, "effects", LOOK);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* An entry that is gone would be performed again, since nothing says that it was begun. */
static int check_turn_counts(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_EFFECT_COUNTS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        doctor_say(finder, hf_out_text(rows, i, 0));
        doctor_say(finder, ": its steps have begun ");
        doctor_say_i64(finder, hf_out_i64(rows, i, 1), " effects, and ");
        doctor_say_i64(finder, hf_out_i64(rows, i, 2), " are stored");
        doctor_tell(finder, true, "effects", LOOK);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* ---- the saves of open turns -------------------------------------------------------- */

/* The effect that a turn waits for, as its save has it. `text` is its description, one line
 * "path: value" per member. */
struct awaited {
    const char *text;
    bool model;  /* a model call */
    bool tools;  /* a batch of tool calls */
    uint64_t id; /* 0: no effect */
    uint64_t given_up;
    uint64_t next_id;
};

/* Whether the line is this text. */
static bool line_is(const char *line, const char *wanted)
{
    return hf_starts_with(line, wanted) && line[strlen(wanted)] == '\n';
}

/* The value of the member with this path; NULL: it is not there. */
static const char *value_of(const char *text, const char *path)
{
    size_t len = strlen(path);
    for (; *text; text = strchr(text, '\n') + 1)
        if (hf_starts_with(text, path) && hf_starts_with(text + len, ": "))
            return text + len + 2;
    return NULL;
}

static uint64_t number_of(const char *text, const char *path)
{
    const char *value = value_of(text, path);
    return value ? strtoull(value, NULL, 10) : 0;
}

static struct awaited read_awaited(const char *text)
{
    const char *state = value_of(text, "body.state");
    return (struct awaited){
        .text = text,
        .model = state && line_is(state, hf_turn_state_name(HF_TURN_WAITING_LLM)),
        .tools = state && line_is(state, hf_turn_state_name(HF_TURN_WAITING_TOOLS)),
        .id = number_of(text, "body.wait.id"),
        .given_up = number_of(text, "body.given_up"),
        .next_id = number_of(text, "body.next_id")
    };
}

/* Whether the batch has a call of this id. */
static bool has_call(const struct awaited *turn, const char *call_id)
{
    for (const char *line = turn->text; *line; line = strchr(line, '\n') + 1) {
        const char *member = hf_starts_with(line, "body.wait.calls[") ? strchr(line, ']')
                                                                      : NULL;
        if (member && hf_starts_with(member, "].call_id: ") &&
            line_is(strchr(member, ' ') + 1, call_id))
            return true;
    }
    return false;
}

/* What is wrong with an entry; NULL: nothing. */
static const char *misfit(const struct awaited *turn, const char *key, const char *status)
{
    struct hf_effect_name name;
    if (!hf_effect_key_read(key, &name))
        return NULL; /* the statement over all entries says so */
    if (name.effect >= turn->next_id)
        return "its turn has not come to this effect";
    if (name.effect == turn->id && turn->model && name.call_id[0])
        return "its turn calls the model there";
    if (name.effect == turn->id && turn->tools && !has_call(turn, name.call_id))
        return "its turn has no such call there";
    if (hf_same(status, hf_entry_status_name(HF_ENTRY_STARTED)) && turn->id &&
        name.effect != turn->id && name.effect != turn->given_up)
        return "it has no result, and its turn has gone past it";
    return NULL;
}

/* The entries of one save. They change with the turn's step only, so that a turn that has stored
 * another one since shows none. */
static int compare_entries(struct doctor_finder *finder, int64_t turn_key, int64_t step,
                           const char *whose, const char *text, struct hf_err *err)
{
    struct awaited turn = read_awaited(text);
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(finder->handle)->sql, finder->handle->alloc);
    hf_ops_call(&ops, HF_SQL_DOCTOR_ENTRIES, HF_ANY_COUNT);
    hf_ops_i64(&ops, turn_key);
    hf_ops_i64(&ops, step);
    int rc = hf_ops_read(&ops, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        const char *key = hf_out_text(rows, i, HF_COL_DOCTOR_ENTRIES_EFFECT_KEY);
        const char *fault = misfit(&turn, key,
                                   hf_out_text(rows, i, HF_COL_DOCTOR_ENTRIES_STATUS));
        if (!fault)
            continue;
        doctor_say(finder, whose);
        doctor_say(finder, ", effect ");
        doctor_say(finder, key);
        doctor_say(finder, ": ");
        doctor_say(finder, fault);
        doctor_tell(finder, true, "effects", LOOK);
    }
    hf_ops_fini(&ops);
    return rc;
}

/* A host that drives turns by itself stores saves of its own, and a newer build other ones: of
 * these nothing is known. */
static int check_save(struct doctor_finder *finder, struct hf_arena *arena,
                      const struct hf_call *rows, size_t i, struct hf_err *err)
{
    const struct hf_val *save = hf_out(rows, i, 4);
    const char *whose = hf_out_text(rows, i, 3);
    struct hf_bytes text = { 0 };
    int rc = hf_turn_describe(finder->handle->alloc,
                              (struct hf_span){ save->at, save->len }, &text, err);
    if (rc == HF_ENOTSAVE || rc == HF_ENEWER)
        return 0;
    if (rc == HF_ECORRUPT) {
        doctor_say(finder, whose);
        doctor_say(finder, ": its save is damaged: ");
        doctor_say(finder, err->message);
        doctor_tell(finder, true, "effects", LOOK);
        return 0;
    }
    const char *lines = rc ? NULL : hf_arena_copy(arena, text.at, text.len);
    if (rc == 0 && !lines)
        rc = hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = compare_entries(finder, hf_out_i64(rows, i, HF_COL_DOCTOR_SAVES_TURN_KEY),
                             hf_out_i64(rows, i, HF_COL_DOCTOR_SAVES_STEP), whose, lines,
                             err);
    hf_bytes_free(&text);
    return rc;
}

static int check_saves(struct doctor_finder *finder, struct hf_err *err)
{
    int64_t after = 0;
    size_t count = 0;
    int rc = 0;
    do {
        struct hf_ops ops;
        hf_ops_init(&ops, sql_store_of(finder->handle)->sql, finder->handle->alloc);
        hf_ops_call(&ops, HF_SQL_DOCTOR_SAVES, HF_ANY_COUNT);
        hf_ops_i64(&ops, after);
        rc = hf_ops_read(&ops, err);
        const struct hf_call *rows = rc ? NULL : hf_ops_result(&ops, 0);
        count = rc ? 0 : rows->out_count;
        for (size_t i = 0; rc == 0 && i < count; i++) {
            after = hf_out_i64(rows, i, HF_COL_DOCTOR_SAVES_SESSION_KEY);
            rc = check_save(finder, &ops.arena, rows, i, err);
        }
        hf_ops_fini(&ops);
    } while (rc == 0 && count);
    return rc;
}

/* An entry of a process that is not there is no fault: a begin takes any id. */
static int check_scopes(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_SCOPE_EFFECTS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        bool bad = hf_out_i64(rows, i, 3) != 0;
        say_entry(finder, rows, i);
        doctor_tell(finder, bad, "effects",
                    bad ? "the store was changed around the guards: restore it from a "
                          "backup, then run `holdfast store bump`"
                        : "its host removes it with hf_journal_retire");
    }
    hf_ops_fini(&ops);
    return rc;
}

int doctor_effects(struct doctor_finder *finder, struct hf_err *err)
{
    int rc = check_turns(finder, err);
    if (rc == 0)
        rc = check_turn_counts(finder, err);
    if (rc == 0)
        rc = check_saves(finder, err);
    return rc ? rc : check_scopes(finder, err);
}
