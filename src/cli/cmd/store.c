/* holdfast migrate, doctor, store bump, limits, version. */
#include "cli/cli.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/json_get.h"
#include "base/text.h"
#include "cli/version.h"

/* ---- migrate, bump ----------------------------------------------------------------- */

static int dump_sql(struct cli *cli)
{
    const char *sql = hf_store_schema_sql(cli_store_named(cli));
    if (!cli->json) {
        if (strstr(sql, "@schema@"))
            cli_put(cli, "-- @schema@ stands for the name of the schema, which is to be "
                         "first on the search_path\n");
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
    hf_text_free(cli->store, facts);
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
        cli_putf(cli,
                 "the store is in incarnation %lld; earlier tokens are refused from now "
                 "on\n",
                 (long long)incarnation);
    }
    return 0;
}

/* ---- log --------------------------------------------------------------------------- */

static void log_json(void *user, const struct hf_log_entry *entry)
{
    struct hf_json *json = &((struct cli *)user)->writer;
    hf_json_object(json);
    hf_json_put_i64(json, "log_id", entry->log_id);
    hf_json_put_i64(json, "at", entry->at);
    hf_json_put_str(json, "what", entry->what);
    hf_json_put_raw(json, "detail", entry->detail);
    hf_json_end(json);
}

static void log_line(void *user, const struct hf_log_entry *entry)
{
    struct cli *cli = user;
    char when[25];
    cli_putf(cli, "%s  %-10s ", hf_time_text(entry->at, when), entry->what);
    cli_put_clean(cli, entry->detail ? entry->detail : "");
    cli_put(cli, "\n");
}

int cmd_store_log(struct cli *cli)
{
    size_t limit = (size_t)cli_number(cli, "limit", 0);
    if (!cli->json) {
        int rc = hf_store_log(cli->store, 0, limit, log_line, cli, &cli->err);
        if (rc == 0 && cli->out.len == 0 && !cli->quiet)
            cli_put(cli, "nothing has happened to the store as a whole\n");
        return rc;
    }
    cli_ok_begin(cli);
    hf_json_key(&cli->writer, "items");
    hf_json_array(&cli->writer);
    int rc = hf_store_log(cli->store, 0, limit, log_json, cli, &cli->err);
    if (rc)
        return rc; /* the envelope of the failure takes its place */
    hf_json_end(&cli->writer);
    cli_ok_end(cli);
    return 0;
}

/* ---- doctor ------------------------------------------------------------------------ */

struct examination {
    struct cli *cli;
    int64_t bad;
    bool damaged;    /* some fault is of the data, not of the disk's room */
    char first[200]; /* fault */
};

static int verdict(const struct examination *exam)
{
    if (!exam->bad)
        return 0;
    return exam->damaged ? HF_ECORRUPT : HF_EFULL;
}

static void found_json(struct cli *cli, const struct hf_finding *finding)
{
    struct hf_json *json = &cli->writer;
    hf_json_object(json);
    hf_json_put_str(json, "what", finding->what);
    hf_json_put_str(json, "detail", finding->detail);
    hf_json_put_str(json, "advice", finding->advice);
    hf_json_put_bool(json, "bad", finding->bad);
    hf_json_end(json);
}

static void found_line(struct cli *cli, const struct hf_finding *finding)
{
    bool advice = finding->advice && *finding->advice;
    cli_colour(cli, finding->bad ? CLI_RED : advice ? CLI_YELLOW : CLI_GREEN);
    cli_put(cli, finding->bad ? "BAD   " : advice ? "note  " : "ok    ");
    cli_colour(cli, CLI_PLAIN);
    cli_put_clean(cli, finding->what);
    cli_put(cli, ": ");
    cli_put_clean(cli, finding->detail);
    cli_put(cli, "\n");
    if (advice) {
        cli_put(cli, "      what to do: ");
        cli_put_clean(cli, finding->advice);
        cli_put(cli, "\n");
    }
}

static void found(void *user, const struct hf_finding *finding)
{
    struct examination *exam = user;
    if (finding->bad && exam->bad++ == 0)
        (void)snprintf(exam->first, sizeof(exam->first), "%s: %s", finding->what,
                       finding->detail);
    exam->damaged |= finding->bad && strcmp(finding->what, "disk") != 0;
    if (exam->cli->json)
        found_json(exam->cli, finding);
    else
        found_line(exam->cli, finding);
}

/* The envelope has "ok" first, which is known only after all the findings: they are
 * written into a buffer of their own. */
static int doctor_json(struct cli *cli, const char *facts, struct examination *exam)
{
    struct hf_buf whole = cli->out;
    hf_buf_init(&cli->out, hf_alloc_system(), whole.max);
    hf_json_begin(&cli->writer, &cli->out);
    hf_json_array(&cli->writer);
    int rc = hf_store_check(cli->store, found, exam, &cli->err);
    if (rc == 0)
        hf_json_end(&cli->writer);
    struct hf_buf findings = cli->out;
    cli->out = whole;
    if (rc == 0)
        rc = hf_buf_state(&findings);
    if (rc == 0) {
        int code = verdict(exam);
        hf_json_begin(&cli->writer, &cli->out);
        hf_json_object(&cli->writer);
        hf_json_put_bool(&cli->writer, "ok", !exam->bad);
        if (code) {
            (void)hf_fail(&cli->err, code, NULL, "%lld faults; the first is %s",
                          (long long)exam->bad, exam->first);
            cli_put_error(cli, code);
        }
        hf_json_put_raw(&cli->writer, "facts", facts);
        hf_json_put_raw(&cli->writer, "findings", hf_buf_str(&findings));
        cli_ok_end(cli);
        cli->reported = code != 0;
        rc = code;
    }
    hf_buf_fini(&findings);
    return rc;
}

/* The facts are one flat object: a line each, without the quotes. */
static void put_facts(struct cli *cli, const char *facts)
{
    char line[512];
    size_t len = 0;
    bool in_string = false;
    for (const char *at = facts; *at; at++) {
        bool ends = !in_string && (*at == ',' || *at == '}');
        in_string = (*at == '"') != in_string;
        if (ends || len == sizeof(line) - 1) {
            line[len] = '\0';
            cli_put(cli, len ? "fact  " : "");
            cli_put_clean(cli, line);
            cli_put(cli, len ? "\n" : "");
            len = 0;
        } else if (*at == ':' && !in_string) {
            line[len++] = ' ';
        } else if (*at != '"' && (in_string || *at != '{')) {
            line[len++] = *at;
        }
    }
}

static int doctor_people(struct cli *cli, const char *facts, struct examination *exam)
{
    put_facts(cli, facts);
    int rc = hf_store_check(cli->store, found, exam, &cli->err);
    if (rc)
        return rc;
    if (!exam->bad) {
        cli_put(cli, "the store is in order\n");
        return 0;
    }
    rc = cli_flush(cli);
    return rc ? rc
              : hf_fail(&cli->err, verdict(exam), NULL, "%lld faults were found",
                        (long long)exam->bad);
}

int cmd_doctor(struct cli *cli)
{
    char *facts = NULL;
    struct examination exam = { .cli = cli };
    int rc = hf_store_facts(cli->store, &facts, &cli->err);
    if (rc)
        return rc;
    rc = cli->json ? doctor_json(cli, facts, &exam) : doctor_people(cli, facts, &exam);
    hf_text_free(cli->store, facts);
    return rc;
}

/* ---- limits, version --------------------------------------------------------------- */

static void json_limits(struct cli *cli)
{
    struct hf_json *json = &cli->writer;
    cli_ok_begin(cli);
    hf_json_key(json, "items");
    hf_json_array(json);
    for (size_t i = 0; hf_limit_at(i); i++) {
        const struct hf_limit_info *limit = hf_limit_at(i);
        hf_json_object(json);
        hf_json_put_str(json, "name", limit->name);
        hf_json_put_i64(json, "value", limit->value);
        hf_json_put_str(json, "unit", limit->unit);
        hf_json_put_str(json, "what", limit->what);
        hf_json_end(json);
    }
    hf_json_end(json);
    hf_json_key(json, "next");
    hf_json_null(json);
    cli_ok_end(cli);
}

int cmd_limits(struct cli *cli)
{
    static const char *const titles[] = { "LIMIT", ">VALUE", "UNIT", "OF" };
    struct cli_table table;
    if (cli->json) {
        json_limits(cli);
        return 0;
    }
    cli_table_begin(&table, cli, titles, 4);
    for (size_t i = 0; hf_limit_at(i); i++) {
        const struct hf_limit_info *limit = hf_limit_at(i);
        char value[24];
        (void)snprintf(value, sizeof(value), "%lld", (long long)limit->value);
        const char *cells[] = { limit->name, value, limit->unit, limit->what };
        cli_table_row(&table, cells, 0, CLI_PLAIN);
    }
    return cli_table_end(&table);
}

int cmd_version(struct cli *cli)
{
    if (!cli->json) {
        cli_putf(cli, "holdfast %s (schema %d, SQLite %s)\n", HF_VERSION,
                 hf_store_schema_version(), sqlite3_libversion());
        return 0;
    }
    cli_ok_begin(cli);
    hf_json_put_str(&cli->writer, "version", HF_VERSION);
    hf_json_put_i64(&cli->writer, "schema_version", hf_store_schema_version());
    hf_json_put_str(&cli->writer, "sqlite", sqlite3_libversion());
    cli_ok_end(cli);
    return 0;
}
