/* Retry-After: a number of seconds, or a date as "Wed, 21 Oct 2026 07:28:00 GMT". */
#include <string.h>

#include "agent/wire/failure.h"
#include "base/civil.h"
#include "base/text.h"

#define LONGEST_MS (3600 * INT64_C(1000))
#define DATE_LEN (sizeof("Wed, 21 Oct 2026 07:28:00 GMT") - 1)

/* `digits` decimal digits, or -1. */
static int64_t number_at(const char *at, size_t digits)
{
    int64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        value = value * 10 + (at[i] - '0');
    }
    return value;
}

/* 1 to 12, or 0. */
static int month_at(const char *at)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++)
        if (memcmp(at, names + i * 3, 3) == 0)
            return i + 1;
    return 0;
}

static bool date_ms(const char *text, hf_ms *ret_ms)
{
    if (strlen(text) != DATE_LEN || memcmp(text + DATE_LEN - 4, " GMT", 4) != 0)
        return false;
    int64_t day = number_at(text + 5, 2);
    int month = month_at(text + 8);
    int64_t year = number_at(text + 12, 4);
    int64_t hour = number_at(text + 17, 2);
    int64_t minute = number_at(text + 20, 2);
    int64_t second = number_at(text + 23, 2);
    if (day < 1 || month == 0 || year < 1970 || day > hf_month_days(year, month) ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    int64_t days = hf_days_of(year, month, (int)day);
    *ret_ms = (days * HF_DAY_S + hour * 3600 + minute * 60 + second) * 1000;
    return true;
}

hf_ms hf_wire_retry_after(const char *value, hf_ms wall_ms)
{
    int64_t wait = 0;
    hf_ms date = 0;
    while (*value == ' ')
        value++;
    size_t digits = strspn(value, "0123456789");
    if (digits > 0 && (value[digits] == '\0' || value[digits] == '.'))
        wait = digits <= 9 ? number_at(value, digits) * 1000 : LONGEST_MS;
    else if (date_ms(value, &date))
        wait = date - wall_ms;
    if (wait < 0)
        return 0;
    return wait < LONGEST_MS ? wait : LONGEST_MS;
}
