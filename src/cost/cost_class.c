/* Types -> classes.
 *
 * The table holds the types of ONNX, of PyTorch's graphs and of our own zoo, in lower case without separators, sorted:
 * a lookup is a binary search. A binary operator's class here is the one with two tensors ("add"); cost_shape.c turns
 * it into the one with a scalar ("addu") where the operator reads a single tensor.
 *
 * O(length of the type + log of the table) per operator. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "cost/cost_class.h"

typedef struct type_class {
    const char *type;
    cost_class k;
} type_class;

#define K(type, name) \
    { \
        type, COST_CLASS_##name \
    }
static const type_class TYPES[] = {
    /* sorted: test_cost_types_are_sorted_and_found */
    K("abs", ADDU),
    K("adaptiveavgpool2d", REDUCE),
    K("add", ADD),
    K("addmm", LINEAR),
    K("amax", REDUCE),
    K("and", ADD),
    K("arange", MEMORY),
    K("argmax", REDUCE),
    K("argmin", REDUCE),
    K("argsort", SORT),
    K("averagepool", REDUCE),
    K("avgpool", REDUCE),
    K("avgpool2d", REDUCE),
    K("baddbmm", BMM),
    K("batchednms", NMS),
    K("batchednmsdynamictrt", NMS),
    K("batchnorm", MULU),
    K("batchnorm2d", MULU),
    K("batchnormalization", MULU),
    K("bias", ADDU),
    K("biasadd", ADDU),
    K("biasgelu", GELU),
    K("bmm", BMM),
    K("cast", MEMORY),
    K("cat", MEMORY),
    K("ceil", ADDU),
    K("celu", TANH),
    K("clamp", RELU),
    K("clip", RELU),
    K("clone", MEMORY),
    K("concat", MEMORY),
    K("constant", VIEW),
    K("constantofshape", MEMORY),
    K("contiguous", MEMORY),
    K("conv", CONV),
    K("conv1d", CONV),
    K("conv2d", CONV),
    K("conv3d", CONV),
    K("convolution", CONV),
    K("convtranspose", CONV),
    K("copy", MEMORY),
    K("cos", TANH),
    K("cumsum", REDUCE),
    K("dense", LINEAR),
    K("depthtospace", MEMORY),
    K("div", DIV),
    K("dropout", VIEW),
    K("efficientnmstrt", NMS),
    K("einsum", BMM),
    K("elu", TANH),
    K("embedding", MEMORY),
    K("equal", ADD),
    K("erf", GELU),
    K("exp", TANH),
    K("expand", MEMORY),
    K("fastgelu", GELU),
    K("flatten", VIEW),
    K("floor", ADDU),
    K("fullyconnected", LINEAR),
    K("fusedbatchnorm", MULU),
    K("gather", MEMORY),
    K("gatherelements", MEMORY),
    K("gathernd", MEMORY),
    K("gathertopk", MEMORY),
    K("gelu", GELU),
    K("gemm", LINEAR),
    K("getitem", VIEW),
    K("globalaveragepool", REDUCE),
    K("globalmaxpool", REDUCE),
    K("greater", ADD),
    K("greaterorequal", ADD),
    K("gridsample", MEMORY),
    K("groupnorm", LN),
    K("groupnormalization", LN),
    K("hardsigmoid", RELU),
    K("hardswish", RELU),
    K("identity", VIEW),
    K("instancenormalization", LN),
    K("layernorm", LN),
    K("layernormalization", LN),
    K("leakyrelu", RELU),
    K("less", ADD),
    K("lessorequal", ADD),
    K("linear", LINEAR),
    K("ln", LN),
    K("log", TANH),
    K("logsoftmax", SOFTMAX),
    K("lrn", LN),
    K("mask", ADDU),
    K("matmul", BMM),
    K("max", ADD),
    K("maxpool", MEMORY),
    K("maxpool2d", MEMORY),
    K("mean", REDUCE),
    K("min", ADD),
    K("mish", TANH),
    K("mod", DIV),
    K("mul", MUL),
    K("neg", MULU),
    K("nms", NMS),
    K("nonmaxsuppression", NMS),
    K("nonzero", SORT),
    K("not", MULU),
    K("onehot", MEMORY),
    K("or", ADD),
    K("pad", MEMORY),
    K("permute", VIEW),
    K("pool", MEMORY),
    K("pow", POW),
    K("prelu", MUL),
    K("quickgelu", GELU),
    K("range", MEMORY),
    K("reciprocal", DIVU),
    K("reducel1", REDUCE),
    K("reducel2", REDUCE),
    K("reducelogsumexp", REDUCE),
    K("reducemax", REDUCE),
    K("reducemean", REDUCE),
    K("reducemin", REDUCE),
    K("reduceprod", REDUCE),
    K("reducesum", REDUCE),
    K("reducesumsquare", REDUCE),
    K("relu", RELU),
    K("relu6", RELU),
    K("repeat", MEMORY),
    K("reshape", VIEW),
    K("resize", MEMORY),
    K("rmsnorm", LN),
    K("rmsnormalization", LN),
    K("roialign", MEMORY),
    K("roll", MEMORY),
    K("round", ADDU),
    K("rsqrt", DIVU),
    K("rsub", ADD),
    K("scale", MULU),
    K("scatter", MEMORY),
    K("scatterelements", MEMORY),
    K("scatternd", MEMORY),
    K("selu", TANH),
    K("shape", VIEW),
    K("sigmoid", TANH),
    K("sign", ADDU),
    K("silu", TANH),
    K("simplifiedlayernormalization", LN),
    K("sin", TANH),
    K("skiplayernormalization", LN),
    K("slice", MEMORY),
    K("softmax", SOFTMAX),
    K("softplus", TANH),
    K("softsign", DIVU),
    K("sort", SORT),
    K("spacetodepth", MEMORY),
    K("split", VIEW),
    K("sqrt", DIVU),
    K("squeeze", VIEW),
    K("stack", MEMORY),
    K("sub", ADD),
    K("sum", ADD),
    K("swish", TANH),
    K("tanh", TANH),
    K("tile", MEMORY),
    K("to", VIEW),
    K("topk", SORT),
    K("transpose", VIEW),
    K("tril", MEMORY),
    K("trilu", MEMORY),
    K("triu", MEMORY),
    K("trtbatchednms", NMS),
    K("truediv", DIV),
    K("type", VIEW),
    K("unique", SORT),
    K("unsqueeze", VIEW),
    K("upsample", MEMORY),
    K("view", VIEW),
    K("where", ADD),
    K("xor", ADD),
};
#undef K

static const char *const NAMES[COST_CLASS_COUNT] = {
    "add",       "addu",   "mul",     "mulu", "div",    "divu", "pow",     "powu",   "relu",
    "tanh",      "gelu",   "softmax", "ln",   "linear", "bmm",  "conv",    "direct", "grouped",
    "depthwise", "memory", "reduce",  "sort", "nms",    "view", "unknown",
};

/* Which member of a fused operator decides: matrix products, then kernels that go over their input twice, ... */
static int weight_of_class(cost_class k)
{
    switch (k) {
    case COST_CLASS_LINEAR:
    case COST_CLASS_BMM:
    case COST_CLASS_CONV:
    case COST_CLASS_DIRECT:
    case COST_CLASS_GROUPED:
    case COST_CLASS_DEPTHWISE: return 5;
    case COST_CLASS_SOFTMAX:
    case COST_CLASS_LN:
    case COST_CLASS_SORT:
    case COST_CLASS_NMS: return 4;
    case COST_CLASS_UNKNOWN: return 1;
    case COST_CLASS_VIEW: return 0;
    case COST_CLASS_MEMORY:
    case COST_CLASS_REDUCE: return 2;
    default: return 3;
    }
}

static int compare_type(const void *key, const void *item)
{
    return strcmp(key, ((const type_class *)item)->type);
}

static cost_class class_of_member(const char *type, size_t length)
{
    char plain[64];
    size_t n = 0;
    for (size_t i = 0; i < length && n < sizeof plain - 1; i++)
        if (isalnum((unsigned char)type[i]))
            plain[n++] = (char)tolower((unsigned char)type[i]);
    plain[n] = 0;
    const type_class *found = bsearch(plain, TYPES, sizeof TYPES / sizeof *TYPES, sizeof *TYPES, compare_type);
    return found ? found->k : COST_CLASS_UNKNOWN;
}

cost_class cost_class_of(const char *type)
{
    cost_class best = COST_CLASS_UNKNOWN;
    int best_weight = -1;
    for (const char *p = type;;) {
        size_t n = strcspn(p, "+");
        cost_class k = class_of_member(p, n);
        if (weight_of_class(k) > best_weight) {
            best = k;
            best_weight = weight_of_class(k);
        }
        if (!p[n])
            return best;
        p += n + 1;
    }
}

/* Whether one of a fused type's members is one of n names. */
static bool has_member(const char *type, const char *const *name, size_t n_names)
{
    for (const char *p = type;; p++) {
        size_t n = strcspn(p, "+");
        for (size_t i = 0; i < n_names; i++)
            if (n == strlen(name[i]) && !strncasecmp(p, name[i], n))
                return true;
        p += n;
        if (!*p)
            return false;
    }
}

bool cost_class_is_join(const char *type)
{
    static const char *const names[] = {"concat", "cat", "stack"};
    return has_member(type, names, sizeof names / sizeof *names);
}

bool cost_class_is_stretch(const char *type)
{
    static const char *const names[] = {"resize", "upsample", "interpolate", "expand", "tile"};
    return has_member(type, names, sizeof names / sizeof *names);
}

bool cost_class_is_pad(const char *type)
{
    static const char *const names[] = {"pad"};
    return has_member(type, names, sizeof names / sizeof *names);
}

bool cost_class_is_lookup(const char *type)
{
    static const char *const names[] = {"gather", "gatherelements", "gathernd", "gathertopk", "embedding"};
    return has_member(type, names, sizeof names / sizeof *names);
}

bool cost_class_is_rank(const char *type)
{
    static const char *const names[] = {"argmax", "argmin"};
    return has_member(type, names, sizeof names / sizeof *names);
}

bool cost_class_is_pool(const char *type)
{
    static const char *const names[] = {"globalaveragepool", "globalmaxpool", "averagepool", "adaptiveavgpool2d"};
    return has_member(type, names, sizeof names / sizeof *names);
}

bool cost_class_is_product(cost_class k)
{
    return weight_of_class(k) == 5;
}

const char *cost_class_name(cost_class k)
{
    return k < COST_CLASS_COUNT ? NAMES[k] : "unknown";
}

cost_class cost_class_find(const char *name)
{
    for (int k = 0; k < COST_CLASS_TABLE; k++)
        if (!strcasecmp(name, NAMES[k]))
            return (cost_class)k;
    return COST_CLASS_UNKNOWN;
}

const char *cost_class_unsorted(void)
{
    for (size_t i = 1; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(TYPES[i - 1].type, TYPES[i].type) >= 0)
            return TYPES[i].type;
    return NULL;
}
