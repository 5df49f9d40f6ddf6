/* Any text as a cut of a model: it is read, or refused with one line; what is read makes a network. */
#include <moirai/moirai.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/onnx_maker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* y = Relu(x U) D, then a product that is in no block; beside it an image, cut by channels or rows. */
static moirai_shards *open_model(void)
{
    char path[] = "/tmp/fuzz-cut-XXXXXX";
    wire graph = {0}, model = {0};
    moirai_shards *s = NULL;
    make_input(&graph, "x", MAKE_FLOAT, "6x4");
    make_weights(&graph, "U", "4x70");
    make_weights(&graph, "D", "70x4");
    make_weights(&graph, "H", "4x5");
    make_node(&graph, "MatMul", "x,U", "u", NULL);
    make_node(&graph, "Relu", "u", "r", NULL);
    make_node(&graph, "MatMul", "r,D", "d", NULL);
    make_node(&graph, "MatMul", "d,H", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "6x5");
    make_input(&graph, "image", MAKE_FLOAT, "1x2x9x5");
    make_weights(&graph, "K", "4x2x3x3");
    make_weights(&graph, "L", "2x4x3x1");
    make_node(&graph, "Conv", "image,K", "k", NULL);
    make_node(&graph, "Relu", "k", "s", NULL);
    make_node(&graph, "Conv", "s,L", "z", NULL);
    make_output(&graph, "z", MAKE_FLOAT, "1x2x5x3");
    make_model(&model, &graph);
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, model.data, model.length) != (ssize_t)model.length || moirai_shards_open(&s, path, NULL))
        abort();
    close(fd);
    unlink(path);
    wire_free(&model);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static moirai_shards *s;
    moirai_shard_report report;
    moirai_graph *g = NULL;
    s = s ? s : open_model();
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    int rc = moirai_shards_graph(&g, s, text, MOIRAI_SHARD_CHAIN, &report);
    if (rc ? !*moirai_error_message() || strchr(moirai_error_message(), '\n') != NULL : !g)
        abort();
    moirai_graph_free(g);
    free(text);
    return 0;
}
