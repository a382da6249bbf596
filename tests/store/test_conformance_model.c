/* The conformance suite on the reference model: the suite and the model were written from
 * the same pages by different routes, so each checks the other. */

#include "model/model.h"
#include "support/conform.h"

struct place {
    struct model_disk *disk;
};

static int open_again(void *user, const struct hf_store_options *options,
                      struct hf_store **ret_store, struct hf_err *err)
{
    const struct place *place = user;
    return model_open(place->disk, options, ret_store, err);
}

static int open_fresh(void *user, const struct hf_store_options *options,
                      struct hf_store **ret_store, struct hf_err *err)
{
    struct place *place = user;
    place->disk = model_disk_new();
    return place->disk ? open_again(user, options, ret_store, err) : HF_ENOMEM;
}

static void discard(void *user)
{
    struct place *place = user;
    model_disk_free(place->disk);
    place->disk = NULL;
}

int main(int argc, char **argv)
{
    struct place place = { NULL };
    const struct hf_conform_factory factory = { .size = sizeof(factory),
                                                .user = &place,
                                                .open = open_fresh,
                                                .again = open_again,
                                                .discard = discard,
                                                .without = HF_CONFORM_SCHEDULES |
                                                           HF_CONFORM_TRIGGERS |
                                                           HF_CONFORM_PROCESSES };
    return conform_main("conformance_model", &factory, argc, argv);
}
