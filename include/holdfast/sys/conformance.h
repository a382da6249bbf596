/* The conformance suite: the duties of every store, as named cases.
 *
 * For those who write a store (sys/store.h) or a SQL driver (sys/driver.h): pass a
 * factory, run the cases, read what failed. The suite is the archive
 * libholdfast-conform.a; it uses public headers only. Time is virtual: cases step the
 * clock that they put into the store's options, and nothing ever waits. Expected values
 * are written by hand.
 *
 *     for (size_t i = 0; i < hf_conform_case_count(); i++) {
 *         struct hf_conform_failure failure;
 *         const struct hf_conform_case *one = hf_conform_case_at(i);
 *         if (hf_conform_run(one, &factory, &failure) != 0)
 *             printf("%s: %s\n", one->name, failure.text);
 *     }
 *
 * docs/internals/conformance.md names the requirement that each case shows.
 */
#ifndef HOLDFAST_SYS_CONFORMANCE_H
#define HOLDFAST_SYS_CONFORMANCE_H

#include <holdfast/sys/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the suite comes by a store. `options` carries the suite's clock, randomness and
 * allocator and inline_mode; it must be obeyed. The suite closes each handle with
 * hf_store_close.
 *   open     a new store, and the first handle on it
 *   again    another handle on the store that `open` made last, next to open handles or
 *            after all were closed; NULL where such a store cannot exist (sqlite::memory:)
 *   discard  all handles are closed: remove the store. NULL: nothing to do               */
struct hf_conform_factory {
    uint32_t size;
    void *user;
    int (*open)(void *user, const struct hf_store_options *options,
                struct hf_store **ret_store, struct hf_err *err);
    int (*again)(void *user, const struct hf_store_options *options,
                 struct hf_store **ret_store, struct hf_err *err);
    void (*discard)(void *user);
    unsigned without; /* needs that its stores do not meet */
};

/* The requirements of a case: a factory with `again`; a store with schedules, triggers, processes,
 * sessions, waits. */
#define HF_CONFORM_AGAIN 1u
#define HF_CONFORM_SCHEDULES 2u
#define HF_CONFORM_TRIGGERS 4u
#define HF_CONFORM_PROCESSES 8u
#define HF_CONFORM_SESSIONS 16u
#define HF_CONFORM_WAITS 32u

struct hf_conform;

/* One claim about stores. The record is static. */
struct hf_conform_case {
    const char *name;
    unsigned needs;
    void (*body)(struct hf_conform *t);
};

/* The cases, in order; NULL past the last. */
HF_API size_t hf_conform_case_count(void);
HF_API const struct hf_conform_case *hf_conform_case_at(size_t i);

/* The place of the failure, the expected value and the actual one. */
struct hf_conform_failure {
    char text[1200];
};

/* Run one case on a store of its own, then fold every trail of that store. Returns 0, or
 * -1 with *ret_failure filled. A case whose needs the factory does not meet fails. */
HF_API HF_MUST_USE int hf_conform_run(const struct hf_conform_case *one,
                                      const struct hf_conform_factory *factory,
                                      struct hf_conform_failure *ret_failure);

#ifdef __cplusplus
}
#endif
#endif
