/* Files of a message, from the file system through the store to the model, on real stores. */
#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/attach.h>

#include "agent/actor.h"
#include "agent/tool_kit.h"
#include "support/pg.h"

static struct pg_server server;
static bool on_postgres;
static char folder[64];
static struct hf_store *store;

static const char png[] = "\x89PNG\r\n\x1a\n\0pixels";

static void put(const char *name, const void *bytes, size_t len, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static int open_all(void **state)
{
    char url[400];
    struct hf_err err = { 0 };
    (void)state;
    tool_kit_folder(folder);
    if (on_postgres)
        pg_server_start(&server);
    if (on_postgres)
        (void)pg_server_schema(server.url, "attach", url);
    else
        (void)snprintf(url, sizeof url, "%s/store.db", folder);
    return hf_store_open(url, NULL, &store, &err);
}

static int close_all(void **state)
{
    (void)state;
    hf_store_close(store);
    if (on_postgres)
        pg_server_stop(&server);
    tool_kit_remove(folder);
    return 0;
}

/* ---- a model that looks at what it is shown ---------------------------------------- */

static const struct hf_provider_methods *real_model;
static struct hf_provider_methods spying;
static char shown[8][64]; /* "TYPE NAME BYTES" */
static size_t shown_count;

static int spy(struct hf_provider *provider, const struct hf_model_call *call,
               const struct hf_model_sink *sink, uint64_t *ret_call, struct hf_err *err)
{
    const struct hf_attachment *at = NULL;
    for (size_t i = 0; (at = hf_render_attachment(call->render, i)); i++) {
        struct hf_span bytes = { 0 };
        assert_non_null(call->attachment);
        assert_int_equal(call->attachment(call->user, at, &bytes, err), 0);
        assert_int_equal(bytes.len, at->bytes);
        (void)snprintf(shown[shown_count++ % 8], sizeof shown[0], "%s %s %.*s",
                       at->media_type, at->name, (int)bytes.len, (const char *)bytes.at);
    }
    return real_model->start(provider, call, sink, ret_call, err);
}

static enum hf_status ended_as;

static void on_event(const struct hf_worker_event *event)
{
    if (event->kind == HF_WORKER_TURN_ENDED)
        ended_as = event->status;
}

static void work(const char *const *script)
{
    struct actor actor;
    actor_open(&actor, store, script);
    real_model = actor.provider.methods;
    spying = *real_model;
    spying.start = spy;
    actor.provider.methods = &spying;
    actor.on_event = on_event;
    shown_count = 0;
    actor_start(&actor);
    actor_until(&actor, HF_WORKER_TURN_ENDED, 1);
    actor_close(&actor);
}

/* ---- sending ----------------------------------------------------------------------- */

static void create(const char *session)
{
    struct hf_session_answer *made = NULL;
    struct hf_err err = { 0 };
    struct hf_session_spec fresh = { .size = sizeof fresh,
                                     .session_id = session,
                                     .agent = "a" };
    assert_int_equal(hf_session_create(store, NULL, &fresh, &made, &err), 0);
    hf_session_answer_free(made);
}

static bool send(const char *session, const struct hf_user_message *message)
{
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    char *json = NULL;
    if (hf_user_message_write(store, message, &json, &err) != 0)
        fail_msg("%s", err.message);
    struct hf_session_send request = { .size = sizeof request,
                                       .session_id = session,
                                       .source_key = message->id,
                                       .message = json };
    if (hf_session_send(store, NULL, &request, &answer, &err) != 0)
        fail_msg("%s", err.message);
    bool created = hf_answer_at(answer, 0)->created;
    hf_answer_free(answer);
    hf_store_text_free(store, json);
    return created;
}

static void files_reach_the_model_at_every_call(void **state)
{
    (void)state;
    static const char *const first[] = { "hello" };
    char image[128], note[128];
    put("p.png", png, sizeof png - 1, image);
    put("n.txt", "caf\xc3\xa9", 5, note);
    const char *const paths[] = { image, note };
    struct hf_user_message message = { .size = sizeof message,
                                       .id = "k1",
                                       .text = "look",
                                       .paths = paths,
                                       .path_count = 2 };
    create("s1");
    assert_true(send("s1", &message));
    assert_false(send("s1", &message)); /* the same key and content */
    work(first);
    assert_int_equal(ended_as, HF_STATUS_DONE);
    assert_int_equal(shown_count, 2);
    assert_memory_equal(shown[0], "image/png p.png \x89PNG", 20);
    assert_string_equal(shown[1], "text/plain n.txt caf\xc3\xa9");
    struct hf_user_message again = { .size = sizeof again, .text = "and now?" };
    assert_true(send("s1", &again));
    work(first);
    assert_int_equal(shown_count, 2); /* the history shows them again */
}

static void a_message_may_be_a_file_alone(void **state)
{
    (void)state;
    static const char *const first[] = { "hello" };
    char image[128];
    put("g.gif", "GIF89a....", 10, image);
    const char *const paths[] = { image };
    struct hf_user_message message = { .size = sizeof message,
                                       .paths = paths,
                                       .path_count = 1 };
    create("s2");
    assert_true(send("s2", &message));
    work(first);
    assert_string_equal(shown[0], "image/gif g.gif GIF89a....");
}

/* A reference to bytes that were never stored is an error of the call, and not tried for ever. */
static void a_blob_that_is_not_there_ends_the_turn(void **state)
{
    (void)state;
    static const char *const first[] = { "hello" };
    struct hf_answer *answer = NULL;
    struct hf_err err = { 0 };
    struct hf_session_send request = {
        .size = sizeof request,
        .session_id = "s3",
        .message = "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"kind\":\"attachment\",\"attachment\":{\"ref\":"
                   "\"sha256:"
                   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
                   "\"media_type\":\"image/png\"}}]}}"
    };
    create("s3");
    assert_int_equal(hf_session_send(store, NULL, &request, &answer, &err), 0);
    hf_answer_free(answer);
    work(first);
    assert_int_equal(ended_as, HF_STATUS_FAILED);
    assert_int_equal(shown_count, 0);
}

/* ---- bad input --------------------------------------------------------------------- */

static void refused(const char *const *paths, size_t count, int code, const char *text)
{
    struct hf_user_message message = {
        .size = sizeof message, .text = "t", .paths = paths, .path_count = count
    };
    struct hf_err err = { 0 };
    char *json = NULL;
    assert_int_equal(hf_user_message_write(store, &message, &json, &err), code);
    assert_null(json);
    assert_string_equal(err.field, "attach");
    assert_non_null(strstr(err.message, text));
}

static void a_file_that_cannot_be_attached_is_named(void **state)
{
    (void)state;
    char path[128];
    const char *const one[] = { path };
    const char *many[17];
    (void)snprintf(path, sizeof path, "%s/none", folder);
    refused(one, 1, HF_EINVAL, "/none: No such file or directory");
    refused((const char *const[]){ folder }, 1, HF_EINVAL, " is no regular file");
    put("empty", "", 0, path);
    refused(one, 1, HF_EINVAL, "/empty is empty");
    put("binary", "\xff\x00\x01", 3, path);
    refused(one, 1, HF_EINVAL,
            "is neither an image (PNG, JPEG, GIF, WebP) nor UTF-8 text");
    put("most", "\x89PNG\r\n\x1a\n", 8, path);
    assert_int_equal(truncate(path, 3670017), 0);
    refused(one, 1, HF_ETOOBIG, "is over 3670016 bytes");
    assert_int_equal(truncate(path, 3670016), 0);
    struct hf_user_message message = { .size = sizeof message,
                                       .paths = one,
                                       .path_count = 1 };
    struct hf_err err = { 0 };
    char *json = NULL;
    assert_int_equal(hf_user_message_write(store, &message, &json, &err), 0);
    hf_store_text_free(store, json);
    for (int i = 0; i < 17; i++)
        many[i] = path;
    refused(many, 17, HF_ETOOBIG, "at most 16 attached files");
    message = (struct hf_user_message){ .size = sizeof message };
    assert_int_equal(hf_user_message_write(store, &message, &json, &err), HF_EINVAL);
    assert_string_equal(err.field, "text");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_reach_the_model_at_every_call),
        cmocka_unit_test(a_message_may_be_a_file_alone),
        cmocka_unit_test(a_blob_that_is_not_there_ends_the_turn),
        cmocka_unit_test(a_file_that_cannot_be_attached_is_named),
    };
    on_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
    return cmocka_run_group_tests(tests, open_all, close_all);
}
