/* A problem of the generator as a file, or the list of them.
 *
 * usage: bench_generate --list [tune|judge|both]    names, a line each; tune where nothing is said
 *        bench_generate NAME [FILE]                 FILE: stdout where nothing is said
 *
 * NAME is one of the list, or any other of the same form: generate/generate.h. */
#include <stdio.h>
#include <string.h>

#include "generate/generate.h"

static void print_list(const char *half)
{
    char name[GENERATE_NAME];
    for (int i = 0; i < generate_count(); i++) {
        generate_name(name, i);
        if (!strcmp(half, "both") || !strcmp(half, "judge") == (generate_half_of(name) == GENERATE_JUDGE))
            puts(name);
    }
}

int main(int argc, char **argv)
{
    const char *half = argc > 2 ? argv[2] : "tune";
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: bench_generate --list [tune|judge|both] | NAME [FILE]\n");
        return 2;
    }
    if (!strcmp(argv[1], "--list")) {
        print_list(half);
        return 0;
    }
    moirai_problem *p;
    int rc = generate_problem(&p, argv[1]);
    if (!rc)
        rc = moirai_problem_write(p, argc > 2 ? argv[2] : "-");
    if (rc)
        fprintf(stderr, "bench_generate: %s\n", moirai_error_message());
    else
        moirai_problem_free(p);
    return -rc;
}
