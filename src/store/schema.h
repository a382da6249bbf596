/* The ledger's tables and statements, as a driver gets them at open. */
#ifndef HF_STORE_SCHEMA_H
#define HF_STORE_SCHEMA_H

#include "db/schema.h"

extern const struct db_schema hf_ledger_schema;

#endif
