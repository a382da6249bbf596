/* A VFS that fails on demand, over the default one. Names other than its own pass through,
 * so locks, shared memory and file names are the real ones. */
#ifndef TESTS_STORE_LITE_VFS_H
#define TESTS_STORE_LITE_VFS_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

enum fault_on { FAULT_WRITE, FAULT_SYNC, FAULT_KINDS };

/* What is to fail, on files of the kinds in `files` (SQLITE_OPEN_WAL, …_MAIN_DB). */
struct fault {
    sqlite3_vfs vfs; /* first */
    sqlite3_vfs *real;
    int files;
    _Atomic int after[FAULT_KINDS]; /* calls that still succeed; -1: all */
    _Atomic int times[FAULT_KINDS]; /* failures then; -1: for ever */
    int code[FAULT_KINDS];
    _Atomic int failed;
    void (*on_read)(void); /* called before a read of such a file; NULL: nothing is */
};

struct fault_file {
    sqlite3_file base; /* first */
    struct fault *fault;
    int flags;
    sqlite3_file real; /* last: the default VFS's own, larger than this */
};

static inline int fault_now(struct fault_file *file, enum fault_on on)
{
    struct fault *fault = file->fault;
    if (!(file->flags & fault->files) || atomic_load(&fault->after[on]) < 0)
        return SQLITE_OK;
    if (atomic_load(&fault->after[on]) > 0) {
        (void)atomic_fetch_sub(&fault->after[on], 1);
        return SQLITE_OK;
    }
    if (atomic_load(&fault->times[on]) == 0)
        return SQLITE_OK;
    if (atomic_load(&fault->times[on]) > 0)
        (void)atomic_fetch_sub(&fault->times[on], 1);
    (void)atomic_fetch_add(&fault->failed, 1);
    return fault->code[on];
}

static inline void fault_set(struct fault *fault, enum fault_on on, int code, int times)
{
    fault->code[on] = code;
    atomic_store(&fault->times[on], times);
    atomic_store(&fault->after[on], 0);
}

static inline void fault_heal(struct fault *fault)
{
    for (int on = 0; on < FAULT_KINDS; on++)
        atomic_store(&fault->after[on], -1);
}

#define FAULT_REAL(file) (&((struct fault_file *)(file))->real)
#define FAULT_PASS(file, method, ...)                                                    \
    FAULT_REAL(file)->pMethods->method(FAULT_REAL(file), __VA_ARGS__)

static inline int fault_close(sqlite3_file *file)
{
    return FAULT_REAL(file)->pMethods->xClose(FAULT_REAL(file));
}

static inline int fault_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    const struct fault_file *mine = (struct fault_file *)file;
    if (mine->fault->on_read && (mine->flags & mine->fault->files))
        mine->fault->on_read();
    return FAULT_PASS(file, xRead, to, n, at);
}

static inline int fault_write(sqlite3_file *file, const void *from, int n,
                              sqlite3_int64 at)
{
    int rc = fault_now((struct fault_file *)file, FAULT_WRITE);
    return rc != SQLITE_OK ? rc : FAULT_PASS(file, xWrite, from, n, at);
}

static inline int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return FAULT_PASS(file, xTruncate, size);
}

static inline int fault_sync(sqlite3_file *file, int flags)
{
    int rc = fault_now((struct fault_file *)file, FAULT_SYNC);
    return rc != SQLITE_OK ? rc : FAULT_PASS(file, xSync, flags);
}

static inline int fault_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return FAULT_PASS(file, xFileSize, size);
}

static inline int fault_lock(sqlite3_file *file, int level)
{
    return FAULT_PASS(file, xLock, level);
}

static inline int fault_unlock(sqlite3_file *file, int level)
{
    return FAULT_PASS(file, xUnlock, level);
}

static inline int fault_reserved(sqlite3_file *file, int *out)
{
    return FAULT_PASS(file, xCheckReservedLock, out);
}

static inline int fault_control(sqlite3_file *file, int op, void *arg)
{
    return FAULT_PASS(file, xFileControl, op, arg);
}

static inline int fault_sector(sqlite3_file *file)
{
    return FAULT_REAL(file)->pMethods->xSectorSize(FAULT_REAL(file));
}

static inline int fault_device(sqlite3_file *file)
{
    return FAULT_REAL(file)->pMethods->xDeviceCharacteristics(FAULT_REAL(file));
}

static inline int fault_shm_map(sqlite3_file *file, int page, int size, int extend,
                                void volatile **out)
{
    return FAULT_PASS(file, xShmMap, page, size, extend, out);
}

static inline int fault_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    return FAULT_PASS(file, xShmLock, at, n, flags);
}

static inline void fault_shm_barrier(sqlite3_file *file)
{
    FAULT_REAL(file)->pMethods->xShmBarrier(FAULT_REAL(file));
}

static inline int fault_shm_unmap(sqlite3_file *file, int delete)
{
    return FAULT_PASS(file, xShmUnmap, delete);
}

static const sqlite3_io_methods fault_methods = {
    .iVersion = 2,
    .xClose = fault_close,
    .xRead = fault_read,
    .xWrite = fault_write,
    .xTruncate = fault_truncate,
    .xSync = fault_sync,
    .xFileSize = fault_size,
    .xLock = fault_lock,
    .xUnlock = fault_unlock,
    .xCheckReservedLock = fault_reserved,
    .xFileControl = fault_control,
    .xSectorSize = fault_sector,
    .xDeviceCharacteristics = fault_device,
    .xShmMap = fault_shm_map,
    .xShmLock = fault_shm_lock,
    .xShmBarrier = fault_shm_barrier,
    .xShmUnmap = fault_shm_unmap,
};

static inline int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file,
                             int flags, int *out_flags)
{
    struct fault *fault = (struct fault *)vfs;
    struct fault_file *mine = (struct fault_file *)file;
    *mine = (struct fault_file){ .fault = fault, .flags = flags };
    int rc = fault->real->xOpen(fault->real, name, &mine->real, flags, out_flags);
    if (mine->real.pMethods)
        mine->base.pMethods = &fault_methods;
    return rc;
}

/* Registers it under `name`, which must outlive it. */
static inline int fault_register(struct fault *fault, const char *name, int files)
{
    *fault = (struct fault){ .real = sqlite3_vfs_find(NULL), .files = files };
    fault->vfs = *fault->real;
    fault->vfs.zName = name;
    fault->vfs.szOsFile = (int)(offsetof(struct fault_file, real) +
                                (size_t)fault->real->szOsFile);
    fault->vfs.xOpen = fault_open;
    fault_heal(fault);
    return sqlite3_vfs_register(&fault->vfs, 0);
}

#endif
