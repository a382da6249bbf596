/* Model entries. */
#include <string.h>

#include <holdfast/bounds.h>
#include <holdfast/model.h>

#include "agent/check.h"
#include "agent/wire/codec.h"
#include "base/err.h"
#include "base/text.h"

struct hf_model {
    struct hf_arena arena; /* the model is in it */
    struct hf_provider *provider;
    const char *id;
    const char *route;
    struct hf_span options;
    int64_t context_tokens;
};

static int check_config(const struct hf_model_config *config, struct hf_options *options,
                        struct hf_err *err)
{
    int64_t cap = 0;
    if (config->size != sizeof(*config))
        return hf_fail(err, HF_EINVAL, "size", "struct hf_model_config has another size");
    int rc = hf_check_key(config->id, (size_t)HF_MAX_KEY_BYTES, "id", err);
    if (rc == 0)
        rc = hf_check_key_opt(config->route, (size_t)HF_MAX_KEY_BYTES, "route", err);
    if (rc)
        return rc;
    if (config->context_tokens <= 0)
        return hf_fail(err, HF_EINVAL, "context_tokens", "the window must be above 0");
    if (config->output_tokens <= 0 || config->output_tokens >= config->context_tokens)
        return hf_fail(err, HF_EINVAL, "output_tokens",
                       "the output cap must be above 0 and below the window");
    rc = hf_options_read(config->options, options, err);
    if (rc)
        return rc;
    if (hf_walk_i64(options->value[HF_OPTION_MAX_OUTPUT_TOKENS], &cap) &&
        cap > config->output_tokens)
        return hf_fail(err, HF_EINVAL, "max_output_tokens",
                       "the option is above the model's output cap");
    return 0;
}

int hf_model_check(const struct hf_model_config *config, struct hf_err *err)
{
    struct hf_options options = { 0 };
    return check_config(config, &options, err);
}

/* The options with the cap in them, in their order. */
static int write_options(struct hf_model *model, const struct hf_model_config *config,
                         const struct hf_options *options)
{
    struct hf_buf text;
    struct hf_json json;
    hf_buf_init(&text, model->arena.alloc, (size_t)HF_MAX_TURN_TEXT_BYTES);
    hf_json_begin(&json, &text);
    hf_json_object(&json);
    if (options->value[HF_OPTION_MAX_OUTPUT_TOKENS].len == 0)
        hf_json_put_i64(&json, "max_output_tokens", config->output_tokens);
    for (int i = 0; i < HF_OPTION_COUNT; i++)
        if (options->value[i].len > 0) {
            hf_json_key(&json, hf_model_option_name((enum hf_model_option)i));
            hf_json_rawn(&json, options->value[i].at, options->value[i].len);
        }
    hf_json_end(&json);
    size_t len = text.len;
    char *kept = hf_buf_keep(&text, &model->arena);
    model->options = (struct hf_span){ kept, len };
    return kept ? 0 : HF_ENOMEM;
}

static int write_route(struct hf_model *model, const struct hf_model_config *config)
{
    if (config->route) {
        model->route = hf_arena_text(&model->arena, config->route);
        return model->route ? 0 : HF_ENOMEM;
    }
    const char *name = hf_arena_join(&model->arena, hf_provider_name(config->provider),
                                     "/");
    model->route = name ? hf_arena_join(&model->arena, name, config->id) : NULL;
    return model->route ? 0 : HF_ENOMEM;
}

int hf_model_new(const struct hf_model_config *config, struct hf_model **ret_model,
                 struct hf_err *err)
{
    struct hf_options options = { 0 };
    struct hf_arena arena;
    int rc = check_config(config, &options, err);
    if (rc == 0 && !config->provider)
        rc = hf_fail(err, HF_EINVAL, "provider", "a model needs a provider");
    if (rc)
        return rc;
    hf_arena_init_small(&arena, hf_alloc_system(), 512, 4096);
    struct hf_model *model = hf_arena_new(&arena, struct hf_model);
    if (!model)
        return hf_fail_plain(err, HF_ENOMEM);
    model->arena = arena;
    model->provider = config->provider;
    model->context_tokens = config->context_tokens;
    model->id = hf_arena_text(&model->arena, config->id);
    rc = model->id ? write_route(model, config) : HF_ENOMEM;
    if (rc == 0)
        rc = write_options(model, config, &options);
    if (rc) {
        hf_model_free(model);
        return hf_fail_plain(err, rc);
    }
    *ret_model = model;
    return 0;
}

void hf_model_free(struct hf_model *model)
{
    if (!model)
        return;
    struct hf_arena arena = model->arena;
    hf_arena_fini(&arena);
}

struct hf_provider *hf_model_provider(const struct hf_model *model)
{
    return model->provider;
}

void hf_model_apply(const struct hf_model *model, struct hf_turn_config *config)
{
    config->model = model->id;
    config->route = model->route;
    config->options = model->options;
    config->max_context_tokens = model->context_tokens;
}
