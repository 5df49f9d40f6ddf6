#include "place/learn/params.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>

size_t learn_params_add(learn_params *q, const char *name, int32_t rows, int32_t cols)
{
    size_t at = q->n;
    q->tensor[q->n_tensors++] = (learn_tensor){name, rows, cols, at};
    q->n += (size_t)rows * (size_t)cols;
    return at;
}

int learn_params_make(learn_params *q)
{
    q->value = util_alloc(q->n, sizeof *q->value);
    q->mean = util_alloc(q->n, sizeof *q->mean);
    q->square = util_alloc(q->n, sizeof *q->square);
    return q->value && q->mean && q->square ? 0 : MOIRAI_EFAIL;
}

void learn_params_free(learn_params *q)
{
    free(q->value);
    free(q->mean);
    free(q->square);
}

void learn_params_draw(learn_params *q, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    for (int32_t i = 0; i < q->n_tensors; i++) {
        const learn_tensor *t = &q->tensor[i];
        double reach = t->rows > 1 ? sqrt(6.0 / (t->rows + t->cols)) : 0;
        for (size_t j = 0; j < (size_t)t->rows * (size_t)t->cols; j++)
            q->value[t->at + j] = (learn_real)(reach * (2 * util_rng_real(&rng) - 1));
    }
}

double learn_clip(learn_real *grad, size_t n, double most)
{
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += (double)grad[i] * (double)grad[i];
    double norm = sqrt(square);
    if (norm > most)
        for (size_t i = 0; i < n; i++)
            grad[i] = (learn_real)((double)grad[i] * (most / norm));
    return norm;
}

void learn_adam(learn_params *q, const learn_real *grad, double rate)
{
    const learn_real keep = (learn_real)0.9, keep_square = (learn_real)0.999, tiny = (learn_real)1e-8;
    q->steps++;
    double warm = 1 - pow(0.9, (double)q->steps), warm_square = 1 - pow(0.999, (double)q->steps);
    const learn_real step = (learn_real)(rate / warm), square_scale = (learn_real)(1 / warm_square);
    for (size_t i = 0; i < q->n; i++) {
        q->mean[i] = keep * q->mean[i] + (1 - keep) * grad[i];
        q->square[i] = keep_square * q->square[i] + (1 - keep_square) * grad[i] * grad[i];
        q->value[i] -= step * q->mean[i] / ((learn_real)sqrt(q->square[i] * square_scale) + tiny);
    }
}
