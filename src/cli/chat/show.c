/* The text of both forms about a question: its commands, its deadline, its answer. */
#include "cli/chat/show.h"

#include <stdio.h>
#include <string.h>

#include "base/civil.h"
#include "base/text.h"

/* The last digits name it, as everywhere. */
static const char *short_id(const char *id)
{
    size_t len = strlen(id);
    return len > 8 ? id + len - 8 : id;
}

const char *show_command(const struct show_wait *wait, bool yes,
                         char out[SHOW_COMMAND_BYTES])
{
    const char *id = short_id(wait->wait_id);
    char actor[100] = "";
    if (wait->answerer)
        (void)snprintf(actor, sizeof(actor), " --actor human:%.80s", wait->answerer);
    if (wait->ask == SHOW_OUTSIDE)
        (void)snprintf(out, SHOW_COMMAND_BYTES, "holdfast wait resolve %s --value JSON%s",
                       id, actor);
    else if (yes)
        (void)snprintf(out, SHOW_COMMAND_BYTES, "holdfast approve %s%s", id, actor);
    else
        (void)snprintf(out, SHOW_COMMAND_BYTES, "holdfast deny %s --reason TEXT%s", id,
                       actor);
    return out;
}

bool show_is_usual(const struct show_wait *wait)
{
    char usual[120];
    (void)snprintf(usual, sizeof(usual), "May %.80s be called?",
                   wait->tool ? wait->tool : "");
    return hf_same(wait->question, usual);
}

const char *show_date(hf_ms at, char out[SHOW_DATE_BYTES])
{
    char instant[HF_INSTANT_TEXT];
    (void)snprintf(out, SHOW_DATE_BYTES, "%.10s %.5s UTC", hf_time_text(at, instant),
                   instant + 11);
    return out;
}

const char *show_policy(const struct show_wait *wait)
{
    static const char *const words[][2] = {
        { "deny", "denied" },
        { "approve", "approved" },
        { "result", "the model reads that none came" },
        { "fail_turn", "the turn fails" },
        { "next", "another is asked" },
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (hf_same(wait->policy, words[i][0]))
            return words[i][1];
    return "it ends";
}

const char *show_answered(const struct show_answer *answer, char *out, size_t room)
{
    bool happened = answer->ask == SHOW_HAPPENED;
    const char *what = "answered";
    if (hf_same(answer->kind, "approve"))
        what = happened         ? "it happened"
               : answer->edited ? "approved with other arguments"
                                : "approved";
    else if (hf_same(answer->kind, "deny"))
        what = happened ? "it did not happen" : "denied";
    else if (hf_same(answer->kind, "error"))
        what = "answered with a failure";
    else if (hf_same(answer->kind, "timeout"))
        what = "no answer came in time";
    else if (hf_same(answer->kind, "cancelled"))
        what = "withdrawn";
    (void)snprintf(out, room, "%.80s%s%s%s%.80s%s%.300s",
                   answer->tool ? answer->tool : "", answer->tool ? ": " : "", what,
                   answer->actor ? " by " : "", answer->actor ? answer->actor : "",
                   answer->reason ? ": " : "", answer->reason ? answer->reason : "");
    return out;
}
