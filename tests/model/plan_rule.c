/* Random operations on units with a close rule: a wait under the unit's own id, as of a holder that
 * cannot meet the rule, and the end of that wait by a person. */

#include <string.h>

#include "model/dice.h"
#include "model/pair.h"

/* What a holder, or a person, does about the close rule of the unit: a wait under its own id,
 * an end by an authority, or nothing (HF_VERB_NONE). */
static enum hf_verb rule_verb(struct pair *pair, const char *id)
{
    struct hf_answer *answer = NULL;
    enum hf_verb verb = HF_VERB_NONE;
    if (hf_work_get(pair->store[MODEL], NULL, id, &answer, NULL) != 0)
        return verb;
    const struct hf_work *work = &hf_answer_at(answer, 0)->work;
    enum hf_status status = hf_status_of(work->status);
    if (work->close_rule && status == HF_STATUS_RUNNING)
        verb = HF_VERB_WAIT;
    else if (work->close_rule && work->waiting_ref && strcmp(work->waiting_ref, id) == 0)
        verb = HF_VERB_CLOSE_OUT;
    hf_answer_free(answer);
    return verb;
}

enum hf_verb pair_rule(struct pair *pair, struct dice *dice,
                       const struct pair_unit **unit)
{
    if (pair->unit_count == 0 || !one_in(dice, 20))
        return HF_VERB_NONE;
    size_t start = roll(dice, (unsigned)pair->unit_count);
    for (size_t i = 0; i < pair->unit_count; i++) {
        const struct pair_unit *one = &pair->units[(start + i) % pair->unit_count];
        enum hf_verb verb = rule_verb(pair, one->id[MODEL]);
        if (verb)
            *unit = one;
        if (verb)
            return verb;
    }
    return HF_VERB_NONE;
}

void pair_rule_met(struct dice *dice, struct hf_change *c)
{
    static const char *const given[] = { "file:a" };
    c->status = one_in(dice, 2) ? HF_STATUS_DONE : HF_STATUS_FAILED;
    c->error_class = NULL;
    c->authority = one_in(dice, 2) ? "engine" : "ann";
    c->reviewer = one_in(dice, 2) ? "ann" : NULL;
    c->evidence = given;
    c->evidence_count = one_in(dice, 2);
}
