/* Effects of processes and operations as rows that operations show. */
#ifndef HF_OP_SHAPES_EFFECT_H
#define HF_OP_SHAPES_EFFECT_H

#include <holdfast/journal.h>

#include "core/ledger/fields.h"

extern const struct hf_shape hf_effect_shape; /* struct hf_journal_effect */

#endif
