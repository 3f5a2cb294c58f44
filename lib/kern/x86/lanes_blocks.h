/* SPDX-License-Identifier: MIT */
/* lanes_blocks.h - blocks of each type to bytes whose lanes are rows
 *
 * Included by lanes_impl.h and few_one.h after struct to and what takes the
 * bytes. block_NAME reads to->n steps, at most 256, of rows. q[k] has the steps
 * 4 k to 4 k + 3 of 32, or of 16, with to->bias added, so that none has a sign.
 *
 *     put_own(to, q, i, d)     32 steps, the i-th, with a scale of their own
 *     put_d(to, d)             the scale of a block, before the next two:
 *     put_sub(to, q, i, sub)   32 steps, and
 *     put_half(to, q, i, sub)  16 steps, with an integer that multiplies it; of
 *                              Q2_K, if to->apart, bytes are 1, 4, 16, 64 times
 *                              larger in the quarters of each 128 steps
 *     put_run(to, q, i)        32 steps, without one
 *     put_min(to, i, m)        minimum i, with the sign that it is added with
 */

static GG_ALWAYS_INLINE VI low_nibbles(VI v)
{
    return vi_and(v, vi_bytes(15));
}

static GG_ALWAYS_INLINE VI high_nibbles(VI v)
{
    return low_nibbles(vi_srl(v, 4));
}

/* Two bits of each byte. */
static GG_ALWAYS_INLINE VI two_bits(VI v, size_t shift)
{
    return vi_and(vi_srl(v, (unsigned)shift), vi_bytes(3));
}

/* 32 bytes of each row. */
static GG_ALWAYS_INLINE void take_32(const struct rows *r, size_t off,
                                     VI v[RUN_QUADS])
{
    take(r, off, v);
    take(r, off + 16, v + 4);
}

/* 16 bytes of two nibbles: steps 0 to 15, then 16 to 31. */
static GG_ALWAYS_INLINE void take_nibbles(const struct rows *r, size_t off,
                                          VI q[RUN_QUADS])
{
    VI v[4];
    take(r, off, v);
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        q[k] = low_nibbles(v[k]);
        q[k + 4] = high_nibbles(v[k]);
    }
}

/* The same as codes of a table. */
static GG_ALWAYS_INLINE void take_codes(const struct rows *r, size_t off,
                                        VI table, VI q[RUN_QUADS])
{
    take_nibbles(r, off, q);
    GG_UNROLL
    for (int k = 0; k < RUN_QUADS; k++)
        q[k] = vi_lookup(table, q[k]);
}

/* ---- blocks of 32 ---- */

#define EACH_BLOCK(NAME)                                                      \
    struct rows at = *r;                                                      \
    for (size_t i = 0; i < to->n / 32;                                        \
         i++, at.at += sizeof(struct gg_block_##NAME))

static GG_ALWAYS_INLINE void block_q4_0(struct to *to, const struct rows *r)
{
    EACH_BLOCK(q4_0)
    {
        VI q[RUN_QUADS];
        take_nibbles(&at, offsetof(struct gg_block_q4_0, qs), q);
        put_own(to, q, i, take_half(&at, 0));
    }
}

static GG_ALWAYS_INLINE void block_q4_1(struct to *to, const struct rows *r)
{
    EACH_BLOCK(q4_1)
    {
        VI q[RUN_QUADS];
        take_nibbles(&at, offsetof(struct gg_block_q4_1, qs), q);
        put_min(to, i, take_half(&at, offsetof(struct gg_block_q4_1, m)));
        put_own(to, q, i, take_half(&at, 0));
    }
}

/* For vi_lookup: the lowest byte of each lane, all over it. */
static GG_ALWAYS_INLINE VI first_bytes(void)
{
    static const uint8_t which[16] = { 0, 0, 0, 0, 4,  4,  4,  4,
                                       8, 8, 8, 8, 12, 12, 12, 12 };
    return vi_sixteen(which);
}

/* Of such a byte, bits for four steps, a bit in each byte. */
#define BITS_LOW vi_words(0x08040201)
#define BITS_UP  vi_words((int)0x80402010)

/* q |= value where a bit is set: bit p of a lane is that of step p. */
static GG_ALWAYS_INLINE void add_bits(VI q[RUN_QUADS], VI bits, VI value)
{
    VI which = first_bytes();
    GG_UNROLL
    for (int k = 0; k < RUN_QUADS; k += 2) {
        const VI byte = vi_lookup(bits, which);
        q[k] = vi_or(q[k], vi_where(byte, BITS_LOW, value));
        q[k + 1] = vi_or(q[k + 1], vi_where(byte, BITS_UP, value));
        which = vi_add8(which, vi_bytes(1));
    }
}

static GG_ALWAYS_INLINE void add_fifths(VI q[RUN_QUADS], VI high)
{
    add_bits(q, high, vi_bytes(16));
}

static GG_ALWAYS_INLINE void block_q5_0(struct to *to, const struct rows *r)
{
    EACH_BLOCK(q5_0)
    {
        VI v[4], q[RUN_QUADS];
        take(&at, 0, v); /* d, and what is high after it */
        take_nibbles(&at, offsetof(struct gg_block_q5_0, qs), q);
        add_fifths(q, vi_or(vi_srl(v[0], 16), vi_sll(v[1], 16)));
        put_own(to, q, i, halves(v[0]));
    }
}

static GG_ALWAYS_INLINE void block_q5_1(struct to *to, const struct rows *r)
{
    EACH_BLOCK(q5_1)
    {
        VI v[4], q[RUN_QUADS];
        take(&at, 0, v); /* d, m, high */
        take_nibbles(&at, offsetof(struct gg_block_q5_1, qs), q);
        add_fifths(q, v[1]);
        put_min(to, i, halves(vi_srl(v[0], 16)));
        put_own(to, q, i, halves(v[0]));
    }
}

static GG_ALWAYS_INLINE void block_mxfp4(struct to *to, const struct rows *r)
{
    static const int8_t level[16] = GG_FP4_LEVELS;
    const VI table = vi_add8(vi_sixteen(level), vi_bytes(to->bias));
    EACH_BLOCK(mxfp4)
    {
        VI q[RUN_QUADS];
        /* gg_kern_e8m0_half: the second is larger for the exponents 0 and 1 */
        const VI e = take_byte(&at, 0);
        const VI d = vi_max(vi_sll(vi_sub(e, vi_words(1)), 23),
                            vi_sll(vi_add(e, vi_words(1)), 21));
        take_codes(&at, offsetof(struct gg_block_mxfp4, qs), table, q);
        put_own(to, q, i, vi_float(d));
    }
}

static GG_ALWAYS_INLINE VI iq4_table(void)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    return vi_xor(vi_sixteen(level), vi_bytes(128));
}

static GG_ALWAYS_INLINE void block_iq4_nl(struct to *to, const struct rows *r)
{
    const VI table = iq4_table();
    EACH_BLOCK(iq4_nl)
    {
        VI q[RUN_QUADS];
        take_codes(&at, offsetof(struct gg_block_iq4_nl, qs), table, q);
        put_own(to, q, i, take_half(&at, 0));
    }
}

/* Bytes with a sign. */
#define BLOCK_Q8(NAME)                                                        \
    static GG_ALWAYS_INLINE void block_##NAME(struct to *to,                  \
                                              const struct rows *r)           \
    {                                                                         \
        EACH_BLOCK(NAME)                                                      \
        {                                                                     \
            VI q[RUN_QUADS];                                                  \
            take_32(&at, offsetof(struct gg_block_##NAME, qs), q);            \
            GG_UNROLL                                                         \
            for (int k = 0; k < RUN_QUADS; k++)                               \
                q[k] = vi_xor(q[k], vi_bytes(128));                           \
            put_own(to, q, i, take_half(&at, 0));                             \
        }                                                                     \
    }
BLOCK_Q8(q8_0)
BLOCK_Q8(q8_1)

/* Fifth and sixth bits: nibbles of two bits for a low nibble and two for a high
 * one, of bytes 0 to 7 and then of 8 to 15. */
static GG_ALWAYS_INLINE void block_q6_0(struct to *to, const struct rows *r)
{
    EACH_BLOCK(q6_0)
    {
        VI v[4], high[2], q[RUN_QUADS];
        take(&at, 0, v); /* d, and what is high after it */
        take_nibbles(&at, offsetof(struct gg_block_q6_0, qs), q);
        high[0] = vi_or(vi_srl(v[0], 16), vi_sll(v[1], 16));
        high[1] = vi_or(vi_srl(v[1], 16), vi_sll(v[2], 16));
        GG_UNROLL
        for (unsigned k = 0; k < RUN_QUADS; k++) {
            const unsigned shift = k % 4 / 2 * 4 + k / 4 * 2;
            const VI two = vi_sll(two_bits(high[k % 2], shift), 4);
            q[k] = vi_add8(vi_or(q[k], two), vi_bytes(to->bias - 32));
        }
        put_own(to, q, i, halves(v[0]));
    }
}

/* ---- blocks of 64 and 128 ---- */

/* A bit: -1 or 1. */
static GG_ALWAYS_INLINE void block_q1_0(struct to *to, const struct rows *r)
{
    struct rows at = *r;
    for (size_t i = 0; i < to->n / 32; i += 4) {
        const VF d = take_half(&at, 0);
        VI v[4], q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_q1_0, qs), v);
        for (size_t k = 0; k < 4; k++) {
            GG_UNROLL
            for (int t = 0; t < RUN_QUADS; t++)
                q[t] = vi_zero();
            add_bits(q, v[k], vi_bytes(2));
            GG_UNROLL
            for (int t = 0; t < RUN_QUADS; t++)
                q[t] = vi_add8(q[t], vi_bytes(to->bias - 1));
            put_own(to, q, i + k, d);
        }
        at.at += sizeof(struct gg_block_q1_0);
    }
}

/* Two bits, less one; a byte has four steps. Of its nibbles bytes keep two bits
 * each, where they are: what these stand for is looked up. */
static GG_ALWAYS_INLINE void block_q2_0(struct to *to, const struct rows *r)
{
    static const uint8_t bits[16] = { 0, 1, 2, 3, 1, 0, 0, 0,
                                      2, 0, 0, 0, 3, 0, 0, 0 };
    const VI table = vi_add8(vi_sixteen(bits), vi_bytes(to->bias - 1));
    struct rows at = *r;
    for (size_t i = 0; i < to->n / 32; i += 2) {
        const VF d = take_half(&at, 0);
        VI v[4], q[RUN_QUADS];
        take(&at, offsetof(struct gg_block_q2_0, qs), v);
        for (size_t k = 0; k < 2; k++) {
            GG_UNROLL
            for (unsigned t = 0; t < RUN_QUADS; t++) {
                const VI which = vi_add8(first_bytes(), vi_bytes(t % 4));
                const VI b = vi_lookup(v[2 * k + t / 4], which);
                const VI low = vi_and(b, vi_words(0x00000c03));
                const VI up = vi_and(vi_srl(b, 4), vi_words(0x0c030000));
                q[t] = vi_lookup(table, vi_or(low, up));
            }
            put_own(to, q, i + k, d);
        }
        at.at += sizeof(struct gg_block_q2_0);
    }
}

/* ---- blocks of 256 ---- */

/* d and minima; sub: of eight runs. */
static GG_ALWAYS_INLINE void put_k4(struct to *to, const struct rows *r,
                                    VI sub[8])
{
    VI s[2], m[2];
    VF dmin;
    put_d(to, take_k4_bytes(r, s, m, &dmin));
    dmin = vf_neg(dmin);
    GG_UNROLL
    for (int j = 0; j < 8; j++) {
        sub[j] = byte_of(s[j / 4], j % 4, 0);
        put_min(to, j, vf_mul(dmin, byte_ps(m[j / 4], j % 4, 0)));
    }
}

static GG_ALWAYS_INLINE void block_q4_k(struct to *to, const struct rows *r)
{
    VI sub[8];
    put_k4(to, r, sub);
    for (size_t s = 0; s < 8; s += 2) {
        VI v[RUN_QUADS], q[RUN_QUADS];
        take_32(r, offsetof(struct gg_block_q4_k, qs) + 16 * s, v);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = low_nibbles(v[k]);
        put_sub(to, q, s, sub[s]);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = high_nibbles(v[k]);
        put_sub(to, q, s + 1, sub[s + 1]);
    }
}

/* Bit s of each byte, moved to where a fifth bit is. */
static GG_ALWAYS_INLINE VI fifth_bits(VI high, unsigned s)
{
    return vi_and(vi_sll(vi_srl(high, s), 4), vi_bytes(16));
}

static GG_ALWAYS_INLINE void block_q5_k(struct to *to, const struct rows *r)
{
    VI sub[8], high[RUN_QUADS];
    put_k4(to, r, sub);
    take_32(r, offsetof(struct gg_block_q5_k, qh), high);
    for (unsigned s = 0; s < 8; s += 2) {
        VI v[RUN_QUADS], q[RUN_QUADS];
        take_32(r, offsetof(struct gg_block_q5_k, qs) + 16 * s, v);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = vi_or(low_nibbles(v[k]), fifth_bits(high[k], 0));
        put_sub(to, q, s, sub[s]);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++) {
            q[k] = vi_or(high_nibbles(v[k]), fifth_bits(high[k], 1));
            high[k] = vi_srl(high[k], 2);
        }
        put_sub(to, q, s + 1, sub[s + 1]);
    }
}

static GG_ALWAYS_INLINE void block_q6_k(struct to *to, const struct rows *r)
{
    const VI two = vi_bytes(0x30);
    put_d(to, take_half(r, offsetof(struct gg_block_q6_k, d)));
    VI scale[4], low[2][RUN_QUADS], up[RUN_QUADS], q[4];
    take(r, offsetof(struct gg_block_q6_k, scales), scale);
    for (size_t h = 0; h < 2; h++) {
        take_32(r, 64 * h, low[0]);
        take_32(r, 64 * h + 32, low[1]);
        take_32(r, offsetof(struct gg_block_q6_k, qh) + 32 * h, up);
        GG_UNROLL
        for (size_t k = 0; k < 8; k++) { /* 16 steps */
            const VI s = byte_of(scale[2 * h + k / 4], (int)(k % 4), 1);
            GG_UNROLL
            for (size_t i = 0; i < 4; i++) {
                const VI l = low[k / 2 % 2][k % 2 * 4 + i];
                const VI u = up[k % 2 * 4 + i];
                const VI high = k < 4 ? vi_sll(u, (unsigned)(4 - k / 2 * 2))
                                      : vi_srl(u, (unsigned)(k / 2 * 2 - 4));
                q[i] = vi_or(k < 4 ? low_nibbles(l) : high_nibbles(l),
                             vi_and(high, two));
            }
            put_half(to, q, 8 * h + k, s);
        }
    }
}

/* Eight times 16 steps of three bits, of which v and third are 32 bytes of each
 * row, scale a byte for each of 16 steps. */
static GG_ALWAYS_INLINE void half_of_k3(struct to *to, const VI v[RUN_QUADS],
                                        const VI third[RUN_QUADS],
                                        const VI scale[2], size_t h)
{
    GG_UNROLL
    for (size_t k = 0; k < 8; k++) {
        VI q[4];
        GG_UNROLL
        for (size_t i = 0; i < 4; i++) {
            const size_t at = k % 2 * 4 + i;
            const VI high = vi_sll(vi_srl(third[at], (unsigned)(k / 2)), 2);
            q[i] =
                vi_or(two_bits(v[at], k / 2 * 2), vi_and(high, vi_bytes(4)));
        }
        put_half(to, q, 8 * h + k, byte_of(scale[k / 4], (int)(k % 4), 1));
    }
}

/* Likewise of two bits. A scale is the lower nibble of its byte. */
static GG_ALWAYS_INLINE void half_of_k2(struct to *to, const VI v[RUN_QUADS],
                                        const VI both[2], size_t h)
{
    GG_UNROLL
    for (size_t k = 0; k < 8; k++) {
        const size_t at = k / 2 * 2;
        VI q[4];
        GG_UNROLL
        for (size_t i = 0; i < 4; i++)
            q[i] = to->apart ? vi_and(v[k % 2 * 4 + i], vi_bytes(3 << at))
                             : two_bits(v[k % 2 * 4 + i], at);
        put_half(to, q, 8 * h + k,
                 bits_of(both[k / 4], (int)(8 * (k % 4)), 4));
    }
}

/* Sub-scales stay out of the bytes: integers are the same when sums of 16 steps
 * are multiplied by them, which are a quarter as many. */
static GG_ALWAYS_INLINE void block_q2_k(struct to *to, const struct rows *r)
{
    VI both[4], last[4], v[RUN_QUADS];
    spread(r, offsetof(struct gg_block_q2_k, d) - 12, last); /* and dmin */
    const VF d = halves(last[3]), dmin = vf_neg(halves(vi_srl(last[3], 16)));
    take(r, offsetof(struct gg_block_q2_k, scales), both);
    for (size_t h = 0; h < 2; h++) {
        take_32(r, offsetof(struct gg_block_q2_k, qs) + 32 * h, v);
        half_of_k2(to, v, both + 2 * h, h);
    }
    put_d(to, d);
    GG_UNROLL
    for (size_t i = 0; i < 16; i++) {
        const VI m = bits_of(both[i / 4], (int)(8 * (i % 4) + 4), 4);
        put_min(to, i, vf_mul(dmin, vf_of(m)));
    }
}

static GG_ALWAYS_INLINE void block_tq2_0(struct to *to, const struct rows *r)
{
    VI v[RUN_QUADS], q[RUN_QUADS];
    for (size_t h = 0; h < 2; h++) {
        take_32(r, 32 * h, v);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            GG_UNROLL
            for (size_t i = 0; i < RUN_QUADS; i++) /* two bits, less one */
                q[i] = vi_add8(two_bits(v[i], 2 * k), vi_bytes(to->bias - 1));
            put_run(to, q, 4 * h + k);
        }
    }
    put_d(to, take_half(r, offsetof(struct gg_block_tq2_0, d)));
}

static GG_ALWAYS_INLINE void block_q3_k(struct to *to, const struct rows *r)
{
    VI scale[4], third[RUN_QUADS], v[RUN_QUADS];
    const VF d = take_k3(r, scale);
    take_32(r, offsetof(struct gg_block_q3_k, hmask), third);
    for (size_t h = 0; h < 2; h++) {
        take_32(r, offsetof(struct gg_block_q3_k, qs) + 32 * h, v);
        half_of_k3(to, v, third, scale + 2 * h, h);
        GG_UNROLL
        for (size_t k = 0; k < RUN_QUADS; k++)
            third[k] = vi_srl(third[k], 4);
    }
    put_d(to, d);
}

static GG_ALWAYS_INLINE void block_iq4_xs(struct to *to, const struct rows *r)
{
    const VI table = iq4_table();
    VI sub[8];
    put_d(to, take_iq4_xs_bits(r, sub));
    for (size_t s = 0; s < 8; s++) {
        VI q[RUN_QUADS];
        take_codes(r, offsetof(struct gg_block_iq4_xs, qs) + 16 * s, table, q);
        put_sub(to, q, s, sub[s]);
    }
}

static GG_ALWAYS_INLINE void block_q8_k(struct to *to, const struct rows *r)
{
    VI v[4], q[RUN_QUADS];
    for (size_t s = 0; s < 8; s++) {
        take_32(r, offsetof(struct gg_block_q8_k, qs) + 32 * s, q);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = vi_xor(q[k], vi_bytes(128));
        put_run(to, q, s);
    }
    take(r, offsetof(struct gg_block_q8_k, d), v);
    put_d(to, vi_float(v[0]));
}

/* The next ternary digit of four bytes, less one: what three times a byte, as a
 * part of 256, has above the point; it goes on with the rest. */
static GG_ALWAYS_INLINE VI next_digit(VI *v, int bias)
{
    const VI byte = vi_words(0x00ff00ff);
    VI even = vi_and(*v, byte), odd = vi_srl16(*v, 8);
    even = vi_add(even, vi_add(even, even)); /* below 2^10 in 16 bits */
    odd = vi_add(odd, vi_add(odd, odd));
    *v = vi_or(vi_and(even, byte), vi_sll(vi_and(odd, byte), 8));
    return vi_add8(vi_or(vi_srl16(even, 8), vi_andnot(byte, odd)),
                   vi_bytes(bias - 1));
}

/* Five digits of 32 bytes, then of 16, then four of four. */
static GG_ALWAYS_INLINE void block_tq1_0(struct to *to, const struct rows *r)
{
    VI v[RUN_QUADS], last[4], q[RUN_QUADS];
    take_32(r, 0, v);
    for (size_t i = 0; i < 5; i++) {
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = next_digit(&v[k], to->bias);
        put_run(to, q, i);
    }
    take(r, 32, v);
    take(r, offsetof(struct gg_block_tq1_0, qh) - 10, last);
    last[2] = vi_or(vi_srl(last[2], 16), vi_sll(last[3], 16));
    for (size_t i = 5; i < 8; i++) {
        GG_UNROLL
        for (int k = 0; k < 4; k++)
            q[k] = next_digit(&v[k], to->bias);
        GG_UNROLL
        for (int k = 0; k < 4; k++)
            q[4 + k] = next_digit(i < 7 ? &v[k] : &last[2], to->bias);
        put_run(to, q, i);
    }
    put_d(to, halves(vi_srl(last[3], 16)));
}
