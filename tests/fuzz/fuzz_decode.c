/* SPDX-License-Identifier: MIT */
/* fuzz_decode.c - any bytes as rows of any type: no level reads or writes
 * beyond the row, and all give the floats of the C reference bit by bit,
 * except that any NaN may stand for a NaN
 *
 * The first byte chooses the type. The rest is the row, rounded down to
 * blocks.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/cpu_features.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { MAX_ELEMENTS = 8192 };

static void compare_level(int type, const uint8_t *row, const float *want,
                          size_t n)
{
    struct gg_codec_kern table[GG_N_DTYPES];
    uint32_t has = gg_kern_cpu_detect(), mask = 0;
    float *got = malloc(n * sizeof *got);
    MUST(got);
    for (unsigned i = 0; i < gg_kern_cpu_n_levels; i++) {
        if (!(has & gg_kern_cpu_levels[i].bit))
            continue;
        mask |= gg_kern_cpu_levels[i].bit;
        gg_codec_kern_init(table, mask);
        memset(got, 0x5a, n * sizeof *got);
        table[type].decode(row, got, n);
        for (size_t k = 0; k < n; k++)
            MUST(isnan(want[k]) ? isnan(got[k])
                                : !memcmp(&got[k], &want[k], sizeof *got));
    }
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gg_codec_kern table[GG_N_DTYPES];
    if (size < 2)
        return 0;
    int type = data[0] % GG_N_DTYPES;
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    gg_codec_kern_init(table, 0);
    if (!table[type].decode || size - 1 < t->row_header)
        return 0;
    size_t n = (size - 1 - t->row_header) / t->block_size * t->block_len;
    if (n > MAX_ELEMENTS)
        n = MAX_ELEMENTS / t->block_len * t->block_len;
    if (n == 0)
        return 0;
    /* the row ends where its memory ends */
    size_t n_bytes = t->row_header + n / t->block_len * t->block_size;
    uint8_t *row = malloc(n_bytes);
    float *want = malloc(n * sizeof *want);
    MUST(row && want);
    memcpy(row, data + 1, n_bytes);
    table[type].decode(row, want, n);
    compare_level(type, row, want, n);
    free(want);
    free(row);
    return 0;
}

/* Two blocks of each type: small bytes, large bytes, all bytes. */
void fuzz_make_seeds(void)
{
    for (int type = 0; type < GG_N_DTYPES; type++) {
        const struct gguf_dtype_info *t = gg_dtype_by_index(type);
        size_t n = t->row_header + 2 * t->block_size;
        for (int kind = 0; kind < 3; kind++) {
            struct fix *s = new_seed();
            fix_u8(s, (unsigned)type);
            for (size_t i = 0; i < n; i++)
                fix_u8(s, kind == 0   ? (unsigned)i & 1
                          : kind == 1 ? 0xff
                                      : (unsigned)(37 * i + 11) & 0xff);
        }
    }
}
