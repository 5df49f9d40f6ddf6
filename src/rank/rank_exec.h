/* One device at work: a thread that computes segments, and the main thread, which keeps messages moving meanwhile. Both
 * call MPI, one at a time (MPI_THREAD_SERIALIZED), under the lock. */
#ifndef MOIRAI_RANK_RANK_EXEC_H
#define MOIRAI_RANK_RANK_EXEC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "rank/mpi_clock.h"
#include "rank/ort_cuda.h"
#include "rank/rank_job.h"
#include "rank/rank_transport.h"
#include "util/util.h"

/* What is held up hangs only after --stall and so many times as long as it should take. */
enum { RANK_STALL_TIMES = 10 };

/* A tensor on this device. */
typedef struct exec_slot {
    const char *name;
    OrtValue *value;
    bool lasting;     /* an input of the network or a receive buffer: stays between runs */
    bool kept;        /* sent or handed out: stays until the run ends */
    bool placed;      /* in memory shared with another rank, where every run writes it */
    int last_use;     /* segment */
    bool ready;       /* in this run; under the lock */
    rank_shape shape; /* on a GPU, once the first run has shown it */
    size_t bytes;
} exec_slot;

typedef struct exec_segment {
    OrtSession *session;
    int *in, *out;      /* slots */
    int *wait, n_waits; /* receives */
    const OrtValue **feed;
    OrtValue **fetch;
    rank_bound bound; /* on a GPU */
} exec_segment;

enum { RECV_HEADER, RECV_DATA, RECV_DONE };

typedef struct exec_recv {
    int transfer, slot, from; /* number in the job; from: rank */
    int state;                /* under the lock */
    rank_shape shape;         /* learned in the first run */
    void *data;               /* the tensor's own memory */
    size_t bytes;
    const rank_transport *by;
    void *wire, *peer; /* what MPI fills; the sender's memory, where it is mapped here */
    size_t wire_bytes;
    MPI_Request *request;
    size_t n_requests;
    int64_t finish_ns;
} exec_recv;

typedef struct exec_send {
    int transfer, slot, to;
    rank_shape shape;
    size_t bytes;
    const rank_transport *by;
    void *wire; /* what MPI reads */
    size_t wire_bytes;
    MPI_Request *request;
    size_t n_requests;
    int64_t start_ns, finish_ns;
} exec_send;

typedef struct exec_gpu exec_gpu;
typedef struct exec_host exec_host;

typedef struct rank_exec {
    const rank_world *world;
    const rank_job *job;
    const job_device *device;
    const rank_ort *ort;
    rank_clock clock;
    int n_played;  /* runs so far */
    bool own_core; /* no other rank needs it: a waiting device looks out without sleeping */
    int n_slots;
    exec_slot *slot;
    util_names *names;
    exec_segment *segment;
    exec_gpu *gpu;        /* rank_gpu.c; NULL: the device is a CPU */
    exec_host *host;      /* rank_host.c; NULL: it shares no memory */
    int n_shared;         /* transfers of the whole plan that lie in memory of both ends */
    int n_recvs, n_sends; /* in the plan's order */
    exec_recv *recv;
    exec_send *send;
    int64_t *segment_start_ns, *segment_finish_ns; /* of the current run, own clock */
    /* Between the two threads: */
    pthread_mutex_t lock; /* held by whoever calls MPI, for all of the following */
    pthread_cond_t news;  /* for the computing thread */
    pthread_cond_t poke;  /* for the main thread: all is computed */
    pthread_t thread;
    bool has_thread;
    int go; /* runs that may start */
    bool stop;
    int64_t begin_ns; /* when the current run starts, own clock */
    int run;          /* the current one */
    int first_open;   /* receives before it are done */
    int first_sent;   /* sends from here to next_send are under way */
    int next_send;
    size_t sending_bytes; /* of these */
    int64_t news_ns;      /* when something happened last, own clock */
    atomic_int done;      /* runs whose segments are all computed */
    atomic_bool waiting;  /* for a receive: the computing thread looks after all messages itself */
    atomic_int failed;
    char message[1024];
} rank_exec;

/* Loads the sub-models and makes the network's inputs. */
int rank_exec_open(rank_exec **out, const rank_world *w, const rank_job *job, const job_device *device,
                   const rank_ort *ort);
void rank_exec_close(rank_exec *x);
/* ---- rank_exec.c: the computing thread ---- */
int rank_exec_start(rank_exec *x);
/* ---- rank_comm.c ---- */
/* Under the lock: looks after receives and sends; true if something happened. */
bool rank_comm_progress(rank_exec *x);
/* The computing thread: until these receives (numbers in `recv`) are done. False: the run is given up. */
bool rank_comm_await(rank_exec *x, const int *recv, int n);
/* One run, number `run` (the first one also learns the shapes). Collective. */
void rank_comm_run(rank_exec *x, int run, int64_t *begin_common_ns);
/* ---- rank_gpu.c ---- */
int rank_gpu_open(rank_exec *x);
void rank_gpu_close(rank_exec *x);
/* The computing thread: one segment, to its end. */
int rank_gpu_compute(rank_exec *x, int index);
/* After the first run: tensors get their lasting places, transfers their transports. x: NULL on a rank without a
 * device. Nothing to do where no device of the job is a GPU. Collective. */
int rank_gpu_settle(rank_exec *x, const rank_world *w, const rank_job *job);
/* Lets go of other ranks' memory; before any of them frees it. */
void rank_gpu_let_go(rank_exec *x);
/* A copy in host memory of what lies on the device, to be freed. */
int rank_gpu_fetch(void **out, const rank_exec *x, const void *data, size_t bytes);
/* ---- rank_host.c ---- */
/* After the first run: what goes to a processor of the same host gets a place that both see. x: NULL on a rank without a
 * device. Collective. */
int rank_host_settle(rank_exec *x, const rank_world *w, const rank_job *job);
void rank_host_close(rank_exec *x);
/* ---- rank_result.c ---- */
/* Everything measured to rank 0, which writes outputs and timeline. `time`: see there. Collective. */
int rank_result_collect(const rank_exec *x, int64_t *time, int64_t n_times);

static inline int rank_exec_slot(const rank_exec *x, const char *name)
{
    return util_names_get(x->names, name);
}

#endif
