/* Finding spans: see zone.h. */
#include "core/schedule/zone.h"

#include "base/civil.h"

const struct hf_zone hf_zone_utc = { 0 };

/* ---- the rule ---------------------------------------------------------------------- */

/* The local second at which a rule's day falls in a year. */
static int64_t local_of(const struct hf_zone_day *day, int64_t year)
{
    int64_t days = hf_days_of(year, 1, 1);
    if (day->kind == HF_ZONE_ORDINAL) {
        days += day->day;
    } else if (day->kind == HF_ZONE_JULIAN) {
        bool leap = hf_month_days(year, 2) == 29;
        days += day->day - 1 + (leap && day->day > 59);
    } else {
        days = hf_days_of(year, day->month, 1);
        int in = (day->day - hf_weekday_of(days) + 7) % 7 + 7 * (day->week - 1);
        while (in >= hf_month_days(year, day->month))
            in -= 7;
        days += in;
    }
    return days * HF_DAY_S + day->second;
}

struct change {
    int64_t at;
    int32_t offset;
};

#define YEARS                                                                            \
    4 /* so that what holds now has one before it, also if years have one change */
#define CHANGES (2 * YEARS + 1)

/* Puts a change into order. Of two at one instant only the later counts: summer time that
 * ends as it begins again never ended. */
static size_t add_change(struct change *list, size_t count, struct change change)
{
    size_t i = count;
    for (; i > 0 && list[i - 1].at > change.at; i--)
        list[i] = list[i - 1];
    if (i > 0 && list[i - 1].at == change.at) {
        list[i - 1].offset = change.offset;
        for (size_t k = i; k < count; k++)
            list[k] = list[k + 1];
        return count;
    }
    list[i] = change;
    return count + 1;
}

static void rule_at(const struct hf_zone_rule *rule, int64_t utc,
                    struct hf_zone_span *ret_span)
{
    struct hf_zone_span span = { HF_ZONE_BEGIN, HF_ZONE_END, rule->standard,
                                 rule->standard };
    if (rule->has_summer) {
        int64_t year = hf_date_of(hf_day_of_seconds(utc)).year;
        struct change list[CHANGES];
        size_t count = 0;
        for (int64_t y = year - 2; y < year - 2 + YEARS; y++) {
            int64_t end = local_of(&rule->end, y) - rule->summer;
            int64_t begin = local_of(&rule->begin, y) - rule->standard;
            count = add_change(list, count, (struct change){ end, rule->standard });
            count = add_change(list, count, (struct change){ begin, rule->summer });
        }
        span.offset = span.before = list[0].offset == rule->summer ? rule->standard
                                                                   : rule->summer;
        span.until = list[0].at;
        for (size_t i = 0; i < count && list[i].at <= utc; i++) {
            span.before = span.offset;
            span.offset = list[i].offset;
            span.from = list[i].at;
            span.until = i + 1 < count ? list[i + 1].at : HF_ZONE_END;
        }
    }
    *ret_span = span;
}

/* ---- spans ------------------------------------------------------------------------- */

static int32_t offset_before(const struct hf_zone *zone, size_t i)
{
    return i > 0 ? zone->offset[i - 1] : zone->first_offset;
}

/* How many changes lie at or before the instant. */
static size_t changes_until(const struct hf_zone *zone, int64_t utc)
{
    size_t low = 0, high = zone->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->at[middle] <= utc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void hf_zone_at(const struct hf_zone *zone, int64_t utc, struct hf_zone_span *ret_span)
{
    size_t passed = changes_until(zone, utc);
    struct hf_zone_span span = { HF_ZONE_BEGIN, HF_ZONE_END, zone->first_offset,
                                 zone->first_offset };
    if (passed > 0) {
        span.from = zone->at[passed - 1];
        span.offset = zone->offset[passed - 1];
        span.before = offset_before(zone, passed - 1);
    }
    if (passed < zone->count) {
        span.until = zone->at[passed];
    } else if (zone->has_rule) {
        struct hf_zone_span by_rule;
        rule_at(&zone->rule, utc, &by_rule);
        if (zone->count == 0 || by_rule.from > zone->at[zone->count - 1]) {
            span = by_rule;
        } else { /* the table's last change is still in force */
            span.until = by_rule.until;
            span.offset = by_rule.offset;
        }
    }
    *ret_span = span;
}

int64_t hf_zone_instant(const struct hf_zone *zone, int64_t local)
{
    struct hf_zone_span span;
    for (int64_t utc = local - HF_ZONE_OFFSET_MAX;; utc = span.until) {
        hf_zone_at(zone, utc, &span);
        if (local < span.from + span.offset)
            return span.from; /* a gap: the clocks went past it */
        if (local < span.until + span.offset)
            return local - span.offset;
    }
}
