/* SPDX-License-Identifier: MIT */
/* verify_projector.c - checks a projector file
 *
 * Towers have many forms. What all forms share is checked: the keys of each
 * tower, its layers and their width, and that tensors have the names of
 * towers.
 */
#include "config.h"
#include "model/weight/verify_row.h"
#include "model/weight/verify_projector.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct tower {
    const char *flag;   /* key that is true with the tower */
    const char *keys;   /* beginning of its keys */
    const char *prefix; /* beginning of its tensors */
    const char *what;
};

static const struct tower towers[] = {
    { "clip.has_vision_encoder", "clip.vision.", "v.", "sees" },
    { "clip.has_audio_encoder", "clip.audio.", "a.", "hears" },
    { "clip.has_gen_audio_encoder", "clip.gen.audio.", "a.gen.", "speaks" },
};

enum { VISION = 1, AUDIO = 2, SPEECH = 4, EACH = 7 };

/* A key that towers have. */
struct key {
    const char *name;
    unsigned of;                              /* towers, as bits */
    enum { SIZE, COUNT, REAL, COLOURS } kind; /* COUNT may be 0 */
};

static const struct key keys[] = {
    { "embedding_length", EACH, SIZE },
    { "projection_dim", EACH, SIZE },
    { "block_count", EACH, COUNT },
    { "feed_forward_length", EACH, COUNT },
    { "attention.head_count", EACH, COUNT },
    { "attention.layer_norm_epsilon", EACH, REAL },
    { "image_size", VISION, COUNT },
    { "patch_size", VISION, SIZE },
    { "image_mean", VISION, COLOURS },
    { "image_std", VISION, COLOURS },
    { "num_mel_bins", AUDIO, SIZE },
};

/* Beginnings of the names of tensors that projector files have, first those of
 * other times. */
static const char *const beginnings[] = {
    "resampler.", "adapter.", "model.image_newline", "t.", "v.", "a.", "mm.",
};

/* Projectors whose keys are constants of llama.cpp's converter, and those with
 * layers that do not begin at 0. */
static const struct {
    const char *type;
    bool learns_width; /* layers are compared with each other */
} free_types[] = { { "step3vl", true },
                   { "nemotron_v2_vl", false },
                   { "gemma3nv", false },
                   { "qwen3tts_spkenc", false } };

/* Tensors of a layer, after its number, whose first or last dimension is the
 * width of the tower. */
static const struct {
    const char *name;
    bool last;
} wide[] = {
    { "ln1.weight", false },      { "ln2.weight", false },
    { "attn_qkv.weight", false }, { "attn_q.weight", false },
    { "attn_out.weight", true },
};

struct projector {
    struct gg_file_checker *c;
    const struct gg_source *src;
    struct gguf_error *err;
    const struct tower *w;
    uint64_t width, n_layer, patch;          /* 0: not known */
    struct gg_verify_projector_facts *facts; /* input of the check by types */
    bool *seen;                              /* layers that have tensors */
};

static enum gguf_status report_key(const struct projector *p,
                                   enum gg_file_check_code code,
                                   const char *key, const char *message)
{
    const struct gguf_kv *kv = gguf_file_kv_find(gg_source_meta(p->src), key);
    return gg_file_report_finding(p->c, code, gg_str_z(key),
                                  kv ? kv->off : GGUF_NO_OFFSET, p->err, "%s",
                                  message);
}

/* ---- keys ---- */

static enum gguf_status check_colours(const struct projector *p,
                                      const struct gguf_kv *kv,
                                      const char *key)
{
    char message[200];
    if (kv->type == GGUF_VAL_ARR && kv->elem_type == GGUF_VAL_F32 &&
        kv->n == 3)
        return GGUF_OK;
    snprintf(message, sizeof message, "key '%s' must be three numbers", key);
    return report_key(p, GG_CHECK_KEY_TYPE, key, message);
}

static enum gguf_status check_real(const struct projector *p,
                                   const struct gguf_kv *kv, const char *key)
{
    double v;
    struct gguf_error why;
    char message[200];
    if (gguf_kv_get_float(kv, &v, &why) != GGUF_OK)
        return report_key(p, GG_CHECK_KEY_TYPE, key, why.message);
    if (v >= 0 && v < 1)
        return GGUF_OK;
    snprintf(message, sizeof message, "%s is %g, must be 0 to 1", key, v);
    return report_key(p, GG_CHECK_KEY_VALUE, key, message);
}

static enum gguf_status check_size(const struct projector *p,
                                   const struct gguf_kv *kv, const char *key,
                                   uint64_t min, uint64_t *v)
{
    struct gguf_error why;
    char message[200];
    if (gguf_kv_get_uint(kv, v, &why) != GGUF_OK)
        return report_key(p,
                          why.status == GGUF_E_TYPE ? GG_CHECK_KEY_TYPE
                                                    : GG_CHECK_KEY_VALUE,
                          key, why.message);
    if (*v >= min && *v <= INT32_MAX)
        return GGUF_OK;
    snprintf(message, sizeof message,
             "%s is %" PRIu64 ", must be %" PRIu64 " to %d", key, *v, min,
             INT32_MAX);
    *v = 0;
    return report_key(p, GG_CHECK_KEY_VALUE, key, message);
}

static enum gguf_status check_key(struct projector *p, const struct key *row)
{
    char key[80], message[200];
    uint64_t v = 0;
    snprintf(key, sizeof key, "%s%s", p->w->keys, row->name);
    const struct gguf_kv *kv = gguf_file_kv_find(gg_source_meta(p->src), key);
    if (!kv) {
        snprintf(message, sizeof message, "key '%s' is missing", key);
        return report_key(p, GG_CHECK_KEY_MISSING, key, message);
    }
    if (row->kind == COLOURS)
        return check_colours(p, kv, key);
    if (row->kind == REAL)
        return check_real(p, kv, key);
    GG_TRY(check_size(p, kv, key, row->kind == SIZE, &v));
    if (!strcmp(row->name, "embedding_length"))
        p->width = v;
    else if (!strcmp(row->name, "projection_dim"))
        p->facts->text_width = v;
    else if (!strcmp(row->name, "num_mel_bins"))
        p->facts->n_mel = v;
    else if (!strcmp(row->name, "block_count"))
        p->n_layer = v;
    else if (!strcmp(row->name, "patch_size"))
        p->patch = v;
    return GGUF_OK;
}

/* Find the type of the projector of the tower, or of the file. */
static enum gguf_status find_type(const struct projector *p,
                                  struct gguf_str *type)
{
    char key[80];
    struct gguf_error why;
    bool old = false;
    const struct gguf_file *f = gg_source_meta(p->src);
    snprintf(key, sizeof key, "%sprojector_type", p->w->keys);
    if (!gguf_file_kv_find(f, key))
        snprintf(key, sizeof key, "clip.projector_type");
    if (!gguf_file_kv_find(f, key) &&
        gguf_kv_get_bool(gguf_file_kv_find(f, "clip.has_llava_projector"),
                         &old, NULL) == GGUF_OK &&
        old) { /* files of 2023 have "mlp" without saying so */
        *type = gg_str_z("mlp");
        return GGUF_OK;
    }
    if (!gguf_file_kv_find(f, key))
        return report_key(p, GG_CHECK_KEY_MISSING, key,
                          "key 'clip.projector_type' is missing");
    if (gguf_kv_get_str(gguf_file_kv_find(f, key), type, &why) != GGUF_OK)
        return report_key(p, GG_CHECK_KEY_TYPE, key, why.message);
    return GGUF_OK;
}

/* ---- tensors ---- */

/* Layer of "v.blk.12.ln1.weight"; name becomes the part after its number. */
static bool find_layer(const struct tower *w, struct gguf_str *name,
                       uint64_t *il)
{
    char start[24];
    int n = snprintf(start, sizeof start, "%sblk.", w->prefix);
    if (!gg_str_starts(*name, start))
        return false;
    size_t i = (size_t)n;
    for (*il = 0; i < name->size && *il < INT32_MAX && name->data[i] >= '0' &&
                  name->data[i] <= '9';
         i++)
        *il = *il * 10 + (uint64_t)(name->data[i] - '0');
    if (i == (size_t)n || i >= name->size || name->data[i] != '.')
        return false;
    name->data += i + 1;
    name->size -= i + 1;
    return true;
}

static enum gguf_status check_width(const struct projector *p,
                                    const struct gguf_tensor_info *t,
                                    uint64_t is)
{
    struct gg_str_esc e;
    char key[80];
    snprintf(key, sizeof key, "%sembedding_length", p->w->keys);
    if (is == p->width)
        return GGUF_OK;
    return gg_file_report_finding(
        p->c, GG_CHECK_KEY_VALUE, gg_str_z(key), t->info_off, p->err,
        "tensor '%s' is for width %" PRIu64 ", %sembedding_length is %" PRIu64,
        gg_str_esc(&e, t->name), is, p->w->keys, p->width);
}

static enum gguf_status check_layer(const struct projector *p,
                                    const struct gguf_tensor_info *t,
                                    struct gguf_str name, uint64_t il)
{
    struct gg_str_esc e;
    if (il >= p->n_layer)
        return gg_file_report_finding(
            p->c, GG_CHECK_TENSOR_EXTRA, t->name, t->info_off, p->err,
            "tensor '%s' is of layer %" PRIu64 ", there are %" PRIu64,
            gg_str_esc(&e, t->name), il, p->n_layer);
    p->seen[il] = true;
    for (size_t i = 0; p->width && i < GG_LEN(wide); i++)
        if (gg_str_eqz(name, wide[i].name))
            return check_width(p, t, t->ne[wide[i].last && t->n_dims == 2]);
    return GGUF_OK;
}

/* The filters of patches: PATCH x PATCH x 3 x WIDTH. */
static enum gguf_status check_filters(const struct projector *p,
                                      const struct gguf_tensor_info *t)
{
    struct gg_str_esc e;
    char key[80];
    if (t->n_dims != 4)
        return GGUF_OK;
    snprintf(key, sizeof key, "%spatch_size", p->w->keys);
    if (p->patch &&
        ((uint64_t)t->ne[0] != p->patch || (uint64_t)t->ne[1] != p->patch))
        GG_TRY(gg_file_report_finding(
            p->c, GG_CHECK_KEY_VALUE, gg_str_z(key), t->info_off, p->err,
            "tensor '%s' is for patches of %" PRId64 " x %" PRId64
            ", %spatch_size is %" PRIu64,
            gg_str_esc(&e, t->name), t->ne[0], t->ne[1], p->w->keys,
            p->patch));
    return p->width ? check_width(p, t, (uint64_t)t->ne[3]) : GGUF_OK;
}

static enum gguf_status check_layers(struct projector *p)
{
    char key[80], message[160];
    uint64_t il, first = p->n_layer, n = 0;
    for (size_t i = 0; i < gg_source_n_tensors(p->src); i++) {
        const struct gguf_tensor_info *t = gg_source_tensor(p->src, i).info;
        struct gguf_str name = t->name;
        if (find_layer(p->w, &name, &il))
            GG_TRY(check_layer(p, t, name, il));
        else if (!strcmp(p->w->prefix, "v.") &&
                 gg_str_eqz(name, "v.patch_embd.weight"))
            GG_TRY(check_filters(p, t));
    }
    for (il = p->n_layer; il-- > 0;)
        if (!p->seen[il]) {
            first = il;
            n++;
        }
    if (!n)
        return GGUF_OK;
    snprintf(key, sizeof key, "%sblock_count", p->w->keys);
    snprintf(message, sizeof message,
             "%" PRIu64 " of %" PRIu64
             " layers have no tensors, first layer %" PRIu64,
             n, p->n_layer, first);
    return report_key(p, GG_CHECK_BLOCK_MISSING, key, message);
}

/* Check layers of a tower whose numbers say something about them. */
static enum gguf_status check_sizes(struct projector *p, struct gguf_str type)
{
    char key[80];
    p->facts->n_layer = p->n_layer;
    for (size_t i = 0; i < GG_LEN(free_types); i++)
        if (gg_str_eqz(type, free_types[i].type)) {
            p->facts->learns_width = free_types[i].learns_width;
            return GGUF_OK;
        }
    p->facts->width = p->width;
    if (!strcmp(p->w->prefix, "a.gen."))
        return GGUF_OK; /* its layers have names of their own */
    if (p->n_layer > gg_source_n_tensors(p->src)) {
        snprintf(key, sizeof key, "%sblock_count", p->w->keys);
        return report_key(p, GG_CHECK_BLOCK_MISSING, key,
                          "there are more layers than tensors");
    }
    p->seen = gg_mem_alloc_zero(p->c->params.allocator, p->n_layer + 1,
                                sizeof *p->seen);
    if (!p->seen)
        return gg_error_set(p->err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                            "out of memory");
    enum gguf_status st = check_layers(p);
    gg_mem_free(p->c->params.allocator, p->seen);
    p->seen = NULL;
    return st;
}

/* ---- a tower, a file ---- */

static bool has_tensors(const struct projector *p)
{
    for (size_t i = 0; i < gg_source_n_tensors(p->src); i++)
        if (gg_str_starts(gg_source_tensor(p->src, i).info->name,
                          p->w->prefix))
            return true;
    return false;
}

static enum gguf_status check_tower(struct projector *p)
{
    char name[24], message[120];
    struct gguf_str type = gg_str_z("");
    p->width = p->n_layer = p->patch = 0;
    for (size_t i = 0; i < GG_LEN(keys); i++)
        if (keys[i].of >> (p->w - towers) & 1)
            GG_TRY(check_key(p, &keys[i]));
    GG_TRY(find_type(p, &type));
    p->facts->has = true;
    p->facts->type = type;
    if (has_tensors(p) || !p->n_layer) /* 0: vectors come without a tower */
        return check_sizes(p, type);
    snprintf(name, sizeof name, "%s*", p->w->prefix);
    snprintf(message, sizeof message,
             "the file says that it %s, and has no tensor '%s'", p->w->what,
             name);
    return report_key(p, GG_CHECK_TENSOR_MISSING, name, message);
}

static enum gguf_status check_names(const struct projector *p)
{
    struct gg_str_esc e;
    for (size_t i = 0; i < gg_source_n_tensors(p->src); i++) {
        const struct gguf_tensor_info *t = gg_source_tensor(p->src, i).info;
        size_t k = 0;
        while (k < GG_LEN(beginnings) &&
               !gg_str_starts(t->name, beginnings[k]))
            k++;
        if (k == GG_LEN(beginnings))
            GG_TRY(gg_file_report_finding(
                p->c, GG_CHECK_TENSOR_EXTRA, t->name, t->info_off, p->err,
                "tensor '%s' is of no tower", gg_str_esc(&e, t->name)));
    }
    return GGUF_OK;
}

/* Check tensors against the rows of their types, or their names alone if a type
 * is not known. */
static enum gguf_status
check_types(const struct projector *p,
            const struct gg_verify_projector_facts *facts)
{
    struct gg_str_esc e;
    bool known = true;
    for (int i = 0; i < GG_N_TOWERS; i++) {
        if (!facts[i].has ||
            gg_verify_projector_row(facts[i].type, (enum gg_model_tower)i))
            continue;
        known = false;
        GG_TRY(gg_file_report_finding(
            p->c, GG_CHECK_ARCH_UNKNOWN, gg_str_z("clip.projector_type"),
            GGUF_NO_OFFSET, p->err,
            "tensors of projectors of type '%s' are not known",
            gg_str_esc(&e, facts[i].type)));
    }
    return known ? gg_verify_projector_tensors(p->c, p->src, facts, p->err)
                 : check_names(p);
}

bool gg_verify_is_projector(const struct gguf_file *file)
{
    struct gguf_str arch;
    return gguf_kv_get_str(gguf_file_kv_find(file, "general.architecture"),
                           &arch, NULL) == GGUF_OK &&
           gg_str_eqz(arch, "clip");
}

enum gguf_status gg_verify_projector(struct gg_file_checker *c,
                                     const struct gg_source *src,
                                     struct gguf_error *err)
{
    struct projector p = { .c = c, .src = src, .err = err };
    struct gg_verify_projector_facts facts[GG_N_TOWERS] = { { .has = false } };
    size_t n = 0;
    for (size_t i = 0; i < GG_LEN(towers); i++) {
        bool is = false;
        p.w = &towers[i];
        p.facts = &facts[i];
        if (gguf_kv_get_bool(gguf_file_kv_find(gg_source_meta(src), p.w->flag),
                             &is, NULL) != GGUF_OK ||
            !is)
            continue;
        n++;
        GG_TRY(check_tower(&p));
    }
    if (!n)
        GG_TRY(report_key(&p, GG_CHECK_KEY_MISSING, towers[0].flag,
                          "the file does not say whether it sees or hears"));
    return n ? check_types(&p, facts) : check_names(&p);
}
