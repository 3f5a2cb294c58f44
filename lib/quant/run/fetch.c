/* SPDX-License-Identifier: MIT */
/* fetch.c - input that comes through a reader, chunk by chunk
 *
 * A list of numbers knows what they are made of, and is asked to hold it. Of
 * GGUF files a chunk's pages are released after it, but for those at its ends,
 * which other chunks may be reading; they go when all chunks of the tensor are
 * done.
 */
#include "config.h"
#include "quant/run/job_run.h"

bool gg_quant_run_fetch(struct gg_quant_run *r, size_t i, uint64_t no,
                        uint64_t off, uint64_t size)
{
    struct gguf_error err;
    if (gg_job_hold(r->jobs[0], gg_quant_run_any(r, i)->src, off, size,
                    &err) == GGUF_OK)
        return true;
    gg_quant_run_fail(r, no, &err);
    return false;
}

void gg_quant_run_drop(struct gg_quant_run *r, size_t i, uint64_t off,
                       uint64_t size, bool last)
{
    const struct gguf_quant *q = r->jobs[0];
    const struct gguf_split_tensor *t = gg_quant_run_any(r, i)->src;
    const uint64_t n = r->cuts[i + 1].first - r->cuts[i].first;
    gg_job_release(q, t, off, size);
    if (last && atomic_fetch_add(&r->states[i].used, 1) + 1 == n)
        gg_job_release_rest(q, t);
}
