/* The abstract model: columns, rows in CSR form, names. It knows nothing of solvers or of placement.
 *
 * Builders add terms to one row under construction and then close it; terms of one column are merged (operators of a
 * group share columns, so this does happen). In a dry run rows are counted and forgotten: that is how a model that
 * would not fit is refused before its memory is taken. The first failure sticks, so builders need no checks of their
 * own; whoever owns the model looks at `failed` once. */
#include "place/milp/milp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t add_name(milp_model *m, const char *format, va_list args)
{
    char name[256];
    int length = vsnprintf(name, sizeof name, format, args);
    if (length < 0 || length >= (int)sizeof name)
        length = (int)strlen(name);
    int64_t at = m->text_used;
    if (util_grow(&m->text, &m->cap_text, (size_t)(at + length + 1), 1)) {
        m->failed = MOIRAI_EFAIL;
        return 0;
    }
    memcpy(m->text + at, name, (size_t)length + 1);
    m->text_used += length + 1;
    return at;
}

int32_t milp_col(milp_model *m, milp_kind kind, double lo, double hi, const char *format, ...)
{
    if (m->failed)
        return 0;
    size_t need = (size_t)m->n_cols + 1;
    if (need > INT32_MAX / 2) {
        m->failed = moirai_error(MOIRAI_ELIMIT, "milp: more than %d columns", INT32_MAX / 2);
        return 0;
    }
    if (util_grow(&m->col_lo, &m->cap_col[0], need, sizeof *m->col_lo) ||
        util_grow(&m->col_hi, &m->cap_col[1], need, sizeof *m->col_hi) ||
        util_grow(&m->col_kind, &m->cap_col[2], need, sizeof *m->col_kind) ||
        util_grow(&m->col_name, &m->cap_col[3], need, sizeof *m->col_name) ||
        util_grow(&m->slot, &m->cap_slot, need, sizeof *m->slot)) {
        m->failed = MOIRAI_EFAIL;
        return 0;
    }
    int32_t col = m->n_cols++;
    m->col_lo[col] = lo;
    m->col_hi[col] = hi;
    m->col_kind[col] = (uint8_t)kind;
    m->slot[col] = -1;
    m->col_name[col] = 0;
    if (!m->dry) {
        va_list args;
        va_start(args, format);
        m->col_name[col] = add_name(m, format, args);
        va_end(args);
    }
    return col;
}

void milp_term(milp_model *m, int32_t col, double value)
{
    if (m->failed || col < 0 || value == 0)
        return;
    if (m->slot[col] >= 0) {
        m->term_value[m->slot[col]] += value;
        return;
    }
    size_t need = (size_t)m->n_terms + 1;
    if (util_grow(&m->term_col, &m->cap_term[0], need, sizeof *m->term_col) ||
        util_grow(&m->term_value, &m->cap_term[1], need, sizeof *m->term_value)) {
        m->failed = MOIRAI_EFAIL;
        return;
    }
    m->slot[col] = m->n_terms;
    m->term_col[m->n_terms] = col;
    m->term_value[m->n_terms++] = value;
}

void milp_constant(milp_model *m, double value)
{
    m->constant += value;
}

/* Rows that hold at the columns' bounds say nothing; they come up often at the ends of time windows. */
static bool is_idle(const milp_model *m, char sense, double rhs)
{
    if (sense == '=')
        return m->n_terms == 0 && rhs == 0;
    double worst = 0;
    for (int32_t i = 0; i < m->n_terms; i++) {
        double v = sense == '<' ? m->term_value[i] : -m->term_value[i];
        worst += v * (v > 0 ? m->col_hi[m->term_col[i]] : m->col_lo[m->term_col[i]]);
    }
    return sense == '<' ? worst <= rhs : worst <= -rhs;
}

static void store_row(milp_model *m, char sense, double rhs, milp_unit unit)
{
    size_t need = (size_t)m->n_rows + 2, need_nz = (size_t)(m->n_nonzeros + m->n_terms);
    if (util_grow(&m->row_sense, &m->cap_row[0], need, sizeof *m->row_sense) ||
        util_grow(&m->row_rhs, &m->cap_row[1], need, sizeof *m->row_rhs) ||
        util_grow(&m->row_unit, &m->cap_row[2], need, sizeof *m->row_unit) ||
        util_grow(&m->row_name, &m->cap_row[3], need, sizeof *m->row_name) ||
        util_grow(&m->row_off, &m->cap_row[4], need, sizeof *m->row_off) ||
        util_grow(&m->index, &m->cap_nz[0], need_nz, sizeof *m->index) ||
        util_grow(&m->value, &m->cap_nz[1], need_nz, sizeof *m->value)) {
        m->failed = MOIRAI_EFAIL;
        return;
    }
    int64_t row = m->n_rows, at = m->n_nonzeros;
    m->row_sense[row] = sense;
    m->row_rhs[row] = rhs;
    m->row_unit[row] = (uint8_t)unit;
    m->row_off[row] = at;
    for (int32_t i = 0; i < m->n_terms; i++)
        if (m->term_value[i] != 0) {
            m->index[at] = m->term_col[i];
            m->value[at++] = m->term_value[i];
        }
    m->row_off[row + 1] = at;
    m->n_rows++;
    m->n_nonzeros = at;
}

void milp_row(milp_model *m, char sense, double rhs, milp_unit unit, const char *format, ...)
{
    if (m->failed)
        return;
    rhs -= m->constant;
    if (!is_idle(m, sense, rhs)) {
        if (m->dry) {
            m->n_rows++;
            m->n_nonzeros += m->n_terms;
        } else {
            store_row(m, sense, rhs, unit);
            if (!m->failed) {
                va_list args;
                va_start(args, format);
                m->row_name[m->n_rows - 1] = add_name(m, format, args);
                va_end(args);
            }
        }
    }
    for (int32_t i = 0; i < m->n_terms; i++)
        m->slot[m->term_col[i]] = -1;
    m->n_terms = 0;
    m->constant = 0;
}

const char *milp_col_name(const milp_model *m, int32_t col)
{
    return m->text + m->col_name[col];
}

const char *milp_row_name(const milp_model *m, int64_t row)
{
    return m->text + m->row_name[row];
}

void milp_model_free(milp_model *m)
{
    free(m->col_lo);
    free(m->col_hi);
    free(m->col_kind);
    free(m->col_name);
    free(m->row_sense);
    free(m->row_rhs);
    free(m->row_unit);
    free(m->row_name);
    free(m->row_off);
    free(m->index);
    free(m->value);
    free(m->text);
    free(m->term_col);
    free(m->term_value);
    free(m->slot);
    memset(m, 0, sizeof *m);
}
