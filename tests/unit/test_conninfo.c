/* Which texts are connection strings of libpq, and the address to use instead. */
#include "support/unit.h"

#include <string.h>

#include "base/conninfo.h"

static void address_is(const char *text, const char *wanted)
{
    char url[HF_CONNINFO_URL];
    assert_true(hf_conninfo_url(text, url));
    assert_string_equal(url, wanted);
}

static void a_connection_string_names_the_address_to_use(void **state)
{
    (void)state;
    address_is("host=db.example dbname=work", "postgres://db.example/work");
    address_is(" user = 'ann' host=h port=6432 dbname='w' ", "postgres://ann@h:6432/w");
    address_is("dbname=work", "postgres:///work");
    address_is("user=ann port=6432", "postgres://ann@:6432/DATABASE");
    address_is("service=main", "postgres:///?service=main");
}

static void a_socket_is_named_as_one(void **state)
{
    (void)state;
    address_is("host=/run/pg dbname=work", "postgres:///work?host=%2Frun%2Fpg");
    address_is("host=/s port=1 user=u service=m", "postgres://u@:1/?host=%2Fs&service=m");
}

static void what_an_address_cannot_hold_is_encoded(void **state)
{
    (void)state;
    address_is("host=h user='a b@c' dbname=d/e", "postgres://a%20b%40c@h/d%2Fe");
}

static void a_password_is_not_shown(void **state)
{
    (void)state;
    address_is("host=h password='se\\'cret' dbname=d", "postgres://h/d");
    address_is("password=secret", "postgres:///DATABASE");
}

static void a_server_with_a_port_names_the_address_to_use(void **state)
{
    (void)state;
    address_is("db.example:5432", "postgres://db.example:5432/DATABASE");
    address_is("db.example:5432/work", "postgres://db.example:5432/work");
    address_is("ann@db:6432/w?x=y", "postgres://ann@db:6432/w");
    address_is("ann:se:cret@db:6432", "postgres://ann@db:6432/DATABASE");
    address_is("postgres:5432", "postgres://postgres:5432/DATABASE");
}

static void a_path_is_none(void **state)
{
    char url[HF_CONNINFO_URL];
    (void)state;
    static const char *const paths[] = {
        "work.db", "./host=a", "a=b",      "hosts=a", "/tmp/dbname=x",  "",      "host",
        "=",       "host a=b", "./h:5432", "h:",      "h:123456",       ":5432", "5432",
        "h:5432x", "a b:5432", "@h:",      "2026:1a", "sqlite::memory:"
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_false(hf_conninfo_url(paths[i], url));
}

static void a_long_value_is_left_out(void **state)
{
    char text[600] = "dbname=d host=";
    (void)state;
    size_t at = strlen(text);
    memset(text + at, 'x', 500);
    address_is(text, "postgres:///d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_string_names_the_address_to_use),
        cmocka_unit_test(a_socket_is_named_as_one),
        cmocka_unit_test(what_an_address_cannot_hold_is_encoded),
        cmocka_unit_test(a_password_is_not_shown),
        cmocka_unit_test(a_server_with_a_port_names_the_address_to_use),
        cmocka_unit_test(a_path_is_none),
        cmocka_unit_test(a_long_value_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
