/* SPDX-License-Identifier: MIT */
/* k_codec.c - decoders and encoders have the bits of the reference
 *
 * Contract EXACT. A NaN decodes to a NaN, of any bits.
 */
#include "config.h"
#include "tests/kern/checkkern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    const char *level;
    char name[40];
    const struct gguf_dtype_info *type;
    struct gg_codec_kern ref, k;
};

static size_t bytes_of(const struct slot *s, size_t n)
{
    return n / s->type->block_len * s->type->block_size + s->type->row_header;
}

/* Index of the first float that differs; n: none. */
static size_t first_difference(const float *a, const float *b, size_t n)
{
    size_t i = 0;
    while (i < n &&
           (!memcmp(a + i, b + i, sizeof *a) || (isnan(a[i]) && isnan(b[i]))))
        i++;
    return i;
}

/* Decode a random row with both. Returns 0 if they agree. */
static int decode_once(const struct slot *s, size_t n, int encoded)
{
    struct guarded src = guarded_new(bytes_of(s, n));
    float *a = malloc((n + 1) * sizeof *a);
    struct guarded b = guarded_new(n * sizeof *a + 3);
    float *y = (float *)(void *)(b.p + 3); /* next to the guards */
    if (encoded && s->ref.encode && !s->type->row_header) {
        float *x = malloc((n + 1) * sizeof *x);
        float *w = malloc((n + 1) * sizeof *w);
        test_floats(x, n, (unsigned)test_below(TEST_DIST_FINITE));
        test_weights(w, n, 0);
        s->ref.encode(x, src.p, 1, n, w);
        free(x);
        free(w);
    } else {
        for (size_t i = 0; i < src.size; i++)
            src.p[i] = (unsigned char)test_rnd();
    }
    s->ref.decode(src.p, a, n);
    s->k.decode(src.p, y, n);
    size_t at = first_difference(a, y, n);
    int bad = at < n || !guarded_intact(&b);
    if (at < n)
        printf("# element %zu of %zu: %a, reference %a\n", at, n,
               (double)y[at], (double)a[at]);
    guarded_free(&src);
    guarded_free(&b);
    free(a);
    return bad;
}

static void test_decode(const struct check_options *o, const struct slot *s)
{
    static const unsigned short blocks[] = { 0, 1, 2, 3, 5, 8, 17, 33 };
    int bad = 0;
    for (unsigned r = 0; r < o->rounds && !bad; r++) {
        size_t n = blocks[r % (sizeof blocks / sizeof *blocks)];
        if (s->type->block_len == 1)
            n = r;
        bad = decode_once(s, n * s->type->block_len, (int)(r / 8 & 1));
    }
    check_result(!bad, s->name, "decode");
}

/* Encode rows of one distribution with both. */
static int encode_once(const struct slot *s, size_t rows, size_t n,
                       unsigned dist, int weight)
{
    float *x = malloc((rows * n + 9) * sizeof *x);
    float *w = malloc((n + 1) * sizeof *w);
    size_t size = rows * bytes_of(s, n);
    struct guarded a = guarded_new(size), b = guarded_new(size);
    const float *importance = weight < 0 ? NULL : w;
    x += 1; /* no more alignment than a float's */
    for (size_t r = 0; r < rows; r++)
        test_floats(x + r * n, n, dist);
    test_weights(w, n, (unsigned)(weight < 0 ? 0 : weight));
    memset(b.p, 0x5a, size);
    s->ref.encode(x, a.p, rows, n, importance);
    s->k.encode(x, b.p, rows, n, importance);
    size_t at = 0;
    while (at < size && a.p[at] == b.p[at])
        at++;
    int bad = at < size || !guarded_intact(&b);
    if (at < size)
        printf("# byte %zu of %zu rows of %zu, distribution %u, weights %d\n",
               at % bytes_of(s, n), rows, n, dist, weight);
    free(x - 1);
    free(w);
    guarded_free(&a);
    guarded_free(&b);
    return bad;
}

/* The r-th kind of importances that the type takes; -1: none left. */
static int weight_of(const struct slot *s, unsigned r)
{
    int weight = (int)(r % (TEST_N_WEIGHT + 1)) - 1;
    if (!(s->ref.flags & GG_CODEC_WEIGHT))
        return -1;
    return s->ref.flags & GG_CODEC_NEEDS_WEIGHT && weight < 0 ? 0 : weight;
}

static void test_encode(const struct check_options *o, const struct slot *s)
{
    /* the reference looks through a trellis for some seconds a round */
    const unsigned rounds =
        strstr(s->type->name, "_KT") ? 1 + o->rounds / 16 : o->rounds;
    int bad = 0;
    for (unsigned r = 0; r < rounds && !bad; r++)
        for (unsigned d = 0; d <= TEST_TOP && !bad; d++) {
            size_t blocks = 1 + test_below(s->type->block_len > 32 ? 4 : 40);
            int weight = weight_of(s, r + d);
            bad = encode_once(s, test_below(4), blocks * s->type->block_len, d,
                              weight);
        }
    check_result(!bad, s->name, "encode");
}

/* Encode many rows of all distributions, with and without importances. */
static void test_rows(const struct check_options *o, const struct slot *s)
{
    unsigned long done = 0;
    int bad = 0;
    for (unsigned r = 0; done < o->rows && !bad; r++) {
        unsigned dist = r % (TEST_TOP + 1);
        int weight = weight_of(s, r / (TEST_TOP + 1));
        size_t n = 256 * (1 + test_below(2));
        bad = encode_once(s, 24, n, dist, weight);
        done += 24;
    }
    printf("# %s: %lu rows\n", s->name, done);
    check_result(!bad, s->name, "encode many rows");
}

/* Million elements per second of processor time, best of several tries. */
static double measure_rate(const struct slot *s, int what, const float *x,
                           void *q, float *y, const float *w, size_t rows,
                           size_t n)
{
    double best = 1e9;
    for (int try = 0; try < 5; try++) {
        double t = test_cpu_time();
        if (what == 0)
            for (size_t r = 0; r < rows; r++)
                s->k.decode((char *)q + r * bytes_of(s, n), y + r * n, n);
        else
            s->k.encode(x, q, rows, n, what == 2 ? w : NULL);
        t = test_cpu_time() - t;
        best = t < best ? t : best;
    }
    return (double)(rows * n) / best * 1e-6;
}

static void bench_slot(const struct slot *s)
{
    size_t rows = 16, n = 4096;
    float *x = malloc(rows * n * sizeof *x), *w = malloc(n * sizeof *w);
    float *y = malloc(rows * n * sizeof *x);
    char *q = calloc(rows, bytes_of(s, n));
    for (size_t r = 0; r < rows; r++)
        test_floats(x + r * n, n, 0);
    test_weights(w, n, 0);
    uint32_t flags = s->ref.flags;
    printf("%-8s %-8s", s->type->name, s->level);
    if (s->k.encode && !(flags & GG_CODEC_NEEDS_WEIGHT))
        printf(" encode %9.1f", measure_rate(s, 1, x, q, y, w, rows, n));
    else
        printf(" encode         -");
    if (s->k.encode && flags & GG_CODEC_WEIGHT)
        printf(" weighted %9.1f", measure_rate(s, 2, x, q, y, w, rows, n));
    else
        printf(" weighted         -");
    if (s->k.decode)
        printf(" decode %9.1f", measure_rate(s, 0, x, q, y, w, rows, n));
    printf(" Melem/s\n");
    fflush(stdout);
    free(x);
    free(w);
    free(y);
    free(q);
}

void check_codec(const struct check_options *o, const char *level,
                 const struct gg_kern *ref, const struct gg_kern *k)
{
    static gg_kern_encode_fn *done[GG_N_DTYPES]; /* tested at a lower level */
    for (int i = 0; i < GG_N_DTYPES; i++) {
        struct slot s = { level, "", gg_dtype_by_index(i), ref->codec[i],
                          k->codec[i] };
        snprintf(s.name, sizeof s.name, "%s %s", level, s.type->name);
        if (!check_wanted(o, s.name))
            continue;
        if (o->bench && k->codec[i].decode)
            bench_slot(&s);
        if (o->bench)
            continue;
        if (s.k.decode != s.ref.decode)
            test_decode(o, &s);
        if (s.k.encode != s.ref.encode && s.k.encode != done[i])
            test_encode(o, &s);
        if (o->rows && s.k.encode != s.ref.encode && s.k.encode != done[i])
            test_rows(o, &s);
        done[i] = s.k.encode;
    }
}
