/* Messages with files: a file is stored in the store as a blob, and the message refers to it.
 *
 * Threads: as the verbs of sessions; the call blocks.
 */
#ifndef HOLDFAST_ATTACH_H
#define HOLDFAST_ATTACH_H

#include <holdfast/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message of the user.
 *   id     of the message; NULL: a fresh one. The same id, text and files are the same message
 *   text   NULL or empty: none
 *   paths  files of this machine: images (PNG, JPEG, GIF, WebP) and UTF-8 text, by their content */
struct hf_user_message {
    size_t size;
    const char *id;
    const char *text;
    const char *const *paths;
    size_t path_count;
};

/* Stores the files, and writes the message for hf_session_send; free it with
 * hf_store_text_free. The files come first. HF_EINVAL naming "attach" for a file that
 * cannot be read, is empty, or is neither image nor text; HF_ETOOBIG for one over
 * `attachment_bytes` or more than `attachments` of them; HF_EINVAL naming "text" without
 * text and files. All files are read before the first one is stored. After a failure
 * some files may be stored that no message refers to, which is harmless. */
HF_API HF_MUST_USE int hf_user_message_write(struct hf_store *store,
                                             const struct hf_user_message *message,
                                             char **ret_json, struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
