/* Bringing a spool or an export into the ledger.
 *
 * The file is read up to where it ended at the start, in batches of requests of one caller;
 * each batch is one create. Only when all of it was tried is a spool replaced, by what made a
 * problem and what was appended meanwhile. So a crash at any point leaves a file whose lines
 * can all be tried again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/text.h"
#include "core/ledger/step.h"
#include "os/fileio.h"
#include "run/ingress/spool.h"
#include "run/ingress/spool_line.h"
#include "store/api/work.h"

#define BATCH 100
#define BATCH_BYTES (4u << 20)
#define BLOCK 65536
#define LOCK_MS 10000
#define FIRST_BYTES (sizeof(HF_SPOOL_FIRST) - 1)

/* A line of the file. */
struct place {
    int64_t number;
    off_t begin;
    off_t end; /* past its end mark, if it has one */
    bool torn;
};

struct reconcile {
    struct hf_store *store;
    struct hf_caller who;
    const char *path;
    int fd;
    off_t end; /* of what is read */
    hf_spool_found *found;
    void *user;
    struct hf_spool_report report;
    struct hf_buf kept; /* struct place: lines that stay */
    struct hf_arena arena;
    size_t count;
    struct place places[BATCH];
    struct hf_spool_line lines[BATCH];
    struct hf_err *err;
};

/* ---- what happened to a line --------------------------------------------------------- */

static void problem(struct reconcile *r, const struct place *place,
                    const struct hf_spool_line *line, const struct hf_err *why)
{
    hf_buf_bytes(&r->kept, place, sizeof(*place));
    if (!r->found)
        return;
    struct hf_spool_problem one = {
        .line = place->number,
        .code = why->code,
        .torn = place->torn,
        .field = why->field,
        .message = why->message,
        .source_system = line->source,
        .source_id = line->request.source_id,
    };
    r->found(r->user, &one);
}

static void judge(struct reconcile *r, size_t i, const struct hf_item *item)
{
    struct hf_err why = { 0 };
    if (item->code == 0 && item->created) {
        r->report.created++;
    } else if (item->code == 0) {
        r->report.existing++;
    } else {
        (void)hf_fail(&why, item->code, item->field, "%s",
                      item->message ? item->message : hf_err_text(item->code));
        if (item->code == HF_ECONFLICT)
            r->report.conflicting++;
        else
            r->report.refused++;
        problem(r, &r->places[i], &r->lines[i], &why);
    }
}

/* ---- batches ------------------------------------------------------------------------- */

static bool same_caller(const struct hf_caller *a, const struct hf_caller *b)
{
    return !a->operation_id && !b->operation_id && hf_same(a->tenant, b->tenant) &&
           hf_same(a->actor_kind, b->actor_kind) && hf_same(a->actor, b->actor) &&
           hf_same(a->correlation_id, b->correlation_id);
}

/* Whether the request is at fault, and not the ledger. */
static bool is_refusal(int rc)
{
    return rc == HF_EINVAL || rc == HF_ETOOBIG || rc == HF_ENOTFOUND ||
           rc == HF_ECONFLICT || rc == HF_EPOLICY || rc == HF_ETRANSITION;
}

/* The request that is alone in its batch was refused as a whole: those after it still come. */
static void refuse_one(struct reconcile *r, int code)
{
    r->report.conflicting += code == HF_ECONFLICT;
    r->report.refused += code != HF_ECONFLICT;
    problem(r, &r->places[0], &r->lines[0], r->err);
}

static int create_batch(struct reconcile *r)
{
    struct hf_work_spec news[BATCH];
    struct hf_answer *answer = NULL;
    if (r->count == 0)
        return 0;
    for (size_t i = 0; i < r->count; i++)
        news[i] = r->lines[i].request;
    int rc = hf_work_create_checked(r->store, &r->lines[0].who, news, r->count, 0,
                                    &answer, r->err);
    /* Under an operation id there is no answer a request. */
    if (is_refusal(rc) && r->lines[0].who.operation_id) {
        refuse_one(r, rc);
        rc = 0;
    }
    for (size_t i = 0; rc == 0 && answer && i < r->count; i++)
        judge(r, i, hf_answer_at(answer, i));
    hf_answer_free(answer);
    r->count = 0;
    return rc;
}

/* A reply goes to who waits for it; it is alone in its batch. */
static int deliver_one(struct reconcile *r)
{
    struct hf_answer *answer = NULL;
    bool resumed = false;
    int rc = hf_work_deliver(r->store, &r->lines[0].who, &r->lines[0].request, &answer,
                             &resumed, r->err);
    r->count = 0;
    if (is_refusal(rc)) {
        refuse_one(r, rc);
        rc = 0;
    } else if (rc == 0 && resumed && !hf_answer_at(answer, 0)->repeated) {
        r->report.resumed++;
    } else if (rc == 0) {
        judge(r, 0, hf_answer_at(answer, 0));
    }
    hf_answer_free(answer);
    return rc;
}

/* Who does not say gets the caller's. */
static void complete(const struct reconcile *r, struct hf_caller *who)
{
    if (!who->actor_kind && !who->actor) {
        who->actor_kind = r->who.actor_kind;
        who->actor = r->who.actor;
    }
    if (!who->tenant)
        who->tenant = r->who.tenant;
    if (!who->correlation_id)
        who->correlation_id = r->who.correlation_id;
}

/* Ends a batch that is as large as it may be. What its lines were made of goes with it. */
static int make_room(struct reconcile *r)
{
    if (r->count < BATCH && r->arena.taken < BATCH_BYTES)
        return 0;
    int rc = create_batch(r);
    hf_arena_reset(&r->arena);
    return rc;
}

static int take_line(struct reconcile *r, struct hf_span text, const struct place *place)
{
    struct hf_spool_line line;
    struct hf_err why = { 0 };
    int rc = make_room(r);
    if (rc)
        return rc;
    rc = hf_spool_decode(text, &r->arena, &line, &why);
    complete(r, &line.who);
    if (rc == 0)
        rc = hf_caller_check(&line.who, &why);
    if (rc == 0)
        rc = hf_work_spec_check(&line.request, &why);
    if (rc == HF_ENOMEM)
        return hf_fail_plain(r->err, rc);
    if (rc) {
        r->report.malformed++;
        problem(r, place, &line, &why);
        return 0;
    }
    bool alone = line.request.reply_ref ||
                 (r->count && !same_caller(&r->lines[0].who, &line.who));
    if (alone)
        rc = create_batch(r);
    if (rc == 0) {
        r->lines[r->count] = line;
        r->places[r->count++] = *place;
    }
    return rc == 0 && line.request.reply_ref ? deliver_one(r) : rc;
}

/* ---- lines --------------------------------------------------------------------------- */

static void too_long(struct reconcile *r, const struct place *place)
{
    struct hf_spool_line nothing = { 0 };
    struct hf_err why = { 0 };
    (void)hf_fail(&why, HF_ETOOBIG, "line", "a line must be at most %lld bytes",
                  (long long)HF_MAX_SPOOL_LINE_BYTES);
    r->report.malformed++;
    problem(r, place, &nothing, &why);
}

static bool is_blank(struct hf_span text)
{
    const char *at = text.at;
    for (size_t i = 0; i < text.len; i++)
        if (at[i] != ' ' && at[i] != '\t' && at[i] != '\r')
            return false;
    return true;
}

/* A line has ended, by its mark or with the file. */
static int end_line(struct reconcile *r, struct hf_buf *text, struct place *place)
{
    struct hf_span span = { hf_buf_str(text), text->len };
    bool first = place->number == 1 && r->report.spool;
    int rc = 0;
    if (hf_buf_state(text) == HF_ENOMEM)
        return hf_fail_plain(r->err, HF_ENOMEM);
    if (!first && (hf_buf_state(text) || !is_blank(span))) {
        r->report.lines++;
        if (hf_buf_state(text))
            too_long(r, place);
        else
            rc = take_line(r, span, place);
    }
    hf_buf_reset(text);
    *place = (struct place){ .number = place->number + 1,
                             .begin = place->end,
                             .end = place->end };
    return rc;
}

static int take_block(struct reconcile *r, const char *block, size_t len,
                      struct hf_buf *text, struct place *place)
{
    while (len) {
        const char *mark = memchr(block, '\n', len);
        size_t part = mark ? (size_t)(mark - block) : len;
        hf_buf_bytes(text, block, part);
        place->end += (off_t)part + (mark ? 1 : 0);
        len -= part + (mark ? 1 : 0);
        block += part + (mark ? 1 : 0);
        int rc = mark ? end_line(r, text, place) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static int take_file(struct reconcile *r)
{
    char block[BLOCK];
    struct hf_buf text;
    struct place place = { .number = 1 };
    off_t at = 0;
    int rc = 0;
    hf_buf_init(&text, r->store->alloc, (size_t)HF_MAX_SPOOL_LINE_BYTES);
    while (rc == 0 && at < r->end) {
        size_t want = r->end - at < BLOCK ? (size_t)(r->end - at) : BLOCK;
        ssize_t got = pread(r->fd, block, want, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            rc = hf_spool_failed(r->err, "read", r->path, errno);
        if (got <= 0)
            break; /* an export that was cut meanwhile: its lines were whole so far */
        at += got;
        rc = take_block(r, block, (size_t)got, &text, &place);
    }
    if (rc == 0 && place.end > place.begin) {
        place.torn = true;
        rc = end_line(r, &text, &place);
    }
    hf_buf_fini(&text);
    return rc ? rc : create_batch(r);
}

/* ---- what stays ---------------------------------------------------------------------- */

static int copy_range(const struct reconcile *r, int to, off_t begin, off_t end)
{
    char block[BLOCK];
    while (begin < end) {
        size_t want = end - begin < BLOCK ? (size_t)(end - begin) : BLOCK;
        ssize_t got = pread(r->fd, block, want, begin);
        if (got <= 0)
            return got < 0 ? errno : EIO;
        int errnum = hf_file_write(to, block, (size_t)got);
        if (errnum)
            return errnum;
        begin += got;
    }
    return 0;
}

/* What stays, into a file that is synced. */
static int write_rest(const struct reconcile *r, int to, off_t end)
{
    size_t n = r->kept.len / sizeof(struct place);
    int errnum = hf_file_write(to, HF_SPOOL_FIRST, FIRST_BYTES);
    for (size_t i = 0; errnum == 0 && i < n; i++) {
        struct place place;
        memcpy(&place, r->kept.at + i * sizeof(place), sizeof(place));
        errnum = copy_range(r, to, place.begin, place.end);
        if (errnum == 0 && place.torn)
            errnum = hf_file_write(to, "\n", 1);
    }
    if (errnum == 0)
        errnum = copy_range(r, to, r->end, end);
    return errnum ? errnum : fsync(to) == 0 ? 0 : errno;
}

/* Its writers must be able to continue: they may be of another user than who reconciles. */
static int give_back(int to, const struct stat *was)
{
    struct stat made;
    if (fstat(to, &made) != 0)
        return errno;
    bool ours = made.st_uid == was->st_uid && made.st_gid == was->st_gid;
    if (!ours && fchown(to, was->st_uid, was->st_gid) != 0)
        return errno;
    return fchmod(to, was->st_mode & 0777) == 0 ? 0 : errno;
}

static int replace(const struct reconcile *r, const struct stat *was)
{
    struct hf_buf name;
    hf_buf_init(&name, r->store->alloc, 4096);
    hf_buf_text(&name, r->path);
    hf_buf_text(&name, ".tmp");
    int errnum = hf_buf_state(&name) ? ENAMETOOLONG : 0;
    int to = -1;
    if (errnum == 0) {
        to = open(hf_buf_str(&name),
                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        errnum = to < 0 ? errno : give_back(to, was);
    }
    if (errnum == 0)
        errnum = write_rest(r, to, was->st_size);
    if (errnum == 0 && rename(hf_buf_str(&name), r->path) != 0)
        errnum = errno;
    if (errnum && to >= 0)
        (void)unlink(hf_buf_str(&name)); /* half of it helps no process */
    if (to >= 0)
        (void)close(to); /* synced before */
    hf_buf_fini(&name);
    return errnum;
}

/* Takes what is durable out of the spool. The rows are safe whatever happens here. */
static int trim(struct reconcile *r)
{
    struct stat at;
    if (r->kept.state)
        return hf_fail_plain(r->err, r->kept.state);
    int rc = hf_spool_lock(r->fd, r->path, LOCK_MS, r->err);
    if (rc)
        return rc;
    if (!hf_file_same(r->fd, r->path))
        return 0; /* another process trimmed it meanwhile; or a link names it, as
        /dev/stdin */
    int errnum = fstat(r->fd, &at) != 0 ? errno : 0;
    if (errnum == 0) {
        bool empty = r->kept.len == 0 && at.st_size == r->end;
        errnum = empty ? (unlink(r->path) != 0 ? errno : 0) : replace(r, &at);
    }
    if (errnum == 0)
        errnum = hf_file_sync_folder(r->path);
    if (errnum)
        return hf_spool_failed(r->err, "trim", r->path, errnum);
    r->report.trimmed = true;
    return 0;
}

/* ---- the file ------------------------------------------------------------------------ */

/* Opens it, tells a spool from an export, and notes where it ends. A spool's end is that of
 * a whole line, or of one whose writer died: no process writes while we hold its lock. */
static int begin(struct reconcile *r)
{
    char first[FIRST_BYTES];
    struct stat at;
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->fd < 0)
        return hf_fail(r->err, errno == ENOENT ? HF_ENOTFOUND : HF_EINVAL, "from",
                       "cannot read %.120s: %s", r->path, strerror(errno));
    if (fstat(r->fd, &at) != 0 || !S_ISREG(at.st_mode))
        return hf_fail(r->err, HF_EINVAL, "from", "%.120s is not a file", r->path);
    ssize_t got = pread(r->fd, first, FIRST_BYTES, 0);
    r->report.spool = got == (ssize_t)FIRST_BYTES &&
                      memcmp(first, HF_SPOOL_FIRST, FIRST_BYTES) == 0;
    r->end = at.st_size;
    if (!r->report.spool)
        return 0;
    int held = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = held < 0 ? hf_spool_failed(r->err, "open", r->path, errno)
                      : hf_spool_lock(held, r->path, LOCK_MS, r->err);
    if (rc == 0 && fstat(r->fd, &at) == 0)
        r->end = at.st_size;
    if (held >= 0)
        (void)close(held); /* only the lock ends */
    return rc;
}

int hf_spool_reconcile(struct hf_store *store, const struct hf_caller *given,
                       const char *path, hf_spool_found *found, void *user,
                       struct hf_spool_report *ret_report, struct hf_err *err)
{
    struct hf_caller who;
    struct hf_err why = { 0 };
    int rc = hf_caller_complete(given, "system", "reconcile", &who, err);
    if (rc == 0 && (!path || !*path))
        rc = hf_fail(err, HF_EINVAL, "path",
                     "the path of a spool or an export is needed");
    if (rc)
        return rc;
    const struct hf_alloc *alloc = store->alloc;
    struct reconcile *r = alloc->realloc(alloc->user, NULL, sizeof(*r));
    if (!r)
        return hf_fail_plain(err, HF_ENOMEM);
    *r = (struct reconcile){ .store = store,
                             .who = who,
                             .path = path,
                             .fd = -1,
                             .found = found,
                             .user = user,
                             .err = &why };
    hf_arena_init(&r->arena, alloc);
    hf_buf_init(&r->kept, alloc, (size_t)HF_MAX_SPOOL_BYTES);
    rc = begin(r);
    if (rc == 0)
        rc = take_file(r);
    if (rc == 0 && r->report.spool) {
        r->report.left = (int64_t)(r->kept.len / sizeof(struct place));
        rc = trim(r);
    }
    if (rc == 0)
        *ret_report = r->report;
    if (r->fd >= 0)
        (void)close(r->fd); /* it was only read; its lock ends */
    hf_buf_fini(&r->kept);
    hf_arena_fini(&r->arena);
    alloc->free(alloc->user, r);
    return hf_fail_as(err, rc, &why);
}
