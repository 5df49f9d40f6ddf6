/* Clusters into moirai-cluster files, with units, as a person would write them; every value reads back exactly. */
#include "cluster/cluster_build.h"

#include "util/json.h"
#include "util/util.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void pair_scaled(util_writer *w, const char *key, int64_t value, const int64_t *scale, const char *const *unit)
{
    char text[40];
    while (*scale > 1 && (value == 0 || value % *scale)) {
        scale++;
        unit++;
    }
    snprintf(text, sizeof text, "%" PRId64 "%s", value / *scale, *unit);
    util_writer_pair_string(w, key, text);
}

static void pair_bytes(util_writer *w, const char *key, int64_t bytes)
{
    static const int64_t scale[] = {1000000000, (int64_t)1 << 30, 1000000, (int64_t)1 << 20, 1};
    static const char *const unit[] = {"GB", "GiB", "MB", "MiB", "B"};
    pair_scaled(w, key, bytes, scale, unit);
}

static void pair_duration(util_writer *w, const char *key, int64_t ns)
{
    static const int64_t scale[] = {1000000, 1000, 1};
    static const char *const unit[] = {"ms", "us", "ns"};
    pair_scaled(w, key, ns, scale, unit);
}

/* Gbps with as many decimals as it takes: nine always do. */
static void pair_rate(util_writer *w, const char *key, int64_t bytes_per_second)
{
    char text[48];
    int64_t bits;
    if (!util_mul64(&bits, bytes_per_second, 8)) {
        util_writer_pair_int(w, "bytes_per_second", bytes_per_second);
        return;
    }
    int used = snprintf(text, sizeof text, "%" PRId64 ".%09" PRId64, bits / 1000000000, bits % 1000000000);
    while (text[used - 1] == '0')
        used--;
    if (text[used - 1] == '.')
        used--;
    strcpy(text + used, "Gbps");
    util_writer_pair_string(w, key, text);
}

static void pair_figure(util_writer *w, const char *key, double value, double usual)
{
    if (value == usual)
        return;
    util_writer_key(w, key);
    util_writer_real(w, value);
}

static void write_figures(util_writer *w, const moirai_device *d)
{
    const moirai_device_type *f = &d->figures;
    moirai_device_type own;
    const moirai_device_type *usual = &own;
    cluster_usual_figures(&own, d);
    if (f->bandwidth_gb_s != usual->bandwidth_gb_s)
        util_writer_pair_int(w, "memory_bytes_per_second", llround(f->bandwidth_gb_s * 1e9));
    pair_figure(w, "memory_delivered", f->delivered, usual->delivered);
    pair_figure(w, "gflops", f->gflops_fp32, usual->gflops_fp32);
    pair_figure(w, "gflops_tf32", f->gflops_tf32, usual->gflops_tf32);
    pair_figure(w, "gflops_fp16", f->gflops_fp16, usual->gflops_fp16);
    pair_figure(w, "watt", f->watt, usual->watt);
    pair_figure(w, "process_nm", f->process_nm, usual->process_nm);
    pair_figure(w, "clock_mhz", f->clock_mhz, usual->clock_mhz);
    pair_figure(w, "l2_mb", f->l2_mb, usual->l2_mb);
    if (f->sm != usual->sm)
        util_writer_pair_int(w, "sm", f->sm);
    if (f->cores_per_sm != usual->cores_per_sm)
        util_writer_pair_int(w, "cores_per_sm", f->cores_per_sm);
}

static void write_device(util_writer *w, const moirai_device *d)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", d->name);
    if (*d->type)
        util_writer_pair_string(w, "type", d->type);
    pair_bytes(w, "memory", d->memory_bytes);
    write_figures(w, d);
    if (d->ep)
        util_writer_pair_string(w, "ep", d->ep);
    if (d->cores)
        util_writer_pair_string(w, "cores", d->cores);
    if (d->host)
        util_writer_pair_string(w, "host", d->host);
    pair_figure(w, "launch_us", d->launch_us, 0);
    if (d->threads)
        util_writer_pair_int(w, "threads", d->threads);
    if (d->share > 0) {
        util_writer_key(w, "share");
        util_writer_real(w, d->share);
    }
    util_writer_close(w, '}');
}

static void write_link(util_writer *w, const moirai_cluster *c, const moirai_link *l)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "from", c->device[l->from].name);
    util_writer_pair_string(w, "to", c->device[l->to].name);
    pair_rate(w, "bandwidth", l->bytes_per_second);
    if (l->latency_ns)
        pair_duration(w, "latency", l->latency_ns);
    util_writer_close(w, '}');
}

int moirai_cluster_write(const moirai_cluster *c, const char *path)
{
    util_writer w;
    util_writer_begin(&w, "moirai-cluster");
    util_writer_pair_string(&w, "name", c->name);
    if (c->cuts_measured) {
        util_writer_key(&w, "cuts_measured");
        util_writer_bool(&w, true);
    }
    util_writer_break(&w);
    util_writer_pair_open(&w, "devices", '[');
    for (int32_t i = 0; i < c->n_devices; i++)
        write_device(&w, &c->device[i]);
    util_writer_close(&w, ']');
    util_writer_break(&w);
    util_writer_pair_open(&w, "links", '[');
    for (int32_t i = 0; i < c->n_links; i++)
        write_link(&w, c, &c->link[i]);
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}
