/* Random operations on the journal of processes and operations. Afterwards the effects that need a
 * person are compared. */

#include <string.h>

#include <holdfast/journal.h>

#include "model/dice.h"
#include "model/pair.h"

#define RECENT_UNITS 3 /* whose ids are scopes, so that effects meet */

static void reach(struct pair *pair, enum pair_reach what, bool reached)
{
    if (reached)
        pair->reached |= 1ull << what;
}

static void same_text(struct pair *pair, const char *what, const char *model,
                      const char *other)
{
    if (!pair_same(pair, model, other))
        pair_differ(pair, "%s: the model has %.150s, the store %.150s", what,
                    model ? model : "null", other ? other : "null");
}

static void same_number(struct pair *pair, const char *what, int64_t model, int64_t other)
{
    if (model != other)
        pair_differ(pair, "%s: the model has %lld, the store %lld", what,
                    (long long)model, (long long)other);
}

/* ---- comparing ----------------------------------------------------------------------- */

static void compare_effect(struct pair *pair, const struct hf_journal_effect *a,
                           const struct hf_journal_effect *b)
{
#define TEXT(field) same_text(pair, "effect, " #field, a->field, b->field)
#define NUMBER(field) same_number(pair, "effect, " #field, a->field, b->field)
    TEXT(scope);
    TEXT(scope_id);
    TEXT(key);
    TEXT(tenant);
    TEXT(kind);
    TEXT(recovery);
    TEXT(status);
    TEXT(owner);
    TEXT(envelope);
    TEXT(outcome);
    TEXT(known);
    NUMBER(started_at);
    NUMBER(settled_at);
    NUMBER(resolved_at);
    TEXT(actor_kind);
    TEXT(actor);
#undef TEXT
#undef NUMBER
}

/* Ids of units differ between the stores, and so does their order. */
static const struct hf_journal_effect *find(struct pair *pair,
                                            const struct hf_journal_effects *all,
                                            const struct hf_journal_effect *one)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(one->key, all->items[i].key) == 0 &&
            strcmp(one->scope, all->items[i].scope) == 0 &&
            pair_same(pair, one->scope_id, all->items[i].scope_id))
            return &all->items[i];
    return NULL;
}

static void compare_unknown(struct pair *pair)
{
    struct hf_journal_effects *all[SIDES] = { NULL };
    int codes[SIDES];
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_journal_unknown(pair->store[side], NULL, NULL, 1000, &all[side],
                                         NULL);
    pair_codes(pair, "unknown effects", codes[MODEL], codes[OTHER]);
    if (!codes[MODEL] && !codes[OTHER]) {
        same_number(pair, "unknown effects", (int64_t)all[MODEL]->count,
                    (int64_t)all[OTHER]->count);
        reach(pair, PAIR_JOURNAL_UNKNOWN, all[MODEL]->count > 0);
    }
    for (size_t i = 0; !pair->complaint[0] && i < all[MODEL]->count; i++) {
        const struct hf_journal_effect *one = &all[MODEL]->items[i];
        const struct hf_journal_effect *other = find(pair, all[OTHER], one);
        if (other)
            compare_effect(pair, one, other);
        else
            pair_differ(pair, "effect %s of %s %s: the store lists none", one->key,
                        one->scope, one->scope_id);
    }
    for (int side = 0; side < SIDES; side++)
        hf_journal_effects_free(all[side]);
}

/* ---- operations ---------------------------------------------------------------------- */

static void draw_of(struct pair *pair, struct dice *dice,
                    struct hf_journal_key ret_of[SIDES])
{
    static const char *const names[] = { "o1", "o2" };
    static const char *const keys[] = { "1", "2" };
    const char *name = PICK(dice, names), *key = PICK(dice, keys);
    size_t back = roll(dice, RECENT_UNITS);
    bool process = one_in(dice, 2) && back < pair->unit_count;
    for (int side = 0; side < SIDES; side++) {
        ret_of[side] = (struct hf_journal_key){ HF_SCOPE_OPERATION, name, key };
        if (process)
            ret_of[side] = (struct hf_journal_key){
                HF_SCOPE_PROCESS, pair->units[pair->unit_count - 1 - back].id[side], key
            };
    }
    pair_say(pair, "of %s %s %s", hf_scope_name(ret_of[MODEL].scope),
             ret_of[MODEL].scope_id, key);
}

static const struct pair_hold *draw_hold(struct pair *pair, struct dice *dice)
{
    return &pair->holds[one_in(dice, 3) ? roll(dice, PAIR_HOLDS) : 0];
}

static void keep_hold(struct pair *pair, const struct hf_journal_key of[SIDES],
                      struct hf_journal_answer *const seen[SIDES])
{
    memmove(&pair->holds[1], &pair->holds[0], (PAIR_HOLDS - 1) * sizeof(pair->holds[0]));
    for (int side = 0; side < SIDES; side++) {
        pair->holds[0].of[side] = of[side]; /* its texts are literals, or the pair's */
        pair->holds[0].token[side] = pair_text(pair, seen[side]->token);
    }
}

/* A token has its fence, which is compared, and a nonce, which is each store's own. */
static void compare_seen(struct pair *pair, const struct hf_journal_answer *a,
                         const struct hf_journal_answer *b)
{
    same_number(pair, "begin, decision", a->decision, b->decision);
    same_number(pair, "begin, act", a->act, b->act);
    same_number(pair, "begin, status", a->status, b->status);
    same_number(pair, "begin, fence", a->fence, b->fence);
    same_number(pair, "begin, busy_ms", a->busy_ms, b->busy_ms);
    same_text(pair, "begin, outcome", a->outcome, b->outcome);
    same_number(pair, "begin, a token", a->token != NULL, b->token != NULL);
    reach(pair, PAIR_JOURNAL_BEGUN, a->decision == HF_DECISION_ABSENT);
    reach(pair, PAIR_JOURNAL_BUSY, a->decision == HF_DECISION_BUSY);
    reach(pair, PAIR_JOURNAL_TAKEN, a->decision == HF_DECISION_TAKE_OVER);
    reach(pair, PAIR_JOURNAL_REPLAYED, a->decision == HF_DECISION_REPLAY);
}

static void do_begin(struct pair *pair, struct dice *dice)
{
    static const char *const nonces[] = { NULL, NULL, "n1", "n2" };
    static const char *const owners[] = { "host", "other" };
    static const hf_ms terms[] = { 0, 1000, 60000 };
    struct hf_journal_key of[SIDES];
    struct hf_journal_answer *seen[SIDES] = { NULL };
    struct hf_journal_begin begin = {
        .size = sizeof(begin),
        .kind = "mail",
        .recovery = (enum hf_recovery)(1 + roll(dice, HF_RECOVERY_COUNT - 1)),
        .envelope = one_in(dice, 12) ? "{\"to\":\"bert\"}" : "{\"to\":\"anna\"}",
        .can_probe = one_in(dice, 2),
        .owner = PICK(dice, owners),
        .nonce = PICK(dice, nonces),
        .ttl_ms = PICK(dice, terms),
    };
    struct hf_caller who = { .size = sizeof(who),
                             .tenant = one_in(dice, 4) ? "acme" : NULL };
    int codes[SIDES];
    pair_say(pair, "journal begin %s %s nonce=%s ttl=%lld %s ",
             hf_recovery_name(begin.recovery), begin.owner,
             begin.nonce ? begin.nonce : "-", (long long)begin.ttl_ms, begin.envelope);
    draw_of(pair, dice, of);
    for (int side = 0; side < SIDES; side++) {
        begin.of = of[side];
        codes[side] = hf_journal_begin(pair->store[side], &who, &begin, &seen[side],
                                       NULL);
    }
    pair_codes(pair, "journal begin", codes[MODEL], codes[OTHER]);
    reach(pair, PAIR_JOURNAL_MISMATCH, codes[MODEL] == HF_EEFFECT);
    if (!codes[MODEL] && !codes[OTHER]) {
        compare_seen(pair, seen[MODEL], seen[OTHER]);
        if (seen[MODEL]->token && seen[OTHER]->token)
            keep_hold(pair, of, seen);
    }
    for (int side = 0; side < SIDES; side++)
        hf_journal_answer_free(seen[side]);
}

static const char *draw_outcome(struct dice *dice)
{
    static const char *const outcomes[] = { "{\"sent\":true}", "{\"sent\":false}" };
    return PICK(dice, outcomes);
}

static enum hf_entry_status draw_status(struct dice *dice)
{
    static const enum hf_entry_status statuses[] = { HF_ENTRY_DONE, HF_ENTRY_FAILED,
                                                     HF_ENTRY_UNKNOWN, HF_ENTRY_UNKNOWN };
    return PICK(dice, statuses);
}

/* A settlement, or a renewal of the lease. */
static void do_hold(struct pair *pair, struct dice *dice)
{
    const struct pair_hold *hold = draw_hold(pair, dice);
    bool renew = one_in(dice, 4);
    enum hf_entry_status status = draw_status(dice);
    const char *outcome = draw_outcome(dice);
    int codes[SIDES];
    if (!hold->token[MODEL])
        return;
    pair_say(pair, "journal %s %s of %s %s %s",
             renew ? "renew" : hf_entry_status_name(status), outcome,
             hf_scope_name(hold->of[MODEL].scope), hold->of[MODEL].scope_id,
             hold->of[MODEL].key);
    for (int side = 0; side < SIDES; side++)
        codes[side] = renew ? hf_journal_renew(pair->store[side], &hold->of[side],
                                               hold->token[side], NULL)
                            : hf_journal_settle(pair->store[side], &hold->of[side],
                                                hold->token[side], status, outcome, NULL);
    pair_codes(pair, "journal hold", codes[MODEL], codes[OTHER]);
    reach(pair, PAIR_JOURNAL_SETTLED, !renew && codes[MODEL] == 0);
    reach(pair, PAIR_JOURNAL_LOST, codes[MODEL] == HF_ELEASELOST);
}

static void do_resolve(struct pair *pair, struct dice *dice)
{
    static const char *const actors[] = { "anna", "bert" };
    struct hf_caller who = { .size = sizeof(who),
                             .actor_kind = "human",
                             .actor = PICK(dice, actors) };
    struct hf_journal_key of[SIDES];
    struct hf_journal_effects *shown[SIDES] = { NULL };
    struct hf_journal_resolve request = { .size = sizeof(request),
                                          .status = draw_status(dice) };
    int codes[SIDES];
    if (one_in(dice, 2))
        request.reason = "it is so";
    else
        request.outcome = draw_outcome(dice);
    pair_say(pair, "journal resolve %s by %s ", hf_entry_status_name(request.status),
             who.actor);
    draw_of(pair, dice, of);
    for (int side = 0; side < SIDES; side++) {
        request.of = of[side];
        codes[side] = hf_journal_resolve(pair->store[side], &who, &request, &shown[side],
                                         NULL);
    }
    pair_codes(pair, "journal resolve", codes[MODEL], codes[OTHER]);
    if (!codes[MODEL] && !codes[OTHER])
        compare_effect(pair, &shown[MODEL]->items[0], &shown[OTHER]->items[0]);
    reach(pair, PAIR_JOURNAL_RESOLVED, codes[MODEL] == 0);
    reach(pair, PAIR_JOURNAL_HELD, codes[MODEL] == HF_EHELD);
    for (int side = 0; side < SIDES; side++)
        hf_journal_effects_free(shown[side]);
}

static void do_retire(struct pair *pair, struct dice *dice)
{
    struct hf_journal_key of[SIDES];
    int64_t count[SIDES] = { 0, 0 };
    int codes[SIDES];
    pair_say(pair, "journal retire ");
    draw_of(pair, dice, of);
    for (int side = 0; side < SIDES; side++)
        codes[side] = hf_journal_retire(pair->store[side], of[side].scope,
                                        of[side].scope_id, &count[side], NULL);
    pair_codes(pair, "journal retire", codes[MODEL], codes[OTHER]);
    same_number(pair, "journal retire", count[MODEL], count[OTHER]);
    reach(pair, PAIR_JOURNAL_RETIRED, count[MODEL] > 0);
}

void pair_journal(struct pair *pair, struct dice *dice)
{
    static void (*const acts[])(struct pair * pair, struct dice * dice) = {
        do_begin, do_begin, do_begin,   do_begin,   do_hold,
        do_hold,  do_hold,  do_resolve, do_resolve, do_retire
    };
    PICK(dice, acts)(pair, dice);
    compare_unknown(pair);
}
