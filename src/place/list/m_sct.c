/* m-sct: Baechi's m-SCT (Jeon et al. 2020), small communication times under memory limits.
 *
 * Earliest task first (etf.c), with favourite children: favourites.c solves the linear programme that says which reader
 * of an operator should follow it on its device, and a device stays awake for the favourite child of what it ran last.
 *
 * Changed to fit model.md: see the two files. The programme may take three quarters of a time limit. Where that or an
 * interrupt ends it, operators whose piece of the programme was not solved have no favourite, which makes it m-ETF
 * there. O(E K log V + V K^2) besides the solver. */
#include "place/list/etf.h"
#include "place/list/favourites.h"
#include "place/placers.h"
#include "place/list/lp_whole.h"
#include "util/util.h"

#include <stdio.h>

static const moirai_param params[] = {
    {.name = "threshold",
     .kind = MOIRAI_PARAM_REAL,
     .value = 0.1,
     .least = 0,
     .most = 0.5,
     .help = "a reader is the favourite child where the linear programme's x is at most this"},
};

static void tell(const moirai_place_options *o, const place_favourites *f, double begun)
{
    char note[160];
    if (!o->budget.progress)
        return;
    snprintf(note, sizeof note, "linear programme %s: %.3f ms, %d of %d arcs are favourites, %d pieces, %d solved",
             f->complete ? "solved" : "stopped", f->lp_ns * 1e-6, f->n, f->n_arcs, f->n_blocks, f->n_solved);
    o->budget.progress(o->budget.progress_data, &(moirai_progress){.seconds = util_seconds() - begun,
                                                                   .letter = ' ',
                                                                   .makespan_ns = MOIRAI_UNKNOWN,
                                                                   .lower_bound_ns = MOIRAI_UNKNOWN,
                                                                   .work = f->n_solved,
                                                                   .note = note});
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    place_favourites f;
    double begun = util_seconds();
    util_stop stop = util_stop_of(&o->budget);
    place_favourites_task task = {.threshold = moirai_setting_real(o, &place_m_sct, "threshold"),
                                  .stop = place_etf_first(&stop)};
    int rc = place_favourites_find(&f, p, &task);
    if (rc)
        return rc;
    tell(o, &f, begun);
    rc = place_etf(out, p, &(place_etf_rules){.favourite = f.child, .stop = place_etf_rest(stop)});
    place_favourites_clear(&f);
    return rc;
}

const moirai_placer place_m_sct = {
    .name = "m-sct",
    .summary = "Baechi's m-SCT: m-ETF whose devices wait for favourite children, found by a linear programme",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .available = lp_whole_available,
    .place = place,
};
