/* SPDX-License-Identifier: MIT */
/* projector_config.c - settings of a projector, joined to one object */
#include "config.h"
#include "convert/projector/projector.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Take the members of from, one by one, in place of those in to. */
static enum gguf_status merge_members(json_t *to, json_t *from,
                                      struct gguf_error *err)
{
    return !from || !json_object_update(to, from)
               ? GGUF_OK
               : gg_error_set_nomem(err, sizeof(json_t *));
}

/* Take the members of a file of the folder, above them those of the object that
 * it contains under this name, and above those its "media_proc_cfg". */
static enum gguf_status read_settings(struct gguf_convert *c, json_t *to,
                                      const char *file, const char *inner,
                                      struct gguf_error *err)
{
    struct gg_mapfile m;
    struct gg_json j;
    GG_TRY(gg_folder_read_json(&c->folder, file, &m, &j, err));
    enum gguf_status st = GGUF_OK;
    if (json_is_object(j.root)) {
        json_t *of = json_object_get(j.root, inner);
        json_t *media = json_object_get(of ? of : j.root, "media_proc_cfg");
        st = merge_members(to, j.root, err);
        if (st == GGUF_OK && json_is_object(of))
            st = merge_members(to, of, err);
        if (st == GGUF_OK && json_is_object(media))
            st = merge_members(to, media, err);
    }
    gg_json_fini(&j);
    gg_mapfile_close(&m);
    return st;
}

/* Add an object of config.json to the settings. It is copied, so that members
 * can be set in it. */
static enum gguf_status add_object(struct gguf_convert *c, const char *name,
                                   json_t *from, struct gguf_error *err)
{
    json_t *copy = json_copy(from);
    /* members for which memory runs out are left out of a copy */
    if (copy && json_object_size(copy) != json_object_size(from)) {
        json_decref(copy);
        copy = NULL;
    }
    return copy && !json_object_set_new(c->settings, name, copy)
               ? GGUF_OK
               : gg_error_set_nomem(err, sizeof(json_t *));
}

/* Add the settings of a tower, in the first member of NAMES that exists. */
static enum gguf_status add_tower(struct gguf_convert *c, const char *name,
                                  const char *names, struct gguf_error *err)
{
    json_t *root = c->folder.text[GG_CONVERT_CONFIG].json.root;
    const struct gg_hf_config cfg = { .model = root, .whole = root };
    if (!names)
        return GGUF_OK;
    const json_t *of =
        !strcmp(names, ".") ? root : gg_hf_config_get(&cfg, names);
    if (!json_is_object(of))
        return gg_error_set(err, GGUF_E_HPARAM, GGUF_NO_OFFSET,
                            "config.json: \"%s\" with the settings of the "
                            "tower is missing",
                            names);
    return add_object(c, name, (json_t *)(uintptr_t)of, err);
}

enum gguf_status gg_projector_read_config(struct gguf_convert *c,
                                          struct gguf_error *err)
{
    json_t *image = json_object();
    enum gguf_status st =
        image ? GGUF_OK : gg_error_set_nomem(err, sizeof(json_t *));
    if (st == GGUF_OK)
        st = read_settings(c, image, "preprocessor_config.json", "", err);
    if (st == GGUF_OK)
        st = read_settings(c, image, "processor_config.json",
                           "image_processor", err);
    if (st != GGUF_OK) {
        json_decref(image);
        return st;
    }
    return gg_projector_join_config(c, image, err);
}

enum gguf_status gg_projector_join_config(struct gguf_convert *c,
                                          json_t *image,
                                          struct gguf_error *err)
{
    c->settings = json_object();
    if (json_object_set_new(c->settings, "image", image))
        return gg_error_set_nomem(err, sizeof(json_t *));
    GG_TRY(add_object(c, "text", c->folder.config, err));
    GG_TRY(add_tower(c, "vision", c->projector->vision, err));
    GG_TRY(add_tower(c, "audio", c->projector->audio, err));
    c->folder.config = c->settings;
    return GGUF_OK;
}

enum gguf_status gg_projector_read_tower(struct gguf_convert *c,
                                         const char *tower, const char *file,
                                         struct gguf_error *err)
{
    json_t *of = json_object();
    if (!of || json_object_set_new(c->settings, tower, of))
        return gg_error_set_nomem(err, sizeof(json_t *));
    GG_TRY(read_settings(c, of, file, "", err));
    return json_object_size(of)
               ? GGUF_OK
               : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                              "%s is missing", file);
}

enum gguf_status gg_projector_set(struct gguf_convert *c, const char *name,
                                  double value, struct gguf_error *err)
{
    char object[32];
    const size_t n = strcspn(name, ".");
    snprintf(object, sizeof object, "%.*s", (int)n, name);
    json_t *of = json_object_get(c->settings, object);
    const bool whole = fabs(value) < 1e15 && value == floor(value);
    json_t *v = whole ? json_integer((json_int_t)value) : json_real(value);
    return json_object_set_new(of, name + n + 1, v)
               ? gg_error_set_nomem(err, sizeof(json_t *))
               : GGUF_OK;
}
