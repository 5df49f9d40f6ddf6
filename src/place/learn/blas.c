/* The one file that calls OpenBLAS. */
#include "place/learn/real.h"

#include <cblas.h>

void learn_product(learn_form a_form, learn_form b_form, int32_t m, int32_t n, int32_t k, const learn_real *a,
                   const learn_real *b, bool add, learn_real *c)
{
    enum CBLAS_TRANSPOSE ta = a_form == LEARN_TURNED ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE tb = b_form == LEARN_TURNED ? CblasTrans : CblasNoTrans;
    int32_t lda = a_form == LEARN_TURNED ? m : k, ldb = b_form == LEARN_TURNED ? k : n;
    if (m == 0 || n == 0 || k == 0)
        return;
#ifdef LEARN_DOUBLE
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, add, c, n);
#else
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, add, c, n);
#endif
}

int learn_blas_begin(void)
{
    int before = openblas_get_num_threads();
    if (before != 1)
        openblas_set_num_threads(1);
    return before;
}

void learn_blas_end(int before)
{
    if (before != 1)
        openblas_set_num_threads(before);
}
