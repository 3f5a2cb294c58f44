/* SPDX-License-Identifier: MIT */
/* gemm_impl.h - exact products for x86, in terms of a level's vectors
 *
 * Included once by gemm_256.c and gemm_avx512.c, which first define
 *
 *     MR, NR              rows (two vectors) and columns of a tile
 *     VF, LANES           vector of floats, and its number of lanes
 *     vf_zero, vf_loadu, vf_storeu, vf_add, vf_fma (a*b + c)
 *     vf_load             aligned
 *     vf_all(p)           the float at p in all lanes
 *     vf_transpose(v)     v[LANES]: rows become steps
 *     FEW, pack_few       packs FEW rows, less than LANES
 *     TILE                the name of the tile, with the level's suffix
 *     CASES               CASE(1) to CASE(NR)
 */

/* The tile for a number of columns that the compiler knows. */
static GG_ALWAYS_INLINE void multiply_tile(const float *w, const float *x,
                                           size_t k, int n_cols, float *y,
                                           size_t y_stride, int add)
{
    VF acc[NR][2];
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        acc[j][0] = acc[j][1] = vf_zero();
        GG_PREFETCH_W(y + j * y_stride);
        if (LANES == 16) /* one more line of the cache */
            GG_PREFETCH_W(y + j * y_stride + 16);
        GG_PREFETCH_W(y + j * y_stride + MR - 1);
    }
    for (size_t p = 0; p < k; p++, w += MR, x += NR) {
        const VF w0 = vf_load(w), w1 = vf_load(w + LANES);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VF b = vf_all(x + j);
            acc[j][0] = vf_fma(w0, b, acc[j][0]);
            acc[j][1] = vf_fma(w1, b, acc[j][1]);
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++, y += y_stride) {
        if (add) {
            acc[j][0] = vf_add(vf_loadu(y), acc[j][0]);
            acc[j][1] = vf_add(vf_loadu(y + LANES), acc[j][1]);
        }
        vf_storeu(y, acc[j][0]);
        vf_storeu(y + LANES, acc[j][1]);
    }
}

#define CASE(n)                                                               \
    case n: multiply_tile(w, x, k, n, y, y_stride, add); break;

void TILE(const void *w, const void *x, size_t n_blocks, unsigned n_cols,
          float *y, size_t y_stride, int add)
{
    const size_t k = n_blocks;
    switch (n_cols) {
        CASES
    }
}

static void pack_many(float *dst, size_t width, const float *src,
                      size_t stride, size_t k)
{
    size_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        VF v[LANES];
        GG_UNROLL
        for (int r = 0; r < LANES; r++)
            v[r] = vf_loadu(src + r * stride + p);
        vf_transpose(v);
        GG_UNROLL
        for (int r = 0; r < LANES; r++)
            vf_storeu(dst + (p + r) * width, v[r]);
    }
    for (; p < k; p++)
        for (size_t r = 0; r < LANES; r++)
            dst[p * width + r] = src[r * stride + p];
}

static void pack_floats(float *dst, size_t width, const float *src,
                        size_t stride, size_t rows, size_t k)
{
    size_t r = 0;
    for (; r + LANES <= rows; r += LANES)
        pack_many(dst + r, width, src + r * stride, stride, k);
    for (; r + FEW <= rows; r += FEW)
        pack_few(dst + r, width, src + r * stride, stride, k);
    for (; r < rows; r++)
        for (size_t p = 0; p < k; p++)
            dst[p * width + r] = src[r * stride + p];
}
