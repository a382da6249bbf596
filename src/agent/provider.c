/* The functions of any provider, for callers. */
#include <holdfast/provider.h>

const char *hf_provider_name(const struct hf_provider *provider)
{
    return provider->methods->name(provider);
}

int hf_provider_start(struct hf_provider *provider, const struct hf_model_call *call,
                      const struct hf_model_sink *sink, uint64_t *ret_call,
                      struct hf_err *err)
{
    return provider->methods->start(provider, call, sink, ret_call, err);
}

int hf_provider_cancel(struct hf_provider *provider, uint64_t call)
{
    return provider->methods->cancel(provider, call);
}

int hf_provider_close(struct hf_provider *provider, const struct hf_closed *closed)
{
    return provider->methods->close(provider, closed);
}

void hf_provider_free(struct hf_provider *provider)
{
    if (provider)
        provider->methods->free(provider);
}
