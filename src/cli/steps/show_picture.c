/* A plan drawn in text: a row per device, time to the right. Each cell is a slice of the makespan; the fuller the
 * block, the more of the slice the device computes; a second row shows in the same way what it receives. O(V + E +
 * cells). */
#include "cli/steps/steps.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST_CELLS = 30, MOST_CELLS = 160, SHADES = 5 };

static int cells_wide(int name_width)
{
    struct winsize w;
    const char *columns = getenv("COLUMNS");
    int wide = 80;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col)
        wide = w.ws_col;
    else if (columns && atoi(columns) > 0)
        wide = atoi(columns);
    wide -= name_width + 10;
    return wide < LEAST_CELLS ? LEAST_CELLS : wide > MOST_CELLS ? MOST_CELLS : wide;
}

/* Add [start, finish) to the cells that it meets, in nanoseconds. */
static void cover(double *cell, int n, double width_ns, int64_t start_ns, int64_t finish_ns)
{
    double from = (double)start_ns / width_ns, to = (double)finish_ns / width_ns;
    for (int c = (int)from; c < n && c < to; c++) {
        double a = from > c ? from : c, b = to < c + 1 ? to : c + 1;
        if (b > a)
            cell[c] += b - a;
    }
}

static void draw(const cli_context *cli, const double *cell, int n, const char *const shade[SHADES])
{
    char line[MOST_CELLS * 4 + 1] = "";
    size_t used = 0;
    for (int c = 0; c < n; c++) {
        int s = cell[c] <= 0 ? 0 : cell[c] >= 0.99 ? SHADES - 1 : 1 + (int)(cell[c] * (SHADES - 2) - 1e-9);
        used += (size_t)snprintf(line + used, sizeof line - used, "%s", shade[s < SHADES ? s : SHADES - 1]);
    }
    cli_print(cli, "%s", line);
}

void cli_show_picture(cli_context *cli, const moirai_problem *p, const moirai_plan *plan)
{
    static const char *const blocks[SHADES] = {" ", "░", "▒", "▓", "█"};
    static const char *const dashes[SHADES] = {" ", "╌", "╌", "─", "━"};
    static const char *const ascii[SHADES] = {" ", ".", ":", "+", "#"};
    static const char *const ascii_dashes[SHADES] = {" ", ".", "-", "-", "="};
    setlocale(LC_CTYPE, "");
    bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    int width = 6;
    for (int32_t k = 0; k < p->n_devices; k++)
        width = (int)strlen(p->device_name[k]) > width ? (int)strlen(p->device_name[k]) : width;
    width = width > 24 ? 24 : width;
    int n = cells_wide(width);
    double slice_ns = plan->makespan_ns > 0 ? (double)plan->makespan_ns / n : 1;
    double *cell = calloc((size_t)p->n_devices * (size_t)n * 2, sizeof *cell);
    int32_t left_out, *ops = cli_ops_on(&left_out, plan);
    if (!cell || !ops) { /* a picture is not worth a failure */
        free(cell);
        free(ops);
        return;
    }
    for (int32_t i = 0; i < plan->n_ops; i++)
        cover(cell + (size_t)plan->op_device[i] * (size_t)n * 2, n, slice_ns, plan->op_start_ns[i],
              plan->op_finish_ns[i]);
    for (int32_t i = 0; i < plan->n_transfers; i++)
        cover(cell + ((size_t)plan->transfer[i].to * 2 + 1) * (size_t)n, n, slice_ns, plan->transfer[i].start_ns,
              plan->transfer[i].finish_ns);
    cli_print(cli, "\n");
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (ops[k] == 0 && left_out > 0)
            continue;
        const double *row = cell + (size_t)k * (size_t)n * 2;
        cli_print(cli, "%-*.*s |", width, width, p->device_name[k]);
        draw(cli, row, n, utf8 ? blocks : ascii);
        cli_print(cli, "| %3.0f %%\n%*s |", 100 * cli_load_of(plan, k), width, "");
        draw(cli, row + n, n, utf8 ? dashes : ascii_dashes);
        cli_print(cli, "|\n");
    }
    cli_print(cli, "%*s  0%*s\n", width, "", n - 1, cli_human_ns(plan->makespan_ns).s);
    cli_print(cli, "%*s  %s computing, %s receiving; lighter: part of the time\n", width, "", utf8 ? "█" : "#",
              utf8 ? "━" : "=");
    free(cell);
    free(ops);
}
