/* The problem as an object: who owns what, finding things by name, the names of the modes. */
#include "problem/problem_build.h"
#include "util/text.h"

#include <inttypes.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static void store_free(problem_store *store)
{
    if (!store)
        return;
    util_strings_free(store->strings);
    util_names_free(store->ops);
    util_names_free(store->tensors);
    free(store);
}

void moirai_problem_free(moirai_problem *p)
{
    if (!p)
        return;
    store_free(p->store);
    void *owned[] = {
        p->name,
        p->device_name,
        p->device_memory_bytes,
        p->device_launch_ns,
        p->device_segment_ns,
        p->device_whole_ns,
        p->device_type,
        p->bytes_per_second,
        p->latency_ns,
        p->op_name,
        p->op_type,
        p->op_memory_bytes,
        p->op_time_ns,
        p->op_group,
        p->group_name,
        p->op_devices,
        p->op_in_off,
        p->op_in,
        p->op_out_off,
        p->op_out,
        p->tensor_name,
        p->tensor_bytes,
        p->tensor_producer,
        p->tensor_class,
        p->tensor_has_table,
        p->class_transfer_ns,
        p->edge_tensor,
        p->edge_reader,
        p->tensor_edge_off,
        p->op_in_edge,
        p->topo,
        p->topo_rank,
        p->op_extern_off,
        p->op_extern,
        p->op_member_off,
        p->op_member,
        p->weight_name,
        p->weight_bytes,
        p->weight_reader_off,
        p->weight_reader,
        p->dim,
        p->shape,
        p->assumed,
        p->uncosted,
    };
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    free(p);
}

bool moirai_problem_op_fits(const moirai_problem *p, int32_t op, const char *pattern)
{
    bool fits = !fnmatch(pattern, p->op_name[op], 0);
    for (int32_t e = p->op_member_off[op]; e < p->op_member_off[op + 1] && !fits; e++)
        fits = !fnmatch(pattern, p->op_member[e], 0);
    return fits;
}

int32_t moirai_problem_find_op(const moirai_problem *p, const char *name)
{
    const problem_store *store = p->store;
    return util_names_get(store->ops, name);
}

int32_t moirai_problem_find_tensor(const moirai_problem *p, const char *name)
{
    const problem_store *store = p->store;
    return util_names_get(store->tensors, name);
}

int32_t moirai_problem_find_device(const moirai_problem *p, const char *name)
{
    for (int32_t k = 0; k < p->n_devices; k++)
        if (!strcmp(p->device_name[k], name))
            return k;
    return MOIRAI_NONE;
}

/* ---- modes ---- */

static const char *const flows[] = {"tensor", "edge", NULL};
static const char *const congestions[] = {"port", "channel", "none", "device", NULL};
static const char *const memories[] = {"static", "peak", NULL};

const char *moirai_flow_name(moirai_flow f)
{
    return flows[f];
}

const char *moirai_congestion_name(moirai_congestion c)
{
    return congestions[c];
}

const char *moirai_memory_name(moirai_memory m)
{
    return memories[m];
}

static int choose(int *out, const char *text, const char *const *choices, const char *what, const char *all)
{
    for (int i = 0; choices[i]; i++) {
        if (!strcmp(text, choices[i])) {
            *out = i;
            return 0;
        }
    }
    return moirai_error(MOIRAI_EINPUT, "%s is \"%.60s\", expected %s", what, text, all);
}

int moirai_flow_parse(moirai_flow *out, const char *text)
{
    int i = 0, rc = choose(&i, text, flows, "flow", "\"tensor\" or \"edge\"");
    if (!rc)
        *out = (moirai_flow)i;
    return rc;
}

int moirai_congestion_parse(moirai_congestion *out, const char *text)
{
    int i = 0, rc = choose(&i, text, congestions, "congestion", "\"port\", \"channel\", \"none\" or \"device\"");
    if (!rc)
        *out = (moirai_congestion)i;
    return rc;
}

int moirai_memory_parse(moirai_memory *out, const char *text)
{
    int i = 0, rc = choose(&i, text, memories, "memory", "\"static\" or \"peak\"");
    if (!rc)
        *out = (moirai_memory)i;
    return rc;
}

/* ---- memory that can't fit ---- */

/* The largest memory among the devices that operator `op` may use. */
static int32_t largest_device(const moirai_problem *p, int32_t op)
{
    int32_t best = MOIRAI_NONE;
    for (int32_t k = 0; k < p->n_devices; k++) {
        bool allowed = moirai_op_may(p, op, k);
        if (allowed && (best == MOIRAI_NONE || p->device_memory_bytes[k] > p->device_memory_bytes[best]))
            best = k;
    }
    return best;
}

/* Do the operators that must share a device (`first` and its group) fit the largest that they may use? What fits the smallest of all does. */
static int check_block(const moirai_problem *p, int32_t first, int64_t bytes, int64_t smallest)
{
    if (bytes <= smallest)
        return 0;
    int32_t device = largest_device(p, first), group = p->op_group[first];
    if (bytes <= p->device_memory_bytes[device])
        return 0;
    return moirai_error(
        MOIRAI_EINFEASIBLE, "%s '%.200s' needs %s, the largest device that it may use ('%.200s') has %s: %s short",
        group == MOIRAI_NONE ? "operator" : "group", group == MOIRAI_NONE ? p->op_name[first] : p->group_name[group],
        util_human_bytes(bytes).s, p->device_name[device], util_human_bytes(p->device_memory_bytes[device]).s,
        util_human_bytes(bytes - p->device_memory_bytes[device]).s);
}

int moirai_problem_check_memory(const moirai_problem *p)
{
    int64_t need = 0, have = 0, smallest = INT64_MAX;
    int64_t *group_bytes = util_alloc((size_t)p->n_groups, sizeof *group_bytes);
    int rc = group_bytes ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; !rc && i < p->n_ops; i++) {
        need += p->op_memory_bytes[i];
        if (p->op_group[i] != MOIRAI_NONE)
            group_bytes[p->op_group[i]] += p->op_memory_bytes[i];
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        smallest = UTIL_MIN(smallest, p->device_memory_bytes[k]);
    for (int32_t i = 0; !rc && i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        rc = check_block(p, i, g == MOIRAI_NONE ? p->op_memory_bytes[i] : group_bytes[g], smallest);
    }
    free(group_bytes);
    if (rc)
        return rc;
    for (int32_t w = 0; w < p->n_weights; w++)
        need += p->weight_bytes[w];
    for (int32_t k = 0; k < p->n_devices; k++) /* device memories may be anything: saturate */
        if (!util_add64(&have, have, p->device_memory_bytes[k]))
            have = INT64_MAX;
    if (need > have)
        return moirai_error(MOIRAI_EINFEASIBLE, "the operators need %s, all devices together have %s: %s short",
                            util_human_bytes(need).s, util_human_bytes(have).s, util_human_bytes(need - have).s);
    return 0;
}
