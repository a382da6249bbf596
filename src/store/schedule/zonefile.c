/* The system's time zones: files of the format TZif, read once by the name of a zone, and kept
 * (zonefile.h). */
#include "store/schedule/zonefile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define FOLDER "/usr/share/zoneinfo/"
#define NAME_MAX_BYTES 64
#define FILE_MAX_BYTES (256u << 10)

struct zone_entry {
    struct zone_entry *next;
    const char *name;
    const struct hf_zone *zone;
};

void hf_zones_init(struct hf_zones *zones, const struct hf_alloc *alloc)
{
    *zones = (struct hf_zones){ 0 };
    hf_arena_init(&zones->arena, alloc);
}

void hf_zones_fini(struct hf_zones *zones)
{
    hf_arena_fini(&zones->arena);
    zones->first = NULL;
}

static int unknown(struct hf_err *err, const char *name)
{
    return hf_fail(err, HF_EINVAL, "zone",
                   "zone: \"%.64s\" is not a time zone of this system; use UTC or an "
                   "IANA name such as Europe/Berlin",
                   name ? name : "");
}

/* Letters, digits, _ + - and single slashes between: no dots, so no way out of the folder. */
static bool plausible(const char *name)
{
    if (!name || !*name || *name == '/' || strlen(name) > NAME_MAX_BYTES)
        return false;
    for (const char *at = name; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        bool other = (*at >= '0' && *at <= '9') || *at == '_' || *at == '+' || *at == '-';
        bool slash = *at == '/' && at[1] && at[1] != '/';
        if (!letter && !other && !slash)
            return false;
    }
    return true;
}

static int read_all(int fd, struct hf_buf *into, struct hf_err *err)
{
    char block[4096];
    for (;;) {
        ssize_t got = read(fd, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hf_fail(err, HF_ESTOREIO, "zone",
                           "the time zone's file cannot be read: %s", strerror(errno));
        if (got == 0)
            return hf_buf_state(into) ? hf_fail_plain(err, hf_buf_state(into)) : 0;
        hf_buf_bytes(into, block, (size_t)got);
    }
}

static int load(struct hf_zones *zones, const char *name, const struct hf_zone **ret_zone,
                struct hf_err *err)
{
    char path[sizeof FOLDER + NAME_MAX_BYTES];
    memcpy(path, FOLDER, sizeof FOLDER - 1);
    memcpy(path + sizeof FOLDER - 1, name, strlen(name) + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return unknown(err, name);
    struct hf_buf bytes;
    hf_buf_init(&bytes, zones->arena.alloc, FILE_MAX_BYTES);
    struct hf_err why = { 0 };
    int rc = read_all(fd, &bytes, &why);
    (void)close(fd); /* it was only read */
    bool is_zone = rc == 0 && bytes.len >= 4 && memcmp(bytes.at, "TZif", 4) == 0;
    if (rc == HF_ENOMEM)
        rc = hf_fail_plain(err, rc);
    else if (!is_zone) /* a folder, a list, anything but a zone that lies there */
        rc = unknown(err, name);
    else
        rc = hf_zone_read(&zones->arena, (struct hf_span){ bytes.at, bytes.len },
                          ret_zone, err);
    hf_buf_fini(&bytes);
    return rc;
}

static int keep(struct hf_zones *zones, const char *name, const struct hf_zone *zone,
                struct hf_err *err)
{
    struct zone_entry *entry = hf_arena_new(&zones->arena, struct zone_entry);
    const char *copy = hf_arena_text(&zones->arena, name);
    if (!entry || !copy)
        return hf_fail_plain(err, HF_ENOMEM);
    *entry = (struct zone_entry){ zones->first, copy, zone };
    zones->first = entry;
    return 0;
}

int hf_zones_get(struct hf_zones *zones, const char *name,
                 const struct hf_zone **ret_zone, struct hf_err *err)
{
    const struct hf_zone *zone = NULL;
    if (!plausible(name))
        return unknown(err, name);
    if (hf_same(name, "UTC")) {
        *ret_zone = &hf_zone_utc;
        return 0;
    }
    for (const struct zone_entry *at = zones->first; at; at = at->next) {
        if (hf_same(at->name, name)) {
            *ret_zone = at->zone;
            return 0;
        }
    }
    int rc = load(zones, name, &zone, err);
    if (rc == 0)
        rc = keep(zones, name, zone, err);
    if (rc == 0)
        *ret_zone = zone;
    return rc;
}
