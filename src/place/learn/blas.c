/* The one file that calls OpenBLAS. Without it the learning placers are there, and say why they do not run. */
#include "place/learn/real.h"

#if MOIRAI_HAVE_OPENBLAS
#include <cblas.h>
#endif

bool learn_available(const char **why)
{
    *why = "built without OpenBLAS (libopenblas-dev)";
    return MOIRAI_HAVE_OPENBLAS;
}

#if MOIRAI_HAVE_OPENBLAS

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

#else

void learn_product(learn_form a_form, learn_form b_form, int32_t m, int32_t n, int32_t k, const learn_real *a,
                   const learn_real *b, bool add, learn_real *c)
{
    (void)a_form, (void)b_form, (void)m, (void)n, (void)k, (void)a, (void)b, (void)add, (void)c;
}

int learn_blas_begin(void)
{
    return 1;
}

void learn_blas_end(int before)
{
    (void)before;
}

#endif
