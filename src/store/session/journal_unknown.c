/* Effects of processes and operations that need a person: a list of them, and the
 * decisions of operators about them. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/session/session.h"

#define UNKNOWN(name) HF_COL_JOURNAL_UNKNOWN_##name

/* The columns of journal_show begin as those of journal_unknown do: both are journal_shown. */
static int show(struct hf_journal_effects *effects, const struct hf_call *found, size_t i,
                struct hf_err *err)
{
    const struct hf_journal_effect effect = {
        .scope = hf_out_text(found, i, UNKNOWN(SCOPE)),
        .scope_id = hf_out_text(found, i, UNKNOWN(SCOPE_ID)),
        .key = hf_out_text(found, i, UNKNOWN(EFFECT_KEY)),
        .tenant = hf_out_text(found, i, UNKNOWN(TENANT)),
        .kind = hf_out_text(found, i, UNKNOWN(KIND)),
        .recovery = hf_out_text(found, i, UNKNOWN(RECOVERY)),
        .status = hf_out_text(found, i, UNKNOWN(STATUS)),
        .owner = hf_out_text(found, i, UNKNOWN(OWNER)),
        .envelope = hf_out_text(found, i, UNKNOWN(ENVELOPE)),
        .outcome = hf_out_text(found, i, UNKNOWN(OUTCOME)),
        .known = hf_out_text(found, i, UNKNOWN(KNOWN)),
        .started_at = hf_out_i64(found, i, UNKNOWN(STARTED_AT)),
        .settled_at = hf_out_i64(found, i, UNKNOWN(SETTLED_AT)),
        .resolved_at = hf_out_i64(found, i, UNKNOWN(RESOLVED_AT)),
        .actor_kind = hf_out_text(found, i, UNKNOWN(ACTOR_KIND)),
        .actor = hf_out_text(found, i, UNKNOWN(ACTOR)),
    };
    return hf_journal_effects_add(effects, &effect) ? hf_fail_plain(err, HF_ENOMEM) : 0;
}

int sql_journal_unknown(struct hf_store *handle, const struct hf_caller *who,
                        const struct hf_journal_key *after, size_t limit,
                        struct hf_journal_effects *effects, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_JOURNAL_UNKNOWN, HF_ANY_COUNT);
    hf_ops_text(&ops, after ? hf_scope_name(after->scope) : "");
    hf_ops_text(&ops, after ? after->scope_id : "");
    hf_ops_text(&ops, after ? after->key : "");
    hf_ops_text(&ops, who->tenant[0] ? who->tenant : NULL);
    hf_ops_i64(&ops, (int64_t)limit);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < found->out_count; i++)
        rc = show(effects, found, i, err);
    hf_ops_fini(&ops);
    return rc;
}

/* Why nothing was written; 0 where it is as the request says. */
static int explain(const struct hf_call *found, const struct hf_journal_resolve *request,
                   struct hf_err *err)
{
    const char *status = hf_out_text(found, 0, HF_COL_JOURNAL_SHOW_STATUS);
    const char *actor = hf_out_text(found, 0, HF_COL_JOURNAL_SHOW_ACTOR);
    const char *outcome = hf_out_text(found, 0, HF_COL_JOURNAL_SHOW_WHOLE_OUTCOME);
    if (hf_same(status, hf_entry_status_name(HF_ENTRY_STARTED)))
        return hf_fail(err, HF_EHELD, "key",
                       "%.100s performs the effect: its lease is live",
                       hf_out_text(found, 0, HF_COL_JOURNAL_SHOW_OWNER));
    if (hf_same(status, hf_entry_status_name(request->status)) &&
        hf_same(outcome, request->outcome))
        return 0;
    return hf_fail(err, HF_ECONFLICT, "status", "the effect was %s %s by %.100s",
                   actor ? "resolved as" : "settled as", status,
                   actor ? actor : hf_out_text(found, 0, HF_COL_JOURNAL_SHOW_OWNER));
}

static void add_resolve(struct hf_ops *ops, const struct hf_caller *who,
                        const struct hf_journal_resolve *request)
{
    const char *scope = hf_scope_name(request->of.scope);
    hf_ops_call(ops, HF_SQL_JOURNAL_RESOLVE, HF_ANY_COUNT);
    hf_ops_text(ops, scope);
    hf_ops_text(ops, request->of.scope_id);
    hf_ops_text(ops, request->of.key);
    hf_ops_text(ops, hf_entry_status_name(request->status));
    hf_ops_text(ops, request->outcome);
    hf_ops_text(ops, who->actor_kind);
    hf_ops_text(ops, who->actor);
    hf_ops_call(ops, HF_SQL_JOURNAL_SHOW, HF_ANY_COUNT);
    hf_ops_text(ops, scope);
    hf_ops_text(ops, request->of.scope_id);
    hf_ops_text(ops, request->of.key);
}

/* The entry is read in the transaction that writes it, so it says why nothing was written. */
int sql_journal_resolve(struct hf_store *handle, const struct hf_caller *who,
                        const struct hf_journal_resolve *request,
                        struct hf_journal_effects *effects, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    add_resolve(&ops, who, request);
    int rc = hf_ops_write(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 1) : NULL;
    if (rc == 0 && found->out_count == 0)
        rc = hf_fail(err, HF_ENOTFOUND, "key", "%s %.100s has no effect %.100s",
                     hf_scope_name(request->of.scope), request->of.scope_id,
                     request->of.key);
    if (rc == 0 && hf_ops_result(&ops, 0)->changed == 0)
        rc = explain(found, request, err);
    if (rc == 0)
        rc = show(effects, found, 0, err);
    hf_ops_fini(&ops);
    return rc;
}
