/* See address.h. An IPv6 address that contains an IPv4 address is judged by that one, or refused
 * as reserved; of the rest of IPv6 only the global range is public. */
#include "agent/tool/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* Networks, the first that fits decides. */
struct network {
    unsigned char prefix[16];
    int bits;
    enum address_rule rule;
};

static const struct network four[] = {
    { { 169, 254, 169, 254 }, 32, ADDRESS_METADATA },
    { { 169, 254, 170, 2 }, 32, ADDRESS_METADATA },
    { { 100, 100, 100, 200 }, 32, ADDRESS_METADATA },
    { { 192, 0, 0, 192 }, 32, ADDRESS_METADATA },
    { { 168, 63, 129, 16 }, 32, ADDRESS_METADATA },
    { { 127 }, 8, ADDRESS_LOOPBACK },
    { { 0 }, 8, ADDRESS_LOOPBACK },
    { { 169, 254 }, 16, ADDRESS_LINKLOCAL },
    { { 10 }, 8, ADDRESS_PRIVATE },
    { { 172, 16 }, 12, ADDRESS_PRIVATE },
    { { 192, 168 }, 16, ADDRESS_PRIVATE },
    { { 100, 64 }, 10, ADDRESS_PRIVATE },
    { { 192, 0, 0 }, 24, ADDRESS_RESERVED },
    { { 192, 0, 2 }, 24, ADDRESS_RESERVED },
    { { 192, 88, 99 }, 24, ADDRESS_RESERVED },
    { { 198, 18 }, 15, ADDRESS_RESERVED },
    { { 198, 51, 100 }, 24, ADDRESS_RESERVED },
    { { 203, 0, 113 }, 24, ADDRESS_RESERVED },
    { { 224 }, 3, ADDRESS_RESERVED },
};

static const struct network six[] = {
    { { 0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54 },
      128,
      ADDRESS_METADATA },
    { { [15] = 1 }, 128, ADDRESS_LOOPBACK },
    { { 0 }, 128, ADDRESS_LOOPBACK },
    { { 0xfe, 0x80 }, 10, ADDRESS_LINKLOCAL },
    { { 0xfc }, 7, ADDRESS_PRIVATE },
    { { 0xfe, 0xc0 }, 10, ADDRESS_PRIVATE },
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32, ADDRESS_RESERVED },
    { { 0x20, 0x01, 0x00 }, 23, ADDRESS_RESERVED },
    { { 0x3f, 0xff }, 20, ADDRESS_RESERVED },
    { { 0x20 }, 3, ADDRESS_PUBLIC },
};

/* Where an IPv6 address contains an IPv4 address. */
static const struct {
    struct network within;
    size_t at;
} embedded[] = {
    { { { [10] = 0xff, [11] = 0xff }, 96, ADDRESS_PUBLIC }, 12 }, /* mapped */
    { { { 0x00, 0x64, 0xff, 0x9b }, 96, ADDRESS_PUBLIC }, 12 },   /* NAT64 */
    { { { 0x20, 0x02 }, 16, ADDRESS_PUBLIC }, 2 },                /* 6to4 */
    { { { [8] = 0xff, [9] = 0xff }, 96, ADDRESS_PUBLIC }, 12 },   /* SIIT */
};

static bool is_in(const unsigned char *address, const struct network *network)
{
    size_t whole = (size_t)network->bits / 8;
    int rest = network->bits % 8;
    if (memcmp(address, network->prefix, whole) != 0)
        return false;
    unsigned mask = rest ? 0xFFU << (8 - rest) & 0xFFU : 0;
    return ((address[whole < 16 ? whole : 15] ^
             network->prefix[whole < 16 ? whole : 15]) &
            mask) == 0;
}

static enum address_rule judge(const unsigned char *address, const struct network *list,
                               size_t count, enum address_rule otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (is_in(address, &list[i]))
            return list[i].rule;
    return otherwise;
}

static enum address_rule judge_four(const unsigned char *address)
{
    unsigned char whole[16] = { 0 }; /* is_in may look at one byte more */
    memcpy(whole, address, 4);
    return judge(whole, four, sizeof four / sizeof four[0], ADDRESS_PUBLIC);
}

static enum address_rule judge_six(const unsigned char *address)
{
    for (size_t i = 0; i < sizeof embedded / sizeof embedded[0]; i++) {
        if (!is_in(address, &embedded[i].within))
            continue;
        enum address_rule rule = judge_four(address + embedded[i].at);
        return rule == ADDRESS_PUBLIC ? ADDRESS_RESERVED : rule;
    }
    return judge(address, six, sizeof six / sizeof six[0], ADDRESS_RESERVED);
}

enum address_rule address_rule(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return judge_four((const unsigned char *)&in.sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, address, sizeof in);
        return judge_six((const unsigned char *)&in.sin6_addr);
    }
    return ADDRESS_RESERVED;
}

const char *address_rule_name(enum address_rule rule)
{
    static const char *const names[] = {
        [ADDRESS_PUBLIC] = "public",        [ADDRESS_LOOPBACK] = "loopback",
        [ADDRESS_PRIVATE] = "private",      [ADDRESS_RESERVED] = "reserved",
        [ADDRESS_LINKLOCAL] = "link-local", [ADDRESS_METADATA] = "metadata",
    };
    return names[rule];
}
