/* SPDX-License-Identifier: MIT */
/* check-iq-code.c - codebook tables agree with the lists of their entries
 *
 *   check-iq-code            compare with the digests here and, where it is,
 *                            with $GGUF_SHARED/golden/codebooks
 *   check-iq-code --print    print the digests of these lists
 *   check-iq-code DIR        print lib/dtype/iq_code_tab.c, from DIR
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/iq_code.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <xxhash.h>

static const int iq1_levels[] = GG_IQ1_LEVELS;
static const int iq2_levels[] = GG_IQ2_LEVELS;
static const int iq3_xxs_levels[] = GG_IQ3_XXS_LEVELS;
static const int iq3_s_levels[] = GG_IQ3_S_LEVELS;

static const struct book {
    const char *file, *symbol;
    const uint16_t *code;
    unsigned n, n_elem, bits, n_levels;
    const int *levels;
    uint64_t digest; /* XXH64 of the list's entries, two bytes each */
} books[] = {
    { "iq1.txt", "gg_dtype_iq1_code", gg_dtype_iq1_code, 2048, 8, 2, 3,
      iq1_levels, UINT64_C(0xe1ccb9afc3a6dab8) },
    { "iq2_xxs.txt", "gg_dtype_iq2_xxs_code", gg_dtype_iq2_xxs_code, 256, 8, 2,
      3, iq2_levels, UINT64_C(0x3ae6d176ddaa6528) },
    { "iq2_xs.txt", "gg_dtype_iq2_xs_code", gg_dtype_iq2_xs_code, 512, 8, 2, 3,
      iq2_levels, UINT64_C(0x793ee6af5f756a94) },
    { "iq2_s.txt", "gg_dtype_iq2_s_code", gg_dtype_iq2_s_code, 1024, 8, 2, 3,
      iq2_levels, UINT64_C(0x48405f790866d414) },
    { "iq3_xxs.txt", "gg_dtype_iq3_xxs_code", gg_dtype_iq3_xxs_code, 256, 4, 3,
      8, iq3_xxs_levels, UINT64_C(0x92abe5639eb6671a) },
    { "iq3_s.txt", "gg_dtype_iq3_s_code", gg_dtype_iq3_s_code, 512, 4, 3, 8,
      iq3_s_levels, UINT64_C(0xd5e25b1c0743c18c) },
};

/* Read the next entry; -1: end of the list, or a number that is not a level. */
static long next_code(FILE *f, const struct book *b)
{
    unsigned long code = 0;
    for (unsigned i = 0; i < b->n_elem; i++) {
        int v;
        unsigned level = 0;
        if (fscanf(f, "%d", &v) != 1)
            return -1;
        while (level < b->n_levels && b->levels[level] != v)
            level++;
        if (level == b->n_levels)
            return -1;
        code |= (unsigned long)level << b->bits * i;
    }
    return (long)code;
}

static uint64_t digest_codes(const uint16_t *code, unsigned n)
{
    static uint8_t b[2 * 2048];
    for (unsigned i = 0; i < n; i++)
        gg_bytes_store16le(b + 2 * i, code[i]);
    return XXH64(b, 2 * (size_t)n, 0);
}

/* Read a list into code[b->n]. false: it is not on this machine, or differs. */
static bool read_list(const struct book *b, uint16_t *code)
{
    char name[128];
    unsigned n = 0;
    long v;
    snprintf(name, sizeof name, "golden/codebooks/%s", b->file);
    const char *path = shared_path(name);
    FILE *f = path ? fopen(path, "r") : NULL;
    while (f && (v = next_code(f, b)) >= 0) {
        if (n < b->n)
            code[n] = (uint16_t)v;
        n++;
    }
    if (f)
        fclose(f);
    return n == b->n;
}

static void compare_book(const struct book *b)
{
    static uint16_t code[2048];
    const bool here = shared_path("golden/codebooks/iq1.txt") != NULL;
    ok(digest_codes(b->code, b->n) == b->digest, "%s", b->symbol);
    if (here)
        ok(read_list(b, code) && !memcmp(code, b->code, 2 * (size_t)b->n),
           "%s, entry by entry", b->symbol);
}

static int print_digests(void)
{
    static uint16_t code[2048];
    for (size_t k = 0; k < GG_LEN(books); k++) {
        if (!read_list(&books[k], code))
            return 1;
        printf("%s UINT64_C(0x%016llx)\n", books[k].symbol,
               (unsigned long long)digest_codes(code, books[k].n));
    }
    return 0;
}

static int print_tables(const char *dir)
{
    printf("/* iq_code_tab.c - made by tests/dtype/check-iq-code.c; see "
           "iq_code.h */\n#include \"config.h\"\n"
           "#include \"dtype/iq_code.h\"\n");
    for (size_t k = 0; k < GG_LEN(books); k++) {
        const struct book *b = &books[k];
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", dir, b->file);
        FILE *f = fopen(path, "r");
        if (!f) {
            perror(path);
            return 1;
        }
        printf("\nconst uint16_t %s[%u] = {", b->symbol, b->n);
        for (unsigned i = 0; i < b->n; i++)
            printf("%s0x%04lx,", i % 10 ? " " : "\n    ",
                   (unsigned long)next_code(f, b));
        printf("\n};\n");
        fclose(f);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--print"))
        return print_digests();
    if (argc > 1)
        return print_tables(argv[1]);
    for (size_t k = 0; k < GG_LEN(books); k++)
        compare_book(&books[k]);
    return done_testing();
}
