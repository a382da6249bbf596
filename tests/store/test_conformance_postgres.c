/* The conformance suite on a real PostgreSQL. */
#include "support/conform.h"
#include "support/pg.h"

int main(int argc, char **argv)
{
    static struct pg_server server;
    pg_server_start(&server);
    struct pg_place place = { .server = &server, .base = server.url, .schema = "suite" };
    const struct hf_conform_factory factory = { .size = sizeof(factory),
                                                .user = &place,
                                                .open = pg_place_open,
                                                .again = pg_place_again,
                                                .discard = pg_place_discard };
    return conform_main("conformance on PostgreSQL", &factory, argc, argv);
}
