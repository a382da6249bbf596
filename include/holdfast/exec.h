/* Code cells: small programs that a model wrote, run so that every effect they have is an
 * operation which the host performs and can record.
 *
 * A cell is a value that does nothing on its own: no I/O, no clock, no random numbers, no
 * threads. hf_cell_poll runs it until it needs the host; the host performs the operation,
 * answers, and polls again. A cell that must wait long is freed and started again later
 * with the operations that were answered (`journal`): it runs to the same point, since
 * nothing in it can differ, and operations that do differ are named and never mis-served.
 *
 *     hf_cell_new(engine, &start, &cell, &err);
 *     while (hf_cell_poll(cell, &op, &err) == 0 && op) {
 *         perform it; record it with its answer; hf_cell_results or hf_cell_value
 *     }
 *     hf_turn_exec_done(turn, effect.id, hf_cell_result(cell), &err);
 *
 * Threads: a cell is used by one thread at a time; different cells are independent. Engines
 * never change once made and may be shared by any number of threads.
 */
#ifndef HOLDFAST_EXEC_H
#define HOLDFAST_EXEC_H

#include <holdfast/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_engine;
struct hf_cell;

/* The operations that a cell asks its host to perform.
 *   call, call_batch  tools; answered with hf_cell_results, one by one or together
 *   print             text for the model to see; takes no answer
 *   start_process     args: what to start; the answer is the JSON that the cell shall see
 *   sleep             args: milliseconds; the answer is null, when they are over
 *   wait_signal       name, args: null or how long at most in ms; the answer is the signal's
 *                     value, or null when the time is over
 *   now               the answer is a number: milliseconds since 1970; the cell sees seconds
 *   random            the answer is an integer: 64 random bits. Once a cell: what it draws
 *                     after that follows from them
 *   read              a name of given_refs, when it is first read; args: its reference.
 *                     Answered as a call is: a failure is an error of the cell            */
#define HF_OPS(X)                                                                        \
    X(CALL, call)                                                                        \
    X(CALL_BATCH, call_batch)                                                            \
    X(PRINT, print)                                                                      \
    X(START_PROCESS, start_process)                                                      \
    X(SLEEP, sleep)                                                                      \
    X(WAIT_SIGNAL, wait_signal)                                                          \
    X(NOW, now)                                                                          \
    X(RANDOM, random)                                                                    \
    X(READ, read)

/* How a cell ended. Only after done and finished are its changes to the bindings kept; after
 * all others the bindings are as they were before it.
 *   failed       it called fail
 *   error        it raised an error
 *   syntax       its text does not parse; nothing ran
 *   unknown_tool its text names a tool that there is not; nothing ran
 *   unkeepable   a value cannot be kept; the message says which
 *   diverged     started from a journal, it did not do the same as before
 *   cancelled    the host called hf_cell_cancel                                          */
#define HF_CELL_ENDS(X)                                                                  \
    X(RUNNING, running)                                                                  \
    X(DONE, done)                                                                        \
    X(FINISHED, finished)                                                                \
    X(FAILED, failed)                                                                    \
    X(ERROR, error)                                                                      \
    X(SYNTAX, syntax)                                                                    \
    X(UNKNOWN_TOOL, unknown_tool)                                                        \
    X(UNKEEPABLE, unkeepable)                                                            \
    X(OVER_STEPS, over_steps)                                                            \
    X(OVER_TIME, over_time)                                                              \
    X(OVER_MEMORY, over_memory)                                                          \
    X(OVER_OPS, over_ops)                                                                \
    X(OVER_OUTPUT, over_output)                                                          \
    X(DIVERGED, diverged)                                                                \
    X(CANCELLED, cancelled)

#define X(name, word) HF_OP_##name,
enum hf_op_kind { HF_OPS(X) HF_OP_COUNT };
#undef X
#define X(name, word) HF_CELL_##name,
enum hf_cell_end { HF_CELL_ENDS(X) HF_CELL_END_COUNT };
#undef X

/* Their words; "?" for a value that is none. */
HF_API const char *hf_op_name(enum hf_op_kind kind);
/* As hf_op_name. */
HF_API const char *hf_cell_end_name(enum hf_cell_end end);

/* The limits of one cell; 0 means the default (docs/cells.md), HF_UNBOUNDED is not offered.
 *   steps         instructions, and what library functions do, counted alike
 *   active_ms     time spent running, by the host's clock, waiting not counted; a net under
 *                 `steps`, since it is not the same on every machine
 *   memory_bytes  the memory of its values
 *   ops           operations, print and each call of a batch too
 *   output_bytes  of all that it prints                                                 */
struct hf_cell_limits {
    int64_t steps;
    hf_ms active_ms;
    int64_t memory_bytes;
    int64_t ops;
    int64_t output_bytes;
};

/* One tool call of an operation. The id is the operation's, and in a batch ":1", ":2", …
 * after it. An answered call must not be run again: `result` is its answer. */
struct hf_op_call {
    const char *id;
    const char *tool;
    struct hf_span args; /* JSON object, canonical */
    bool answered;
    const struct hf_tool_result *result;
};

/* One operation. Everything lives until it is answered, or of a print until the next call
 * on the cell.
 *   id     "<id of the cell>:<ordinal>"; the same whenever and wherever the cell is run
 *   name   of a call the tool, of start_process the kind, of wait_signal the signal, of
 *          a read the name
 *   args   canonical JSON; of a print its text; of a batch an array of {"args","tool"}    */
struct hf_op {
    enum hf_op_kind kind;
    uint64_t ordinal; /* from 1 */
    const char *id;
    const char *name;
    struct hf_span args;
    const struct hf_op_call *calls; /* of call, call_batch and read */
    size_t call_count;
};

/* A digest over kind, name and args, which must be the same when the cell is run again.
 * For hosts that store a digest with an operation. HF_ENOMEM. */
HF_API HF_MUST_USE int hf_op_envelope(const struct hf_op *op, uint8_t ret_digest[32]);

/* An operation that was performed or begun earlier, as the host recorded it.
 *   results   of calls and reads, any number of those of the operation
 *   value     of the others; answered says whether there is one                          */
struct hf_op_record {
    uint64_t ordinal;
    enum hf_op_kind kind;
    const char *name;
    struct hf_span args;
    const struct hf_tool_result *results;
    size_t result_count;
    bool answered;
    struct hf_span value; /* JSON */
};

/* A cell to run. All is borrowed until hf_cell_new returns, but clock, alloc and engine.
 *   id         of the effect, unique in its turn: the prefix of the operations' ids
 *   bindings   the JSON of hf_cell_bindings; empty: none yet
 *   given      JSON object of further values, which the cell can read and not change; a
 *              variable of such a name is out of its sight, and stays as it is
 *   given_refs the same by reference: the value is asked for when the cell reads the name
 *   tools      names of the tools there are; NULL: any name will do
 *   journal    in order of their ordinals; prints need not be in it. Prints before its last
 *              operation are not polled again
 *   clock      for limits.active_ms; NULL: no such limit
 *   bindings_hash, resolve
 *              instead of bindings: the hash that EXEC_CODE names (NULL: none yet), and what
 *              lends the sealed bindings of it until hf_cell_new returns. 0, or HF_EBLOB
 *              when they are not known                                                    */
struct hf_cell_start {
    size_t size;
    const struct hf_alloc *alloc; /* NULL: the system's */
    const char *id;
    struct hf_span code;
    struct hf_span bindings;
    struct hf_span given;
    struct hf_span given_refs;
    const char *const *tools;
    size_t tool_count;
    struct hf_cell_limits limits;
    const struct hf_clock *clock;
    const struct hf_op_record *journal;
    size_t journal_count;
    const char *bindings_hash;
    void *user;
    int (*resolve)(void *user, const char *hash, struct hf_span *ret_sealed);
};

/* HF_EINVAL with the field at fault (bindings that are not canonical, a journal out of
 * order, memory_bytes that no cell can begin with), HF_ETOOBIG, HF_ENOMEM; HF_EBLOB when
 * the bindings cannot be resolved, have another hash, or are of another engine or version.
 * Faults of the code are no errors: poll tells them. */
HF_API HF_MUST_USE int hf_cell_new(const struct hf_engine *engine,
                                   const struct hf_cell_start *start,
                                   struct hf_cell **ret_cell, struct hf_err *err);
HF_API void hf_cell_free(struct hf_cell *cell);

/* Runs on until the host is needed: the operation that is out, NULL when the cell has
 * ended. Polled again before the answer, it returns the same operation. HF_ENOMEM: the
 * machine's memory, not the cell's limit, ran out; the cell cannot continue, and is to be
 * started again from its journal. */
HF_API HF_MUST_USE int hf_cell_poll(struct hf_cell *cell, const struct hf_op **ret_op,
                                    struct hf_err *err);

/* As hf_cell_poll, but it returns after about `steps` steps (hf_cell_limits) if the host is
 * not needed before: *ret_op is then NULL and hf_cell_end is running, and the host polls
 * again when it likes. The results and costs of a cell do not depend on the slices. A
 * library function that is at work is not interrupted. HF_EINVAL for steps under 1. */
HF_API HF_MUST_USE int hf_cell_poll_steps(struct hf_cell *cell, int64_t steps,
                                          const struct hf_op **ret_op,
                                          struct hf_err *err);

/* Ends the cell as cancelled, at any moment between two calls. Its result says so: calls that
 * are not answered have the outcome unknown, and its bindings are those before it.
 * HF_EFINISHED when it has ended; HF_ENOMEM as hf_cell_poll. */
HF_API HF_MUST_USE int hf_cell_cancel(struct hf_cell *cell, struct hf_err *err);

/* Answers to 1..n calls of the operation that is out, in any order, by call_id. The first
 * answer is kept: a second one is HF_EANSWERED. HF_ENOCALL, HF_ESTALE (another operation
 * is out, or none), HF_ERESPONSE (it takes a value), HF_EINVAL, HF_ETOOBIG, HF_ENOMEM. On
 * failure no answer of this call counts. */
HF_API HF_MUST_USE int hf_cell_results(struct hf_cell *cell, uint64_t ordinal,
                                       const struct hf_tool_result *results, size_t count,
                                       struct hf_err *err);

/* The answer to an operation that is no call. Errors as hf_cell_results. */
HF_API HF_MUST_USE int hf_cell_value(struct hf_cell *cell, uint64_t ordinal,
                                     struct hf_span json, struct hf_err *err);

/* How it ended, and in which line of its text (0: not known). */
HF_API enum hf_cell_end hf_cell_end(const struct hf_cell *cell, int64_t *ret_line);

/* The answer to EXEC_CODE; NULL until the cell has ended. It borrows from the cell.
 *   error    how it ended, for the model, unless it ended well
 *   calls    each call that was answered, with its operation's id; a cell that called fail
 *            has as its last one `fail`, with control FAIL and the value
 *   failed   only for a cell that diverged: the host could not run it
 * duration_ms is the time it was running. */
HF_API const struct hf_exec_result *hf_cell_result(const struct hf_cell *cell);

/* All bindings after the cell, in canonical form; those before it while it runs. */
HF_API struct hf_span hf_cell_bindings(const struct hf_cell *cell);

/* A note for the model on a cell that ended well: the n-th note, NULL past the last.
 * (A function that was not kept, for example.) They are observations of the result too. */
HF_API const char *hf_cell_note(const struct hf_cell *cell, size_t n);

/* The resources that it used so far. memory_bytes is the most at any time; held_bytes is what the
 * handle holds now, its own parts included. */
struct hf_cell_cost {
    int64_t steps;
    hf_ms active_ms;
    int64_t memory_bytes;
    int64_t held_bytes;
    int64_t ops;
    int64_t output_bytes;
};
HF_API void hf_cell_cost(const struct hf_cell *cell, struct hf_cell_cost *ret_cost);

/* Bindings as bytes: a JSON object in the form of docs/internals/cells.md, one form for
 * one value. import makes it of plain JSON (an object); hash is what EXEC_CODE names;
 * apply makes the bindings after a cell of those before it and its recorded delta:
 * HF_ECONFLICT when the delta is not one of these bindings. NULL or empty bindings are
 * those without a name. HF_EINVAL, HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_bindings_import(const struct hf_alloc *alloc,
                                          struct hf_span json,
                                          struct hf_bytes *ret_bindings,
                                          struct hf_err *err);
HF_API HF_MUST_USE int hf_bindings_check(struct hf_span bindings, struct hf_err *err);
HF_API HF_MUST_USE int hf_bindings_hash(struct hf_span bindings, char ret_hash[65],
                                        struct hf_err *err);
HF_API HF_MUST_USE int hf_bindings_apply(const struct hf_alloc *alloc,
                                         struct hf_span bindings, struct hf_span delta,
                                         struct hf_bytes *ret_bindings,
                                         struct hf_err *err);

/* Bindings as they are stored: a JSON text that names the engine that wrote them and its
 * version, since another one may not read them alike. open borrows from the text:
 * HF_EBLOB with the member at fault when another engine or version wrote them,
 * HF_EINVAL when it is no such text. HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_bindings_seal(const struct hf_alloc *alloc,
                                        const struct hf_engine *engine,
                                        struct hf_span bindings,
                                        struct hf_bytes *ret_sealed, struct hf_err *err);
HF_API HF_MUST_USE int hf_bindings_open(const struct hf_engine *engine,
                                        struct hf_span sealed,
                                        struct hf_span *ret_bindings, struct hf_err *err);

/* Lua 5.4, the language "lua". The object is static. */
HF_API const struct hf_engine *hf_engine_lua(void);

#ifdef __cplusplus
}
#endif
#endif
