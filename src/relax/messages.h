/* What every operator costs at given prices, its own part, and messages over edges whose readers are open; and what is made of it: better
 * prices, the numbers of a leaf, balanced loads. Private. */
#ifndef MOIRAI_RELAX_MESSAGES_H
#define MOIRAI_RELAX_MESSAGES_H

#include "relax/view.h"
#include "util/util.h"

typedef struct relax_state {
    const relax_view *v;
    const relax_case *c;
    double *price;      /* per resource */
    double *byte_price; /* per device */
    double *unary;      /* [op * K + device]: without messages */

    /* Live edges: those whose reader is open. */
    size_t n_messages;     /* edges x devices; 0: transfers load nothing */
    double *from, *to;     /* [edge * K + device] */
    int32_t *open;         /* packet -> how many live edges; */
    uint64_t *served;      /* and which devices get it in any case of this case */
    int32_t *shared;       /* packet -> its number among those with several live edges, or MOIRAI_NONE */
    double *used;          /* [(shared * K + k) * K + l]: what its edges take together */
    int32_t *n_in, *n_out; /* operator -> live edges */
    uint64_t *there;       /* working memory: packet -> devices that have it */
    util_memory memory;
} relax_state;

int relax_state_open(relax_state *s, const relax_view *v, const relax_case *c);
void relax_state_close(relax_state *s);

/* An operator on a device at the prices: its time, its bytes, and its parts. */
double relax_own_cost(const relax_state *s, int32_t i, int32_t k);
/* The costs at s->price and s->byte_price. Messages are feasible again after the next relax_sweep. O(V K + E K^2). */
void relax_set_costs(relax_state *s);
/* Messages once forwards and once backwards through the order; for given prices the value does not fall but by rounding. False where `stop`
 * ended it on its way: the messages gone through are of these prices, the others as they were. O(E K^2). */
bool relax_sweep(relax_state *s, const util_stop *stop);
/* The sum of the cheapest devices: with the offsets and bytes of prices.c a bound. */
double relax_value(const relax_state *s);
/* A device for each operator, one after the other by what they cost with the messages. */
void relax_decode(uint8_t *device, const relax_state *s);

/* Time of packet from k to l at the prices. */
static inline double relax_cost(const relax_state *s, const int64_t *transfer_ns, int32_t k, int32_t l)
{
    schedule_held held = schedule_holds(s->v->p, k, l);
    double price = s->price[held.a] + (held.b == MOIRAI_NONE ? 0 : s->price[held.b]);
    return price * (double)transfer_ns[k * s->v->K + l];
}

static inline bool relax_live(const relax_state *s, int32_t e)
{
    return !relax_single(s->c->devices[s->v->p->edge_reader[e]]);
}

/* ---- prices.c: the best prices of a case, by cutting planes ---- */

typedef struct relax_prices_task {
    double goal_ns; /* enough */
    int32_t rounds;
    bool bytes;                  /* memory may be short: prices on bytes as well */
    const relax_oracle *exactly; /* the cheapest assignments; NULL: by messages */
    util_stop stop;
} relax_prices_task;

/* Raises the value of the state's case from the prices and messages that it has; it ends with the best. *value_ns: the solver's
 * number, no proof. */
int relax_find_prices(double *value_ns, relax_state *s, const relax_prices_task *job);

/* ---- round.c: prices and messages as the whole numbers of a leaf ---- */

/* All of an empty leaf but what is proven; `length_ns`: about that. To be cleared also after a failure. */
int relax_leaf_write(relax_leaf *leaf, const relax_state *s, const relax_fixed *fixed, int32_t n_fixed,
                     double length_ns);
/* The numbers of a leaf where these operators are fixed: it proves no less where they are more. To be cleared also after a failure. */
int relax_leaf_with(relax_leaf *out, const relax_leaf *leaf, const moirai_problem *p, const relax_fixed *fixed,
                    int32_t n_fixed);
/* Copies of shifts and paths for a leaf that has none; a failure is seen by util_taken_all. */
void relax_leaf_take_rows(relax_leaf *leaf, const relax_rows *rows);
void relax_leaf_clear(relax_leaf *leaf);
/* The same on another device of its first operator, which is exchanged with the one that it is on; what that proves is evaluated: any numbers
 * prove something (docs/theory.md, Theorem 15). To be cleared also after a failure. */
int relax_leaf_exchange(relax_leaf *out, const relax_leaf *leaf, const moirai_problem *p, int32_t device,
                        const util_stop *stop);
/* The leaf is all of the proof, and is left empty. */
int relax_proof_alone(relax_proof *out, relax_leaf *leaf);

/* ---- paths.c: paths as rows, for shifts.c ---- */

/* Room for the operators of all paths. */
size_t relax_paths_room(const moirai_problem *p);
/* Paths that take longer than `length`: the longest first, then the longest by operators of no other. O(E) each. */
int relax_paths_add(relax_rows *rows, const moirai_problem *p, const double *time, double length);

/* ---- balance.c: from the cheapest devices at good prices to loads that are balanced ---- */

/* Changes `device` until the largest load with its offset is about target_ns, or no move helps. *load_ns gets it. O(V K) memory;
 * a few passes of O(V K + E K). */
int relax_balance(int64_t *load_ns, uint8_t *device, const relax_state *s, int64_t target_ns, const util_stop *stop);
/* The same by annealing, from a device for each operator: O(steps x degree). Deterministic. */
int relax_balance_anneal(int64_t *load_ns, uint8_t *device, const relax_view *v, const relax_case *c, int64_t target_ns,
                         int64_t steps, const util_stop *stop);

#endif
