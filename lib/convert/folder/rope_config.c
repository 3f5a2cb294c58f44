/* SPDX-License-Identifier: MIT */
/* rope_config.c - one set of rotary parameters out of config.json
 *
 * Folders state rotary parameters in up to three places: rope_scaling (until
 * transformers 4), rope_parameters (since 5), and members of config.json itself
 * such as rope_theta. Where they disagree, transformers decides
 * (convert_rope_params_to_dict and standardize_rope_params in
 * modeling_rope_utils.py of 5.0; convert_rope_params_to_dict of
 * configuration_gemma3.py):
 *
 *   - rope_scaling replaces rope_parameters, unless it is empty. Where
 *     rope_parameters has an object for each kind of layer, rope_scaling
 *     replaces members of the one for full attention.
 *   - rope_theta in that object replaces the one beside it.
 *   - rope_type replaces type. Without either, the type is "default".
 *   - In a model with text_config, only the rotary parameters of text_config
 *     count.
 *
 * The tree of config.json is changed accordingly, so that every row reads the
 * same value whichever place it asks. Each decision is a note.
 */
#include "config.h"
#include "convert/folder/folder.h"

#include "base/compiler.h"
#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the rotary base in several configuration classes. */
static const char *const bases[] = { "rope_theta", "rotary_emb_base",
                                     "rope_embedding_base" };
/* Members of rotary parameters that are numbers. */
static const char *const numbers[] = {
    "rope_theta",
    "factor",
    "beta_fast",
    "beta_slow",
    "low_freq_factor",
    "high_freq_factor",
    "attention_factor",
    "original_max_position_embeddings",
    "partial_rotary_factor",
    "mscale",
    "mscale_all_dim",
};
/* Rotary parameters of one kind of layer. */
static const struct {
    const char *kind,
        *base; /* base: name of the base beside rope_parameters */
} kinds[] = {
    { "full_attention", "rope_theta" },
    { "sliding_attention", "rope_local_base_freq" },
};

/* ---- numbers that are written as texts ---- */

static bool is_whole_number(const char *text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return *text && !*end && !errno && isfinite(*out) &&
           !strpbrk(text, "xXpP \t\n");
}

/* A member that is a number in quotes becomes that number. */
static enum gguf_status unquote_number(struct gg_folder *f, json_t *o,
                                       const char *where, const char *name,
                                       struct gguf_error *err)
{
    const json_t *v = json_object_get(o, name);
    struct gguf_str text;
    struct gg_str_esc e;
    double x;
    if (!gg_json_str(v, &text))
        return GGUF_OK;
    gg_str_esc(&e, text);
    if (!is_whole_number(text.data, &x))
        return gg_error_set(
            err, GGUF_E_HPARAM,
            gg_json_offset_of(&f->text[GG_CONVERT_CONFIG].json, v),
            "config.json: %s%s is the text '%s', expected a "
            "number",
            where, name, e.s);
    gg_folder_warn(f,
                   "config.json: %s%s is the text '%s', expected a number: "
                   "taken as %.15g",
                   where, name, e.s, x);
    json_t *n = x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x)
                                                : json_real(x);
    return json_object_set_new(o, name, n) ? gg_error_set_nomem(err, 64)
                                           : GGUF_OK;
}

/* ---- members of one object ---- */

/* Older and newer names of one type. */
static bool is_synonym(struct gguf_str a, struct gguf_str b)
{
    static const char *const pairs[][2] = { { "mrope", "default" },
                                            { "su", "longrope" },
                                            { "xdrope", "dynamic" } };
    for (size_t i = 0; i < GG_LEN(pairs); i++)
        if ((gg_str_eqz(a, pairs[i][0]) && gg_str_eqz(b, pairs[i][1])) ||
            (gg_str_eqz(b, pairs[i][0]) && gg_str_eqz(a, pairs[i][1])))
            return true;
    return gg_str_eq(a, b);
}

/* The type of rotary parameters under both of its names. */
static enum gguf_status fix_type(struct gg_folder *f, json_t *o,
                                 const char *where, struct gguf_error *err)
{
    static const char *const scaling[] = { "factor", "long_factor",
                                           "short_factor", "low_freq_factor" };
    const json_t *one = json_object_get(o, "rope_type");
    json_t *other = json_object_get(o, "type");
    const json_t *type = one && !json_is_null(one) ? one : other;
    struct gguf_str a, b;
    struct gg_str_esc e, e2;
    if (type && !json_is_null(type) && !json_is_string(type))
        return gg_error_set(
            err, GGUF_E_HPARAM,
            gg_json_offset_of(&f->text[GG_CONVERT_CONFIG].json, o),
            "config.json: %s%s is not a text, expected the "
            "name of a kind of scaling",
            where, type == one ? "rope_type" : "type");
    if (!json_is_string(type)) {
        for (size_t i = 0; i < GG_LEN(scaling); i++)
            if (json_object_get(o, scaling[i])) {
                gg_folder_warn(f,
                               "config.json: %s%s has no rope_type beside "
                               "it: positions are not scaled, as in "
                               "transformers",
                               where, scaling[i]);
                break;
            }
        return GGUF_OK;
    }
    if (!gg_json_str(one, &a) || !gg_json_str(other, &b) || is_synonym(a, b))
        return GGUF_OK;
    gg_folder_warn(f,
                   "config.json: %srope_type is '%s', and type is '%s': "
                   "rope_type is taken, as in transformers",
                   where, gg_str_esc(&e, a), gg_str_esc(&e2, b));
    return json_object_set(o, "type", (json_t *)(uintptr_t)one)
               ? gg_error_set_nomem(err, 64)
               : GGUF_OK;
}

/* Use the base of o in place of the member of that name beside it. */
static enum gguf_status fix_base(struct gg_folder *f, const json_t *o,
                                 const char *where, const char *name,
                                 bool is_new, struct gguf_error *err)
{
    json_t *inner = json_object_get(o, "rope_theta");
    const json_t *outer = gg_folder_get_config(f, name);
    double x, y;
    if (!gg_json_num(inner, &x))
        return GGUF_OK;
    if (!gg_json_num(outer, &y)) {
        if (!is_new || outer)
            return GGUF_OK;
    } else if (x != y) {
        gg_folder_warn(f,
                       "config.json: %s is %.15g, and %srope_theta is %.15g: "
                       "%.15g is taken, as in transformers",
                       name, y, where, x, x);
    }
    return json_object_set(f->config, name, inner)
               ? gg_error_set_nomem(err, 64)
               : GGUF_OK;
}

static enum gguf_status fix_object(struct gg_folder *f, json_t *o,
                                   const char *where, struct gguf_error *err)
{
    for (size_t i = 0; i < GG_LEN(numbers); i++)
        GG_TRY(unquote_number(f, o, where, numbers[i], err));
    return fix_type(f, o, where, err);
}

/* ---- which object ---- */

/* Find an object by name. *out is NULL if config.json lacks it, or if it is
 * empty. */
static enum gguf_status find_object(const struct gg_folder *f,
                                    const char *name, json_t **out,
                                    struct gguf_error *err)
{
    json_t *v = json_object_get(f->config, name);
    *out = json_object_size(v) ? v : NULL;
    if (!v || json_is_object(v) || json_is_null(v) || json_is_false(v))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_HPARAM,
                        gg_json_offset_of(&f->text[GG_CONVERT_CONFIG].json, v),
                        "config.json: %s is not an object", name);
}

/* Does the object contain objects for kinds of layers? */
static bool is_nested(const json_t *o)
{
    for (size_t i = 0; i < GG_LEN(kinds); i++)
        if (json_is_object(json_object_get(o, kinds[i].kind)))
            return true;
    return false;
}

/* Does b have every member of a, with the same value? */
static bool is_part_of(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)a, key, v)
    {
        if (!json_equal(v, json_object_get(b, key)))
            return false;
    }
    return true;
}

/* Both exist: rope_scaling takes precedence. */
static enum gguf_status join_scaling(struct gg_folder *f, json_t *scaling,
                                     json_t **parameters,
                                     struct gguf_error *err)
{
    json_t *full = json_object_get(*parameters, kinds[0].kind);
    const bool nested = is_nested(*parameters);
    const bool same =
        nested ? is_part_of(scaling, full) : json_equal(scaling, *parameters);
    int failed = 0;
    if (!nested)
        failed = json_object_set(f->config, "rope_parameters", scaling);
    else if (json_is_object(full))
        failed = json_object_update(full, scaling);
    else
        failed = json_object_set(*parameters, kinds[0].kind, scaling);
    if (failed)
        return gg_error_set_nomem(err, 64);
    if (!nested)
        *parameters = NULL;
    if (!same)
        gg_folder_warn(f, "config.json: rope_scaling and rope_parameters "
                          "differ: rope_scaling is taken, as in transformers");
    return GGUF_OK;
}

/* A language model with its own base does not use that of the model around
 * it. */
static void drop_outer(struct gg_folder *f)
{
    json_t *root = f->text[GG_CONVERT_CONFIG].json.root;
    json_t *outer = json_object_get(root, "rope_parameters");
    double x, y;
    if (f->config == root || json_object_get(f->config, "rope_parameters") ||
        !gg_json_num(json_object_get(f->config, "rope_theta"), &x) ||
        !gg_json_num(json_object_get(outer, "rope_theta"), &y))
        return;
    if (x != y)
        gg_folder_warn(f,
                       "config.json: rope_theta of the language model is "
                       "%.15g, and of the model around it %.15g: %.15g is "
                       "taken, as in transformers",
                       x, y, x);
    json_object_del(outer, "rope_theta");
}

enum gguf_status gg_folder_fix_rope(struct gg_folder *f,
                                    struct gguf_error *err)
{
    char where[64];
    json_t *scaling, *parameters;
    drop_outer(f);
    for (size_t i = 0; i < GG_LEN(bases); i++)
        GG_TRY(unquote_number(f, f->config, "", bases[i], err));
    GG_TRY(find_object(f, "rope_scaling", &scaling, err));
    GG_TRY(find_object(f, "rope_parameters", &parameters, err));
    if (scaling) {
        GG_TRY(fix_object(f, scaling, "rope_scaling.", err));
        for (size_t i = 0; i < GG_LEN(bases); i++)
            GG_TRY(fix_base(f, scaling, "rope_scaling.", bases[i], !i, err));
    }
    if (scaling && parameters)
        GG_TRY(join_scaling(f, scaling, &parameters, err));
    if (parameters && !is_nested(parameters)) {
        GG_TRY(fix_object(f, parameters, "rope_parameters.", err));
        for (size_t i = 0; i < GG_LEN(bases); i++)
            GG_TRY(fix_base(f, parameters, "rope_parameters.", bases[i], false,
                            err));
    }
    for (size_t i = 0; i < GG_LEN(kinds); i++) {
        json_t *o = json_object_get(parameters, kinds[i].kind);
        if (!json_is_object(o))
            continue;
        snprintf(where, sizeof where, "rope_parameters.%s.", kinds[i].kind);
        GG_TRY(fix_object(f, o, where, err));
        GG_TRY(fix_base(f, o, where, kinds[i].base, false, err));
    }
    return GGUF_OK;
}
