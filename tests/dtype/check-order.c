/* SPDX-License-Identifier: MIT */
/* check-order.c - bytes of tensor data that a change of byte order moves */
#include "config.h"
#include "dtype/byte_order.h"
#include "tests/tap.h"

/* Numbers of each type, written by hand from the formats: OFF:WIDTHxN in a
 * block, with OFF ascending; after "h" those of a row header. */
static const struct {
    const char *type, *numbers;
} want[] = {
    { "F32", "0:4" },
    { "F16", "0:2" },
    { "Q4_0", "0:2" },
    { "Q4_1", "0:2 2:2" },
    { "Q5_0", "0:2 2:4" },
    { "Q5_1", "0:2 2:2 4:4" },
    { "Q8_0", "0:2" },
    { "Q8_1", "0:2 2:2" },
    { "Q2_K", "80:2 82:2" },
    { "Q3_K", "108:2" },
    { "Q4_K", "0:2 2:2" },
    { "Q5_K", "0:2 2:2" },
    { "Q6_K", "208:2" },
    { "Q8_K", "0:4 260:2x16" },
    { "IQ2_XXS", "0:2 6:4 14:4 22:4 30:4 38:4 46:4 54:4 62:4" },
    { "IQ2_XS", "0:2x33" },
    { "IQ3_XXS", "0:2 66:4x8" },
    { "IQ1_S", "0:2 34:2x8" },
    { "IQ4_NL", "0:2" },
    { "IQ3_S", "0:2" },
    { "IQ2_S", "0:2" },
    { "IQ4_XS", "0:2 2:2" },
    { "I8", "" },
    { "I16", "0:2" },
    { "I32", "0:4" },
    { "I64", "0:8" },
    { "F64", "0:8" },
    { "IQ1_M", "48:2x4" },
    { "BF16", "0:2" },
    { "TQ1_0", "52:2" },
    { "TQ2_0", "64:2" },
    { "MXFP4", "" },
    { "NVFP4", "" },
    { "Q1_0", "0:2" },
    { "Q2_0", "0:2" },
    { "F8_E4M3", "" },
    { "Q6_0", "0:2" },
    { "IQ1_BN", "h0:2" },
    { "IQ2_BN", "h0:4" },
    { "IQ2_K", "0:2x2" },
    { "IQ3_K", "0:2x3" },
    { "IQ4_K", "0:2x2" },
    { "IQ5_K", "0:2x2" },
    { "IQ6_K", "0:2x2" },
    { "IQ4_KS", "h0:4" },
    { "IQ2_KS", "h0:2 0:2" },
    { "IQ4_KSS", "h0:4 0:2x64" },
    { "Q8_KV", "h0:4 h4:4" },
    { "IQ5_KS", "h0:4" },
    { "IQ2_KT", "h0:4 4:2x32" },
    { "IQ3_KT", "h0:4 4:2x32" },
    { "IQ4_KT", "h0:4 0:4x8" },
    { "IQ3_KS", "h0:2 0:2" },
    { "IQ2_KL", "h0:2 0:2" },
    { "IQ1_KT", "h0:4" },
};

static const char *numbers_of(const char *type)
{
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (!strcmp(want[i].type, type))
            return want[i].numbers;
    return NULL;
}

/* Reverse the numbers that the text lists, in a header or a block. */
static void apply_text(const char *text, int header, uint8_t *p)
{
    unsigned off, width, n;
    for (const char *s = text; *s; s += strcspn(s, " "), s += *s == ' ') {
        n = 1;
        if ((*s == 'h') != header ||
            sscanf(s + header, "%u:%ux%u", &off, &width, &n) < 2)
            continue;
        for (unsigned k = 0; k < n; k++)
            for (unsigned b = 0; b < width / 2; b++) {
                uint8_t *q = p + off + k * width, t = q[b];
                q[b] = q[width - 1 - b];
                q[width - 1 - b] = t;
            }
    }
}

enum { BLOCKS = 5, ROWS = 4, ROOM = ROWS * (8 + BLOCKS * 300) };

static void check_type(int type)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    const char *numbers = numbers_of(t->name);
    uint8_t was[ROOM], is[ROOM], by_hand[ROOM];
    size_t row = t->row_header + (size_t)BLOCKS * t->block_size;
    size_t size = ROWS * row;
    for (size_t i = 0; i < size; i++)
        was[i] = is[i] = by_hand[i] = (uint8_t)rnd64();
    for (size_t r = 0; numbers && r < ROWS; r++) {
        uint8_t *p = by_hand + r * row;
        apply_text(numbers, 1, p);
        for (size_t b = 0; b < BLOCKS; b++)
            apply_text(numbers, 0, p + t->row_header + b * t->block_size);
    }
    gg_byte_order_swap(type, row, 0, is, size);
    int good =
        numbers && gg_byte_order_is_known(type) && !memcmp(is, by_hand, size);
    gg_byte_order_swap(type, row, 0, is, size);
    good = good && !memcmp(is, was, size);
    /* in pieces of every size that holds a header or a block */
    size_t least =
        t->row_header > t->block_size ? t->row_header : t->block_size;
    for (size_t max = least; good && max <= size; max++) {
        size_t at = 0, n = 1;
        memcpy(is, was, size);
        for (; at < size && n; at += n) {
            n = max < size - at ? max : size - at;
            n = (size_t)gg_byte_order_floor(type, row, at + n) - at;
            gg_byte_order_swap(type, row, at, is + at, n);
        }
        good = at == size && !memcmp(is, by_hand, size);
        if (!good)
            printf("# pieces of %zu bytes\n", max);
    }
    ok(good, "%s: %s", t->name, numbers ? numbers : "is not in the list");
}

int main(void)
{
    int other = gg_byte_order_is_known(-1);
    for (int type = 0; type < GG_N_DTYPES; type++)
        if (gg_dtype_by_index(type)->id < 200)
            check_type(type);
        else /* interleaved rows */
            other |= gg_byte_order_is_known(type);
    ok(!other, "of other types nothing is known");
    return done_testing();
}
