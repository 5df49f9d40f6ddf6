/* The door to libmoirai-learn, the library of learnt placers. Private.
 *
 * It is a library of its own, loaded when such a placer is asked for, because it needs a BLAS: one that came with
 * libmoirai would stand in every process, where another package may have brought a different one of the same name. What
 * it shares with libmoirai (simulator, memory, files) it has a copy of, with hidden names. */
#ifndef MOIRAI_PLACE_LEARN_DOOR_LEARNT_H
#define MOIRAI_PLACE_LEARN_DOOR_LEARNT_H

#include <moirai/placer.h>

#define PLACE_LEARNT_MAX_GROUPS 256 /* that hrl can be told to use */

/* The one symbol of the library: moirai_learnt_library of type place_learnt_door. */
typedef struct place_learnt_door {
    const char *version; /* must be libmoirai's own: they share structs */
    /* The place function of the placer of that name. A failure's message is in `message`, of the same thread: the
     * library has its own. */
    int (*place)(moirai_plan **out, const char *placer, const moirai_problem *p, const moirai_place_options *o);
    const char *(*message)(void);
} place_learnt_door;

/* Where the library is: $MOIRAI_LEARN_LIBRARY, beside libmoirai or the command, or in a folder `moirai` among the
 * libraries of this installation. False, with the reason, where there is none. Nothing is loaded. */
bool place_learnt_find(char *path, size_t size, const char **why);
/* Loads it, once. MOIRAI_EFAIL where it is not there, can't be loaded, or is of another version. */
int place_learnt_open(const place_learnt_door **out);

#endif
