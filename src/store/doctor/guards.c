/* The guards of a file: the triggers that the migrations make. The engine does not keep plain SQL
 * from dropping them, and each store that was copied has made them anew. */
#include <string.h>

#include "base/text.h"
#include "store/batch/sql_gen.h"
#include "store/doctor/doctor.h"

#define TOLD 5
#define PREFIX "copy_on_" /* of the statement that makes a guard; its name follows */

/* Without the line ends behind it. */
static size_t length_of(const char *text)
{
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '\n')
        len--;
    return len;
}

/* From the name of the trigger on: what is before it differs between a statement and the engine's
 * copy of it. */
static const char *body_of(const char *text, const char *name)
{
    const char *body = text ? strstr(text, name) : NULL;
    return body ? body : "";
}

/* What is wrong with the guard; NULL: nothing. */
static const char *fault_of(const struct hf_call *rows, const char *name,
                            const char *text)
{
    for (size_t i = 0; i < rows->out_count; i++) {
        const char *stored = hf_out_text(rows, i, HF_COL_DOCTOR_TRIGGERS_SQL);
        if (!hf_same(hf_out_text(rows, i, HF_COL_DOCTOR_TRIGGERS_NAME), name))
            continue;
        const char *is = body_of(stored, name), *made = body_of(text, name);
        size_t len = length_of(made);
        bool same = length_of(is) == len && memcmp(is, made, len) == 0;
        return same ? NULL : " was changed";
    }
    return " is missing";
}

int doctor_lite_guards(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    size_t faults = 0;
    if (!hf_same(sql_store_of(finder->handle)->sql->methods->name, "sqlite"))
        return 0;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_TRIGGERS, err);
    for (size_t i = 0; rc == 0 && i < hf_copy_guard_count && faults < TOLD; i++) {
        const struct hf_sql_text *made = &hf_sql_lite[hf_copy_on[i]];
        const char *name = made->name + strlen(PREFIX);
        const char *fault = fault_of(hf_ops_result(&ops, 0), name, made->text);
        if (!fault)
            continue;
        faults++;
        doctor_say(finder, "the trigger ");
        doctor_say(finder, name);
        doctor_say(finder, fault);
        doctor_say(finder, ": plain SQL can write what the ledger would refuse");
        doctor_tell(finder, false, "guards",
                    "make it again, as `holdfast migrate --dump-sql` shows it");
    }
    hf_ops_fini(&ops);
    return rc;
}
