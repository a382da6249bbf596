/* Reading a zone's rule: POSIX TZ, with the extensions of RFC 8536 (hours up to 167 and
 * below 0). */
#include "core/schedule/zone.h"

#include "base/err.h"

struct cursor {
    const char *at;
    const char *end;
    bool bad;
};

static char peek(const struct cursor *in)
{
    return in->at < in->end ? *in->at : '\0';
}

static bool take(struct cursor *in, char c)
{
    bool there = !in->bad && in->at < in->end && *in->at == c;
    if (there)
        in->at++;
    return there;
}

static void need(struct cursor *in, char c)
{
    in->bad = !take(in, c);
}

static int number(struct cursor *in, int min, int max)
{
    int value = 0, digits = 0;
    for (; peek(in) >= '0' && peek(in) <= '9' && digits < 4; in->at++, digits++)
        value = value * 10 + (*in->at - '0');
    in->bad = in->bad || digits == 0 || value < min || value > max;
    return value;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* CET, or <+0330>. What it says is of no use here. */
static void name(struct cursor *in)
{
    const char *start = in->at;
    if (take(in, '<')) {
        while (in->at < in->end && *in->at != '>')
            in->at++;
        need(in, '>');
        return;
    }
    while (is_letter(peek(in)))
        in->at++;
    in->bad = in->bad || in->at - start < 3;
}

/* [+-]h[h[h]][:mm[:ss]] in seconds. */
static int32_t clock_time(struct cursor *in, int hours_max)
{
    bool negative = take(in, '-');
    if (!negative)
        (void)take(in, '+'); /* means nothing */
    int32_t seconds = number(in, 0, hours_max) * 3600;
    if (take(in, ':')) {
        seconds += number(in, 0, 59) * 60;
        if (take(in, ':'))
            seconds += number(in, 0, 59);
    }
    return negative ? -seconds : seconds;
}

static struct hf_zone_day change_day(struct cursor *in)
{
    struct hf_zone_day day = { .kind = HF_ZONE_ORDINAL, .second = 2 * 3600 };
    need(in, ',');
    if (take(in, 'M')) {
        day.kind = HF_ZONE_WEEKDAY;
        day.month = number(in, 1, 12);
        need(in, '.');
        day.week = number(in, 1, 5);
        need(in, '.');
        day.day = number(in, 0, 6);
    } else if (take(in, 'J')) {
        day.kind = HF_ZONE_JULIAN;
        day.day = number(in, 1, 365);
    } else {
        day.day = number(in, 0, 365);
    }
    if (take(in, '/'))
        day.second = clock_time(in, 167);
    return day;
}

int hf_zone_rule_read(struct hf_span text, struct hf_zone_rule *ret_rule,
                      struct hf_err *err)
{
    struct cursor in = { text.at, (const char *)text.at + text.len, false };
    struct hf_zone_rule rule = { 0 };
    name(&in);
    rule.standard = -clock_time(&in, 24); /* POSIX counts to the west */
    rule.has_summer = in.at < in.end;
    if (rule.has_summer) {
        name(&in);
        rule.summer = rule.standard + 3600;
        if (peek(&in) != ',')
            rule.summer = -clock_time(&in, 24);
        rule.begin = change_day(&in);
        rule.end = change_day(&in);
    }
    if (in.bad || in.at != in.end)
        return hf_fail(err, HF_ECORRUPT, "zone",
                       "the time zone's data is damaged: its rule is none");
    *ret_rule = rule;
    return 0;
}
