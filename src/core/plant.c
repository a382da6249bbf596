/* See plant.h. Empty but in the library with planted bugs. */

#include "core/plant.h"

#ifdef HF_PLANTS
#    include <string.h>

#    include "base/text.h"
#    include "core/rare.h"

int hf_planted = HF_PLANT_NONE;
unsigned long long hf_rare_hits[HF_RARE_COUNT];
int hf_plant_edits = 0;

/* In the statement whose name begins so: this part, and what takes its place. */
static const struct edit {
    enum hf_plant plant;
    const char *statement;
    const char *part;
    const char *instead;
} edits[] = {
    { HF_PLANT_FENCE_KEPT_IN_SQL, "work_claim_", "lease_fence = q.lease_fence + 1",
      "lease_fence = max(q.lease_fence, 1)" },
    { HF_PLANT_SETTLE_UNFENCED, "work_settle",
      "AND work_state.claim_group = a.a4 AND work_state.lease_fence = a.a3", "" },
    { HF_PLANT_RENEW_UNFENCED, "work_renew", "AND claim_group = $4 AND lease_fence = $3",
      "AND $3 IS NOT NULL AND $4 IS NOT NULL" },
    { HF_PLANT_CAS_DROPPED, "work_write",
      "AND revision = $2 AND lease_expires_at IS NOT DISTINCT FROM $3",
      "AND ($2 IS NOT NULL OR $3 IS NULL)" },
    { HF_PLANT_LEASE_CAS_DROPPED, "lease_write_session",
      "AND lease_fence = $2\n   AND claim_group IS NOT DISTINCT FROM $3 AND "
      "lease_expires_at IS NOT DISTINCT FROM $4",
      "AND ($2 IS NOT NULL OR $3 IS NULL OR $4 IS NOT NULL)" },
    { HF_PLANT_LIMIT_OVER, "limit_open", "l.granted FROM work_limit",
      "l.granted + 1 FROM work_limit" },
    { HF_PLANT_LIMIT_STUCK, "limit_follow", "SET gate = NULL,", "SET gate = gate," },
    { HF_PLANT_RATE_FREE, "limit_taken", "ELSE level - granted * rate_ms END",
      "ELSE level END" },
    { HF_PLANT_DEDUP_IGNORED, "work_insert_spec_dedup", "WHERE NOT EXISTS",
      "WHERE 1 OR NOT EXISTS" },
    { HF_PLANT_SLOT_TWICE, "schedule_advance", "AND work_schedule.tick = a.a3", "" },
    { HF_PLANT_AMNESTY_LAPSED, "amnesty_give",
      "AND w.lease_expires_at >= hf_lease_now() - $1", "" },
};

bool hf_plant_in_sql(void)
{
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        if (edits[i].plant == (enum hf_plant)hf_planted)
            return true;
    }
    return false;
}

const char *hf_plant_sql(const char *name, const char *text)
{
    static char changed[16384]; /* until the next call: SQLite keeps a copy */
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        const struct edit *edit = &edits[i];
        const char *at = edit->plant == (enum hf_plant)hf_planted &&
                                 hf_starts_with(name, edit->statement)
                             ? strstr(text, edit->part)
                             : NULL;
        if (!at)
            continue;
        size_t before = (size_t)(at - text);
        size_t put = strlen(edit->instead);
        const char *rest = at + strlen(edit->part);
        if (before + put + strlen(rest) >= sizeof(changed))
            continue;
        memcpy(changed, text, before);
        memcpy(changed + before, edit->instead, put);
        memcpy(changed + before + put, rest, strlen(rest) + 1);
        hf_plant_edits++;
        return changed;
    }
    return text;
}
#endif
