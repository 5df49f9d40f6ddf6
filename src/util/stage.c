/* Folders: made, removed, and filled all at once.
 *
 * What a command writes as several files must not be there by half. The files are written into a hidden folder inside of
 * the one that was asked for, and renamed into it when all of them are complete: on the same disk, without copying. A
 * link with a file's name is replaced, never followed. */
#include "util/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int util_folder_make(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) && errno != EEXIST)
        return moirai_error(MOIRAI_EFAIL, "%s: can't make this folder: %s", path, strerror(errno));
    if (stat(path, &info) || !S_ISDIR(info.st_mode))
        return moirai_error(MOIRAI_EFAIL, "%s: not a folder", path);
    return 0;
}

int util_folder_temporary(char *out, size_t size, const char *name)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(out, size, "%s/%s-XXXXXX", base && *base ? base : "/tmp", name);
    if (n > 0 && (size_t)n < size && mkdtemp(out))
        return 0;
    int rc = moirai_error(MOIRAI_EFAIL, "%s: can't make a folder: %s", out,
                          (size_t)n < size ? strerror(errno) : "its path is too long");
    *out = '\0';
    return rc;
}

void util_folder_remove(const char *folder, int depth)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[4096];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < sizeof path && unlink(path) && depth > 0)
            util_folder_remove(path, depth - 1);
    }
    if (d)
        closedir(d);
    rmdir(folder);
}

int util_folder_sync(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *folder = slash ? strndup(file, slash == file ? 1 : (size_t)(slash - file)) : util_strdup(".");
    if (!folder)
        return moirai_error(MOIRAI_EFAIL, "%s: out of memory", file);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    free(folder);
    if (fd <
        0) /* a folder that may be written but not read: what is in it is renamed, and will be on disk in a while */
        return 0;
    if (fsync(fd) && errno != EINVAL && errno != EROFS)
        rc = moirai_error(MOIRAI_EFAIL, "%s: can't write its folder: %s", file, strerror(errno));
    close(fd);
    return rc;
}

/* ---- a stage ---- */

int util_stage_open(util_stage *s, const char *folder)
{
    *s = (util_stage){0};
    size_t room = strlen(folder) + 24;
    bool there = !access(folder, F_OK);
    int rc = util_folder_make(folder);
    if (rc)
        return rc;
    s->made = !there;
    s->folder = util_strdup(folder);
    s->inside = util_alloc(room, 1);
    if (s->folder && s->inside) {
        snprintf(s->inside, room, "%s/.moirai-XXXXXX", folder);
        if (mkdtemp(s->inside))
            return 0;
        rc = moirai_error(MOIRAI_EFAIL, "%s: can't write there: %s", folder, strerror(errno));
    } else {
        rc = MOIRAI_EFAIL;
    }
    free(s->inside);
    s->inside = NULL;
    return util_stage_close(s, rc, NULL);
}

static int move_file(const util_stage *s, const char *name)
{
    char from[4096], to[4096];
    if ((size_t)snprintf(from, sizeof from, "%s/%s", s->inside, name) >= sizeof from ||
        (size_t)snprintf(to, sizeof to, "%s/%s", s->folder, name) >= sizeof to)
        return moirai_error(MOIRAI_EUSAGE, "%s: the path is too long", s->folder);
    return rename(from, to) ? moirai_error(MOIRAI_EFAIL, "%s: can't replace: %s", to, strerror(errno)) : 0;
}

static int move_all(const util_stage *s, const char *last)
{
    struct dirent **list = NULL;
    int rc = 0, n = scandir(s->inside, &list, NULL, NULL);
    if (n < 0)
        return moirai_error(MOIRAI_EFAIL, "%s: can't read: %s", s->inside, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        if (!rc && strcmp(name, ".") && strcmp(name, "..") && (!last || strcmp(name, last)))
            rc = move_file(s, name);
        free(list[i]);
    }
    free(list);
    rc = rc || !last ? rc : move_file(s, last);
    return rc ? rc : util_folder_sync(s->inside);
}

int util_stage_close(util_stage *s, int rc, const char *last)
{
    rc = rc || !s->inside ? rc : move_all(s, last);
    if (s->inside)
        util_folder_remove(s->inside, 0);
    if (rc && s->made)
        rmdir(s->folder);
    free(s->inside);
    free(s->folder);
    *s = (util_stage){0};
    return rc;
}
