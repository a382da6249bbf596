/* The terminal of `holdfast chat`, without a terminal: bytes go in, rows of a screen come out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/chat/glyph.h"
#include "cli/chat/screen.h"
#include "support/unit.h"
#include "support/vt.h"

/* A screen on a terminal of that size. */
struct stage {
    struct vt *vt;
    struct screen screen;
    struct editor editor;
};

static struct stage *stage_new(size_t width, size_t height)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    assert_non_null(stage);
    stage->vt = vt_new(width, height);
    screen_init(&stage->screen, width, height, true);
    editor_init(&stage->editor);
    return stage;
}

static void stage_free(struct stage *stage)
{
    screen_fini(&stage->screen);
    editor_fini(&stage->editor);
    vt_free(stage->vt);
    free(stage);
}

/* What was written goes to the terminal. */
static void show(struct stage *stage)
{
    assert_int_equal(hf_buf_state(&stage->screen.out), 0);
    vt_feed(stage->vt, hf_buf_str(&stage->screen.out), stage->screen.out.len);
    hf_buf_reset(&stage->screen.out);
}

static void text(struct stage *stage, const char *piece)
{
    stage->screen.show.methods->text(&stage->screen.show,
                                     (struct hf_span){ piece, strlen(piece) });
    show(stage);
}

static void keys(struct stage *stage, const char *bytes)
{
    for (; *bytes; bytes++)
        (void)editor_feed(&stage->editor, *bytes);
    screen_prompt(&stage->screen, &stage->editor);
    show(stage);
}

/* All rows are those; the terminal never had to break one, and it was told nothing strange. */
#define expect(stage, wanted)                                                            \
    do {                                                                                 \
        char *seen_ = vt_text((stage)->vt);                                              \
        assert_string_equal(seen_, wanted);                                              \
        free(seen_);                                                                     \
        assert_int_equal((stage)->vt->wrapped, 0);                                       \
        assert_int_equal((stage)->vt->strange, 0);                                       \
    } while (0)

/* ---- text ------------------------------------------------------------------------------- */

static void half_a_word_is_shown_at_once_and_moves_to_the_next_line(void **state)
{
    struct stage *stage = stage_new(21, 10);
    (void)state;
    text(stage, "The quick brown fo");
    expect(stage, "The quick brown fo\n");
    text(stage, "xes");
    expect(stage, "The quick brown\nfoxes\n");
    text(stage, " jump over it");
    expect(stage, "The quick brown\nfoxes jump over it\n");
    stage_free(stage);
}

static void a_word_longer_than_a_line_is_broken_at_the_margin(void **state)
{
    struct stage *stage = stage_new(11, 10);
    (void)state;
    text(stage, "see https://example.com/a/b/c now");
    expect(stage, "see\nhttps://ex\nample.com/\na/b/c now\n");
    stage_free(stage);
}

static void wide_characters_take_two_columns_and_may_be_broken_between(void **state)
{
    struct stage *stage = stage_new(11, 10);
    (void)state;
    text(stage, "日本語の文章を書きます。ok");
    expect(stage, "日本語の文\n章を書きま\nす。ok\n");
    stage_free(stage);
}

static void a_sign_that_closes_does_not_begin_a_line(void **state)
{
    struct stage *stage = stage_new(11, 10);
    (void)state;
    text(stage, "日本語の文。次");
    expect(stage, "日本語の\n文。次\n");
    stage_free(stage);
}

static void marks_take_no_column_and_stay_with_their_letter(void **state)
{
    struct stage *stage = stage_new(6, 10);
    (void)state;
    text(stage, "e\xcc");
    text(stage, "\x81"); /* a character in two pieces */
    text(stage, "tait ici");
    expect(stage, "e\xcc\x81tait\nici\n");
    stage_free(stage);
}

static void items_of_a_list_are_continued_under_their_text(void **state)
{
    struct stage *stage = stage_new(21, 20);
    (void)state;
    text(stage,
         "Do this:\n\n- wash all of the dishes\n  10. and dry them well\n\n1 is not one");
    expect(stage,
           "Do this:\n\n- wash all of the\n  dishes\n  10. and dry them\n      well\n\n"
           "1 is not one\n");
    stage_free(stage);
}

static void code_is_broken_at_the_margin_and_keeps_its_spaces(void **state)
{
    struct stage *stage = stage_new(13, 20);
    (void)state;
    text(stage, "```c\n  int  a = 12345678;\n```\nwell then this");
    expect(stage, "```c\n  int  a = 1\n2345678;\n```\nwell then\nthis\n");
    stage_free(stage);
}

static void lines_around_an_answer_are_left_out(void **state)
{
    struct stage *stage = stage_new(40, 10);
    (void)state;
    text(stage, "\n\nfirst\n\nsecond\n\n\n");
    screen_note(&stage->screen, "end", false);
    show(stage);
    expect(stage, "first\n\nsecond\n\n  end\n");
    stage_free(stage);
}

static void no_control_sequence_of_a_text_reaches_the_terminal(void **state)
{
    static const char *const evil[] = {
        "\x1b[2J",
        "\x1b]0;title\a",
        "\x1b]52;c;aGk=\x1b\\",
        "\x1bP1$r\x1b\\",
        "\x1b"
        "c",
        "\xc2\x9b"
        "2J",
        "\xc2\x90",
        "\b\b\b",
        "\x7f",
        "\x0e",
        "\xff\xfe",
        "\xe2\x80\xae"
        "abc",
        "\xf3\xa0\x81\x81",
        "\r"
        "over",
        "\x1b[6n",
        "\x1b[?1049h",
        "\x05",
        "\xc0\x9b"
        "31m",
    };
    struct stage *stage = stage_new(80, 24);
    struct show *form = &stage->screen.show;
    char piece[2] = "";
    (void)state;
    for (size_t i = 0; i < sizeof(evil) / sizeof(evil[0]); i++) {
        struct show_tool tool = { .tool = evil[i],
                                  .args = { evil[i], strlen(evil[i]) },
                                  .text = evil[i] };
        struct show_end end = {
            .turn_id = "t", .outcome = evil[i], .failed = true, .text = evil[i]
        };
        text(stage, evil[i]);
        for (const char *c = evil[i]; *c; c++) { /* cut anywhere */
            piece[0] = *c;
            text(stage, piece);
        }
        screen_user(&stage->screen, evil[i]);
        screen_title(&stage->screen, evil[i], evil[i]);
        screen_status(&stage->screen, evil[i]);
        form->methods->tool_began(form, &tool);
        form->methods->tool_ended(form, &tool);
        form->methods->ended(form, &end);
        form->methods->note(form, evil[i]);
        keys(stage, "\x1b[200~");
        keys(stage, evil[i]);
        keys(stage, "\x1b[201~");
        show(stage);
        assert_int_equal(stage->vt->strange, 0);
        assert_int_equal(stage->vt->wrapped, 0);
    }
    stage_free(stage);
}

static void a_control_character_is_shown_as_what_it_is(void **state)
{
    struct stage *stage = stage_new(40, 10);
    (void)state;
    text(stage, "red \x1b[31m, bell \a, C1 \xc2\x9b, none \xff.");
    expect(stage, "red ␛[31m, bell ␇, C1 �, none �.\n");
    stage_free(stage);
}

static void a_narrower_terminal_begins_a_new_line(void **state)
{
    struct stage *stage = stage_new(40, 10);
    (void)state;
    text(stage, "this line is longer than twenty");
    screen_resize(&stage->screen, 21, 10);
    text(stage, " and goes on here and there");
    expect(stage, "this line is longer than twenty\n and goes on here\nand there\n");
    stage_free(stage);
}

static void any_text_in_any_pieces_stays_within_any_width(void **state)
{
    static const char *const parts[] = { "a",         "word ", "日本",
                                         "e\xcc\x81", "\n",    "  - ",
                                         "`",         "\t",    "👩‍🚀",
                                         "- x",       "```\n", "supercalifragilistic",
                                         ". " };
    unsigned dice = 1;
    (void)state;
    for (size_t width = 2; width < 40; width++) {
        struct stage *stage = stage_new(width, 24);
        for (size_t i = 0; i < 150; i++) {
            dice = dice * 1103515245u + 12345u;
            text(stage, parts[dice / 65536 % (sizeof(parts) / sizeof(parts[0]))]);
        }
        assert_int_equal(stage->vt->strange, 0);
        if (width > 3) /* a wide character does not fit into one column */
            assert_int_equal(stage->vt->wrapped, 0);
        stage_free(stage);
    }
}

/* ---- blocks ------------------------------------------------------------------------------ */

static void a_turn_looks_like_this(void **state)
{
    struct stage *stage = stage_new(60, 24);
    struct show *form = &stage->screen.show;
    struct show_tool add = { .call_id = "c1",
                             .tool = "add",
                             .args = { "{\"a\":2,\"b\":3}", 13 },
                             .text = "5",
                             .duration_ms = 12 };
    struct show_tool look = { .call_id = "c2",
                              .tool = "look_up",
                              .args = { "{}", 2 },
                              .text = "no such\nentry\n",
                              .outcome = HF_TOOL_FAILURE,
                              .duration_ms = 61000 };
    struct show_end end = { .turn_id = "t",
                            .outcome = "assistant_message",
                            .text = "It is 5.",
                            .text_shown = true,
                            .usage = { .input = 12345, .output = 67, .cache_read = 5 },
                            .whole_ms = 1234 };
    (void)state;
    screen_title(&stage->screen, "chat-1", "agent helper · model large");
    screen_user(&stage->screen, "What is 2 + 3?");
    screen_status(&stage->screen, "waiting for the model · 1s");
    show(stage);
    expect(stage, "chat-1\nagent helper · model large\n\n› What is 2 + 3?\n\n"
                  "  waiting for the model · 1s\n");
    form->methods->tool_began(form, &add);
    screen_status(&stage->screen, "add …");
    form->methods->tool_ended(form, &add);
    screen_status(&stage->screen, "look_up …");
    form->methods->tool_ended(form, &look);
    text(stage, "It is 5.");
    form->methods->ended(form, &end);
    screen_prompt(&stage->screen, &stage->editor);
    show(stage);
    expect(stage, "chat-1\n"
                  "agent helper · model large\n"
                  "\n"
                  "› What is 2 + 3?\n"
                  "\n"
                  "  ✓ add {\"a\":2,\"b\":3} → 5 · 12ms\n"
                  "  ✗ look_up → no such entry · 1m 1s\n"
                  "\n"
                  "It is 5.\n"
                  "\n"
                  "  12.3k tokens in · 67 out · 1.2s\n"
                  "\n"
                  "›\n");
    stage_free(stage);
}

static void a_tool_takes_one_row_whatever_it_says(void **state)
{
    struct stage *stage = stage_new(40, 24);
    struct show *form = &stage->screen.show;
    struct show_tool tool = { .tool = "run_command_with_a_long_name",
                              .args = { "{\"command\":\"日本語の日本語の日本語の\"}",
                                        50 },
                              .text = "line one\nline two\nline three",
                              .duration_ms = 5 };
    (void)state;
    form->methods->tool_ended(form, &tool);
    form->methods->tool_ended(form, &tool);
    show(stage);
    expect(stage, "  ✓ run_command_w… → line one li… · 5ms\n"
                  "  ✓ run_command_w… → line one li… · 5ms\n");
    stage_free(stage);
}

static void a_failed_turn_says_why_and_what_to_do(void **state)
{
    struct stage *stage = stage_new(60, 24);
    struct show *form = &stage->screen.show;
    struct show_end end = { .turn_id = "t",
                            .outcome = "provider_error",
                            .failed = true,
                            .retryable = true,
                            .text = "no connection to the endpoint",
                            .whole_ms = 40 };
    (void)state;
    form->methods->ended(form, &end);
    show(stage);
    expect(stage, "  provider_error: no connection to the endpoint\n"
                  "  /retry sends the message again\n\n  0 tokens in · 0 out · 40ms\n");
    stage_free(stage);
}

static void an_answer_that_was_not_streamed_is_shown_at_the_end(void **state)
{
    struct stage *stage = stage_new(60, 24);
    struct show *form = &stage->screen.show;
    struct show_end end = {
        .turn_id = "t", .outcome = "assistant_message", .text = "Hi.", .whole_ms = 1
    };
    (void)state;
    form->methods->ended(form, &end);
    show(stage);
    expect(stage, "Hi.\n\n  0 tokens in · 0 out · 1ms\n");
    stage_free(stage);
}

/* ---- the editor -------------------------------------------------------------------------- */

static void a_long_text_is_shown_in_rows_with_the_cursor_where_it_is(void **state)
{
    struct stage *stage = stage_new(12, 10);
    (void)state;
    keys(stage, "0123456789abc");
    expect(stage, "› 012345678\n  9abc\n");
    assert_int_equal(stage->vt->row, 1);
    assert_int_equal(stage->vt->column, 6);
    keys(stage, "\x1b[D\x1b[D\x1b[D\x1b[D"); /* left, over the end of a row */
    assert_int_equal(stage->vt->row, 1);
    assert_int_equal(stage->vt->column, 2);
    keys(stage, "\x1b[D!");
    expect(stage, "› 01234567!\n  89abc\n");
    keys(stage, "\x05\x15"); /* Ctrl-E, Ctrl-U */
    expect(stage, "›\n");
    assert_int_equal(stage->vt->row, 0);
    stage_free(stage);
}

static void wide_characters_are_edited_whole(void **state)
{
    struct stage *stage = stage_new(9, 10);
    (void)state;
    keys(stage, "日本語e\xcc\x81x");
    expect(stage, "› 日本語\n  e\xcc\x81x\n");
    keys(stage, "\x1b[D\x7f"); /* left, backspace: the letter goes with its mark */
    expect(stage, "› 日本語\n  x\n");
    keys(stage, "\x7f");
    expect(stage, "› 日本x\n");
    assert_string_equal(editor_text(&stage->editor), "日本x");
    stage_free(stage);
}

static void what_is_pasted_is_inserted_and_sends_nothing(void **state)
{
    struct stage *stage = stage_new(40, 10);
    (void)state;
    keys(stage, "see: \x1b[200~one\rtwo\x1b[2Jx\x01\r\x1b[201~.");
    expect(stage, "› see: one\n  two[2Jx\n  .\n");
    assert_string_equal(editor_text(&stage->editor), "see: one\ntwo[2Jx\n.");
    assert_false(editor_busy(&stage->editor));
    stage_free(stage);
}

static void a_text_with_more_rows_than_the_screen_is_shown_around_the_cursor(void **state)
{
    struct stage *stage = stage_new(20, 5);
    (void)state;
    keys(stage, "\x1b[200~1\n2\n3\n4\n5\n6\n7\x1b[201~");
    expect(stage, "› 4\n  5\n  6\n  7\n");
    keys(stage, "\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A");
    expect(stage, "› 1\n  2\n  3\n  4\n");
    assert_int_equal(stage->vt->row, 0);
    stage_free(stage);
}

static void a_note_goes_above_the_prompt(void **state)
{
    struct stage *stage = stage_new(40, 10);
    (void)state;
    keys(stage, "half a mess");
    screen_note(&stage->screen, "something happened", false);
    keys(stage, "age");
    expect(stage, "  something happened\n\n› half a message\n");
    stage_free(stage);
}

static enum editor_event feed(struct editor *editor, const char *bytes)
{
    enum editor_event event = EDITOR_NONE;
    for (; *bytes; bytes++)
        event = editor_feed(editor, *bytes);
    return event;
}

static void keys_edit_as_in_a_shell(void **state)
{
    static const struct {
        const char *keys;
        const char *text;
    } cases[] = {
        { "abc\x01X", "Xabc" },
        { "abc\x1b[HX\x1b[FY", "XabcY" },
        { "abc\x1bOHX", "Xabc" },
        { "abc\x1b[1~\x1b[3~", "bc" },
        { "one two\x17", "one " },
        { "one two\x1b"
          "bX",
          "one Xtwo" },
        { "one two\x1b[1;5DX", "one Xtwo" },
        { "one two\x01\x1b"
          "fX",
          "oneX two" },
        { "one two\x01\x1b"
          "d",
          " two" },
        { "one two\x17\x19\x19", "one twotwo" },
        { "abc\x02\x02\x0b", "a" },
        { "abc\x02\x04", "ab" },
        { "a\nb", "a\nb" },
        { "a\x1b\rb", "a\nb" },
        { "ab\n\x7f"
          "c",
          "abc" },
        { "x\x1b[99;99zy", "xy" },
        { "x\x1b[<0;1;1My", "xy" },
        { "\xe6\x97\xff"
          "a",
          "a" },
        { "\xe6\xc3\xa9",
          "\xc3\xa9" }, /* a character begins where another one broke off */
        { "\xe6\x97\xe6\x97\xa5", "\xe6\x97\xa5" },
        { "\xc2\x9b"
          "2J",
          "\xef\xbf\xbd"
          "2J" },
        { "a\tb", "a  b" },
        { "ab\x1b[200~\xe6\x97\x1b[201~c", "abc" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct editor editor;
        editor_init(&editor);
        (void)feed(&editor, cases[i].keys);
        assert_string_equal(editor_text(&editor), cases[i].text);
        editor_fini(&editor);
    }
}

static void the_history_is_walked_and_the_draft_comes_back(void **state)
{
    struct editor editor;
    (void)state;
    editor_init(&editor);
    editor_remember(&editor, "first");
    editor_remember(&editor, "second");
    editor_remember(&editor, "second");
    (void)feed(&editor, "dra\x1b[A");
    assert_string_equal(editor_text(&editor), "second");
    (void)feed(&editor, "\x1b[A\x1b[A");
    assert_string_equal(editor_text(&editor), "first");
    (void)feed(&editor, "\x1b[B\x1b[Bft");
    assert_string_equal(editor_text(&editor), "draft");
    editor_fini(&editor);
}

static void enter_sends_and_ctrl_d_closes_an_empty_text_only(void **state)
{
    struct editor editor;
    (void)state;
    editor_init(&editor);
    assert_int_equal(feed(&editor, "\x04"), EDITOR_CLOSED);
    assert_int_equal(feed(&editor, "\x1b[3~"), EDITOR_NONE);
    assert_int_equal(feed(&editor, "hi\x04"), EDITOR_CHANGED);
    assert_int_equal(feed(&editor, "\r"), EDITOR_SENT);
    assert_string_equal(editor_text(&editor), "hi");
    editor_fini(&editor);
}

static void a_text_beyond_the_limit_is_cut_and_said(void **state)
{
    struct editor editor;
    (void)state;
    editor_init(&editor);
    (void)feed(&editor, "\x1b[200~");
    for (size_t i = 0; i < EDITOR_BYTES_MAX + 10; i++)
        (void)editor_feed(&editor, 'x');
    (void)feed(&editor, "\x1b[201~");
    assert_int_equal(editor.len, EDITOR_BYTES_MAX - 1);
    assert_true(editor.full);
    editor_fini(&editor);
}

static void any_bytes_leave_a_text_that_is_utf8(void **state)
{
    unsigned dice = 7;
    (void)state;
    for (size_t round = 0; round < 200; round++) {
        struct stage *stage = stage_new(20, 6);
        for (size_t i = 0; i < 100; i++) {
            static const char likely[] =
                "\x1b[O~;5ABCDHF200~201~ \xe6\x97\xa5\r\n\x01\x05\x7f";
            dice = dice * 1103515245u + 12345u;
            unsigned die = dice / 65536;
            char byte = die & 1 ? likely[die / 2 % (sizeof(likely) - 1)]
                                : (char)(die / 2);
            (void)editor_feed(&stage->editor, byte);
            screen_prompt(&stage->screen, &stage->editor);
            show(stage);
        }
        assert_true(hf_utf8_valid(editor_text(&stage->editor), stage->editor.len));
        assert_int_equal(strlen(editor_text(&stage->editor)), stage->editor.len);
        assert_true(stage->editor.cursor <= stage->editor.len);
        assert_int_equal(stage->vt->strange + stage->vt->wrapped, 0);
        stage_free(stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_word_is_shown_at_once_and_moves_to_the_next_line),
        cmocka_unit_test(a_word_longer_than_a_line_is_broken_at_the_margin),
        cmocka_unit_test(wide_characters_take_two_columns_and_may_be_broken_between),
        cmocka_unit_test(a_sign_that_closes_does_not_begin_a_line),
        cmocka_unit_test(marks_take_no_column_and_stay_with_their_letter),
        cmocka_unit_test(items_of_a_list_are_continued_under_their_text),
        cmocka_unit_test(code_is_broken_at_the_margin_and_keeps_its_spaces),
        cmocka_unit_test(lines_around_an_answer_are_left_out),
        cmocka_unit_test(no_control_sequence_of_a_text_reaches_the_terminal),
        cmocka_unit_test(a_control_character_is_shown_as_what_it_is),
        cmocka_unit_test(a_narrower_terminal_begins_a_new_line),
        cmocka_unit_test(any_text_in_any_pieces_stays_within_any_width),
        cmocka_unit_test(a_turn_looks_like_this),
        cmocka_unit_test(a_tool_takes_one_row_whatever_it_says),
        cmocka_unit_test(a_failed_turn_says_why_and_what_to_do),
        cmocka_unit_test(an_answer_that_was_not_streamed_is_shown_at_the_end),
        cmocka_unit_test(a_long_text_is_shown_in_rows_with_the_cursor_where_it_is),
        cmocka_unit_test(wide_characters_are_edited_whole),
        cmocka_unit_test(what_is_pasted_is_inserted_and_sends_nothing),
        cmocka_unit_test(
            a_text_with_more_rows_than_the_screen_is_shown_around_the_cursor),
        cmocka_unit_test(a_note_goes_above_the_prompt),
        cmocka_unit_test(keys_edit_as_in_a_shell),
        cmocka_unit_test(the_history_is_walked_and_the_draft_comes_back),
        cmocka_unit_test(enter_sends_and_ctrl_d_closes_an_empty_text_only),
        cmocka_unit_test(a_text_beyond_the_limit_is_cut_and_said),
        cmocka_unit_test(any_bytes_leave_a_text_that_is_utf8),
    };
    glyph_setup();
    return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
