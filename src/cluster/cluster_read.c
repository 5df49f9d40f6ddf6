/* moirai-cluster files into clusters (docs/formats.md). Written by hand, so every quantity may be a string with a unit
 * ("memory": "11GB") or a whole number under the name that says its unit ("memory_bytes": 11000000000). */
#include "cluster/cluster_build.h"
#include "util/json.h"
#include "util/util.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yyjson.h>

/* One quantity in either form. *out keeps its value where the file gives neither. */
static int read_quantity(int64_t *out, const util_json_at *at, yyjson_val *object, const char *key,
                         const char *number_key, int (*parse)(int64_t *, const char *))
{
    yyjson_val *value = yyjson_obj_get(object, key);
    const char *text = NULL;
    char shown[80];
    if (!value || yyjson_is_null(value))
        return util_json_int64(out, at, object, number_key, false, 0);
    if (yyjson_obj_get(object, number_key))
        return util_json_fail(at, "both %s and %s are given", key, number_key);
    if (!yyjson_is_str(value))
        return util_json_fail(at, "%s is %s, expected a string with a unit (or use %s)", key,
                              util_json_show(shown, value), number_key);
    int rc = util_json_value_string(&text, NULL, at, value, key);
    if (!rc && parse(out, text))
        rc = util_json_fail(at, "%s %s", key, moirai_error_message());
    return rc;
}

static int read_figure(double *out, const util_json_at *at, yyjson_val *object, const char *key)
{
    double value = -1;
    int rc = util_json_real(&value, at, object, key, false);
    if (rc || !yyjson_obj_get(object, key) || yyjson_is_null(yyjson_obj_get(object, key)))
        return rc;
    if (!(value >= 0) || !isfinite(value))
        return util_json_fail(at, "%s is %g, must be at least 0", key, value);
    *out = value;
    return 0;
}

static int read_count(int *out, const util_json_at *at, yyjson_val *object, const char *key)
{
    int64_t value = *out;
    int rc = util_json_int64(&value, at, object, key, false, 0);
    if (!rc && value > INT_MAX)
        return util_json_fail(at, "%s is %lld, must be at most %d", key, (long long)value, INT_MAX);
    *out = (int)value;
    return rc;
}

/* A part of a GPU. */
static int read_share(double *out, const util_json_at *at, yyjson_val *object)
{
    yyjson_val *value = yyjson_obj_get(object, "share");
    if (!value || yyjson_is_null(value))
        return 0;
    int rc = util_json_real(out, at, object, "share", false);
    if (!rc && !(*out > 0 && *out <= 1))
        return util_json_fail(at, "share is %g, must be above 0 and at most 1", *out);
    return rc;
}

static int read_figures(moirai_device_type *f, const util_json_at *at, yyjson_val *object)
{
    int64_t rate = -1;
    int rc = read_quantity(&rate, at, object, "memory_bandwidth", "memory_bytes_per_second", moirai_parse_rate);
    if (rc)
        return rc;
    if (rate >= 0)
        f->bandwidth_gb_s = (double)rate / 1e9;
    if ((rc = read_figure(&f->gflops_fp32, at, object, "gflops")) ||
        (rc = read_figure(&f->gflops_tf32, at, object, "gflops_tf32")) ||
        (rc = read_figure(&f->gflops_fp16, at, object, "gflops_fp16")) ||
        (rc = read_figure(&f->watt, at, object, "watt")) ||
        (rc = read_figure(&f->process_nm, at, object, "process_nm")) ||
        (rc = read_figure(&f->delivered, at, object, "memory_delivered")) ||
        (rc = read_figure(&f->clock_mhz, at, object, "clock_mhz")) ||
        (rc = read_figure(&f->l2_mb, at, object, "l2_mb")) || (rc = read_count(&f->sm, at, object, "sm")))
        return rc;
    if (f->delivered > 1)
        return util_json_fail(at, "memory_delivered is %g, must be at most 1", f->delivered);
    return read_count(&f->cores_per_sm, at, object, "cores_per_sm");
}

static int read_text(char **out, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *text = NULL;
    int rc = util_json_string(&text, NULL, at, object, key, false);
    if (!rc && text && !(*out = util_strdup(text)))
        return MOIRAI_EFAIL;
    return rc;
}

/* ---- keys that nobody reads ---- most likely misspelt, so they are noted, and the file is taken all the same. */

static int check_keys(moirai_cluster *c, const util_json_at *at, yyjson_val *object, const char *const *known)
{
    size_t i, n;
    yyjson_val *key, *value;
    char text[600];
    int rc = 0;
    yyjson_obj_foreach(object, i, n, key, value) {
        const char *name = yyjson_get_str(key);
        size_t k = 0;
        while (known[k] && strcmp(known[k], name))
            k++;
        if (known[k] || rc)
            continue;
        int used = snprintf(text, sizeof text, "%.200s: ", at->label ? at->label : "cluster");
        if (at->kind && at->name)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s '%.100s': ", at->kind, at->name);
        else if (at->kind)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s %zu: ", at->kind, at->index);
        snprintf(text + used, sizeof text - (size_t)used, "key '%.100s' is not known and not read", name);
        rc = cluster_add_note(c, text);
    }
    return rc;
}

static const char *const device_keys[] = {"name",
                                          "type",
                                          "memory",
                                          "memory_bytes",
                                          "memory_bandwidth",
                                          "memory_bytes_per_second",
                                          "memory_delivered",
                                          "gflops",
                                          "gflops_tf32",
                                          "gflops_fp16",
                                          "watt",
                                          "process_nm",
                                          "launch_us",
                                          "clock_mhz",
                                          "l2_mb",
                                          "sm",
                                          "ep",
                                          "cores",
                                          "host",
                                          "threads",
                                          "share",
                                          "cores_per_sm",
                                          NULL};
static const char *const link_keys[] = {"from",    "to",         "bandwidth", "bytes_per_second",
                                        "latency", "latency_ns", "both",      NULL};
static const char *const root_keys[] = {"format", "version", "name", "devices", "links", "cuts_measured", NULL};

/* All but the memory, which may have been stated. */
static void take_usual(moirai_device *d)
{
    int64_t memory_bytes = d->figures.memory_bytes;
    cluster_usual_figures(&d->figures, d);
    d->figures.memory_bytes = memory_bytes;
}

static void take_generic(moirai_device *d)
{
    if (moirai_device_type_find(d->type) || d->figures.bandwidth_gb_s > 0 || d->figures.gflops_fp32 > 0 ||
        !moirai_device_is_processor(d))
        return;
    d->generic = true;
    take_usual(d);
}

/* How it is reached, and with that how much of a processor it is; then what the file says of it beside. */
static int read_reach(moirai_device *d, const util_json_at *at, yyjson_val *object)
{
    int rc;
    if ((rc = read_text(&d->ep, at, object, "ep")) || (rc = read_text(&d->cores, at, object, "cores")) ||
        (rc = read_text(&d->host, at, object, "host")) || (rc = read_figure(&d->launch_us, at, object, "launch_us")) ||
        (rc = read_count(&d->threads, at, object, "threads")) || (rc = read_share(&d->share, at, object)))
        return rc;
    if (d->host && !util_is_host(d->host))
        return util_json_fail(at, "host is \"%.60s\": not the name of a machine", d->host);
    if (moirai_device_type_find(d->type))
        take_usual(d);
    return read_figures(&d->figures, at, object);
}

static int no_memory(const util_json_at *at, const char *type)
{
    const moirai_device_type *closest = *type ? moirai_device_type_closest(type) : NULL;
    if (closest)
        return util_json_fail(at, "memory is missing, and type '%.60s' is not known: did you mean '%s'?", type,
                              closest->name);
    if (*type)
        return util_json_fail(at, "memory is missing, and type '%.60s' is not known", type);
    return util_json_fail(at, "memory is missing");
}

/* A type that nobody knows, without figures of its own, is most likely misspelt. */
static int note_type(moirai_cluster *c, const util_json_at *at, const moirai_device *d)
{
    char text[400];
    const moirai_device_type *closest = moirai_device_type_closest(d->type);
    if (!*d->type || d->generic || moirai_device_type_find(d->type) || d->figures.gflops_fp32 > 0 || !closest)
        return 0;
    snprintf(text, sizeof text, "%.100s: device '%.100s': type '%.60s' is not known: did you mean '%s'?",
             at->label ? at->label : "cluster", d->name, d->type, closest->name);
    return cluster_add_note(c, text);
}

static int read_device(moirai_cluster *c, const char *label, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = label, .kind = "device", .index = index};
    const char *type = "";
    int rc;
    if ((rc = util_json_object(&at, object)) || (rc = util_json_string(&at.name, NULL, &at, object, "name", true)) ||
        (rc = util_json_string(&type, NULL, &at, object, "type", false)))
        return rc;
    moirai_device *d = cluster_add_device(c, at.name, type);
    if (!d)
        return MOIRAI_EINPUT;
    int64_t memory_bytes = -1;
    if ((rc = read_quantity(&memory_bytes, &at, object, "memory", "memory_bytes", moirai_parse_bytes)) ||
        (rc = memory_bytes >= 0 ? cluster_state_memory(c, d, memory_bytes, label) : 0) ||
        (rc = read_reach(d, &at, object)))
        return rc;
    if (memory_bytes < 0 && !d->memory_bytes)
        return no_memory(&at, type);
    take_generic(d);
    d->figures.processor = moirai_device_is_processor(d);
    rc = check_keys(c, &at, object, device_keys);
    return rc ? rc : note_type(c, &at, d);
}

static int read_end(int32_t *out, moirai_cluster *c, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, key, true);
    if (rc)
        return rc;
    *out = moirai_cluster_find(c, name);
    return *out < 0 ? util_json_fail(at, "%s is '%.200s': no such device", key, name) : 0;
}

static int read_link(moirai_cluster *c, const char *label, yyjson_val *object, size_t index)
{
    util_json_at at = {.label = label, .kind = "link", .index = index};
    int32_t from, to;
    int64_t rate = -1, latency = 0;
    bool both = false;
    int rc;
    if ((rc = util_json_object(&at, object)) || (rc = read_end(&from, c, &at, object, "from")) ||
        (rc = read_end(&to, c, &at, object, "to")) ||
        (rc = read_quantity(&rate, &at, object, "bandwidth", "bytes_per_second", moirai_parse_rate)) ||
        (rc = read_quantity(&latency, &at, object, "latency", "latency_ns", moirai_parse_duration)) ||
        (rc = util_json_bool(&both, &at, object, "both", false)))
        return rc;
    if (rate < 0)
        return util_json_fail(&at, "'%.200s' -> '%.200s': bandwidth is missing", c->device[from].name,
                              c->device[to].name);
    if ((rc = check_keys(c, &at, object, link_keys)))
        return rc;
    rc = cluster_add_link(c, from, to, rate, latency);
    return !rc && both ? cluster_add_link(c, to, from, rate, latency) : rc;
}

static int read_document(moirai_cluster *c, yyjson_val *root, const char *label)
{
    util_json_at at = {.label = label};
    yyjson_val *devices = NULL, *links = NULL, *item;
    size_t i, n;
    int rc;
    if ((rc = check_keys(c, &at, root, root_keys)) || (rc = util_json_array(&devices, &at, root, "devices", true)) ||
        (rc = util_json_array(&links, &at, root, "links", false)) ||
        (rc = util_json_bool(&c->cuts_measured, &at, root, "cuts_measured", false)))
        return rc;
    yyjson_arr_foreach(devices, i, n, item) {
        if ((rc = read_device(c, label, item, i)))
            return rc;
    }
    if (links) {
        yyjson_arr_foreach(links, i, n, item) {
            if ((rc = read_link(c, label, item, i)))
                return rc;
        }
    }
    return cluster_close(c);
}

int moirai_cluster_parse(moirai_cluster **out, const char *json, size_t length, const char *label)
{
    yyjson_doc *doc;
    moirai_cluster *c = NULL;
    const char *name = "";
    *out = NULL;
    int rc = util_json_open(&doc, json, length, label, "moirai-cluster");
    if (rc)
        return util_json_label(rc, label);
    yyjson_val *root = yyjson_doc_get_root(doc);
    util_json_at at = {.label = label};
    if (!(rc = util_json_string(&name, NULL, &at, root, "name", false)) && !(rc = cluster_new(&c, name)))
        rc = read_document(c, root, label);
    yyjson_doc_free(doc);
    if (rc) {
        moirai_cluster_free(c);
        return util_json_label(rc, label);
    }
    *out = c;
    return 0;
}
