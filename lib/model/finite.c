/* finite.c - looking for weights that are not finite
 *
 * Every row is decoded to floats and its exponents are looked at. Rows are
 * dealt out to the threads in turn; the first bad element in file order wins,
 * so that the answer does not depend on the number of threads.
 */
#include "config.h"
#include "model/model.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "kern/kern.h"
#include "data/gguf.h"

enum { PIECE = 4096 }; /* elements decoded at once: a multiple of all blocks */

struct finding {
    size_t tensor;         /* SIZE_MAX: none */
    uint64_t element, off; /* in the tensor's data */
    float value;
};

struct check {
    const struct gguf_model *m;
    struct gg_kern kern;
    struct finding *found; /* one per thread */
};

/* Index of the first element that is NaN or infinite, or n. */
static size_t first_bad(const struct gg_vec_kern *vec, const float *x,
                        size_t n)
{
    static const float zero[PIECE];
    /* 0 times anything but a number is NaN, and so is a sum with it */
    if (vec->dot(x, zero, n) == 0)
        return n;
    size_t i = 0;
    while ((gg_bytes_f32_bits(x[i]) & 0x7f800000u) != 0x7f800000u)
        i++;
    return i;
}

/* Rows [first, last) of a tensor; true if something was found. */
static bool check_rows(const struct gg_vec_kern *vec,
                       const struct gg_data_rows *rows, uint64_t first,
                       uint64_t last, struct finding *f)
{
    float x[PIECE];
    uint64_t ne0 = rows->stored.ne0;
    for (uint64_t r = first; r < last; r++) {
        for (uint64_t i = 0; i < ne0; i += PIECE) {
            size_t n = (size_t)GG_MIN(ne0 - i, (uint64_t)PIECE);
            gg_data_read(rows, r * ne0 + i, n, x);
            size_t bad = first_bad(vec, x, n);
            if (bad < n) {
                f->element = r * ne0 + i + bad;
                f->off = gg_stored_offset(&rows->stored, f->element);
                f->value = x[bad];
                return true;
            }
        }
    }
    return false;
}

static void check_thread(void *user, unsigned ith, unsigned nth)
{
    struct check *c = user;
    struct gg_data_gguf list;
    struct finding *f = &c->found[ith];
    f->tensor = SIZE_MAX;
    gg_data_gguf_init(&list, &c->m->src, c->kern.codec, false);
    for (size_t k = 0; k < gg_data_n_tensors(&list.list); k++) {
        struct gg_data_info t;
        struct gg_data_rows rows;
        if (!c->m->used[k] ||
            gg_data_rows(&list.list, k, &rows, NULL) != GGUF_OK)
            continue; /* not a weight that was loaded */
        gg_data_info(&list.list, k, &t);
        uint64_t n = t.n_elements / rows.stored.ne0;
        if (check_rows(&c->kern.vec, &rows, n * ith / nth, n * (ith + 1) / nth,
                       f)) {
            f->tensor = k;
            return;
        }
    }
}

/* The first weight that is not finite. */
static enum gguf_status fail(const struct gguf_model *m,
                             const struct finding *f, struct gguf_error *err)
{
    const struct gguf_split_tensor t = gg_source_tensor(&m->src, f->tensor);
    struct gg_str_esc e;
    enum gguf_status st =
        gg_error_set(err, GGUF_E_NONFINITE,
                     gguf_file_data_off(t.file) + t.info->off + f->off,
                     "tensor '%s': element %" PRIu64 " is %s",
                     gg_str_esc(&e, t.info->name), f->element,
                     f->value != f->value ? "not a number"
                     : f->value > 0       ? "infinite"
                                          : "minus infinity");
    return gg_source_fail(&m->src, t.file_no, st, err);
}

enum gguf_status gguf_model_scan_finite(const struct gguf_model *m,
                                        struct gguf_pool *pool,
                                        struct gguf_error *err)
{
    struct check c = { .m = m };
    unsigned n = gguf_pool_n_threads(pool);
    gg_kern_init(&c.kern, gg_kern_cpu_detect());
    c.found = gg_mem_alloc_zero(m->allocator, n, sizeof *c.found);
    if (!c.found)
        return gg_error_set_nomem(err, n * sizeof *c.found);
    gguf_pool_run(pool, check_thread, &c);
    struct finding best = { .tensor = SIZE_MAX };
    for (unsigned i = 0; i < n; i++)
        if (c.found[i].tensor < best.tensor)
            best = c.found[i]; /* of one tensor: lower threads, lower rows */
    gg_mem_free(m->allocator, c.found);
    return best.tensor == SIZE_MAX ? GGUF_OK : fail(m, &best, err);
}
