/* The model as text, for any solver: CPLEX LP format and free MPS.
 *
 * All coefficients are whole numbers (grid units and bytes), so the text is exact. Names are as the builders made them:
 * rows start with their equation's number. The opening comment says what a unit is and how to come back
 * (moirai import). Both writers go through one growing buffer and one atomic write. O(nonzeros). */
#include "place/milp/milp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void header(FILE *out, const milp_program *g, char mark)
{
    char name[64];
    snprintf(name, sizeof name, "%s", g->p->name);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < 32 || (unsigned char)*c > 126)
            *c = '?';
    fprintf(out, "%c moirai placement of %s, formulation %s, equations 4a to 4g of the paper in the row names\n", mark,
            name, moirai_formulation_name(g->formulation));
    fprintf(out, "%c times are in units of %" PRId64 " ns, memory in bytes; x_i_k: operator i runs on device k\n", mark,
            g->d->grid_ns);
    fprintf(out,
            "%c d_i_j: i ends before j starts; S_, C_: start and finish; T: makespan. Read the answer with: moirai "
            "import\n",
            mark);
}

/* Lines stay short: some readers stop at 255 or 560 characters. */
static void lp_terms(FILE *out, const milp_model *m, int64_t row)
{
    for (int64_t z = m->row_off[row]; z < m->row_off[row + 1]; z++) {
        double v = m->value[z];
        fprintf(out, "%s %c ", (z - m->row_off[row]) % 3 == 2 ? "\n " : "", v < 0 ? '-' : '+');
        if (v != 1 && v != -1)
            fprintf(out, "%.17g ", v < 0 ? -v : v);
        fputs(milp_col_name(m, m->index[z]), out);
    }
}

static void write_lp(FILE *out, const milp_program *g)
{
    const milp_model *m = &g->m;
    header(out, g, '\\');
    fprintf(out, "Minimize\n obj: %s\nSubject To\n", milp_col_name(m, 0));
    for (int64_t r = 0; r < m->n_rows; r++) {
        fprintf(out, " %s:", milp_row_name(m, r));
        lp_terms(out, m, r);
        fprintf(out, " %s %.17g\n", m->row_sense[r] == '<' ? "<=" : m->row_sense[r] == '>' ? ">=" : "=", m->row_rhs[r]);
    }
    fprintf(out, "Bounds\n");
    for (int32_t c = 0; c < m->n_cols; c++)
        if (m->col_kind[c] != MILP_BINARY)
            fprintf(out, " %.17g <= %s <= %.17g\n", m->col_lo[c], milp_col_name(m, c), m->col_hi[c]);
    fprintf(out, "Binaries\n");
    for (int32_t c = 0; c < m->n_cols; c++)
        if (m->col_kind[c] == MILP_BINARY)
            fprintf(out, " %s\n", milp_col_name(m, c));
    fprintf(out, "End\n");
}

/* MPS is by column: turn the rows around. */
typedef struct columns {
    int64_t *off, *row;
    double *value;
} columns;

static int transpose(columns *t, const milp_model *m)
{
    t->off = util_alloc((size_t)m->n_cols + 2, sizeof *t->off);
    t->row = util_alloc((size_t)m->n_nonzeros, sizeof *t->row);
    t->value = util_alloc((size_t)m->n_nonzeros, sizeof *t->value);
    if (!t->off || !t->row || !t->value)
        return MOIRAI_EFAIL;
    for (int64_t z = 0; z < m->n_nonzeros; z++)
        t->off[m->index[z] + 2]++;
    for (int32_t c = 0; c < m->n_cols; c++)
        t->off[c + 2] += t->off[c + 1];
    for (int64_t r = 0; r < m->n_rows; r++)
        for (int64_t z = m->row_off[r]; z < m->row_off[r + 1]; z++) {
            int64_t at = t->off[m->index[z] + 1]++;
            t->row[at] = r;
            t->value[at] = m->value[z];
        }
    return 0;
}

static void mps_columns(FILE *out, const milp_model *m, const columns *t)
{
    bool inside = false;
    fprintf(out, "COLUMNS\n");
    for (int32_t c = 0; c < m->n_cols; c++) {
        bool integer = m->col_kind[c] == MILP_BINARY;
        if (integer != inside)
            fprintf(out, "  MARKER 'MARKER' %s\n", integer ? "'INTORG'" : "'INTEND'");
        inside = integer;
        if (c == 0)
            fprintf(out, " %s obj 1\n", milp_col_name(m, c));
        for (int64_t z = t->off[c]; z < t->off[c + 1]; z++)
            fprintf(out, " %s %s %.17g\n", milp_col_name(m, c), milp_row_name(m, t->row[z]), t->value[z]);
    }
    if (inside)
        fprintf(out, "  MARKER 'MARKER' 'INTEND'\n");
}

static void write_mps(FILE *out, const milp_program *g, const columns *t)
{
    const milp_model *m = &g->m;
    header(out, g, '*');
    fprintf(out, "NAME moirai\nROWS\n N obj\n");
    for (int64_t r = 0; r < m->n_rows; r++)
        fprintf(out, " %c %s\n",
                m->row_sense[r] == '<'   ? 'L'
                : m->row_sense[r] == '>' ? 'G'
                                         : 'E',
                milp_row_name(m, r));
    mps_columns(out, m, t);
    fprintf(out, "RHS\n");
    for (int64_t r = 0; r < m->n_rows; r++)
        if (m->row_rhs[r] != 0)
            fprintf(out, " RHS %s %.17g\n", milp_row_name(m, r), m->row_rhs[r]);
    fprintf(out, "BOUNDS\n");
    for (int32_t c = 0; c < m->n_cols; c++) {
        const char *name = milp_col_name(m, c);
        if (m->col_kind[c] == MILP_BINARY)
            fprintf(out, " UP BND %s 1\n", name);
        else
            fprintf(out, " LO BND %s %.17g\n UP BND %s %.17g\n", name, m->col_lo[c], name, m->col_hi[c]);
    }
    fprintf(out, "ENDATA\n");
}

static int deliver(const milp_program *g, const char *path, const columns *t)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return moirai_error(MOIRAI_EFAIL, "%s: out of memory", path);
    if (t)
        write_mps(out, g, t);
    else
        write_lp(out, g);
    bool bad = ferror(out);
    bad = fclose(out) || bad;
    int rc = bad ? moirai_error(MOIRAI_EFAIL, "%s: out of memory", path) : util_file_write(path, text, length);
    free(text);
    return rc;
}

int milp_write_lp(const milp_program *g, const char *path)
{
    return deliver(g, path, NULL);
}

int milp_write_mps(const milp_program *g, const char *path)
{
    columns t = {0};
    int rc = transpose(&t, &g->m);
    rc = rc ? rc : deliver(g, path, &t);
    free(t.off);
    free(t.row);
    free(t.value);
    return rc;
}

int moirai_milp_export(const moirai_problem *p, moirai_formulation f, const char *format, const moirai_plan *start,
                       int64_t max_rows, const char *path, moirai_milp_size *size, int64_t *unit_ns)
{
    bool lp = !strcmp(format, "lp");
    if (!lp && strcmp(format, "mps"))
        return moirai_error(MOIRAI_EUSAGE, "format '%s': lp or mps", format);
    milp_program *g;
    int rc = milp_program_new(&g, p, f, start ? start->makespan_ns : -1, max_rows, NULL);
    if (rc)
        return rc;
    rc = lp ? milp_write_lp(g, path) : milp_write_mps(g, path);
    if (size) {
        *size = (moirai_milp_size){g->m.n_rows, g->m.n_cols, 0, g->m.n_nonzeros};
        for (int32_t c = 0; c < g->m.n_cols; c++)
            size->binaries += g->m.col_kind[c] == MILP_BINARY;
    }
    if (unit_ns)
        *unit_ns = g->d->grid_ns;
    milp_program_free(g);
    return rc;
}
