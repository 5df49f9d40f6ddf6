/* The placers of this library. A new one: its own file, its line here, its line in placer_registry.c. Private. */
#ifndef MOIRAI_PLACERS_H
#define MOIRAI_PLACERS_H

#include <moirai/placer.h>

extern const moirai_placer moirai_placer_single;
extern const moirai_placer moirai_placer_heft;
extern const moirai_placer moirai_placer_m_topo;
extern const moirai_placer moirai_placer_m_etf;
extern const moirai_placer moirai_placer_m_sct;
extern const moirai_placer moirai_placer_getf;
extern const moirai_placer moirai_placer_sequential;
extern const moirai_placer moirai_placer_chain;
extern const moirai_placer moirai_placer_random;
extern const moirai_placer moirai_placer_exact;
extern const moirai_placer moirai_placer_milp;
extern const moirai_placer moirai_placer_moirai;

#endif
