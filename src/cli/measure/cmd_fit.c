/* moirai fit: coefficients of the fitted cost model from measured operator times. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"

#include <yyjson.h>
#include <moirai/fit.h>

#define MAX_DEVICES 32

static void say_coefficients(const cli_context *cli, const moirai_fit *fit)
{
    yyjson_mut_val *classes = yyjson_mut_obj_add_obj(cli->doc, cli->result, "coefficients");
    for (int k = 0; k < moirai_fit_class_count(); k++) {
        yyjson_mut_val *item = yyjson_mut_obj_add_obj(cli->doc, classes, moirai_fit_class_name(k));
        cli_print(cli, "%-8s", moirai_fit_class_name(k));
        for (int j = 0; j < moirai_fit_coefficient_count(k); j++) {
            const char *name = moirai_fit_coefficient_name(k, j);
            double value = moirai_fit_coefficient(fit, k, j);
            yyjson_mut_obj_add_real(cli->doc, item, name, value);
            cli_print(cli, " %s %.4g", name, value);
        }
        cli_print(cli, "\n");
    }
}

/* One line: errors of one class by device. */
static void say_errors(const cli_context *cli, yyjson_mut_val *list, const moirai_fit *fit, int k,
                       const moirai_fit_error *error)
{
    yyjson_mut_val *item = yyjson_mut_arr_add_obj(cli->doc, list), *devices;
    yyjson_mut_obj_add_strcpy(cli->doc, item, "class", moirai_fit_class_name(k));
    devices = yyjson_mut_obj_add_obj(cli->doc, item, "error");
    cli_print(cli, "%-8s", moirai_fit_class_name(k));
    for (int d = 0; d < moirai_fit_device_count(fit); d++) {
        if (!error[d].n) {
            cli_print(cli, " %10s", "-");
            continue;
        }
        yyjson_mut_obj_add_real(cli->doc, devices, moirai_fit_device_name(fit, d), error[d].fitted);
        cli_print(cli, " %9.1f%%", 100 * error[d].fitted);
    }
    cli_print(cli, "\n");
}

/* Errors on the measurements that were just fitted, or, with --leave-one-out, on a device that was not. */
static int say_accuracy(const cli_context *cli, moirai_fit *fit, bool leave_one_out)
{
    static moirai_fit_error error[64][MAX_DEVICES];
    int n = moirai_fit_device_count(fit), rc = 0;
    for (int d = 0; !rc && d < n; d++) {
        if (leave_one_out)
            rc = moirai_fit_solve(fit, d);
        for (int k = 0; k < moirai_fit_class_count(); k++)
            moirai_fit_measure(&error[k][d], fit, k, d);
    }
    cli_print(cli, "\nmean error %s\n%-8s",
              leave_one_out ? "on a device whose times were left out" : "on what was fitted", "class");
    for (int d = 0; d < n; d++)
        cli_print(cli, " %10s", moirai_fit_device_name(fit, d));
    cli_print(cli, "\n");
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, leave_one_out ? "left_out" : "fitted");
    for (int k = 0; !rc && k < moirai_fit_class_count(); k++)
        say_errors(cli, list, fit, k, error[k]);
    return rc;
}

static int fit_and_tell(const cli_context *cli, moirai_fit *fit)
{
    const char *output = cli_text(cli, "output");
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "used", moirai_fit_used(fit));
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "skipped", moirai_fit_skipped(fit));
    cli_say(cli, "%s measurements of %d device types\n", cli_human_count(moirai_fit_used(fit)).s,
            moirai_fit_device_count(fit));
    if (moirai_fit_skipped(fit))
        cli_say(cli, "warning: %s lines skipped: unknown device or operator, or a number that makes no sense\n",
                cli_human_count(moirai_fit_skipped(fit)).s);
    int rc = moirai_fit_solve(fit, -1);
    if (!rc) {
        say_coefficients(cli, fit);
        rc = say_accuracy(cli, fit, false);
    }
    if (!rc && output)
        rc = moirai_fit_write(fit, output);
    if (!rc && output) {
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "output", output);
        cli_say(cli, "use them with --cost fitted:%s\n", output);
    }
    if (!rc && cli_has(cli, "leave-one-out"))
        rc = say_accuracy(cli, fit, true);
    return rc;
}

static int run(cli_context *cli)
{
    moirai_fit *fit = NULL;
    int rc = cli_writable(cli, cli_text(cli, "output"));
    rc = rc ? rc : moirai_fit_read(&fit, cli_arg(cli, 0));
    for (int i = 1; !rc && i < cli->n_args; i++)
        rc = moirai_fit_add_graph(fit, cli_arg(cli, i));
    rc = rc ? rc : fit_and_tell(cli, fit);
    moirai_fit_free(fit);
    return rc;
}

static const cli_argument arguments[] = {
    {"TIMES", CLI_VALUE_FILE, "a table of measured times, comma-separated, columns named in its first line", false,
     false},
    {"GRAPH", CLI_VALUE_FILE, "a graph whose operators were measured one by one in TensorRT", true, true},
    {0},
};
static const cli_option options[] = {
    {.name = "leave-one-out",
     .help = "also tell the errors on each device when its times are left out",
     .kind = CLI_VALUE_FLAG},
    CLI_OPTION_OUTPUT("write the coefficients here (JSON; a C table where the name ends in .h)"),
    {0},
};
static const cli_example examples[] = {
    {"moirai fit optimes.csv -o coefficients.json", "Fit to measured times, keep the coefficients"},
    {"moirai plan gpt3-tiny --cluster inter-server --cost fitted:coefficients.json", "Use them"},
    {0},
};
const cli_command cli_command_fit = {
    .name = "fit",
    .summary = "fit the cost model to measured operator times",
    .text = "Finds the coefficients of the 'fitted' cost model: launch cost, shares of bandwidth and of the fp32 rate, "
            "costs per "
            "tile and per row, for each class of operators.\n\n"
            "The columns are device (a known type), op (add, addu, mul, mulu, div, divu, pow, powu, relu, tanh, gelu, "
            "softmax, ln, "
            "linear, bmm, conv), latency_ns, and b, m, n, k for products of m x n by n x k, b and h for rows, b, "
            "input_channel, "
            "output_channel, "
            "input_size, kernel_size, stride, padding for convolutions. Classes without measurements keep the shipped "
            "coefficients.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
