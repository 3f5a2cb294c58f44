/* meta.c - metadata of the output */
#include "config.h"
#include "quant/job.h"
#include "base/compiler.h"

/* Version of the block layouts that runtimes check: ggml's
 * GGML_QNT_VERSION. */
enum { QUANTIZATION_VERSION = 2 };

/* What llama-quantize records about importance data, in its order. */
static enum gguf_status imatrix_keys(struct gguf_quant *q,
                                     struct gguf_error *err)
{
    const struct gguf_imatrix *im = q->p.imatrix;
    if (q->p.imatrix_name)
        GG_TRY(gguf_meta_set_strz(q->meta, "quantize.imatrix.file",
                                  q->p.imatrix_name, err));
    if (im->n_datasets)
        GG_TRY(gguf_meta_set_strz(q->meta, "quantize.imatrix.dataset",
                                  im->datasets[0], err));
    GG_TRY(gguf_meta_set_u32(q->meta, "quantize.imatrix.entries_count",
                             (uint32_t)GG_MIN(im->n_entries, UINT32_MAX),
                             err));
    if (im->n_chunks)
        GG_TRY(gguf_meta_set_u32(q->meta, "quantize.imatrix.chunks_count",
                                 (uint32_t)GG_MIN(im->n_chunks, UINT32_MAX),
                                 err));
    return GGUF_OK;
}

enum gguf_status gg_job_meta(struct gguf_quant *q, struct gguf_error *err)
{
    static const char version[] = "general.quantization_version";
    static const char type[] = "general.file_type";
    static const char *const split[] = { "split.no", "split.count",
                                         "split.tensors.count" };
    const struct gguf_file *f = gguf_split_file(q->set, 0);
    const struct gguf_kv *old = gguf_file_kv_find(f, type);
    int ftype = gguf_recipe_ftype(q->p.recipe);

    GG_TRY(gguf_meta_create(&q->meta, q->p.allocator, err));
    GG_TRY(gguf_meta_copy_file(q->meta, f, err));
    for (size_t i = 0; i < sizeof split / sizeof *split; i++)
        gguf_meta_remove(q->meta, split[i]);
    /* llama-quantize puts these two last, in this order. */
    gguf_meta_remove(q->meta, version);
    gguf_meta_remove(q->meta, type);
    GG_TRY(gguf_meta_set_u32(q->meta, version, QUANTIZATION_VERSION, err));
    if (ftype >= 0)
        GG_TRY(gguf_meta_set_u32(q->meta, type, (uint32_t)ftype, err));
    else if (old && q->p.recipe->base == GG_RECIPE_KEEP)
        GG_TRY(gguf_meta_set_kv(q->meta, NULL, old, err));
    /* else no number says what this recipe makes */
    return q->p.imatrix ? imatrix_keys(q, err) : GGUF_OK;
}
