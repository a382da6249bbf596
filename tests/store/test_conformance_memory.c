/* The conformance suite on SQLite in memory. A store in memory cannot be opened twice; the
 * cases that need that run on the file. */

#include "support/conform.h"

static int open_memory(void *user, const struct hf_store_options *options,
                       struct hf_store **ret_store, struct hf_err *err)
{
    (void)user;
    return hf_store_open("sqlite::memory:", options, ret_store, err);
}

int main(int argc, char **argv)
{
    const struct hf_conform_factory factory = { .size = sizeof(factory),
                                                .open = open_memory };
    return conform_main("conformance_memory", &factory, argc, argv);
}
