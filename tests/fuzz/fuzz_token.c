/* Lease tokens: what is read is written back byte for byte; what is not is refused by name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/lease.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[400];
    struct hf_token token;
    struct hf_err err = { 0 };
    struct hf_buf buf;
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (hf_token_read(text, &token, &err)) {
        require(strcmp(err.field, "token") == 0);
        return 0;
    }
    require(token.store >= 0 && token.fence >= 0 && token.nonce[0]);
    hf_buf_init(&buf, hf_alloc_system(), sizeof(text));
    require(hf_token_write(&buf, token.store, token.fence, token.nonce) == 0);
    require(strcmp(hf_buf_str(&buf), text) == 0);
    hf_buf_fini(&buf);
    return 0;
}
