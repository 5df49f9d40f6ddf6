/* Bounds by every method, in a table: one that can't be computed is one line, and the others still stand. */
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>

#include "util/util.h"

void cli_bound_find(cli_bound_found *f, const moirai_bound *b, const moirai_problem *p, const moirai_budget *budget)
{
    double begun = util_seconds();
    *f = (cli_bound_found){.bound = b, .lower_ns = MOIRAI_UNKNOWN};
    f->result = b->find(&f->lower_ns, p, budget);
    f->seconds = util_seconds() - begun;
    if (f->result) {
        f->lower_ns = MOIRAI_UNKNOWN;
        snprintf(f->error, sizeof f->error, "%s", moirai_error_message());
    }
}

static void show_one(cli_context *cli, yyjson_mut_val *list, const cli_bound_found *f, bool best)
{
    bool known = f->lower_ns != MOIRAI_UNKNOWN;
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_str(cli->doc, object, "name", f->bound->name);
    if (known)
        yyjson_mut_obj_add_int(cli->doc, object, "lower_bound_ns", f->lower_ns);
    else
        yyjson_mut_obj_add_null(cli->doc, object, "lower_bound_ns");
    yyjson_mut_obj_add_real(cli->doc, object, "seconds", f->seconds);
    yyjson_mut_obj_add_bool(cli->doc, object, "best", best);
    if (f->result)
        yyjson_mut_obj_add_strcpy(cli->doc, object, "error", f->error);
    cli_print(cli, "%-14s %14s %8.3f s%s %s%s\n", f->bound->name, known ? cli_human_ns(f->lower_ns).s : "-", f->seconds,
              best ? "*" : " ", f->result ? "failed: " : f->bound->summary, f->error);
}

int cli_bounds_show(cli_context *cli, const cli_bound_found *f, int n)
{
    int best = -1, failed = -1;
    for (int i = 0; i < n; i++) {
        if (f[i].result)
            failed = i;
        else if (f[i].lower_ns != MOIRAI_UNKNOWN && (best < 0 || f[i].lower_ns > f[best].lower_ns))
            best = i;
    }
    if (best < 0 && failed >= 0)
        return moirai_error(f[failed].result, "bound '%s': %s", f[failed].bound->name, f[failed].error);
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    cli_print(cli, "%-14s %14s %10s  %s\n", "bound", "value", "time", "by");
    for (int i = 0; i < n; i++)
        show_one(cli, list, &f[i], i == best);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "bounds", list);
    if (best >= 0)
        yyjson_mut_obj_add_int(cli->doc, cli->result, "lower_bound_ns", f[best].lower_ns);
    return 0;
}
