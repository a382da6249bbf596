/* Entries of the effect journal that do not fit: those of turns to their turn, those of processes
 * and operations to themselves. */
#include "store/doctor/doctor.h"

static void say_entry(struct doctor_finder *finder, const struct hf_call *rows, size_t i)
{
    doctor_say(finder, hf_out_text(rows, i, 0));
    doctor_say(finder, ", effect ");
    doctor_say(finder, hf_out_text(rows, i, 1));
    doctor_say(finder, ": ");
    doctor_say(finder, hf_out_text(rows, i, 2));
}

static int check_turns(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_EFFECTS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        say_entry(finder, hf_ops_result(&ops, 0), i);
        doctor_tell(
            finder, true, "effects",
            "look at the session's turn before it continues; if rows were edited, "
            "restore the store from a backup, then run `holdfast store bump`");
    }
    hf_ops_fini(&ops);
    return rc;
}

/* An entry of a process that is not there is no fault: a begin takes any id. */
static int check_scopes(struct doctor_finder *finder, struct hf_err *err)
{
    struct hf_ops ops;
    int rc = doctor_ask(finder, &ops, HF_SQL_DOCTOR_SCOPE_EFFECTS, err);
    for (size_t i = 0; rc == 0 && i < hf_ops_result(&ops, 0)->out_count; i++) {
        const struct hf_call *rows = hf_ops_result(&ops, 0);
        bool bad = hf_out_i64(rows, i, 3) != 0;
        say_entry(finder, rows, i);
        doctor_tell(finder, bad, "effects",
                    bad ? "the store was changed around the guards: restore it from a "
                          "backup, then run `holdfast store bump`"
                        : "its host removes it with hf_journal_retire");
    }
    hf_ops_fini(&ops);
    return rc;
}

int doctor_effects(struct doctor_finder *finder, struct hf_err *err)
{
    int rc = check_turns(finder, err);
    return rc ? rc : check_scopes(finder, err);
}
