/* moirai-rank probe: every rank says what it is, every ordered pair measures its link, rank 0 writes the cluster.
 *
 * Rank k is device k of the template where one is given: names, types, memory and how to reach a device are the
 * template's, links are measured. Otherwise devices are named after their hosts, their type is the processor's model
 * and their memory an equal share of the host's. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/cluster.h>
#include "cluster/cluster_build.h"
#include "rank/gpu/mps.h"
#include "rank/ort.h"
#include "rank/rank.h"
#include "rank/gpu/place.h"
#include "rank/probe/rank_probe.h"
#include "util/json.h"
#include "util/util.h"

enum { TAG_RANK = 1, TAG_LINK = 2, PROBE_NAME = PROBE_TEXT + 16 };

typedef struct probe {
    rank_world w;
    const char *cluster_path, *report_path, *template_path;
    double seconds;
    int rounds;           /* in which all links are measured, one after the other */
    int64_t *series;      /* on rank 0, bytes per second of each round: [link * rounds + round] */
    moirai_cluster *from; /* the template, or NULL */
    moirai_cluster *made; /* on rank 0 */
    probe_rank *rank;     /* on rank 0, of all ranks; else its own */
    probe_link *link;     /* on rank 0, [from * size + to] */
    rank_cuda *cuda;      /* this rank's GPU, or NULL */
    probe_side side;      /* of this rank */
    rank_place *place;    /* of all ranks */
    rank_shared *host;    /* likewise: memory of processors */
} probe;

static int parse(probe *p, int argc, char **argv)
{
    static const struct option options[] = {{"cluster", 1, NULL, 'c'}, {"output", 1, NULL, 'o'},
                                            {"report", 1, NULL, 'r'},  {"seconds", 1, NULL, 's'},
                                            {"series", 1, NULL, 'n'},  {0}};
    int c;
    p->rounds = 1;
    optind = 0;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'c')
            p->template_path = optarg;
        else if (c == 'o')
            p->cluster_path = optarg;
        else if (c == 'r')
            p->report_path = optarg;
        else if (c == 's')
            p->seconds = strtod(optarg, NULL);
        else if (c == 'n')
            p->rounds = atoi(optarg);
        else
            return moirai_error(MOIRAI_EUSAGE, "probe: options that make no sense");
    }
    if (p->rounds < 1)
        return moirai_error(MOIRAI_EUSAGE, "probe: no rounds to measure in");
    return p->seconds > 0 ? 0 : moirai_error(MOIRAI_EUSAGE, "probe: no time to measure in");
}

static int open_template(probe *p)
{
    if (!p->template_path)
        return 0;
    int rc = moirai_cluster_open(&p->from, p->template_path);
    if (rc)
        return rc;
    if (p->from->n_devices != p->w.size)
        return moirai_error(MOIRAI_EUSAGE, "%s has %d devices, but there are %d ranks", p->template_path,
                            p->from->n_devices, p->w.size);
    const char *cores = p->from->device[p->w.rank].cores;
    return cores ? rank_ort_pin(cores) : 0;
}

/* ---- memory to send from and to receive in ---- */

static int open_gpu(probe *p, const moirai_device *d)
{
    int rc = rank_cuda_open(&p->cuda, moirai_ep_gpu(d->ep));
    p->side.cuda = p->cuda;
    rc = rc ? rc : rank_cuda_alloc(&p->side.memory, p->cuda, PROBE_LARGEST);
    rc = rc ? rc : rank_cuda_host_alloc((void **)&p->side.data, p->cuda, PROBE_LARGEST);
    return rc ? moirai_error_prefix(rc, "device '%.100s'", d->name) : 0;
}

/* Memory that others of this machine can map, where the system has such; a token stands before what is sent. */
static int open_host(probe *p)
{
    rank_shared *own = &p->host[p->w.rank];
    rank_shared_self(own, true);
    p->side.data = own->willing ? rank_shared_new(own, PROBE_LARGEST + RANK_SHARED_LINE) : NULL;
    p->side.shared = p->side.data != NULL;
    own->willing = p->side.shared;
    if (!p->side.shared && !(p->side.data = malloc(PROBE_LARGEST)))
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    return 0;
}

static int open_side(probe *p)
{
    const moirai_device *d = p->from ? &p->from->device[p->w.rank] : NULL;
    p->place = util_alloc((size_t)p->w.size, sizeof *p->place);
    p->host = util_alloc((size_t)p->w.size, sizeof *p->host);
    int rc = p->place && p->host ? 0 : MOIRAI_EFAIL;
    if (!rc && d && moirai_ep_gpu(d->ep) >= 0)
        rc = open_gpu(p, d);
    else if (!rc)
        rc = open_host(p);
    if (!rc) /* pages that were never written are all one page: too fast to be true */
        memset(p->side.data + RANK_SHARED_LINE, 1, PROBE_LARGEST - RANK_SHARED_LINE);
    return rc;
}

/* Where GPUs of one host map each other's memory, every rank gives its own away. Collective. */
static int share_memory(probe *p)
{
    rank_cuda_handle handle = {{0}};
    rank_place_share(p->place, p->w.comm, p->w.rank, p->cuda, NULL);
    const rank_place *own = &p->place[p->w.rank];
    int rc = rank_place_mapped(own, own) ? rank_cuda_export(&handle, p->cuda, p->side.memory) : 0;
    if (!rank_world_all_fine(&p->w, rc))
        return rc ? rc : MOIRAI_EFAIL;
    rank_place_share(p->place, p->w.comm, p->w.rank, p->cuda, &handle);
    rank_shared_tell(p->host, p->w.comm);
    return 0;
}

static void close_side(probe *p)
{
    if (p->cuda) {
        rank_cuda_free(p->cuda, p->side.memory);
        rank_cuda_host_free(p->cuda, p->side.data);
    } else if (p->side.shared) {
        rank_shared_free(p->side.data, PROBE_LARGEST + RANK_SHARED_LINE);
    } else {
        free(p->side.data);
    }
    rank_cuda_close(p->cuda);
    free(p->place);
    free(p->host);
}

static int prepare(probe *p)
{
    size_t n = (size_t)p->w.size;
    if (p->w.size > MOIRAI_MAX_DEVICES)
        return moirai_error(MOIRAI_EUSAGE, "%d ranks: at most %d devices", p->w.size, MOIRAI_MAX_DEVICES);
    int rc = open_template(p);
    const moirai_device *d = rc || !p->from ? NULL : &p->from->device[p->w.rank];
    int joined = rank_mps_join(d && moirai_ep_gpu(d->ep) >= 0, d ? d->share : 0); /* collective */
    rc = rc ? rc : joined;
    rc = rc ? rc : open_side(p);
    if (rc)
        return rc;
    p->rank = util_alloc(n, sizeof *p->rank);
    p->link = util_alloc(n * n, sizeof *p->link);
    return p->rank && p->link ? rank_probe_describe(&p->rank[p->w.rank]) : MOIRAI_EFAIL;
}

static void collect_ranks(probe *p)
{
    if (p->w.rank)
        rank_world_send(&p->w, &p->rank[p->w.rank], sizeof *p->rank, 0, TAG_RANK);
    for (int k = 1; k < p->w.size && !p->w.rank; k++)
        rank_world_recv(&p->w, &p->rank[k], sizeof *p->rank, k, TAG_RANK);
}

/* Processors of one host, if the receiver can map the sender's memory. Called by both. */
static void *map_host(probe *p, int a, int b)
{
    enum { TAG_MAP = 3 };
    int yes = 0;
    void *peer = NULL;
    if (!rank_shared_can(&p->host[a], &p->host[b]))
        return NULL;
    if (p->w.rank == b) {
        peer = rank_shared_map(&p->host[a]);
        yes = peer != NULL;
        rank_world_send(&p->w, &yes, sizeof yes, a, TAG_MAP);
    } else {
        rank_world_recv(&p->w, &yes, sizeof yes, b, TAG_MAP);
    }
    p->side.mapped = yes != 0;
    return peer;
}

/* This rank's part in the link from a to b. */
static void measure_link(probe *p, int a, int b, double seconds)
{
    const rank_place *from = &p->place[a], *to = &p->place[b];
    p->side.mapped = rank_place_mapped(from, to);
    p->side.peer = NULL;
    void *host = p->side.mapped ? NULL : map_host(p, a, b);
    if (host)
        p->side.peer = (char *)host + RANK_SHARED_LINE;
    if (p->w.rank == b && !p->host[b].willing && p->side.mapped && !rank_place_same_gpu(from, to)) {
        int rc = rank_cuda_map(&p->side.peer, p->cuda, &from->memory);
        if (rc)
            rank_world_abort(&p->w, rc);
    }
    rank_probe_pair(&p->link[a * p->w.size + b], &p->w, a, b, &p->side, seconds);
    if (host)
        rank_shared_free(host, p->host[a].bytes);
    else if (p->side.peer)
        rank_cuda_unmap(p->cuda, p->side.peer);
}

/* All links once; rank 0 gets what was found. */
static void measure_round(probe *p, double seconds)
{
    int n = p->w.size, me = p->w.rank;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            probe_link *link = &p->link[a * n + b];
            if (a == b)
                continue;
            rank_world_barrier(&p->w);
            if (me == a || me == b)
                measure_link(p, a, b, seconds);
            if (me == a && a)
                rank_world_send(&p->w, link, sizeof *link, 0, TAG_LINK);
            if (!me && a)
                rank_world_recv(&p->w, link, sizeof *link, a, TAG_LINK);
        }
}

/* A link is what it was in the mean of all rounds, as the paper takes bandwidths over 100 seconds; sizes and errors of
 * messages are those of the last. */
static void take_means(probe *p, const double *latency)
{
    int n = p->w.size;
    for (int l = 0; l < n * n; l++) {
        double rate = 0;
        for (int r = 0; r < p->rounds; r++)
            rate += (double)p->series[l * p->rounds + r] / p->rounds;
        if (l / n != l % n) {
            p->link[l].bytes_per_second = UTIL_MAX((int64_t)rate, 1);
            p->link[l].latency_ns = (int64_t)(latency[l] / p->rounds);
        }
    }
}

static int measure_links(probe *p)
{
    int n = p->w.size;
    double seconds = p->seconds / UTIL_MAX(1, n * (n - 1)) / p->rounds;
    double *latency = util_alloc((size_t)n * (size_t)n, sizeof *latency);
    p->series = util_alloc((size_t)n * (size_t)n * (size_t)p->rounds, sizeof *p->series);
    if (!rank_world_all_fine(&p->w, latency && p->series ? 0 : MOIRAI_EFAIL)) {
        free(latency);
        return MOIRAI_EFAIL;
    }
    bool own_core = rank_world_own_core(&p->w); /* collective */
    /* Beside other work a rank that never sleeps is soon made to wait for its core by the system: for links of CPUs,
     * which are slower anyway, pauses measure better. */
    p->side.own_core = own_core && p->cuda;
    for (int r = 0; r < p->rounds; r++) {
        measure_round(p, seconds);
        for (int l = 0; l < n * n && !p->w.rank; l++) {
            p->series[l * p->rounds + r] = p->link[l].bytes_per_second;
            latency[l] += (double)p->link[l].latency_ns;
        }
    }
    if (!p->w.rank && p->rounds > 1)
        take_means(p, latency);
    free(latency);
    return 0;
}

/* ---- the cluster ---- */

static int ranks_at(const probe *p, const char *host, int before)
{
    int n = 0;
    for (int k = 0; k < before; k++)
        n += !strcmp(p->rank[k].host, host);
    return n;
}

static int set_text(char **field, const char *text)
{
    if (!text || !*text)
        return 0;
    *field = util_strdup(text);
    return *field ? 0 : MOIRAI_EFAIL;
}

static int add_found_device(probe *p, int k)
{
    const probe_rank *r = &p->rank[k];
    char name[PROBE_NAME];
    int here = ranks_at(p, r->host, p->w.size);
    if (here > 1)
        snprintf(name, sizeof name, "%s.%d", r->host, ranks_at(p, r->host, k));
    else
        snprintf(name, sizeof name, "%s", r->host);
    moirai_device *d = cluster_add_device(p->made, name, r->cpu);
    if (!d)
        return MOIRAI_EINPUT;
    d->memory_bytes = d->figures.memory_bytes = UTIL_MAX(r->memory_bytes / here, 1);
    d->threads = *r->cores ? r->n_own : UTIL_MAX(r->n_own / here, 1);
    int rc = set_text(&d->ep, "cpu");
    rc = rc ? rc : set_text(&d->cores, r->cores);
    return rc || here == p->w.size ? rc : set_text(&d->host, r->host);
}

static int add_template_device(probe *p, int k)
{
    const moirai_device *t = &p->from->device[k];
    moirai_device *d = cluster_add_device(p->made, t->name, *t->type ? t->type : p->rank[k].cpu);
    if (!d)
        return MOIRAI_EINPUT;
    const char *type = d->figures.name;
    if (*t->type || t->figures.gflops_fp32 > 0)
        d->figures = t->figures;
    d->figures.name = type;
    d->generic = *t->type && t->generic;
    d->share = t->share;
    d->launch_us = t->launch_us;
    d->memory_bytes = d->figures.memory_bytes = t->memory_bytes;
    d->threads = t->threads;
    int rc = set_text(&d->ep, t->ep);
    rc = rc ? rc : set_text(&d->cores, t->cores);
    return rc ? rc : set_text(&d->host, t->host);
}

static int make_cluster(probe *p)
{
    int n = p->w.size, rc = cluster_new(&p->made, p->from ? p->from->name : "probed");
    for (int k = 0; k < n && !rc; k++)
        rc = p->from ? add_template_device(p, k) : add_found_device(p, k);
    for (int a = 0; a < n && !rc; a++)
        for (int b = 0; b < n && !rc; b++)
            if (a != b)
                rc =
                    cluster_add_link(p->made, a, b, p->link[a * n + b].bytes_per_second, p->link[a * n + b].latency_ns);
    return rc ? rc : cluster_close(p->made);
}

/* ---- the report ---- */

static void write_rank(util_writer *w, const probe_rank *r, const char *name)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "device", name);
    util_writer_pair_string(w, "host", r->host);
    util_writer_pair_string(w, "cpu", r->cpu);
    util_writer_pair_int(w, "cores", r->n_cores);
    util_writer_pair_int(w, "hardware_threads", r->n_threads);
    util_writer_pair_int(w, "own_threads", r->n_own);
    util_writer_pair_int(w, "memory_bytes", r->memory_bytes);
    util_writer_key(w, "load_average");
    util_writer_real(w, r->load);
    util_writer_pair_string(w, "onnxruntime", r->onnxruntime);
    util_writer_pair_string(w, "providers", r->providers);
    util_writer_pair_open(w, "gpus", '[');
    for (int32_t i = 0; i < r->n_gpus; i++) {
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", r->gpu[i].name);
        util_writer_pair_int(w, "memory_bytes", r->gpu[i].memory_bytes);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

static void write_link(util_writer *w, const probe_link *l, const char *from, const char *to, const int64_t *series,
                       int rounds)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "from", from);
    util_writer_pair_string(w, "to", to);
    util_writer_pair_int(w, "bytes_per_second", l->bytes_per_second);
    util_writer_pair_int(w, "latency_ns", l->latency_ns);
    util_writer_key(w, "fit_error");
    util_writer_real(w, l->error);
    util_writer_pair_open(w, "sizes", '[');
    for (int32_t i = 0; i < l->n_sizes; i++) {
        util_writer_open(w, '{');
        util_writer_pair_int(w, "bytes", l->size[i].bytes);
        util_writer_pair_int(w, "quartile_ns", l->size[i].quartile_ns);
        util_writer_pair_int(w, "median_ns", l->size[i].median_ns);
        util_writer_pair_int(w, "mean_ns", l->size[i].mean_ns);
        util_writer_pair_int(w, "messages", l->size[i].n);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    if (rounds > 1) {
        util_writer_pair_open(w, "series", '[');
        for (int r = 0; r < rounds; r++)
            util_writer_int(w, series[r]);
        util_writer_close(w, ']');
    }
    util_writer_close(w, '}');
}

static int write_report(const probe *p)
{
    util_writer w;
    int n = p->w.size;
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_open(&w, "ranks", '[');
    for (int k = 0; k < n; k++)
        write_rank(&w, &p->rank[k], p->made->device[k].name);
    util_writer_close(&w, ']');
    util_writer_pair_open(&w, "links", '[');
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (a != b)
                write_link(&w, &p->link[a * n + b], p->made->device[a].name, p->made->device[b].name,
                           p->series + (a * n + b) * p->rounds, p->rounds);
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    return util_writer_save(&w, p->report_path);
}

static int finish(probe *p)
{
    if (p->w.rank)
        return 0;
    int rc = make_cluster(p);
    rc = rc ? rc : p->cluster_path ? moirai_cluster_write(p->made, p->cluster_path) : 0;
    return rc ? rc : p->report_path ? write_report(p) : 0;
}

int rank_probe(int argc, char **argv)
{
    probe p = {0};
    int rc = rank_world_open(&p.w, &argc, &argv);
    if (rc)
        rank_world_abort(&p.w, rc);
    rc = parse(&p, argc + 1, argv - 1); /* getopt begins after the job's name */
    rc = rc ? rc : prepare(&p);
    if (rank_world_all_fine(&p.w, rc) && !(rc = share_memory(&p))) {
        collect_ranks(&p);
        rc = measure_links(&p);
        rc = rc ? rc : finish(&p);
        rc = rank_world_all_fine(&p.w, rc) ? 0 : rc ? rc : MOIRAI_EFAIL;
    } else if (!rc) {
        rc = MOIRAI_EFAIL;
    }
    rank_world_close();
    close_side(&p);
    moirai_cluster_free(p.made);
    moirai_cluster_free(p.from);
    free(p.rank);
    free(p.link);
    free(p.series);
    return -rc;
}
