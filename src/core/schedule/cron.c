/* Matching: see cron.h. The days of a month that match are one bit set, so that whole months
 * are passed over at the cost of one. */
#include "core/schedule/cron.h"

#include "base/civil.h"

#define ALL_DAYS 0xfffffffeu /* bits 1 to 31 */

/* Index of the lowest bit at or above `from`, or -1. */
static int bit_from(uint64_t bits, int from)
{
    uint64_t left = from > 63 ? 0 : bits >> from;
    return left ? from + __builtin_ctzll(left) : -1;
}

struct month {
    int64_t first_day; /* days since 1970 of its first */
    int weekday;       /* of its first */
    int length;
};

static struct month month_of(int64_t year, int month)
{
    int64_t first = hf_days_of(year, month, 1);
    return (struct month){ first, hf_weekday_of(first), hf_month_days(year, month) };
}

/* A set of weekdays as a set of days: turned so that bit 0 is the first's, then repeated. */
static uint32_t days_of_weekdays(const struct month *month, uint32_t weekdays)
{
    uint32_t week = ((weekdays >> month->weekday) | (weekdays << (7 - month->weekday))) &
                    0x7f;
    return (week | week << 7 | week << 14 | week << 21 | week << 28) << 1;
}

static int weekday_in(const struct month *month, int day)
{
    return (month->weekday + day - 1) % 7;
}

/* The Monday-to-Friday day nearest to `day` within the month. */
static int nearest_weekday(const struct month *month, int day)
{
    int weekday = weekday_in(month, day);
    if (weekday == 6)
        return day > 1 ? day - 1 : day + 2;
    if (weekday == 0)
        return day < month->length ? day + 1 : day - 2;
    return day;
}

static uint32_t days_by_date(const struct hf_cron *cron, const struct month *month)
{
    uint32_t days = cron->days;
    for (int n = bit_from(cron->from_end, 0); n >= 0 && n < month->length;
         n = bit_from(cron->from_end, n + 1))
        days |= 1u << (month->length - n);
    for (int n = bit_from(cron->nearest, 1); n >= 0 && n <= month->length;
         n = bit_from(cron->nearest, n + 1))
        days |= 1u << nearest_weekday(month, n);
    if (cron->nearest_last)
        days |= 1u << nearest_weekday(month, month->length);
    return days;
}

static uint32_t days_by_weekday(const struct hf_cron *cron, const struct month *month)
{
    uint32_t days = days_of_weekdays(month, cron->weekdays);
    for (int k = 1; k <= 5; k++) {
        uint32_t week = 0xfeu << (7 * (k - 1)); /* days 7k-6 to 7k */
        if (cron->weekday_nth[k])
            days |= days_of_weekdays(month, cron->weekday_nth[k]) & week;
    }
    if (cron->weekday_last) {
        uint32_t last_week = (uint32_t)(0x7fu << (month->length - 6));
        days |= days_of_weekdays(month, cron->weekday_last) & last_week;
    }
    return days;
}

static uint32_t matching_days(const struct hf_cron *cron, const struct month *month)
{
    uint32_t in_month = ALL_DAYS >> (31 - month->length) & ALL_DAYS;
    uint32_t by_date = cron->any_day ? ALL_DAYS : days_by_date(cron, month);
    uint32_t by_weekday = cron->any_weekday ? ALL_DAYS : days_by_weekday(cron, month);
    bool either = !cron->both && !cron->any_day && !cron->any_weekday;
    return (either ? by_date | by_weekday : by_date & by_weekday) & in_month;
}

/* The first matching second of a day at or after `from`, or -1. */
static int64_t match_in_day(const struct hf_cron *cron, int64_t from)
{
    int at_hour = (int)(from / 3600), at_minute = (int)(from / 60 % 60);
    int hour = bit_from(cron->hours, at_hour);
    if (hour == at_hour) {
        int minute = bit_from(cron->minutes, at_minute);
        int second = bit_from(cron->seconds, minute == at_minute ? (int)(from % 60) : 0);
        if (minute == at_minute && second < 0) {
            minute = bit_from(cron->minutes, at_minute + 1);
            second = bit_from(cron->seconds, 0);
        }
        if (minute >= 0)
            return hour * 3600 + minute * 60 + second;
        hour = bit_from(cron->hours, at_hour + 1);
    }
    if (hour < 0)
        return -1;
    return hour * 3600 + bit_from(cron->minutes, 0) * 60 + bit_from(cron->seconds, 0);
}

/* The first matching day of the month at or after `day`, or -1. */
static int match_in_month(const struct hf_cron *cron, const struct month *month, int day)
{
    return bit_from(matching_days(cron, month), day);
}

int64_t hf_cron_match(const struct hf_cron *cron, int64_t local)
{
    int64_t today = hf_day_of_seconds(local);
    int64_t second = match_in_day(cron, hf_second_of_day(local));
    if (second < 0)
        today++; /* nothing left of this day: begin with the next */
    struct hf_date date = hf_date_of(today);
    int day = date.day;
    int month = date.month;
    for (int64_t year = date.year; year <= 9999; year++, month = 1) {
        for (month = bit_from(cron->months, month); month > 0;
             month = bit_from(cron->months, month + 1)) {
            bool first = year == date.year && month == date.month;
            struct month at = month_of(year, month);
            day = match_in_month(cron, &at, first ? date.day : 1);
            if (day < 0)
                continue;
            int64_t days = at.first_day + day - 1;
            if (days != today || second < 0)
                second = match_in_day(cron, 0);
            return days * HF_DAY_S + second;
        }
    }
    return -1;
}
