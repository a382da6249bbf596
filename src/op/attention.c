/* Findings that need a person, passed to a sink. The library finds it; this file has the sentences.
 * */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "op/act.h"
#include "op/attention.h"

#define EXIT_ATTENTION 10
#define TEXT_MAX 262144
#define SHORT 200 /* bytes of a text in a sentence */

/* ---- sentences ------------------------------------------------------------------------- */

static const struct hf_fact *fact_of(const struct hf_attention_item *item,
                                     const char *name)
{
    for (size_t i = 0; i < item->fact_count; i++)
        if (hf_same(item->facts[i].name, name))
            return &item->facts[i];
    return NULL;
}

static const char *word(const struct hf_attention_item *item, const char *name)
{
    const struct hf_fact *fact = fact_of(item, name);
    return fact && fact->text ? fact->text : "";
}

static int64_t number(const struct hf_attention_item *item, const char *name)
{
    const struct hf_fact *fact = fact_of(item, name);
    return fact ? fact->number : 0;
}

struct saying {
    const struct hf_attention_item *item;
    hf_ms now;
    struct hf_buf *out;
};

static void say(struct saying *s, const char *text)
{
    hf_buf_text(s->out, text);
}

static void say_age(struct saying *s, hf_ms ms)
{
    char age[24];
    hf_buf_text(s->out, op_age(ms, age));
}

static const char *proof_text(const char *missing)
{
    static const char *const texts[][2] = {
        { "no_pid", "; its process is not known" },
        { "process_alive", "; its process is alive" },
        { "work_alive", "; its process is gone and its command still runs" },
        { "other_host", "; its process cannot be judged from here" },
        { "none", "; its process is dead" },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (hf_same(texts[i][0], missing))
            return texts[i][1];
    return "";
}

static void say_silent(struct saying *s)
{
    say(s, word(s->item, "owner"));
    say(s, " has not renewed its lease for ");
    say_age(s, number(s->item, "lapsed_ms"));
    say(s, " past its end");
    say(s, proof_text(word(s->item, "missing_proof")));
}

static void say_lapsing(struct saying *s)
{
    say(s, word(s->item, "owner"));
    say(s, " has ");
    say_age(s, number(s->item, "left_ms"));
    say(s, " left of a lease of ");
    say_age(s, number(s->item, "ttl_ms"));
}

/* As much of a text as a line has room for. */
static void say_short(struct saying *s, const char *text)
{
    size_t len = strlen(text), cut = len > SHORT ? hf_utf8_cut(text, SHORT) : len;
    hf_buf_bytes(s->out, text, cut);
    say(s, cut < len ? "..." : "");
}

/* What ends a wait at its deadline, before the time that is left. */
static const char *then_text(const char *then)
{
    static const char *const texts[][2] = {
        { "timeout", ", times out in " },     { "deny", ", denied in " },
        { "approve", ", approved in " },      { "fail_turn", ", its turn fails in " },
        { "next", ", another is asked in " }, { "result", ", continues without in " },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (hf_same(texts[i][0], then))
            return texts[i][1];
    return ", due in ";
}

static void say_wait(struct saying *s)
{
    const struct hf_attention_item *item = s->item;
    const char *asked = word(item, "asked"), *ref = word(item, "waiting_ref");
    const char *state = word(item, "state"), *call = word(item, "call");
    const char *choices = word(item, "choices"), *answerer = word(item, "answerer");
    if (*asked) {
        say(s, "\"");
        say_short(s, asked);
        say(s, "\" ");
        say_short(s, *choices ? choices : call);
        say(s, *choices || *call ? " " : "");
        say(s, "asked by ");
        say(s, word(item, "asked_by"));
        say(s, " ");
        say_age(s, s->now - item->since);
        say(s, " ago");
    } else {
        say(s, "waits");
        say(s, *ref ? " for " : "");
        say(s, ref);
        say(s, " since ");
        say_age(s, s->now - item->since);
    }
    if (*state) {
        say(s, ", ");
        say(s, state);
    }
    if (*answerer) {
        say(s, ", only ");
        say(s, answerer);
        say(s, " may answer");
    }
    if (item->until > s->now) {
        say(s, then_text(word(item, "then")));
        say_age(s, item->until - s->now);
    }
}

static void say_held(struct saying *s)
{
    const char *class = word(s->item, "error_class");
    say(s, "lost its worker too often (");
    hf_buf_i64(s->out, number(s->item, "attempts"));
    say(s, " attempts, last: ");
    say(s, *class ? class : "unknown");
    say(s, ")");
}

static void say_ended(struct saying *s)
{
    const char *reason = word(s->item, "reason"), *class = word(s->item, "error_class");
    say(s, word(s->item, "status"));
    say(s, " ");
    say_age(s, s->now - s->item->since);
    say(s, " ago");
    say(s, *reason ? ": " : "");
    say(s, reason);
    if (*class && !hf_same(class, reason)) {
        say(s, ", ");
        say(s, class);
    }
}

static void say_unserved(struct saying *s)
{
    if (!s->item->kind) {
        hf_buf_i64(s->out, number(s->item, "sessions"));
        say(s, " of its sessions can continue for ");
        say_age(s, s->now - s->item->since);
        say(s, ", and no worker takes them");
        return;
    }
    hf_buf_i64(s->out, number(s->item, "units"));
    say(s, " of kind ");
    say(s, s->item->kind);
    say(s, " can be claimed for ");
    say_age(s, s->now - s->item->since);
    say(s, ", and no worker claims them");
}

static void say_failing(struct saying *s)
{
    say(s, "fails: ");
    say(s, word(s->item, "error"));
}

static void say_late(struct saying *s)
{
    say(s, "its slot is ");
    say_age(s, number(s->item, "late_ms"));
    say(s, " late: no monitor makes it");
}

static void say_twins(struct saying *s)
{
    hf_buf_i64(s->out, number(s->item, "incarnations"));
    say(s, " processes of this name hold work at once: each worker needs its own name");
}

static void say_limit(struct saying *s)
{
    say(s, "all ");
    hf_buf_i64(s->out, number(s->item, "max_running"));
    say(s, " places have silent holders, and ");
    hf_buf_i64(s->out, number(s->item, "waiting"));
    say(s, " wait");
}

static void say_effect(struct saying *s)
{
    const char *scope = word(s->item, "scope"), *owner = word(s->item, "owner");
    const char *tool = word(s->item, "tool"), *arguments = word(s->item, "arguments");
    const char *reason = word(s->item, "reason");
    say(s, word(s->item, "key"));
    say(s, " of ");
    say(s, *scope ? scope : "session");
    say(s, " ");
    say(s, word(s->item, *scope ? "scope_id" : "session_id"));
    say(s, ", begun ");
    say_age(s, s->now - s->item->since);
    say(s, " ago");
    say(s, *owner ? " by " : "");
    say(s, owner);
    say(s, ": ");
    if (*tool) {
        say(s, tool);
        say(s, *arguments ? " " : "");
        say_short(s, arguments);
        say(s, "; ");
    }
    if (*reason) {
        say_short(s, reason);
        say(s, "; ");
    }
    say(s, "did it happen?");
}

static void say_store(struct saying *s)
{
    const char *advice = word(s->item, "advice");
    say(s, word(s->item, "problem"));
    say(s, *advice ? "; " : "");
    say(s, advice);
}

static void (*const sayings[HF_NEED_COUNT])(struct saying *) = {
    [HF_NEED_SILENT] = say_silent,      [HF_NEED_LAPSING] = say_lapsing,
    [HF_NEED_QUESTION] = say_wait,      [HF_NEED_WAIT] = say_wait,
    [HF_NEED_HELD] = say_held,          [HF_NEED_ENDED_BADLY] = say_ended,
    [HF_NEED_UNSERVED] = say_unserved,  [HF_NEED_SCHEDULE_FAILING] = say_failing,
    [HF_NEED_SCHEDULE_LATE] = say_late, [HF_NEED_TWINS] = say_twins,
    [HF_NEED_LIMIT_STUCK] = say_limit,  [HF_NEED_UNKNOWN_EFFECT] = say_effect,
    [HF_NEED_STORE] = say_store,
};

/* ---- rows -------------------------------------------------------------------------------- */

/* What one text of a row is made of. */
struct text {
    struct hf_buf buf;
    struct hf_json json;
};

static void begin(struct text *text)
{
    hf_buf_init(&text->buf, hf_alloc_system(), TEXT_MAX);
    hf_json_begin(&text->json, &text->buf);
}

static const char *end(struct text *text, struct hf_arena *arena)
{
    return hf_buf_keep(&text->buf, arena);
}

int op_attention_row(struct op_call *call, struct hf_arena *arena, hf_ms now,
                     const struct hf_attention_item *item,
                     struct hf_attention_row *ret_row)
{
    struct text text;
    char what[OP_WHAT];
    struct hf_attention_row row = {
        .what = hf_need_word(item->what),
        .severity = hf_severity_word(item->severity),
        .subject = item->subject,
        .id = item->id,
        .tenant = item->tenant,
        .name = item->unit ? hf_arena_text(arena, op_what(item->unit, what)) : NULL,
        .kind = item->kind,
        .since = item->since,
        .until = item->until,
    };
    struct saying saying = { item, now, &text.buf };
    begin(&text);
    sayings[item->what](&saying);
    row.detail = end(&text, arena);
    begin(&text);
    op_put_facts(&text.json, item->facts, item->fact_count);
    row.facts = end(&text, arena);
    begin(&text);
    op_put_act(&text.json, &item->act);
    row.act = end(&text, arena);
    begin(&text);
    op_put_command(&text.buf, call->program, &item->act);
    row.command = end(&text, arena);
    if ((item->unit && !row.name) || !row.detail || !row.facts || !row.act ||
        !row.command)
        return hf_fail_plain(call->err, HF_ENOMEM);
    *ret_row = row;
    return 0;
}

static int say_items(struct op_call *call, const struct hf_attention *found)
{
    const struct op_list list = { .key = "items",
                                  .shape = &hf_attention_shape,
                                  .none = "nothing needs you" };
    int rc = 0;
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < found->count; i++) {
        struct hf_attention_row row;
        const struct op_row said = { .shape = &hf_attention_shape, .at = &row };
        rc = op_attention_row(call, call->arena, found->now, &found->items[i], &row);
        if (rc == 0)
            rc = call->out->sink->item(call->out, &said);
    }
    return rc ? rc : call->out->sink->end(call->out, &list);
}

static int say_more(struct op_call *call, const struct hf_attention *found)
{
    const struct op_list list = { .key = "more", .shape = &hf_attention_more_shape };
    int rc = 0;
    call->out->sink->begin(call->out, &list);
    for (size_t i = 0; rc == 0 && i < found->more_count; i++) {
        const struct hf_attention_more *more = &found->more[i];
        struct text text;
        struct hf_attention_more_row row = { .what = hf_need_word(more->what),
                                             .kind = more->kind,
                                             .error_class = more->error_class,
                                             .count = more->count,
                                             .at_least = more->at_least };
        const struct op_row said = { .shape = &hf_attention_more_shape, .at = &row };
        begin(&text);
        op_put_act(&text.json, &more->act);
        row.act = end(&text, call->arena);
        begin(&text);
        op_put_command(&text.buf, call->program, &more->act);
        row.command = end(&text, call->arena);
        rc = row.act && row.command ? call->out->sink->item(call->out, &said)
                                    : hf_fail_plain(call->err, HF_ENOMEM);
    }
    return rc ? rc : call->out->sink->end(call->out, &list);
}

/* ---- the operations ------------------------------------------------------------------------ */

int op_attention_read(struct op_call *call, struct hf_attention **ret)
{
    const struct hf_attention_request *in = call->in;
    return hf_attention_read(call->store, &call->who, &in->query, ret, call->err);
}

int op_run_attention(struct op_call *call)
{
    struct hf_attention *found = NULL;
    int rc = op_attention_read(call, &found);
    if (rc)
        return rc;
    rc = say_items(call, found);
    if (rc == 0)
        rc = say_more(call, found);
    call->exit_code = rc == 0 && found->count ? EXIT_ATTENTION : 0;
    hf_attention_free(found);
    return rc;
}

int op_check_ack(struct op_call *call)
{
    const struct hf_ack *in = call->in;
    if ((in->id_count > 0) + (in->kind != NULL) + in->all != 1)
        return op_fail(call, HF_EINVAL, NULL,
                       "one of {ids}, {kind} and {all} is required, and only one");
    return 0;
}

int op_run_ack(struct op_call *call)
{
    struct hf_ack ack = *(const struct hf_ack *)call->in;
    const char **ids = hf_arena_array(call->arena, ack.id_count + 1, sizeof(*ids));
    int64_t count = 0;
    int rc = ids ? 0 : hf_fail_plain(call->err, HF_ENOMEM);
    for (size_t i = 0; rc == 0 && i < ack.id_count; i++)
        rc = op_full_id(call, ack.ids[i], &ids[i]);
    ack.ids = ids;
    if (rc == 0)
        rc = hf_attention_ack(call->store, &call->who, &ack, &count, call->err);
    if (rc)
        return rc;
    op_i64(call, "acknowledged", count);
    op_say(call, "%lld acknowledged", (long long)count);
    return 0;
}
