/* Growing buffer. A failed buffer is emptied, so that `at` and `len` never disagree with
 * what hf_buf_str shows.
 */
#include "base/buf.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

#define FIRST_ROOM ((size_t)128)

void hf_buf_init(struct hf_buf *buf, const struct hf_alloc *alloc, size_t max)
{
    hf_assert(max < SIZE_MAX); /* the NUL needs a byte more */
    *buf = (struct hf_buf){ .alloc = alloc, .max = max };
}

void hf_buf_fini(struct hf_buf *buf)
{
    if (buf->at)
        buf->alloc->free(buf->alloc->user, buf->at);
    *buf = (struct hf_buf){ .alloc = buf->alloc, .max = buf->max };
}

void hf_buf_reset(struct hf_buf *buf)
{
    buf->state = 0;
    buf->len = 0;
    if (buf->at)
        buf->at[0] = '\0';
}

static void spoil(struct hf_buf *buf, int state)
{
    hf_buf_reset(buf);
    buf->state = state;
}

/* Room for `more` bytes and the NUL. */
static bool grow(struct hf_buf *buf, size_t more)
{
    if (buf->state)
        return false;
    if (more > buf->max - buf->len) {
        spoil(buf, HF_ETOOBIG);
        return false;
    }
    size_t need = buf->len + more + 1;
    if (need <= buf->room)
        return true;

    size_t room = buf->room <= SIZE_MAX / 2 ? buf->room * 2 : SIZE_MAX;
    if (room < FIRST_ROOM)
        room = FIRST_ROOM;
    if (room > buf->max + 1)
        room = buf->max + 1;
    if (room < need)
        room = need;
    char *at = buf->alloc->realloc(buf->alloc->user, buf->at, room);
    if (!at) {
        spoil(buf, HF_ENOMEM);
        return false;
    }
    buf->at = at;
    buf->room = room;
    return true;
}

void hf_buf_bytes(struct hf_buf *buf, const void *bytes, size_t len)
{
    if (!grow(buf, len))
        return;
    if (len > 0)
        memcpy(buf->at + buf->len, bytes, len);
    buf->len += len;
    buf->at[buf->len] = '\0';
}

void hf_buf_text(struct hf_buf *buf, const char *text)
{
    hf_buf_bytes(buf, text, strlen(text));
}

void hf_buf_char(struct hf_buf *buf, char c)
{
    if (!grow(buf, 1))
        return;
    buf->at[buf->len++] = c;
    buf->at[buf->len] = '\0';
}

char *hf_buf_room(struct hf_buf *buf, size_t more)
{
    return grow(buf, more) ? buf->at + buf->len : NULL;
}

void hf_buf_grew(struct hf_buf *buf, size_t by)
{
    buf->len += by;
    buf->at[buf->len] = '\0';
}

void hf_buf_i64(struct hf_buf *buf, int64_t value)
{
    char digits[20]; /* sign and 19 digits */
    char *end = digits + sizeof(digits);
    char *at = end;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--at = '-';
    hf_buf_bytes(buf, at, (size_t)(end - at));
}

void hf_buf_hex(struct hf_buf *buf, const void *bytes, size_t len)
{
    if (len > SIZE_MAX / 2) {
        if (buf->state == 0)
            spoil(buf, HF_ETOOBIG);
        return;
    }
    if (!grow(buf, 2 * len))
        return;
    hf_hex(bytes, len, buf->at + buf->len);
    buf->len += 2 * len;
}

const char *hf_buf_str(const struct hf_buf *buf)
{
    return buf->at && buf->state == 0 ? buf->at : "";
}

int hf_buf_state(const struct hf_buf *buf)
{
    return buf->state;
}

char *hf_buf_keep(struct hf_buf *buf, struct hf_arena *arena)
{
    char *copy = buf->state ? NULL : hf_arena_copy(arena, hf_buf_str(buf), buf->len);
    hf_buf_fini(buf);
    return copy;
}
