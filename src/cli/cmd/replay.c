/* holdfast replay: recorded turns against this build. A recording has the inputs of a turn and the
 * answers that its effects got; a replay runs the machine with them, and reports where it asks for
 * other things than were recorded. */
#include <stdio.h>
#include <string.h>

#include <holdfast/turn.h>

#include "cli/cli.h"

#define SHOWN 60 /* bytes of a text around the first difference */

struct played {
    size_t line; /* of the file, from 1 */
    size_t effects;
    size_t responses;
};

static struct hf_span next_line(struct hf_span *rest)
{
    const char *at = rest->at;
    const char *end = memchr(at, '\n', rest->len);
    size_t len = end ? (size_t)(end - at) : rest->len;
    size_t used = end ? len + 1 : len;
    *rest = (struct hf_span){ at + used, rest->len - used };
    return (struct hf_span){ at, len };
}

/* Where the texts part, a little before and after it, on standard error. */
static void show(const struct cli *cli, const char *side, const char *text, size_t len,
                 size_t at)
{
    size_t from = at > SHOWN / 2 ? at - SHOWN / 2 : 0;
    size_t left = len > from ? len - from : 0;
    cli_note(cli, "%s: %s%.*s%s", side, from > 0 ? "…" : "",
             (int)(left < SHOWN ? left : SHOWN), text + (from < len ? from : len),
             left > SHOWN ? "…" : "");
}

/* In canonical form, so that only what differs differs. */
static void show_divergence(struct cli *cli, struct hf_span line, struct hf_span actual)
{
    struct hf_buf recorded;
    struct hf_buf here;
    size_t at = 0;
    hf_buf_init(&recorded, hf_alloc_system(), 2 * (size_t)HF_MAX_TURN_SAVE_BYTES);
    hf_buf_init(&here, hf_alloc_system(), 2 * (size_t)HF_MAX_TURN_SAVE_BYTES);
    int rc = line.len > 0 ? hf_json_canonical_text(&recorded, line) : 0;
    if (rc == 0 && actual.len > 0)
        rc = hf_json_canonical_text(&here, actual);
    if (rc == 0) {
        const char *a = hf_buf_str(&recorded);
        const char *b = hf_buf_str(&here);
        while (at < recorded.len && at < here.len && a[at] == b[at])
            at++;
        show(cli, "recorded", a, recorded.len, at);
        show(cli, "this build", b, here.len, at);
    }
    hf_buf_fini(&recorded);
    hf_buf_fini(&here);
    cli->action =
        "if the change is intended, record the turn again; otherwise it is a regression";
}

/* The recording's turn up to its end or to the first divergence, which is then in
 * cli->err with its line. */
static int play(struct cli *cli, struct hf_span text, struct played *ret_played)
{
    struct hf_replay *replay = NULL;
    struct hf_bytes actual = { 0 };
    struct hf_err err = { 0 };
    struct hf_span line = next_line(&text);
    struct played played = { .line = 1 };
    int rc = hf_replay_new(NULL, line, NULL, &replay, &err);
    while (rc == 0 && text.len > 0) {
        line = next_line(&text);
        played.line++;
        if (line.len == 0)
            continue;
        rc = hf_replay_line(replay, line, &actual, &err);
        bool response = memmem(line.at, line.len < 16 ? line.len : 16, "response", 8);
        played.responses += response;
        played.effects += !response;
    }
    if (rc == 0) {
        line = (struct hf_span){ "", 0 };
        rc = hf_replay_end(replay, &actual, &err);
    }
    if (rc == HF_ECONFLICT)
        show_divergence(cli, line, (struct hf_span){ actual.at, actual.len });
    if (rc)
        rc = hf_fail(&cli->err, rc, err.field[0] ? err.field : NULL, "line %zu: %s",
                     played.line, err.message);
    hf_bytes_free(&actual);
    hf_replay_free(replay);
    *ret_played = played;
    return rc;
}

int cmd_replay(struct cli *cli)
{
    struct hf_span text = { 0 };
    struct played played = { 0 };
    int rc = cli_read_file(cli, cli_text(cli, "recording"),
                           (size_t)HF_MAX_TURN_SAVE_BYTES, &text);
    if (rc == 0)
        rc = play(cli, text, &played);
    if (rc)
        return rc;
    if (!cli->json) {
        cli_putf(cli, "the same: %zu effects, %zu responses\n", played.effects,
                 played.responses);
        return 0;
    }
    cli_ok_begin(cli);
    hf_json_put_i64(&cli->writer, "effects", (int64_t)played.effects);
    hf_json_put_i64(&cli->writer, "responses", (int64_t)played.responses);
    cli_ok_end(cli);
    return 0;
}
