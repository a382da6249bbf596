/* The checks of hf_endpoint_new and hf_model_new, for configurations that are only read. */
#ifndef HF_AGENT_CHECK_H
#define HF_AGENT_CHECK_H

#include <holdfast/model.h>

/* HF_EINVAL names the field. */
HF_MUST_USE int hf_endpoint_check(const struct hf_endpoint *endpoint, struct hf_err *err);
/* The same; the model's provider may be missing. */
HF_MUST_USE int hf_model_check(const struct hf_model_config *config, struct hf_err *err);

#endif
