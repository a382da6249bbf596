/* Reading cron expressions: see cron.h. */
#include "core/schedule/cron.h"

#include <holdfast/bounds.h>
#include <string.h>

#include "base/civil.h"
#include "base/err.h"
#include "base/text.h"

enum part { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, PARTS };

struct limits {
    const char *name;
    int min;
    int max;
    const char *names; /* three letters each, the first of them for `min` */
};

static const struct limits limits[PARTS] = {
    [SECOND] = { "second", 0, 59, NULL },
    [MINUTE] = { "minute", 0, 59, NULL },
    [HOUR] = { "hour", 0, 23, NULL },
    [DAY] = { "day of month", 1, 31, NULL },
    [MONTH] = { "month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
    [WEEKDAY] = { "day of week", 0, 7, "sunmontuewedthufrisat" },
};

static const struct {
    const char *name;
    const char *text;
} macros[] = {
    { "@yearly", "0 0 1 1 *" },  { "@annually", "0 0 1 1 *" },
    { "@monthly", "0 0 1 * *" }, { "@weekly", "0 0 * * 0" },
    { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },
};

struct reader {
    const char *at; /* within one field, which ends at a blank or NUL */
    enum part part;
    struct hf_cron *cron;
    struct hf_err *err;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool field_ends(const struct reader *in)
{
    return *in->at == '\0' || is_blank(*in->at);
}

static bool item_ends(const struct reader *in)
{
    return field_ends(in) || *in->at == ',';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool take(struct reader *in, char c)
{
    bool there = lower(*in->at) == c;
    if (there)
        in->at++;
    return there;
}

/* "minute: 61 is not in 0 to 59" and the like; shows the rest of the field. */
static int fault(const struct reader *in, const char *at, const char *why)
{
    size_t len = 0;
    while (len < 24 && at[len] && !is_blank(at[len]))
        len++;
    return hf_fail(in->err, HF_EINVAL, "cron", "cron: %s \"%.*s\" %s",
                   limits[in->part].name, (int)len, at, why);
}

static int out_of_range(const struct reader *in, const char *at)
{
    const struct limits *is = &limits[in->part];
    size_t len = strcspn(at, " \t,");
    return hf_fail(in->err, HF_EINVAL, "cron", "cron: %s must be %d to %d, not \"%.*s\"",
                   is->name, is->min, is->max, (int)(len < 24 ? len : 24), at);
}

/* ---- one value --------------------------------------------------------------------- */

static int take_name(struct reader *in, int *ret_value)
{
    const struct limits *is = &limits[in->part];
    for (int i = 0; is->names && is->names[3 * i]; i++) {
        const char *name = &is->names[3 * i];
        if (lower(in->at[0]) == name[0] && lower(in->at[1]) == name[1] &&
            lower(in->at[2]) == name[2]) {
            in->at += 3;
            *ret_value = is->min + i;
            return 0;
        }
    }
    return fault(in, in->at, "is not understood");
}

static int take_value(struct reader *in, int *ret_value)
{
    const struct limits *is = &limits[in->part];
    const char *start = in->at;
    int value = 0;
    if (*in->at < '0' || *in->at > '9')
        return take_name(in, ret_value);
    for (; *in->at >= '0' && *in->at <= '9' && value < 1000; in->at++)
        value = value * 10 + (*in->at - '0');
    if (value < is->min || value > is->max)
        return out_of_range(in, start);
    *ret_value = value;
    return 0;
}

/* ---- sets -------------------------------------------------------------------------- */

/* The number of different values: Sunday is 0 and 7, but one day. */
static int span_of(enum part part)
{
    return part == WEEKDAY ? 7 : limits[part].max - limits[part].min + 1;
}

static void add_value(struct hf_cron *cron, enum part part, int value)
{
    switch (part) {
    case SECOND: cron->seconds |= UINT64_C(1) << value; break;
    case MINUTE: cron->minutes |= UINT64_C(1) << value; break;
    case HOUR: cron->hours |= 1u << value; break;
    case DAY: cron->days |= 1u << value; break;
    case MONTH: cron->months |= 1u << value; break;
    case WEEKDAY: cron->weekdays |= 1u << value % 7; break;
    case PARTS: break;
    }
}

/* From `from` on, `count` values and round the end, every `step`-th. */
static void add_range(struct hf_cron *cron, enum part part, int from, int count, int step)
{
    int min = limits[part].min, span = span_of(part);
    for (int i = 0; i < count; i += step)
        add_value(cron, part, min + (from - min + i) % span);
}

static int take_step(struct reader *in, int *ret_step)
{
    const char *start = in->at;
    int64_t step = 0;
    for (; *in->at >= '0' && *in->at <= '9' && step < 1000; in->at++)
        step = step * 10 + (*in->at - '0');
    if (in->at == start || step == 0 || step > span_of(in->part))
        return hf_fail(in->err, HF_EINVAL, "cron", "cron: a step of %s must be 1 to %d",
                       limits[in->part].name, span_of(in->part));
    *ret_step = (int)step;
    return 0;
}

/* What follows a value: -M, /STEP, both or nothing. */
static int read_range(struct reader *in, int from)
{
    int to = from, step = 1, span = span_of(in->part);
    int rc = 0;
    bool range = take(in, '-');
    if (range)
        rc = take_value(in, &to);
    bool stepped = rc == 0 && take(in, '/');
    if (stepped)
        rc = take_step(in, &step);
    if (rc)
        return rc;
    in->cron->repeats |= in->part <= HOUR && (range || stepped);
    if (stepped && !range)
        to = limits[in->part].min + span - 1;
    int count = to >= from ? to - from + 1 : to - from + 1 + span;
    add_range(in->cron, in->part, from, count > span ? span : count, step);
    return 0;
}

/* ---- days -------------------------------------------------------------------------- */

/* L, L-3, LW. */
static int read_last_day(struct reader *in)
{
    int before = 0;
    if (take(in, 'w')) {
        in->cron->nearest_last = true;
        return 0;
    }
    if (take(in, '-')) {
        const char *start = in->at;
        for (; *in->at >= '0' && *in->at <= '9' && before < 1000; in->at++)
            before = before * 10 + (*in->at - '0');
        if (in->at == start || before > 30)
            return fault(in, start, "must be 0 to 30 days before the month's last");
    }
    in->cron->from_end |= 1u << before;
    return 0;
}

/* 5L and 5#2. */
static int read_weekday_of_month(struct reader *in, int weekday, bool *ret_done)
{
    *ret_done = true;
    if (take(in, 'l')) {
        in->cron->weekday_last |= 1u << weekday % 7;
        return 0;
    }
    if (!take(in, '#')) {
        *ret_done = false;
        return 0;
    }
    if (*in->at < '1' || *in->at > '5')
        return fault(in, in->at, "must be 1 to 5: which of the month's");
    in->cron->weekday_nth[*in->at++ - '0'] |= 1u << weekday % 7;
    return 0;
}

static int read_star(struct reader *in)
{
    int step = 1;
    bool stepped = take(in, '/');
    int rc = stepped ? take_step(in, &step) : 0;
    if (rc)
        return rc;
    in->cron->repeats |= in->part <= HOUR;
    in->cron->any_day |= in->part == DAY && !stepped;
    in->cron->any_weekday |= in->part == WEEKDAY && !stepped;
    add_range(in->cron, in->part, limits[in->part].min, span_of(in->part), step);
    return 0;
}

static int read_item(struct reader *in)
{
    int value = 0;
    bool done = false;
    if (take(in, '*') || ((in->part == DAY || in->part == WEEKDAY) && take(in, '?')))
        return read_star(in);
    if (in->part == DAY && take(in, 'l'))
        return read_last_day(in);
    int rc = take_value(in, &value);
    if (rc == 0 && in->part == DAY && take(in, 'w')) {
        in->cron->nearest |= 1u << value;
        return 0;
    }
    if (rc == 0 && in->part == WEEKDAY)
        rc = read_weekday_of_month(in, value, &done);
    return rc || done ? rc : read_range(in, value);
}

static int read_field(struct reader *in)
{
    const char *start = in->at;
    for (;;) {
        int rc = read_item(in);
        if (rc)
            return rc;
        if (!item_ends(in))
            return fault(in, start, "is not understood");
        if (!take(in, ','))
            return 0;
    }
}

/* ---- the whole --------------------------------------------------------------------- */

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at))
        at++;
    return at;
}

static int count_fields(const char *text)
{
    int count = 0;
    for (const char *at = skip_blanks(text); *at; at = skip_blanks(at), count++)
        while (*at && !is_blank(*at))
            at++;
    return count;
}

static int open_macro(const char *text, const char **ret_text, struct hf_err *err)
{
    *ret_text = text;
    if (*skip_blanks(text) != '@')
        return 0;
    for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {
        if (hf_same(macros[i].name, skip_blanks(text))) {
            *ret_text = macros[i].text;
            return 0;
        }
    }
    return hf_fail(err, HF_EINVAL, "cron",
                   "cron: \"%.24s\" is not a macro; use @yearly, @annually, @monthly, "
                   "@weekly, @daily, @midnight or @hourly",
                   text);
}

/* The calendar repeats after 400 years, weekdays included. */
static int check_fires(const struct hf_cron *cron, const char *text, struct hf_err *err)
{
    const int64_t start = 10957; /* days: 2000-01-01 */
    int64_t first = hf_cron_match(cron, start * HF_DAY_S);
    if (first >= 0 && first < (start + 146097) * HF_DAY_S)
        return 0;
    return hf_fail(err, HF_EINVAL, "cron",
                   "cron: \"%.60s\" never fires: no month that it names has such a day",
                   text);
}

int hf_cron_parse(const char *text, bool both, struct hf_cron *ret_cron,
                  struct hf_err *err)
{
    struct hf_cron cron = { .both = both };
    const char *fields = NULL;
    int rc = hf_check_text(text, (size_t)HF_MAX_CRON_BYTES, "cron", err);
    if (rc == 0 && (!text || !*skip_blanks(text)))
        rc = hf_fail(err, HF_EINVAL, "cron", "cron must not be empty");
    if (rc == 0)
        rc = open_macro(text, &fields, err);
    if (rc)
        return rc;
    int count = count_fields(fields);
    if (count != 5 && count != 6)
        return hf_fail(
            err, HF_EINVAL, "cron",
            "cron must have 5 fields (minute hour day month weekday), or 6 with "
            "the second first; it has %d",
            count);
    struct reader in = { .at = fields, .cron = &cron, .err = err };
    if (count == 5)
        cron.seconds = 1;
    for (int part = count == 6 ? SECOND : MINUTE; rc == 0 && part < PARTS; part++) {
        in.at = skip_blanks(in.at);
        in.part = (enum part)part;
        rc = read_field(&in);
    }
    if (rc == 0)
        rc = check_fires(&cron, text, err);
    if (rc == 0)
        *ret_cron = cron;
    return rc;
}
