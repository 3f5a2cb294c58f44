/* SPDX-License-Identifier: MIT */
/* bisect_suspicion.c - find the weights that differ, and their suspicions
 *
 * Rows are divided over threads. The sums of each row are stored, then added
 * in order. */
#include "config.h"
#include "eval/bisect_int.h"

#include "base/mem.h"
#include "base/str.h"
#include "data/gguf_list.h"
#include "kern/kern.h"

#include <string.h>

/* Sums of squares of a row: of the difference, and of the base. */
struct row {
    double d2, b2;
};

struct weigh {
    const struct gg_data_rows *q, *b;
    uint64_t ne0, n_rows, rows_of_mat;
    /* [mats][ne0], mean squares of inputs; NULL: unknown */
    const float *energy;
    float *buf;      /* [threads][2][ne0] */
    struct row *row; /* [n_rows] */
};

static void weigh_row(const struct weigh *w, uint64_t r, float *q, float *b)
{
    const float *e =
        w->energy ? w->energy + r / w->rows_of_mat * w->ne0 : NULL;
    double d2 = 0, b2 = 0;
    gg_data_read(w->q, r * w->ne0, w->ne0, q);
    gg_data_read(w->b, r * w->ne0, w->ne0, b);
    for (uint64_t j = 0; j < w->ne0; j++) {
        const double much = e ? (double)e[j] : 1;
        const double x = (double)q[j], y = (double)b[j];
        d2 += (x - y) * (x - y) * much;
        b2 += y * y * much;
    }
    w->row[r] = (struct row){ d2, b2 };
}

static void weigh_share(void *user, unsigned ith, unsigned nth)
{
    const struct weigh *w = user;
    const uint64_t end = w->n_rows * (ith + 1) / nth;
    float *buf = w->buf + 2 * w->ne0 * ith;
    for (uint64_t r = w->n_rows * ith / nth; r < end; r++)
        weigh_row(w, r, buf, buf + w->ne0);
}

/* Read the mean squares of a weight's inputs, for each of its matrices; those
 * of experts times their share of the rows. *energy is NULL if im lacks the
 * weight. */
static enum gguf_status energy_of(const struct gguf_imatrix *im,
                                  const struct gguf_allocator *a,
                                  const char *name, uint64_t ne0,
                                  uint64_t n_mats, float **energy,
                                  struct gguf_error *err)
{
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    size_t i;
    *energy = NULL;
    if (!im ||
        !gguf_imatrix_find_for_matrix(im, gg_str_z(name), ne0 * n_mats, &i))
        return GGUF_OK;
    GG_TRY(gguf_imatrix_entry(im, i, &e, err));
    if (e.n_mats != n_mats)
        return GGUF_OK;
    *energy = gg_mem_alloc_zero(a, e.n_values, sizeof **energy);
    if (!*energy)
        return gg_error_set_nomem(err, (size_t)e.n_values * sizeof **energy);
    /* sums instead of means: the factor cancels out in the suspicion */
    return gguf_imatrix_sums(im, i, 0, (size_t)e.n_values, *energy, err);
}

static enum gguf_status
weigh_rows(struct gg_bisect_weight *w, const struct gguf_tensor_info *t,
           const struct gg_data_rows rows[2], const struct gguf_imatrix *im,
           const struct gguf_allocator *a, struct gguf_pool *pool,
           struct gguf_error *err)
{
    const uint64_t ne0 = (uint64_t)t->ne[0], n_rows = t->n_elements / ne0;
    const uint64_t n_mats = (uint64_t)(t->ne[2] * t->ne[3]);
    const unsigned nth = pool ? gguf_pool_n_threads(pool) : 1;
    float *energy = NULL;
    double d2 = 0, b2 = 0;
    struct weigh job = { &rows[0],
                         &rows[1],
                         ne0,
                         n_rows,
                         n_rows / n_mats,
                         NULL,
                         gg_mem_alloc_zero(a, 2 * ne0 * nth, sizeof(float)),
                         gg_mem_alloc_zero(a, n_rows, sizeof(struct row)) };
    enum gguf_status st =
        job.buf && job.row
            ? energy_of(im, a, w->name, ne0, n_mats, &energy, err)
            : gg_error_set_nomem(err, (size_t)n_rows * sizeof(struct row));
    job.energy = energy;
    if (st == GGUF_OK)
        gguf_pool_run(pool, (struct gguf_pool_callback){ weigh_share, &job });
    for (uint64_t r = 0; st == GGUF_OK && r < n_rows; r++) {
        d2 += job.row[r].d2;
        b2 += job.row[r].b2;
    }
    w->w.suspicion = d2 == 0 ? 0 : d2 / b2;
    gg_mem_free(a, energy);
    gg_mem_free(a, job.buf);
    gg_mem_free(a, job.row);
    return st;
}

/* Append weight i of the model to the list if it differs from the base's and
 * can be replaced. */
static enum gguf_status
look_at(struct gguf_bisect *b, const struct gguf_model *model,
        const struct gguf_model *base, size_t i, const struct gguf_imatrix *im,
        const struct gg_data *q_list, const struct gg_data *b_list,
        struct gguf_pool *pool, struct gguf_error *err)
{
    const struct gg_file_shard_tensor q = gg_source_tensor(&model->src, i);
    struct gg_bisect_weight *w = &b->list[b->n];
    struct gg_data_rows rows[2];
    size_t k;
    if (!gg_model_find_weight(base, q.info->name, &k) ||
        gg_model_has_scale(model, i) || gg_model_has_scale(base, k)) {
        b->n_left_out++;
        return GGUF_OK;
    }
    const struct gg_file_shard_tensor p = gg_source_tensor(&base->src, k);
    if (memcmp(q.info->ne, p.info->ne, sizeof q.info->ne) != 0 ||
        q.info->dtype == GGUF_DTYPE_I32 || p.info->dtype == GGUF_DTYPE_I32 ||
        gg_data_rows(q_list, i, &rows[0], NULL) != GGUF_OK ||
        gg_data_rows(b_list, k, &rows[1], NULL) != GGUF_OK) {
        b->n_left_out++;
        return GGUF_OK;
    }
    *w = (struct gg_bisect_weight){ .i = i, .k = k };
    gg_str_join(w->name, sizeof w->name, q.info->name, "");
    w->w.dtype = q.info->dtype;
    w->w.base_dtype = p.info->dtype;
    w->w.size = q.info->size;
    w->w.base_size = p.info->size;
    GG_TRY(weigh_rows(w, q.info, rows, im, b->allocator, pool, err));
    b->n += w->w.suspicion != 0; /* NaN counts, too */
    return GGUF_OK;
}

enum gguf_status gg_bisect_find_weights(struct gguf_bisect *b,
                                        const struct gguf_model *model,
                                        const struct gguf_model *base,
                                        const struct gguf_imatrix *im,
                                        struct gguf_pool *pool,
                                        struct gguf_error *err)
{
    const size_t n = gg_source_n_tensors(&model->src);
    struct gg_data_gguf q_list, b_list;
    struct gg_kern kern;
    gg_kern_init(&kern, gg_kern_cpu_detect());
    gg_data_gguf_init(&q_list, &model->src, kern.codec, false);
    gg_data_gguf_init(&b_list, &base->src, kern.codec, false);
    b->list = gg_mem_alloc_zero(b->allocator, n + 1, sizeof *b->list);
    if (!b->list)
        return gg_error_set_nomem(err, (n + 1) * sizeof *b->list);
    for (size_t i = 0; i < n; i++)
        if (model->of[i])
            GG_TRY(look_at(b, model, base, i, im, &q_list.list, &b_list.list,
                           pool, err));
    return GGUF_OK;
}
