/* When a schedule is due: cron in a zone, an interval, or once. Pure.
 *
 * Zones change their clocks. A cron time that a clock skips moves to the first instant after
 * the gap. A time that a clock shows twice fires once, at the first; but an expression that
 * repeats (a *, range or step in second, minute or hour) fires in both. Two occurrences are
 * never the same instant. */
#ifndef HF_CORE_SCHEDULE_TIMING_H
#define HF_CORE_SCHEDULE_TIMING_H

#include "core/schedule/cron.h"
#include "core/schedule/zone.h"

enum hf_timing_kind { HF_TIMING_CRON, HF_TIMING_INTERVAL, HF_TIMING_ONCE };

struct hf_timing {
    enum hf_timing_kind kind;
    struct hf_cron cron;        /* CRON */
    const struct hf_zone *zone; /* CRON; borrowed */
    hf_ms every_ms;             /* INTERVAL: at anchor_at + n * every_ms, n >= 0 */
    hf_ms anchor_at;            /* INTERVAL; ONCE: its one slot */
};

/* The first slot strictly after `after`, or 0 when there is none before the year 10000. */
hf_ms hf_timing_next(const struct hf_timing *timing, hf_ms after);

/* The last slot in (after, until], or 0 when there is none. Found by halving: its cost does
 * not depend on how many slots lie between. */
hf_ms hf_timing_last(const struct hf_timing *timing, hf_ms after, hf_ms until);

/* How many slots lie in (after, until], counted no further than `most`. */
int64_t hf_timing_count(const struct hf_timing *timing, hf_ms after, hf_ms until,
                        int64_t most);

#endif
