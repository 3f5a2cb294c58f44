/* meta.c - metadata of the output */
#include "config.h"
#include "quant/job.h"

/* Version of the block layouts that runtimes check: ggml's
 * GGML_QNT_VERSION. */
enum { QUANTIZATION_VERSION = 2 };

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
        return gguf_meta_set_u32(q->meta, type, (uint32_t)ftype, err);
    if (old && q->p.recipe->base == GG_RECIPE_KEEP)
        return gguf_meta_set_kv(q->meta, NULL, old, err);
    return GGUF_OK; /* no number says what this recipe makes */
}
