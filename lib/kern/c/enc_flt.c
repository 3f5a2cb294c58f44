/* SPDX-License-Identifier: MIT */
/* enc_flt.c - reference encoders of plain floats: rounding, nothing else; to
 * F64 not even that (ggml has no encoder of it) */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "dtype/f8.h"

void gg_kern_encode_f32_c(const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight)
{
    (void)weight;
    uint8_t *p = dst;
    if (gg_bytes_host_is_le()) {
        if (n_rows && row_len)
            memcpy(dst, src, 4 * n_rows * row_len);
        return;
    }
    for (size_t i = 0; i < n_rows * row_len; i++)
        gg_bytes_store32le(p + 4 * i, gg_bytes_f32_bits(src[i]));
}

void gg_kern_encode_f16_c(const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight)
{
    (void)weight;
    uint8_t *p = dst;
    for (size_t i = 0; i < n_rows * row_len; i++)
        gg_bytes_store16le(p + 2 * i, gg_dtype_f32_to_f16(src[i]));
}

void gg_kern_encode_bf16_c(const float *src, void *dst, size_t n_rows,
                           size_t row_len, const float *weight)
{
    (void)weight;
    uint8_t *p = dst;
    for (size_t i = 0; i < n_rows * row_len; i++)
        gg_bytes_store16le(p + 2 * i, gg_dtype_f32_to_bf16(src[i]));
}

void gg_kern_encode_f64_c(const float *src, void *dst, size_t n_rows,
                          size_t row_len, const float *weight)
{
    (void)weight;
    uint8_t *p = dst;
    for (size_t i = 0; i < n_rows * row_len; i++)
        gg_bytes_store64le(p + 8 * i, gg_bytes_f64_bits((double)src[i]));
}

void gg_kern_encode_f8_e4m3_c(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    (void)weight;
    uint8_t *p = dst;
    for (size_t i = 0; i < n_rows * row_len; i++)
        p[i] = gg_dtype_f32_to_f8(src[i]);
}
