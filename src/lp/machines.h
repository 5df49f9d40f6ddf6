/* Inner loops for newer instruction sets as well: the loader takes what the machine has. */
#ifndef MOIRAI_LP_MACHINES_H
#define MOIRAI_LP_MACHINES_H

/* Sanitizers are not ready when the loader chooses. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PRICING_FOR_EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PRICING_FOR_EACH_MACHINE
#endif

#endif
