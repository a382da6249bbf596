/* See disk.h. */
#include "sim/disk.h"

#include <stdlib.h>
#include <string.h>

#define FILES 8
#define REGIONS 64
#define SHM_SLOTS 8

struct bytes {
    uint8_t *at;
    size_t len;
    size_t room;
};

/* A change since the last sync: `data` written at `from`, or cut to `from`. */
struct change {
    bool cut;
    size_t from;
    size_t len;
    uint8_t *data;
};

struct node {
    char name[256]; /* "": free */
    struct bytes now;
    struct bytes synced;
    struct change *changes;
    size_t change_count;
    size_t change_room;
    int opens;
    int shared; /* holders of SQLite's file lock */
    void *reserved;
    void *exclusive;
    void *regions[REGIONS];
    int shm_shared[SHM_SLOTS];
    void *shm_owner[SHM_SLOTS];
    int shm_opens;
};

struct open_file {
    sqlite3_file base; /* first */
    struct node *node;
    int level;
    bool maps;
    bool drop; /* at close */
    uint8_t shm_held[SHM_SLOTS];
};

static struct disk {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    struct node nodes[FILES];

    bool cut;
    unsigned sector;
    int promises;
    struct disk_fault fault;
    uint64_t chance;
    int64_t ios;
    int64_t failed;
} disk;

/* ---- bytes ----------------------------------------------------------------------- */

static void *need(void *at)
{
    if (!at)
        abort();
    return at;
}

static void resize(struct bytes *b, size_t len)
{
    if (len > b->room) {
        b->room = len * 2;
        b->at = need(realloc(b->at, b->room));
    }
    if (len > b->len)
        memset(b->at + b->len, 0, len - b->len);
    b->len = len;
}

static void put(struct bytes *b, size_t from, const void *data, size_t len)
{
    if (from + len > b->len)
        resize(b, from + len);
    if (len)
        memcpy(b->at + from, data, len);
}

static void copy(struct bytes *to, const struct bytes *from)
{
    resize(to, from->len);
    if (from->len)
        memcpy(to->at, from->at, from->len);
}

static void forget_changes(struct node *node)
{
    for (size_t i = 0; i < node->change_count; i++)
        free(node->changes[i].data);
    node->change_count = 0;
}

static void add_change(struct node *node, struct change change)
{
    if (node->change_count == node->change_room) {
        node->change_room = node->change_room ? node->change_room * 2 : 16;
        node->changes = need(
            realloc(node->changes, node->change_room * sizeof(*node->changes)));
    }
    node->changes[node->change_count++] = change;
}

static void clear_shm(struct node *node)
{
    for (int i = 0; i < REGIONS; i++) {
        free(node->regions[i]);
        node->regions[i] = NULL;
    }
    memset(node->shm_shared, 0, sizeof(node->shm_shared));
    memset(node->shm_owner, 0, sizeof(node->shm_owner));
}

static void erase(struct node *node)
{
    forget_changes(node);
    free(node->changes);
    free(node->now.at);
    free(node->synced.at);
    clear_shm(node);
    memset(node, 0, sizeof(*node));
}

/* ---- power ----------------------------------------------------------------------- */

static uint64_t draw(void)
{
    disk.chance += 0x9e3779b97f4a7c15u;
    uint64_t z = disk.chance;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Whole, not at all, or some of its sectors. */
static void survive(struct node *node, const struct change *change)
{
    unsigned fate = (unsigned)(draw() % 4);
    if (change->cut) {
        if (fate < 2)
            resize(&node->synced, change->from);
        return;
    }
    for (size_t at = 0; at < change->len;) {
        size_t room = disk.sector - (change->from + at) % disk.sector;
        size_t len = room < change->len - at ? room : change->len - at;
        if (fate == 0 || (fate == 1 && draw() % 2))
            put(&node->synced, change->from + at, change->data + at, len);
        at += len;
    }
}

void disk_cut(uint64_t chance)
{
    if (disk.cut)
        return;
    disk.cut = true;
    disk.chance = chance;
    for (int i = 0; i < FILES; i++) {
        struct node *node = &disk.nodes[i];
        for (size_t k = 0; node->name[0] && k < node->change_count; k++)
            survive(node, &node->changes[k]);
        forget_changes(node);
    }
}

bool disk_is_cut(void)
{
    return disk.cut;
}

/* The last file of a dead machine was closed: it boots. */
static void boot_when_closed(void)
{
    for (int i = 0; i < FILES; i++) {
        if (disk.nodes[i].opens > 0)
            return;
    }
    for (int i = 0; disk.cut && i < FILES; i++) {
        struct node *node = &disk.nodes[i];
        if (node->name[0]) {
            copy(&node->now, &node->synced);
            clear_shm(node);
        }
    }
    disk.cut = false;
}

/* Counts an I/O; a code when it is to fail. */
static int io(int code)
{
    disk.ios++;
    if (disk.cut)
        return code;
    bool now = disk.fault.at && (disk.ios == disk.fault.at ||
                                 (disk.fault.stays && disk.ios > disk.fault.at));
    if (!now)
        return SQLITE_OK;
    disk.failed++;
    if (!disk.fault.is_power)
        return disk.fault.code ? disk.fault.code : code;
    disk_cut(disk.chance);
    return code;
}

/* ---- files ----------------------------------------------------------------------- */

static struct node *node_of(sqlite3_file *file)
{
    return ((struct open_file *)file)->node;
}

static int d_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    struct node *node = node_of(file);
    int rc = io(SQLITE_IOERR_READ);
    if (rc != SQLITE_OK)
        return rc;
    size_t from = (size_t)at;
    size_t len = from < node->now.len ? node->now.len - from : 0;
    if (len > (size_t)n)
        len = (size_t)n;
    if (len)
        memcpy(to, node->now.at + from, len);
    if (len == (size_t)n)
        return SQLITE_OK;
    memset((char *)to + len, 0, (size_t)n - len);
    return SQLITE_IOERR_SHORT_READ;
}

static int d_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    struct node *node = node_of(file);
    int rc = io(SQLITE_IOERR_WRITE);
    if (rc != SQLITE_OK)
        return rc;
    struct change change = { .from = (size_t)at, .len = (size_t)n };
    change.data = need(malloc((size_t)n));
    memcpy(change.data, from, (size_t)n);
    put(&node->now, change.from, from, (size_t)n);
    add_change(node, change);
    return SQLITE_OK;
}

static int d_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct node *node = node_of(file);
    int rc = io(SQLITE_IOERR_TRUNCATE);
    if (rc != SQLITE_OK)
        return rc;
    resize(&node->now, (size_t)size);
    add_change(node, (struct change){ .cut = true, .from = (size_t)size });
    return SQLITE_OK;
}

static int d_sync(sqlite3_file *file, int flags)
{
    struct node *node = node_of(file);
    (void)flags;
    int rc = io(SQLITE_IOERR_FSYNC);
    if (rc != SQLITE_OK)
        return rc;
    copy(&node->synced, &node->now);
    forget_changes(node);
    return SQLITE_OK;
}

static int d_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)node_of(file)->now.len;
    return SQLITE_OK;
}

/* ---- locks of the file ----------------------------------------------------------- */

static int d_lock(sqlite3_file *file, int level)
{
    struct open_file *f = (struct open_file *)file;
    struct node *node = f->node;
    if (f->level >= level)
        return SQLITE_OK;
    if (f->level == SQLITE_LOCK_NONE) {
        if (node->exclusive && node->exclusive != f)
            return SQLITE_BUSY;
        node->shared++;
        f->level = SQLITE_LOCK_SHARED;
    }
    if (level >= SQLITE_LOCK_RESERVED && f->level < SQLITE_LOCK_RESERVED) {
        if (node->reserved && node->reserved != f)
            return SQLITE_BUSY;
        node->reserved = f;
        f->level = SQLITE_LOCK_RESERVED;
    }
    if (level == SQLITE_LOCK_EXCLUSIVE) {
        if (node->shared > 1)
            return SQLITE_BUSY;
        node->exclusive = f;
    }
    f->level = level;
    return SQLITE_OK;
}

static int d_unlock(sqlite3_file *file, int level)
{
    struct open_file *f = (struct open_file *)file;
    struct node *node = f->node;
    if (f->level <= level)
        return SQLITE_OK;
    if (node->exclusive == f)
        node->exclusive = NULL;
    if (node->reserved == f)
        node->reserved = NULL;
    if (level == SQLITE_LOCK_NONE && f->level > SQLITE_LOCK_NONE)
        node->shared--;
    f->level = level;
    return SQLITE_OK;
}

static int d_reserved(sqlite3_file *file, int *out)
{
    *out = node_of(file)->reserved != NULL;
    return SQLITE_OK;
}

static int d_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    if (op != SQLITE_FCNTL_HAS_MOVED)
        return SQLITE_NOTFOUND;
    *(int *)arg = 0;
    return SQLITE_OK;
}

static int d_sector(sqlite3_file *file)
{
    (void)file;
    return (int)disk.sector;
}

static int d_device(sqlite3_file *file)
{
    (void)file;
    return disk.promises;
}

/* ---- shared memory --------------------------------------------------------------- */

static int d_shm_map(sqlite3_file *file, int page, int size, int extend,
                     void volatile **out)
{
    struct open_file *f = (struct open_file *)file;
    struct node *node = f->node;
    if (!f->maps) {
        f->maps = true;
        node->shm_opens++;
    }
    *out = NULL;
    if (page >= REGIONS)
        return SQLITE_IOERR_SHMMAP;
    if (!node->regions[page] && extend)
        node->regions[page] = need(calloc(1, (size_t)size));
    *out = node->regions[page];
    return SQLITE_OK;
}

static bool may_lock(const struct open_file *f, int slot, bool exclusive)
{
    const struct node *node = f->node;
    if (node->shm_owner[slot] && node->shm_owner[slot] != f)
        return false;
    return !exclusive || node->shm_shared[slot] - (f->shm_held[slot] == 1) <= 0;
}

static void unlock_slot(struct open_file *f, int slot)
{
    if (f->shm_held[slot] == 1)
        f->node->shm_shared[slot]--;
    if (f->shm_held[slot] == 2)
        f->node->shm_owner[slot] = NULL;
    f->shm_held[slot] = 0;
}

static int d_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    struct open_file *f = (struct open_file *)file;
    bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    for (int i = at; i < at + n && (flags & SQLITE_SHM_LOCK); i++) {
        if (!may_lock(f, i, exclusive))
            return SQLITE_BUSY;
    }
    for (int i = at; i < at + n; i++) {
        if (flags & SQLITE_SHM_UNLOCK) {
            unlock_slot(f, i);
        } else if (f->shm_held[i] == 0) {
            f->shm_held[i] = exclusive ? 2 : 1;
            if (exclusive)
                f->node->shm_owner[i] = f;
            else
                f->node->shm_shared[i]++;
        }
    }
    return SQLITE_OK;
}

static void d_shm_barrier(sqlite3_file *file)
{
    (void)file;
}

static int d_shm_unmap(sqlite3_file *file, int delete)
{
    struct open_file *f = (struct open_file *)file;
    (void)delete;
    for (int i = 0; i < SHM_SLOTS; i++)
        unlock_slot(f, i);
    if (f->maps && --f->node->shm_opens == 0)
        clear_shm(f->node);
    f->maps = false;
    return SQLITE_OK;
}

static int d_close(sqlite3_file *file)
{
    struct open_file *f = (struct open_file *)file;
    (void)d_shm_unmap(file, 0);
    (void)d_unlock(file, SQLITE_LOCK_NONE);
    f->node->opens--;
    if (f->drop && f->node->opens == 0)
        erase(f->node);
    boot_when_closed();
    return SQLITE_OK;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = d_close,
    .xRead = d_read,
    .xWrite = d_write,
    .xTruncate = d_truncate,
    .xSync = d_sync,
    .xFileSize = d_size,
    .xLock = d_lock,
    .xUnlock = d_unlock,
    .xCheckReservedLock = d_reserved,
    .xFileControl = d_control,
    .xSectorSize = d_sector,
    .xDeviceCharacteristics = d_device,
    .xShmMap = d_shm_map,
    .xShmLock = d_shm_lock,
    .xShmBarrier = d_shm_barrier,
    .xShmUnmap = d_shm_unmap,
};

/* ---- the folder ------------------------------------------------------------------ */

static struct node *find(const char *name)
{
    for (int i = 0; i < FILES; i++) {
        if (disk.nodes[i].name[0] && strcmp(disk.nodes[i].name, name) == 0)
            return &disk.nodes[i];
    }
    return NULL;
}

static struct node *make(const char *name)
{
    for (int i = 0; i < FILES; i++) {
        struct node *node = &disk.nodes[i];
        if (node->name[0])
            continue;
        size_t len = strlen(name);
        memcpy(node->name, name, len < sizeof(node->name) ? len : sizeof(node->name) - 1);
        return node;
    }
    return NULL;
}

static int d_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                  int *out_flags)
{
    struct open_file *f = (struct open_file *)file;
    (void)vfs;
    memset(f, 0, sizeof(*f));
    if (disk.cut)
        return SQLITE_CANTOPEN;
    struct node *node = name ? find(name) : NULL;
    if (!node && (flags & SQLITE_OPEN_CREATE))
        node = make(name ? name : "temporary");
    if (!node)
        return SQLITE_CANTOPEN;
    node->opens++;
    f->base.pMethods = &file_methods;
    f->node = node;
    f->drop = !name || (flags & SQLITE_OPEN_DELETEONCLOSE);
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int d_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    struct node *node = find(name);
    (void)vfs;
    (void)sync;
    if (disk.cut)
        return SQLITE_IOERR_DELETE;
    if (node && node->opens == 0)
        erase(node);
    return node ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}

static int d_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    (void)vfs;
    (void)flags;
    *out = find(name) != NULL;
    return SQLITE_OK;
}

int disk_register(const char *name)
{
    if (sqlite3_vfs_find(name))
        return SQLITE_OK;
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real;
    disk.vfs.zName = name;
    disk.vfs.szOsFile = sizeof(struct open_file);
    disk.vfs.xOpen = d_open;
    disk.vfs.xDelete = d_delete;
    disk.vfs.xAccess = d_access;

    disk_format(0);
    return sqlite3_vfs_register(&disk.vfs, 0);
}

void disk_format(unsigned model)
{
    for (int i = 0; i < FILES; i++)
        erase(&disk.nodes[i]);
    disk.cut = false;
    disk.sector = model & 1 ? 4096 : 512;
    disk.promises = model & 2 ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
    disk.fault = (struct disk_fault){ 0 };
    disk.ios = disk.failed = 0;
}

void disk_set_fault(struct disk_fault fault, uint64_t chance)
{
    disk.fault = fault;
    disk.chance = chance;
    disk.ios = disk.failed = 0;
}

void disk_calm(void)
{
    disk.fault = (struct disk_fault){ 0 };
}

int64_t disk_ios(void)
{
    return disk.ios;
}

int64_t disk_failed(void)
{
    return disk.failed;
}

/* ---- images ---------------------------------------------------------------------- */

struct disk_image {
    struct node nodes[FILES];
};

struct disk_image *disk_save(void)
{
    struct disk_image *image = need(calloc(1, sizeof(*image)));
    for (int i = 0; i < FILES; i++) {
        memcpy(image->nodes[i].name, disk.nodes[i].name, sizeof(image->nodes[i].name));
        copy(&image->nodes[i].now, &disk.nodes[i].now);
    }
    return image;
}

void disk_restore(const struct disk_image *image)
{
    for (int i = 0; i < FILES; i++) {
        erase(&disk.nodes[i]);
        memcpy(disk.nodes[i].name, image->nodes[i].name, sizeof(disk.nodes[i].name));
        copy(&disk.nodes[i].now, &image->nodes[i].now);
        copy(&disk.nodes[i].synced, &image->nodes[i].now);
    }
    disk.cut = false;
}

void disk_image_free(struct disk_image *image)
{
    for (int i = 0; image && i < FILES; i++) {
        free(image->nodes[i].now.at);
    }
    free(image);
}
