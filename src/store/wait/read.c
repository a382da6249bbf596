/* Reading waits: lists, and one by its id or a part of it. A wait is one thing that a turn waits
 * for: the result of a call that was deferred, an approval, a signal, a time, or one of the
 * host. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/wait/wait.h"

#define PART_MIN 4

const struct hf_wait_methods sql_wait_methods = {
    .resolve = sql_wait_resolve,
    .revoke = sql_wait_revoke,
    .list = sql_wait_list,
    .get = sql_wait_get,
    .key = sql_wait_key,
    .key_check = sql_wait_key_check,
    .rotate = sql_wait_rotate,
};

static void *keep_memory(void *answer, size_t bytes)
{
    return hf_wait_answer_memory(answer, bytes);
}

static const char *keep_copy(void *answer, struct hf_span bytes)
{
    return hf_wait_answer_copy(answer, bytes);
}

int wait_show(struct hf_wait_answer *answer, const struct hf_call *found,
              struct hf_err *err)
{
    const struct session_wait_keeper keeper = { answer, keep_memory, keep_copy };
    int rc = session_waits_show(&keeper, found, &answer->waits, err);
    if (rc == 0)
        answer->wait_count = found->out_count;
    return rc;
}

/* A cursor is "DEADLINE WAIT_ID" of the last wait shown. */
static int read_cursor(const char *after, int64_t *ret_deadline, const char **ret_id,
                       struct hf_err *err)
{
    const char *space = after ? strchr(after, ' ') : NULL;
    struct hf_wait_place place;
    char digits[24] = "";
    *ret_deadline = INT64_MIN;
    *ret_id = "";
    if (!after)
        return 0;
    bool good = space && space - after < (ptrdiff_t)sizeof digits &&
                hf_wait_id_read(space + 1, &place);
    if (good)
        memcpy(digits, after, (size_t)(space - after));
    if (!good || hf_parse_i64(digits, 0, INT64_MAX, "after", ret_deadline, NULL))
        return hf_fail(err, HF_EINVAL, "after", "this is no cursor of a list of waits");
    *ret_id = space + 1;
    return 0;
}

static int show_cursor(struct hf_wait_answer *answer, const struct hf_alloc *alloc,
                       struct hf_err *err)
{
    const struct hf_wait *last = &answer->waits[answer->wait_count - 1];
    struct hf_buf text;
    hf_buf_init(&text, alloc, 256);
    hf_buf_i64(&text, last->deadline_at);
    hf_buf_char(&text, ' ');
    hf_buf_text(&text, last->wait_id);
    int rc = hf_buf_state(&text);
    if (rc == 0)
        answer->next = hf_wait_answer_copy(
            answer, (struct hf_span){ hf_buf_str(&text), text.len });
    hf_buf_fini(&text);
    return rc || !answer->next ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

static void put_filter(struct hf_ops *ops, const struct hf_caller *who,
                       const struct hf_wait_filter *filter)
{
    hf_ops_text(ops, *who->tenant ? who->tenant : NULL);
    if (!filter->closed)
        hf_ops_text(ops, filter->session_id);
    hf_ops_text(ops, filter->kind);
    hf_ops_text(ops, filter->answerer);
    hf_ops_i64(ops, (int64_t)filter->limit);
}

int sql_wait_list(struct hf_store *handle, const struct hf_caller *who,
                  const struct hf_wait_filter *filter, struct hf_wait_answer *answer,
                  struct hf_err *err)
{
    struct hf_ops ops;
    int64_t deadline;
    const char *id;
    int rc = read_cursor(filter->after, &deadline, &id, err);
    if (rc)
        return rc;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, filter->closed ? HF_SQL_WAIT_LIST_SESSION : HF_SQL_WAIT_LIST,
                HF_ANY_COUNT);
    if (!filter->closed)
        hf_ops_i64(&ops, deadline);
    hf_ops_text(&ops, id);
    if (filter->closed)
        hf_ops_text(&ops, filter->session_id);
    put_filter(&ops, who, filter);
    rc = hf_ops_read(&ops, err);
    if (rc == 0)
        rc = wait_show(answer, hf_ops_result(&ops, 0), err);
    if (rc == 0 && answer->wait_count == filter->limit)
        rc = show_cursor(answer, handle->alloc, err);
    hf_ops_fini(&ops);
    return rc;
}

/* The wait that a part of an id names. Ids have letters, digits and hyphens only, so that a part
 * is a pattern without further ado. */
static int find(struct hf_ops *ops, const char *part, const char **ret_id,
                struct hf_err *err)
{
    for (const char *at = part; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || *at == '-'))
            return hf_fail(err, HF_ENOTFOUND, "wait_id", "there is no wait %.80s", part);
    if (strlen(part) < PART_MIN)
        return hf_fail(err, HF_EINVAL, "wait_id", "use at least %d characters of the id",
                       PART_MIN);
    hf_ops_call(ops, HF_SQL_WAIT_FIND, HF_ANY_COUNT);
    hf_ops_text(ops, hf_arena_join(&ops->arena, part, "%"));
    hf_ops_again(ops);
    hf_ops_text(ops, hf_arena_join(&ops->arena, "%", part));
    int rc = hf_ops_read(ops, err);
    const struct hf_call *found = hf_ops_result(ops, 0);
    if (rc)
        return rc;
    if (found->out_count == 0)
        return hf_fail(err, HF_ENOTFOUND, "wait_id", "there is no wait %.80s", part);
    *ret_id = hf_out_text(found, 0, HF_COL_WAIT_FIND_WAIT_ID);
    for (size_t i = 1; i < found->out_count; i++)
        if (!hf_same(*ret_id, hf_out_text(found, i, HF_COL_WAIT_FIND_WAIT_ID)))
            return hf_fail(err, HF_EAMBIGUOUS, "wait_id", "several waits match %.80s",
                           part);
    return 0;
}

int sql_wait_get(struct hf_store *handle, const char *wait_id,
                 struct hf_wait_answer *answer, struct hf_err *err)
{
    struct hf_ops found, ops;
    struct hf_wait_place place;
    const char *id = wait_id;
    hf_ops_init(&found, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = hf_wait_id_read(wait_id, &place) ? 0 : find(&found, wait_id, &id, err);
    hf_ops_call(&ops, HF_SQL_WAIT_GET, HF_ANY_COUNT);
    hf_ops_text(&ops, id);
    if (rc == 0)
        rc = hf_ops_read(&ops, err);
    if (rc == 0 && hf_ops_result(&ops, 0)->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "wait_id", "there is no wait %.80s", wait_id);
    if (rc == 0)
        rc = wait_show(answer, hf_ops_result(&ops, 0), err);
    hf_ops_fini(&ops);
    hf_ops_fini(&found);
    return rc;
}
