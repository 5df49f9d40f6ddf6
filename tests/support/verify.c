#include "support/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void verify_begin(verify_batch *b)
{
    char path[] = "/tmp/moirai-verify-XXXXXX";
    *b = (verify_batch){0};
    if (mkdtemp(path) != NULL)
        b->folder = strdup(path);
}

void verify_add(verify_batch *b, const moirai_problem *p, const moirai_plan *plan, bool valid)
{
    char path[256];
    if (b->folder == NULL)
        return;
    snprintf(path, sizeof path, "%s/%d.problem", b->folder, b->n);
    int rc = moirai_problem_write(p, path);
    snprintf(path, sizeof path, "%s/%d.plan", b->folder, b->n);
    if (rc == 0)
        rc = moirai_plan_write(plan, p, path);
    snprintf(path, sizeof path, "%s/%d.valid", b->folder, b->n);
    FILE *mark = valid && rc == 0 ? fopen(path, "w") : NULL;
    if (mark != NULL)
        fclose(mark);
    b->n++;
}

int verify_run(verify_batch *b)
{
    char command[4096];
    if (b->folder == NULL)
        return -1;
    /* One process for the whole batch: starting Python takes longer than a check. */
    snprintf(command, sizeof command, "python3 -B '%s/tests/verify/check_plan.py' --batch '%s' %d 1>&2",
             MOIRAI_SOURCE_DIR, b->folder, b->n);
    int status = system(command);
    snprintf(command, sizeof command, "rm -r '%s'", b->folder);
    if (system(command) != 0)
        fprintf(stderr, "could not remove %s\n", b->folder);
    free(b->folder);
    b->folder = NULL;
    return status / 256;
}
