/* SPDX-License-Identifier: MIT */
/* finite_weights.c - find weights that are not finite
 *
 * Every row is decoded to floats and their exponents are checked. Threads take
 * pieces of several rows (parallel_pass.h). The first bad element in the order
 * of tensors is reported, so that the result does not depend on the number of
 * threads.
 */
#include "config.h"
#include "model/model_int.h"
#include "model/weight/parallel_pass.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "kern/kern.h"
#include "data/gguf_list.h"
#include "file/file_int.h"

enum { BLOCK = 4096 }; /* elements decoded at once: a multiple of all blocks */

/* State of the check: rows of the weights that were loaded. */
struct check {
    const struct gguf_model *m;
    struct gg_kern kern;
    struct gg_data_rows *rows;
    struct gg_parallel_pass_item *item;
    size_t *tensor; /* place in the files */
    size_t n;
};

/* Index of the first element that is NaN or infinite, or n. */
static size_t find_nonfinite(const struct gg_vec_kern *vec, const float *x,
                             size_t n)
{
    static const float zero[BLOCK];
    /* 0 times anything but a number is NaN, and so is a sum with it */
    if (vec->dot(x, zero, n) == 0)
        return n;
    size_t i = 0;
    while ((gg_bytes_f32_bits(x[i]) & 0x7f800000u) != 0x7f800000u)
        i++;
    return i;
}

static enum gguf_status refuse_value(const struct check *c, size_t item,
                                     uint64_t element, float value,
                                     struct gguf_error *err)
{
    const struct gguf_model *m = c->m;
    const struct gg_file_shard_tensor t =
        gg_source_tensor(&m->src, c->tensor[item]);
    struct gg_str_esc e;
    enum gguf_status st =
        gg_error_set(err, GGUF_E_NONFINITE,
                     gguf_file_data_off(t.file) + t.info->off +
                         gg_stored_offset(&c->rows[item].stored, element),
                     "tensor '%s': element %" PRIu64 " is %s",
                     gg_str_esc(&e, t.info->name), element,
                     value != value ? "not a number"
                     : value > 0    ? "infinite"
                                    : "minus infinity");
    return gg_source_fail(&m->src, t.file_no, st, err);
}

/* Some rows of a tensor. */
static enum gguf_status check_rows(void *user, unsigned ith, size_t item,
                                   uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    const struct check *c = user;
    const struct gg_data_rows *rows = &c->rows[item];
    const uint64_t row_size = c->item[item].step, ne0 = rows->stored.ne0;
    float x[BLOCK];
    (void)ith;
    for (uint64_t r = off / row_size; r < (off + size) / row_size; r++)
        for (uint64_t i = 0; i < ne0; i += BLOCK) {
            size_t n = (size_t)GG_MIN(ne0 - i, (uint64_t)BLOCK);
            gg_data_read(rows, r * ne0 + i, n, x);
            size_t bad = find_nonfinite(&c->kern.vec, x, n);
            if (bad < n)
                return refuse_value(c, item, r * ne0 + i + bad, x[bad], err);
        }
    return GGUF_OK;
}

/* The weights that can be read. */
static void list_rows(struct check *c, const struct gg_data *list)
{
    for (size_t k = 0; k < gg_data_n_tensors(list); k++) {
        struct gg_data_info t;
        struct gg_data_rows *rows = &c->rows[c->n];
        if (!c->m->used[k] || gg_data_rows(list, k, rows, NULL) != GGUF_OK)
            continue; /* not a weight that was loaded */
        gg_data_info(list, k, &t);
        const uint64_t n_rows = t.n_elements / rows->stored.ne0;
        const uint64_t row_size = t.size / n_rows;
        c->item[c->n] =
            (struct gg_parallel_pass_item){ n_rows * row_size, row_size };
        c->tensor[c->n++] = k;
    }
}

enum gguf_status gguf_model_check_finite(const struct gguf_model *m,
                                         const struct gguf_model_job *job,
                                         struct gguf_error *err)
{
    struct check c = { .m = m };
    struct gguf_model_job own;
    struct gg_data_gguf list;
    const size_t n = gg_source_n_tensors(&m->src);
    GG_TRY(gg_parallel_pass_take_job(&own, job, err));
    for (size_t i = 0; i < gg_source_n_files(&m->src); i++)
        GG_TRY(gg_file_require_memory(gg_source_file(&m->src, i), err));
    const struct gg_parallel_pass work = { m->allocator, &own,
                                           (uint64_t)1 << 20, check_rows, &c };
    gg_kern_init(&c.kern, gg_kern_cpu_detect());
    gg_data_gguf_init(&list, &m->src, c.kern.codec, false);
    c.rows = gg_mem_alloc_zero(m->allocator, n + 1, sizeof *c.rows);
    c.item = gg_mem_alloc_zero(m->allocator, n + 1, sizeof *c.item);
    c.tensor = gg_mem_alloc_zero(m->allocator, n + 1, sizeof *c.tensor);
    enum gguf_status st;
    if (c.rows && c.item && c.tensor) {
        list_rows(&c, &list.list);
        st = gg_parallel_pass_run(&work, c.item, c.n, err);
    } else {
        st = gg_error_set_nomem(err, (n + 1) * sizeof *c.rows);
    }
    gg_mem_free(m->allocator, c.tensor);
    gg_mem_free(m->allocator, c.item);
    gg_mem_free(m->allocator, c.rows);
    return st;
}
