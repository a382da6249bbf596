/* The words of the ledger's enums, both ways. */

#include <holdfast/schedule.h>

#include "base/text.h"

#define X(name, word) [HF_##name] = (word),
static const char *const status_words[HF_STATUS_COUNT] = { HF_STATUSES(X) };
static const char *const disposition_words[HF_DISPOSITION_COUNT] = { HF_DISPOSITIONS(X) };
#undef X
#define X(name, word) [HF_SOURCE_##name] = (word),
static const char *const source_words[HF_SOURCE_COUNT] = { HF_SOURCES(X) };
#undef X

#define X(name, word) [HF_OVERLAP_##name] = (word),
static const char *const overlap_words[HF_OVERLAP_COUNT] = { HF_OVERLAPS(X) };
#undef X
#define X(name, word) [HF_CATCH_UP_##name] = (word),
static const char *const catch_up_words[HF_CATCH_UP_COUNT] = { HF_CATCH_UPS(X) };
#undef X

static const char *const verb_words[HF_VERB_COUNT] = {
    [HF_VERB_RENEW] = "renew",
    [HF_VERB_TOUCH] = "touch",
    [HF_VERB_APPEND] = "append_event",
    [HF_VERB_WAIT] = "wait",
    [HF_VERB_RESUME] = "resume",
    [HF_VERB_CLOSE_OUT] = "close_out",
    [HF_VERB_FAIL] = "fail",
    [HF_VERB_HAND_BACK] = "hand_back",
    [HF_VERB_CANCEL] = "cancel",
    [HF_VERB_REQUEUE] = "requeue",
    [HF_VERB_REQUEST_ABANDON] = "request_abandon",
    [HF_VERB_ABANDON] = "abandon",
    [HF_VERB_RESCHEDULE] = "reschedule",
    [HF_VERB_RELEASE] = "release",
};

/* Values come from callers and from databases, so none is trusted to be in range. */
static const char *word_at(const char *const *words, int count, int value)
{
    return value > 0 && value < count ? words[value] : NULL;
}

static int value_of(const char *const *words, int count, const char *word)
{
    for (int i = 1; word && i < count; i++) {
        if (hf_same(words[i], word))
            return i;
    }
    return 0;
}

const char *hf_status_word(enum hf_status status)
{
    return word_at(status_words, HF_STATUS_COUNT, (int)status);
}

const char *hf_source_word(enum hf_source source)
{
    return word_at(source_words, HF_SOURCE_COUNT, (int)source);
}

const char *hf_disposition_word(enum hf_disposition disposition)
{
    return word_at(disposition_words, HF_DISPOSITION_COUNT, (int)disposition);
}

const char *hf_verb_word(enum hf_verb verb)
{
    return word_at(verb_words, HF_VERB_COUNT, (int)verb);
}

enum hf_status hf_status_of(const char *word)
{
    return (enum hf_status)value_of(status_words, HF_STATUS_COUNT, word);
}

enum hf_source hf_source_of(const char *word)
{
    return (enum hf_source)value_of(source_words, HF_SOURCE_COUNT, word);
}

enum hf_disposition hf_disposition_of(const char *word)
{
    return (enum hf_disposition)value_of(disposition_words, HF_DISPOSITION_COUNT, word);
}

bool hf_status_terminal(enum hf_status status)
{
    return status >= HF_DONE && status < HF_STATUS_COUNT;
}

const char *hf_overlap_word(enum hf_overlap overlap)
{
    return word_at(overlap_words, HF_OVERLAP_COUNT, (int)overlap);
}

const char *hf_catch_up_word(enum hf_catch_up catch_up)
{
    return word_at(catch_up_words, HF_CATCH_UP_COUNT, (int)catch_up);
}

enum hf_overlap hf_overlap_of(const char *word)
{
    return (enum hf_overlap)value_of(overlap_words, HF_OVERLAP_COUNT, word);
}

enum hf_catch_up hf_catch_up_of(const char *word)
{
    return (enum hf_catch_up)value_of(catch_up_words, HF_CATCH_UP_COUNT, word);
}
