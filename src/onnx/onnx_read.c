/* The public face of the importer. */
#include <moirai/onnx.h>

#include <string.h>

#include "onnx/onnx_network.h"

bool moirai_onnx_available(void)
{
    return true;
}

/* The graph is the caller's, the rest goes. */
static int hand_over(moirai_graph **out, int rc, onnx_network *net, moirai_onnx_report *report)
{
    *out = NULL;
    if (report)
        memset(report, 0, sizeof *report);
    if (rc)
        return rc;
    if (report)
        *report = net->report;
    *out = net->graph;
    net->graph = NULL;
    onnx_network_free(net);
    return 0;
}

int moirai_onnx_read(moirai_graph **out, const char *path, const moirai_onnx_options *options,
                     moirai_onnx_report *report)
{
    onnx_network *net;
    int rc = onnx_network_open(&net, path, options);
    return hand_over(out, rc, net, report);
}

int moirai_onnx_parse(moirai_graph **out, const void *data, size_t length, const char *label,
                      const moirai_onnx_options *options, moirai_onnx_report *report)
{
    onnx_network *net;
    int rc = onnx_network_parse(&net, data, length, label, options);
    return hand_over(out, rc, net, report);
}
