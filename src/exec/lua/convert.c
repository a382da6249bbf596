/* Bindings made of JSON, and made again of bindings, in a state of its own: what a cell
 * would see of them, and what it would leave. */
#include <locale.h>

#include <holdfast/bounds.h>

#include "base/err.h"
#include "base/json.h"
#include "exec/cell/bindings.h"
#include "exec/lua/run.h"

struct job {
    struct hf_span json;
    enum hf_lua_form form;
    struct hf_buf *out;
    int rc;
};

static int convert(lua_State *L)
{
    struct job *job = lua_touserdata(L, 1);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hf_lua_list_key);
    hf_lua_read(L, job->json, job->form);
    if (!lua_istable(L, -1)) {
        job->rc = HF_EINVAL;
        return 0;
    }
    job->rc = hf_lua_write(L, -1, HF_LUA_BINDINGS, "bindings", job->out);
    return 0;
}

static int report(const struct hf_engine_run *run, int rc, struct hf_err *err)
{
    if (rc == HF_EINVAL && run->message.len > 0)
        return hf_fail(err, rc, "bindings", "%s", hf_buf_str(&run->message));
    if (rc == HF_EINVAL)
        return hf_fail(err, rc, "bindings", "bindings must be a JSON object");
    if (rc == HF_ETOOBIG)
        return hf_fail(err, rc, "bindings", "bindings are at most %lld bytes",
                       (long long)HF_MAX_CELL_BINDINGS_BYTES);
    return hf_fail_plain(err, rc);
}

int hf_bindings_convert(const struct hf_alloc *alloc, struct hf_span json,
                        bool are_bindings, struct hf_buf *out, struct hf_err *err)
{
    struct hf_engine_run run = { .alloc = alloc,
                                 .limits = { .memory_bytes = (int64_t)1 << 30 } };
    struct job job = { .json = json,
                       .form = are_bindings ? HF_LUA_BINDINGS : HF_LUA_PLAIN,
                       .out = out };
    int rc = hf_json_check(json, (size_t)HF_MAX_CELL_BINDINGS_BYTES, "bindings", err);
    if (rc)
        return rc;
    hf_lua_pool_init(&run.pool, alloc);
    hf_buf_init(&run.message, alloc, 1 << 16);
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    run.main = plain ? lua_newstate(hf_lua_alloc, &run) : NULL;
    if (run.main) {
        *(struct hf_engine_run **)lua_getextraspace(run.main) = &run;
        locale_t before = uselocale(plain);
        lua_pushcfunction(run.main, convert);
        lua_pushlightuserdata(run.main, &job);
        int status = lua_pcall(run.main, 1, 0, 0);
        uselocale(before);
        rc = status == LUA_OK ? job.rc : status == LUA_ERRMEM ? HF_ENOMEM : HF_EINVAL;
        lua_close(run.main);
    } else {
        rc = HF_ENOMEM;
    }
    if (plain)
        freelocale(plain);
    if (rc)
        rc = report(&run, rc, err);
    hf_lua_pool_fini(&run.pool);
    hf_buf_fini(&run.message);
    return rc;
}
