/* Starting moirai-rank, one process per device: mpiexec's command line. */
#include "cli/run/run_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/util.h"

bool cli_inside_mpi(int *rank, int *size)
{
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"PMIX_RANK", "OMPI_UNIVERSE_SIZE"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *r = getenv(names[i][0]), *n = getenv(names[i][1]);
        if (r && n) {
            *rank = atoi(r);
            *size = atoi(n);
            return true;
        }
    }
    return false;
}

/* ---- the command line ---- */

typedef struct words {
    const char **word;
    size_t n, capacity;
    bool failed;
} words;

static void add(words *w, const char *word)
{
    if (util_grow(&w->word, &w->capacity, w->n + 2, sizeof *w->word)) {
        w->failed = true;
        return;
    }
    w->word[w->n++] = word;
    w->word[w->n] = NULL;
}

static void add_program(words *w, const char *program, const cli_launch_job *l)
{
    add(w, program);
    for (int i = 0; l->argv[i]; i++)
        add(w, l->argv[i]);
}

static void add_launcher(words *w, const cli_mpi *mpi)
{
    add(w, mpi->launcher);
    if (mpi->open_mpi) {
        add(w, "--oversubscribe");
        add(w, "--bind-to");
        add(w, "none");
        add(w, "-x");
        add(w, "MOIRAI_SUPERVISED=1");
        if (geteuid() == 0)
            add(w, "--allow-run-as-root");
    } else {
        add(w, "-genv");
        add(w, "MOIRAI_SUPERVISED");
        add(w, "1");
    }
}

/* Open MPI wants ssh or rsh to be there, even for ranks of this machine alone, which it starts without: "isolated" has it
 * do so where neither is installed. What the user has set goes before. */
static void need_no_shell(const cli_launch_job *l, const cli_mpi *mpi)
{
    bool local = mpi->open_mpi;
    for (int i = 0; l->host && i < l->n; i++)
        local &= !l->host[i] || !strcmp(l->host[i], "localhost");
    if (local)
        setenv("OMPI_MCA_plm", "isolated", 0);
}

/* Rank i on the host of device i. Open MPI: one application context each. MPICH: one list, dealt out one by one. */
static void add_ranks(words *w, const cli_mpi *mpi, const cli_launch_job *l, char *count, char *hosts, size_t size)
{
    size_t used = 0;
    snprintf(count, 16, "%d", l->n);
    for (int i = 0; l->host && !mpi->open_mpi && i < l->n && used < size; i++)
        used +=
            (size_t)snprintf(hosts + used, size - used, "%s%s", i ? "," : "", l->host[i] ? l->host[i] : "localhost");
    if (used) {
        add(w, "-hosts");
        add(w, hosts);
        add(w, "-ppn");
        add(w, "1");
    }
    if (used || !l->host) {
        add(w, "-n");
        add(w, count);
        add_program(w, mpi->rank, l);
        return;
    }
    for (int i = 0; i < l->n; i++) {
        if (i)
            add(w, ":");
        add(w, "-n");
        add(w, "1");
        add(w, "--host");
        add(w, l->host[i] ? l->host[i] : "localhost");
        add_program(w, mpi->rank, l);
    }
}
double cli_start_limit_s(const cli_context *cli, bool has_hosts)
{
    double limit = cli_real(cli, "start-limit");
    return limit > 0 ? limit : has_hosts ? 30 : 60;
}

int cli_launch(const cli_launch_job *l)
{
    char count[16], hosts[8192];
    cli_mpi mpi;
    words v = {0};
    int rc = cli_mpi_find(&mpi);
    if (rc)
        return rc;
    if (l->inside) {
        add_program(&v, mpi.rank, l);
    } else {
        need_no_shell(l, &mpi);
        add_launcher(&v, &mpi);
        add_ranks(&v, &mpi, l, count, hosts, sizeof hosts);
    }
    rc = v.failed ? MOIRAI_EFAIL : cli_watch(l, v.word);
    free(v.word);
    return rc;
}
