/* SPDX-License-Identifier: MIT */
/* check-view.c - block layouts read with 128-bit vectors in plain C
 *
 * Defines a view (kern/block/block_view.h) of one row in vectors of 128 bits,
 * a width that no kernel uses, and a sink that stores floats. Every layout
 * must decode random blocks to the floats of the C decoder. So a port to
 * another instruction set writes a view and no layout; this shows it on any
 * processor.
 */
#include "config.h"
#include "kern/c/block_io.h"
#include "kern/kern.h"
#include "tests/tap.h"

#include <math.h>

typedef struct {
    uint32_t w[4];
} VI;
enum { PARTS = 2 };

#define one_row_half gg_kern_get_half
#include "kern/block/one_row.h"

#define VI_OF_TWO(NAME, EXPR)                                                 \
    static inline VI vi_##NAME(VI a, VI b)                                    \
    {                                                                         \
        for (int k = 0; k < 4; k++)                                           \
            a.w[k] = EXPR;                                                    \
        return a;                                                             \
    }
VI_OF_TWO(and, a.w[k] & b.w[k])
VI_OF_TWO(or, a.w[k] | b.w[k])
/* Add bytes modulo 256: seven bits with carry, the eighth without. */
VI_OF_TWO(add8, ((a.w[k] & 0x7f7f7f7f) + (b.w[k] & 0x7f7f7f7f)) ^
                    ((a.w[k] ^ b.w[k]) & 0x80808080))

static inline VI vi_words(int w)
{
    const uint32_t u = (uint32_t)w;
    return (VI){ { u, u, u, u } };
}

static inline VI vi_bytes(int b)
{
    return vi_words((int)((uint32_t)(b & 255) * 0x01010101));
}

static inline VI vi_srl(VI v, size_t n)
{
    for (int k = 0; k < 4; k++)
        v.w[k] >>= n;
    return v;
}

static inline VI vi_sll(VI v, size_t n)
{
    for (int k = 0; k < 4; k++)
        v.w[k] <<= n;
    return v;
}

/* Bytes shifted right; q with the bits of a mask from b. */
static inline VI vi_srl8(VI v, size_t n)
{
    return vi_and(vi_srl(v, n), vi_bytes(255 >> n));
}

static inline VI vi_put_bits(VI q, VI b, VI mask)
{
    return vi_or(q, vi_and(b, mask));
}

/* The bytes of a vector in order. */
static inline void put_bytes(uint8_t b[16], VI v)
{
    for (int k = 0; k < 4; k++)
        gg_bytes_store32le(b + 4 * k, v.w[k]);
}

static inline VI vi_sixteen(const void *p)
{
    VI v;
    for (int k = 0; k < 4; k++)
        v.w[k] = gg_bytes_load32le((const uint8_t *)p + 4 * k);
    return v;
}

static inline VI vi_lookup(VI table, VI which)
{
    uint8_t t[16], w[16];
    put_bytes(t, table);
    put_bytes(w, which);
    for (int k = 0; k < 16; k++)
        w[k] = t[w[k] & 15];
    return vi_sixteen(w);
}

/* ---- the rest of the view ---- */

static void take_32(const struct rows *r, size_t off, VI v[PARTS])
{
    v[0] = vi_sixteen(r->at + off);
    v[1] = vi_sixteen(r->at + off + 16);
}

static void take_nibbles(const struct rows *r, size_t off, VI q[PARTS])
{
    const VI v = vi_sixteen(r->at + off);
    q[0] = vi_and(v, vi_bytes(15));
    q[1] = vi_and(vi_srl(v, 4), vi_bytes(15));
}

static void or_where(VI q[PARTS], uint32_t bits, VI value)
{
    uint8_t b[32];
    for (int i = 0; i < 32; i++)
        b[i] = bits >> i & 1 ? 255 : 0;
    for (int k = 0; k < PARTS; k++)
        q[k] = vi_or(q[k], vi_and(vi_sixteen(b + 16 * k), value));
}

static void each_4(VI q[PARTS], const struct bytes *from, size_t off)
{
    uint8_t b[32];
    for (int i = 0; i < 32; i++)
        b[i] = from->at[off + (size_t)i / 4];
    q[0] = vi_sixteen(b);
    q[1] = vi_sixteen(b + 16);
}

static void each_8(VI q[PARTS], const struct bytes *from, size_t off)
{
    static const uint8_t shift[4] = { 0, 4, 2, 6 };
    uint8_t b[32];
    for (int i = 0; i < 32; i++)
        b[i] = (uint8_t)(from->at[off + (size_t)i % 8] >> shift[i / 8]);
    q[0] = vi_sixteen(b);
    q[1] = vi_sixteen(b + 16);
}

/* Multiply N integers by d; EXPR computes integer i from byte b, the i-th. */
#define SUBS(NAME, N, EXPR, ...)                                              \
    static void NAME(struct subs *s, float d, const uint32_t *w __VA_ARGS__)  \
    {                                                                         \
        for (int i = 0; i < (N); i++) {                                       \
            const uint8_t b = (uint8_t)(w[i / 4] >> i % 4 * 8);               \
            s->by[i] = d * (float)(EXPR);                                     \
        }                                                                     \
    }
SUBS(subs_u8, 8, b, )
SUBS(subs_i8, 16, (int8_t)b - zero, , int zero)
SUBS(subs_low, 16, b & 15, )
SUBS(subs_high, 16, b >> 4, )

static void subs_6(struct subs *s, float d, uint32_t low, uint32_t high)
{
    for (int i = 0; i < 8; i++)
        s->by[i] =
            d * (float)((int)((low >> 4 * i & 15) | (high >> 2 * i & 3) << 4) -
                        32);
}

/* ---- sink: store floats ---- */

typedef struct {
    float *next;
} TO;

static void put_floats(TO *to, const VI q[PARTS], int zero, float s, float t,
                       float m, float n)
{
    uint8_t b[32];
    put_bytes(b, q[0]);
    put_bytes(b + 16, q[1]);
    for (int i = 0; i < 32; i++) {
        const float v = (i < 16 ? s : t) * (float)((int8_t)b[i] - zero);
        *to->next++ = v - (i < 16 ? m : n);
    }
}

#define bias_of(to)              0
#define take_pairs(to, q, v, at) pairs_of(q, v, at)
#define emit_d(to, d)            ((void)(to), (d))
#define emit_min(to, i, d, m)    ((void)(d), (void)(m))
#define emit_own(to, q, i, zero, d)                                           \
    ((void)(i), put_floats(to, q, zero, d, d, 0, 0))
#define emit_own_min(to, q, i, d, m)                                          \
    ((void)(i), put_floats(to, q, 0, d, d, -(m), -(m)))
#define emit_run                          emit_own
#define emit_sub                          emit_own
#define emit_halves(to, q, i, zero, s, t) put_floats(to, q, zero, s, t, 0, 0)
#define emit_sub_min(to, q, i, s, d, m)                                       \
    ((void)(d), put_floats(to, q, 0, s, s, m, m))
#define emit_halves_min(to, q, i, s, t, d, m, n)                              \
    ((void)(d), put_floats(to, q, 0, s, t, m, n))

static void emit_signs(TO *to, size_t i, uint32_t bits, float d)
{
    for (i = 0; i < 32; i++)
        *to->next++ = bits >> i & 1 ? d : -d;
}

#include "kern/block/block_k.h"
#include "kern/block/block_low.h"
#include "kern/block/block_q32.h"

typedef void read_fn(TO *to, const struct rows *r);

static bool same_float(float a, float b)
{
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

/* Compare floats of random blocks; the sign of a zero may differ. */
static void check_type(int type, read_fn *read)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    static struct gg_kern kern;
    bool good = true;
    gg_kern_init(&kern, 0);
    for (int n = 0; n < 2000; n++) {
        uint8_t block[512];
        float got[256], want[256];
        for (size_t i = 0; i < sizeof block; i++)
            block[i] = (uint8_t)rnd_below(n % 3 ? 0x70 : 256);
        TO to = { got };
        read(&to, &(struct rows){ block });
        kern.codec[type].decode(block, want, t->block_len);
        good = good && to.next == got + t->block_len;
        for (size_t i = 0; i < t->block_len; i++)
            good = good && (same_float(got[i], want[i]) ||
                            (got[i] == 0 && want[i] == 0));
    }
    ok(good, "%s: the same in 128 bits", t->name);
}

#define CHECK(ID, NAME, ...)                                                  \
    static void read_##NAME(TO *to, const struct rows *r)                     \
    {                                                                         \
        block_##NAME(to, r __VA_ARGS__);                                      \
    }
#define TYPES(X)                                                              \
    X(Q4_0, q4_0, , 0)                                                        \
    X(Q4_1, q4_1, , 0)                                                        \
    X(Q5_0, q5_0, , 0)                                                        \
    X(Q5_1, q5_1, , 0)                                                        \
    X(Q8_0, q8_0, , 0)                                                        \
    X(Q8_1, q8_1, , 0)                                                        \
    X(Q6_0, q6_0, , 0)                                                        \
    X(IQ4_NL, iq4_nl, , 0)                                                    \
    X(MXFP4, mxfp4, , 0)                                                      \
    X(Q2_0, q2_0, , 0)                                                        \
    X(Q1_0, q1_0, , 0)                                                        \
    X(Q2_K, q2_k, )                                                           \
    X(Q3_K, q3_k, )                                                           \
    X(Q4_K, q4_k, )                                                           \
    X(Q5_K, q5_k, )                                                           \
    X(Q6_K, q6_k, )                                                           \
    X(Q8_K, q8_k, )                                                           \
    X(IQ4_XS, iq4_xs, )                                                       \
    X(TQ2_0, tq2_0, )
TYPES(CHECK)

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
#define RUN(ID, NAME, ...) check_type(GG_DT_##ID, read_##NAME);
    TYPES(RUN)
    return done_testing();
}
