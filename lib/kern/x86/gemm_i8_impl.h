/* gemm_i8_impl.h - tiles of bytes, in terms of a level's vectors
 *
 * Included once by the file of a level, as gemm_int_impl.h says.
 */
#include "kern/x86/gemm_int_impl.h"

/* A block, for numbers that the compiler knows, added to sums. */
static GG_ALWAYS_INLINE void tile_block(const int32_t *w, const int32_t *x,
                                        float *sums, int n_cols, int n_scales,
                                        int n_mins)
{
    const size_t n_quads = GG_GEMM_I8_QUADS / (unsigned)n_scales;
    const float *d =
        (const float *)(const void *)(w + (size_t)GG_GEMM_I8_QUADS * MR);
    const float *m = d + (size_t)n_scales * MR;
    const int32_t *begin = x + (size_t)GG_GEMM_I8_QUADS * NR;
    const float *s =
        (const float *)(const void *)(begin + (size_t)n_scales * NR);
    const float *xm = s + (size_t)GG_GEMM_I8_SCALES * NR;
    for (int r = 0; r < n_scales; r++) {
        VI acc[NR][2];
        VF v[NR][2];
        dots(acc, w, x, begin, n_quads, n_cols);
        const VF d0 = vf_loadu(d), d1 = vf_loadu(d + LANES);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const VF b = vf_all(s + j);
            float *sum = sums + j * MR;
            v[j][0] = vf_fma(vf_of(acc[j][0]), vf_mul(d0, b), vf_loadu(sum));
            v[j][1] =
                vf_fma(vf_of(acc[j][1]), vf_mul(d1, b), vf_loadu(sum + LANES));
        }
        for (int i = 0; i < n_mins / n_scales; i++, m += MR, xm += NR)
            add_mins(v, m, xm, n_cols);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            vf_storeu(sums + j * MR, v[j][0]);
            vf_storeu(sums + j * MR + LANES, v[j][1]);
        }
        w += n_quads * MR;
        x += n_quads * NR;
        begin += NR;
        d += MR;
        if (n_scales == GG_GEMM_I8_SCALES || r % 2)
            s += NR;
    }
}

static GG_ALWAYS_INLINE void tile_blocks(const unsigned char *w,
                                         const unsigned char *x,
                                         size_t n_blocks, int n_cols,
                                         float *sums, int n_scales, int n_mins)
{
    for (int i = 0; i < n_cols * MR; i++)
        sums[i] = 0;
    for (size_t b = 0; b < n_blocks; b++) {
        tile_block((const int32_t *)(const void *)w,
                   (const int32_t *)(const void *)x, sums, n_cols, n_scales,
                   n_mins);
        w += GG_GEMM_I8_W_BLOCK(MR, n_scales, n_mins);
        x += GG_GEMM_I8_X_BLOCK(NR, n_scales, n_mins);
    }
}

#define CASE(n)                                                               \
    case n: tile_blocks(w, x, n_blocks, n, sums, n_scales, n_mins); break;

static GG_ALWAYS_INLINE void tile(const void *w, const void *x,
                                  size_t n_blocks, unsigned n_cols, float *y,
                                  size_t y_stride, int add, int n_scales,
                                  int n_mins)
{
    _Alignas(64) float sums[NR * MR];
    switch ((n_cols + ROUND_TO - 1) / ROUND_TO * ROUND_TO) {
        CASES
    }
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (int h = 0; h < MR; h += LANES) {
            const VF v = vf_loadu(sums + j * MR + h);
            vf_storeu(y + h, add ? vf_add(vf_loadu(y + h), v) : v);
        }
}

#define X(scales, mins, level)                                                \
    GG_GEMM_INT_TILE(gg_kern_i8_tile_##scales##_##mins##_##level, scales, mins)
GG_GEMM_I8_TILES(X, LEVEL)
