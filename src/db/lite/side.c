/* The sidecar: a small file next to the database, mapped by every process that has it
 * open.
 *
 * It holds no truth. It carries wake-ups (db/lite/bell.c), the locks by which one process
 * writes at a time, and a memory of how far the store had come, by which a replaced file is
 * noticed.
 *
 * The turnstile is two locks: take `entry`, take `write`, release `entry`, write, release
 * `write`. The process that wrote last finds `entry` held by the one that waits for `write`, so it
 * cannot write again ahead of it. The locks are open-file-description locks on bytes past the
 * page's end: they end with their holder, and (unlike classic POSIX locks) not when some other
 * descriptor of the same file is closed. Waiters sleep on a word that the releaser bumps, in short
 * slices, since a holder that died bumps nothing. They count themselves in the page: with no
 * waiter, a writer takes `write` alone and wakes no process. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "db/lite/lite.h"
#include "os/futex.h"

#define PAGE_BYTES 4096
#define PAGE_MAGIC 0x3172616365646948u /* "Hidecar1", little-endian */
#define PAGE_VERSION 1u

#define ALL_BITS UINT32_MAX

/* How long a waiter may sleep on next to a lock whose holder died. */
#define SLICE_MS 10

_Static_assert(sizeof(struct lite_page) <= PAGE_BYTES, "the page is one page");

void lite_wait_begins(_Atomic uint32_t *waiters)
{
    (void)atomic_fetch_add(waiters, 1);
}

/* Never below none: an opener may have set it back meanwhile. */
void lite_wait_ends(_Atomic uint32_t *waiters)
{
    uint32_t count = atomic_load(waiters);
    while (count > 0 && !atomic_compare_exchange_weak(waiters, &count, count - 1))
        continue;
}

/* 0, EAGAIN, or another errno. `type`: F_RDLCK, F_WRLCK, F_UNLCK. */
static int set_lock(int fd, short type, off_t byte)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
    };
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? EAGAIN : errno;
}

static int fail_file(const char *what, int error, struct hf_err *err)
{
    int code = HF_ESTOREIO;
    if (error == EACCES || error == EPERM || error == EROFS)
        code = HF_EREADONLY;
    else if (error == ENOSPC || error == EDQUOT || error == EFBIG)
        code = HF_EFULL;
    else if (error == ENOMEM)
        code = HF_ENOMEM;
    return hf_fail(err, code, "db", "%s the store's sidecar file (-hf): %s (errno %d)",
                   what, hf_err_text(code), error);
}

/* The wait's own clock is the machine's: other processes hold the lock in real time. */
static hf_ms real_ms(void)
{
    const struct hf_clock *clock = hf_clock_system();
    return clock->mono_ms(clock->user);
}

static int take_lock(struct lite *lite, off_t byte, _Atomic uint32_t *word, hf_ms until,
                     struct hf_err *err)
{
    for (bool waited = false;; waited = true) {
        /* Read before trying: a release in between changes it, and the wait returns. */
        uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
        int error = set_lock(lite->side.fd, F_WRLCK, byte);
        if (error == 0)
            return 0;
        if (error != EAGAIN && error != EINTR)
            return fail_file("cannot lock", error, err);
        if (!waited)
            (void)atomic_fetch_add_explicit(&lite->counts.turnstile_waits, 1,
                                            memory_order_relaxed);
        hf_ms left = until - real_ms();
        if (left <= 0)
            return lite_fail_turnstile(lite, err);
        futex_wait_shared(word, seen, ALL_BITS, left < SLICE_MS ? left : SLICE_MS);
    }
}

static void give_lock(struct lite *lite, off_t byte, _Atomic uint32_t *word)
{
    int error = set_lock(lite->side.fd, F_UNLCK, byte);
    hf_assert(error == 0); /* one byte of our own lock: nothing to allocate or wait for */
    (void)atomic_fetch_add(word, 1);
    if (atomic_load(&lite->side.page->turnstile_waiters) > 0)
        futex_wake_shared(word, ALL_BITS, 1);
}

static int pass_entry(struct lite *lite, hf_ms until, struct hf_err *err)
{
    struct lite_page *page = lite->side.page;
    int rc = take_lock(lite, LITE_ENTRY_BYTE, &page->entry_word, until, err);
    if (rc != 0)
        return rc;
    rc = take_lock(lite, LITE_WRITE_BYTE, &page->write_word, until, err);
    give_lock(lite, LITE_ENTRY_BYTE, &page->entry_word);
    return rc;
}

/* Where no process waits there is no order to keep: `write` alone will do. */
static int enter(struct lite *lite, hf_ms until, struct hf_err *err)
{
    struct lite_page *page = lite->side.page;
    if (atomic_load(&page->turnstile_waiters) == 0 &&
        set_lock(lite->side.fd, F_WRLCK, LITE_WRITE_BYTE) == 0)
        return 0;
    lite_wait_begins(&page->turnstile_waiters);
    int rc = pass_entry(lite, until, err);
    lite_wait_ends(&page->turnstile_waiters);
    return rc;
}

int lite_turnstile_enter(struct lite *lite, struct hf_err *err)
{
    if (lite->side.fd < 0)
        return 0;
    hf_ms start = real_ms();
    int rc = enter(lite, start + lite->busy_ms, err);
    if (rc == 0) {
        struct lite_page *page = lite->side.page;
        atomic_store_explicit(&page->turnstile_pid_ns, lite->side.pid_ns,
                              memory_order_relaxed);
        atomic_store_explicit(&page->turnstile_pid, (int32_t)lite->pid,
                              memory_order_relaxed);
    }
    (void)atomic_fetch_add_explicit(&lite->counts.turnstile_wait_ms, real_ms() - start,
                                    memory_order_relaxed);
    return rc;
}

void lite_turnstile_leave(struct lite *lite)
{
    if (lite->side.fd < 0)
        return;
    atomic_store_explicit(&lite->side.page->turnstile_pid, 0, memory_order_relaxed);
    give_lock(lite, LITE_WRITE_BYTE, &lite->side.page->write_word);
}

static int own_page(struct lite *lite, struct hf_err *err)
{
    struct lite_page *page = lite->alloc->realloc(lite->alloc->user, NULL, sizeof(*page));
    if (!page)
        return hf_fail_plain(err, HF_ENOMEM);
    memset(page, 0, sizeof(*page));
    lite->side = (struct lite_side){ .fd = -1, .page = page, .alone = true };
    return 0;
}

/* As SQLite does for its own side files: the process that may use the database may use
 * these. */
static void copy_access(int fd, const struct stat *of)
{
    (void)fchmod(fd, of->st_mode & 0777); /* if it fails: as the umask has it */
    if (geteuid() == 0)
        (void)fchown(fd, of->st_uid, of->st_gid);
}

static int open_fd(struct lite *lite, const char *path, int *ret_fd, struct hf_err *err)
{
    struct stat db;
    if (stat(lite->path, &db) != 0)
        return fail_file("cannot find the database of", errno, err);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && !lite->read_only) {
        fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT, db.st_mode & 0777);
        if (fd >= 0)
            copy_access(fd, &db);
    }
    if (fd < 0)
        return fail_file("cannot open", errno, err);
    *ret_fd = fd;
    return 0;
}

/* The blocks are taken now: a full disk must show here, and not as a signal at the first
 * write to the mapping. */
static int map_page(struct lite *lite, int fd, struct hf_err *err)
{
    struct stat side;
    if (fstat(fd, &side) != 0)
        return fail_file("cannot read", errno, err);
    if (!S_ISREG(side.st_mode) || side.st_size > PAGE_BYTES)
        return hf_fail(
            err, HF_ENOTSTORE, "db",
            "the file with the suffix -hf is not the sidecar of a store: move it away");
    int error = lite->read_only ? 0 : posix_fallocate(fd, 0, PAGE_BYTES);
    if (error == 0 && lite->read_only && side.st_size < PAGE_BYTES)
        error = ENODATA;
    if (error != 0)
        return fail_file("cannot extend", error, err);
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return fail_file("cannot map", errno, err);
    lite->side = (struct lite_side){
        .fd = fd, .page = page, .mapped = true, .pid_ns = lite_pid_namespace()
    };
    return 0;
}

static void name_side(struct lite *lite, struct hf_buf *path)
{
    hf_buf_init(path, lite->alloc, strlen(lite->path) + sizeof("-hf"));
    hf_buf_text(path, lite->path);
    hf_buf_text(path, "-hf");
}

bool lite_side_knows(struct lite *lite)
{
    struct hf_buf path;
    struct lite_page page = { 0 };
    name_side(lite, &path);
    int fd = hf_buf_state(&path) == 0 ? open(hf_buf_str(&path), O_RDONLY | O_CLOEXEC)
                                      : -1;
    hf_buf_fini(&path);
    if (fd < 0)
        return false;
    ssize_t got = pread(fd, &page, sizeof page, 0);
    (void)close(fd); /* it was only read */
    return got == (ssize_t)sizeof page && page.magic == PAGE_MAGIC && page.store_id[0];
}

int lite_side_open(struct lite *lite, struct hf_err *err)
{
    if (lite->memory)
        return own_page(lite, err);
    struct hf_buf path;
    name_side(lite, &path);
    int fd = -1;
    int rc = hf_buf_state(&path);
    if (rc == 0)
        rc = open_fd(lite, hf_buf_str(&path), &fd, err);
    if (rc == 0)
        rc = map_page(lite, fd, err);
    hf_buf_fini(&path);
    if (rc == 0)
        return 0;
    if (fd >= 0)
        (void)close(fd); /* nothing was written through it */
    /* Readers can do without: they only miss the wake-ups. */
    return lite->read_only ? own_page(lite, err) : rc;
}

void lite_side_close(struct lite *lite)
{
    struct lite_side *side = &lite->side;
    if (!side->page)
        return;
    if (side->mapped)
        (void)munmap(side->page, PAGE_BYTES); /* a mapping of our own cannot fail to go */
    else
        lite->alloc->free(lite->alloc->user, side->page);
    if (side->fd >= 0)
        (void)close(side->fd); /* returns its locks; nothing is buffered */
    *side = (struct lite_side){ .fd = -1 };
}

int lite_side_for_reader(struct lite *lite, struct hf_err *err)
{
    const struct lite_page *page = lite->side.page;
    bool ours = lite->side.fd >= 0 && page->magic == PAGE_MAGIC &&
                page->version == PAGE_VERSION &&
                atomic_load(&page->schema_version) == lite->schema_version;
    if (ours)
        return 0;
    lite_side_close(lite);
    int rc = own_page(lite, err);
    if (rc == 0)
        atomic_store(&lite->side.page->schema_version, lite->schema_version);
    return rc;
}

int lite_side_enter(struct lite *lite, struct hf_err *err)
{
    struct lite_side *side = &lite->side;
    if (side->fd < 0)
        return 0;
    int error = set_lock(side->fd, F_WRLCK, LITE_OPEN_BYTE);
    side->alone = error == 0;
    /* Only an opener holds it alone, and only inside the turnstile, where we are now. */
    if (error == 0 || error == EAGAIN)
        error = set_lock(side->fd, F_RDLCK, LITE_OPEN_BYTE);
    if (error != 0)
        return fail_file("cannot lock", error, err);
    side->known = side->page->magic == PAGE_MAGIC;
    if (side->known && side->page->version != PAGE_VERSION && !side->alone)
        return hf_fail(err, HF_EBUSY, "db",
                       "another version of holdfast has this store open: stop it, then "
                       "open the store again");
    return 0;
}

bool lite_side_leave(struct lite *lite)
{
    int fd = lite->side.fd;
    if (fd < 0)
        return false; /* in memory: nothing outlives the handle */
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LITE_OPEN_BYTE, .l_len = 1
    };
    bool last = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
    int error = set_lock(fd, F_UNLCK, LITE_OPEN_BYTE);
    hf_assert(error == 0); /* one byte of our own lock: nothing to allocate or wait for */
    return last;
}

void lite_side_adopt(struct lite *lite, const struct lite_store_facts *facts)
{
    struct lite_page *page = lite->side.page;
    for (size_t i = 0; lite->side.alone && i < LITE_BELLS; i++)
        atomic_store(&page->bell_waiters[i], 0);
    if (lite->side.alone)
        atomic_store(&page->turnstile_waiters, 0);
    memcpy(page->store_id, lite->store_id, sizeof(page->store_id));
    atomic_store(&page->commit_seq, facts->commit_seq);
    atomic_store(&page->incarnation, facts->incarnation);
    atomic_store(&page->schema_version, lite->schema_version);
    page->version = PAGE_VERSION;
    page->bytes = PAGE_BYTES;
    page->magic = PAGE_MAGIC;
}
