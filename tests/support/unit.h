/* What every unit test includes: cmocka wants these headers before its own. */
#ifndef TESTS_SUPPORT_UNIT_H
#define TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Whether `act` ends in abort(), tried in a child process whose complaint is not shown. */
_Bool unit_aborts(void (*act)(void));

#endif
