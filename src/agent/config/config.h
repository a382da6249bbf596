/* The inside of a configuration. One file per concern:
 *   keys.c    every key of every table, and where its value goes
 *   table.c   the keys of one table, read by that list
 *   entries.c what is special in a provider, a model, an agent and a tool
 *   config.c  the file: its tables, their links, and looking them up
 */
#ifndef HF_AGENT_CONFIG_CONFIG_H
#define HF_AGENT_CONFIG_CONFIG_H

#include <holdfast/config.h>

#include "base/arena.h"
#include "base/near.h"
#include "base/toml.h"

#define KEY_SOURCES                                                                      \
    4 /* file, environment, command, credential: as enum hf_secret_source */

/* The first member of every entry. */
struct config_entry {
    const char *name;
    int line;
    struct config_entry *next;
};

struct provider {
    struct config_entry entry;
    struct hf_endpoint endpoint;
    struct hf_http_config http;
    const char *key_from[KEY_SOURCES]; /* at most one */
    const char *key_text;              /* of it, for people */
    struct hf_secret *key;             /* once it has been read */
};

struct model {
    struct config_entry entry;
    const char *provider;
    struct hf_model_config config;
    struct hf_toml_value options[HF_OPTION_COUNT]; /* line 0: not given */
};

struct agent {
    struct config_entry entry;
    struct hf_agent_entry shown;
    const char *protocol;
};

struct config_tool {
    struct config_entry entry;
    struct hf_shell_tool shown;
    const char *recovery;
    const char *schema;
    const char *input;
    const char *approve_otherwise;
};

struct hf_config {
    struct hf_arena arena; /* the configuration is in it */
    struct config_entry *first[HF_CONFIG_TABLE_COUNT];
};

/* ---- keys.c ---------------------------------------------------------------------------- */

enum field { TEXT, COUNT, FLAG, DURATION, LIST, OMIT, OPTION };

struct config_place {
    enum field field;
    size_t offset; /* in the struct of its table */
};
/* Of the i-th key of hf_config_keys. */
const struct config_place *config_place(size_t i);

/* ---- table.c --------------------------------------------------------------------------- */

/* A table of the file, and the struct that its values go to. */
struct config_reading {
    struct hf_config *config;
    const struct hf_toml_table *table;
    void *into;
    struct hf_err *err;
    bool partial; /* keys that are required otherwise may be missing */
};

/* HF_EINVAL with the line and the table before `what`. */
int config_fail(const struct config_reading *reading, int line, const char *what);
/* The same, with the name of a key, a kind or an option behind it. */
int config_fail_word(const struct config_reading *reading, int line, const char *what,
                     const char *word);
/* An unknown word, and the nearest known one. */
int config_fail_unknown(const struct config_reading *reading, int line, const char *what,
                        const struct hf_near *near);
/* Reads every pair of the table, and asks for the keys that it needs. */
int config_read_pairs(const struct config_reading *reading);

/* ---- entries.c ------------------------------------------------------------------------- */

/* Reads a table of this kind; the entry joins the configuration also when it is wrong. */
int config_read_entry(struct config_reading *reading, enum hf_config_table kind);

/* ---- config.c -------------------------------------------------------------------------- */

/* NULL: there is none of that name. */
struct config_entry *config_find(const struct hf_config *config,
                                 enum hf_config_table kind, const char *name);
bool config_is_builtin(const char *name);

#endif
