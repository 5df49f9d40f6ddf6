/* Plans where transfers hold their devices (congestion device). Private. */
#ifndef MOIRAI_PLACE_HOLD_H
#define MOIRAI_PLACE_HOLD_H

#include <moirai/placer.h>

/* The placer's plan for ports, carried out and improved with devices held; its bounds hold here as well. As placer->place. */
int place_holding_devices(moirai_plan **out, const moirai_problem *p, const moirai_placer *placer,
                          const moirai_place_options *o);

#endif
