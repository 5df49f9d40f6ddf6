/* What the command says, and where it may write. */
#include "cli/framework/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_print(const cli_context *cli, const char *format, ...)
{
    if (cli->stdout_taken ? cli->quiet : cli->json)
        return;
    va_list args;
    cli_status_clear();
    va_start(args, format);
    cli_vprint(cli->stdout_taken ? stderr : stdout, format, args);
    va_end(args);
}

void cli_say(const cli_context *cli, const char *format, ...)
{
    if (cli->quiet)
        return;
    va_list args;
    cli_status_clear();
    va_start(args, format);
    cli_vprint(stderr, format, args);
    va_end(args);
}

static int folder_writable(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, sizeof folder, ".");
    else if (slash == path)
        snprintf(folder, sizeof folder, "/");
    else if ((size_t)(slash - path) < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    else
        return moirai_error(MOIRAI_EFAIL, "%.60s...: the path is too long", path);
    if (access(folder, W_OK | X_OK))
        return moirai_error(MOIRAI_EFAIL, "%s: folder '%s': %s", path, folder, strerror(errno));
    return 0;
}

int cli_writable(const cli_context *cli, const char *path)
{
    struct stat s;
    if (!path || !strcmp(path, "-"))
        return 0;
    if (stat(path, &s))
        return errno == ENOENT ? folder_writable(path) : moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode))
        return moirai_error(MOIRAI_EFAIL, "%s: is a folder", path);
    if (!S_ISREG(s.st_mode)) /* a pipe or device: nothing is lost */
        return access(path, W_OK) ? moirai_error(MOIRAI_EFAIL, "%s: %s", path, strerror(errno)) : 0;
    if (!cli_has(cli, "force"))
        return moirai_error(MOIRAI_EFAIL, "%s: exists already: --force replaces it", path);
    return folder_writable(path);
}
