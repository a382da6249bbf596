/* The error table read at run time, and the one way to fill in a struct hf_err.
 *
 * Messages end in logs, terminals and JSON, whatever a caller puts into them: so they are
 * always valid UTF-8 without control bytes.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct row {
    const char *wire;
    const char *text;
    const char *action;
    enum hf_class class_;
    int exit_code;
    int http;
};

/* Indexed by the negated code. Codes are never reused, so a gap may come: its wire name is
 * NULL, as is that of HF_OK. */
#define X(name, value, wire, text, class, action, exit, http)                            \
    [-(value)] = { wire, text, action, HF_CLASS_##class, exit, http },
static const struct row rows[] = { HF_ERRORS(X) };
#undef X

static const struct row ok = { "ok", "ok", "", HF_CLASS_TERMINAL, 0, 200 };

static const struct row *row_of(int code)
{
    int count = (int)(sizeof(rows) / sizeof(rows[0]));
    if (code == HF_OK)
        return &ok;
    if (code > 0 || code <= -count || !rows[-code].wire)
        return &rows[-HF_EINTERNAL];
    return &rows[-code];
}

const char *hf_err_wire(int code)
{
    return row_of(code)->wire;
}

const char *hf_err_text(int code)
{
    return row_of(code)->text;
}

const char *hf_err_action(int code)
{
    return row_of(code)->action;
}

enum hf_class hf_err_class(int code)
{
    return row_of(code)->class_;
}

const char *hf_class_name(enum hf_class class_)
{
    switch (class_) {
    case HF_CLASS_TERMINAL: return "terminal";
    case HF_CLASS_RETRYABLE: return "retryable";
    case HF_CLASS_UNKNOWN: return "unknown";
    }
    return "terminal";
}

int hf_err_exit(int code)
{
    return row_of(code)->exit_code;
}

int hf_err_http(int code)
{
    return row_of(code)->http;
}

/* Copies what fits, cleaned; `in` and `out` may be the same memory. */
static void copy_clean(char *out, size_t room, const char *in)
{
    size_t have = strnlen(in, room);
    size_t keep = have < room ? have : hf_utf8_cut(in, room - 1);
    size_t at = 0;
    while (at < keep) {
        size_t step = hf_utf8_next(in + at, keep - at);
        unsigned char first = (unsigned char)in[at];
        if (step == 0 || first < 0x20 || first == 0x7f) {
            out[at++] = '?';
            continue;
        }
        memmove(out + at, in + at, step);
        at += step;
    }
    out[keep] = '\0';
}

int hf_fail(struct hf_err *err, int code, const char *field, const char *format, ...)
{
    if (!err)
        return code;

    /* Callers wrap: an argument may be err->message or err->field itself. One byte more
     * than fits shows copy_clean that there was more. */
    char message[sizeof(err->message) + 1];
    va_list args;
    va_start(args, format);
    int written = vsnprintf(message, sizeof(message), format, args);
    va_end(args);

    err->code = code;
    copy_clean(err->field, sizeof(err->field), field ? field : "");
    copy_clean(err->message, sizeof(err->message),
               written < 0 ? hf_err_text(code) : message);
    return code;
}

int hf_fail_plain(struct hf_err *err, int code)
{
    return hf_fail(err, code, NULL, "%s", hf_err_text(code));
}

int hf_fail_as(struct hf_err *err, int code, const struct hf_err *why)
{
    if (code == 0 || !err)
        return code;
    if (why->code != code)
        return hf_fail_plain(err, code);
    *err = *why;
    return code;
}

_Noreturn void hf_assert_failed(const char *cond, const char *file, int line)
{
    (void)fprintf(stderr, "holdfast: %s:%d: broken promise: %s\n", file, line, cond);
    abort();
}
