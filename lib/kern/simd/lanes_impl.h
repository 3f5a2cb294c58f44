/* SPDX-License-Identifier: MIT */
/* lanes_impl.h - the functions of lanes.h
 *
 * Included once by the file of a width of vectors, after rows_256.h or
 * rows_512.h. With LANES_SIGNED, the functions are those of signed bytes.
 */
#include "dtype/iq_code.h"
#include "kern/simd/lanes.h"

struct to {
    struct lanes *w;
    size_t n;
    /* constants once this is inlined: */
    int bias, apart, min_first;
};
#define TO struct to

static GG_ALWAYS_INLINE void put_quads(struct to *to, const VI *q, size_t at,
                                       size_t n)
{
    GG_UNROLL
    for (size_t t = 0; t < n; t++)
        to->w->q[at + t] = q[t];
}

static GG_ALWAYS_INLINE void put_run(struct to *to, const VI q[PARTS],
                                     size_t i)
{
    put_quads(to, q, PARTS * i, PARTS);
}

static GG_ALWAYS_INLINE void put_own(struct to *to, const VI q[PARTS],
                                     size_t i, VF d)
{
    put_run(to, q, i);
    to->w->d[i] = d;
}

static GG_ALWAYS_INLINE void put_sub(struct to *to, const VI q[PARTS],
                                     size_t i, VI sub)
{
    put_run(to, q, i);
    to->w->sub[i] = sub;
}

static GG_ALWAYS_INLINE void put_half(struct to *to, const VI q[4], size_t i,
                                      VI sub)
{
    put_quads(to, q, 4 * i, 4);
    to->w->sub[i] = sub;
}

static GG_ALWAYS_INLINE void put_d(struct to *to, VF d)
{
    to->w->d[0] = d;
}

static GG_ALWAYS_INLINE void put_min(struct to *to, size_t i, VF m)
{
    to->w->min[i] = m;
}

#include "kern/simd/lanes_blocks.h"
#include "kern/simd/lanes_codes.h"

#define LANES(FN, NAME, N, BIAS, APART)                                       \
    void FN(struct lanes *w, const struct rows *r, size_t n)                  \
    {                                                                         \
        const struct rows rows = *r;                                          \
        struct to to = { w, n, BIAS, APART, 0 };                              \
        BLOCKS_##N(NAME, &to, &rows);                                         \
    }
#ifdef LANES_SIGNED
#define SIGNED_2(NAME, N)
#define SIGNED_3(NAME, N) LANES(LANES_OF(NAME, LANES_SIGNED), NAME, N, 0, 0)
#define SIGNED_4(NAME, N)
#define SIGNED_5(NAME, N)
#define SIGNED_6(NAME, N)
#define SIGNED_7 SIGNED_3
#define SIGNED_8 SIGNED_3
#define X(level, type, NAME, KIND, N, SCALES, MINS, BIAS, BITS, ...)          \
    SIGNED_##BITS(NAME, N)
GG_KERN_FEW_ALL(X, )
#undef X
#else
#define X(level, type, NAME, KIND, N, SCALES, MINS, BIAS, ...)                \
    LANES(LANES_OF(NAME, ROWS_LEVEL), NAME, N, BIAS, 0)
GG_KERN_FEW_ALL(X, )
#undef X
LANES(LANES_OF(q2_k_apart, ROWS_LEVEL), q2_k, 1, 0, 1)
#endif
