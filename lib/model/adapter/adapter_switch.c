/* SPDX-License-Identifier: MIT */
/* adapter_switch.c - switched adapters: tokens that activate an adapter of the
 * model, and the adapter of each token
 *
 * The chooser is one attention head over the tokens of a sequence, without
 * weights. It needs only the number of tokens of each kind. */
#include "config.h"
#include "model/build_int.h"

#include "base/compiler.h"
#include "gguf/kv.h"

#include <math.h>

/* Place of a token in the list of activation tokens, the last of several; -1:
 * it is not there. */
static int64_t find_activation(const struct gguf_model *m, int32_t token)
{
    enum { PIECE = 64 };
    int32_t ids[PIECE];
    int64_t found = -1;
    const int64_t n = m->hp.switch_on ? m->hp.n_switch : 0;
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t k = GG_MIN(n - at, (int64_t)PIECE);
        if (gguf_kv_get_elems_i32(m->hp.switch_on, (uint64_t)at, (size_t)k,
                                  ids, NULL) != GGUF_OK)
            return -1;
        for (int64_t i = 0; i < k; i++)
            found = ids[i] == token ? at + i : found;
    }
    return found;
}

int32_t gg_model_activated_adapter(const struct gguf_model *m, int32_t token)
{
    return (int32_t)(find_activation(m, token) + 1);
}

int32_t gg_model_embedded_token(const struct gguf_model *m, int32_t token)
{
    int32_t instead;
    const int64_t i = find_activation(m, token);
    return i >= 0 && gguf_kv_get_elems_i32(m->hp.switch_instead, (uint64_t)i,
                                           1, &instead, NULL) == GGUF_OK
               ? instead
               : token;
}

int32_t gg_model_choose_adapter(const struct gguf_model *m, uint64_t n_seen,
                                uint64_t n_active, uint64_t sum)
{
    if (!n_active)
        return 0;
    /* exponentials of the scores minus the largest score: 1 and this */
    const double rest = exp(-2 * (double)m->hp.switch_gain);
    const double all = (double)n_active + rest * (double)(n_seen - n_active);
    const float weight = (float)(1 / all);
    const float mean = (float)(weight * (double)sum);
    return (int32_t)roundf(GG_MIN(mean, (float)m->hp.n_switch));
}
