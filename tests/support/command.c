#include "support/command.h"
#include "support/check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yyjson.h>

char *shell_out, *shell_err;
static char folder[64], before[4096];
static yyjson_doc *document;

int enter_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/moirai-test-XXXXXX");
    setenv("M", MOIRAI_COMMAND, 1);
    return !getcwd(before, sizeof before) || !mkdtemp(folder) || chdir(folder);
}

int leave_folder(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s' '%s.out' '%s.err'", folder, folder, folder);
    free(shell_out);
    free(shell_err);
    shell_out = shell_err = NULL;
    yyjson_doc_free(document);
    document = NULL;
    return chdir(before) || system(line);
}

char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    size_t used = 0, size = 65536;
    char *text = malloc(size);
    while (text) {
        size_t got = fread(text + used, 1, size - used - 1, f);
        used += got;
        if (!got)
            break;
        if (used + 1 == size)
            text = realloc(text, size *= 2);
    }
    fclose(f);
    assert_non_null(text);
    text[used] = '\0';
    return text;
}

void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int files_here(void)
{
    DIR *d = opendir(".");
    int n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

static int run_line(const char *format, va_list args)
{
    char line[4096], whole[4400], path[96];
    vsnprintf(line, sizeof line, format, args);
    /* Outputs lie beside the folder, so that it holds only what the command left. */
    snprintf(whole, sizeof whole, "{ %s\n} >%s.out 2>%s.err", line, folder, folder);
    int status = system(whole);
    free(shell_out);
    free(shell_err);
    snprintf(path, sizeof path, "%s.out", folder);
    shell_out = read_text(path);
    snprintf(path, sizeof path, "%s.err", folder);
    shell_err = read_text(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

int shell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int code = run_line(format, args);
    va_end(args);
    return code;
}

void assert_runs(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int code = run_line(format, args);
    va_end(args);
    if (code)
        fail_msg("'%s' ended with %d: %s", format, code, shell_err);
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

void assert_fails(int code, const char *part, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int got = run_line(format, args);
    va_end(args);
    if (got != code)
        fail_msg("'%s' ended with %d, not %d: %s", format, got, code, shell_err);
    if (strncmp(shell_err, "moirai: ", 8) || strchr(shell_err, '\n') != shell_err + strlen(shell_err) - 1)
        fail_msg("'%s': not one line: %s", format, shell_err);
    assert_contains(shell_err, part);
}

yyjson_val *shell_json(void)
{
    yyjson_doc_free(document);
    document = yyjson_read(shell_out, strlen(shell_out), 0);
    if (!document)
        fail_msg("not JSON: %s", shell_out);
    return yyjson_doc_get_root(document);
}
