/* Writes the seed corpus of fuzz_onnx into the folder given: one small model per family of operators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_import.h"
#include "support/onnx_maker.h"

static const char *folder;

static void save(const char *name, wire *graph)
{
    char path[4096];
    wire model = {0};
    make_model(&model, graph);
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(model.data, 1, model.length, f) != model.length || fclose(f)) {
        perror(path);
        exit(1);
    }
    wire_free(&model);
}

static void ints(wire *attrs, const char *name, int64_t a, int64_t b)
{
    int64_t value[] = {a, b};
    make_attr_ints(attrs, name, 2, value);
}

static void cnn(void)
{
    wire g = {0}, a = {0};
    int64_t flat[] = {0, -1};
    make_input(&g, "x", MAKE_FLOAT, "Nx3x8x8");
    make_external(&g, "w", MAKE_FLOAT, "4x3x3x3", "0", "432");
    make_weights(&g, "s", "4");
    make_ints(&g, "flat", 2, flat, 0);
    ints(&a, "strides", 2, 2);
    make_attr_text(&a, "auto_pad", "SAME_UPPER");
    make_node(&g, "Conv", "x,w,s", "a", &a);
    make_node(&g, "BatchNormalization", "a,s,s,s,s", "b", NULL);
    make_node(&g, "Relu", "b", "c", NULL);
    ints(&a, "kernel_shape", 2, 2);
    make_attr_int(&a, "ceil_mode", 1);
    make_node(&g, "MaxPool", "c", "d,i", &a);
    make_node(&g, "ConvTranspose", "d,w", "u", NULL);
    make_node(&g, "Resize", "d,,,flat", "r", NULL);
    make_node(&g, "GlobalAveragePool", "d", "e", NULL);
    make_node(&g, "Reshape", "e,flat", "y", NULL);
    make_output(&g, "y", MAKE_FLOAT, NULL);
    make_output(&g, "u", MAKE_FLOAT, NULL);
    make_output(&g, "r", MAKE_FLOAT, NULL);
    save("cnn", &g);
}

static void transformer(void)
{
    wire g = {0}, a = {0};
    int64_t perm[] = {0, 2, 1};
    make_input(&g, "x", MAKE_FLOAT, "1x4x8");
    make_weights(&g, "w", "8x8");
    make_weights(&g, "n", "8");
    make_node(&g, "LayerNormalization", "x,n,n", "a", NULL);
    make_node(&g, "MatMul", "a,w", "q", NULL);
    make_attr_ints(&a, "perm", 3, perm);
    make_node(&g, "Transpose", "q", "k", &a);
    make_node(&g, "MatMul", "q,k", "s", NULL);
    make_attr_int(&a, "axis", -1);
    make_node(&g, "Softmax", "s", "p", &a);
    make_attr_text(&a, "equation", "bij,bjk->bik");
    make_node(&g, "Einsum", "p,q", "o", &a);
    make_node(&g, "Gelu", "o", "z", NULL);
    make_node_in(&g, "com.microsoft", "SkipLayerNormalization", "z,x,n,n", "y", NULL);
    make_attr_int(&a, "hidden_size", 8);
    make_node(&g, "LSTM", "y,y,y", "l", &a);
    make_output(&g, "l", MAKE_FLOAT, "AxBxCxD");
    save("transformer", &g);
}

static void shapes(void)
{
    wire g = {0}, a = {0};
    int64_t zero = 0, one = 1, three = 3, ends[] = {2}, steps[] = {-1};
    make_input(&g, "x", MAKE_FLOAT, "2x3x8x8");
    make_ints(&g, "zero", 1, &zero, 1);
    make_ints(&g, "one", 1, &one, 1);
    make_ints(&g, "three", 1, &three, 1);
    make_ints(&g, "axes", 1, &zero, 0);
    make_ints(&g, "ends", 1, ends, 0);
    make_ints(&g, "steps", 1, steps, 0);
    make_node(&g, "Shape", "x", "s", NULL);
    make_node(&g, "Gather", "s,zero", "b", NULL);
    make_node(&g, "Mul", "b,three", "m", NULL);
    make_node(&g, "Unsqueeze", "m,axes", "u", NULL);
    make_node(&g, "Slice", "s,axes,ends", "h", NULL);
    make_node(&g, "Slice", "s,ends,axes,axes,steps", "back", NULL);
    make_attr_int(&a, "axis", 0);
    make_node(&g, "Concat", "u,h,back", "c", &a);
    make_node(&g, "ConstantOfShape", "c", "filled", NULL);
    make_node(&g, "Range", "zero,three,one", "r", NULL);
    make_node(&g, "Cast", "r", "rf", NULL);
    make_node(&g, "Equal", "r,one", "eq", NULL);
    make_node(&g, "Where", "eq,r,zero", "w", NULL);
    make_node(&g, "ReduceProd", "w", "p", NULL);
    make_node(&g, "Expand", "x,s", "e", NULL);
    make_node(&g, "Tile", "x,s", "t", NULL);
    make_node(&g, "Pad", "x,c", "pd", NULL);
    make_node(&g, "Split", "x", "s0,s1", NULL);
    make_node(&g, "TopK", "x,three", "tk,ti", NULL);
    make_node(&g, "NonZero", "x", "nz", NULL);
    make_node(&g, "Add", "x,p", "y", NULL);
    static const char *outputs[] = {"y", "e", "t", "pd", "s1", "tk", "nz", "filled"};
    for (int i = 0; i < 8; i++)
        make_output(&g, outputs[i], MAKE_FLOAT, NULL);
    save("shapes", &g);
}

static void control(void)
{
    wire g = {0}, yes = {0}, no = {0}, body = {0}, scan = {0}, a = {0};
    int64_t trips = 4;
    make_input(&g, "x", MAKE_FLOAT, "2x3");
    make_input(&g, "c", 9, "");
    make_ints(&g, "n", 1, &trips, 1);
    make_node(&yes, "Relu", "x", "t", NULL);
    make_output(&yes, "t", MAKE_FLOAT, NULL);
    make_weights(&no, "e", "2x3");
    make_output(&no, "e", MAKE_FLOAT, NULL);
    make_attr_graph(&a, "then_branch", &yes);
    make_attr_graph(&a, "else_branch", &no);
    make_node(&g, "If", "c", "i", &a);
    make_input(&body, "k", MAKE_INT64, "");
    make_input(&body, "go", 9, "");
    make_input(&body, "s", MAKE_FLOAT, "axb");
    make_node(&body, "Add", "s,i", "s2", NULL);
    make_output(&body, "go", 9, "");
    make_output(&body, "s2", MAKE_FLOAT, NULL);
    make_output(&body, "s2", MAKE_FLOAT, NULL);
    make_attr_graph(&a, "body", &body);
    make_node(&g, "Loop", "n,,x", "l,all", &a);
    make_input(&scan, "row", MAKE_FLOAT, NULL);
    make_node(&scan, "Exp", "row", "out", NULL);
    make_output(&scan, "out", MAKE_FLOAT, NULL);
    make_attr_int(&a, "num_scan_inputs", 1);
    make_attr_graph(&a, "body", &scan);
    make_node(&g, "Scan", "l", "y", &a);
    make_node_in(&g, "my.company", "Custom", "all,y", "z", NULL);
    make_output(&g, "z", MAKE_FLOAT, NULL);
    save("control", &g);
}

/* Every operator that has a rule, on inputs that mostly do not suit it: as activations, then as constants. */
static void every_type(void)
{
    static const char *const inputs[] = {"x,i,i,i,i", "x,x,x", "i,i,i", "i,s,s", "m,i"};
    wire g = {0};
    char name[32], out[32];
    int64_t two[] = {1, 0}, one = 1;
    int n_files = 0;
    for (int i = 0; i < onnx_rule_count(); i++) {
        for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++) {
            snprintf(out, sizeof out, "t%d_%zu,u%d_%zu", i, k, i, k);
            make_node(&g, onnx_rule_at(i)->type, inputs[k], out, NULL);
            *strchr(out, ',') = '\0';
            make_output(&g, out, MAKE_FLOAT, NULL);
        }
        if (i % 12 == 11 || i + 1 == onnx_rule_count()) {
            make_input(&g, "x", MAKE_FLOAT, "2x3x8x8");
            make_input(&g, "m", MAKE_FLOAT, "4x2");
            make_ints(&g, "i", 2, two, 0);
            make_ints(&g, "s", 1, &one, 1);
            snprintf(name, sizeof name, "types%d", n_files++);
            save(name, &g);
        }
    }
}

static void broken(void)
{
    wire g = {0};
    make_input(&g, "x", MAKE_FLOAT, "4611686018427387904x4");
    make_node(&g, "Relu", "b", "a", NULL);
    make_node(&g, "Relu", "a", "b", NULL);
    make_external(&g, "w", MAKE_FLOAT, "9223372036854775807x-1", "9223372036854775807", "1");
    save("broken", &g);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_onnx_seeds FOLDER\n");
        return 2;
    }
    folder = argv[1];
    cnn();
    transformer();
    shapes();
    control();
    every_type();
    broken();
    return 0;
}
