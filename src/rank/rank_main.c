/* moirai-rank: the program that stands for one device. The command starts it, users do not; its first argument names
 * the job. What it links (MPI, ONNX Runtime) the library and the command do not. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <moirai/error.h>
#include "rank/gpu/mps.h"
#include "rank/ort.h"
#include "rank/rank.h"
#include "rank/host/rank_confine.h"

typedef struct job {
    const char *name;
    int (*run)(int argc, char **argv); /* arguments after the name; returns the exit code */
} job;

/* Which MPI, ONNX Runtime and version of Landlock, as JSON on stdout: for bug reports. */
static int about(int argc, char **argv)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "", providers[256];
    int length;
    (void)argc;
    (void)argv;
    MPI_Get_library_version(mpi, &length); /* allowed before MPI_Init */
    mpi[strcspn(mpi, "\n\r\",")] = '\0';
    for (char *c = mpi; *c; c++)
        *c = *c == '\t' || *c == '\\' ? ' ' : *c;
    if (rank_ort_providers(providers, sizeof providers))
        providers[0] = '\0';
    printf("{\"mpi\": \"%s\", \"onnxruntime\": \"%s\", \"providers\": \"%s\", \"landlock\": %d}\n", mpi,
           rank_ort_version(), providers, rank_confine_version());
    return 0;
}

static const job jobs[] = {
    {"about", about},      {"probe", rank_probe}, {"profile", rank_profile}, {"run", rank_run},     {"fail", rank_fail},
    {"whole", rank_whole}, {"mps", rank_mps},     {"turns", rank_turns},     {"serve", rank_serve},
};

/* MPI and ONNX Runtime keep memory until the process ends: leaks of others are none of ours. */
#if defined(__SANITIZE_ADDRESS__)
MOIRAI_API const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof jobs / sizeof *jobs; i++)
        if (!strcmp(jobs[i].name, argv[1])) {
            int code = jobs[i].run(argc - 2, argv + 2);
            fflush(NULL);
            _exit(code); /* libraries would take apart what they have registered, piece by piece */
        }
    fprintf(stderr, "moirai-rank: 'moirai run', 'moirai serve', 'moirai probe' and 'moirai profile' start this\n");
    return 2;
}
