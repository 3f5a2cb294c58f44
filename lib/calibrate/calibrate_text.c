/* SPDX-License-Identifier: MIT */
/* calibrate_text.c - chunks of a calibration text */
#include "config.h"
#include "calibrate/calibrate_int.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "eval/window.h"

#include <string.h>

enum {
    DEFAULT_CTX = 512, /* tokens of a chunk */
    LEAST_TOKENS = 16  /* least tokens of a text: an eighth is held out */
};

/* Tokens of a chunk; 0: the text is too short. */
static uint32_t choose_n_ctx(const struct gguf_calibrate_params *p)
{
    const uint32_t n_ctx = p->n_ctx ? p->n_ctx : DEFAULT_CTX;
    if (p->n_tokens < LEAST_TOKENS)
        return 0;
    return p->text_end || p->n_tokens >= n_ctx ? n_ctx : (uint32_t)p->n_tokens;
}

static enum gguf_status allocate_chunks(struct gg_calibrate_text *x,
                                        struct gguf_error *err)
{
    const uint64_t n = (uint64_t)x->n_chunks * x->n_ctx;
    x->token = gg_mem_alloc_zero(x->allocator, n, sizeof *x->token);
    x->want = gg_mem_alloc_zero(x->allocator, x->n_ctx, sizeof *x->want);
    x->bad = gg_mem_alloc_zero(x->allocator, x->n_chunks, sizeof *x->bad);
    x->batch = gg_mem_alloc_zero(x->allocator, x->n_chunks, sizeof *x->batch);
    return x->token && x->want && x->bad && x->batch
               ? GGUF_OK
               : gg_error_set_nomem(err, (size_t)n * sizeof *x->token);
}

/* Copy evenly spaced chunks of a text that was cut. */
static enum gguf_status copy_chunks(struct gg_calibrate_text *x,
                                    const struct gg_window_list *w,
                                    const struct gguf_calibrate_params *p,
                                    struct gguf_error *err)
{
    const size_t n_all = gg_window_count(w);
    const size_t most =
        p->max_tokens ? GG_MAX(p->max_tokens / x->n_ctx, 1) : SIZE_MAX;
    x->n_chunks = GG_MIN(n_all, most);
    GG_TRY(allocate_chunks(x, err));
    memset(x->want, 1, x->n_ctx);
    for (size_t c = 0; c < x->n_chunks; c++) {
        const size_t from = (size_t)((uint64_t)c * n_all / x->n_chunks);
        const struct gg_window chunk = gg_window_at(w, from);
        x->batch[c] = (struct gguf_batch)GGUF_BATCH_INIT;
        x->batch[c].n = x->n_ctx;
        x->batch[c].token = x->token + c * x->n_ctx;
        x->batch[c].want = x->want;
        gg_window_copy(w, &chunk, p->tokens, x->token + c * x->n_ctx);
    }
    return GGUF_OK;
}

enum gguf_status gg_calibrate_text_init(struct gg_calibrate_text *x,
                                        const struct gguf_calibrate_params *p,
                                        const struct gguf_vocab *vocab,
                                        struct gguf_error *err)
{
    struct gguf_scan_params sp = GGUF_SCAN_PARAMS_INIT;
    struct gg_window_list w = { .allocator = p->allocator };
    *x = (struct gg_calibrate_text){ .allocator = p->allocator,
                                     .n_ctx = choose_n_ctx(p) };
    if (!x->n_ctx)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the calibration text has %zu tokens, expected at "
                            "least %d",
                            p->n_tokens, LEAST_TOKENS);
    if (x->n_ctx < GG_WINDOW_LEAST)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "chunks of %" PRIu32
                            " tokens for calibration, expected at least %d",
                            x->n_ctx, GG_WINDOW_LEAST);
    sp.n_ctx = x->n_ctx;
    sp.text_end = p->text_end;
    sp.n_texts = p->n_texts;
    enum gguf_status st =
        gg_window_init(&w, &sp, p->n_tokens, vocab, p->allocator, err);
    if (st == GGUF_OK)
        st = copy_chunks(x, &w, p, err);
    gg_window_fini(&w);
    return st;
}

void gg_calibrate_text_fini(struct gg_calibrate_text *x)
{
    gg_mem_free(x->allocator, x->token);
    gg_mem_free(x->allocator, x->want);
    gg_mem_free(x->allocator, x->bad);
    gg_mem_free(x->allocator, x->batch);
}
