/* SPDX-License-Identifier: MIT */
/* feedback_kern.c - filling the table of feedback's kernels */
#include "config.h"
#include "fit/feedback_kern.h"
#include "base/compiler.h"
#include "kern/cpu_features.h"

/* The kernels of a level. BUILT is GG_256(), which gives NULL in a build
 * without the level, or ALWAYS(). */
#define KERN(BUILT, LEVEL)                                                    \
    {                                                                         \
        BUILT(gg_feedback_product_##LEVEL),                                   \
            { BUILT(gg_feedback_try_even_##LEVEL),                            \
              BUILT(gg_feedback_try_table_##LEVEL),                           \
              BUILT(gg_feedback_try_words_##LEVEL) },                         \
            { BUILT(gg_feedback_round_even_##LEVEL),                          \
              BUILT(gg_feedback_round_table_##LEVEL),                         \
              BUILT(gg_feedback_round_words_##LEVEL) },                       \
            { BUILT(gg_feedback_descend_even_##LEVEL),                        \
              BUILT(gg_feedback_descend_table_##LEVEL), NULL },               \
            BUILT(gg_feedback_cost_##LEVEL), BUILT(gg_feedback_solve_##LEVEL) \
    }
#define ALWAYS(kernel) kernel

/* The last level that this build and processor have is taken. */
static const struct {
    unsigned level;
    struct gg_feedback_kern kern;
} levels[] = { { GG_LEVEL_C, KERN(ALWAYS, c) },
               { GG_LEVEL_256, KERN(GG_256, 256) },
               GG_IF_AVX512({ GG_LEVEL_AVX512, KERN(ALWAYS, avx512) }, ) };

void gg_feedback_kern_init(struct gg_feedback_kern *k, uint32_t cpu)
{
    for (size_t i = 0; i < GG_LEN(levels); i++)
        if (levels[i].kern.product &&
            gg_kern_cpu_has_level(cpu, levels[i].level))
            *k = levels[i].kern;
}
