/* The program: what its files share.
 *
 * Everything that a user can type is a row of the table of operations (src/op). Parsing,
 * --help, the manual pages and the completion are made from it. Input is checked (types,
 * words, JSON, UTF-8) before a store is opened. An operation answers 0 or an HF_E* code; main
 * turns that into the one envelope or message, and into the exit code. */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include <holdfast/bounds.h>
#include <holdfast/run.h>
#include <holdfast/store.h>
#include <holdfast/work.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/near.h"
#include "op/op.h"

struct cli;

struct cli_fact {     /* a word and what it means: an exit code, a variable */
    const char *name; /* NULL ends a table */
    const char *text;
};

/* Tables that only the shell has, in addition to the table of operations. */
extern const struct hf_input cli_global_options[];
extern const struct hf_input cli_rows_options[];
extern const struct hf_input cli_row_options[];
extern const struct cli_fact cli_exit_codes[];
extern const struct cli_fact cli_variables[];
extern const struct cli_fact cli_first_steps[];

/* What runs an operation here: one that the table leaves to this program, or the part of one
 * that is about this machine. `check` is called before a store is opened; NULL: none. */
struct cli_local {
    const char *name;
    int (*run)(struct cli *cli);
    int (*check)(struct cli *cli);
};
/* NULL: the table's own function does all. */
const struct cli_local *cli_local_of(const struct op *op);

/* A value that was given, or may be. */
struct cli_value {
    const struct hf_input *option;
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
    const struct op_group *group; /* NULL: no word of a command was given */
    const struct op *op;          /* NULL: none, or only its group */
    struct cli_value values[CLI_VALUES_MAX];
    size_t value_count;
    bool help;
    bool help_all; /* `help all` */
    bool json;
    bool quiet;
    bool colour;       /* of stdout */
    bool stdin_taken;  /* by a value of "-" */
    bool stdin_closed; /* the program was started without it; stdout likewise */
    bool stdout_closed;
    bool reported; /* the failure is in the output already */
    int exit_code; /* of a command that did its work and has something to say by it */
    bool wrote;    /* a part of the output has left */
    struct hf_arena arena;
    struct hf_buf out;
    struct hf_json writer; /* over `out` */
    struct hf_err err;
    const char *action; /* what to do about it, where the table's is too general */
    struct hf_store *store;
    bool read_only; /* it was opened so */
    struct hf_caller who;
    struct op_call call; /* of an operation of the table */
    struct cli_stop stop;
};

/* ---- parse.c: the command line ------------------------------------------------------ */

/* Reads argv into *cli. HF_EINVAL or HF_ETOOBIG with cli->err filled; cli->json is set in
 * also when --json is somewhere. */
HF_MUST_USE int cli_parse(struct cli *cli, int argc, char **argv);

/* Values by option name, which must be declared for the command. NULL, false or the
 * fallback where the option was not given. */
const char *cli_text(const struct cli *cli, const char *name);
bool cli_given(const struct cli *cli, const char *name);
int64_t cli_number(const struct cli *cli, const char *name, int64_t fallback);
const char *const *cli_texts(const struct cli *cli, const char *name, size_t *ret_count);

/* ---- input.c, file.c: values that are read from files ------------------------------- */

/* The JSON of a value: as typed, from @file, or from stdin for "-". Checked. */
HF_MUST_USE int cli_read_json(struct cli *cli, const struct hf_input *option,
                              const char *value, const char **ret_text);

/* All of a file, in the cli's arena and NUL-terminated; "-" is standard input. HF_ENOTFOUND
 * when there is none, HF_EINVAL when it cannot be read, HF_ETOOBIG. */
HF_MUST_USE int cli_read_file(struct cli *cli, const char *path, size_t max,
                              struct hf_span *ret_bytes);

/* ---- open.c: the store ------------------------------------------------------------ */

/* Opens the store of the command line, as cli->store. */
HF_MUST_USE int cli_open_store(struct cli *cli);
/* The address in --db or HOLDFAST_DB; NULL: none, so it is the file of the user's state. */
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
/* The folder of a call's locks, NULL where nothing can run under the store. */
HF_MUST_USE int cli_locks(struct op_call *call, const char **ret_folder);
/* Who ends the orphans of this store's work on this machine; NULL where there can be none. */
HF_MUST_USE int cli_reaper_new(struct cli *cli, struct hf_reaper **ret_reaper);
/* Whether opening would make a new file. */
bool cli_store_absent(struct cli *cli);
/* On whose behalf, as it was given. */
struct cli_caller {
    const char *tenant;
    const char *actor; /* KIND:NAME; NULL: HOLDFAST_ACTOR, or by the operation */
    const char *operation_id;
    const char *correlation_id;
};
/* The caller, from --actor, --tenant and the like. */
struct cli_caller cli_caller_given(const struct cli *cli);
/* Fills the caller; `owner` names the worker where the operation's caller is one. */
HF_MUST_USE int cli_set_caller(struct cli *cli, const struct cli_caller *given,
                               const char *owner, struct hf_caller *ret_who);

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

/* {"ok":true, … }: begin, then keys through cli->writer, then end. */
void cli_ok_begin(struct cli *cli);
void cli_ok_end(struct cli *cli);

/* Sends what is in the buffer when it is much, or in any case. */
HF_MUST_USE int cli_flush_some(struct cli *cli);
HF_MUST_USE int cli_flush(struct cli *cli);
/* Writes all of it elsewhere. 0, or an errno with a part of it written. */
HF_MUST_USE int cli_write(int fd, const char *bytes, size_t len);

/* Prints the failure in cli->err and returns the exit code. */
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

/* A table that is wider than the terminal hides columns without any value, then minor ones.
 * The others shrink, down to `least`; where that is not enough, those of the highest rank are
 * hidden too. */
#define CLI_MINOR 4 /* the rank from which columns are minor */
struct cli_column {
    const char *title;   /* one that begins with '>' is aligned to the right */
    unsigned char rank;  /* 0: it is always shown */
    unsigned char least; /* characters that it may shrink to; 0: it never shrinks */
    bool clips;          /* what is cut off is no loss: no ellipsis */
};

struct cli_table {
    struct cli *cli;
    struct hf_arena *arena; /* of the cells */
    const struct cli_column *columns;
    size_t count;
    const char **cells; /* row by row */
    enum cli_colour *colours;
    size_t rows;
    size_t room;
    size_t width;         /* of the terminal; 0: no bound */
    const char *line_end; /* one that is no line end is not flushed */
    bool failed;          /* out of memory */
};

/* The columns of the terminal that standard output is, or what COLUMNS says; 0: no bound, also
 * under --wide. */
size_t cli_terminal_width(const struct cli *cli);
/* Terminal columns of a text. */
size_t cli_width_of(const char *text);

/* Begins a table. Its rows are written when it ends, so that the columns are as wide as needed. */
void cli_table_begin(struct cli_table *table, struct cli *cli,
                     const struct cli_column *columns, size_t count);
/* One row of `columns` texts, which are copied. NULL is shown as "-". `colour` is that of
 * column `coloured`. */
void cli_table_row(struct cli_table *table, const char *const *texts, size_t coloured,
                   enum cli_colour colour);
/* Prints the table. */
HF_MUST_USE int cli_table_end(struct cli_table *table);

void cli_colour(struct cli *cli, enum cli_colour colour); /* nothing without colours */
enum cli_colour cli_status_colour(const char *status);

/* ---- sinks.c: answers --------------------------------------------------------------- */

/* An answer in the form that was asked for: --json, --field, --shell, or for people. */
struct cli_out {
    union {
        struct op_out out;
        struct op_json_out json;
    };
    struct cli *cli;
    const struct cli_view *view; /* of the list that is open */
    struct cli_table table;
    size_t count;
};
void cli_out_begin(struct cli_out *out, struct cli *cli);
void cli_out_end(struct cli_out *out);

/* Performs the operation on the command line and prints its answer. */
HF_MUST_USE int cli_perform(struct cli *cli);

/* ---- views.c: rows for people ------------------------------------------------------- */

/* How rows of a shape are shown. A function that is NULL is not needed. */
struct cli_view {
    const struct hf_shape *shape;
    const struct cli_column *columns;
    size_t count;
    void (*cells)(struct cli_table *table, const void *row);
    void (*line)(struct cli *cli, const struct op_row *row);  /* what happened to it */
    int (*detail)(struct cli *cli, const struct op_row *row); /* all of it */
};
extern const struct cli_view cli_process_views[]; /* shape NULL ends each */
extern const struct cli_view cli_overview_views[];
extern const struct cli_view cli_schedule_views[];
extern const struct cli_view cli_session_views[];
extern const struct cli_view cli_effect_views[];
extern const struct cli_view cli_wait_views[];
extern const struct cli_view cli_store_views[];
extern const struct cli_view cli_trigger_views[];
/* Every field, a line each. */
int cli_any_detail(struct cli *cli, const struct op_row *row);
const struct cli_view *cli_view_of(const struct hf_shape *shape);
/* One line; "" for a sweep that changed nothing. */
void cli_text_sweep(const struct hf_sweep_report *report, char *out, size_t room);
void cli_text_pass(const struct hf_schedule_report *report, char *out, size_t room);

/* The keys of an event, into the object that cli->writer has open. */
void cli_json_event(struct cli *cli, const struct hf_event *event);

/* Milliseconds as people read them; "-" for 0. */
const char *cli_duration(hf_ms ms, char out[24]);
hf_ms cli_now(void);
/* By the clock of the store's times, once something was read from it. */
hf_ms cli_store_now(const struct cli *cli);

/* --field and --shell for the row commands. */
bool cli_wants_field(const struct cli *cli);
HF_MUST_USE int cli_check_field(struct cli *cli);

/* ---- help.c, man.c, complete.c: from the tables ------------------------------------- */

void cli_print_overview(struct cli *cli);
void cli_print_short_overview(struct cli *cli);
void cli_print_group_help(struct cli *cli, const struct op_group *group);
void cli_print_command_help(struct cli *cli, const struct op *op);
/* " --id ID" or " [--id ID]": how help and manual show an option in a synopsis. */
void cli_put_usage(struct cli *cli, const struct hf_input *option);
/* " (required; one of a, b)" and the like; "" where there is nothing to say. */
void cli_put_option_notes(struct cli *cli, const struct hf_input *option);
/* The i-th option table of an operation; NULL where it has none there. */
#define CLI_OPTION_TABLES 4
const struct hf_input *cli_option_table(const struct op *op, size_t i);
#define CLI_DURATION_NOTE                                                                \
    "A DURATION is 250ms, 45s, 5m, 2h, 7d or 1.5h; a bare number counts seconds."
/* Whether an operation can end with that code of cli_exit_codes, beyond the first three. */
bool cli_exits_with(const struct op *op, const char *code);

/* ---- stop.c: commands that run until they are told to end ----------------------------- */

/* Before the store starts its threads, so that all of them leave SIGTERM and SIGINT to us. */
HF_MUST_USE int cli_stop_take(struct cli *cli, struct cli_stop *stop);
/* Waits up to `ms` for a signal. True when it is time to end. */
bool cli_stop_told(struct cli_stop *stop, hf_ms ms);
void cli_stop_end(struct cli_stop *stop);

/* ---- the commands ------------------------------------------------------------------- */

/* Before a store is opened: what the options must be to each other. */
int check_claim(struct cli *cli);
int check_create(struct cli *cli);
int check_reconcile(struct cli *cli);
int check_demo(struct cli *cli);
int check_tail(struct cli *cli);
int check_output(struct cli *cli);
int cmd_work_output(struct cli *cli);
int check_ask(struct cli *cli);
int cmd_ask(struct cli *cli);
int check_schedule_add(struct cli *cli);
int check_schedule_update(struct cli *cli);
int check_subscribe(struct cli *cli);

int cmd_chat(struct cli *cli);
int check_attention(struct cli *cli);
int cmd_attention(struct cli *cli);
int cmd_top(struct cli *cli);
int cmd_work_create(struct cli *cli);
int cmd_work_tail(struct cli *cli);
int cmd_work_sweep(struct cli *cli);
int cmd_work_reconcile(struct cli *cli);
int cmd_monitor(struct cli *cli);
int check_worker_config(struct cli *cli);
int cmd_worker(struct cli *cli);
int check_process_start(struct cli *cli);
int cmd_process_start(struct cli *cli);
int check_run(struct cli *cli);
int cmd_run(struct cli *cli);
int cmd_migrate(struct cli *cli);
int cmd_replay(struct cli *cli);
int cmd_turn_inspect(struct cli *cli);
int cmd_cell_run(struct cli *cli);
int cmd_provider_list(struct cli *cli);
int cmd_provider_check(struct cli *cli);
int cmd_config_check(struct cli *cli);
int cmd_config_init(struct cli *cli);
int cmd_config_keys(struct cli *cli);
int cmd_store_bump(struct cli *cli);
int cmd_store_copy(struct cli *cli);
int cmd_demo(struct cli *cli);
int check_call(struct cli *cli);
int cmd_call(struct cli *cli);
int cmd_man(struct cli *cli);
int cmd_completion(struct cli *cli);
int cmd_complete(struct cli *cli);

#endif
