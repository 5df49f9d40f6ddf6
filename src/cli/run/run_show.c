/* What `moirai run` prints: latencies, predicted against measured, and whether the outputs are right. */
#include "cli/run/run_steps.h"
#include "cli/run/step_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

static int open_json(yyjson_doc **out, const char *path)
{
    char *data;
    size_t length;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = util_json_parse(out, data, length, path);
    free(data);
    return rc;
}

static int64_t number(yyjson_val *object, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(object, key));
}

int cli_timeline_ns(int64_t *out, const char *path)
{
    yyjson_doc *doc = NULL;
    int rc = open_json(&doc, path);
    *out = rc ? 0 : number(yyjson_doc_get_root(doc), "median_ns");
    yyjson_doc_free(doc);
    return rc;
}

static double ratio(int64_t measured, int64_t planned)
{
    return planned > 0 ? (double)measured / (double)planned : 0;
}

/* ---- compare ---- */

static void compare_segment(cli_context *cli, yyjson_mut_val *list, const char *device, yyjson_val *s)
{
    int64_t planned = number(s, "planned_work_ns"), measured = number(s, "median_ns");
    size_t n_ops = yyjson_arr_size(yyjson_obj_get(s, "ops"));
    cli_print(cli, "%-10.10s %-22.22s %5zu %13s %13s %7.2f\n", device, cli_report_text(s, "file"), n_ops,
              cli_human_ns(planned).s, cli_human_ns(measured).s, ratio(measured, planned));
    yyjson_mut_val *o = yyjson_mut_obj(cli->doc);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "device", device);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "file", cli_report_text(s, "file"));
    yyjson_mut_obj_add_int(cli->doc, o, "ops", (int64_t)n_ops);
    yyjson_mut_obj_add_int(cli->doc, o, "planned_ns", planned);
    yyjson_mut_obj_add_int(cli->doc, o, "measured_ns", measured);
    yyjson_mut_arr_append(list, o);
}

static void compare_transfers(cli_context *cli, yyjson_val *root)
{
    size_t i, n;
    yyjson_val *x;
    int64_t planned = 0, measured = 0, bytes = 0;
    yyjson_arr_foreach(yyjson_obj_get(root, "transfers"), i, n, x) {
        planned += number(x, "planned_finish_ns") - number(x, "planned_start_ns");
        measured += number(x, "median_ns");
        bytes += number(x, "bytes");
    }
    cli_print(cli, "%-10s %-22s %5zu %13s %13s %7.2f\n", "transfers", cli_human_bytes(bytes).s, n,
              cli_human_ns(planned).s, cli_human_ns(measured).s, ratio(measured, planned));
    yyjson_mut_obj_add_int(cli->doc, cli->result, "transfers_planned_ns", planned);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "transfers_measured_ns", measured);
}

static void show_compare(cli_context *cli, yyjson_val *root)
{
    size_t i, j, n, m;
    yyjson_val *d, *s;
    int64_t planned = number(root, "planned_ns"), measured = number(root, "median_ns");
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    cli_print(cli, "\n%-10s %-22s %5s %13s %13s %7s\n", "device", "segment", "ops", "planned", "measured", "ratio");
    yyjson_arr_foreach(yyjson_obj_get(root, "devices"), i, n, d) {
        yyjson_arr_foreach(yyjson_obj_get(d, "segments"), j, m, s) {
            compare_segment(cli, list, cli_report_text(d, "name"), s);
        }
    }
    compare_transfers(cli, root);
    cli_print(cli, "%-10s %-22s %5s %13s %13s %7.2f\n", "end to end", "", "", cli_human_ns(planned).s,
              cli_human_ns(measured).s, ratio(measured, planned));
    yyjson_mut_obj_add_val(cli->doc, cli->result, "segments", list);
}

/* ---- latency ---- */

int cli_show_timeline(cli_context *cli, const char *path, bool compare)
{
    static const char *const keys[] = {"planned_ns", "least_ns", "median_ns", "mean_ns", "p90_ns", "p99_ns", "most_ns"};
    yyjson_doc *doc;
    int rc = open_json(&doc, path);
    if (rc)
        return rc;
    yyjson_val *root = yyjson_doc_get_root(doc);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        yyjson_mut_obj_add_int(cli->doc, cli->result, keys[i], number(root, keys[i]));
    yyjson_mut_obj_add_int(cli->doc, cli->result, "runs", number(root, "runs"));
    int64_t median = number(root, "median_ns"), planned = number(root, "planned_ns");
    cli_print(cli, "latency      %s median of %lld runs\n", cli_human_ns(median).s, (long long)number(root, "runs"));
    cli_print(cli, "spread       %s least", cli_human_ns(number(root, "least_ns")).s);
    cli_print(cli, ", %s p90", cli_human_ns(number(root, "p90_ns")).s);
    cli_print(cli, ", %s p99", cli_human_ns(number(root, "p99_ns")).s);
    cli_print(cli, ", %s most\n", cli_human_ns(number(root, "most_ns")).s);
    cli_print(cli, "planned      %s: measured is %.2f times that\n", cli_human_ns(planned).s, ratio(median, planned));
    if (compare)
        show_compare(cli, root);
    yyjson_doc_free(doc);
    return 0;
}

/* ---- verdict ---- */

static int read_verdict(double *largest, size_t *n, const char *path)
{
    yyjson_doc *doc;
    yyjson_val *o, *bad = NULL;
    size_t i;
    int rc = open_json(&doc, path);
    if (rc)
        return rc;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "outputs"), i, *n, o) {
        yyjson_val *gap = yyjson_obj_get(o, "largest");
        if (number(o, "different") && !bad)
            bad = o;
        *largest = UTIL_MAX(*largest, yyjson_is_num(gap) ? yyjson_get_num(gap) : INFINITY); /* null: not finite */
    }
    if (bad)
        rc = moirai_error(
            MOIRAI_EVERIFY,
            "output '%s' differs from the %s's: %lld of %lld elements, the most element %lld: %.9g, expected %.9g",
            cli_report_text(bad, "name"), cli_report_text(bad, "against"), (long long)number(bad, "different"),
            (long long)number(bad, "elements"), (long long)number(bad, "at"),
            yyjson_get_num(yyjson_obj_get(bad, "got")), yyjson_get_num(yyjson_obj_get(bad, "expected")));
    yyjson_doc_free(doc);
    return rc;
}

int cli_show_verdict(cli_context *cli, const char *const *path, int n)
{
    double largest = 0;
    size_t n_outputs = 0;
    int rc = 0, c = 0;
    for (; c < n && !rc; c++)
        rc = read_verdict(&largest, &n_outputs, path[c]);
    if (rc == MOIRAI_EVERIFY && n > 1)
        moirai_error_prefix(rc, "copy %d", c);
    if (rc && rc != MOIRAI_EVERIFY)
        return rc;
    yyjson_mut_obj_add_bool(cli->doc, cli->result, "verified", !rc);
    if (isfinite(largest))
        yyjson_mut_obj_add_real(cli->doc, cli->result, "largest_difference", largest);
    if (!rc && n > 1)
        cli_print(cli,
                  "verified     %zu outputs of each of %d copies equal the whole model's: largest difference %.3g\n",
                  n_outputs, n, largest);
    else if (!rc)
        cli_print(cli, "verified     %zu outputs equal the whole model's: largest difference %.3g\n", n_outputs,
                  largest);
    return rc;
}
