/* Problems by name: what the engine is measured on beside the zoo, so that it is tuned to no file.
 *
 * A name has six parts, and the same name gives the same problem on every machine:
 *
 *     FAMILY/OPERATORS/DEVICES/TIMES/TRANSFER/SEED    task graphs: fork-join/2000/6/unrelated/0.5/1
 *     NETWORK/SIZE/CLUSTER/COST/GRAPH/SEED            networks:    experts/medium/inter-server/fitted/coarsened/2
 *
 * TIMES: related (one speed per device), kinds (four kinds of operators, each with its own ratios of devices),
 * unrelated. TRANSFER: the mean time of a transfer over tensors and pairs of devices, as a part of the mean time of an
 * operator over devices. SIZE: small, medium, large. CLUSTER: inter-server, intra-server, or a number of unequal
 * devices. COST: fitted (eager launches), roofline. GRAPH: original, coarsened.
 *
 * Whatever else a problem has (widths, depths, uneven branches, what a fork sends, uneven links, latencies, memory that
 * binds) is drawn from the name. Odd seeds are for tuning, even ones judge and are not to be looked at while tuning. */
#ifndef MOIRAI_GENERATE_GENERATE_H
#define MOIRAI_GENERATE_GENERATE_H

#include <moirai/problem.h>

#define GENERATE_NAME 96 /* bytes that hold every name of the list */

typedef enum generate_half { GENERATE_TUNE, GENERATE_JUDGE, GENERATE_BOTH } generate_half;

/* The problem of that name; *out is the caller's. MOIRAI_EUSAGE names the part that is not understood. */
int generate_problem(moirai_problem **out, const char *name);
/* Which half a name belongs to, by its seed. */
generate_half generate_half_of(const char *name);
/* What kind of problem a name is: "families", "side by side" or "networks". Static. */
const char *generate_group_of(const char *name);
/* How many problems the list has, and the name of each, in an order in which every beginning is a fair sample: families
 * and settings take turns. `out` holds GENERATE_NAME bytes. */
int generate_count(void);
void generate_name(char *out, int index);

/* How many families and networks there are, and their names, for tests and help; families first. Static. */
int generate_family_count(void);
const char *generate_family_name(int index);

/* *g fused by the rules of ONNX Runtime; it stays as it was on failure. */
int generate_coarsen(moirai_graph **g);

#endif
