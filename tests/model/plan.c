/* Random operations, each drawn from one number, so that a sequence is a list of numbers and
 * can be shrunk by leaving some out. */

#include <stdio.h>
#include <string.h>

#include "model/dice.h"
#include "model/pair.h"

static const char *const kinds[] = { "work", "mail", "index" };
static const char *const queues[] = { NULL, NULL, "fast" };
static const char *const owners[] = { "alice", "bob", "carol" };
static const char *const incarnations[] = { "boot-1", "boot-1", "boot-2" };
static const char *const classes[] = { "rate_limit", "validation", "gremlins",
                                       "transient_network" };
static const char *const refs[] = { "ref-1", "ref-2", "ref-3" };
static const char *const parents[] = { "parent-1", "parent-2" };
static const char *const retries[] = {
    NULL,
    NULL,
    "{\"jitter\":\"none\"}",
    "{\"max_attempts\":2,\"initial_backoff_ms\":1000,\"jitter\":\"none\"}",
    "{\"retry_on\":[\"exec_timeout\",\"heartbeat_timeout\",\"validation\"]}",
    "{\"never_on\":[\"rate_limit\"],\"max_backoff_sec\":3,\"backoff_multiplier\":3}",
};
static const hf_ms spans[] = { 1,     250,   1000,  5000,    15000,   30000,
                               45000, 75000, 60000, 3600000, 7200000, 86400000 };

static struct hf_caller caller(struct dice *dice)
{
    static const char *const tenants[] = { NULL, NULL, NULL, "acme" };
    struct hf_caller who = { .size = sizeof(who) };
    who.tenant = PICK(dice, tenants);
    if (one_in(dice, 3)) {
        who.actor_kind = "worker";
        who.actor = PICK(dice, owners);
    }
    if (one_in(dice, 8))
        who.correlation_id = "trace";
    return who;
}

static const struct pair_unit *some_unit(struct pair *pair, struct dice *dice)
{
    static const struct pair_unit nobody = {
        .id = { "00000000-0000-7000-8000-000000000000",
                "00000000-0000-7000-8000-000000000000" }
    };
    if (pair->unit_count == 0 || one_in(dice, 60))
        return &nobody;
    /* Mostly the newer ones: old rows have ended. */
    size_t last = pair->unit_count;
    size_t reach = one_in(dice, 4) || last < 12 ? last : 12;
    return &pair->units[last - 1 - roll(dice, (unsigned)reach)];
}

/* ---- create ------------------------------------------------------------------------------ */

static void draw_limits(struct dice *dice, struct hf_work_spec *new)
{
    if (one_in(dice, 6))
        new->delay_ms = PICK(dice, spans);
    else if (one_in(dice, 12))
        new->due_at = 1800000000000 + PICK(dice, spans);
    if (one_in(dice, 6))
        new->start_timeout_ms = PICK(dice, spans);
    if (one_in(dice, 6))
        new->exec_timeout_ms = PICK(dice, spans);
    new->max_attempts = one_in(dice, 3) ? 1 + (int)roll(dice, 3) : 0;
    new->retry_policy = PICK(dice, retries);
    if (one_in(dice, 12))
        new->close_rule = one_in(dice, 2) ? "evidence" : "reviewer";
    new->detached = one_in(dice, 25);
    if (new->detached)
        new->delay_ms = new->due_at = 0;
}

/* Keys of limits and fair shares. */
static void draw_shares(struct dice *dice, struct hf_work_spec *new)
{
    static const char *const limits[] = { NULL, NULL, NULL, "k-1", "k-2" };
    static const char *const fairs[] = { NULL, NULL, "a", "b" };
    if (!new->lane_key)
        new->limit_key = PICK(dice, limits);
    if (!new->lane_key && !new->limit_key && one_in(dice, 4))
        new->rate_key = "r-1";
    /* docs/internals/conformance.md: which tag a sweep of a lane serves */
    new->fair_key = new->lane_key ? NULL : PICK(dice, fairs);
    if (new->fair_key && one_in(dice, 3))
        new->fair_weight = 1 + (int)roll(dice, 4);
}

static void draw_new(struct pair *pair, struct dice *dice, struct hf_work_spec *new)
{
    static const char *const lanes[] = { NULL, NULL, NULL, "lane-1", "lane-2" };
    static const char *const dedups[] = { NULL, NULL, NULL, NULL, "d-1", "d-2" };
    static const enum hf_disposition dispositions[] = {
        HF_DISPOSITION_NONE,        HF_DISPOSITION_EXPIRE,
        HF_DISPOSITION_RERUNNABLE,  HF_DISPOSITION_RERUNNABLE,
        HF_DISPOSITION_OWNER_BOUND, HF_DISPOSITION_EXTERNALLY_OWNED
    };
    char name[32];
    *new = (struct hf_work_spec){ .size = sizeof(*new) };
    new->source = (enum hf_source)(1 + roll(dice, HF_SOURCE_COUNT - 1));
    (void)snprintf(name, sizeof(name), "s-%u", roll(dice, one_in(dice, 4) ? 5 : 4000));
    new->source_id = pair_text(pair, name);
    new->parent_work_id = strchr(name, '1') ? parents[strlen(name) % 2] : NULL;
    if (new->source == HF_SOURCE_SCHEDULER || one_in(dice, 5))
        new->source_run_id = one_in(dice, 2) ? "run-1" : "run-2";
    new->kind = one_in(dice, 3) ? NULL : PICK(dice, kinds);
    new->queue = PICK(dice, queues);
    new->lane_key = PICK(dice, lanes);
    new->dedup_key = PICK(dice, dedups);
    draw_shares(dice, new);
    if (one_in(dice, 10))
        new->idempotency_key = one_in(dice, 2) ? "i-1" : "i-2";
    new->disposition = PICK(dice, dispositions);
    if (one_in(dice, 8))
        new->ref = PICK(dice, refs);
    new->payload = one_in(dice, 3) ? "{\"n\": 1}" : NULL;
    new->priority = one_in(dice, 2) ? -1 : (int)roll(dice, 10);
    draw_limits(dice, new);
    if (new->disposition == HF_DISPOSITION_EXTERNALLY_OWNED && !one_in(dice, 10)) {
        new->lane_key = new->limit_key = new->rate_key = new->fair_key = NULL;
        new->fair_weight = 0;
        new->detached = false;
        new->delay_ms = new->due_at = new->start_timeout_ms = new->exec_timeout_ms = 0;
    }
}

static unsigned draw_flags(struct dice *dice)
{
    return (one_in(dice, 4) ? HF_ALL_OR_NONE : 0u) | (one_in(dice, 5) ? HF_BRIEF : 0u);
}

static void say_new(struct pair *pair, const struct hf_work_spec *new)
{
    pair_say(pair, " [%s %s/%s kind=%s lane=%s dedup=%s idem=%s %s prio=%d delay=%lld",
             hf_source_word(new->source), new->source_id,
             new->source_run_id ? new->source_run_id : "-", new->kind ? new->kind : "-",
             new->lane_key ? new->lane_key : "-", new->dedup_key ? new->dedup_key : "-",
             new->idempotency_key ? new->idempotency_key : "-",
             new->disposition ? hf_disposition_word(new->disposition) : "-",
             new->priority, (long long)new->delay_ms);
    pair_say(pair, " start=%lld exec=%lld max=%d retry=%s rule=%s%s]",
             (long long)new->start_timeout_ms, (long long)new->exec_timeout_ms,
             new->max_attempts, new->retry_policy ? new->retry_policy : "-",
             new->close_rule ? new->close_rule : "-", new->detached ? " detached" : "");
    pair_say(pair, "{limit=%s rate=%s fair=%s/%d}", new->limit_key ? new->limit_key : "-",
             new->rate_key ? new->rate_key : "-", new->fair_key ? new->fair_key : "-",
             new->fair_weight);
}

static void do_create(struct pair *pair, struct dice *dice)
{
    struct hf_work_spec news[3];
    struct hf_caller who = caller(dice);
    size_t n = one_in(dice, 3) ? 1 + roll(dice, 3) : 1;
    unsigned flags = draw_flags(dice);
    if (one_in(dice, 6))
        who.operation_id = one_in(dice, 2) ? "op-1" : "op-2";
    pair_say(pair, "create tenant=%s flags=%u operation=%s",
             who.tenant ? who.tenant : "-", flags,
             who.operation_id ? who.operation_id : "-");
    for (size_t i = 0; i < n; i++) {
        draw_new(pair, dice, &news[i]);
        if (who.operation_id) /* docs/internals/conformance.md: found by its keys again */
            news[i].dedup_key = NULL;
        if (n > 1) /* tags of one batch are taken before its rows are there */
            news[i].fair_key = NULL, news[i].fair_weight = 0;
        if (i > 0) { /* docs/internals/conformance.md: overlapping units of one batch */
            char name[40];
            (void)snprintf(name, sizeof(name), "%s-%zu", news[i].source_id, i);
            news[i].source_id = pair_text(pair, name);
            news[i].idempotency_key = NULL;
        }
        say_new(pair, &news[i]);
    }
    int codes[SIDES];
    struct hf_answer *answers[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_work_create(pair->store[side], &who, news, n, flags,
                                     &answers[side], NULL);
    pair->gate_may_move = n > 1;
    pair_answers(pair, codes, answers, flags);
    pair->gate_may_move = false;
}

/* ---- claim ------------------------------------------------------------------------------- */

static void do_claim(struct pair *pair, struct dice *dice)
{
    static const char *const nonces[] = { NULL, NULL, NULL, "n-1", "n-2" };
    static const hf_ms terms[] = { 0, 0, 750, 10000, 60000 };
    struct hf_caller who = caller(dice);
    struct hf_claim claim = { .size = sizeof(claim) };
    const struct pair_unit *unit = one_in(dice, 3) ? some_unit(pair, dice) : NULL;
    claim.owner = PICK(dice, owners);
    claim.incarnation = PICK(dice, incarnations);
    claim.nonce = PICK(dice, nonces);
    claim.queue = PICK(dice, queues);
    claim.limit = roll(dice, 4);
    claim.ttl_ms = PICK(dice, terms);
    if (one_in(dice, 5)) {
        claim.kinds = &kinds[roll(dice, 2)];
        claim.kind_count = 1 + roll(dice, 2);
    }
    pair_say(pair, "claim %s owner=%s/%s nonce=%s queue=%s limit=%zu ttl=%lld kinds=%zu",
             unit ? unit->id[MODEL] : "-", claim.owner, claim.incarnation,
             claim.nonce ? claim.nonce : "-", claim.queue ? claim.queue : "-",
             claim.limit, (long long)claim.ttl_ms, claim.kind_count);
    int codes[SIDES];
    struct hf_answer *answers[SIDES];
    for (int side = 0; side < SIDES; side++) {
        claim.id = unit ? unit->id[side] : NULL;
        codes[side] = hf_work_claim(pair->store[side], &who, &claim, &answers[side],
                                    NULL);
    }
    pair_answers(pair, codes, answers, 0);
}

/* ---- change ------------------------------------------------------------------------------ */

/* A change for both sides; they differ only in ids and tokens. */
struct change {
    struct hf_change of[SIDES];
    const char *word; /* of the token, for people */
};

static void draw_token(struct pair *pair, struct dice *dice, const struct pair_unit *unit,
                       struct change *change)
{
    static const char foreign[] = "hf1.1.1.foreign";
    const char *const *pick = unit->token[0];
    change->word = "own";
    if (one_in(dice, 6)) {
        pick = unit->token[1 + roll(dice, PAIR_TOKENS - 1)];
        change->word = "stale";
    } else if (one_in(dice, 12)) {
        pick = some_unit(pair, dice)->token[0];
        change->word = "another row's";
    }
    for (int side = 0; side < SIDES; side++)
        change->of[side].token = pick[side] ? pick[side] : foreign;
}

static void draw_close(struct dice *dice, struct hf_change *c)
{
    static const enum hf_status ends[] = { HF_STATUS_DONE, HF_STATUS_DONE,
                                           HF_STATUS_FAILED, HF_STATUS_TIMEOUT,
                                           HF_STATUS_CANCELLED };
    static const char *const given[] = { "file:a", "file:b" };
    c->status = PICK(dice, ends);
    if (one_in(dice, 3))
        c->reason = "because";
    if (c->status != HF_STATUS_DONE && one_in(dice, 2))
        c->error_class = PICK(dice, classes);
    if (one_in(dice, 3))
        c->summary = "it \"went\" well";
    if (one_in(dice, 3)) {
        c->outputs = given;
        c->output_count = 1 + roll(dice, 2);
    }
    if (one_in(dice, 3)) {
        c->evidence = given;
        c->evidence_count = 1;
    }
    if (one_in(dice, 3))
        c->reviewer = PICK(dice, owners);
}

static void draw_wait(struct dice *dice, struct hf_change *c)
{
    c->status = one_in(dice, 2) ? HF_STATUS_WAITING_USER : HF_STATUS_WAITING_EXTERNAL;
    c->ref = PICK(dice, refs);
    c->timeout_ms = one_in(dice, 2) ? PICK(dice, spans) : 0;
    if (one_in(dice, 3)) {
        c->escalate_after_ms = PICK(dice, spans);
        c->escalate = one_in(dice, 2) ? "event" : "work:page";
    }
    if (one_in(dice, 3))
        c->reason = "needs a word";
}

static void draw_resume(struct dice *dice, struct hf_change *c)
{
    if (one_in(dice, 2))
        c->payload = "{\"answer\": [1, 2]}";
    if (one_in(dice, 3))
        c->reason = "told so";
    if (!one_in(dice, 3))
        return;
    c->owner = PICK(dice, owners);
    c->incarnation = PICK(dice, incarnations);
    c->nonce = one_in(dice, 2) ? "r-1" : NULL;
    c->ttl_ms = one_in(dice, 2) ? 20000 : 0;
}

static enum hf_status status_of(struct pair *pair, const char *id)
{
    struct hf_answer *answer = NULL;
    if (hf_work_get(pair->store[MODEL], NULL, id, &answer, NULL) != 0)
        return HF_STATUS_NONE;
    enum hf_status status = hf_status_of(hf_answer_at(answer, 0)->work.status);
    hf_answer_free(answer);
    return status;
}

/* Any verb, or more often one that the row's status may allow. */
static enum hf_verb some_verb(struct dice *dice, enum hf_status status)
{
    static const enum hf_verb at_run[] = {
        HF_VERB_CLOSE_OUT, HF_VERB_CLOSE_OUT, HF_VERB_FAIL,
        HF_VERB_FAIL,      HF_VERB_WAIT,      HF_VERB_WAIT,
        HF_VERB_WAIT,      HF_VERB_HAND_BACK, HF_VERB_RENEW,
        HF_VERB_TOUCH,     HF_VERB_APPEND,    HF_VERB_CANCEL,
        HF_VERB_ABANDON,   HF_VERB_RENEW,     HF_VERB_REQUEST_ABANDON,
    };
    static const enum hf_verb at_wait[] = { HF_VERB_RESUME,  HF_VERB_RESUME,
                                            HF_VERB_CANCEL,  HF_VERB_CLOSE_OUT,
                                            HF_VERB_ABANDON, HF_VERB_REQUEST_ABANDON,
                                            HF_VERB_ABANDON, HF_VERB_REQUEST_ABANDON };
    if (one_in(dice, 4))
        return (enum hf_verb)(1 + roll(dice, HF_VERB_COUNT - 1));
    if (status == HF_STATUS_RUNNING)
        return PICK(dice, at_run);
    if (status == HF_STATUS_WAITING_USER || status == HF_STATUS_WAITING_EXTERNAL)
        return PICK(dice, at_wait);
    if (hf_status_terminal(status))
        return HF_VERB_REQUEUE;
    if (one_in(dice, 2))
        return one_in(dice, 3) ? HF_VERB_RELEASE : HF_VERB_RESCHEDULE;
    return one_in(dice, 3) ? HF_VERB_CANCEL : HF_VERB_CLOSE_OUT;
}

static const char *const authorities[] = { "engine", "engine", "ann" };

/* What the verb needs in addition to the id; returns whether it takes the row's token. */
static bool draw_verb(struct dice *dice, struct hf_change *c)
{
    switch (c->verb) {
    case HF_VERB_RENEW: c->ttl_ms = one_in(dice, 4) ? 60000 : 0; return true;
    case HF_VERB_TOUCH: return true;
    case HF_VERB_APPEND:
        c->type = "progress";
        c->payload = one_in(dice, 2) ? "{\"pct\": 40}" : "null";
        return true;
    case HF_VERB_WAIT: draw_wait(dice, c); return true;
    case HF_VERB_RESUME: draw_resume(dice, c); return false;
    case HF_VERB_CLOSE_OUT:
        draw_close(dice, c);
        if (!one_in(dice, 5))
            return true;
        c->authority = PICK(dice, authorities);
        return false;
    case HF_VERB_FAIL:
        c->error_class = PICK(dice, classes);
        c->reason = one_in(dice, 2) ? "it broke" : NULL;
        return true;
    case HF_VERB_HAND_BACK:
    case HF_VERB_ABANDON: c->reason = one_in(dice, 2) ? "too much" : NULL; return true;
    case HF_VERB_CANCEL: c->reason = "not wanted"; return one_in(dice, 3);
    case HF_VERB_REQUEUE: c->reason = "once more"; return false;
    case HF_VERB_REQUEST_ABANDON: c->reason = "it is gone"; return false;
    case HF_VERB_RESCHEDULE:
        c->timeout_ms = one_in(dice, 2) ? PICK(dice, spans) : 0;
        return false;
    case HF_VERB_RELEASE:
        c->reason = "mended";
        c->anew = one_in(dice, 3);
        return false;
    case HF_VERB_NONE:
    case HF_VERB_COUNT: break;
    }
    return false;
}

/* Returns whether the change has a token. */
static bool draw_change(struct pair *pair, struct dice *dice, struct change *change)
{
    const struct pair_unit *unit = some_unit(pair, dice);
    struct hf_change c = { .size = sizeof(c) };
    enum hf_verb rule = pair_rule(pair, dice, &unit);
    c.verb = rule ? rule : some_verb(dice, status_of(pair, unit->id[MODEL]));
    bool token = draw_verb(dice, &c) && rule != HF_VERB_CLOSE_OUT;
    bool own = rule == HF_VERB_WAIT;
    if (own)
        c.status = HF_STATUS_WAITING_USER;
    if (rule == HF_VERB_CLOSE_OUT)
        pair_rule_met(dice, &c);
    change->word = "no";
    for (int side = 0; side < SIDES; side++) {
        change->of[side] = c;
        change->of[side].id = unit->id[side];
        if (own)
            change->of[side].ref = unit->id[side];
    }
    if (token)
        draw_token(pair, dice, unit, change);
    pair_say(pair, " [%s %s by %s token %s status=%s ref=%s class=%s owner=%s ttl=%lld]",
             hf_verb_word(c.verb), unit->id[MODEL], change->word,
             change->of[MODEL].token ? change->of[MODEL].token : "-",
             c.status ? hf_status_word(c.status) : "-",
             change->of[MODEL].ref ? change->of[MODEL].ref : "-",
             c.error_class ? c.error_class : "-", c.owner ? c.owner : "-",
             (long long)c.ttl_ms);
    return token;
}

static void do_change(struct pair *pair, struct dice *dice)
{
    struct change drawn[3];
    struct hf_change changes[3];
    struct hf_caller who = caller(dice);
    size_t n = one_in(dice, 4) ? 1 + roll(dice, 3) : 1;
    unsigned flags = draw_flags(dice);
    bool tokens = false;
    pair_say(pair, "change tenant=%s flags=%u", who.tenant ? who.tenant : "-", flags);
    for (size_t i = 0; i < n; i++)
        tokens |= draw_change(pair, dice, &drawn[i]);
    /* Verbs with a token repeat by their token. */
    if (!tokens && one_in(dice, 4)) {
        who.operation_id = one_in(dice, 2) ? "op-1" : "op-2";
        pair_say(pair, " operation=%s", who.operation_id);
    }
    bool by_ref = n == 1 && drawn[0].of[MODEL].verb == HF_VERB_RESUME && one_in(dice, 2);
    enum hf_status kind = HF_STATUS_NONE;
    if (by_ref && one_in(dice, 2))
        kind = one_in(dice, 2) ? HF_STATUS_WAITING_USER : HF_STATUS_WAITING_EXTERNAL;
    int codes[SIDES];
    struct hf_answer *answers[SIDES];
    for (int side = 0; side < SIDES; side++) {
        for (size_t i = 0; i < n; i++)
            changes[i] = drawn[i].of[side];
        if (by_ref) {
            changes[0].id = NULL;
            changes[0].ref = "ref-1";
            changes[0].status = kind;
        }
        codes[side] = hf_work_change(pair->store[side], &who, changes, n, flags,
                                     &answers[side], NULL);
    }
    if (by_ref)
        pair_say(pair, " by ref-1 %s", kind ? hf_status_word(kind) : "");
    pair_answers(pair, codes, answers, flags);
}

/* ---- many at once ------------------------------------------------------------------------ */

#define CROWD_MOST 12

static void create_crowd(struct pair *pair, const struct hf_caller *who, size_t n)
{
    struct hf_work_spec news[CROWD_MOST];
    int codes[SIDES];
    struct hf_answer *answers[SIDES];
    for (size_t i = 0; i < n; i++) {
        char name[48];
        (void)snprintf(name, sizeof(name), "crowd-%zu-%zu", pair->unit_count, i);
        news[i] = (struct hf_work_spec){ .size = sizeof(news[i]),
                                         .source = HF_SOURCE_MANUAL,
                                         .source_id = pair_text(pair, name),
                                         .kind = kinds[i % 9 == 8],
                                         .priority = 0 };
    }
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_work_create(pair->store[side], who, news, n, 0, &answers[side],
                                     NULL);
    pair_answers(pair, codes, answers, 0);
}

static void claim_crowd(struct pair *pair, const struct hf_caller *who, size_t n)
{
    struct hf_claim claim = {
        .size = sizeof(claim), .owner = "dave", .incarnation = "boot-1", .limit = n
    };
    int codes[SIDES];
    struct hf_answer *answers[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_work_claim(pair->store[side], who, &claim, &answers[side], NULL);
    pair_answers(pair, codes, answers, 0);
}

/* Ends what runs of the newest units, all alike; now and then one of them says more. */
static void close_crowd(struct pair *pair, struct dice *dice, const struct hf_caller *who)
{
    struct hf_change changes[SIDES][CROWD_MOST * 2];
    struct hf_change end = { .size = sizeof(end), .verb = HF_VERB_CLOSE_OUT };
    size_t n = 0;
    end.status = one_in(dice, 4) ? HF_STATUS_FAILED : HF_STATUS_DONE;
    end.summary = one_in(dice, 3) ? "all of them" : NULL;
    for (size_t i = pair->unit_count; i > 0 && n < CROWD_MOST * 2; i--) {
        const struct pair_unit *unit = &pair->units[i - 1];
        if (status_of(pair, unit->id[MODEL]) != HF_STATUS_RUNNING ||
            !unit->token[0][MODEL])
            continue;
        for (int side = 0; side < SIDES; side++) {
            changes[side][n] = end;
            changes[side][n].id = unit->id[side];
            changes[side][n].token = unit->token[0][side];
        }
        n++;
    }
    if (n == 0)
        return;
    int codes[SIDES];
    struct hf_answer *answers[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_work_change(pair->store[side], who, changes[side], n, 0,
                                     &answers[side], NULL);
    pair_answers(pair, codes, answers, 0);
}

static void do_crowd(struct pair *pair, struct dice *dice)
{
    struct hf_caller who = caller(dice);
    size_t n = 8 + roll(dice, CROWD_MOST - 7);
    bool create = pair->unit_count + n < PAIR_UNITS - 64 && !one_in(dice, 3);
    bool claim = !one_in(dice, 4), close = one_in(dice, 2);
    pair_say(pair, "crowd of %zu tenant=%s:%s%s%s", n, who.tenant ? who.tenant : "-",
             create ? " create" : "", claim ? " claim" : "", close ? " close" : "");
    if (create)
        create_crowd(pair, &who, n);
    if (claim && !pair->complaint[0])
        claim_crowd(pair, &who, n);
    if (close && !pair->complaint[0])
        close_crowd(pair, dice, &who);
}

/* ---- upkeep ------------------------------------------------------------------------------ */

static void do_renew_all(struct pair *pair, struct dice *dice)
{
    struct hf_caller who = caller(dice);
    struct hf_renew_all renew = { .size = sizeof(renew), .owner = PICK(dice, owners) };
    renew.incarnation = one_in(dice, 2) ? PICK(dice, incarnations) : NULL;
    renew.fresh_within_ms = one_in(dice, 2) ? PICK(dice, spans) : 0;
    pair_say(pair, "renew_all owner=%s/%s fresh=%lld", renew.owner,
             renew.incarnation ? renew.incarnation : "-",
             (long long)renew.fresh_within_ms);
    int codes[SIDES];
    struct hf_answer *answers[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_work_renew_all(pair->store[side], &who, &renew, &answers[side],
                                        NULL);
    pair_answers(pair, codes, answers, 0);
}

static void do_sweep(struct pair *pair, struct dice *dice)
{
    struct hf_caller who = caller(dice);
    struct hf_sweep_report r[SIDES] = { { 0 } };
    pair_say(pair, "sweep");
    for (int side = 0; side < SIDES; side++) {
        int rc = hf_work_sweep(pair->store[side], &who, 0, &r[side], NULL);
        pair_codes(pair, "sweep", 0, rc);
    }
    if (r[MODEL].requeued != r[OTHER].requeued ||
        r[MODEL].timed_out != r[OTHER].timed_out || r[MODEL].failed != r[OTHER].failed ||
        r[MODEL].abandoned != r[OTHER].abandoned ||
        r[MODEL].promoted != r[OTHER].promoted ||
        r[MODEL].escalated != r[OTHER].escalated || r[MODEL].pushed != r[OTHER].pushed ||
        r[MODEL].silent != r[OTHER].silent || r[MODEL].next_at != r[OTHER].next_at)
        pair_differ(
            pair,
            "report: requeued %lld %lld, timed_out %lld %lld, failed %lld %lld, "
            "abandoned %lld %lld, promoted %lld %lld, escalated %lld %lld, "
            "pushed %lld %lld, silent %lld %lld, next_at %lld %lld",
            (long long)r[0].requeued, (long long)r[1].requeued, (long long)r[0].timed_out,
            (long long)r[1].timed_out, (long long)r[0].failed, (long long)r[1].failed,
            (long long)r[0].abandoned, (long long)r[1].abandoned,
            (long long)r[0].promoted, (long long)r[1].promoted, (long long)r[0].escalated,
            (long long)r[1].escalated, (long long)r[0].pushed, (long long)r[1].pushed,
            (long long)r[0].silent, (long long)r[1].silent, (long long)r[0].next_at,
            (long long)r[1].next_at);
}

static void do_prune(struct pair *pair, struct dice *dice)
{
    hf_ms age = PICK(dice, spans);
    size_t limit = one_in(dice, 2) ? 1 + roll(dice, 3) : 0;
    int64_t rows[SIDES] = { 0, 0 };
    pair_say(pair, "prune older=%lld limit=%zu", (long long)age, limit);
    for (int side = 0; side < SIDES; side++) {
        int rc = hf_work_prune(pair->store[side], NULL, age, limit, &rows[side], NULL);
        pair_codes(pair, "prune", 0, rc);
    }
    if (rows[MODEL] != rows[OTHER])
        pair_differ(pair, "the model pruned %lld rows, the store %lld",
                    (long long)rows[MODEL], (long long)rows[OTHER]);
}

static void do_policy(struct pair *pair, struct dice *dice)
{
    static const char *const scopes[] = { "default",   "source:manual", "source:control",
                                          "kind:mail", "kind:index",    "kind:page" };
    struct hf_policy policy = { .size = sizeof(policy), .grace_ms = -1 };
    const char *scope = PICK(dice, scopes);
    if (one_in(dice, 2))
        policy.ttl_ms = 3000 * (1 + (hf_ms)roll(dice, 20));
    if (one_in(dice, 3))
        policy.grace_ms = 1000 * (hf_ms)roll(dice, 40);
    if (one_in(dice, 3))
        policy.wait_user_ms = PICK(dice, spans);
    if (one_in(dice, 3))
        policy.wait_external_ms = PICK(dice, spans);
    if (one_in(dice, 6))
        policy.start_timeout_ms = PICK(dice, spans);
    if (one_in(dice, 6))
        policy.exec_timeout_ms = PICK(dice, spans);
    if (one_in(dice, 3))
        policy.max_attempts = 1 + (int)roll(dice, 5);
    policy.retry_policy = PICK(dice, retries);
    if (one_in(dice, 4))
        policy.disposition = one_in(dice, 2) ? HF_DISPOSITION_RERUNNABLE
                                             : HF_DISPOSITION_OWNER_BOUND;
    if (one_in(dice, 12))
        policy.close_rule = "evidence";
    if (one_in(dice, 24))
        policy.wait_rule = "escalation";
    pair_say(pair, "policy_set %s ttl=%lld grace=%lld max=%d retry=%s", scope,
             (long long)policy.ttl_ms, (long long)policy.grace_ms, policy.max_attempts,
             policy.retry_policy ? policy.retry_policy : "-");
    for (int side = 0; side < SIDES; side++) {
        int rc = hf_policy_set(pair->store[side], NULL, scope, &policy, NULL);
        pair_codes(pair, "policy_set", 0, rc);
    }
}

static void do_limit(struct pair *pair, struct dice *dice)
{
    static const char *const names[] = { "key:k-1",  "key:k-1",  "key:k-2",
                                         "rate:r-1", "rate:r-1", "kind:mail" };
    struct hf_caller who = caller(dice);
    struct hf_limit limit = { .size = sizeof(limit), .name = PICK(dice, names) };
    if (!one_in(dice, 4))
        limit.max_running = roll(dice, 4);
    if (one_in(dice, 2)) {
        limit.rate_count = 1 + roll(dice, 3);
        limit.rate_ms = PICK(dice, spans);
        limit.burst = roll(dice, 3);
    }
    pair_say(pair, "limit %s tenant=%s max=%lld rate=%lld/%lld burst=%lld", limit.name,
             who.tenant ? who.tenant : "-", (long long)limit.max_running,
             (long long)limit.rate_count, (long long)limit.rate_ms,
             (long long)limit.burst);
    for (int side = 0; side < SIDES; side++) {
        int rc = hf_limit_set(pair->store[side], &who, &limit, NULL);
        pair_codes(pair, "limit", 0, rc);
    }
}

static void do_bump(struct pair *pair, struct dice *dice)
{
    int64_t now[SIDES] = { 0, 0 };
    (void)dice;
    pair_say(pair, "bump");
    for (int side = 0; side < SIDES; side++) {
        int rc = hf_store_bump(pair->store[side], &now[side], NULL);
        pair_codes(pair, "bump", 0, rc);
    }
    if (now[MODEL] != now[OTHER])
        pair_differ(pair, "incarnation: the model is at %lld, the store at %lld",
                    (long long)now[MODEL], (long long)now[OTHER]);
}

static void do_advance(struct pair *pair, struct dice *dice)
{
    hf_ms by = one_in(dice, 3) ? (hf_ms)roll(dice, 60000) : PICK(dice, spans);
    hf_ms jump = one_in(dice, 20) ? PICK(dice, spans) : 0; /* of the wall clock alone */
    pair_say(pair, "advance %lld jump %lld", (long long)by, (long long)jump);
    pair->wall += by + jump;
    pair->mono += by;
}

static void do_reopen(struct pair *pair, struct dice *dice)
{
    (void)dice;
    pair_say(pair, "reopen");
    if (pair->factory->again)
        pair_reopen(pair);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* A text for `find`: of both sides, or the id of a unit or a part of it, which is of one side. */
static const char *draw_find(struct pair *pair, struct dice *dice,
                             const char *ret_texts[SIDES])
{
    static const char *const words[] = { "ref-", "ef-2", "ref-1",  "s-1",
                                         "s-12", "-102", "no such" };
    const struct pair_unit *unit = some_unit(pair, dice);
    const char *word = PICK(dice, words);
    unsigned way = roll(dice, 4);
    for (int side = 0; side < SIDES; side++) {
        const char *id = unit->id[side];
        char part[9];
        (void)snprintf(part, sizeof(part), "%.8s", way == 1 ? id + strlen(id) - 8 : id);
        ret_texts[side] = way == 0 ? word : way == 3 ? id : pair_text(pair, part);
    }
    return way == 0 ? word : unit->id[MODEL];
}

static void draw_list(struct dice *dice, struct hf_filter *filter)
{
    static const enum hf_status wanted[] = { HF_STATUS_QUEUED, HF_STATUS_DONE,
                                             HF_STATUS_FAILED, HF_STATUS_RUNNING };
    static const char *const gates[] = { "due", "lane", "held", "limit", "rate" };
    *filter = (struct hf_filter){ .size = sizeof(*filter), .limit = 1 + roll(dice, 20) };
    if (one_in(dice, 3)) {
        filter->statuses = &wanted[roll(dice, 3)];
        filter->status_count = 1 + roll(dice, 2);
    }
    filter->owner = one_in(dice, 4) ? PICK(dice, owners) : NULL;
    filter->queue = one_in(dice, 4) ? "fast" : NULL;
    filter->kind = one_in(dice, 4) ? PICK(dice, kinds) : NULL;
    filter->ref = one_in(dice, 6) ? PICK(dice, refs) : NULL;
    filter->silent = one_in(dice, 6);
    filter->older_than_ms = one_in(dice, 4) ? PICK(dice, spans) : 0;
    filter->newest = one_in(dice, 3);
    filter->brief = one_in(dice, 4);
    filter->since_ms = one_in(dice, 6) ? PICK(dice, spans) : 0;
    filter->finished = one_in(dice, 3);
    filter->lane_key = one_in(dice, 8) ? "lane-1" : NULL;
    filter->error_class = one_in(dice, 8) ? PICK(dice, classes) : NULL;
    filter->disposition = one_in(dice, 8) ? HF_DISPOSITION_RERUNNABLE
                                          : HF_DISPOSITION_NONE;
    filter->gate = one_in(dice, 10) ? PICK(dice, gates) : NULL;
    filter->source_run_id = one_in(dice, 10) ? "run-1" : NULL;
    filter->source_id = one_in(dice, 20) ? "s-1" : NULL;
    filter->correlation_id = one_in(dice, 12) ? "trace" : NULL;
    filter->session_id = one_in(dice, 20) ? "c1" : NULL;
    filter->unacked = one_in(dice, 10);
    filter->limit_name = one_in(dice, 12) ? "key:k-1" : NULL;
    filter->from = one_in(dice, 12) ? 1800000000000 + PICK(dice, spans) : 0;
    filter->before = one_in(dice, 12) ? 1800000000000 + 2 * PICK(dice, spans) : 0;
}

/* A word that units are made with, or the id of a unit: a wait that is late makes units. */
static const char *draw_parent(struct pair *pair, struct dice *dice,
                               struct hf_filter filters[SIDES])
{
    bool word = one_in(dice, 2);
    const char *named = PICK(dice, parents);
    const struct pair_unit *unit = some_unit(pair, dice);
    for (int side = 0; side < SIDES; side++)
        filters[side].parent_work_id = word ? named : unit->id[side];
    return filters[MODEL].parent_work_id;
}

/* Up to three pages. */
static void do_list(struct pair *pair, struct dice *dice)
{
    struct hf_caller who = caller(dice);
    struct hf_filter filters[SIDES];
    const char *finds[SIDES] = { NULL, NULL }, *find = NULL, *parent = NULL;
    bool more = true;
    draw_list(dice, &filters[MODEL]);
    filters[OTHER] = filters[MODEL];
    if (one_in(dice, 3))
        find = draw_find(pair, dice, finds);
    if (one_in(dice, 6))
        parent = draw_parent(pair, dice, filters);
    pair_say(pair, "list limit=%zu statuses=%zu silent=%d newest=%d find=%s parent=%s",
             filters[MODEL].limit, filters[MODEL].status_count, filters[MODEL].silent,
             filters[MODEL].newest, find ? find : "-", parent ? parent : "-");
    for (int page = 0; page < 3 && more && !pair->complaint[0]; page++) {
        int codes[SIDES];
        struct hf_answer *answers[SIDES];
        const char *next[SIDES] = { NULL, NULL };
        for (int side = 0; side < SIDES; side++) {
            filters[side].find = finds[side];
            codes[side] = hf_work_list(pair->store[side], &who, &filters[side],
                                       &answers[side], NULL);
            if (codes[side] == 0 && hf_answer_next(answers[side]))
                next[side] = pair_text(pair, hf_answer_next(answers[side]));
            filters[side].after = next[side];
        }
        if (!next[MODEL] != !next[OTHER])
            pair_differ(pair, "only one of them has a next page");
        more = next[MODEL] != NULL;
        pair_answers(pair, codes, answers, 0);
    }
}

/* What a reader of the feed gets from its cursor on: sums do not depend on the order of
 * what one call did to many rows. */
struct fed {
    int64_t events;
    uint64_t sum;
    unsigned notices;
};

static uint64_t sum_of(const char *text)
{
    uint64_t sum = 1469598103934665603u;
    for (; text && *text; text++)
        sum = (sum ^ (unsigned char)*text) * 1099511628211u;
    return sum;
}

static struct fed read_feed(struct pair *pair, int side, struct hf_feed_query query,
                            bool keep)
{
    struct fed fed = { 0 };
    char at[128];
    bool more = true;
    (void)snprintf(at, sizeof(at), "%s", pair->feed_at[side]);
    while (more && !pair->complaint[0]) {
        struct hf_feed *feed = NULL;
        query.after = at[0] ? at : NULL;
        int rc = hf_work_feed(pair->store[side], NULL, &query, &feed, NULL);
        pair_codes(pair, "feed", 0, rc);
        if (rc)
            break;
        for (size_t i = 0; i < hf_feed_count(feed); i++) {
            const struct hf_event *event = &hf_feed_at(feed, i)->event;
            if (strcmp(event->event_type, "transition_rejected") == 0 ||
                strcmp(event->event_type, "late_result") == 0)
                continue; /* the model claims nothing about diagnostics */
            fed.events++;
            fed.sum += sum_of(event->event_type) ^ 3 * sum_of(event->to_status);
        }
        fed.notices |= hf_feed_notices(feed);
        more = hf_feed_more(feed);
        (void)snprintf(at, sizeof(at), "%s", hf_feed_next(feed));
        hf_feed_free(feed);
    }
    if (keep)
        memcpy(pair->feed_at[side], at, sizeof(at));
    return fed;
}

static void do_feed(struct pair *pair, struct dice *dice)
{
    struct hf_feed_query query = { .size = sizeof(query),
                                   .limit = 5 + roll(dice, 200),
                                   .queue = one_in(dice, 4) ? "fast" : NULL,
                                   .kind = one_in(dice, 4) ? PICK(dice, kinds) : NULL };
    bool keep = !query.queue && !query.kind && !one_in(dice, 4);
    struct fed fed[SIDES];
    pair_say(pair, "feed limit=%zu keep=%d", query.limit, keep);
    for (int side = 0; side < SIDES; side++)
        fed[side] = read_feed(pair, side, query, keep);
    if (fed[MODEL].events != fed[OTHER].events || fed[MODEL].sum != fed[OTHER].sum)
        pair_differ(pair, "feed: the model has %lld events, the store %lld, or others",
                    (long long)fed[MODEL].events, (long long)fed[OTHER].events);
    /* A pruned diagnostic is a gap that the model knows nothing of. */
    if ((fed[MODEL].notices & ~fed[OTHER].notices) != 0 ||
        ((fed[MODEL].notices ^ fed[OTHER].notices) & HF_FEED_HISTORY) != 0)
        pair_differ(pair, "feed: the model notes %u, the store %u", fed[MODEL].notices,
                    fed[OTHER].notices);
}

static void do_amnesty(struct pair *pair, struct dice *dice)
{
    int64_t rows[SIDES] = { 0, 0 };
    hf_ms stalled = one_in(dice, 2) ? (hf_ms)roll(dice, 60000) : PICK(dice, spans);
    pair_say(pair, "amnesty %lld", (long long)stalled);
    for (int side = 0; side < SIDES; side++) {
        struct hf_store *store = pair->store[side];
        int rc = store->methods->amnesty(store, stalled, &rows[side], NULL);
        pair_codes(pair, "amnesty", 0, rc);
    }
    if (rows[MODEL] != rows[OTHER])
        pair_differ(pair, "amnesty: %lld leases by the model, %lld by the store",
                    (long long)rows[MODEL], (long long)rows[OTHER]);
}

static void do_stats(struct pair *pair, struct dice *dice)
{
    struct hf_stats s[SIDES];
    memset(s, 0, sizeof(s));
    struct hf_caller who = caller(dice);
    pair_say(pair, "stats tenant=%s", who.tenant ? who.tenant : "-");
    for (int side = 0; side < SIDES; side++) {
        int rc = hf_work_stats(pair->store[side], &who, &s[side], NULL);
        pair_codes(pair, "stats", 0, rc);
    }
    if (memcmp(&s[MODEL], &s[OTHER], sizeof(s[0])) == 0)
        return;
    pair_differ(pair,
                "stats: queued %lld %lld, running %lld %lld, gated %lld %lld, silent "
                "%lld %lld, lapsing %lld %lld, oldest queued %lld %lld, running %lld "
                "%lld, deadline %lld %lld, retry %lld %lld",
                (long long)s[0].by_status[HF_STATUS_QUEUED],
                (long long)s[1].by_status[HF_STATUS_QUEUED],
                (long long)s[0].by_status[HF_STATUS_RUNNING],
                (long long)s[1].by_status[HF_STATUS_RUNNING], (long long)s[0].gated,
                (long long)s[1].gated, (long long)s[0].silent, (long long)s[1].silent,
                (long long)s[0].lapsing, (long long)s[1].lapsing,
                (long long)s[0].oldest_queued_ms, (long long)s[1].oldest_queued_ms,
                (long long)s[0].oldest_running_ms, (long long)s[1].oldest_running_ms,
                (long long)s[0].next_wait_deadline_at,
                (long long)s[1].next_wait_deadline_at, (long long)s[0].next_retry_at,
                (long long)s[1].next_retry_at);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* Tokens of the session lane are kept as those of one more unit, the last. */
static void do_lease(struct pair *pair, struct dice *dice)
{
    static const char *const keys[] = { "s1", "s2" };
    struct pair_unit *unit = &pair->units[PAIR_UNITS - 1];
    const char *key = PICK(dice, keys);
    struct hf_lease_info info[SIDES];
    memset(info, 0, sizeof(info));
    unsigned what = roll(dice, 4);
    struct hf_lease_claim take = { .size = sizeof(take),
                                   .leased = HF_LEASED_SESSION,
                                   .key = key,
                                   .owner = PICK(dice, owners),
                                   .incarnation = PICK(dice, incarnations),
                                   .nonce = one_in(dice, 2) ? "n" : NULL };
    pair_say(pair, "lease %u key=%s owner=%s/%s", what, key, take.owner,
             take.incarnation);
    int codes[SIDES];
    for (int side = 0; side < SIDES; side++) {
        const char *token = unit->token[0][side] ? unit->token[0][side] : "hf1.1.1.x";
        struct hf_store *store = pair->store[side];
        struct hf_session_spec wanted = { .size = sizeof(wanted),
                                          .session_id = key,
                                          .agent = "a" };
        struct hf_session_answer *made = NULL;
        if (what == 0 && hf_session_create(store, NULL, &wanted, &made, NULL) == 0)
            hf_session_answer_free(made);
        if (what <= 1)
            codes[side] = hf_lease_take(store, &take, &info[side], NULL);
        else if (what == 2)
            codes[side] = hf_lease_renew(store, HF_LEASED_SESSION, key, token,
                                         &info[side], NULL);
        else
            codes[side] = hf_lease_release(store, HF_LEASED_SESSION, key, token, NULL);
    }
    pair_codes(pair, "lease", codes[MODEL], codes[OTHER]);
    if (info[0].fence != info[1].fence || info[0].held != info[1].held ||
        info[0].expires_at != info[1].expires_at ||
        info[0].claimed_at != info[1].claimed_at ||
        info[0].displaced != info[1].displaced ||
        info[0].displaced_fence != info[1].displaced_fence ||
        strcmp(info[0].owner, info[1].owner) != 0)
        pair_differ(pair, "lease: fence %lld %lld, held %d %d, expires %lld %lld",
                    (long long)info[0].fence, (long long)info[1].fence, info[0].held,
                    info[1].held, (long long)info[0].expires_at,
                    (long long)info[1].expires_at);
    for (int side = 0; side < SIDES && what <= 1 && codes[MODEL] == 0; side++)
        unit->token[0][side] = pair_text(pair, info[side].token);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
    unsigned weight;
    void (*act)(struct pair *pair, struct dice *dice);
} acts[] = {
    { 22, do_create },  { 22, do_claim },    { 44, do_change },    { 4, do_renew_all },
    { 8, do_sweep },    { 2, do_prune },     { 3, do_policy },     { 1, do_bump },
    { 16, do_advance }, { 1, do_reopen },    { 3, do_list },       { 2, do_stats },
    { 4, do_lease },    { 1, do_feed },      { 1, do_amnesty },    { 4, do_limit },
    { 3, do_crowd },    { 8, pair_session }, { 10, pair_journal },
};

/* One sequence in three is mostly about sessions. */
static unsigned weight_of(const struct pair *pair, size_t i)
{
    bool more = acts[i].act == pair_session && pair->seed % 3 == 0;
    return more ? 20 * acts[i].weight : acts[i].weight;
}

void pair_step(struct pair *pair, uint64_t chance)
{
    struct dice dice = { chance | 1 };
    unsigned total = 0;
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        total += weight_of(pair, i);
    unsigned at = roll(&dice, total);
    size_t i = 0;
    while (at >= weight_of(pair, i))
        at -= weight_of(pair, i++);
    pair->did[0] = 0;
    pair->step = chance;
    /* Often the same again, as by a caller whose answer was lost. */
    int times = one_in(&dice, 5) ? 2 : 1;
    for (int n = 0; n < times && !pair->complaint[0]; n++) {
        struct dice again = dice;
        if (n > 0)
            pair_say(pair, "; and again ");
        acts[i].act(pair, &again);
        if (!pair->complaint[0])
            pair_everything(pair);
    }
}
