/* Many requests in flight: one device's part of it.
 *
 * There are N lanes, each with inputs, receive buffers and results of its own; the requests take turns in them. Rank 0
 * is the front: it begins a request when the one before it in its lane has left, by a message to every rank; a rank that
 * has computed, sent and received all of a request posts the receives of its lane again and says so. That answer is the credit of all
 * cuts of the lane at once: whoever hears of a new request knows that every buffer of its lane is free and waited on, so
 * no tensor ever comes unexpected, and nothing has to be asked for.
 *
 * Two threads. One computes: of all requests whose next segment has its inputs, the oldest one's, or, where the plan has a pace, the one's that is due
 * first. A device that has anything to compute computes, and every buffer is there before it is sent to, so nothing
 * deadlocks. The other, the main thread, is the only one that calls MPI here: it receives, sends what was computed, oldest
 * first, and on rank 0 it is the front as well. Computing never waits for sending.
 *
 * A plan may have several copies of the network, each with lanes of its own, on some or all of the ranks. The front gives
 * a request to a copy by the plan's rule; a device takes the oldest request whatever its copy.
 *
 * A request that fails (an index out of its range, a tensor that changes its shape) harms no other: its rank sends zeros
 * in place of what it can't compute, so that all messages keep their order, and the front hears of it in the end. */
#ifndef MOIRAI_RANK_STREAM_STREAM_H
#define MOIRAI_RANK_STREAM_STREAM_H

#include "rank/rank_exec.h"

enum { STREAM_BEGIN_TAG = 1, STREAM_DONE_TAG, STREAM_ASK_TAG, STREAM_SIGN_TAG, STREAM_FIRST_TAG };

/* A tensor of a lane on its way. */
typedef struct stream_message {
    enum { STREAM_IDLE, STREAM_READY, STREAM_MOVING, STREAM_DONE } state;
    int peer, tag, tensor; /* tensor: of rank_exec's slots; -1: the front's own */
    rank_shape shape;
    size_t bytes;
    void *data;
    MPI_Request *request;
    size_t n_requests;
} stream_message;

typedef struct stream_begin {
    int64_t number; /* -1: there will be no more */
    int64_t variant, lane;
} stream_begin;

typedef struct stream_done {
    int64_t number, lane, copy;
    int64_t begin_ns; /* when the front began it; set there */
    int64_t busy_ns;  /* what the device computed for it */
    int64_t failed;   /* a moirai_result */
    char text[232];   /* why */
} stream_done;

/* A copy of the network: one device's part of it. */
typedef struct stream_copy {
    rank_exec *x;
    bool takes_part;         /* this rank; else it has no lanes here */
    int first_lane, n_lanes; /* of stream.lane */
    int n_recvs, n_sends;    /* of a lane */
    int **wait, *n_waits;    /* [segment] receives that it needs */
    void ***alone;           /* [variant][output] what a request alone gave, of outputs made here, where !feeds */
} stream_copy;

typedef struct stream_lane {
    const stream_copy *copy;
    int64_t number; /* of the request in it; -1: free */
    int64_t variant;
    OrtValue **value;            /* [tensor]; those of receives stay */
    stream_message *recv, *send; /* [copy->n_recvs], [copy->n_sends] */
    int next_segment, first_open;
    bool computing; /* a segment of it, at this moment */
    stream_done done;
    MPI_Request done_request; /* of the last `done` */
} stream_lane;

typedef struct stream_front stream_front;
typedef struct stream_watch stream_watch;

typedef struct stream {
    rank_exec *x;     /* the first copy's */
    rank_world world; /* the job's ranks with messages of their own */
    int n_copies, n_lanes;
    stream_copy *copy;
    stream_lane *lane;
    int *order; /* lanes that are not free, oldest request first: first n_active */
    int n_active;
    bool feeds; /* inputs come from the front, and outputs go there */
    int64_t n_variants;
    OrtValue ***variant;   /* [variant][input] where !feeds */
    rank_shape *out_shape; /* [output] */
    size_t *out_bytes;
    void *zeros; /* as long as the longest send */
    size_t sending_bytes;
    stream_begin begin;
    MPI_Request begin_request;
    stream_front *front; /* rank 0 */
    stream_watch *watch;
    int64_t alone_ns; /* what a request alone took, at most; 0: not known */
    bool ended;
    int64_t news_ns;
    /* Between the two threads: */
    pthread_mutex_t lock;      /* for all of the lanes */
    pthread_cond_t work, poke; /* for the computing thread; for the main thread */
    pthread_t thread;
    bool has_thread, stop;
    bool computing;
    int64_t segment_ns; /* since when */
} stream;

/* A request on its way in. */
typedef struct stream_next {
    int64_t number;  /* counts all requests */
    int copy;        /* the front's choice, which may be changed while nothing is in flight: */
    bool forced;     /* it was, and does not count for the shares */
    int64_t variant; /* of the inputs, where the stream does not feed, */
    void **input;    /* else the inputs: [job input], alive until it has finished */
    void *token;     /* handed back with it */
} stream_next;

/* Where requests come from, and where they go; called on rank 0 by the main thread. */
typedef struct stream_source {
    /* 1: the request begins. 0: not now. -1: never more. */
    int (*next)(void *data, stream_next *next);
    /* In the order in which a copy has begun them; copies do not wait for each other. `output` [job output]: where the front
     * collects them, else NULL. `busy_ns` [rank]. */
    void (*finished)(void *data, const stream_done *done, void *const *output, const int64_t *busy_ns, void *token);
    /* What watches over the ranks (stream_watch.c). `text` NULL: the front is there, as it says again and again. Else a device
     * hangs, `rank`, or -1 where that can't be told; once. NULL: nobody watches. */
    void (*sign)(void *data, int rank, const char *text);
    void *data;
} stream_source;

/* ---- stream_open.c ---- */
/* `x`: one for each copy that the first one's job names, each of which has played at least one run, which has shown all
 * sizes. Collective over the job's ranks; nobody else may use them until stream_close. `feeds`: see above; otherwise
 * `n_variants` of the inputs are made. */
int stream_open(stream **out, rank_exec *const *x, bool feeds, int64_t n_variants);
void stream_close(stream *s);
int stream_tag(const stream *s, int index,
               int lane); /* index: transfers, then inputs, then outputs of the copy's job */
/* Does a copy need this rank, and does it hand this input to it? */
bool stream_takes_part(const rank_job *job, int rank);
bool stream_reads(const rank_job *job, int rank, const char *input);
int stream_message_init(stream_message *m, const stream *s, int peer, int tag, int tensor, const rank_shape *shape);
/* ---- stream_compute.c ---- */
int stream_compute_start(stream *s);
void stream_compute_stop(stream *s);
/* Under the lock: the request in this lane is given up here; what it should have sent will be zeros. */
void stream_fail(stream *s, stream_lane *lane, int rc);
/* Under the lock: this tensor exists in the lane; what sends it may start. */
void stream_made(stream_lane *lane, int tensor);
/* ---- stream_comm.c ---- */
/* Every rank, until the front has said that there is no more. `source` only on rank 0. Collective. */
int stream_play(stream *s, const stream_source *source);
bool stream_all_done(MPI_Request *request, size_t n);
void stream_post(const stream *s, stream_message *m);
void stream_cancel(MPI_Request *request, size_t n);
/* ---- stream_check.c ---- */
/* The outputs made here against those of the request alone; of the first request of a variant: these are they. */
int stream_check(stream *s, stream_lane *lane);
/* ---- stream_front.c ---- */
int stream_front_open(stream *s, const stream_source *source);
void stream_front_close(stream *s);
/* True if something happened. */
bool stream_front_progress(stream *s);
/* What a request usually takes; and for how long the copy that has been silent the longest has requests and no news of them. */
int64_t stream_front_usual_ns(const stream *s);
int64_t stream_front_quiet_ns(const stream *s, int64_t now_ns);
/* ---- stream_watch.c ---- */
int stream_watch_open(stream *s, const stream_source *source);
void stream_watch_close(stream *s);
/* Every rank, again and again: answers the front; and in the end. Under the lock. */
void stream_watch_answer(stream *s);
void stream_watch_end(stream *s);
/* The front, again and again; and whether no answer is on its way any more, once it does not look. */
void stream_watch_look(stream *s);
bool stream_watch_is_over(stream *s);
/* ---- stream_rate.c ---- */
/* `moirai run --in-flight`: requests in a closed loop, measured, to x->job->rate. Collective. */
int stream_rate(rank_exec *const *x);

#endif
