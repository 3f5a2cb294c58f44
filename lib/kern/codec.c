/* SPDX-License-Identifier: MIT */
/* codec.c - filling the table of codecs: C first, then each level */
#include "config.h"
#include "kern/codec.h"
#include "dtype/interleave.h"
#include "kern/cpu_features.h"

#include <string.h>

/* The kernels of a type, by level with floats. */
struct row {
    gg_kern_decode_fn *decode[GG_N_FLOAT_LEVELS];
    gg_kern_encode_fn *encode[GG_N_FLOAT_LEVELS];
    gg_kern_dots_fn *dots[GG_N_FLOAT_LEVELS];
    uint32_t flags;
};

/* A kernel that a column of the list has, or none. */
#define KERN_0(kernel) NULL
#define KERN_1(kernel) kernel

static const struct row rows[GG_N_DTYPES] = {
#define X(TYPE, NAME, DECODE_C, DECODE_256, ENCODE_C, ENCODE_256,             \
          ENCODE_AVX512, DOTS_C, DOTS_256, DOTS_AVX512, FLAGS)                \
    [GG_DT_##TYPE] = {                                                        \
        .decode = { [GG_LEVEL_C] =                                            \
                        KERN_##DECODE_C(gg_kern_decode_##NAME##_c),           \
                    [GG_LEVEL_256] = KERN_##DECODE_256(                       \
                        GG_256(gg_kern_decode_##NAME##_256)) },               \
        .encode = { [GG_LEVEL_C] =                                            \
                        KERN_##ENCODE_C(gg_kern_encode_##NAME##_c),           \
                    [GG_LEVEL_256] = KERN_##ENCODE_256(                       \
                        GG_256(gg_kern_encode_##NAME##_256)),                 \
                    GG_IF_AVX512([GG_LEVEL_AVX512] = KERN_##ENCODE_AVX512(    \
                                     gg_kern_encode_##NAME##_avx512)) },      \
        .dots = { [GG_LEVEL_C] = KERN_##DOTS_C(gg_kern_dots_##NAME##_c),      \
                  [GG_LEVEL_256] =                                            \
                      KERN_##DOTS_256(GG_256(gg_kern_dots_##NAME##_256)),     \
                  GG_IF_AVX512([GG_LEVEL_AVX512] = KERN_##DOTS_AVX512(        \
                                   gg_kern_dots_##NAME##_avx512)) },          \
        .flags = FLAGS,                                                       \
    },
    GG_CODEC_LIST(X)
#undef X
};

void gg_codec_kern_init(struct gg_codec_kern *table, uint32_t cpu)
{
    memset(table, 0, GG_N_DTYPES * sizeof *table);
    for (int i = 0; i < GG_N_DTYPES; i++) {
        table[i].flags = rows[i].flags;
        for (unsigned l = 0; l < GG_N_FLOAT_LEVELS; l++) {
            if (!gg_kern_cpu_has_level(cpu, l))
                continue;
            if (rows[i].decode[l])
                table[i].decode = rows[i].decode[l];
            if (rows[i].encode[l] && gg_interleave_rows(i) > 1)
                table[i].encode_apart = rows[i].encode[l];
            else if (rows[i].encode[l])
                table[i].encode = rows[i].encode[l];
            if (rows[i].dots[l])
                table[i].dots = rows[i].dots[l];
        }
    }
}
