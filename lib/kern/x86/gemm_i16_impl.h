/* gemm_i16_impl.h - tiles of 16-bit integers, in terms of a level's vectors
 *
 * Included once by the file of a level, as gemm_int_impl.h says.
 */
#include "kern/x86/gemm_int_impl.h"

/* A block, for numbers that the compiler knows. sums: for those of the runs so
 * far, unless there is one run. */
static GG_ALWAYS_INLINE void tile_block(const int32_t *w, const int32_t *x,
                                        float *y, size_t y_stride, int add,
                                        int n_cols, int n_scales, int n_mins,
                                        float *sums)
{
    const size_t n_pairs = GG_GEMM_INT_PAIRS / (unsigned)n_scales;
    const float *d =
        (const float *)(const void *)(w + (size_t)GG_GEMM_INT_PAIRS * MR);
    const float *m = d + (size_t)n_scales * MR;
    const float *s =
        (const float *)(const void *)(x + (size_t)GG_GEMM_INT_PAIRS * NR);
    const float *xm = s + NR;
    VF v[NR][2];
    for (int i = 0; i < n_cols * MR && n_scales > 1; i++)
        sums[i] = 0;
    for (int r = 0; r < n_scales; r++, d += MR) {
        VI acc[NR][2];
        dots(acc, w, x, NULL, n_pairs, n_cols);
        w += n_pairs * MR;
        x += n_pairs * NR;
        const VF d0 = vf_loadu(d), d1 = vf_loadu(d + LANES);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            float *sum = sums + j * MR;
            v[j][0] = vf_of(acc[j][0]);
            v[j][1] = vf_of(acc[j][1]);
            if (n_scales == 1) {
                v[j][0] = vf_mul(v[j][0], d0);
                v[j][1] = vf_mul(v[j][1], d1);
            } else {
                v[j][0] = vf_fma(v[j][0], d0, vf_loadu(sum));
                v[j][1] = vf_fma(v[j][1], d1, vf_loadu(sum + LANES));
                vf_storeu(sum, v[j][0]);
                vf_storeu(sum + LANES, v[j][1]);
            }
        }
    }
    if (n_scales > 1) {
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            v[j][0] = vf_loadu(sums + j * MR);
            v[j][1] = vf_loadu(sums + j * MR + LANES);
        }
    }
    for (int i = 0; i < n_mins; i++, m += MR, xm += NR)
        add_mins(v, m, xm, n_cols);
    GG_UNROLL
    for (int j = 0; j < n_cols; j++, y += y_stride) {
        const VF b = vf_all(s + j);
        if (add) {
            v[j][0] = vf_fma(v[j][0], b, vf_loadu(y));
            v[j][1] = vf_fma(v[j][1], b, vf_loadu(y + LANES));
        } else {
            v[j][0] = vf_mul(v[j][0], b);
            v[j][1] = vf_mul(v[j][1], b);
        }
        vf_storeu(y, v[j][0]);
        vf_storeu(y + LANES, v[j][1]);
    }
}

static GG_ALWAYS_INLINE void tile_blocks(const unsigned char *w,
                                         const unsigned char *x,
                                         size_t n_blocks, int n_cols, float *y,
                                         size_t y_stride, int add,
                                         int n_scales, int n_mins)
{
    _Alignas(64) float sums[NR * MR];
    for (size_t b = 0; b < n_blocks; b++) {
        tile_block((const int32_t *)(const void *)w,
                   (const int32_t *)(const void *)x, y, y_stride, add, n_cols,
                   n_scales, n_mins, sums);
        w += GG_GEMM_INT_W_BLOCK(MR, n_scales, n_mins);
        x += GG_GEMM_INT_X_BLOCK(NR, n_mins);
        add = 1;
    }
}

#define CASE(n)                                                               \
    case n:                                                                   \
        tile_blocks(w, x, n_blocks, n, y, y_stride, add, n_scales, n_mins);   \
        break;

/* As many columns as there is code for; y has room for them. */
static GG_ALWAYS_INLINE void tile_cols(const void *w, const void *x,
                                       size_t n_blocks, unsigned n_cols,
                                       float *y, size_t y_stride, int add,
                                       int n_scales, int n_mins)
{
    switch (n_cols) {
        CASES
    }
}

static void copy_cols(float *dst, size_t dst_stride, const float *src,
                      size_t src_stride, unsigned n_cols)
{
    for (unsigned j = 0; j < n_cols; j++)
        for (int i = 0; i < MR; i++)
            dst[j * dst_stride + i] = src[j * src_stride + i];
}

static GG_ALWAYS_INLINE void tile(const void *w, const void *x,
                                  size_t n_blocks, unsigned n_cols, float *y,
                                  size_t y_stride, int add, int n_scales,
                                  int n_mins)
{
    _Alignas(64) float all[NR * MR];
    const unsigned n = (n_cols + ROUND_TO - 1) / ROUND_TO * ROUND_TO;
    const bool whole = n == n_cols && n_blocks;
    float *to = whole ? y : all;
    const size_t stride = whole ? y_stride : MR;
    if (!whole) {
        for (int i = 0; i < NR * MR; i++)
            all[i] = 0;
        if (add)
            copy_cols(all, MR, y, y_stride, n_cols);
    }
    tile_cols(w, x, n_blocks, n, to, stride, add, n_scales, n_mins);
    if (!whole)
        copy_cols(y, y_stride, all, MR, n_cols);
}

#define X(scales, mins, most, level)                                          \
    GG_GEMM_INT_TILE(gg_kern_i16_tile_##scales##_##mins##_##level, scales,    \
                     mins)
GG_GEMM_I16_FORMS(X, LEVEL)
