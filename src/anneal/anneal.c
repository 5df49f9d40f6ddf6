/* Simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983).
 *
 * Temperatures fall geometrically. A worse state is accepted with probability exp(-rise / temperature), which is the same
 * as a threshold on the rise, -temperature * log(uniform), drawn before the state is evaluated: so an evaluation can end
 * where it passes the threshold, which most do. What a state is, how it changes and what it is worth is the
 * caller's: devices and priorities of a block (pair/anneal.c), devices and one order of the whole
 * (place/moirai/whole/whole_anneal.c), a path of block plans within memory (bytes/bytes_polish.c).
 * The work is counted in steps, so that the result depends on the seed, not on the time. */
#include "anneal/anneal.h"

#include <math.h>

void anneal_run(const anneal_task *job)
{
    double rate = log(job->cold / job->hot) / (double)UTIL_MAX(job->steps, 1), temperature = job->hot;
    for (int64_t step = 0; step < job->steps; step++) {
        if (step % job->stride == 0) {
            if (util_stopped(job->stop))
                return;
            temperature = job->hot * exp(rate * (double)step);
            if (job->renew)
                job->renew(job->data);
        }
        if (job->move)
            job->move(job->data);
        if (!job->judge(job->data, -temperature * log(1 - util_rng_real(job->rng))))
            return;
    }
}
