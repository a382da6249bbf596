/* Connection strings in the form of libpq: "host=db.example dbname=work user=ann"; and servers with
 * a port: "db.example:5432". They are no addresses of a store here, and must not be taken for the
 * name of a file. */
#ifndef HF_BASE_CONNINFO_H
#define HF_BASE_CONNINFO_H

#include <stdbool.h>
#include <stddef.h>

#define HF_CONNINFO_URL 256

/* Whether `text` begins with a keyword of libpq and "=", or is HOST:PORT, perhaps with a user or a
 * database. Then `ret_url` is the address to use instead, as far as host, port, user, dbname and
 * service are named. A password is left out. */
bool hf_conninfo_url(const char *text, char ret_url[HF_CONNINFO_URL]);

#endif
