/* SPDX-License-Identifier: MIT */
/* json_view.c - the JSON view: gguf-info.schema.json */
#include "config.h"
#include "tools/info/info.h"

#include <string.h>

static void json_scalar(struct json *j, const struct gguf_kv *kv)
{
    struct gguf_str s;
    uint64_t u;
    int64_t i;
    double d;
    float f;
    bool b;
    if (gguf_kv_get_str(kv, &s, NULL) == GGUF_OK)
        json_str(j, NULL, s);
    else if (gguf_kv_get_bool(kv, &b, NULL) == GGUF_OK)
        json_bool(j, NULL, b);
    else if (gguf_kv_get_f32(kv, &f, NULL) == GGUF_OK)
        json_f32(j, NULL, f);
    else if (gguf_kv_get_f64(kv, &d, NULL) == GGUF_OK)
        json_f64(j, NULL, d);
    else if (gguf_kv_get_uint(kv, &u, NULL) == GGUF_OK)
        json_u64(j, NULL, u);
    else if (gguf_kv_get_int(kv, &i, NULL) == GGUF_OK)
        json_i64(j, NULL, i);
    else
        json_null(j, NULL);
}

void info_json_value(struct json *j, const struct gguf_kv *kv,
                     uint64_t max_elems)
{
    if (kv->type != GGUF_VAL_ARR) {
        json_scalar(j, kv);
        return;
    }
    bool one_line = kv->elem_type != GGUF_VAL_STR &&
                    kv->elem_type != GGUF_VAL_ARR && kv->n <= 64;
    struct gguf_kv_iter it;
    struct gguf_kv e;
    json_open(j, NULL, one_line ? '(' : '[');
    gguf_kv_iter_init(&it, kv);
    for (uint64_t i = 0; i < max_elems && gguf_kv_iter_next(&it, &e); i++)
        info_json_value(j, &e, max_elems);
    json_close(j);
}

/* Write the value of kv as member key, if kv is not NULL. */
static void json_member(struct json *j, const char *key,
                        const struct gguf_kv *kv)
{
    if (!kv)
        return;
    json_key(j, (struct gguf_str){ key, strlen(key) });
    info_json_value(j, kv, UINT64_MAX);
}

static void json_summary(struct json *j, const struct info *info,
                         const struct info_options *o)
{
    const struct gguf_file *f = info->load->file;
    char name[32];
    json_open(j, "summary", '{');
    json_member(j, "architecture",
                gguf_file_kv_find(f, "general.architecture"));
    json_member(j, "name", gguf_file_kv_find(f, "general.name"));
    json_member(j, "license", gguf_file_kv_find(f, "general.license"));
    if (info->file_type)
        json_strz(j, "quantization", info->file_type);
    if (info->n_types)
        json_strz(j, "main_type", info_type_name(info->types[0].id, name));
    json_u64(j, "parameters", info->n_elements);
    json_u64(j, "data_size", info->data_size);
    json_f64(j, "bits_per_weight",
             info_bits(info->data_size, info->n_elements));
    const struct gguf_hparam *h;
    for (size_t i = 0; (h = gguf_hparam_at(i)) != NULL; i++)
        if (h->flags & GGUF_HPARAM_SUMMARY)
            json_member(j, h->name, info_hparam(info, h->key));
    if (info_n_vocab(info))
        json_u64(j, "vocabulary_size", info_n_vocab(info));
    json_member(j, "tokenizer", gguf_file_kv_find(f, "tokenizer.ggml.model"));
    info_projector_json(j, info);
    info_inferred(j, info, o);
    json_close(j);
}

static void json_files(struct json *j, const struct info *info)
{
    json_open(j, "files", '[');
    for (size_t i = 0; i < gguf_file_n_shards(info->load->file); i++) {
        const struct gguf_file *f = gguf_file_shard(info->load->file, i);
        json_open(j, NULL, '{');
        json_strz(j, "path", gguf_file_path(f));
        json_u64(j, "version", gguf_file_version(f));
        json_strz(j, "byte_order",
                  gguf_file_is_big_endian(f) ? "big" : "little");
        json_u64(j, "alignment", gguf_file_alignment(f));
        json_u64(j, "size", gguf_file_size(f));
        json_u64(j, "data_offset", gguf_file_data_off(f));
        json_u64(j, "tensors", gguf_file_n_tensors(f));
        json_close(j);
    }
    json_close(j);
}

static void json_metadata(struct json *j, const struct info *info,
                          const struct info_options *o)
{
    const struct gguf_file *f = info->load->file;
    uint64_t max =
        o->limits_given & INFO_ARRAYS ? o->limits.elems : UINT64_MAX;
    json_open(j, "metadata", '{');
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        json_key(j, kv->key);
        json_open(j, NULL, '{');
        json_strz(j, "type", gguf_val_type_name(kv->type));
        if (kv->type == GGUF_VAL_ARR) {
            json_strz(j, "element_type", gguf_val_type_name(kv->elem_type));
            json_u64(j, "length", kv->n);
        }
        json_key(j, (struct gguf_str){ "value", 5 });
        info_json_value(j, kv, max);
        json_close(j);
    }
    json_close(j);
}

static void json_tensors(struct json *j, const struct info *info)
{
    char name[32];
    json_open(j, "tensors", '[');
    for (size_t i = 0; i < info->n_list; i++) {
        const struct gguf_file *file = info->load->file;
        const struct gguf_tensor_info *t =
            gguf_file_tensor(file, info->list[i]);
        const uint64_t data_off =
            gguf_file_data_off(gguf_file_shard(file, t->shard));
        json_open(j, NULL, '{');
        json_str(j, "name", t->name);
        json_i64s(j, "shape", t->n_dims, t->ne);
        json_strz(j, "type", info_type_name(t->dtype, name));
        json_u64(j, "type_id", t->dtype);
        json_u64(j, "elements", t->n_elements);
        json_u64(j, "size", t->size);
        if (t->size_inferred)
            json_bool(j, "size_inferred", true);
        json_u64(j, "offset", data_off + t->off);
        json_u64(j, "file", t->shard);
        json_close(j);
    }
    json_close(j);
}

static void json_types(struct json *j, const struct info *info)
{
    char name[32];
    json_open(j, "types", '[');
    for (size_t i = 0; i < info->n_types; i++) {
        const struct info_type *x = &info->types[i];
        json_open(j, NULL, '{');
        json_strz(j, "type", info_type_name(x->id, name));
        json_u64(j, "type_id", x->id);
        json_u64(j, "tensors", x->n_tensors);
        json_u64(j, "elements", x->n_elements);
        json_u64(j, "size", x->size);
        json_f64(j, "bits_per_weight", info_bits(x->size, x->n_elements));
        json_close(j);
    }
    json_close(j);
}

bool info_json(struct json *j, const struct info *info,
               const struct info_options *o)
{
    json_open(j, NULL, '{');
    json_strz(j, "path", info->load->path);
    json_u64(j, "size", info->file_size);
    json_files(j, info);
    if (o->show & SHOW_SUMMARY)
        json_summary(j, info, o);
    if (o->show & SHOW_METADATA)
        json_metadata(j, info, o);
    if (o->show & SHOW_TENSORS)
        json_tensors(j, info);
    if (o->show & SHOW_TYPES)
        json_types(j, info);
    if (o->show & SHOW_MEMORY)
        info_memory(j, info, o);
    bool good = !(o->show & SHOW_STATS) || info_stats(j, info, o);
    if (o->show & SHOW_HASH)
        good &= info_hash(j, info, o);
    if (o->show & SHOW_CHECK)
        good &= info_check(j, info, o);
    json_close(j);
    return good;
}
