/* moirai-rank about: which MPI, ONNX Runtime and version of Landlock, for `moirai version` and bug reports. */
#include "rank/rank.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "rank/ort.h"
#include "rank/rank_confine.h"

int rank_about(int argc, char **argv)
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
           OrtGetApiBase()->GetVersionString(), providers, rank_confine_version());
    return 0;
}
