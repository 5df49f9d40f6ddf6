/* The numbers of small constants: what exporters compute with shapes (and a few scalars) before they reshape.
 *
 * Integers are computed as int64 with wrap-around made harmless (a result that overflows has no numbers), everything
 * else as double; results are as long as ONNX_MAX_NUMBERS at most, so each rule is O(1). A rule that does not apply
 * leaves the output a constant without numbers, which is enough unless a shape depends on it. */
#include "onnx/rules/onnx_rules.h"

#include <math.h>
#include <string.h>

#define FOLD(name) void onnx_fold_##name(onnx_node *n)

static bool is(const onnx_node *n, const char *type)
{
    return !strcmp(n->rule->type, type);
}

static bool ready(const onnx_node *n, int32_t inputs)
{
    if (!onnx_out(n, 0) || n->out[0]->elements > ONNX_MAX_NUMBERS)
        return false;
    for (int32_t i = 0; i < inputs; i++)
        if (!onnx_has_numbers(onnx_in(n, i)))
            return false;
    return true;
}

static bool is_real_type(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == 11;
}

/* Room for the output's numbers in its own kind; false if it gets none. */
static bool room(onnx_node *n, onnx_value *v)
{
    return is_real_type(v->type) ? onnx_value_reals(n->import, v) != NULL
                                 : onnx_value_ints(n->import, v) != NULL;
}

static void drop(onnx_value *v)
{
    v->ints = NULL;
    v->reals = NULL;
    v->n_numbers = 0;
}

static void put(onnx_value *out, int64_t i, const onnx_value *from, int64_t k)
{
    if (out->reals)
        out->reals[i] = onnx_real(from, k);
    else
        out->ints[i] = onnx_value_int(from, k);
}

/* Position in `v` of element `i` of a value of shape (rank, dim) that v broadcasts to. */
static int64_t source(const onnx_value *v, int32_t rank, const int64_t *dim, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int32_t a = rank - 1; a >= 0; a--) {
        int64_t k = i % dim[a];
        int32_t own = a - (rank - v->rank);
        i /= dim[a];
        if (own < 0)
            continue;
        at += v->dim[own] == 1 ? 0 : k * stride;
        stride *= v->dim[own];
    }
    return at;
}

static int64_t source_of(const onnx_value *v, const onnx_value *out, int64_t i)
{
    return source(v, out->rank, out->dim, i);
}

/* ---- arithmetic ---- */

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
    if (!ready(n, 1) || !room(n, n->out[0]))
        return;
    onnx_value *x = n->in[0], *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        if (out->reals) {
            out->reals[i] = unary_real(n, onnx_real(x, i));
        } else if (!unary_int(n, onnx_value_int(x, i), &out->ints[i])) {
            drop(out);
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
    if (n->n_in != 2 || !ready(n, 2) || !room(n, n->out[0]))
        return;
    onnx_value *a = n->in[0], *b = n->in[1], *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t ia = source_of(a, out, i), ib = source_of(b, out, i);
        if (a->reals || b->reals) {
            double r = binary_real(n, onnx_real(a, ia), onnx_real(b, ib));
            if (out->reals)
                out->reals[i] = r;
            else
                out->ints[i] = r == r && r != 0; /* comparisons: 0 or 1 */
        } else {
            int64_t r;
            if (!binary_int(n, a->ints[ia], b->ints[ib], &r)) {
                drop(out);
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

FOLD(where)
{
    if (!ready(n, 3) || !room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        const onnx_value *from = onnx_value_int(n->in[0], source_of(n->in[0], out, i)) ? n->in[1] : n->in[2];
        put(out, i, from, source_of(from, out, i));
    }
}

FOLD(reduce)
{
    if (!ready(n, 1) || n->out[0]->elements != 1 || !room(n, n->out[0]))
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
            drop(out);
            return;
        }
        whole = fits ? whole : 0;
    }
    if (out->reals)
        out->reals[0] = mean && x->elements ? real / (double)x->elements : real;
    else
        out->ints[0] = mean && x->elements ? whole / x->elements : whole;
}

/* ---- moving ---- */

FOLD(copy)
{
    if (!ready(n, 1) || n->in[0]->elements != n->out[0]->elements || !room(n, n->out[0]))
        return;
    for (int64_t i = 0; i < n->out[0]->elements; i++)
        put(n->out[0], i, n->in[0], i);
}

FOLD(cast)
{
    onnx_fold_copy(n);
    onnx_value *out = onnx_out(n, 0);
    for (int64_t i = 0; out && out->ints && out->type == ONNX_BOOL && i < out->elements; i++)
        out->ints[i] = onnx_real(n->in[0], i) != 0;
}

FOLD(shape)
{
    if (!onnx_in(n, 0) || !onnx_out(n, 0) || !onnx_value_ints(n->import, n->out[0]))
        return;
    int64_t rank = n->in[0]->rank, begin = onnx_attr_int(n->proto, "start", 0);
    begin = begin < 0 ? begin + rank : begin;
    begin = begin < 0 ? 0 : begin;
    for (int64_t i = 0; i < n->out[0]->elements; i++)
        n->out[0]->ints[i] = begin + i < rank ? n->in[0]->dim[begin + i] : 1;
}

FOLD(size)
{
    if (onnx_in(n, 0) && onnx_out(n, 0) && n->out[0]->elements == 1 && onnx_value_ints(n->import, n->out[0]))
        n->out[0]->ints[0] = n->in[0]->elements;
}

FOLD(gather)
{
    if (!ready(n, 2) || n->out[0]->guessed || !room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0], *index = n->in[1];
    onnx_value *out = n->out[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 0);
    if (!onnx_axis(&axis, x->rank)) {
        drop(out);
        return;
    }
    int64_t inner = onnx_product(x->dim, (int32_t)axis + 1, x->rank), length = x->dim[axis];
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t low = i % inner, mid = i / inner % index->elements, high = i / inner / index->elements;
        int64_t k = onnx_value_int(index, mid);
        if (!(k >= -length && k < length)) {
            drop(out);
            return;
        }
        put(out, i, x, (high * length + (k < 0 ? k + length : k)) * inner + low);
    }
}

FOLD(concat)
{
    if (!ready(n, n->n_in) || n->out[0]->guessed || !room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 1), begin = 0;
    if (!onnx_axis(&axis, out->rank)) {
        drop(out);
        return;
    }
    int64_t row = onnx_product(out->dim, (int32_t)axis, out->rank);
    int64_t inner = onnx_product(out->dim, (int32_t)axis + 1, out->rank);
    for (int32_t k = 0; k < n->n_in; k++) {
        const onnx_value *x = n->in[k];
        int64_t own = x->dim[axis] * inner;
        for (int64_t i = 0; i < x->elements; i++) {
            int64_t at = i / own * row + begin + i % own;
            if (at < out->elements) /* inputs that disagree in other dims */
                put(out, at, x, i);
        }
        begin += own;
    }
}

/* Start and step of a slice along `axis`; the length is the output's. */
static void slice_at(onnx_node *n, int32_t axis, int64_t length, int64_t *start, int64_t *step)
{
    onnx_list starts, axes, steps;
    *start = 0;
    *step = 1;
    if (!onnx_list_of(n, "starts", 1, &starts))
        return;
    for (int64_t i = 0; i < starts.n; i++) {
        bool has_axes = onnx_given(n, "axes", 3);
        int64_t a = has_axes && onnx_list_of(n, "axes", 3, &axes) && i < axes.n ? axes.item[i] : i;
        if (!onnx_axis(&a, n->in[0]->rank) || a != axis)
            continue;
        if (onnx_given(n, NULL, 4) && onnx_list_of(n, NULL, 4, &steps) && i < steps.n)
            *step = steps.item[i];
        int64_t s = starts.item[i];
        s = s < 0 ? (s < -length ? 0 : s + length) : s;
        *start = UTIL_MIN(s, length - 1);
    }
}

FOLD(slice)
{
    if (!ready(n, 1) || n->out[0]->guessed || n->out[0]->rank != n->in[0]->rank || !room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0];
    onnx_value *out = n->out[0];
    int64_t start[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    for (int32_t a = 0; a < x->rank; a++)
        slice_at(n, a, x->dim[a], &start[a], &step[a]);
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t at = 0, stride = 1, rest = i;
        for (int32_t a = x->rank - 1; a >= 0; a--) {
            int64_t k = rest % out->dim[a];
            rest /= out->dim[a];
            /* A single element may come with a step of any size. */
            int64_t position = start[a] + (k ? k * step[a] : 0);
            if (position < 0 || position >= x->dim[a]) {
                drop(out);
                return;
            }
            at += position * stride;
            stride *= x->dim[a];
        }
        put(out, i, x, at);
    }
}

FOLD(expand)
{
    if (!ready(n, 1) || n->out[0]->guessed || !room(n, n->out[0]))
        return;
    for (int64_t i = 0; i < n->out[0]->elements; i++)
        put(n->out[0], i, n->in[0], source_of(n->in[0], n->out[0], i));
}

FOLD(range)
{
    if (!ready(n, 3) || n->out[0]->guessed || !room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        double r = onnx_real(n->in[0], 0) + (double)i * onnx_real(n->in[2], 0);
        if (out->reals)
            out->reals[i] = r;
        else if (fabs(r) < 9e15)
            out->ints[i] = (int64_t)r;
        else {
            drop(out);
            return;
        }
    }
}

FOLD(fill)
{
    if (!onnx_out(n, 0) || n->out[0]->guessed || !room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0], filler = {0};
    const Onnx__AttributeProto *a = onnx_attr(n->proto, "value");
    if (!a || !a->t)
        return; /* zeros */
    if (onnx_value_from_tensor(n->import, &filler, a->t) || filler.elements != 1 || !onnx_has_numbers(&filler)) {
        drop(out);
        return;
    }
    for (int64_t i = 0; i < out->elements; i++)
        put(out, i, &filler, 0);
}

FOLD(transpose)
{
    if (!ready(n, 1) || n->out[0]->guessed || !room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0];
    onnx_value *out = n->out[0];
    onnx_list perm = {0};
    bool given = onnx_list_of(n, "perm", -1, &perm);
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t coordinate[ONNX_MAX_RANK] = {0}, rest = i, at = 0;
        for (int32_t a = out->rank - 1; a >= 0; a--) {
            coordinate[given ? perm.item[a] : x->rank - 1 - a] = rest % out->dim[a];
            rest /= out->dim[a];
        }
        for (int32_t a = 0; a < x->rank; a++)
            at = at * x->dim[a] + coordinate[a];
        if (at < x->elements) /* a repeated axis in perm */
            put(out, i, x, at);
    }
}

/* Of vectors only: shapes that exporters take apart. */
FOLD(split)
{
    if (!onnx_has_numbers(onnx_in(n, 0)) || n->in[0]->rank != 1)
        return;
    int64_t begin = 0;
    for (int32_t k = 0; k < n->n_out; k++) {
        onnx_value *out = n->out[k];
        if (!out || out->guessed || begin + out->elements > n->in[0]->elements || !room(n, out))
            return;
        for (int64_t i = 0; i < out->elements; i++)
            put(out, i, n->in[0], begin + i);
        begin += out->elements;
    }
}
