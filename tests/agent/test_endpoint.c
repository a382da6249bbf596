/* Calls over real sockets: what is heard, what arrived, and what never leaves. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/bounds.h>

#include "agent/server.h"

static struct server plain;
static struct heard heard;

#define CHAT "openai-chat"
#define MESSAGES "anthropic-messages"
#define HELLO "text Hello\ntext  world\npart text Hello world\nusage 10 2 0 0 0\n"
#define MSG_HELLO                                                                        \
    "usage 10 1 0 0 0\ntext Hello\ntext  world\npart text Hello world\nusage 10 2 0 0 "  \
    "0\n"

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void a_call_is_answered_by_both_kinds_streamed_split_or_whole(void **state)
{
    (void)state;
    struct client client;
    int before = descriptors();
    client_init(&client, &plain, CHAT, NULL, NULL);
    client_ask(&client, "text", &heard);
    heard_expect(&heard, HELLO "evidence 200 req-1 r1 served-1 stop\nend stop 1\n");
    client_ask(&client, "split", &heard);
    heard_expect(&heard, HELLO "evidence 200 req-1 r1 served-1 stop\nend stop 1\n");
    client_ask(&client, "whole", &heard);
    heard_expect(&heard, "text Hello world\npart text Hello world\nusage 10 2 0 0 0\n"
                         "evidence 200 - r1 served-1 stop\nend stop 1\n");
    client_fini(&client);
    client_init(&client, &plain, MESSAGES, NULL, NULL);
    client_ask(&client, "text", &heard);
    heard_expect(&heard,
                 MSG_HELLO "evidence 200 req-1 r1 served-1 end_turn\nend stop 1\n");
    client_ask(&client, "split", &heard);
    heard_expect(&heard,
                 MSG_HELLO "evidence 200 req-1 r1 served-1 end_turn\nend stop 1\n");
    client_fini(&client);
    assert_int_equal(descriptors(), before);
}

static void each_failure_is_told_as_what_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        const char *end;
    } rows[] = {
        { "cut", "end error transport connection_lost t\n" },
        { "500", "end error http server_error t\n" },
        { "redirect", "end error http redirected\n" },
        { "badjson", "end error unknown bad_json\n" },
        { "echo", "end error auth auth_refused\n" },
        { "nosuch", "end error unsupported model_unsupported\n" },
    };
    struct client client;
    int before = descriptors();
    for (int kind = 0; kind < 2; kind++) {
        client_init(&client, &plain, kind ? MESSAGES : CHAT, NULL, NULL);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            client_ask(&client, rows[i].model, &heard);
            assert_string_equal(strstr(heard.text, "end "), rows[i].end);
        }
        client_ask(&client, "text", &heard); /* the provider is unharmed */
        assert_non_null(strstr(heard.text, "end stop 1\n"));
        client_fini(&client);
    }
    assert_int_equal(descriptors(), before);
}

static void each_time_limit_ends_a_call(void **state)
{
    (void)state;
    struct client client;
    struct hf_http_config config = { .size = sizeof(config), .start_ms = 50 };
    client_init(&client, &plain, CHAT, &config, NULL);
    client_ask(&client, "hang", &heard);
    heard_expect(&heard, "end error timeout start_timeout ts\n");
    client_fini(&client);
    config = (struct hf_http_config){ .size = sizeof(config), .gap_ms = 50 };
    client_init(&client, &plain, CHAT, &config, NULL);
    client_ask(&client, "silent", &heard);
    heard_expect(&heard, "evidence 200 req-1 - - -\nend error timeout gap_timeout t\n");
    client_ask(&client, "stall", &heard);
    heard_expect(&heard, "text Hello\nevidence 200 req-1 r1 served-1 -\n"
                         "end error timeout gap_timeout t\n");
    client_fini(&client);
    config = (struct hf_http_config){ .size = sizeof(config), .whole_ms = 50 };
    client_init(&client, &plain, CHAT, &config, NULL);
    client_ask(&client, "stall", &heard);
    assert_string_equal(strstr(heard.text, "end "),
                        "end error timeout whole_timeout t\n");
    client_fini(&client);
}

static void nothing_listens_at_a_closed_port(void **state)
{
    (void)state;
    struct client client;
    struct server none = { .port = 1 };
    client_init(&client, &none, CHAT, NULL, NULL);
    client_ask(&client, "text", &heard);
    heard_expect(&heard, "end error transport connect_failed ts\n");
    client_fini(&client);
}

static void connections_are_kept_and_no_request_is_sent_twice(void **state)
{
    (void)state;
    struct client client;
    struct server own;
    server_start(&own, NULL);
    client_init(&client, &own, CHAT, NULL, NULL);
    client_ask(&client, "text", &heard);
    hf_loop_run(client.loop); /* the rest of the response, after its last event */
    client_ask(&client, "text", &heard);
    hf_loop_run(client.loop);
    assert_int_equal(server_saw(&own, "\"connection\": 1"), 2);
    client_ask(&client, "drop", &heard); /* the third on the kept connection */
    heard_expect(&heard, "end error transport connection_lost ts\n");
    assert_int_equal(server_saw(&own, "\"model\": \"drop\""), 1);
    client_fini(&client);
    server_stop(&own);
}

static void a_cancelled_call_is_silent_and_cancel_may_be_repeated(void **state)
{
    (void)state;
    struct client client;
    int before = descriptors();
    client_init(&client, &plain, CHAT, NULL, NULL);
    uint64_t id = client_begin(&client, "stall", "text Hello", &heard);
    heard_expect(&heard, "text Hello\n");
    assert_int_equal(hf_provider_cancel(client.provider, id), 0);
    assert_int_equal(hf_provider_cancel(client.provider, id), HF_ENOTFOUND);
    assert_int_equal(hf_provider_cancel(client.provider, 0), HF_ENOTFOUND);
    assert_int_equal(hf_provider_cancel(client.provider, 77), HF_ENOTFOUND);
    struct heard other;
    client_ask(&client, "text", &other);
    assert_int_equal(hf_provider_cancel(client.provider, id + 1), HF_ENOTFOUND);
    heard_expect(&heard, "text Hello\n");
    client_fini(&client);
    assert_int_equal(descriptors(), before);
}

/* Cancels itself at the n-th event. */
struct quitter {
    struct client *client;
    uint64_t id;
    int left;
    int after;
};

static void on_event(void *user, const struct hf_model_event *event)
{
    struct quitter *quitter = user;
    if (quitter->left < 0)
        quitter->after++;
    if (quitter->left-- == 0)
        assert_int_equal(hf_provider_cancel(quitter->client->provider, quitter->id),
                         event->kind == HF_MODEL_END ? HF_ENOTFOUND : 0);
}

static void a_call_may_be_cancelled_from_inside_every_event(void **state)
{
    (void)state;
    struct client client;
    client_init(&client, &plain, MESSAGES, NULL, NULL);
    for (int n = 0; n < 7; n++) { /* usage, two texts, part, usage, evidence, end */
        struct asked asked;
        struct hf_err err = { 0 };
        struct quitter quitter = { &client, 0, n, 0 };
        struct hf_model_sink sink = { &quitter, on_event };
        asked_simply(&asked, "", "");
        struct hf_request request = *asked.effect.request;
        request.model = "text";
        asked.call.request = &request;
        assert_int_equal(
            hf_provider_start(client.provider, &asked.call, &sink, &quitter.id, &err), 0);
        asked_fini(&asked);
        while (quitter.left >= 0)
            (void)hf_loop_step(client.loop, -1);
        client_ask(&client, "text", &heard); /* time for what must not come */
        assert_int_equal(quitter.after, 0);
    }
    client_fini(&client);
}

static void count_closed(void *user)
{
    ++*(int *)user;
}

static void a_closed_provider_ends_calls_refuses_new_ones_and_may_close_again(
    void **state)
{
    (void)state;
    struct client client;
    struct asked asked;
    struct hf_err err = { 0 };
    struct hf_model_sink sink = { &heard, heard_event };
    int told = 0;
    struct hf_closed closed = { &told, count_closed };
    uint64_t id = 0;
    client_init(&client, &plain, CHAT, NULL, NULL);
    (void)client_begin(&client, "stall", "text Hello", &heard);
    assert_int_equal(hf_provider_close(client.provider, &closed), 0);
    assert_int_equal(hf_provider_close(client.provider, NULL), 0);
    assert_int_equal(hf_provider_close(client.provider, &closed), 0);
    assert_int_equal(told, 0);
    asked_simply(&asked, "", "");
    assert_int_equal(hf_provider_start(client.provider, &asked.call, &sink, &id, &err),
                     HF_EFINISHED);
    asked_fini(&asked);
    while (told < 2)
        (void)hf_loop_step(client.loop, -1);
    heard_expect(&heard, "text Hello\n");
    client_fini(&client);
}

static void a_certificate_that_is_not_trusted_or_of_another_name_is_refused(void **state)
{
    (void)state;
    struct client client;
    struct server right;
    struct server wrong;
    server_start(&right, "DNS:localhost");
    server_start(&wrong, "DNS:elsewhere.example");
    struct hf_http_config config = { .size = sizeof(config), .ca_file = right.cert };
    client_init(&client, &right, CHAT, &config, NULL);
    client_ask(&client, "text", &heard);
    assert_non_null(strstr(heard.text, "end stop 1\n"));
    client_fini(&client);
    client_init(&client, &right, CHAT, NULL, NULL);
    client_ask(&client, "text", &heard);
    heard_expect(&heard, "end error transport tls_untrusted s\n");
    client_fini(&client);
    config.ca_file = wrong.cert;
    client_init(&client, &wrong, CHAT, &config, NULL);
    client_ask(&client, "text", &heard);
    heard_expect(&heard, "end error transport tls_untrusted s\n");
    client_fini(&client);
    assert_int_equal(server_saw(&wrong, "CANARY"), 0); /* the key never left */
    server_stop(&right);
    server_stop(&wrong);
}

static size_t read_file(const char *path, char *bytes, size_t room)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(bytes, 1, room - 1, file);
    bytes[len] = '\0';
    fclose(file);
    return len;
}

static void the_key_arrives_and_is_in_no_error_and_no_recording(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    struct client client;
    char path[] = "/tmp/holdfast-record.XXXXXX";
    close(mkstemp(path));
    client_init(&client, &plain, CHAT, NULL, path);
    client_ask(&client, "echo", &heard);
    assert_null(strstr(heard.text, "CANARY"));
    client_ask(&client, "leak", &heard);           /* cut inside the key too */
    assert_non_null(strstr(heard.text, "CANARY")); /* an answer is passed on as it is */
    assert_true(server_saw(&plain, "Bearer sk-CANARY") > 0);
    client_fini(&client);
    (void)read_file(path, bytes, sizeof(bytes));
    assert_null(strstr(bytes, "sk-CANARY"));
    const char *shown = strstr(bytes, "[secret:demo]"); /* the server had echoed it */
    assert_non_null(shown);
    assert_non_null(strstr(shown + 1, "[secret:demo]"));
    unlink(path);
}

static void a_recording_plays_the_same_again(void **state)
{
    (void)state;
    static char bytes[65536];
    static struct heard again;
    struct client client;
    char path[] = "/tmp/holdfast-record.XXXXXX";
    close(mkstemp(path));
    client_init(&client, &plain, CHAT, NULL, path);
    client_ask(&client, "split", &heard);
    hf_provider_free(client.provider);
    struct hf_span script = { bytes, read_file(path, bytes, sizeof(bytes)) };
    struct hf_transport *transport = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_script_new(client.loop, script, &transport, &err), 0);
    struct hf_endpoint endpoint = { .size = sizeof(endpoint),
                                    .name = "demo",
                                    .kind = CHAT,
                                    .base_url = "http://localhost/v1" };
    assert_int_equal(
        hf_endpoint_new(client.loop, &endpoint, transport, &client.provider, &err), 0);
    client_ask(&client, "any", &again);
    heard_expect(&again, heard.text);
    client_fini(&client);
    unlink(path);
}

static void a_secret_goes_nowhere_in_plain_http_and_bad_addresses_are_named(void **state)
{
    (void)state;
    static const char *const bad[] = { "ftp://localhost/", "localhost", "",
                                       "http://me:sk-CANARY@localhost/" };
    struct client client;
    struct hf_err err = { 0 };
    struct hf_transport *transport = NULL;
    struct hf_http_sink sink = { 0 };
    uint64_t id = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(hf_http_check_url(bad[i], "base_url", &err), HF_EINVAL);
        assert_string_equal(err.field, "base_url");
        assert_null(strstr(err.message, "CANARY"));
    }
    client_init(&client, &plain, CHAT, NULL, NULL);
    assert_int_equal(hf_http_new(client.loop, NULL, &transport, &err), 0);
    struct hf_http_header header = { "authorization", "Bearer ", client.key };
    struct hf_http_request request = { .size = sizeof(request),
                                       .url = "http://api.example/v1",
                                       .headers = &header,
                                       .header_count = 1 };
    assert_int_equal(transport->methods->start(transport, &request, &sink, &id, &err),
                     HF_EINVAL);
    assert_non_null(strstr(err.message, "[secret:demo]"));
    hf_transport_free(transport);
    client_fini(&client);
}

static int lend_much(void *user, const struct hf_attachment *attachment,
                     struct hf_span *ret_bytes, struct hf_err *err)
{
    (void)attachment;
    (void)err;
    *ret_bytes = *(struct hf_span *)user;
    return 0;
}

static void a_request_over_the_limit_or_without_its_attachment_is_not_sent(void **state)
{
    (void)state;
    struct client client;
    struct asked asked;
    struct hf_err err = { 0 };
    struct hf_model_sink sink = { &heard, heard_event };
    size_t len = (size_t)HF_MAX_MODEL_REQUEST_BYTES / 4 *
                 3; /* base64 is longer by a third */
    struct hf_span bytes = { calloc(1, len), len };
    uint64_t id = 0;
    int before = server_saw(&plain, "\"path\"");
    client_init(&client, &plain, CHAT, NULL, NULL);
    asked_image(&asked, "image/png", "{\"stream\":false}");
    asked.call.user = &bytes;
    asked.call.attachment = lend_much;
    assert_int_equal(hf_provider_start(client.provider, &asked.call, &sink, &id, &err),
                     HF_ETOOBIG);
    assert_string_equal(err.field, "request");
    asked.call.attachment = NULL;
    assert_int_equal(hf_provider_start(client.provider, &asked.call, &sink, &id, &err),
                     HF_EINVAL);
    assert_string_equal(err.field, "attachment");
    asked_fini(&asked);
    client_ask(&client, "text", &heard); /* the provider is unharmed */
    assert_non_null(strstr(heard.text, "end stop 1\n"));
    assert_int_equal(server_saw(&plain, "\"path\""), before + 1);
    client_fini(&client);
    free((void *)(uintptr_t)bytes.at);
}

static void a_server_that_is_killed_in_mid_stream_is_a_lost_connection(void **state)
{
    (void)state;
    struct client client;
    struct server own;
    server_start(&own, NULL);
    client_init(&client, &own, CHAT, NULL, NULL);
    (void)client_begin(&client, "stall", "text Hello", &heard);
    server_kill(&own);
    while (heard.ends == 0)
        (void)hf_loop_step(client.loop, -1);
    heard_expect(&heard, "text Hello\nevidence 200 req-1 r1 served-1 -\n"
                         "end error transport connection_lost t\n");
    client_fini(&client);
}

/* libuv opens two descriptors for the whole process with its first loop. */
static int start_server(void **state)
{
    struct hf_loop *loop = NULL;
    struct hf_err err = { 0 };
    (void)state;
    assert_int_equal(hf_loop_new(NULL, &loop, &err), 0);
    hf_loop_free(loop);
    server_start(&plain, NULL);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    server_stop(&plain);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered_by_both_kinds_streamed_split_or_whole),
        cmocka_unit_test(each_failure_is_told_as_what_it_is),
        cmocka_unit_test(each_time_limit_ends_a_call),
        cmocka_unit_test(nothing_listens_at_a_closed_port),
        cmocka_unit_test(connections_are_kept_and_no_request_is_sent_twice),
        cmocka_unit_test(a_cancelled_call_is_silent_and_cancel_may_be_repeated),
        cmocka_unit_test(a_call_may_be_cancelled_from_inside_every_event),
        cmocka_unit_test(
            a_closed_provider_ends_calls_refuses_new_ones_and_may_close_again),
        cmocka_unit_test(a_certificate_that_is_not_trusted_or_of_another_name_is_refused),
        cmocka_unit_test(the_key_arrives_and_is_in_no_error_and_no_recording),
        cmocka_unit_test(a_recording_plays_the_same_again),
        cmocka_unit_test(a_secret_goes_nowhere_in_plain_http_and_bad_addresses_are_named),
        cmocka_unit_test(a_request_over_the_limit_or_without_its_attachment_is_not_sent),
        cmocka_unit_test(a_server_that_is_killed_in_mid_stream_is_a_lost_connection),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
