/* A quick look at JSON text that builds nothing. */
#ifndef HF_BASE_JSON_SCAN_H
#define HF_BASE_JSON_SCAN_H

#include <holdfast/types.h>

/* True only for text that hf_json_parse certainly accepts. False says nothing: the text
 * may be wrong, or only rare (a key with an escape, an object with very many keys, a long
 * number). */
bool hf_json_plain(struct hf_span text);

#endif
