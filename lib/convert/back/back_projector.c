/* SPDX-License-Identifier: MIT */
/* back_projector.c - a projector that becomes a folder again
 *
 * The folder has the tensors of the towers, config.json with their settings,
 * and preprocessor_config.json with those of the image processor. Rows name
 * members of the joined settings (projector/projector.h): they are set in one
 * object, which is then divided.
 */
#include "config.h"
#include "convert/back/back_maker.h"
#include "convert/projectors.h"

#include "base/compiler.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the row ---- */

/* The type that a row gives to a key, as a constant; NULL: none. */
static const char *type_of_row(const struct gg_projector *p, const char *key)
{
    for (const struct gg_convert_key *k = p->arch.keys; k->key; k++)
        if (!strcmp(k->key, key) && k->hf && *k->hf == '=')
            return k->hf + 1;
    return NULL;
}

bool gg_back_fits_projector(const struct gg_back *b,
                            const struct gg_projector *p)
{
    static const char *const keys[] = { "clip.projector_type",
                                        "clip.vision.projector_type",
                                        "clip.audio.projector_type",
                                        "clip.gen.audio.projector_type" };
    for (size_t i = 0; i < GG_LEN(keys); i++) {
        const struct gguf_kv *kv = gguf_file_kv_find(b->meta, keys[i]);
        const char *type = type_of_row(p, keys[i] + strlen("clip."));
        struct gguf_str s = GG_STR("");
        if (kv && gguf_kv_get_str(kv, &s, NULL) != GGUF_OK)
            return false;
        if (!kv != !type || (type && !gg_str_eqz(s, type)))
            return false;
    }
    return true;
}

/* ---- settings ---- */

/* Move the members of an object of root to the first of NAMES, a member of a
 * member; NULL or ".": to root itself. */
static void move_settings(json_t *root, const char *object, const char *names)
{
    char name[96];
    json_t *from = json_incref(json_object_get(root, object));
    json_object_del(root, object);
    if (!from)
        return;
    if (!names || !strcmp(names, ".")) {
        json_object_update_missing(root, from);
        json_decref(from);
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(names, " "), names);
    gg_back_put(root, name, from);
}

/* Write settings as a text, and free the former text. Takes settings. NULL: the
 * object is empty, or a failure (gg_json_make_failed). */
static char *write_text(char *old, json_t *settings)
{
    free(old);
    if (json_object_size(settings))
        return gg_json_make_text(settings,
                                 JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(settings);
    return NULL;
}

enum gguf_status gg_back_make_projector_config(struct gg_back *b,
                                               const struct gg_projector *p,
                                               struct gguf_error *err)
{
    gg_json_make_begin();
    struct gg_back_maker m = { .b = b, .arch = &p->arch };
    char type[96];
    m.root = json_object();
    gg_back_set_class(&m);
    json_t *keys = gg_back_keys_to_json(&m);
    m.keys = (struct gg_hf_config){ .model = keys, .whole = keys };
    gg_back_put(m.root, "architectures", json_pack("[s]", m.class_name));
    gg_back_choose_model_type(&m, type);
    gg_back_put(m.root, "model_type", json_string(type));
    gg_back_put_keys(&m);
    if (p->arch.back)
        p->arch.back(&m);
    json_decref(keys);
    json_t *image = json_incref(json_object_get(m.root, "image"));
    json_object_del(m.root, "image");
    move_settings(m.root, "vision", p->vision);
    move_settings(m.root, "audio", p->audio);
    move_settings(m.root, "text", p->text);
    b->image = write_text(b->image, image);
    b->config = write_text(b->config, m.root);
    b->n_config = b->config ? strlen(b->config) : 0;
    return b->config ? GGUF_OK : gg_error_set_nomem(err, 4096);
}

enum gguf_status gg_back_add_image(struct gg_back *b,
                                   struct gg_back_text text[GG_BACK_CARD],
                                   struct gguf_error *err)
{
    if (!b->image)
        return GGUF_OK;
    const size_t size = strlen(b->image);
    text[0] = (struct gg_back_text){ "preprocessor_config.json",
                                     malloc(size + 1), size };
    if (text[0].text)
        memcpy(text[0].text, b->image, size + 1);
    return text[0].text ? GGUF_OK : gg_error_set_nomem(err, text[0].size);
}

/* ---- the folder ---- */

/* Put leading and the first n bytes of tower before a name. false: that is not
 * the name of a tensor which rows call so. */
static bool try_prefix(const struct gguf_convert *c, const char *leading,
                       const char *tower, size_t n, char name[160])
{
    char full[2 * 160], as[GG_CONVERT_NAME];
    bool nothing;
    const int k =
        snprintf(full, sizeof full, "%s%.*s%s", leading, (int)n, tower, name);
    if (k < 0 || k >= 160 ||
        !gg_convert_normalize_part(c, gg_str_z(full), as, &nothing) ||
        strcmp(as, name) != 0)
        return false;
    memcpy(name, full, (size_t)k + 1);
    return true;
}

bool gg_back_prefix_part(const struct gguf_convert *c, struct gguf_str to,
                         char name[160])
{
    const struct gg_projector *p = c->projector;
    const char *tower = p->before_audio && gg_str_starts(to, "a.")
                            ? p->before_audio
                        : c->arch->before ? c->arch->before
                                          : c->arch->strip;
    const char *leading = p->leading ? p->leading : "";
    if (try_prefix(c, leading, "", 0, name))
        return true;
    for (size_t n; tower && *tower; tower += n + (tower[n] == ' ')) {
        n = strcspn(tower, " ");
        if (try_prefix(c, leading, tower, n, name))
            return true;
    }
    return false;
}

/* Files of before May 2025 have the two matrices of a layer the other way round
 * (llama.cpp's readers exchange them by their shapes). */
static enum gguf_status check_order(const struct gg_back *b,
                                    struct gguf_error *err)
{
    static const char name[] = "v.blk.0.ffn_up.weight";
    const struct gguf_kv *kv =
        gguf_file_kv_find(b->meta, "clip.vision.embedding_length");
    uint64_t width;
    size_t at;
    if (!kv || gguf_kv_get_uint(kv, &width, NULL) != GGUF_OK ||
        !gg_source_find(&b->source, name, &at))
        return GGUF_OK;
    const struct gguf_tensor_info *t = gg_source_tensor(&b->source, at).info;
    if ((uint64_t)t->ne[0] == width || (uint64_t)t->ne[1] != width)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "tensor '%s': %" PRId64 " columns, expected %" PRIu64
                        ": the file has ffn_up and ffn_down the other way "
                        "round, as files of before May 2025; convert the "
                        "original model again",
                        name, t->ne[0], width);
}

enum gguf_status gg_back_describe_projector(struct gg_back *b,
                                            const struct gg_projector *p,
                                            struct gguf_error *err)
{
    struct gguf_convert *c = b->c;
    struct gg_str_esc e;
    json_error_t bad;
    GG_TRY(check_order(b, err));
    c->projector = gg_projector_find(c);
    if (c->projector != p)
        return gg_error_set(err, GGUF_E_ARCH, GGUF_NO_OFFSET,
                            "class '%s': no folder of it gives these keys",
                            gg_str_esc(&e, gg_str_z(p->arch.classes)));
    c->arch = &p->arch;
    c->n_layers = INT64_MAX;
    GG_TRY(gg_folder_find_config(&c->folder, err));
    json_t *image = b->image ? json_loads(b->image, 0, &bad) : json_object();
    GG_TRY(gg_projector_join_config(c, image, err));
    if (p->check)
        GG_TRY(p->check(c, err));
    GG_TRY(gg_back_add_tensors(b, err));
    if (p->add_tensors)
        GG_TRY(p->add_tensors(c, err));
    GG_TRY(gg_convert_add_keys(c, err));
    if (p->add_keys)
        GG_TRY(p->add_keys(c, err));
    return gg_convert_assemble_tensors(c, err);
}
