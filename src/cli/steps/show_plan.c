/* A plan in a few lines and one table, and the same numbers for --json. */
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static int64_t transfer_bytes(const moirai_problem *p, const moirai_plan *plan)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < plan->n_transfers; i++)
        if (__builtin_add_overflow(sum, p->tensor_bytes[plan->transfer[i].tensor], &sum))
            return INT64_MAX;
    return sum;
}

static void add_ns(cli_context *cli, const char *key, int64_t ns)
{
    if (ns < 0)
        yyjson_mut_obj_add_null(cli->doc, cli->result, key);
    else
        yyjson_mut_obj_add_int(cli->doc, cli->result, key, ns);
}

#define MOST_IDLE 8 /* devices without operators that have lines of their own */

double cli_load_of(const moirai_plan *plan, int32_t k)
{
    return plan->makespan_ns > 0 ? (double)plan->device_busy_ns[k] / (double)plan->makespan_ns : 0;
}

/* Width of a name in columns: a byte that continues a UTF-8 character takes none. */
static int columns(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

int32_t *cli_ops_on(int32_t *n_left_out, const moirai_plan *plan)
{
    int32_t *ops = calloc((size_t)plan->n_devices, sizeof *ops), idle = 0;
    for (int32_t i = 0; ops && i < plan->n_ops; i++)
        if (plan->op_device[i] >= 0 && plan->op_device[i] < plan->n_devices)
            ops[plan->op_device[i]]++;
    for (int32_t k = 0; ops && k < plan->n_devices; k++)
        idle += ops[k] == 0;
    *n_left_out = idle > MOST_IDLE ? idle : 0;
    return ops;
}

static void add_device(cli_context *cli, yyjson_mut_val *list, const moirai_problem *p, const moirai_plan *plan,
                       int32_t k, int32_t ops)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "name", p->device_name[k]);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "type", p->device_type[k]);
    yyjson_mut_obj_add_int(cli->doc, o, "ops", ops);
    yyjson_mut_obj_add_int(cli->doc, o, "busy_ns", plan->device_busy_ns[k]);
    yyjson_mut_obj_add_real(cli->doc, o, "load", cli_load_of(plan, k));
    yyjson_mut_obj_add_int(cli->doc, o, "memory_bytes", plan->device_memory_bytes[k]);
    if (plan->device_peak_bytes[k] != MOIRAI_UNKNOWN)
        yyjson_mut_obj_add_int(cli->doc, o, "peak_bytes", plan->device_peak_bytes[k]);
    yyjson_mut_obj_add_int(cli->doc, o, "capacity_bytes", p->device_memory_bytes[k]);
}

static void show_devices(cli_context *cli, const moirai_problem *p, const moirai_plan *plan)
{
    int width = 6, kind = 0; /* of names and, where there are any, types */
    int32_t left_out, *ops = cli_ops_on(&left_out, plan);
    for (int32_t k = 0; k < p->n_devices; k++) {
        width = columns(p->device_name[k]) > width ? columns(p->device_name[k]) : width;
        kind = columns(p->device_type[k]) > kind ? columns(p->device_type[k]) : kind;
    }
    kind = kind && kind < 4 ? 5 : kind ? kind + 1 : 0;
    bool peak = p->memory == MOIRAI_MEMORY_PEAK;
    cli_print(cli, "\n%-*s %-*s%10s %12s %6s %12s %12s\n", width, "device", kind, kind ? "type" : "", "operators",
              "busy", "load", peak ? "peak" : "memory", "of");
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    for (int32_t k = 0; ops && k < p->n_devices; k++) {
        int64_t held = peak ? plan->device_peak_bytes[k] : plan->device_memory_bytes[k];
        if (ops[k] > 0 || left_out == 0)
            cli_print(cli, "%s%*s %s%*s%10s %12s %4.0f %% %12s %12s\n", p->device_name[k],
                      width - columns(p->device_name[k]), "", p->device_type[k], kind - columns(p->device_type[k]), "",
                      cli_human_count(ops[k]).s, cli_human_ns(plan->device_busy_ns[k]).s, 100 * cli_load_of(plan, k),
                      cli_human_bytes(held).s, cli_human_bytes(p->device_memory_bytes[k]).s);
        add_device(cli, list, p, plan, k, ops[k]);
    }
    if (left_out > 0)
        cli_print(cli, "and %s devices without operators\n", cli_human_count(left_out).s);
    yyjson_mut_obj_add_val(cli->doc, cli->result, "devices", list);
    free(ops);
}

/* Which side of a wide gap is likely the weak one. */
static void show_weak(cli_context *cli, const moirai_plan *plan)
{
    char text[256];
    const moirai_plan_origin *o = &plan->origin;
    const char *side = moirai_plan_weak_side(plan);
    if (!side)
        return;
    moirai_plan_weak_text(plan, text, sizeof text);
    cli_print(cli, "weak side    %s\n", text);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "weak_side", side);
    yyjson_mut_val *evidence = yyjson_mut_obj_add_obj(cli->doc, cli->result, "evidence");
    yyjson_mut_obj_add_int(cli->doc, evidence, "starts_ns", o->starts_ns);
    yyjson_mut_obj_add_int(cli->doc, evidence, "rival_ns", o->rival_ns);
    yyjson_mut_obj_add_int(cli->doc, evidence, "tries", o->tries);
    yyjson_mut_obj_add_int(cli->doc, evidence, "stale", o->stale);
}

/* How much of the bound a certificate proves, and what this build can't do. */
static void show_proof(cli_context *cli, const moirai_plan *plan)
{
    if (plan->certified_bound_ns >= 0) {
        if (plan->certified_bound_ns >= plan->lower_bound_ns)
            cli_print(cli, "certified    %s, all of the bound\n", cli_human_ns(plan->certified_bound_ns).s);
        else
            cli_print(cli, "certified    %s, %.1f %% of the bound; no proof of the rest was written\n",
                      cli_human_ns(plan->certified_bound_ns).s,
                      100 * (double)plan->certified_bound_ns / (double)plan->lower_bound_ns);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "certified_bound_ns", plan->certified_bound_ns);
    }
    if (plan->uncertified) {
        yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "uncertified_because");
        cli_print(cli, "uncertified  ");
        for (uint32_t bits = plan->uncertified; bits; bits &= bits - 1) {
            const char *text = moirai_uncertified_text(bits & -bits);
            cli_print(cli, "%s%s", text, bits & (bits - 1) ? ", " : "");
            yyjson_mut_arr_add_str(cli->doc, list, text);
        }
        cli_print(cli, "\n"); /* in what is told to it, a line's end is no more than a '?' */
    }
    if (plan->solver_bound_ns >= 0) {
        cli_print(cli, "solver says  no plan below %s; that is its word, not proven\n",
                  cli_human_ns(plan->solver_bound_ns).s);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "solver_bound_ns", plan->solver_bound_ns);
    }
}

static void show_texts(cli_context *cli, const char *key, int32_t n, const char *const *text, const char *advice)
{
    if (!n)
        return;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, key);
    cli_print(cli, "%-12s ", key);
    for (int32_t i = 0; i < n; i++) {
        cli_print(cli, "%s%s", i ? ", " : "", text[i]);
        yyjson_mut_arr_add_strcpy(cli->doc, list, text[i]);
    }
    cli_print(cli, "; %s\n", advice);
}

void cli_show_plan(cli_context *cli, const moirai_problem *p, const moirai_plan *plan)
{
    const char *status = moirai_plan_is_optimal(plan) ? "optimal" : "feasible";
    double gap = moirai_plan_gap(plan);
    int64_t sent = transfer_bytes(p, plan);
    cli_print(cli, "plan         %s by %s, %s\n", p->name, plan->placer, moirai_plan_verdict(plan));
    cli_print(cli, "makespan     %s\n", cli_human_ns(plan->makespan_ns).s);
    if (plan->lower_bound_ns >= 0)
        cli_print(cli, "bound        %s, gap %s\n", cli_human_ns(plan->lower_bound_ns).s, cli_human_gap(gap).s);
    show_weak(cli, plan);
    show_proof(cli, plan);
    show_texts(cli, "assumed", p->n_assumed, p->assumed, "sizes that the model leaves open: --dim changes them");
    show_texts(cli, "uncosted", p->n_uncosted, p->uncosted,
               "nobody knows what these operators take, so no speed-up is claimed: 'moirai profile' measures them");
    cli_print(cli, "transfers    %s, %s\n", cli_human_count(plan->n_transfers).s, cli_human_bytes(sent).s);
    cli_print(cli, "made in      %s\n", cli_human_ns(plan->generation_ns).s);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "problem", p->name);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "placer", plan->placer);
    yyjson_mut_obj_add_uint(cli->doc, cli->result, "seed", plan->seed);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "status", status);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "verdict", moirai_plan_verdict(plan));
    add_ns(cli, "makespan_ns", plan->makespan_ns);
    add_ns(cli, "lower_bound_ns", plan->lower_bound_ns);
    if (gap < 0)
        yyjson_mut_obj_add_null(cli->doc, cli->result, "gap");
    else
        yyjson_mut_obj_add_real(cli->doc, cli->result, "gap", gap);
    add_ns(cli, "generation_ns", plan->generation_ns);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "transfers", plan->n_transfers);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "transfer_bytes", sent);
    cli_show_steps(cli, plan);
    show_devices(cli, p, plan);
}
