/* Waits as rows that operations show. */
#ifndef HF_OP_SHAPES_WAIT_H
#define HF_OP_SHAPES_WAIT_H

#include <holdfast/wait.h>

#include "core/ledger/fields.h"

extern const struct hf_shape hf_wait_shape;          /* struct hf_wait */
extern const struct hf_shape hf_wait_resolved_shape; /* facts next to a wait */
extern const struct hf_shape hf_wait_revoked_shape;  /* the answer of a revocation */
extern const struct hf_shape hf_wait_key_shape;      /* a key */
extern const struct hf_shape hf_wait_rotated_shape;  /* the answer of a rotation */
extern const struct hf_shape hf_turn_cancel_shape;   /* the answer of a turn's cancel */

#endif
