/* The reference model of the store: the ledger in plain memory, written from the tables of
 * the design and not from src/core, since it exists to disagree with it. Slow, single-minded
 * and easy to read. Threads: one at a time. */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <holdfast/sys/store.h>

/* What a store keeps when all its handles are closed. */
struct model_disk;

struct model_disk *model_disk_new(void); /* NULL: no memory */
void model_disk_free(struct model_disk *disk);

/* A handle; any number at a time. Close it with hf_store_close, before the disk is freed. */
HF_MUST_USE int model_open(struct model_disk *disk,
                           const struct hf_store_options *options,
                           struct hf_store **ret_store, struct hf_err *err);

#endif
