/* A host that begins one effect outside a turn, as a program that can be killed.
 *
 *   effect_holder STORE SCOPE SCOPE_ID KEY RECOVERY
 *
 * It prints "DECISION STATUS OUTCOME", for what is not settled "DECISION -". Of an effect that it
 * holds it reads a line from standard input: "unknown" settles it so, and at the end of the input
 * it ends and settles nothing. A lease lasts 750 ms and is not renewed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/holdfast.h>

#define must(rc) ((rc) ? die(err.message) : (void)0)

static struct hf_err err;

static void die(const char *why)
{
    fprintf(stderr, "effect_holder: %s\n", why);
    exit(1);
}

int main(int argc, char **argv)
{
    struct hf_store *store = NULL;
    struct hf_journal_answer *seen = NULL;
    char line[64] = "";
    if (argc != 6)
        die("usage: effect_holder STORE SCOPE SCOPE_ID KEY RECOVERY");
    struct hf_journal_begin begin = { .size = sizeof(begin),
                                      .of = { HF_SCOPE_OPERATION, argv[3], argv[4] },
                                      .kind = "pay",
                                      .envelope = "{\"cents\":1200}",
                                      .owner = "billing",
                                      .ttl_ms = 750 };
    if (strcmp(argv[2], "process") == 0)
        begin.of.scope = HF_SCOPE_PROCESS;
    if (!hf_recovery_read(argv[5], &begin.recovery))
        die("RECOVERY is safe, keyed, probe or ask");
    must(hf_store_open(argv[1], NULL, &store, &err));
    must(hf_journal_begin(store, NULL, &begin, &seen, &err));
    printf("%s %s%s%s\n", hf_decision_name(seen->decision),
           seen->outcome ? hf_entry_status_name(seen->status) : "-",
           seen->outcome ? " " : "", seen->outcome ? seen->outcome : "");
    fflush(stdout);
    if (seen->token && fgets(line, sizeof(line), stdin))
        must(hf_journal_settle(store, &begin.of, seen->token, HF_ENTRY_UNKNOWN,
                               "{\"sent\":true,\"answered\":false}", &err));
    hf_journal_answer_free(seen);
    hf_store_close(store);
    return 0;
}
