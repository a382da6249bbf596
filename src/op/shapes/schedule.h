/* Schedules as rows that operations show, and the answers of their operations. */
#ifndef HF_OP_SHAPES_SCHEDULE_H
#define HF_OP_SHAPES_SCHEDULE_H

#include "core/schedule/schedule.h"

extern const struct hf_shape hf_schedule_gone_shape;   /* facts of a removal */
extern const struct hf_shape hf_schedule_shown_shape;  /* facts next to one schedule */
extern const struct hf_shape hf_upcoming_shape;        /* struct hf_times */
extern const struct hf_shape hf_slots_shape;           /* struct hf_times */
extern const struct hf_shape hf_skip_shape;            /* struct hf_schedule_skip */
extern const struct hf_shape hf_sync_shape;            /* struct hf_sync_report */
extern const struct hf_shape hf_schedule_report_shape; /* struct hf_schedule_report */

#endif
