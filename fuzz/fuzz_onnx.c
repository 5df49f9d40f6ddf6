/* The ONNX reader on arbitrary bytes: it may refuse, it may not crash, hang or grow without bound. What it accepts
 * must have sizes that make sense. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <moirai/onnx.h>
#include <moirai/stats.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *dims[] = {"N=3"}, *shapes[] = {"x:2x3x8x8"};
    moirai_onnx_options options = {.dims = dims, .n_dims = 1, .shapes = shapes, .n_shapes = 1};
    moirai_onnx_report report;
    moirai_graph *g = NULL;
    moirai_graph_stats stats;
    /* The options fail on models without such names: try both ways. */
    if (moirai_onnx_parse(&g, data, size, "fuzz", &options, &report))
        moirai_onnx_parse(&g, data, size, "fuzz", NULL, &report);
    if (g) {
        if (report.parameter_count < 0 || report.weight_bytes < 0 || moirai_graph_stats_get(&stats, g))
            abort();
        for (int32_t t = 0; t < g->n_tensors; t++)
            if (g->tensor_bytes[t] < 0)
                abort();
    }
    moirai_graph_free(g);
    return 0;
}
