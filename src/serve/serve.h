/* The server of `moirai serve`: HTTP with the Open Inference Protocol in front, a queue, and links to groups of ranks, which
 * the command starts and ends. Part of the command, not of the library. */
#ifndef MOIRAI_SERVE_SERVE_H
#define MOIRAI_SERVE_SERVE_H

#include <stdbool.h>

#include "serve/serve_model.h"

typedef struct serve_options {
    const char *address; /* "127.0.0.1" */
    int port;            /* 0: one that is free */
    int64_t most_waiting;
    double timeout_s; /* the longest that a request may take, from its arrival */
    double idle_s;    /* the longest that a client may take to send one, or between two */
    int most_connections;
} serve_options;

typedef struct serve serve;
typedef struct serve_link serve_link;

/* A server that does not listen yet. Takes the model in every case. */
int serve_open(serve **out, serve_model *model, const serve_options *options);
/* Servers of the same model for other shapes, all[0] .. all[n - 1], listen together as one: requests go to the one whose
 * shapes are theirs. MOIRAI_EINPUT where two have the same shapes, or their tensors differ by more than these. all[0] is asked
 * for the port, and must be closed first. */
int serve_listen(serve *const *all, int n);
int serve_port(const serve *s);
/* From now on nothing is accepted, and /v2/health/ready says so. */
void serve_close_door(serve *s);
/* How many requests were accepted so far, and how many of them were sent to devices again. */
void serve_counts(serve *s, int64_t *n_accepted, int64_t *n_repeated);
/* Is everything that was accepted answered? */
bool serve_is_idle(serve *s);
/* Waits for answers that are on their way to clients, then ends all connections. NULL is fine. */
void serve_close(serve *s);

/* ---- groups ---- */
/* What a group says first, into the model's outputs (a model whose outputs are set already must have the same). Waits at
 * most `limit_s`. */
int serve_hello_read(serve_model *m, int fd, int *n_ranks, double limit_s);
const serve_model *serve_model_of(const serve *s);
/* Requests go to the group behind `fd`, at most `most` at a time, from now on; `device` [n_ranks], copied, has names for
 * the metrics. Takes fd. */
int serve_attach(serve_link **out, serve *s, int fd, int n_ranks, const char *const *device, int64_t most);
/* What the plan has each rank compute for a request, by copies: [copy * n_ranks + rank], copied. From now on serve_link_ratio
 * can be asked. */
int serve_link_expect(serve_link *l, const int64_t *planned_ns, int n_copies);
/* How many times as long as planned each rank has computed in the last requests, into ratio[n_ranks]; 0 where nothing was
 * planned. Returns how many requests were answered since serve_link_expect. */
int64_t serve_link_ratio(serve_link *l, double *ratio);
/* For the metrics: how slow a device is, by what it was expected to be; and one more plan that was made for that. */
void serve_tell_slowness(serve *s, const char *device, double slowness);
void serve_tell_replanned(serve *s);
/* Has the group gone? */
bool serve_link_is_dead(serve_link *l);
/* A device that hangs. */
typedef struct serve_hang {
    int rank; /* -1: which one can't be told */
    char text[1100];
} serve_hang;
/* Does one? The group says so, or has said nothing at all for `stall_s` though it has requests, 0: never; ask again and again. */
bool serve_link_hangs(serve_link *l, double stall_s, serve_hang *hang);
/* Ends a link when what it has sent is answered, or the group is dead, or after `limit_s`; what is not answered goes back
 * to the queue. Returns how many requests that were. */
int64_t serve_detach(serve_link *l, double limit_s);

#endif
