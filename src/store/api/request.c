/* JSON in requests: checked against the bounds of an event, and made canonical, so that the same
 * facts are the same bytes and have the same hash. */
#include "store/api/request.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json_get.h"

int hf_api_json(struct hf_arena *arena, const char **json, const char *field,
                struct hf_err *err)
{
    if (!*json)
        return 0;
    struct hf_span text = { *json, strlen(*json) };
    int rc = hf_json_check(text, (size_t)HF_MAX_EVENT_BYTES, field, err);
    if (rc)
        return rc;
    struct hf_buf buf;
    hf_buf_init(&buf, arena->alloc, 2 * (size_t)HF_MAX_EVENT_BYTES);
    rc = hf_json_canonical_text(&buf, text);
    const char *kept = rc ? NULL : hf_buf_keep(&buf, arena);
    if (rc)
        hf_buf_fini(&buf);
    if (!kept)
        return hf_fail(err, rc ? rc : HF_ENOMEM, field, "%s cannot be kept", field);
    *json = kept;
    return 0;
}

int hf_api_labels(const char *labels, struct hf_err *err)
{
    struct json_t *value = NULL;
    const struct json_t *one;
    const char *key;
    void *at = NULL;
    if (!labels)
        return 0;
    struct hf_span text = { labels, strlen(labels) };
    int rc = hf_json_parse(text, SIZE_MAX, "labels", &value, err);
    bool flat = rc == 0 && hf_json_type_of(value) == HF_JSON_OBJECT;
    while (flat && hf_json_next(value, &at, &key, &one))
        flat = hf_json_type_of(one) == HF_JSON_TEXT;
    hf_json_free(value);
    return rc || flat ? rc
                      : hf_fail(err, HF_EINVAL, "labels",
                                "labels must be a JSON object of texts");
}
