/* Plans without a device that are loaded ahead and wait, so that the loss of a device is a switch and no start. */
#ifndef MOIRAI_CLI_SERVE_SERVE_STANDBY_H
#define MOIRAI_CLI_SERVE_SERVE_STANDBY_H

#include "cli/serve/serve_fallback.h"

/* The group of one plan without a device, while it does not serve. */
typedef struct serve_waiting {
    int state;
    int fd, n_ranks; /* of a group that is loaded */
    double retry_s, pause_s;
} serve_waiting;

typedef struct serve_standby {
    serve_fallback *fallback;
    int most;             /* groups that may wait; -1: as many as there is memory for */
    int n_plans;          /* that share the memory */
    bool said_full;       /* that there is no room for more */
    serve_waiting *group; /* [rank of the plan] */
} serve_standby;

typedef enum { SERVE_NOT_THERE, SERVE_COMES_UP, SERVE_IS_LOADED } serve_standing;

/* `n_plans`: that are served at the same time, each with groups of its own. */
int serve_standby_open(serve_standby *s, serve_fallback *fallback, int n_plans);
/* What has to be done now. Groups come up one at a time, and only while `now` serves and nothing else comes up (`next`): what serves goes first. */
void serve_standby_tick(serve_standby *s, serve_model *m, const serve_group *now, const serve_group *next);
/* The group serves from now on: where it is loaded, by *fd; where it comes up, the caller looks after that. */
serve_standing serve_standby_take(serve_standby *s, const serve_group *g, int *fd, int *n_ranks);
/* Whether it is loaded. */
bool serve_standby_has(const serve_standby *s, const serve_group *g);
/* Ends the groups that wait. */
void serve_standby_end(serve_standby *s);
void serve_standby_free(serve_standby *s);

#endif
