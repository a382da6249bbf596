/* Every limit that a store's input has: at the limit, and one past it. */

#include "conform/kit.h"

#define KEY ((size_t)HF_MAX_KEY_BYTES)

static const char *key_of(struct hf_conform *t, size_t bytes)
{
    return kit_filled(t, 'k', bytes);
}

test_case(limit_keys)
{
    const char *fits = key_of(t, KEY);
    const char *over = key_of(t, KEY + 1);
    CODE(0,
         create(.source_id = fits, .source_run_id = fits, .kind = fits, .queue = fits,
                .lane_key = fits, .dedup_key = fits, .idempotency_key = fits, .ref = fits)
             ->code);
    const char *before = picture();
    CODE(HF_ETOOBIG, create(.source_id = over)->code);
    CODE(HF_ETOOBIG, create(.source_run_id = over)->code);
    CODE(HF_ETOOBIG, create(.kind = over)->code);
    CODE(HF_ETOOBIG, create(.queue = over)->code);
    CODE(HF_ETOOBIG, create(.lane_key = over)->code);
    CODE(HF_ETOOBIG, create(.dedup_key = over)->code);
    CODE(HF_ETOOBIG, create(.idempotency_key = over)->code);
    CODE(HF_ETOOBIG, create(.ref = over)->code);
    CODE(HF_EINVAL, create(.kind = "")->code);
    CODE(HF_EINVAL, create(.queue = "a\nb")->code);
    UNCHANGED(before);
}

test_case(limit_keys_of_a_holder)
{
    const char *fits = key_of(t, KEY);
    const char *over = key_of(t, KEY + 1);
    const char *id = new_id();
    CODE(HF_ETOOBIG, claim(.id = id, .owner = over)->code);
    CODE(HF_ETOOBIG, claim(.id = id, .incarnation = over)->code);
    CODE(HF_ETOOBIG, claim(.id = id, .nonce = over)->code);
    const struct hf_item *taken = claim(.id = id, .owner = fits, .incarnation = fits,
                                        .nonce = fits);
    CODE(0, taken->code);
    struct held h = { id, taken->token };
    CODE(HF_ETOOBIG, wait_for(h, HF_STATUS_WAITING_USER, over)->code);
    CODE(0, wait_for(h, HF_STATUS_WAITING_USER, fits)->code);
    CODE(0, change(.verb = HF_VERB_RESUME, .ref = fits)->code);
}

/* A JSON string of exactly this many bytes, quotes and all. */
static const char *json_of(struct hf_conform *t, size_t bytes)
{
    char *text = kit_memory(t, bytes + 1);
    for (size_t i = 0; text && i < bytes; i++)
        text[i] = i == 0 || i == bytes - 1 ? '"' : 'x';
    return text;
}

test_case(limit_payload)
{
    const char *fits = json_of(t, (size_t)HF_MAX_PAYLOAD_BYTES);
    const char *over = json_of(t, (size_t)HF_MAX_PAYLOAD_BYTES + 1);
    struct held h = running(.payload = fits);
    SAME(fits, row(h.id)->payload);
    CODE(HF_ETOOBIG, create(.payload = over)->code);
    SAME("payload", t->err.field);
    wait_for(h, HF_STATUS_WAITING_USER, "r");
    CODE(HF_ETOOBIG, change(.verb = HF_VERB_RESUME, .id = h.id, .payload = over)->code);
    CODE(0, change(.verb = HF_VERB_RESUME, .id = h.id, .payload = fits)->code);
    SAME(fits, claim()->work.resume_payload);
}

test_case(limit_event_payload)
{
    struct held h = running();
    CODE(0, change(.verb = HF_VERB_APPEND, .id = h.id, .token = h.token, .type = "p",
                   .payload = json_of(t, (size_t)HF_MAX_EVENT_BYTES))
                ->code);
    CODE(HF_ETOOBIG,
         change(.verb = HF_VERB_APPEND, .id = h.id, .token = h.token, .type = "p",
                .payload = json_of(t, (size_t)HF_MAX_EVENT_BYTES + 1))
             ->code);
}

test_case(limit_json_depth)
{
    char *text = kit_memory(t, 200);
    size_t depth = (size_t)HF_MAX_JSON_DEPTH;
    for (size_t i = 0; text && i < depth; i++) {
        text[i] = '[';
        text[2 * depth - 1 - i] = ']';
    }
    CODE(0, create(.payload = text)->code);
    for (size_t i = 0; text && i <= depth; i++) {
        text[i] = '[';
        text[2 * depth + 1 - i] = ']';
    }
    CODE(HF_ETOOBIG, create(.payload = text)->code);
}

test_case(limit_reason_and_summary)
{
    const char *reason = key_of(t, (size_t)HF_MAX_REASON_BYTES);
    const char *summary = key_of(t, (size_t)HF_MAX_SUMMARY_BYTES);
    struct held h = running();
    CODE(HF_ETOOBIG, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                            .status = HF_STATUS_DONE,
                            .reason = key_of(t, (size_t)HF_MAX_REASON_BYTES + 1))
                         ->code);
    CODE(HF_ETOOBIG, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                            .status = HF_STATUS_DONE,
                            .summary = key_of(t, (size_t)HF_MAX_SUMMARY_BYTES + 1))
                         ->code);
    IS("running", h.id);
    CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                   .status = HF_STATUS_DONE, .reason = reason, .summary = summary)
                ->code);
    SAME(reason, row(h.id)->status_reason);
}

test_case(limit_references)
{
    const char *refs[65];
    for (int i = 0; i < 65; i++)
        refs[i] = say("file:%d", i);
    struct held h = running();
    CODE(HF_ETOOBIG, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                            .status = HF_STATUS_DONE, .outputs = refs, .output_count = 65)
                         ->code);
    CODE(HF_ETOOBIG,
         change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                .status = HF_STATUS_DONE, .evidence = refs, .evidence_count = 65)
             ->code);
    CODE(0, change(.verb = HF_VERB_CLOSE_OUT, .id = h.id, .token = h.token,
                   .status = HF_STATUS_DONE, .outputs = refs, .output_count = 64,
                   .evidence = refs, .evidence_count = 64)
                ->code);
}

test_case(limit_retry_policy)
{
    size_t fits = (size_t)HF_MAX_POLICY_BYTES;
    char *text = kit_memory(t, fits + 2);
    if (!text)
        return;
    for (size_t i = 0; i < fits; i++)
        text[i] = ' ';
    text[0] = '{';
    text[fits - 1] = '}';
    CODE(0, create(.retry_policy = text)->code);
    text[fits - 1] = ' ';
    text[fits] = '}';
    CODE(HF_ETOOBIG, create(.retry_policy = text)->code);
}

test_case(limit_numbers)
{
    CODE(0, create(.priority = 9)->code);
    CODE(HF_EINVAL, create(.priority = 10)->code);
    CODE(HF_EINVAL, create(.priority = -2)->code);
    CODE(0, create(.max_attempts = 1000000)->code);
    CODE(HF_EINVAL, create(.max_attempts = 1000001)->code);
    CODE(HF_EINVAL, create(.max_attempts = -1)->code);
    CODE(0, create(.delay_ms = HF_MAX_DURATION_MAX_MS)->code);
    CODE(HF_EINVAL, create(.delay_ms = HF_MAX_DURATION_MAX_MS + 1)->code);
    CODE(HF_EINVAL, create(.exec_timeout_ms = INT64_MAX)->code);
    CODE(HF_EINVAL, create(.start_timeout_ms = -1)->code);
    CODE(0, create(.start_timeout_ms = HF_MAX_DURATION_MAX_MS,
                   .exec_timeout_ms = HF_MAX_DURATION_MAX_MS)
                ->code);
}

test_case(limit_batch)
{
    size_t most = (size_t)HF_MAX_BATCH;
    struct hf_work_spec *news = kit_memory(t, (most + 1) * sizeof(*news));
    struct hf_change *changes = kit_memory(t, (most + 1) * sizeof(*changes));
    if (!news || !changes)
        return;
    kit_create_many(AT(t), news, most + 1, 0);
    CODE(HF_ETOOBIG, t->code);
    EQ(0, count_of(list()));
    const struct hf_answer *made = kit_create_many(AT(t), news, most, 0);
    CODE(0, t->code);
    EQ(1000, count_of(made));
    claim_many(.limit = most + 1);
    CODE(HF_ETOOBIG, t->code);
    const struct hf_answer *taken = claim_many(.limit = most);
    EQ(1000, count_of(taken));
    for (size_t i = 0; i < most; i++)
        changes[i] = (struct hf_change){ .verb = HF_VERB_CLOSE_OUT,
                                         .id = item_of(taken, i)->work.work_id,
                                         .token = item_of(taken, i)->token,
                                         .status = HF_STATUS_DONE };
    changes[most] =
        (struct hf_change){ .verb = HF_VERB_CANCEL, .id = "x", .reason = "r" };
    kit_change_many(AT(t), changes, most + 1, HF_BRIEF);
    CODE(HF_ETOOBIG, t->code);
    kit_change_many(AT(t), changes, most, HF_BRIEF);
    CODE(0, t->code);
    EQ(0, stats().by_status[HF_STATUS_RUNNING]);
}

test_case(limit_kinds_and_pages)
{
    const char *kinds[33];
    for (int i = 0; i < 33; i++)
        kinds[i] = say("k%d", i);
    create(.kind = "k31");
    claim_many(.kinds = kinds, .kind_count = 33);
    CODE(HF_ETOOBIG, t->code);
    EQ(1, count_of(claim_many(.kinds = kinds, .kind_count = 32)));
    list(.limit = 1001);
    CODE(HF_ETOOBIG, t->code);
    list(.limit = 1000);
    CODE(0, t->code);
}
