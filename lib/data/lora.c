/* SPDX-License-Identifier: MIT */
/* lora.c - low-rank pairs in the file of an adapter */
#include "config.h"
#include "data/lora.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char a_end[] = ".lora_a", b_end[] = ".lora_b";

/* Bytes of a tensor name, and of a shape as text. */
enum { NAME = 256, SHAPE = 160 };

/* ---- messages ---- */

static const char *format_shape(char out[SHAPE], const int64_t *ne, unsigned n)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < n && used < SHAPE; i++) {
        const int k = snprintf(out + used, SHAPE - used, "%s%" PRId64,
                               i ? ", " : "", ne[i]);
        used += k > 0 ? (size_t)k : 0;
    }
    return out;
}

static const char *shape_of(char out[SHAPE], const struct gguf_tensor_info *t)
{
    return format_shape(out, t->ne, t->n_dims);
}

/* ---- metadata ---- */

static enum gguf_status check_word(const struct gguf_file *f, const char *key,
                                   const char *word, struct gguf_error *err)
{
    const struct gguf_kv *kv;
    struct gguf_str s;
    struct gg_str_esc e;
    GG_TRY(gguf_file_kv_get(f, key, &kv, err));
    GG_TRY(gguf_kv_get_str(kv, &s, err));
    return gg_str_eqz(s, word)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_MISMATCH, kv->off,
                              "the file is not a LoRA adapter: %s is '%s', "
                              "must be '%s'",
                              key, gg_str_esc(&e, s), word);
}

static enum gguf_status read_alpha(struct gg_lora *l, struct gguf_error *err)
{
    static const char key[] = "adapter.lora.alpha";
    const struct gguf_kv *kv = gguf_file_kv_find(l->file, key);
    if (!kv)
        return GGUF_OK;
    GG_TRY(gguf_kv_get_float(kv, &l->alpha, err));
    return isfinite(l->alpha) && fabs(l->alpha) <= 1e9
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_HPARAM, kv->off,
                              "%s is %g, must be from -1e9 to 1e9", key,
                              l->alpha);
}

static enum gguf_status read_keys(struct gg_lora *l, struct gguf_error *err)
{
    static const char tokens[] = "adapter.alora.invocation_tokens";
    const struct gguf_kv *kv;
    GG_TRY(check_word(l->file, "general.type", "adapter", err));
    GG_TRY(check_word(l->file, "adapter.type", "lora", err));
    GG_TRY(gguf_file_kv_get(l->file, "general.architecture", &kv, err));
    GG_TRY(gguf_kv_get_str(kv, &l->arch, err));
    kv = gguf_file_kv_find(l->file, tokens);
    if (kv)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, kv->off,
                            "%s: adapters that start at a sequence of "
                            "tokens are not supported",
                            tokens);
    return read_alpha(l, err);
}

/* ---- pairs ---- */

/* Cut an ending off a tensor name, leaving the name of the weight. Returns
 * false if the name does not end so. */
static bool cut_ending(struct gguf_str *name, const char *end)
{
    if (!gg_str_ends(*name, end) || name->size == strlen(end))
        return false;
    name->size -= strlen(end);
    return true;
}

static const struct gguf_tensor_info *
find_half(const struct gguf_file *f, struct gguf_str weight, const char *end)
{
    char name[NAME];
    return gg_str_join(name, sizeof name, weight, end)
               ? gguf_file_tensor_find(f, name)
               : NULL;
}

/* Check that the halves of a pair have the same rank and the same number of
 * matrices. */
static enum gguf_status check_pair(struct gg_lora_pair *p,
                                   struct gguf_error *err)
{
    const struct gguf_tensor_info *a = p->a, *b = p->b;
    const int64_t rank = p->looked_up ? a->ne[0] : a->ne[1];
    char sa[SHAPE], sb[SHAPE];
    struct gg_str_esc e, f;
    p->rank = b->ne[0];
    bool good = rank > 0 && rank == b->ne[0] && a->n_elements && b->n_elements;
    for (unsigned d = 2; d < GGUF_MAX_DIMS; d++)
        good = good && a->ne[d] == b->ne[d];
    if (good)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_TENSOR, a->info_off,
                        "tensor '%s' has shape [%s], and '%s' [%s]: "
                        "they are not a pair of one rank, %s",
                        gg_str_esc(&e, a->name), shape_of(sa, a),
                        gg_str_esc(&f, b->name), shape_of(sb, b),
                        p->looked_up ? "[rank, rows] and [rank, columns]"
                                     : "[columns, rank] and [rank, rows]");
}

static bool is_norm(const struct gguf_tensor_info *t)
{
    return t->n_dims == 1 && gg_str_ends(t->name, "_norm.weight");
}

/* Check a tensor of the file. Half A of a pair enters the pair in the list. */
static enum gguf_status take_half(struct gg_lora *l,
                                  const struct gguf_tensor_info *t,
                                  struct gguf_error *err)
{
    struct gguf_str weight = t->name;
    struct gg_str_esc e;
    const bool is_a = cut_ending(&weight, a_end),
               is_b = cut_ending(&weight, b_end);
    if (is_norm(t)) {
        l->n_norms++;
        return GGUF_OK;
    }
    if (!is_a && !is_b)
        return gg_error_set(err, GGUF_E_TENSOR, t->info_off,
                            "tensor '%s' is not half of a low-rank pair, "
                            "NAME%s and NAME%s: it would have no effect",
                            gg_str_esc(&e, t->name), a_end, b_end);
    const struct gguf_tensor_info *other =
        find_half(l->file, weight, is_a ? b_end : a_end);
    if (!other)
        return gg_error_set(err, GGUF_E_TENSOR, t->info_off,
                            "tensor '%s' has no other half, %s",
                            gg_str_esc(&e, t->name), is_a ? b_end : a_end);
    if (is_b)
        return GGUF_OK;
    struct gg_lora_pair *p = &l->pair[l->n_pairs++];
    *p = (struct gg_lora_pair){ .weight = weight, .a = t, .b = other };
    p->looked_up = gg_str_ends(weight, "token_embd.weight");
    return check_pair(p, err);
}

static int compare_names(struct gguf_str a, struct gguf_str b)
{
    const size_t n = a.size < b.size ? a.size : b.size;
    const int c = n ? memcmp(a.data, b.data, n) : 0;
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

static int compare_pairs(const void *x, const void *y)
{
    const struct gg_lora_pair *a = x, *b = y;
    return compare_names(a->weight, b->weight);
}

static enum gguf_status read_pairs(struct gg_lora *l, struct gguf_error *err)
{
    const size_t n = gguf_file_n_tensors(l->file);
    if (!n)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "the adapter has no tensors");
    l->pair = gg_mem_alloc_zero(l->allocator, n, sizeof *l->pair);
    if (!l->pair)
        return gg_error_set_nomem(err, n * sizeof *l->pair);
    for (size_t i = 0; i < n; i++)
        GG_TRY(take_half(l, gguf_file_tensor(l->file, i), err));
    if (!l->n_pairs)
        return gg_error_set(
            err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
            "the adapter has %zu norm%s and no low-rank pairs: "
            "it would have no effect",
            l->n_norms, l->n_norms == 1 ? "" : "s");
    qsort(l->pair, l->n_pairs, sizeof *l->pair, compare_pairs);
    return GGUF_OK;
}

enum gguf_status gg_lora_init(struct gg_lora *l, const struct gguf_file *file,
                              const struct gguf_allocator *allocator,
                              struct gguf_error *err)
{
    *l = (struct gg_lora){ .allocator = allocator, .file = file };
    if (!file)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the adapter's file is NULL");
    enum gguf_status st = read_keys(l, err);
    if (st == GGUF_OK)
        st = read_pairs(l, err);
    if (st != GGUF_OK)
        gg_lora_fini(l);
    return st;
}

void gg_lora_fini(struct gg_lora *l)
{
    gg_mem_free(l->allocator, l->pair);
    l->pair = NULL;
    l->n_pairs = 0;
}

/* ---- with a model ---- */

enum gguf_status gg_lora_check_arch(const struct gg_lora *l,
                                    struct gguf_str arch,
                                    struct gguf_error *err)
{
    struct gg_str_esc a, b;
    const struct gguf_kv *kv =
        gguf_file_kv_find(l->file, "general.architecture");
    return gg_str_eq(l->arch, arch)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_MISMATCH,
                              kv ? kv->off : GGUF_NO_OFFSET,
                              "the adapter is for architecture '%s', the "
                              "model has '%s'",
                              gg_str_esc(&a, l->arch), gg_str_esc(&b, arch));
}

const struct gg_lora_pair *gg_lora_find(const struct gg_lora *l,
                                        struct gguf_str weight)
{
    size_t low = 0, high = l->n_pairs;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int c = compare_names(l->pair[mid].weight, weight);
        if (!c)
            return &l->pair[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

enum gguf_status gg_lora_check_shape(const struct gg_lora_pair *p,
                                     const int64_t ne[GGUF_MAX_DIMS],
                                     struct gguf_error *err)
{
    int64_t a[GGUF_MAX_DIMS], b[GGUF_MAX_DIMS];
    char has[SHAPE], must[SHAPE], of[SHAPE];
    struct gg_str_esc e, w;
    memcpy(a, ne, sizeof a);
    memcpy(b, ne, sizeof b);
    if (p->looked_up) {
        a[0] = b[0] = p->rank;
        b[1] = ne[0];
    } else {
        a[1] = b[0] = p->rank;
    }
    const bool a_fits = !memcmp(p->a->ne, a, sizeof a);
    if (a_fits && !memcmp(p->b->ne, b, sizeof b))
        return GGUF_OK;
    const struct gguf_tensor_info *t = a_fits ? p->b : p->a;
    const unsigned n = ne[3] > 1 ? 4 : ne[2] > 1 ? 3 : 2;
    return gg_error_set(
        err, GGUF_E_TENSOR, t->info_off,
        "tensor '%s' has shape [%s], must be [%s]: '%s' has [%s]",
        gg_str_esc(&e, t->name), shape_of(has, t),
        format_shape(must, a_fits ? b : a, n), gg_str_esc(&w, p->weight),
        format_shape(of, ne, n));
}

enum gguf_status gg_lora_fail_missing_weight(const struct gg_lora_pair *p,
                                             struct gguf_error *err)
{
    struct gg_str_esc a, w;
    return gg_error_set(err, GGUF_E_TENSOR, p->a->info_off,
                        "tensor '%s': the model does not compute with "
                        "a matrix '%s'",
                        gg_str_esc(&a, p->a->name), gg_str_esc(&w, p->weight));
}

float gg_lora_factor(const struct gg_lora *l, const struct gg_lora_pair *p,
                     float scale)
{
    const double per_rank = l->alpha != 0 ? l->alpha / (double)p->rank : 1;
    return (float)((double)scale * per_rank);
}
