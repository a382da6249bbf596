#include "support/fail_alloc.h"

#include <stdlib.h>

static void *fail_realloc(void *user, void *old, size_t bytes)
{
    struct fail_alloc *fail = user;
    fail->calls++;
    bool past = fail->stays && fail->fail_at > 0 && fail->calls > fail->fail_at;
    if (fail->calls == fail->fail_at || past)
        return NULL;
    void *at = realloc(old, bytes ? bytes : 1);
    if (at && !old)
        fail->live++;
    return at;
}

static void fail_free(void *user, void *old)
{
    struct fail_alloc *fail = user;
    if (old)
        fail->live--;
    free(old);
}

void fail_alloc_init(struct fail_alloc *fail, int64_t fail_at)
{
    *fail = (struct fail_alloc){
        .alloc = { .user = fail, .realloc = fail_realloc, .free = fail_free },
        .fail_at = fail_at,
    };
}
