/* SPDX-License-Identifier: MIT */
/* fetch.c - input that comes through a reader, chunk by chunk
 *
 * A list of numbers knows what they are made of, and is asked to hold it. Of
 * GGUF files a chunk's pages are released after it, but for those at its ends,
 * which other chunks may be reading; they go when all chunks of the tensor are
 * done.
 */
#include "config.h"
#include "quant/run/run.h"
#include "file/file.h"

/* Tensors of fewer bytes stay: some are scales of others, which are needed as
 * long as those. */
enum { SMALL = 1 << 20 };

/* Whose bytes are fetched; NULL: those of tensor i are there. */
static const struct gguf_split_tensor *far(const struct gg_quant_run *r,
                                           size_t i)
{
    const struct gguf_split_tensor *t = gg_quant_run_any(r, i)->src;
    return !r->jobs[0]->in.numbers && t->file->map.read ? t : NULL;
}

/* The list, and which of its elements bytes off to off + size of tensor i are;
 * NULL: the input is GGUF files. */
static const struct gg_data *listed(const struct gg_quant_run *r, size_t i,
                                    uint64_t *off, uint64_t *size)
{
    const struct gg_data *d = r->jobs[0]->in.numbers;
    if (d) {
        const uint32_t dtype = gg_quant_run_any(r, i)->src->info->dtype;
        const struct gguf_dtype_info *x = gguf_dtype_find(dtype);
        *off = *off / x->block_size * x->block_len;
        *size = *size / x->block_size * x->block_len;
    }
    return d;
}

bool gg_quant_run_fetch(struct gg_quant_run *r, size_t i, uint64_t no,
                        uint64_t off, uint64_t size)
{
    const struct gguf_split_tensor *t = far(r, i);
    const struct gg_data *d = listed(r, i, &off, &size);
    const size_t at = gg_quant_run_any(r, i)->src->info->index;
    enum gguf_status st = GGUF_OK;
    struct gguf_error err;
    if (d)
        st = gg_data_hold(d, at, off, size, &err);
    else if (t)
        st = gg_file_fetch(t->file, at, off, size, &err);
    if (st == GGUF_OK)
        return true;
    gg_quant_run_fail(r, no, &err);
    return false;
}

void gg_quant_run_drop(struct gg_quant_run *r, size_t i, uint64_t off,
                       uint64_t size, bool last)
{
    const struct gguf_split_tensor *t = far(r, i);
    const uint64_t n = r->cuts[i + 1].first - r->cuts[i].first;
    const struct gg_data *d = listed(r, i, &off, &size);
    if (d)
        gg_data_release(d, gg_quant_run_any(r, i)->src->info->index, off,
                        size);
    if (!t || t->info->size < SMALL)
        return;
    gg_file_drop(t->file, t->info->index, off, size);
    if (last && atomic_fetch_add(&r->states[i].used, 1) + 1 == n)
        gg_file_drop(t->file, t->info->index, 0, t->info->size);
}
