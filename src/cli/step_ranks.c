/* One rank per device: arguments, hosts, and the folder in which rank 0 leaves its results. */
#include "cli/step_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/json.h"
#include "util/util.h"

static int make_folder(moirai_ranks *r)
{
    const char *base = getenv("TMPDIR");
    snprintf(r->folder, sizeof r->folder, "%.3900s/moirai-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(r->folder)) {
        int rc = moirai_error(MOIRAI_EFAIL, "%s: can't make a folder: %s", r->folder, strerror(errno));
        r->folder[0] = '\0';
        return rc;
    }
    snprintf(r->result, sizeof r->result, "%s/result.json", r->folder);
    snprintf(r->report, sizeof r->report, "%s/report.json", r->folder);
    return 0;
}

static int find_hosts(moirai_ranks *r, const moirai_cli *cli, const moirai_cluster *c)
{
    const char *given = moirai_cli_text(cli, "hosts"), *list[MOIRAI_MAX_DEVICES];
    int n = 0;
    char *rest = r->hosts = given ? moirai_strdup(given) : NULL;
    if (given && !rest)
        return MOIRAI_EFAIL;
    for (char *host; (host = strsep(&rest, ",")) && n < MOIRAI_MAX_DEVICES;)
        if (*host)
            list[n++] = host;
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

int moirai_ranks_open(moirai_ranks *r, const moirai_cli *cli, const char *job, const moirai_cluster *c, int n)
{
    int size = n;
    memset(r, 0, sizeof *r);
    r->inside = moirai_cli_inside_mpi(&r->rank, &size);
    r->n = n;
    if (r->inside && size != n)
        return moirai_error(MOIRAI_EUSAGE, "%s: mpirun started %d ranks, but there are %d devices", cli->command->name,
                            size, n);
    int rc = find_hosts(r, cli, c);
    rc = rc ? rc : make_folder(r);
    r->argument[r->n_arguments++] = job;
    moirai_ranks_add(r, "--output", r->result);
    moirai_ranks_add(r, "--report", r->report);
    return rc;
}

void moirai_ranks_free(moirai_ranks *r)
{
    if (*r->folder) {
        unlink(r->result);
        unlink(r->report);
        rmdir(r->folder);
    }
    free(r->hosts);
    r->hosts = NULL;
}

void moirai_ranks_add(moirai_ranks *r, const char *option, const char *value)
{
    if (!value)
        return;
    if (r->n_arguments + 2 > MOIRAI_MOST_RANK_ARGUMENTS) {
        r->n_arguments = MOIRAI_MOST_RANK_ARGUMENTS; /* run refuses */
        return;
    }
    r->argument[r->n_arguments++] = option;
    if (*value)
        r->argument[r->n_arguments++] = value;
}

int moirai_ranks_run(const moirai_ranks *r)
{
    if (r->n_arguments == MOIRAI_MOST_RANK_ARGUMENTS)
        return moirai_error(MOIRAI_EUSAGE, "%s: too many arguments", r->argument[0]);
    moirai_launch l = {.n = r->n,
                       .name = r->name,
                       .host = r->has_hosts && !r->inside ? r->host : NULL,
                       .argv = r->argument,
                       .inside = r->inside,
                       .start_limit_s = r->has_hosts ? 8 : 60,
                       .progress = r->progress,
                       .data = r->data};
    return moirai_cli_launch(&l);
}

int moirai_ranks_report(yyjson_doc **out, const moirai_ranks *r)
{
    char *json;
    size_t length;
    int rc = moirai_file_read(&json, &length, r->report);
    if (rc)
        return rc;
    rc = moirai_json_parse(out, json, length, r->report);
    free(json);
    return rc;
}

const char *moirai_report_text(yyjson_val *object, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    return text ? text : "";
}

int64_t moirai_report_count(yyjson_val *object, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(object, key));
}
