/* SPDX-License-Identifier: MIT */
/* projector.c - convert the projector of a folder */
#include "config.h"
#include "convert/projector/projector.h"
#include "convert/projector/projector_row.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const struct gg_projector *const lists[] = {
    gg_projector_family_siglip,    gg_projector_family_qwen,
    gg_projector_family_pixtral,   gg_projector_family_vit,
    gg_projector_family_whisper,   gg_projector_family_granite,
    gg_projector_family_conformer, gg_projector_family_gemma,
    gg_projector_family_deepseek,  gg_projector_family_mimo,
    gg_projector_family_radio,     gg_projector_family_speech,
    gg_projector_family_llava,     gg_projector_family_kyutai,
};

const struct gg_projector *gg_projector_row(size_t n)
{
    for (size_t i = 0; i < GG_LEN(lists); i++)
        for (const struct gg_projector *p = lists[i]; p->arch.classes; p++)
            if (!n--)
                return p;
    return NULL;
}

/* ---- the row of the class ---- */

static const struct gg_projector *find_row(const struct gguf_convert *c,
                                           struct gguf_str name)
{
    const json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    const struct gg_hf_config cfg = { .model = root, .whole = root };
    const struct gg_projector *p;
    for (size_t i = 0; (p = gg_projector_row(i)); i++)
        if (gg_convert_arch_has_class(&p->arch, name) &&
            (!p->arch.when || p->arch.when(&cfg)))
            return p;
    return NULL;
}

/* The class stands in the whole of config.json or, for towers with a class of
 * their own, in their part of it. */
const struct gg_projector *gg_projector_find(const struct gguf_convert *c)
{
    const struct gg_convert_text *t = &c->folder.text[GG_CONVERT_CONFIG];
    const json_t *of_tower = json_object_get(
        json_object_get(t->json.root, "vision_config"), "architectures");
    const json_t *of_whole = json_object_get(t->json.root, "architectures");
    const struct gg_projector *p = NULL;
    struct gguf_str name;
    if (!strcmp(t->name, "params.json"))
        return find_row(c, GG_STR(GG_PROJECTOR_PARAMS));
    if (gg_json_str(json_array_get(of_whole, 0), &name))
        p = find_row(c, name);
    if (!p && gg_json_str(json_array_get(of_tower, 0), &name))
        p = find_row(c, name);
    return p;
}

size_t gg_projector_count_left(const struct gguf_convert *c)
{
    const struct gg_projector *p = c->tower;
    size_t n = 0;
    if (!p)
        return 0;
    for (size_t i = 0; i < c->parts.n_left; i++)
        n += gg_convert_is_part(
            &p->arch, c->folder.weights->tensor[c->parts.left[i]].name);
    return n;
}

/* Classes that are not converted. unless: member of config.json; a folder that
 * has it is converted by a row of the class. NULL: none. */
static const struct refusal {
    const char *name, *unless, *reason;
} refusals[] = {
#define PHI4_TOWERS                                                           \
    "no program has a projector type for its towers (embed_tokens_extend), "  \
    "and its language model needs an adapter for images and one for sound"
    { "Phi4MMForCausalLM", "vision_config", PHI4_TOWERS },
    { "Phi4MultimodalForCausalLM", NULL, PHI4_TOWERS },
#undef PHI4_TOWERS
    { "MiniCPMV4_7ForConditionalGeneration", NULL,
      "no program has a projector type for it: MiniCPM-V 4.7 gives the slices "
      "of an image positions on a canvas" },
    { "MiniMaxM3VLForConditionalGeneration", NULL,
      "it is transformers' own form of MiniMax M3, with other settings: "
      "convert the published folder, whose class is "
      "MiniMaxM3SparseForConditionalGeneration" },
};

/* Fail with GGUF_E_ARCH if the class is in the list. */
static enum gguf_status refuse_class(const struct gguf_convert *c,
                                     struct gguf_str name,
                                     struct gguf_error *err)
{
    const json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    struct gg_str_esc e;
    for (size_t i = 0; i < GG_LEN(refusals); i++) {
        const struct refusal *r = &refusals[i];
        if (gg_str_eqz(name, r->name) &&
            !(r->unless && json_is_object(json_object_get(root, r->unless))))
            return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                                "config.json: class '%s' is not converted: %s",
                                gg_str_esc(&e, name), r->reason);
    }
    return GGUF_OK;
}

enum gguf_status gg_projector_refuse_text(const struct gguf_convert *c,
                                          struct gguf_str name,
                                          struct gguf_error *err)
{
    const json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    struct gguf_str other;
    struct gg_str_esc e, f;
    GG_TRY(refuse_class(c, name, err));
    if (!gg_projector_find(c))
        return GGUF_OK;
    if (gg_json_str(json_object_get(root, "text_model_id"), &other))
        return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                            "config.json: of class '%s' only the projector is "
                            "converted (--mmproj); its language model is "
                            "another folder, '%s'",
                            gg_str_esc(&e, name), gg_str_esc(&f, other));
    return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                        "config.json: of class '%s' only the projector is "
                        "converted (--mmproj), since no known class is named "
                        "for its language model",
                        gg_str_esc(&e, name));
}

static bool is_known_class(struct gguf_str name)
{
    const struct gg_projector *p;
    for (size_t i = 0; (p = gg_projector_row(i)); i++)
        if (gg_convert_arch_has_class(&p->arch, name))
            return true;
    return false;
}

/* Refuse a class whose rows are for other kinds of models. */
static enum gguf_status refuse_settings(const json_t *root,
                                        struct gguf_str name,
                                        struct gguf_error *err)
{
    struct gg_str_esc e[3];
    struct gguf_str model = GG_STR("none"), tower = GG_STR("none");
    (void)gg_json_str(json_object_get(root, "model_type"), &model);
    (void)gg_json_str(
        json_object_get(json_object_get(root, "vision_config"), "model_type"),
        &tower);
    return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                        "config.json: no projector of class '%s' is known for "
                        "model_type '%s' with vision_config.model_type '%s'",
                        gg_str_esc(&e[0], name), gg_str_esc(&e[1], model),
                        gg_str_esc(&e[2], tower));
}

static enum gguf_status find_class(struct gguf_convert *c,
                                   struct gguf_error *err)
{
    const json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    struct gguf_str name = GG_STR("");
    struct gg_str_esc e;
    c->projector = gg_projector_find(c);
    (void)gg_json_str(
        json_array_get(json_object_get(root, "architectures"), 0), &name);
    GG_TRY(refuse_class(c, name, err));
    if (!c->projector && name.size && is_known_class(name))
        return refuse_settings(root, name, err);
    if (!c->projector && name.size)
        return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                            "config.json: no projector of class '%s' is "
                            "known; models that only read have none",
                            gg_str_esc(&e, name));
    if (!c->projector)
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "config.json: \"architectures\" names no class");
    c->arch = &c->projector->arch;
    return GGUF_OK;
}

/* ---- the file ---- */

enum gguf_status gg_projector_read(struct gguf_convert *c,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err)
{
    GG_TRY(gg_folder_read_texts(&c->folder, err));
    GG_TRY(gg_convert_make_config(c, limits, err));
    GG_TRY(gg_folder_find_config(&c->folder, err));
    GG_TRY(find_class(c, err));
    GG_TRY(gg_projector_read_config(c, err));
    if (c->projector->check)
        GG_TRY(c->projector->check(c, err));
    const bool own =
        !strcmp(c->folder.text[GG_CONVERT_CONFIG].name, "params.json");
    if (!c->folder.weights)
        GG_TRY(gg_safetensors_open(&c->folder.weights, &c->folder.dir,
                                   own ? "consolidated" : "model", limits,
                                   c->codec, err));
    GG_TRY(gg_folder_note_unread(&c->folder, err));
    c->n_layers = INT64_MAX;
    if (c->projector->add_tensors)
        GG_TRY(c->projector->add_tensors(c, err));
    return gg_folder_join_quantized(&c->folder, err);
}

/* Keys without which no program reads a tower. */
static const char *const of_vision[] = {
    "projection_dim",
    "image_size",
    "patch_size",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "image_mean",
    "image_std",
    "attention.layer_norm_epsilon",
};
static const char *const of_audio[] = {
    "projection_dim",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "num_mel_bins",
    "attention.layer_norm_epsilon",
};

/* Check that a key "clip.PREFIX NAME" is there; name has n bytes. */
static enum gguf_status check_key(const struct gguf_convert *c,
                                  const char *prefix, const char *name,
                                  size_t n, struct gguf_error *err)
{
    char key[96];
    snprintf(key, sizeof key, "clip.%s%.*s", prefix, (int)n, name);
    return gguf_meta_find(c->out.meta, key)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                              "config.json and preprocessor_config.json do "
                              "not give the value of '%s'",
                              key);
}

static enum gguf_status check_keys(const struct gguf_convert *c,
                                   struct gguf_error *err)
{
    const struct gg_projector *p = c->projector;
    for (size_t i = 0; p->vision && i < GG_LEN(of_vision); i++)
        GG_TRY(
            check_key(c, "vision.", of_vision[i], strlen(of_vision[i]), err));
    for (size_t i = 0; p->audio && i < GG_LEN(of_audio); i++)
        GG_TRY(check_key(c, "audio.", of_audio[i], strlen(of_audio[i]), err));
    for (const char *k = p->needs; k && *k;) {
        const size_t n = strcspn(k, " ");
        GG_TRY(check_key(c, "", k, n, err));
        k += n + (k[n] == ' ');
    }
    return GGUF_OK;
}

enum gguf_status gg_projector_describe(struct gguf_convert *c,
                                       struct gguf_error *err)
{
    const struct gg_projector *p = c->projector;
    GG_TRY(gg_convert_add_keys(c, err));
    if (p->add_keys)
        GG_TRY(p->add_keys(c, err));
    GG_TRY(check_keys(c, err));
    GG_TRY(gg_convert_assemble_tensors(c, err));
    if (!c->out.n_tensors)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "the folder has no tensors of a projector: their "
                            "names begin with one of: %s",
                            c->arch->parts);
    GG_TRY(gg_convert_add_general(c, err));
    c->out.summary.kind = "projector";
    c->out.summary.reason = "--mmproj";
    return gg_convert_set_kind(c, err);
}

/* ---- for functions of rows ---- */

enum gguf_status gg_projector_refuse(const char *what, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "config.json: %s", what);
}

enum gguf_status gg_projector_put_ints(struct gguf_convert *c, const char *key,
                                       const int32_t *x, size_t n,
                                       struct gguf_error *err)
{
    char buf[128];
    return gguf_meta_set_array(c->out.meta, gg_convert_key_name(c, key, buf),
                               GGUF_VAL_I32, x, n, err);
}

enum gguf_status gg_projector_put_bools(struct gguf_convert *c,
                                        const char *key, const bool *x,
                                        size_t n, struct gguf_error *err)
{
    char buf[128];
    return gguf_meta_set_array(c->out.meta, gg_convert_key_name(c, key, buf),
                               GGUF_VAL_BOOL, x, n, err);
}

enum gguf_status gg_projector_add_floats(struct gguf_convert *c,
                                         const char *name, const float *x,
                                         size_t n, struct gguf_error *err)
{
    uint8_t *bytes = gg_mem_arena_alloc(&c->arena, 4 * n + 1);
    if (!bytes)
        return gg_error_set_nomem(err, 4 * n);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        gg_bytes_store32le(bytes + 4 * i, bits);
    }
    return gg_safetensors_add(c->folder.weights, gg_str_z(name), bytes, n,
                              err);
}

enum gguf_status gg_projector_read_floats(struct gguf_convert *c,
                                          const char *name, size_t *n,
                                          float **out, struct gguf_error *err)
{
    const struct gg_safetensors *s = c->folder.weights;
    const uint32_t i = gg_safetensors_find(s, gg_str_z(name));
    struct gg_data_rows rows;
    *out = NULL;
    if (i == GG_INDEX_NONE || (*n && s->tensor[i].n_elements != *n))
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            i == GG_INDEX_NONE
                                ? "the folder lacks the tensor '%s'"
                                : "tensor '%s' has another number of elements "
                                  "than the tensors that it is computed with",
                            name);
    const uint64_t size = s->tensor[i].n_elements;
    if (size > (UINT64_C(1) << 28))
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "tensor '%s' has %" PRIu64
                            " elements, expected a small one",
                            name, size);
    GG_TRY(gg_data_rows(&s->list, i, &rows, err));
    GG_TRY(gg_data_hold(&s->list, i, 0, size, err));
    *out = gg_mem_alloc(c->p.allocator, (size_t)size * sizeof **out);
    if (*out)
        gg_data_read(&rows, 0, size, *out);
    gg_data_release(&s->list, i, 0, size);
    *n = (size_t)size;
    return *out ? GGUF_OK : gg_error_set_nomem(err, (size_t)size * 4);
}
