/* gemm_int_impl.h - what tiles of integers share, in terms of a level's vectors
 *
 * Included once by the file of a level and a width of integers, which has
 * included gemm_int_256.h or gemm_int_512.h and defined LEVEL and VI_DP:
 *
 *     MR, NR           rows (two vectors) and columns of a tile
 *     VI, VF, LANES    vectors of 32-bit integers and of floats, how many
 *     vi_zero, vi_load (aligned), vi_all (the 32 bits at p in all lanes)
 *     VI_DP(c, a, b)   c += the sums of products in each 32 bits of a, which
 *                      are of weights, and b: of two of 16 bits, or of four
 *                      bytes of which a's have no sign
 *     vf_loadu, vf_storeu, vf_all, vf_mul, vf_fma (a*b + c)
 *     vf_of            integers to floats
 *     ROUND_TO, CASES  numbers of columns that there is code for: CASE(n)
 *     LEVEL            the suffix
 */

/* The integer sums of a run, n times 32 bits long, from begin's on or from 0.
 */
static GG_ALWAYS_INLINE void dots(VI acc[NR][2], const int32_t *w,
                                  const int32_t *x, const int32_t *begin,
                                  size_t n, int n_cols)
{
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        acc[j][0] = acc[j][1] =
            begin ? vi_all((const float *)(const void *)(begin + j))
                  : vi_zero();
    for (size_t p = 0; p < n; p++, w += MR, x += NR) {
        const VI w0 = vi_load(w), w1 = vi_load(w + LANES);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VI b = vi_all((const float *)(const void *)(x + j));
            VI_DP(acc[j][0], w0, b);
            VI_DP(acc[j][1], w1, b);
        }
    }
}

/* A group's minima times sums of activations. */
static GG_ALWAYS_INLINE void add_mins(VF v[NR][2], const float *m,
                                      const float *sum, int n_cols)
{
    const VF m0 = vf_loadu(m), m1 = vf_loadu(m + LANES);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        const VF b = vf_all(sum + j);
        v[j][0] = vf_fma(m0, b, v[j][0]);
        v[j][1] = vf_fma(m1, b, v[j][1]);
    }
}
