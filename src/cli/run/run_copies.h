/* The copies of a plan for many requests, each carried out as a plan of its own by the same ranks. */
#ifndef MOIRAI_CLI_RUN_RUN_COPIES_H
#define MOIRAI_CLI_RUN_RUN_COPIES_H

#include <moirai/split.h>

#include "cli/framework/cli.h"

enum { CLI_MOST_COPIES = 64 };

/* All but the first, which is the plan itself. */
typedef struct cli_copy {
    char plan[4200], parts[4200], outputs[4200], job[4200], result[4200], verdict[4200];
    yyjson_doc *manifest;
    int64_t slots, share_ppm; /* of requests in flight; slots 0, in all copies: turns by share */
} cli_copy;

typedef struct cli_copies {
    int n; /* with the first, of which slots and share alone are set */
    cli_copy *copy;
} cli_copies;

/* The copies of the plan file, for so many requests in flight, with their plans as files in `folder`, and the pace of these; *out stays NULL where
 * there is one copy, or one request at a time. Free in every case; NULL is fine. */
int cli_copies_open(cli_copies **out, int64_t *pace, const char *plan, const char *folder, int64_t in_flight);
void cli_copies_free(cli_copies *c);
/* Does a device run something in any of them? */
bool cli_copies_use(const cli_copies *c, const char *device);
/* Requests of a plan with slots, shared out anew: one at least to each, else by what the plan had. MOIRAI_EUSAGE where
 * there are fewer than copies. */
int cli_copies_share_out(int64_t *slots, int n, int64_t in_flight);

#endif
