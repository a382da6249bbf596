/* The three transports of the library. */
#ifndef HOLDFAST_HTTP_H
#define HOLDFAST_HTTP_H

#include <holdfast/loop.h>
#include <holdfast/secret.h>
#include <holdfast/sys/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* HTTP/1.1 and HTTP/2 by libcurl. TLS is always verified. A secret is sent in plain HTTP
 * only to loopback. Redirects are not followed. A proxy is taken from the environment,
 * except for loopback.
 *   ca_file   certificates to trust instead of the system's; NULL: those
 *   start_ms  until the head of the response; 0: 120,000
 *   gap_ms    between two pieces of it; 0: 120,000
 *   whole_ms  for all of it; 0: 300,000; -1: no limit                                     */
struct hf_http_config {
    size_t size;
    const char *ca_file;
    hf_ms start_ms;
    hf_ms gap_ms;
    hf_ms whole_ms;
};

/* The loop is lent until the transport is freed. config NULL: all defaults. HF_EINVAL,
 * HF_ENOMEM, HF_EINTERNAL. */
HF_API HF_MUST_USE int hf_http_new(struct hf_loop *loop,
                                   const struct hf_http_config *config,
                                   struct hf_transport **ret_transport,
                                   struct hf_err *err);

/* Is it an address for hf_http_new: http or https, with a host, without user info? HF_EINVAL
 * names `field`. The error never contains the address. */
HF_API HF_MUST_USE int hf_http_check_url(const char *url, const char *field,
                                         struct hf_err *err);

/* The parts of an address that decide what a request reaches. */
struct hf_url {
    char host
        [256]; /* lower case; an IPv4 address in four decimal numbers, IPv6 without [ ] */
    int port;
    bool address; /* the host is an address, not a name */
};

/* Reads an address as hf_http_new does, so that no two readers differ. HF_EINVAL as
 * hf_http_check_url. */
HF_API HF_MUST_USE int hf_url_read(const char *url, struct hf_url *ret_url,
                                   struct hf_err *err);
/* The address to which `location`, of a response to `url`, leads. Free it with alloc. HF_EINVAL,
 * HF_ENOMEM. */
HF_API HF_MUST_USE int hf_url_follow(const struct hf_alloc *alloc, const char *url,
                                     const char *location, char **ret_url,
                                     struct hf_err *err);

/* Plays recorded exchanges (docs/models.md has the format), one per start, in their order; a
 * start after the last is refused with HF_ENOTFOUND. The text is copied. HF_EINVAL names the
 * line at fault. */
HF_API HF_MUST_USE int hf_script_new(struct hf_loop *loop, struct hf_span script,
                                     struct hf_transport **ret_transport,
                                     struct hf_err *err);

/* Records the exchanges of another transport into a file, as a script. Requests are not in it; of
 * headers only the names in the list of docs/models.md keep their value; every secret that a
 * request carried is replaced by [secret:name] wherever it occurs. The inner transport
 * belongs to the recorder from now on, also when this fails. The file is new or overwritten.
 * HF_EINVAL when it cannot be written, HF_ENOMEM. */
HF_API HF_MUST_USE int hf_recorder_new(struct hf_loop *loop, struct hf_transport *inner,
                                       const char *path,
                                       struct hf_transport **ret_transport,
                                       struct hf_err *err);

#ifdef __cplusplus
}
#endif
#endif
