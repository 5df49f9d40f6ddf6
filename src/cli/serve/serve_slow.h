/* Devices that become slower than expected, and plans around them. */
#ifndef MOIRAI_CLI_SERVE_SERVE_SLOW_H
#define MOIRAI_CLI_SERVE_SERVE_SLOW_H

#include "cli/serve/serve_group.h"

enum { SERVE_SLOW_MOST = 64 };

/* What the server is to do now. */
typedef enum serve_slow_word { SERVE_SLOW_STAY, SERVE_SLOW_TAKE, SERVE_SLOW_BACK } serve_slow_word;

typedef struct serve_slow {
    const cli_context *cli;
    const serve_group *first;       /* of the plan that is served: its devices are counted here */
    bool for_rate;                  /* it was made for many requests */
    double limit, for_s;            /* --slow, --slow-for */
    double base[SERVE_SLOW_MOST];   /* [device] times as long as planned when nothing is slow; 0: not known */
    double fast_s[SERVE_SLOW_MOST]; /* [device] since when it has been faster than that; 0: it is not */
    double factor[SERVE_SLOW_MOST],
        wanted[SERVE_SLOW_MOST]; /* [device] that the plan at work, that the next one assumes */
    double since_s, asked_s;     /* when what is to change was seen first, 0: it was not; when it was looked last */
    double retry_s, pause_s;     /* when a device without work is tried again, and how long after that */
    int n_made;
    serve_group group[2]; /* the one at work, and the next */
    pthread_t thread;
    bool has_thread;
    atomic_int state; /* of the thread: 0 nothing, 1 at work, 2 a group is ready, 3 no plan was found */
    char message[1100];
} serve_slow;

void serve_slow_open(serve_slow *w, const cli_context *cli, const serve_group *first, bool for_rate);
/* Once the group `now` serves: what was measured against what was expected. SERVE_SLOW_TAKE: *next is prepared for that. */
serve_slow_word serve_slow_look(serve_slow *w, serve *server, const serve_group *now, serve_group **next);
/* Is this one of its groups? And in words: "device 'B' at 0.33 of its speed". */
bool serve_slow_has(const serve_slow *w, const serve_group *g);
void serve_slow_say(const serve_slow *w, char *out, size_t size);
/* The group `g` has taken over. */
void serve_slow_taken(serve_slow *w, const serve_group *g);
void serve_slow_close(serve_slow *w);
/* What a group's plan expects of its ranks, to its link. */
int serve_slow_expect(const serve_group *g);

#endif
