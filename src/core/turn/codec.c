/* Values of turns as JSON, by the tables that saves use too. See holdfast/turn_json.h. */
#include "core/turn/codec.h"

#include <string.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/sized.h"
#include "core/turn/json.h"
#include "core/turn/machine.h"

struct hf_decoded {
    const struct hf_alloc *alloc;
    struct hf_arena arena;
};

void hf_decoded_free(struct hf_decoded *owner)
{
    if (!owner)
        return;
    hf_arena_fini(&owner->arena);
    owner->alloc->free(owner->alloc->user, owner);
}

struct hf_arena *hf_decoded_arena(struct hf_decoded *owner)
{
    return &owner->arena;
}

static int take_in(const struct hf_turn_codec *codec, struct hf_arena *arena,
                   const void *value, void *ret_copy, struct hf_err *err)
{
    int rc = hf_value_copy(arena, codec->schema, codec->mode, value, ret_copy, err);
    return rc == 0 && codec->check ? codec->check(ret_copy, err) : rc;
}

static int write_text(const struct hf_turn_codec *codec, struct hf_arena *scratch,
                      const void *value, struct hf_buf *out, struct hf_err *err)
{
    struct hf_turn_json_out json = { .scratch = scratch };
    hf_json_begin(&json.json, out);
    hf_json_object(&json.json);
    hf_turn_json_members(&json, codec->schema, value);
    hf_json_end(&json.json);
    if (json.unfit)
        return hf_fail(err, HF_EINVAL, json.unfit->name, "%s is over the largest integer",
                       json.unfit->name);
    int rc = json.out_of_memory ? HF_ENOMEM : hf_buf_state(out);
    return rc ? hf_fail_plain(err, rc) : 0;
}

static int check_size(const struct hf_turn_codec *codec, const void *value,
                      struct hf_err *err)
{
    size_t size = codec->schema->size;
    if (codec->sized)
        memcpy(&size, value, sizeof(size));
    return hf_sized_check(size, codec->schema->size, codec->schema->size, err);
}

int hf_turn_encode(const struct hf_turn_codec *codec, const struct hf_alloc *alloc,
                   const void *value, struct hf_bytes *ret_json, struct hf_err *err)
{
    struct hf_arena scratch;
    struct hf_buf out;
    if (!value)
        return hf_fail(err, HF_EINVAL, codec->schema->name, "there is no value");
    int rc = check_size(codec, value, err);
    if (rc)
        return rc;
    alloc = alloc ? alloc : hf_alloc_system();
    hf_arena_init(&scratch, alloc);
    hf_buf_init(&out, alloc, (size_t)HF_MAX_TURN_SAVE_BYTES);
    void *copy = hf_arena_take(&scratch, codec->schema->size);
    rc = copy ? take_in(codec, &scratch, value, copy, err)
              : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = write_text(codec, &scratch, copy, &out, err);
    if (rc == 0)
        *ret_json = (struct hf_bytes){ alloc, out.at, out.len };
    else
        hf_buf_fini(&out);
    hf_arena_fini(&scratch);
    return rc;
}

/* Read into scratch first: the copy that stays is checked, and holds no more than it must. */
static int read_text(const struct hf_turn_codec *codec, struct hf_decoded *owner,
                     struct hf_span json, void **ret_value, struct hf_err *err)
{
    struct hf_arena scratch;
    hf_arena_init(&scratch, owner->alloc);
    size_t size = codec->schema->size;
    void *said = hf_arena_take(&scratch, size);
    void *value = hf_arena_take(&owner->arena, size);
    int rc = said && value ? hf_turn_json_take(&scratch, codec->schema, json, said, err)
                           : hf_fail_plain(err, HF_ENOMEM);
    if (rc == 0)
        rc = take_in(codec, &owner->arena, said, value, err);
    if (rc == 0 && codec->sized)
        memcpy(value, &size, sizeof(size));
    if (rc == 0)
        *ret_value = value;
    hf_arena_fini(&scratch);
    return rc;
}

int hf_turn_decode(const struct hf_turn_codec *codec, const struct hf_alloc *alloc,
                   struct hf_span json, struct hf_decoded **ret_owner, void **ret_value,
                   struct hf_err *err)
{
    size_t max = (size_t)HF_MAX_TURN_SAVE_BYTES;
    bool foul = false; /* what a model said may be: it is repaired */
    int rc = codec->mode == HF_COPY_REPAIR
                 ? hf_json_check_said(json, max, codec->schema->name, &foul, err)
                 : hf_json_check_raw(json, max, codec->schema->name, err);
    if (rc)
        return rc;
    alloc = alloc ? alloc : hf_alloc_system();
    struct hf_decoded *owner = alloc->realloc(alloc->user, NULL, sizeof(*owner));
    if (!owner)
        return hf_fail_plain(err, HF_ENOMEM);
    owner->alloc = alloc;
    hf_arena_init_small(&owner->arena, alloc, 512, 65536);
    rc = read_text(codec, owner, json, ret_value, err);
    if (rc)
        hf_decoded_free(owner);
    else
        *ret_owner = owner;
    return rc;
}

/* clang-format off */
static const struct hf_member base_members[] = {
    { .key = 1, .type = HF_M_TEXT, .max = 191, HF_AT(hf_base, id) },
    { .key = 2, .type = HF_M_U64, HF_AT(hf_base, count) },
    { .key = 3, .type = HF_M_HASH, HF_AT(hf_base, digest) },
    { .key = 4, .type = HF_M_BOOL, HF_AT(hf_base, last_step_known) },
    { .key = 5, .type = HF_M_U64, HF_AT(hf_base, last_step) },
};
static HF_SCHEMA(s_base, hf_base, base_members);

#define NEED_KEY .type = HF_M_TEXT, .max = 191, .flags = HF_M_REQUIRED
#define RAW .type = HF_M_JSON, .max = 8388608
static const struct hf_member start_members[] = {
    { .key = 1, NEED_KEY, HF_AT(hf_turn_start, session_id) },
    { .key = 2, NEED_KEY, HF_AT(hf_turn_start, turn_id) },
    { .key = 3, .type = HF_M_REF, .of = &s_base, HF_AT(hf_turn_start, base) },
    { .key = 4, .type = HF_M_LIST, .of = &hf_s_record, .max = UINT32_MAX,
      HF_AT_LIST(hf_turn_start, inputs, input_count) },
    { .key = 5, .type = HF_M_LIST, .of = &hf_s_cause, .max = 1024, HF_AT_LIST(hf_turn_start, causes, cause_count) },
    { .key = 6, .type = HF_M_U64, HF_AT(hf_turn_start, run_offset) },
    { .key = 7, RAW, HF_AT(hf_turn_start, given) },
    { .key = 8, RAW, HF_AT(hf_turn_start, given_refs) },
    { .key = 9, .type = HF_M_U64, HF_AT(hf_turn_start, effects_past) },
};
static HF_SCHEMA(s_start, hf_turn_start, start_members);

static const struct hf_member restore_members[] = {
    { .key = 1, .type = HF_M_TEXT, .max = 191, HF_AT(hf_restore, session_id) },
    { .key = 2, .type = HF_M_TEXT, .max = 191, HF_AT(hf_restore, turn_id) },
    { .key = 3, .type = HF_M_REF, .of = &s_base, HF_AT(hf_restore, base) },
};
static HF_SCHEMA(s_restore, hf_restore, restore_members);
/* clang-format on */

static int check_record(const void *value, struct hf_err *err)
{
    return hf_record_check(value, err);
}

static int check_result(const void *value, struct hf_err *err)
{
    return hf_result_check(value, err);
}

static int check_base(const void *value, struct hf_err *err)
{
    const struct hf_base *base = value;
    if (base->count > 0 && !base->id)
        return hf_fail(err, HF_EINVAL, "id", "a base with records has an id");
    return hf_base_check_last_step(base, err);
}

static int check_start(const void *value, struct hf_err *err)
{
    const struct hf_turn_start *start = value;
    int rc = start->base ? check_base(start->base, err) : 0;
    for (size_t i = 0; rc == 0 && i < start->input_count; i++)
        rc = hf_record_check(&start->inputs[i], err);
    return rc;
}

static int check_outcome(const void *value, struct hf_err *err)
{
    return hf_outcome_check(value, err);
}

static int check_restore(const void *value, struct hf_err *err)
{
    const struct hf_restore *restore = value;
    return restore->base ? check_base(restore->base, err) : 0;
}

/* The functions that decode a value do not know it as a host's: they are handed no pointers
 * to functions and no `user`, which the tables do not name. */
#define CODEC(name, type, table, copy_mode, has_size, check_it)                          \
    static const struct hf_turn_codec codec_##name = { .schema = &(table),               \
                                                       .mode = (copy_mode),              \
                                                       .sized = (has_size),              \
                                                       .check = (check_it) };            \
    int hf_##name##_encode(const struct hf_alloc *alloc, const struct type *value,       \
                           struct hf_bytes *ret_json, struct hf_err *err)                \
    {                                                                                    \
        return hf_turn_encode(&codec_##name, alloc, value, ret_json, err);               \
    }                                                                                    \
    int hf_##name##_decode(const struct hf_alloc *alloc, struct hf_span json,            \
                           struct hf_decoded **ret_owner, const struct type **ret_value, \
                           struct hf_err *err)                                           \
    {                                                                                    \
        void *value = NULL;                                                              \
        int rc = hf_turn_decode(&codec_##name, alloc, json, ret_owner, &value, err);     \
        if (rc == 0)                                                                     \
            *ret_value = value;                                                          \
        return rc;                                                                       \
    }

/* clang-format off */
CODEC(record, hf_record, hf_s_record, HF_COPY_STRICT, false, check_record)
CODEC(tool_result, hf_tool_result, hf_s_tool_result, HF_COPY_STRICT, false, check_result)
CODEC(outcome, hf_outcome, hf_s_outcome, HF_COPY_STRICT, false, check_outcome)
CODEC(llm_response, hf_llm_response, hf_s_llm_response, HF_COPY_REPAIR, true, NULL)
CODEC(llm_error, hf_llm_error, hf_s_llm_error, HF_COPY_REPAIR, true, NULL)
CODEC(exec_result, hf_exec_result, hf_s_exec_result, HF_COPY_STRICT, true, NULL)
CODEC(turn_delivery, hf_turn_delivery, hf_s_delivery, HF_COPY_STRICT, true, NULL)
CODEC(base, hf_base, s_base, HF_COPY_STRICT, false, check_base)
CODEC(turn_start, hf_turn_start, s_start, HF_COPY_STRICT, true, check_start)
CODEC(restore, hf_restore, s_restore, HF_COPY_STRICT, true, check_restore)
/* clang-format on */
