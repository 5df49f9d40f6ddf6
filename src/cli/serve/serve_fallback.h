/* Plans without a device, made while the server works: what goes on when that device leaves. */
#ifndef MOIRAI_CLI_SERVE_SERVE_FALLBACK_H
#define MOIRAI_CLI_SERVE_SERVE_FALLBACK_H

#include "cli/serve/serve_group.h"

typedef struct serve_fallback {
    const cli_context *cli;
    const serve_group *first; /* the group of the plan that is served */
    bool for_rate;            /* it was made for many requests, and so are these */
    int n;
    serve_group *group; /* [rank of `first`] without that device */
    atomic_bool *ready; /* [rank] it is prepared */
    pthread_t thread;
    bool has_thread;
} serve_fallback;

/* Begins to make them, in a thread of its own. Nothing is made where no --cluster says what devices there are. */
int serve_fallback_open(serve_fallback *f, const cli_context *cli, const serve_group *first, bool for_rate);
/* The group without the device of that rank, or NULL: there is none, or not yet. */
serve_group *serve_fallback_of(serve_fallback *f, int rank);
void serve_fallback_close(serve_fallback *f);

#endif
