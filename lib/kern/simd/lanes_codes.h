/* SPDX-License-Identifier: MIT */
/* lanes_codes.h - blocks of the codebook types to bytes whose lanes are rows
 *
 * Included after lanes_blocks.h, whose functions take the bytes. The numbers of
 * entries (kern/iq_bytes.h) are computed row by row. The entries of all rows
 * are then combined into lanes. Signs, scales and offsets are computed in
 * lanes.
 */
#include "kern/iq_bytes.h"

/* Numbers of the entries of a block of all rows: 32 entries of eight bytes, or
 * 64 of four. */
struct codes_8 {
    uint16_t of[ROWS][32];
};
struct codes_4 {
    uint16_t of[ROWS][64];
};

/* Load the bytes of a run of 32 steps from the t-th entry on, each to its
 * place. Stores to one cache line each would take longer than the rest. */
static GG_ALWAYS_INLINE void
take_8(const struct codes_8 *c, const uint64_t *table, size_t t, VI q[PARTS])
{
    GG_UNROLL
    for (size_t i = 0; i < 4; i++) {
        __m128i a[ROWS / 4], b[ROWS / 4]; /* two of four rows, the other two */
        GG_UNROLL
        for (size_t r = 0; r < ROWS; r += 4) {
            a[r / 4] = _mm_set_epi64x((long long)table[c->of[r + 1][t + i]],
                                      (long long)table[c->of[r][t + i]]);
            b[r / 4] = _mm_set_epi64x((long long)table[c->of[r + 3][t + i]],
                                      (long long)table[c->of[r + 2][t + i]]);
        }
        const VI u = join_rows(a), v = join_rows(b);
        q[2 * i] = vi_evens(u, v);
        q[2 * i + 1] = vi_odds(u, v);
    }
}

static GG_ALWAYS_INLINE void
take_4(const struct codes_4 *c, const uint32_t *table, size_t t, VI q[PARTS])
{
    GG_UNROLL
    for (size_t i = 0; i < PARTS; i++) {
        __m128i v[ROWS / 4];
        GG_UNROLL
        for (size_t r = 0; r < ROWS; r += 4)
            v[r / 4] = _mm_setr_epi32((int)table[c->of[r][t + i]],
                                      (int)table[c->of[r + 1][t + i]],
                                      (int)table[c->of[r + 2][t + i]],
                                      (int)table[c->of[r + 3][t + i]]);
        q[i] = join_rows(v);
    }
}

/* 16 numbers of entries: bytes, with bits of high above them. */
static GG_ALWAYS_INLINE void put_codes(uint16_t *k, const uint8_t *low,
                                       __m256i high)
{
    const __m128i v = _mm_loadu_si128((const void *)low);
    _mm256_storeu_si256((void *)k,
                        _mm256_or_si256(_mm256_cvtepu8_epi16(v), high));
}

/* Bytes n, n + 1, ... of v as 16 words, each of them times over. */
static GG_ALWAYS_INLINE __m256i spread_bytes(__m128i v, int n, int times)
{
    const __m256i step = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                           11, 12, 13, 14, 15);
    const int shift = times == 2 ? 1 : times == 4 ? 2 : 3;
    const __m256i byte = _mm256_add_epi16(_mm256_srli_epi16(step, shift),
                                          _mm256_set1_epi16((short)n));
    /* the upper byte of each word: none */
    return m256_lookup(
        _mm256_broadcastsi128_si256(v),
        _mm256_or_si256(byte, _mm256_set1_epi16((short)0x8000)));
}

/* Compute n numbers of entries from the bytes at low and the bits above them. A
 * byte of qh has the bits of several entries; by, a product for each entry,
 * moves them to mask. */
static GG_ALWAYS_INLINE void codes_of(uint16_t *k, size_t n,
                                      const uint8_t *low, __m128i qh,
                                      int entries, __m256i by, int mask)
{
    GG_UNROLL
    for (size_t i = 0; i < n; i += 16) {
        const __m256i high = _mm256_mullo_epi16(
            spread_bytes(qh, (int)i / entries, entries), by);
        put_codes(k + i, low + i,
                  _mm256_and_si256(high, _mm256_set1_epi16((short)mask)));
    }
}

/* The first four of each eight bytes are numbers of entries; the others are
 * signs and a scale. */
static void codes_iq2_xxs(struct codes_8 *c, const struct rows *r)
{
    const __m128i first = _mm_setr_epi8(0, 1, 2, 3, 8, 9, 10, 11, -1, -1, -1,
                                        -1, -1, -1, -1, -1);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < 32; i += 8) {
            const __m128i v = load_16(r, AT(iq2_xxs, qs) + 2 * i, row);
            _mm_storeu_si128((void *)(c->of[row] + i),
                             _mm_cvtepu8_epi16(_mm_shuffle_epi8(v, first)));
        }
}

static void codes_iq2_xs(struct codes_8 *c, const struct rows *r)
{
    for (size_t row = 0; row < ROWS; row++) {
        const uint8_t *qs = r->at + row * r->stride + AT(iq2_xs, qs);
        uint16_t *k = c->of[row];
        for (size_t i = 0; i < 32; i += 16)
            _mm256_storeu_si256(
                (void *)(k + i),
                _mm256_and_si256(
                    _mm256_loadu_si256((const void *)(qs + 2 * i)),
                    _mm256_set1_epi16(511)));
    }
}

/* Two bits of each entry. */
static void codes_iq2_s(struct codes_8 *c, const struct rows *r)
{
    const __m256i by = _mm256_set1_epi64x(0x0004001000400100);
    for (size_t row = 0; row < ROWS; row++) {
        const uint8_t *p = r->at + row * r->stride;
        const __m128i qh = _mm_loadl_epi64((const void *)(p + AT(iq2_s, qh)));
        uint16_t *k = c->of[row];
        codes_of(k, 32, p + AT(iq2_s, qs), qh, 4, by, 0x300);
    }
}

static void codes_iq3_xxs(struct codes_4 *c, const struct rows *r)
{
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < 64; i += 16)
            put_codes(c->of[row] + i,
                      r->at + row * r->stride + AT(iq3_xxs, qs) + i,
                      _mm256_setzero_si256());
}

/* One bit of each. */
static void codes_iq3_s(struct codes_4 *c, const struct rows *r)
{
    const __m256i by = _mm256_setr_epi16(256, 128, 64, 32, 16, 8, 4, 2, 256,
                                         128, 64, 32, 16, 8, 4, 2);
    for (size_t row = 0; row < ROWS; row++) {
        const uint8_t *p = r->at + row * r->stride;
        const __m128i qh = _mm_loadl_epi64((const void *)(p + AT(iq3_s, qh)));
        uint16_t *k = c->of[row];
        codes_of(k, 64, p + AT(iq3_s, qs), qh, 8, by, 0x100);
    }
}

/* Three bits of each, of words for four; of the last by a bit down. */
static void codes_iq1_s(struct codes_8 *c, const struct rows *r)
{
    const __m256i up = _mm256_set1_epi64x(0x0000000400200100);
    const __m256i down = _mm256_set1_epi64x((long long)0x8000000000000000);
    const __m128i four =
        _mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3);
    const __m256i words = _mm256_inserti128_si256(
        _mm256_castsi128_si256(four), _mm_add_epi8(four, _mm_set1_epi8(4)), 1);
    for (size_t row = 0; row < ROWS; row++) {
        const uint8_t *p = r->at + row * r->stride;
        const __m256i qh = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const void *)(p + AT(iq1_s, qh))));
        uint16_t *k = c->of[row];
        GG_UNROLL
        for (int i = 0; i < 2; i++) {
            const __m256i w = m256_lookup(
                qh, _mm256_add_epi8(words, _mm256_set1_epi8((char)(8 * i))));
            const __m256i high = _mm256_or_si256(_mm256_mullo_epi16(w, up),
                                                 _mm256_mulhi_epu16(w, down));
            put_codes(k + 16 * i, p + AT(iq1_s, qs) + 16 * i,
                      _mm256_and_si256(high, _mm256_set1_epi16(0x700)));
        }
    }
}

/* Three bits of a nibble for each. */
static void codes_iq1_m(struct codes_8 *c, const struct rows *r)
{
    const __m256i by = _mm256_set1_epi32(0x00100100);
    for (size_t row = 0; row < ROWS; row++) {
        const uint8_t *p = r->at + row * r->stride;
        const __m128i qh = _mm_loadu_si128((const void *)(p + AT(iq1_m, qh)));
        uint16_t *k = c->of[row];
        codes_of(k, 32, p + AT(iq1_m, qs), qh, 2, by, 0x700);
    }
}

/* ---- signs and scales ---- */

/* Minus where a bit is set, bit p of a lane that of step p; then the bias. */
static GG_ALWAYS_INLINE void add_signs(VI q[PARTS], VI signs, int bias)
{
    VI which = first_bytes();
    GG_UNROLL
    for (int k = 0; k < PARTS; k += 2) {
        const VI byte = vi_lookup(signs, which);
        q[k] = vi_add8(vi_minus_where(q[k], byte, BITS_LOW), vi_bytes(bias));
        q[k + 1] =
            vi_add8(vi_minus_where(q[k + 1], byte, BITS_UP), vi_bytes(bias));
        which = vi_add8(which, vi_bytes(1));
    }
}

/* gg_dtype_iq_signs of each byte. */
static GG_ALWAYS_INLINE VI even_signs(VI s)
{
    /* index: a nibble; bit 7: it has an odd number of set bits */
    enum { ODD = 0x80 };
    static const uint8_t parity[16] = { 0,   ODD, ODD, 0,   ODD, 0,   0,   ODD,
                                        ODD, 0,   0,   ODD, 0,   ODD, ODD, 0 };
    const VI p = vi_and(vi_xor(s, vi_srl(s, 4)), vi_bytes(15));
    return vi_or(s, vi_lookup(vi_sixteen(parity), p));
}

/* Four times seven bits of a word to four bytes. */
static GG_ALWAYS_INLINE VI seven_bits(VI v)
{
    VI s = vi_and(v, vi_words(0x7f));
    GG_UNROLL
    for (int i = 1; i < 4; i++)
        s = vi_or(s, vi_and(vi_sll(v, i), vi_words(0x7f << 8 * i)));
    return s;
}

/* 2 v + 1 of bits of v. */
static GG_ALWAYS_INLINE VI odd_of(VI v, int mask)
{
    return vi_or(vi_sll(vi_and(v, vi_words(mask)), 1), vi_words(1));
}

static GG_ALWAYS_INLINE VF scale_floats(VF v, float by)
{
    return vf_mul(v, vf_all(&by));
}

/* Pass on the two halves of run s; sub has a nibble for each. */
static GG_ALWAYS_INLINE void two_halves(struct to *to, const VI q[PARTS],
                                        size_t s, VI sub)
{
    put_half(to, q, 2 * s, odd_of(sub, 15));
    put_half(to, q + 4, 2 * s + 1, odd_of(vi_srl(sub, 4), 15));
}

/* ---- blocks ---- */

BLOCK_256(iq2_xxs)
{
    put_d(to, scale_floats(take_half(r, 0), 0.125f));
    struct codes_8 c;
    codes_iq2_xxs(&c, r);
    for (size_t h = 0; h < 4; h++) {
        VI v[4];
        take_16(r, AT(iq2_xxs, qs) + 16 * h, v);
        for (size_t i = 0; i < 2; i++) {
            const VI rest = v[2 * i + 1]; /* signs, and scales above them */
            VI q[PARTS];
            take_8(&c, gg_kern_iq2_xxs_bytes, 8 * h + 4 * i, q);
            add_signs(q, even_signs(seven_bits(rest)), to->bias);
            put_sub(to, q, 2 * h + i, odd_of(vi_srl(rest, 28), 15));
        }
    }
}

BLOCK_256(iq2_xs)
{
    put_d(to, scale_floats(take_half(r, 0), 0.125f));
    const VI seven = vi_words(0x7f);
    struct codes_8 c;
    VI scale[4], v[4];
    codes_iq2_xs(&c, r);
    take_16(r, AT(iq2_xs, scales) - 8, scale);
    for (size_t h = 0; h < 4; h++) {
        VI sub = scale[2 + h / 2];
        if (h % 2)
            sub = vi_srl(sub, 16);
        take_16(r, AT(iq2_xs, qs) + 16 * h, v);
        for (size_t i = 0; i < 2; i++) { /* signs above nine bits of a word */
            const VI a = v[2 * i], b = v[2 * i + 1];
            const VI low =
                vi_or(vi_and(vi_srl(a, 9), seven), vi_sll(vi_srl(a, 25), 8));
            const VI up =
                vi_or(vi_and(vi_srl(b, 9), seven), vi_sll(vi_srl(b, 25), 8));
            VI q[PARTS];
            take_8(&c, gg_kern_iq2_xs_bytes, 8 * h + 4 * i, q);
            add_signs(q, even_signs(vi_or(low, vi_sll(up, 16))), to->bias);
            two_halves(to, q, 2 * h + i, sub);
            sub = vi_srl(sub, 8);
        }
    }
}

BLOCK_256(iq2_s)
{
    put_d(to, scale_floats(take_half(r, 0), 0.125f));
    struct codes_8 c;
    VI scale[4], signs[4];
    codes_iq2_s(&c, r);
    take_16(r, AT(iq2_s, qh), scale);
    for (size_t h = 0; h < 2; h++) {
        VI sub = scale[2 + h];
        take_16(r, AT(iq2_s, qs) + 32 + 16 * h, signs);
        for (size_t i = 0; i < 4; i++) {
            VI q[PARTS];
            take_8(&c, gg_kern_iq2_s_bytes, 16 * h + 4 * i, q);
            add_signs(q, signs[i], to->bias);
            two_halves(to, q, 4 * h + i, sub);
            sub = vi_srl(sub, 8);
        }
    }
}

BLOCK_256(iq3_xxs)
{
    put_d(to, scale_floats(take_half(r, 0), 0.25f));
    struct codes_4 c;
    codes_iq3_xxs(&c, r);
    for (size_t h = 0; h < 2; h++) {
        VI rest[4]; /* signs, and scales above them */
        take_16(r, AT(iq3_xxs, qs) + 64 + 16 * h, rest);
        for (size_t i = 0; i < 4; i++) {
            VI q[PARTS];
            take_4(&c, gg_kern_iq3_xxs_bytes, 32 * h + 8 * i, q);
            add_signs(q, even_signs(seven_bits(rest[i])), to->bias);
            put_sub(to, q, 4 * h + i, odd_of(vi_srl(rest[i], 28), 15));
        }
    }
}

BLOCK_256(iq3_s)
{
    put_d(to, take_half(r, 0));
    struct codes_4 c;
    VI scale[4], signs[4];
    codes_iq3_s(&c, r);
    take_16(r, AT(iq3_s, scales) - 12, scale);
    VI sub = scale[3];
    for (size_t h = 0; h < 2; h++) {
        take_16(r, AT(iq3_s, signs) + 16 * h, signs);
        for (size_t i = 0; i < 4; i++) {
            VI q[PARTS];
            take_4(&c, gg_kern_iq3_s_bytes, 32 * h + 8 * i, q);
            add_signs(q, signs[i], to->bias);
            put_sub(to, q, 4 * h + i, odd_of(sub, 15));
            sub = vi_srl(sub, 4);
        }
    }
}

/* Offset of levels of IQ1, with the bias: -1 if bit 31 is set, else 1. */
static GG_ALWAYS_INLINE VI delta_of(VI v, int bias)
{
    return vi_add8(vi_and(vi_sra(v, 31), vi_bytes(-2)), vi_bytes(bias + 1));
}

BLOCK_256(iq1_s)
{
    put_d(to, scale_floats(take_half(r, 0), 0.125f));
    struct codes_8 c;
    VI high[4];
    codes_iq1_s(&c, r);
    take_16(r, AT(iq1_s, qh), high);
    for (size_t h = 0; h < 4; h++) {
        VI w = high[h];
        for (size_t i = 0; i < 2; i++) {
            const VI delta = delta_of(vi_sll(w, 16), to->bias);
            VI q[PARTS];
            take_8(&c, gg_kern_iq1_bytes, 8 * h + 4 * i, q);
            GG_UNROLL
            for (int k = 0; k < PARTS; k++)
                q[k] = vi_add8(q[k], delta);
            put_sub(to, q, 2 * h + i, odd_of(vi_srl(w, 12), 7));
            w = vi_srl(w, 16);
        }
    }
}

/* The upper nibbles of four words are an f16. */
static GG_ALWAYS_INLINE VF half_of_nibbles(VI a, VI b)
{
    const VI low = vi_or(vi_and(vi_srl(a, 12), vi_words(0xf)),
                         vi_and(vi_srl(a, 24), vi_words(0xf0)));
    const VI up = vi_or(vi_and(vi_srl(b, 4), vi_words(0xf00)),
                        vi_and(vi_srl(b, 16), vi_words(0xf000)));
    return halves_to_floats(vi_or(low, up));
}

BLOCK_256(iq1_m)
{
    struct codes_8 c;
    VI high[4], scale[4];
    codes_iq1_m(&c, r);
    take_16(r, AT(iq1_m, qh), high);
    take_16(r, AT(iq1_m, scales) - 8, scale);
    put_d(to, scale_floats(half_of_nibbles(scale[2], scale[3]), 0.125f));
    for (size_t h = 0; h < 4; h++) {
        VI w = high[h], sub = scale[2 + h / 2];
        if (h % 2)
            sub = vi_srl(sub, 16);
        for (size_t i = 0; i < 2; i++) {
            const size_t s = 2 * h + i;
            VI q[PARTS];
            take_8(&c, gg_kern_iq1_bytes, 4 * s, q);
            GG_UNROLL
            for (int k = 0; k < PARTS; k++) /* a bit for two quads */
                q[k] = vi_add8(q[k],
                               delta_of(vi_sll(w, 28 - k / 2 * 4), to->bias));
            put_half(to, q, 2 * s, odd_of(sub, 7));
            put_half(to, q + 4, 2 * s + 1, odd_of(vi_srl(sub, 3), 7));
            w = vi_srl(w, 16);
            sub = vi_srl(sub, 6);
        }
    }
}
