#include "support/one_op.h"

moirai_graph *graph_of(const one *o, const char *key, int64_t ns)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    assert_ok(moirai_graph_builder_new(&b, "test"));
    int32_t source = moirai_graph_builder_op(b, "source", "Reshape"), op = moirai_graph_builder_op(b, "op", o->type);
    assert_ok(moirai_graph_builder_output(b, source, "x", o->in));
    assert_ok(moirai_graph_builder_input(b, op, "x"));
    assert_ok(moirai_graph_builder_output(b, op, "y", o->out));
    assert_ok(moirai_graph_builder_cost(b, op, o->weights, 0, o->flops, o->traffic));
    if (key) {
        assert_ok(moirai_graph_builder_time(b, op, key, ns));
        assert_ok(moirai_graph_builder_time(b, source, key, 0));
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

moirai_cluster *cluster_of(const char *description)
{
    moirai_cluster *c;
    assert_ok(moirai_cluster_synthetic(&c, description));
    return c;
}

int64_t time_of(const moirai_graph *g, const char *cluster, const char *model, moirai_cost_report *report)
{
    moirai_cluster *c = cluster_of(cluster);
    int64_t *t = calloc((size_t)g->n_ops * (size_t)c->n_devices, sizeof *t);
    assert_ok(moirai_cost_times(t, g, c, model, report));
    int64_t ns = t[moirai_graph_find(g, "op") * c->n_devices];
    free(t);
    moirai_cluster_free(c);
    return ns;
}

int64_t time_of_one(one o, const char *cluster, const char *model)
{
    moirai_graph *g = graph_of(&o, NULL, 0);
    int64_t ns = time_of(g, cluster, model, NULL);
    moirai_graph_free(g);
    return ns;
}
