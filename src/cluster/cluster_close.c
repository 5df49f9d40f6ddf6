/* Links closed into a full mesh (model.md, "Problem"): a pair with a link of its own uses it; any other pair the path
 * with the largest bottleneck bandwidth, among those the fewest hops, among those the least latency.
 *
 * The three criteria can't be settled in one sweep: the best path to a midpoint may be wide and long where a narrow
 * and short one is better for a pair whose bottleneck lies elsewhere. So first the largest bottleneck of every pair
 * (Floyd-Warshall over max-min), then per pair a search by layers over the links that are at least as wide; a node's
 * first layer is its hops, and its latency the least over the layer before. O(K^3 + K^2 * links); the result is
 * unique, so it does not depend on the order of the links. */
#include "cluster/cluster_build.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

static void find_bottlenecks(int64_t *width, const moirai_cluster *c)
{
    int32_t n = c->n_devices;
    for (int32_t e = 0; e < c->n_links; e++)
        width[c->link[e].from * n + c->link[e].to] = c->link[e].bytes_per_second;
    for (int32_t m = 0; m < n; m++)
        for (int32_t a = 0; a < n; a++)
            for (int32_t b = 0; b < n; b++) {
                int64_t via = UTIL_MIN(width[a * n + m], width[m * n + b]);
                width[a * n + b] = UTIL_MAX(width[a * n + b], via);
            }
}

typedef struct reached {
    int hops[MOIRAI_MAX_DEVICES]; /* negative: not yet */
    int64_t latency[MOIRAI_MAX_DEVICES];
} reached;

/* From `a` to all devices: least latency over the paths of fewest hops along links of at least `width`. */
static void shortest_latencies(reached *r, const moirai_cluster *c, int32_t a, int64_t width)
{
    memset(r->hops, 0xff, sizeof r->hops);
    r->hops[a] = 0;
    r->latency[a] = 0;
    bool further = true;
    for (int layer = 0; further; layer++) {
        further = false;
        for (int32_t e = 0; e < c->n_links; e++) {
            const moirai_link *l = &c->link[e];
            if (l->bytes_per_second < width || r->hops[l->from] != layer)
                continue;
            int64_t sum = r->latency[l->from] + l->latency_ns;
            if (r->hops[l->to] < 0 || (r->hops[l->to] == layer + 1 && sum < r->latency[l->to])) {
                r->hops[l->to] = layer + 1;
                r->latency[l->to] = sum;
                further = true;
            }
        }
    }
}

/* The channels from `a`; those of one width are found at once. */
static int close_from(moirai_cluster *c, int32_t a, const bool *direct)
{
    int32_t n = c->n_devices;
    const int64_t *width = c->bytes_per_second + (int64_t)a * n;
    bool done[MOIRAI_MAX_DEVICES] = {false};
    for (int32_t b = 0; b < n; b++) {
        reached r;
        if (a == b || direct[a * n + b] || done[b])
            continue;
        if (width[b] == 0)
            return moirai_error(MOIRAI_EINPUT, "no link between devices: no path from device '%.200s' to '%.200s'",
                                c->device[a].name, c->device[b].name);
        shortest_latencies(&r, c, a, width[b]);
        for (int32_t k = b; k < n; k++)
            if (k != a && !direct[a * n + k] && width[k] == width[b]) {
                c->latency_ns[a * n + k] = r.latency[k];
                done[k] = true;
            }
    }
    return 0;
}

int cluster_close(moirai_cluster *c)
{
    int32_t n = c->n_devices;
    size_t pairs = (size_t)n * (size_t)n;
    if (n == 0)
        return moirai_error(MOIRAI_EINPUT, "the cluster has no devices");
    c->bytes_per_second = util_alloc(pairs, sizeof *c->bytes_per_second);
    c->latency_ns = util_alloc(pairs, sizeof *c->latency_ns);
    bool *direct = util_alloc(pairs, sizeof *direct);
    if (!c->bytes_per_second || !c->latency_ns || !direct) {
        free(direct);
        return MOIRAI_EFAIL;
    }
    find_bottlenecks(c->bytes_per_second, c);
    for (int32_t a = 0; a < n; a++)
        c->bytes_per_second[a * n + a] = 0;
    for (int32_t e = 0; e < c->n_links; e++) {
        int32_t pair = c->link[e].from * n + c->link[e].to;
        direct[pair] = true;
        c->bytes_per_second[pair] = c->link[e].bytes_per_second;
        c->latency_ns[pair] = c->link[e].latency_ns;
    }
    int rc = 0;
    for (int32_t a = 0; a < n && !rc; a++)
        rc = close_from(c, a, direct);
    free(direct);
    return rc;
}
