/* The file tools: what they do, and that no path leads out of the root. */
#include "agent/tool_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tool/beneath.h"

static char folder[64];
static char root[80];
static struct tool_kit kit;

static void at(char out[256], const char *base, const char *name)
{
    (void)snprintf(out, 256, "%s/%s", base, name);
}

static void put(const char *base, const char *name, const char *text)
{
    char path[256];
    at(path, base, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char *get(const char *base, const char *name)
{
    static char text[4096];
    char path[256];
    at(path, base, name);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        (void)fclose(file);
    text[len] = '\0';
    return file ? text : NULL;
}

static void link_to(const char *target, const char *name)
{
    char path[256];
    at(path, root, name);
    assert_int_equal(symlink(target, path), 0);
}

static void make_dir(const char *base, const char *name)
{
    char path[256];
    at(path, base, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static int open_all(void **state)
{
    (void)state;
    char path[256];
    tool_kit_folder(folder);
    at(path, folder, "root");
    memcpy(root, path, strlen(path) + 1);
    make_dir(folder, "root");
    make_dir(folder, "outside");
    put(folder, "secret.txt", "SECRET\n");
    put(folder, "f.txt", "SECRET\n");
    put(root, "a.txt", "one\ntwo\nthree\n");
    make_dir(root, "dir");
    put(root, "dir/b.txt", "inner\n");
    link_to("..", "up");
    link_to(folder, "abs");
    link_to("../secret.txt", "secretlink");
    at(path, folder, "secret.txt");
    link_to(path, "abslink");
    link_to("../..", "dir/back");
    link_to("/proc/self/root", "proc");
    link_to("/proc/self/fd/0", "fd");
    link_to("loop", "loop");
    link_to("chain2", "chain1");
    link_to("secretlink", "chain2");
    link_to("dir", "in");
    link_to("../outside/new.txt", "dangling");
    at(path, root, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    struct hf_tools_config config = { .size = sizeof config,
                                      .builtins = (1U << HF_BUILTIN_READ_FILE) |
                                                  (1U << HF_BUILTIN_WRITE_FILE) |
                                                  (1U << HF_BUILTIN_EDIT_FILE) |
                                                  (1U << HF_BUILTIN_LIST_FILES),
                                      .root = root };
    tool_kit_open(&kit, &config);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    tool_kit_close(&kit);
    tool_kit_remove(folder);
    return 0;
}

/* ---- what they do ------------------------------------------------------------------ */

static void said(const char *tool, const char *args, const char *value)
{
    const struct tool_said *got = tool_kit_call(&kit, tool, args);
    assert_int_equal(got->outcome, HF_TOOL_SUCCESS);
    assert_string_equal(got->text, value);
}

static void failed(const char *tool, const char *args, const char *code)
{
    const struct tool_said *got = tool_kit_call(&kit, tool, args);
    assert_int_equal(got->outcome, HF_TOOL_FAILURE);
    assert_string_equal(got->code, code);
}

static void a_file_is_read_whole_or_by_lines(void **state)
{
    (void)state;
    said("read_file", "{\"path\":\"a.txt\"}", "\"one\\ntwo\\nthree\\n\"");
    said("read_file", "{\"path\":\"a.txt\",\"from_line\":2}", "\"two\\nthree\\n\"");
    said("read_file", "{\"path\":\"./a.txt\",\"from_line\":2,\"lines\":1}", "\"two\\n\"");
    said("read_file", "{\"path\":\"a.txt\",\"from_line\":9}", "\"\"");
    said("read_file", "{\"path\":\"in/b.txt\"}", "\"inner\\n\""); /* a link inside */
    put(root, "bin", "\xff\xfe");
    failed("read_file", "{\"path\":\"bin\"}", "not_text");
    failed("read_file", "{\"path\":\"dir\"}", "is_folder");
    failed("read_file", "{\"path\":\"none\"}", "not_found");
    failed("read_file", "{\"path\":\"fifo\"}", "no_file");
}

static void a_file_that_is_too_large_is_refused(void **state)
{
    (void)state;
    char path[256];
    at(path, root, "large");
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, 8388608), 0);
    failed("read_file", "{\"path\":\"large\"}", "not_text"); /* at the limit: NUL bytes */
    assert_int_equal(ftruncate(fd, 8388609), 0);
    assert_int_equal(close(fd), 0);
    failed("read_file", "{\"path\":\"large\"}", "too_large");
}

static void a_file_is_written_whole_with_its_folders(void **state)
{
    (void)state;
    struct stat stat_of;
    char path[256];
    said("write_file", "{\"path\":\"x/y//z/n.txt\",\"content\":\"\xc3\xa9\\n\"}",
         "\"wrote x/y//z/n.txt (3 bytes)\"");
    assert_string_equal(get(root, "x/y/z/n.txt"), "\xc3\xa9\n");
    at(path, root, "a.txt");
    assert_int_equal(chmod(path, 0751), 0);
    said("write_file", "{\"path\":\"a.txt\",\"content\":\"\"}",
         "\"wrote a.txt (0 bytes)\"");
    assert_string_equal(get(root, "a.txt"), "");
    assert_int_equal(stat(path, &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 0777, 0751);
    failed("write_file", "{\"path\":\"dir\",\"content\":\"x\"}", "is_folder");
    failed("write_file", "{\"path\":\"dir/\",\"content\":\"x\"}", "is_folder");
    failed("write_file", "{\"path\":\"a.txt/b\",\"content\":\"x\"}", "not_found");
    failed("write_file", "{\"path\":\"in\",\"content\":\"x\"}", "outside_root");
    said("list_files", "{\"path\":\"x/y/z\"}",
         "\"n.txt (3 bytes)\\n\""); /* nothing left */
}

static void an_edit_replaces_what_occurs_once(void **state)
{
    (void)state;
    said("edit_file", "{\"path\":\"a.txt\",\"old\":\"two\",\"new\":\"2\"}",
         "\"edited a.txt (12 bytes)\"");
    assert_string_equal(get(root, "a.txt"), "one\n2\nthree\n");
    failed("edit_file", "{\"path\":\"a.txt\",\"old\":\"two\",\"new\":\"2\"}",
           "not_found");
    failed("edit_file", "{\"path\":\"a.txt\",\"old\":\"e\",\"new\":\"x\"}", "ambiguous");
    said("edit_file", "{\"path\":\"a.txt\",\"old\":\"2\\n\",\"new\":\"\"}",
         "\"edited a.txt (10 bytes)\"");
    assert_string_equal(get(root, "a.txt"), "one\nthree\n");
}

static enum hf_probe probed(const char *args)
{
    (void)tool_kit_start(&kit, "edit_file", "call-1", args, true);
    return tool_kit_wait(&kit)->probe;
}

static void an_edit_can_tell_whether_it_happened(void **state)
{
    (void)state;
    const char *edit = "{\"path\":\"a.txt\",\"old\":\"two\",\"new\":\"2\"}";
    assert_int_equal(probed(edit), HF_PROBE_NOT_HAPPENED);
    put(root, "a.txt", "one\n2\nthree\n");
    assert_int_equal(probed(edit), HF_PROBE_HAPPENED);
    assert_string_equal(kit.said.text, "\"edited a.txt (12 bytes)\"");
    put(root, "a.txt", "one\n2\ntwo\n");
    assert_int_equal(probed(edit), HF_PROBE_CANNOT_TELL);
    put(root, "a.txt", "neither\n");
    assert_int_equal(probed(edit), HF_PROBE_CANNOT_TELL);
    edit = "{\"path\":\"a.txt\",\"old\":\"two\",\"new\":\"two three\"}";
    put(root, "a.txt", "two\n");
    assert_int_equal(probed(edit), HF_PROBE_NOT_HAPPENED);
    put(root, "a.txt", "two three\n");
    assert_int_equal(probed(edit), HF_PROBE_CANNOT_TELL); /* it may have been so before */
    edit = "{\"path\":\"a.txt\",\"old\":\"two\",\"new\":\"\"}";
    assert_int_equal(probed(edit), HF_PROBE_CANNOT_TELL);
}

static void a_folder_is_listed_in_order(void **state)
{
    (void)state;
    make_dir(root, "empty");
    said("list_files", "{\"path\":\"dir\"}", "\"b.txt (6 bytes)\\nback (link)\\n\"");
    said("list_files", "{\"path\":\"empty\"}", "\"(the folder is empty)\\n\"");
    assert_int_equal(tool_kit_call(&kit, "list_files", "{}")->outcome, HF_TOOL_SUCCESS);
    assert_non_null(strstr(kit.said.text, "\"a.txt (14 bytes)\\n"));
    assert_non_null(strstr(kit.said.text, "dir/\\n"));
    assert_non_null(strstr(kit.said.text, "fifo (special)\\n"));
    failed("list_files", "{\"path\":\"a.txt\"}", "not_found");
}

struct count {
    int left;
};

static void on_edited(void *user, const struct hf_invocation_result *result)
{
    struct count *count = user;
    assert_non_null(result->result);
    assert_int_equal(result->result->outcome, HF_TOOL_SUCCESS);
    count->left--;
}

static void edits_at_the_same_time_lose_nothing(void **state)
{
    (void)state;
    char args[24][96], ids[24][8];
    struct count count = { 24 };
    put(root, "many", "a b c d e f g h i j k l m n o p q r s t u v w x ");
    for (int i = 0; i < 24; i++) {
        struct hf_invocation *call = NULL;
        struct hf_err err = { 0 };
        (void)snprintf(args[i], sizeof args[i],
                       "{\"path\":\"many\",\"old\":\"%c \",\"new\":\"%c \"}", 'a' + i,
                       'A' + i);
        (void)snprintf(ids[i], sizeof ids[i], "c%d", i);
        struct hf_invocation_request request = {
            .size = sizeof request,
            .tools = kit.set,
            .tool = "edit_file",
            .key = { "s", "t", 1, ids[i], 1, 1 },
            .args = { args[i], strlen(args[i]) },
            .user = &count,
            .done = on_edited,
        };
        assert_int_equal(hf_invocation_start(kit.loop, &request, &call, &err), 0);
    }
    while (count.left > 0)
        assert_true(hf_loop_step(kit.loop, -1) || count.left == 0);
    assert_string_equal(get(root, "many"),
                        "A B C D E F G H I J K L M N O P Q R S T U V W X ");
}

/* ---- no way out -------------------------------------------------------------------- */

/* As JSON strings. FOLDER is replaced by the folder that holds the root. */
static const char *const tricks[] = {
    "../secret.txt",
    "..",
    "../",
    "../.",
    "./../secret.txt",
    ".//../secret.txt",
    "dir/../../secret.txt",
    "dir/../a.txt",
    "dir/..",
    "dir/b.txt/../../../secret.txt",
    "a.txt/../../secret.txt",
    "dir//..//..//secret.txt",
    "./././../secret.txt",
    "in/../../secret.txt",
    "none/../../secret.txt",
    "new/../../outside/pwned",
    "../outside/pwned",
    "../root/../secret.txt",
    "../root/a.txt",
    "../../../../../../../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "//",
    "/.",
    "FOLDER/secret.txt",
    "/FOLDER/secret.txt",
    "FOLDER/root/a.txt",
    "FOLDER/outside/pwned",
    "file://FOLDER/secret.txt",
    "file:///etc/passwd",
    "up",
    "up/",
    "up/.",
    "up/secret.txt",
    "up//secret.txt",
    "up/./secret.txt",
    "up/outside/pwned",
    "up/up/up/etc/passwd",
    "up/root/a.txt",
    "abs",
    "abs/secret.txt",
    "abs/outside/pwned",
    "abs/outside/new/deep/pwned",
    "secretlink",
    "secretlink/",
    "secretlink/.",
    "abslink",
    "chain1",
    "chain2",
    "loop",
    "loop/x",
    "dangling",
    "dir/back",
    "dir/back/secret.txt",
    "dir/back/outside/pwned",
    "in/back/secret.txt",
    "dir/back/root/../secret.txt",
    "proc",
    "proc/etc/passwd",
    "proc/FOLDER/secret.txt",
    "fd",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/a.txt",
    "/dev/fd/0",
    "/dev/stdin",
    "/dev/tcp/127.0.0.1/80",
    "....//secret.txt",
    "..././secret.txt",
    "..%2fsecret.txt",
    "%2e%2e/secret.txt",
    "..\\\\secret.txt",
    "..\\/secret.txt",
    "\\u002e\\u002e\\u002fsecret.txt",
    "\\uff0e\\uff0e/secret.txt",
    "..\\u2215secret.txt",
    "..\\u0000/secret.txt",
    "a.txt\\u0000/../../secret.txt",
    "~/secret.txt",
    "~root/.profile",
    "$HOME/secret.txt",
    "`echo ..`/secret.txt",
    "$(echo ..)/secret.txt",
    "{..,dir}/secret.txt",
    "*/secret.txt",
    ".. /secret.txt",
    " ../secret.txt",
    "..\\n/secret.txt",
    "..\\t/secret.txt",
    "",
    "C:\\\\secret.txt",
    "\\\\\\\\host\\\\secret.txt",
    "up\\/secret.txt",
};
#define TRICKS (sizeof tricks / sizeof tricks[0])

static void make_args(char out[1024], const char *trick, const char *rest)
{
    const char *mark = strstr(trick, "FOLDER");
    if (mark)
        (void)snprintf(out, 1024, "{\"path\":\"%.*s%s%s\"%s}", (int)(mark - trick), trick,
                       folder + (mark > trick && mark[-1] == '/'), mark + 6, rest);
    else
        (void)snprintf(out, 1024, "{\"path\":\"%s\"%s}", trick, rest);
}

static void no_path_reads_what_is_outside(void **state)
{
    (void)state;
    char args[1024];
    assert_true(TRICKS >= 60);
    for (size_t i = 0; i < TRICKS; i++) {
        make_args(args, tricks[i], "");
        const struct tool_said *got = tool_kit_call(&kit, "read_file", args);
        if (got->outcome == HF_TOOL_SUCCESS)
            fail_msg("read_file %s: %s", args, got->text);
        got = tool_kit_call(&kit, "list_files", args);
        if (got->outcome == HF_TOOL_SUCCESS)
            fail_msg("list_files %s: %s", args, got->text);
    }
}

/* Paths of the system are read only: a build that fails this test must do no harm. */
static bool is_of_system(const char *trick)
{
    return strstr(trick, "etc/") || strstr(trick, "/dev/") || strstr(trick, "/proc/") ||
           strstr(trick, "~root") || strcmp(trick, "fd") == 0;
}

static void no_path_writes_what_is_outside(void **state)
{
    (void)state;
    char args[1024];
    for (size_t i = 0; i < TRICKS; i++) {
        if (is_of_system(tricks[i]))
            continue;
        make_args(args, tricks[i], ",\"content\":\"PWNED\"");
        (void)tool_kit_call(&kit, "write_file",
                            args); /* strange names may be made inside */
        make_args(args, tricks[i], ",\"old\":\"SECRET\",\"new\":\"PWNED\"");
        (void)tool_kit_call(&kit, "edit_file", args);
    }
    assert_string_equal(get(folder, "secret.txt"), "SECRET\n");
    assert_string_equal(get(folder, "f.txt"), "SECRET\n");
    char path[256];
    at(path, folder, "outside");
    assert_int_equal(rmdir(path), 0);
    int entries = 0;
    char command[160];
    (void)snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *count = popen(command, "r");
    assert_int_equal(fscanf(count, "%d", &entries), 1);
    assert_int_equal(pclose(count), 0);
    assert_int_equal(entries, 3); /* root, secret.txt, f.txt */
}

/* A process that exchanges a folder and a link that leads out. */
static atomic_bool swapping;

static void *swap(void *user)
{
    int fd = open(root, O_PATH | O_DIRECTORY);
    (void)user;
    while (atomic_load(&swapping))
        (void)renameat2(fd, "flip", fd, "flop", RENAME_EXCHANGE);
    (void)close(fd);
    return NULL;
}

static void a_race_with_a_link_leads_nowhere(void **state)
{
    (void)state;
    pthread_t thread;
    int inside = 0, refused = 0;
    make_dir(root, "flip");
    put(root, "flip/f.txt", "inside\n");
    link_to("..", "flop");
    int fd = open(root, O_PATH | O_DIRECTORY);
    atomic_store(&swapping, true);
    assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
    /* Until both were often there: the other thread may not run for a while. */
    for (int i = 0; inside < 500 || refused < 500; i++) {
        char text[16] = "";
        int file = i % 2 ? beneath_open(fd, "flip/f.txt", O_RDONLY, 0)
                         : beneath_walk(fd, "flip/f.txt", O_RDONLY, 0);
        if (file < 0) {
            assert_true(file == -EXDEV || file == -ELOOP || file == -ENOTDIR ||
                        file == -EAGAIN || file == -ENOENT);
            refused++;
            continue;
        }
        assert_true(read(file, text, sizeof text - 1) > 0);
        assert_string_equal(text, "inside\n");
        assert_int_equal(close(file), 0);
        inside++;
    }
    atomic_store(&swapping, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(close(fd), 0);
}

/* The kernel without openat2: no trick leads out, and plain paths work. */
static void the_walk_is_as_strict(void **state)
{
    (void)state;
    char args[1024];
    int fd = open(root, O_PATH | O_DIRECTORY);
    for (size_t i = 0; i < TRICKS; i++) {
        make_args(args, tricks[i], "");
        char *path = args + 9;
        path[strlen(path) - 2] = '\0';
        int file = beneath_walk(fd, path, O_RDONLY | O_NONBLOCK, 0);
        if (file >= 0)
            fail_msg("%s was opened", path);
    }
    int file = beneath_walk(fd, "dir/b.txt", O_RDONLY, 0);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    file = beneath_walk(fd, "dir//./b.txt", O_RDONLY, 0);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    file = beneath_walk(fd, "fresh", O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    assert_int_equal(beneath_walk(fd, "in/b.txt", O_RDONLY, 0), -ENOTDIR);
    assert_int_equal(beneath_walk(fd, "none/b.txt", O_RDONLY, 0), -ENOENT);
    assert_int_equal(close(fd), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_file_is_read_whole_or_by_lines),
        CASE(a_file_that_is_too_large_is_refused),
        CASE(a_file_is_written_whole_with_its_folders),
        CASE(an_edit_replaces_what_occurs_once),
        CASE(an_edit_can_tell_whether_it_happened),
        CASE(a_folder_is_listed_in_order),
        CASE(edits_at_the_same_time_lose_nothing),
        CASE(no_path_reads_what_is_outside),
        CASE(no_path_writes_what_is_outside),
        CASE(a_race_with_a_link_leads_nowhere),
        CASE(the_walk_is_as_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
