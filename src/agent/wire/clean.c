/* JSON as servers send it: valid, or repaired where only characters are at fault. A reply
 * that was paid for is not given up for a broken character. */
#include <string.h>

#include "agent/wire/codec.h"
#include "base/json_scan.h"
#include "base/repair.h"

static bool scan_whole(struct hf_span text, enum hf_json_event first)
{
    struct hf_json_scan scan;
    hf_json_scan_begin(&scan, text);
    enum hf_json_event event = hf_json_scan_next(&scan);
    if (event != first && first != HF_JSON_EV_DONE)
        return false;
    while (event != HF_JSON_EV_BAD && event != HF_JSON_EV_DONE)
        event = hf_json_scan_next(&scan);
    return event == HF_JSON_EV_DONE;
}

bool hf_wire_is_object(struct hf_span text)
{
    return scan_whole(text, HF_JSON_EV_OBJECT);
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The code unit of "\uXXXX" at `at`, or -1. */
static int unit_at(const char *at, const char *end)
{
    int unit = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        if (hex_of(at[i]) < 0)
            return -1;
        unit = unit * 16 + hex_of(at[i]);
    }
    return unit;
}

/* Escapes of no character become U+FFFD, in place: the length stays. */
static void mend_escapes(char *at, size_t len)
{
    char *end = at + len;
    while (at < end) {
        if (*at != '\\') {
            at++;
            continue;
        }
        int unit = unit_at(at, end);
        bool high = unit >= 0xd800 && unit <= 0xdbff;
        int next = high ? unit_at(at + 6, end) : -1;
        if (high && next >= 0xdc00 && next <= 0xdfff) {
            at += 12;
            continue;
        }
        if (unit == 0 || (unit >= 0xd800 && unit <= 0xdfff))
            memcpy(at + 2, "fffd", 4);
        at += unit >= 0 ? 6 : 2;
    }
}

int hf_clean_json(struct hf_arena *arena, struct hf_span text, struct hf_span *ret_json,
                  bool *ret_repaired)
{
    struct hf_span mended = { 0 };
    if (scan_whole(text, HF_JSON_EV_DONE)) {
        *ret_json = text;
        return 0;
    }
    int rc = hf_text_repair(arena, text, SIZE_MAX, &mended);
    if (rc)
        return rc;
    char *copy = hf_arena_copy(arena, mended.at, mended.len);
    if (!copy)
        return HF_ENOMEM;
    mend_escapes(copy, mended.len);
    if (!scan_whole((struct hf_span){ copy, mended.len }, HF_JSON_EV_DONE))
        return HF_EINVAL;
    *ret_json = (struct hf_span){ copy, mended.len };
    *ret_repaired = true;
    return 0;
}
