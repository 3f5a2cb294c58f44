/* SPDX-License-Identifier: MIT */
/* stage_encode.c - encode a matrix anew, and keep the result if it is better */
#include "config.h"
#include "calibrate/stage_encode.h"
#include "calibrate/two_sided.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "kern/codec.h"
#include "kern/cpu_features.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CHUNK_FLOATS = 1 << 23 /* floats of a buffer: 32 MiB */ };

static const float strengths[] = { 0.0f, 0.5f, 1.0f };

/* A matrix at work. Buffers hold some rows: the sample, or a chunk. */
struct work {
    const struct gg_targets *t;
    const struct gg_moments *m;
    struct gg_linalg *la;
    const struct gg_stage_encode_job *x;
    struct gg_output_error_rows inputs;
    gg_kern_decode_fn *decode;
    size_t n_rows, row_size;    /* rows of the matrix; bytes of a row */
    size_t room;                /* rows of a buffer */
    size_t *row;                /* [room] numbers of the rows */
    const float *curvature;     /* blocks of the loaded rows; NULL: none */
    float *sample;              /* blocks of the sample; NULL: none */
    float *w, *d, *k;           /* [room][n] W, D, corrections */
    float *target;              /* [room][n]; then W - Q */
    float *base, *out;          /* [room][n_inputs] */
    double *sum;                /* [room] */
    unsigned char *old, *trial; /* [room] rows of plain and new bytes */
};

/* Buffers of a work, for gg_mem_free(). */
static void free_buffers(struct work *k)
{
    void *const all[] = { k->row, k->w,   k->d,   k->k,     k->target, k->base,
                          k->out, k->sum, k->old, k->trial, k->sample };
    for (size_t i = 0; i < GG_LEN(all); i++)
        gg_mem_free(k->la->allocator, all[i]);
}

static bool alloc_buffer(const struct work *k, size_t row_size, void *out)
{
    void *p = gg_mem_alloc_zero(k->la->allocator, k->room, row_size);
    memcpy(out, &p, sizeof p);
    return p != NULL;
}

static enum gguf_status alloc_buffers(struct work *k, struct gguf_error *err)
{
    const size_t n = k->t->n * sizeof(float);
    const size_t n_inputs = k->inputs.n_inputs * sizeof(float);
    if (k->x->curvature)
        k->sample = gg_mem_alloc_zero(
            k->la->allocator, GG_STAGE_ENCODE_SAMPLE / GG_TWO_SIDED_BLOCK,
            GG_TWO_SIDED_BLOCK * GG_TWO_SIDED_BLOCK * sizeof *k->sample);
    if ((k->x->curvature && !k->sample) ||
        !alloc_buffer(k, sizeof *k->row, &k->row) ||
        !alloc_buffer(k, n, &k->w) ||
        (k->m->d[k->x->product] && !alloc_buffer(k, n, &k->d)) ||
        !alloc_buffer(k, n, &k->k) || !alloc_buffer(k, n, &k->target) ||
        !alloc_buffer(k, n_inputs, &k->base) ||
        !alloc_buffer(k, n_inputs, &k->out) ||
        !alloc_buffer(k, sizeof *k->sum, &k->sum) ||
        !alloc_buffer(k, k->row_size, &k->old) ||
        !alloc_buffer(k, k->row_size, &k->trial))
        return gg_error_set_nomem(err, k->room * (4 * n + 2 * n_inputs));
    return GGUF_OK;
}

/* Read n rows of W, whose numbers are in row, with D's, corrections, bytes, and
 * the first term of the errors. */
static enum gguf_status load_rows(struct work *k, size_t n,
                                  struct gguf_error *err)
{
    const size_t cols = k->t->n;
    const float *d = k->m->d[k->x->product];
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && k->row[i + run] == k->row[i] + run; run++)
            ;
        GG_TRY(k->x->reader.read(k->x->reader.user, k->row[i], run,
                                 k->w + i * cols, err));
        memcpy(k->old + i * k->row_size,
               (const unsigned char *)k->x->bytes + k->row[i] * k->row_size,
               run * k->row_size);
        if (d)
            memcpy(k->d + i * cols, d + k->row[i] * cols,
                   run * cols * sizeof *d);
    }
    GG_TRY(gg_targets_correct(k->t, k->la, k->w, k->d, n, k->k, err));
    return gg_output_error_base(&k->inputs, k->la, k->w, n, k->base, err);
}

struct rows_job {
    const struct work *k;
    size_t n;
    float strength;
    const unsigned char *bytes;
};

/* target = (W + strength correction) / outer scale */
static void target_share(void *user, unsigned ith, unsigned nth)
{
    const struct rows_job *j = user;
    const struct work *k = j->k;
    const size_t cols = k->t->n;
    const float scale = k->x->outer_scale;
    for (size_t i = ith; i < j->n; i += nth)
        for (size_t c = i * cols; c < (i + 1) * cols; c++) {
            const float t = k->w[c] + j->strength * k->k[c];
            k->target[c] = scale == 1.0f ? t : t / scale;
        }
}

/* target = W - Q, for the decoded rows Q of bytes */
static void difference_share(void *user, unsigned ith, unsigned nth)
{
    const struct rows_job *j = user;
    const struct work *k = j->k;
    const size_t cols = k->t->n;
    for (size_t i = ith; i < j->n; i += nth) {
        float *e = k->target + i * cols;
        k->decode(j->bytes + i * k->row_size, e, cols);
        for (size_t c = 0; c < cols; c++)
            e[c] = k->w[i * cols + c] - e[c] * k->x->outer_scale;
    }
}

static void run_rows(const struct work *k, gguf_pool_fn *fn, struct rows_job j)
{
    gguf_pool_run(k->la->pool, (struct gguf_pool_callback){ fn, &j });
}

/* Add the errors of n loaded rows with the elements in k->target to *sum. */
static enum gguf_status add_errors(struct work *k, const float *e, size_t n,
                                   double *sum, struct gguf_error *err)
{
    GG_TRY(gg_output_error_sum(&k->inputs, k->la, k->base, e, n, k->curvature,
                               k->out, k->sum, err));
    for (size_t i = 0; i < n; i++)
        *sum += k->sum[i];
    return GGUF_OK;
}

static enum gguf_status add_bytes_errors(struct work *k,
                                         const unsigned char *bytes, size_t n,
                                         double *sum, struct gguf_error *err)
{
    run_rows(k, difference_share,
             (struct rows_job){ .k = k, .n = n, .bytes = bytes });
    return add_errors(k, k->target, n, sum, err);
}

/* Encode n loaded rows into k->trial, and add their errors to *sum. */
static enum gguf_status encode_rows(struct work *k, size_t n, float strength,
                                    double *sum, struct gguf_error *err)
{
    run_rows(k, target_share,
             (struct rows_job){ .k = k, .n = n, .strength = strength });
    memcpy(k->trial, k->old, n * k->row_size);
    GG_TRY(k->x->encoder.encode(k->x->encoder.user, k->t, k->curvature,
                                k->target, n, k->trial, err));
    return add_bytes_errors(k, k->trial, n, sum, err);
}

/* Choose evenly spaced rows, or with curvature evenly spaced blocks of rows.
 * Returns the number of rows. */
static size_t choose_sample(struct work *k)
{
    enum { BLOCK = GG_TWO_SIDED_BLOCK, SIZE = BLOCK * BLOCK };
    const size_t most = GG_STAGE_ENCODE_SAMPLE;
    size_t n = GG_MIN(k->n_rows, most);
    if (!k->x->curvature) {
        for (size_t i = 0; i < n; i++)
            k->row[i] = i * k->n_rows / n;
        return n;
    }
    const size_t n_blocks = (k->n_rows + BLOCK - 1) / BLOCK;
    const size_t blocks = GG_MIN(n_blocks, most / BLOCK);
    n = 0;
    for (size_t b = 0; b < blocks; b++) {
        const size_t from = b * n_blocks / blocks;
        memcpy(k->sample + b * SIZE, k->x->curvature + from * SIZE,
               SIZE * sizeof *k->sample);
        for (size_t i = from * BLOCK;
             i < GG_MIN((from + 1) * BLOCK, k->n_rows); i++)
            k->row[n++] = i;
    }
    k->curvature = k->sample;
    return n;
}

/* Choose the strength on evenly spaced rows. *is_worse: with each strength they
 * are worse than the plain bytes. */
static enum gguf_status choose_strength(struct work *k,
                                        struct gg_stage_encode_result *result,
                                        bool *is_worse, struct gguf_error *err)
{
    const size_t n = choose_sample(k);
    const size_t n_strengths = k->t->has_correction ? GG_LEN(strengths) : 1;
    double plain = 0, best = INFINITY;
    GG_TRY(load_rows(k, n, err));
    GG_TRY(add_errors(k, k->w, n, &result->power, err));
    result->power /= (double)n * (double)k->inputs.n_inputs;
    gg_output_error_add_residual(&k->inputs, k->row, n, k->base);
    GG_TRY(add_bytes_errors(k, k->old, n, &plain, err));
    for (size_t s = 0; s < n_strengths; s++) {
        double sum = 0;
        GG_TRY(encode_rows(k, n, strengths[s], &sum, err));
        if (sum < best) {
            best = sum;
            result->strength = strengths[s];
        }
    }
    *is_worse = !(best < plain);
    return GGUF_OK;
}

/* Encode all rows into fresh with the strength that was chosen (NULL: measure
 * the plain bytes only). */
static enum gguf_status encode_all(struct work *k, unsigned char *fresh,
                                   struct gg_stage_encode_result *result,
                                   struct gguf_error *err)
{
    double before = 0, after = 0;
    for (size_t first = 0, n; first < k->n_rows; first += n) {
        n = GG_MIN(k->n_rows - first, k->room);
        for (size_t i = 0; i < n; i++)
            k->row[i] = first + i;
        if (k->x->curvature)
            k->curvature = k->x->curvature + first * GG_TWO_SIDED_BLOCK;
        GG_TRY(load_rows(k, n, err));
        gg_output_error_add_residual(&k->inputs, k->row, n, k->base);
        GG_TRY(add_bytes_errors(k, k->old, n, &before, err));
        if (!fresh)
            continue;
        GG_TRY(encode_rows(k, n, result->strength, &after, err));
        memcpy(fresh + first * k->row_size, k->trial, n * k->row_size);
    }
    const double n_outputs = (double)k->n_rows * (double)k->inputs.n_inputs;
    result->error_before = result->error_after = before / n_outputs;
    result->used = fresh && after < before;
    if (result->used)
        result->error_after = after / n_outputs;
    return GGUF_OK;
}

static enum gguf_status
compare_encodings(struct work *k, struct gg_stage_encode_result *result,
                  struct gguf_error *err)
{
    bool is_worse;
    unsigned char *fresh = NULL;
    GG_TRY(choose_strength(k, result, &is_worse, err));
    if (!is_worse) {
        fresh = gg_mem_alloc_zero(k->la->allocator, k->n_rows, k->row_size);
        if (!fresh)
            return gg_error_set_nomem(err, k->n_rows * k->row_size);
    }
    enum gguf_status st = encode_all(k, fresh, result, err);
    if (!st && result->used)
        memcpy(k->x->bytes, fresh, k->n_rows * k->row_size);
    else if (!st)
        result->note = isfinite(result->error_before)
                           ? "new bytes are no better on text held out"
                           : "its outputs on text held out are not finite";
    gg_mem_free(k->la->allocator, fresh);
    return st;
}

enum gguf_status gg_stage_encode_matrix(const struct gg_targets *t,
                                        const struct gg_moments *m,
                                        struct gg_linalg *la,
                                        const struct gg_stage_encode_job *x,
                                        struct gg_stage_encode_result *result,
                                        struct gguf_error *err)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(x->dtype_index);
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct work k = { .t = t, .m = m, .la = la, .x = x };
    memset(result, 0, sizeof *result);
    result->note = gg_targets_note(t->state);
    if (result->note)
        return GGUF_OK;
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    k.decode = codec[x->dtype_index].decode;
    k.n_rows = m->product[x->product].n_rows;
    k.row_size = t->n / dt->block_len * dt->block_size;
    k.room = x->most_rows ? x->most_rows : CHUNK_FLOATS / t->n;
    k.room = GG_MAX(k.room, (size_t)GG_STAGE_ENCODE_SAMPLE);
    if (x->curvature) /* whole blocks */
        k.room -= k.room % GG_TWO_SIDED_BLOCK;
    k.room = GG_MIN(k.n_rows, k.room);
    GG_TRY(
        gg_output_error_rows_init(&k.inputs, m, x->product, x->expert, err));
    result->n_inputs = k.inputs.n_inputs;
    enum gguf_status st = GGUF_OK;
    if (!k.inputs.n_inputs || !k.n_rows)
        result->note = "no text is held out to compare it";
    else if (!(st = alloc_buffers(&k, err)))
        st = compare_encodings(&k, result, err);
    free_buffers(&k);
    gg_output_error_rows_fini(&k.inputs);
    return st;
}
