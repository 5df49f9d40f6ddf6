/* Whole files in and out. Writing goes through a temporary file in the same folder and a rename, so that a reader,
 * a full disk or a crash never meets half a file. Pipes and devices can't be renamed onto: they are written directly. Who is at the other end of
 * a pipe may never come: it is waited for in turns, and an interrupt ends that. */
#include "util/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_error(const char *path, const char *what)
{
    int rc = errno == EISDIR ? MOIRAI_EINPUT : MOIRAI_EFAIL; /* a folder was named in place of a file */
    return moirai_error(rc, "%s: %s: %s", path, what, strerror(errno));
}

/* ---- waiting ---- */

#define WAIT_MS 100

static const moirai_interrupt *_Atomic obeyed; /* NULL: none */

void util_file_obey(const moirai_interrupt *interrupt)
{
    atomic_store(&obeyed, interrupt);
}

static int gave_up(const char *path)
{
    return moirai_error(MOIRAI_EFAIL, "%s: interrupted while it was waited for", path);
}

/* Until there is something to read, or room to write; plain files always are ready. */
static int wait_for(int fd, short what, const moirai_interrupt *interrupt, const char *path)
{
    struct pollfd one = {.fd = fd, .events = what};
    for (;;) {
        int n = poll(&one, 1, WAIT_MS);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return io_error(path, "can't wait");
        if (moirai_interrupt_raised(interrupt))
            return gave_up(path);
    }
}

/* ---- reading ---- */

/* A problem of a million operators on 64 devices has a gigabyte, an ONNX model at most two. What is larger than this, or comes without end
 * from a device (a link to /dev/zero), is none of ours, and must not take all memory to find that out. */
#define MOST_BYTES ((size_t)4 << 30)
#define MOST_BYTES_OF_DEVICE ((size_t)64 << 20)

static int too_large(const char *path, size_t most)
{
    return moirai_error(MOIRAI_EINPUT, "%s: more than %zu MiB, which no file of moirai's is", path, most >> 20);
}

static size_t most_bytes(int fd)
{
    struct stat info;
    return !fstat(fd, &info) && S_ISCHR(info.st_mode) ? MOST_BYTES_OF_DEVICE : MOST_BYTES;
}

static int read_all(char **data, size_t *length, int fd, size_t expected, const char *path)
{
    size_t capacity = 0, n = 0, most = most_bytes(fd);
    if (expected > most)
        return too_large(path, most);
    char *bytes = NULL;
    if (util_grow(&bytes, &capacity, expected + 1, 1))
        return MOIRAI_EFAIL;
    for (;;) {
        /* One byte more than was expected: the end of the file is seen without growing. */
        if (n + 1 >= capacity && util_grow(&bytes, &capacity, capacity + 65536, 1)) {
            free(bytes);
            return MOIRAI_EFAIL;
        }
        int rc = wait_for(fd, POLLIN, atomic_load(&obeyed), path);
        ssize_t got = rc ? -1 : read(fd, bytes + n, capacity - n - 1);
        if (!rc && got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0) {
            free(bytes);
            return rc ? rc : io_error(path, "can't read");
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > most) {
            free(bytes);
            return too_large(path, most);
        }
    }
    bytes[n] = '\0';
    *data = bytes;
    *length = n;
    return 0;
}

int util_file_read(char **data, size_t *length, const char *path)
{
    if (!strcmp(path, "-"))
        return read_all(data, length, STDIN_FILENO, 65536, "standard input");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is opened before its writer is there */
    if (fd < 0) {
        io_error(path, "can't open");
        return MOIRAI_EINPUT; /* what the user named is not there; a disk that fails halfway is MOIRAI_EFAIL */
    }
    struct stat info;
    size_t expected = !fstat(fd, &info) && info.st_size > 0 ? (size_t)info.st_size + 1 : 65536;
    int rc = read_all(data, length, fd, expected, path);
    close(fd);
    return rc;
}

/* ---- writing ---- */

static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, data, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        data += put;
        length -= (size_t)put;
    }
    return 0;
}

static int write_stdout(const char *data, size_t length)
{
    if (fwrite(data, 1, length, stdout) != length || fflush(stdout))
        return io_error("standard output", "can't write");
    return 0;
}

/* A pipe that nobody reads yet can't be opened without waiting: it is tried again. */
static int open_direct(int *fd, const char *path, const moirai_interrupt *interrupt)
{
    while ((*fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK)) < 0) {
        if (errno != ENXIO && errno != EINTR)
            return io_error(path, "can't open");
        if (moirai_interrupt_raised(interrupt))
            return gave_up(path);
        poll(NULL, 0, WAIT_MS);
    }
    return 0;
}

/* What was found by the time of an interrupt is still written, whoever reads it: only one that comes from here on ends the waiting. */
static int write_direct(const char *path, const char *data, size_t length)
{
    const moirai_interrupt *interrupt = atomic_load(&obeyed);
    if (moirai_interrupt_raised(interrupt))
        interrupt = NULL;
    int fd, rc = open_direct(&fd, path, interrupt);
    if (rc)
        return rc;
    while (length > 0 && !rc) {
        ssize_t put = 0;
        rc = wait_for(fd, POLLOUT, interrupt, path);
        if (!rc && (put = write(fd, data, length)) < 0 && errno != EINTR && errno != EAGAIN)
            rc = io_error(path, "can't write");
        data += put > 0 ? put : 0;
        length -= put > 0 ? (size_t)put : 0;
    }
    if (close(fd) && !rc)
        rc = io_error(path, "can't write");
    return rc;
}

/* `mode` -1: a new file, the user's umask decides. */
static int write_replace(const char *target, const char *path, int mode, const char *data, size_t length)
{
    static atomic_uint serial; /* several threads may write beside each other */
    size_t size = strlen(target) + 48;
    char *temporary = util_alloc(size, 1);
    if (!temporary)
        return MOIRAI_EFAIL;
    snprintf(temporary, size, "%s.%ld-%u.tmp", target, (long)getpid(), atomic_fetch_add(&serial, 1));
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        free(temporary);
        return io_error(path, "can't create");
    }
    int failed = write_all(fd, data, length) || (mode >= 0 && fchmod(fd, (mode_t)mode)) || fsync(fd);
    int rc = failed ? io_error(path, "can't write") : 0;
    if (close(fd) && !failed)
        rc = io_error(path, "can't write");
    if (!rc && rename(temporary, target))
        rc = io_error(path, "can't replace");
    if (rc)
        unlink(temporary);
    else
        rc = util_folder_sync(target); /* or a crash could take the new name back */
    free(temporary);
    return rc;
}

int util_file_write(const char *path, const char *data, size_t length)
{
    if (!strcmp(path, "-"))
        return write_stdout(data, length);
    struct stat info;
    if (stat(path, &info))
        return write_replace(path, path, -1, data, length);
    if (S_ISDIR(info.st_mode))
        return moirai_error(MOIRAI_EFAIL, "%s: is a folder", path);
    if (!S_ISREG(info.st_mode))
        return write_direct(path, data, length);
    /* A symbolic link stays one: replace what it points to. */
    char *target = realpath(path, NULL);
    if (!target)
        return io_error(path, "can't resolve");
    int rc = write_replace(target, path, (int)(info.st_mode & 07777), data, length);
    free(target);
    return rc;
}
