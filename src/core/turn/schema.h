/* The shape of a turn's values, as data.
 *
 * One table a struct: its members with a number (in saves), a name (in JSON and for
 * people), a type and a bound. Copying, saving, restoring, JSON and descriptions all walk
 * these tables, so that they cannot disagree about what a value holds. */
#ifndef HF_CORE_TURN_SCHEMA_H
#define HF_CORE_TURN_SCHEMA_H

#include <holdfast/turn.h>

#include "base/arena.h"
#include "base/repair.h"

enum hf_member_type {
    HF_M_BOOL,
    HF_M_U32,
    HF_M_U64,
    HF_M_I64,
    HF_M_ENUM,
    HF_M_TEXT,   /* const char *: a short text, such as an id */
    HF_M_SPAN,   /* struct hf_span: text */
    HF_M_JSON,   /* struct hf_span: JSON as it was given */
    HF_M_HASH,   /* uint8_t[32]; all zero: none */
    HF_M_STRUCT, /* a struct in place */
    HF_M_REF,    /* const pointer to a struct, or NULL */
    HF_M_LIST,   /* const pointer to an array of structs, and a count */
    HF_M_REFS    /* pointer to an array of pointers to structs, and a count */
};

enum {
    HF_M_REQUIRED = 1,
    HF_M_KEEP = 2, /* own records: live until they move to the base */
    HF_M_DEEP = 8, /* JSON that the machine may have put around a value */
    HF_M_STAY = 4, /* lives as long as the handle; all others until the next response */
};

struct hf_words {
    const char *const *words;
    uint32_t count;
};

struct hf_schema;

struct hf_member {
    uint8_t key; /* never reused; ascending in a table */
    uint8_t type;
    uint8_t flags;
    uint16_t offset;
    uint16_t count_offset;
    uint32_t max; /* bytes of a text, items of a list */
    const char *name;
    const struct hf_schema *of;   /* structs and lists */
    const struct hf_words *words; /* enums */
};

struct hf_schema {
    const char *name;
    size_t size;
    const struct hf_member *members;
    size_t count;
    bool plain; /* numbers only: its bytes are the whole of it */
};

extern const struct hf_schema hf_s_attachment;
extern const struct hf_schema hf_s_part;
extern const struct hf_schema hf_s_origin;
extern const struct hf_schema hf_s_message;
extern const struct hf_schema hf_s_draft; /* a message whose id is yet to be given */
extern const struct hf_schema hf_s_record;
extern const struct hf_schema hf_s_cause;
extern const struct hf_schema hf_s_usage;
extern const struct hf_schema hf_s_evidence;
extern const struct hf_schema hf_s_failure;
extern const struct hf_schema hf_s_tool_result;
extern const struct hf_schema hf_s_tool_call;
extern const struct hf_schema hf_s_outcome;
extern const struct hf_schema hf_s_driver;
extern const struct hf_schema hf_s_request;
extern const struct hf_schema hf_s_llm_response;
extern const struct hf_schema hf_s_llm_error;
extern const struct hf_schema hf_s_observation;
extern const struct hf_schema hf_s_exec_result;
extern const struct hf_schema hf_s_delivery;
extern const struct hf_schema hf_s_emit;
extern const struct hf_schema hf_s_log;

extern const struct hf_words hf_w_roles;
extern const struct hf_words hf_w_outcomes;
extern const struct hf_words hf_w_effects;
extern const struct hf_words hf_w_states;
extern const struct hf_words hf_w_checkpoints;
extern const struct hf_words hf_w_tool_outcomes;
extern const struct hf_words hf_w_controls;
extern const struct hf_words hf_w_choices;
extern const struct hf_words hf_w_failures;
extern const struct hf_words hf_w_llm_failures;
extern const struct hf_words hf_w_reasons;

const char *hf_turn_word(const struct hf_words *words,
                         uint32_t value); /* "?" past the end */

/* Tables are written with these. */
/* clang-format off */
#define HF_AT(type, member) .offset = offsetof(struct type, member), .name = #member
#define HF_AT_LIST(type, member, counter) \
    HF_AT(type, member), .count_offset = offsetof(struct type, counter)
#define HF_SCHEMA(id, type, table) \
    const struct hf_schema id = { #type, sizeof(struct type), table, sizeof(table) / sizeof(table[0]), false }
/* clang-format on */

/* How strictly a value is taken in.
 *   TRUST   it is ours: only copied
 *   STRICT  a host's: what is not well formed or too large is refused
 *   REPAIR  a model's: bytes that are not UTF-8 become U+FFFD, what is too long is cut    */
enum hf_value_copy_mode { HF_COPY_TRUST, HF_COPY_STRICT, HF_COPY_REPAIR };

/* Copies a value and all it points to into the arena. Texts end in a NUL. 0, HF_ENOMEM,
 * HF_EINVAL or HF_ETOOBIG with the member's name. *ret is garbage after a failure. */
HF_MUST_USE int hf_value_copy(struct hf_arena *arena, const struct hf_schema *schema,
                              enum hf_value_copy_mode mode, const void *from,
                              void *ret_to, struct hf_err *err);

/* As hf_value_copy into new memory of the arena; NULL from returns NULL. */
HF_MUST_USE int hf_value_copy_ref(struct hf_arena *arena, const struct hf_schema *schema,
                                  enum hf_value_copy_mode mode, const void *from,
                                  const void **ret_to, struct hf_err *err);

/* Checks that the text is one JSON value of at most `max` bytes that nests at most HF_VALUE_LEVELS
 * deep. Values become parts of records, and records parts of documents; each may nest a little
 * deeper than what it holds, so that whatever the machine accepts can be stored and read again.
 * Returns 0, or HF_EINVAL or HF_ETOOBIG with the field. */
#define HF_VALUE_LEVELS 56
#define HF_DATA_LEVELS 60 /* of members marked HF_M_DEEP: the data of an event */
HF_MUST_USE int hf_turn_text_json(struct hf_span text, size_t max, const char *field,
                                  struct hf_err *err);

/* The same check with the bounds of a member of type HF_M_JSON, whose value the text is to be. */
HF_MUST_USE int hf_member_check_json(const struct hf_member *member, struct hf_span text,
                                     struct hf_err *err);

/* Read one member of the value at `from`, for code that walks over a table. */
struct hf_span hf_member_span(const struct hf_member *member, const void *from);
uint64_t hf_member_number(const struct hf_member *member, const void *from);
const char *hf_member_text(const struct hf_member *member, const void *from);
const void *hf_member_ptr(const struct hf_member *member, const void *from);
size_t hf_member_count(const struct hf_member *member, const void *from);
/* Item i of a list of structs or of pointers. */
const void *hf_member_item(const struct hf_member *member, const void *from, size_t i);
/* Nothing to write: 0, NULL, empty. */
bool hf_member_absent(const struct hf_member *member, const void *from);
void hf_member_set_number(const struct hf_member *member, void *to, uint64_t value);

#define hf_text_of(literal) ((struct hf_span){ "" literal, sizeof(literal) - 1 })
struct hf_span hf_turn_span_of(const char *text); /* NULL: empty */
bool hf_turn_span_blank(struct hf_span text);     /* only white space */
bool hf_turn_span_same(struct hf_span a, struct hf_span b);

#endif
