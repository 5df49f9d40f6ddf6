/* Inside GETF's linear programme: what writing, solving and proving share. Private. */
#ifndef MOIRAI_PLACE_LIST_GETF_STATE_H
#define MOIRAI_PLACE_LIST_GETF_STATE_H

#include "place/list/lp_whole.h"
#include "place/list/getf/colours.h"
#include "place/list/getf/getf_lp.h"

/* One path row stands for all edges from one colour to another; one sink row for all unread operators of a colour. */
typedef struct place_getf_state {
    const moirai_problem *p;
    const place_getf_task *task;
    lp_whole lp;
    place_colours colour;
    double scale;      /* solver's units per nanosecond */
    int32_t *leader;   /* operator -> the first of its group, or itself */
    uint64_t *devices; /* per operator */
    int32_t *x_column; /* per colour of a leader: of its first device; the others follow in order */
    int32_t *s_column; /* per colour */
    int32_t *row_off;  /* per colour: its path rows are row_off[c] .. row_off[c + 1] - 1 */
    int32_t *target;   /* per path row (from row_off[0] on): the readers' colour, */
    int32_t *edges;    /* and how many edges it stands for */
    int32_t *sink_row; /* per colour, MOIRAI_NONE where it is read */
    int32_t *load_row; /* per device */
    int64_t *flow;     /* proving: per operator, in units */
    int64_t *weight;   /* per device, in units */
} place_getf_state;

/* The first column of an operator's shares. */
static inline int32_t place_getf_column(const place_getf_state *s, int32_t op)
{
    return s->x_column[s->colour.of[s->leader[op]]];
}

/* Writes the programme of s->p and s->task, with the colours asked for; all else of *s must be 0. Closed in every case.
 */
int place_getf_open(place_getf_state *s, bool plain);
void place_getf_close(place_getf_state *s);

/* What the duals prove, in whole nanoseconds. Whatever the numbers are, the bound holds. MOIRAI_EFAIL: out of
 * memory. */
int place_getf_prove(int64_t *lower_ns, place_getf_state *s, const double *row_dual);

#endif
