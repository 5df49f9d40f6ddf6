/* The numbers that are learnt: named tensors in one flat array, their first values, and Adam. Private. */
#ifndef MOIRAI_PLACE_LEARN_PARAMS_H
#define MOIRAI_PLACE_LEARN_PARAMS_H

#include "place/learn/real.h"

#define LEARN_MAX_TENSORS 48

typedef struct learn_tensor {
    const char *name; /* a literal of the policy */
    int32_t rows, cols;
    size_t at; /* in the flat array */
} learn_tensor;

typedef struct learn_params {
    int32_t n_tensors;
    learn_tensor tensor[LEARN_MAX_TENSORS];
    size_t n;
    learn_real *value;
    learn_real *mean, *square; /* Adam's moments */
    int64_t steps;
} learn_params;

/* Declare a tensor; returns where it lies. All are declared before learn_params_make. */
size_t learn_params_add(learn_params *q, const char *name, int32_t rows, int32_t cols);
/* Memory for all that was declared. MOIRAI_EFAIL where there is none. */
int learn_params_make(learn_params *q);
void learn_params_free(learn_params *q);
/* Glorot's uniform start for matrices, zero for single rows (biases). The same for the same seed. */
void learn_params_draw(learn_params *q, uint64_t seed);

/* Scale the gradient down to norm `most` where it is longer; returns the norm before. */
double learn_clip(learn_real *grad, size_t n, double most);
/* One step of Adam (Kingma and Ba 2015; 0.9, 0.999, 1e-8) down the gradient. */
void learn_adam(learn_params *q, const learn_real *grad, double rate);

#endif
