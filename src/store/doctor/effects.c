/* Entries of the effect journal that do not fit their turn. */
#include "store/doctor/doctor.h"

int doctor_effects(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_EFFECTS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        doctor_say(finder, hf_cell_text(rows, i, 0));
        doctor_say(finder, ", effect ");
        doctor_say(finder, hf_cell_text(rows, i, 1));
        doctor_say(finder, ": ");
        doctor_say(finder, hf_cell_text(rows, i, 2));
        doctor_tell(finder, true, "effects",
                    "look at the session's turn before it goes on; if rows were edited, "
                    "restore the store from a backup, then run `holdfast store bump`");
    }
    hf_ops_fini(&ops);
    return rc;
}
