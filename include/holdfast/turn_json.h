/* The values of turns and cells as JSON, both ways: for stores that keep them, and for hosts
 * in other languages. The same value is always the same bytes; what a decoder returns is
 * the value that was encoded.
 *
 * Form (docs/internals/turn-json.md): one object, members named and ordered as in the
 * struct. A member that says nothing (0, false, empty, NULL) is left out; an enum is its
 * word, and the first word where it is left out; a hash is 64 hex digits; a member that
 * holds JSON keeps its bytes. `size`, pointers to functions and `user` are not in it.
 *
 * Encoders refuse what the machine would refuse: HF_EINVAL or HF_ETOOBIG with the member at
 * fault in `field`, HF_ENOMEM. Models' replies and errors are repaired as the machine does
 * it: bytes that are not UTF-8 become U+FFFD, what is too long is cut.
 *
 * Decoders take white space and members in any order. Text that is not JSON, a member that
 * is not known, given twice, of another type or missing though required, and a value that an
 * encoder would refuse: HF_EINVAL or HF_ETOOBIG with the member in `field`, HF_ENOMEM. What
 * they return is borrowed from *ret_owner. alloc NULL: the system's.
 *
 * Threads: these functions share nothing.
 */
#ifndef HOLDFAST_TURN_JSON_H
#define HOLDFAST_TURN_JSON_H

#include <holdfast/exec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The memory of one decoded value. NULL may be freed. */
struct hf_decoded;
HF_API void hf_decoded_free(struct hf_decoded *owner);

/* A record of the history, as a session stores it. */
HF_API HF_MUST_USE int hf_record_encode(const struct hf_alloc *alloc,
                                        const struct hf_record *record,
                                        struct hf_bytes *ret_json, struct hf_err *err);
HF_API HF_MUST_USE int hf_record_decode(const struct hf_alloc *alloc, struct hf_span json,
                                        struct hf_decoded **ret_owner,
                                        const struct hf_record **ret_record,
                                        struct hf_err *err);

/* The answer to one tool call. */
HF_API HF_MUST_USE int hf_tool_result_encode(const struct hf_alloc *alloc,
                                             const struct hf_tool_result *result,
                                             struct hf_bytes *ret_json,
                                             struct hf_err *err);
HF_API HF_MUST_USE int hf_tool_result_decode(const struct hf_alloc *alloc,
                                             struct hf_span json,
                                             struct hf_decoded **ret_owner,
                                             const struct hf_tool_result **ret_result,
                                             struct hf_err *err);

/* How a turn ended. */
HF_API HF_MUST_USE int hf_outcome_encode(const struct hf_alloc *alloc,
                                         const struct hf_outcome *outcome,
                                         struct hf_bytes *ret_json, struct hf_err *err);
HF_API HF_MUST_USE int hf_outcome_decode(const struct hf_alloc *alloc,
                                         struct hf_span json,
                                         struct hf_decoded **ret_owner,
                                         const struct hf_outcome **ret_outcome,
                                         struct hf_err *err);

/* Responses, as the members "reply", "error", "result" and "delivery" of the JSON that
 * hf_turn_respond_json takes. */
HF_API HF_MUST_USE int hf_llm_response_encode(const struct hf_alloc *alloc,
                                              const struct hf_llm_response *reply,
                                              struct hf_bytes *ret_json,
                                              struct hf_err *err);
HF_API HF_MUST_USE int hf_llm_response_decode(const struct hf_alloc *alloc,
                                              struct hf_span json,
                                              struct hf_decoded **ret_owner,
                                              const struct hf_llm_response **ret_reply,
                                              struct hf_err *err);
HF_API HF_MUST_USE int hf_llm_error_encode(const struct hf_alloc *alloc,
                                           const struct hf_llm_error *error,
                                           struct hf_bytes *ret_json, struct hf_err *err);
HF_API HF_MUST_USE int hf_llm_error_decode(const struct hf_alloc *alloc,
                                           struct hf_span json,
                                           struct hf_decoded **ret_owner,
                                           const struct hf_llm_error **ret_error,
                                           struct hf_err *err);
HF_API HF_MUST_USE int hf_exec_result_encode(const struct hf_alloc *alloc,
                                             const struct hf_exec_result *result,
                                             struct hf_bytes *ret_json,
                                             struct hf_err *err);
HF_API HF_MUST_USE int hf_exec_result_decode(const struct hf_alloc *alloc,
                                             struct hf_span json,
                                             struct hf_decoded **ret_owner,
                                             const struct hf_exec_result **ret_result,
                                             struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_delivery_encode(const struct hf_alloc *alloc,
                                               const struct hf_turn_delivery *delivery,
                                               struct hf_bytes *ret_json,
                                               struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_delivery_decode(
    const struct hf_alloc *alloc, struct hf_span json, struct hf_decoded **ret_owner,
    const struct hf_turn_delivery **ret_delivery, struct hf_err *err);

/* The operations of a cell that were performed or begun, in order: {"ops":[…]}. The args of
 * a print are in the member "text". */
HF_API HF_MUST_USE int hf_op_records_encode(const struct hf_alloc *alloc,
                                            const struct hf_op_record *ops, size_t count,
                                            struct hf_bytes *ret_json,
                                            struct hf_err *err);
HF_API HF_MUST_USE int hf_op_records_decode(const struct hf_alloc *alloc,
                                            struct hf_span json,
                                            struct hf_decoded **ret_owner,
                                            const struct hf_op_record **ret_ops,
                                            size_t *ret_count, struct hf_err *err);

/* The identity of a base (id, count, digest), and its last step. Its records are encoded one
 * by one; who decodes it sets get, put and user in a copy. */
HF_API HF_MUST_USE int hf_base_encode(const struct hf_alloc *alloc,
                                      const struct hf_base *base,
                                      struct hf_bytes *ret_json, struct hf_err *err);
HF_API HF_MUST_USE int hf_base_decode(const struct hf_alloc *alloc, struct hf_span json,
                                      struct hf_decoded **ret_owner,
                                      const struct hf_base **ret_base,
                                      struct hf_err *err);

/* A turn to begin, and the arguments of a restore; the base as above. */
HF_API HF_MUST_USE int hf_turn_start_encode(const struct hf_alloc *alloc,
                                            const struct hf_turn_start *start,
                                            struct hf_bytes *ret_json,
                                            struct hf_err *err);
HF_API HF_MUST_USE int hf_turn_start_decode(const struct hf_alloc *alloc,
                                            struct hf_span json,
                                            struct hf_decoded **ret_owner,
                                            const struct hf_turn_start **ret_start,
                                            struct hf_err *err);
HF_API HF_MUST_USE int hf_restore_encode(const struct hf_alloc *alloc,
                                         const struct hf_restore *restore,
                                         struct hf_bytes *ret_json, struct hf_err *err);
HF_API HF_MUST_USE int hf_restore_decode(const struct hf_alloc *alloc,
                                         struct hf_span json,
                                         struct hf_decoded **ret_owner,
                                         const struct hf_restore **ret_restore,
                                         struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
