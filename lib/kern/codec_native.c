/* SPDX-License-Identifier: MIT */
/* codec_native.c - codecs of plain numbers in the machine's byte order
 *
 * Used where that differs from a file's: they differ from the codecs of files
 * (c/deq_flt.c, c/enc_flt.c) only in loading and storing a number.
 */
#include "config.h"
#include "base/bytes.h"
#include "dtype/f16.h"
#include "kern/codec.h"

/* FLOAT: expression for the float of a number whose bits are v. */
#define DECODER(NAME, BITS, FLOAT)                                            \
    static void decode_##NAME(const void *src, float *dst, size_t n)          \
    {                                                                         \
        const uint8_t *p = src;                                               \
        uint##BITS##_t v;                                                     \
        for (size_t i = 0; i < n; i++) {                                      \
            memcpy(&v, p + sizeof v * i, sizeof v);                           \
            dst[i] = FLOAT;                                                   \
        }                                                                     \
    }
DECODER(f32, 32, gg_bytes_f32_from_bits(v))
DECODER(f16, 16, gg_dtype_f16_to_f32(v))
DECODER(bf16, 16, gg_dtype_bf16_to_f32(v))
DECODER(f64, 64, (float)gg_bytes_f64_from_bits(v))
DECODER(i16, 16, (int16_t)v)
DECODER(i32, 32, (float)(int32_t)v)
DECODER(i64, 64, (float)(int64_t)v)

/* BITS_OF: expression for the bits of the number that x becomes. */
#define ENCODER(NAME, BITS, OF)                                               \
    static void encode_##NAME(const float *src, void *dst, size_t n_rows,     \
                              size_t row_len, const float *weight)            \
    {                                                                         \
        uint8_t *p = dst;                                                     \
        (void)weight;                                                         \
        for (size_t i = 0; i < n_rows * row_len; i++) {                       \
            float x = src[i];                                                 \
            uint##BITS##_t v = OF;                                            \
            memcpy(p + sizeof v * i, &v, sizeof v);                           \
        }                                                                     \
    }
ENCODER(f32, 32, gg_bytes_f32_bits(x))
ENCODER(f16, 16, gg_dtype_f32_to_f16(x))
ENCODER(bf16, 16, gg_dtype_f32_to_bf16(x))
ENCODER(f64, 64, gg_bytes_f64_bits((double)x))

void gg_codec_kern_set_native_order(struct gg_codec_kern *table)
{
    if (gg_bytes_host_is_le())
        return;
    table[GG_DT_F32].decode = decode_f32;
    table[GG_DT_F16].decode = decode_f16;
    table[GG_DT_BF16].decode = decode_bf16;
    table[GG_DT_F64].decode = decode_f64;
    table[GG_DT_I16].decode = decode_i16;
    table[GG_DT_I32].decode = decode_i32;
    table[GG_DT_I64].decode = decode_i64;
    table[GG_DT_F32].encode = encode_f32;
    table[GG_DT_F16].encode = encode_f16;
    table[GG_DT_BF16].encode = encode_bf16;
    table[GG_DT_F64].encode = encode_f64;
}
