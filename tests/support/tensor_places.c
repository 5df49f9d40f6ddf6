#include "support/tensor_places.h"

/* Takes both halves. */
static void make_sparse(wire *sparse, wire *values, wire *indices)
{
    wire_message(sparse, 1, values);
    wire_message(sparse, 2, indices);
    wire_number(sparse, 3, 2);
    wire_number(sparse, 3, 4);
}

static void attribute(wire *attrs, const char *name, int type, uint32_t field, wire *value)
{
    wire a = {0};
    wire_text(&a, 1, name);
    wire_message(&a, field, value);
    wire_number(&a, 20, type);
    wire_message(attrs, 5, &a);
}

/* Values that are fine, for the half that is not the caller's. */
static void plain_half(wire *t, const char *name, int type)
{
    static const char zeros[64];
    make_tensor(t, name, type, "4");
    wire_bytes(t, 9, zeros, type == MAKE_INT64 ? 32 : 16);
}

static void in_initializer(wire *model, wire *graph, wire *tensor)
{
    (void)model;
    wire_message(graph, 5, tensor);
}

static void in_constant(wire *model, wire *graph, wire *tensor)
{
    wire attrs = {0};
    (void)model;
    make_attr_tensor(&attrs, "value", tensor);
    make_node(graph, "Constant", "", "constant", &attrs);
    make_output(graph, "constant", MAKE_FLOAT, "2x2");
}

static void in_attribute(wire *model, wire *graph, wire *tensor)
{
    wire attrs = {0};
    (void)model;
    make_attr_tensor(&attrs, "some", tensor);
    make_node_in(graph, "custom", "Custom", "x", "custom", &attrs);
    make_output(graph, "custom", MAKE_FLOAT, "2x2");
}

static void in_list(wire *model, wire *graph, wire *tensor)
{
    wire attrs = {0};
    (void)model;
    attribute(&attrs, "some", 9, 10, tensor);
    make_node_in(graph, "custom", "Custom", "x", "custom", &attrs);
}

static void in_sparse_values(wire *model, wire *graph, wire *tensor)
{
    wire sparse = {0}, indices = {0};
    (void)model;
    plain_half(&indices, "i", MAKE_INT64);
    make_sparse(&sparse, tensor, &indices);
    wire_message(graph, 15, &sparse);
}

static void in_sparse_indices(wire *model, wire *graph, wire *tensor)
{
    wire sparse = {0}, values = {0};
    (void)model;
    plain_half(&values, "v", MAKE_FLOAT);
    make_sparse(&sparse, &values, tensor);
    wire_message(graph, 15, &sparse);
}

static void in_sparse_attribute(wire *model, wire *graph, wire *tensor)
{
    wire sparse = {0}, indices = {0}, attrs = {0};
    (void)model;
    plain_half(&indices, "i", MAKE_INT64);
    make_sparse(&sparse, tensor, &indices);
    attribute(&attrs, "sparse_value", 11, 22, &sparse);
    make_node(graph, "Constant", "", "constant", &attrs);
}

static void in_sparse_list(wire *model, wire *graph, wire *tensor)
{
    wire sparse = {0}, values = {0}, attrs = {0};
    (void)model;
    plain_half(&values, "v", MAKE_FLOAT);
    make_sparse(&sparse, &values, tensor);
    attribute(&attrs, "some", 12, 23, &sparse);
    make_node_in(graph, "custom", "Custom", "x", "custom", &attrs);
}

/* An If that reads `c`, whose one branch is the caller's. */
static void make_if(wire *graph, wire *branch, const char *output)
{
    wire other = {0}, attrs = {0};
    make_node(&other, "Abs", "x", "otherwise", NULL);
    make_output(&other, "otherwise", MAKE_FLOAT, "2x2");
    make_attr_graph(&attrs, "then_branch", branch);
    make_attr_graph(&attrs, "else_branch", &other);
    make_node(graph, "If", "c", output, &attrs);
}

static void in_branch(wire *model, wire *graph, wire *tensor)
{
    wire branch = {0};
    (void)model;
    wire_message(&branch, 5, tensor);
    make_node(&branch, "Abs", "x", "inner", NULL);
    make_output(&branch, "inner", MAKE_FLOAT, "2x2");
    make_input(graph, "c", 9, "");
    make_if(graph, &branch, "chosen");
    make_output(graph, "chosen", MAKE_FLOAT, "2x2");
}

static void constant_branch(wire *branch, wire *tensor)
{
    wire attrs = {0};
    make_attr_tensor(&attrs, "value", tensor);
    make_node(branch, "Constant", "", "inner", &attrs);
    make_output(branch, "inner", MAKE_FLOAT, "2x2");
}

static void in_branch_constant(wire *model, wire *graph, wire *tensor)
{
    wire branch = {0};
    (void)model;
    constant_branch(&branch, tensor);
    make_input(graph, "c", 9, "");
    make_if(graph, &branch, "chosen");
    make_output(graph, "chosen", MAKE_FLOAT, "2x2");
}

static void in_nested_branch(wire *model, wire *graph, wire *tensor)
{
    wire inner = {0}, branch = {0};
    (void)model;
    constant_branch(&inner, tensor);
    make_if(&branch, &inner, "middle");
    make_output(&branch, "middle", MAKE_FLOAT, "2x2");
    make_input(graph, "c", 9, "");
    make_if(graph, &branch, "chosen");
    make_output(graph, "chosen", MAKE_FLOAT, "2x2");
}

static void in_graphs(wire *model, wire *graph, wire *tensor)
{
    wire branch = {0}, attrs = {0};
    (void)model;
    constant_branch(&branch, tensor);
    attribute(&attrs, "bodies", 10, 11, &branch);
    make_node_in(graph, "custom", "Custom", "x", "custom", &attrs);
}

static void function_head(wire *function)
{
    wire_text(function, 1, "Mine");
    wire_text(function, 10, "custom");
    wire_text(function, 5, "result");
}

static void in_function(wire *model, wire *graph, wire *tensor)
{
    wire function = {0}, attrs = {0};
    make_attr_tensor(&attrs, "value", tensor);
    function_head(&function);
    make_function_node(&function, "Constant", "", "result", &attrs);
    wire_message(model, 25, &function);
    make_node_in(graph, "custom", "Mine", "", "made", NULL);
    make_output(graph, "made", MAKE_FLOAT, "2x2");
}

static void in_function_default(wire *model, wire *graph, wire *tensor)
{
    wire function = {0}, a = {0};
    (void)graph;
    function_head(&function);
    wire_text(&a, 1, "some");
    wire_message(&a, 5, tensor);
    wire_number(&a, 20, 4);
    wire_message(&function, 11, &a);
    wire_message(model, 25, &function);
}

static void in_training(wire *model, wire *graph, wire *tensor)
{
    wire training = {0}, start = {0};
    (void)graph;
    wire_message(&start, 5, tensor);
    wire_message(&training, 1, &start);
    wire_message(model, 20, &training);
}

static const struct {
    const char *name;
    void (*put)(wire *model, wire *graph, wire *tensor);
} places[] = {
    {"initializer", in_initializer},
    {"constant", in_constant},
    {"attribute", in_attribute},
    {"list", in_list},
    {"sparse-values", in_sparse_values},
    {"sparse-indices", in_sparse_indices},
    {"sparse-attribute", in_sparse_attribute},
    {"sparse-list", in_sparse_list},
    {"branch", in_branch},
    {"branch-constant", in_branch_constant},
    {"nested-branch", in_nested_branch},
    {"graphs", in_graphs},
    {"function", in_function},
    {"function-default", in_function_default},
    {"training", in_training},
};

int tensor_place_count(void)
{
    return (int)(sizeof places / sizeof *places);
}

const char *tensor_place_name(int place)
{
    return places[place].name;
}

void make_model_with(wire *model, wire *tensor, int place)
{
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "2x2");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "Neg", "a", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "2x2");
    places[place].put(model, &graph, tensor);
    make_model(model, &graph);
}
