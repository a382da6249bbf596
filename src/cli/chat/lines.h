/* A turn in a pipe: the answer as plain text, or every event as a line of JSON. */
#ifndef HF_CLI_CHAT_LINES_H
#define HF_CLI_CHAT_LINES_H

#include "cli/chat/flow.h"
#include "cli/chat/show.h"
#include "cli/cli.h"

struct lines {
    struct show show;
    struct cli *cli;
    struct flow flow; /* of plain text */
};

/* JSON if --json was given. Plain text goes to standard output and is nothing but the answer;
 * tools and remarks go to standard error, and nowhere with --quiet. */
void lines_init(struct lines *lines, struct cli *cli);
void lines_fini(struct lines *lines);

#endif
