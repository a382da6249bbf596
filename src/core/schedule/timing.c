/* When a schedule is due: cron in a zone, an interval, or once; the next slot after a moment, the
 * last one before another, and how many are between. timing.h says what changes of the clock do.
 * Pure. */
#include "core/schedule/timing.h"

#include "base/civil.h"

#define TWO_DAYS_S                                                                       \
    (2 * HF_DAY_S) /* more than twice the largest offset except for an hour */

/* An occurrence in the gap before the span, which its first instant means. */
static bool fires_in_gap(const struct hf_cron *cron, const struct hf_zone_span *span)
{
    if (span->before >= span->offset)
        return false;
    int64_t found = hf_cron_match(cron, span->from + span->before);
    return found >= 0 && found < span->from + span->offset;
}

/* Where to begin in the span: a second copy of local time is passed over by expressions
 * that do not repeat. */
static int64_t local_from(const struct hf_cron *cron, const struct hf_zone_span *span,
                          int64_t utc)
{
    int64_t local = utc + span->offset;
    int64_t copy_end = span->from + span->before;
    return !cron->repeats && span->before > span->offset && local < copy_end ? copy_end
                                                                             : local;
}

/* The first occurrence at or after `utc`, in seconds, or -1. Each span is searched in its
 * own local time. Spans in between that can hold nothing are passed over at once: every
 * local time of theirs lies in the stretch where nothing was found. */
static int64_t cron_next(const struct hf_cron *cron, const struct hf_zone *zone,
                         int64_t utc)
{
    for (;;) {
        struct hf_zone_span span;
        hf_zone_at(zone, utc, &span);
        if (utc == span.from && fires_in_gap(cron, &span))
            return utc;
        int64_t local = local_from(cron, &span, utc);
        int64_t found = hf_cron_match(cron, local);
        if (found >= 0 && found < span.until + span.offset)
            return found - span.offset;
        if (span.until >= HF_TIME_END_S)
            return -1;
        utc = span.until;
        int64_t near = (found < 0 ? HF_TIME_END_S : found) - TWO_DAYS_S;
        if (span.until - TWO_DAYS_S >= local && near > utc)
            utc = near;
    }
}

static hf_ms next_in_zone(const struct hf_timing *timing, hf_ms after)
{
    int64_t found = cron_next(&timing->cron, timing->zone, after / 1000 + 1);
    return found < 0 || found >= HF_TIME_END_S ? 0 : found * 1000;
}

hf_ms hf_timing_next(const struct hf_timing *timing, hf_ms after)
{
    if (after < 0)
        after = 0;
    if (after >= HF_TIME_END_MS)
        return 0;
    if (timing->kind == HF_TIMING_CRON)
        return next_in_zone(timing, after);
    if (after < timing->anchor_at)
        return timing->anchor_at;
    if (timing->kind == HF_TIMING_ONCE)
        return 0;
    int64_t passed = (after - timing->anchor_at) / timing->every_ms;
    hf_ms at = timing->anchor_at + (passed + 1) * timing->every_ms;
    return at >= HF_TIME_END_MS ? 0 : at;
}

hf_ms hf_timing_last(const struct hf_timing *timing, hf_ms after, hf_ms until)
{
    hf_ms best = hf_timing_next(timing, after);
    if (best == 0 || best > until)
        return 0;
    /* The next slot after `low` is not past `until`, the one after `high` is. */
    hf_ms low = best, high = until;
    while (low < high) {
        hf_ms middle = low + (high - low) / 2;
        hf_ms at = hf_timing_next(timing, middle);
        if (at != 0 && at <= until)
            low = best = at;
        else
            high = middle;
    }
    return best;
}

int64_t hf_timing_count(const struct hf_timing *timing, hf_ms after, hf_ms until,
                        int64_t most)
{
    int64_t count = 0;
    for (hf_ms at = hf_timing_next(timing, after); at != 0 && at <= until && count < most;
         at = hf_timing_next(timing, at))
        count++;
    return count;
}
