/* Messages with files: holdfast/attach.h. */
#include <holdfast/attach.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/bounds.h>
#include <holdfast/sys/store.h>
#include <holdfast/turn_json.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/repair.h"
#include "base/sized.h"
#include "base/text.h"

#define REF "sha256:"
#define NAME_BYTES_MAX 255 /* of a file, as file systems have it */

/* How images begin. WebP has a size in between. */
static const struct {
    const char *type;
    const char *begin;
    size_t len;
    size_t at;
} kinds[] = {
    { "image/png", "\x89PNG\r\n\x1a\n", 8, 0 },
    { "image/jpeg", "\xff\xd8\xff", 3, 0 },
    { "image/gif", "GIF87a", 6, 0 },
    { "image/gif", "GIF89a", 6, 0 },
    { "image/webp", "WEBP", 4, 8 },
};

static const char *media_type(struct hf_span bytes)
{
    const char *at = bytes.at;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (bytes.len >= kinds[i].at + kinds[i].len &&
            memcmp(at + kinds[i].at, kinds[i].begin, kinds[i].len) == 0)
            return kinds[i].type;
    return hf_text_clean(bytes.at, bytes.len) ? "text/plain" : NULL;
}

static int fail_file(const char *path, int error, struct hf_err *err)
{
    return hf_fail(err, HF_EINVAL, "attach", "cannot read %.120s: %s", path,
                   strerror(error));
}

/* One byte more than may be is read, so that a file that grows is noticed. */
static int read_open(struct hf_arena *arena, int fd, const char *path,
                     struct hf_span *ret_bytes, struct hf_err *err)
{
    struct stat at;
    size_t room = (size_t)HF_MAX_ATTACHMENT_BYTES + 1, len = 0;
    if (fstat(fd, &at) != 0)
        return fail_file(path, errno, err);
    if (!S_ISREG(at.st_mode))
        return hf_fail(err, HF_EINVAL, "attach", "%.120s is no regular file", path);
    if (at.st_size < (off_t)room)
        room = (size_t)at.st_size + 1;
    char *bytes = hf_arena_take(arena, room);
    if (!bytes)
        return hf_fail_plain(err, HF_ENOMEM);
    for (ssize_t got = 1; got != 0 && len<room; len += got> 0 ? (size_t)got : 0) {
        got = read(fd, bytes + len, room - len);
        if (got < 0 && errno != EINTR)
            return fail_file(path, errno, err);
    }
    if (at.st_size > HF_MAX_ATTACHMENT_BYTES || len == room)
        return hf_fail(err, HF_ETOOBIG, "attach",
                       "%.120s is over %lld bytes, the limit of a file that is attached",
                       path, (long long)HF_MAX_ATTACHMENT_BYTES);
    *ret_bytes = (struct hf_span){ bytes, len };
    return len > 0 ? 0 : hf_fail(err, HF_EINVAL, "attach", "%.120s is empty", path);
}

/* Reads a file that is to be attached: its bytes, its media type by how it begins, its size, and
 * its name without folders, as UTF-8. HF_EINVAL for a file that is neither an image of `kinds` nor
 * UTF-8 text. */
static int read_file(struct hf_arena *arena, const char *path, struct hf_span *ret_bytes,
                     struct hf_attachment *ret_attachment, struct hf_err *err)
{
    const char *slash = strrchr(path, '/');
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail_file(path, errno, err);
    int rc = read_open(arena, fd, path, ret_bytes, err);
    (void)close(fd); /* it was only read */
    if (rc)
        return rc;
    struct hf_span name = { slash ? slash + 1 : path, strlen(slash ? slash + 1 : path) };
    struct hf_attachment made = { .media_type = media_type(*ret_bytes),
                                  .bytes = (int64_t)ret_bytes->len };
    if (!made.media_type)
        return hf_fail(err, HF_EINVAL, "attach",
                       "%.120s is neither an image (PNG, JPEG, GIF, WebP) nor UTF-8 text",
                       path);
    rc = hf_text_repair(arena, name, NAME_BYTES_MAX, &name);
    made.name = rc ? NULL : hf_arena_copy(arena, name.at, name.len);
    if (!made.name)
        return hf_fail_plain(err, HF_ENOMEM);
    *ret_attachment = made;
    return 0;
}

/* Stores one file, and names it. */
static int put_file(struct hf_store *store, struct hf_arena *arena, struct hf_span bytes,
                    struct hf_attachment *attachment, struct hf_err *err)
{
    uint8_t hash[32];
    char ref[sizeof REF + 64] = REF;
    int rc = hf_session_blob_put(store, bytes, hash, err);
    if (rc)
        return rc;
    hf_hex(hash, sizeof hash, ref + sizeof REF - 1);
    attachment->ref = hf_arena_text(arena, ref);
    return attachment->ref ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

struct files {
    struct hf_span *bytes;
    struct hf_attachment *attachments;
    struct hf_part *parts; /* one more, for the text */
};

static int read_files(const struct hf_user_message *message, struct hf_arena *arena,
                      struct files *ret_files, struct hf_err *err)
{
    size_t count = message->path_count;
    struct files files = {
        .bytes = hf_arena_array(arena, count + 1, sizeof *files.bytes),
        .attachments = hf_arena_array(arena, count + 1, sizeof *files.attachments),
        .parts = hf_arena_array(arena, count + 1, sizeof *files.parts),
    };
    if (!files.bytes || !files.attachments || !files.parts)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = read_file(arena, message->paths[i], &files.bytes[i], &files.attachments[i],
                       err);
        files.parts[i] = (struct hf_part){ .kind = HF_PART_ATTACHMENT,
                                           .attachment = &files.attachments[i] };
    }
    *ret_files = files;
    return rc;
}

static bool has_text(const struct hf_user_message *message)
{
    return message->text && message->text[0];
}

static int check(const struct hf_user_message *message, struct hf_err *err)
{
    int rc = hf_sized_check(message->size, sizeof *message, sizeof *message, err);
    if (rc)
        return rc;
    if (message->path_count > (size_t)HF_MAX_ATTACHMENTS)
        return hf_fail(err, HF_ETOOBIG, "attach",
                       "a message can have at most %lld attached files",
                       (long long)HF_MAX_ATTACHMENTS);
    if (!has_text(message) && message->path_count == 0)
        return hf_fail(err, HF_EINVAL, "text", "a message needs text or files");
    return hf_sized_array(message->paths, message->path_count, "attach", err);
}

static int write_message(struct hf_store *store, const struct hf_user_message *message,
                         const struct files *files, char **ret_json, struct hf_err *err)
{
    char fresh[HF_NONCE_TEXT];
    size_t count = message->path_count;
    int rc = message->id ? 0 : hf_nonce(store->random, fresh, err);
    if (rc)
        return rc;
    if (has_text(message))
        files->parts[count++] = (struct hf_part){
            .kind = HF_PART_TEXT, .content = { message->text, strlen(message->text) }
        };
    struct hf_message made = { .id = message->id ? message->id : fresh,
                               .role = HF_ROLE_USER,
                               .parts = files->parts,
                               .part_count = count };
    struct hf_record record = { .kind = HF_RECORD_MESSAGE, .message = &made };
    struct hf_bytes json = { 0 };
    rc = hf_record_encode(store->alloc, &record, &json, err);
    if (rc)
        return rc;
    char *copy = store->alloc->realloc(store->alloc->user, NULL, json.len + 1);
    if (copy) {
        memcpy(copy, json.at, json.len);
        copy[json.len] = '\0';
        *ret_json = copy;
    }
    hf_bytes_free(&json);
    return copy ? 0 : hf_fail_plain(err, HF_ENOMEM);
}

int hf_user_message_write(struct hf_store *store, const struct hf_user_message *message,
                          char **ret_json, struct hf_err *err)
{
    struct hf_arena arena;
    struct files files = { 0 };
    char *json = NULL;
    int rc = check(message, err);
    if (rc)
        return rc;
    hf_arena_init_small(&arena, store->alloc, 1024, 8192);
    rc = read_files(message, &arena, &files, err);
    for (size_t i = 0; rc == 0 && i < message->path_count; i++)
        rc = put_file(store, &arena, files.bytes[i], &files.attachments[i], err);
    if (rc == 0)
        rc = write_message(store, message, &files, &json, err);
    hf_arena_fini(&arena);
    if (rc == 0)
        *ret_json = json;
    return rc;
}
