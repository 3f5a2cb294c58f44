/* SPDX-License-Identifier: MIT */
/* few_blocks.h - blocks of each type to bytes whose lanes are rows
 *
 * Included by few_i8_impl.h and few_i16_impl.h, whose functions take the bytes.
 * q[k] has the steps 4 k to 4 k + 3 of 32, or of 16, without a sign: with the
 * type's bias.
 *
 *     own_run(o, q, i, d)       32 steps, the i-th, with a scale of their own
 *     sub_run(o, q, i, s)       of a block, s: scale_of(d, an integer)
 *     half_run(o, q, i, s)      16 steps, likewise
 *     fold_run(o, q, i, sub, n) 16 steps, the integer below 2^7, of bytes that
 *                               are 2^n times larger, if FOLD_WIDE; after
 *     fold_begin(o)             where there is a bias
 *     one_run(o, q, i)          32 steps with the scale of their block
 *     own_end(o)                after own_run's,
 *     sub_end(o, d)             sub_run's and half_run's,
 *     one_end(o, d)             fold_run's and one_run's
 *     add_min(o, i, m)          minimum i, with the sign that it is added with
 */

static GG_ALWAYS_INLINE void add_min(struct out *o, size_t i, VF m)
{
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->sum[j] =
            vf_fma(m, vf_all(o->x->sum + i * NR + (size_t)j), o->sum[j]);
}

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

/* n steps, at most 256, of each row by a block of activations. */
typedef void block_fn(struct out *o, const struct rows *r, size_t n);

/* ---- blocks of 32 ---- */

#define EACH_BLOCK(NAME)                                                      \
    struct rows at = *r;                                                      \
    for (size_t i = 0; i < n / 32;                                            \
         i++, at.at += sizeof(struct gg_block_##NAME))

static GG_ALWAYS_INLINE void block_q4_0(struct out *o, const struct rows *r,
                                        size_t n)
{
    EACH_BLOCK(q4_0)
    {
        VI q[RUN_QUADS];
        take_nibbles(&at, offsetof(struct gg_block_q4_0, qs), q);
        own_run(o, q, i, take_half(&at, 0));
    }
    own_end(o);
}

static GG_ALWAYS_INLINE void block_q4_1(struct out *o, const struct rows *r,
                                        size_t n)
{
    VF min[8];
    EACH_BLOCK(q4_1)
    {
        VI q[RUN_QUADS];
        take_nibbles(&at, offsetof(struct gg_block_q4_1, qs), q);
        min[i] = take_half(&at, offsetof(struct gg_block_q4_1, m));
        own_run(o, q, i, take_half(&at, 0));
    }
    own_end(o);
    for (size_t i = 0; i < n / 32; i++)
        add_min(o, i, min[i]);
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

static GG_ALWAYS_INLINE void block_q5_0(struct out *o, const struct rows *r,
                                        size_t n)
{
    EACH_BLOCK(q5_0)
    {
        VI v[4], q[RUN_QUADS];
        take(&at, 0, v); /* d, and what is high after it */
        take_nibbles(&at, offsetof(struct gg_block_q5_0, qs), q);
        add_fifths(q, vi_or(vi_srl(v[0], 16), vi_sll(v[1], 16)));
        own_run(o, q, i, halves(v[0]));
    }
    own_end(o);
}

static GG_ALWAYS_INLINE void block_q5_1(struct out *o, const struct rows *r,
                                        size_t n)
{
    VF min[8];
    EACH_BLOCK(q5_1)
    {
        VI v[4], q[RUN_QUADS];
        take(&at, 0, v); /* d, m, high */
        take_nibbles(&at, offsetof(struct gg_block_q5_1, qs), q);
        add_fifths(q, v[1]);
        min[i] = halves(vi_srl(v[0], 16));
        own_run(o, q, i, halves(v[0]));
    }
    own_end(o);
    for (size_t i = 0; i < n / 32; i++)
        add_min(o, i, min[i]);
}

static GG_ALWAYS_INLINE void block_mxfp4(struct out *o, const struct rows *r,
                                         size_t n)
{
    static const int8_t level[16] = GG_FP4_LEVELS;
    const VI table = vi_add8(vi_sixteen(level), vi_bytes(o->bias));
    EACH_BLOCK(mxfp4)
    {
        VI q[RUN_QUADS];
        /* gg_kern_e8m0_half: the second is larger for the exponents 0 and 1 */
        const VI e = take_byte(&at, 0);
        const VI d = vi_max(vi_sll(vi_sub(e, vi_words(1)), 23),
                            vi_sll(vi_add(e, vi_words(1)), 21));
        take_codes(&at, offsetof(struct gg_block_mxfp4, qs), table, q);
        own_run(o, q, i, vi_float(d));
    }
    own_end(o);
}

static GG_ALWAYS_INLINE VI iq4_table(void)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    return vi_xor(vi_sixteen(level), vi_bytes(128));
}

static GG_ALWAYS_INLINE void block_iq4_nl(struct out *o, const struct rows *r,
                                          size_t n)
{
    const VI table = iq4_table();
    EACH_BLOCK(iq4_nl)
    {
        VI q[RUN_QUADS];
        take_codes(&at, offsetof(struct gg_block_iq4_nl, qs), table, q);
        own_run(o, q, i, take_half(&at, 0));
    }
    own_end(o);
}

/* Bytes with a sign. */
#define BLOCK_Q8(NAME)                                                        \
    static GG_ALWAYS_INLINE void block_##NAME(struct out *o,                  \
                                              const struct rows *r, size_t n) \
    {                                                                         \
        EACH_BLOCK(NAME)                                                      \
        {                                                                     \
            VI q[RUN_QUADS];                                                  \
            take_32(&at, offsetof(struct gg_block_##NAME, qs), q);            \
            GG_UNROLL                                                         \
            for (int k = 0; k < RUN_QUADS; k++)                               \
                q[k] = vi_xor(q[k], vi_bytes(128));                           \
            own_run(o, q, i, take_half(&at, 0));                              \
        }                                                                     \
        own_end(o);                                                           \
    }
BLOCK_Q8(q8_0)
BLOCK_Q8(q8_1)

/* Fifth and sixth bits: nibbles of two bits for a low nibble and two for a high
 * one, of bytes 0 to 7 and then of 8 to 15. */
static GG_ALWAYS_INLINE void block_q6_0(struct out *o, const struct rows *r,
                                        size_t n)
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
            q[k] = vi_add8(vi_or(q[k], two), vi_bytes(o->bias - 32));
        }
        own_run(o, q, i, halves(v[0]));
    }
    own_end(o);
}

/* ---- blocks of 64 and 128 ---- */

/* A bit: -1 or 1. */
static GG_ALWAYS_INLINE void block_q1_0(struct out *o, const struct rows *r,
                                        size_t n)
{
    struct rows at = *r;
    for (size_t i = 0; i < n / 32; i += 4) {
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
                q[t] = vi_add8(q[t], vi_bytes(o->bias - 1));
            own_run(o, q, i + k, d);
        }
        at.at += sizeof(struct gg_block_q1_0);
    }
    own_end(o);
}

/* Two bits, less one; a byte has four steps. Of its nibbles bytes keep two bits
 * each, where they are: what these stand for is looked up. */
static GG_ALWAYS_INLINE void block_q2_0(struct out *o, const struct rows *r,
                                        size_t n)
{
    static const uint8_t bits[16] = { 0, 1, 2, 3, 1, 0, 0, 0,
                                      2, 0, 0, 0, 3, 0, 0, 0 };
    const VI table = vi_add8(vi_sixteen(bits), vi_bytes(o->bias - 1));
    struct rows at = *r;
    for (size_t i = 0; i < n / 32; i += 2) {
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
            own_run(o, q, i + k, d);
        }
        at.at += sizeof(struct gg_block_q2_0);
    }
    own_end(o);
}

/* ---- blocks of 256 ---- */

/* d, and the scales and minima of eight runs. */
static GG_ALWAYS_INLINE VF take_k4_of(const struct rows *r,
                                      scale_of_run scale[8], VF min[8])
{
    VI s[2], m[2];
    VF dmin;
    const VF d = take_k4_bytes(r, s, m, &dmin);
    dmin = vf_neg(dmin);
    GG_UNROLL
    for (int j = 0; j < 8; j++) {
        scale[j] = scale_of(d, byte_of(s[j / 4], j % 4, 0));
        min[j] = vf_mul(dmin, byte_ps(m[j / 4], j % 4, 0));
    }
    return d;
}

static GG_ALWAYS_INLINE void block_q4_k(struct out *o, const struct rows *r,
                                        size_t n)
{
    scale_of_run scale[8];
    VF min[8];
    const VF d = take_k4_of(r, scale, min);
    (void)n;
    for (size_t s = 0; s < 8; s += 2) {
        VI v[RUN_QUADS], q[RUN_QUADS];
        take_32(r, offsetof(struct gg_block_q4_k, qs) + 16 * s, v);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = low_nibbles(v[k]);
        sub_run(o, q, s, scale[s]);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = high_nibbles(v[k]);
        sub_run(o, q, s + 1, scale[s + 1]);
    }
    sub_end(o, d);
    for (size_t s = 0; s < 8; s++)
        add_min(o, s, min[s]);
}

/* Bit s of each byte, moved to where a fifth bit is. */
static GG_ALWAYS_INLINE VI fifth_bits(VI high, unsigned s)
{
    return vi_and(vi_sll(vi_srl(high, s), 4), vi_bytes(16));
}

static GG_ALWAYS_INLINE void block_q5_k(struct out *o, const struct rows *r,
                                        size_t n)
{
    scale_of_run scale[8];
    VF min[8];
    VI high[RUN_QUADS];
    const VF d = take_k4_of(r, scale, min);
    (void)n;
    take_32(r, offsetof(struct gg_block_q5_k, qh), high);
    for (unsigned s = 0; s < 8; s += 2) {
        VI v[RUN_QUADS], q[RUN_QUADS];
        take_32(r, offsetof(struct gg_block_q5_k, qs) + 16 * s, v);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = vi_or(low_nibbles(v[k]), fifth_bits(high[k], 0));
        sub_run(o, q, s, scale[s]);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++) {
            q[k] = vi_or(high_nibbles(v[k]), fifth_bits(high[k], 1));
            high[k] = vi_srl(high[k], 2);
        }
        sub_run(o, q, s + 1, scale[s + 1]);
    }
    sub_end(o, d);
    for (size_t s = 0; s < 8; s++)
        add_min(o, s, min[s]);
}

static GG_ALWAYS_INLINE void block_q6_k(struct out *o, const struct rows *r,
                                        size_t n)
{
    const VI two = vi_bytes(0x30);
    const VF d = take_half(r, offsetof(struct gg_block_q6_k, d));
    VI scale[4], low[2][RUN_QUADS], up[RUN_QUADS], q[4];
    (void)n;
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
            half_run(o, q, 8 * h + k, scale_of(d, s));
        }
    }
    sub_end(o, d);
}

/* Eight times 16 steps of three bits, of which v and third are 32 bytes of each
 * row, scale a byte for each of 16 steps. */
static GG_ALWAYS_INLINE void half_of_k3(struct out *o, const VI v[RUN_QUADS],
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
        fold_run(o, q, 8 * h + k, byte_of(scale[k / 4], (int)(k % 4), 1), 0);
    }
}

/* Likewise of two bits, which stay where they are in the bytes if sums of these
 * can be as large: one shift then is instead of four. A scale is the lower
 * nibble of its byte. */
static GG_ALWAYS_INLINE void half_of_k2(struct out *o, const VI v[RUN_QUADS],
                                        const VI both[2], size_t h)
{
    GG_UNROLL
    for (size_t k = 0; k < 8; k++) {
        const size_t at = k / 2 * 2;
        VI q[4];
        GG_UNROLL
        for (size_t i = 0; i < 4; i++)
            q[i] = FOLD_WIDE ? vi_and(v[k % 2 * 4 + i], vi_bytes(3 << at))
                             : two_bits(v[k % 2 * 4 + i], at);
        fold_run(o, q, 8 * h + k, bits_of(both[k / 4], (int)(8 * (k % 4)), 4),
                 FOLD_WIDE ? (unsigned)at : 0);
    }
}

/* Sub-scales stay out of the bytes: integers are the same when sums of 16 steps
 * are multiplied by them, which are a quarter as many. */
static GG_ALWAYS_INLINE void block_q2_k(struct out *o, const struct rows *r,
                                        size_t n)
{
    VI both[4], last[4], v[RUN_QUADS];
    (void)n;
    spread(r, offsetof(struct gg_block_q2_k, d) - 12, last); /* and dmin */
    const VF d = halves(last[3]), dmin = vf_neg(halves(vi_srl(last[3], 16)));
    take(r, offsetof(struct gg_block_q2_k, scales), both);
    for (size_t h = 0; h < 2; h++) {
        take_32(r, offsetof(struct gg_block_q2_k, qs) + 32 * h, v);
        half_of_k2(o, v, both + 2 * h, h);
    }
    one_end(o, d);
    GG_UNROLL
    for (size_t i = 0; i < 16; i++) {
        const VI m = bits_of(both[i / 4], (int)(8 * (i % 4) + 4), 4);
        add_min(o, i, vf_mul(dmin, vf_of(m)));
    }
}

static GG_ALWAYS_INLINE void block_tq2_0(struct out *o, const struct rows *r,
                                         size_t n)
{
    VI v[RUN_QUADS], q[RUN_QUADS];
    (void)n;
    for (size_t h = 0; h < 2; h++) {
        take_32(r, 32 * h, v);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            GG_UNROLL
            for (size_t i = 0; i < RUN_QUADS; i++) /* two bits, less one */
                q[i] = vi_add8(two_bits(v[i], 2 * k), vi_bytes(o->bias - 1));
            one_run(o, q, 4 * h + k);
        }
    }
    one_end(o, take_half(r, offsetof(struct gg_block_tq2_0, d)));
}

static GG_ALWAYS_INLINE void block_q3_k(struct out *o, const struct rows *r,
                                        size_t n)
{
    VI scale[4], third[RUN_QUADS], v[RUN_QUADS];
    const VF d = take_k3(r, scale);
    (void)n;
    fold_begin(o);
    take_32(r, offsetof(struct gg_block_q3_k, hmask), third);
    for (size_t h = 0; h < 2; h++) {
        take_32(r, offsetof(struct gg_block_q3_k, qs) + 32 * h, v);
        half_of_k3(o, v, third, scale + 2 * h, h);
        GG_UNROLL
        for (size_t k = 0; k < RUN_QUADS; k++)
            third[k] = vi_srl(third[k], 4);
    }
    one_end(o, d);
}

static GG_ALWAYS_INLINE void block_iq4_xs(struct out *o, const struct rows *r,
                                          size_t n)
{
    const VI table = iq4_table();
    VI sub[8];
    scale_of_run scale[8];
    const VF d = take_iq4_xs_bits(r, sub);
    (void)n;
    GG_UNROLL
    for (size_t s = 0; s < 8; s++)
        scale[s] = scale_of(d, sub[s]);
    for (size_t s = 0; s < 8; s++) {
        VI q[RUN_QUADS];
        take_codes(r, offsetof(struct gg_block_iq4_xs, qs) + 16 * s, table, q);
        sub_run(o, q, s, scale[s]);
    }
    sub_end(o, d);
}

static GG_ALWAYS_INLINE void block_q8_k(struct out *o, const struct rows *r,
                                        size_t n)
{
    VI v[4], q[RUN_QUADS];
    (void)n;
    for (size_t s = 0; s < 8; s++) {
        take_32(r, offsetof(struct gg_block_q8_k, qs) + 32 * s, q);
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = vi_xor(q[k], vi_bytes(128));
        one_run(o, q, s);
    }
    take(r, offsetof(struct gg_block_q8_k, d), v);
    one_end(o, vi_float(v[0]));
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
static GG_ALWAYS_INLINE void block_tq1_0(struct out *o, const struct rows *r,
                                         size_t n)
{
    VI v[RUN_QUADS], last[4], q[RUN_QUADS];
    (void)n;
    take_32(r, 0, v);
    for (size_t i = 0; i < 5; i++) {
        GG_UNROLL
        for (int k = 0; k < RUN_QUADS; k++)
            q[k] = next_digit(&v[k], o->bias);
        one_run(o, q, i);
    }
    take(r, 32, v);
    take(r, offsetof(struct gg_block_tq1_0, qh) - 10, last);
    last[2] = vi_or(vi_srl(last[2], 16), vi_sll(last[3], 16));
    for (size_t i = 5; i < 8; i++) {
        GG_UNROLL
        for (int k = 0; k < 4; k++)
            q[k] = next_digit(&v[k], o->bias);
        GG_UNROLL
        for (int k = 0; k < 4; k++)
            q[4 + k] = next_digit(i < 7 ? &v[k] : &last[2], o->bias);
        one_run(o, q, i);
    }
    one_end(o, halves(vi_srl(last[3], 16)));
}
