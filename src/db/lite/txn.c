/* One write transaction for the batches of a group.
 *
 * A member is one caller's batch of statements, with the place of its answer; a group is the
 * members that one thread, the leader, commits together. A guard is SQL that refuses a statement
 * (HF_EGUARD), before it has written anything.
 *
 * Every transaction reads the store's row first. One that changed something raises commit_seq in
 * it, by which a later transaction can tell whether this one was committed, and writes the lease
 * clock's high water there. Members are data and can be run again:
 *
 *   plain     all members in one go. One that is refused before it changed anything is
 *             simply answered; one that changed something first spoils the attempt.
 *   guarded   after a spoilt attempt, the same members, each inside a savepoint: a refused
 *             one is undone alone. (Savepoints cost, so they wait for the first need.)
 *   gone      SQLite ended the transaction itself (disk, memory): the others run again
 *             without the culprit, then the culprit alone.
 *
 * Answers are kept only if their transaction ended as planned: a refusal may rest on what another
 * member of the same, failed, transaction had written. */
#include <string.h>

#include "db/lite/lite.h"

enum outcome { ANSWERED, SPOILT, GONE };
enum mode { PLAIN, GUARDED };

struct attempt {
    struct lite *lite;
    struct db_member *const *members;
    size_t count;
    struct db_member **late; /* the same array, where more may come; otherwise NULL */
    enum mode mode;
    struct lite_store_facts was; /* as the transaction found the store */
    bool changed;                /* by a member that was not refused */
    size_t culprit;              /* of GONE */
};

static void answer_all(struct db_member *const *members, size_t count, int rc,
                       const struct hf_err *err)
{
    for (size_t i = 0; i < count; i++) {
        members[i]->rc = rc;
        members[i]->err = *err;
    }
}

/* The file that SQLite holds open may no longer be the one at the path: what we commit
 * there, no process will ever read. */
static int check_not_moved(struct lite *lite, struct hf_err *err)
{
    int moved = 0;
    int rc = lite->memory ? SQLITE_OK
                          : sqlite3_file_control(lite->writer.db, "main",
                                                 SQLITE_FCNTL_HAS_MOVED, &moved);
    if (rc == SQLITE_OK && moved)
        return hf_fail(err, HF_ESTOREIO, "db",
                       "the store's file was moved, deleted or replaced while open: open "
                       "it again; nothing was written");
    return 0; /* a VFS that cannot tell is no reason to stop */
}

int lite_store_read(struct lite_conn *conn, struct lite_store_facts *ret_facts,
                    struct hf_err *err)
{
    struct lite_stmt *stmt;
    int rc = lite_stmt_get(conn, lite_own(conn->lite, DB_OWN_STORE_BEGIN), &stmt, err);
    if (rc != 0)
        return rc;
    int step = sqlite3_step(stmt->st);
    if (step == SQLITE_ROW) {
        ret_facts->incarnation = sqlite3_column_int64(stmt->st,
                                                      DB_COL_STORE_BEGIN_INCARNATION);
        ret_facts->commit_seq = sqlite3_column_int64(stmt->st,
                                                     DB_COL_STORE_BEGIN_COMMIT_SEQ);
        ret_facts->high_water = sqlite3_column_int64(stmt->st,
                                                     DB_COL_STORE_BEGIN_LEASE_HIGH_WATER);
    } else if (step == SQLITE_DONE) {
        rc = hf_fail(err, HF_ECORRUPT, NULL, "the row of hf_store is missing");
    } else {
        rc = lite_fail(conn->db, step, "store_begin", err);
    }
    (void)sqlite3_reset(stmt->st); /* repeats the step's code, which is answered above */
    return rc;
}

static int store_write(struct lite_conn *conn, int64_t seq, struct hf_err *err)
{
    struct lite_stmt *stmt;
    int rc = lite_stmt_get(conn, lite_own(conn->lite, DB_OWN_STORE_END), &stmt, err);
    if (rc != 0)
        return rc;
    hf_assert(stmt->width == 2);
    int step = sqlite3_bind_int64(stmt->st, stmt->slot[0], seq);
    if (step == SQLITE_OK)
        step = sqlite3_bind_int64(stmt->st, stmt->slot[1], conn->instant.lease_now);
    if (step == SQLITE_OK)
        step = sqlite3_step(stmt->st);
    if (step != SQLITE_DONE)
        rc = lite_fail(conn->db, step, "store_end", err);
    (void)sqlite3_reset(stmt->st); /* repeats the step's code, which is answered above */
    return rc;
}

int lite_txn_begin(struct lite *lite, struct lite_store_facts *ret_facts,
                   struct hf_err *err)
{
    struct lite_conn *conn = &lite->writer;
    int rc = lite_usable(lite, err);
    if (rc == 0)
        rc = check_not_moved(lite, err);
    if (rc == 0)
        rc = lite_begin(conn, LITE_BEGIN_WRITE, err);
    if (rc != 0)
        return rc;
    rc = lite_store_read(conn, ret_facts, err);
    if (rc != 0)
        lite_roll_back(conn);
    else
        lite_sample(conn, ret_facts->incarnation, ret_facts->high_water);
    return rc;
}

/* After success: others see by the page how far the store has come. */
static void note_commit(struct lite *lite, int64_t seq)
{
    struct lite_page *page = lite->side.page;
    atomic_store_explicit(&page->commit_seq, seq, memory_order_relaxed);
    atomic_store_explicit(&page->incarnation, lite->writer.instant.incarnation,
                          memory_order_relaxed);
}

int lite_txn_end(struct lite *lite, struct lite_store_facts *facts, struct hf_err *err)
{
    struct lite_conn *conn = &lite->writer;
    int rc = store_write(conn, facts->commit_seq + 1, err);
    int sqlite_rc;
    if (rc == 0)
        rc = lite_commit(conn, &sqlite_rc, err);
    if (rc == 0)
        note_commit(lite, ++facts->commit_seq);
    else
        lite_roll_back(conn);
    return rc;
}

/* A COMMIT failed and its frames may or may not be whole on the disk. The next successful
 * commit decides: it finds commit_seq raised, or it overwrites those frames. Only a writer inside
 * the turnstile raises commit_seq, and we are inside it. */
static void resolve(struct attempt *at, int sqlite_rc, const struct hf_err *why)
{
    struct lite *lite = at->lite;
    /* The frame that makes a commit is written last, before the sync: where a write failed
     * it is not there, and only a failed sync leaves doubt. */
    bool certain = sqlite_rc == SQLITE_FULL || sqlite_rc == SQLITE_IOERR_WRITE;
    struct lite_store_facts now = { 0 };
    struct hf_err err = { 0 };
    (void)atomic_fetch_add_explicit(&lite->counts.failed_commits, 1,
                                    memory_order_relaxed);
    int rc = lite_txn_begin(lite, &now, &err);
    bool there = rc == 0 && now.commit_seq > at->was.commit_seq;
    if (rc == 0)
        rc = lite_txn_end(lite, &now, &err);
    if (rc == 0 && there)
        return; /* the members' answers hold */
    if (rc == 0 || certain) {
        answer_all(at->members, at->count, why->code, why);
        return;
    }
    hf_fail(&err, HF_EUNCERTAIN, NULL,
            "the commit failed, and its outcome could not be read: %s", why->message);
    answer_all(at->members, at->count, HF_EUNCERTAIN, &err);
}

static void run_each(struct lite *lite, struct db_member *const *members, size_t count);

static void commit(struct attempt *at)
{
    struct lite *lite = at->lite;
    struct lite_conn *conn = &lite->writer;
    struct hf_err err = { 0 };
    int rc = store_write(conn, at->was.commit_seq + 1, &err);
    if (rc != 0) {
        lite_roll_back(conn);
        answer_all(at->members, at->count, rc, &err);
        return;
    }
    int sqlite_rc;
    rc = lite_commit(conn, &sqlite_rc, &err);
    if (rc == 0) {
        note_commit(lite, at->was.commit_seq + 1);
        return;
    }
    bool open = !sqlite3_get_autocommit(conn->db);
    lite_roll_back(conn);
    /* Refused while still open is refused for certain: a constraint that waits for COMMIT
     * (no process knows whose), or a lock. */
    if (open && rc == HF_ECONFLICT && at->count > 1)
        run_each(lite, at->members, at->count);
    else if (open && (rc == HF_ECONFLICT || rc == HF_EBUSY))
        answer_all(at->members, at->count, rc, &err);
    else
        resolve(at, sqlite_rc, &err);
}

/* Ends a member's savepoint. If that fails, what the member did cannot be told from the
 * rest: the whole transaction goes, which the caller sees by autocommit. */
static void end_savepoint(struct lite_conn *conn, bool undo)
{
    int rc = undo ? lite_control(conn, LITE_BACK) : SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = lite_control(conn, LITE_RELEASE);
    if (rc != SQLITE_OK)
        lite_roll_back(conn);
}

/* Whether a member that failed with `rc` may have left rows behind. SQLite's count of changes does
 * not include a failed statement. A statement with OR ROLLBACK has no statement journal, from which
 * SQLite would undo it: the rows that it wrote before the failure stay in the transaction. Only a
 * guard refuses before the first row is written. */
static bool may_be_half_done(int rc)
{
    return rc != 0 && rc != HF_EGUARD;
}

/* Runs one member in the open transaction, and stores its code and error in it. Returns false if
 * the transaction is spoilt: the member failed and has left a change in it, which happens in plain
 * mode alone. In guarded mode the savepoint undoes the change of a member that failed. SQLite may
 * have ended the transaction in either mode, which the caller must test
 * (sqlite3_get_autocommit). */
static bool run_member(struct attempt *at, struct db_member *member)
{
    struct lite_conn *conn = &at->lite->writer;
    int64_t before = sqlite3_total_changes64(conn->db);
    int saved = at->mode == GUARDED ? lite_control(conn, LITE_SAVE) : SQLITE_OK;
    if (saved == SQLITE_OK)
        member->rc = lite_run_calls(conn, member->batch, &member->err);
    else
        member->rc = lite_fail(conn->db, saved, "SAVEPOINT", &member->err);
    bool touched = sqlite3_total_changes64(conn->db) != before ||
                   may_be_half_done(member->rc);
    at->changed = at->changed || (member->rc == 0 && touched);
    if (at->mode == PLAIN)
        return member->rc == 0 || !touched;
    if (saved == SQLITE_OK && !sqlite3_get_autocommit(conn->db))
        end_savepoint(conn, member->rc != 0);
    return true;
}

/* The answer of a member with which the transaction went. */
static int gone_with(struct db_member *member)
{
    if (member->rc == 0)
        member->rc = hf_fail(&member->err, HF_EINTERNAL, NULL,
                             "a statement ended the transaction; nothing was written");
    return member->rc;
}

/* Whether there is a member `i`; for the number behind the last, others may have come. */
static bool has_member(struct attempt *at, size_t i)
{
    if (i == at->count && at->late)
        at->count = db_group_more(&at->lite->group, at->late, at->count);
    return i < at->count;
}

static enum outcome try(struct attempt *at)
{
    struct lite_conn *conn = &at->lite->writer;
    struct hf_err err = { 0 };
    int rc = lite_txn_begin(at->lite, &at->was, &err);
    if (rc != 0) {
        answer_all(at->members, at->count, rc, &err);
        return ANSWERED;
    }
    at->changed = false;
    for (size_t i = 0; has_member(at, i); i++) {
        bool fine = run_member(at, at->members[i]);
        if (sqlite3_get_autocommit(conn->db)) {
            at->culprit = i;
            return GONE;
        }
        if (!fine) {
            lite_roll_back(conn);
            return SPOILT;
        }
    }
    if (at->changed)
        commit(at);
    else
        lite_roll_back(conn);
    return ANSWERED;
}

static void count_replay(struct lite *lite)
{
    (void)atomic_fetch_add_explicit(&lite->counts.replays, 1, memory_order_relaxed);
}

static void run_alone(struct lite *lite, struct db_member *const *member)
{
    lite_txn_run(lite, member, 1);
}

static void run_each(struct lite *lite, struct db_member *const *members, size_t count)
{
    count_replay(lite);
    for (size_t i = 0; i < count; i++)
        run_alone(lite, &members[i]);
}

/* The transaction is gone with member `culprit`: the others without it, then it alone. If
 * they lose theirs too, the fault is hardly a member's: they get that answer. */
static void run_apart(struct attempt *lost)
{
    struct db_member *others[DB_GROUP_MAX];
    size_t count = 0;
    for (size_t i = 0; i < lost->count; i++)
        if (i != lost->culprit)
            others[count++] = lost->members[i];
    struct attempt at = {
        .lite = lost->lite, .members = others, .count = count, .mode = GUARDED
    };
    count_replay(lost->lite);
    if (count > 0 && try(&at) == GONE) {
        struct db_member *second = others[at.culprit];
        answer_all(others, count, gone_with(second), &second->err);
    }
    run_alone(lost->lite, &lost->members[lost->culprit]);
}

/* Alone, a member that spoils its transaction has its answer. */
static void run_attempt(struct attempt *at)
{
    enum outcome outcome = try(at);
    at->late = NULL;
    if (outcome == SPOILT && at->count > 1) {
        count_replay(at->lite);
        at->mode = GUARDED;
        outcome = try(at);
    }
    if (outcome == GONE && at->count > 1)
        run_apart(at);
    else if (outcome == GONE)
        (void)gone_with(at->members[0]); /* the code is in the member */
}

void lite_txn_run(struct lite *lite, struct db_member *const *members, size_t count)
{
    struct attempt at = { .lite = lite, .members = members, .count = count };
    if (count > 0)
        run_attempt(&at);
}

size_t lite_txn_lead(struct lite *lite, struct db_member **members, size_t count)
{
    struct attempt at = {
        .lite = lite, .members = members, .count = count, .late = members
    };
    if (count > 0)
        run_attempt(&at);
    return at.count;
}
