/* A group of ranks that serves a plan: prepared, started, watched over, ended. It has processes, a folder and a socket of
 * its own, so that one can come up while another one works. */
#ifndef MOIRAI_CLI_SERVE_SERVE_GROUP_H
#define MOIRAI_CLI_SERVE_SERVE_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/run/run_steps.h"
#include "serve/serve.h"

typedef struct serve_group {
    cli_context sub; /* of `moirai run`, whose options and steps a group has */
    bool has_sub;
    char plan[4200], in_flight[24]; /* words of it */
    cli_run run;
    char link_path[4200];
    int listens; /* -1: not started */
    pthread_t thread;
    bool has_thread;
    atomic_bool ended;
    moirai_interrupt stop;
    int rc, dead_rank;
    char message[1100];
    serve_link *link; /* while it serves */
} serve_group;

/* Splits the plan. `name`: of its folder in --work. Free with serve_group_free in every case. */
int serve_group_prepare(serve_group *g, const cli_context *cli, const char *plan, const char *name, int64_t in_flight);
void serve_group_free(serve_group *g);
/* The model of the group: all but the shapes of the outputs, which ranks tell. */
int serve_group_model(serve_model **out, const serve_group *g, const char *name);

/* Starts the ranks; serve_group_poll says when they are there. */
int serve_group_start(serve_group *g);
/* 0: not yet. 1: *fd is the socket of a group that is loaded. -1: it has ended, moirai_error_message says why. */
int serve_group_poll(serve_group *g, int *fd);
/* Ends what runs and waits for it; politely: it has some seconds to end by itself, as it was told. g->message and g->dead_rank say what happened to a
 * group that ended by itself. */
void serve_group_end(serve_group *g, bool politely);

#endif
