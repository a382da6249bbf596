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
    [HF_BY_HOLDER] = "holder, token", [HF_BY_ANYBODY] = "any caller",
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

/* The condition on a row's disposition for some of enum hf_of; "" for all. */
static const char *of_condition(unsigned of)
{
    switch (of) {
    case HF_OF_FREE:
        return " AND coalesce(NEW.disposition, '') <> 'owner_bound'"
               " AND coalesce(NEW.disposition, '') <> 'externally_owned'";
    case HF_OF_BOUND: return " AND coalesce(NEW.disposition, '') = 'owner_bound'";
    case HF_OF_EXTERNAL: return " AND coalesce(NEW.disposition, '') = 'externally_owned'";
    case HF_OF_HERE: return " AND coalesce(NEW.disposition, '') <> 'externally_owned'";
    case HF_OF_KEPT:
        return " AND (coalesce(NEW.disposition, '') = 'owner_bound'"
               " OR coalesce(NEW.disposition, '') = 'externally_owned')";
    default: return "";
    }
}

/* "(NEW.status = ... OR ...)" of the statuses that can follow. */
static void print_targets(enum hf_status from)
{
    const char *between = "(";
    for (int to = 1; to < HF_STATUS_COUNT; to++) {
        unsigned of = hf_edge_of(from, (enum hf_status)to);
        if (!of)
            continue;
        bool all = of == HF_OF_ANY;
        printf("%s%sNEW.status = '%s'%s%s", between, all ? "" : "(",
               hf_status_word((enum hf_status)to), of_condition(of), all ? "" : ")");
        between = " OR ";
    }
    printf(")");
}

/* A requeue sets the failures to 0. */
static void print_law(void)
{
    for (int from = 1; from < HF_STATUS_COUNT; from++) {
        printf("        %s(OLD.status = '%s' AND ", from > 1 ? "OR " : "",
               hf_status_word((enum hf_status)from));
        print_targets((enum hf_status)from);
        printf("%s)\n",
               hf_status_terminal((enum hf_status)from) ? " AND NEW.failures = 0" : "");
    }
}

static void print_birth(void)
{
    printf("        ");
    print_targets(HF_STATUS_NONE);
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

/* The status of a row tells which of these it has, at most one: a gate, what it waits
 * for, a claim, the time of a retry, an end. */
static void print_shapes(void)
{
    const char *between = "{";
    printf("    num_nonnulls(w.gate, w.waiting_kind, w.claim_group, w.next_retry_at, "
           "w.finished_at) < 2\n"
           "    AND w.status || ':' || coalesce(w.gate, w.waiting_kind, '') = ANY (CASE\n"
           "        WHEN w.claim_group IS NOT NULL THEN '{%s:}'::text[]\n"
           "        WHEN w.finished_at IS NOT NULL THEN '",
           status_at(HF_STATUS_RUNNING));
    for (int i = 1; i < HF_STATUS_COUNT; i++) {
        if (!hf_status_terminal((enum hf_status)i))
            continue;
        printf("%s%s:", between, status_at(i));
        between = ",";
    }
    printf("}'\n        WHEN w.waiting_kind IS NOT NULL THEN '{%s:user,%s:external}'\n"
           "        WHEN w.next_retry_at IS NOT NULL THEN '{%s:}'\n        ELSE '{%s:",
           status_at(HF_STATUS_WAITING_USER), status_at(HF_STATUS_WAITING_EXTERNAL),
           status_at(HF_STATUS_RETRY_SCHEDULED), status_at(HF_STATUS_QUEUED));
    for (size_t i = 0; gates[i]; i++)
        printf(",%s:%s", status_at(HF_STATUS_QUEUED), gates[i]);
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

static const char of_letters[] = "fbe"; /* of the bits of enum hf_of */

/* ",from>to/f" for each edge and each kind of unit that may take it, in one literal; a birth
 * comes from nothing. */
static void print_edge_words(int first)
{
    printf("'");
    for (int from = first; from < HF_STATUS_COUNT; from++)
        for (int to = 1; to < HF_STATUS_COUNT; to++)
            for (unsigned i = 0; i < 3; i++)
                if (hf_edge_of((enum hf_status)from, (enum hf_status)to) & (1U << i))
                    printf(",%s>%s/%c", from ? status_at(from) : "", status_at(to),
                           of_letters[i]);
    printf(",'");
}

/* Which letter a row has. */
static void print_kind(const char *row)
{
    printf(
        "CASE %s.disposition WHEN 'owner_bound' THEN '/b,' WHEN 'externally_owned' THEN "
        "'/e,' ELSE '/f,' END",
        row);
}

static void print_law_pg(void)
{
    printf("    strpos(");
    print_edge_words(1);
    printf(", ',' || OLD.status || '>' || NEW.status\n        || ");
    print_kind("NEW");
    printf(") > 0\n    AND (OLD.finished_at IS NULL OR NEW.failures = 0)\n");
}

static void print_birth_pg(void)
{
    printf("    strpos(");
    print_edge_words(0);
    printf(", ',>' || NEW.status\n        || ");
    print_kind("NEW");
    printf(") > 0\n");
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
    static const struct {
        const char *name;
        void (*print)(void);
    } pieces[] = {
        { "checks", print_checks },     { "law", print_law },
        { "birth", print_birth },       { "checks_pg", print_checks_pg },
        { "law_pg", print_law_pg },     { "birth_pg", print_birth_pg },
        { "markdown", print_markdown }, { "mermaid", print_mermaid },
    };
    const char *what = argc == 2 ? argv[1] : "";
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        if (strcmp(what, pieces[i].name) != 0)
            continue;
        pieces[i].print();
        return fflush(stdout) == 0 ? 0 : 1;
    }
    fprintf(stderr, "usage: gen_lifecycle PIECE, as its source says\n");
    return 2;
}
