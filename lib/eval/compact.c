/* SPDX-License-Identifier: MIT */
/* compact.c - code a row of a base's logits in few bytes
 *
 * Tokens of probability w or more are all stored. Another token is stored with
 * probability p / w, and then stands for w. One token is drawn for every w of
 * probability (systematic sampling: W. G. Madow, Annals of Mathematical
 * Statistics 20, 1949).
 *
 * With r = q / p, divergence = sum p ln(p / q) = sum p (r - 1 - ln r), since p
 * and q add up to 1. These terms are positive, and small where q is near p, so
 * that a few of them give a good estimate. Terms of tokens with p < w and with
 * q above c = 1.4 w would be large. For each of these, q - c, which is known
 * for all tokens, is added to the sum and subtracted from the terms of drawn
 * tokens.
 *
 * p is rounded where it matters least: to w / FINE for p >= w. For p < w, when
 * a token's share is w in any case, ln p is rounded to 1 / FINE.
 *
 * The error in gguf/baseline.h: if the log-probabilities of model and base
 * differ like normal numbers of variance v, the divergence is v / 2, the
 * variance of r - 1 - ln r is twice its square, and the mean of its square is
 * three times its square. A rounding of p by e adds e times a number of
 * variance v.
 *
 * No form of this size is better by more than a constant factor for all models:
 * with one of two vectors and b bits of the other, the square of their distance
 * is known within about 1 / sqrt(b) of it (T. S. Jayram and D. P. Woodruff, ACM
 * Transactions on Algorithms 9, 2013). The rows of 2 chunks of 512 tokens with
 * 2048 words have 1.7 million bits. */
#include "config.h"
#include "eval/compact.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "eval/divergence.h"
#include "eval/range_coder.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* Bytes of nll, of the weight, and of a number: bytes that follow, likeliest
 * token, stored tokens. */
enum { NLL = 4, WEIGHT = 2, NUMBER = 5 };
#define FINE    ((double)GG_COMPACT_FINE)
#define CONTROL 1.4

/* ---- numbers of seven bits a byte, the lowest first ---- */

static uint8_t *put_number(uint8_t *p, uint32_t v)
{
    for (; v > 127; v >>= 7)
        *p++ = (uint8_t)(v | 128);
    *p++ = (uint8_t)v;
    return p;
}

static const uint8_t *get_number(const uint8_t *p, uint32_t *v)
{
    unsigned shift = 0;
    *v = 0;
    for (; *p & 128; shift += 7)
        *v |= (uint32_t)(*p++ & 127) << shift;
    *v |= (uint32_t)*p++ << shift;
    return p;
}

/* ---- probabilities ---- */

/* Models of the decisions. Is a token stored? The context is the number of
 * stored ones among the 32 tokens before: tokens that are likely after one
 * text are likely after many, and lie together. Is p >= w? A number of steps
 * is coded as the length of a binary number and its first bits. */
enum { AROUND = 32, N_AROUND = 7, MOST_BITS = 24 };
struct odds {
    struct gg_range_coder_odds there[N_AROUND], is_large;
    struct gg_range_coder_odds longer[2][MOST_BITS], half[2][MOST_BITS];
};

static unsigned neighbour_class(uint32_t before)
{
    static const uint8_t least[N_AROUND] = { 0, 1, 3, 5, 8, 12, 17 };
    unsigned n = 0, k = N_AROUND - 1;
    for (; before; before &= before - 1)
        n++;
    while (n < least[k])
        k--;
    return k;
}

static void expect_tokens(struct odds *o, uint32_t n, uint32_t n_vocab)
{
    /* initial odds: of stored tokens near each other, and of longer numbers,
     * in units of 1/65536 */
    static const uint16_t there[N_AROUND] = { 1, 2, 4, 6, 10, 14, 20 };
    static const uint16_t longer[2][12] = {
        { 60000, 54000, 46000, 36000, 22000, 12000, 8000, 8000 },
        { 56000, 52000, 46000, 42000, 40000, 38000, 36000, 34000, 32000, 30000,
          28000, 26000 }
    };
    const uint64_t share = (uint64_t)n * 65536 / n_vocab;
    for (unsigned i = 0; i < N_AROUND; i++) {
        const uint64_t p = (share * 12 + there[i] * 65536u) / 44;
        o->there[i] = (struct gg_range_coder_odds){
            (uint16_t)GG_MIN(GG_MAX(p, 200u), 65000u), 12
        };
    }
    o->is_large = (struct gg_range_coder_odds){ 29000, 12 };
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < MOST_BITS; i++) {
            o->longer[k][i] = (struct gg_range_coder_odds){
                i < 12 && longer[k][i] ? longer[k][i] : 8000, 24
            };
            o->half[k][i] = (struct gg_range_coder_odds){ 28000, 24 };
        }
}

/* A number of steps is coded as 1 + steps / 16: length, bits after the first;
 * then the 4 bits that are left. */
enum { STEP_BITS = 4 };

static void put_steps(struct gg_range_coder_writer *w, struct odds *o,
                      bool is_large, uint32_t steps)
{
    const uint32_t v = (steps >> STEP_BITS) + 1;
    unsigned n = 0;
    for (; n + 1 < MOST_BITS && v >> (n + 1); n++)
        gg_range_coder_write(w, &o->longer[is_large][n], true);
    if (n + 1 < MOST_BITS)
        gg_range_coder_write(w, &o->longer[is_large][n], false);
    if (n)
        gg_range_coder_write(w, &o->half[is_large][n], v >> (n - 1) & 1);
    if (n > 1)
        gg_range_coder_write_even(w, v, n - 1);
    gg_range_coder_write_even(w, steps, STEP_BITS);
}

static uint32_t get_steps(struct gg_range_coder_reader *r, struct odds *o,
                          bool is_large)
{
    unsigned n = 0;
    while (n + 1 < MOST_BITS &&
           gg_range_coder_read(r, &o->longer[is_large][n]))
        n++;
    uint32_t v = 1;
    if (n)
        v = v << 1 | gg_range_coder_read(r, &o->half[is_large][n]);
    if (n > 1)
        v = v << (n - 1) | gg_range_coder_read_even(r, n - 1);
    return (v - 1) << STEP_BITS | gg_range_coder_read_even(r, STEP_BITS);
}

static double ln_of(unsigned code)
{
    return -(double)code / GG_COMPACT_STEPS;
}

/* ---- writing ---- */

/* Pseudo-random number from 0 to 1 for a seed (splitmix64: Steele, Lea and
 * Flood, OOPSLA 2014). */
static double draw_uniform(uint64_t number)
{
    uint64_t z = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Facts about a row that do not depend on its weight. */
struct row {
    const float *logits;
    uint32_t n_vocab;
    double norm, start; /* normalizer; start of the draw */
};

/* State of going through tokens with a weight. */
struct walk {
    const struct row *row;
    double ln_w, at, tail;
};

static bool is_there(struct walk *k, uint32_t i, bool *is_large,
                     uint32_t *steps)
{
    const double ln_x = (double)k->row->logits[i] - k->row->norm - k->ln_w;
    *is_large = ln_x >= 0;
    if (*is_large) {
        *steps = (uint32_t)rint((exp(ln_x) - 1) * FINE);
        return true;
    }
    const double x = exp(ln_x);
    k->tail += x;
    k->at += x;
    if (k->at < 1)
        return false;
    k->at--;
    *steps = (uint32_t)rint(fmin(-ln_x, 1000) * FINE);
    return true;
}

static uint32_t count_tokens(const struct row *row, unsigned weight,
                             double *tail)
{
    struct walk k = { row, ln_of(weight), row->start, 0 };
    bool is_large;
    uint32_t n = 0, steps;
    for (uint32_t i = 0; i < row->n_vocab; i++)
        n += is_there(&k, i, &is_large, &steps);
    *tail = k.tail * exp(k.ln_w);
    return n;
}

/* Write the tokens. Returns their bytes; more than room: they do not fit. */
static size_t put_tokens(const struct row *row, unsigned weight, uint32_t n,
                         size_t room, uint8_t *out)
{
    struct walk k = { row, ln_of(weight), row->start, 0 };
    struct gg_range_coder_writer w;
    struct odds o;
    uint32_t before = 0, steps;
    bool is_large;
    expect_tokens(&o, n, row->n_vocab);
    gg_range_coder_write_begin(&w, out, room);
    for (uint32_t i = 0; n && i < row->n_vocab && !w.full; i++) {
        const bool there = is_there(&k, i, &is_large, &steps);
        gg_range_coder_write(&w, &o.there[neighbour_class(before)], there);
        before = before << 1 | there;
        if (!there)
            continue;
        gg_range_coder_write(&w, &o.is_large, is_large);
        put_steps(&w, &o, is_large, steps);
        n--;
    }
    const uint8_t *end = gg_range_coder_write_end(&w);
    return w.full ? room + 1 : (size_t)(end - out);
}

/* Try a weight, and keep it if it is the best that fits. */
static size_t try_weight(const struct row *row, unsigned weight, size_t most,
                         uint8_t *out, struct gg_compact_row *about)
{
    *about = (struct gg_compact_row){ .weight = weight };
    about->n = count_tokens(row, weight, &about->tail);
    about->size = put_tokens(row, weight, about->n, most, out);
    return about->size;
}

/* Find the weight with which the tokens take room, to a hundredth. The bytes
 * fall with the weight, about as its root. If no weight fits, it is the
 * largest one. */
static void fit_row(const struct row *row, size_t room, size_t most,
                    uint8_t *out, struct gg_compact_row *about)
{
    enum { TRIES = 10 };
    double code = log(fmax((double)row->n_vocab / 4, 1)) * GG_COMPACT_STEPS;
    struct gg_compact_row best = { .size = 0 }, one = best;
    for (int i = 0; i < TRIES; i++) {
        code = fmin(fmax(rint(code), 0), GG_COMPACT_LEAST);
        try_weight(row, (unsigned)code, most, out, &one);
        const bool fits = one.size <= room;
        if (fits && (!best.size || one.weight >= best.weight))
            best = one;
        if (fits &&
            (one.size + room / 100 >= room || one.weight == GG_COMPACT_LEAST))
            break;
        if (!fits && !one.weight)
            break;
        code += 1.7 * GG_COMPACT_STEPS *
                log(0.996 * (double)room / (double)GG_MAX(one.size, 1));
    }
    if (one.weight != best.weight || !best.size)
        try_weight(row, best.weight, most, out, &best);
    *about = best;
}

size_t gg_compact_max_size(uint32_t n_vocab, size_t room)
{
    return GG_COMPACT_HEAD + GG_MAX(2 * room, n_vocab / 4 + 64);
}

/* Most bytes before the tokens, for a row that fits. */
static size_t head_size(uint32_t n_vocab, size_t room)
{
    uint8_t p[NUMBER];
    const size_t id = (size_t)(put_number(p, n_vocab) - p);
    return (size_t)(put_number(p, (uint32_t)room) - p) + NLL + WEIGHT + 2 * id;
}

static void store_float(uint8_t *p, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    gg_bytes_store32le(p, bits);
}

void gg_compact_encode(const float *row, uint32_t n_vocab, gguf_token next,
                       size_t room, uint64_t number, uint8_t *out,
                       struct gg_compact_row *about)
{
    const double norm = gg_divergence_norm(row, n_vocab);
    const float nll = (float)(norm - (double)row[next]);
    *about = (struct gg_compact_row){ .size = 0 };
    if (!isfinite(norm) || !isfinite(nll))
        return;
    uint32_t top = 0;
    for (uint32_t i = 1; i < n_vocab; i++)
        top = row[i] > row[top] ? i : top;
    const struct row r = { row, n_vocab, norm, draw_uniform(number) };
    const size_t most = gg_compact_max_size(n_vocab, room) - GG_COMPACT_HEAD;
    uint8_t *tokens = out + GG_COMPACT_HEAD;
    fit_row(&r, room - GG_MIN(room, head_size(n_vocab, room)), most, tokens,
            about);
    uint8_t body[NLL + WEIGHT + 2 * NUMBER], *p = body;
    store_float(p, fmaxf(nll, 0));
    gg_bytes_store16le(p + NLL, (uint16_t)about->weight);
    p = put_number(p + NLL + WEIGHT, top);
    p = put_number(p, about->n);
    const size_t n_body = (size_t)(p - body);
    p = put_number(out, (uint32_t)(n_body + about->size));
    memcpy(p, body, n_body);
    memmove(p + n_body, tokens, about->size);
    about->size += (size_t)(p - out) + n_body;
}

/* ---- reading ---- */

struct input {
    const uint8_t *data;
    uint64_t at, left, off;
};

static enum gguf_status need_bytes(const struct input *in, uint64_t n,
                                   struct gguf_error *err)
{
    return in->left - in->at >= n
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_TRUNCATED, in->off + in->at,
                              "a row of logits ends too early");
}

static enum gguf_status check_number(struct input *in, uint64_t most,
                                     uint64_t *out, struct gguf_error *err)
{
    const uint64_t begin = in->at;
    uint64_t v = 0;
    for (unsigned shift = 0; shift <= 28; shift += 7) {
        GG_TRY(need_bytes(in, 1, err));
        const uint8_t byte = in->data[in->at++];
        v |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            break;
        v = shift == 28 ? UINT64_MAX : v;
    }
    *out = v;
    return v <= most ? GGUF_OK
                     : gg_error_set(err, GGUF_E_FORMAT, in->off + begin,
                                    "a number of a row is %" PRIu64
                                    ", must be 0 to %" PRIu64,
                                    v, most);
}

enum gguf_status gg_compact_check(const uint8_t *data, uint64_t left,
                                  uint64_t off, uint32_t n_vocab,
                                  uint64_t *size, struct gguf_error *err)
{
    struct input in = { data, 0, left, off };
    uint64_t body, v;
    GG_TRY(check_number(&in, UINT32_MAX, &body, err));
    GG_TRY(need_bytes(&in, body, err));
    in.left = in.at + body;
    GG_TRY(need_bytes(&in, NLL + WEIGHT, err));
    const double nll = gg_compact_nll(data);
    if (!isfinite(nll) || nll < 0)
        return gg_error_set(err, GGUF_E_FORMAT, off + in.at,
                            "a token's -ln p is %g, must be 0 or more", nll);
    in.at += NLL;
    if (gg_bytes_load16le(data + in.at) > GG_COMPACT_LEAST)
        return gg_error_set(err, GGUF_E_FORMAT, off + in.at,
                            "the weight of a row is below 2^-17");
    in.at += WEIGHT;
    GG_TRY(check_number(&in, n_vocab - 1, &v, err));
    GG_TRY(check_number(&in, n_vocab, &v, err));
    *size = in.left;
    return GGUF_OK;
}

double gg_compact_nll(const uint8_t *data)
{
    uint32_t size;
    const uint32_t bits = gg_bytes_load32le(get_number(data, &size));
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Term of a stored token of the first kind. Rounding adds half the square of
 * its error on average, which is subtracted. */
static double large_term(uint32_t steps, double ln_w, double ln_q)
{
    const double x = 1 + steps / FINE, w = exp(ln_w);
    const double ln_p = ln_w + log(x);
    return w * x * (ln_p - ln_q - 1) + exp(ln_q) - w / (24 * FINE * FINE * x);
}

static double small_term(uint32_t steps, double ln_w, double ln_q)
{
    const double ln_p = ln_w - steps / FINE, w = exp(ln_w);
    const double once = 1 - 1 / (24 * FINE * FINE);
    const double ln_most = ln_w + log(CONTROL);
    const double r = exp(fmin(ln_q, ln_most) - ln_p) * once;
    return w * (r - 1 - (ln_q - ln_p));
}

/* Sum over all tokens of the second kind, drawn or not. */
static double control_sum(double w, double ln_w, double ln_q)
{
    return ln_q > ln_w + log(CONTROL) ? exp(ln_q) - CONTROL * w : 0;
}

double gg_compact_divergence(const uint8_t *data, const float *q, double nq,
                             size_t n_vocab, size_t *top_base,
                             size_t *top_model)
{
    uint32_t size, top, n, before = 0;
    const uint8_t *p = get_number(data, &size), *end = p + size;
    const double ln_w = ln_of(gg_bytes_load16le(p + NLL)), w = exp(ln_w);
    p = get_number(p + NLL + WEIGHT, &top);
    p = get_number(p, &n);
    struct gg_range_coder_reader r;
    struct odds o;
    expect_tokens(&o, n, (uint32_t)n_vocab);
    gg_range_coder_read_begin(&r, p, (size_t)(end - p));
    size_t best = 0;
    double sum = 0;
    for (size_t i = 0; i < n_vocab; i++) {
        const double ln_q = (double)q[i] - nq;
        best = q[i] > q[best] ? i : best;
        const bool there =
            n && gg_range_coder_read(&r, &o.there[neighbour_class(before)]);
        before = before << 1 | there;
        n -= there;
        const bool is_large = there && gg_range_coder_read(&r, &o.is_large);
        const uint32_t steps = there ? get_steps(&r, &o, is_large) : 0;
        if (is_large)
            sum += large_term(steps, ln_w, ln_q);
        else
            sum += (there ? small_term(steps, ln_w, ln_q) : 0) +
                   control_sum(w, ln_w, ln_q);
    }
    *top_base = top;
    *top_model = best;
    return sum;
}

uint64_t gg_compact_digest_vocab(const struct gguf_vocab *v)
{
    uint64_t h = gguf_vocab_n_tokens(v);
    for (size_t i = 0; i < gguf_vocab_n_tokens(v); i++) {
        const struct gguf_str s = gguf_vocab_token_text(v, (gguf_token)i);
        h = XXH3_64bits_withSeed(s.data ? s.data : "", s.size, h + s.size);
    }
    return h;
}
