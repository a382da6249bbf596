/* Secrets: keys that are used and never shown.
 *
 * A secret has a name, which may be shown, and bytes, which only the HTTP client reads. Its
 * bytes lie in locked memory that no core dump contains, and are zeroed when it is freed. A
 * secret never changes; any thread may use it.
 */
#ifndef HOLDFAST_SECRET_H
#define HOLDFAST_SECRET_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_secret;

/* Where a secret comes from:
 *   FILE        `from` is a path. The file must not be readable by other users
 *   ENV         a variable of the environment
 *   COMMAND     words separated by blanks: a program and its arguments, without a shell;
 *               its output is the secret. It has ten seconds
 *   CREDENTIAL  a credential that systemd passed, by its name ($CREDENTIALS_DIRECTORY)
 *   BYTES       `from` itself
 * One newline at the end is not part of it. It has 1 to 8,192 bytes, without control bytes. */
enum hf_secret_source {
    HF_SECRET_FILE,
    HF_SECRET_ENV,
    HF_SECRET_COMMAND,
    HF_SECRET_CREDENTIAL,
    HF_SECRET_BYTES
};

/* HF_ENOTFOUND when there is none, HF_EINVAL when it is no secret; the error has the name
 * and the source, and never the bytes. HF_ENOMEM. */
HF_API HF_MUST_USE int hf_secret_new(const char *name, enum hf_secret_source source,
                                     const char *from, struct hf_secret **ret_secret,
                                     struct hf_err *err);
HF_API void hf_secret_free(struct hf_secret *secret); /* NULL is fine */

/* "[secret:name]"; lives as long as the secret. */
HF_API const char *hf_secret_text(const struct hf_secret *secret);

#ifdef __cplusplus
}
#endif
#endif
