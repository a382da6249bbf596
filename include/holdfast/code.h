/* The code protocol: the model writes cells, small programs that the host runs.
 *
 * A cell is, in a reply,
 *
 *     <lua>
 *     local hits = call("search", { query = "tide tables" })
 *     print(#hits)
 *     </lua>
 *
 * lines between a line that is nothing but the open tag and a later line that is nothing
 * but the close tag; or one line that begins with the open tag and ends with the close
 * tag. Blanks around a tag line do not count (at most 256 bytes before it). The first
 * cell of a reply is run; the text before it is prose, the text after it is dropped. A
 * reply without a cell is prose. docs/internals/code-protocol.md has the rest.
 */
#ifndef HOLDFAST_CODE_H
#define HOLDFAST_CODE_H

#include <holdfast/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Languages whose tags are known: "lua" is <lua> … </lua>. A cell in one that is not the
 * protocol's own is answered with a correction. */
#define HF_CODE_LANGUAGES(X)                                                             \
    X(LUA, lua)                                                                          \
    X(PYTHON, python)                                                                    \
    X(PY, py)                                                                            \
    X(JAVASCRIPT, javascript)                                                            \
    X(JS, js)                                                                            \
    X(TYPESCRIPT, typescript)                                                            \
    X(TS, ts)                                                                            \
    X(BASH, bash)                                                                        \
    X(SH, sh)                                                                            \
    X(SHELL, shell)                                                                      \
    X(RUBY, ruby)                                                                        \
    X(PERL, perl)

#define X(name, word) HF_CODE_##name,
enum hf_code_language { HF_CODE_LANGUAGES(X) };
#undef X
/* Its word; "?" for a value that is none. */
HF_API const char *hf_code_language_name(enum hf_code_language language);

/* The stream mask: which part of a reply that is still arriving may be shown to people, and
 * when its cell is complete. It copies nothing and holds a few numbers, whatever the
 * text; all of them count bytes of the text that was fed. The numbers do not depend on
 * how the text is cut into chunks.
 *
 *     hf_mask_init(&mask);
 *     for each chunk: append it to the text; stop = hf_mask_feed(&mask, chunk, len);
 *                     show text[shown, mask.visible)
 *                     if stop: end the stream, keep text[0, mask.end)
 *     at the end:     hf_mask_end(&mask); show the rest up to mask.visible
 *
 * Text parts of one reply are joined by a newline where the one before does not end in
 * one: feed it too. Every answer of the mask is decided at a newline or at the end, so a
 * host that hands over more than text[0, mask.end) gets the same turn.
 *
 * Threads: one at a time. It needs no memory and cannot fail. */
enum hf_mask_state {
    HF_MASK_PROSE,    /* no cell so far */
    HF_MASK_OPEN,     /* a cell was opened and is not closed */
    HF_MASK_COMPLETE, /* a cell is complete: nothing that follows counts */
};

struct hf_mask {
    enum hf_mask_state state;
    enum hf_code_language language; /* of the cell */
    bool stray;         /* prose with a line that looks like a broken tag line */
    uint64_t visible;   /* text[0, visible) is prose */
    uint64_t code_from; /* of a cell: its source, text[code_from, code_to) */
    uint64_t code_to;
    uint64_t end; /* of a complete cell: past its close tag and line end */

    /* Its own: */
    uint64_t fed;
    uint64_t line; /* where the line at hand began */
    uint64_t tag;  /* where the last close tag of a line began */
    uint16_t indent;
    uint8_t phase;
    uint8_t matched;
    uint8_t candidate;
    char name[12];
};

/* Before the first byte of each reply. */
HF_API void hf_mask_init(struct hf_mask *mask);
/* The next bytes. True once the cell is complete, and for ever after; bytes after that are
 * ignored. */
HF_API bool hf_mask_feed(struct hf_mask *mask, const void *bytes, size_t len);
/* The text is at its end: the text that was held back is prose, or a cell on one line. May be
 * called more than once. */
HF_API void hf_mask_end(struct hf_mask *mask);

/* The protocol. Options are a JSON object, or empty:
 *   language  a word of HF_CODE_LANGUAGES; "lua" when left out
 *   finish    "optional": a reply without a cell ends the turn (natural), as does finish in a
 *             cell; this is the default. "required": only finish in a cell ends it
 *   schema    with "required": the JSON Schema that the final value must fit. Known are
 *             type, enum, const, properties, required, additionalProperties, items, minItems,
 *             maxItems, minLength, maxLength, minimum, maximum, anyOf, oneOf, allOf, and
 *             annotations, which are passed over; another keyword is refused
 * HF_EINVAL with the option at fault, HF_ETOOBIG, HF_ENOMEM. The object is never changed: any
 * number of setups and threads may share it; it must outlive them. alloc NULL: the system's. */
HF_API HF_MUST_USE int hf_code_new(const struct hf_alloc *alloc, struct hf_span options,
                                   struct hf_protocol **ret_protocol, struct hf_err *err);
HF_API void hf_code_free(struct hf_protocol *protocol);

/* The same with no options. The object is static. */
HF_API const struct hf_protocol *hf_protocol_code(void);

/* A surface for the code protocol: the host's prompt, then how cells are written in the
 * language of the protocol, then each tool as a call of that language, made from its
 * "description" and the JSON Schema in "parameters" or "input_schema". Errors as
 * hf_surface_new; HF_EPROTOCOL when the protocol is no code protocol. */
HF_API HF_MUST_USE int hf_code_surface(const struct hf_alloc *alloc,
                                       const struct hf_protocol *protocol,
                                       struct hf_span prompt, struct hf_span tools,
                                       struct hf_surface **ret_surface,
                                       struct hf_err *err);

/* The text about the variables of past cells that a model is shown, for hf_exec_result.variables: a
 * line for each, in the order of the names, with its type and the beginning of its value;
 * at most HF_MAX_CODE_VARIABLES_BYTES. `bindings` is a JSON object with its names in
 * order, or empty. The same bindings make the same text. hf_cell_result has it already.
 * HF_EINVAL, HF_ETOOBIG, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_code_variables(const struct hf_alloc *alloc,
                                         struct hf_span bindings,
                                         struct hf_bytes *ret_text, struct hf_err *err);

/* The results of past cells in the turn's history, in full, even where the model saw a part:
 * the answer to the call "history" that a cell may make. `args` is the call's JSON:
 * {"step": n, "output": m} returns that text as a JSON string, with "from" and "bytes" a
 * part of it; {"step": n} returns an object with "code", "output", "error" and "final".
 * HF_ENOTFOUND, HF_EINVAL, HF_EBASE, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_code_history(const struct hf_turn *turn, struct hf_span args,
                                       struct hf_bytes *ret_value, struct hf_err *err);

/* The cells of a saved turn, as a JSON array: of the records that the save holds, and the
 * cell that is out. Each has "step", "iteration", "language", "code" and what became of it.
 * Errors as hf_turn_peek; HF_ENOMEM. */
HF_API HF_MUST_USE int hf_code_trajectory(const struct hf_alloc *alloc,
                                          struct hf_span save, struct hf_bytes *ret_json,
                                          struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
