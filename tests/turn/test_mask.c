/* The stream mask: what is shown when, where a cell is, and that the chunks do not matter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/code.h>

#include "core/turn/code/code.h"
#include "support/unit.h"

static struct hf_mask whole(const char *text, size_t len)
{
    struct hf_mask mask;
    hf_mask_init(&mask);
    (void)hf_mask_feed(&mask, text, len);
    hf_mask_end(&mask);
    return mask;
}

/* "state|visible text|source|what follows the cell" */
static const char *seen(const char *text)
{
    static char out[4096];
    static const char *const states[] = { "prose", "open", "cell" };
    struct hf_mask mask = whole(text, strlen(text));
    int source = mask.state == HF_MASK_PROSE ? 0 : (int)(mask.code_to - mask.code_from);
    snprintf(out, sizeof(out), "%s|%.*s|%.*s|%s", states[mask.state], (int)mask.visible,
             text, source, text + mask.code_from,
             mask.state == HF_MASK_COMPLETE ? text + mask.end : "");
    return out;
}

static void prose_streams_at_once(void **state)
{
    (void)state;
    struct hf_mask mask;
    hf_mask_init(&mask);
    assert_false(hf_mask_feed(&mask, "Hel", 3));
    assert_int_equal(mask.visible, 3);
    assert_false(hf_mask_feed(&mask, "lo <lua> is", 11));
    assert_int_equal(mask.visible, 14);
    assert_false(hf_mask_feed(&mask, "\n", 1));
    assert_int_equal(mask.visible, 15);
}

static void a_suffix_that_may_become_a_tag_is_held(void **state)
{
    (void)state;
    static const char text[] = "ok\n  <lua>\nx";
    static const uint64_t shown[] = { 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3 };
    struct hf_mask mask;
    hf_mask_init(&mask);
    for (size_t i = 0; i < strlen(text); i++) {
        assert_false(hf_mask_feed(&mask, text + i, 1));
        assert_int_equal(mask.visible, shown[i]);
    }
    assert_int_equal(mask.state, HF_MASK_OPEN);
    /* What can be no tag any more is let go at that byte. */
    hf_mask_init(&mask);
    assert_false(hf_mask_feed(&mask, "<lu", 3));
    assert_int_equal(mask.visible, 0);
    assert_false(hf_mask_feed(&mask, "c", 1));
    assert_int_equal(mask.visible, 4);
    hf_mask_init(&mask);
    assert_false(hf_mask_feed(&mask, "</javascript", 12));
    assert_int_equal(mask.visible, 0);
    assert_false(hf_mask_feed(&mask, "x", 1));
    assert_int_equal(mask.visible, 13);
}

static void the_close_tags_line_stops_the_stream_and_the_rest_is_dropped(void **state)
{
    (void)state;
    struct hf_mask mask;
    hf_mask_init(&mask);
    assert_false(hf_mask_feed(&mask, "<lua>\nx = 1\n</lua>", 18));
    assert_true(hf_mask_feed(&mask, "\nmore\n<lua>\ny\n</lua>\n", 21));
    assert_int_equal(mask.end, 19);
    assert_true(hf_mask_feed(&mask, "and more", 8));
    hf_mask_end(&mask);
    assert_int_equal(mask.visible, 0);
    assert_int_equal(mask.code_from, 6);
    assert_int_equal(mask.code_to, 11);
    assert_int_equal(mask.end, 19);
}

static void a_new_reply_starts_clean(void **state)
{
    (void)state;
    struct hf_mask mask;
    hf_mask_init(&mask);
    (void)hf_mask_feed(&mask, "<lua>\nx\n</lua>\n", 15);
    hf_mask_init(&mask);
    assert_false(hf_mask_feed(&mask, "hello", 5));
    hf_mask_end(&mask);
    assert_int_equal(mask.state, HF_MASK_PROSE);
    assert_int_equal(mask.visible, 5);
}

static void cells_are_found_as_the_grammar_says(void **state)
{
    (void)state;
    assert_string_equal(seen("a\n<lua>\nx = 1\ny = 2\n</lua>\nz"),
                        "cell|a\n|x = 1\ny = 2|z");
    assert_string_equal(seen("<lua>\nx\n</lua>"), "cell||x|");
    assert_string_equal(seen("<lua>x</lua>\nrest"), "cell||x|rest");
    assert_string_equal(seen("<lua>f('</lua>')</lua>"), "cell||f('</lua>')|");
    assert_string_equal(seen("<lua></lua>"), "cell|||");
    assert_string_equal(seen("<lua>\n</lua>"), "cell|||");
    assert_string_equal(seen("<lua>\n\n\n</lua>"), "cell||\n|");
    assert_string_equal(seen("  \t<lua>  \r\n  x\r\n\t</lua> \r\n."), "cell||  x\r|.");
    assert_string_equal(seen("```\n<lua>\n```\n</lua>\n```"), "cell|```\n|```|```");
    assert_string_equal(seen("<lua>\n<lua>\nx\n</lua>"), "cell||<lua>\nx|");
    assert_string_equal(seen("<lua>\n</python>\n</lua>"), "cell||</python>|");
    assert_string_equal(seen("<lua>\nx\n</lua> no\n</lua>"), "cell||x\n</lua> no|");
}

static void prose_stays_prose(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Write <lua> and </lua> on lines of their own.",
        "<lua> opens a cell, </lua> closes it.",
        "<lua>x</lua> is a cell.",
        "```lua\nprint(1)\n```",
        "<LUA>\nx\n</LUA>",
        "<luau>\nx\n</luau>",
        "<lua >\nx\n</lua>",
        "< lua>\nx",
        "</lua>\nx",
        "<lu",
        "<",
        "a <lua>\nx\n</lua>",
        "<html>\n<body>\n</html>",
        "",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct hf_mask mask = whole(texts[i], strlen(texts[i]));
        assert_int_equal(mask.state, HF_MASK_PROSE);
        assert_int_equal(mask.visible, strlen(texts[i]));
    }
}

static void a_nul_in_the_text_is_only_a_byte(void **state)
{
    (void)state;
    static const char text[] =
        "<lua\0>\n<lua\0\0\0\0\0\0\0\0\0\0\0\0>\n</\0lua>\n<lua>\n\0\n</lua>";
    struct hf_mask mask = whole(text, sizeof(text) - 1);
    assert_int_equal(mask.state, HF_MASK_COMPLETE);
    assert_int_equal(mask.visible, 7 + 18 + 8);
    assert_int_equal(mask.code_to - mask.code_from, 1);
}

static void an_opened_cell_is_open_whatever_ends_the_text(void **state)
{
    (void)state;
    assert_string_equal(seen("a\n<lua>\nx = "), "open|a\n|x = |");
    assert_string_equal(seen("<lua>"), "open|||");
    assert_string_equal(seen("<lua>\nx\n</lua"), "open||x\n</lua|");
    assert_string_equal(seen("<lua>\nx\n</lua>."), "open||x\n</lua>.|");
    assert_string_equal(seen("<lua>\nx\n</python>\n"), "open||x\n</python>\n|");
}

static void the_indent_of_a_tag_is_at_most_256_bytes(void **state)
{
    (void)state;
    for (size_t indent = 256; indent <= 257; indent++) {
        char text[400];
        memset(text, ' ', indent);
        memcpy(text + indent, "<lua>\nx\n</lua>\n", 16);
        struct hf_mask mask = whole(text, indent + 15);
        assert_int_equal(mask.state, indent == 256 ? HF_MASK_COMPLETE : HF_MASK_PROSE);
    }
}

static void other_languages_are_named(void **state)
{
    (void)state;
    for (int i = 0; i <= HF_CODE_PERL; i++) {
        char text[64];
        const char *word = hf_code_language_name((enum hf_code_language)i);
        snprintf(text, sizeof(text), "<%s>\nx\n</%s>\n", word, word);
        struct hf_mask mask = whole(text, strlen(text));
        assert_int_equal(mask.state, HF_MASK_COMPLETE);
        assert_int_equal(mask.language, i);
    }
    assert_string_equal(hf_code_language_name((enum hf_code_language)99), "?");
}

static void lines_that_look_like_broken_tag_lines_are_told(void **state)
{
    (void)state;
    assert_true(whole("<lua>x\ny\n</lua>", 15).stray);
    assert_true(whole("x\n</lua>", 8).stray);
    assert_true(whole("</lua> x", 8).stray);
    assert_false(whole("use <lua> here", 14).stray);
    assert_false(whole("<lua>\nx\n</lua>", 14).stray);
}

/* The mask must not be told from what it means: this one looks at whole lines. */

struct plain {
    enum hf_mask_state state;
    size_t visible;
    size_t from;
    size_t to;
};

static const char *trim(const char *from, const char *to, size_t *ret_len)
{
    const char *start = from;
    while (from < to && (*from == ' ' || *from == '\t' || *from == '\r'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    *ret_len = from - start > 256 ? 0 : (size_t)(to - from);
    return from;
}

static bool is(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(text, word, len) == 0;
}

static struct plain look(const char *text, size_t len)
{
    static const char *const words[] = { "lua", "python", "py" };
    struct plain plain = { .state = HF_MASK_PROSE, .visible = len };
    const char *word = NULL;
    for (size_t at = 0; at < len;) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t end = newline ? (size_t)(newline - text) : len;
        size_t next = newline ? end + 1 : len;
        size_t n = 0;
        const char *line = trim(text + at, text + end, &n);
        for (size_t w = 0; w < 3; w++) {
            char open[16];
            char close[16];
            snprintf(open, sizeof(open), "<%s>", words[w]);
            snprintf(close, sizeof(close), "</%s>", words[w]);
            size_t o = strlen(open);
            size_t c = strlen(close);
            if (word == words[w] && is(line, n, close)) {
                plain.state = HF_MASK_COMPLETE;
                plain.to = at == plain.from ? at : at - 1;
                return plain;
            }
            if (!word && is(line, n, open)) {
                word = words[w];
                plain = (struct plain){ HF_MASK_OPEN, at, next, len };
                break;
            }
            if (!word && n >= o + c && memcmp(line, open, o) == 0 &&
                memcmp(line + n - c, close, c) == 0)
                return (struct plain){ HF_MASK_COMPLETE, at, (size_t)(line - text) + o,
                                       (size_t)(line - text) + n - c };
        }
        at = next;
    }
    return plain;
}

static uint64_t roll(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* Text of tags, pieces of tags and what may be around them. */
static size_t make_text(uint64_t *seed, char *out, size_t room)
{
    static const char *const pieces[] = {
        "<lua>", "<lua>\n", "</lua>",   "\n</lua>\n", "<python>", "</python>",
        "\n",    "\n",      "x = 1",    "<",          "</",       "lua>",
        ">",     " ",       "\t",       "\r",         "prose ",   "<lua>y</lua>",
        "</l",   "ua>",     "```lua\n", "\xc3\xa9",   "<lu",      "<py",
    };
    size_t used = 0;
    size_t count = roll(seed) % 24;
    for (size_t i = 0; i < count; i++) {
        const char *piece = pieces[roll(seed) % (sizeof(pieces) / sizeof(pieces[0]))];
        size_t len = strlen(piece);
        if (used + len > room)
            break;
        memcpy(out + used, piece, len);
        used += len;
    }
    return used;
}

static void assert_same(const struct hf_mask *a, const struct hf_mask *b)
{
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->visible, b->visible);
    assert_int_equal(a->stray, b->stray);
    if (a->state == HF_MASK_PROSE)
        return;
    assert_int_equal(a->language, b->language);
    assert_int_equal(a->code_from, b->code_from);
    assert_int_equal(a->code_to, b->code_to);
    assert_int_equal(a->end, b->end);
}

/* Fed in pieces: visible only grows, is never taken back, and ends the same. */
static void feed_in_pieces(const char *text, size_t len, const struct hf_mask *want,
                           uint64_t *seed)
{
    struct hf_mask mask;
    uint64_t shown = 0;
    hf_mask_init(&mask);
    for (size_t at = 0; at < len;) {
        size_t piece = 1 + roll(seed) % 5;
        piece = piece < len - at ? piece : len - at;
        bool stop = hf_mask_feed(&mask, text + at, piece);
        assert_true(mask.visible >= shown && mask.visible <= want->visible);
        shown = mask.visible;
        at += piece;
        assert_int_equal(stop, mask.state == HF_MASK_COMPLETE);
        if (stop)
            break;
    }
    hf_mask_end(&mask);
    assert_same(&mask, want);
}

static void every_chunking_of_random_texts_gives_the_same(void **state)
{
    (void)state;
    uint64_t seed = 7;
    size_t cells = 0;
    size_t open = 0;
    for (int round = 0; round < 60000; round++) {
        char text[256];
        size_t len = make_text(&seed, text, sizeof(text));
        struct hf_mask want = whole(text, len);
        struct plain plain = look(text, len);
        assert_int_equal(want.state, plain.state);
        assert_int_equal(want.visible, plain.visible);
        if (plain.state == HF_MASK_COMPLETE) {
            assert_int_equal(want.code_from, plain.from);
            assert_int_equal(want.code_to, plain.to);
            struct hf_mask again = whole(text, want.end); /* what a host keeps */
            assert_same(&again, &want);
        }
        cells += plain.state == HF_MASK_COMPLETE;
        open += plain.state == HF_MASK_OPEN;
        for (int i = 0; i < 3; i++)
            feed_in_pieces(text, len, &want, &seed);
    }
    assert_true(cells > 5000 && open > 1000);
}

static void every_single_cut_of_a_reply_gives_the_same(void **state)
{
    (void)state;
    static const char text[] =
        "Let me see.\n  <lua>\t\nlocal s = '</lua>' .. x\n </lua>\r\nbye";
    struct hf_mask want = whole(text, strlen(text));
    assert_int_equal(want.state, HF_MASK_COMPLETE);
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        struct hf_mask mask;
        hf_mask_init(&mask);
        if (!hf_mask_feed(&mask, text, cut))
            (void)hf_mask_feed(&mask, text + cut, strlen(text) - cut);
        hf_mask_end(&mask);
        assert_same(&mask, &want);
    }
}

static void a_cell_that_is_rendered_is_found_again(void **state)
{
    (void)state;
    uint64_t seed = 11;
    size_t found = 0;
    for (int round = 0; round < 30000; round++) {
        char text[256];
        struct hf_buf out;
        size_t len = make_text(&seed, text, sizeof(text));
        struct hf_mask mask = whole(text, len);
        if (mask.state != HF_MASK_COMPLETE)
            continue;
        struct hf_span code = { text + mask.code_from,
                                (size_t)(mask.code_to - mask.code_from) };
        hf_buf_init(&out, hf_alloc_system(), 4096);
        hf_code_put_cell(&out, hf_code_language_name(mask.language), code);
        struct hf_mask again = whole(out.at, out.len);
        assert_int_equal(again.state, HF_MASK_COMPLETE);
        assert_int_equal(again.visible, 0);
        assert_int_equal(again.code_to - again.code_from, code.len);
        assert_memory_equal(out.at + again.code_from, code.at, code.len);
        hf_buf_fini(&out);
        found++;
    }
    assert_true(found > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose_streams_at_once),
        cmocka_unit_test(a_suffix_that_may_become_a_tag_is_held),
        cmocka_unit_test(the_close_tags_line_stops_the_stream_and_the_rest_is_dropped),
        cmocka_unit_test(a_new_reply_starts_clean),
        cmocka_unit_test(cells_are_found_as_the_grammar_says),
        cmocka_unit_test(prose_stays_prose),
        cmocka_unit_test(a_nul_in_the_text_is_only_a_byte),
        cmocka_unit_test(an_opened_cell_is_open_whatever_ends_the_text),
        cmocka_unit_test(the_indent_of_a_tag_is_at_most_256_bytes),
        cmocka_unit_test(other_languages_are_named),
        cmocka_unit_test(lines_that_look_like_broken_tag_lines_are_told),
        cmocka_unit_test(every_chunking_of_random_texts_gives_the_same),
        cmocka_unit_test(every_single_cut_of_a_reply_gives_the_same),
        cmocka_unit_test(a_cell_that_is_rendered_is_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
