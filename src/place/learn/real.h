/* Numbers and matrix products of the learning placers. Private.
 *
 * The library computes in float. Tests compile this folder once more with LEARN_DOUBLE, so that derivatives can be
 * compared with finite differences to many digits. */
#ifndef MOIRAI_PLACE_LEARN_REAL_H
#define MOIRAI_PLACE_LEARN_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef LEARN_DOUBLE
typedef double learn_real;
#else
typedef float learn_real;
#endif

/* c (m x n) = a' b', or c += a' b' with `add`. a' is a (m x k), or the transpose of a (k x m); b' likewise.
 * All matrices are row-major without gaps. One thread: the same sum on every call. */
typedef enum learn_form { LEARN_PLAIN, LEARN_TURNED } learn_form;
void learn_product(learn_form a_form, learn_form b_form, int32_t m, int32_t n, int32_t k, const learn_real *a,
                   const learn_real *b, bool add, learn_real *c);

/* While a placer computes, OpenBLAS may not share one product out over threads: sums would depend on their number.
 * learn_blas_begin returns what learn_blas_end puts back. */
int learn_blas_begin(void);
void learn_blas_end(int before);

#endif
