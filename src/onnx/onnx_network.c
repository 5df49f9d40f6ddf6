/* From a file to a network: open, infer, build. */
#include "onnx/onnx_network.h"

#include <stdlib.h>

#include "onnx/onnx_tensors.h"

static int list_nodes(onnx_network *net)
{
    const onnx_scope *s = net->im.root;
    int32_t n = 0;
    net->op_node = util_alloc((size_t)net->graph->n_ops, sizeof *net->op_node);
    if (!net->op_node)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        if (!onnx_is_kept(&s->node[i]))
            continue;
        if (n == net->graph->n_ops)
            return moirai_error(MOIRAI_EFAIL, "more nodes than operators");
        net->op_node[n++] = i;
    }
    return n == net->graph->n_ops ? 0 : moirai_error(MOIRAI_EFAIL, "fewer nodes than operators");
}

/* `path`: of the file, NULL where it is in memory. */
static int understand(onnx_network **out, onnx_network *net, const char *path, int rc,
                      const moirai_onnx_options *options)
{
    rc = rc ? rc : onnx_external_check(net->model, path);
    net->im = (onnx_import){.model = net->model, .options = options, .report = &net->report};
    rc = rc ? rc : onnx_import_run(&net->im);
    rc = rc ? rc : onnx_build(&net->graph, &net->im, net->label);
    rc = rc ? rc : list_nodes(net);
    if (rc) {
        moirai_error_prefix(rc, "%s", net->label);
        onnx_network_free(net);
        return rc;
    }
    *out = net;
    return 0;
}

int onnx_network_open(onnx_network **out, const char *path, const moirai_onnx_options *options)
{
    *out = NULL;
    onnx_network *net = util_alloc(1, sizeof *net);
    if (!net)
        return MOIRAI_EFAIL;
    net->label = path;
    return understand(out, net, path, onnx_model_open(&net->model, path), options);
}

int onnx_network_parse(onnx_network **out, const void *data, size_t length, const char *label,
                       const moirai_onnx_options *options)
{
    *out = NULL;
    onnx_network *net = util_alloc(1, sizeof *net);
    if (!net)
        return MOIRAI_EFAIL;
    net->label = label;
    return understand(out, net, NULL, onnx_model_parse(&net->model, data, length), options);
}

void onnx_network_free(onnx_network *net)
{
    if (!net)
        return;
    moirai_graph_free(net->graph);
    onnx_import_free(&net->im);
    onnx_model_free(net->model);
    free(net->op_node);
    free(net);
}
