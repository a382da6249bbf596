/* The recorder: passes everything on, and writes what was heard as a script. An exchange is
 * written in one piece when it has ended, so that exchanges do not mix. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/http.h>
#include <holdfast/limits.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "net/secret.h"

#define SECRETS_MAX 4

/* The headers that keep their value; others are written without it. */
static const char *const kept[] = { "content-type", "retry-after", "x-request-id",
                                    "request-id" };

struct recorder;

struct recording {
    struct recorder *recorder;
    struct recording *next;
    uint64_t id;
    struct hf_http_sink sink;
    struct hf_buf text;
    hf_ms last;
    const struct hf_secret *secrets[SECRETS_MAX];
};

struct recorder {
    struct hf_transport base;
    struct hf_loop *loop;
    struct hf_transport *inner;
    struct recording *all;
    int fd;
};

static const struct hf_alloc *alloc_of(const struct recorder *recorder)
{
    return hf_loop_alloc(recorder->loop);
}

static void drop(struct recording *recording)
{
    struct recorder *recorder = recording->recorder;
    struct recording **link = &recorder->all;
    while (*link != recording)
        link = &(*link)->next;
    *link = recording->next;
    hf_buf_fini(&recording->text);
    alloc_of(recorder)->free(alloc_of(recorder)->user, recording);
}

static struct hf_json begin_line(struct recording *recording)
{
    struct hf_json json;
    hf_json_begin(&json, &recording->text);
    hf_json_object(&json);
    return json;
}

static void end_line(struct recording *recording, struct hf_json *json)
{
    hf_json_end(json);
    hf_buf_char(&recording->text, '\n');
}

/* The time since the last line, where there was some. */
static void put_wait(struct recording *recording)
{
    const struct hf_clock *clock = hf_loop_clock(recording->recorder->loop);
    hf_ms now = clock->mono_ms(clock->user);
    if (now > recording->last) {
        struct hf_json json = begin_line(recording);
        hf_json_put_i64(&json, "wait_ms", now - recording->last);
        end_line(recording, &json);
    }
    recording->last = now;
}

static bool is_kept(const char *name)
{
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (hf_same(name, kept[i]))
            return true;
    return false;
}

static void on_head(void *user, int status, const struct hf_http_header *headers,
                    size_t count)
{
    struct recording *recording = user;
    put_wait(recording);
    struct hf_json json = begin_line(recording);
    hf_json_put_i64(&json, "status", status);
    hf_json_key(&json, "headers");
    hf_json_object(&json);
    for (size_t i = 0; i < count; i++)
        if (is_kept(headers[i].name))
            hf_json_put_str(&json, headers[i].name, headers[i].value);
    hf_json_end(&json);
    end_line(recording, &json);
    recording->sink.head(recording->sink.user, status, headers, count);
}

static void on_body(void *user, const void *bytes, size_t len)
{
    struct recording *recording = user;
    put_wait(recording);
    struct hf_json json = begin_line(recording);
    hf_json_key(&json, "body"); /* what is no UTF-8 is written as U+FFFD */
    hf_json_strn(&json, bytes, len);
    end_line(recording, &json);
    recording->sink.body(recording->sink.user, bytes, len);
}

/* Bytes of the text that hold the secret, replaced; a secret in JSON is as it is, since it
 * has no control bytes, except for quotes and backslashes, which keys do not have. */
static void put_hidden(const struct recording *recording, struct hf_buf *out)
{
    const char *at = hf_buf_str(&recording->text);
    const char *end = at + recording->text.len;
    while (at < end) {
        const char *next = end;
        const struct hf_secret *found = NULL;
        for (size_t i = 0; i < SECRETS_MAX && recording->secrets[i]; i++) {
            struct hf_span secret = hf_secret_bytes(recording->secrets[i]);
            const char *hit = memmem(at, (size_t)(end - at), secret.at, secret.len);
            if (hit && hit < next) {
                next = hit;
                found = recording->secrets[i];
            }
        }
        hf_buf_bytes(out, at, (size_t)(next - at));
        at = next;
        if (found) {
            hf_buf_text(out, hf_secret_text(found));
            at += hf_secret_bytes(found).len;
        }
    }
}

/* A recording that cannot be written leaves the call as it is: the file is then short. */
static void write_out(struct recording *recording)
{
    struct recorder *recorder = recording->recorder;
    struct hf_buf out;
    hf_buf_init(&out, alloc_of(recorder), (size_t)HF_MAX_MODEL_RESPONSE_BYTES * 2);
    put_hidden(recording, &out);
    size_t done = 0;
    while (done < out.len) {
        ssize_t wrote = write(recorder->fd, out.at + done, out.len - done);
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    hf_buf_fini(&out);
}

static void on_end(void *user, enum hf_http_fault fault)
{
    struct recording *recording = user;
    struct hf_http_sink sink = recording->sink;
    put_wait(recording);
    struct hf_json json = begin_line(recording);
    hf_json_put_str(&json, "end", hf_http_fault_name(fault));
    end_line(recording, &json);
    write_out(recording);
    drop(recording);
    sink.end(sink.user, fault);
}

static int record_start(struct hf_transport *transport,
                        const struct hf_http_request *request,
                        const struct hf_http_sink *sink, uint64_t *ret_exchange,
                        struct hf_err *err)
{
    struct recorder *recorder = (struct recorder *)transport;
    const struct hf_alloc *alloc = alloc_of(recorder);
    const struct hf_clock *clock = hf_loop_clock(recorder->loop);
    struct recording *recording = alloc->realloc(alloc->user, NULL, sizeof(*recording));
    size_t secrets = 0;
    if (!recording)
        return hf_fail_plain(err, HF_ENOMEM);
    *recording = (struct recording){ .recorder = recorder,
                                     .next = recorder->all,
                                     .sink = *sink,
                                     .last = clock->mono_ms(clock->user) };
    hf_buf_init(&recording->text, alloc, (size_t)HF_MAX_MODEL_RESPONSE_BYTES * 2);
    for (size_t i = 0; i < request->header_count && secrets < SECRETS_MAX; i++)
        if (request->headers[i].secret)
            recording->secrets[secrets++] = request->headers[i].secret;
    recorder->all = recording;
    struct hf_http_sink tap = { recording, on_head, on_body, on_end };
    int rc = recorder->inner->methods->start(recorder->inner, request, &tap,
                                             &recording->id, err);
    if (rc)
        drop(recording);
    else
        *ret_exchange = recording->id;
    return rc;
}

static struct recording *find(struct recorder *recorder, uint64_t id)
{
    struct recording *recording = recorder->all;
    while (recording && recording->id != id)
        recording = recording->next;
    return recording;
}

/* A cancelled exchange is recorded as a connection that was cut. */
static int stop(struct recorder *recorder, uint64_t id, enum hf_http_fault fault)
{
    struct recording *recording = find(recorder, id);
    if (!recording)
        return HF_ENOTFOUND;
    struct hf_json json = begin_line(recording);
    hf_json_put_str(&json, "end", hf_http_fault_name(fault));
    end_line(recording, &json);
    write_out(recording);
    drop(recording);
    return 0;
}

static int record_cancel(struct hf_transport *transport, uint64_t id)
{
    struct recorder *recorder = (struct recorder *)transport;
    (void)stop(recorder, id, HF_HTTP_CUT); /* the inner one knows whether it ran */
    return recorder->inner->methods->cancel(recorder->inner, id);
}

static int record_finish(struct hf_transport *transport, uint64_t id)
{
    struct recorder *recorder = (struct recorder *)transport;
    (void)stop(recorder, id, HF_HTTP_NONE); /* as above */
    return recorder->inner->methods->finish(recorder->inner, id);
}

static void record_free(struct hf_transport *transport)
{
    struct recorder *recorder = (struct recorder *)transport;
    const struct hf_alloc *alloc = alloc_of(recorder);
    hf_transport_free(recorder->inner);
    while (recorder->all)
        drop(recorder->all);
    if (recorder->fd >= 0)
        close(recorder->fd);
    alloc->free(alloc->user, recorder);
}

static const struct hf_transport_methods methods = {
    .start = record_start,
    .cancel = record_cancel,
    .finish = record_finish,
    .free = record_free,
};

int hf_record_new(struct hf_loop *loop, struct hf_transport *inner, const char *path,
                  struct hf_transport **ret_transport, struct hf_err *err)
{
    static const char head[] = "{\"holdfast_script\":1}\n";
    const struct hf_alloc *alloc = hf_loop_alloc(loop);
    struct recorder *recorder = alloc->realloc(alloc->user, NULL, sizeof(*recorder));
    if (!recorder) {
        hf_transport_free(inner);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *recorder = (struct recorder){ .base = { &methods }, .loop = loop, .inner = inner };
    recorder->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (recorder->fd < 0 ||
        write(recorder->fd, head, sizeof(head) - 1) != (ssize_t)sizeof(head) - 1) {
        record_free(&recorder->base);
        return hf_fail(err, HF_EINVAL, "record", "the file %.150s cannot be written",
                       path);
    }
    *ret_transport = &recorder->base;
    return 0;
}
