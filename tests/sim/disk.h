/* A disk in memory, under SQLite, whose power can fail: a VFS that keeps apart what was
 * written and what was synced. One thread at a time.
 *
 * On power loss each file goes back to what was last synced, and of the writes since then a
 * drawn part is there, each perhaps torn at a sector. Until all files are closed nothing
 * reaches the disk any more; then the survivors can be opened again. Every read, write, sync
 * and truncate is counted, so that a test can let the n-th fail. */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* What fails: the I/O with this number, counted from 1; 0: none. */
struct disk_fault {
    int64_t at;
    bool stays;    /* and all after it */
    int code;      /* SQLITE_IOERR_WRITE, SQLITE_FULL, … */
    bool is_power; /* not an error: the power fails there, before it */
};

/* Registers the VFS as `name`. Idempotent; returns SQLite's code. */
int disk_register(const char *name);

/* Nothing on it; all files must be closed. `model` picks sector size and device promises. */
void disk_format(unsigned model);

/* The power fails now. */
void disk_cut(uint64_t chance);
bool disk_is_cut(void);

void disk_set_fault(struct disk_fault fault, uint64_t chance);
void disk_calm(void);      /* no fault any more; counts stay */
int64_t disk_ios(void);    /* since the last format */
int64_t disk_failed(void); /* of them made to fail */

/* The whole disk, to come back to: pass it to disk_restore as often as wanted. */
struct disk_image;
struct disk_image *disk_save(void);
void disk_restore(const struct disk_image *image);
void disk_image_free(struct disk_image *image);

#endif
