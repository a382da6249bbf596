/* Waits for people. */
#include "cli/cli.h"

#include <string.h>

#include "base/civil.h"
#include "base/json.h"
#include "base/json_get.h"
#include "op/shapes/wait.h"

static const struct cli_column wait_columns[] = {
    { .title = "WAIT" },
    { .title = "KIND", .rank = 2 },
    { .title = "STATE" },
    { .title = "SESSION", .rank = 1, .least = 12 },
    { .title = "ANSWERER", .rank = 3 },
    { .title = "DEADLINE" },
    { .title = "QUESTION", .least = 20 },
};
#define QUESTION_BYTES 80

/* The question, or what the wait is named after. */
static const char *question_of(const struct hf_wait *wait, char out[QUESTION_BYTES])
{
    struct json_t *asked = NULL;
    const char *text = NULL;
    struct hf_span span = { wait->asked, wait->asked ? strlen(wait->asked) : 0 };
    if (span.len && hf_json_parse(span, span.len, "asked", &asked, NULL) == 0)
        text = hf_json_as_text(hf_json_member(asked, "question"));
    size_t len = 0;
    for (text = text ? text : wait->name; text && text[len] && len < QUESTION_BYTES - 1;
         len++)
        out[len] = text[len];
    while (len == QUESTION_BYTES - 1 && len > 0 && (out[len - 1] & 0x80))
        len--; /* not within a character */
    out[len] = '\0';
    hf_json_free(asked);
    return out;
}

static void wait_cells(struct cli_table *table, const void *row)
{
    const struct hf_wait *wait = row;
    char deadline[HF_INSTANT_TEXT], question[QUESTION_BYTES];
    const char *cells[] = { op_short_id(wait->wait_id),
                            wait->kind,
                            wait->state,
                            wait->session_id,
                            wait->answerer,
                            wait->deadline_at
                                ? hf_instant_text(wait->deadline_at, deadline)
                                : NULL,
                            question_of(wait, question) };
    cli_table_row(table, cells, 2, *wait->state == 'o' ? CLI_YELLOW : CLI_PLAIN);
}

static void wait_line(struct cli *cli, const struct op_row *row)
{
    const struct hf_wait *wait = row->at;
    cli_putf(cli, "%s %s: %s, ", row->did, wait->wait_id, wait->state);
    cli_put_clean(cli, wait->outcome ? wait->outcome : "no outcome");
    if (wait->actor) {
        cli_putf(cli, ", by ");
        cli_put_clean(cli, wait->actor);
    }
    cli_putf(cli, "\n");
}

const struct cli_view cli_wait_views[] = {
    { &hf_wait_shape, wait_columns, 7, wait_cells, wait_line, cli_any_detail },
    { .shape = NULL },
};
