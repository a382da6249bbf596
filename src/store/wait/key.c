/* Keys of waits. A key is the id of a wait and a MAC over it, made with a secret that the
 * store holds, so that its bearer may answer this one wait. A handle keeps the secrets that it has
 * read: a rotation by another process is seen within a second. */
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "store/wait/wait.h"

#define FRESH_MS 1000

static int read_secrets(struct sql_store *store, struct sql_secrets *ret_secrets,
                        struct hf_err *err)
{
    struct sql_secrets secrets = { .count = 0 };
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    hf_ops_call(&ops, HF_SQL_WAIT_SECRETS, HF_ANY_COUNT);
    int rc = hf_ops_read(&ops, err);
    const struct hf_call *found = rc == 0 ? hf_ops_result(&ops, 0) : NULL;
    for (size_t i = 0; rc == 0 && i < found->out_count && i < 2; i++) {
        const char *id = hf_out_text(found, i, HF_COL_WAIT_SECRETS_KEY_ID);
        const struct hf_val *bytes = hf_out(found, i, HF_COL_WAIT_SECRETS_SECRET);
        struct hf_wait_secret *one = &secrets.all[i];
        if (!id || strlen(id) != sizeof one->key_id - 1 ||
            bytes->len != sizeof one->bytes)
            rc = hf_fail(err, HF_ECORRUPT, "wait_secret", "a secret cannot be read");
        if (rc)
            break;
        memcpy(one->key_id, id, sizeof one->key_id);
        memcpy(one->bytes, bytes->at, sizeof one->bytes);
        secrets.valid_until[i] = hf_out_i64(found, i, HF_COL_WAIT_SECRETS_VALID_UNTIL);
        secrets.count++;
    }
    hf_ops_fini(&ops);
    secrets.read_at = store->handle.clock->mono_ms(store->handle.clock->user);
    if (rc == 0) {
        pthread_mutex_lock(&store->lock);
        store->secrets = secrets;
        pthread_mutex_unlock(&store->lock);
        *ret_secrets = secrets;
    }
    return rc;
}

/* As the handle knows them, read again where they are not fresh. */
static int get_secrets(struct sql_store *store, struct sql_secrets *ret_secrets,
                       struct hf_err *err)
{
    hf_ms now = store->handle.clock->mono_ms(store->handle.clock->user);
    pthread_mutex_lock(&store->lock);
    *ret_secrets = store->secrets;
    pthread_mutex_unlock(&store->lock);
    bool fresh = ret_secrets->count > 0 && now - ret_secrets->read_at < FRESH_MS;
    return fresh ? 0 : read_secrets(store, ret_secrets, err);
}

/* Append a new secret, which is the current one if there is none. */
static int add_secret(struct sql_store *store, struct hf_ops *ops, struct hf_err *err)
{
    uint8_t *bytes = hf_arena_take(&ops->arena, HF_DIGEST_BYTES);
    char *id = hf_arena_take(&ops->arena, HF_NONCE_TEXT);
    if (!bytes || !id)
        return hf_fail_plain(err, HF_ENOMEM);
    int rc = hf_nonce(store->handle.random, id, err);
    if (rc == 0 &&
        store->handle.random->fill(store->handle.random->user, bytes, HF_DIGEST_BYTES))
        rc = hf_fail(err, HF_EINTERNAL, NULL,
                     "the random source failed while a secret was made");
    if (rc)
        return rc;
    id[HF_WAIT_KEYID_TEXT - 1] = '\0';
    hf_ops_call(ops, HF_SQL_WAIT_SECRET_ADD, HF_ANY_COUNT);
    hf_ops_text(ops, id);
    hf_ops_bytes(ops, bytes, HF_DIGEST_BYTES);
    return 0;
}

static int first_secret(struct sql_store *store, struct hf_err *err)
{
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, store->handle.alloc);
    int rc = add_secret(store, &ops, err);
    if (rc == 0)
        rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc;
}

int sql_wait_key(struct hf_store *handle, const char *wait_id,
                 char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err)
{
    struct sql_store *store = sql_store_of(handle);
    struct sql_secrets secrets = { .count = 0 };
    int rc = get_secrets(store, &secrets, err);
    if (rc == 0 && (secrets.count == 0 || secrets.valid_until[0])) {
        rc = first_secret(store, err);
        if (rc == 0)
            rc = read_secrets(store, &secrets, err);
    }
    if (rc == 0 && secrets.count == 0)
        rc = hf_fail(err, HF_EINTERNAL, NULL, "the store's secret was not found again");
    return rc ? rc : hf_wait_key_write(&secrets.all[0], wait_id, ret_key, err);
}

static bool holds(const struct sql_secrets *secrets, const struct hf_wait_claim *claim,
                  hf_ms now)
{
    bool good = false;
    for (size_t i = 0; i < secrets->count; i++)
        if (!secrets->valid_until[i] || secrets->valid_until[i] > now)
            good |= hf_wait_key_holds(claim, &secrets->all[i]);
    return good;
}

static bool knows(const struct sql_secrets *secrets, const char *key_id)
{
    for (size_t i = 0; i < secrets->count; i++)
        if (hf_same(secrets->all[i].key_id, key_id))
            return true;
    return false;
}

int sql_wait_key_check(struct hf_store *handle, const char *key,
                       char ret_wait_id[HF_WAIT_ID_TEXT], bool *ret_holds,
                       struct hf_err *err)
{
    struct sql_store *store = sql_store_of(handle);
    struct sql_secrets secrets;
    struct hf_wait_claim claim;
    *ret_holds = false;
    if (!hf_wait_key_read(key, &claim))
        return 0;
    int rc = get_secrets(store, &secrets, err);
    if (rc == 0 && !knows(&secrets, claim.key_id)) /* made since they were read */
        rc = read_secrets(store, &secrets, err);
    if (rc)
        return rc;
    *ret_holds = holds(&secrets, &claim, sql_wall(store));
    memcpy(ret_wait_id, claim.wait_id, sizeof claim.wait_id);
    return 0;
}

int sql_wait_rotate(struct hf_store *handle, hf_ms valid_ms, struct hf_err *err)
{
    struct sql_store *store = sql_store_of(handle);
    struct sql_secrets secrets;
    struct hf_ops ops;
    hf_ops_init(&ops, store->sql, handle->alloc);
    hf_ops_call(&ops, HF_SQL_WAIT_SECRET_DROP, HF_ANY_COUNT);
    hf_ops_call(&ops, HF_SQL_WAIT_SECRET_RETIRE, HF_ANY_COUNT);
    hf_ops_i64(&ops, valid_ms);
    int rc = add_secret(store, &ops, err);
    if (rc == 0)
        rc = hf_ops_write(&ops, err);
    hf_ops_fini(&ops);
    return rc ? rc : read_secrets(store, &secrets, err);
}
