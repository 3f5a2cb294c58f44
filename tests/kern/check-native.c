/* SPDX-License-Identifier: MIT */
/* check-native.c - numbers in memory: kernels read and write the machine's
 * byte order, after files of either order are swapped */
#include "config.h"
#include "dtype/byte_order.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

static struct gg_codec_kern file[GG_N_DTYPES], native[GG_N_DTYPES];

/* Decoders read C's numbers, and encoders of floats write them. */
static void check_numbers(void)
{
    const float want[2] = { -1.5f, 3 };
    const float f32[2] = { -1.5f, 3 };
    const double f64[2] = { -1.5, 3 };
    const uint16_t f16[2] = { 0xbe00, 0x4200 }, bf16[2] = { 0xbfc0, 0x4040 };
    const struct {
        int type;
        const void *p;
        size_t size;
    } floats[] = { { GG_DT_F32, f32, sizeof f32 },
                   { GG_DT_F64, f64, sizeof f64 },
                   { GG_DT_F16, f16, sizeof f16 },
                   { GG_DT_BF16, bf16, sizeof bf16 } };
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        const struct gg_codec_kern *k = &native[floats[i].type];
        unsigned char out[16];
        float y[2];
        k->decode(floats[i].p, y, 2);
        k->encode(want, out, 1, 2, NULL);
        ok(!memcmp(y, want, sizeof y) &&
               !memcmp(out, floats[i].p, floats[i].size),
           "%s as C has it", gg_dtype_by_index(floats[i].type)->name);
    }
    const int8_t i8 = -7;
    const int16_t i16 = -700;
    const int32_t i32 = -70000;
    const int64_t i64 = -(INT64_C(1) << 40);
    float y[4];
    native[GG_DT_I8].decode(&i8, &y[0], 1);
    native[GG_DT_I16].decode(&i16, &y[1], 1);
    native[GG_DT_I32].decode(&i32, &y[2], 1);
    native[GG_DT_I64].decode(&i64, &y[3], 1);
    ok(y[0] == -7 && y[1] == -700 && y[2] == -70000 && y[3] == -0x1p40f,
       "integers as C has them");
}

/* Do size bytes of a file in that byte order decode to the floats, after
 * swapping? */
static int same_floats(int type, uint64_t row, bool big_endian, uint8_t *p,
                       size_t size, const float *want, size_t n)
{
    float y[512];
    if (gg_byte_order_differs(type, big_endian))
        gg_byte_order_swap(type, row, 0, p, size);
    native[type].decode(p, y, n);
    return !memcmp(y, want, n * sizeof *y);
}

static void check_orders(void)
{
    unsigned n_types = 0, bad = 0;
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const struct gguf_dtype_info *t = gg_dtype_by_index(i);
        size_t n = t->block_len == 1 ? 9 : 2 * t->block_len;
        uint8_t little[4096], big[4096];
        float want[512];
        if (!file[i].decode || n > 512)
            continue;
        size_t size = t->row_header + n / t->block_len * t->block_size;
        for (size_t k = 0; k < size; k++)
            little[k] = (uint8_t)rnd64() & 0xb7; /* no NaN */
        memcpy(big, little, size);
        gg_byte_order_swap(i, size, 0, big, size);
        file[i].decode(little, want, n);
        if (!same_floats(i, size, false, little, size, want, n) ||
            !same_floats(i, size, true, big, size, want, n)) {
            printf("# %s\n", t->name);
            bad++;
        }
        n_types++;
    }
    ok(!bad && n_types > 40, "%u types, of files in either order", n_types);
}

int main(void)
{
    struct test_level level[8];
    unsigned n = test_levels(level);
    for (unsigned i = 0; i < n; i++) {
        gg_codec_kern_init(file, level[i].mask);
        memcpy(native, file, sizeof file);
        gg_codec_kern_set_native_order(native);
        check_numbers();
        check_orders();
    }
    return done_testing();
}
