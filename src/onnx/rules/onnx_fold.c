/* The numbers of small constants: what exporters compute with shapes (and a few scalars) before they reshape.
 *
 * Integers are computed as int64 with wrap-around made harmless (a result that overflows has no numbers), everything
 * else as double; results are as long as ONNX_MAX_NUMBERS at most, so each rule is O(1). A rule that does not apply
 * leaves the output a constant without numbers, which is enough unless a shape depends on it. Here: arithmetic, element
 * by element; what only moves numbers is in onnx_fold_move.c. */
#include "onnx/rules/onnx_fold.h"

#include <math.h>
#include <string.h>

static bool is(const onnx_node *n, const char *type)
{
    return !strcmp(n->rule->type, type);
}

static double unary_real(const onnx_node *n, double x)
{
    return is(n, "Floor")        ? floor(x)
           : is(n, "Ceil")       ? ceil(x)
           : is(n, "Round")      ? nearbyint(x)
           : is(n, "Sqrt")       ? sqrt(x)
           : is(n, "Exp")        ? exp(x)
           : is(n, "Log")        ? log(x)
           : is(n, "Reciprocal") ? 1 / x
           : is(n, "Sign")       ? (x > 0) - (x < 0)
           : is(n, "Neg")        ? -x
           : is(n, "Abs")        ? fabs(x)
           : is(n, "Relu")       ? (x > 0 ? x : 0)
                                 : NAN;
}

static bool unary_int(const onnx_node *n, int64_t x, int64_t *out)
{
    if (x == INT64_MIN)
        return false;
    *out = is(n, "Neg") ? -x : is(n, "Abs") ? (x < 0 ? -x : x) : is(n, "Not") ? !x : (x > 0) - (x < 0);
    return is(n, "Neg") || is(n, "Abs") || is(n, "Not") || is(n, "Sign");
}

FOLD(unary)
{
    if (!onnx_fold_ready(n, 1) || !onnx_fold_room(n, n->out[0]))
        return;
    onnx_value *x = n->in[0], *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        if (out->reals) {
            out->reals[i] = unary_real(n, onnx_real(x, i));
        } else if (!unary_int(n, onnx_value_int(x, i), &out->ints[i])) {
            onnx_fold_drop(out);
            return;
        }
    }
}

static bool binary_int(const onnx_node *n, int64_t a, int64_t b, int64_t *out)
{
    if (is(n, "Add"))
        return util_add64(out, a, b);
    if (is(n, "Sub"))
        return !__builtin_sub_overflow(a, b, out);
    if (is(n, "Mul"))
        return util_mul64(out, a, b);
    if (is(n, "Div") || is(n, "Mod")) {
        if (b == 0 || b == -1)
            return b && is(n, "Div") ? !__builtin_sub_overflow(0, a, out) : (*out = 0, b != 0);
        int64_t rest = a % b;
        bool other_sign = rest && (rest < 0) != (b < 0) && !onnx_attr_int(n->proto, "fmod", 0);
        *out = is(n, "Div") ? a / b : rest + (other_sign ? b : 0);
        return true;
    }
    if (is(n, "Pow")) {
        double p = pow((double)a, (double)b);
        *out = fabs(p) < 9e15 ? (int64_t)p : 0;
        return fabs(p) < 9e15;
    }
    *out = is(n, "Equal")            ? a == b
           : is(n, "Less")           ? a < b
           : is(n, "Greater")        ? a > b
           : is(n, "LessOrEqual")    ? a <= b
           : is(n, "GreaterOrEqual") ? a >= b
           : is(n, "And")            ? a && b
           : is(n, "Or")             ? a || b
           : is(n, "Xor")            ? !a != !b
           : is(n, "Min")            ? UTIL_MIN(a, b)
                                     : UTIL_MAX(a, b);
    return true;
}

static double binary_real(const onnx_node *n, double a, double b)
{
    return is(n, "Add")              ? a + b
           : is(n, "Sub")            ? a - b
           : is(n, "Mul")            ? a * b
           : is(n, "Div")            ? a / b
           : is(n, "Mod")            ? fmod(a, b)
           : is(n, "Pow")            ? pow(a, b)
           : is(n, "Equal")          ? a == b
           : is(n, "Less")           ? a < b
           : is(n, "Greater")        ? a > b
           : is(n, "LessOrEqual")    ? a <= b
           : is(n, "GreaterOrEqual") ? a >= b
           : is(n, "Min")            ? fmin(a, b)
           : is(n, "Max")            ? fmax(a, b)
                                     : NAN;
}

FOLD(binary)
{
    if (n->n_in != 2 || !onnx_fold_ready(n, 2) || !onnx_fold_room(n, n->out[0]))
        return;
    onnx_value *a = n->in[0], *b = n->in[1], *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t ia = onnx_fold_source_of(a, out, i), ib = onnx_fold_source_of(b, out, i);
        if (a->reals || b->reals) {
            double r = binary_real(n, onnx_real(a, ia), onnx_real(b, ib));
            if (out->reals)
                out->reals[i] = r;
            else
                out->ints[i] = r == r && r != 0; /* comparisons: 0 or 1 */
        } else {
            int64_t r;
            if (!binary_int(n, a->ints[ia], b->ints[ib], &r)) {
                onnx_fold_drop(out);
                return;
            }
            if (out->reals)
                out->reals[i] = (double)r;
            else
                out->ints[i] = r;
        }
    }
}

/* Min and Max take any number of inputs; with two they are like any other. */
FOLD(variadic)
{
    if (n->n_in == 2 && (is(n, "Min") || is(n, "Max")))
        onnx_fold_binary(n);
    else if (n->n_in == 1)
        onnx_fold_copy(n);
}

/* The limits are inputs since opset 11, attributes before; either may be left out. */
FOLD(clip)
{
    static const char *const names[2] = {"min", "max"};
    onnx_value *out = onnx_out(n, 0);
    onnx_fold_copy(n);
    for (int32_t side = 0; side < 2 && out && onnx_has_numbers(out); side++) {
        const Onnx__AttributeProto *a = onnx_attr(n->proto, names[side]);
        const onnx_value *limit = onnx_in(n, side + 1);
        if (limit && (!onnx_has_numbers(limit) || limit->elements != 1)) {
            onnx_fold_drop(out);
            return;
        }
        if (!limit && !(a && a->has_f))
            continue;
        double real = limit ? onnx_real(limit, 0) : (double)a->f;
        int64_t whole = limit ? onnx_value_int(limit, 0) : (int64_t)UTIL_MAX(UTIL_MIN(real, 9e18), -9e18);
        for (int64_t i = 0; i < out->elements; i++) {
            if (out->reals && (side ? out->reals[i] > real : out->reals[i] < real))
                out->reals[i] = real;
            if (out->ints && (side ? out->ints[i] > whole : out->ints[i] < whole))
                out->ints[i] = whole;
        }
    }
}

FOLD(where)
{
    if (!onnx_fold_ready(n, 3) || !onnx_fold_room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        const onnx_value *from = onnx_value_int(n->in[0], onnx_fold_source_of(n->in[0], out, i)) ? n->in[1] : n->in[2];
        onnx_fold_put(out, i, from, onnx_fold_source_of(from, out, i));
    }
}

FOLD(reduce)
{
    if (!onnx_fold_ready(n, 1) || n->out[0]->elements != 1 || !onnx_fold_room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0];
    onnx_value *out = n->out[0];
    bool prod = is(n, "ReduceProd"), low = is(n, "ReduceMin"), high = is(n, "ReduceMax"), mean = is(n, "ReduceMean");
    double real = prod;
    int64_t whole = prod;
    for (int64_t i = 0; i < x->elements; i++) {
        double r = onnx_real(x, i);
        int64_t v = onnx_value_int(x, i);
        bool fits = true;
        if (low || high) {
            real = !i || (low ? r < real : r > real) ? r : real;
            whole = !i || (low ? v < whole : v > whole) ? v : whole;
        } else {
            real = prod ? real * r : real + r;
            fits = prod ? util_mul64(&whole, whole, v) : util_add64(&whole, whole, v);
        }
        if (!fits && !out->reals) {
            onnx_fold_drop(out);
            return;
        }
        whole = fits ? whole : 0;
    }
    if (out->reals)
        out->reals[0] = mean && x->elements ? real / (double)x->elements : real;
    else
        out->ints[0] = mean && x->elements ? whole / x->elements : whole;
}
