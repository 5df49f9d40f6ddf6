/* Plans for several shapes of a model, each with groups of ranks of its own, behind one address. */
#ifndef MOIRAI_CLI_SERVE_SERVE_BUCKETS_H
#define MOIRAI_CLI_SERVE_SERVE_BUCKETS_H

#include "cli/serve/serve_keep.h"

typedef struct serve_bucket serve_bucket;

typedef struct serve_buckets {
    cli_context *cli;
    int n;               /* 1: the plan alone */
    serve_bucket *other; /* [n - 1]: what --bucket has named */
    serve_keep *keep;    /* [n]: the plan, then the others */
} serve_buckets;

/* Starts a group for each and waits until all are loaded; then the server listens. Close it in every case. */
int serve_buckets_open(serve_buckets *b, cli_context *cli, const cli_command *command);
void serve_buckets_tick(serve_buckets *b);
/* Ends all; what was accepted is answered before. The counts of each `keep` can be read until serve_buckets_free. */
void serve_buckets_close(serve_buckets *b);
void serve_buckets_free(serve_buckets *b);

#endif
