/* SPDX-License-Identifier: MIT */
/* model.c - totals of a model, and the order of its tensors */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/msg.h"

#include <gguf/recipe.h>
#include <gguf/text.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *info_type_name(uint32_t id, char *out)
{
    const struct gguf_dtype_info *d = gguf_dtype_find(id);
    if (d && d->family != GGUF_FAMILY_REMOVED)
        return d->name;
    snprintf(out, 32, "%s %" PRIu32, d ? "removed" : "unknown", id);
    return out;
}

double info_bits(uint64_t size, uint64_t n_elements)
{
    return n_elements ? 8.0 * (double)size / (double)n_elements : 0;
}

const struct gguf_kv *info_hparam(const struct info *info, const char *suffix)
{
    const struct gguf_file *f = info->load->file;
    struct gguf_str arch;
    char prefix[128], key[256];
    if (*suffix == '/')
        return gguf_file_kv_find(f, suffix + 1);
    if (gguf_kv_get_str(gguf_file_kv_find(f, "general.architecture"), &arch,
                        NULL) != GGUF_OK ||
        !text_copy(prefix, sizeof prefix, arch.data, arch.size))
        return NULL;
    snprintf(key, sizeof key, "%s.%s", prefix, suffix);
    return gguf_file_kv_find(f, key);
}

uint64_t info_n_vocab(const struct info *info)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(info->load->file, "tokenizer.ggml.tokens");
    return kv && kv->type == GGUF_VAL_ARR ? kv->n : 0;
}

/* ---- totals ---- */

static int by_size(const void *a, const void *b)
{
    const struct info_type *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Tensors of unknown types may claim any number of elements. */
static void add_saturating(uint64_t *sum, uint64_t n)
{
    *sum = n > UINT64_MAX - *sum ? UINT64_MAX : *sum + n;
}

static void count_tensor(struct info *info, const struct gguf_tensor_info *t)
{
    size_t i = 0;
    while (i < info->n_types && info->types[i].id != t->dtype)
        i++;
    if (i == info->n_types) {
        info->types = msg_grow(info->types, &info->room_types, i + 1,
                               sizeof info->types[0]);
        info->types[i] = (struct info_type){ t->dtype, 0, 0, 0 };
        info->n_types++;
    }
    info->types[i].n_tensors++;
    add_saturating(&info->types[i].n_elements, t->n_elements);
    info->types[i].size += t->size;
    add_saturating(&info->n_elements, t->n_elements);
    info->data_size += t->size;
}

/* ---- list of tensors ---- */

static int by_name(const struct gguf_tensor_info *x,
                   const struct gguf_tensor_info *y)
{
    const struct gguf_str s = x->name, t = y->name;
    int c = memcmp(s.data, t.data, s.size < t.size ? s.size : t.size);
    return c ? c : s.size < t.size ? -1 : s.size > t.size;
}

static int compare_sizes(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_bytes(const struct gguf_tensor_info *x,
                    const struct gguf_tensor_info *y)
{
    return compare_sizes(y->size, x->size);
}

static int by_type(const struct gguf_tensor_info *x,
                   const struct gguf_tensor_info *y)
{
    return compare_sizes(x->dtype, y->dtype);
}

static int by_elements(const struct gguf_tensor_info *x,
                       const struct gguf_tensor_info *y)
{
    return compare_sizes(y->n_elements, x->n_elements);
}

static int by_offset(const struct gguf_tensor_info *x,
                     const struct gguf_tensor_info *y)
{
    int c = compare_sizes(x->shard, y->shard);
    return c ? c : compare_sizes(x->off, y->off);
}

typedef int order_fn(const struct gguf_tensor_info *x,
                     const struct gguf_tensor_info *y);

static order_fn *const orders[] = {
    [INFO_BY_PLACE] = NULL,           [INFO_BY_NAME] = by_name,
    [INFO_BY_SIZE] = by_bytes,        [INFO_BY_TYPE] = by_type,
    [INFO_BY_ELEMENTS] = by_elements, [INFO_BY_OFFSET] = by_offset,
};

struct row {
    const struct gguf_tensor_info *t;
    order_fn *order;
};

static int by_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int c = x->order(x->t, y->t);
    return c ? c : compare_sizes(x->t->index, y->t->index);
}

static void make_list(struct info *info, const struct info_options *o)
{
    size_t n = gguf_file_n_tensors(info->load->file), k = 0;
    struct row *rows = msg_must(calloc(n ? n : 1, sizeof *rows));
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor_info *t =
            gguf_file_tensor(info->load->file, i);
        count_tensor(info, t);
        if (!o->glob || text_glob(o->glob, t->name))
            rows[k++] = (struct row){ t, orders[o->sort] };
    }
    if (orders[o->sort])
        qsort(rows, k, sizeof *rows, by_order);
    info->list = msg_must(calloc(k ? k : 1, sizeof *info->list));
    for (size_t i = 0; i < k; i++)
        info->list[i] = rows[i].t->index;
    info->n_list = k;
    free(rows);
}

/* Name of the recipe whose number is id, or NULL. */
static const char *file_type(uint64_t id)
{
    struct gguf_recipe *r;
    char number[24];
    const char *name = NULL;
    snprintf(number, sizeof number, "%" PRIu64, id);
    if (gguf_recipe_preset(&r, number, NULL, NULL) != GGUF_OK)
        return NULL;
    for (size_t i = 0; !name && gguf_recipe_preset_name(i); i++)
        if (!strcmp(gguf_recipe_preset_name(i), gguf_recipe_name(r)))
            name = gguf_recipe_preset_name(i); /* static, unlike that of r */
    gguf_recipe_destroy(r);
    return name;
}

void info_init(struct info *info, const struct load *load,
               const struct info_options *o)
{
    *info = (struct info){ .load = load };
    make_list(info, o);
    if (info->n_types)
        qsort(info->types, info->n_types, sizeof *info->types, by_size);
    info->file_size = gguf_file_size(load->file);
    uint64_t id;
    if (gguf_kv_get_uint(gguf_file_kv_find(load->file, "general.file_type"),
                         &id, NULL) == GGUF_OK)
        info->file_type = file_type(id);
}

void info_fini(struct info *info)
{
    free(info->types);
    free(info->list);
}
