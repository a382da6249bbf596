/* Leases on things that are not work rows: today sessions. The same algorithm as the
 * ledger's, on another table (docs/internals/leases.md). */
#ifndef HOLDFAST_LEASE_H
#define HOLDFAST_LEASE_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_store;

/* The kind of row that a lease is on. */
enum hf_leased { HF_LEASED_SESSION, HF_LEASED_COUNT };

/* A lease as it is now, or as it was. Texts live as long as the struct: it is
 * self-contained. */
struct hf_lease_info {
    char owner[192];
    char incarnation[192];
    char token[256]; /* only for the caller that acquired it */
    char holder[512];
    int64_t fence;
    hf_ms ttl_ms;
    hf_ms claimed_at;
    hf_ms expires_at;
    hf_ms remaining_ms;
    bool held;      /* false: free */
    bool displaced; /* claim: a lapsed holder was overwritten; its facts are below */
    char displaced_owner[192];
    int64_t displaced_fence;
    hf_ms displaced_expires_at;
};

struct hf_lease_claim {
    uint32_t size;
    enum hf_leased leased;
    const char *key;
    const char *owner;
    const char *incarnation; /* NULL: this handle's */
    const char *nonce;       /* NULL: fresh; your own makes the claim repeatable */
    int pid;                 /* 0: opaque */
    hf_ms ttl_ms;            /* 0: 30 s */
    bool reclaim;            /* also take a live lease whose holder is proven dead */
};

/* Takes the lease of a key: one that is free or lapsed, the caller's own again, or by `reclaim` one
 * whose holder is proven dead. HF_EHELD while another owner holds it; *ret_info then shows the
 * holder, without its token. HF_EINVAL and HF_ETOOBIG name the field; HF_ENOTFOUND: there is no
 * such session; and the errors of a store. */
HF_API HF_MUST_USE int hf_lease_take(struct hf_store *store,
                                     const struct hf_lease_claim *claim,
                                     struct hf_lease_info *ret_info, struct hf_err *err);

/* Extends the lease by its own term, ttl_ms, from now on. HF_EINVAL, HF_ETOOBIG, HF_ELEASELOST when
 * it is not this token's, or lapsed; and the errors of a store. */
HF_API HF_MUST_USE int hf_lease_renew(struct hf_store *store, enum hf_leased leased,
                                      const char *key, const char *token,
                                      struct hf_lease_info *ret_info, struct hf_err *err);

/* Frees the lease; its fence remains. HF_EINVAL, HF_ETOOBIG, HF_ELEASELOST when it is not this
 * token's: the lease of a successor is never changed; and the errors of a store. */
HF_API HF_MUST_USE int hf_lease_release(struct hf_store *store, enum hf_leased leased,
                                        const char *key, const char *token,
                                        struct hf_err *err);

/* Reads the lease of a key, also a lapsed one. HF_EINVAL, HF_ETOOBIG, HF_ENOTFOUND: there is no
 * such session; and the errors of a store. */
HF_API HF_MUST_USE int hf_lease_look(struct hf_store *store, enum hf_leased leased,
                                     const char *key, struct hf_lease_info *ret_info,
                                     struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
