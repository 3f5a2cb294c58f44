/* SPDX-License-Identifier: MIT */
/* hf_config.c - numbers and words of config.json */
#include "config.h"
#include "convert/hf_config.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The value of the n bytes at name, with points, in v. */
static const json_t *get_path(const json_t *v, const char *name, size_t n)
{
    char part[64];
    while (v && n) {
        const char *dot = memchr(name, '.', n);
        const size_t k = dot ? (size_t)(dot - name) : n;
        if (k >= sizeof part)
            return NULL;
        memcpy(part, name, k);
        part[k] = 0;
        v = json_is_array(v) && *part >= '0' && *part <= '9'
                ? json_array_get(v, (size_t)atoi(part))
                : json_object_get(v, part);
        n -= k + (dot != NULL);
        name += k + (dot != NULL);
    }
    return v;
}

static const json_t *get_name(const struct gg_hf_config *cfg, const char *name,
                              size_t n)
{
    char first[64];
    const size_t k = strcspn(name, ". ");
    if (cfg->read && k < sizeof first) {
        memcpy(first, name, k);
        first[k] = '\0';
        (void)json_object_set_new(cfg->read, first, json_true());
    }
    const json_t *v = get_path(cfg->model, name, n);
    if (!v && cfg->model != cfg->whole)
        v = get_path(cfg->whole, name, n);
    return json_is_null(v) ? NULL : v;
}

static size_t name_size(const char *names)
{
    return strcspn(names, " ");
}

static const char *next_name(const char *names)
{
    names += name_size(names);
    return names + (*names == ' ');
}

const json_t *gg_hf_config_get(const struct gg_hf_config *cfg,
                               const char *names)
{
    for (; *names; names = next_name(names)) {
        const json_t *v = get_name(cfg, names, name_size(names));
        if (v)
            return v;
    }
    return NULL;
}

/* The element of a list that is the layer's. */
static const json_t *of_layer(const json_t *v, int64_t layer)
{
    return json_is_array(v) ? json_array_get(v, layer < 0 ? 0 : (size_t)layer)
                            : v;
}

double gg_hf_config_num(const struct gg_hf_config *cfg, const char *names,
                        int64_t layer)
{
    double x;
    for (; *names; names = next_name(names)) {
        const json_t *v =
            of_layer(get_name(cfg, names, name_size(names)), layer);
        if (json_is_boolean(v))
            return json_is_true(v);
        if (gg_json_num(v, &x))
            return x;
    }
    return NAN;
}

double gg_hf_config_is_word(const struct gg_hf_config *cfg, const char *name,
                            int64_t layer, const char *word)
{
    const json_t *v = gg_hf_config_get(cfg, name);
    struct gguf_str s;
    if (!v)
        return NAN;
    return gg_json_str(of_layer(v, layer), &s) && gg_str_eqz(s, word);
}

double gg_hf_config_has_letter(const struct gg_hf_config *cfg,
                               const char *name, int64_t layer, char letter)
{
    struct gguf_str s;
    if (!gg_json_str(gg_hf_config_get(cfg, name), &s) || !s.size)
        return NAN;
    return s.data[(size_t)(layer < 0 ? 0 : layer) % s.size] == letter;
}

double gg_hf_config_list_has(const struct gg_hf_config *cfg, const char *name,
                             int64_t number)
{
    const json_t *list = gg_hf_config_get(cfg, name);
    const size_t n = json_array_size(list);
    int64_t x;
    if (!json_is_array(list) || n > GG_HF_CONFIG_LAYERS)
        return NAN;
    for (size_t i = 0; i < n; i++)
        if (gg_json_int(json_array_get(list, i), &x) && x == number)
            return 1;
    return 0;
}

size_t gg_hf_config_list_len(const struct gg_hf_config *cfg, const char *name)
{
    return json_array_size(gg_hf_config_get(cfg, name));
}

double gg_hf_config_all_layers(const struct gg_hf_config *cfg,
                               gg_hf_config_layer_fn *fn)
{
    const double n = gg_hf_config_num(cfg, "num_hidden_layers", -1);
    int64_t layer = 0;
    bool all = true;
    do {
        const double x = fn(cfg, layer);
        if (isnan(x))
            return x;
        all = all && x != 0;
    } while ((double)++layer < n && layer < GG_HF_CONFIG_LAYERS);
    return all;
}

double gg_hf_config_first_layer(const struct gg_hf_config *cfg,
                                gg_hf_config_layer_fn *fn)
{
    const double n = gg_hf_config_num(cfg, "num_hidden_layers", -1);
    int64_t layer = 0;
    double x = fn(cfg, layer);
    while (x == 0 && (double)++layer < n && layer < GG_HF_CONFIG_LAYERS)
        x = fn(cfg, layer);
    return isnan(x) || isnan(n) ? NAN : (double)layer;
}
