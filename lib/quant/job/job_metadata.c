/* SPDX-License-Identifier: MIT */
/* job_metadata.c - metadata of the output */
#include "config.h"
#include "quant/job/job.h"
#include "dtype/interleave.h"
#include "base/compiler.h"
#include "base/str.h"
#include "file/shard_set.h"
#include "file/split_layout.h"
#include "gguf/digest.h"
#include "gguf/edit.h"
#include "gguf/version.h"

#include <stdio.h>
#include <string.h>

/* Join the names of all datasets of the importance data, in the arena. */
static char *join_datasets(struct gguf_quant *q)
{
    const struct gguf_imatrix *im = q->p.imatrix;
    size_t size = 1, used = 0;
    for (size_t i = 0; i < im->n_datasets; i++)
        size += strlen(gg_imatrix_base_name(im->datasets[i])) + 2;
    char *out = gg_mem_arena_alloc(&q->arena, size);
    for (size_t i = 0; out && i < im->n_datasets; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "",
                             gg_imatrix_base_name(im->datasets[i]));
    return out;
}

/* Write the keys of importance data in the order of llama-quantize. With compat
 * only the first dataset is named. */
static enum gguf_status imatrix_keys(struct gguf_quant *q,
                                     struct gguf_error *err)
{
    const struct gguf_imatrix *im = q->p.imatrix;
    if (q->p.imatrix_name)
        GG_TRY(gguf_meta_set_strz(q->meta, "quantize.imatrix.file",
                                  q->p.imatrix_name, err));
    if (im->n_datasets) { /* folders are private */
        const char *names = q->p.compat ? im->datasets[0] : join_datasets(q);
        if (!names)
            return gg_error_set_nomem(err, im->n_datasets);
        GG_TRY(gguf_meta_set_strz(q->meta, "quantize.imatrix.dataset", names,
                                  err));
    }
    GG_TRY(gguf_meta_set_u32(q->meta, "quantize.imatrix.entries_count",
                             (uint32_t)GG_MIN(im->n_entries, UINT32_MAX),
                             err));
    if (im->n_chunks)
        GG_TRY(gguf_meta_set_u32(q->meta, "quantize.imatrix.chunks_count",
                                 (uint32_t)GG_MIN(im->n_chunks, UINT32_MAX),
                                 err));
    return GGUF_OK;
}

/* Set a key of the caller. It becomes the last one, as in llama-quantize. */
static enum gguf_status replace_key(struct gguf_quant *q,
                                    const struct gguf_kv *kv,
                                    struct gguf_error *err)
{
    char *key = gg_mem_arena_strndup(&q->arena, kv->key.data, kv->key.size);
    if (!key)
        return gg_error_set_nomem(err, kv->key.size + 1);
    gguf_meta_remove(q->meta, key);
    return gguf_meta_set_kv(q->meta, NULL, kv, err);
}

/* Remove the elements of pruned layers from an array with one element per
 * layer. */
static enum gguf_status prune_array(struct gguf_quant *q,
                                    const struct gguf_kv *kv,
                                    struct gguf_error *err)
{
    /* bytes before an element's value: a string's length, or an array's type
     * and length */
    size_t before = kv->elem_type == GGUF_VAL_STR   ? 8
                    : kv->elem_type == GGUF_VAL_ARR ? 12
                                                    : 0;
    uint8_t *left = gg_mem_alloc(q->p.allocator, kv->size);
    char *key = gg_mem_arena_strndup(&q->arena, kv->key.data, kv->key.size);
    enum gguf_status st = GGUF_E_NOMEM;
    if (left && key) {
        struct gguf_kv part = *kv, e; /* keeps its byte order */
        struct gguf_kv_iter it;
        const uint8_t *from = kv->data;
        gguf_kv_iter_init(&it, kv);
        part.data = left;
        part.n = part.size = 0;
        for (uint64_t i = 0; gguf_kv_iter_next(&it, &e); i++) {
            size_t size = before + e.size;
            if (!gg_job_is_pruned(q, (int64_t)i)) {
                memcpy(left + part.size, from, size);
                part.size += size;
                part.n++;
            }
            from += size;
        }
        st = gguf_meta_set_kv(q->meta, key, &part, err);
    } else {
        gg_error_set_nomem(err, kv->size);
    }
    gg_mem_free(q->p.allocator, left);
    return st;
}

/* Find the prefix of the model's own keys: its architecture or, without one,
 * the prefix of the only key *.block_count. GGUF_E_NOTFOUND: no such key. */
static enum gguf_status find_arch(const struct gguf_quant *q,
                                  struct gguf_str *arch,
                                  struct gguf_error *err)
{
    static const char end[] = ".block_count";
    struct gguf_str other = { NULL, 0 };
    struct gg_str_esc a, b;
    size_t n = 0;
    if (gguf_kv_get_str(gguf_meta_find(q->meta, "general.architecture"), arch,
                        NULL) == GGUF_OK)
        return GGUF_OK;
    for (size_t i = 0; !q->p.compat && i < gguf_meta_n_kv(q->meta); i++) {
        struct gguf_str key = gguf_meta_kv(q->meta, i)->key;
        if (!gg_str_ends(key, end))
            continue;
        other = *arch;
        *arch = (struct gguf_str){ key.data, key.size - strlen(end) };
        n++;
    }
    if (n < 2)
        return n ? GGUF_OK : GGUF_E_NOTFOUND;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "layers cannot be left out: there are '%s%s' "
                        "and '%s%s', and no general.architecture to "
                        "choose one",
                        gg_str_esc(&a, other), end, gg_str_esc(&b, *arch),
                        end);
}

/* Update the number of layers and the arrays with one element per layer. */
static enum gguf_status prune_keys(struct gguf_quant *q,
                                   struct gguf_error *err)
{
    char key[256], prefix[256];
    struct gguf_str arch = { NULL, 0 };
    enum gguf_status st = find_arch(q, &arch, err);
    /* copies, because arch may point into a key that is changed */
    if (st != GGUF_OK || !gg_str_join(prefix, sizeof prefix, arch, ".") ||
        !gg_str_join(key, sizeof key, arch, ".block_count"))
        return st == GGUF_E_NOTFOUND ? GGUF_OK : st;
    for (size_t i = 0; !q->p.compat && i < gguf_meta_n_kv(q->meta); i++) {
        const struct gguf_kv *kv = gguf_meta_kv(q->meta, i);
        if (kv->type == GGUF_VAL_ARR && kv->n == (uint64_t)q->n_layers &&
            gg_str_starts(kv->key, prefix))
            GG_TRY(prune_array(q, kv, err));
    }
    gguf_meta_remove(q->meta, key);
    return gguf_meta_set_u32(q->meta, key, (uint32_t)q->n_layers_left, err);
}

/* Write name and digest of the recipe. The digest distinguishes recipes of one
 * name. */
static enum gguf_status recipe_keys(struct gguf_quant *q,
                                    struct gguf_error *err)
{
    static const char name[] = "quantize.recipe.name";
    static const char digest[] = "quantize.recipe.digest";
    char text[80] = "xxh64:";
    struct gguf_digest d;
    const struct gguf_str recipe = gguf_recipe_text(q->p.recipe);
    gguf_meta_remove(q->meta, name);
    gguf_meta_remove(q->meta, digest);
    GG_TRY(gguf_digest_bytes(&d, GGUF_DIGEST_XXH64, recipe.data, recipe.size,
                             err));
    gguf_digest_format(&d, text + strlen(text));
    if (*gguf_recipe_name(q->p.recipe))
        GG_TRY(gguf_meta_set_strz(q->meta, name, gguf_recipe_name(q->p.recipe),
                                  err));
    return gguf_meta_set_strz(q->meta, digest, text, err);
}

/* Write the name and version of this library. */
static enum gguf_status tool_key(struct gguf_quant *q, struct gguf_error *err)
{
    static const char key[] = "quantize.tool";
    char text[64];
    snprintf(text, sizeof text, "libgguf %s", gguf_version_string());
    gguf_meta_remove(q->meta, key);
    return gguf_meta_set_strz(q->meta, key, text, err);
}

/* Does a converter write this model directly? Then its keys keep their order.
 * Otherwise two keys become the last ones, as after llama-quantize. */
static bool keeps_places(const struct gguf_quant *q)
{
    const int64_t base = q->p.recipe->base;
    return q->in.is_new && (base == GG_RECIPE_KEEP || base == GGUF_DTYPE_F32 ||
                            base == GGUF_DTYPE_F16 || base == GGUF_DTYPE_BF16);
}

/* ik_llama.cpp's numbers of file types with interleaved rows are 200 more than
 * those without, 399 (Q8_K_R8) excepted. false: the number stays, because most
 * bytes have types that it fits. */
static bool find_repacked_ftype(const struct gguf_quant *q,
                                const struct gguf_kv *old, uint32_t *ftype)
{
    uint64_t v, bytes[2] = { 0 };
    if (!q->p.repack_to || gguf_kv_get_uint(old, &v, NULL) != GGUF_OK)
        return false;
    for (size_t i = 0; i < q->n_t; i++) {
        const int to = gg_dtype_index(q->t[i].pub.to);
        bytes[to >= 0 && gg_interleave_rows(to) > 1] += q->t[i].pub.to_size;
    }
    const bool groups = bytes[1] > bytes[0];
    if (groups == (v > 200) || v == 399 || v > 600)
        return false;
    *ftype = (uint32_t)(groups ? v + 200 : v - 200);
    return true;
}

/* Write the keys with the version and the number of the types. */
static enum gguf_status type_keys(struct gguf_quant *q, struct gguf_error *err)
{
    static const char version[] = "general.quantization_version";
    static const char type[] = "general.file_type";
    const struct gguf_kv *old = gguf_meta_find(q->in.meta, type);
    const int ftype = q->p.recipe->ftype;
    const bool same = q->p.recipe->base == GG_RECIPE_KEEP && old;
    uint32_t repacked;
    /* the order of llama-quantize */
    if (!keeps_places(q)) {
        gguf_meta_remove(q->meta, version);
        gguf_meta_remove(q->meta, type);
    }
    GG_TRY(gguf_meta_set_u32(q->meta, version, GG_JOB_VERSION, err));
    if (ftype >= 0)
        return gguf_meta_set_u32(q->meta, type, (uint32_t)ftype, err);
    if (same && find_repacked_ftype(q, old, &repacked))
        return gguf_meta_set_u32(q->meta, type, repacked, err);
    if (same)
        return gguf_meta_set_kv(q->meta, NULL, old, err);
    /* this recipe has no number */
    gguf_meta_remove(q->meta, type);
    return GGUF_OK;
}

enum gguf_status gg_job_make_metadata(struct gguf_quant *q,
                                      struct gguf_error *err)
{
    GG_TRY(gguf_meta_create(&q->meta, q->p.allocator, err));
    for (size_t i = 0; i < gguf_meta_n_kv(q->in.meta); i++)
        GG_TRY(
            gguf_meta_set_kv(q->meta, NULL, gguf_meta_kv(q->in.meta, i), err));
    gg_file_split_remove_keys(q->meta);
    if (!q->p.compat) { /* layout and spare room of the old file */
        gguf_meta_remove(q->meta, GGUF_EDIT_PADDING_KEY);
        gg_file_split_layout_forget(q->meta);
    }
    GG_TRY(type_keys(q, err));
    if (!q->p.compat && (q->p.recipe->base != GG_RECIPE_KEEP || q->merge))
        GG_TRY(tool_key(q, err));
    if (!q->p.compat && q->p.recipe->base != GG_RECIPE_KEEP)
        GG_TRY(recipe_keys(q, err));
    GG_TRY(gg_job_set_lora_keys(q, err));
    q->ftype_given =
        q->p.meta && gguf_meta_find(q->p.meta, "general.file_type");
    for (size_t i = 0; q->p.meta && i < gguf_meta_n_kv(q->p.meta); i++)
        GG_TRY(replace_key(q, gguf_meta_kv(q->p.meta, i), err));
    if (q->p.imatrix)
        GG_TRY(imatrix_keys(q, err));
    return q->p.n_prune ? prune_keys(q, err) : GGUF_OK;
}
