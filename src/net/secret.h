/* The bytes of a secret, for the HTTP client and for the recorder that must hide them. */
#ifndef HF_NET_SECRET_H
#define HF_NET_SECRET_H

#include <holdfast/secret.h>

struct hf_span hf_secret_bytes(const struct hf_secret *secret);

#endif
