#include "support/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One process for the whole batch: imports the checker and calls it on every pair of files. */
static const char script[] =
    "import json, os, sys\n"
    "sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True\n"
    "import verify_plan\n"
    "wrong, folder = 0, sys.argv[2]\n"
    "for i in range(int(sys.argv[3])):\n"
    "    at = os.path.join(folder, str(i))\n"
    "    expected = os.path.exists(at + '.valid')\n"
    "    try:\n"
    "        bad, _ = verify_plan.verify(json.load(open(at + '.problem')), json.load(open(at + '.plan')))\n"
    "    except (KeyError, TypeError, IndexError, ValueError, SystemExit) as e:\n"
    "        bad = [repr(e)]\n"
    "    if (not bad) != expected:\n"
    "        wrong += 1\n"
    "        print('plan', i, 'expected', 'valid' if expected else 'invalid', 'got', bad[:3])\n"
    "sys.exit(min(wrong, 100))\n";

void verify_begin(verify_batch *b)
{
    char path[] = "/tmp/moirai-verify-XXXXXX";
    *b = (verify_batch){0};
    if (access(MOIRAI_SHARED_DIR "/verify_plan.py", R_OK) != 0 || system("python3 --version >/dev/null 2>&1") != 0)
        return;
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
    snprintf(command, sizeof command, "%s/run.py", b->folder);
    FILE *f = fopen(command, "w");
    if (f != NULL) {
        fputs(script, f);
        fclose(f);
    }
    snprintf(command, sizeof command, "python3 '%s/run.py' '%s' '%s' %d 1>&2", b->folder, MOIRAI_SHARED_DIR, b->folder,
             b->n);
    int status = system(command);
    snprintf(command, sizeof command, "rm -r '%s'", b->folder);
    if (system(command) != 0)
        fprintf(stderr, "could not remove %s\n", b->folder);
    free(b->folder);
    b->folder = NULL;
    return status / 256;
}
