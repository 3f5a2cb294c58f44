/* SPDX-License-Identifier: MIT */
/* peft.c - a PEFT folder of a LoRA adapter
 *
 * adapter_config.json has the kind of adapter and its alpha.
 * adapter_model.safetensors has for each module MODULE.lora_A.weight [rank,
 * columns] and MODULE.lora_B.weight [rows, rank], and for embeddings
 * MODULE.lora_embedding_A [rank, rows] and ..._B [columns, rank], all with the
 * prefix "base_model.model." (huggingface/peft, tuners/lora). A change of the
 * order of a weight's rows applies to the rows of B. data/lora.h describes the
 * tensors of the file.
 */
#include "config.h"
#include "convert/back/back.h"
#include "convert/convert_int.h"

#include "base/compiler.h"
#include "base/os/os.h"
#include "base/str.h"
#include "quant/job/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct gg_json *adapter_json(const struct gguf_convert *c)
{
    return &c->folder.adapter.json;
}

static enum gguf_status refuse_member(const struct gguf_convert *c,
                                      const char *name, const char *what,
                                      struct gguf_error *err)
{
    const json_t *v = json_object_get(adapter_json(c)->root, name);
    return gg_error_set(err, GGUF_E_UNSUPPORTED,
                        gg_json_offset_of(adapter_json(c), v),
                        "adapter_config.json: %s: %s", name, what);
}

/* Is the member there, and neither null, false, empty nor this text? */
static bool has_member_value(const struct gguf_convert *c, const char *name,
                             const char *nothing)
{
    const json_t *v = json_object_get(adapter_json(c)->root, name);
    struct gguf_str s;
    if (!v || json_is_null(v) || json_is_false(v))
        return false;
    if (gg_json_str(v, &s))
        return s.size && !(nothing && gg_str_eqz(s, nothing));
    return (!json_is_array(v) || json_array_size(v)) &&
           (!json_is_object(v) || json_object_size(v));
}

/* Refuse a property that a file of pairs cannot have; name the step that
 * helps. */
static enum gguf_status refuse_kind(const struct gguf_convert *c,
                                    const char *name, const char *what,
                                    struct gguf_error *err)
{
    char text[300];
    snprintf(text, sizeof text,
             "%s; merge the adapter into its model (PEFT's "
             "merge_and_unload()) and convert that",
             what);
    return refuse_member(c, name, text, err);
}

static enum gguf_status check_config(const struct gguf_convert *c,
                                     struct gguf_error *err)
{
    static const struct {
        const char *name, *nothing, *what;
    } others[] = {
        { "peft_type", "LORA", "only LORA becomes a file" },
        { "use_dora", NULL, "a file has no place for magnitudes (DoRA)" },
        { "modules_to_save", NULL,
          "a file has no place for weights beside the pairs" },
        { "bias", "none", "a file has no place for biases" },
        { "lora_bias", NULL, "a file has no place for biases" },
        { "layer_replication", NULL, "a file cannot repeat layers" },
        { "alpha_pattern", NULL, "a file has one alpha" },
        { "target_parameters", NULL,
          "pairs of parameters that are no modules are not read" },
    };
    const json_t *kind =
        json_object_get(adapter_json(c)->root, "fine_tune_type");
    if (kind && !json_object_get(adapter_json(c)->root, "peft_type"))
        return gg_error_set(err, GGUF_E_UNSUPPORTED,
                            gg_json_offset_of(adapter_json(c), kind),
                            "adapter_config.json: adapters of MLX "
                            "(fine_tune_type) are not supported: merge it "
                            "with mlx_lm.fuse and convert the model");
    for (size_t i = 0; i < GG_LEN(others); i++)
        if (has_member_value(c, others[i].name, others[i].nothing))
            return refuse_kind(c, others[i].name, others[i].what, err);
    if (has_member_value(c, "use_rslora", NULL) &&
        has_member_value(c, "rank_pattern", NULL))
        return refuse_kind(c, "rank_pattern",
                           "with use_rslora each rank has another alpha", err);
    return GGUF_OK;
}

static enum gguf_status has_file(const struct gguf_convert *c,
                                 const char *name, bool *has,
                                 struct gguf_error *err)
{
    struct gg_mapfile m = { .fd = -1 };
    GG_TRY(gg_convert_prefix_error(
        name, gg_dir_open(&c->folder.dir, name, &m, has, err), err));
    if (*has)
        gg_mapfile_close(&m);
    return GGUF_OK;
}

/* Does the folder contain a whole model as well? */
static enum gguf_status has_model(const struct gguf_convert *c, bool *has,
                                  struct gguf_error *err)
{
    bool config, one, several = false;
    GG_TRY(has_file(c, "config.json", &config, err));
    GG_TRY(has_file(c, "model.safetensors", &one, err));
    if (!one)
        GG_TRY(has_file(c, "model.safetensors.index.json", &several, err));
    *has = config && (one || several);
    return GGUF_OK;
}

enum gguf_status gg_convert_adapter_open(struct gguf_convert *c, bool *yes,
                                         struct gguf_error *err)
{
    bool whole = false;
    struct gg_convert_text *t = &c->folder.adapter;
    *t = (struct gg_convert_text){ .name = "adapter_config.json",
                                   .map = { .fd = -1 } };
    GG_TRY(gg_folder_map(&c->folder, t->name, &t->map, yes, err));
    if (*yes && !c->p.base)
        GG_TRY(has_model(c, &whole, err));
    if (whole)
        gg_folder_note(&c->folder,
                       "the folder has a model and an adapter "
                       "(adapter_config.json): the model is converted; "
                       "--base MODEL converts the adapter");
    *yes = *yes && !whole;
    if (!*yes)
        return GGUF_OK;
    GG_TRY(gg_convert_prefix_error(
        t->name,
        gg_json_read(&t->json, (const char *)t->map.data, (size_t)t->map.size,
                     0, GG_JSON_PYTHON, err),
        err));
    return check_config(c, err);
}

/* config.json of the model that it is for. */
enum gguf_status gg_convert_adapter_base(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    struct gg_os_stat s;
    struct gg_str_esc e;
    struct gg_dir own = c->folder.dir, base = own;
    struct gguf_str name = GG_STR("");
    (void)gg_json_str(
        json_object_get(adapter_json(c)->root, "base_model_name_or_path"),
        &name);
    if (!c->p.base)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "an adapter: --base says which model it is for "
                            "(adapter_config.json names %s%s%s)",
                            name.size ? "'" : "none", gg_str_esc(&e, name),
                            name.size ? "'" : "");
    base.path = c->p.base;
    if ((gg_os_stat(base.path, &s) == 0 && s.kind == GG_OS_FOLDER) ||
        gg_dir_is_remote(&base)) {
        c->folder.dir = base;
        enum gguf_status st = gg_folder_read_texts(&c->folder, err);
        if (st == GGUF_OK)
            st = gg_folder_find_config(&c->folder, err);
        bool adapter = false;
        if (st == GGUF_E_NOTFOUND &&
            has_file(c, c->folder.adapter.name, &adapter, NULL) == GGUF_OK &&
            adapter)
            st = gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                              "the folder is an adapter, too, expected its "
                              "base model");
        c->folder.dir = own;
        return gg_convert_prefix_error(c->p.base, st, err);
    }
    if (gg_str_ends(gg_str_z(c->p.base), ".json") ||
        gg_str_ends(gg_str_z(c->p.base), ".safetensors"))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "--base: '%s' is neither a folder nor a GGUF "
                            "file; the folder that it is in may be meant",
                            gg_str_esc(&e, gg_str_z(c->p.base)));
    char *text;
    size_t size;
    GG_TRY(gg_convert_prefix_error(
        c->p.base,
        gg_back_read_config(c->p.base, c->p.limits, &c->arena,
                            c->folder.opened, &text, &size, err),
        err));
    c->folder.text[GG_CONVERT_CONFIG].name = "config.json";
    GG_TRY(gg_json_read(&c->folder.text[GG_CONVERT_CONFIG].json, text, size, 0,
                        GG_JSON_PYTHON, err));
    c->folder.config = c->folder.text[GG_CONVERT_CONFIG].json.root;
    return GGUF_OK;
}

/* Refuse pairs of layers that the base does not have: it is another model. */
static enum gguf_status check_layers(const struct gguf_convert *c,
                                     struct gguf_error *err)
{
    static const char names[] =
        "num_hidden_layers n_layer n_layers num_layers "
        "num_transformer_layers";
    const struct gg_hf_config cfg = gg_convert_config(c);
    struct gg_str_esc e;
    const double n = gg_hf_config_num(&cfg, names, -1);
    for (size_t i = 0; i < c->parts.n_items && c->n_layers == INT64_MAX; i++) {
        const struct gg_convert_item *item = &c->parts.item[i];
        if (gg_str_starts(item->to, "blk.") && (double)item->layer >= n)
            return gg_error_set(
                err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                "tensor '%s' of the adapter belongs to layer %" PRId64
                ", the base model has %.0f, from 0 on; --base "
                "may name another model",
                gg_str_esc(&e, c->folder.weights->tensor[item->from].name),
                item->layer, n);
    }
    return GGUF_OK;
}

/* Check pairs: after sorting, both halves of a pair are neighbours. */
static enum gguf_status check_pairs(const struct gguf_convert *c,
                                    int64_t *rank, struct gguf_error *err)
{
    struct gg_str_esc e;
    for (size_t i = 0; i < c->out.n_tensors; i += 2) {
        const struct gg_composed_tensor *a = &c->out.made[i], *b = a + 1;
        const bool pair =
            i + 1 < c->out.n_tensors && a->name.size == b->name.size &&
            !memcmp(a->name.data, b->name.data, a->name.size - 1) &&
            gg_str_ends(a->name, "a") && gg_str_ends(b->name, "b");
        const bool looked_up = gg_str_starts(a->name, "token_embd.");
        if (!pair || a->ne[looked_up ? 0 : 1] != b->ne[0])
            return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "tensor '%s' %s", gg_str_esc(&e, a->name),
                                pair ? "and its other half have two ranks"
                                     : "lacks its other half");
        *rank = b->ne[0];
    }
    return GGUF_OK;
}

/* Note tensors of vision or audio parts, which the file lacks. Refuse an
 * adapter that has no others. */
static enum gguf_status check_unused(const struct gguf_convert *c,
                                     struct gguf_error *err)
{
    char name[GG_CONVERT_NAME], as[GG_CONVERT_NAME];
    struct gg_str_esc e = { "" };
    size_t n = 0;
    for (size_t i = 0; i < c->parts.n_left; i++) {
        const struct gguf_str t =
            c->folder.weights->tensor[c->parts.left[i]].name;
        bool nothing = false;
        if (gg_convert_adapter_name(t, name) == GG_HALF_NONE)
            continue;
        (void)gg_convert_normalize_name(c, gg_str_z(name), as, &nothing);
        if (nothing && !n++)
            gg_str_esc(&e, t);
    }
    if (!c->out.n_tensors)
        return n ? gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "the adapter changes nothing in the language "
                                "model: all of its %zu tensors are for vision "
                                "or audio parts, as '%s'",
                                n, e.s)
                 : gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                                "the adapter has no pairs "
                                "(NAME.lora_A.weight, NAME.lora_B.weight)");
    if (n)
        gg_folder_warn(&c->folder,
                       "%zu tensors of the adapter are left out, "
                       "since they are for vision or audio parts: "
                       "'%s'%s",
                       n, e.s, n > 1 ? " ..." : "");
    return GGUF_OK;
}

/* Note a pair for a head that the model does not have: its output is the
 * embedding. */
static void note_tied(const struct gguf_convert *c)
{
    bool tied = gg_convert_is_tied(c);
    bool has = false;
    for (size_t i = 0; i < c->out.n_tensors; i++)
        if (!strcmp(c->out.tensor[i].name, "output.weight.lora_a")) {
            /* classes with tied output have no place for the weight */
            has = true;
            tied = tied || !c->parts.item[c->out.first_item[i]].row->to;
        }
    if (has && tied)
        gg_folder_warn(&c->folder,
                       "the adapter has a pair for lm_head, but the "
                       "output of the model is its embedding "
                       "(tie_word_embeddings): gguf-ppl computes with the "
                       "pair, other programs may refuse the file");
}

/* With use_rslora the factor is alpha / sqrt(rank); files have alpha / rank.
 */
enum gguf_status gg_convert_adapter_keys(struct gguf_convert *c,
                                         struct gguf_error *err)
{
    double alpha = 0;
    int64_t rank = 1;
    GG_TRY(check_layers(c, err));
    GG_TRY(check_pairs(c, &rank, err));
    GG_TRY(check_unused(c, err));
    note_tied(c);
    if (!gg_json_num(json_object_get(adapter_json(c)->root, "lora_alpha"),
                     &alpha) ||
        !(alpha > 0) || !isfinite((float)alpha))
        return refuse_member(c, "lora_alpha", "not a number above 0", err);
    if (has_member_value(c, "use_rslora", NULL))
        alpha *= sqrt((double)rank);
    GG_TRY(gguf_meta_set_f32(c->out.meta, "adapter.lora.alpha", (float)alpha,
                             err));
    return gguf_meta_set_u32(c->out.meta, "general.quantization_version",
                             GG_JOB_VERSION, err);
}
