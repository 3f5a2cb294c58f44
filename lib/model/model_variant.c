/* SPDX-License-Identifier: MIT */
/* model_variant.c - a model with other hyperparameters, on the same weights */
#include "config.h"
#include "model/build.h"

#include "base/mem.h"
#include "file/file_int.h"
#include "gguf/writer.h"

enum gguf_status gg_model_variant(struct gguf_model **out,
                                  const struct gguf_model *like,
                                  const struct gguf_meta *meta,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    *out = NULL;
    struct gguf_model *m = gg_mem_alloc_zero(a, 1, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    *m = *like;
    m->allocator = a;
    m->altered = NULL;
    m->hp = (struct gg_hparams){ 0 };
    enum gguf_status st = gg_file_create_with_pairs(
        &m->altered, gg_source_meta(&like->src), meta, a, err);
    m->src.meta = m->altered;
    const struct gg_finding report = { NULL, &m->src, err };
    if (st == GGUF_OK)
        st = gg_hparams_load(&m->hp, &m->src, m->arch, m->prefix,
                             gguf_vocab_n_tokens(m->vocab), a, &report);
    if (st == GGUF_OK)
        st = gg_build_check(m, err);
    if (st != GGUF_OK) {
        gg_model_variant_destroy(m);
        return st;
    }
    *out = m;
    return GGUF_OK;
}

void gg_model_variant_destroy(struct gguf_model *m)
{
    if (!m)
        return;
    gg_mem_free(m->allocator, m->hp.layer);
    gguf_file_close(m->altered);
    gg_mem_free(m->allocator, m);
}
