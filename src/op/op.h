/* Operations: everything that can be asked for, each described by one row of one table.
 *
 * A row has the name of an operation, its inputs (core/inputs), its answer (shapes of
 * core/ledger/fields.h and op/shapes), its errors, role and route. The shell and `holdfast
 * call` read the table; help, manual pages, completion and `call --list` are printed from it.
 * A transport fills a struct op_call with a sink; an operation
 * says what it found and never asks in which form that is shown. */
#ifndef HF_OP_OP_H
#define HF_OP_OP_H

#include <holdfast/store.h>
#include <holdfast/work.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/inputs/inputs.h"
#include "core/ledger/fields.h"

struct op_call;

/* Who may ask. A local operation is one of the shell on this machine alone; src/cli runs it. */
enum op_role { OP_LOCAL, OP_READ, OP_WORKER, OP_OPERATOR };

enum op_answer {
    OP_FACTS, /* members of the envelope, those of the shape if there is one */
    OP_ROW,   /* one row of the shape, under `key` */
    OP_LIST   /* rows of the shape, under "items" */
};

#define OP_STORE 1u      /* needs a store, which is made where there is none */
#define OP_MUST_EXIST 2u /* needs a store, and never makes one */
#define OP_READS 4u      /* needs a store, and only reads it */
#define OP_OPENS 8u      /* opens its store itself, where it needs one */
#define OP_FIELD 16u     /* the shell takes --field */
#define OP_SHELL 32u     /* the shell takes --field and --shell */
#define OP_HIDDEN 64u    /* not in help: for the build, or for programs */
#define OP_WRAPS 128u /* its exit code is another command's: its own failures are 125 */
#define OP_ALIAS                                                                         \
    256u /* another name of the shell for an operation with a row of its own */
#define OP_DESTROYS 512u    /* deletes what cannot be had back */
#define OP_REPEATABLE 1024u /* an operation id makes it repeatable */
#define OP_WAITS 2048u      /* may wait for something to happen */
#define OP_PAGED 4096u      /* a list that has "next" */
#define OP_CREATES 8192u    /* makes a row that may be there already: "created" says it */
#define OP_JSON 16384u      /* the shell prints JSON whether it was asked for or not */

struct op_example {
    const char *what; /* NULL ends a table */
    const char *command;
};

/* What to do about a failure, where the table of errors is too general. */
struct op_advice {
    int code;          /* 0: end of the table */
    const char *field; /* NULL: any */
    const char *text;
};

struct op {
    const char *name; /* "work.hand_back"; the shell says `work hand-back`. NULL ends */
    const char *summary;
    const char *text;            /* more than the summary says; NULL: nothing */
    const struct hf_input *in;   /* rows over the request */
    const struct hf_input *more; /* further rows over the same request; NULL: none */
    const void *blank;           /* the request before anything is given */
    size_t in_size;
    const struct op_example *examples;
    enum op_answer answer;
    const char *key;              /* of a row; NULL: the name of the shape */
    const struct hf_shape *shape; /* of the row or of the items; NULL for facts alone */
    const struct hf_shape *facts; /* other members of the envelope; NULL: none */
    const int *errors;            /* HF_E* beyond those of every operation; 0 ends */
    const char *exits;            /* exit codes of the shell that are no errors: "10" */
    const struct op_advice *advice;
    enum op_role role;
    const char *route; /* "POST /v1/work/{work_id}/renew"; NULL where there is none */
    unsigned flags;
    const char *actor_kind;             /* who acts when the caller does not say */
    const char *did;                    /* what happened, for people: "renewed" */
    int (*check)(struct op_call *call); /* of inputs against each other; NULL: nothing */
    int (*run)(struct op_call *call);   /* NULL: src/cli runs it */
};

struct op_group {
    const char *name; /* the first word of its operations; "": those of one word */
    const char *summary;
    const struct op *ops;
};

/* All that there is. name NULL ends it. */
extern const struct op_group op_groups[];

/* ---- answers ---------------------------------------------------------------------- */

struct op_row {
    const char *key; /* NULL: its fields are members of the envelope */
    const struct hf_shape *shape;
    const void *at;
    const char *token; /* of a lease that this call acquired; NULL: none */
    const char *did;   /* NULL: it was only looked at */
    bool repeated;     /* the same call had been applied before */
};

struct op_list {
    const char *key;
    const struct hf_shape *shape;
    const char *did;  /* each item is what happened; NULL: a list to be looked at */
    const char *none; /* what people read where there is no item */
    bool report;      /* people see it as a report of what was done: not if --quiet */
    bool paged;       /* there is a "next", which may be null */
    const char *next; /* the cursor of the rest */
    int64_t next_id;  /* the same as a number; 0: `next` says it */
};

/* The receiver of an answer. The first member of each implementation. */
struct op_out {
    const struct op_sink *sink;
};

/* JSON (sink.c); aligned tables, --field and --shell (src/cli/sinks.c). Texts and rows are
 * borrowed until the method returns. Codes are those of writing the answer. */
struct op_sink {
    /* One member of the envelope: a field of the row. */
    void (*fact)(struct op_out *out, const struct hf_field *field, const void *row);
    int (*row)(struct op_out *out, const struct op_row *row);
    void (*begin)(struct op_out *out, const struct op_list *list);
    int (*item)(struct op_out *out, const struct op_row *row);
    int (*end)(struct op_out *out, const struct op_list *list);
    /* A sentence for people, and a remark to them that is no part of the answer. */
    void (*say)(struct op_out *out, const char *text);
    void (*note)(struct op_out *out, const char *text);
};

/* ---- a call ----------------------------------------------------------------------- */

struct op_call {
    const struct op *op;
    struct hf_store *store; /* NULL until it is open */
    bool absent;            /* opening would make a new store */
    struct hf_caller who;
    struct hf_arena *arena;
    void *in;       /* the request of op->in_size bytes */
    uint64_t given; /* bit i: input i was given, those of `more` after those of `in` */
    bool dashes;    /* inputs are called --as-in-a-shell in messages */
    const char *program; /* how printed commands begin; NULL: "holdfast" */
    struct op_out *out;
    int verdict;   /* a failure that is itself the answer; set before anything is said */
    int exit_code; /* of the shell, where it says more than done */
    struct hf_err *err;
    const char *action;                /* what to do, where the table is too general */
    int (*open)(struct op_call *call); /* fills `store` as the operation's flags ask */
    /* Of an open store: the folder where runners of this machine keep their locks and output, NULL
     * where there is none. A transport without such a folder has no function. */
    int (*locks)(struct op_call *call, const char **ret_folder);
};

/* The operation of a name, local ones too; NULL where there is none. */
const struct op *op_find(const char *name);
/* "work hand-back" in `out`. */
#define OP_PATH 48
const char *op_path(const struct op *op, char out[OP_PATH]);
/* Whether one of the operation's errors has this exit code. */
bool op_exits_with(const struct op *op, int code);

/* A blank request in the arena; HF_ENOMEM. */
HF_MUST_USE int op_begin(struct op_call *call);
/* Reads the inputs from an object whose text hf_json_check accepted. */
HF_MUST_USE int op_read(struct op_call *call, struct hf_span object);
/* Checks who calls, before a store is created: HF_EINVAL, HF_ETOOBIG. */
HF_MUST_USE int op_check_caller(const struct op_call *call);
/* Checks, opens the store where that is not done, and runs. The answer is in the sink; on
 * failure err and action say why. */
HF_MUST_USE int op_perform(struct op_call *call);

/* Whether the input of that name was given. */
bool op_given(const struct op_call *call, const char *name);

/* As hf_fail. {name} in the field and in the message becomes what the caller calls that input,
 * and {help} where the shell explains the operation. */
#define op_fail(call, code, field, ...)                                                  \
    op_named((call), hf_fail((call)->err, (code), (field), __VA_ARGS__))
int op_named(struct op_call *call, int code);

/* ---- a call as a line of JSON ------------------------------------------------------ */

struct op_line {
    const char *op;
    const char *in; /* JSON; NULL: {} */
    const char *id; /* JSON; NULL: none */
    const char *tenant;
    const char *actor; /* KIND:NAME */
    const char *operation_id;
    const char *correlation_id;
};

/* Reads a line without its end into *line, whose members may be set to defaults before.
 * HF_EINVAL, HF_ETOOBIG; `id` is filled where it was read before the fault. */
HF_MUST_USE int op_line_read(struct op_call *call, struct hf_span text,
                             struct op_line *line);
/* Finds the operation and reads its inputs into the call. */
HF_MUST_USE int op_line_begin(struct op_call *call, const struct op_line *line);
/* The owner that a request names, by whose name a worker acts; NULL: none. */
const char *op_owner(const struct op_call *call);

/* ---- what operations say ---------------------------------------------------------- */

void op_i64(struct op_call *call, const char *name, int64_t value);
void op_bool(struct op_call *call, const char *name, bool value);
void op_text(struct op_call *call, const char *name, const char *text);
void op_json(struct op_call *call, const char *name, const char *json);
/* Every field of a row as a fact. */
void op_facts(struct op_call *call, const struct hf_shape *shape, const void *row);
/* The row of the operation's shape. */
HF_MUST_USE int op_row(struct op_call *call, const void *row);
/* Whether something was changed, and its row: what was done to it, or "unchanged". */
HF_MUST_USE int op_changed(struct op_call *call, bool changed, const void *row);
/* The row of a unit and whether it was created; an item that failed is its failure. op_unit
 * says in addition that the call was repeated, if it was. */
HF_MUST_USE int op_unit_row(struct op_call *call, const struct hf_item *item,
                            const char *did);
HF_MUST_USE int op_unit(struct op_call *call, const struct hf_item *item,
                        const char *did);
HF_MUST_USE int op_units(struct op_call *call, const struct hf_answer *answer,
                         struct op_list list);
void op_say(struct op_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void op_note(struct op_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* HF_EINVAL for a kind whose payload is a command, where the caller is no shell of this
 * machine: such a payload is executed, and never taken from elsewhere. */
HF_MUST_USE int op_check_kind(struct op_call *call, const char *kind);

/* A time span to the second, without its sign: how old, how long still. */
const char *op_age(hf_ms ms, char out[24]);

/* The name of a unit for its user, in `out`: the name that it was given, its command or its
 * question, otherwise its source id. */
#define OP_WHAT 192
#define OP_QUESTION_KIND "question"
const char *op_what(const struct hf_work *work, char out[OP_WHAT]);
/* The last digits of an id: what people type. */
const char *op_short_id(const char *id);
/* The command in a payload of kind "run" as one line. False: there is none. */
bool op_command_text(const char *payload, char out[OP_WHAT]);

/* The whole id of a unit for a part of it, or for a name; a whole one is taken as it is, and
 * NULL too. A name is that of `run --name`, `process start --name` or a schedule. It means the
 * unit of that name that has not ended, otherwise the newest one. Several that have not ended
 * are HF_EAMBIGUOUS. */
HF_MUST_USE int op_full_id(struct op_call *call, const char *id, const char **ret_id);
/* The same for a name alone. `missing` is the failure where there is none, which is in err. */
HF_MUST_USE int op_named_unit(struct op_call *call, const char *name, int missing,
                              const char **ret_id);

/* ---- JSON -------------------------------------------------------------------------- */

/* The envelope {"ok":true,…}, opened by the first thing that is said. */
struct op_json_out {
    struct op_out out;
    struct op_call *call;
    struct hf_buf *buf; /* the caller's; holds the envelope alone until it is flushed */
    struct hf_json writer;
    struct hf_span id; /* JSON that the envelope begins with as "id"; len 0: none */
    bool open;
    int (*flush)(struct op_json_out *json); /* after each item; NULL: nothing */
};

void op_json_init(struct op_json_out *json, struct op_call *call, struct hf_buf *buf);
/* Ends the envelope with a line end. */
void op_json_end(struct op_json_out *json);
/* The failure in place of whatever the buffer holds. */
void op_json_fail(struct op_json_out *json, int code);

/* The members of a failure, as an "error" object of the object that is open. */
void op_put_error(struct hf_json *json, const struct hf_err *err, const char *action);
/* The text of a failure: it names the field at fault, also where the library's does not. */
#define OP_MESSAGE 320
const char *op_message(const struct hf_err *err, char out[OP_MESSAGE]);

/* An object with every field of a row; its members into an object that is open; one value. */
void op_put_shape(struct hf_json *json, const struct hf_shape *shape, const void *row);
void op_put_field(struct hf_json *json, const struct hf_field *field, const void *row);
/* A field as one plain text; "" for null. */
void op_put_plain(struct hf_buf *out, const struct hf_field *field, const void *row);

/* Whether the operation is one for every transport, and not of the shell alone. */
bool op_is_listed(const struct op *op);
/* The table as JSON: what `holdfast call --list` prints. */
void op_put_list(struct hf_json *json);

/* ---- the rows, by group ------------------------------------------------------------ */

extern const struct op op_work_rows[];
extern const struct op op_job_rows[];
extern const struct op op_queue_rows[];
extern const struct op op_holder_rows[];
extern const struct op op_limit_rows[];
extern const struct op op_policy_rows[];
extern const struct op op_schedule_rows[];
extern const struct op op_process_rows[];
extern const struct op op_store_rows[];
extern const struct op op_trigger_rows[];
extern const struct op op_session_rows[];
extern const struct op op_effect_rows[];
extern const struct op op_wait_rows[];
extern const struct op op_turn_rows[];
extern const struct op op_cell_rows[];
extern const struct op op_provider_rows[];
extern const struct op op_config_rows[];
extern const struct op op_top_rows[];
extern const struct hf_input op_command_inputs[];
extern const struct hf_input op_run_inputs[];
extern const struct hf_input op_worker_inputs[];
extern const struct op_example op_worker_examples[];
extern const struct op_example op_run_examples[];

#endif
