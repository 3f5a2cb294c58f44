/* SPDX-License-Identifier: MIT */
/* rows_impl.h - what rows_256.h and rows_512.h share: numbers of rows that are
 * lanes, in terms of a level's vectors
 *
 * Before it: the vectors of vi_256.h or vi_512.h, with ROWS lanes of 32 bits,
 * spread and halves.
 */

/* The same as spread(), of what is read for the first time. */
static GG_ALWAYS_INLINE void take(const struct rows *r, size_t off, VI v[4])
{
    ask(r, ROWS * sizeof(__m128i));
    spread(r, off, v);
}

/* The byte of each row at off, and the f16, of a block of 16 bytes at least:
 * with bytes around it, which is faster than one by one. */
static GG_ALWAYS_INLINE VI take_byte(const struct rows *r, size_t off)
{
    VI v[4];
    spread(r, off, v);
    return vi_and(v[0], vi_words(0xff));
}

static GG_ALWAYS_INLINE VF take_half(const struct rows *r, size_t off)
{
    enum { LAST = sizeof(__m128i) - sizeof(uint16_t) };
    VI v[4];
    spread(r, off < LAST ? off : off - LAST, v);
    return halves(off < LAST ? v[0] : vi_srl(v[3], 16));
}

/* n bits of each lane, from bit at on: the shift, which only two units do, is
 * left out where it can be. */
static GG_ALWAYS_INLINE VI bits_of(VI v, int at, int n)
{
    v = at ? vi_srl(v, (unsigned)at) : v;
    return at + n < 32 ? vi_and(v, vi_words((1 << n) - 1)) : v;
}

/* Byte b of each lane, with a sign or without, */
static GG_ALWAYS_INLINE VI byte_of(VI v, int b, int is_signed)
{
    if (!is_signed)
        return bits_of(v, 8 * b, 8);
    return vi_sra(b < 3 ? vi_sll(v, (unsigned)(24 - 8 * b)) : v, 24);
}

/* as a float. */
static GG_ALWAYS_INLINE VF byte_ps(VI v, int b, int is_signed)
{
    return vf_of(byte_of(v, b, is_signed));
}

/* The first 16 bytes of a block of Q4_K or Q5_K: d, which is returned, dmin,
 * and eight scales and minima of six bits (gg_kern_k4_scale, gg_kern_k4_min),
 * four bytes in each lane. */
static GG_ALWAYS_INLINE VF take_k4_bytes(const struct rows *r, VI scale[2],
                                         VI min[2], VF *dmin)
{
    const VI six = vi_bytes(0x3f), four = vi_bytes(0x0f), two = vi_bytes(0x30);
    VI v[4];
    take(r, 0, v);
    scale[0] = vi_and(v[1], six);
    min[0] = vi_and(v[2], six);
    scale[1] = vi_or(vi_and(v[3], four), vi_and(vi_srl(v[1], 2), two));
    min[1] =
        vi_or(vi_and(vi_srl(v[3], 4), four), vi_and(vi_srl(v[2], 2), two));
    *dmin = halves(vi_srl(v[0], 16));
    return halves(v[0]);
}

/* The same times d and dmin. */
static GG_ALWAYS_INLINE void take_k4(const struct rows *r, VF scale[8],
                                     VF min[8])
{
    VI s[2], m[2];
    VF dmin;
    const VF d = take_k4_bytes(r, s, m, &dmin);
    GG_UNROLL
    for (int j = 0; j < 8; j++) {
        scale[j] = vf_mul(d, byte_ps(s[j / 4], j % 4, 0));
        min[j] = vf_mul(dmin, byte_ps(m[j / 4], j % 4, 0));
    }
}

/* The last 14 bytes of a block of Q3_K, and two before them: 16 scales
 * (gg_kern_k3_scale), four bytes in each lane, and d. */
static GG_ALWAYS_INLINE VF take_k3(const struct rows *r, VI scale[4])
{
    const VI four = vi_bytes(0x0f), two = vi_bytes(0x30);
    VI v[4];
    take(r, offsetof(struct gg_block_q3_k, scales) - 2, v);
    /* 16 bits further on */
    GG_UNROLL
    for (int i = 0; i < 3; i++)
        v[i] = vi_or(vi_srl(v[i], 16), vi_sll(v[i + 1], 16));
    scale[0] = vi_or(vi_and(v[0], four), vi_and(vi_sll(v[2], 4), two));
    scale[1] = vi_or(vi_and(v[1], four), vi_and(vi_sll(v[2], 2), two));
    scale[2] = vi_or(vi_and(vi_srl(v[0], 4), four), vi_and(v[2], two));
    scale[3] =
        vi_or(vi_and(vi_srl(v[1], 4), four), vi_and(vi_srl(v[2], 2), two));
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        scale[i] = vi_sub8(scale[i], vi_bytes(32));
    return halves(vi_srl(v[3], 16));
}

/* The scales of a block of IQ4_XS; returns what they are multiplied by. */
static GG_ALWAYS_INLINE VF take_iq4_xs_bits(const struct rows *r, VI scale[8])
{
    VI v[4];
    take(r, 0, v);
    const VI high = vi_srl(v[0], 16), low = v[1];
    GG_UNROLL
    for (unsigned s = 0; s < 8; s++) {
        VI l = vi_srl(low, 4 * s), h = vi_sll(vi_srl(high, 2 * s), 4);
        l = vi_and(l, vi_words(15));
        h = vi_and(h, vi_words(0x30));
        scale[s] = vi_sub(vi_or(l, h), vi_words(32));
    }
    return halves(v[0]);
}

static GG_ALWAYS_INLINE void take_iq4_xs(const struct rows *r, VF scale[8])
{
    VI bits[8];
    const VF d = take_iq4_xs_bits(r, bits);
    GG_UNROLL
    for (unsigned s = 0; s < 8; s++)
        scale[s] = vf_mul(d, vf_of(bits[s]));
}
