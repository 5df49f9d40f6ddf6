/* moirai compare's table, for people, for scripts and for spreadsheets. */
#include "cli/steps/compare.h"

#include <string.h>
#include <yyjson.h>

#include "util/text.h"

/* How much longer than the best, and how far from the best bound; shares. */
static double longer(const cli_comparison *c, const cli_child_report *r)
{
    int64_t best = c->row[c->best].report.makespan_ns;
    return best > 0 ? (double)(r->makespan_ns - best) / (double)best : 0;
}

static double gap(const cli_comparison *c, const cli_child_report *r)
{
    return r->makespan_ns > 0 ? (double)(r->makespan_ns - c->lower_bound_ns) / (double)r->makespan_ns : 0;
}

static int64_t held(const moirai_problem *p, const cli_child_report *r, int32_t k)
{
    return p->memory == MOIRAI_MEMORY_PEAK ? r->peak_bytes[k] : r->memory_bytes[k];
}

/* ---- for people ---- */

static int name_width(const cli_comparison *c)
{
    int width = 6;
    for (int i = 0; i < c->n; i++)
        width = (int)strlen(c->row[i].title) > width ? (int)strlen(c->row[i].title) : width;
    return width;
}

static void print_row(const cli_context *cli, const cli_comparison *c, const moirai_problem *p, int i, int width)
{
    const cli_row *row = &c->row[i];
    const cli_child_report *r = &row->report;
    cli_print(cli, "%-*s ", width, row->title);
    if (!row->ran || r->result) {
        cli_print(cli, "%13s  %s\n", cli_compare_status(row), row->ran ? r->message : "interrupted before its turn");
        return;
    }
    cli_print(cli, "%13s%s ", cli_human_ns(r->makespan_ns).s, i == c->best ? "*" : " ");
    cli_print(cli, "%8.1f %% %8s ", 100 * longer(c, r), cli_human_gap(gap(c, r)).s);
    cli_print(cli, "%12s %9s ", cli_human_ns(r->generation_ns).s, cli_human_bytes(r->process_bytes).s);
    cli_print(cli, "%9s %9s", cli_human_count(r->transfers).s, cli_human_bytes(r->transfer_bytes).s);
    for (int32_t k = 0; k < p->n_devices; k++)
        cli_print(cli, " %9s", cli_human_bytes(held(p, r, k)).s);
    cli_print(cli, "%s\n", r->stopped ? "  stopped early" : "");
}

static void print_table(const cli_context *cli, const cli_comparison *c, const moirai_problem *p)
{
    int width = name_width(c);
    cli_print(cli, "%s: %s operators, %d devices\n\n", p->name, cli_human_count(p->n_ops).s, p->n_devices);
    cli_print(cli, "%-*s %13s  %10s %8s %12s %9s %9s %9s", width, "placer", "makespan", "longer", "gap", "made in",
              "process", "transfers", "sent");
    for (int32_t k = 0; k < p->n_devices; k++)
        cli_print(cli, " %9.9s", p->device_name[k]);
    cli_print(cli, "\n");
    for (int i = 0; i < c->n; i++)
        print_row(cli, c, p, i, width);
    cli_print(cli, "%-*s %13s ", width, "of", "");
    cli_print(cli, " %10s %8s %12s %9s %9s %9s", "", "", "", "", "", "");
    for (int32_t k = 0; k < p->n_devices; k++)
        cli_print(cli, " %9s", cli_human_bytes(p->device_memory_bytes[k]).s);
    cli_print(cli,
              "\n\nbound: %s by %s; longer: than the best plan (*); process: peak memory of the placer's own process, "
              "problem included\n",
              cli_human_ns(c->lower_bound_ns).s, c->bound_by);
}

/* ---- for spreadsheets ---- */

/* Quoted where a comma, a quote or a line break would break the row; an apostrophe before what a spreadsheet would
 * compute. */
static void print_field(const cli_context *cli, const char *text)
{
    const char *quote = strpbrk(text, ",\"\n\r") ? "\"" : "";
    cli_print(cli, "%s%s", quote, util_is_formula(text) ? "'" : "");
    for (size_t n; (n = strcspn(text, "\""), text[n]); text += n + 1)
        cli_print(cli, "%.*s\"\"", (int)n, text);
    cli_print(cli, "%s%s", text, quote);
}

static void print_csv(const cli_context *cli, const cli_comparison *c, const moirai_problem *p)
{
    cli_print(
        cli,
        "placer,status,makespan_ns,longer,gap,own_lower_bound_ns,generation_ns,process_bytes,transfers,transfer_bytes");
    for (int32_t k = 0; k < p->n_devices; k++) {
        char name[160];
        snprintf(name, sizeof name, "held_bytes %s", p->device_name[k]);
        cli_print(cli, ",");
        print_field(cli, name);
    }
    cli_print(cli, ",message\n");
    for (int i = 0; i < c->n; i++) {
        const cli_row *row = &c->row[i];
        const cli_child_report *r = &row->report;
        print_field(cli, row->title);
        cli_print(cli, ",%s,", cli_compare_status(row));
        if (row->ran && !r->result) {
            cli_print(cli, "%lld,%.6f,%.6f,%lld,%lld,", (long long)r->makespan_ns, longer(c, r), gap(c, r),
                      (long long)r->lower_bound_ns, (long long)r->generation_ns);
            cli_print(cli, "%lld,%lld,%lld", (long long)r->process_bytes, (long long)r->transfers,
                      (long long)r->transfer_bytes);
        } else {
            cli_print(cli, ",,,,,,,");
        }
        for (int32_t k = 0; k < p->n_devices; k++)
            row->ran && !r->result ? cli_print(cli, ",%lld", (long long)held(p, r, k)) : cli_print(cli, ",");
        cli_print(cli, ",");
        print_field(cli, row->ran ? r->message : "");
        cli_print(cli, "\n");
    }
}

/* ---- for scripts ---- */

static void add_plan(cli_context *cli, yyjson_mut_val *o, const cli_comparison *c, const cli_child_report *r,
                     const moirai_problem *p)
{
    yyjson_mut_doc *d = cli->doc;
    yyjson_mut_obj_add_int(d, o, "makespan_ns", r->makespan_ns);
    yyjson_mut_obj_add_real(d, o, "longer", longer(c, r));
    yyjson_mut_obj_add_real(d, o, "gap", gap(c, r));
    yyjson_mut_obj_add_int(d, o, "lower_bound_ns", r->lower_bound_ns);
    yyjson_mut_obj_add_int(d, o, "generation_ns", r->generation_ns);
    yyjson_mut_obj_add_int(d, o, "transfers", r->transfers);
    yyjson_mut_obj_add_int(d, o, "transfer_bytes", r->transfer_bytes);
    yyjson_mut_val *devices = yyjson_mut_obj_add_arr(d, o, "devices");
    for (int32_t k = 0; k < p->n_devices; k++) {
        yyjson_mut_val *device = yyjson_mut_arr_add_obj(d, devices);
        yyjson_mut_obj_add_strcpy(d, device, "name", p->device_name[k]);
        yyjson_mut_obj_add_int(d, device, "ops", r->ops[k]);
        yyjson_mut_obj_add_int(d, device, "busy_ns", r->busy_ns[k]);
        yyjson_mut_obj_add_int(d, device, "memory_bytes", r->memory_bytes[k]);
        if (r->peak_bytes[k] != MOIRAI_UNKNOWN)
            yyjson_mut_obj_add_int(d, device, "peak_bytes", r->peak_bytes[k]);
        yyjson_mut_obj_add_int(d, device, "capacity_bytes", p->device_memory_bytes[k]);
    }
}

static void add_result(cli_context *cli, const cli_comparison *c, const moirai_problem *p)
{
    yyjson_mut_doc *d = cli->doc;
    yyjson_mut_obj_add_strcpy(d, cli->result, "problem", p->name);
    yyjson_mut_obj_add_int(d, cli->result, "ops", p->n_ops);
    yyjson_mut_obj_add_int(d, cli->result, "lower_bound_ns", c->lower_bound_ns);
    yyjson_mut_obj_add_strcpy(d, cli->result, "bound_by", c->bound_by);
    yyjson_mut_val *rows = yyjson_mut_obj_add_arr(d, cli->result, "placers");
    for (int i = 0; i < c->n; i++) {
        const cli_row *row = &c->row[i];
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(d, rows);
        yyjson_mut_obj_add_strcpy(d, o, "name", row->title);
        yyjson_mut_obj_add_str(d, o, "status", cli_compare_status(row));
        yyjson_mut_obj_add_bool(d, o, "best", i == c->best);
        if (row->ran)
            yyjson_mut_obj_add_int(d, o, "process_bytes", row->report.process_bytes);
        if (row->ran && row->report.result)
            yyjson_mut_obj_add_strcpy(d, o, "message", row->report.message);
        else if (row->ran)
            add_plan(cli, o, c, &row->report, p);
    }
}

void cli_compare_show(cli_context *cli, const cli_comparison *c, const moirai_problem *p, bool csv)
{
    csv ? print_csv(cli, c, p) : print_table(cli, c, p);
    add_result(cli, c, p);
}
