/* moirai-rank: the program that stands for one device. The command starts it, users do not; its first argument names
 * the job. What it links (MPI, ONNX Runtime, hwloc) the library and the command do not. */
#include <stdio.h>
#include <string.h>

#include <moirai/error.h>
#include "run/rank.h"

typedef struct job {
    const char *name;
    int (*run)(int argc, char **argv); /* arguments after the name; returns the exit code */
} job;

static const job jobs[] = {
    {"about", moirai_rank_about},
    {"probe", moirai_rank_probe},
    {"profile", moirai_rank_profile},
    {"run", moirai_rank_run},
    {"fail", moirai_rank_fail},
    {"whole", moirai_rank_whole},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof jobs / sizeof *jobs; i++)
        if (!strcmp(jobs[i].name, argv[1]))
            return jobs[i].run(argc - 2, argv + 2);
    fprintf(stderr, "moirai-rank: 'moirai run', 'moirai probe' and 'moirai profile' start this\n");
    return 2;
}
