/* SPDX-License-Identifier: MIT */
/* attn_i16_tile_impl.h - tiles of attention in integers
 *
 * Included once by the file of a level, which has included vi_256.h or vi_512.h
 * and defined
 *
 *     MR, NR, LANES    rows (two vectors) and columns of a tile, and lanes
 *     VI_DP(c, a, b)   c += the sums of products of the two 16-bit integers in
 *                      each 32 bits of a and b
 *     CASES            CASE(1) to CASE(NR)
 *     TILE             the name of the tile, with the level's suffix
 *
 * As the exact tile: all sums are in registers, each step is two loads of rows
 * and a broadcast of each column.
 */
enum {
    COLUMN = GG_ATTN_I16_STRIDE / 2,
    MOST = GG_ATTN_I16_STEPS / 2
}; /* pairs */

static GG_ALWAYS_INLINE void multiply_tile(const int32_t *w, const int32_t *x,
                                           size_t n_pairs, int n_cols,
                                           const float *row, const float *col,
                                           float *y, size_t y_stride)
{
    VI acc[NR][2];
    GG_UNROLL
    for (int j = 0; j < n_cols; j++)
        acc[j][0] = acc[j][1] = vi_zero();
    for (size_t n; n_pairs; n_pairs -= n, x += NR * COLUMN) {
        n = GG_MIN(n_pairs, (size_t)MOST);
        for (size_t p = 0; p < n; p++, w += MR) {
            const VI w0 = vi_load(w), w1 = vi_load(w + LANES);
            GG_UNROLL
            for (int j = 0; j < n_cols; j++) {
                const VI b =
                    vi_all((const float *)(const void *)(x + j * COLUMN + p));
                VI_DP(acc[j][0], w0, b);
                VI_DP(acc[j][1], w1, b);
            }
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++, y += y_stride) {
        const VF s = vf_all(col + j);
        VF a = vf_of(acc[j][0]), b = vf_of(acc[j][1]);
        if (row) {
            a = vf_mul(a, vf_mul(vf_loadu(row), s));
            b = vf_mul(b, vf_mul(vf_loadu(row + LANES), s));
        } else {
            a = vf_add(vf_loadu(y), vf_mul(a, s));
            b = vf_add(vf_loadu(y + LANES), vf_mul(b, s));
        }
        vf_storeu(y, a);
        vf_storeu(y + LANES, b);
    }
}

#define CASE(n)                                                               \
    case n:                                                                   \
        multiply_tile((const int32_t *)(const void *)w,                       \
                      (const int32_t *)(const void *)x, n_pairs, n, row, col, \
                      y, y_stride);                                           \
        break;

void TILE(const int16_t *w, const int16_t *x, size_t n_pairs, unsigned n_cols,
          const float *row, const float *col, float *y, size_t y_stride)
{
    switch (n_cols) {
        CASES
    }
}
