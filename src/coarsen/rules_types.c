/* What the words of a rule mean.
 *
 * A type is compared without regard to case and to '_', '-', '.' and ' '. Exporters spell one operator in several
 * ways; the table of aliases brings them together. Some words are wider or narrower than a type:
 *   add, mul, div   any of that type;
 *   bias            an Add that reads one tensor of another operator: the other operand is a weight or constant;
 *   scale           a Mul or Div like that;
 *   mask            an Add or Where;
 *   act             any activation of the list below. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "coarsen/rules.h"

typedef struct pair {
    const char *word, *meaning;
} pair;

static const pair aliases[] = {
    /* sorted: test_coarsen_rules_words_have_their_meaning */
    {"addmm", "matmul"},
    {"baddbmm", "matmul"},
    {"batchnorm", "bn"},
    {"batchnorm1d", "bn"},
    {"batchnorm2d", "bn"},
    {"batchnorm3d", "bn"},
    {"batchnormalization", "bn"},
    {"bmm", "matmul"},
    {"cat", "concat"},
    {"clamp", "clip"},
    {"conv1d", "conv"},
    {"conv2d", "conv"},
    {"conv3d", "conv"},
    {"convolution", "conv"},
    {"dense", "matmul"},
    {"fastgelu", "gelu"},
    {"fullyconnected", "matmul"},
    {"fusedbatchnorm", "bn"},
    {"gemm", "matmul"},
    {"layernorm", "ln"},
    {"layernormalization", "ln"},
    {"linear", "matmul"},
    {"permute", "transpose"},
    {"quickgelu", "gelu"},
    {"relu6", "clip"},
    {"rmsnormalization", "rmsnorm"},
    {"simplifiedlayernormalization", "rmsnorm"},
    {"swish", "silu"},
    {"truediv", "div"},
    {"view", "reshape"},
};

static const pair groups[] = {
    /* sorted: test_coarsen_rules_words_have_their_meaning */
    {"act", "clip elu gelu hardsigmoid hardswish leakyrelu mish relu selu sigmoid silu softplus tanh"},
    {"add", "add add1"},
    {"bias", "add1"},
    {"div", "div div1"},
    {"mask", "add add1 where"},
    {"mul", "mul mul1"},
    {"scale", "div1 mul1"},
};

static int compare(const void *key, const void *item)
{
    return strcmp(key, ((const pair *)item)->word);
}

void coarsen_type_canonical(char out[COARSEN_TYPE_LENGTH], const char *type, size_t length, bool single)
{
    size_t n = 0;
    const pair *alias;

    for (size_t i = 0; i < length && n < COARSEN_TYPE_LENGTH - 2; i++)
        if (isalnum((unsigned char)type[i]) || type[i] == '+') /* '+' joins the types of a fused operator */
            out[n++] = (char)tolower((unsigned char)type[i]);
    out[n] = 0;
    alias = bsearch(out, aliases, sizeof aliases / sizeof *aliases, sizeof *aliases, compare);
    if (alias)
        memcpy(out, alias->meaning, strlen(alias->meaning) + 1);
    if (single && (!strcmp(out, "add") || !strcmp(out, "mul") || !strcmp(out, "div")))
        strcat(out, "1");
}

const char *coarsen_type_alternatives(const char *canonical)
{
    const pair *group = bsearch(canonical, groups, sizeof groups / sizeof *groups, sizeof *groups, compare);

    return group ? group->meaning : canonical;
}

/* Does the operator read exactly one tensor of another operator, once? */
static bool reads_one(const moirai_graph *g, int32_t op)
{
    int n = 0;

    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1]; e++)
        n += g->tensor_producer[g->op_in[e]] != MOIRAI_NONE;
    return n == 1;
}

void coarsen_rules_symbols(const moirai_rules *r, const moirai_graph *g, int32_t *symbol)
{
    char type[COARSEN_TYPE_LENGTH];

    for (int32_t i = 0; i < g->n_ops; i++) {
        coarsen_type_canonical(type, g->op_type[i], strlen(g->op_type[i]), reads_one(g, i));
        symbol[i] = util_names_get(r->symbols, type);
    }
}
