/* SPDX-License-Identifier: MIT */
/* quantized.c - weights that a quantization method stores in several tensors
 *
 * "quantization_config" of config.json names a method. A table lists the
 * supported methods; others are refused by name.
 */
#include "config.h"
#include "convert/folder/folder.h"

#include "base/compiler.h"
#include "base/str.h"
#include "data/nibbles.h"
#include "data/packed.h"

#include <stdio.h>

struct method {
    struct gg_folder *f;
    const json_t *config;       /* object that describes the method, in text */
    const struct gg_json *text; /* JSON text of the file */
    const char *where;
    struct gg_packed_config packed;
};

static enum gguf_status refuse_method(const struct method *m, const char *name,
                                      struct gguf_error *err)
{
    const json_t *v = json_object_get(m->config, name);
    struct gguf_str text;
    struct gg_str_esc e;
    char number[32] = "missing";
    if (json_is_integer(v))
        snprintf(number, sizeof number, "%lld",
                 (long long)json_integer_value(v));
    return gg_error_set(err, GGUF_E_UNSUPPORTED,
                        gg_json_offset_of(m->text, v ? v : m->config),
                        "%s: %s '%s' is not supported", m->where, name,
                        gg_json_str(v, &text) ? gg_str_esc(&e, text) : number);
}

/* Is text NAME one of these, or not there? */
static bool is_one(const struct method *m, const char *name,
                   const char *const *texts)
{
    struct gguf_str s;
    if (!gg_json_str(json_object_get(m->config, name), &s))
        return true;
    for (; *texts; texts++)
        if (gg_str_eqz(s, *texts))
            return true;
    return false;
}

/* Columns that share a scale; -1: all. */
static void use_group(struct method *m, const json_t *of)
{
    int64_t n;
    if (gg_json_int(json_object_get(of, "group_size"), &n) && n > 0)
        m->packed.group = (uint64_t)n;
}

static enum gguf_status use_gptq(struct method *m, struct gguf_error *err)
{
    static const char *const formats[] = { "gptq", "gptq_v2", NULL };
    int64_t bits;
    struct gguf_str format = GG_STR("gptq");
    if (!is_one(m, "checkpoint_format", formats))
        return refuse_method(m, "checkpoint_format", err);
    if (!gg_json_int(json_object_get(m->config, "bits"), &bits) ||
        (bits != 2 && bits != 3 && bits != 4 && bits != 8))
        return refuse_method(m, "bits", err);
    (void)gg_json_str(json_object_get(m->config, "checkpoint_format"),
                      &format);
    m->packed.form = GG_PACKED_GPTQ;
    m->packed.bits = (unsigned)bits;
    m->packed.zero_plus_1 = gg_str_eqz(format, "gptq");
    use_group(m, m->config);
    return gg_packed_join(m->f->weights, &m->packed, err);
}

static enum gguf_status use_awq(struct method *m, struct gguf_error *err)
{
    static const char *const versions[] = { "gemm", "GEMM", NULL };
    int64_t bits;
    if (!is_one(m, "version", versions))
        return refuse_method(m, "version", err);
    if (!gg_json_int(json_object_get(m->config, "bits"), &bits) || bits != 4)
        return refuse_method(m, "bits", err);
    m->packed.form = GG_PACKED_AWQ;
    m->packed.bits = 4;
    use_group(m, m->config);
    return gg_packed_join(m->f->weights, &m->packed, err);
}

/* Signed bytes hold two 4-bit numbers, not 8-bit floats. */
static enum gguf_status use_f8(struct method *m, struct gguf_error *err)
{
    const json_t *block = json_object_get(m->config, "weight_block_size");
    int64_t rows, cols;
    if (gg_json_int(json_array_get(block, 0), &rows) &&
        gg_json_int(json_array_get(block, 1), &cols) && rows > 0 && cols > 0) {
        m->f->weights->block[0] = (uint64_t)cols;
        m->f->weights->block[1] = (uint64_t)rows;
    }
    m->packed.form = GG_PACKED_E2M1;
    return gg_packed_join(m->f->weights, &m->packed, err);
}

static enum gguf_status use_mxfp4(struct method *m, struct gguf_error *err)
{
    m->packed.form = GG_PACKED_MXFP4;
    return gg_packed_join(m->f->weights, &m->packed, err);
}

/* All groups of layers must store weights in one form, with one group size of
 * columns, if they name it. */
static enum gguf_status use_compressed(struct method *m,
                                       struct gguf_error *err)
{
    static const char *const words[] = { "pack-quantized", NULL };
    static const char *const bytes[] = { "int-quantized", NULL };
    static const char *const nvfp4[] = { "nvfp4-pack-quantized", NULL };
    static const char *const mxfp4[] = { "mxfp4-pack-quantized", NULL };
    static const char *const either[] = { "float-quantized", "naive-quantized",
                                          NULL };
    const json_t *weights = NULL;
    const char *key;
    json_t *group;
    json_object_foreach(
        json_object_get((json_t *)(uintptr_t)m->config, "config_groups"), key,
        group)
    {
        weights = json_object_get(group, "weights");
        use_group(m, weights);
    }
    if (json_object_size(json_object_get(m->config, "config_groups")) > 1)
        m->packed.group = 0;
    if (!json_is_string(json_object_get(m->config, "format")))
        return refuse_method(m, "format", err);
    if (is_one(m, "format", nvfp4))
        return gg_nibbles_join(m->f->weights, GG_NIBBLES_NVFP4_PACK, err);
    if (is_one(m, "format", mxfp4)) {
        m->packed.form = GG_PACKED_MXFP4_PACK;
        return gg_packed_join(m->f->weights, &m->packed, err);
    }
    const json_t *block = json_object_get(weights, "block_structure");
    int64_t rows, cols;
    if (gg_json_int(json_array_get(block, 0), &rows) &&
        gg_json_int(json_array_get(block, 1), &cols) && rows > 0 && cols > 0) {
        m->f->weights->block[0] = (uint64_t)cols;
        m->f->weights->block[1] = (uint64_t)rows;
    } else if (m->packed.group) {
        m->f->weights->block[0] = m->packed.group;
    }
    if (is_one(m, "format", words))
        m->packed.form = GG_PACKED_WORDS;
    else if (is_one(m, "format", bytes) || is_one(m, "format", either))
        m->packed.form = GG_PACKED_INT;
    else
        return refuse_method(m, "format", err);
    return gg_packed_join(m->f->weights, &m->packed, err);
}

/* Matrices of 4 bits, or of 8 with a scale for each row. */
static enum gguf_status use_bnb(struct method *m, struct gguf_error *err)
{
    m->packed.form = GG_PACKED_SCB;
    GG_TRY(gg_packed_join(m->f->weights, &m->packed, err));
    return gg_nibbles_join(m->f->weights, GG_NIBBLES_BNB, err);
}

static enum gguf_status use_modelopt(struct method *m, struct gguf_error *err)
{
    static const char *const algos[] = { "NVFP4", "FP8", NULL };
    if (!json_is_string(json_object_get(m->config, "quant_algo")) ||
        !is_one(m, "quant_algo", algos))
        return refuse_method(m, "quant_algo", err);
    return gg_nibbles_join(m->f->weights, GG_NIBBLES_NVFP4, err);
}

static const struct {
    const char *name;
    enum gguf_status (*use)(struct method *m, struct gguf_error *err);
} methods[] = {
    { "gptq", use_gptq },        { "awq", use_awq },
    { "fp8", use_f8 },           { "fbgemm_fp8", use_f8 },
    { "mxfp4", use_mxfp4 },      { "compressed-tensors", use_compressed },
    { "bitsandbytes", use_bnb }, { "modelopt", use_modelopt },
};

/* Scales of activations and of the memory of keys and values change no
 * weight. */
static void drop_activation_scales(struct gg_folder *f)
{
    static const char *const ends[] = {
        ".input_scale",       ".input_scale_ub", ".activation_scale",
        ".k_scale",           ".v_scale",        ".q_scale",
        ".output_scale",      ".kv_scale",       ".weight_format",
        ".input_global_scale"
    };
    for (size_t i = 0; i < f->weights->n_tensors; i++)
        for (size_t k = 0; k < GG_LEN(ends); k++)
            if (gg_str_ends(f->weights->tensor[i].name, ends[k]))
                f->weights->tensor[i].is_part = true;
}

static enum gguf_status use_method(struct method *m, struct gguf_error *err)
{
    struct gguf_str name = GG_STR("");
    (void)gg_json_str(json_object_get(m->config, "quant_method"), &name);
    for (size_t i = 0; i < GG_LEN(methods); i++)
        if (gg_str_eqz(name, methods[i].name)) {
            GG_TRY(methods[i].use(m, err));
            drop_activation_scales(m->f);
            return GGUF_OK;
        }
    return refuse_method(m, "quant_method", err);
}

/* Refuse weights of MLX: config.json has group_size and bits but no
 * quant_method. */
static enum gguf_status refuse_mlx(const struct gg_folder *f,
                                   struct gguf_error *err)
{
    static const char names[] = "quantization quantization_config";
    const json_t *v = gg_folder_get_config(f, names);
    if (!json_is_object(v) || json_object_get(v, "quant_method") ||
        !json_object_get(v, "group_size") || !json_object_get(v, "bits"))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED,
                        gg_json_offset_of(&f->text[GG_CONVERT_CONFIG].json, v),
                        "config.json: weights quantized by MLX "
                        "(group_size, bits, no quant_method) are not "
                        "supported: convert the original model, or the "
                        "output of 'mlx_lm.convert --dequantize'");
}

/* File of modelopt beside a config.json without quantization_config. */
static const char modelopt_file[] = "hf_quant_config.json";

static enum gguf_status use_file(struct method *m, struct gg_json *json,
                                 const struct gg_mapfile *map,
                                 struct gguf_error *err)
{
    GG_TRY(gg_convert_prefix_error(modelopt_file,
                                   gg_json_read(json, (const char *)map->data,
                                                (size_t)map->size, 0,
                                                GG_JSON_PYTHON, err),
                                   err));
    m->config = json_object_get(json->root, "quantization");
    m->text = json;
    m->where = "hf_quant_config.json: quantization";
    if (!json_is_object(m->config))
        return gg_error_set(
            err, GGUF_E_FORMAT, gg_json_offset_of(json, json->root),
            "%s: missing object \"quantization\"", modelopt_file);
    GG_TRY(use_modelopt(m, err));
    drop_activation_scales(m->f);
    return GGUF_OK;
}

/* Does the folder have scales of matrices, which require a description? */
static bool has_scales(const struct gg_folder *f)
{
    for (size_t i = 0; i < f->weights->n_tensors; i++)
        if (gg_str_ends(f->weights->tensor[i].name, ".weight_scale"))
            return true;
    return false;
}

enum gguf_status gg_folder_join_quantized(struct gg_folder *f,
                                          struct gguf_error *err)
{
    struct method m = {
        .f = f,
        .config =
            gg_folder_get_config(f, "quantization_config compression_config"),
        .text = &f->text[GG_CONVERT_CONFIG].json,
        .where = "config.json: quantization_config",
    };
    GG_TRY(refuse_mlx(f, err));
    if (json_is_object(m.config)) {
        GG_TRY(use_method(&m, err));
    } else if (has_scales(f)) {
        struct gg_mapfile map = { .fd = -1 };
        struct gg_json json = { .root = NULL };
        bool there;
        GG_TRY(gg_folder_map(f, modelopt_file, &map, &there, err));
        const enum gguf_status st =
            there ? use_file(&m, &json, &map, err) : GGUF_OK;
        gg_json_fini(&json);
        gg_mapfile_close(&map);
        GG_TRY(st);
    }
    return gg_safetensors_scale(f->weights, err);
}
