/* SPDX-License-Identifier: MIT */
/* rows_impl.h - the part of the views rows_256.h and rows_512.h that does not
 * depend on the width (kern/block/block_view.h)
 *
 * The includer first defines the vectors of vi_256.h or vi_512.h, which have
 * ROWS lanes of 32 bits, spread() and halves().
 */
enum { PARTS = 8 }; /* a vector has four codes of each row */

typedef VI WORD, SUB;
typedef VF FLOAT;

struct bytes {
    VI v[4];
};

struct subs {
    VI v[8];
};

#define w_all(bits) vi_words((int)(bits))
#define w_and       vi_and
#define w_or        vi_or
#define w_srl       vi_srl
#define w_sll       vi_sll
#define w_add       vi_add
#define w_sub       vi_sub
#define w_max       vi_max
#define w_float     vi_float

/* spread() for bytes that are read for the first time: prefetches, too. */
static GG_ALWAYS_INLINE void take_16(const struct rows *r, size_t off, VI v[4])
{
    prefetch_lines(r, ROWS * sizeof(__m128i));
    load_lanes(r, off, v);
}

/* The byte of each row at off, and the f16. The block has at least 16 bytes:
 * loading 16 bytes around it is faster than one load per row. */
static GG_ALWAYS_INLINE VI take_byte(const struct rows *r, size_t off)
{
    VI v[4];
    load_lanes(r, off, v);
    return vi_and(v[0], vi_words(0xff));
}

#ifndef OWN_TAKE_HALF
static GG_ALWAYS_INLINE VF take_half(const struct rows *r, size_t off)
{
    enum { LAST = sizeof(__m128i) - sizeof(uint16_t) };
    VI v[4];
    load_lanes(r, off < LAST ? off : off - LAST, v);
    return halves_to_floats(off < LAST ? v[0] : vi_srl(v[3], 16));
}
#endif

/* n bits of each lane, from bit at on. The shift runs on two units only, so it
 * is left out where it can be. */
static GG_ALWAYS_INLINE VI bits_of(VI v, size_t at, size_t n)
{
    v = at ? vi_srl(v, (unsigned)at) : v;
    return at + n < 32 ? vi_and(v, vi_words((1 << n) - 1)) : v;
}

/* Byte b of each lane, signed or unsigned. */
static GG_ALWAYS_INLINE VI byte_of(VI v, size_t b, int is_signed)
{
    if (!is_signed)
        return bits_of(v, 8 * b, 8);
    return vi_sra(b < 3 ? vi_sll(v, (unsigned)(24 - 8 * b)) : v, 24);
}

/* Byte b of each lane as a float. */
static GG_ALWAYS_INLINE VF byte_ps(VI v, size_t b, int is_signed)
{
    return vf_of(byte_of(v, b, is_signed));
}

static GG_ALWAYS_INLINE void take_bytes(const struct rows *r, size_t off,
                                        struct bytes *b)
{
    take_16(r, off, b->v);
}

static GG_ALWAYS_INLINE void take_32(const struct rows *r, size_t off,
                                     VI v[PARTS])
{
    take_16(r, off, v);
    take_16(r, off + 16, v + 4);
}

static GG_ALWAYS_INLINE void take_nibbles(const struct rows *r, size_t off,
                                          VI q[PARTS])
{
    VI v[4];
    take_16(r, off, v);
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        q[k] = vi_and(v[k], vi_bytes(15));
        q[k + 4] = vi_srl8(v[k], 4);
    }
}

static GG_ALWAYS_INLINE VI word_at(const struct bytes *b, size_t off)
{
    const VI *v = b->v + off / 4;
    return off % 4 ? vi_or(vi_srl(v[0], 16), vi_sll(v[1], 16)) : v[0];
}

static GG_ALWAYS_INLINE VF half_at(const struct bytes *b, size_t off)
{
    const VI v = b->v[off / 4];
    return halves_to_floats(off % 4 ? vi_srl(v, 16) : v);
}

/* Table for vi_lookup: repeats the lowest byte of each lane. */
static GG_ALWAYS_INLINE VI first_bytes(void)
{
    static const uint8_t which[16] = { 0, 0, 0, 0, 4,  4,  4,  4,
                                       8, 8, 8, 8, 12, 12, 12, 12 };
    return vi_sixteen(which);
}

/* Masks for the bits of four codes in such a byte, a bit in each byte. */
#define BITS_LOW vi_words(0x08040201)
#define BITS_UP  vi_words((int)0x80402010)

static GG_ALWAYS_INLINE void or_where(VI q[PARTS], VI bits, VI value)
{
    VI which = first_bytes();
    GG_UNROLL
    for (int k = 0; k < PARTS; k += 2) {
        const VI byte = vi_lookup(bits, which);
        q[k] = vi_or(q[k], vi_where(byte, BITS_LOW, value));
        q[k + 1] = vi_or(q[k + 1], vi_where(byte, BITS_UP, value));
        which = vi_add8(which, vi_bytes(1));
    }
}

static GG_ALWAYS_INLINE void each_4(VI q[PARTS], const struct bytes *b,
                                    size_t off)
{
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = vi_lookup(b->v[off / 4 + k / 4],
                         vi_add8(first_bytes(), vi_bytes(k % 4)));
}

static GG_ALWAYS_INLINE void each_8(VI q[PARTS], const struct bytes *b,
                                    size_t off)
{
    const VI v[2] = { word_at(b, off), word_at(b, off + 4) };
    GG_UNROLL
    for (unsigned k = 0; k < PARTS; k++) {
        const unsigned n = k % 4 / 2 * 4 + k / 4 * 2;
        q[k] = n ? vi_srl(v[k % 2], n) : v[k % 2];
    }
}

/* Scales of sub-blocks stay integers in their words; the sink multiplies. */
#define subs_u8(s, d, w)       ((void)(d), set_subs(s, w, 2, 0))
#define subs_i8(s, d, w, zero) ((void)(d), set_subs(s, w, 4, zero))
#define subs_low(s, d, w)      ((void)(d), set_subs(s, w, 4, 0))
#define subs_high              subs_low

static GG_ALWAYS_INLINE void set_subs(struct subs *s, const VI *w, int n,
                                      int zero)
{
    GG_UNROLL
    for (int j = 0; j < n; j++)
        s->v[j] = zero ? vi_sub8(w[j], vi_bytes(zero)) : w[j];
}

static GG_ALWAYS_INLINE void subs_6(struct subs *s, VF d, VI low, VI high)
{
    (void)d;
    GG_UNROLL
    for (unsigned j = 0; j < 8; j++) {
        const VI l = vi_and(vi_srl(low, 4 * j), vi_words(15));
        const VI h = vi_sll(vi_srl(high, 2 * j), 4);
        s->v[j] = vi_sub(vi_or(l, vi_and(h, vi_words(0x30))), vi_words(32));
    }
}

#define sub_u8(s, j, b)   byte_of((s)->v[j], b, 0)
#define sub_i8(s, j, b)   byte_of((s)->v[j], b, 1)
#define sub_low(s, j, b)  bits_of((s)->v[j], 8 * (b), 4)
#define sub_high(s, j, b) bits_of((s)->v[j], 8 * (b) + 4, 4)
#define sub_6(s, j)       ((s)->v[j])
