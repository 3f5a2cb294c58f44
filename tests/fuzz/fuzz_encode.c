/* SPDX-License-Identifier: MIT */
/* fuzz_encode.c - any floats to any type: every level writes the bytes of the
 * C reference and nothing else, and they decode to finite numbers
 *
 * The first byte chooses the type, the second whether there are importances.
 * The rest are the upper halves of floats, repeated to fill a row.
 */
#include "config.h"
#include "base/bytes.h"
#include "kern/codec.h"
#include "kern/cpu_features.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { GUARD = 16, MAX_LEN = 512, MAX_BYTES = 8 * MAX_LEN + 2 * GUARD };

struct row {
    float x[MAX_LEN], weight[MAX_LEN];
    size_t n;
    bool weighted, finite;
};

/* Float i of the input. */
static float get_float(const struct bytes *b, size_t i)
{
    size_t half = b->n / 2;
    i = half ? i % half : 0;
    uint32_t hi = half ? (uint32_t)b->p[2 * i] | b->p[2 * i + 1] << 8 : 0;
    return gg_bytes_f32_from_bits(hi << 16);
}

static void fill_row(struct row *r, struct bytes *b, size_t n)
{
    r->n = n;
    r->finite = true;
    for (size_t i = 0; i < n; i++) {
        r->x[i] = get_float(b, i);
        r->weight[i] = fabsf(get_float(b, n + i));
        if (!isfinite(r->weight[i]))
            r->weight[i] = 1;
        r->finite = r->finite && fabsf(r->x[i]) < 1000;
    }
}

static void encode_row(gg_kern_encode_fn *f, const struct row *r, uint8_t *out,
                       size_t n_bytes)
{
    memset(out, 0x5a, n_bytes + 2 * GUARD);
    f(r->x, out + GUARD, 1, r->n, r->weighted ? r->weight : NULL);
    for (size_t i = 0; i < GUARD; i++)
        MUST(out[i] == 0x5a && out[GUARD + n_bytes + i] == 0x5a);
}

/* Numbers of moderate size decode to such numbers. */
static void check_back(const struct gg_codec_kern *k, const struct row *r,
                       const uint8_t *bytes)
{
    float back[MAX_LEN];
    if (!k->decode || !r->finite)
        return;
    k->decode(bytes, back, r->n);
    for (size_t i = 0; i < r->n; i++)
        MUST(fabsf(back[i]) < 10000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t want[MAX_BYTES], got[MAX_BYTES];
    struct gg_codec_kern table[GG_N_DTYPES];
    struct bytes b = { data, size };
    struct row r;
    int type = take(&b) % GG_N_DTYPES;
    r.weighted = take(&b) & 1;
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    gg_codec_kern_init(table, 0);
    if (!table[type].encode)
        return 0;
    if (table[type].flags & GG_CODEC_NEEDS_WEIGHT)
        r.weighted = true;
    size_t n = t->block_len < 256 ? 2 * t->block_len : t->block_len;
    size_t n_bytes = t->row_header + n / t->block_len * t->block_size;
    MUST(n <= MAX_LEN && n_bytes + 2 * GUARD <= sizeof want);
    fill_row(&r, &b, n);
    encode_row(table[type].encode, &r, want, n_bytes);
    check_back(&table[type], &r, want + GUARD);
    uint32_t has = gg_kern_cpu_detect(), mask = 0;
    for (unsigned i = 0; i < gg_kern_cpu_n_levels; i++) {
        if (!(has & gg_kern_cpu_levels[i].bit))
            continue;
        mask |= gg_kern_cpu_levels[i].bit;
        gg_codec_kern_init(table, mask);
        encode_row(table[type].encode, &r, got, n_bytes);
        MUST(!memcmp(got + GUARD, want + GUARD, n_bytes));
    }
    return 0;
}

/* For each type, with and without importances: a ramp, and a few numbers. */
void fuzz_make_seeds(void)
{
    static const float few[] = { 0, -0.0f, 1, -1, 0.25f, -3, 1e-30f, 7 };
    for (unsigned type = 0; type < GG_N_DTYPES; type++)
        for (unsigned weighted = 0; weighted < 2; weighted++) {
            struct fix *s = new_seed(), *ramp = new_seed();
            fix_u8(s, type);
            fix_u8(s, weighted);
            for (size_t i = 0; i < 8; i++)
                fix_u16(s, gg_bytes_f32_bits(few[i]) >> 16);
            fix_u8(ramp, type);
            fix_u8(ramp, weighted);
            for (int i = 0; i < 64; i++)
                fix_u16(ramp, gg_bytes_f32_bits((float)(i - 30) / 16) >> 16);
        }
}
