/* Subscriptions and deliveries as rows that operations show. */
#ifndef HF_OP_SHAPES_TRIGGER_H
#define HF_OP_SHAPES_TRIGGER_H

#include "core/trigger/trigger.h"

extern const struct hf_shape hf_delivery_shape; /* struct hf_delivery */
extern const struct hf_shape hf_emission_shape; /* facts next to deliveries */

#endif
