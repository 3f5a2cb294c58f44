/* SPDX-License-Identifier: MIT */
/* codec.h - rows of blocks to floats and back
 *
 * The C reference of each decoder and encoder (kern/c) defines the result:
 * strict IEEE single precision in the order that its source shows. The variants
 * for all levels give the same bits for every input, infinity included. The
 * only exception is the sign and payload of a NaN, which C leaves to the
 * compiler.
 *
 * For finite input, decoded floats and encoded bytes equal those of ggml
 * (commit d99724f, ggml_quantize_chunk of an x86-64 build without contraction),
 * even if a block's scale overflows. Rows of a fork's types have the bytes and
 * floats of ik_llama.cpp (August 2026) built for AVX2 without contraction. ggml
 * does not encode F64; here the float is widened, which is exact.
 *
 * A quantized block whose scale is NaN or infinite, or that was encoded from
 * such numbers, decodes to meaningless numbers, but without undefined
 * behaviour. quant/run looks for such numbers before it encodes.
 */
#ifndef GG_KERN_CODEC_H
#define GG_KERN_CODEC_H

#include "dtype/dtype_int.h"
#include "kern/codec_list.h"

#include <stddef.h>
#include <stdint.h>

/* Decode a row or a part of it. The part starts at the row's first element. For
 * types without a row header, it may start at any block. Rows of interleaved
 * types are first taken out of their groups (dtype/interleave.h).
 *
 * src      the row's bytes (header, then blocks), of any alignment
 * dst      n floats, must not overlap src
 * n        elements, a multiple of the type's block_len
 *
 * Cannot fail, whatever the bytes are; any thread.
 */
typedef void gg_kern_decode_fn(const void *src, float *dst, size_t n);

/* Encode rows.
 *
 * src      n_rows * row_len floats, row after row
 * dst      the rows' bytes, row after row, of any alignment; every byte of
 *          them is written; must not overlap src
 * row_len  elements in a row, a multiple of the type's block_len
 * weight   row_len importances, finite and not negative, the same for all
 *          rows, or NULL; types without GG_CODEC_WEIGHT do not look at it,
 *          types with GG_CODEC_NEEDS_WEIGHT must have it
 *
 * Rows are independent: any division of a tensor into calls gives the same
 * bytes. Cannot fail; any thread.
 */
typedef void gg_kern_encode_fn(const float *src, void *dst, size_t n_rows,
                               size_t row_len, const float *weight);

/* Multiply one row by up to three columns.
 *
 * sum      sum[j] = sum over i < n of w[i] * x[j * x_stride + i]
 * w        part of a row, from any block on. Elements of types without blocks
 *          (F32, F16, BF16) are in the machine's byte order, as in tensors in
 *          memory. A type with a row header has no such kernel.
 * x        column j begins at x + j * x_stride floats
 * n_cols   1 to GG_KERN_DOTS_COLS
 * n        a multiple of the type's block_len
 *
 * If all w and x are finite, the bits of sum[j] are those of gg_vec_dot_fn
 * (vec.h) of the same level on the decoded row and the column. Levels may give
 * different bits. Cannot fail; any thread.
 */
enum { GG_KERN_DOTS_COLS = 3 };
typedef void gg_kern_dots_fn(float *sum, const void *w, const float *x,
                             size_t x_stride, size_t n_cols, size_t n);

#define GG_CODEC_WEIGHT       (1u << 0) /* importances change the result */
#define GG_CODEC_NEEDS_WEIGHT (1u << 1) /* importances are required */

/* Kernels of one type. NULL: this build lacks the kernel. */
struct gg_codec_kern {
    gg_kern_decode_fn *decode;
    gg_kern_encode_fn *encode; /* NULL for interleaved types */
    /* Interleaved types: writes rows of the plain type, which are put into
     * groups afterwards (dtype/interleave.h). NULL: that type's encode. */
    gg_kern_encode_fn *encode_apart;
    gg_kern_dots_fn *dots;
    uint32_t flags; /* GG_CODEC_... */
};

/* Limit of the magnitudes of type GG_DT_...: numbers of this magnitude or a
 * larger one are out of the range of every block. INFINITY for types with the
 * range of floats. Encoders do not check the limit. The result of encoding a
 * number out of range is unspecified; it may be zero, because sums of squares
 * overflow. A number below the limit can still give an infinite block, through
 * the other elements of the block or through importances. */
float gg_codec_max_magnitude(int dtype);

/* Fill table[GG_N_DTYPES] (index GG_DT_...) with kernels. Each is the one of
 * the highest level in cpu (bits GG_CPU_...) that has it; C is the lowest
 * level. Decoders and encoders work on rows in the byte order of little-endian
 * files. */
void gg_codec_kern_init(struct gg_codec_kern *table, uint32_t cpu);

/* Replace the decoders and encoders in table by those for tensors in memory, in
 * which elements of types without blocks are in the machine's byte order
 * (gg_byte_order_differs). Changes nothing on little-endian machines. */
void gg_codec_kern_set_native_order(struct gg_codec_kern *table);

/* Functions of the levels: gg_kern_decode_q4_k_c and so on. */
#define X(TYPE, NAME, DECODE_C, DECODE_256, ENCODE_C, ENCODE_256,             \
          ENCODE_AVX512, DOTS_C, DOTS_256, DOTS_AVX512, FLAGS)                \
    GG_CODEC_##DECODE_C(gg_kern_decode_fn gg_kern_decode_##NAME##_c;)         \
        GG_CODEC_##DECODE_256(gg_kern_decode_fn gg_kern_decode_##NAME##_256;) \
            GG_CODEC_##ENCODE_C(gg_kern_encode_fn gg_kern_encode_##NAME##_c;) \
                GG_CODEC_##ENCODE_256(                                        \
                    gg_kern_encode_fn gg_kern_encode_##NAME##_256;)           \
                    GG_CODEC_##ENCODE_AVX512(                                 \
                        gg_kern_encode_fn gg_kern_encode_##NAME##_avx512;)    \
                        GG_CODEC_##DOTS_C(                                    \
                            gg_kern_dots_fn gg_kern_dots_##NAME##_c;)         \
                            GG_CODEC_##DOTS_256(                              \
                                gg_kern_dots_fn gg_kern_dots_##NAME##_256;)   \
                                GG_CODEC_##DOTS_AVX512(                       \
                                    gg_kern_dots_fn                           \
                                        gg_kern_dots_##NAME##_avx512;)
GG_CODEC_LIST(X)
#undef X

#endif
