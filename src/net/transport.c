/* Common parts of all transports. */
#include <holdfast/sys/transport.h>

void hf_transport_free(struct hf_transport *transport)
{
    if (transport)
        transport->methods->free(transport);
}
