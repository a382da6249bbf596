/* holdfast migrate: brings a store's schema up to date. holdfast store bump: begins a new history
 * of a store, after a backup was restored, so that old leases are refused. */
#include "cli/cli.h"

#include <string.h>

#include "base/json_get.h"

/* ---- migrate, bump ----------------------------------------------------------------- */

static int dump_sql(struct cli *cli)
{
    const char *sql = hf_store_schema_sql(cli_store_named(cli));
    if (!cli->json) {
        if (strstr(sql, "@schema@"))
            cli_put(cli, "-- Replace @schema@ by the name of the schema, which must be "
                         "the first on the search_path.\n");
        cli_put(cli, sql);
        return 0;
    }
    cli_ok_begin(cli);
    hf_json_put_i64(&cli->writer, "schema_version", hf_store_schema_version());
    hf_json_put_str(&cli->writer, "sql", sql);
    cli_ok_end(cli);
    return 0;
}

/* A server's may be one ahead of this program's. */
static int read_version(struct cli *cli, int64_t *ret_version)
{
    char *facts = NULL;
    struct json_t *json = NULL;
    int rc = hf_store_facts(cli->store, &facts, &cli->err);
    if (rc == 0)
        rc = hf_json_parse((struct hf_span){ facts, strlen(facts) }, cli->out.max,
                           "facts", &json, &cli->err);
    if (rc == 0)
        *ret_version = hf_json_as_i64(hf_json_member(json, "schema_version"));
    hf_json_free(json);
    hf_store_text_free(cli->store, facts);
    return rc;
}

int cmd_migrate(struct cli *cli)
{
    int64_t version = 0;
    if (cli_given(cli, "dump-sql"))
        return dump_sql(cli);
    int rc = cli_open_store(cli);
    if (rc == 0)
        rc = read_version(cli, &version);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "schema_version", version);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_putf(cli, "the store has schema %lld\n", (long long)version);
    }
    return 0;
}

int cmd_store_bump(struct cli *cli)
{
    int64_t incarnation = 0;
    int rc = hf_store_bump(cli->store, &incarnation, &cli->err);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_i64(&cli->writer, "incarnation", incarnation);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        cli_putf(
            cli,
            "the store has incarnation %lld; earlier tokens are refused from now on\n",
            (long long)incarnation);
    }
    return 0;
}
