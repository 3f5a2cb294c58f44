/* SPDX-License-Identifier: MIT */
/* weight.c - names and shapes of weights */
#include "config.h"
#include "model/weight/weight.h"

#include "base/compiler.h"
#include "base/str.h"
#include "file/name.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct gg_weight_row gg_weights[GG_N_WEIGHTS] = {
#define X(ID, NAME, SCOPE, ROLE, INSTEAD, ...)                                \
    { NAME, GG_##SCOPE, GG_##ROLE, GG_W_##INSTEAD },
    GG_WEIGHT_LIST(X)
#undef X
};

const char *const gg_model_scopes[GG_N_SCOPES] = { "", "blk.", "enc.blk.",
                                                   "dec.blk." };

const char *gg_weight_name(enum gg_weight id, uint32_t il,
                           char out[GG_WEIGHT_NAME])
{
    const struct gg_weight_row *w = &gg_weights[id];
    if (w->scope == GG_MODEL)
        snprintf(out, GG_WEIGHT_NAME, "%s", w->name);
    else
        snprintf(out, GG_WEIGHT_NAME, "%s%" PRIu32 ".%s",
                 gg_model_scopes[w->scope], il, w->name);
    return out;
}

enum gg_weight gg_weight_bias(enum gg_weight id)
{
    static const char is_bias[] = ".bias";
    if (id + 1 >= GG_N_WEIGHTS)
        return GG_W_NONE;
    const char *next = gg_weights[id + 1].name;
    const size_t stem = strcspn(next, "."), n = strlen(next);
    bool yes = n > sizeof is_bias &&
               !strcmp(next + n - (sizeof is_bias - 1), is_bias) &&
               !strncmp(next, gg_weights[id].name, stem + 1);
    return yes ? (enum gg_weight)(id + 1) : GG_W_NONE;
}

enum gg_model_scope gg_weight_scope(struct gguf_str *name, uint64_t *il)
{
    for (unsigned scope = GG_LAYER; scope < GG_N_SCOPES; scope++) {
        const int64_t n = gg_name_cut_index(name, gg_model_scopes[scope]);
        if (n >= 0) {
            *il = (uint64_t)n;
            return (enum gg_model_scope)scope;
        }
    }
    return GG_MODEL;
}

void gg_weight_ne(enum gg_weight id, const struct gg_model_sizes *z,
                  int64_t ne[GG_WEIGHT_DIMS])
{
    double v[GG_WEIGHT_DIMS];
    switch (id) {
#define X(ID, NAME, SCOPE, ROLE, INSTEAD, ...)                                \
    case GG_W_##ID:                                                           \
        memcpy(v, (double[GG_WEIGHT_DIMS]){ __VA_ARGS__ }, sizeof v);         \
        break;
        GG_WEIGHT_LIST(X)
#undef X
    default: memset(v, 0, sizeof v);
    }
    for (int i = 0; i < GG_WEIGHT_DIMS; i++) {
        ne[i] = v[i] == 0 ? 1 : 0;
        /* a fraction means that numbers contradict each other, which is
         * reported elsewhere */
        if (v[i] >= 1 && v[i] < 0x1p53 && v[i] == floor(v[i]))
            ne[i] = (int64_t)v[i];
    }
}

bool gg_weight_fits(const struct gguf_tensor_info *t,
                    const int64_t ne[GG_WEIGHT_DIMS])
{
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        int64_t n = i < GG_WEIGHT_DIMS ? ne[i] : 1;
        if (n && t->ne[i] != n)
            return false;
    }
    return true;
}

static size_t list_dims(char *out, size_t size, const int64_t *ne, unsigned n)
{
    size_t used = 0;
    for (unsigned i = 0; i < n && used < size; i++) {
        int k = ne[i]
                    ? snprintf(out + used, size - used, "%s%" PRId64,
                               i ? ", " : "", ne[i])
                    : snprintf(out + used, size - used, "%s?", i ? ", " : "");
        used += k > 0 ? (size_t)k : 0;
    }
    return used;
}

const char *gg_weight_shape_text(struct gg_weight_text *out,
                                 const struct gguf_tensor_info *t,
                                 const int64_t ne[GG_WEIGHT_DIMS])
{
    char has[128] = "", must[80] = "";
    unsigned n = GG_WEIGHT_DIMS;
    struct gg_str_esc e;
    while (n > 1 && ne[n - 1] == 1)
        n--;
    list_dims(has, sizeof has, t->ne, t->n_dims);
    list_dims(must, sizeof must, ne, n);
    snprintf(out->s, sizeof out->s, "tensor '%s' has shape [%s], must be [%s]",
             gg_str_esc(&e, t->name), has, must);
    return out->s;
}
