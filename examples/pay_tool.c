/* A tool that pays invoices and can find out whether it did: the class `probe`.
 *
 *     pay_tool
 *
 * Prints the declaration that a model receives. The bank of this program is a list in memory; a
 * real one recognises a payment by the key of the call, which is the same when a worker that died
 * is replaced. docs/effects.md explains it; tests/soak/turn_worker.c runs a tool in a worker.
 *
 *     cc pay_tool.c $(pkg-config --cflags --libs holdfast-net)
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/tool.h>

#define PAYMENTS 100

static char payments[PAYMENTS][512]; /* keys */
static size_t payment_count;

/* Whether a payment was made under this key; not 0: the bank cannot tell. */
static int bank_find(const char *key, bool *ret_paid)
{
    *ret_paid = false;
    for (size_t i = 0; i < payment_count; i++)
        *ret_paid = *ret_paid || strcmp(payments[i], key) == 0;
    return 0;
}

static int bank_pay(struct hf_span invoice, const char *key)
{
    bool paid = false;
    if (invoice.len == 0 || bank_find(key, &paid) || payment_count == PAYMENTS)
        return -1;
    if (!paid)
        (void)snprintf(payments[payment_count++], sizeof(payments[0]), "%s", key);
    return 0;
}

static void pay_invoice(void *user, struct hf_invocation *call)
{
    (void)user;
    int rc = bank_pay(hf_invocation_args(call), hf_invocation_key_text(call)) == 0
                 ? hf_invocation_text(call, (struct hf_span){ "paid", 4 })
                 : hf_invocation_unknown(call, "the bank did not answer");
    (void)
        rc; /* not 0: no memory for the answer. A call without an answer ends as unknown */
}

static enum hf_probe was_it_paid(void *user, struct hf_invocation *call)
{
    bool paid = false;
    (void)user;
    if (bank_find(hf_invocation_key_text(call), &paid) != 0)
        return HF_PROBE_CANNOT_TELL;
    if (!paid)
        return HF_PROBE_NOT_HAPPENED;
    return hf_invocation_text(call, (struct hf_span){ "paid", 4 }) ? HF_PROBE_CANNOT_TELL
                                                                   : HF_PROBE_HAPPENED;
}

int main(void)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"invoice\":{\"type\":\"integer\"}},"
        "\"required\":[\"invoice\"]}";
    struct hf_toolset *tools = NULL;
    struct hf_err err = { 0 };
    struct hf_tool pay = { .size = sizeof(pay),
                           .name = "pay",
                           .description = "Pays an invoice.",
                           .schema = { schema, strlen(schema) },
                           .recovery = HF_RECOVERY_PROBE, /* required */
                           .timeout_ms = 20000,
                           .run = pay_invoice,
                           .probe = was_it_paid };
    int rc = hf_toolset_new(NULL, &tools, &err);
    if (rc == 0)
        rc = hf_toolset_add(tools, &pay, &err);
    if (rc == 0)
        rc = puts(hf_toolset_json(tools).at) < 0;
    else
        (void)fprintf(stderr, "pay_tool: %s\n", err.message);
    hf_toolset_unref(tools);
    return rc ? 1 : 0;
}
