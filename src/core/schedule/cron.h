/* Cron expressions: read once into bit sets; the next matching moment of a calendar without
 * zones. Zones come in with core/schedule/timing.h. Pure.
 *
 *   [second] minute hour day-of-month month day-of-week
 *
 * A field is a list of *, N, N-M, and any of them with /STEP; months and weekdays also by
 * their first three letters, Sunday also as 7. A range may go round (22-2, FRI-MON). Days of
 * the month also as L (the last), L-3, 15W (the weekday nearest to the 15th) and LW; days of
 * the week also as 5L or FRIL (the last Friday) and 5#2 (the second one). ? is *. Macros:
 * @yearly @annually @monthly @weekly @daily @midnight @hourly. */
#ifndef HF_CORE_SCHEDULE_CRON_H
#define HF_CORE_SCHEDULE_CRON_H

#include <holdfast/types.h>

struct hf_cron {
    uint64_t seconds; /* bit n: second n; the same below */
    uint64_t minutes;
    uint32_t hours;
    uint32_t days;           /* of the month, bits 1 to 31 */
    uint32_t months;         /* bits 1 to 12 */
    uint32_t weekdays;       /* bits 0 to 6 */
    uint32_t from_end;       /* bit n: n days before the month's last */
    uint32_t nearest;        /* bit n: the weekday nearest to day n */
    uint32_t weekday_last;   /* bit n: the last such weekday of the month */
    uint32_t weekday_nth[6]; /* [k], bit n: the k-th such weekday */
    bool nearest_last;       /* the last weekday of the month */
    bool any_day;            /* the day of the month is * */
    bool any_weekday;
    bool both; /* days of month and of week must both match; otherwise one is enough */
    bool
        repeats; /* second, minute or hour has a *, range or step: fires in both copies of
                     an hour that a clock goes through twice */
};

/* Read an expression. `both`: see above. HF_EINVAL names "cron" and the part at fault; an
 * expression that never fires (30 February) is refused too. */
HF_MUST_USE int hf_cron_parse(const char *text, bool both, struct hf_cron *ret_cron,
                              struct hf_err *err);

/* The first matching second at or after `local`, both as seconds of a calendar that counts
 * from 1970 without zones; -1 when there is none before the year 10000. */
int64_t hf_cron_match(const struct hf_cron *cron, int64_t local);

#endif
