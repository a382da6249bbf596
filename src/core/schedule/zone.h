/* Time zones, decoded from TZif bytes (RFC 8536, version 2 and later) that are given as a
 * value. Pure: who reads the files is above.
 *
 * A zone is a row of spans, each with one offset from UTC: those of the table, then, without
 * end, those of the rule in the footer. */
#ifndef HF_CORE_SCHEDULE_ZONE_H
#define HF_CORE_SCHEDULE_ZONE_H

#include "base/arena.h"

/* Where spans begin and end that have no neighbour; seconds. */
#define HF_ZONE_BEGIN (-(INT64_C(1) << 61))
#define HF_ZONE_END (INT64_C(1) << 61)
/* No offset is as large; seconds. */
#define HF_ZONE_OFFSET_MAX (26 * 3600)

/* A day of the year and a time on it, at which a rule changes the offset. */
struct hf_zone_day {
    enum { HF_ZONE_WEEKDAY, HF_ZONE_JULIAN, HF_ZONE_ORDINAL } kind;
    int month; /* WEEKDAY */
    int week;  /* WEEKDAY: 1 to 5, 5 is the last */
    int day;   /* WEEKDAY: 0 to 6; JULIAN: 1 to 365, no leap day; ORDINAL: 0 to 365 */
    int32_t second; /* local, may lie outside the day */
};

struct hf_zone_rule {
    int32_t standard; /* seconds east of UTC */
    int32_t summer;
    bool has_summer;
    struct hf_zone_day begin; /* of summer time */
    struct hf_zone_day end;
};

struct hf_zone {
    size_t count;          /* of changes */
    const int64_t *at;     /* UTC seconds, rising */
    const int32_t *offset; /* from at[i] on */
    int32_t first_offset;  /* before all of them */
    bool has_rule;
    struct hf_zone_rule rule;
};

/* Decode. The result lives in the arena and copies what it needs. HF_ECORRUPT for
 * anything but a whole, well-formed file. */
HF_MUST_USE int hf_zone_read(struct hf_arena *arena, struct hf_span bytes,
                             const struct hf_zone **ret_zone, struct hf_err *err);

/* The footer's rule, "CET-1CEST,M3.5.0,M10.5.0/3". HF_ECORRUPT if it is none. */
HF_MUST_USE int hf_zone_rule_read(struct hf_span text, struct hf_zone_rule *ret_rule,
                                  struct hf_err *err);

/* The zone of UTC. */
extern const struct hf_zone hf_zone_utc;

/* [from, until) in UTC seconds: one offset, and the one before it. */
struct hf_zone_span {
    int64_t from;
    int64_t until;
    int32_t offset;
    int32_t before; /* the offset that ended at `from`; == offset at the beginning */
};

/* The span that holds an instant, which lies in the years 0 to 9999. */
void hf_zone_at(const struct hf_zone *zone, int64_t utc, struct hf_zone_span *ret_span);

/* The instant at which the zone's clocks show `local`: the first one where they show it
 * twice, and the first one after the gap where they never do. */
int64_t hf_zone_instant(const struct hf_zone *zone, int64_t local);

#endif
