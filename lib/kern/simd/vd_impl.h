/* SPDX-License-Identifier: MIT */
/* vd_impl.h - sums in double, in terms of a level's vectors
 *
 * Included once by vf_256.h and vf_avx512.h, which first define
 *
 *     VF                 vector of floats
 *     D                  vector of doubles, with half the lanes
 *     d_zero, d_add, d_fma (a*b + c), d_sum (of all lanes)
 *     d_lo(x), d_hi(x)   the lower and the upper floats of a vector
 */

/* Two vectors of sums, for the lower and for the upper lanes. */
typedef struct {
    D lo, hi;
} VD;

static inline VD vd_zero(void)
{
    return (VD){ d_zero(), d_zero() };
}

static inline VD vd_add(VD s, VF x)
{
    return (VD){ d_add(s.lo, d_lo(x)), d_add(s.hi, d_hi(x)) };
}

static inline VD vd_add_sq(VD s, VF x)
{
    const D lo = d_lo(x), hi = d_hi(x);
    return (VD){ d_fma(lo, lo, s.lo), d_fma(hi, hi, s.hi) };
}

static inline double vd_sum(VD s)
{
    return d_sum(d_add(s.lo, s.hi));
}
