/* An agent in a C host: one tool, one session, one question. Kill it anywhere and start it again:
 * it goes on where it was.
 *
 *   agent [STORE [QUESTION]]          (agent.db; without a question it finishes what is open)
 *
 * The model is the scripted one, which needs no key: it calls the tool that the question names.
 * For a real one, make the model with hf_config_endpoint, as model_turn.c does.
 *
 *   cc agent.c $(pkg-config --cflags --libs holdfast-net)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/agent.h>

#define TEXT(s) ((struct hf_span){ (s), strlen(s) })
#define must(rc) ((rc) ? die(err.message) : (void)0)

static struct hf_err err;

static void die(const char *why)
{
    fprintf(stderr, "agent: %s\n", why);
    exit(1);
}

/* A tool that blocks; it runs on a thread of the loop's executor. The key is the same if the call
 * is performed again, so a service behind it can tell a repeat. */
static void roll(void *user, struct hf_invocation *call)
{
    (void)user;
    fprintf(stderr, "roll %s\n", hf_invocation_key_text(call));
    if (hf_invocation_value(call, TEXT("{\"eyes\":4}")))
        fprintf(stderr,
                "agent: no memory for the answer\n"); /* the call fails: no answer */
}

static int list_tools(void *user, struct hf_toolset *into, struct hf_err *why)
{
    static const struct hf_tool tool = { .size = sizeof(tool),
                                         .name = "roll",
                                         .description = "Rolls a die.",
                                         .recovery = HF_RECOVERY_KEYED,
                                         .run = roll };
    (void)user;
    return hf_toolset_add(into, &tool, why);
}

/* Text as it comes. */
static void heard(void *user, const struct hf_worker_event *event)
{
    (void)user;
    if (event->kind == HF_WORKER_TEXT)
        printf("%.*s", (int)event->text.len, (const char *)event->text.at);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct hf_loop *loop = NULL;
    struct hf_store *store = NULL;
    struct hf_provider *provider = NULL;
    struct hf_model *model = NULL;
    struct hf_agent *agent = NULL;
    struct hf_agent_report *report = NULL;
    const struct hf_tool_source tools = { NULL, list_tools };
    must(hf_store_open(argc > 1 ? argv[1] : "agent.db", NULL, &store, &err));
    must(hf_loop_new(NULL, &loop, &err));
    must(hf_scripted_new(loop, 0, &provider, &err));
    const struct hf_model_config entry = { .size = sizeof(entry),
                                           .provider = provider,
                                           .id = "scripted",
                                           .context_tokens = 8000,
                                           .output_tokens = 1000 };
    must(hf_model_new(&entry, &model, &err));
    const struct hf_agent_config config = { .size = sizeof(config),
                                            .loop = loop,
                                            .store = store,
                                            .name = "dice",
                                            .model = model,
                                            .prompt = TEXT("You roll dice."),
                                            .sources = &tools,
                                            .source_count = 1,
                                            .heard = heard };
    must(hf_agent_new(&config, &agent, &err));
    const struct hf_agent_run run = { .size = sizeof(run),
                                      .session_id = "table-1",
                                      .text = argc > 2 ? argv[2] : NULL };
    must(hf_agent_run(agent, &run, &report, &err));
    printf("\n%s, %d tool call%s\n", report->outcome ? report->outcome : "nothing to do",
           (int)report->call_count, report->call_count == 1 ? "" : "s");
    hf_agent_report_free(report);
    hf_agent_free(agent);
    hf_model_free(model);
    hf_provider_free(provider);
    hf_loop_free(loop);
    hf_store_close(store);
    return 0;
}
