/* compact.c - a row of a base's logits in few bytes
 *
 * Of the n tokens that are stored, those of probability w or more are all of
 * them; of the others each is there with probability p / w, drawn so that one
 * comes for every w of probability (systematic sampling: W. G. Madow, Annals of
 * Mathematical Statistics 20, 1949), and stands for w. With r = q / p,
 *
 *     divergence = sum p ln(p / q) = sum p (r - 1 - ln r)
 *
 * since p and q add up to 1: its terms are positive, and small where q is near
 * p, so that a few of them say much. Where q of a token that is not one of the
 * first kind is above 2 w, its r p = q is added from q itself, which is known
 * of all tokens: no single draw is large then.
 */
#include "config.h"
#include "eval/compact.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "eval/divergence.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* nll, weight, and at most so many bytes of a number of seven bits each */
enum { HEAD = 4 + 2, NUMBER = 5 };

unsigned gg_compact_first_weight(uint32_t n_vocab)
{
    const double code = log(fmax(n_vocab / 16.0, 1)) * GG_COMPACT_STEPS;
    return (unsigned)fmin(rint(code), GG_COMPACT_LEAST);
}

size_t gg_compact_row_size(uint32_t n_vocab)
{
    const size_t n = GG_MIN(n_vocab, (uint32_t)GG_COMPACT_MOST);
    return HEAD + 2 * NUMBER + n * (NUMBER + 2);
}

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

/* ---- writing ---- */

static unsigned code_of(double ln_p)
{
    return (unsigned)fmin(rint(-ln_p * GG_COMPACT_STEPS), 65535);
}

static double ln_of(unsigned code)
{
    return -(double)code / GG_COMPACT_STEPS;
}

/* From 0 to 1, the same for the same number (splitmix64: Steele, Lea and Flood,
 * OOPSLA 2014). */
static double drawn(uint64_t number)
{
    uint64_t z = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* The tokens that are stored, from p on; the bytes after them. */
static uint8_t *put_tokens(uint8_t *p, const float *row, uint32_t n_vocab,
                           double norm, unsigned weight, uint64_t number,
                           struct gg_compact_row *about)
{
    const double w = exp(ln_of(weight));
    double at = drawn(number), tail = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < n_vocab; i++) {
        const double ln_p = (double)row[i] - norm;
        const unsigned code = code_of(fmin(ln_p, 0));
        bool stored = code <= weight;
        if (!stored) {
            const double share = exp(ln_p);
            tail += share;
            at += share / w;
            stored = at >= 1;
            at -= stored;
        }
        if (!stored || about->n == GG_COMPACT_MOST)
            continue;
        p = put_number(p, i - next);
        gg_bytes_store16le(p, (uint16_t)code);
        p += 2;
        next = i + 1;
        about->n++;
    }
    about->tail = tail;
    return p;
}

void gg_compact_encode(const float *row, uint32_t n_vocab, gguf_token next,
                       unsigned weight, uint64_t number, uint8_t *out,
                       struct gg_compact_row *about)
{
    const double norm = gg_divergence_norm(row, n_vocab);
    const float nll = (float)(norm - (double)row[next]);
    uint32_t top = 0, bits;
    *about = (struct gg_compact_row){ .is_finite =
                                          isfinite(norm) && isfinite(nll) };
    if (!about->is_finite)
        return;
    for (uint32_t i = 1; i < n_vocab; i++)
        top = row[i] > row[top] ? i : top;
    memcpy(&bits, &nll, sizeof bits);
    gg_bytes_store32le(out, bits);
    gg_bytes_store16le(out + 4, (uint16_t)weight);
    uint8_t *p = put_number(out + HEAD, top);
    /* their number comes first, and is known last */
    uint8_t *tokens = p + NUMBER;
    uint8_t *end =
        put_tokens(tokens, row, n_vocab, norm, weight, number, about);
    p = put_number(p, about->n);
    memmove(p, tokens, (size_t)(end - tokens));
    about->size = (size_t)(p - out) + (size_t)(end - tokens);
}

/* ---- reading ---- */

struct input {
    const uint8_t *data;
    uint64_t at, left, off;
};

static enum gguf_status need(const struct input *in, uint64_t n,
                             struct gguf_error *err)
{
    return in->left - in->at >= n
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_TRUNCATED, in->off + in->at,
                              "a row of logits ends too early");
}

static enum gguf_status check_number(struct input *in, uint32_t most,
                                     uint32_t *out, struct gguf_error *err)
{
    const uint64_t begin = in->at;
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        GG_TRY(need(in, 1, err));
        const uint8_t byte = in->data[in->at++];
        v |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            break;
        if (shift == 28)
            v = UINT64_MAX;
        if (shift == 28)
            break;
    }
    *out = (uint32_t)v;
    return v <= most ? GGUF_OK
                     : gg_error_set(err, GGUF_E_FORMAT, in->off + begin,
                                    "a number of a row is %" PRIu64
                                    ", must be 0 to %" PRIu32,
                                    v, most);
}

enum gguf_status gg_compact_check(const uint8_t *data, uint64_t left,
                                  uint64_t off, uint32_t n_vocab,
                                  uint64_t *size, struct gguf_error *err)
{
    struct input in = { data, 0, left, off };
    uint32_t n, v, next = 0;
    GG_TRY(need(&in, HEAD, err));
    const double nll = gg_compact_nll(data);
    if (!isfinite(nll) || nll < 0)
        return gg_error_set(err, GGUF_E_FORMAT, off,
                            "a token's -ln p is %g, must be 0 or more", nll);
    if (gg_bytes_load16le(data + 4) > GG_COMPACT_LEAST)
        return gg_error_set(err, GGUF_E_FORMAT, off + 4,
                            "the weight of a row is below 2^-14");
    in.at = HEAD;
    GG_TRY(check_number(&in, n_vocab - 1, &v, err));
    GG_TRY(check_number(&in, n_vocab, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t at = in.at;
        if (next == n_vocab)
            return gg_error_set(err, GGUF_E_FORMAT, off + at,
                                "a row has more tokens than the vocabulary");
        GG_TRY(check_number(&in, n_vocab - 1 - next, &v, err));
        next += v + 1;
        GG_TRY(need(&in, 2, err));
        in.at += 2;
    }
    *size = in.at;
    return GGUF_OK;
}

double gg_compact_nll(const uint8_t *data)
{
    const uint32_t bits = gg_bytes_load32le(data);
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* A token that is stored: what it adds. */
static double term(unsigned code, unsigned weight, double w, double ln_q,
                   bool is_large)
{
    const double d = ln_of(code) - ln_q;
    if (code <= weight)
        return exp(ln_of(code)) * (d - 1) + exp(ln_q);
    return is_large ? w * (d - 1) + exp(ln_q) : w * (d - 1 + exp(-d));
}

double gg_compact_divergence(const uint8_t *data, const float *q, double nq,
                             size_t n_vocab, size_t *top_base,
                             size_t *top_model)
{
    const unsigned weight = gg_bytes_load16le(data + 4);
    const double w = exp(ln_of(weight)), large = ln_of(weight) + log(2);
    uint32_t n, next, top;
    size_t best = 0;
    double sum = 0;
    const uint8_t *p = get_number(data + HEAD, &top);
    p = get_number(p, &n);
    uint64_t stored = UINT64_MAX; /* the next token that is */
    if (n) {
        p = get_number(p, &next);
        stored = next;
    }
    for (size_t i = 0; i < n_vocab; i++) {
        const double ln_q = (double)q[i] - nq;
        best = q[i] > q[best] ? i : best;
        if (i != stored) {
            sum += ln_q > large ? exp(ln_q) : 0;
            continue;
        }
        sum += term(gg_bytes_load16le(p), weight, w, ln_q, ln_q > large);
        p += 2;
        stored = UINT64_MAX;
        if (--n) {
            p = get_number(p, &next);
            stored = i + 1 + (uint64_t)next;
        }
    }
    *top_base = top;
    *top_model = best;
    /* ln p is rounded, by an error e of mean 0 and mean square 1 / 12 of a
     * step's: p e^2 / 2 is added everywhere, and p adds up to 1 */
    return sum - 1.0 / (24.0 * GG_COMPACT_STEPS * GG_COMPACT_STEPS);
}

uint64_t gg_compact_vocab(const struct gguf_vocab *v)
{
    uint64_t h = gguf_vocab_n_tokens(v);
    for (size_t i = 0; i < gguf_vocab_n_tokens(v); i++) {
        const struct gguf_str s = gguf_vocab_text(v, (gguf_token)i);
        h = XXH3_64bits_withSeed(s.data ? s.data : "", s.size, h + s.size);
    }
    return h;
}
