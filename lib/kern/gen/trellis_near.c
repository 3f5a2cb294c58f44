/* SPDX-License-Identifier: MIT */
/* trellis_near.c - print the tables of trellis codes (kern/c/trellis_near.h)
 *
 * Runs on the machine that builds, while building. Every sum and product is
 * rounded to f32: the compiler must not contract them.
 */
#include "dtype/iq_code.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_CODES = 65536, MAX_CLUSTERS = 625, MAX_NEAR = 32 };

static const struct type {
    const char *name;
    uint32_t offset;
    int group, n_codes, n_near, absolute;
} types[] = {
    { "1", GG_TRELLIS_OFFSET, 8, 8192, 32, 0 },
    { "2", GG_TRELLIS_OFFSET, 8, 65536, 8, 0 },
    { "3", GG_TRELLIS_OFFSET, 8, 65536, 8, 1 },
    { "4", GG_TRELLIS_OFFSET, 4, 32768, 6, 0 },
    { "4_other", GG_TRELLIS_OTHER_OFFSET, 4, 32768, 6, 0 },
};

static float point[MAX_CODES][8], centre[MAX_CLUSTERS][8], middle[8];
static uint16_t nearest[MAX_CODES][MAX_NEAR];

struct other {
    float distance;
    int code;
};
static struct other others[MAX_CODES];

static void make_points(const struct type *t)
{
    for (int i = 0; i < t->n_codes; i++) {
        uint32_t state = (uint32_t)i + t->offset;
        for (int k = 0; k < t->group; k++) {
            int v = gg_dtype_trellis_next(&state);
            point[i][k] = (float)(t->absolute ? abs(v) : v);
        }
    }
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* The middles of eight numbers: of the range, or of the sorted magnitudes. */
static void find_middles(const struct type *t)
{
    static int sorted[MAX_CODES];
    int n = t->n_codes;
    for (int k = 0; k < 8; k++) {
        for (int i = 0; i < n; i++)
            sorted[i] = (int)point[i][k];
        qsort(sorted, (size_t)n, sizeof *sorted, compare_ints);
        middle[k] = t->absolute
                        ? 0.5f * (float)(sorted[n / 2] + sorted[n / 2 - 1])
                        : (float)(sorted[0] + sorted[n - 1]) / 2;
    }
}

static int range_of(float v)
{
    return v < -48 ? 0 : v < -16 ? 1 : v < 16 ? 2 : v < 48 ? 3 : 4;
}

static int cluster_of(const struct type *t, const float *v)
{
    int c = 0;
    for (int k = t->group - 1; k >= 0; k--)
        c = t->group == 8 ? c << 1 | (v[k] > middle[k])
                          : c * 5 + range_of(v[k]);
    return c;
}

static int n_clusters(const struct type *t)
{
    return t->group == 8 ? 256 : 625;
}

static void find_centres(const struct type *t)
{
    static int count[MAX_CLUSTERS];
    for (int c = 0; c < n_clusters(t); c++) {
        count[c] = 0;
        for (int k = 0; k < t->group; k++)
            centre[c][k] = 0;
    }
    for (int i = 0; i < t->n_codes; i++) {
        int c = cluster_of(t, point[i]);
        count[c]++;
        for (int k = 0; k < t->group; k++)
            centre[c][k] += point[i][k];
    }
    for (int c = 0; c < n_clusters(t); c++)
        for (int k = 0; k < t->group && count[c]; k++)
            centre[c][k] /= (float)count[c];
}

static float distance(const struct type *t, int c, int i)
{
    float sum = 0;
    for (int k = 0; k < t->group; k++) {
        float d = centre[c][k] - point[i][k];
        d *= d;
        sum += d;
    }
    return sum;
}

/* The nearest clusters of each code; the first of equally near ones. */
static void find_nearest(const struct type *t)
{
    for (int i = 0; i < t->n_codes; i++) {
        float least[MAX_NEAR];
        int n = 0;
        for (int c = 0; c < n_clusters(t); c++) {
            float d = distance(t, c, i);
            int at = n;
            while (at > 0 && d < least[at - 1])
                at--;
            if (at == t->n_near)
                continue;
            n += n < t->n_near;
            for (int k = n - 1; k > at; k--) {
                least[k] = least[k - 1];
                nearest[i][k] = nearest[i][k - 1];
            }
            least[at] = d;
            nearest[i][at] = (uint16_t)c;
        }
    }
}

static int is_near(const struct type *t, int c, int i)
{
    for (int k = 0; k < t->n_near; k++)
        if (nearest[i][k] == c)
            return 1;
    return 0;
}

static int compare_others(const void *a, const void *b)
{
    const struct other *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

/* Print code number n of a list. */
static void print_code(int n, int code)
{
    printf("%s%d,", n % 16 ? "" : "\n    ", code);
}

/* Print the codes of a cluster after n codes. Returns the new number. */
static int print_cluster(const struct type *t, int c, int n)
{
    int first = n, n_others = 0;
    for (int i = 0; i < t->n_codes; i++)
        if (is_near(t, c, i))
            print_code(n++, i);
    if ((n - first) % 8 == 0)
        return n;
    for (int i = 0; i < t->n_codes; i++)
        if (!is_near(t, c, i))
            others[n_others++] = (struct other){ distance(t, c, i), i };
    qsort(others, (size_t)n_others, sizeof *others, compare_others);
    for (int i = 0; (n - first) % 8; i++)
        print_code(n++, others[i].code);
    return n;
}

static void print_type(const struct type *t)
{
    static int start[MAX_CLUSTERS + 1];
    int n = 0;
    make_points(t);
    if (t->group == 8)
        find_middles(t);
    find_centres(t);
    find_nearest(t);
    printf("\nstatic const uint16_t near_%s[] = {", t->name);
    for (int c = 0; c < n_clusters(t); c++) {
        start[c] = n;
        n = print_cluster(t, c, n);
    }
    start[n_clusters(t)] = n;
    printf("\n};\nstatic const uint32_t start_%s[] = {", t->name);
    for (int c = 0; c <= n_clusters(t); c++)
        print_code(c, start[c]);
    printf("\n};\nstatic const float middle_%s[8] = {", t->name);
    for (int k = 0; k < 8; k++)
        printf(" %g,", (double)middle[k]);
    printf(" };\nconst struct gg_kern_trellis gg_kern_trellis_%s = {\n"
           "    %lu, %d, %d, %d, middle_%s, start_%s, near_%s\n};\n",
           t->name, (unsigned long)t->offset, t->group, t->n_codes,
           t->absolute, t->name, t->name, t->name);
}

int main(void)
{
    printf("/* trellis_near_tab.c - made by lib/kern/gen/trellis_near.c */\n"
           "#include \"config.h\"\n#include \"kern/c/trellis_near.h\"\n");
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
        print_type(&types[i]);
    return fflush(stdout) != 0 || ferror(stdout);
}
