/* Verbs over sessions in short form, for the cases. As in kit.h, what they return lives until
 * the case ends, and is zeroed after a failure. */
#ifndef HF_CONFORM_SESSION_KIT_H
#define HF_CONFORM_SESSION_KIT_H

#include "conform/kit.h"

/* A session that is claimed, and the state of its turn: what a driver would remember. */
struct talk {
    const char *session_id;
    const char *token;
    const char *turn_id;
    int64_t head_revision;
    int64_t record_count;
    int64_t step;
    int64_t node_count;
    uint8_t chain[32];
    const struct hf_session_answer *answer;
};

const struct hf_session_answer *kit_new_session(struct hf_conform *t,
                                                struct hf_session_spec request);
#define new_session(...) kit_new_session(AT(t), (struct hf_session_spec){ __VA_ARGS__ })

/* The JSON of a user's message with this text. */
const char *kit_message(struct hf_conform *t, const char *text);
const struct hf_item *kit_send(struct hf_conform *t, const char *session_id,
                               const char *key, const char *text);
#define send(session_id, key, text) kit_send(AT(t), (session_id), (key), (text))
#define send_id(session_id, text) (send(session_id, NULL, text)->work.work_id)

/* Claims: t->code says how it went. Fresh owners, unless the claim names one. */
struct talk kit_open(struct hf_conform *t, struct hf_session_claim claim);
#define open_by(...) kit_open(AT(t), (struct hf_session_claim){ __VA_ARGS__ })
#define open_id(id) open_by(.session_id = (id))
/* Any session of agent "a". */
struct talk kit_open_any(struct hf_conform *t, const char *agent);
#define open_any() kit_open_any(AT(t), "a")

/* The session as it is. */
const struct hf_session *kit_head(struct hf_conform *t, const char *session_id);
#define head(session_id) kit_head(AT(t), (session_id))
/* hf_session_head */
const struct hf_session *kit_fresh(struct hf_conform *t, const char *session_id);
#define fresh(session_id) kit_fresh(AT(t), (session_id))
const struct hf_session_answer *kit_load(struct hf_conform *t,
                                         struct hf_session_load request);
#define load(...) kit_load(AT(t), (struct hf_session_load){ __VA_ARGS__ })
const struct hf_session_answer *kit_inputs(struct hf_conform *t, const char *session_id);
#define inputs(session_id) kit_inputs(AT(t), (session_id))

/* A record with this text by the assistant, that lives until the case ends. */
struct hf_record kit_record(struct hf_conform *t, const char *text);
struct hf_record kit_transient(struct hf_conform *t, const char *text);
#define record(text) kit_record(AT(t), (text))
#define transient(text) kit_transient(AT(t), (text))

/* A step with these records; moves the talk on when it was stored. */
int kit_step(struct hf_conform *t, struct talk *talk, const struct hf_record *records,
             size_t count);
#define step_with(talk, ...)                                                             \
    kit_step(AT(t), (talk), (struct hf_record[]){ __VA_ARGS__ },                         \
             sizeof((struct hf_record[]){ __VA_ARGS__ }) / sizeof(struct hf_record))

/* The next step of the talk's turn: a save that names it, no records. */
struct hf_session_step kit_step_of(struct hf_conform *t, const struct talk *talk);
/* Stores it; moves the talk on when it was stored. */
int kit_store_step(struct hf_conform *t, struct talk *talk, struct hf_session_step step);

/* The commit that the talk's turn would make, with no records. */
struct hf_session_commit kit_commit_of(const struct talk *talk);
/* Commit; *ret tells what came of it. Returns the code. */
int kit_commit(struct hf_conform *t, struct hf_session_commit commit,
               struct hf_session_committed *ret_committed);
/* One record with this text and the release of the lease. */
int kit_finish(struct hf_conform *t, const struct talk *talk, const char *text);
#define finish(talk, text) kit_finish(AT(t), (talk), (text))

/* One page of hf_session_unknown. */
const struct hf_session_answer *kit_unknown(struct hf_conform *t, const char *after,
                                            size_t limit);
#define unknown(after, limit) kit_unknown(AT(t), (after), (limit))

int kit_release(struct hf_conform *t, const struct talk *talk);
int kit_back(struct hf_conform *t, const struct talk *talk, hf_ms delay_ms);
#define release(talk) kit_release(AT(t), (talk))
#define back(talk) kit_back(AT(t), (talk), 0)

/* The text of a node's only part, for messages that the kit made. */
const char *kit_node_text(const struct hf_node *node);

#endif
