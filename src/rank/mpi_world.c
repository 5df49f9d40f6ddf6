/* MPI without spinning and without the 2 GiB limit. MPI's own waits poll at full speed, which is right where every rank
 * has a core of its own and ruinous where ranks share them; here a wait yields at first and then sleeps 20 us at a
 * time. */
#include "rank/mpi_world.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <moirai/error.h>
#include "util/util.h"

enum { YIELDS = 20, SLEEP_NS = 20000, LATE_NS = 2000000, AT_ONCE = 16 };
#define CHUNK_BYTES ((size_t)1 << 30)

/* Open MPI between processes of one machine; what the user has set stays. Ranks that are all on it have no use for
 * networks, so what drives them is not loaded. */
static void prepare_open_mpi(void)
{
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), *all = getenv("OMPI_COMM_WORLD_SIZE");
    /* Tensors up to this size go without asking the receiver first. */
    setenv("OMPI_MCA_btl_vader_eager_limit", "32768", 0);
    setenv("OMPI_MCA_btl_sm_eager_limit", "32768", 0); /* its name from version 5 on */
    if (here && all && !strcmp(here, all)) {
        setenv("OMPI_MCA_pml", "ob1", 0);
        setenv("OMPI_MCA_btl", "^ofi,openib,tcp,uct,usnic", 0);
    }
}

int rank_world_open(rank_world *w, int *argc, char ***argv)
{
    int provided;
    char line[64];
    prepare_open_mpi();
    if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
        return moirai_error(MOIRAI_EFAIL, "MPI can't start");
    w->comm = MPI_COMM_WORLD;
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    prctl(PR_SET_TIMERSLACK, 1000ul);                 /* or every short sleep lasts 50 us longer */
    const char *chunk = getenv("MOIRAI_CHUNK_BYTES"); /* for tests: messages of many chunks without gigabytes */
    long long bytes = chunk ? atoll(chunk) : 0;
    w->chunk_bytes = bytes > 0 && (size_t)bytes < CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES;
    int n = snprintf(line, sizeof line, "moirai-rank: start %d %ld\n", w->rank, (long)getpid());
    if (getenv("MOIRAI_SUPERVISED") && write(STDERR_FILENO, line, (size_t)n) < 0)
        return moirai_error(MOIRAI_EFAIL, "can't write to stderr");
    if (provided < MPI_THREAD_SERIALIZED)
        return moirai_error(MOIRAI_EFAIL, "this MPI allows calls from one thread only");
    return 0;
}

void rank_world_close(void)
{
    MPI_Finalize();
}

void rank_world_part(rank_world *out, const rank_world *w, int part)
{
    *out = *w;
    MPI_Comm_split(w->comm, part, w->rank, &out->comm);
    MPI_Comm_rank(out->comm, &out->rank);
    MPI_Comm_size(out->comm, &out->size);
}

void rank_world_part_close(rank_world *part)
{
    MPI_Comm_free(&part->comm);
}

void rank_world_say_error(const rank_world *w, int rc)
{
    char line[1200];
    int n = snprintf(line, sizeof line, "moirai-rank: error %d %d %s\n", -rc, w->rank, moirai_error_message());
    n = UTIL_MIN(n, (int)sizeof line - 1);
    line[n - 1] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(-rc);
}

void rank_world_abort(const rank_world *w, int rc)
{
    rank_world_say_error(w, rc);
    MPI_Abort(MPI_COMM_WORLD, -rc);
    _exit(-rc);
}

int rank_world_agree(const rank_world *w, int rc)
{
    struct {
        int code;
        char text[1020];
    } news = {-rc, ""};
    int mine = rc ? w->rank : INT_MAX, first = INT_MAX;
    MPI_Request request;
    MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, w->comm, &request);
    rank_world_wait(&request, 1);
    if (first == INT_MAX)
        return 0;
    snprintf(news.text, sizeof news.text, "%s", moirai_error_message());
    rank_world_bcast(w, &news, sizeof news, first);
    moirai_error(-news.code, "%s", news.text);
    if (w->rank == 0)
        rank_world_say_error(w, -news.code);
    return -news.code;
}

bool rank_world_all_fine(const rank_world *w, int rc)
{
    return rank_world_agree(w, rc) == 0;
}

void rank_world_meet(const rank_world *w, long sleep_ns)
{
    MPI_Request request;
    MPI_Status status;
    int done = 0;
    MPI_Ibarrier(w->comm, &request);
    for (MPI_Test(&request, &done, &status); !done; MPI_Test(&request, &done, &status))
        nanosleep(&(struct timespec){0, sleep_ns}, NULL);
}

void rank_world_pause(int *round)
{
    if (++*round < YIELDS) {
        sched_yield();
        return;
    }
    struct timespec t = {0, SLEEP_NS};
    nanosleep(&t, NULL);
}

void rank_world_wait(MPI_Request *request, size_t n)
{
    int round = 0;
    MPI_Status status[AT_ONCE]; /* MPICH's MPI_STATUSES_IGNORE makes gcc warn of a pointer to nowhere */
    for (size_t first = 0; first < n; first += AT_ONCE)
        for (int done = 0; !done;) {
            MPI_Testall((int)UTIL_MIN(n - first, (size_t)AT_ONCE), request + first, &done, status);
            if (!done)
                rank_world_pause(&round);
        }
}

void rank_world_barrier(const rank_world *w)
{
    MPI_Request request;
    MPI_Ibarrier(w->comm, &request);
    rank_world_wait(&request, 1);
}

void rank_world_bcast(const rank_world *w, void *data, size_t bytes, int root)
{
    for (size_t at = 0; at < bytes; at += w->chunk_bytes) {
        MPI_Request request;
        MPI_Ibcast((char *)data + at, (int)UTIL_MIN(bytes - at, w->chunk_bytes), MPI_BYTE, root, w->comm, &request);
        rank_world_wait(&request, 1);
    }
}

bool rank_world_own_core(const rank_world *w)
{
    MPI_Comm here;
    int n_here = 1, sharing = 0;
    cpu_set_t mine, both, *all = NULL;
    CPU_ZERO(&mine);
    int known = !sched_getaffinity(0, sizeof mine, &mine);
    MPI_Comm_split_type(w->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &n_here);
    all = util_alloc((size_t)n_here, sizeof *all);
    known &= all != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &known, 1, MPI_INT, MPI_MIN, here);
    if (known)
        MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, here);
    for (int i = 0; i < n_here && known; i++) {
        CPU_AND(&both, &mine, &all[i]);
        sharing += CPU_COUNT(&both) > 0;
    }
    MPI_Comm_free(&here);
    free(all);
    return known && sharing <= CPU_COUNT(&mine);
}

/* ---- large messages ---- an empty one is still a message: its arrival says that the tensor is there. */

size_t rank_world_chunks(const rank_world *w, size_t bytes)
{
    return bytes ? (bytes - 1) / w->chunk_bytes + 1 : 1;
}

/* An empty message may have no address, to which nothing is added. */
void rank_world_isend(const rank_world *w, const void *data, size_t bytes, int to, int tag, MPI_Request *request)
{
    for (size_t i = 0; i < rank_world_chunks(w, bytes); i++) {
        size_t at = i * w->chunk_bytes;
        MPI_Isend(at ? (const char *)data + at : data, (int)UTIL_MIN(bytes - at, w->chunk_bytes), MPI_BYTE, to, tag,
                  w->comm, &request[i]);
    }
}

void rank_world_irecv(const rank_world *w, void *data, size_t bytes, int from, int tag, MPI_Request *request)
{
    for (size_t i = 0; i < rank_world_chunks(w, bytes); i++) {
        size_t at = i * w->chunk_bytes;
        MPI_Irecv(at ? (char *)data + at : data, (int)UTIL_MIN(bytes - at, w->chunk_bytes), MPI_BYTE, from, tag,
                  w->comm, &request[i]);
    }
}

void rank_world_send(const rank_world *w, const void *data, size_t bytes, int to, int tag)
{
    size_t at = 0;
    do {
        MPI_Request request;
        MPI_Isend(at ? (const char *)data + at : data, (int)UTIL_MIN(bytes - at, w->chunk_bytes), MPI_BYTE, to, tag,
                  w->comm, &request);
        rank_world_wait(&request, 1);
        at += w->chunk_bytes;
    } while (at < bytes);
}

void rank_world_recv(const rank_world *w, void *data, size_t bytes, int from, int tag)
{
    size_t at = 0;
    do {
        MPI_Request request;
        MPI_Irecv(at ? (char *)data + at : data, (int)UTIL_MIN(bytes - at, w->chunk_bytes), MPI_BYTE, from, tag,
                  w->comm, &request);
        rank_world_wait(&request, 1);
        at += w->chunk_bytes;
    } while (at < bytes);
}

void rank_world_recv_late(const rank_world *w, int from, int tag)
{
    MPI_Request request;
    MPI_Status status;
    struct timespec t = {0, LATE_NS};
    char nothing;
    int done = 0;
    MPI_Irecv(&nothing, 0, MPI_BYTE, from, tag, w->comm, &request);
    for (;;) {
        MPI_Test(&request, &done, &status);
        if (done)
            return;
        nanosleep(&t, NULL);
    }
}
