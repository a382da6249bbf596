/* The version of the headers and of the library. */
#ifndef HOLDFAST_VERSION_H
#define HOLDFAST_VERSION_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the headers that a program was compiled with. */
#define HF_VERSION "0.1.0"
/* The same as a number for #if: major * 10000 + minor * 100 + patch. */
#define HF_VERSION_NUMBER 100

/* Returns the version of the library that the program runs with, as HF_VERSION: static text. */
HF_API const char *hf_version(void);

#ifdef __cplusplus
}
#endif
#endif
