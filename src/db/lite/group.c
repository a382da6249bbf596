/* SQLite's part of the group commit (db/group.h). Callers whose batches wait at the same time are a
 * group; one of them, the leader, commits for all of them in one transaction. It does so inside the
 * turnstile, the two locks by which one process at a time writes (side.c). After the commit it
 * rings the bells of the waiters (bell.c), and looks whether the WAL has become long
 * (checkpoint.c). */
#include "db/lite/lite.h"

/* Commits the group's members, and those that join while it runs; returns how many there were. Each
 * member has its own answer. */
static size_t lead(void *driver, struct db_member **members, size_t count)
{
    struct lite *lite = driver;
    struct hf_err err = { 0 };
    int rc = lite_turnstile_enter(lite, &err);
    if (rc != 0) {
        for (size_t i = 0; i < count; i++) {
            members[i]->rc = rc;
            members[i]->err = err;
        }
        return count;
    }
    count = lite_txn_lead(lite, members, count);
    lite_turnstile_leave(lite);
    lite_ring_members(lite, members, count);
    lite_checkpoint_look(lite);
    return count;
}

void lite_group_init(struct lite *lite)
{
    static const struct db_group_rules rules = {
        .lead = lead,
        .members_max = DB_GROUP_MAX,
        .rows_max = 16384,
        .leaders_max = 1,
    };
    db_group_init(&lite->group, &rules, lite);
}

int lite_group_enter(struct lite *lite, struct hf_err *err)
{
    db_group_enter(&lite->group);
    int rc = lite_turnstile_enter(lite, err);
    if (rc != 0)
        db_group_leave(&lite->group);
    return rc;
}

void lite_group_leave(struct lite *lite)
{
    lite_turnstile_leave(lite);
    db_group_leave(&lite->group);
}
