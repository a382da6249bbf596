/* Answers of operations in the forms of the shell: JSON, aligned tables and blocks for people,
 * one plain field per row (--field), and shell assignments (--shell). */
#include "cli/cli.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "op/act.h"

#define CURSOR_MAX 8192
#define TOKEN_FIELD "lease_token"

static struct cli_out *of(struct op_out *out)
{
    return (struct cli_out *)out; /* its first member */
}

static void ignore_fact(struct op_out *out, const struct hf_field *field, const void *row)
{
    (void)out;
    (void)field;
    (void)row;
}

static void ignore_text(struct op_out *out, const char *text)
{
    (void)out;
    (void)text;
}

static void put_note(struct op_out *out, const char *text)
{
    cli_note(of(out)->cli, "%s", text);
}

/* After the rows, where to continue. */
static int put_more(struct cli *cli, const struct op_list *list)
{
    if (!list->next && !list->next_id)
        return 0;
    int rc = cli_flush(cli); /* rows first, then the note */
    if (rc == 0 && list->next) {
        struct hf_buf quoted; /* a cursor may hold a name as its user chose it */
        hf_buf_init(&quoted, hf_alloc_system(), CURSOR_MAX);
        op_put_quoted(&quoted, list->next);
        cli_note(cli, "more rows: --after %s", hf_buf_str(&quoted));
        rc = hf_buf_state(&quoted);
        hf_buf_fini(&quoted);
    } else if (rc == 0 && list->next_id)
        cli_note(cli, "more rows: --after %lld", (long long)list->next_id);
    return rc;
}

/* ---- for people ---------------------------------------------------------------------- */

static int people_row(struct op_out *out, const struct op_row *row)
{
    struct cli *cli = of(out)->cli;
    const struct cli_view *view = cli_view_of(row->shape);
    if (!row->did)
        return view->detail ? view->detail(cli, row) : 0;
    if (!cli->quiet || row->token)
        view->line(cli, row);
    return 0;
}

static void people_begin(struct op_out *out, const struct op_list *list)
{
    struct cli_out *o = of(out);
    o->view = cli_view_of(list->shape);
    o->count = 0;
    if (o->view->columns)
        cli_table_begin(&o->table, o->cli, o->view->columns, o->view->count);
}

static int people_item(struct op_out *out, const struct op_row *row)
{
    struct cli_out *o = of(out);
    o->count++;
    if (row->did || !o->view->columns)
        o->view->line(o->cli, row);
    else
        o->view->cells(&o->table, row->at);
    return 0;
}

static int people_end(struct op_out *out, const struct op_list *list)
{
    struct cli_out *o = of(out);
    if (list->report && o->cli->quiet)
        return 0;
    if (o->count == 0 && list->none && !(list->did && o->cli->quiet)) {
        cli_put(o->cli, list->none);
        cli_put(o->cli, "\n");
    }
    int rc = o->count && !list->did && o->view->columns ? cli_table_end(&o->table)
                                                        : cli_flush_some(o->cli);
    return rc ? rc : put_more(o->cli, list);
}

static void people_say(struct op_out *out, const char *text)
{
    if (of(out)->cli->quiet)
        return;
    cli_put_clean(of(out)->cli, text);
    cli_put(of(out)->cli, "\n");
}

static const struct op_sink people_sink = { ignore_fact, people_row, people_begin,
                                            people_item, people_end, people_say,
                                            put_note };

/* ---- one field ------------------------------------------------------------------------ */

static bool wants_field(const struct cli *cli)
{
    return (cli->op->flags & (OP_SHELL | OP_FIELD)) && cli_given(cli, "field");
}

static bool wants_shell(const struct cli *cli)
{
    return (cli->op->flags & OP_SHELL) && cli_given(cli, "shell");
}

bool cli_wants_field(const struct cli *cli)
{
    return wants_field(cli);
}

static const struct hf_field *find_field(const char *name)
{
    for (size_t i = 0; i < hf_work_field_count; i++) {
        if (strcmp(hf_work_fields[i].name, name) == 0)
            return &hf_work_fields[i];
    }
    return NULL;
}

int cli_check_field(struct cli *cli)
{
    bool field = wants_field(cli), shell = wants_shell(cli);
    if ((field && shell) || ((field || shell) && cli->json))
        return hf_fail(&cli->err, HF_EINVAL, NULL,
                       "--json, --field and --shell exclude each other");
    if (!field)
        return 0;
    const char *name = cli_text(cli, "field");
    if (find_field(name) || strcmp(name, TOKEN_FIELD) == 0)
        return 0;
    struct hf_near near;
    hf_near_begin(&near, name);
    for (size_t i = 0; i < hf_work_field_count; i++)
        hf_near_try(&near, hf_work_fields[i].name);
    return hf_fail(&cli->err, HF_EINVAL, "--field",
                   near.best ? "--field: there is no field \"%.60s\"; did you mean %s?"
                             : "--field: there is no field \"%.60s\"%s",
                   name, near.best ? near.best : "");
}

static int field_row(struct op_out *out, const struct op_row *row)
{
    struct cli *cli = of(out)->cli;
    const struct hf_field *field = find_field(cli_text(cli, "field"));
    if (field)
        op_put_plain(&cli->out, field, row->at);
    else if (row->token)
        cli_put(cli, row->token);
    cli_put(cli, "\n");
    return cli_flush_some(cli);
}

static void field_begin(struct op_out *out, const struct op_list *list)
{
    (void)list;
    of(out)->count = 0;
}

static int field_end(struct op_out *out, const struct op_list *list)
{
    return put_more(of(out)->cli, list);
}

static const struct op_sink field_sink = { ignore_fact, field_row, field_begin,
                                           field_row,   field_end, ignore_text,
                                           put_note };

/* ---- shell assignments ---------------------------------------------------------------- */

/* NAME='value' with the one quoting that every POSIX shell reads back as it was. */
static void put_assignment(struct cli *cli, const char *name, const char *value)
{
    cli_put(cli, "HF_");
    for (; *name; name++)
        hf_buf_char(&cli->out, (char)toupper((unsigned char)*name));
    cli_put(cli, "='");
    for (; *value; value++) {
        if (*value == '\'')
            cli_put(cli, "'\\''");
        else
            hf_buf_char(&cli->out, *value);
    }
    cli_put(cli, "'\n");
}

/* Every name is assigned, so that none keeps the value of an earlier row. */
static int put_shell(struct cli *cli, const struct op_row *row)
{
    for (size_t i = 0; i < hf_work_field_count; i++) {
        struct hf_buf value;
        hf_buf_init(&value, hf_alloc_system(), cli->out.max);
        if (row)
            op_put_plain(&value, &hf_work_fields[i], row->at);
        int rc = hf_buf_state(&value);
        put_assignment(cli, hf_work_fields[i].name, hf_buf_str(&value));
        hf_buf_fini(&value);
        if (rc)
            return hf_fail_plain(&cli->err, rc);
    }
    put_assignment(cli, TOKEN_FIELD, row && row->token ? row->token : "");
    return 0;
}

static int shell_row(struct op_out *out, const struct op_row *row)
{
    return of(out)->count++ ? 0 : put_shell(of(out)->cli, row);
}

static int shell_end(struct op_out *out, const struct op_list *list)
{
    (void)list;
    return of(out)->count ? 0 : put_shell(of(out)->cli, NULL);
}

static const struct op_sink shell_sink = { ignore_fact, shell_row, field_begin,
                                           shell_row,   shell_end, ignore_text,
                                           put_note };

/* ---- an answer ------------------------------------------------------------------------ */

static int flush_json(struct op_json_out *json)
{
    return cli_flush_some(((struct cli_out *)(void *)json)->cli);
}

void cli_out_begin(struct cli_out *out, struct cli *cli)
{
    *out = (struct cli_out){ .cli = cli };
    if (cli->json) {
        op_json_init(&out->json, &cli->call, &cli->out);
        out->json.flush = flush_json;
    } else if (wants_shell(cli)) {
        out->out.sink = &shell_sink;
    } else {
        out->out.sink = wants_field(cli) ? &field_sink : &people_sink;
    }
    cli->call.out = &out->out;
}

void cli_out_end(struct cli_out *out)
{
    if (out->cli->json)
        op_json_end(&out->json);
}

int cli_perform(struct cli *cli)
{
    struct cli_out out;
    cli_out_begin(&out, cli);
    int rc = op_perform(&cli->call);
    cli->action = cli->call.action ? cli->call.action : cli->action;
    cli->exit_code = cli->call.exit_code;
    if (rc)
        return rc;
    cli_out_end(&out);
    cli->reported = cli->json && cli->call.verdict;
    if (cli->call.verdict && !cli->json)
        rc = cli_flush(cli); /* the answer first, then what it amounts to */
    return rc ? rc : cli->call.verdict;
}

/* ---- rows of commands that the table does not run -------------------------------------- */

void cli_json_event(struct cli *cli, const struct hf_event *event)
{
    for (size_t f = 0; f < hf_event_field_count; f++)
        op_put_field(&cli->writer, &hf_event_fields[f], event);
}
