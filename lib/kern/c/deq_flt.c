/* SPDX-License-Identifier: MIT */
/* deq_flt.c - reference decoders of plain numbers
 *
 * Every one is a conversion; F64 and the wider integers round to nearest
 * even (ggml converts none of these itself).
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "dtype/f8.h"

void gg_kern_decode_f32_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    if (gg_bytes_host_is_le()) {
        if (n)
            memcpy(dst, src, 4 * n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dst[i] = gg_bytes_f32_from_bits(gg_bytes_load32le(p + 4 * i));
}

void gg_kern_decode_f16_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = gg_dtype_f16_to_f32(gg_bytes_load16le(p + 2 * i));
}

void gg_kern_decode_bf16_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = gg_dtype_bf16_to_f32(gg_bytes_load16le(p + 2 * i));
}

void gg_kern_decode_f64_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)gg_bytes_f64_from_bits(gg_bytes_load64le(p + 8 * i));
}

void gg_kern_decode_f8_e4m3_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = gg_dtype_f8_to_f32(p[i]);
}

void gg_kern_decode_i8_c(const void *src, float *dst, size_t n)
{
    const int8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = p[i];
}

void gg_kern_decode_i16_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = (int16_t)gg_bytes_load16le(p + 2 * i);
}

void gg_kern_decode_i32_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)(int32_t)gg_bytes_load32le(p + 4 * i);
}

void gg_kern_decode_i64_c(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)(int64_t)gg_bytes_load64le(p + 8 * i);
}
