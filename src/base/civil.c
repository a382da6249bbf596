/* See civil.h. Years begin in March inside here, so that the leap day is a year's last;
 * 719468 days lie before 1970 from 0000-03-01. (Howard Hinnant's days-to-civil.) */
#include "base/civil.h"

#include "base/err.h"

#define ERA_DAYS 146097 /* 400 years */
#define EPOCH_DAYS 719468

struct hf_date hf_date_of(int64_t days)
{
    int64_t shifted = days + EPOCH_DAYS;
    int64_t era = (shifted >= 0 ? shifted : shifted - (ERA_DAYS - 1)) / ERA_DAYS;
    int64_t day_of_era = shifted - era * ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era -
                          (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */
    return (struct hf_date){
        .year = year_of_era + era * 400 + (month >= 10 ? 1 : 0),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

int64_t hf_days_of(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
                         day_of_year;
    return era * ERA_DAYS + day_of_era - EPOCH_DAYS;
}

int hf_month_days(int64_t year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

int hf_weekday_of(int64_t days)
{
    int64_t in_week = (days + 4) % 7; /* 1970-01-01 was a Thursday */
    return (int)(in_week < 0 ? in_week + 7 : in_week);
}

int64_t hf_day_of_seconds(int64_t seconds)
{
    return (seconds >= 0 ? seconds : seconds - (HF_DAY_S - 1)) / HF_DAY_S;
}

int64_t hf_second_of_day(int64_t seconds)
{
    return seconds - hf_day_of_seconds(seconds) * HF_DAY_S;
}

/* ---- writing ----------------------------------------------------------------------- */

/* Writes `width` digits and the byte that follows them. */
static char *put_part(char *at, int64_t value, int width, char after)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    at[width] = after;
    return at + width + 1;
}

static const char *write_time(hf_ms ms, bool with_ms, char *out)
{
    if (ms < 0 || ms >= HF_TIME_END_MS) {
        out[0] = '-';
        out[1] = '\0';
        return out;
    }
    int64_t in_day = ms % 86400000;
    struct hf_date date = hf_date_of(ms / 86400000);
    char *at = out;
    at = put_part(at, date.year, 4, '-');
    at = put_part(at, date.month, 2, '-');
    at = put_part(at, date.day, 2, 'T');
    at = put_part(at, in_day / 3600000, 2, ':');
    at = put_part(at, in_day / 60000 % 60, 2, ':');
    at = put_part(at, in_day / 1000 % 60, 2, with_ms ? '.' : 'Z');
    if (with_ms)
        at = put_part(at, in_day % 1000, 3, 'Z');
    *at = '\0';
    return out;
}

const char *hf_time_text(hf_ms ms, char out[HF_INSTANT_TEXT])
{
    return write_time(ms, true, out);
}

const char *hf_instant_text(hf_ms ms, char out[HF_INSTANT_TEXT])
{
    return write_time(ms, ms % 1000 != 0, out);
}

/* ---- reading ----------------------------------------------------------------------- */

struct reader {
    const char *at;
    bool bad;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly `width` digits of a number in [min, max]. */
static int64_t take_number(struct reader *in, int width, int64_t min, int64_t max)
{
    int64_t value = 0;
    for (int i = 0; i < width && !in->bad; i++) {
        in->bad = !is_digit(*in->at);
        if (!in->bad)
            value = value * 10 + (*in->at++ - '0');
    }
    in->bad = in->bad || value < min || value > max;
    return value;
}

static bool take_char(struct reader *in, char c)
{
    bool there = !in->bad && *in->at == c;
    if (there)
        in->at++;
    return there;
}

static void need_char(struct reader *in, char c)
{
    in->bad = !take_char(in, c);
}

/* Digits after the point, of which three count. */
static int64_t take_fraction(struct reader *in)
{
    int64_t ms = 0, worth = 100;
    if (!take_char(in, '.'))
        return 0;
    in->bad = !is_digit(*in->at);
    for (; is_digit(*in->at); in->at++, worth /= 10)
        ms += (*in->at - '0') * worth;
    return ms;
}

static void take_offset(struct reader *in, struct hf_typed_time *time)
{
    if (in->bad || !*in->at)
        return;
    time->has_offset = true;
    if (take_char(in, 'Z') || take_char(in, 'z'))
        return;
    bool west = *in->at == '-';
    if (!take_char(in, '-'))
        need_char(in, '+');
    int64_t hours = take_number(in, 2, 0, 23);
    need_char(in, ':');
    int64_t minutes = hours * 60 + take_number(in, 2, 0, 59);
    time->offset_minutes = (int)(west ? -minutes : minutes);
}

int hf_parse_time(const char *text, const char *field, struct hf_typed_time *ret_time,
                  struct hf_err *err)
{
    struct reader in = { .at = text ? text : "" };
    struct hf_typed_time time = { 0 };
    int64_t year = take_number(&in, 4, 1970, 9999);
    need_char(&in, '-');
    int64_t month = take_number(&in, 2, 1, 12);
    need_char(&in, '-');
    int64_t day = take_number(&in, 2, 1, 31);
    if (!in.bad && day > hf_month_days(year, (int)month))
        return hf_fail(err, HF_EINVAL, field, "%s: that month has no such day", field);
    if (!take_char(&in, 'T') && !take_char(&in, 't'))
        need_char(&in, ' ');
    int64_t hour = take_number(&in, 2, 0, 23);
    need_char(&in, ':');
    int64_t minute = take_number(&in, 2, 0, 59);
    need_char(&in, ':');
    int64_t second = take_number(&in, 2, 0, 59);
    int64_t ms = take_fraction(&in);
    take_offset(&in, &time);
    if (in.bad || *in.at)
        return hf_fail(err, HF_EINVAL, field,
                       "%s must be a time such as 2026-03-29T02:30:00+01:00 (RFC 3339)",
                       field);
    int64_t days = hf_days_of(year, (int)month, (int)day);
    time.local_ms = ((days * 24 + hour) * 60 + minute) * 60000 + second * 1000 + ms;
    *ret_time = time;
    return 0;
}

int hf_parse_instant(const char *text, const char *field, hf_ms *ret_ms,
                     struct hf_err *err)
{
    struct hf_typed_time time;
    int rc = hf_parse_time(text, field, &time, err);
    if (rc)
        return rc;
    if (!time.has_offset)
        return hf_fail(err, HF_EINVAL, field,
                       "%s needs an offset from UTC: add Z, or one such as +01:00",
                       field);
    hf_ms ms = time.local_ms - (hf_ms)time.offset_minutes * 60000;
    if (ms < 0 || ms >= HF_TIME_END_MS)
        return hf_fail(err, HF_EINVAL, field, "%s must be in the years 1970 to 9999",
                       field);
    *ret_ms = ms;
    return 0;
}
