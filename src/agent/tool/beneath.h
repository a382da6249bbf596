/* Opening files below a folder, without a way out of it: no path that is absolute or has "..",
 * no link that leads out, and no race with a process that moves folders meanwhile. */
#ifndef HF_AGENT_TOOL_BENEATH_H
#define HF_AGENT_TOOL_BENEATH_H

#include <sys/types.h>

#include <holdfast/types.h>

/* Opens a path below the folder `root`, a descriptor. Flags are those of open; O_CLOEXEC is
 * added. Returns a descriptor, or the negative errno: -EXDEV for a path that is absolute, has
 * a part "..", or leads out by a link. */
int beneath_open(int root, const char *path, int flags, mode_t mode);

/* The same on a kernel without openat2: links are refused altogether, with -ELOOP or
 * -ENOTDIR. */
int beneath_walk(int root, const char *path, int flags, mode_t mode);

#endif
