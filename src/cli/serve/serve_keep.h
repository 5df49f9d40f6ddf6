/* Keeping a server at work: which group serves, which one comes up, what to do when one is lost. */
#ifndef MOIRAI_CLI_SERVE_SERVE_KEEP_H
#define MOIRAI_CLI_SERVE_SERVE_KEEP_H

#include "cli/serve/serve_fallback.h"
#include "cli/serve/serve_slow.h"
#include "cli/serve/serve_standby.h"

typedef struct serve_keep {
    cli_context *cli;
    serve *server;
    int64_t in_flight;
    serve_group first; /* of the plan that was asked for */
    serve_fallback fallback;
    serve_standby standby;
    serve_slow slow;
    serve_group *now, *next; /* at work; coming up. Or NULL */
    double lost_s;           /* since when nobody is at work */
    double retry_s, retake_s, pause_s;
    int64_t n_lost, n_accepted, n_repeated; /* groups; requests, counted at the end */
    double longest_s;                       /* that nobody was at work */
} serve_keep;

/* Starts the first group and waits until it is loaded. The server does not listen yet. `n_plans`: that are served together. */
int serve_keep_open(serve_keep *k, cli_context *cli, int n_plans);
/* What has to be done now; call it again and again. */
void serve_keep_tick(serve_keep *k);
/* Ends the groups, when everything is answered. */
void serve_keep_end(serve_keep *k);
/* Ends the server, after that. */
void serve_keep_close(serve_keep *k);

#endif
