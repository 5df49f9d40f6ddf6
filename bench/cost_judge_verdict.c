/* What is asked of the cost models beside what the judge found, row by row: the last table, written while the others
 * are. Limits are docs/cost-models.md's. */
#include "cost_judge.h"

#include <stdio.h>
#include <string.h>

#define MOST_ROWS 256

static struct {
    const char *what, *of, *where;
    double found, asked;
    bool at_least;
} row[MOST_ROWS];
static int n_rows;

static void note(const char *what, const char *of, const char *where, double found, double asked, bool at_least)
{
    if (n_rows == MOST_ROWS)
        return;
    row[n_rows].what = what;
    row[n_rows].of = of;
    row[n_rows].where = where;
    row[n_rows].found = found;
    row[n_rows].asked = asked;
    row[n_rows++].at_least = at_least;
}

void cost_judge_at_most(const char *what, const char *of, const char *where, double found, double asked)
{
    note(what, of, where, found, asked, false);
}

void cost_judge_at_least(const char *what, const char *of, double found, double asked)
{
    note(what, of, "", found, asked, true);
}

double cost_judge_class_limit(int k)
{
    return cost_class_is_product((cost_class)k) ? 10 : 15;
}

/* As printed: a figure that reads as its limit meets it. */
static bool is_met(int i)
{
    return row[i].at_least ? row[i].found >= row[i].asked - 0.5 : row[i].found < row[i].asked + 0.05;
}

bool cost_judge_missed(const char *what, int k, const char *where, double *found, double *asked)
{
    for (int i = 0; i < n_rows; i++)
        if (!strcmp(row[i].what, what) && !strcmp(row[i].of, cost_class_name((cost_class)k)) &&
            !strcmp(row[i].where, where) && !is_met(i)) {
            *found = row[i].found;
            *asked = row[i].asked;
            return true;
        }
    return false;
}

void cost_judge_verdict(void)
{
    int met = 0;
    printf("\nAsked and found, in %%, on a GPU left out\n\n| what | of | found | asked | |\n|---|---|---|---|---|\n");
    for (int i = 0; i < n_rows; i++) {
        bool ok = is_met(i);
        met += ok;
        printf("| %s | %s%s%s | %.*f | %s%g | %s |\n", row[i].what, row[i].of, *row[i].where ? ", " : "", row[i].where,
               row[i].at_least ? 0 : 1, row[i].found, row[i].at_least ? "at least " : "", row[i].asked,
               ok ? "met" : "**missed**");
    }
    printf("| **all** | | **%d met** | of %d | |\n", met, n_rows);
}
