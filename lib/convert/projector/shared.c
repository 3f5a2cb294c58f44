/* SPDX-License-Identifier: MIT */
/* shared.c - keys and checks of projectors that several families have */
#include "config.h"
#include "convert/projector/projector_row.h"

#include "base/compiler.h"

#include <string.h>

/* ---- activation functions ---- */

double gg_projector_has_gelu(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "vision.hidden_act", -1, "gelu") == 1
               ? 1
               : NAN;
}

double gg_projector_has_silu(const struct gg_hf_config *cfg)
{
    return gg_hf_config_is_word(cfg, "vision.hidden_act", -1, "silu") == 1
               ? 1
               : NAN;
}

enum gguf_status gg_projector_check_activation(struct gguf_convert *c,
                                               struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    return isnan(gg_projector_has_gelu(&cfg)) &&
                   isnan(gg_projector_has_silu(&cfg))
               ? gg_projector_refuse(
                     "vision_config.hidden_act: expected gelu or silu", err)
               : GGUF_OK;
}

/* ---- numbers ---- */

double gg_projector_inverse(const struct gg_hf_config *cfg, const char *names)
{
    const double x = num_of(cfg, names);
    return x > 0 ? floor(1 / x) : NAN;
}

enum gguf_status gg_projector_set_missing(struct gguf_convert *c,
                                          const char *name, double value,
                                          struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    return gg_hf_config_get(&cfg, name)
               ? GGUF_OK
               : gg_projector_set(c, name, value, err);
}

const char *gg_projector_number(double x, char text[GG_PROJECTOR_NUMBER])
{
    snprintf(text, GG_PROJECTOR_NUMBER, "%.17g", x);
    return isnan(x) ? "missing" : text;
}

/* ---- images ---- */

/* NULL: memory ran out. */
static json_t *make_list(const double x[3])
{
    json_t *list = json_array();
    for (size_t i = 0; i < 3; i++)
        if (json_array_append_new(list, json_real(x[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static enum gguf_status set_missing(struct gguf_convert *c, const char *name,
                                    const double x[3], struct gguf_error *err)
{
    json_t *image = json_object_get(c->settings, "image");
    if (json_object_get(image, name))
        return GGUF_OK;
    return json_object_set_new(image, name, make_list(x))
               ? gg_error_set_nomem(err, sizeof(json_t *))
               : GGUF_OK;
}

enum gguf_status gg_projector_default_image(struct gguf_convert *c,
                                            const double mean[3],
                                            const double std[3],
                                            struct gguf_error *err)
{
    GG_TRY(set_missing(c, "image_mean", mean, err));
    return set_missing(c, "image_std", std, err);
}

/* Mean and deviation of CLIP's images (openai/CLIP, clip.py). */
enum gguf_status gg_projector_default_clip_image(struct gguf_convert *c,
                                                 struct gguf_error *err)
{
    static const double mean[3] = { 0.48145466, 0.4578275, 0.40821073 };
    static const double std[3] = { 0.26862954, 0.26130258, 0.27577711 };
    return gg_projector_default_image(c, mean, std, err);
}

enum gguf_status gg_projector_default_plain_image(struct gguf_convert *c,
                                                  struct gguf_error *err)
{
    static const double mean[3] = { 0, 0, 0 }, std[3] = { 1, 1, 1 };
    json_t *image = json_object_get(c->settings, "image");
    (void)json_object_del(image, "image_mean");
    (void)json_object_del(image, "image_std");
    return gg_projector_default_image(c, mean, std, err);
}

/* ---- tensors ---- */

bool gg_projector_find_tensor(const struct gguf_convert *c, const char *name,
                              const struct gg_safetensors_tensor **out)
{
    const struct gg_safetensors *s = c->folder.weights;
    char as[GG_CONVERT_NAME];
    bool nothing;
    for (size_t i = 0; i < s->n_tensors; i++)
        if (gg_convert_normalize_part(c, s->tensor[i].name, as, &nothing) &&
            !strcmp(as, name)) {
            *out = &s->tensor[i];
            return true;
        }
    return false;
}

enum gguf_status gg_projector_take_width(struct gguf_convert *c,
                                         const char *name,
                                         struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const struct gg_safetensors_tensor *t;
    return isnan(num_of(&cfg, TEXT_WIDTH)) &&
                   gg_projector_find_tensor(c, name, &t) && t->n_dims == 2
               ? gg_projector_set(c, "text.hidden_size", (double)t->ne[1], err)
               : GGUF_OK;
}

enum gguf_status gg_projector_leave_out(struct gguf_convert *c,
                                        const char *name,
                                        struct gguf_error *err)
{
    const struct gg_safetensors_tensor *t;
    (void)err;
    if (gg_projector_find_tensor(c, name, &t))
        c->folder.weights->tensor[t - c->folder.weights->tensor].is_part =
            true;
    return GGUF_OK;
}

enum gguf_status gg_projector_put_pinpoints(struct gguf_convert *c,
                                            struct gguf_error *err)
{
    const struct gg_hf_config cfg = gg_convert_config(c);
    const json_t *list = gg_hf_config_get(
        &cfg, "image_grid_pinpoints image.image_grid_pinpoints");
    const size_t n = json_array_size(list);
    enum { MOST_SIZES = 256 };
    int32_t out[2 * MOST_SIZES];
    if (!n)
        return GGUF_OK;
    if (n > MOST_SIZES)
        return gg_projector_refuse("image_grid_pinpoints is too long", err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            int64_t x;
            if (!gg_json_int(json_array_get(json_array_get(list, i), 1 - k),
                             &x) ||
                x < 0 || x > INT32_MAX)
                return gg_projector_refuse(
                    "image_grid_pinpoints: expected pairs of numbers", err);
            out[2 * i + k] = (int32_t)x;
        }
    return gg_projector_put_ints(c, "vision.image_grid_pinpoints", out, 2 * n,
                                 err);
}
