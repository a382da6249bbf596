/* Steps, commits, receipts and reading: the lines of durable-state.md 3.2 that sessions have. */

#include "conform/session_kit.h"

#include <string.h>

static struct talk begun(struct hf_conform *t, const char *text)
{
    kit_session(t, "s");
    send("s", NULL, text);
    return open_any();
}

test_case(d32_commit_moves_the_head_by_one_and_the_history_round_trips)
{
    struct talk talk = begun(t, "question");
    struct hf_record records[] = { record("first"), record("second") };
    struct hf_session_commit commit = kit_commit_of(&talk);
    struct hf_session_committed done;
    commit.records = records;
    commit.added_count = 2;
    commit.config = "{\"model\":\"m\"}";
    advance(10000);
    CODE(0, kit_commit(AT(t), commit, &done));
    EQ(1, done.head_revision);
    EQ(2, done.record_count);
    TRUE(!done.repeated);
    EQ(30000, head("s")->lease_remaining_ms); /* not released, so extended */
    uint8_t chain[32] = { 0 };
    for (int i = 0; i < 2; i++)
        CODE(0, hf_record_chain(chain, &records[i], chain, NULL));
    TRUE(memcmp(chain, done.chain, 32) == 0);
    const struct hf_session_answer *loaded = load(.session_id = "s");
    CODE(0, t->code);
    EQ(1, loaded->sessions->head_revision);
    SAME("{\"model\":\"m\"}", loaded->sessions->config);
    TRUE(memcmp(chain, loaded->sessions->chain, 32) == 0);
    EQ(2, loaded->node_count);
    SAME("first", kit_node_text(&loaded->nodes[0]));
    SAME("second", kit_node_text(&loaded->nodes[1]));
    EQ(1, loaded->nodes[1].ordinal);
    SAME(talk.turn_id, loaded->nodes[1].turn_id);
    TRUE(!loaded->nodes[0].provisional);
    TRUE(loaded->turn == NULL);
    IS("done", talk.turn_id);
    SAME("close_out", last_change(talk.turn_id)->event_type);
}

test_case(d32_the_same_commit_again_returns_its_receipt_without_a_lease)
{
    struct talk talk = begun(t, "question");
    struct hf_record one = record("answer");
    struct hf_session_commit commit = kit_commit_of(&talk);
    struct hf_session_committed first, again;
    commit.records = &one;
    commit.added_count = 1;
    commit.release = true;
    CODE(0, kit_commit(AT(t), commit, &first));
    TRUE(head("s")->owner == NULL);
    send("s", "k", "next");
    struct talk next = open_any();
    CODE(0, finish(&next, "another"));
    advance(HOUR(1));
    const char *before = picture();
    CODE(0, kit_commit(AT(t), commit, &again));
    TRUE(again.repeated);
    EQ(1, again.head_revision);
    EQ(1, again.record_count);
    TRUE(memcmp(first.chain, again.chain, 32) == 0);
    struct hf_record other = record("changed");
    commit.records = &other;
    CODE(HF_ECONFLICT, kit_commit(AT(t), commit, NULL));
    SAME("turn_id", t->err.field);
    UNCHANGED(before);
    EQ(2, head("s")->head_revision);
}

test_case(d32_commit_needs_the_live_lease_the_head_and_the_turn)
{
    struct talk talk = begun(t, "question");
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.token = NULL;
    CODE(HF_EINVAL, kit_commit(AT(t), commit, NULL));
    SAME("token", t->err.field);
    commit.token = "hf1.1.7.foreign";
    CODE(HF_ESESSIONLOST, kit_commit(AT(t), commit, NULL));
    commit = kit_commit_of(&talk);
    commit.head_revision = 1;
    CODE(HF_EHEADMOVED, kit_commit(AT(t), commit, NULL));
    commit = kit_commit_of(&talk);
    commit.record_count = 3; /* an ordinal that does not continue the head */
    CODE(HF_EHEADMOVED, kit_commit(AT(t), commit, NULL));
    commit = kit_commit_of(&talk);
    commit.turn_id = "another";
    CODE(HF_ESUPERSEDED, kit_commit(AT(t), commit, NULL));
    commit = kit_commit_of(&talk);
    commit.step = 1;
    CODE(HF_ESUPERSEDED, kit_commit(AT(t), commit, NULL));
    commit = kit_commit_of(&talk);
    commit.session_id = "none";
    CODE(HF_ENOTFOUND, kit_commit(AT(t), commit, NULL));
    commit = kit_commit_of(&talk);
    commit.status = HF_STATUS_QUEUED;
    CODE(HF_EINVAL, kit_commit(AT(t), commit, NULL));
    SAME("status", t->err.field);
    EQ(0, head("s")->head_revision);
    IS("running", talk.turn_id);
    advance(SEC(30)); /* lapsed, though no other claim came */
    CODE(HF_ESESSIONLOST, finish(&talk, "late"));
    EQ(0, load(.session_id = "s")->node_count);
}

test_case(d32_a_token_is_of_one_session_alone)
{
    struct talk talk = begun(t, "question");
    kit_session(t, "other");
    send("other", NULL, "question");
    struct talk foreign = talk;
    foreign.token = open_any().token; /* of the same fence, and live */
    const char *before = picture();
    CODE(HF_ESESSIONLOST, step_with(&foreign, record("one")));
    CODE(HF_ESESSIONLOST, finish(&foreign, "one"));
    CODE(HF_ESESSIONLOST, release(&foreign));
    CODE(HF_ESESSIONLOST, back(&foreign));
    UNCHANGED(before);
    EQ(0, head("s")->head_revision);
    EQ(0, load(.session_id = "s")->turn->step);
    CODE(0, finish(&talk, "one"));
}

test_case(d32_a_revision_at_its_ceiling_is_told_and_not_wrapped)
{
    struct talk talk = begun(t, "question");
    struct hf_session_commit commit = kit_commit_of(&talk);
    const char *before = picture();
    commit.head_revision = INT64_MAX;
    CODE(HF_EOVERFLOW, kit_commit(AT(t), commit, NULL));
    SAME("head_revision", t->err.field);
    commit.head_revision = INT64_MAX - 1;
    CODE(HF_EHEADMOVED, kit_commit(AT(t), commit, NULL));
    UNCHANGED(before);
    CODE(0, finish(&talk, "answer"));
}

test_case(an_input_that_ends_badly_has_the_reason_of_its_turn)
{
    static const char begins[] = "{\"kind\":\"k\",\"text\":\"";
    char long_reason[1025], long_outcome[1200];
    const struct {
        enum hf_status status;
        const char *outcome;
        const char *reason;
    } ends[] = {
        { HF_STATUS_FAILED, "{\"kind\":\"provider_error\",\"text\":\"no connection\"}",
          "provider_error: no connection" },
        { HF_STATUS_CANCELLED, "{\"kind\":\"cancelled\"}", "cancelled" },
        { HF_STATUS_TIMEOUT, "{}", "timeout" },
        { HF_STATUS_DONE, "{\"kind\":\"assistant_message\",\"text\":\"yes\"}", NULL },
        { HF_STATUS_FAILED, long_outcome, long_reason },
    };
    memset(long_reason, 'x', sizeof(long_reason));
    memcpy(long_reason, "k: ", 3);
    long_reason[1024] = '\0';
    memset(long_outcome, 'x', sizeof(long_outcome));
    memcpy(long_outcome, begins, sizeof(begins) - 1);
    memcpy(long_outcome + 1150, "\"}", 3);
    kit_session(t, "s");
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *input = send_id("s", "question");
        struct talk talk = open_any();
        struct hf_session_commit commit = kit_commit_of(&talk);
        commit.status = ends[i].status;
        commit.outcome = ends[i].outcome;
        commit.release = true;
        CODE(0, kit_commit(AT(t), commit, NULL));
        SAME(ends[i].reason, row(input)->status_reason);
    }
}

test_case(d32_of_two_commits_at_one_revision_one_applies)
{
    struct talk old = begun(t, "question");
    advance(SEC(30));
    struct talk talk = open_any();
    CODE(0, finish(&talk, "the successor's"));
    const char *before = picture();
    CODE(HF_ECONFLICT, finish(&old, "the predecessor's")); /* the turn has its receipt */
    UNCHANGED(before);
    EQ(1, head("s")->record_count);
}

test_case(d32_steps_store_provisional_nodes_that_a_commit_makes_final)
{
    struct talk talk = begun(t, "question");
    CODE(0, step_with(&talk, record("one"), transient("hint"), record("two")));
    EQ(1, talk.step);
    EQ(2, talk.node_count);
    CODE(0, step_with(&talk, transient("end")));
    const struct hf_session_answer *loaded = load(.session_id = "s");
    EQ(0, loaded->node_count); /* nothing is committed */
    EQ(0, loaded->sessions->record_count);
    EQ(4, loaded->turn->stored_count);
    SAME("one", kit_node_text(&loaded->turn->nodes[0]));
    SAME("hint", kit_node_text(&loaded->turn->nodes[1]));
    SAME("two", kit_node_text(&loaded->turn->nodes[2]));
    SAME("end", kit_node_text(&loaded->turn->nodes[3]));
    EQ(-1, loaded->turn->nodes[1].ordinal);
    EQ(1, loaded->turn->nodes[2].ordinal);
    TRUE(loaded->turn->nodes[2].provisional);
    EQ(2, loaded->turn->step);
    SAME(say("save of %s after step 2", talk.turn_id), loaded->turn->save.at);
    CODE(0, finish(&talk, "three"));
    loaded = load(.session_id = "s");
    EQ(3, loaded->node_count); /* no transient one is among them */
    SAME("three", kit_node_text(&loaded->nodes[2]));
    TRUE(loaded->turn == NULL);
}

test_case(d32_a_step_is_stored_once_under_its_number)
{
    struct talk talk = begun(t, "question");
    struct talk same_place = talk;
    CODE(0, step_with(&talk, record("one")));
    struct talk repeat = same_place;
    CODE(0, step_with(&repeat, record("one"))); /* its answer was lost */
    EQ(1, repeat.step);
    EQ(1, load(.session_id = "s")->turn->stored_count);
    struct talk other = same_place;
    CODE(HF_ESUPERSEDED, step_with(&other, record("another")));
    SAME("step", t->err.field);
    advance(SEC(20));
    CODE(0, step_with(&talk, record("two")));
    EQ(30000, head("s")->lease_remaining_ms); /* a step extends the lease */
    CODE(0, finish(&talk, "three"));
    CODE(HF_ESESSIONLOST, step_with(&talk, record("late")));
}

test_case(d32_usage_is_summed_by_source_and_model)
{
    for (int i = 0; i < 2; i++) {
        struct talk talk = begun(t, "question");
        struct hf_session_spent spent[] = {
            { "model", "m1", { .input = 10, .output = 5, .reasoning = 2 } },
            { "model", "m2", { .cache_read = 7 } },
            { "tool", NULL, { .cache_write = 1 } }
        };
        struct hf_session_commit commit = kit_commit_of(&talk);
        commit.spent = spent;
        commit.spent_count = 3;
        commit.release = true;
        CODE(0, kit_commit(AT(t), commit, NULL));
        CODE(0, kit_commit(AT(t), commit, NULL)); /* told again, counted once */
    }
    const struct hf_session_answer *loaded = load(.session_id = "s");
    EQ(3, loaded->usage_count);
    SAME("m1", loaded->usage[0].model);
    EQ(20, loaded->usage[0].usage.input);
    EQ(10, loaded->usage[0].usage.output);
    EQ(4, loaded->usage[0].usage.reasoning);
    EQ(14, loaded->usage[1].usage.cache_read);
    SAME("tool", loaded->usage[2].source);
    EQ(2, loaded->usage[2].usage.cache_write);
    struct talk talk = begun(t, "question");
    struct hf_session_spent wrong = { "model", "m", { .input = -1 } };
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.spent = &wrong;
    commit.spent_count = 1;
    CODE(HF_EINVAL, kit_commit(AT(t), commit, NULL));
    SAME("spent", t->err.field);
}

test_case(d32_usage_beyond_64_bits_is_told_and_not_wrapped)
{
    struct hf_session_spent most = { "model", "m", { .input = INT64_MAX } };
    for (int i = 0; i < 2; i++) {
        struct talk talk = begun(t, "question");
        struct hf_session_commit commit = kit_commit_of(&talk);
        EQ(i, load(.session_id = "s")->usage_count);
        commit.spent = &most;
        commit.spent_count = 1;
        commit.release = true;
        CODE(0, kit_commit(AT(t), commit, NULL));
    }
    load(.session_id = "s");
    CODE(HF_EOVERFLOW, t->code);
    SAME("usage", t->err.field);
    EQ(2, fresh("s")->head_revision);
}

/* SHA-256 of "abc". */
#define ABC                                                                              \
    {                                                                                    \
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d,    \
            0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4,      \
            0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad                                     \
    }

test_case(d32_a_blob_that_is_referred_to_must_be_stored)
{
    struct talk talk = begun(t, "question");
    struct hf_session_blob blob = { .hash = ABC };
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.blobs = &blob;
    commit.blob_count = 1;
    CODE(HF_EBLOB, kit_commit(AT(t), commit, NULL));
    EQ(0, head("s")->head_revision);
    IS("running", talk.turn_id);
    blob.bytes = (struct hf_span){ "abd", 3 };
    CODE(HF_EINVAL, kit_commit(AT(t), commit, NULL));
    SAME("blobs", t->err.field);
    blob.bytes = (struct hf_span){ "abc", 3 };
    CODE(0, kit_commit(AT(t), commit, NULL));
    talk = begun(t, "another"); /* the lease is still held, so it is not free */
    EQ(0, talk.answer->session_count);
    advance(SEC(30));
    talk = open_any();
    blob.bytes = (struct hf_span){ NULL, 0 };
    commit = kit_commit_of(&talk);
    commit.blobs = &blob;
    commit.blob_count = 1;
    CODE(0, kit_commit(AT(t), commit, NULL)); /* it is there by now */
}

/* Whether exactly these bytes are stored under the hash. */
static bool blob_is(struct hf_conform *t, const uint8_t hash[32], struct hf_span bytes)
{
    struct hf_session_answer *answer = NULL;
    CODE(0, hf_session_blob_get(t->store, hash, &answer, &t->err));
    bool same = answer && answer->blob.len == bytes.len &&
                memcmp(answer->blob.at, bytes.at, bytes.len) == 0;
    hf_session_answer_free(answer);
    return same;
}

test_case(session_a_blob_is_stored_once_under_its_hash)
{
    static const uint8_t abc[32] = ABC;
    uint8_t hash[32] = { 0 };
    struct hf_session_answer *answer = NULL;
    struct hf_span bytes = { "abc", 3 };
    CODE(HF_EBLOB, hf_session_blob_get(t->store, abc, &answer, &t->err));
    CODE(0, hf_session_blob_put(t->store, bytes, hash, &t->err));
    TRUE(memcmp(hash, abc, sizeof(hash)) == 0);
    CODE(0, hf_session_blob_put(t->store, bytes, hash, &t->err));
    TRUE(blob_is(t, abc, bytes));
    CODE(HF_EINVAL,
         hf_session_blob_put(t->store, (struct hf_span){ NULL, 0 }, hash, &t->err));
    SAME("bytes", t->err.field);
}

test_case(session_a_blob_may_have_attachment_bytes_and_no_more)
{
    const size_t most = 3670016;
    uint8_t hash[32] = { 0 };
    char *text = hf_alloc_system()->realloc(NULL, NULL, most + 1);
    TRUE(text);
    memset(text, 'x', most + 1);
    struct hf_span bytes = { text, most + 1 };
    CODE(HF_ETOOBIG, hf_session_blob_put(t->store, bytes, hash, &t->err));
    SAME("bytes", t->err.field);
    bytes.len = most;
    CODE(0, hf_session_blob_put(t->store, bytes, hash, &t->err));
    TRUE(blob_is(t, hash, bytes));
    hf_alloc_system()->free(NULL, text);
}

test_case(d32_units_of_the_outbox_are_made_with_the_commit_or_not_at_all)
{
    struct talk talk = begun(t, "question");
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = "job-1",
                                 .kind = "mail",
                                 .payload = "{}",
                                 .priority = -1 };
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.units = &unit;
    commit.unit_count = 1;
    commit.head_revision = 5;
    CODE(HF_EHEADMOVED, kit_commit(AT(t), commit, NULL));
    EQ(0, count_of(list(.kind = "mail")));
    commit.head_revision = 0;
    commit.release = true;
    CODE(0, kit_commit(AT(t), commit, NULL));
    CODE(0, kit_commit(AT(t), commit, NULL));
    EQ(1, count_of(list(.kind = "mail")));
    talk = begun(t, "another");
    commit = kit_commit_of(&talk);
    commit.units = &unit;
    commit.unit_count = 1;
    CODE(HF_ECONFLICT, kit_commit(AT(t), commit, NULL));
    SAME("units", t->err.field);
    EQ(1, head("s")->head_revision);
}

test_case(d32_budgets_of_bytes_and_rows_say_limit_and_size)
{
    struct talk talk = begun(t, "question");
    struct hf_record large = record(kit_filled(t, 'x', (size_t)HF_MAX_COMMIT_BYTES));
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.records = &large;
    commit.added_count = 1;
    CODE(HF_ETOOBIG, kit_commit(AT(t), commit, NULL));
    TRUE(contains(t->err.message, "commit_bytes allows 1048576"));
    struct hf_record *many = kit_memory(t, 513 * sizeof(*many));
    for (int i = 0; i < 513; i++)
        many[i] = record("x");
    commit.records = many;
    commit.added_count = 513;
    CODE(HF_ETOOBIG, kit_commit(AT(t), commit, NULL));
    TRUE(contains(t->err.message, "513 rows; commit_rows allows 512"));
    EQ(0, head("s")->head_revision);
    commit.added_count = 512;
    CODE(0, kit_commit(AT(t), commit, NULL));
    EQ(512, head("s")->record_count);
}

/* 28 bytes of outcome, 7 of config, 6 of usage, 11 of the unit, the rest of the blob. */
test_case(d32_the_budget_of_bytes_counts_all_that_a_commit_stores)
{
    struct talk talk = begun(t, "question");
    struct hf_session_blob blob = { .bytes = { kit_filled(t, 'x', 1048524), 1048524 } };
    struct hf_session_spent spent = { "model", "m", { .input = 1 } };
    struct hf_work_spec unit = { .size = sizeof(unit),
                                 .source = HF_SOURCE_MANUAL,
                                 .source_id = "job-1",
                                 .kind = "mail",
                                 .payload = "{}",
                                 .priority = -1 };
    struct hf_session_commit commit = kit_commit_of(&talk);
    CODE(0, hf_session_blob_put(t->store, blob.bytes, blob.hash, &t->err));
    commit.blobs = &blob;
    commit.spent = &spent;
    commit.units = &unit;
    commit.blob_count = commit.spent_count = commit.unit_count = 1;
    commit.config = "{\"a\":10}";
    CODE(HF_ETOOBIG, kit_commit(AT(t), commit, NULL));
    TRUE(contains(t->err.message, "1048577 bytes; commit_bytes allows 1048576"));
    commit.config = "{\"a\":1}";
    spent.model = "mm";
    CODE(HF_ETOOBIG, kit_commit(AT(t), commit, NULL));
    spent.model = "m";
    unit.queue = "q";
    CODE(HF_ETOOBIG, kit_commit(AT(t), commit, NULL));
    unit.queue = NULL;
    CODE(0, kit_commit(AT(t), commit, NULL));
}

test_case(d32_a_claim_loads_the_first_page_and_the_open_turn)
{
    struct talk talk = begun(t, "question");
    struct hf_record three[] = { record("0"), record("1"), record("2") };
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.records = three;
    commit.added_count = 3;
    commit.release = true;
    CODE(0, kit_commit(AT(t), commit, NULL));
    send("s", NULL, "more");
    struct talk next = open_by(.session_id = "s", .records = 2);
    TRUE(next.answer->loaded);
    EQ(2, next.answer->node_count);
    SAME("1", kit_node_text(&next.answer->nodes[1]));
    EQ(2, next.answer->next_ordinal);
    EQ(0, next.answer->turn->stored_count);
    struct hf_effect_entry begun_one = { .key = "1",
                                         .kind = "llm_call",
                                         .recovery = HF_RECOVERY_KEYED,
                                         .envelope = { "{}", 2 } };
    struct hf_session_step step = kit_step_of(AT(t), &next);
    step.records = three;
    step.record_count = 1;
    step.begun = &begun_one;
    step.begun_count = 1;
    CODE(0, kit_store_step(AT(t), &next, step));
    advance(HOUR(1));
    struct talk last = open_by(.session_id = "s", .records = 3);
    TRUE(last.answer->loaded);
    EQ(3, last.answer->node_count);
    EQ(0, last.answer->next_ordinal);
    SAME(next.turn_id, last.turn_id);
    EQ(1, last.answer->turn->stored_count);
    SAME("0", kit_node_text(&last.answer->turn->nodes[0]));
    EQ(1, last.answer->turn->entry_count);
    SAME("1", last.answer->turn->entries[0].key);
    advance(HOUR(1));
    struct talk plain = open_id("s");
    TRUE(!plain.answer->loaded);
    EQ(0, plain.answer->node_count);
    struct hf_session_claim wrong = { .size = sizeof(wrong), .session_id = "s" };
    struct hf_session_answer *none = NULL;
    wrong.records = 100000;
    CODE(HF_ETOOBIG, hf_session_claim(t->store, &t->who, &wrong, &none, NULL));
}

test_case(d32_pages_are_of_the_head_that_the_first_one_had)
{
    struct talk talk = begun(t, "question");
    struct hf_record five[] = { record("0"), record("1"), record("2"), record("3"),
                                record("4") };
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.records = five;
    commit.added_count = 5;
    commit.release = true;
    CODE(0, kit_commit(AT(t), commit, NULL));
    const struct hf_session_answer *page = load(.session_id = "s", .limit = 2);
    EQ(2, page->node_count);
    EQ(2, page->next_ordinal);
    talk = begun(t, "more");
    CODE(0, finish(&talk, "5"));
    const struct hf_session *first = page->sessions;
    page = load(.session_id = "s", .limit = 2, .from_ordinal = 2,
                .head_revision = first->head_revision, .record_count = 5);
    SAME("2", kit_node_text(&page->nodes[0]));
    EQ(4, page->next_ordinal);
    page = load(.session_id = "s", .limit = 2, .from_ordinal = 4,
                .head_revision = first->head_revision, .record_count = 5);
    EQ(1, page->node_count); /* what came later is not in it */
    EQ(0, page->next_ordinal);
    load(.session_id = "s", .from_ordinal = 4, .head_revision = 9, .record_count = 5);
    CODE(HF_EHEADMOVED, t->code);
    load(.session_id = "none");
    CODE(HF_ENOTFOUND, t->code);
    struct hf_session_answer *node = NULL;
    CODE(0, hf_session_node(t->store, "s", 5, &node, NULL));
    SAME("5", kit_node_text(node->nodes));
    hf_session_answer_free(node);
    CODE(HF_ENOTFOUND, hf_session_node(t->store, "s", 6, &node, NULL));
}

test_case(d32_what_was_committed_survives_a_reopen)
{
    struct talk talk = begun(t, "question");
    CODE(0, step_with(&talk, record("one")));
    CODE(0, finish(&talk, "two"));
    reopen();
    const struct hf_session_answer *loaded = load(.session_id = "s");
    EQ(2, loaded->node_count);
    EQ(1, loaded->sessions->head_revision);
    struct hf_record one = record("two");
    struct hf_session_commit commit = kit_commit_of(&talk);
    commit.records = &one;
    commit.added_count = 1;
    struct hf_session_committed again;
    CODE(0, kit_commit(AT(t), commit, &again));
    TRUE(again.repeated);
}
