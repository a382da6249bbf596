/* Decoding TZif: see zone.h. A file is a block of 32-bit times, which is passed over, the
 * same again with 64-bit times, and a footer between two line ends. */
#include "core/schedule/zone.h"

#include <string.h>

#include "base/err.h"

#define HEADER 44
#define CHANGES_MAX 20000
#define INSTANT_MAX (INT64_C(1) << 60)

struct counts {
    uint32_t utc_flags, std_flags, leaps, changes, types, names;
};

struct cursor {
    const uint8_t *at;
    size_t left;
    struct hf_err *err;
};

static int broken(struct hf_err *err, const char *what)
{
    return hf_fail(err, HF_ECORRUPT, "zone", "the time zone's data is damaged: %s", what);
}

static int take(struct cursor *in, size_t len, const uint8_t **ret_at)
{
    if (in->left < len)
        return broken(in->err, "it ends too soon");
    *ret_at = in->at;
    in->at += len;
    in->left -= len;
    return 0;
}

static uint32_t u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t i64(const uint8_t *at)
{
    return (int64_t)((uint64_t)u32(at) << 32 | u32(at + 4));
}

static int read_header(struct cursor *in, uint8_t *ret_version, struct counts *ret_counts)
{
    const uint8_t *at = NULL;
    int rc = take(in, HEADER, &at);
    if (rc)
        return rc;
    if (memcmp(at, "TZif", 4) != 0)
        return broken(in->err, "it is no TZif file");
    *ret_version = at[4];
    *ret_counts = (struct counts){ u32(at + 20), u32(at + 24), u32(at + 28),
                                   u32(at + 32), u32(at + 36), u32(at + 40) };
    return 0;
}

/* Bytes of a block's body; counts are at most 2^32, so the sum fits. */
static uint64_t body_bytes(const struct counts *is, uint64_t time_bytes)
{
    return is->changes * (time_bytes + 1) + is->types * UINT64_C(6) + is->names +
           is->leaps * (time_bytes + 4) + is->std_flags + is->utc_flags;
}

static int skip_old_block(struct cursor *in)
{
    const uint8_t *at = NULL;
    uint8_t version;
    struct counts counts;
    int rc = read_header(in, &version, &counts);
    if (rc)
        return rc;
    if (version < '2')
        return broken(in->err, "version 1 has no rule for the future");
    uint64_t bytes = body_bytes(&counts, 4);
    return take(in, bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes, &at);
}

static int check_counts(const struct counts *is, struct hf_err *err)
{
    if (is->types == 0 || is->types > 256)
        return broken(err, "it has no kinds of local time, or too many");
    if (is->changes > CHANGES_MAX)
        return broken(err, "it has too many changes");
    if (is->leaps > 0)
        return hf_fail(err, HF_EINVAL, "zone",
                       "this zone counts leap seconds, which are not supported");
    return 0;
}

static int read_offset(const uint8_t *type, int32_t *ret_offset, struct hf_err *err)
{
    int32_t offset = (int32_t)u32(type);
    if (offset <= -HF_ZONE_OFFSET_MAX || offset >= HF_ZONE_OFFSET_MAX)
        return broken(err, "an offset is over a day");
    *ret_offset = offset;
    return 0;
}

/* The 64-bit block's body: times, their types, the types. */
static int read_changes(struct cursor *in, struct hf_arena *arena,
                        const struct counts *counts, struct hf_zone *zone)
{
    const uint8_t *times = NULL, *kinds = NULL, *types = NULL;
    size_t n = counts->changes;
    int rc = take(in, n * 8, &times);
    if (rc == 0)
        rc = take(in, n, &kinds);
    if (rc == 0)
        rc = take(in, counts->types * 6, &types);
    if (rc)
        return rc;
    int64_t *at = hf_arena_array(arena, n, sizeof(*at));
    int32_t *offset = hf_arena_array(arena, n, sizeof(*offset));
    if (!at || !offset)
        return hf_fail_plain(in->err, HF_ENOMEM);
    rc = read_offset(types, &zone->first_offset, in->err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        at[i] = i64(times + 8 * i);
        bool rising = i == 0 || at[i] > at[i - 1];
        if (!rising || at[i] < -INSTANT_MAX || at[i] > INSTANT_MAX)
            rc = broken(in->err, "its changes are out of order");
        else if (kinds[i] >= counts->types)
            rc = broken(in->err, "a change is to nothing");
        else
            rc = read_offset(types + 6 * kinds[i], &offset[i], in->err);
    }
    zone->count = n;
    zone->at = at;
    zone->offset = offset;
    return rc;
}

static int read_footer(struct cursor *in, struct hf_zone *zone)
{
    if (in->left < 2 || in->at[0] != '\n' || in->at[in->left - 1] != '\n')
        return broken(in->err, "its footer is none");
    struct hf_span text = { in->at + 1, in->left - 2 };
    if (text.len == 0)
        return 0;
    zone->has_rule = true;
    return hf_zone_rule_read(text, &zone->rule, in->err);
}

int hf_zone_read(struct hf_arena *arena, struct hf_span bytes,
                 const struct hf_zone **ret_zone, struct hf_err *err)
{
    struct cursor in = { bytes.at, bytes.len, err };
    struct counts counts;
    uint8_t version;
    const uint8_t *rest = NULL;
    struct hf_zone *zone = hf_arena_new(arena, struct hf_zone);
    if (!zone)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = skip_old_block(&in);
    if (rc == 0)
        rc = read_header(&in, &version, &counts);
    if (rc == 0)
        rc = check_counts(&counts, err);
    if (rc == 0)
        rc = read_changes(&in, arena, &counts, zone);
    if (rc == 0) /* names and flags say nothing about offsets */
        rc = take(&in, (size_t)counts.names + counts.std_flags + counts.utc_flags, &rest);
    if (rc == 0)
        rc = read_footer(&in, zone);
    if (rc == 0)
        *ret_zone = zone;
    return rc;
}
