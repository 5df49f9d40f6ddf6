/* The placers of this library. A new one: its own file, its line here, its line in placer_registry.c. Private. */
#ifndef MOIRAI_PLACE_PLACERS_H
#define MOIRAI_PLACE_PLACERS_H

#include <moirai/placer.h>

#include "util/stop.h"

extern const moirai_placer place_single;
extern const moirai_placer place_heft;
extern const moirai_placer place_sequential;
extern const moirai_placer place_chain;
extern const moirai_placer place_m_topo;
extern const moirai_placer place_m_etf;
extern const moirai_placer place_m_sct;
extern const moirai_placer place_getf;
extern const moirai_placer place_random;
extern const moirai_placer place_placeto;
extern const moirai_placer place_hrl;
extern const moirai_placer place_exact;
extern const moirai_placer place_milp;
extern const moirai_placer place_moirai;

/* The plan of m-topo; where it may fail, MOIRAI_ELIMIT if the time is up before its first simulation has ended. */
int place_m_topo_within(moirai_plan **out, const moirai_problem *p, const util_stop *stop, bool may_fail);

/* Congestion device, where transfers hold their devices (moirai/hold.c): the placer's plan for ports, carried out and improved with devices
 * held; its bounds hold here as well. As placer->place. */
int place_holding_devices(moirai_plan **out, const moirai_problem *p, const moirai_placer *placer,
                          const moirai_place_options *o);

/* MOIRAI_EUSAGE where the placer declares no such setting, or none of that value. */
int place_check_setting(const moirai_placer *placer, const moirai_setting *setting);

#endif
