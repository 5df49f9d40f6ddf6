/* m-etf: Baechi's m-ETF (Jeon et al. 2020), earliest task first under memory limits. The engine is etf.c, and says what
 * was changed to fit model.md. O(E K log V) plus the keys that were too low. */
#include "place/list/etf.h"
#include "place/placers.h"

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    return place_etf(out, p, &(place_etf_rules){.stop = util_stop_of(&o->budget)});
}

const moirai_placer place_m_etf = {
    .name = "m-etf",
    .summary = "Baechi's m-ETF: the ready operator and device of earliest start",
    .place = place,
};
