/* The conformance suite through a real PgBouncer in transaction mode. */
#include "support/conform.h"
#include "support/pg.h"

int main(int argc, char **argv)
{
    static struct pg_server server;
    pg_server_start(&server);
    pg_server_pooler(&server);
    struct pg_place place = { .server = &server,
                              .base = server.pooled,
                              .schema = "suite" };
    const struct hf_conform_factory factory = { .size = sizeof(factory),
                                                .user = &place,
                                                .open = pg_place_open,
                                                .again = pg_place_again,
                                                .discard = pg_place_discard };
    return conform_main("conformance through PgBouncer", &factory, argc, argv);
}
