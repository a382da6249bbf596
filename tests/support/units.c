#include "support/units.h"

#include "support/unit.h"

struct hf_work_spec plain_unit(const char *name)
{
    return (struct hf_work_spec){ .size = sizeof(struct hf_work_spec),
                                  .source = HF_SOURCE_MANUAL,
                                  .source_id = name,
                                  .priority = -1,
                                  .disposition = HF_DISPOSITION_RERUNNABLE };
}

void make_unit(struct hf_store *store, const char *name)
{
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    struct hf_work_spec request = plain_unit(name);
    if (hf_work_create(store, NULL, &request, 1, 0, &answer, &err))
        fail_msg("%s", err.message);
    hf_answer_free(answer);
}

void make_session(struct hf_store *store, const char *session_id)
{
    struct hf_session_answer *made = NULL;
    struct hf_session_spec wanted = { .size = sizeof(wanted),
                                      .session_id = session_id,
                                      .agent = "a" };
    assert_int_equal(hf_session_create(store, NULL, &wanted, &made, NULL), 0);
    hf_session_answer_free(made);
}
