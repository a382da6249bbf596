/* Enums of sessions and their words. */
#include "base/text.h"
#include "core/session/session.h"

#define X(name, word) word,
static const char *const relations[] = { HF_RELATIONS(X) };
static const char *const input_kinds[] = { HF_INPUT_KINDS(X) };
static const char *const turn_cancels[] = { HF_TURN_CANCELS(X) };
#undef X

const char *hf_relation_word(enum hf_relation relation)
{
    return (unsigned)relation < HF_RELATION_COUNT ? relations[relation] : NULL;
}

const char *hf_session_input_kind_word(enum hf_session_input_kind kind)
{
    return (unsigned)kind < HF_INPUT_KIND_COUNT ? input_kinds[kind] : NULL;
}

const char *hf_session_turn_cancel_word(enum hf_session_turn_cancel answer)
{
    return (unsigned)answer < HF_TURN_CANCEL_COUNT ? turn_cancels[answer] : NULL;
}

bool hf_relation_of(const char *word, enum hf_relation *ret_relation)
{
    unsigned at = 0;
    bool found = hf_word_find(relations, HF_RELATION_COUNT, word, &at);
    if (found)
        *ret_relation = (enum hf_relation)at;
    return found;
}

bool hf_session_input_kind_of(const char *word, enum hf_session_input_kind *ret_kind)
{
    unsigned at = 0;
    bool found = hf_word_find(input_kinds, HF_INPUT_KIND_COUNT, word, &at);
    if (found)
        *ret_kind = (enum hf_session_input_kind)at;
    return found;
}
