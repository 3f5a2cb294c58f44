/* gemm.c - reference kernels of dense products */
#include "config.h"
#include "kern/gemm.h"

void gg_gemm_tile_c(const float *w, const float *x, size_t k, unsigned n_cols,
                    float *y, size_t y_stride, int add)
{
    enum { MR = GG_GEMM_MR_C, NR = GG_GEMM_NR_C };
    float acc[NR][MR] = { { 0 } };
    for (size_t p = 0; p < k; p++, w += MR, x += NR)
        for (unsigned j = 0; j < NR; j++)
            for (unsigned i = 0; i < MR; i++)
                acc[j][i] += w[i] * x[j];
    for (unsigned j = 0; j < n_cols; j++, y += y_stride)
        for (unsigned i = 0; i < MR; i++)
            y[i] = add ? y[i] + acc[j][i] : acc[j][i];
}

void gg_gemm_pack_c(float *dst, size_t width, const float *src, size_t stride,
                    size_t rows, size_t k)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t p = 0; p < k; p++)
            dst[p * width + r] = src[r * stride + p];
}
