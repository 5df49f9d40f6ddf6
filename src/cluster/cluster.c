/* The cluster as an object: devices, links, and who owns them. */
#include "cluster/cluster_build.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int cluster_new(moirai_cluster **out, const char *name)
{
    moirai_cluster *c = util_alloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return MOIRAI_EFAIL;
    c->name = util_strdup(name);
    c->device = util_alloc(MOIRAI_MAX_DEVICES, sizeof *c->device);
    c->linked = util_alloc(MOIRAI_MAX_DEVICES * MOIRAI_MAX_DEVICES / 64, sizeof *c->linked);
    if (!c->name || !c->device || !c->linked) {
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
    free(c->linked);
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

bool moirai_device_is_processor(const moirai_device *d)
{
    /* `moirai probe` writes a processor's model as its type. */
    static const char *const providers[] = {"cpu", "dnnl", "xnnpack"};
    bool found = d->figures.processor || !strncasecmp(d->type, "cpu", 3) || (!*d->type && !d->ep);
    if (moirai_ep_gpu(d->ep) >= 0)
        return false;
    for (size_t i = 0; i < sizeof providers / sizeof *providers && d->ep; i++)
        found |= !strcasecmp(d->ep, providers[i]);
    return found;
}

/* ---- processors by their threads ---- */

#define CORE_GB_S 25.6 /* what one core can draw: a channel of DDR4-3200, of which 18 to 22 were measured */

/* As many as `moirai run` gives it; 0: nobody said that it is run, so that it is all of its type. */
static int threads_of(const moirai_device *d)
{
    return d->threads > 0 ? d->threads : d->ep ? 1 : 0;
}

/* "cpu" is as many cores as one likes: the generic one has four, behind one channel of memory; more cores have more
 * channels, fewer have all of this one. Of a product no more than it has are taken. */
static void take_threads(moirai_device_type *f, int n, bool generic)
{
    if (n <= 0 || f->sm <= 0 || !f->processor)
        return;
    n = generic || n < f->sm ? n : f->sm;
    double part = (double)n / f->sm;
    f->gflops_fp32 *= part;
    f->gflops_tf32 *= part;
    f->gflops_fp16 *= part;
    f->l2_mb *= part;
    if (generic)
        f->bandwidth_gb_s *= UTIL_MAX(part, 1);
    else
        f->bandwidth_gb_s = UTIL_MIN(f->bandwidth_gb_s, n * CORE_GB_S);
    f->sm = n;
}

void cluster_usual_figures(moirai_device_type *out, const moirai_device *d)
{
    const moirai_device_type *cpu = moirai_device_type_find("cpu"),
                             *known = d->generic ? cpu : moirai_device_type_find(d->type);
    *out = known ? *known : (moirai_device_type){0};
    out->name = d->type;
    if (moirai_device_is_processor(d))
        take_threads(out, threads_of(d), known == cpu);
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

int cluster_add_note(moirai_cluster *c, const char *text)
{
    size_t had = c->notes ? strlen(c->notes) : 0;
    char *more = realloc(c->notes, had + strlen(text) + 2);
    if (!more)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    sprintf(more + had, "%s%s", had ? "\n" : "", text);
    c->notes = more;
    return 0;
}

static int take_variant(moirai_device *d, const moirai_device_type *variant)
{
    char *type = util_strdup(variant->name);
    if (!type)
        return MOIRAI_EFAIL;
    free(d->type);
    d->type = type;
    d->figures = *variant;
    d->figures.name = d->type;
    return 0;
}

int cluster_state_memory(moirai_cluster *c, moirai_device *d, int64_t memory_bytes, const char *label)
{
    const moirai_device_type *known = moirai_device_type_find(d->type);
    const moirai_device_type *variant = cluster_variant_of(known, memory_bytes);
    bool more = known && !known->processor && (double)memory_bytes > 1.15 * (double)known->memory_bytes;
    char text[400];
    int rc = 0;
    if (variant || more) {
        int used =
            snprintf(text, sizeof text, "%.100s%sdevice '%.100s': ", label ? label : "", label ? ": " : "", d->name);
        snprintf(text + used, sizeof text - (size_t)used, "%.1f GB of memory, and type %s has %.0f: %s%s",
                 (double)memory_bytes / 1e9, known->name, (double)known->memory_bytes / 1e9,
                 variant ? "taken for " : "its speed is taken for that type's", variant ? variant->name : "");
        rc = cluster_add_note(c, text);
    }
    if (!rc && variant)
        rc = take_variant(d, variant);
    d->memory_bytes = d->figures.memory_bytes = memory_bytes;
    return rc;
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
    int32_t pair = from * MOIRAI_MAX_DEVICES + to;
    uint64_t bit = UINT64_C(1) << pair % 64;
    if (c->linked[pair / 64] & bit)
        return moirai_error(MOIRAI_EINPUT, "link '%.200s' -> '%.200s' is there twice", a, b);
    if (util_grow(&c->link, &c->link_capacity, (size_t)c->n_links + 1, sizeof *c->link))
        return MOIRAI_EFAIL;
    c->linked[pair / 64] |= bit;
    c->link[c->n_links++] = (moirai_link){from, to, bytes_per_second, latency_ns};
    return 0;
}
