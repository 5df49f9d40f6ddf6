/* Outputs under their own names, as far as these can be names of files.
 *
 * A tensor's name may hold anything; what a file's name had better not hold becomes '_'. Two outputs that would have one
 * file ("a/b" and "a:b") are told apart by a number, in the order of the model, and outputs.json says which is which. All
 * files are complete before the first appears. */
#include "cli/measure/run_outputs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "util/json.h"
#include "util/util.h"

#define LIST "outputs.json"
enum { MOST_NAME = 180, ROOM = 220 };

typedef struct output {
    const char *name;
    char file[ROOM];
} output;

static void name_file(output *o, int number)
{
    int n = snprintf(o->file, MOST_NAME, "%s", o->name);
    n = UTIL_MIN(n, MOST_NAME - 1);
    for (char *c = o->file; *c; c++)
        *c = isalnum((unsigned char)*c) || strchr("_-.", *c) ? *c : '_';
    if (number > 1)
        snprintf(o->file + n, (size_t)(ROOM - n), ".%d.npy", number);
    else
        snprintf(o->file + n, (size_t)(ROOM - n), ".npy");
}

/* Names first that need no number, so that "a.2" keeps its own. */
static int name_files(output *list, size_t n)
{
    util_names *taken = util_names_new(n);
    int rc = taken ? 0 : MOIRAI_EFAIL;
    for (size_t i = 0; i < n && !rc; i++) {
        name_file(&list[i], 1);
        rc = util_names_put(taken, list[i].file, (int32_t)i) < 0 ? MOIRAI_EFAIL : 0;
    }
    for (size_t i = 0; i < n && !rc; i++) {
        if (util_names_get(taken, list[i].file) == (int32_t)i)
            continue;
        for (int number = 2; util_names_get(taken, list[i].file) >= 0; number++)
            name_file(&list[i], number);
        rc = util_names_put(taken, list[i].file, (int32_t)i) < 0 ? MOIRAI_EFAIL : 0;
    }
    util_names_free(taken);
    return rc;
}

/* *out is to be freed; the names are the manifest's. */
static int list_outputs(output **out, size_t *n, const cli_run *w)
{
    yyjson_val *all = yyjson_obj_get(yyjson_doc_get_root(w->manifest), "outputs"), *value;
    size_t i, count;
    *n = yyjson_arr_size(all);
    *out = util_alloc(*n, sizeof **out);
    if (!*out)
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(all, i, count, value) {
        (*out)[i].name = yyjson_get_str(yyjson_obj_get(value, "name"));
    }
    int rc = name_files(*out, *n);
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

static int check_file(const cli_run *w, const char *folder, const char *file)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return access(path, F_OK) ? 0 : cli_writable(w->cli, path);
}

int cli_outputs_check(const cli_run *w)
{
    const char *folder = cli_text(w->cli, "output");
    output *list;
    size_t n;
    if (!folder)
        return 0;
    int rc = list_outputs(&list, &n, w);
    if (rc)
        return rc;
    for (size_t i = 0; i < n && !rc; i++)
        rc = check_file(w, folder, list[i].file);
    rc = rc ? rc : check_file(w, folder, LIST);
    free(list);
    return rc;
}

/* ---- writing ---- */

static int copy_file(const char *from, const char *folder, const char *name)
{
    char *data, to[4400];
    size_t length;
    int rc = util_file_read(&data, &length, from);
    if (rc)
        return rc;
    snprintf(to, sizeof to, "%s/%s", folder, name);
    rc = util_file_write(to, data, length);
    free(data);
    return rc;
}

static int write_list(const char *folder, const output *list, size_t n)
{
    char path[4400];
    util_writer o;
    snprintf(path, sizeof path, "%s/" LIST, folder);
    util_writer_begin(&o, "moirai-outputs");
    util_writer_pair_open(&o, "outputs", '[');
    for (size_t i = 0; i < n; i++) {
        util_writer_break(&o);
        util_writer_open(&o, '{');
        util_writer_pair_string(&o, "name", list[i].name);
        util_writer_pair_string(&o, "file", list[i].file);
        util_writer_close(&o, '}');
    }
    util_writer_close(&o, ']');
    util_writer_close(&o, '}');
    return util_writer_save(&o, path);
}

static void show(const cli_run *w, const char *folder, const output *list, size_t n)
{
    yyjson_mut_val *all = yyjson_mut_obj_add_arr(w->cli->doc, w->cli->result, "outputs");
    for (size_t i = 0; i < n; i++) {
        yyjson_mut_val *one = yyjson_mut_arr_add_obj(w->cli->doc, all);
        yyjson_mut_obj_add_strcpy(w->cli->doc, one, "name", list[i].name);
        yyjson_mut_obj_add_strcpy(w->cli->doc, one, "file", list[i].file);
    }
    cli_say(w->cli, "wrote %zu outputs to %s\n", n, folder);
}

int cli_outputs_write(const cli_run *w)
{
    const char *folder = cli_text(w->cli, "output");
    util_stage stage = {0};
    output *list;
    size_t n;
    if (!folder)
        return 0;
    int rc = list_outputs(&list, &n, w);
    rc = rc ? rc : util_stage_open(&stage, folder);
    for (size_t i = 0; i < n && !rc; i++) {
        char from[4200];
        snprintf(from, sizeof from, "%s/output_%zu.npy", w->outputs, i);
        rc = copy_file(from, stage.inside, list[i].file);
    }
    rc = rc ? rc : write_list(stage.inside, list, n);
    rc = util_stage_close(&stage, rc, LIST);
    if (!rc)
        show(w, folder, list, n);
    free(list);
    return rc;
}
