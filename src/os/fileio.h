/* Common operations on files that must survive a crash. */
#ifndef HF_OS_FILEIO_H
#define HF_OS_FILEIO_H

#include <holdfast/types.h>

/* Writes all of it. 0, or an errno with a part of it written. */
HF_MUST_USE int hf_file_write(int fd, const void *bytes, size_t len);

/* Makes what was created, renamed or removed in the folder of the path durable. 0 or an
 * errno. */
HF_MUST_USE int hf_file_sync_folder(const char *path);

/* Whether the path still names the file that is open, and not a link to it: the process
 * that removes or replaces it by that name would take the link. */
bool hf_file_same(int fd, const char *path);

#endif
