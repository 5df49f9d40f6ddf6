/* What the command says, and where it may write. */
#include "cli/framework/cli.h"

#include <errno.h>
#include <math.h>
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

cli_human cli_human_ns(int64_t ns)
{
    cli_human t;
    if (ns < 0)
        snprintf(t.s, sizeof t.s, "-");
    else if (ns < 1000)
        snprintf(t.s, sizeof t.s, "%d ns", (int)ns);
    else if (ns < 1000000)
        snprintf(t.s, sizeof t.s, "%.3f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(t.s, sizeof t.s, "%.3f ms", (double)ns / 1e6);
    else
        snprintf(t.s, sizeof t.s, "%.3f s", (double)ns / 1e9);
    return t;
}

static cli_human scaled(double x, const char *unit)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E"};
    cli_human t;
    int i = 0;
    while (x >= 999.5 && i < 6) {
        x /= 1000;
        i++;
    }
    int digits = i == 0 ? 0 : x < 10 ? 2 : x < 100 ? 1 : 0;
    snprintf(t.s, sizeof t.s, "%.*f %s%s", digits, x, prefix[i], unit);
    return t;
}

cli_human cli_human_bytes(int64_t bytes)
{
    return scaled((double)bytes, "B");
}

cli_human cli_human_rate(int64_t bytes_per_second)
{
    return scaled((double)bytes_per_second, "B/s");
}

cli_human cli_human_flops(double flops)
{
    return scaled(flops, "flop");
}

cli_human cli_human_count(int64_t count)
{
    char digits[32];
    cli_human t;
    int n = snprintf(digits, sizeof digits, "%lld", (long long)count), used = 0;
    for (int i = 0; i < n; i++) {
        t.s[used++] = digits[i];
        if ((n - 1 - i) % 3 == 0 && i + 1 < n && digits[i] != '-')
            t.s[used++] = ',';
    }
    t.s[used] = '\0';
    return t;
}

cli_human cli_human_gap(double gap)
{
    cli_human t;
    if (gap < 0)
        snprintf(t.s, sizeof t.s, "-");
    else /* never show a gap as smaller than it is */
        snprintf(t.s, sizeof t.s, "%.2f %%", ceil(gap * 1e4 * (1 - 1e-12)) / 100);
    return t;
}
