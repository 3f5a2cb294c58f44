/* SPDX-License-Identifier: MIT */
/* feedback_kern.c - filling the table of feedback's kernels */
#include "config.h"
#include "fit/feedback_kern.h"
#include "kern/cpu_features.h"

#define FILL(LEVEL)                                                           \
    *k = (struct gg_feedback_kern)                                            \
    {                                                                         \
        gg_feedback_product_##LEVEL,                                          \
            { gg_feedback_try_even_##LEVEL, gg_feedback_try_table_##LEVEL,    \
              gg_feedback_try_words_##LEVEL },                                \
            { gg_feedback_round_even_##LEVEL,                                 \
              gg_feedback_round_table_##LEVEL,                                \
              gg_feedback_round_words_##LEVEL },                              \
            { gg_feedback_descend_even_##LEVEL,                               \
              gg_feedback_descend_table_##LEVEL, NULL },                      \
            gg_feedback_cost_##LEVEL, gg_feedback_solve_##LEVEL               \
    }

void gg_feedback_kern_init(struct gg_feedback_kern *k, uint32_t cpu)
{
    FILL(c);
#if HAVE_KERN_256
    if (cpu & GG_CPU_256)
        FILL(256);
#endif
#if HAVE_X86_AVX512
    if (cpu & GG_CPU_AVX512)
        FILL(avx512);
#endif
    (void)cpu;
}
