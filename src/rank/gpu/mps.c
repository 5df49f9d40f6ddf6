/* Finding and starting CUDA MPS.
 *
 * A service that is there is used and left alone. One that we start must end with us, whatever becomes of us: a guard,
 * `moirai-rank mps`, starts it and waits at a pipe whose other end only the starting rank holds. When that rank ends,
 * orderly or killed, the guard reads the pipe's end, has the service quit, and removes its folder. The guard is in a
 * session of its own, so that signals to the ranks' group do not reach it. It keeps the rank's standard error open:
 * mpiexec waits for that to close, so that the service is gone when an orderly job is. The rank itself can't wait, since
 * the service waits for its clients, of which it is one. */
#include "rank/gpu/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>
#include "util/util.h"

enum { FOLDER = 256, LOOKS = 100, LOOK_US = 50000 };
#define CONTROL "nvidia-cuda-mps-control"

extern char **environ;

/* ---- talking to the service ---- */

/* The exit status of a shell line, its output thrown away; the service's folder is in the environment. */
static int shell(const char *folder, const char *line)
{
    char all[FOLDER + 256];
    snprintf(all, sizeof all,
             "export CUDA_MPS_PIPE_DIRECTORY='%s' CUDA_MPS_LOG_DIRECTORY='%s'; { %s; } >/dev/null 2>&1", folder, folder,
             line);
    int status = system(all);
    return status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_running(const char *folder)
{
    char control[FOLDER + 16];
    snprintf(control, sizeof control, "%s/control", folder);
    return !access(control, F_OK) && !shell(folder, "echo get_server_list | timeout 20 " CONTROL);
}

/* ---- the guard ---- */

int rank_mps(int argc, char **argv)
{
    const char *folder = argc > 0 ? argv[0] : "", *word = "failed";
    char line[FOLDER + 64], byte;
    setsid();
    if (shell(folder, "command -v " CONTROL))
        word = "missing";
    else if (!shell(folder, CONTROL " -d"))
        for (int i = 0; i < LOOKS && strcmp(word, "running"); i++) {
            if (is_running(folder))
                word = "running";
            else
                usleep(LOOK_US);
        }
    dprintf(STDOUT_FILENO, "%s\n", word);
    close(STDOUT_FILENO);
    while (!strcmp(word, "running") && read(STDIN_FILENO, &byte, 1) > 0)
        ;
    if (!strcmp(word, "running"))
        shell(folder, "echo quit -t 5 | timeout 20 " CONTROL);
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    return shell(folder, line) ? 1 : 0;
}

/* This program as the guard, with `in` and `out` as its standard input and output. */
static int spawn_guard(const char *folder, int in, int out)
{
    posix_spawn_file_actions_t files;
    char *argv[] = {"moirai-rank", "mps", (char *)folder, NULL};
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    pid_t guard;
    int error = posix_spawn(&guard, "/proc/self/exe", &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return error ? moirai_error(MOIRAI_EFAIL, "can't start a process: %s", strerror(error)) : 0;
}

static int judge(const char *word)
{
    if (!strncmp(word, "running", 7))
        return 0;
    if (!strncmp(word, "missing", 7))
        return moirai_error(MOIRAI_EFAIL, "shares of a GPU need CUDA MPS, and " CONTROL " is not on the PATH");
    return moirai_error(MOIRAI_EFAIL, "shares of a GPU need CUDA MPS, and " CONTROL " did not start");
}

static int start(char folder[FOLDER])
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    char word[16] = "";
    snprintf(folder, FOLDER, "/tmp/moirai-mps-XXXXXX");
    if (!mkdtemp(folder))
        return moirai_error(MOIRAI_EFAIL, "%s: can't make a folder: %s", folder, strerror(errno));
    if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
        return moirai_error(MOIRAI_EFAIL, "no pipe: %s", strerror(errno));
    int rc = spawn_guard(folder, to[0], from[1]);
    close(to[0]); /* to[1] stays open as long as this process lives */
    close(from[1]);
    ssize_t got = rc ? 0 : read(from[0], word, sizeof word - 1);
    close(from[0]);
    return rc ? rc : judge(got > 0 ? word : "failed");
}

/* ---- joining ---- */

static void enter(const char *folder, double share)
{
    char percent[32];
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
    if (share <= 0)
        return;
    snprintf(percent, sizeof percent, "%g", 100 * share);
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
}

/* The first rank of a host speaks for all of them. */
static int find_service(MPI_Comm here, char folder[FOLDER])
{
    struct {
        int rc;
        char folder[FOLDER], text[512];
    } news = {0};
    int rank;
    MPI_Comm_rank(here, &rank);
    if (rank == 0) {
        const char *given = getenv("CUDA_MPS_PIPE_DIRECTORY");
        snprintf(news.folder, FOLDER, "%s", given ? given : "/tmp/nvidia-mps");
        news.rc = is_running(news.folder) ? 0 : start(news.folder);
        snprintf(news.text, sizeof news.text, "%s", news.rc ? moirai_error_message() : "");
    }
    MPI_Bcast(&news, (int)sizeof news, MPI_BYTE, 0, here);
    snprintf(folder, FOLDER, "%s", news.folder);
    return news.rc ? moirai_error(news.rc, "%s", news.text) : 0;
}

int rank_mps_join(bool gpu, double share)
{
    MPI_Comm here;
    char folder[FOLDER];
    int wanted = gpu && share > 0, rc = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_INT, MPI_MAX, here);
    if (wanted)
        rc = find_service(here, folder);
    if (wanted && !rc && gpu)
        enter(folder, share);
    MPI_Comm_free(&here);
    return rc;
}
