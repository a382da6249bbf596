/* The conformance suite on SQLite files, each in a folder of its own. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/conform.h"

struct place {
    char folder[64];
    char path[80];
};

static int open_again(void *user, const struct hf_store_options *options,
                      struct hf_store **ret_store, struct hf_err *err)
{
    const struct place *place = user;
    return hf_store_open(place->path, options, ret_store, err);
}

static int open_fresh(void *user, const struct hf_store_options *options,
                      struct hf_store **ret_store, struct hf_err *err)
{
    struct place *place = user;
    /* Memory file systems sync for nothing: the 12,000 syncs of the cases take no time there. */
    (void)snprintf(place->folder, sizeof(place->folder), "%s/hf-conform-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(place->folder))
        return HF_EINTERNAL;
    (void)snprintf(place->path, sizeof(place->path), "%s/db", place->folder);
    return open_again(user, options, ret_store, err);
}

static void discard(void *user)
{
    struct place *place = user;
    DIR *folder = opendir(place->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[400];
        (void)snprintf(path, sizeof(path), "%s/%s", place->folder, entry->d_name);
        (void)unlink(path); /* "." and ".." stay, and go with the folder */
    }
    if (folder)
        (void)closedir(folder); /* read only: nothing to lose */
    (void)rmdir(place->folder); /* a folder left behind harms no test */
}

int main(int argc, char **argv)
{
    struct place place = { { 0 }, { 0 } };
    const struct hf_conform_factory factory = { .size = sizeof(factory),
                                                .user = &place,
                                                .open = open_fresh,
                                                .again = open_again,
                                                .discard = discard };
    return conform_main("conformance_file", &factory, argc, argv);
}
