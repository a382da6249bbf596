/* A stored history that is never in memory as a whole: records are kept as JSON, and each one
 * that is pinned is decoded anew and freed when it is put. So a pointer that is used past its
 * pin is found by ASan, and a pin that is never put is found by the count.
 */
#ifndef TESTS_TURN_PAGES_H
#define TESTS_TURN_PAGES_H

#include <holdfast/turn_json.h>

#define PAGES_MAX 512

struct pages {
    struct hf_bytes records[PAGES_MAX];   /* what is stored */
    uint8_t digests[PAGES_MAX + 1][32];   /* of the first n records */
    uint64_t last_steps[PAGES_MAX + 1];   /* likewise: number of the last step + 1 */
    bool tells_steps;                     /* bases say where the last step is */
    struct hf_decoded *owners[PAGES_MAX]; /* of those that are pinned now */
    const struct hf_record *lent[PAGES_MAX];
    size_t pins[PAGES_MAX];
    uint64_t stored;
    size_t pinned;    /* pins there are now */
    uint64_t gets;    /* how often a record was pinned, all in all */
    uint64_t gone_at; /* the get of that number finds nothing, once; 0: all find theirs */
};

void pages_open(struct pages *pages);
void pages_close(struct pages *pages); /* fails the test when a record is pinned */
void pages_store(struct pages *pages, const struct hf_record *record);
/* The first `count` records as a base "history". */
struct hf_base pages_base(struct pages *pages, uint64_t count);

#endif
