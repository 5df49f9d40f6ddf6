/* One rank per device: arguments, hosts, and the folder in which rank 0 leaves its results. */
#include "cli/run/step_ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

static int make_folder(cli_ranks *r)
{
    int rc = util_folder_temporary(r->folder, sizeof r->folder, "moirai");
    if (rc)
        return rc;
    snprintf(r->result, sizeof r->result, "%s/result.json", r->folder);
    snprintf(r->report, sizeof r->report, "%s/report.json", r->folder);
    return 0;
}

int cli_check_hosts(const cli_context *cli, const char *const *host, int n)
{
    for (int i = 0; i < n; i++)
        if (!util_is_host(host[i]))
            return moirai_error(MOIRAI_EUSAGE, "%s: --hosts: '%s' is not the name of a machine", cli->command->name,
                                host[i]);
    return 0;
}

void cli_note_stand_ins(cli_context *cli, const moirai_device *const *device, int n)
{
    yyjson_mut_val *list = NULL;
    for (int i = 0; i < n; i++) {
        const moirai_device *d = device[i];
        const moirai_device_type *type = d && !d->ep ? moirai_device_type_find(d->type) : NULL;
        if (!type || !strcmp(type->name, "cpu"))
            continue;
        cli_say(
            cli,
            "warning: device '%s' is a %s, but the cluster gives it no \"ep\": it runs on the CPU; \"ep\": \"cuda\" "
            "makes it a GPU\n",
            d->name, d->type);
        list = list ? list : yyjson_mut_obj_add_arr(cli->doc, cli->result, "cpu_stand_ins");
        yyjson_mut_arr_add_strcpy(cli->doc, list, d->name);
    }
}

void cli_note_threads(cli_context *cli, const moirai_device *const *device, int n)
{
    yyjson_mut_val *list = NULL;
    int32_t cores = util_cores();
    for (int i = 0; i < n; i++) {
        const moirai_device *d = device[i];
        if (!d || d->host || d->threads <= cores)
            continue;
        cli_say(cli, "note: device '%s' is given %d threads, but this machine has %d cores: it runs with %d\n", d->name,
                (int)d->threads, cores, cores);
        list = list ? list : yyjson_mut_obj_add_arr(cli->doc, cli->result, "fewer_threads");
        yyjson_mut_arr_add_strcpy(cli->doc, list, d->name);
    }
}

void cli_note_load(cli_context *cli, const char *host, double load, int64_t threads)
{
    double most = threads > 2 ? 0.25 * (double)threads : 0.5;
    if (load > most)
        cli_say(cli,
                "warning: host '%s' is BUSY: %.1f processes wanted its %lld threads during the last minute: what is "
                "measured there is too slow, and not the same twice\n",
                host, load, (long long)threads);
}

static int find_hosts(cli_ranks *r, const cli_context *cli, const moirai_cluster *c)
{
    const char *given = cli_text(cli, "hosts"), *list[MOIRAI_MAX_DEVICES];
    int n = 0;
    char *rest = r->hosts = given ? util_strdup(given) : NULL;
    if (given && !rest)
        return MOIRAI_EFAIL;
    for (char *host; (host = strsep(&rest, ",")) && n < MOIRAI_MAX_DEVICES;)
        if (*host)
            list[n++] = host;
    int rc = cli_check_hosts(cli, list, n);
    if (rc)
        return rc;
    if (given && !n)
        return moirai_error(MOIRAI_EUSAGE, "%s: --hosts '%s' names no host", cli->command->name, given);
    for (int i = 0; i < r->n; i++) {
        const char *own = c ? c->device[i].host : NULL;
        r->host[i] = own ? own : n ? list[i % n] : NULL;
        r->has_hosts |= r->host[i] != NULL;
        snprintf(r->number[i], sizeof r->number[i], "%d", i);
        r->name[i] = c ? c->device[i].name : r->number[i];
    }
    return 0;
}

int cli_ranks_open(cli_ranks *r, const cli_context *cli, const char *job, const moirai_cluster *c, int n)
{
    int size = n;
    memset(r, 0, sizeof *r);
    r->inside = cli_inside_mpi(&r->rank, &size);
    r->n = n;
    if (r->inside && size != n)
        return moirai_error(MOIRAI_EUSAGE, "%s: mpirun started %d ranks, but there are %d devices", cli->command->name,
                            size, n);
    int rc = find_hosts(r, cli, c);
    rc = rc ? rc : make_folder(r);
    r->argument[r->n_arguments++] = job;
    cli_ranks_add(r, "--output", r->result);
    cli_ranks_add(r, "--report", r->report);
    return rc;
}

void cli_ranks_free(cli_ranks *r)
{
    if (*r->folder)
        util_folder_remove(r->folder, 0);
    free(r->hosts);
    r->hosts = NULL;
}

void cli_ranks_add(cli_ranks *r, const char *option, const char *value)
{
    if (!value)
        return;
    if (r->n_arguments + 2 > CLI_MOST_RANK_ARGUMENTS) {
        r->n_arguments = CLI_MOST_RANK_ARGUMENTS; /* run refuses */
        return;
    }
    r->argument[r->n_arguments++] = option;
    if (*value)
        r->argument[r->n_arguments++] = value;
}

int cli_ranks_run(const cli_ranks *r)
{
    if (r->n_arguments == CLI_MOST_RANK_ARGUMENTS)
        return moirai_error(MOIRAI_EUSAGE, "%s: too many arguments", r->argument[0]);
    cli_launch_job l = {.n = r->n,
                        .name = r->name,
                        .host = r->has_hosts && !r->inside ? r->host : NULL,
                        .argv = r->argument,
                        .inside = r->inside,
                        .start_limit_s = r->has_hosts ? 30 : 60,
                        .progress = r->progress,
                        .data = r->data};
    return cli_launch(&l);
}

int cli_ranks_report(yyjson_doc **out, const cli_ranks *r)
{
    char *json;
    size_t length;
    int rc = util_file_read(&json, &length, r->report);
    if (rc)
        return rc;
    rc = util_json_parse(out, json, length, r->report);
    free(json);
    return rc;
}

const char *cli_report_text(yyjson_val *object, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    return text ? text : "";
}

int64_t cli_report_count(yyjson_val *object, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(object, key));
}
