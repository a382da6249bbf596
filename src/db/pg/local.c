/* How often processes of this machine have taken leases.
 *
 * The process that waits for work watches the local processes that hold leases, so that
 * their work is taken over as soon as one dies. Which those are only the server knows,
 * and to ask it fifty times per second was the largest part of what an idle worker cost
 * it. So they count their claims in a page that all processes of one user share, and ask
 * again when the count has changed. (On SQLite, where a look is cheap, there is no such
 * page.)
 *
 * A hint only: without the page, or where another user's processes take leases, waiters look by
 * themselves. The page has a word for many stores at once, by their ids; a shared word makes
 * a process look for nothing. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ident.h"
#include "db/pg/pg.h"

#define PAGE_BYTES 4096
#define WORDS (PAGE_BYTES / sizeof(uint32_t))

/* Every process may write to that folder: what is there under our name must be ours
 * alone. */
static bool is_ours(int fd)
{
    struct stat at;
    return fstat(fd, &at) == 0 && S_ISREG(at.st_mode) && at.st_uid == geteuid() &&
           (at.st_mode & 077) == 0;
}

/* Below 0: it cannot be had. */
static int open_page(struct pg *pg)
{
    struct hf_buf path;
    hf_buf_init(&path, pg->alloc, 64);
    hf_buf_text(&path, "/dev/shm/holdfast-");
    hf_buf_i64(&path, (int64_t)geteuid());
    int fd = hf_buf_state(&path) == 0
                 ? open(hf_buf_str(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                        0600)
                 : -1;
    hf_buf_fini(&path);
    return fd;
}

void pg_local_open(struct pg *pg)
{
    if (!pg->system_clock) /* a virtual time has no other processes */
        return;
    int fd = open_page(pg);
    if (fd < 0)
        return;
    /* With its room: to write where there is none left would be the end of the process. */
    if (is_ours(fd) && posix_fallocate(fd, 0, PAGE_BYTES) == 0) {
        void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        pg->local_page = page != MAP_FAILED ? page : NULL;
        pg->local_word = hf_crc32c(0, pg->store_id, strlen(pg->store_id)) % WORDS;
    }
    (void)close(fd); /* the mapping stays */
}

void pg_local_close(struct pg *pg)
{
    if (pg->local_page)
        (void)munmap(pg->local_page, PAGE_BYTES); /* cannot fail: it is mapped */
    pg->local_page = NULL;
}

void pg_local_count(struct pg *pg, struct pg_member *const *members, size_t count)
{
    bool taken = false;
    for (size_t i = 0; i < count; i++)
        taken |= members[i]->rc == 0 && members[i]->batch->holds;
    if (taken && pg->local_page)
        (void)atomic_fetch_add_explicit(&pg->local_page[pg->local_word], 1,
                                        memory_order_release);
}

bool pg_local_taken(struct hf_sql *sql, uint32_t *ret_count)
{
    struct pg *pg = pg_of(sql);
    if (pg->local_page)
        *ret_count = atomic_load_explicit(&pg->local_page[pg->local_word],
                                          memory_order_acquire);
    return pg->local_page != NULL;
}
