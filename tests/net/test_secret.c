/* Secrets: every source, every refusal, and that no error shows the bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/secret.h"
#include "support/unit.h"

static void expect(enum hf_secret_source source, const char *from, const char *bytes)
{
    struct hf_secret *secret = NULL;
    struct hf_err err = { 0 };
    if (hf_secret_new("main", source, from, &secret, &err))
        fail_msg("%s", err.message);
    assert_string_equal(hf_secret_text(secret), "[secret:main]");
    assert_string_equal(hf_secret_bytes(secret).at, bytes);
    assert_int_equal(hf_secret_bytes(secret).len, strlen(bytes));
    hf_secret_free(secret);
}

static void refuse(enum hf_secret_source source, const char *from, int code)
{
    struct hf_secret *secret = NULL;
    struct hf_err err = { 0 };
    assert_int_equal(hf_secret_new("main", source, from, &secret, &err), code);
    assert_non_null(strstr(err.message, "[secret:main]"));
    assert_null(strstr(err.message, "CANARY"));
    assert_null(secret);
}

static char folder[] = "/tmp/holdfast-secret.XXXXXX";
static char path[64];

static void write_file(const char *text, mode_t mode)
{
    snprintf(path, sizeof(path), "%s/key", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void a_file_is_read_without_its_newline(void **state)
{
    (void)state;
    write_file("CANARY-1\n", 0600);
    expect(HF_SECRET_FILE, path, "CANARY-1");
    write_file("CANARY-1", 0644);
    refuse(HF_SECRET_FILE, path, HF_EINVAL);
    refuse(HF_SECRET_FILE, "/nowhere/key", HF_ENOTFOUND);
    refuse(HF_SECRET_FILE, folder, HF_EINVAL);
}

static void a_variable_is_read(void **state)
{
    (void)state;
    setenv("HF_TEST_KEY", "CANARY-2", 1);
    expect(HF_SECRET_ENV, "HF_TEST_KEY", "CANARY-2");
    setenv("HF_TEST_KEY", "", 1);
    refuse(HF_SECRET_ENV, "HF_TEST_KEY", HF_ENOTFOUND);
    unsetenv("HF_TEST_KEY");
    refuse(HF_SECRET_ENV, "HF_TEST_KEY", HF_ENOTFOUND);
}

static void a_command_prints_it_without_a_shell(void **state)
{
    (void)state;
    expect(HF_SECRET_COMMAND, "echo  CANARY-3 $HOME", "CANARY-3 $HOME");
    refuse(HF_SECRET_COMMAND, "false", HF_ENOTFOUND);
    refuse(HF_SECRET_COMMAND, "/nowhere/program", HF_ENOTFOUND);
    refuse(HF_SECRET_COMMAND, "  ", HF_EINVAL);
}

static void a_credential_of_systemd_is_read(void **state)
{
    (void)state;
    write_file("CANARY-4\n", 0444);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    expect(HF_SECRET_CREDENTIAL, "key", "CANARY-4");
    refuse(HF_SECRET_CREDENTIAL, "other", HF_ENOTFOUND);
    refuse(HF_SECRET_CREDENTIAL, "../key", HF_EINVAL);
    unsetenv("CREDENTIALS_DIRECTORY");
    refuse(HF_SECRET_CREDENTIAL, "key", HF_ENOTFOUND);
}

static void what_cannot_be_in_a_header_is_refused(void **state)
{
    (void)state;
    static char longest[8192 + 2];
    memset(longest, 'x', 8192);
    expect(HF_SECRET_BYTES, longest, longest);
    longest[8192] = 'x';
    refuse(HF_SECRET_BYTES, longest, HF_EINVAL);
    refuse(HF_SECRET_BYTES, "CANARY\r\nx: y", HF_EINVAL);
    refuse(HF_SECRET_BYTES, "CANARY\x7f", HF_EINVAL);
    refuse(HF_SECRET_BYTES, "", HF_ENOTFOUND);
    refuse(HF_SECRET_BYTES, "\n", HF_ENOTFOUND);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_without_its_newline),
        cmocka_unit_test(a_variable_is_read),
        cmocka_unit_test(a_command_prints_it_without_a_shell),
        cmocka_unit_test(a_credential_of_systemd_is_read),
        cmocka_unit_test(what_cannot_be_in_a_header_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
