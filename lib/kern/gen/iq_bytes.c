/* SPDX-License-Identifier: MIT */
/* iq_bytes.c - print the codebooks as bytes (kern/iq_bytes.h)
 *
 * Runs on the machine that builds, while building.
 */
#include "dtype/iq_code.h"

#include <inttypes.h>
#include <stdio.h>

static const struct book {
    const char *name;
    const uint16_t *code;
    int n, n_elem, bits, unit; /* unit: what levels are multiplied by */
    int level[8];
} books[] = {
    { "iq1", gg_dtype_iq1_code, 2048, 8, 2, 8, GG_IQ1_LEVELS },
    { "iq2_xxs", gg_dtype_iq2_xxs_code, 256, 8, 2, 1, GG_IQ2_LEVELS },
    { "iq2_xs", gg_dtype_iq2_xs_code, 512, 8, 2, 1, GG_IQ2_LEVELS },
    { "iq2_s", gg_dtype_iq2_s_code, 1024, 8, 2, 1, GG_IQ2_LEVELS },
    { "iq3_xxs", gg_dtype_iq3_xxs_code, 256, 4, 3, 1, GG_IQ3_XXS_LEVELS },
    { "iq3_s", gg_dtype_iq3_s_code, 512, 4, 3, 1, GG_IQ3_S_LEVELS },
};

static uint64_t bytes_of(const struct book *b, unsigned code)
{
    uint64_t v = 0;
    for (int i = 0; i < b->n_elem; i++) {
        const int level =
            b->level[code >> b->bits * i & ((1u << b->bits) - 1)];
        v |= (uint64_t)(uint8_t)(b->unit * level) << 8 * i;
    }
    return v;
}

int main(void)
{
    printf("/* iq_bytes_tab.c - made by lib/kern/gen/iq_bytes.c */\n"
           "#include \"config.h\"\n#include \"kern/iq_bytes.h\"\n");
    for (size_t k = 0; k < sizeof books / sizeof *books; k++) {
        const struct book *b = &books[k];
        printf("\nconst uint%d_t gg_kern_%s_bytes[%d] = {\n", 8 * b->n_elem,
               b->name, b->n);
        for (int i = 0; i < b->n; i++)
            printf("UINT64_C(0x%" PRIx64 "),%c", bytes_of(b, b->code[i]),
                   i % 4 == 3 ? '\n' : ' ');
        printf("};\n");
    }
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
