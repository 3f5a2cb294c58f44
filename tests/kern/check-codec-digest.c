/* check-codec-digest.c - every encoder's bytes, the same in every build
 *
 *     check-codec-digest [--print]
 *
 * The inputs are integers times powers of two, so each compiler makes the same
 * floats. The digests below are those of the C references at the time of
 * writing, when they agreed with ../shared/golden/codec; --print prints the
 * table for this build. Compilers, their options and instruction sets must not
 * change a bit.
 */
#include "config.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

enum { N_ROWS = 8, ROW = 1024 };

static const struct expected {
    const char *type;
    uint64_t plain, weighted; /* 0: not done */
} expected[] = {
    { "F32", UINT64_C(0x3c1341ba288dea1e),
      UINT64_C(0x0000000000000000) },
    { "F16", UINT64_C(0x8e1db6c527729f03),
      UINT64_C(0x0000000000000000) },
    { "Q4_0", UINT64_C(0x2b1a26a7009970c3),
      UINT64_C(0x7ded27619946fce2) },
    { "Q4_1", UINT64_C(0x6fea5126e6fca189),
      UINT64_C(0xadec0658413cc9ae) },
    { "Q5_0", UINT64_C(0x0884adbeb6f6ab2c),
      UINT64_C(0xc79ede17dd472b2d) },
    { "Q5_1", UINT64_C(0x5882c95bcd6474b8),
      UINT64_C(0xeba6c8ff16015520) },
    { "Q8_0", UINT64_C(0x356234eab0cb4db2),
      UINT64_C(0x0000000000000000) },
    { "Q8_1", UINT64_C(0x389262be0eb0b8c1),
      UINT64_C(0x0000000000000000) },
    { "Q2_K", UINT64_C(0xd7aa91f6a9459a76),
      UINT64_C(0x5303c0c966b41b3c) },
    { "Q3_K", UINT64_C(0x4e6882bb98c1308d),
      UINT64_C(0x870b6e1b1b4d5eea) },
    { "Q4_K", UINT64_C(0x184a552579525277),
      UINT64_C(0x5dde6d14d3f068af) },
    { "Q5_K", UINT64_C(0x7f7c5be264e82b2a),
      UINT64_C(0xdaf9a94bfcabf93b) },
    { "Q6_K", UINT64_C(0x4379d2f3f0965fc2),
      UINT64_C(0x0a140ed47c439520) },
    { "Q8_K", UINT64_C(0x76272a9d36ee1d19),
      UINT64_C(0x0000000000000000) },
    { "IQ2_XXS", UINT64_C(0x0000000000000000),
      UINT64_C(0xa806f2602d1059d2) },
    { "IQ2_XS", UINT64_C(0x0000000000000000),
      UINT64_C(0x9ee67d3b39ab0858) },
    { "IQ3_XXS", UINT64_C(0x083b9a1ba97e194c),
      UINT64_C(0x079b4a14608f8bf7) },
    { "IQ1_S", UINT64_C(0x0000000000000000),
      UINT64_C(0x29d5c2af6839d63e) },
    { "IQ4_NL", UINT64_C(0x4c37d7f939189755),
      UINT64_C(0x17d81a9209cad0c2) },
    { "IQ3_S", UINT64_C(0x39bf96fb8fad8424),
      UINT64_C(0xb4b60a738fcb9ff4) },
    { "IQ2_S", UINT64_C(0xe3eaa82cbb846c6d),
      UINT64_C(0x61ad8434387d4913) },
    { "IQ4_XS", UINT64_C(0xadf7cf315184f1db),
      UINT64_C(0x845c07a0b3db2f4a) },
    { "IQ1_M", UINT64_C(0x3ef22fa4f46e90fd),
      UINT64_C(0xa8e7ed30ede57293) },
    { "F64", UINT64_C(0xa3721ab6c9c0f8c2),
      UINT64_C(0x0000000000000000) },
    { "BF16", UINT64_C(0xc9918835a3b6a7a5),
      UINT64_C(0x0000000000000000) },
    { "TQ1_0", UINT64_C(0xea16eb40506247bb),
      UINT64_C(0x0000000000000000) },
    { "TQ2_0", UINT64_C(0x7f687f35dbd5a26e),
      UINT64_C(0x0000000000000000) },
    { "MXFP4", UINT64_C(0x421e0ee7f8915a8f),
      UINT64_C(0x0000000000000000) },
    { "NVFP4", UINT64_C(0x281e38a63a20b0d7),
      UINT64_C(0x0000000000000000) },
    { "Q1_0", UINT64_C(0x8797e5ffee5fbb09),
      UINT64_C(0x0000000000000000) },
    { "Q2_0", UINT64_C(0xd693a003ec2022f0),
      UINT64_C(0x0000000000000000) },
};

static uint64_t state = 4;

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t rnd(void)
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Of 24 bits, much as a normal number is distributed. */
static int32_t bell(void)
{
    int32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int32_t)(rnd() >> 42) - (1 << 21);
    return sum;
}

static float element(int row, int i)
{
    float v;
    switch (row) {
    case 0:
    case 1:
        return (float)bell() * 0x1p-27f;
    case 2: /* heavy tails; the order of calls is part of the inputs */
        v = (float)bell() * 0x1p-30f;
        return v * (float)(1u << rnd() % 8);
    case 3: /* ties */
        return (float)((int)(rnd() % 33) - 16) * 0x1p-4f;
    case 4: /* ternary */
        return (float)((int)(rnd() % 3) - 1) * 0x1p-6f;
    case 5: /* sparse */
        return rnd() % 16 ? 0 : (float)bell() * 0x1p-25f;
    case 6: /* blocks of zeros, halves */
        return i / 32 % 3 ? (float)(bell() / 8192) * 0x1p-14f : 0;
    default: /* far from zero */
        return 1 + (float)bell() * 0x1p-26f;
    }
}

static float src[N_ROWS * ROW], weight[ROW];
static unsigned char out[N_ROWS * ROW * sizeof(double) + 64];

static void make_inputs(void)
{
    for (int r = 0; r < N_ROWS; r++)
        for (int i = 0; i < ROW; i++)
            src[r * ROW + i] = element(r, i);
    for (int i = 0; i < ROW; i++)
        weight[i] = rnd() % 16 ? (float)(rnd() >> 44) * 0x1p-20f : 0;
}

static uint64_t digest(const struct gg_codec_kern *k,
                       const struct gguf_dtype_info *t, const float *w)
{
    size_t row = t->row_header + ROW / t->block_len * t->block_size;
    memset(out, 0, sizeof out);
    k->encode(src, out, N_ROWS, ROW, w);
    return test_hash(out, N_ROWS * row);
}

static struct expected digests(const struct gg_codec_kern *k,
                               const struct gguf_dtype_info *t)
{
    struct expected e = { t->name, 0, 0 };
    if (!(k->flags & GG_CODEC_NEEDS_WEIGHT))
        e.plain = digest(k, t, NULL);
    if (k->flags & GG_CODEC_WEIGHT)
        e.weighted = digest(k, t, weight);
    return e;
}

static int as_expected(const struct expected *e)
{
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strcmp(expected[i].type, e->type))
            return expected[i].plain == e->plain &&
                   expected[i].weighted == e->weighted;
    return 0;
}

int main(int argc, char **argv)
{
    int print = argc > 1 && !strcmp(argv[1], "--print");
    struct test_level level[8];
    unsigned n = test_levels(level);
    static struct gg_kern k;
    make_inputs();
    for (unsigned l = 0; l < (print ? 1 : n); l++) {
        gg_kern_init(&k, level[l].mask);
        for (int i = 0; i < GG_N_DTYPES; i++) {
            const struct gguf_dtype_info *t = gg_dtype_by_index(i);
            if (!k.codec[i].encode)
                continue;
            struct expected e = digests(&k.codec[i], t);
            if (print)
                printf("    { \"%s\", UINT64_C(0x%016llx),\n"
                       "      UINT64_C(0x%016llx) },\n", t->name,
                       (unsigned long long)e.plain,
                       (unsigned long long)e.weighted);
            else
                ok(as_expected(&e), "%s %s", level[l].name, t->name);
        }
    }
    return print ? 0 : done_testing();
}
