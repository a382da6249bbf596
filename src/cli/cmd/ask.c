/* holdfast ask: a question to a person, and its answer.
 *
 * The question is a unit of its own, which waits for a person. It outlives this process: under
 * the same key a later `ask` waits for the same question. When the answer has come the unit is
 * closed as done by the first `ask` that sees it. */
#include "cli/cmd/runner.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"
#include "op/question.h"

#define QUEUE "question"
#define LOOK_MS 300
#define EXIT_NO_ANSWER 124 /* as timeout(1) has it */

struct asking {
    struct cli *cli;
    const char *id;
    const char *payload;
    const char *owner;
    const char *answer; /* NULL: there is none yet */
    enum hf_status status;
    hf_ms deadline_at;
};

/* ---- the question -------------------------------------------------------------------- */

/* Without --choices the choices are yes and no; --text takes any answer. */
static int put_choices(struct cli *cli, struct hf_json *json)
{
    const char *at = cli_text(cli, "choices");
    size_t count = 0;
    at = at ? at : "yes,no";
    hf_json_key(json, "choices");
    hf_json_array(json);
    while (at) {
        size_t len = strcspn(at, ",");
        const char *word = hf_arena_copy(&cli->arena, at, len);
        if (!word)
            return hf_fail_plain(&cli->err, HF_ENOMEM);
        if (len == 0)
            return hf_fail(&cli->err, HF_EINVAL, "--choices",
                           "--choices: a choice is empty: use --choices yes,no");
        hf_json_str(json, word);
        at = at[len] ? at + len + 1 : NULL;
        count++;
    }
    hf_json_end(json);
    return count > 1 ? 0
                     : hf_fail(&cli->err, HF_EINVAL, "--choices",
                               "--choices: a question needs at least two choices: use "
                               "--choices yes,no, or --text for any answer");
}

static int make_payload(struct cli *cli, const char **ret_payload)
{
    struct hf_buf text;
    struct hf_json json;
    int rc = 0;
    hf_buf_init(&text, hf_alloc_system(), (size_t)HF_MAX_PAYLOAD_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    if (!cli_given(cli, "text"))
        rc = put_choices(cli, &json);
    if (rc == 0) {
        hf_json_put_str(&json, "question", cli_text(cli, "question"));
        hf_json_end(&json);
    }
    if (rc == 0 && hf_buf_state(&text))
        rc = hf_fail_plain(&cli->err, hf_buf_state(&text));
    if (rc) {
        hf_buf_fini(&text);
        return rc;
    }
    *ret_payload = hf_buf_keep(&text, &cli->arena);
    return *ret_payload ? 0 : hf_fail_plain(&cli->err, HF_ENOMEM);
}

int check_ask(struct cli *cli)
{
    const char *payload;
    if (cli_given(cli, "text") && cli_given(cli, "choices"))
        return hf_fail(&cli->err, HF_EINVAL, "--choices",
                       "--choices and --text exclude each other");
    return make_payload(cli, &payload);
}

/* ---- the unit ------------------------------------------------------------------------ */

static int change(struct asking *ask, const struct hf_change *wanted)
{
    struct hf_answer *done = NULL;
    int rc = hf_work_change(ask->cli->store, &ask->cli->who, wanted, 1, HF_ALL_OR_NONE,
                            &done, &ask->cli->err);
    hf_answer_free(done);
    return rc;
}

/* From running to waiting for a person. */
static int begin_wait(struct asking *ask, const char *token)
{
    return change(
        ask, &(struct hf_change){ .size = sizeof(struct hf_change),
                                  .verb = HF_VERB_WAIT,
                                  .id = ask->id,
                                  .token = token,
                                  .status = HF_STATUS_WAITING_USER,
                                  .ref = ask->id,
                                  .reason = cli_text(ask->cli, "question"),
                                  .timeout_ms = cli_number(ask->cli, "timeout", 0) });
}

static int close_done(struct asking *ask, const char *token)
{
    return change(ask, &(struct hf_change){ .size = sizeof(struct hf_change),
                                            .verb = HF_VERB_CLOSE_OUT,
                                            .id = ask->id,
                                            .token = token,
                                            .status = HF_STATUS_DONE,
                                            .reason = "answered",
                                            .summary = ask->answer });
}

static int cancel(struct asking *ask)
{
    return change(ask, &(struct hf_change){ .size = sizeof(struct hf_change),
                                            .verb = HF_VERB_CANCEL,
                                            .id = ask->id,
                                            .reason = "the asking command was stopped" });
}

/* Made and claimed in one transaction. Of a key that was used the unit that is there. */
static int make_unit(struct asking *ask, struct hf_answer **ret_answer)
{
    struct cli *cli = ask->cli;
    char nonce[HF_NONCE_TEXT];
    const char *key = cli_text(cli, "idempotency-key");
    const char *parent = getenv("HOLDFAST_WORK_ID");
    int rc = hf_nonce(hf_random_system(), nonce, &cli->err);
    if (rc)
        return rc;
    const struct hf_claim claim = { .size = sizeof(claim),
                                    .owner = ask->owner,
                                    .pid = getpid() };
    const struct hf_work_spec work = { .size = sizeof(work),
                                       .source = HF_SOURCE_MANUAL,
                                       .source_id = key ? key : nonce,
                                       .kind = OP_QUESTION_KIND,
                                       .queue = QUEUE,
                                       .idempotency_key = key,
                                       .parent_work_id = parent && *parent ? parent
                                                                           : NULL,
                                       .payload = ask->payload,
                                       .disposition = HF_DISPOSITION_RERUNNABLE,
                                       .max_attempts = 100,
                                       .priority = -1 };
    const struct hf_process_spec process = { .size = sizeof(process),
                                             .work = &work,
                                             .identity_kind = OP_QUESTION_KIND,
                                             .claim = &claim };
    return hf_process_register(cli->store, &cli->who, &process, ret_answer, &cli->err);
}

/* It is queued: before its first wait, or with its answer. One of its askers continues with it. */
static int take_up(struct asking *ask)
{
    struct cli *cli = ask->cli;
    struct hf_answer *taken = NULL;
    const struct hf_claim claim = {
        .size = sizeof(claim), .owner = ask->owner, .pid = getpid(), .id = ask->id
    };
    int rc = hf_work_claim(cli->store, &cli->who, &claim, &taken, &cli->err);
    if (rc == 0 && hf_answer_count(taken) > 0) {
        const char *token = hf_answer_at(taken, 0)->token;
        rc = ask->answer ? close_done(ask, token) : begin_wait(ask, token);
    }
    hf_answer_free(taken);
    return rc == HF_EHELD || rc == HF_ETRANSITION ? 0 : rc; /* another one has it */
}

static int look(struct asking *ask)
{
    struct cli *cli = ask->cli;
    struct hf_answer *found = NULL;
    int rc = hf_work_get(cli->store, &cli->who, ask->id, &found, &cli->err);
    if (rc)
        return rc;
    const struct hf_work *work = &hf_answer_at(found, 0)->work;
    ask->status = hf_status_of(work->status);
    ask->deadline_at = work->deadline_at;
    (void)op_answer_text(work, &cli->arena, &ask->answer);
    hf_answer_free(found);
    return 0;
}

/* ---- waiting ------------------------------------------------------------------------- */

/* Where no monitor runs, the deadline is declared here. */
static int pass_deadline(struct asking *ask)
{
    struct cli *cli = ask->cli;
    struct hf_sweep_report report;
    if (ask->status != HF_STATUS_WAITING_USER || !ask->deadline_at ||
        cli_store_now(cli) <= ask->deadline_at)
        return 0;
    return hf_work_sweep(cli->store, &cli->who, 100, &report, &cli->err);
}

/* Without a key no process would read the answer to a stopped `ask`. */
static int stopped(struct asking *ask)
{
    struct cli *cli = ask->cli;
    bool keep = cli_given(cli, "idempotency-key");
    int rc = keep ? 0 : cancel(ask);
    return rc ? rc
              : hf_fail(&cli->err, HF_EHELD, NULL, "stopped by %s: the question %s",
                        cli->stop.by, keep ? "stays open" : "was cancelled");
}

static int wait_for_answer(struct asking *ask)
{
    struct cli *cli = ask->cli;
    for (;;) {
        int rc = look(ask);
        if (rc == 0 && ask->status == HF_STATUS_QUEUED)
            rc = take_up(ask);
        if (rc == 0)
            rc = pass_deadline(ask);
        if (rc && hf_err_class(rc) != HF_CLASS_RETRYABLE)
            return rc;
        if (rc == 0 && hf_status_terminal(ask->status))
            return 0;
        bool soon = ask->status == HF_STATUS_QUEUED;
        if (cli_stop_told(&cli->stop, soon ? 0 : LOOK_MS))
            return stopped(ask);
    }
}

/* ---- the answer ---------------------------------------------------------------------- */

static int put_answer(struct asking *ask)
{
    struct cli *cli = ask->cli;
    if (ask->status != HF_STATUS_DONE || !ask->answer) {
        bool late = ask->status == HF_STATUS_TIMEOUT;
        cli_note(cli,
                 late ? "no answer came in time (unit %s)"
                      : "the question was not answered (unit %s)",
                 op_short_id(ask->id));
        cli->exit_code = late ? EXIT_NO_ANSWER : 125;
    } else {
        cli->exit_code = op_choice_place(ask->payload, ask->answer);
    }
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "work_id", ask->id);
        hf_json_put_str(&cli->writer, "status", hf_status_word(ask->status));
        hf_json_put_str(&cli->writer, "answer", ask->answer);
        cli_ok_end(cli);
    } else if (cli->exit_code != EXIT_NO_ANSWER && cli->exit_code != 125) {
        cli_put_clean(cli, ask->answer);
        cli_put(cli, "\n");
    }
    return 0;
}

/* For the terminal or the log of the script. */
static void say_question(struct asking *ask, bool created)
{
    cli_note(ask->cli, "%s %s",
             created ? "asked:" : "was asked earlier:", cli_text(ask->cli, "question"));
    cli_note(ask->cli, "to answer: holdfast answer %s %s", op_short_id(ask->id),
             cli_given(ask->cli, "text")      ? "TEXT"
             : cli_given(ask->cli, "choices") ? cli_text(ask->cli, "choices")
                                              : "yes|no");
}

int cmd_ask(struct cli *cli)
{
    struct asking ask = { .cli = cli, .owner = run_owner(cli) };
    struct hf_answer *made = NULL;
    int rc = ask.owner ? make_payload(cli, &ask.payload)
                       : hf_fail_plain(&cli->err, HF_ENOMEM);
    if (rc == 0)
        rc = cli_stop_take(cli, &cli->stop);
    if (rc == 0)
        rc = cli_open_store(cli);
    if (rc == 0)
        rc = make_unit(&ask, &made);
    if (rc == 0) {
        const struct hf_item *item = hf_answer_at(made, 0);
        ask.id = hf_arena_text(&cli->arena, item->work.work_id);
        if (!ask.id)
            rc = hf_fail_plain(&cli->err, HF_ENOMEM);
        else if (item->token)
            rc = begin_wait(&ask, item->token);
        if (rc == 0)
            say_question(&ask, item->created);
    }
    hf_answer_free(made);
    if (rc == 0)
        rc = wait_for_answer(&ask);
    cli_stop_end(&cli->stop);
    return rc ? rc : put_answer(&ask);
}
