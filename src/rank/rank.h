/* The jobs of moirai-rank, one per file. Each takes the arguments after its name and returns the exit code. */
#ifndef MOIRAI_RANK_RANK_H
#define MOIRAI_RANK_RANK_H

int rank_probe(int argc, char **argv);   /* what the ranks and the links between them are */
int rank_profile(int argc, char **argv); /* times of a network's operators on the ranks' devices */
int rank_run(int argc, char **argv);     /* a device of a distributed inference */
int rank_fail(int argc, char **argv);    /* under a given mpirun: rank 0 could not prepare */
int rank_whole(int argc, char **argv);   /* the whole model, to verify against */
int rank_serve(int argc, char **argv);   /* a device that stays, for moirai serve */
int rank_turns(int argc, char **argv);   /* several plans, in turns */

#endif
