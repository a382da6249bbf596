/* The spool as a file: a first line that says what it is, then a line a request.
 *
 * Writers take the file's lock, so that lines never mix; the process that replaces the
 * file does so under its lock, and a writer that got the lock of a file which is no
 * longer under the name opens it anew. A line that lacks its end was torn by a crash: the
 * next writer ends it, so that it spoils no other. */
#ifndef HF_RUN_INGRESS_SPOOL_H
#define HF_RUN_INGRESS_SPOOL_H

#include <holdfast/ingress.h>

#define HF_SPOOL_FIRST "{\"holdfast_spool\":1}\n"

/* Append one whole line, with its end, and sync it. HF_EFULL: the spool's bound or the disk;
 * HF_EBUSY: the lock; HF_EREADONLY, HF_EINVAL: the path; HF_ESTOREIO. */
HF_MUST_USE int hf_spool_write(const struct hf_spool *spool, struct hf_span line,
                               struct hf_err *err);

/* Take the lock of an open spool, waiting up to `wait_ms`. 0 or HF_EBUSY; it ends with the
 * descriptor. */
HF_MUST_USE int hf_spool_lock(int fd, const char *path, hf_ms wait_ms,
                              struct hf_err *err);

/* A failed call on the file, by its errno. */
int hf_spool_failed(struct hf_err *err, const char *what, const char *path, int errnum);

#endif
