/* One model call on an event loop, with the request that the turn machine yields.
 *
 *   model_call KIND URL MODEL QUESTION
 *
 * KIND is openai-chat or anthropic-messages. The key is in the variable MODEL_KEY, if the
 * endpoint needs one; SSL_CERT_FILE names certificates to trust instead of the system's.
 *
 *   cc model_call.c $(pkg-config --cflags --libs holdfast-net)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/model.h>

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define must(rc) ((rc) ? die(err.message) : (void)0)

static struct hf_err err;
static struct hf_surface *surface;
static struct hf_setup *setup;
static int code = 1;

static void die(const char *why)
{
    fprintf(stderr, "model_call: %s\n", why);
    exit(1);
}

/* Text is shown as it comes; the end says what it cost, or what went wrong. */
static void on_event(void *user, const struct hf_model_event *event)
{
    (void)user;
    if (event->kind == HF_MODEL_TEXT)
        printf("%.*s", (int)event->text.len, (const char *)event->text.at);
    if (event->kind != HF_MODEL_END)
        return;
    if (event->error) {
        fprintf(stderr, "model_call: %s (%s, %s)\n",
                (const char *)event->error->message.at, event->error->code,
                event->error->transient && event->error->charge_safe ? "safe to repeat"
                                                                     : "not to repeat");
        return;
    }
    printf("\n%s: %lld tokens in, %lld out\n", event->response->model,
           (long long)event->response->usage.input,
           (long long)event->response->usage.output);
    code = 0;
}

/* The request of a turn with one user message. */
static struct hf_turn *ask(const struct hf_model *model, const char *question,
                           struct hf_effect *ret_effect)
{
    struct hf_turn *turn = NULL;
    struct hf_part part = { .content = TEXT(question) };
    struct hf_message message = { .id = "q", .parts = &part, .part_count = 1 };
    struct hf_turn_start start = { sizeof(start), .session_id = "demo", .turn_id = "t1" };
    struct hf_turn_config config = { sizeof(config), .turn_budget = 1 };
    start.inputs = &(struct hf_record){ .message = &message };
    start.input_count = 1;
    must(hf_surface_new(NULL, TEXT("You are brief."), TEXT(""), &surface, &err));
    config.surface = surface;
    config.protocol = hf_protocol_standard();
    hf_model_apply(model, &config);
    must(hf_setup_new(&config, &setup, &err));
    must(hf_turn_new(setup, &start, &turn, &err));
    while (ret_effect->kind != HF_EFFECT_LLM_CALL)
        must(hf_turn_poll(turn, ret_effect, &err));
    return turn;
}

int main(int argc, char **argv)
{
    struct hf_loop *loop = NULL;
    struct hf_transport *http = NULL;
    struct hf_secret *key = NULL;
    struct hf_provider *provider = NULL;
    struct hf_model *model = NULL;
    struct hf_render *render = NULL;
    struct hf_effect effect = { 0 };
    uint64_t call = 0;
    if (argc != 5)
        die("usage: model_call KIND URL MODEL QUESTION");
    struct hf_http_config config = { sizeof(config), .ca_file = getenv("SSL_CERT_FILE") };
    must(hf_loop_new(NULL, &loop, &err));
    must(hf_http_new(loop, &config, &http, &err));
    if (getenv("MODEL_KEY"))
        must(hf_secret_new("model", HF_SECRET_ENV, "MODEL_KEY", &key, &err));
    struct hf_endpoint endpoint = { sizeof(endpoint), .name = "demo", .kind = argv[1] };
    endpoint.base_url = argv[2];
    endpoint.key = key;
    must(hf_endpoint_new(loop, &endpoint, http, &provider, &err));
    struct hf_model_config entry = { sizeof(entry), .provider = provider, .id = argv[3] };
    entry.context_tokens = 128000;
    entry.output_tokens = 1000;
    must(hf_model_new(&entry, &model, &err));

    struct hf_turn *turn = ask(model, argv[4], &effect);
    must(hf_render_new(turn, effect.request, &render, &err));
    struct hf_model_call request = { sizeof(request), .request = effect.request };
    request.render = render;
    struct hf_model_sink sink = { NULL, on_event };
    must(hf_provider_start(provider, &request, &sink, &call, &err));
    hf_loop_run(loop); /* until nothing is left to do */

    hf_render_free(render);
    hf_turn_free(turn);
    hf_setup_free(setup);
    hf_surface_free(surface);
    hf_model_free(model);
    hf_provider_free(provider);
    hf_secret_free(key);
    hf_loop_free(loop);
    return code;
}
