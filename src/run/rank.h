/* The jobs of moirai-rank, one per file. Each takes the arguments after its name and returns the exit code. */
#ifndef MOIRAI_RUN_RANK_H
#define MOIRAI_RUN_RANK_H

int moirai_rank_about(int argc, char **argv);   /* what it is linked with, as JSON on stdout */
int moirai_rank_probe(int argc, char **argv);   /* what the ranks and the links between them are */
int moirai_rank_profile(int argc, char **argv); /* times of a network's operators on the ranks' devices */
int moirai_rank_run(int argc, char **argv);     /* a device of a distributed inference */
int moirai_rank_fail(int argc, char **argv);    /* under a given mpirun: rank 0 could not prepare */
int moirai_rank_whole(int argc, char **argv);   /* the whole model, to verify against */

#endif
