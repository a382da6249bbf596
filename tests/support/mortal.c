/* See mortal.h. */
#include "support/mortal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "store/batch/sql_gen.h"

struct mortal {
    struct hf_sql sql; /* first */
    struct hf_sql *real;
    struct mortal_plan *plan;
    struct hf_sql_methods methods;
};

static struct hf_sql *real_of(struct hf_sql *sql)
{
    return ((struct mortal *)sql)->real;
}

void mortal_die(void)
{
    (void)raise(SIGKILL);
}

static int run(struct hf_sql *sql, struct hf_batch *batch, struct hf_err *err)
{
    struct mortal_plan *plan = ((struct mortal *)sql)->plan;
    bool counts = !batch->read_only || plan->reads_too;
    bool here = counts && ++plan->calls == plan->die_at;
    plan->renewals += counts && batch->calls[0].statement == HF_SQL_SESSION_RENEW;
    plan->statements += counts ? (int64_t)batch->call_count : 0;
    if (here && plan->side == MORTAL_BEFORE)
        mortal_die();
    if (here && plan->side == MORTAL_MIDDLE)
        plan->in_the_middle(real_of(sql));
    int rc = real_of(sql)->methods->run(real_of(sql), batch, err);
    if (here && plan->side == MORTAL_AFTER)
        mortal_die();
    batch->now -= plan->slow_ms;
    batch->lease_now -= plan->slow_ms;
    return rc;
}

static void forget(struct hf_sql *sql, struct hf_batch *batch)
{
    real_of(sql)->methods->forget(real_of(sql), batch);
}

static uint32_t bell_seen(struct hf_sql *sql, uint32_t topic)
{
    return real_of(sql)->methods->bell_seen(real_of(sql), topic);
}

static bool bell_wait(struct hf_sql *sql, uint32_t topic, uint32_t seen, hf_ms ms)
{
    return real_of(sql)->methods->bell_wait(real_of(sql), topic, seen, ms);
}

static void bell_ring(struct hf_sql *sql, uint32_t topic, uint32_t count)
{
    real_of(sql)->methods->bell_ring(real_of(sql), topic, count);
}

static int facts(struct hf_sql *sql, struct hf_span *ret_json, struct hf_err *err)
{
    return real_of(sql)->methods->facts(real_of(sql), ret_json, err);
}

static void close_driver(struct hf_sql *sql)
{
    real_of(sql)->methods->close(real_of(sql));
    free(sql);
}

static const struct hf_sql_methods methods = {
    .name = "mortal",
    .run = run,
    .forget = forget,
    .bell_seen = bell_seen,
    .bell_wait = bell_wait,
    .bell_ring = bell_ring,
    .facts = facts,
    .close = close_driver,
};

struct hf_sql *mortal_over(struct hf_sql *real, struct mortal_plan *plan)
{
    struct mortal *mortal = calloc(1, sizeof(*mortal));
    if (!mortal)
        return NULL;
    *mortal = (struct mortal){ { NULL }, real, plan, methods };
    /* The store goes by the name; under that of PostgreSQL it would look into the driver. */
    if (strcmp(real->methods->name, "sqlite") == 0)
        mortal->methods.name = real->methods->name;
    mortal->sql.methods = &mortal->methods;
    return &mortal->sql;
}
