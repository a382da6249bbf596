/* See sse.h. A line that is whole in its chunk is read where it is; only what a chunk cuts
 * is copied. */
#include "agent/wire/sse.h"

#include <string.h>

static const char mark[] = "\xef\xbb\xbf";
static const char data_field[] = "data";

#define FIELD_MAX (sizeof("data: ") - 1)

void hf_sse_init(struct hf_sse *sse, const struct hf_alloc *alloc, size_t max)
{
    *sse = (struct hf_sse){ .max = max };
    hf_buf_init(&sse->line, alloc, max + FIELD_MAX);
    hf_buf_init(&sse->data, alloc, max);
}

void hf_sse_fini(struct hf_sse *sse)
{
    hf_buf_fini(&sse->line);
    hf_buf_fini(&sse->data);
}

/* The event is at its end: a blank line, or the end of the stream. */
static int give(struct hf_sse *sse, struct hf_span data)
{
    sse->has_data = false;
    int rc = sse->event(sse->user, data);
    hf_buf_reset(&sse->data);
    return rc;
}

static int give_gathered(struct hf_sse *sse)
{
    if (!sse->has_data)
        return 0;
    return give(sse, (struct hf_span){ hf_buf_str(&sse->data), sse->data.len });
}

static int gather(struct hf_sse *sse, const char *at, size_t len)
{
    if (sse->has_data)
        hf_buf_char(&sse->data, '\n');
    hf_buf_bytes(&sse->data, at, len);
    sse->has_data = true;
    return hf_buf_state(&sse->data);
}

/* The data in a line; false for a line of another field. */
static bool data_of(const char **at, size_t *len)
{
    size_t name = sizeof(data_field) - 1;
    if (*len < name || memcmp(*at, data_field, name) != 0)
        return false;
    if (*len == name) {
        *at += name;
        *len = 0;
        return true;
    }
    if ((*at)[name] != ':')
        return false;
    size_t skip = name + 1 + (*len > name + 1 && (*at)[name + 1] == ' ');
    *at += skip;
    *len -= skip;
    return true;
}

static int take_line(struct hf_sse *sse, const char *at, size_t len)
{
    if (len > sse->max + FIELD_MAX)
        return HF_ETOOBIG;
    if (!sse->begun && len >= 3 && memcmp(at, mark, 3) == 0) {
        at += 3;
        len -= 3;
    }
    sse->begun = true;
    if (len == 0)
        return give_gathered(sse);
    return data_of(&at, &len) ? gather(sse, at, len) : 0;
}

/* A line in the chunk that is one whole event with the blank line after it: most are. */
static bool is_whole_event(const struct hf_sse *sse, const char *line_end,
                           const char *end)
{
    return sse->begun && !sse->has_data && line_end[0] == '\n' && end - line_end > 1 &&
           line_end[1] == '\n';
}

static const char *line_end_of(const char *at, const char *end)
{
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    const char *back = memchr(at, '\r', (size_t)((feed ? feed : end) - at));
    return back ? back : feed;
}

/* The line that began in an earlier chunk is at its end now. */
static int take_kept_line(struct hf_sse *sse, const char *at, size_t len)
{
    hf_buf_bytes(&sse->line, at, len);
    int rc = hf_buf_state(&sse->line);
    if (rc == 0)
        rc = take_line(sse, hf_buf_str(&sse->line), sse->line.len);
    hf_buf_reset(&sse->line);
    return rc;
}

/* One line [at, line_end); *ret_next is where the next one begins. */
static int take_one(struct hf_sse *sse, const char *at, const char *line_end,
                    const char *end, const char **ret_next)
{
    const char *data = at;
    size_t len = (size_t)(line_end - at);
    *ret_next = line_end + 1;
    if (*line_end == '\r' && *ret_next < end && **ret_next == '\n')
        ++*ret_next;
    else
        sse->after_cr = *line_end == '\r' && *ret_next == end;
    if (sse->line.len > 0)
        return take_kept_line(sse, at, len);
    if (is_whole_event(sse, line_end, end) && len <= sse->max && data_of(&data, &len)) {
        *ret_next = line_end + 2;
        return give(sse, (struct hf_span){ data, len });
    }
    return take_line(sse, at, (size_t)(line_end - at));
}

int hf_sse_feed(struct hf_sse *sse, const void *bytes, size_t len)
{
    const char *at = bytes;
    const char *end = at + len;
    if (len > 0 && sse->after_cr) {
        sse->after_cr = false;
        at += *at == '\n';
    }
    while (at < end) {
        const char *line_end = line_end_of(at, end);
        if (!line_end) {
            hf_buf_bytes(&sse->line, at, (size_t)(end - at));
            return hf_buf_state(&sse->line);
        }
        int rc = take_one(sse, at, line_end, end, &at);
        if (rc)
            return rc;
    }
    return 0;
}

int hf_sse_end(struct hf_sse *sse)
{
    int rc = sse->line.len > 0 ? take_kept_line(sse, "", 0) : 0;
    return rc ? rc : give_gathered(sse);
}
