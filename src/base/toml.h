/* A subset of TOML, for configuration files. Every file of the subset is a file of TOML with
 * the same meaning; docs/configuration.md lists what is left out. Pure. */
#ifndef HF_BASE_TOML_H
#define HF_BASE_TOML_H

#include <holdfast/types.h>

#include "base/arena.h"

#define HF_TOML_DEPTH 2        /* parts of a table's name */
#define HF_TOML_ITEMS_MAX 4096 /* tables, pairs and array items of one file */

enum hf_toml_type {
    HF_TOML_STRING,
    HF_TOML_INTEGER,
    HF_TOML_FLOAT,
    HF_TOML_BOOLEAN,
    HF_TOML_ARRAY
};

/* A value.
 *   text     STRING: UTF-8 without NUL. INTEGER, FLOAT, BOOLEAN: the value as JSON
 *   integer  INTEGER; of a BOOLEAN 0 or 1
 *   items    ARRAY: its first item, which is no array; NULL when it is empty
 *   next     of an item: the next one                                                   */
struct hf_toml_value {
    enum hf_toml_type type;
    int line;
    const char *text;
    int64_t integer;
    const struct hf_toml_value *items;
    const struct hf_toml_value *next;
};

struct hf_toml_pair {
    const char *key;
    struct hf_toml_value value;
    struct hf_toml_pair *next;
};

/* A table with its pairs in their order. The pairs before the first [header] are in a table
 * of depth 0, which is always the first. */
struct hf_toml_table {
    const char *path[HF_TOML_DEPTH];
    int depth;
    int line;
    struct hf_toml_pair *pairs;
    struct hf_toml_table *next;
};

/* Reads a file into the arena. HF_EINVAL with the line and what is wrong there; a message never
 * contains a value. HF_ETOOBIG over HF_TOML_ITEMS_MAX, HF_ENOMEM. */
HF_MUST_USE int hf_toml_read(struct hf_arena *arena, struct hf_span text,
                             const struct hf_toml_table **ret_tables, struct hf_err *err);

/* "a string", "an integer", … */
const char *hf_toml_type_name(enum hf_toml_type type);

#endif
