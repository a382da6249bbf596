#include "support/conform.h"

#include <stdlib.h>
#include <string.h>

#include "support/unit.h"

struct one {
    const struct hf_conform_case *of;
    const struct hf_conform_factory *factory;
};

static void run_one(void **state)
{
    const struct one *one = *state;
    struct hf_conform_failure failure;
    if (hf_conform_run(one->of, one->factory, &failure) != 0)
        fail_msg("%s", failure.text);
}

int conform_main(const char *group, const struct hf_conform_factory *factory, int argc,
                 char **argv)
{
    size_t most = hf_conform_case_count();
    struct CMUnitTest *tests = calloc(most, sizeof(*tests));
    struct one *ones = calloc(most, sizeof(*ones));
    size_t n = 0;
    if (!tests || !ones)
        return 1;
    for (size_t i = 0; i < most; i++) {
        const struct hf_conform_case *of = hf_conform_case_at(i);
        if ((of->needs & HF_CONFORM_AGAIN) && !factory->again)
            continue;
        if (of->needs & factory->without)
            continue;
        if (argc > 1 && !strstr(of->name, argv[1]))
            continue;
        ones[n] = (struct one){ of, factory };
        tests[n] = (struct CMUnitTest){ of->name, run_one, NULL, NULL, &ones[n] };
        n++;
    }
    int failed = _cmocka_run_group_tests(group, tests, n, NULL, NULL);
    free(ones);
    free(tests);
    return failed;
}
