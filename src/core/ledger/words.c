/* The words of the ledger's enums, both ways. */

#include <holdfast/schedule.h>

#include "base/text.h"
#include "core/ledger/fields.h"

#define X(name, word) (word),
const char *const hf_status_words[] = { HF_STATUSES(X) NULL };
const char *const hf_source_words[] = { HF_SOURCES(X) NULL };
const char *const hf_disposition_words[] = { HF_DISPOSITIONS(X) NULL };
const char *const hf_overlap_words[] = { HF_OVERLAPS(X) NULL };
const char *const hf_catch_up_words[] = { HF_CATCH_UPS(X) NULL };
#undef X

static const char *const verb_words[] = {
    [HF_VERB_RENEW - 1] = "renew",
    [HF_VERB_TOUCH - 1] = "touch",
    [HF_VERB_APPEND - 1] = "append_event",
    [HF_VERB_WAIT - 1] = "wait",
    [HF_VERB_RESUME - 1] = "resume",
    [HF_VERB_CLOSE_OUT - 1] = "close_out",
    [HF_VERB_FAIL - 1] = "fail",
    [HF_VERB_HAND_BACK - 1] = "hand_back",
    [HF_VERB_CANCEL - 1] = "cancel",
    [HF_VERB_REQUEUE - 1] = "requeue",
    [HF_VERB_REQUEST_ABANDON - 1] = "request_abandon",
    [HF_VERB_ABANDON - 1] = "abandon",
    [HF_VERB_RESCHEDULE - 1] = "reschedule",
    [HF_VERB_RELEASE - 1] = "release",
};

/* Values come from callers and from databases, so none is trusted to be in range. */
static const char *word_at(const char *const *words, int count, int value)
{
    return value > 0 && value < count ? words[value - 1] : NULL;
}

static int value_of(const char *const *words, int count, const char *word)
{
    for (int i = 1; word && i < count; i++) {
        if (hf_same(words[i - 1], word))
            return i;
    }
    return 0;
}

const char *hf_status_word(enum hf_status status)
{
    return word_at(hf_status_words, HF_STATUS_COUNT, (int)status);
}

const char *hf_source_word(enum hf_source source)
{
    return word_at(hf_source_words, HF_SOURCE_COUNT, (int)source);
}

const char *hf_disposition_word(enum hf_disposition disposition)
{
    return word_at(hf_disposition_words, HF_DISPOSITION_COUNT, (int)disposition);
}

const char *hf_verb_word(enum hf_verb verb)
{
    return word_at(verb_words, HF_VERB_COUNT, (int)verb);
}

enum hf_status hf_status_of(const char *word)
{
    return (enum hf_status)value_of(hf_status_words, HF_STATUS_COUNT, word);
}

enum hf_source hf_source_of(const char *word)
{
    return (enum hf_source)value_of(hf_source_words, HF_SOURCE_COUNT, word);
}

enum hf_disposition hf_disposition_of(const char *word)
{
    return (enum hf_disposition)value_of(hf_disposition_words, HF_DISPOSITION_COUNT,
                                         word);
}

bool hf_status_terminal(enum hf_status status)
{
    return status >= HF_STATUS_DONE && status < HF_STATUS_COUNT;
}

const char *hf_overlap_word(enum hf_overlap overlap)
{
    return word_at(hf_overlap_words, HF_OVERLAP_COUNT, (int)overlap);
}

const char *hf_catch_up_word(enum hf_catch_up catch_up)
{
    return word_at(hf_catch_up_words, HF_CATCH_UP_COUNT, (int)catch_up);
}

enum hf_overlap hf_overlap_of(const char *word)
{
    return (enum hf_overlap)value_of(hf_overlap_words, HF_OVERLAP_COUNT, word);
}

enum hf_catch_up hf_catch_up_of(const char *word)
{
    return (enum hf_catch_up)value_of(hf_catch_up_words, HF_CATCH_UP_COUNT, word);
}
