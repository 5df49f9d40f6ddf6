/* What the models look up for every pair, worked out once: classes of operators, the shapes of their work, and which of
 * the graph's time keys speak of which device.
 *
 * A time key is a device's name or its type. Names win: two cards of one type may well have been measured apart. Types
 * are compared by what they mean ("RTX 2080 Ti" is "rtx2080ti"); types that we know nothing of, by their letters. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "cost/cost.h"

static bool key_is_type(const moirai_cost_context *x, int32_t key, const moirai_device *d,
                        const moirai_device_type *known)
{
    if (!d->type || !*d->type)
        return false;
    return (known && x->key_type[key] == known) || !strcasecmp(x->g->time_key[key], d->type);
}

static void find_keys(moirai_cost_context *x)
{
    for (int32_t k = 0; k < x->g->n_time_keys; k++)
        x->key_type[k] = moirai_device_type_find(x->g->time_key[k]);
    for (int32_t d = 0; d < x->c->n_devices; d++) {
        const moirai_device *device = &x->c->device[d];
        const moirai_device_type *known = device->type ? moirai_device_type_find(device->type) : NULL;
        x->name_key[d] = x->type_key[d] = MOIRAI_NONE;
        for (int32_t k = x->g->n_time_keys - 1; k >= 0; k--) {
            if (!strcmp(x->g->time_key[k], device->name))
                x->name_key[d] = k;
            else if (key_is_type(x, k, device, known))
                x->type_key[d] = k;
        }
    }
    /* A key that is a device's name tells the type as well: wave scaling starts from there. */
    for (int32_t d = 0; d < x->c->n_devices; d++)
        if (x->name_key[d] != MOIRAI_NONE)
            x->key_type[x->name_key[d]] = &x->c->device[d].figures;
}

int cost_context_new(moirai_cost_context **out, const moirai_graph *g, const moirai_cluster *c)
{
    *out = NULL;
    moirai_cost_context *x = util_alloc(1, sizeof *x);
    if (!x)
        return MOIRAI_EFAIL;
    x->g = g;
    x->c = c;
    x->set = &cost_fitted_shipped;
    x->launch_ns = util_alloc((size_t)c->n_devices, sizeof *x->launch_ns);
    x->op_class = util_alloc((size_t)g->n_ops, sizeof *x->op_class);
    x->shape = util_alloc((size_t)g->n_ops, sizeof *x->shape);
    x->name_key = util_alloc((size_t)c->n_devices, sizeof *x->name_key);
    x->type_key = util_alloc((size_t)c->n_devices, sizeof *x->type_key);
    x->key_type = util_alloc((size_t)g->n_time_keys, sizeof *x->key_type);
    if (!x->launch_ns || !x->op_class || !x->shape || !x->name_key || !x->type_key || !x->key_type) {
        cost_context_free(x);
        return MOIRAI_EFAIL;
    }
    for (int32_t i = 0; i < g->n_ops; i++)
        x->op_class[i] = (uint8_t)cost_class_of(g->op_type[i]);
    for (int32_t d = 0; d < c->n_devices; d++)
        x->launch_ns[d] = c->device[d].launch_us * 1e3;
    for (int32_t i = 0; i < g->n_ops; i++)
        cost_shape_of(&x->shape[i], x, i);
    cost_find_dilated(x);
    cost_find_sides(x);
    find_keys(x);
    *out = x;
    return 0;
}

void cost_context_free(moirai_cost_context *x)
{
    if (!x)
        return;
    free(x->launch_ns);
    free(x->op_class);
    free(x->shape);
    free(x->name_key);
    free(x->type_key);
    free(x->key_type);
    free(x);
}

int32_t cost_first_producer(const moirai_graph *g, int32_t op)
{
    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1]; e++)
        if (g->tensor_producer[g->op_in[e]] != MOIRAI_NONE)
            return g->tensor_producer[g->op_in[e]];
    return MOIRAI_NONE;
}
