/* Solution files of other solvers: HiGHS, CBC, Gurobi, SCIP, GLPK.
 *
 * They all are lines with a column's name and, after it, its value; headers differ and tell the solver and its claim.
 * Only two kinds of columns matter: x (devices) and S (order). Columns that a file leaves out are 0 (CBC and SCIP write
 * nonzeros only). The numbers in our names make the model itself unnecessary here. Nothing in a file is trusted:
 * devices are checked, times come from the simulator, and "optimal" is the file's word, not a proof. O(length). */
#include "place/milp/milp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    const moirai_problem *p;
    const char *path;
    milp_answer a;
    moirai_milp_claim claim;
    double *share; /* [op]: value of the largest x so far */
    int64_t n_used;
} reading;

/* ---- names ---- */

static bool number_at(const char **text, int64_t *out)
{
    if (**text < '0' || **text > '9')
        return false;
    char *end;
    long long v = strtoll(*text, &end, 10);
    *text = end;
    *out = v;
    return v >= 0 && v < INT32_MAX;
}

/* x_<op>.<name>_<device>.<name> */
static int take_x(reading *r, const char *name, double value)
{
    int64_t op, device;
    const char *at = name + 2;
    if (!number_at(&at, &op) || !(at = strchr(at, '_')) || (at++, !number_at(&at, &device)))
        return moirai_error(MOIRAI_EINPUT, "%s: '%s' is no column of a moirai model", r->path, name);
    if (op >= r->p->n_ops || device >= r->p->n_devices)
        return moirai_error(MOIRAI_EINPUT, "%s: column '%s': the problem has %d operators and %d devices", r->path,
                            name, r->p->n_ops, r->p->n_devices);
    r->n_used++;
    if (value > 0.5 && value > r->share[op]) {
        r->share[op] = value;
        r->a.device[op] = (int32_t)device;
    }
    return 0;
}

/* S_<op>.<name> or S_q<number>.<name> */
static int take_start(reading *r, const char *name, double value)
{
    int64_t number;
    const char *at = name + 2;
    bool flow = *at == 'q';
    at += flow;
    if (!number_at(&at, &number))
        return moirai_error(MOIRAI_EINPUT, "%s: '%s' is no column of a moirai model", r->path, name);
    number += flow ? r->p->n_ops : 0;
    if (number >= (flow ? r->a.n_tasks : r->p->n_ops))
        return moirai_error(MOIRAI_EINPUT, "%s: column '%s' is not in this problem", r->path, name);
    r->n_used++;
    r->a.start[number] = value;
    return 0;
}

/* ---- claims ---- */

static void claim_number(reading *r, const char *line, const char *after)
{
    const char *at = strstr(line, after);
    char *end;
    if (!at)
        return;
    at += strlen(after);
    while (*at == ' ' || *at == ':' || *at == '=' || *at == '\t')
        at++;
    double v = strtod(at, &end);
    if (end != at && isfinite(v)) {
        r->claim.objective = v;
        r->claim.has_objective = true;
    }
}

static void claim_status(reading *r, const char *solver, const char *status)
{
    while (*status == ' ' || *status == ':' || *status == '\t')
        status++;
    snprintf(r->claim.solver, sizeof r->claim.solver, "%s", solver);
    snprintf(r->claim.status, sizeof r->claim.status, "%.60s", status);
    r->claim.status[strcspn(r->claim.status, "\r\n")] = '\0';
    /* "Stopped on time - objective value", "infeasible", "Time limit reached" claim nothing. */
    r->claim.optimal = !strncasecmp(status, "optimal", 7) || !strncmp(status, "INTEGER OPTIMAL", 15);
}

static void read_claim(reading *r, const char *line, const char *before)
{
    if (!strncmp(before, "Model status", 12))
        claim_status(r, "highs", line);
    else if (!strncmp(line, "Model status", 12) && strlen(line) > 14)
        claim_status(r, "highs", line + 12);
    else if (!strncmp(line, "Objective ", 10))
        claim_number(r, line, "Objective ");
    else if (strstr(line, "objective value ") && strstr(line, " - ")) {
        claim_status(r, "cbc", line);
        claim_number(r, line, "objective value ");
    } else if (!strncmp(line, "# Objective value", 17)) {
        if (r->claim.solver[0] == '\0')
            snprintf(r->claim.solver, sizeof r->claim.solver, "gurobi");
        claim_number(r, line, "# Objective value");
    } else if (!strncmp(line, "solution status:", 16))
        claim_status(r, "scip", line + 16);
    else if (!strncmp(line, "objective value:", 16))
        claim_number(r, line, "objective value:");
    else if (!strncmp(line, "Status:", 7))
        claim_status(r, "glpk", line + 7);
    else if (!strncmp(line, "Objective:", 10) && strchr(line, '='))
        claim_number(r, strchr(line, '='), "=");
}

/* ---- lines ---- */

/* The next word from *at; false at the end of the text. Lines do not matter: GLPK breaks them after long names. */
static bool next_word(const char **at, char *word, size_t room)
{
    *at += strspn(*at, " \t\r\n");
    size_t n = strcspn(*at, " \t\r\n");
    snprintf(word, room, "%.*s", (int)UTIL_MIN(n, room - 1), *at);
    *at += n;
    return n > 0;
}

static int read_columns(reading *r, const char *text)
{
    char word[300], value[64];
    int rc = 0;
    while (!rc && next_word(&text, word, sizeof word)) {
        if ((word[0] != 'x' && word[0] != 'S') || word[1] != '_')
            continue;
        const char *rest = text;
        char *end;
        if (!next_word(&rest, value, sizeof value) || (!strcmp(value, "*") && !next_word(&rest, value, sizeof value)))
            return moirai_error(MOIRAI_EINPUT, "%s: column '%s' has no value", r->path, word);
        double v = strtod(value, &end);
        if (end == value || *end != '\0' || !isfinite(v))
            return moirai_error(MOIRAI_EINPUT, "%s: column '%s': '%s' is no number", r->path, word, value);
        text = rest;
        rc = word[0] == 'x' ? take_x(r, word, v) : take_start(r, word, v);
    }
    return rc;
}

static void read_header(reading *r, const char *text)
{
    char before[128] = "", line[128];
    for (int n = 0; *text && n < 40; n++) { /* claims stand at the top */
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)UTIL_MIN(length, sizeof line - 1), text);
        read_claim(r, line, before);
        memcpy(before, line, sizeof before);
        text += length + (text[length] == '\n');
    }
}

/* Operators of one group share the columns of the first. */
static int spread_groups(reading *r)
{
    const moirai_problem *p = r->p;
    for (int32_t i = 0; i < p->n_ops; i++) {
        for (int32_t j = 0; j < i && r->a.device[i] == MOIRAI_NONE && p->op_group[i] != MOIRAI_NONE; j++)
            if (p->op_group[j] == p->op_group[i])
                r->a.device[i] = r->a.device[j];
        if (r->a.device[i] == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINPUT, "%s: no device for operator '%s' (%s)", r->path, p->op_name[i],
                                r->n_used == 0       ? "no columns of a moirai model"
                                : r->claim.status[0] ? r->claim.status
                                                     : "incomplete solution");
    }
    return 0;
}

static int read_text(reading *r, const char *text)
{
    const moirai_problem *p = r->p;
    int rc = milp_answer_init(&r->a, p);
    if (rc)
        return rc;
    r->share = util_alloc((size_t)p->n_ops, sizeof *r->share);
    if (!r->share)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops; i++)
        r->a.device[i] = MOIRAI_NONE;
    read_header(r, text);
    if ((rc = read_columns(r, text)))
        return rc;
    double units = r->claim.has_objective ? round(r->claim.objective) : 0, grid = (double)milp_grid_ns(p);
    r->claim.objective_ns = units >= 0 && units * grid < 9e18 ? (int64_t)(units * grid) : MOIRAI_UNKNOWN;
    return spread_groups(r);
}

static int finish(moirai_plan **out, reading *r, bool trust)
{
    const moirai_problem *p = r->p;
    int rc = milp_answer_plan(out, p, &r->a, NULL);
    if (rc)
        return moirai_error_prefix(MOIRAI_EINPUT, "%s", r->path);
    moirai_plan *plan = *out;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t lacks = milp_overflow(p, plan, k, NULL, NULL);
        if (lacks == 0)
            continue;
        moirai_plan_free(plan);
        *out = NULL;
        return moirai_error(MOIRAI_EINFEASIBLE, "%s: device '%s' is %lld bytes short in this solution", r->path,
                            p->device_name[k], (long long)lacks);
    }
    plan->lower_bound_ns = UTIL_MAX(moirai_bound_critical_path(p), moirai_bound_load(p));
    if (trust && r->claim.optimal && r->claim.has_objective && plan->makespan_ns == r->claim.objective_ns)
        plan->solver_bound_ns = r->claim.objective_ns; /* its word, proven by nobody */
    plan->lower_bound_ns = UTIL_MIN(plan->lower_bound_ns, plan->makespan_ns);
    return 0;
}

int moirai_milp_import(moirai_plan **out, const moirai_problem *p, const char *path, bool trust,
                       moirai_milp_claim *claim)
{
    *out = NULL;
    char *text;
    size_t length;
    reading r = {.p = p, .path = path, .claim.objective_ns = MOIRAI_UNKNOWN};
    int rc = util_file_read(&text, &length, path);
    if (rc)
        return rc;
    if (memchr(text, '\0', length))
        rc = moirai_error(MOIRAI_EINPUT, "%s: not a text file", path);
    rc = rc ? rc : read_text(&r, text);
    rc = rc ? rc : finish(out, &r, trust);
    if (claim)
        *claim = r.claim;
    milp_answer_free(&r.a);
    free(r.share);
    free(text);
    return rc;
}
