/* PostgreSQL's part of the group commit (db/group.h).
 *
 * Few large transactions cost less than many small ones. A second leader begins only where
 * PG_GROUP_WORTH batches wait (the server works on one transaction while it syncs the other),
 * or where the first is slow, because it waits for a row lock. */
#include "db/pg/pg.h"

static size_t lead(void *driver, struct db_member **callers, size_t count)
{
    struct pg *pg = driver;
    struct pg_member members[PG_GROUP_MAX], *list[PG_GROUP_MAX] = { 0 };
    for (size_t i = 0; i < count; i++) {
        members[i] = (struct pg_member){ .batch = callers[i]->batch };
        list[i] = &members[i];
    }
    pg_run_group(pg, list, count);
    pg_local_count(pg, list, count);
    pg_bell_ring_members(pg, list, count);
    for (size_t i = 0; i < count; i++) {
        callers[i]->rc = members[i].rc;
        callers[i]->err = members[i].err;
    }
    return count;
}

void pg_group_init(struct pg *pg)
{
    static const struct db_group_rules rules = {
        .lead = lead,
        .members_max = PG_GROUP_MAX,
        .rows_max = PG_GROUP_ROWS,
        .leaders_max = PG_LEADERS_MAX,
        .worth = PG_GROUP_WORTH,
        .slow_ms = PG_SLOW_MS,
    };
    db_group_init(&pg->group, &rules, pg);
}
