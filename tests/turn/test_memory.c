/* Each allocation of a job fails once, and then once and for ever after. The job says
 * HF_ENOMEM and nothing more, leaves nothing behind, and, where it may be done again,
 * does the same as if nothing had happened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/code.h>

#include "turn/kit.h"

struct golden {
    char *text;
    size_t len;
};

static struct golden recording;
static struct golden save;
static struct golden code_recording;
static struct golden code_save;

static struct golden load(const char *name)
{
    char path[4096];
    const char *folder = getenv("HF_GOLDEN");
    snprintf(path, sizeof(path), "%s/%s", folder ? folder : "tests/turn/golden", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct golden golden = { calloc(1, 1 << 20), 0 };
    golden.len = fread(golden.text, 1, (1 << 20) - 1, file);
    fclose(file);
    return golden;
}

static int load_all(void **state)
{
    (void)state;
    recording = load("v1-turn.jsonl");
    save = load("v1-tools-partial.save");
    code_recording = load("v1-code.jsonl");
    code_save = load("v1-code-finished.save");
    return 0;
}

static int drop_all(void **state)
{
    (void)state;
    free(recording.text);
    free(save.text);
    free(code_recording.text);
    free(code_save.text);
    return 0;
}

static struct hf_span next_line(const char **at)
{
    size_t len = strcspn(*at, "\n");
    struct hf_span line = { *at, len };
    *at += len + ((*at)[len] == '\n');
    return line;
}

/* A job's surroundings. `again`: how often a call that ran out of memory is repeated. */
struct job {
    struct fail_alloc memory;
    int again;
    struct hf_surface *surface;
    struct hf_setup *setup;
    struct hf_turn *turn;
    struct hf_replay *replay;
    struct hf_protocol *protocol;
    struct hf_bytes bytes;
    struct hf_err err;
};

typedef int (*job_fn)(struct job *job);

/* Does it, again if allowed; ends the job when it fails. */
#define DO(call)                                                                         \
    do {                                                                                 \
        int rc_ = (call);                                                                \
        while (rc_ == HF_ENOMEM && job->again > 0) {                                     \
            job->again--;                                                                \
            rc_ = (call);                                                                \
        }                                                                                \
        if (rc_)                                                                         \
            return rc_;                                                                  \
    } while (0)

static int run_once(job_fn run, struct job *job, int64_t fail_at, bool stays, int again)
{
    memset(job, 0, sizeof(*job));
    fail_alloc_init(&job->memory, fail_at);
    job->memory.stays = stays;
    job->again = again;
    int rc = run(job);
    hf_bytes_free(&job->bytes);
    hf_replay_free(job->replay);
    hf_turn_free(job->turn);
    hf_setup_free(job->setup);
    hf_surface_free(job->surface);
    hf_code_free(job->protocol);
    assert_int_equal(job->memory.live, 0);
    return rc;
}

static void sweep(job_fn run, bool repeatable)
{
    static struct job job;
    assert_int_equal(run_once(run, &job, 0, false, 0), 0);
    int64_t all = job.memory.calls;
    assert_true(all > 0);
    for (int64_t i = 1; i <= all; i++) {
        assert_int_equal(run_once(run, &job, i, false, 0), HF_ENOMEM);
        if (repeatable)
            assert_int_equal(run_once(run, &job, i, false, 1), 0);
        assert_int_equal(run_once(run, &job, i, true, 1), HF_ENOMEM);
    }
}

static int make_setup(struct job *job)
{
    struct hf_turn_config config = { .size = sizeof(config),
                                     .alloc = &job->memory.alloc,
                                     .protocol = job->protocol ? job->protocol
                                                               : hf_protocol_standard(),
                                     .model = "model-1",
                                     .route = "prov/model-1",
                                     .turn_budget = 8 };
    DO(hf_surface_new(&job->memory.alloc, kit_span("You help."), kit_span(KIT_TOOLS),
                      &job->surface, &job->err));
    config.surface = job->surface;
    DO(hf_setup_new(&config, &job->setup, &job->err));
    return 0;
}

static int make_turn(struct job *job)
{
    struct hf_part part = { .content = kit_span("hi") };
    struct hf_message message = kit_message("m1", HF_ROLE_USER, &part);
    struct hf_record input = { .message = &message };
    struct hf_turn_start start = { .size = sizeof(start),
                                   .session_id = "s1",
                                   .turn_id = "t1",
                                   .inputs = &input,
                                   .input_count = 1 };
    int rc = make_setup(job);
    if (rc)
        return rc;
    DO(hf_turn_new(job->setup, &start, &job->turn, &job->err));
    DO(hf_recording_head(job->setup, &start, &job->bytes, &job->err));
    const char *at = recording.text;
    struct hf_span head = next_line(&at);
    assert_int_equal(job->bytes.len, head.len);
    assert_memory_equal(job->bytes.at, head.at, head.len);
    hf_bytes_free(&job->bytes);
    return 0;
}

/* The golden turn by JSON: its effects must come, its responses are given. */
static int run_json(struct job *job)
{
    const char *at = recording.text;
    const char *json = NULL;
    int rc = make_turn(job);
    if (rc)
        return rc;
    (void)next_line(&at);
    while (*at) {
        struct hf_span line = next_line(&at);
        if (strncmp(line.at, "{\"response\"", 11) == 0) {
            DO(hf_turn_respond_json(job->turn, line, &job->err));
            continue;
        }
        DO(hf_turn_poll_json(job->turn, &json, &job->err));
        assert_non_null(json);
        assert_int_equal(strlen(json), line.len);
        assert_memory_equal(json, line.at, line.len);
    }
    return 0;
}

static int run_surface(struct job *job)
{
    DO(hf_surface_new(&job->memory.alloc, kit_span("You help."), kit_span(KIT_TOOLS),
                      &job->surface, &job->err));
    return 0;
}

/* A line that ran out of memory may have taken its effect: the replay is over then. */
static int replay_all(struct job *job, const char *at)
{
    int rc = hf_replay_new(&job->memory.alloc, next_line(&at), NULL, &job->replay,
                           &job->err);
    while (rc == 0 && *at)
        rc = hf_replay_line(job->replay, next_line(&at), &job->bytes, &job->err);
    return rc ? rc : hf_replay_end(job->replay, &job->bytes, &job->err);
}

static int run_replay(struct job *job)
{
    return replay_all(job, recording.text);
}

static int run_code_replay(struct job *job)
{
    return replay_all(job, code_recording.text);
}

static int run_divergence(struct job *job)
{
    const char *at = recording.text;
    int rc = hf_replay_new(&job->memory.alloc, next_line(&at), NULL, &job->replay,
                           &job->err);
    if (rc == 0)
        rc = hf_replay_line(job->replay, kit_span("{\"effect\":\"done\"}"), &job->bytes,
                            &job->err);
    if (rc != HF_ECONFLICT)
        return rc;
    assert_non_null(strstr(job->bytes.at, "\"progress\""));
    return 0;
}

static int run_export(struct job *job)
{
    struct hf_turn *turn = NULL;
    struct hf_span golden = { save.text, save.len };
    int rc = make_setup(job);
    if (rc)
        return rc;
    DO(hf_turn_restore(job->setup, golden, NULL, &job->turn, &job->err));
    DO(hf_turn_export(job->turn, &job->bytes, &job->err));
    struct hf_span exported = { job->bytes.at, job->bytes.len };
    DO(hf_turn_restore(job->setup, exported, NULL, &turn, &job->err));
    hf_turn_free(job->turn);
    job->turn = turn;
    hf_bytes_free(&job->bytes);
    DO(hf_turn_save(job->turn, &job->bytes, &job->err));
    assert_int_equal(job->bytes.len, save.len);
    assert_memory_equal(job->bytes.at, save.text, save.len);
    return 0;
}

static int run_describe(struct job *job)
{
    struct hf_span golden = { save.text, save.len };
    DO(hf_turn_describe(&job->memory.alloc, golden, &job->bytes, &job->err));
    assert_non_null(strstr(job->bytes.at, "\nbody.state: waiting_tools\n"));
    assert_non_null(strstr(job->bytes.at, "\nbody.wait.calls[1].answered: true\n"));
    return 0;
}

static int run_code_surface(struct job *job)
{
    DO(hf_code_new(&job->memory.alloc,
                   kit_span("{\"finish\":\"required\",\"schema\":{}}"), &job->protocol,
                   &job->err));
    DO(hf_code_surface(&job->memory.alloc, job->protocol, kit_span("You help."),
                       kit_span(KIT_TOOLS), &job->surface, &job->err));
    return 0;
}

/* Reading back, and showing all of a history that has everything in it. */
static int run_code_history(struct job *job)
{
    struct hf_span golden = { code_save.text, code_save.len };
    struct hf_render *render = NULL;
    DO(hf_code_new(&job->memory.alloc, kit_span("{}"), &job->protocol, &job->err));
    int rc = make_setup(job);
    if (rc)
        return rc;
    DO(hf_turn_restore(job->setup, golden, NULL, &job->turn, &job->err));
    DO(hf_code_history(job->turn, kit_span("{\"step\":2}"), &job->bytes, &job->err));
    assert_string_equal(
        job->bytes.at, "{\"code\":\"finish({n = 1.50})\",\"output\":[],\"final\":{\"n\": "
                       "1.50}}");
    hf_bytes_free(&job->bytes);
    struct hf_request request = { .model = "m",
                                  .records = hf_turn_record_count(job->turn) };
    DO(hf_render_new(job->turn, &request, &render, &job->err));
    hf_render_free(render);
    return 0;
}

static int run_code_trajectory(struct job *job)
{
    struct hf_span golden = { code_save.text, code_save.len };
    DO(hf_code_trajectory(&job->memory.alloc, golden, &job->bytes, &job->err));
    assert_non_null(strstr(job->bytes.at, "\"code\":\"x = 1\\nprint(x)\""));
    return 0;
}

static void code_turns_need_all_their_memory(void **state)
{
    (void)state;
    sweep(run_code_replay, false);
    sweep(run_code_surface, true);
    sweep(run_code_history, true);
    sweep(run_code_trajectory, true);
}

static void a_surface_needs_all_its_memory(void **state)
{
    (void)state;
    sweep(run_surface, true);
}

static void a_turn_by_json_comes_out_the_same(void **state)
{
    (void)state;
    sweep(run_json, true);
}

static void a_replay_reports_it_and_never_a_divergence(void **state)
{
    (void)state;
    sweep(run_replay, false);
    sweep(run_divergence, false);
}

static void an_export_comes_back_as_the_save_it_was(void **state)
{
    (void)state;
    sweep(run_export, true);
}

static void a_description_is_whole_or_none(void **state)
{
    (void)state;
    sweep(run_describe, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_surface_needs_all_its_memory),
        cmocka_unit_test(a_turn_by_json_comes_out_the_same),
        cmocka_unit_test(a_replay_reports_it_and_never_a_divergence),
        cmocka_unit_test(an_export_comes_back_as_the_save_it_was),
        cmocka_unit_test(a_description_is_whole_or_none),
        cmocka_unit_test(code_turns_need_all_their_memory),
    };
    return cmocka_run_group_tests(tests, load_all, drop_all);
}
