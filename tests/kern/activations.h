/* SPDX-License-Identifier: MIT */
/* activations.h - tests of integer products: activations of every kind, and
 * the forms of each type
 *
 * Include it in the one file of a program that includes tests/tap.h: it draws
 * that file's random numbers.
 */
#ifndef TESTS_KERN_ACTIVATIONS_H
#define TESTS_KERN_ACTIVATIONS_H

#include "kern/gemm_i8.h"
#include "tests/kern/kern.h"
#include "tests/kern/tile_model.h"
#include "tests/tap.h"

#include <math.h>

enum { ACTS_STEPS = GG_GEMM_INT_STEPS };

enum acts {
    ACTS_NORMAL,
    ACTS_EQUAL,    /* equal magnitudes: the largest possible sum */
    ACTS_OUTLIER,  /* one is far above the others */
    ACTS_INTEGERS, /* integers, which rounding keeps */
    ACTS_ZEROS,
    ACTS_TINY,
    ACTS_NOT_FINITE,
    N_ACTS
};

/* Returns p. Ends the program if p is NULL. */
static inline void *activations_must(void *p)
{
    if (!p) {
        printf("Bail out! out of memory\n");
        exit(1);
    }
    return p;
}

static inline void activations_fill(float *x, size_t n, enum acts kind)
{
    for (size_t i = 0; i < n; i++) {
        float v = 0;
        for (int k = 0; k < 4; k++)
            v += (float)rnd_below(2000) - 999.5f;
        switch (kind) {
        case ACTS_EQUAL: v = rnd_below(2) ? 3.7f : -3.7f; break;
        case ACTS_OUTLIER: v = i % 200 == 77 ? 1e9f : v; break;
        case ACTS_INTEGERS:
            v = i % ACTS_STEPS == 5 ? -32767 : (float)rnd_below(200) - 100;
            break;
        case ACTS_ZEROS: v = 0; break;
        case ACTS_TINY: v *= 0x1p-140f; break;
        case ACTS_NOT_FINITE: v = i % 300 == 9 ? (i & 1 ? NAN : INFINITY) : v;
        default: break;
        }
        x[i] = v;
    }
}

/* A type, at a level, in a form that a precision multiplies. */
struct acts_form {
    const char *level;
    const struct gg_kern *kern;
    int dtype, form;
};

/* Levels of products: those of this machine, and the model of tiles. */
enum { ACTS_LEVELS = 9 };
static inline unsigned acts_levels(struct test_level level[ACTS_LEVELS])
{
    unsigned n = test_levels(level);
    if (tile_model_name() && level[n - 1].mask & tile_model_mask())
        level[n++] =
            (struct test_level){ tile_model_name(), tile_model_mask() };
    return n;
}

static inline void acts_kern_init(struct gg_kern *kern,
                                  const struct test_level *level)
{
    gg_kern_init(kern, level->mask);
    if (level->name == tile_model_name())
        tile_model_init(kern);
}

/* Call g->tile() as a product does. */
static inline void acts_tile(const struct gg_kern_gemm *g, const void *w,
                             const void *x, size_t n_blocks, unsigned n_cols,
                             float *y, size_t y_stride, int add)
{
    if (g->enter)
        g->enter(g);
    g->tile(w, x, n_blocks, n_cols, y, y_stride, add);
    if (g->leave)
        g->leave();
}

/* Number of columns to test after n: all, or of large tiles those at the ends
 * of tile registers. */
static inline unsigned acts_next_cols(const struct gg_kern_gemm *g, unsigned n)
{
    if (g->nr <= 12)
        return n + 1;
    return n == 5 ? 15 : n == 17 ? 31 : n + 1;
}

/* Call fn once for each form, at every level. */
static inline void
acts_each_form(void (*fn)(const struct acts_form *f, void *user), void *user)
{
    static struct gg_kern kern;
    struct test_level level[ACTS_LEVELS];
    const unsigned n = acts_levels(level);
    for (unsigned i = 0; i < n; i++) {
        acts_kern_init(&kern, &level[i]);
        for (int t = 0; t < GG_N_DTYPES; t++)
            for (int p = GG_PRECISION_INT16, last = GG_GEMM_EXACT;
                 p < GG_N_PRECISIONS; p++) {
                kern.precision = (enum gg_kern_precision)p;
                const int form = (int)gg_kern_gemm_form_of(&kern, t);
                if (form != last)
                    fn(&(struct acts_form){ level[i].name, &kern, t, form },
                       user);
                last = form;
            }
    }
}

#endif
