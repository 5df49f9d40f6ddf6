/* moirai-rank profile: rank k measures every distinct operator of a network on device k.
 *
 * Rank 0 reads the network, cuts its operators (fused ones as one) into pieces and drops equal ones; only it needs the
 * file. The pieces are small, since weights are made up, and go to all ranks. Ranks of one host take turns: a
 * measurement beside another one is a measurement of both. What a rank measured is on its host's disk before the next
 * one's turn, so that equal devices of one host are measured once. Waiting ranks sleep for milliseconds between looks.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rank/gpu/mps.h"
#include "rank/ort.h"
#include "rank/rank.h"
#include "rank/profile/rank_profile_job.h"
#include "util/util.h"

enum { TAG_HOST = 1, TAG_SUMMARY = 2, TAG_TIME = 3, NAP_NS = 2000000 };

typedef struct arguments {
    const char *rules;
    moirai_onnx_options onnx;
    const char **dims, **shapes; /* room for all */
} arguments;

static int parse_one(profile_job *j, arguments *a, int c)
{
    switch (c) {
    case 'm': j->model_path = optarg; break;
    case 'c': j->cluster_path = optarg; break;
    case 'o': j->output_path = optarg; break;
    case 'r': j->report_path = optarg; break;
    case 'k': j->cache_given = optarg; break;
    case 'u': a->rules = optarg; break;
    case 'd': a->dims[a->onnx.n_dims++] = optarg; break;
    case 's': a->shapes[a->onnx.n_shapes++] = optarg; break;
    case 'w': j->effort.warmup = atoi(optarg); break;
    case 'n': j->effort.runs = atoi(optarg); break;
    case 't': j->effort.seconds = strtod(optarg, NULL); break;
    case 'f': j->fresh = true; break;
    case 'a': j->cache_days = strtod(optarg, NULL); break;
    case 'h': j->cold = !strcmp(optarg, "cold"); break;
    case 'p': j->progress = true; break;
    default: return moirai_error(MOIRAI_EUSAGE, "profile: options that make no sense");
    }
    return 0;
}

static int parse(profile_job *j, arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        {"model", 1, NULL, 'm'},    {"cluster", 1, NULL, 'c'},    {"output", 1, NULL, 'o'},  {"report", 1, NULL, 'r'},
        {"cache", 1, NULL, 'k'},    {"rules", 1, NULL, 'u'},      {"dim", 1, NULL, 'd'},     {"shape", 1, NULL, 's'},
        {"warmup", 1, NULL, 'w'},   {"runs", 1, NULL, 'n'},       {"seconds", 1, NULL, 't'}, {"fresh", 0, NULL, 'f'},
        {"progress", 0, NULL, 'p'}, {"cache-days", 1, NULL, 'a'}, {"times", 1, NULL, 'h'},   {0}};
    int c, rc = 0;
    a->dims = util_alloc((size_t)argc, sizeof *a->dims);
    a->shapes = util_alloc((size_t)argc, sizeof *a->shapes);
    if (!a->dims || !a->shapes)
        return MOIRAI_EFAIL;
    j->effort = (profile_effort){.warmup = 3, .runs = 20, .seconds = 0.25};
    j->cache_days = 30;
    a->rules = "none";
    optind = 0;
    while (!rc && (c = getopt_long(argc, argv, "", options, NULL)) != -1)
        rc = parse_one(j, a, c);
    a->onnx.dims = a->dims;
    a->onnx.shapes = a->shapes;
    if (!rc && (!j->model_path || !j->cluster_path))
        rc = moirai_error(MOIRAI_EUSAGE, "profile: no model or no cluster");
    return rc;
}

static int prepare(profile_job *j, const arguments *a)
{
    int rc = moirai_cluster_open(&j->cluster, j->cluster_path);
    if (!rc && j->cluster->n_devices != j->w.size)
        rc = moirai_error(MOIRAI_EUSAGE, "%s has %d devices, but there are %d ranks", j->cluster_path,
                          j->cluster->n_devices, j->w.size);
    const moirai_device *d = rc ? NULL : &j->cluster->device[j->w.rank];
    int joined = rank_mps_join(d && moirai_ep_gpu(d->ep) >= 0, d ? d->share : 0); /* collective */
    rc = rc ? rc : joined;
    rc = rc ? rc : rank_profile_cache_folder(j->cache, sizeof j->cache, j->cache_given);
    return rc || j->w.rank ? rc : rank_profile_cut(j, &a->onnx, a->rules);
}

/* ---- turns ---- */

static void nap(MPI_Request *request)
{
    for (int done = 0; !done;) {
        MPI_Status status;
        MPI_Test(request, &done, &status);
        if (!done)
            nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
}

/* My place among the ranks of my host, and the most that any host has. */
static int find_turn(const profile_job *j, int *turns)
{
    char host[MOIRAI_MAX_DEVICES][PROBE_TEXT];
    int mine = 0;
    memset(host, 0, sizeof host);
    gethostname(host[j->w.rank], PROBE_TEXT - 1);
    if (j->w.rank)
        rank_world_send(&j->w, host[j->w.rank], PROBE_TEXT, 0, TAG_HOST);
    for (int k = 1; k < j->w.size && !j->w.rank; k++)
        rank_world_recv(&j->w, host[k], PROBE_TEXT, k, TAG_HOST);
    rank_world_bcast(&j->w, host, sizeof host, 0);
    *turns = 0;
    for (int a = 0; a < j->w.size; a++) {
        int before = 0;
        for (int b = 0; b < a; b++)
            before += !strcmp(host[a], host[b]);
        *turns = UTIL_MAX(*turns, before + 1);
        mine = a == j->w.rank ? before : mine;
    }
    return mine;
}

static int measure(profile_job *j)
{
    const moirai_device *d = &j->cluster->device[j->w.rank];
    rank_ort_device device = {.ep = d->ep, .cores = d->cores, .threads = UTIL_MAX(d->threads, 1)}; /* as in run */
    rank_ort *ort;
    int rc = rank_ort_open(&ort, &device);
    if (rc)
        return moirai_error_prefix(rc, "device '%.100s'", d->name);
    rc = rank_profile_measure(j, ort);
    rank_ort_close(ort);
    return rc ? moirai_error_prefix(rc, "device '%.100s'", d->name) : 0;
}

static int take_turns(profile_job *j)
{
    int turns, mine = find_turn(j, &turns), rc = 0;
    for (int t = 0; t < turns; t++) {
        MPI_Request request;
        if (t == mine)
            rc = measure(j);
        if (rc)
            rank_world_abort(&j->w, rc); /* others would measure for nothing */
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        nap(&request);
    }
    return rc;
}

static void collect(profile_job *j)
{
    size_t bytes = (size_t)j->n_pieces * sizeof *j->time;
    int me = j->w.rank;
    if (me) {
        rank_world_send(&j->w, &j->summary[me], sizeof *j->summary, 0, TAG_SUMMARY);
        rank_world_send(&j->w, &j->time[(size_t)me * (size_t)j->n_pieces], bytes, 0, TAG_TIME);
    }
    for (int k = 1; k < j->w.size && !me; k++) {
        rank_world_recv(&j->w, &j->summary[k], sizeof *j->summary, k, TAG_SUMMARY);
        rank_world_recv(&j->w, &j->time[(size_t)k * (size_t)j->n_pieces], bytes, k, TAG_TIME);
    }
}

static int work(profile_job *j)
{
    int rc = rank_profile_share(j);
    j->summary = util_alloc((size_t)j->w.size, sizeof *j->summary);
    j->time = util_alloc((size_t)j->w.size * (size_t)j->n_pieces, sizeof *j->time);
    if (rc || !j->summary || !j->time)
        rank_world_abort(&j->w, MOIRAI_EFAIL);
    rc = take_turns(j);
    collect(j);
    return rc || j->w.rank ? rc : rank_profile_write(j);
}

static void job_free(profile_job *j, arguments *a)
{
    for (int32_t i = 0; i < j->n_pieces && j->piece; i++)
        free(j->piece[i].data);
    free(j->piece);
    free(j->whole.data);
    free(j->piece_of_op);
    free(j->summary);
    free(j->time);
    moirai_graph_free(j->graph);
    moirai_cluster_free(j->cluster);
    free(a->dims);
    free(a->shapes);
}

int rank_profile(int argc, char **argv)
{
    profile_job j = {0};
    arguments a = {0};
    int rc = rank_world_open(&j.w, &argc, &argv);
    if (rc)
        rank_world_abort(&j.w, rc);
    rc = parse(&j, &a, argc + 1, argv - 1); /* getopt begins after the job's name */
    rc = rc ? rc : prepare(&j, &a);
    bool fine = rank_world_all_fine(&j.w, rc);
    if (fine) {
        rc = work(&j);
        fine = rank_world_all_fine(&j.w, rc);
    }
    rank_world_close();
    job_free(&j, &a);
    return fine ? 0 : rc ? -rc : -MOIRAI_EFAIL;
}
