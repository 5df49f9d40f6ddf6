/* Operators of the zoo, added one by one: elements become bytes, traffic is all that is read and written. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/util.h"
#include "zoo/zoo_net.h"

void zoo_name_format(char *out, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(out, size, format, arguments);
    va_end(arguments);
}

int zoo_net_begin(zoo_net *z, const char *name, int element_bytes)
{
    *z = (zoo_net){.element_bytes = element_bytes, .batch = 1, .op = MOIRAI_NONE};
    z->result = moirai_graph_builder_new(&z->builder, name);
    if (!z->result)
        moirai_graph_builder_element_bytes(z->builder, element_bytes);
    return z->result;
}

int zoo_net_finish(moirai_graph **out, zoo_net *z)
{
    if (z->result) {
        moirai_graph_builder_free(z->builder);
        return z->result;
    }
    return moirai_graph_builder_finish(out, z->builder);
}

void zoo_op_begin(zoo_net *z, const char *type, const char *name)
{
    if (z->result)
        return;
    if (z->sink) {
        z->result = z->sink->op(z->sink, type, name);
        return;
    }
    z->op = moirai_graph_builder_op(z->builder, name, type);
    if (z->op < 0)
        z->result = z->op;
}

void zoo_op_read(zoo_net *z, const char *tensor)
{
    if (!z->result)
        z->result = z->sink ? z->sink->read(z->sink, tensor) : moirai_graph_builder_input(z->builder, z->op, tensor);
}

void zoo_op_write(zoo_net *z, const char *tensor, int64_t elements)
{
    if (!z->result)
        z->result = z->sink ? z->sink->write(z->sink, tensor)
                            : moirai_graph_builder_output(z->builder, z->op, tensor, elements * z->element_bytes);
}

void zoo_op_end(zoo_net *z, const char *name, zoo_cost cost)
{
    int64_t traffic = (cost.in + cost.out + cost.weight) * z->element_bytes;

    zoo_op_write(z, name, cost.out);
    if (!z->result && !z->sink)
        z->result =
            moirai_graph_builder_cost(z->builder, z->op, cost.weight * z->element_bytes, 0, cost.flops, traffic);
}

void zoo_op_weight(zoo_net *z, zoo_weight weight)
{
    if (!z->result && z->sink)
        z->result = z->sink->weight(z->sink, &weight);
}

void zoo_op_attribute(zoo_net *z, const char *name, int n, const int64_t *value)
{
    if (!z->result && z->sink)
        z->result = z->sink->attribute(z->sink, name, n, value);
}

void zoo_net_input(zoo_net *z, const char *tensor, int rank, const int64_t *dim)
{
    if (!z->result && z->sink)
        z->result = z->sink->input(z->sink, tensor, rank, dim);
}

zoo_weight zoo_weight_product(int rank, const int64_t *dim, int64_t fan_in)
{
    zoo_weight w = {.rank = rank, .spread = sqrt(3.0 / (double)fan_in)};

    for (int i = 0; i < rank; i++)
        w.dim[i] = dim[i];
    return w;
}

void zoo_op_add(zoo_net *z, const char *type, const char *name, const char *a, const char *b, zoo_cost cost)
{
    zoo_op_begin(z, type, name);
    zoo_op_read(z, a);
    if (b)
        zoo_op_read(z, b);
    zoo_op_end(z, name, cost);
}
