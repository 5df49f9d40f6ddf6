/* What devices share, and which of them can work at the same time.
 *
 * The model lets every device run one operator at a time and all devices run together. That is not true of two devices
 * of one host that are given the same cores, of two that use its one GPU, or of more threads than the host has cores:
 * beside each other they take the sum of their times, and a plan that overlaps them promises what no run keeps. Who
 * plans for a real run therefore uses only devices that are apart: sets in which no two share anything. There may be
 * several such sets that can't be made larger (cores 0, 1 and 0-1: {first, second} and {third}); each is a problem of
 * its own, without the other devices, whose bounds are as true as ever.
 *
 * Sets are the maximal cliques of the graph "shares nothing with" (Bron and Kerbosch, with a pivot): exponential in
 * the worst case, which takes three devices on each of many pieces; the number of sets is limited. */
#include <moirai/cluster.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/util.h"

#define MOST_CORES 1024
typedef struct cores {
    uint64_t word[MOST_CORES / 64];
} cores;

/* "0-3,6"; false where there are none or the text makes no sense, of which `run` complains. */
static bool read_cores(cores *out, const char *text)
{
    memset(out, 0, sizeof *out);
    for (const char *at = text; at && *at; at++) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            return false;
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
        }
        if (end == at || first < 0 || last < first || last >= MOST_CORES || (*end && *end != ','))
            return false;
        for (long i = first; i <= last; i++)
            out->word[i / 64] |= UINT64_C(1) << (i % 64);
        at = end;
        if (!*at)
            return true;
    }
    return false;
}

int moirai_ep_gpu(const char *ep)
{
    if (!ep || strncasecmp(ep, "cuda", 4))
        return -1;
    if (!ep[4])
        return 0;
    char *end;
    long n = ep[4] == ':' && ep[5] >= '0' && ep[5] <= '9' ? strtol(ep + 5, &end, 10) : -1;
    return n >= 0 && n <= 1023 && !*end ? (int)n : -1;
}

static bool is_gpu(const moirai_device *d)
{
    return moirai_ep_gpu(d->ep) >= 0;
}

static bool on_one_host(const moirai_device *a, const moirai_device *b)
{
    return !strcmp(a->host ? a->host : "", b->host ? b->host : "");
}

/* Threads of all devices that use the CPU of d's host. */
static int threads_beside(const moirai_cluster *c, const moirai_device *d)
{
    int n = 0;
    for (int32_t k = 0; k < c->n_devices; k++)
        if (!is_gpu(&c->device[k]) && on_one_host(&c->device[k], d))
            n += UTIL_MAX(c->device[k].threads, 1);
    return n;
}

moirai_sharing moirai_cluster_sharing(const moirai_cluster *c, int32_t a, int32_t b, int host_cores)
{
    const moirai_device *x = &c->device[a], *y = &c->device[b];
    cores of_x, of_y;
    if (a == b || !on_one_host(x, y) || is_gpu(x) != is_gpu(y))
        return MOIRAI_SHARES_NOTHING;
    if (is_gpu(x) && moirai_ep_gpu(x->ep) != moirai_ep_gpu(y->ep))
        return MOIRAI_SHARES_NOTHING;
    if (is_gpu(x)) /* parts of a GPU are divided already */
        return x->share > 0 && y->share > 0 && x->share + y->share <= 1 ? MOIRAI_SHARES_NOTHING : MOIRAI_SHARES_GPU;
    if (!read_cores(&of_x, x->cores) || !read_cores(&of_y, y->cores))
        return host_cores > 0 && threads_beside(c, x) > host_cores ? MOIRAI_SHARES_CPU : MOIRAI_SHARES_NOTHING;
    for (int i = 0; i < MOST_CORES / 64; i++)
        if (of_x.word[i] & of_y.word[i])
            return MOIRAI_SHARES_CORES;
    return MOIRAI_SHARES_NOTHING;
}

const char *moirai_sharing_name(moirai_sharing s)
{
    static const char *const names[] = {"nothing", "cores", "a GPU", "the CPU of their host"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "unknown";
}

/* ---- sets ---- */

typedef struct search {
    uint64_t apart[MOIRAI_MASK_DEVICES]; /* devices that share nothing with this one */
    uint64_t *set;
    int n, most;
} search;

static int count(uint64_t set)
{
    return __builtin_popcountll(set);
}

static void grow(search *s, uint64_t taken, uint64_t may, uint64_t tried)
{
    if (s->n >= s->most)
        return;
    if (!may && !tried) {
        s->set[s->n++] = taken;
        return;
    }
    uint64_t all = may | tried, best = 0;
    for (uint64_t rest = all; rest; rest &= rest - 1) { /* the pivot that leaves the least to try */
        uint64_t near = may & s->apart[__builtin_ctzll(rest)];
        best = count(near) > count(best) ? near : best;
    }
    for (uint64_t rest = may & ~best; rest; rest &= rest - 1) {
        int d = __builtin_ctzll(rest);
        grow(s, taken | UINT64_C(1) << d, may & s->apart[d], tried & s->apart[d]);
        may &= ~(UINT64_C(1) << d);
        tried |= UINT64_C(1) << d;
    }
}

int moirai_cluster_apart(uint64_t *set, int most, const moirai_cluster *c, int host_cores)
{
    search s = {.set = set, .most = most};
    if (c->n_devices > MOIRAI_MASK_DEVICES)
        return 0;
    uint64_t all = c->n_devices >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << c->n_devices) - 1;
    for (int32_t a = 0; a < c->n_devices; a++)
        for (int32_t b = 0; b < c->n_devices; b++)
            if (a != b && moirai_cluster_sharing(c, a, b, host_cores) == MOIRAI_SHARES_NOTHING)
                s.apart[a] |= UINT64_C(1) << b;
    if (all)
        grow(&s, 0, all, 0);
    return s.n;
}
