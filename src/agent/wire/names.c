/* Words of the enums of providers and transports. */
#include <holdfast/provider.h>
#include <holdfast/sys/transport.h>

const char *hf_model_event_name(enum hf_model_event_kind kind)
{
    static const char *const words[] = {
#define X(name, word) #word,
        HF_MODEL_EVENTS(X)
#undef X
    };
    return (unsigned)kind < sizeof(words) / sizeof(words[0]) ? words[kind] : "?";
}

const char *hf_http_fault_name(enum hf_http_fault fault)
{
    static const char *const words[] = {
#define X(name, word) #word,
        HF_HTTP_FAULTS(X)
#undef X
    };
    return (unsigned)fault < sizeof(words) / sizeof(words[0]) ? words[fault] : "?";
}
