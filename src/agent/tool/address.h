/* Which addresses a fetch may reach: those of the public internet. */
#ifndef HF_AGENT_TOOL_ADDRESS_H
#define HF_AGENT_TOOL_ADDRESS_H

#include <sys/socket.h>

#include <holdfast/types.h>

/* The rule that refuses an address, strictest last. */
enum address_rule {
    ADDRESS_PUBLIC,   /* none */
    ADDRESS_LOOPBACK, /* this machine */
    ADDRESS_PRIVATE,  /* this network */
    ADDRESS_RESERVED, /* documentation, multicast, tunnels, not assigned; other families */
    ADDRESS_LINKLOCAL, /* this link */
    ADDRESS_METADATA   /* credentials of a cloud machine */
};

enum address_rule address_rule(const struct sockaddr *address);
/* Its word, for messages. */
const char *address_rule_name(enum address_rule rule);

#endif
