/* Answers as data: in the order of the structs, under the names that the views, JSON and the
 * command line use. Code that decodes, prints or lists rows walks these tables, so that no
 * column can be missing in one place only. */
#ifndef HF_CORE_LEDGER_FIELDS_H
#define HF_CORE_LEDGER_FIELDS_H

#include <holdfast/work.h>

enum hf_field_kind {
    HF_FIELD_TEXT,  /* const char *, NULL for null                 */
    HF_FIELD_JSON,  /* const char * that holds JSON, NULL for null */
    HF_FIELD_I64,   /* int64_t                                     */
    HF_FIELD_INT,   /* int                                         */
    HF_FIELD_BOOL,  /* bool                                        */
    HF_FIELD_WORD,  /* an enum: words[value - 1], 0 for null       */
    HF_FIELD_TIME,  /* hf_ms, shown as text (RFC 3339)             */
    HF_FIELD_BYTES, /* struct hf_span, shown as text               */
    HF_FIELD_ROW,   /* a struct within the row, of the shape `of`  */
    HF_FIELD_TIMES, /* struct hf_times, shown as an array of texts */
    HF_FIELD_DIGEST /* 32 bytes, shown as hex digits               */
};

struct hf_shape;

struct hf_times {
    const hf_ms *at;
    size_t count;
};

struct hf_field {
    const char *name;
    enum hf_field_kind kind;
    size_t offset;
    bool zero_is_null; /* a number, such as a time or duration, whose 0 means null */
    const char *help;
    const char *const *words;  /* the values that a text or word can have; NULL ends */
    const struct hf_shape *of; /* ROW */
    bool optional;             /* left out where it is null */
    size_t
        null_by; /* offset of an int64_t or pointer: 0 there makes this null; 0: none */
};

/* One row of a table: HF_FIELD(TEXT, hf_work, queue, false, "help", .words = …). */
#define HF_FIELD(kind_, type, member, null_, ...)                                        \
    {                                                                                    \
        .name = #member, .kind = HF_FIELD_##kind_,                                       \
        .offset = offsetof(struct type, member), .zero_is_null = (null_),                \
        .help = __VA_ARGS__                                                              \
    }

/* A named row. */
struct hf_shape {
    const char *name;
    const struct hf_field *fields;
    size_t count;
};
#define HF_SHAPE(name, fields)                                                           \
    {                                                                                    \
        name, fields, sizeof(fields) / sizeof((fields)[0])                               \
    }

/* The words of the enums of the same names: words[value - 1]. NULL ends. */
extern const char *const hf_status_words[];
extern const char *const hf_source_words[];
extern const char *const hf_disposition_words[];
extern const char *const hf_overlap_words[];
extern const char *const hf_catch_up_words[];
extern const char *const hf_close_rule_words[];
extern const char *const hf_gate_words[];
extern const char *const hf_wait_rule_words[];

extern const struct hf_shape hf_work_shape;
extern const struct hf_shape hf_event_shape;

/* All of struct hf_work. `lease_remaining_ms` is no column: it is lease_expires_at less the
 * lease clock, taken when the row was read, and means nothing without a lease. */
extern const struct hf_field hf_work_fields[];
extern const size_t hf_work_field_count;

/* All of struct hf_event. */
extern const struct hf_field hf_event_fields[];
extern const size_t hf_event_field_count;

/* The value in a struct of the table's type; numbers of any kind as int64_t. NULL, or 0, where
 * the kind is another. */
const char *hf_field_text(const struct hf_field *field, const void *row);
int64_t hf_field_i64(const struct hf_field *field, const void *row);

/* Whether two rows are the same in these fields. */
bool hf_fields_same(const struct hf_field *fields, size_t count, const void *a,
                    const void *b);

/* True where readers see null. */
bool hf_field_null(const struct hf_field *field, const void *row);

#endif
