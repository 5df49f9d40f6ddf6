/* Measured times into a finished graph: a column of the table is replaced or added. */
#include "graph/graph_store.h"

#include <moirai/graph.h>
#include <stdlib.h>
#include <string.h>

static int32_t find_key(const moirai_graph *g, const char *device)
{
    for (int32_t k = 0; k < g->n_time_keys; k++)
        if (!strcmp(g->time_key[k], device))
            return k;
    return MOIRAI_NONE;
}

/* A wider table; the graph is untouched if memory runs out. */
static int add_key(moirai_graph *g, const char *device)
{
    graph_store *store = g->store;
    int32_t n = g->n_time_keys;
    if (n == GRAPH_MAX_TIME_KEYS)
        return moirai_error(MOIRAI_EINPUT, "times for more than %d devices", GRAPH_MAX_TIME_KEYS);
    const char *name = util_strings_add(store->strings, device, strlen(device));
    const char **key = util_alloc((size_t)n + 1, sizeof *key);
    int64_t *time_ns = util_alloc((size_t)g->n_ops * ((size_t)n + 1), sizeof *time_ns);
    int64_t *whole_ns = util_alloc((size_t)n + 1, sizeof *whole_ns);
    if (!name || !key || !time_ns || !whole_ns) {
        free(key);
        free(time_ns);
        free(whole_ns);
        return MOIRAI_EFAIL;
    }
    for (int32_t k = 0; k < n; k++) {
        key[k] = g->time_key[k];
        whole_ns[k] = g->time_whole_ns ? g->time_whole_ns[k] : MOIRAI_UNKNOWN;
    }
    key[n] = name;
    whole_ns[n] = MOIRAI_UNKNOWN;
    for (int32_t i = 0; i < g->n_ops; i++) {
        for (int32_t k = 0; k < n; k++)
            time_ns[(size_t)i * ((size_t)n + 1) + (size_t)k] = g->time_ns[(size_t)i * (size_t)n + (size_t)k];
        time_ns[(size_t)i * ((size_t)n + 1) + (size_t)n] = MOIRAI_UNKNOWN;
    }
    free(g->time_key);
    free(g->time_ns);
    free(g->time_whole_ns);
    g->time_key = key;
    g->time_ns = time_ns;
    g->time_whole_ns = whole_ns;
    g->n_time_keys = n + 1;
    return 0;
}

static int need_key(int32_t *out, moirai_graph *g, const char *device)
{
    *out = find_key(g, device);
    int rc = *out == MOIRAI_NONE ? add_key(g, device) : 0;
    if (!rc && *out == MOIRAI_NONE)
        *out = g->n_time_keys - 1;
    return rc;
}

int moirai_graph_times_set(moirai_graph *g, const char *device, const int64_t *time_ns)
{
    if (!*device)
        return moirai_error(MOIRAI_EINPUT, "times for a device without a name");
    for (int32_t i = 0; i < g->n_ops; i++)
        if (time_ns[i] < 0 && time_ns[i] != MOIRAI_UNKNOWN)
            return moirai_error(MOIRAI_EINPUT, "operator '%.200s': time %lld for '%.200s', must be at least 0",
                                g->op_name[i], (long long)time_ns[i], device);
    int32_t key;
    int rc = need_key(&key, g, device);
    for (int32_t i = 0; i < g->n_ops && !rc; i++)
        g->time_ns[(size_t)i * (size_t)g->n_time_keys + (size_t)key] = time_ns[i];
    return rc;
}

int moirai_graph_whole_set(moirai_graph *g, const char *device, int64_t ns)
{
    if (!*device || (ns < 1 && ns != MOIRAI_UNKNOWN))
        return moirai_error(MOIRAI_EINPUT, "whole network: time %lld for '%.200s', must be at least 1", (long long)ns,
                            device);
    int32_t key;
    int rc = need_key(&key, g, device);
    if (!rc && !g->time_whole_ns) {
        g->time_whole_ns = util_alloc((size_t)g->n_time_keys, sizeof *g->time_whole_ns);
        rc = g->time_whole_ns ? 0 : MOIRAI_EFAIL;
        for (int32_t k = 0; k < g->n_time_keys && !rc; k++)
            g->time_whole_ns[k] = MOIRAI_UNKNOWN;
    }
    if (!rc)
        g->time_whole_ns[key] = ns;
    return rc;
}
