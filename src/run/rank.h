/* The jobs of moirai-rank, one per file. Each takes the arguments after its name and returns the exit code. */
#ifndef MOIRAI_RUN_RANK_H
#define MOIRAI_RUN_RANK_H

int moirai_rank_about(int argc, char **argv); /* what it is linked with, as JSON on stdout */

#endif
