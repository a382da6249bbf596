/* The version of the library. */
#include <holdfast/version.h>

const char *hf_version(void)
{
    return HF_VERSION;
}
