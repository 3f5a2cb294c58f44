/* SPDX-License-Identifier: MIT */
/* chunks.c - cutting texts into chunks and choosing which to evaluate */
#include "config.h"
#include "tools/evaluate/run.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <inttypes.h>

const char *ev_cut_name(const struct ev_run *r)
{
    static const char *const names[] = {
        [GGUF_SCAN_CHUNKS] = "chunks",
        [GGUF_SCAN_SLIDING] = "sliding",
        [GGUF_SCAN_STRIDED] = "strided",
    };
    return names[r->scan.cut];
}

struct gguf_scan_params ev_scan_params(const struct ev_run *r)
{
    struct gguf_scan_params p = r->scan;
    p.first_chunk = r->first_chunk;
    p.max_chunks = r->n_chunks;
    p.text_end = r->several ? r->text_end : NULL;
    p.n_texts = r->n_texts;
    return p;
}

bool ev_plan_chunks(struct ev_run *r, size_t n_all, uint64_t first, uint64_t n)
{
    if (first >= n_all)
        return msg_error(r->text ? r->text : r->tokens_file,
                         "the first chunk is %" PRIu64
                         ", counted from 0, but there %s only "
                         "%zu chunk%s",
                         first, n_all == 1 ? "is" : "are", n_all,
                         text_s(n_all));
    const size_t left = n_all - (size_t)first;
    r->first_chunk = (size_t)first;
    r->n_chunks = n && n < left ? (size_t)n : left;
    r->n_scored_chunk = gguf_scan_max_rows(ev_find_longest_text(r), &r->scan);
    return true;
}

struct gguf_session_params ev_plan_session(struct ev_run *r)
{
    const struct ev_options *o = r->o;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    const uint32_t n_batch =
        o->n_batch < o->n_ubatch ? o->n_batch : o->n_ubatch;
    uint32_t n_seq = n_batch / o->n_ctx;
    if (n_seq > r->n_chunks)
        n_seq = (uint32_t)r->n_chunks;
    r->n_seq = n_seq ? n_seq : 1;
    sp.n_ubatch = o->n_ubatch;
    sp.n_seq = r->n_seq;
    return sp;
}

void ev_begin_work(struct ev_run *r, const char *label, const char *unit)
{
    progress_init(&r->bar, label, unit, r->o->quiet);
    r->begin = progress_clock();
}

void ev_end_work(struct ev_run *r)
{
    r->seconds = progress_clock() - r->begin;
    progress_clear(&r->bar);
}
