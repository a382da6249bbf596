/* A VFS over another one that gathers what the writer appends to the WAL.
 *
 * SQLite writes each page of a transaction in two calls, a frame's head and the page. The
 * frames of a commit follow each other, and nobody reads them before the commit has synced:
 * other connections go by the shared index, which SQLite moves on after the sync. So they are
 * kept here and written in one go, at the latest when SQLite syncs; a lone create then enters
 * the kernel once instead of a dozen times.
 *
 * It rests on synchronous=FULL: without a sync in every commit, frames would be announced
 * before they are in the file. And on a disk that leaves the bytes beside a write alone when
 * the power goes (SQLite's default assumption): for others SQLite fills the sector with frames
 * of which the last part is written after the sync, so there nothing is kept.
 *
 * Anything but an append to what is kept writes that first. A failed write drops it, as SQLite
 * then drops the transaction, and is answered with the write's own code: where the write
 * failed, the frame that makes the commit is not there.
 *
 * A commit that makes the file longer waits for the file system's own books too, twice as long
 * as one that writes in place. So where the file ends, zeros are written ahead of what will
 * come: SQLite reads no frame there, as none has its checksum.
 */
#include <stddef.h>

#include "db/lite/lite.h"

#define WAL_KEPT_BYTES 65536
#define WAL_AHEAD_LEAST 32768
#define WAL_AHEAD_MOST 262144

struct wal_file {
    sqlite3_file base;  /* first: what SQLite holds */
    sqlite3_int64 at;   /* where the kept bytes belong */
    sqlite3_int64 end;  /* of what was written or kept last */
    sqlite3_int64 size; /* of the file, as last seen: it is no shorter */
    int kept;
    bool keeps;
    uint8_t *bytes;    /* WAL_KEPT_BYTES */
    sqlite3_file real; /* last: the other VFS's own, larger than this */
};

static struct wal_file *wal_of(sqlite3_file *file)
{
    return (struct wal_file *)(void *)file;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return &wal_of(file)->real;
}

static int write_kept(sqlite3_file *file)
{
    struct wal_file *wal = wal_of(file);
    int kept = wal->kept;
    wal->kept = 0;
    return kept > 0 ? wal->real.pMethods->xWrite(&wal->real, wal->bytes, kept, wal->at)
                    : SQLITE_OK;
}

/* Before a sync: where the last frame ends the file, room is made for half as much again. Where
 * it cannot be had, the next commit makes its own. */
static void make_room(struct wal_file *wal)
{
    static const uint8_t zeros[WAL_AHEAD_LEAST];
    sqlite3_file *real = &wal->real;
    sqlite3_int64 ahead = wal->end / 2 < WAL_AHEAD_MOST ? wal->end / 2 : WAL_AHEAD_MOST;
    if (wal->end <= wal->size ||
        real->pMethods->xFileSize(real, &wal->size) != SQLITE_OK || wal->end != wal->size)
        return;
    do {
        if (real->pMethods->xWrite(real, zeros, (int)sizeof zeros, wal->size) !=
            SQLITE_OK)
            return;
        wal->size += (sqlite3_int64)sizeof zeros;
    } while (wal->size < wal->end + ahead);
}

static int wal_close(sqlite3_file *file)
{
    int rc = write_kept(file);
    int closed = real_of(file)->pMethods->xClose(real_of(file));
    sqlite3_free(wal_of(file)->bytes);
    return rc != SQLITE_OK ? rc : closed;
}

static int wal_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 at)
{
    int rc = write_kept(file);
    return rc != SQLITE_OK ? rc
                           : real_of(file)->pMethods->xRead(real_of(file), to, bytes, at);
}

static int wal_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    struct wal_file *wal = wal_of(file);
    if (wal->kept > 0 &&
        (at != wal->at + wal->kept || bytes > WAL_KEPT_BYTES - wal->kept)) {
        int rc = write_kept(file);
        if (rc != SQLITE_OK)
            return rc;
    }
    wal->end = at + bytes;
    if (!wal->keeps || bytes > WAL_KEPT_BYTES)
        return wal->real.pMethods->xWrite(&wal->real, from, bytes, at);
    if (wal->kept == 0)
        wal->at = at;
    memcpy(wal->bytes + wal->kept, from, (size_t)bytes);
    wal->kept += bytes;
    return SQLITE_OK;
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = write_kept(file);
    wal_of(file)->size = wal_of(file)->end = 0;
    return rc != SQLITE_OK ? rc : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int wal_sync(sqlite3_file *file, int flags)
{
    int rc = write_kept(file);
    if (rc != SQLITE_OK)
        return rc;
    make_room(wal_of(file));
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int wal_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    int rc = write_kept(file);
    return rc != SQLITE_OK ? rc
                           : real_of(file)->pMethods->xFileSize(real_of(file), ret_size);
}

static int wal_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int wal_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int wal_reserved(sqlite3_file *file, int *ret_reserved)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret_reserved);
}

static int wal_control(sqlite3_file *file, int op, void *arg)
{
    int rc = write_kept(file);
    return rc != SQLITE_OK
               ? rc
               : real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int wal_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int wal_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static const sqlite3_io_methods wal_methods = {
    .iVersion = 1, /* SQLite locks, maps and shares the database file, never the WAL */
    .xClose = wal_close,
    .xRead = wal_read,
    .xWrite = wal_write,
    .xTruncate = wal_truncate,
    .xSync = wal_sync,
    .xFileSize = wal_size,
    .xLock = wal_lock,
    .xUnlock = wal_unlock,
    .xCheckReservedLock = wal_reserved,
    .xFileControl = wal_control,
    .xSectorSize = wal_sector,
    .xDeviceCharacteristics = wal_device,
};

/* Other files than the WAL are the other VFS's, methods and all. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    sqlite3_vfs *real = ((struct lite_wal *)(void *)vfs)->real;
    if (!(flags & SQLITE_OPEN_WAL))
        return real->xOpen(real, name, file, flags, ret_flags);
    struct wal_file *wal = wal_of(file);
    *wal = (struct wal_file){ .bytes = sqlite3_malloc(WAL_KEPT_BYTES) };
    if (!wal->bytes)
        return SQLITE_NOMEM;
    int rc = real->xOpen(real, name, &wal->real, flags, ret_flags);
    if (!wal->real.pMethods) {
        sqlite3_free(wal->bytes);
        return rc;
    }
    wal->base.pMethods = &wal_methods; /* it will be closed */
    wal->keeps = wal_device(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE;
    return rc;
}

int lite_wal_init(struct lite *lite, struct hf_err *err)
{
    struct lite_wal *wal = &lite->wal;
    wal->real = sqlite3_vfs_find(lite->vfs);
    if (!wal->real)
        return hf_fail(err, HF_EINTERNAL, NULL, "SQLite has no VFS of that name");
    wal->vfs = *wal->real;
    (void)sqlite3_snprintf(sizeof wal->name, wal->name, "holdfast-%p", (void *)lite);
    wal->vfs.zName = wal->name;
    wal->vfs.pNext = NULL;
    wal->vfs.szOsFile = (int)offsetof(struct wal_file, real) + wal->real->szOsFile;
    wal->vfs.xOpen = open_file;
    int rc = sqlite3_vfs_register(&wal->vfs, 0);
    wal->registered = rc == SQLITE_OK;
    return wal->registered ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

void lite_wal_fini(struct lite *lite)
{
    if (!lite->wal.registered)
        return;
    int rc = sqlite3_vfs_unregister(&lite->wal.vfs);
    hf_assert(rc == SQLITE_OK);
}
