/* The nearest known word to one that was mistyped, by the number of edits that make one of the
 * other (contracts: near.h). */
#include "base/near.h"

#include <string.h>

#include "base/text.h"

#define NEAR_BYTES 32

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits that turn one word into the other, a swap of neighbours being one. */
static size_t edits(const char *a, const char *b)
{
    size_t rows[3][NEAR_BYTES + 1];
    size_t n = strlen(a), m = strlen(b);
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(before[j], now[j - 1]) + 1;
            now[j] = least(now[j], before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], two_before[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void hf_near_begin(struct hf_near *near, const char *typed)
{
    *near = (struct hf_near){ .typed = typed, .distance = 2 };
    if (strlen(typed) > 6)
        near->distance = 3;
    if (strlen(typed) > NEAR_BYTES || strlen(typed) < 2)
        near->distance = 0;
}

void hf_near_try(struct hf_near *near, const char *candidate)
{
    size_t typed = strlen(near->typed);
    if (near->distance == 0 || !*candidate || strlen(candidate) > NEAR_BYTES)
        return;
    size_t away = edits(near->typed, candidate);
    if (typed >= 3 && hf_starts_with(candidate, near->typed))
        away = 1; /* a part of the word */
    if (away < near->distance || (away == near->distance && !near->best)) {
        near->best = candidate;
        near->distance = away;
    }
}
