/* SPDX-License-Identifier: MIT */
/* data.c - operations on the numbers of any list */
#include "config.h"
#include "data/data.h"
#include "base/compiler.h"
#include "dtype/interleave.h"

#include <float.h>
#include <math.h>

float gg_data_find_largest(const struct gg_data_rows *r, uint64_t first,
                           uint64_t n, float largest, float *buf,
                           uint64_t size)
{
    for (uint64_t k; n; first += k, n -= k) {
        k = GG_MIN(n, size);
        gg_data_read(r, first, k, buf);
        for (uint64_t e = 0; e < k; e++) {
            float x = fabsf(buf[e]);
            if (x > largest && x <= FLT_MAX)
                largest = x;
        }
    }
    return largest;
}

uint64_t gg_data_block_size(uint32_t dtype, uint64_t ne0, uint64_t *elements)
{
    const struct gguf_dtype_info *t = gguf_dtype_find(dtype);
    const int type = gg_dtype_index(dtype);
    const unsigned rows = type < 0 ? 1 : gg_interleave_rows(type);
    *elements = !t ? 0 : t->row_header || rows > 1 ? ne0 : t->block_len;
    if (!*elements)
        return 0;
    const uint64_t row =
        t->row_header + *elements / t->block_len * t->block_size;
    *elements *= rows;
    return row * rows;
}

static const struct gg_data *base_of(const struct gg_data *d)
{
    return ((const struct gg_data_overlay *)d)->base;
}

size_t gg_data_overlay_n_tensors(const struct gg_data *d)
{
    return gg_data_n_tensors(base_of(d));
}

void gg_data_overlay_info(const struct gg_data *d, size_t i,
                          struct gg_data_info *out)
{
    gg_data_info(base_of(d), i, out);
}
