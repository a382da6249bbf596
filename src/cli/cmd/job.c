/* holdfast limit set, list. */
#include "base/text.h"
#include "cli/cli.h"
#include "core/ledger/quota.h"

/* ---- limits -------------------------------------------------------------------------- */

static struct hf_quota given_limit(const struct cli *cli)
{
    return (struct hf_quota){ .size = sizeof(struct hf_quota),
                              .name = cli_text(cli, "name"),
                              .max_running = cli_number(cli, "max", 0),
                              .rate_count = cli_number(cli, "rate", 0),
                              .rate_ms = cli_number(cli, "per", 0),
                              .burst = cli_number(cli, "burst", 0) };
}

int check_limit(struct cli *cli)
{
    struct hf_quota limit = given_limit(cli);
    const char *name;
    if (cli_given(cli, "rate") != cli_given(cli, "per"))
        return hf_fail(&cli->err, HF_EINVAL, NULL, "--rate and --per go together");
    if (cli_given(cli, "burst") && !cli_given(cli, "rate"))
        return hf_fail(&cli->err, HF_EINVAL, NULL, "--burst goes with --rate");
    bool some = cli_given(cli, "max") || cli_given(cli, "rate");
    if (some == cli_given(cli, "none"))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "give --max, --rate and --per, or --none to lift the limit");
    int rc = hf_quota_check(&limit, &cli->err);
    return rc ? rc : hf_quota_name_of(&cli->arena, limit.name, NULL, &name, &cli->err);
}

int cmd_limit_set(struct cli *cli)
{
    struct hf_quota limit = given_limit(cli);
    int rc = hf_quota_set(cli->store, &cli->who, &limit, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "name", limit.name);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_put(cli, "limit ");
        cli_put_clean(cli, limit.name);
        cli_put(cli, cli_given(cli, "none") ? " lifted\n" : " set\n");
    }
    return 0;
}

struct limits_shown {
    struct cli *cli;
    struct cli_table table;
    size_t count;
};

static void json_limit(void *user, const struct hf_quota_state *state)
{
    struct hf_json *json = &((struct limits_shown *)user)->cli->writer;
    hf_json_object(json);
    hf_json_put_str(json, "name", state->limit.name);
    hf_json_put_str(json, "tenant", state->tenant);
    hf_json_put_i64(json, "max_running", state->limit.max_running);
    hf_json_put_i64(json, "rate_count", state->limit.rate_count);
    hf_json_put_i64(json, "rate_ms", state->limit.rate_ms);
    hf_json_put_i64(json, "burst", state->limit.burst);
    hf_json_put_i64(json, "used", state->used);
    hf_json_put_i64(json, "open", state->open);
    hf_json_put_i64(json, "waiting", state->waiting);
    hf_json_put_i64(json, "next_at", state->next_at);
    hf_json_end(json);
}

static const char *count_text(int64_t count, char out[24])
{
    struct hf_buf text;
    hf_buf_init(&text, hf_alloc_system(), 24);
    hf_buf_i64(&text, count);
    const char *from = count ? hf_buf_str(&text) : "-";
    size_t i = 0;
    for (; from[i] && i < 23; i++)
        out[i] = from[i];
    out[i] = 0;
    hf_buf_fini(&text);
    return out;
}

static void table_limit(void *user, const struct hf_quota_state *state)
{
    struct limits_shown *shown = user;
    char max[24], rate[24], per[24], used[24], waiting[24];
    const char *cells[] = { state->limit.name,
                            state->tenant[0] ? state->tenant : "-",
                            count_text(state->limit.max_running, max),
                            count_text(state->limit.rate_count, rate),
                            cli_duration(state->limit.rate_ms, per),
                            count_text(state->used, used),
                            count_text(state->waiting, waiting) };
    cli_table_row(&shown->table, cells, 6, state->waiting ? CLI_YELLOW : CLI_PLAIN);
    shown->count++;
}

int cmd_limit_list(struct cli *cli)
{
    static const char *const titles[] = { "NAME", "TENANT", ">MAX",    ">RATE",
                                          ">PER", ">USED",  ">WAITING" };
    struct limits_shown shown = { .cli = cli };
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_key(&cli->writer, "items");
        hf_json_array(&cli->writer);
    } else {
        cli_table_begin(&shown.table, cli, titles, sizeof(titles) / sizeof(titles[0]));
    }
    int rc = hf_quota_list(cli->store, &cli->who, cli->json ? json_limit : table_limit,
                           &shown, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        hf_json_end(&cli->writer);
        cli_ok_end(cli);
        return 0;
    }
    if (shown.count == 0)
        cli_put(cli, "no limits\n");
    return shown.count ? cli_table_end(&shown.table) : 0;
}
