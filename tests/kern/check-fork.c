/* SPDX-License-Identifier: MIT */
/* check-fork.c - ik_llama.cpp's types: its own rows, and random rows
 *
 * Every level decodes the rows of fork.hex to ik_llama.cpp's floats, bit for
 * bit. Independently, a decoder in double precision, which knows a type only
 * as a list of bit fields, evaluates the formulas on random rows.
 */
#include "config.h"
#include "base/bytes.h"
#include "tests/kern/kern.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <math.h>

/* Numbers of `width' bits, packed into groups of `group' bytes: number i is in
 * byte i % group of its group, above the numbers i - group, i - 2 group, ...
 * of that byte. */
struct field {
    int off, width, group;
};

static unsigned get_field(const struct field *f, const uint8_t *block, int i)
{
    if (!f->width)
        return 0;
    int in_group = f->group * (8 / f->width);
    int byte = f->off + i / in_group * f->group + i % f->group;
    int at = i % in_group / f->group * f->width;
    unsigned v = 0;
    for (int b = 0; b < f->width; b++)
        v |= (unsigned)(block[byte] >> (at + b) & 1) << b;
    return v;
}

/* A type: bit fields of elements (low part, high part), of the scales of
 * sub-blocks (low, high), and of their shifts. Offsets count from the block. */
static const struct spec {
    uint32_t id;
    int sub; /* elements of a sub-block */
    struct field q, q_high, sc, sc_high, shifted;
    int bias; /* subtracted from the scale */
    int shift;
} specs[] = {
    /* clang-format off */
    { 133, 32, { 10, 4, 16 }, { 2, 2, 8 }, { 0 }, { 0 }, { 0 }, -1, 0 },
    { 137, 16, { 12, 2, 32 }, { 0 }, { 4, 4, 1 }, { 0 }, { 2, 1, 1 }, 8, 5 },
    { 138, 16, { 14, 2, 32 }, { 78, 1, 32 }, { 6, 4, 1 }, { 4, 1, 1 },
      { 2, 1, 1 }, 0, 4 },
    { 139, 16, { 16, 4, 16 }, { 0 }, { 8, 4, 1 }, { 4, 2, 1 }, { 2, 1, 1 }, 32,
      4 },
    { 140, 16, { 16, 4, 32 }, { 144, 1, 32 }, { 8, 4, 1 }, { 4, 2, 1 },
      { 2, 1, 1 }, 32, 2 },
    { 141, 16, { 20, 4, 32 }, { 148, 2, 32 }, { 4, 8, 1 }, { 0 }, { 2, 1, 1 },
      0, 1 },
    { 144, 32, { 8, 4, 16 }, { 0 }, { 0, 8, 1 }, { 0 }, { 0 }, 127, 4 },
    { 145, 32, { 6, 2, 32 }, { 0 }, { 2, 4, 1 }, { 1, 1, 1 }, { 0, 1, 1 }, 16,
      5 },
    { 146, 32, { 8, 4, 16 }, { 0 }, { 0, 8, 1 }, { 0 }, { 0 }, 127, 4 },
    { 152, 32, { 8, 4, 32 }, { 136, 1, 32 }, { 0, 8, 1 }, { 0 }, { 0 }, 127,
      2 },
    { 156, 32, { 6, 2, 32 }, { 70, 1, 32 }, { 2, 4, 4 }, { 0, 1, 1 },
      { 1, 1, 1 }, 16, 4 },
    /* clang-format on */
};

static const struct spec *spec_of(uint32_t id)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (specs[i].id == id)
            return &specs[i];
    return NULL;
}

static double level_of(int bits, int q)
{
    static const double two[] = { -31, -13, 1, 17 };
    static const double three[] = { -63, -40, -23, -10, 1, 13, 28, 47 };
    static const double four[] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113 };
    static const double five[] = { -126, -114, -103, -92, -83, -74, -65, -57,
                                   -50,  -43,  -36,  -30, -24, -18, -12, -6,
                                   -1,   5,    11,   17,  23,  29,  36,  43,
                                   51,   59,   68,   77,  87,  97,  109, 121 };
    switch (bits) {
    case 2: return two[q];
    case 3: return three[q];
    case 4: return four[q];
    case 5: return five[q];
    default: return 0.0011972 * q * q * q - 0.11218 * q * q + 6.2568 * q - 127;
    }
}

/* Convert the 128 bytes of IQ4_KSS to those of IQ4_KS: words of 16 bits, each
 * with a bit of the scale and 15 bits of a Gray code. */
static void unfold_block(uint8_t to[136], const uint8_t *from)
{
    memset(to, 0, 136);
    for (int w = 0; w < 64; w++)
        for (int b = 0; b < 16; b++) {
            int this = from[2 * w + b / 8] >> b % 8 & 1;
            int next = b + 1;
            next = b == 15 ? 0 : from[2 * w + next / 8] >> next % 8 & 1;
            if (b == 0)
                to[w / 8] |= (uint8_t)(this << w % 8);
            to[8 + 2 * w + b / 8] |=
                (uint8_t)(((b ? this : 0) ^ next) << b % 8);
        }
}

/* Element e of a block by its formula, and the bound of its rounding. */
static double expected_element(const struct spec *s, double d,
                               const uint8_t *block, int e, double *bound)
{
    uint8_t plain[136];
    if (s->id == 146) {
        unfold_block(plain, block);
        block = plain;
    }
    int sub = e / s->sub;
    int bits = s->q.width + s->q_high.width, sc, shifted;
    /* Q6_0: the two middle quarters of the upper pairs are exchanged */
    int high = s->id == 133 && e / 8 % 3 ? e + (e < 16 ? 8 : -8) : e;
    int q = (int)(get_field(&s->q, block, e) |
                  get_field(&s->q_high, block, high) << s->q.width);
    if (s->bias < 0) {
        *bound = 0x1p-23 * fabs(d * (q - 32));
        return d * (q - 32);
    }
    sc = (int)get_field(&s->sc, block, sub);
    shifted = (int)get_field(&s->shifted, block, sub);
    if (s->id == 138) {
        sc = 2 * sc + 1;
        sc = get_field(&s->sc_high, block, sub) ? -sc : sc;
    } else if (s->id == 141) {
        sc = sc > 127 ? sc - 256 : sc;
    } else if (s->bias == 127) {
        shifted = sc & 1;
        sc = sc - shifted - 127;
    } else {
        sc |= (int)get_field(&s->sc_high, block, sub) << s->sc.width;
        sc -= s->bias;
    }
    double l = level_of(bits, q) + (shifted ? s->shift : 0);
    *bound =
        bits == 6 ? 0x1p-21 * fabs(d * sc) * 400 : 0x1p-23 * fabs(d * sc * l);
    return d * sc * l;
}

static double read_half(const uint8_t *p)
{
    unsigned h = p[0] | (unsigned)p[1] << 8, e = h >> 10 & 31, m = h & 1023;
    double v = e ? ldexp(1024 + m, (int)e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static double row_scale(const uint8_t *p, size_t size)
{
    return size == 2 ? read_half(p)
                     : (double)gg_bytes_f32_from_bits(gg_bytes_load32le(p));
}

/* Decode a row and count the elements that differ from the formula. */
static unsigned count_wrong(const struct gguf_dtype_info *t,
                            gg_kern_decode_fn *decode, const uint8_t *row,
                            size_t n)
{
    const struct spec *s = spec_of(t->id);
    unsigned bad = 0;
    float *y = malloc(n * sizeof *y);
    decode(row, y, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *block =
            row + t->row_header + i / t->block_len * t->block_size;
        double d =
            t->row_header ? row_scale(row, t->row_header) : read_half(block);
        double bound;
        double v =
            expected_element(s, d, block, (int)(i % t->block_len), &bound);
        if (!(fabs((double)y[i] - v) <= bound) && !bad++)
            printf("# %s element %zu: %a, by the formula %a\n", t->name, i,
                   (double)y[i], v);
    }
    free(y);
    return bad;
}

static void random_rows(const struct gguf_dtype_info *t, const char *level,
                        gg_kern_decode_fn *decode)
{
    unsigned bad = 0;
    size_t n = 3 * t->block_len;
    size_t size = t->row_header + 3 * t->block_size;
    uint8_t *row = malloc(size);
    for (int r = 0; r < 50; r++) {
        for (size_t i = 0; i < size; i++)
            row[i] = (uint8_t)rnd64();
        /* keep scales below 2: an F16, or the upper half of an F32 */
        if (t->row_header)
            row[t->row_header - 1] &= 0xbf;
        for (int k = 0; !t->row_header && k < 3; k++)
            row[k * (int)t->block_size + 1] &= 0xbf;
        bad += count_wrong(t, decode, row, n);
    }
    free(row);
    ok(!bad, "%s %s: random rows follow the formula", level, t->name);
}

/* ------------------------------------------------------------ fork.hex --- */

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Read size bytes in hex from several lines. Returns their end. */
static const char *read_hex(const char *p, uint8_t *out, size_t size)
{
    for (size_t i = 0; i < 2 * size; p++)
        if (hex_digit(*p) >= 0) {
            out[i / 2] = (uint8_t)(out[i / 2] << 4 | hex_digit(*p));
            i++;
        } else if (*p != '\n') {
            return NULL;
        }
    return p + 1;
}

static int same_floats(const float *y, size_t n, unsigned long long hash,
                       const char *first)
{
    int good = 1;
    for (size_t i = 0; i < n; i += n / 8) {
        char *end;
        good &= strtod(first, &end) == (double)y[i];
        first = end;
    }
    return good & (test_hash_floats(y, n) == hash);
}

static unsigned known_rows(const char *text, const struct test_level *level,
                           const struct gg_kern *k)
{
    unsigned n_rows = 0;
    while (text && *text) {
        char name[16];
        unsigned n;
        unsigned long long hash;
        if (*text == '#') {
            text += strcspn(text, "\n") + 1;
            continue;
        }
        if (sscanf(text, "%15s %u %llx", name, &n, &hash) != 3)
            return 0;
        const struct gguf_dtype_info *t = gguf_dtype_find_name(name);
        if (!t || n % t->block_len)
            return 0;
        size_t size = t->row_header + n / t->block_len * t->block_size;
        uint8_t *row = calloc(1, size);
        float *y = malloc(n * sizeof *y);
        text = read_hex(text + strcspn(text, "\n"), row, size);
        gg_kern_decode_fn *decode = k->codec[gg_dtype_index(t->id)].decode;
        if (text && decode) {
            decode(row, y, n);
            ok(same_floats(y, n, hash, text), "%s %s: row %u of ik_llama.cpp",
               level->name, name, n_rows);
            ok(!count_wrong(t, decode, row, n), "%s %s: and its formula",
               level->name, name);
            text += strcspn(text, "\n") + 1;
            n_rows++;
        }
        free(row);
        free(y);
    }
    return n_rows;
}

int main(void)
{
    const char *dir = getenv("srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/kern/fork.hex", dir ? dir : ".");
    char *text = slurp(path, NULL);
    struct test_level level[8];
    unsigned n = test_levels(level);
    ok(text != NULL, "%s is there", path);
    for (unsigned i = 0; text && i < n; i++) {
        static struct gg_kern k;
        gg_kern_init(&k, level[i].mask);
        unsigned rows = known_rows(text, &level[i], &k);
        ok(rows == 22, "%s: %u rows are known", level[i].name, rows);
        for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
            random_rows(gguf_dtype_find(specs[s].id), level[i].name,
                        k.codec[gg_dtype_index(specs[s].id)].decode);
    }
    free(text);
    return done_testing();
}
