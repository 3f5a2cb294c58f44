/* SPDX-License-Identifier: MIT */
/* back_ternary.c - matrices of -v, 0 and v as a folder has them
 *
 * A conversion rounds a folder's matrix to -v, 0 and v by its mean magnitude: v
 * is 1 / (1 / mean) in single precision (tensor_layout.c). If k of n numbers
 * are not 0, magnitudes of about v n / k have that mean. A single magnitude
 * usually misses it; two neighbouring numbers of the folder's type can hit it
 * exactly. The sum determines how often the larger one is used; these elements
 * come first.
 */
#include "config.h"
#include "convert/back/back.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 4096 };

/* The numbers of one tensor of the file. */
struct reader {
    struct gg_data_rows rows;
    uint64_t n;
};

/* Find v and the number of elements that are not 0. false: *other has another
 * magnitude. */
static bool find_magnitude(const struct reader *r, float *v, float *other,
                           uint64_t *n_some)
{
    float x[CHUNK];
    *v = 0;
    *n_some = 0;
    for (uint64_t at = 0, k; at < r->n; at += k) {
        k = GG_MIN(r->n - at, CHUNK);
        gg_data_read(&r->rows, at, k, x);
        for (uint64_t i = 0; i < k; i++) {
            if (x[i] == 0)
                continue;
            if (!*n_some)
                *v = fabsf(x[i]);
            *other = x[i];
            if (fabsf(x[i]) != *v || !isfinite(*v))
                return false;
            ++*n_some;
        }
    }
    return true;
}

/* The element before which n are not 0. */
static uint64_t element_after(const struct reader *r, uint64_t n)
{
    float x[CHUNK];
    for (uint64_t at = 0, k; at < r->n && n; at += k) {
        k = GG_MIN(r->n - at, CHUNK);
        gg_data_read(&r->rows, at, k, x);
        for (uint64_t i = 0; i < k; i++)
            if (x[i] != 0 && !--n)
                return at + i + 1;
    }
    return n ? r->n : 0;
}

/* Round x to the codec's type. */
static float round_to_type(const struct gg_codec_kern *codec, float x)
{
    uint8_t bytes[4];
    float y;
    codec->encode(&x, bytes, 1, 1, NULL);
    codec->decode(bytes, &y, 1);
    return y;
}

/* Find the number of the type that is nearest to x, and its neighbour on the
 * other side of x. */
static void find_neighbours(const struct gg_codec_kern *codec, float x,
                            float *low, float *high)
{
    const float y = round_to_type(codec, x);
    *low = *high = y;
    if (!isfinite(y))
        return;
    /* with steps that grow until the type distinguishes the results */
    for (float step = nextafterf(y, INFINITY) - y; *low == *high; step *= 2)
        *(y > x ? low : high) =
            round_to_type(codec, y > x ? y - step : y + step);
}

/* Find the magnitudes of k of n numbers whose mean is to be m; the other
 * numbers are 0. *n_high of the k get the larger one. true: the mean is exactly
 * m. */
static bool share_magnitudes(const struct gg_codec_kern *codec, float m,
                             uint64_t n, uint64_t k, struct gg_back_ternary *t,
                             uint64_t *n_high)
{
    const double sum = (double)m * (double)n;
    find_neighbours(codec, (float)(sum / (double)k), &t->low, &t->high);
    const double low = (double)k * (double)t->low;
    const double step = (double)t->high - (double)t->low;
    const double j = rint((sum - low) / step);
    *n_high = !(j > 0) ? 0 : j >= (double)k ? k : (uint64_t)j;
    return (float)((low + (double)*n_high * step) / (double)n) == m;
}

static enum gguf_status find_magnitudes(const struct gg_back *b, size_t tensor,
                                        uint32_t dtype,
                                        struct gg_back_ternary *out,
                                        struct gguf_error *err)
{
    enum { MOST = 4 }; /* steps from v */
    const struct gg_codec_kern *codec = &b->codec[gg_dtype_index(dtype)];
    const struct gguf_tensor_info *t =
        gg_source_tensor(&b->source, tensor).info;
    struct reader r = { .n = t->n_elements };
    struct gg_str_esc e;
    float v, m, other;
    uint64_t k, n_high = 0;
    bool found = false;
    *out = (struct gg_back_ternary){ .low = 0 };
    GG_TRY(gg_data_rows(&b->loose.over.list, tensor, &r.rows, err));
    if (!find_magnitude(&r, &v, &other, &k))
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '%s' has %g and %g, expected 0 and one "
                            "magnitude with either sign",
                            gg_str_esc(&e, t->name), (double)v, (double)other);
    if (!k)
        return GGUF_OK;
    m = v;
    for (int i = 0; i < MOST && !found; i++, m = nextafterf(m, 0))
        found = 1 / (1 / m) == v &&
                share_magnitudes(codec, m, r.n, k, out, &n_high);
    m = v;
    for (int i = 0; i < MOST && !found; i++, m = nextafterf(m, INFINITY))
        found = 1 / (1 / m) == v &&
                share_magnitudes(codec, m, r.n, k, out, &n_high);
    if (!found) /* the nearest mean that the type can give */
        (void)share_magnitudes(codec, v, r.n, k, out, &n_high);
    if (!(out->low > 0) || !isfinite(out->high))
        return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                            "tensor '%s': magnitude %g, out of range of %s",
                            gg_str_esc(&e, t->name), (double)v,
                            gguf_dtype_find(dtype)->name);
    out->cut = element_after(&r, n_high);
    return GGUF_OK;
}

/* It is read several times. */
enum gguf_status gg_back_find_ternary(const struct gg_back *b, size_t tensor,
                                      uint32_t dtype,
                                      struct gg_back_ternary *out,
                                      struct gguf_error *err)
{
    const struct gg_data *list = &b->loose.over.list;
    const uint64_t n = gg_source_tensor(&b->source, tensor).info->n_elements;
    GG_TRY(gg_data_hold(list, tensor, 0, n, err));
    const enum gguf_status st = find_magnitudes(b, tensor, dtype, out, err);
    gg_data_release(list, tensor, 0, n);
    return st;
}
