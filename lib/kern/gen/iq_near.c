/* SPDX-License-Identifier: MIT */
/* iq_near.c - print the table of near codebook entries (kern/c/iq_near.h)
 *
 * Runs on the machine that builds, while building.
 */
#include "dtype/iq_code.h"

#include <stdio.h>

static const struct book {
    const char *name;
    const uint16_t *code;
    int n, n_elem, bits, n_levels, n_shells;
} books[] = {
    { "iq1", gg_dtype_iq1_code, 2048, 8, 2, 3, 3 },
    { "iq2_xxs", gg_dtype_iq2_xxs_code, 256, 8, 2, 3, 2 },
    { "iq2_xs", gg_dtype_iq2_xs_code, 512, 8, 2, 3, 2 },
    { "iq2_s", gg_dtype_iq2_s_code, 1024, 8, 2, 3, 1 },
    { "iq3_xxs", gg_dtype_iq3_xxs_code, 256, 4, 3, 8, 2 },
    { "iq3_s", gg_dtype_iq3_s_code, 512, 4, 3, 8, 3 },
};

static int n_points(const struct book *b)
{
    int n = 1;
    for (int i = 0; i < b->n_elem; i++)
        n *= b->n_levels;
    return n;
}

/* Squared distance of a point from entry j, in levels. */
static int distance_to_entry(const struct book *b, int point, int j)
{
    int d = 0;
    for (int i = 0; i < b->n_elem; i++, point /= b->n_levels) {
        int e = point % b->n_levels -
                (b->code[j] >> b->bits * i & ((1 << b->bits) - 1));
        d += e * e;
    }
    return d;
}

/* Entries in the first n_shells distances from a point, nearest first, by
 * index within a distance; just the entry for a point that is one. */
static int near_of(const struct book *b, int point, int *list)
{
    static int dist[2048];
    int n = 0, shells = 0;
    for (int j = 0; j < b->n; j++)
        dist[j] = distance_to_entry(b, point, j);
    for (int d = 0; shells < b->n_shells && d < 1000; d++) {
        int before = n;
        for (int j = 0; j < b->n; j++)
            if (dist[j] == d)
                list[n++] = j;
        shells += n > before;
        if (d == 0 && n)
            break;
    }
    return n;
}

static void print_book(const struct book *b)
{
    static int list[2048];
    int points = n_points(b), total = 0;
    printf("\nconst uint32_t gg_kern_near_%s_start[%d] = {", b->name,
           points + 1);
    for (int p = 0; p < points; p++) {
        int n = near_of(b, p, list);
        /* the lowest bit: the point is an entry */
        printf("%s%d,", p % 10 ? " " : "\n    ",
               total * 2 + (distance_to_entry(b, p, list[0]) == 0));
        total += n;
    }
    printf(" %d\n};\n\nconst uint16_t gg_kern_near_%s[%d] = {", total * 2,
           b->name, total + 8);
    for (int p = 0, k = 0; p < points; p++) {
        int n = near_of(b, p, list);
        int entry = distance_to_entry(b, p, list[0]) == 0;
        for (int i = 0; i < n; i++, k++)
            printf("%s%d,", k % 16 ? "" : "\n    ",
                   entry ? list[i] : b->code[list[i]]);
    }
    printf("\n    0,0,0,0,0,0,0,0\n};\n");
}

int main(void)
{
    printf("/* iq_near_tab.c - made by lib/kern/gen/iq_near.c */\n"
           "#include \"config.h\"\n#include \"kern/c/iq_near.h\"\n");
    for (unsigned i = 0; i < sizeof books / sizeof *books; i++)
        print_book(&books[i]);
    return fflush(stdout) != 0 || ferror(stdout);
}
