/* Days, dates and instants: the proleptic Gregorian calendar in UTC. Pure. */
#ifndef HF_BASE_CIVIL_H
#define HF_BASE_CIVIL_H

#include <holdfast/types.h>

#define HF_DAY_S 86400
#define HF_INSTANT_TEXT 25
/* The end of the year 9999, in seconds and in milliseconds: no instant lies beyond. */
#define HF_TIME_END_S 253402300800
#define HF_TIME_END_MS 253402300800000

struct hf_date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* Days since 1970-01-01; years 0 to 9999. */
int64_t hf_days_of(int64_t year, int month, int day);
struct hf_date hf_date_of(int64_t days);
int hf_month_days(int64_t year, int month);
int hf_weekday_of(int64_t days); /* 0 is Sunday */

/* Quotient and remainder of seconds by a day, the remainder never negative. */
int64_t hf_day_of_seconds(int64_t seconds);
int64_t hf_second_of_day(int64_t seconds);

/* "2026-11-15T09:36:13.250Z"; years 1970 to 9999, otherwise "-". Returns `out`. */
const char *hf_time_text(hf_ms ms, char out[HF_INSTANT_TEXT]);

/* "2026-03-29T01:30:00Z", with milliseconds only where there are some; "-" outside the
 * years 1970 to 9999. Returns `out`. */
const char *hf_instant_text(hf_ms ms, char out[HF_INSTANT_TEXT]);

/* A date and time as typed: RFC 3339 with an offset, or without one. */
struct hf_typed_time {
    int64_t local_ms; /* as if it were UTC */
    bool has_offset;
    int offset_minutes;
};

/* "2026-03-29T02:30:00+01:00", "2026-03-29 02:30:00.250Z", "2026-03-29T02:30:00". 60 seconds
 * are refused: no clock here has them. */
HF_MUST_USE int hf_parse_time(const char *text, const char *field,
                              struct hf_typed_time *ret_time, struct hf_err *err);

/* The same, but the offset must be there: an instant. */
HF_MUST_USE int hf_parse_instant(const char *text, const char *field, hf_ms *ret_ms,
                                 struct hf_err *err);

#endif
