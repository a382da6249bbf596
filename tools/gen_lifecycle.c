/* Prints what follows from the table of edges: SQL guards and documentation.
 *
 *     gen_lifecycle checks     CHECK lines for the enum columns of work_state
 *     gen_lifecycle law        legal changes, as a condition on OLD and NEW
 *     gen_lifecycle birth      legal first statuses, as a condition on NEW
 *     gen_lifecycle law_pg, birth_pg
 *                              the same for PostgreSQL, as searches in one literal, which take
 *                              it less than a long chain of comparisons
 *     gen_lifecycle checks_pg  and of the checks, with the shapes of rows: one condition on a
 *                              row w, with arrays for chains
 *     gen_lifecycle markdown   the edge table and the matrix
 *     gen_lifecycle mermaid    the state diagram
 *
 * OR chains and no IN lists: in a CHECK an IN list halves the speed of SQLite's inserts.
 */

#include <stdio.h>
#include <string.h>

#include "core/ledger/lifecycle.h"

static const char *const gates[] = { "due", "lane", "limit", "rate", "held", NULL };
static const char *const waits[] = { "user", "external", NULL };

static const char *const by_words[] = {
    [HF_BY_CREATE] = "creator",       [HF_BY_CLAIM] = "claimant",
    [HF_BY_HOLDER] = "holder, token", [HF_BY_ANYBODY] = "anybody",
    [HF_BY_AUTHORITY] = "authority",  [HF_BY_SWEEP] = "sweep",
};

/* ---- CHECKs ------------------------------------------------------------------------ */

static void begin_check(const char *column, bool nullable)
{
    printf("    CHECK (");
    if (nullable)
        printf("%s IS NULL OR ", column);
}

static void check_list(const char *column, const char *const *words)
{
    begin_check(column, true);
    for (size_t i = 0; words[i]; i++)
        printf("%s%s = '%s'", i ? " OR " : "", column, words[i]);
    printf("),\n");
}

/* Not of the status: the migration's CHECK of whole rows names every one, and a chain of ten
 * comparisons costs each close-out. */
static void print_checks(void)
{
    check_list("gate", gates);
    begin_check("disposition", true);
    for (int i = 1; i < HF_DISPOSITION_COUNT; i++)
        printf("%sdisposition = '%s'", i > 1 ? " OR " : "",
               hf_disposition_word((enum hf_disposition)i));
    printf("),\n");
    begin_check("source_system", false);
    for (int i = 1; i < HF_SOURCE_COUNT; i++)
        printf("%ssource_system = '%s'", i > 1 ? " OR " : "",
               hf_source_word((enum hf_source)i));
    printf("),\n");
    check_list("waiting_kind", waits);
}

/* ---- the law ----------------------------------------------------------------------- */

/* Targets of one status, or "" when it has none. A requeue also counts a generation. */
static void print_targets(enum hf_status from, const char *indent)
{
    const char *between = "";
    printf("%s(OLD.status = '%s' AND (", indent, hf_status_word(from));
    for (int to = 1; to < HF_STATUS_COUNT; to++) {
        if (!hf_edge_legal(from, (enum hf_status)to, NULL))
            continue;
        printf("%sNEW.status = '%s'", between, hf_status_word((enum hf_status)to));
        between = " OR ";
    }
    printf(")");
    if (hf_status_terminal(from))
        printf(" AND NEW.generation = OLD.generation + 1");
    printf(")");
}

static void print_law(void)
{
    for (int from = 1; from < HF_STATUS_COUNT; from++) {
        print_targets((enum hf_status)from, from > 1 ? "        OR " : "        ");
        printf("\n");
    }
}

static void print_birth(void)
{
    const char *between = "        ";
    for (int to = 1; to < HF_STATUS_COUNT; to++) {
        if (!hf_edge_legal(HF_STATUS_NONE, (enum hf_status)to, NULL))
            continue;
        /* The only row that is born waiting is nobody's here. */
        if (to == HF_WAITING_EXTERNAL)
            printf("%s(NEW.status = '%s' AND coalesce(NEW.disposition, '') = "
                   "'externally_owned')",
                   between, hf_status_word((enum hf_status)to));
        else
            printf("%sNEW.status = '%s'", between, hf_status_word((enum hf_status)to));
        between = " OR ";
    }
    printf("\n");
}

/* ---- the same, short ----------------------------------------------------------------- */

static const char *status_at(int i)
{
    return hf_status_word((enum hf_status)i);
}

static const char *disposition_at(int i)
{
    return hf_disposition_word((enum hf_disposition)i);
}

static const char *source_at(int i)
{
    return hf_source_word((enum hf_source)i);
}

static void print_array(const char *(*word_at)(int), int count)
{
    printf("'");
    for (int i = 1; i < count; i++)
        printf("%c%s", i > 1 ? ',' : '{', word_at(i));
    printf("}'");
}

/* What else a row has is told by its status: a gate, what it waits for, a claim, the time of a
 * retry, an end; and at most one of them. */
static void print_shapes(void)
{
    const char *between = "{";
    printf("    num_nonnulls(w.gate, w.waiting_kind, w.claim_group, w.next_retry_at, "
           "w.finished_at) < 2\n"
           "    AND w.status || ':' || coalesce(w.gate, w.waiting_kind, '') = ANY (CASE\n"
           "        WHEN w.claim_group IS NOT NULL THEN '{%s:}'::text[]\n"
           "        WHEN w.finished_at IS NOT NULL THEN '",
           status_at(HF_RUNNING));
    for (int i = 1; i < HF_STATUS_COUNT; i++) {
        if (!hf_status_terminal((enum hf_status)i))
            continue;
        printf("%s%s:", between, status_at(i));
        between = ",";
    }
    printf("}'\n        WHEN w.waiting_kind IS NOT NULL THEN '{%s:user,%s:external}'\n"
           "        WHEN w.next_retry_at IS NOT NULL THEN '{%s:}'\n        ELSE '{%s:",
           status_at(HF_WAITING_USER), status_at(HF_WAITING_EXTERNAL),
           status_at(HF_RETRY_SCHEDULED), status_at(HF_QUEUED));
    for (size_t i = 0; gates[i]; i++)
        printf(",%s:%s", status_at(HF_QUEUED), gates[i]);
    printf("}' END)\n");
}

static void print_checks_pg(void)
{
    print_shapes();
    printf("    AND w.disposition = ANY (");
    print_array(disposition_at, HF_DISPOSITION_COUNT);
    printf(")\n    AND w.source_system = ANY (");
    print_array(source_at, HF_SOURCE_COUNT);
    printf(")\n");
}

/* ",from>to," for each edge; of what is finished, with a + for the next generation. */
static void print_law_pg(void)
{
    printf("    strpos('");
    for (int from = 1; from < HF_STATUS_COUNT; from++)
        for (int to = 1; to < HF_STATUS_COUNT; to++)
            if (hf_edge_legal((enum hf_status)from, (enum hf_status)to, NULL))
                printf(",%s>%s%s", status_at(from), status_at(to),
                       hf_status_terminal((enum hf_status)from) ? "+" : "");
    printf(",', ',' || OLD.status || '>' || NEW.status || CASE WHEN OLD.finished_at IS "
           "NULL\n"
           "        THEN ',' WHEN NEW.generation = OLD.generation + 1 THEN '+,' ELSE '?' "
           "END)"
           " > 0\n");
}

static void print_birth_pg(void)
{
    printf("    strpos('");
    for (int to = 1; to < HF_STATUS_COUNT; to++)
        if (hf_edge_legal(HF_STATUS_NONE, (enum hf_status)to, NULL))
            printf(",%s%s", status_at(to),
                   to == HF_WAITING_EXTERNAL ? "+externally_owned" : "");
    printf(
        ",', ',' || NEW.status || CASE WHEN NEW.status = 'waiting_external'\n"
        "        THEN coalesce('+' || NEW.disposition, '?') ELSE '' END || ',') > 0\n");
}

/* ---- documentation ----------------------------------------------------------------- */

static const char *word_or(enum hf_status status, const char *otherwise)
{
    const char *word = hf_status_word(status);
    return word ? word : otherwise;
}

static void print_edges(void)
{
    printf("| from | to | verb | by | condition | event |\n"
           "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < hf_edge_count; i++) {
        const struct hf_edge *edge = &hf_edges[i];
        printf("| %s | %s | %s | %s | %s | `%s` |\n", word_or(edge->from, "(new)"),
               word_or(edge->to, "?"), edge->verb, by_words[edge->by], edge->condition,
               hf_edge_event(edge->from, edge->to, edge->verb));
    }
}

/* The verbs of one cell, each once, in the table's order. */
static void print_cell(enum hf_status from, enum hf_status to)
{
    const char *between = " ";
    for (size_t i = 0; i < hf_edge_count; i++) {
        if (hf_edges[i].from != from || hf_edges[i].to != to)
            continue;
        printf("%s%s", between, hf_edges[i].verb);
        between = ", ";
    }
    printf(" |");
}

static void print_matrix(void)
{
    printf("| from \\ to |");
    for (int to = 1; to < HF_STATUS_COUNT; to++)
        printf(" %s |", hf_status_word((enum hf_status)to));
    printf("\n|---|");
    for (int to = 1; to < HF_STATUS_COUNT; to++)
        printf("---|");
    printf("\n");
    for (int from = 0; from < HF_STATUS_COUNT; from++) {
        printf("| **%s** |", word_or((enum hf_status)from, "(new)"));
        for (int to = 1; to < HF_STATUS_COUNT; to++)
            print_cell((enum hf_status)from, (enum hf_status)to);
        printf("\n");
    }
}

static void print_markdown(void)
{
    print_edges();
    printf("\n");
    print_matrix();
}

static void print_mermaid(void)
{
    printf("stateDiagram-v2\n");
    for (int from = 0; from < HF_STATUS_COUNT; from++) {
        for (int to = 1; to < HF_STATUS_COUNT; to++) {
            const char *between = ": ";
            if (!hf_edge_legal((enum hf_status)from, (enum hf_status)to, NULL))
                continue;
            printf("    %s --> %s", word_or((enum hf_status)from, "[*]"),
                   hf_status_word((enum hf_status)to));
            for (size_t i = 0; i < hf_edge_count; i++) {
                if ((int)hf_edges[i].from != from || (int)hf_edges[i].to != to)
                    continue;
                printf("%s%s", between, hf_edges[i].verb);
                between = ", ";
            }
            printf("\n");
        }
    }
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "checks") == 0)
        print_checks();
    else if (strcmp(what, "law") == 0)
        print_law();
    else if (strcmp(what, "birth") == 0)
        print_birth();
    else if (strcmp(what, "checks_pg") == 0)
        print_checks_pg();
    else if (strcmp(what, "law_pg") == 0)
        print_law_pg();
    else if (strcmp(what, "birth_pg") == 0)
        print_birth_pg();
    else if (strcmp(what, "markdown") == 0)
        print_markdown();
    else if (strcmp(what, "mermaid") == 0)
        print_mermaid();
    else {
        fprintf(stderr, "usage: gen_lifecycle "
                        "checks|law|birth|checks_pg|law_pg|birth_pg|"
                        "markdown|mermaid\n");
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
