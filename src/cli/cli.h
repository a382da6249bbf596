/* The program: what its files share.
 *
 * Everything that a user can type is declared once, in the tables of commands*.c. Parsing,
 * --help, the manual pages and the completion are all made from them, so that none can say
 * what another does not do. A command gets checked input (types, words, JSON, UTF-8) before
 * a store is opened, and answers with 0 or an HF_E* code; main turns that into the one
 * envelope or message, and into the exit code.
 */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include <holdfast/limits.h>
#include <holdfast/run.h>
#include <holdfast/store.h>
#include <holdfast/work.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/near.h"

struct cli;
struct hf_field;

enum cli_type {
    CLI_FLAG,
    CLI_TEXT,
    CLI_PATH,     /* any bytes */
    CLI_WORD,     /* one of `words` */
    CLI_INT,      /* min..max */
    CLI_DURATION, /* "45s"; the value is in ms, min..max where they are given */
    CLI_JSON      /* JSON, @file or -; at most `max` bytes */
};

#define CLI_NEEDED 1u /* it is an error to leave it out */
#define CLI_MANY 2u   /* may be given several times */
#define CLI_BARE 4u   /* may be given without its name */

struct cli_option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* what help calls the value; NULL for a flag */
    enum cli_type type;
    unsigned flags;
    const char *help;
    const char *const *words; /* WORD: the legal ones; TEXT: the usual ones; NULL ends */
    int64_t min;
    int64_t max;
    enum hf_limit limit; /* instead of `max`, where it is one of the limits; 0: none */
};

struct cli_example {
    const char *what; /* NULL ends a table */
    const char *command;
};

#define CLI_STORE 1u      /* needs a store, which is made where there is none */
#define CLI_MUST_EXIST 2u /* needs a store, and never makes one */
#define CLI_ROWS 4u       /* prints rows: takes --field */
#define CLI_ROW 8u        /* prints one row: takes --field and --shell */
#define CLI_HIDDEN 16u    /* for the build, not for people */
#define CLI_READS 128u    /* needs a store, and only reads it */
#define CLI_OPENS 64u     /* opens its store itself, where it needs one */
#define CLI_WRAPS 32u /* its exit code is another command's: its own failures are 125 */

struct cli_command {
    const char *path; /* "work create" */
    const char *summary;
    const char *text; /* more than the summary says; NULL: nothing */
    const struct cli_option *options;
    const struct cli_example *examples;
    unsigned flags;
    const char *actor_kind; /* who acts when --actor does not say */
    const char *exits;      /* exit codes beside 0, 1 and 2: "3 4 5" */
    int (*run)(struct cli *cli);
    int (*check)(
        struct cli *cli); /* of options against each other; NULL: nothing to do */
};

struct cli_group {
    const char *name; /* the first word of its commands */
    const char *summary;
    const struct cli_command *commands; /* path NULL ends */
};

struct cli_fact {     /* a word and what it means: an exit code, a variable */
    const char *name; /* NULL ends a table */
    const char *text;
};

/* The declared tables. name NULL ends cli_groups; the group "" holds one-word commands. */
extern const struct cli_group cli_groups[];
extern const struct cli_option cli_global_options[];
extern const struct cli_option cli_rows_options[];
extern const struct cli_option cli_row_options[];
extern const char *const cli_source_words[];
extern const char *const cli_disposition_words[];
extern const char *const cli_close_rule_words[];
extern const char *const cli_gate_words[];
extern const struct cli_fact cli_exit_codes[];
extern const struct cli_fact cli_variables[];
extern const struct cli_fact cli_first_steps[];
extern const struct cli_command cli_work_commands[];
extern const struct cli_command cli_top_commands[];
extern const struct cli_command cli_job_commands[];
extern const struct cli_command cli_limit_commands[];
extern const struct cli_command cli_process_commands[];
extern const struct cli_option cli_run_options[];
extern const struct cli_example cli_run_examples[];
extern const struct cli_command cli_policy_commands[];
extern const struct cli_command cli_schedule_commands[];
extern const struct cli_command cli_store_commands[];
extern const struct cli_command cli_trigger_commands[];
extern const struct cli_command cli_turn_commands[];
extern const struct cli_command cli_cell_commands[];
extern const struct cli_command cli_provider_commands[];
extern const struct cli_command cli_config_commands[];

/* A value that was given, or may be. */
struct cli_value {
    const struct cli_option *option;
    const char **texts;
    size_t count;
    int64_t number; /* of the last: INT, DURATION */
};

#define CLI_VALUES_MAX 48

/* Whether a signal told a command to end that runs until told. */
struct cli_stop {
    int fd;         /* -1: none */
    const char *by; /* name of the signal that came; NULL: none has */
};

struct cli {
    const struct cli_group *group;     /* NULL: no word of a command was given */
    const struct cli_command *command; /* NULL: none, or only its group */
    struct cli_value values[CLI_VALUES_MAX];
    size_t value_count;
    bool help;
    bool json;
    bool quiet;
    bool colour;       /* of stdout */
    bool stdin_taken;  /* by a value of "-" */
    bool stdin_closed; /* the program was started without it; stdout likewise */
    bool stdout_closed;
    bool resumed;  /* a create: it went to a unit that waited for it */
    bool reported; /* the failure stands in the output already */
    int exit_code; /* of a command that did its work and has something to say by it */
    bool wrote;    /* a part of the output has left */
    struct hf_arena arena;
    struct hf_buf out;
    struct hf_json writer; /* over `out` */
    struct hf_err err;
    const char *action; /* what to do about it, where the table's is too general */
    struct hf_store *store;
    struct hf_caller who;
    struct cli_stop stop;
};

/* ---- parse.c: the command line ------------------------------------------------------ */

/* Reads argv into *cli. HF_EINVAL or HF_ETOOBIG with cli->err filled; cli->json is set in
 * any case when --json stands somewhere. */
HF_MUST_USE int cli_parse(struct cli *cli, int argc, char **argv);

/* The largest number, or size in bytes, that the option takes. */
int64_t cli_max(const struct cli_option *option);

/* Values by option name, which must be declared for the command. NULL, false or the
 * fallback where the option was not given. */
const char *cli_text(const struct cli *cli, const char *name);
bool cli_given(const struct cli *cli, const char *name);
int64_t cli_number(const struct cli *cli, const char *name, int64_t fallback);
const char *const *cli_texts(const struct cli *cli, const char *name, size_t *ret_count);

/* ---- input.c: values that are read from files --------------------------------------- */

/* The JSON of a value: as typed, from @file, or from stdin for "-". Checked. */
HF_MUST_USE int cli_read_json(struct cli *cli, const struct cli_option *option,
                              const char *value, const char **ret_text);

/* ---- open.c: the store ------------------------------------------------------------ */

HF_MUST_USE int cli_open_store(struct cli *cli);
/* What --db or HOLDFAST_DB says; NULL: nothing, so it is the file of the user's state. */
const char *cli_store_named(const struct cli *cli);
/* Its address, for a command that does not open it itself. HF_EREADONLY: the folder of the
 * default one cannot be made. */
HF_MUST_USE int cli_store_url(struct cli *cli, const char **ret_url);
/* Where an open store is: its address for other processes, whatever folder they are in, and
 * the folder of the locks of what runs under it. */
struct cli_place {
    const char *url;
    const char *locks;
};
HF_MUST_USE int cli_store_place(struct cli *cli, struct cli_place *ret_place);
/* Who ends the orphans of this store's work on this machine; NULL where there can be none. */
HF_MUST_USE int cli_reaper_new(struct cli *cli, struct hf_reaper **ret_reaper);
/* Whether opening would make a new file. */
bool cli_store_absent(struct cli *cli);
/* Fills cli->who from --actor, --tenant and the like. */
HF_MUST_USE int cli_set_caller(struct cli *cli);

/* ---- out.c: the output -------------------------------------------------------------- */

void cli_out_init(struct cli *cli);
/* Appends text as it is; formatted (at most 1 KiB); for people, with control characters
 * replaced. */
void cli_put(struct cli *cli, const char *text);
void cli_putf(struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_put_clean(struct cli *cli, const char *text);
/* Whether a terminal only shows this character of UTF-8: it is no control of C0 or C1 (the
 * latter are two bytes). */
bool cli_is_harmless(const char *at, size_t len);
/* Appends JSON without the white space around its values. */
void cli_compact(struct hf_buf *out, const char *json);

/* {"ok":true, … }: begin, then keys through cli->writer, then end. */
void cli_ok_begin(struct cli *cli);
void cli_ok_end(struct cli *cli);

/* Sends what stands in the buffer when it is much, or in any case. */
HF_MUST_USE int cli_flush_some(struct cli *cli);
HF_MUST_USE int cli_flush(struct cli *cli);

/* Prints the failure in cli->err and gives the exit code. */
int cli_report(struct cli *cli, int code);
/* The "error" object of cli->err. */
void cli_put_error(struct cli *cli, int code);

/* A line on stderr: "holdfast: …"; nothing under --quiet. */
void cli_note(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- table.c: aligned columns ------------------------------------------------------- */

enum cli_colour {
    CLI_PLAIN,
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_BLUE
};

struct cli_table {
    struct cli *cli;
    const char *const *titles;
    size_t columns;
    const char **cells; /* row by row; the arena's */
    enum cli_colour *colours;
    size_t rows;
    size_t room;
    bool failed; /* out of memory */
};

void cli_table_begin(struct cli_table *table, struct cli *cli, const char *const *titles,
                     size_t columns);
/* One row of `columns` texts, which are copied. NULL is shown as "-". `colour` is that of
 * column `coloured`. */
void cli_table_row(struct cli_table *table, const char *const *texts, size_t coloured,
                   enum cli_colour colour);
/* Prints it. A title that begins with '>' is of a column that is aligned to the right. */
HF_MUST_USE int cli_table_end(struct cli_table *table);

void cli_colour(struct cli *cli, enum cli_colour colour); /* nothing without colours */
enum cli_colour cli_status_colour(const char *status);

/* ---- rows.c: rows of the ledger ----------------------------------------------------- */

/* The answer to a call that gave one row: its envelope, or what people, --field and --shell
 * want to see. `did` is what happened, for people: "created". An item that failed gives its
 * code, with cli->err filled. NULL is an answer without a row. */
HF_MUST_USE int cli_print_row(struct cli *cli, const struct hf_item *item,
                              const char *did);

/* The envelope with items, or a block for each. */
HF_MUST_USE int cli_print_claimed(struct cli *cli, const struct hf_answer *answer);
HF_MUST_USE int cli_print_list(struct cli *cli, const struct hf_answer *answer,
                               const char *none);
/* All that is known of one row. */
HF_MUST_USE int cli_print_detail(struct cli *cli, const struct hf_item *item);
/* A page of at most `limit` rows, ended at the end of an event, of the `asked` that the
 * store was asked for: more by CLI_EVENT_PARTS - 1 where it can be. */
#define CLI_EVENT_PARTS 3
HF_MUST_USE int cli_print_events(struct cli *cli, const struct hf_events *events,
                                 size_t limit, size_t asked);

/* ---- cli/cmd/output.c -------------------------------------------------------------------- */

/* "output":{"stdout":{…},"stderr":{…}}, into the object that cli->writer has open. */
struct hf_output;
HF_MUST_USE int cli_json_output(struct cli *cli, const struct hf_output *output);
/* For people: each stream that has anything under a heading. */
void cli_put_output(struct cli *cli, const struct hf_output *output);

/* The keys of an event, into the object that cli->writer has open. */
void cli_json_event(struct cli *cli, const struct hf_event *event);

/* An object with every field of a row of that table. */
void cli_json_fields(struct cli *cli, const struct hf_field *fields, size_t count,
                     const void *row);
/* A line for each field that is not null, for people. */
void cli_put_facts(struct cli *cli, const struct hf_field *fields, size_t count,
                   const void *row);

/* The row's id for a prefix or suffix of it; a full id is taken as it is. */
HF_MUST_USE int cli_full_id(struct cli *cli, const char *id, const char **ret_id);

/* Milliseconds as people read them; "-" for 0. */
const char *cli_duration(hf_ms ms, char out[24]);
/* The same to the second, without its sign, and 0 as "0ms": how old, how long still. */
const char *cli_age(hf_ms ms, char out[24]);
hf_ms cli_now(void);
/* By the clock of the store's times, once something was read from it. */
hf_ms cli_store_now(const struct cli *cli);

/* --field and --shell for the row commands. */
bool cli_wants_field(const struct cli *cli);
HF_MUST_USE int cli_check_field(struct cli *cli);

/* ---- help.c, man.c, complete.c: from the tables ------------------------------------- */

void cli_print_overview(struct cli *cli);
void cli_print_short_overview(struct cli *cli);
void cli_print_group_help(struct cli *cli, const struct cli_group *group);
void cli_print_command_help(struct cli *cli, const struct cli_command *command);
/* " --id ID" or " [--id ID]": how help and manual show an option in a synopsis. */
void cli_put_usage(struct cli *cli, const struct cli_option *option);
/* " (required; one of a, b)" and the like; "" where there is nothing to say. */
void cli_put_option_notes(struct cli *cli, const struct cli_option *option);
/* The option tables of a command, NULL after the last. */
const struct cli_option *cli_option_table(const struct cli_command *command, size_t i);
#define CLI_DURATION_NOTE                                                                \
    "A DURATION is 250ms, 45s, 5m, 2h, 7d or 1.5h; a bare number counts seconds."
/* The text of an exit code in cli_exit_codes. */
const char *cli_exit_text(const char *code);
/* The next code of a list such as "3 4"; NULL after the last. */
const char *cli_next_exit(const char **at, char out[4]);

/* ---- stop.c: commands that run until they are told to end ----------------------------- */

/* Before the store starts its threads, so that all of them leave SIGTERM and SIGINT to us. */
HF_MUST_USE int cli_stop_take(struct cli *cli, struct cli_stop *stop);
/* Waits up to `ms` for a signal. True when it is time to end. */
bool cli_stop_told(struct cli_stop *stop, hf_ms ms);
void cli_stop_end(struct cli_stop *stop);

/* ---- the commands ------------------------------------------------------------------- */

/* Before a store is opened: what the options must be to each other. */
int check_claim(struct cli *cli);
int check_renew(struct cli *cli);
int check_create(struct cli *cli);
int check_prune(struct cli *cli);
int check_resume(struct cli *cli);
int check_close_out(struct cli *cli);
int check_list(struct cli *cli);
int check_reconcile(struct cli *cli);
int check_demo(struct cli *cli);
int check_tail(struct cli *cli);
int check_schedule(struct cli *cli);
int check_preview(struct cli *cli);
int check_emit(struct cli *cli);
int check_subscribe(struct cli *cli);

int check_enqueue(struct cli *cli);
int check_limit(struct cli *cli);

int cmd_job_enqueue(struct cli *cli);
int cmd_job_cancel(struct cli *cli);
int cmd_job_run_now(struct cli *cli);
int cmd_job_release(struct cli *cli);
int cmd_limit_set(struct cli *cli);
int cmd_limit_list(struct cli *cli);
int cmd_top(struct cli *cli);
int cmd_attention(struct cli *cli);
int cmd_work_create(struct cli *cli);
int cmd_work_claim(struct cli *cli);
int cmd_work_renew(struct cli *cli);
int cmd_work_touch(struct cli *cli);
int cmd_work_hand_back(struct cli *cli);
int cmd_work_wait(struct cli *cli);
int cmd_work_resume(struct cli *cli);
int cmd_work_close_out(struct cli *cli);
int cmd_work_fail(struct cli *cli);
int cmd_work_cancel(struct cli *cli);
int cmd_work_requeue(struct cli *cli);
int cmd_work_redrive(struct cli *cli);
int cmd_work_request_abandon(struct cli *cli);
int cmd_work_abandon(struct cli *cli);
int cmd_work_append_event(struct cli *cli);
int cmd_work_list(struct cli *cli);
int cmd_work_show(struct cli *cli);
int cmd_work_output(struct cli *cli);
int cmd_work_events(struct cli *cli);
int cmd_work_tail(struct cli *cli);
int cmd_work_stats(struct cli *cli);
int cmd_work_sweep(struct cli *cli);
int cmd_work_prune(struct cli *cli);
int cmd_work_reconcile(struct cli *cli);
int cmd_policy_set(struct cli *cli);
int cmd_policy_show(struct cli *cli);
int cmd_schedule_add(struct cli *cli);
int cmd_schedule_update(struct cli *cli);
int cmd_schedule_pause(struct cli *cli);
int cmd_schedule_resume(struct cli *cli);
int cmd_schedule_remove(struct cli *cli);
int cmd_schedule_trigger(struct cli *cli);
int cmd_schedule_list(struct cli *cli);
int cmd_schedule_show(struct cli *cli);
int cmd_schedule_sync(struct cli *cli);
int cmd_schedule_preview(struct cli *cli);
int cmd_schedule_run(struct cli *cli);
int cmd_trigger_subscribe(struct cli *cli);
int cmd_trigger_update(struct cli *cli);
int cmd_trigger_enable(struct cli *cli);
int cmd_trigger_disable(struct cli *cli);
int cmd_trigger_remove(struct cli *cli);
int cmd_trigger_revive(struct cli *cli);
int cmd_trigger_list(struct cli *cli);
int cmd_trigger_show(struct cli *cli);
int cmd_trigger_emit(struct cli *cli);
int cmd_trigger_deliveries(struct cli *cli);
int cmd_trigger_granted(struct cli *cli);
int cmd_monitor(struct cli *cli);
int check_process_start(struct cli *cli);
int cmd_process_start(struct cli *cli);
int cmd_process_list(struct cli *cli);
int cmd_process_show(struct cli *cli);
int cmd_process_signal(struct cli *cli);
int cmd_process_observe(struct cli *cli);
int check_process_retarget(struct cli *cli);
int cmd_process_retarget(struct cli *cli);
int cmd_process_complete(struct cli *cli);
int cmd_process_events(struct cli *cli);
int cmd_process_cancel(struct cli *cli);
int cmd_process_request_abandon(struct cli *cli);
int cmd_process_await(struct cli *cli);
int cmd_process_prune(struct cli *cli);
int cmd_process_drain(struct cli *cli);
int check_run(struct cli *cli);
int cmd_run(struct cli *cli);
int cmd_migrate(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_limits(struct cli *cli);
int cmd_replay(struct cli *cli);
int cmd_turn_inspect(struct cli *cli);
int cmd_cell_run(struct cli *cli);
int cmd_provider_list(struct cli *cli);
int cmd_provider_check(struct cli *cli);
int cmd_config_check(struct cli *cli);
int cmd_config_keys(struct cli *cli);
int cmd_store_bump(struct cli *cli);
int cmd_store_copy(struct cli *cli);
int cmd_store_log(struct cli *cli);
int cmd_version(struct cli *cli);
int cmd_demo(struct cli *cli);
int cmd_man(struct cli *cli);
int cmd_completion(struct cli *cli);

#endif
