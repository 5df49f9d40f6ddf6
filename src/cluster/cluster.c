/* The cluster as an object: devices, links, and who owns them. */
#include "cluster/cluster_build.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int cluster_new(moirai_cluster **out, const char *name)
{
    moirai_cluster *c = util_alloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return MOIRAI_EFAIL;
    c->name = util_strdup(name);
    c->device = util_alloc(MOIRAI_MAX_DEVICES, sizeof *c->device);
    c->link = util_alloc(MOIRAI_MAX_DEVICES * (MOIRAI_MAX_DEVICES - 1), sizeof *c->link);
    if (!c->name || !c->device || !c->link) {
        moirai_cluster_free(c);
        return MOIRAI_EFAIL;
    }
    *out = c;
    return 0;
}

void moirai_cluster_free(moirai_cluster *c)
{
    if (!c)
        return;
    for (int32_t i = 0; i < c->n_devices; i++) {
        moirai_device *d = &c->device[i];
        free(d->name);
        free(d->type);
        free(d->ep);
        free(d->cores);
        free(d->host);
    }
    free(c->name);
    free(c->device);
    free(c->link);
    free(c->bytes_per_second);
    free(c->latency_ns);
    free(c->notes);
    free(c);
}

int32_t moirai_cluster_find(const moirai_cluster *c, const char *device_name)
{
    for (int32_t i = 0; i < c->n_devices; i++)
        if (!strcmp(c->device[i].name, device_name))
            return i;
    return -1;
}

moirai_device *cluster_add_device(moirai_cluster *c, const char *name, const char *type)
{
    if (moirai_cluster_find(c, name) >= 0) {
        moirai_error(MOIRAI_EINPUT, "two devices are named '%.200s'", name);
        return NULL;
    }
    if (c->n_devices == MOIRAI_MAX_DEVICES) {
        moirai_error(MOIRAI_EINPUT, "device '%.200s': more than %d devices", name, MOIRAI_MAX_DEVICES);
        return NULL;
    }
    moirai_device *d = &c->device[c->n_devices];
    d->name = util_strdup(name);
    d->type = util_strdup(type);
    if (!d->name || !d->type) {
        free(d->name);
        free(d->type);
        return NULL;
    }
    const moirai_device_type *known = moirai_device_type_find(type);
    if (known)
        d->figures = *known;
    d->figures.name = d->type;
    d->memory_bytes = d->figures.memory_bytes;
    c->n_devices++;
    return d;
}

int cluster_add_link(moirai_cluster *c, int32_t from, int32_t to, int64_t bytes_per_second, int64_t latency_ns)
{
    const char *a = c->device[from].name, *b = c->device[to].name;
    if (from == to)
        return moirai_error(MOIRAI_EINPUT, "link from '%.200s' to itself", a);
    if (bytes_per_second < 1)
        return moirai_error(MOIRAI_EINPUT,
                            "link '%.200s' -> '%.200s': bandwidth of %" PRId64 " bytes per second, must be at least 1",
                            a, b, bytes_per_second);
    if (latency_ns < 0 || latency_ns > CLUSTER_MAX_LATENCY_NS)
        return moirai_error(MOIRAI_EINPUT,
                            "link '%.200s' -> '%.200s': latency of %" PRId64 " ns, must be 0 to %" PRId64, a, b,
                            latency_ns, CLUSTER_MAX_LATENCY_NS);
    for (int32_t i = 0; i < c->n_links; i++)
        if (c->link[i].from == from && c->link[i].to == to)
            return moirai_error(MOIRAI_EINPUT, "link '%.200s' -> '%.200s' is there twice", a, b);
    c->link[c->n_links++] = (moirai_link){from, to, bytes_per_second, latency_ns};
    return 0;
}
