/* The output of a command, by attempt. */
#include "base/err.h"
#include "store/store.h"

size_t sql_note_add(struct hf_ops *ops, const struct hf_caller *who,
                    const struct sql_note *note)
{
    size_t call = hf_ops_call(ops, HF_SQL_PROCESS_NOTE, 1);
    hf_ops_text(ops, note->work_id);
    hf_ops_i64_opt(ops, note->attempt);
    hf_ops_text(ops, note->type);
    hf_ops_text(ops, who->actor_kind);
    hf_ops_text(ops, who->actor);
    hf_ops_text(ops, note->message);
    hf_ops_text(ops, note->payload);
    hf_ops_text(ops, who->correlation_id);
    return call;
}

static void add_chunks(struct hf_ops *ops, const struct hf_output_add *add)
{
    for (size_t i = 0; i < add->chunk_count; i++) {
        const struct hf_output_chunk *one = &add->chunks[i];
        if (i == 0)
            hf_ops_call(ops, HF_SQL_OUTPUT_PUT, (int64_t)add->chunk_count);
        else
            hf_ops_again(ops);
        hf_ops_text(ops, add->id);
        hf_ops_i64(ops, add->attempt);
        hf_ops_text(ops, hf_stream_word(one->stream));
        hf_ops_i64(ops, one->chunk);
        hf_ops_bytes(ops, one->data.at, one->data.len);
    }
}

static void add_drops(struct hf_ops *ops, const struct hf_output_add *add)
{
    for (int s = 0; s < HF_STREAM_COUNT; s++) {
        if (add->drop_before[s] <= add->drop_from[s])
            continue;
        hf_ops_call(ops, HF_SQL_OUTPUT_DROP, HF_ANY_COUNT);
        hf_ops_text(ops, add->id);
        hf_ops_i64(ops, add->attempt);
        hf_ops_text(ops, hf_stream_word((enum hf_stream)s));
        hf_ops_i64(ops, add->drop_from[s]);
        hf_ops_i64(ops, add->drop_before[s]);
    }
}

int sql_output_add(struct hf_store *handle, const struct hf_caller *who,
                   const struct hf_output_add *add, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    add_chunks(&ops, add);
    add_drops(&ops, add);
    if (add->event)
        (void)sql_note_add(&ops, who,
                           &(struct sql_note){ .work_id = add->id,
                                               .attempt = add->attempt,
                                               .type = add->event,
                                               .payload = add->payload });
    int rc = ops.batch.call_count > 0 ? hf_ops_write(&ops, err) : 0;
    hf_ops_fini(&ops);
    if (rc == HF_EGUARD)
        return hf_fail(err, HF_ENOTFOUND, "attempt",
                       "unit %s has no attempt %lld whose output this could be", add->id,
                       (long long)add->attempt);
    return rc;
}

static int read_stream(struct hf_ops *ops, size_t call, enum hf_stream stream,
                       struct hf_output *output)
{
    const struct hf_call *rows = hf_ops_result(ops, call);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < rows->out_count; i++) {
        const struct hf_val *data = hf_out(rows, i, HF_COL_OUTPUT_READ_DATA);
        rc = hf_output_put(output, stream,
                           hf_out_i64(rows, i, HF_COL_OUTPUT_READ_ATTEMPT),
                           hf_out_i64(rows, i, HF_COL_OUTPUT_READ_CHUNK),
                           (struct hf_span){ data->at, data->len });
    }
    return rc;
}

int sql_output_read(struct hf_store *handle, const char *id, int64_t attempt,
                    struct hf_output *output, struct hf_err *err)
{
    struct hf_ops ops;
    struct hf_row row;
    const char *full = NULL;
    hf_ops_init(&ops, sql_store_of(handle)->sql, handle->alloc);
    int rc = sql_find(&ops, id, &row, err);
    struct hf_ops read;
    hf_ops_init(&read, sql_store_of(handle)->sql, handle->alloc);
    full = rc == 0 ? row.w.work_id : NULL;
    for (int s = 0; rc == 0 && s < HF_STREAM_COUNT; s++) {
        hf_ops_call(&read, HF_SQL_OUTPUT_READ, HF_ANY_COUNT);
        hf_ops_text(&read, full);
        hf_ops_i64_opt(&read, attempt);
        hf_ops_text(&read, hf_stream_word((enum hf_stream)s));
    }
    if (rc == 0)
        rc = hf_ops_read(&read, err);
    for (int s = 0; rc == 0 && s < HF_STREAM_COUNT; s++)
        if (read_stream(&read, (size_t)s, (enum hf_stream)s, output))
            rc = hf_fail_plain(err, HF_ENOMEM);
    hf_ops_fini(&read);
    hf_ops_fini(&ops);
    return rc;
}
