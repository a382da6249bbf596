/* Lua's patterns, matched in counted steps. */
#ifndef HF_EXEC_LUA_MATCH_H
#define HF_EXEC_LUA_MATCH_H

#include "exec/lua/run.h"

#define HF_LUA_CAPTURES 32

/* One match being tried. Faults of the pattern are Lua errors; so is too much work. */
struct hf_lua_match {
    lua_State *L;
    const char *text;
    const char *text_end;
    const char *pattern_end;
    int captures;
    int depth;
    uint32_t steps; /* not charged yet */
    struct {
        const char *at;
        ptrdiff_t len; /* or one of the two below */
    } capture[HF_LUA_CAPTURES];
};
enum { HF_LUA_CAPTURE_OPEN = -1, HF_LUA_CAPTURE_PLACE = -2 };

void hf_lua_match_init(struct hf_lua_match *match, lua_State *L, struct hf_span text,
                       struct hf_span pattern);
/* The end of a match of the pattern that begins at `at`, or NULL. */
const char *hf_lua_match_at(struct hf_lua_match *match, const char *at,
                            const char *pattern);
/* Charges what is not charged yet. */
void hf_lua_match_pay(struct hf_lua_match *match);

/* Pushes capture i; 0 of a pattern without captures is all of [from, to). */
void hf_lua_push_capture(const struct hf_lua_match *match, int i, const char *from,
                         const char *to);
/* Pushes all captures, or the whole match if there are none. How many. `from` NULL: none
 * instead of the whole. */
int hf_lua_push_captures(const struct hf_lua_match *match, const char *from,
                         const char *to);

#endif
