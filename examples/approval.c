/* A tool that needs an approval: the turn is put away, and any process continues it.
 *
 *   approval STORE send AMOUNT   make a session and ask it to pay
 *   approval STORE work AMOUNT   drive turns until one has ended, or waits for a person; the model
 *                                asks for this amount
 *   approval STORE approve WAIT [ARGUMENTS]
 *   approval STORE deny WAIT REASON
 *
 * No process runs between these commands. `holdfast approve WAIT` and `holdfast deny WAIT` answer
 * as well. The model is a function below, so that the example needs no network.
 *
 *   cc approval.c $(pkg-config --cflags --libs holdfast-net)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/worker.h>

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define must(rc) ((rc) ? die(err.message) : (void)0)

static struct hf_err err;
static struct hf_loop *loop;
static bool over; /* a turn has ended, or was put away */

static void die(const char *why)
{
    fprintf(stderr, "approval: %s\n", why);
    exit(1);
}

/* ---- the tool ------------------------------------------------------------------------ */

static void pay(void *user, struct hf_invocation *call)
{
    struct hf_span args = hf_invocation_args(call);
    (void)user;
    printf("paid %.*s under the key %s\n", (int)args.len, (const char *)args.at,
           hf_invocation_key_text(call));
    must(hf_invocation_value(call, TEXT("\"paid\"")));
}

static struct hf_toolset *make_tools(void)
{
    struct hf_toolset *tools = NULL;
    struct hf_tool tool = {
        .size = sizeof(tool),
        .name = "pay",
        .recovery = HF_RECOVERY_KEYED,
        .run = pay,
        .approval = { .rule = "{\"/amount\":{\"minimum\":100}}", /* below: no approval */
                      .question = "May this be paid?",
                      .terms = { .within_ms = 86400000 } }, /* then it is denied */
    };
    tool.schema = TEXT("{\"type\":\"object\",\"required\":[\"amount\"],"
                       "\"properties\":{\"amount\":{\"type\":\"integer\"}}}");
    must(hf_toolset_new(NULL, &tools, &err));
    must(hf_toolset_add(tools, &tool, &err));
    return tools;
}

/* ---- a model that is a function ------------------------------------------------------ */

struct model {
    struct hf_provider provider;
    struct hf_model_sink sink;
    uint64_t iteration;
    char amount[32]; /* what the last message asks for */
};

/* First a call of the tool, then an answer. */
static void speak(void *user)
{
    struct model *model = user;
    char args[64];
    struct hf_part part = { .content = TEXT("That is all I can do.") };
    snprintf(args, sizeof(args), "{\"amount\":%s}", model->amount);
    if (model->iteration == 0)
        part = (struct hf_part){ .kind = HF_PART_TOOL_CALL,
                                 .call_id = "c1",
                                 .tool = "pay",
                                 .content = TEXT(args) };
    struct hf_llm_response response = { .size = sizeof(response),
                                        .parts = &part,
                                        .part_count = 1,
                                        .reason = model->iteration == 0
                                                      ? HF_REASON_TOOL_USE
                                                      : HF_REASON_STOP };
    struct hf_model_event event = { .kind = HF_MODEL_END, .response = &response };
    model->sink.event(model->sink.user, &event);
}

static const char *name(const struct hf_provider *provider)
{
    (void)provider;
    return "function";
}

static int start(struct hf_provider *provider, const struct hf_model_call *call,
                 const struct hf_model_sink *sink, uint64_t *ret_call, struct hf_err *why)
{
    struct model *model = (struct model *)(void *)provider;
    struct hf_task task = { model, speak };
    (void)why;
    model->sink = *sink;
    model->iteration = call->request->iteration;
    *ret_call = 1;
    return hf_loop_post(loop, &task);
}

static int cancel(struct hf_provider *provider, uint64_t call)
{
    (void)provider;
    (void)call;
    return HF_ENOTFOUND;
}

static int close_model(struct hf_provider *provider, const struct hf_closed *closed)
{
    (void)provider;
    (void)closed;
    return 0;
}

static void free_model(struct hf_provider *provider)
{
    (void)provider;
}

static const struct hf_provider_methods methods = { name, start, cancel, close_model,
                                                    free_model };

/* ---- the worker ---------------------------------------------------------------------- */

static void on_heard(void *user, const struct hf_worker_event *event)
{
    (void)user;
    if (event->kind == HF_WORKER_ASKED)
        printf("asked %s\n%s\n", event->wait_id, event->wait->asked);
    if (event->kind == HF_WORKER_AWAY)
        printf("the turn is put away\n");
    if (event->kind == HF_WORKER_TURN_ENDED)
        printf("the turn has ended: %s\n", hf_status_word(event->status));
    over = over || event->kind == HF_WORKER_AWAY || event->kind == HF_WORKER_TURN_ENDED;
}

static void on_stopped(void *user)
{
    bool *stopped = user;
    *stopped = true;
}

static void work(struct hf_store *store, const char *amount)
{
    struct model model = { .provider = { .methods = &methods } };
    struct hf_surface *surface = NULL;
    struct hf_setup *setup = NULL;
    struct hf_worker *worker = NULL;
    bool stopped = false;
    struct hf_task task = { &stopped, on_stopped };
    snprintf(model.amount, sizeof(model.amount), "%s", amount);
    must(hf_loop_new(NULL, &loop, &err));
    struct hf_toolset *tools = make_tools();
    must(hf_surface_new(NULL, TEXT("Pay."), hf_toolset_json(tools), &surface, &err));
    struct hf_turn_config turn = { .size = sizeof(turn),
                                   .protocol = hf_protocol_standard(),
                                   .surface = surface,
                                   .model = "function",
                                   .turn_budget = 4 };
    must(hf_setup_new(&turn, &setup, &err));
    struct hf_worker_agent agent = { .name = "payer",
                                     .setup = setup,
                                     .provider = &model.provider,
                                     .model = "function",
                                     .tools = tools };
    struct hf_worker_config config = { .size = sizeof(config),
                                       .loop = loop,
                                       .store = store,
                                       .agents = &agent,
                                       .agent_count = 1,
                                       .turns = 1,
                                       .heard = on_heard };
    must(hf_worker_new(&config, &worker, &err));
    while (!over)
        (void)hf_loop_step(loop, -1);
    hf_worker_stop(worker, 0, &task);
    while (!stopped)
        (void)hf_loop_step(loop, -1);
    hf_worker_free(worker);
    hf_loop_free(loop);
    hf_setup_free(setup);
    hf_surface_free(surface);
    hf_toolset_unref(tools);
}

/* ---- messages and answers ------------------------------------------------------------ */

static void send(struct hf_store *store, const char *amount)
{
    char message[256];
    struct hf_session_answer *made = NULL;
    struct hf_answer *sent = NULL;
    struct hf_session_spec session = { .size = sizeof(session),
                                       .session_id = "payments",
                                       .agent = "payer" };
    must(hf_session_create(store, NULL, &session, &made, &err));
    hf_session_answer_free(made);
    snprintf(message, sizeof(message),
             "{\"message\":{\"id\":\"u1\",\"parts\":[{\"content\":\"Pay %s.\"}]}}",
             amount);
    struct hf_session_send request = { .size = sizeof(request),
                                       .session_id = "payments",
                                       .message = message };
    must(hf_session_send(store, NULL, &request, &sent, &err));
    hf_answer_free(sent);
}

static void answer(struct hf_store *store, const char *wait_id, enum hf_wait_word word,
                   const char *text)
{
    struct hf_wait_answer *told = NULL;
    struct hf_caller who = { .size = sizeof(who),
                             .actor_kind = "human",
                             .actor = "anna" };
    struct hf_wait_resolve request = { .size = sizeof(request),
                                       .wait_id = wait_id,
                                       .word = word,
                                       .value = word == HF_ANSWER_APPROVE ? text : NULL,
                                       .reason = word == HF_ANSWER_DENY ? text : NULL };
    must(hf_wait_resolve(store, &who, &request, &told, &err));
    printf("%s: %s\n", told->accepted ? "answered" : "it was answered before",
           told->waits[0].outcome);
    hf_wait_answer_free(told);
}

int main(int argc, char **argv)
{
    struct hf_store *store = NULL;
    if (argc < 3)
        die("approval STORE send AMOUNT | work AMOUNT | approve WAIT [ARGUMENTS] | deny "
            "WAIT "
            "REASON");
    must(hf_store_open(argv[1], NULL, &store, &err));
    if (strcmp(argv[2], "send") == 0 && argc == 4)
        send(store, argv[3]);
    else if (strcmp(argv[2], "work") == 0 && argc == 4)
        work(store, argv[3]);
    else if (strcmp(argv[2], "approve") == 0 && argc >= 4)
        answer(store, argv[3], HF_ANSWER_APPROVE, argc > 4 ? argv[4] : NULL);
    else if (strcmp(argv[2], "deny") == 0 && argc == 5)
        answer(store, argv[3], HF_ANSWER_DENY, argv[4]);
    else
        die("there is no such command");
    hf_store_close(store);
    return 0;
}
