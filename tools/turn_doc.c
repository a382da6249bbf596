/* Writes the generated part of docs/internals/turn.md from the machine's own tables.
 *
 *   turn_doc                  print it
 *   turn_doc --write FILE     put it between the marks of FILE
 *   turn_doc --check FILE     fail when FILE has another text there */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/turn/machine.h"

static const char begin_mark[] = "<!-- made by tools/turn_doc.c: begin -->\n";
static const char end_mark[] = "<!-- made by tools/turn_doc.c: end -->\n";

static void put_edges(FILE *out)
{
    for (enum hf_turn_state from = HF_TURN_PREPARING; from <= HF_TURN_FINISHED; from++) {
        for (enum hf_turn_state to = HF_TURN_PREPARING; to <= HF_TURN_FINISHED; to++) {
            const char *comma = "";
            for (enum hf_turn_event on = HF_ON_POLL; on < HF_ON_COUNT; on++) {
                bool leads = false;
                for (size_t i = 0; i < hf_turn_rule_count; i++) {
                    const struct hf_turn_rule *rule = &hf_turn_rules[i];
                    leads = leads || (rule->from == from && rule->on == on &&
                                      (rule->to & 1u << to) != 0);
                }
                if (!leads)
                    continue;
                if (!*comma)
                    fprintf(out, "    %s --> %s: ", hf_turn_state_name(from),
                            hf_turn_state_name(to));
                fprintf(out, "%s%s", comma, hf_turn_event_name(on));
                comma = ", ";
            }
            if (*comma)
                fputc('\n', out);
        }
    }
}

static void put_rules(FILE *out)
{
    fputs("| in state | on | when | does | then |\n|---|---|---|---|---|\n", out);
    for (size_t i = 0; i < hf_turn_rule_count; i++) {
        const struct hf_turn_rule *rule = &hf_turn_rules[i];
        const char *comma = "";
        fprintf(out, "| %s | %s | %s | %s | ", hf_turn_state_name(rule->from),
                hf_turn_event_name(rule->on), rule->when, rule->does);
        for (enum hf_turn_state to = HF_TURN_PREPARING; to <= HF_TURN_FINISHED; to++) {
            if ((rule->to & 1u << to) == 0)
                continue;
            fprintf(out, "%s%s", comma, hf_turn_state_name(to));
            comma = ", ";
        }
        fputs(" |\n", out);
    }
}

static void put_all(FILE *out)
{
    fputs(begin_mark, out);
    fputs("\n```mermaid\nstateDiagram-v2\n    [*] --> preparing\n", out);
    put_edges(out);
    fputs("    finished --> [*]\n```\n\n", out);
    put_rules(out);
    fputs("\n", out);
    fputs(end_mark, out);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

static int update(const char *path, bool write)
{
    char *text = read_file(path);
    char *made = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&made, &len);
    put_all(out);
    fclose(out);
    char *begin = strstr(text, begin_mark);
    char *end = begin ? strstr(begin, end_mark) : NULL;
    if (!end) {
        fprintf(stderr, "turn_doc: %s has no marks\n", path);
        return 1;
    }
    end += strlen(end_mark);
    bool same = (size_t)(end - begin) == len && memcmp(begin, made, len) == 0;
    if (!write && !same)
        fprintf(stderr, "turn_doc: %s is not what the rules say: turn_doc --write\n",
                path);
    if (write && !same) {
        FILE *file = fopen(path, "wb");
        if (!file)
            return 1;
        fwrite(text, 1, (size_t)(begin - text), file);
        fwrite(made, 1, len, file);
        fputs(end, file);
        same = fclose(file) == 0;
    }
    free(made);
    free(text);
    return same ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        put_all(stdout);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return update(argv[2], true);
    if (argc == 3 && strcmp(argv[1], "--check") == 0)
        return update(argv[2], false);
    fputs("usage: turn_doc [--write FILE | --check FILE]\n", stderr);
    return 2;
}
