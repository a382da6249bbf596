/* The system's time zones: TZif files, read once and kept. One thread at a time. */
#ifndef HF_STORE_SCHEDULE_ZONEFILE_H
#define HF_STORE_SCHEDULE_ZONEFILE_H

#include "core/schedule/zone.h"

struct hf_zones {
    struct hf_arena arena;
    struct zone_entry *first;
};

void hf_zones_init(struct hf_zones *zones, const struct hf_alloc *alloc);
void hf_zones_fini(struct hf_zones *zones);

/* The zone of an IANA name, which lives as long as `zones`. "UTC" needs no file. HF_EINVAL
 * naming "zone" for a name that is none or is not known here; names cannot leave the folder
 * of zones. HF_ECORRUPT for a damaged file. */
HF_MUST_USE int hf_zones_get(struct hf_zones *zones, const char *name,
                             const struct hf_zone **ret_zone, struct hf_err *err);

#endif
