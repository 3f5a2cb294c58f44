/* gemm.h - kernels of dense products: pack panels, multiply tiles
 *
 * A product y[col][row] = sum over p of w[row][p] * x[col][p] is cut into
 * tiles of mr rows by nr columns. Both sides are first packed into panels, in
 * which the numbers that one step p needs lie side by side:
 *
 *     w panel   [k][mr]   mr rows of weights, decoded to f32
 *     x panel   [k][nr]   nr columns of activations
 *
 * Rows are the vector side (a row of y's tile is contiguous in memory, which
 * is why a tile is stored without shuffles), columns are broadcast. Kernels
 * know nothing of tensor types: a type needs a decode kernel and that is all.
 */
#ifndef GG_KERN_GEMM_H
#define GG_KERN_GEMM_H

#include <stddef.h>
#include <stdint.h>

/* Largest mr and nr of any level: for buffers on the stack. */
#define GG_GEMM_MAX_MR 32
#define GG_GEMM_MAX_NR 12

/* Multiply one tile.
 *
 * w        panel [k][mr], 64-byte aligned
 * x        panel [k][nr]
 * k        steps; 0 is a sum of nothing
 * n_cols   columns wanted, 1..nr: the others are neither computed nor stored
 * y        column j at y + j * y_stride floats, mr floats each
 * add      0: y = sum; else y = y + sum
 *
 * Each element is one chain of multiply-adds in order of p, from 0, and then
 * the addition to y: the result does not depend on where in a tile an element
 * lies nor on n_cols. Vector levels fuse multiply and add, C does not.
 * Contract: SUM.
 */
typedef void gg_gemm_tile_fn(const float *w, const float *x, size_t k,
                             unsigned n_cols, float *y, size_t y_stride,
                             int add);

/* Transpose rows into a panel: dst[p * width + r] = src[r * stride + p].
 *
 * rows     at most width; other columns of the panel are not touched
 * stride   floats
 * Contract: EXACT.
 */
typedef void gg_gemm_pack_fn(float *dst, size_t width, const float *src,
                             size_t stride, size_t rows, size_t k);

struct gg_gemm_kern {
    unsigned mr, nr; /* tile: rows (a multiple of 8), columns */
    unsigned kc;     /* steps per block, a multiple of 256 */
    unsigned mc;     /* rows per block, of mr each: w panels stay in L2 */
    unsigned round;  /* columns per round, of nr each. nr: their x panel stays
                        in L1, w panels pass by. More: x panels stay in L2, a
                        w panel meets them all before the next */
    gg_gemm_tile_fn *tile;
    gg_gemm_pack_fn *pack;
};

void gg_gemm_kern_init(struct gg_gemm_kern *k, uint32_t cpu);

gg_gemm_tile_fn gg_gemm_tile_c, gg_gemm_tile_avx2, gg_gemm_tile_avx512;
gg_gemm_pack_fn gg_gemm_pack_c, gg_gemm_pack_avx2, gg_gemm_pack_avx512;

/* Tile shapes, shared by a kernel and its row in gg_gemm_kern_init. */
enum {
    GG_GEMM_MR_C = 8,
    GG_GEMM_NR_C = 4,
    GG_GEMM_MR_AVX2 = 16,
    GG_GEMM_NR_AVX2 = 6,
    GG_GEMM_MR_AVX512 = 32,
    GG_GEMM_NR_AVX512 = 12
};

#endif
