/* `table`: the times that the graph brings along, for the device by name, else for its type. */
#include "cost/cost.h"

static int64_t table_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    const int64_t *row = x->g->time_ns + (int64_t)op * x->g->n_time_keys;
    if (x->name_key[device] != MOIRAI_NONE && row[x->name_key[device]] >= 0)
        return row[x->name_key[device]];
    if (x->type_key[device] != MOIRAI_NONE && row[x->type_key[device]] >= 0)
        return row[x->type_key[device]];
    return MOIRAI_UNKNOWN;
}

const moirai_cost_model cost_table = {"table", "times measured on this device or device type", table_ns};
