/* journal STORE PROCESS_ID
 *
 * Pays invoice 17 for a background process, once: a second run prints what the first one recorded.
 *
 *   cc journal.c $(pkg-config --cflags --libs holdfast) -o journal
 */
#include <holdfast/holdfast.h>

#include <stdio.h>

/* Real code passes the effect's key to the service, so that a repeat pays nothing. */
static int pay(int invoice, int cents)
{
    return printf("paid invoice %d: %d cents\n", invoice, cents) > 0 ? 0 : -1;
}

static void use(enum hf_entry_status status, const char *outcome)
{
    (void)printf("%s before: %s\n", hf_entry_status_name(status), outcome);
}

static void come_back_in(hf_ms ms)
{
    (void)printf("another process performs it; come back in %lld ms\n", (long long)ms);
}

static int pay_once(struct hf_store *store, const char *process_id, struct hf_err *err)
{
    struct hf_journal_begin begin = { .size = sizeof(begin),
                                      .of = { HF_SCOPE_PROCESS, process_id,
                                              "invoice-17" },
                                      .kind = "pay",
                                      .recovery = HF_RECOVERY_KEYED,
                                      .envelope = "{\"invoice\":17,\"cents\":1200}",
                                      .owner = "billing" };
    struct hf_journal_answer *seen = NULL;
    int rc = hf_journal_begin(store, NULL, &begin, &seen, err);
    if (rc == 0 && seen->decision == HF_DECISION_REPLAY)
        use(seen->status, seen->outcome); /* settled before: done, failed or unknown */
    else if (rc == 0 && seen->decision == HF_DECISION_BUSY)
        come_back_in(seen->busy_ms);
    else if (rc == 0 && seen->act == HF_RECOVER_RUN) /* absent, or taken over */
        rc = pay(17, 1200) == 0 ? hf_journal_settle(store, &begin.of, seen->token,
                                                    HF_ENTRY_DONE, "{\"paid\":true}", err)
                                : 0; /* not known: no outcome; the lease lapses */
    hf_journal_answer_free(seen);
    return rc;
}

int main(int argc, char **argv)
{
    struct hf_store *store = NULL;
    struct hf_err err = { 0 };
    if (argc != 3) {
        (void)fprintf(stderr, "usage: journal STORE PROCESS_ID\n");
        return 2;
    }
    int rc = hf_store_open(argv[1], NULL, &store, &err);
    if (rc == 0)
        rc = pay_once(store, argv[2], &err);
    hf_store_close(store);
    if (rc)
        (void)fprintf(stderr, "journal: %s: %s\n", err.message, hf_err_action(rc));
    return rc ? hf_err_exit(rc) : 0;
}
