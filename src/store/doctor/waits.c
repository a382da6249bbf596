/* Waits that do not fit their turn. */
#include "store/doctor/doctor.h"

int doctor_waits(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_WAITS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        doctor_say(finder, "wait ");
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_WAITS_WAIT_ID));
        doctor_say(finder, ": ");
        doctor_say(finder, hf_out_text(rows, i, HF_COL_DOCTOR_WAITS_FAULT));
        doctor_tell(
            finder, true, "waits",
            "the store was changed around the guards: revoke the wait, or restore "
            "the store from a backup and run `holdfast store bump`");
    }
    hf_ops_fini(&ops);
    return rc;
}
