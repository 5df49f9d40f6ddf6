#include "support/proving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

/* Everything that is put to the verifier, and what it says: for the other one (tests/verify/check_certificate.py). Line
 * by line; a file of ours has no line ends within strings. */
static void write_down(const char *what, const char *text, size_t length)
{
    static FILE *file;
    const char *path = getenv("MOIRAI_DOSSIER");
    if (!file)
        file = fopen(path, "a");
    if (!file)
        return;
    fprintf(file, "%s\t", what);
    for (size_t i = 0; i < length; i++)
        fputc(text[i] == '\n' || text[i] == '\r' || !text[i] ? ' ' : text[i], file);
    fputc('\n', file);
    fflush(file); /* a crash leaves what led to it */
}

/* Those that the project wrote itself, as against those that were changed. */
static bool is_honest(const char *label)
{
    return !strcmp(label, "certificate") || !strcmp(label, "loads");
}

static void write_case(const moirai_prove_file *problem, const moirai_prove_file *certificate, int rc,
                       int64_t proven_ns)
{
    static char *last;
    char what[64], whose = is_honest(certificate->label) ? 'H' : 'C';
    if (!getenv("MOIRAI_DOSSIER") || (rc && rc != MOIRAI_EVERIFY && rc != MOIRAI_EINPUT))
        return;
    if (!last || strcmp(last, problem->text)) {
        free(last);
        last = strdup(problem->text);
        write_down("P", problem->text, problem->length);
    }
    if (!rc)
        snprintf(what, sizeof what, "%c accepted %lld", whose, (long long)proven_ns);
    else
        snprintf(what, sizeof what, "%c %s", whose,
                 strstr(moirai_error_message(), PROVE_LIMITS) ? "limit" : "rejected");
    write_down(what, certificate->text, certificate->length);
}

int proving_text(moirai_proof *proof, const moirai_problem *p, const char *json, size_t length, const char *label)
{
    char *text;
    moirai_prove_file problem = {.label = "problem"}, certificate = {json, length, label};
    int rc = moirai_problem_text(&text, &problem.length, p);
    problem.text = text;
    rc = rc ? rc : moirai_prove_text(proof, &problem, &certificate, NULL);
    if (text)
        write_case(&problem, &certificate, rc, proof->proven_ns);
    free(text);
    return rc;
}

bool proving_problem(prove_problem *out, const moirai_problem *p)
{
    char *text;
    moirai_prove_file problem = {.label = "problem"};
    *out = (prove_problem){0};
    int rc = moirai_problem_text(&text, &problem.length, p);
    problem.text = text;
    rc = rc ? rc : prove_problem_read(out, &problem, NULL);
    free(text);
    bool same = !rc && out->n == p->n_ops;
    for (int32_t i = 0; same && i < p->n_ops; i++)
        same = out->place[i] == p->topo_rank[i] && out->may[out->place[i]] == p->op_devices[i] &&
               out->bytes[out->place[i]] == p->op_memory_bytes[i];
    return same;
}

int proving_file(moirai_proof *proof, const moirai_problem *p, const char *path)
{
    char *json;
    size_t length;
    int rc = util_file_read(&json, &length, path);
    if (rc)
        return rc;
    rc = proving_text(proof, p, json, length, path);
    free(json);
    return rc;
}
