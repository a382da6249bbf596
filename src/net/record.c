/* The recorder: passes everything on, and writes what was heard as a script. An exchange is
 * written in one piece when it has ended, so that exchanges do not mix. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/bounds.h>
#include <holdfast/http.h>

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
    struct hf_buf text; /* the lines so far */
    struct hf_buf held; /* the end of the body so far: a secret may begin in it */
    hf_ms last;
    const struct hf_secret *secrets[SECRETS_MAX];
};

struct recorder {
    struct hf_transport handle;
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
    hf_buf_fini(&recording->held);
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

/* Where the first secret of the request is in the text, or NULL. */
static const char *find_secret(const struct recording *recording, struct hf_span text,
                               const struct hf_secret **ret_secret)
{
    const char *first = NULL;
    for (size_t i = 0; i < SECRETS_MAX && recording->secrets[i]; i++) {
        struct hf_span secret = hf_secret_bytes(recording->secrets[i]);
        const char *hit = memmem(text.at, text.len, secret.at, secret.len);
        if (hit && (!first || hit < first)) {
            first = hit;
            *ret_secret = recording->secrets[i];
        }
    }
    return first;
}

/* The text with its secrets replaced; returns what is behind the last of them, unwritten. */
static struct hf_span put_hidden(const struct recording *recording, struct hf_span text,
                                 struct hf_buf *out)
{
    const struct hf_secret *secret = NULL;
    const char *hit = NULL;
    while ((hit = find_secret(recording, text, &secret))) {
        size_t before = (size_t)(hit - (const char *)text.at);
        size_t taken = before + hf_secret_bytes(secret).len;
        hf_buf_bytes(out, text.at, before);
        hf_buf_text(out, hf_secret_text(secret));
        text = (struct hf_span){ (const char *)text.at + taken, text.len - taken };
    }
    return text;
}

/* One byte less than the longest secret: no more of one can be at the end of a piece. */
static size_t longest_begin(const struct recording *recording)
{
    size_t longest = 1;
    for (size_t i = 0; i < SECRETS_MAX && recording->secrets[i]; i++) {
        size_t len = hf_secret_bytes(recording->secrets[i]).len;
        longest = len > longest ? len : longest;
    }
    return longest - 1;
}

/* A line with what was held and can be shown: pieces of a body may be cut inside a secret. */
static void put_body(struct recording *recording, size_t keep)
{
    struct hf_buf out;
    struct hf_span held = { hf_buf_str(&recording->held), recording->held.len };
    hf_buf_init(&out, recording->held.alloc, recording->text.max);
    struct hf_span rest = put_hidden(recording, held, &out);
    size_t shown = rest.len > keep ? rest.len - keep : 0;
    hf_buf_bytes(&out, rest.at, shown);
    if (out.len > 0) {
        struct hf_json json = begin_line(recording);
        hf_json_key(&json, "body"); /* what is no UTF-8 is written as U+FFFD */
        hf_json_strn(&json, hf_buf_str(&out), out.len);
        end_line(recording, &json);
    }
    hf_buf_reset(&out);
    hf_buf_bytes(&out, (const char *)rest.at + shown, rest.len - shown);
    hf_buf_fini(&recording->held);
    recording->held = out;
}

static void on_body(void *user, const void *bytes, size_t len)
{
    struct recording *recording = user;
    put_wait(recording);
    hf_buf_bytes(&recording->held, bytes, len);
    put_body(recording, longest_begin(recording));
    recording->sink.body(recording->sink.user, bytes, len);
}

/* A recording that cannot be written leaves the call as it is: the file is then short. */
static void write_out(struct recording *recording)
{
    struct recorder *recorder = recording->recorder;
    struct hf_buf out;
    hf_buf_init(&out, alloc_of(recorder), (size_t)HF_MAX_MODEL_RESPONSE_BYTES * 2);
    struct hf_span text = { hf_buf_str(&recording->text), recording->text.len };
    struct hf_span rest = put_hidden(recording, text,
                                     &out); /* a header may have it too */
    hf_buf_bytes(&out, rest.at, rest.len);
    size_t done = 0;
    while (done < out.len) {
        ssize_t wrote = write(recorder->fd, out.at + done, out.len - done);
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    hf_buf_fini(&out);
}

static void finish(struct recording *recording, enum hf_http_fault fault)
{
    put_body(recording, 0);
    struct hf_json json = begin_line(recording);
    hf_json_put_str(&json, "end", hf_http_fault_name(fault));
    end_line(recording, &json);
    write_out(recording);
    drop(recording);
}

static void on_end(void *user, enum hf_http_fault fault)
{
    struct recording *recording = user;
    struct hf_http_sink sink = recording->sink;
    put_wait(recording);
    finish(recording, fault);
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
    hf_buf_init(&recording->held, alloc, (size_t)HF_MAX_MODEL_RESPONSE_BYTES);
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
    finish(recording, fault);
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

int hf_recorder_new(struct hf_loop *loop, struct hf_transport *inner, const char *path,
                    struct hf_transport **ret_transport, struct hf_err *err)
{
    static const char head[] = "{\"holdfast_script\":1}\n";
    const struct hf_alloc *alloc = hf_loop_alloc(loop);
    struct recorder *recorder = alloc->realloc(alloc->user, NULL, sizeof(*recorder));
    if (!recorder) {
        hf_transport_free(inner);
        return hf_fail_plain(err, HF_ENOMEM);
    }
    *recorder = (struct recorder){ .handle = { &methods }, .loop = loop, .inner = inner };
    recorder->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (recorder->fd < 0 ||
        write(recorder->fd, head, sizeof(head) - 1) != (ssize_t)sizeof(head) - 1) {
        record_free(&recorder->handle);
        return hf_fail(err, HF_EINVAL, "record", "the file %.150s cannot be written",
                       path);
    }
    *ret_transport = &recorder->handle;
    return 0;
}
