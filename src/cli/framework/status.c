/* What the command is doing, on one line of the terminal that is drawn again every second and taken away before
 * anything else is written. A thread of its own draws it, so that reading, certifying and running show as well as a
 * search does. Nothing is drawn where stderr is no terminal; what a search has to say there is its log's business
 * (tick). */
#include "cli/framework/cli.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "util/text.h"
#include "util/util.h"

#define PATIENCE_S 0.9 /* before a phase is named: most are over by then */

static struct {
    pthread_mutex_t lock;   /* of everything below and of the terminal's last line */
    pthread_mutex_t asking; /* while `tick` is at work: who takes it away waits */
    pthread_cond_t wake;
    pthread_t thread;
    bool running, terminal, drawn, over;
    char doing[256];
    double since;
    cli_tick_fn tick;
    void *data;
} status = {.lock = PTHREAD_MUTEX_INITIALIZER, .asking = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* With the lock held. */
static void take_away(void)
{
    if (status.drawn && write(STDERR_FILENO, "\r\033[K", 4) < 0)
        return; /* a terminal that is gone shows nothing */
    status.drawn = false;
}

static size_t width(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || w.ws_col < 20 ? 79 : (size_t)w.ws_col - 1;
}

static void draw(const char *text)
{
    char line[512] = "\r\033[K";
    size_t room = width(), used = 4;
    for (; *text && used + 5 < sizeof line && room; text++) {
        room -= ((unsigned char)*text & 0xC0) != 0x80;
        line[used++] = *text;
    }
    status.drawn = write(STDERR_FILENO, line, used) > 0;
}

/* One look at what goes on. */
static void look(void)
{
    char text[512] = "";
    pthread_mutex_lock(&status.asking);
    pthread_mutex_lock(&status.lock);
    cli_tick_fn tick = status.tick;
    void *data = status.data;
    double seconds = util_seconds() - status.since;
    if (!tick && *status.doing && seconds >= PATIENCE_S)
        snprintf(text, sizeof text, "%s ... %.0f s", status.doing, seconds);
    pthread_mutex_unlock(&status.lock);
    if (tick)
        tick(data, text, sizeof text); /* may write lines of its own */
    util_clean(text);
    pthread_mutex_lock(&status.lock);
    if (status.terminal && *text && !status.over)
        draw(text);
    pthread_mutex_unlock(&status.lock);
    pthread_mutex_unlock(&status.asking);
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&status.lock);
    while (!status.over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        if (pthread_cond_timedwait(&status.wake, &status.lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&status.lock);
        look();
        pthread_mutex_lock(&status.lock);
    }
    pthread_mutex_unlock(&status.lock);
    return NULL;
}

void cli_status_open(bool quiet)
{
    status.terminal = !quiet && isatty(STDERR_FILENO);
}

bool cli_status_terminal(void)
{
    return status.terminal;
}

/* The thread is there once there is something to watch. */
static void start(void)
{
    if (!status.running && !pthread_create(&status.thread, NULL, watch, NULL))
        status.running = true;
}

static void set(bool now, const char *format, va_list args)
{
    pthread_mutex_lock(&status.lock);
    vsnprintf(status.doing, sizeof status.doing, format, args);
    util_clean(status.doing); /* names of files may hold anything */
    status.since = util_seconds();
    if (now && !status.over)
        draw(status.doing);
    else
        take_away();
    start();
    pthread_mutex_unlock(&status.lock);
}

void cli_status_set(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (status.terminal)
        set(false, format, args);
    va_end(args);
}

void cli_status_now(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (status.terminal)
        set(true, format, args);
    va_end(args);
}

void cli_status_watch(cli_tick_fn tick, void *data)
{
    pthread_mutex_lock(&status.asking);
    pthread_mutex_lock(&status.lock);
    take_away();
    status.tick = tick;
    status.data = data;
    status.doing[0] = '\0';
    if (tick)
        start();
    pthread_mutex_unlock(&status.lock);
    pthread_mutex_unlock(&status.asking);
}

void cli_status_clear(void)
{
    pthread_mutex_lock(&status.lock);
    take_away();
    pthread_mutex_unlock(&status.lock);
}

void cli_status_close(void)
{
    pthread_mutex_lock(&status.lock);
    bool running = status.running;
    status.over = true;
    take_away();
    pthread_cond_signal(&status.wake);
    pthread_mutex_unlock(&status.lock);
    if (running)
        pthread_join(status.thread, NULL);
}
