/* A growing byte buffer created with its maximum. Errors stick: a failed append empties
 * the buffer, all further appends do nothing, and hf_buf_state tells at the end. The
 * contents always end in a NUL that is not counted in `len` or `max`. Appended bytes
 * must not lie in the buffer itself. One thread at a time. */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include <holdfast/types.h>

struct hf_buf {
    const struct hf_alloc *alloc;
    char *at;
    size_t len;
    size_t room;
    size_t max;
    int state; /* 0, HF_ENOMEM or HF_ETOOBIG */
};

void hf_buf_init(struct hf_buf *buf, const struct hf_alloc *alloc, size_t max);
void hf_buf_fini(struct hf_buf *buf);
void hf_buf_reset(struct hf_buf *buf); /* empty and in order again; keeps its memory */

void hf_buf_bytes(struct hf_buf *buf, const void *bytes, size_t len);
void hf_buf_text(struct hf_buf *buf, const char *text);
void hf_buf_char(struct hf_buf *buf, char c);
void hf_buf_i64(struct hf_buf *buf, int64_t value);
void hf_buf_hex(struct hf_buf *buf, const void *bytes, size_t len); /* lower case */

/* Room for `more` bytes to be written in place, or NULL after a failure; then hf_buf_grew tells
 * how many were. */
char *hf_buf_room(struct hf_buf *buf, size_t more);
void hf_buf_grew(struct hf_buf *buf, size_t by);

/* Contents, never NULL ("" when empty or failed); valid until the next append. */
const char *hf_buf_str(const struct hf_buf *buf);
int hf_buf_state(const struct hf_buf *buf);

/* Ends the buffer: its contents as a copy in the arena, or NULL when the buffer failed or
 * there is no memory. */
struct hf_arena;
char *hf_buf_keep(struct hf_buf *buf, struct hf_arena *arena);

#endif
