/* A second engine: a language of one statement per line, to see that the seam is one. */
#ifndef TESTS_EXEC_ENGINE_TOY_H
#define TESTS_EXEC_ENGINE_TOY_H

#include <holdfast/sys/exec.h>

/*  call TOOL JSON     print TEXT     set NAME JSON     finish JSON     spin
 *  set NAME last      the binding is what the last call answered
 * Bindings that were there stay. Anything further is a syntax error. */
const struct hf_engine *engine_toy(void);

#endif
