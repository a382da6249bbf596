/* The columns that readers see, as data: in the order of struct hf_work and struct
 * hf_event, under the names that the views, JSON and the command line use. Whoever decodes
 * a row or prints one walks these tables, so that no column is ever left out in one place
 * only. */
#ifndef HF_CORE_LEDGER_FIELDS_H
#define HF_CORE_LEDGER_FIELDS_H

#include <holdfast/work.h>

enum hf_field_kind {
    HF_FIELD_TEXT, /* const char *, NULL for null                 */
    HF_FIELD_JSON, /* const char * that holds JSON, NULL for null */
    HF_FIELD_I64   /* int64_t                                     */
};

struct hf_field {
    const char *name;
    enum hf_field_kind kind;
    size_t offset;
    bool zero_is_null; /* I64: a time or duration, whose 0 stands for null */
};

/* All of struct hf_work. `lease_remaining_ms` is no column: it is lease_expires_at less the
 * lease clock, taken when the row was read, and means nothing without a lease. */
extern const struct hf_field hf_work_fields[];
extern const size_t hf_work_field_count;

/* All of struct hf_event. */
extern const struct hf_field hf_event_fields[];
extern const size_t hf_event_field_count;

/* The value in a struct of the table's type. NULL, or 0, where the kind is another. */
const char *hf_field_text(const struct hf_field *field, const void *row);
int64_t hf_field_i64(const struct hf_field *field, const void *row);

/* Whether two rows are the same in these fields. */
bool hf_fields_same(const struct hf_field *fields, size_t count, const void *a,
                    const void *b);

/* True where readers see null. */
bool hf_field_null(const struct hf_field *field, const void *row);

#endif
