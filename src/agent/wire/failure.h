/* The failure of a call, from evidence. The rules are tables (failure.c); the texts
 * of an error are the tables' own, so that nothing of a request, a response or a header can
 * get into one. Pure. */
#ifndef HF_AGENT_WIRE_FAILURE_H
#define HF_AGENT_WIRE_FAILURE_H

#include <holdfast/provider.h>
#include <holdfast/sys/transport.h>

/* Where the evidence comes from. */
enum hf_fault_source {
    HF_FAULT_TRANSPORT, /* `http` says what */
    HF_FAULT_STATUS,    /* an HTTP status that is no success */
    HF_FAULT_SERVER,    /* an error object in a stream that had begun */
    HF_FAULT_JSON,      /* an event or a body that is not the JSON it should be */
    HF_FAULT_EVENT,     /* an event over its limit */
    HF_FAULT_RESPONSE,  /* a response over its limit */
    HF_FAULT_PARTS,     /* too many parts */
    HF_FAULT_ENDED,     /* the stream ended without its terminal event */
    HF_FAULT_IDENTITY,  /* an id or the model changed within a stream */
    HF_FAULT_MEMORY     /* ours ran out */
};

/* Texts are borrowed: the raw JSON strings of an error object, empty if there are none. The
 * position decides whether a second attempt could be charged again. */
struct hf_fault {
    enum hf_fault_source source;
    enum hf_http_fault http;
    int status;
    enum hf_llm_position position;
    struct hf_span type;
    struct hf_span code;
    struct hf_span text;
    hf_ms retry_after_ms; /* 0: not asked for */
};

/* Reads an error object (or the text that some servers send instead) into the fault. */
void hf_fault_read(struct hf_fault *fault, struct hf_span raw);

/* The error for that fault: kind, transient, charge_safe, retry_after_ms, code, message,
 * position.
 * The texts are static. */
void hf_fault_judge(const struct hf_fault *fault, struct hf_llm_error *ret_error);

/* Retry-After: seconds, or a date of HTTP; `wall_ms` is now. 0 when it says nothing or a
 * moment that is over. Never more than an hour. */
hf_ms hf_wire_retry_after(const char *value, hf_ms wall_ms);

#endif
