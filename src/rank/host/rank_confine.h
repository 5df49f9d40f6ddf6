/* Loading somebody else's model without letting it name files. */
#ifndef MOIRAI_RANK_HOST_RANK_CONFINE_H
#define MOIRAI_RANK_HOST_RANK_CONFINE_H

/* Calls `work` in a thread that can open for reading only what is below the folder of `model` (a file, or NULL: none), and
 * what libraries need; see the essay in rank_confine.c. Where rank_confine_version is 0, in a thread that can open
 * everything. */
void rank_confined(void (*work)(void *data), void *data, const char *model);

/* The version of Landlock that confines, 0: this kernel has none, or MOIRAI_LANDLOCK=0 switches it off. */
int rank_confine_version(void);

#endif
