/* A mixture while it is made: plans as columns, their programme, prices. Private. */
#ifndef MOIRAI_RATE_MIX_H
#define MOIRAI_RATE_MIX_H

#include "lp/simplex.h"
#include "rate/search.h"

#define MIX_COLUMNS 256
#define MIX_ROWS 1024    /* resources, at most */
#define MIX_CHEAPER 1e-4 /* of T: worth a column */

/* Where operators may be, so that all of a mixture's plans fit together (allow.c). */
typedef struct mix_room {
    uint64_t *devices; /* per unit; NULL: everywhere */
    int32_t *home;     /* per unit: one of these. One plan of all homes fits */
} mix_room;

typedef struct mixture {
    rate_search *s;
    util_stop stop;
    const mix_room *room;
    pricing_simplex *lp;
    int32_t R;
    double ease;                  /* what is counted of ports and channels, by what they carry */
    int32_t *column[MIX_COLUMNS]; /* devices, owned */
    int64_t *load_ns;             /* [column * R + resource] */
    int32_t n;
    double unit_ns, value;
    double least; /* no mixture has less, counted with this ease; 0: not known */
    double *dual, *primal, *price;
    double *centre; /* prices that do not swing */
    int32_t *row;
    double *entry;
} mixture;

/* Takes a plan as a column; what has no room goes home. */
int mix_add_column(mixture *x, const int32_t *device);
/* What a column costs. */
double mix_cost(const mixture *x, const double *price, int32_t column);
/* Adds the plans that are cheapest at the programme's prices, and at some towards the centre; *found where one is worth a column (hunt.c). `part`: of the usual steps, where they must be annealed. */
int mix_price_columns(mixture *x, double part, bool *found);

/* Room for the plans of the columns with the shares x->primal, those first that are used most; open with {0}. *enough: there is some. */
int mix_room_open(mix_room *room, const mixture *x, bool *enough);
void mix_room_close(mix_room *room);

#endif
