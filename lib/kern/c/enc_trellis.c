/* SPDX-License-Identifier: MIT */
/* enc_trellis.c - reference encoders of IQ1_KT to IQ4_KT */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_trellis_impl.h"

/* Least squared distance of each lane, and its code. */
struct least {
    float score[8];
    unsigned code[8];
};

/* Elements k of eight codes; advances their states. */
static void next_elements(float q[8], uint32_t state[8], int absolute)
{
    for (int i = 0; i < 8; i++) {
        int v = gg_dtype_trellis_next(&state[i]);
        q[i] = (float)(absolute && v < 0 ? -v : v);
    }
}

/* Weighted squared distances of element k of eight codes. */
static void put_distances(float e[8], uint32_t state[8], int absolute, float v,
                          float w)
{
    float q[8];
    next_elements(q, state, absolute);
    for (int i = 0; i < 8; i++)
        e[i] = w * ((q[i] - v) * (q[i] - v));
}

static void try_codes(struct least *l, const struct gg_kern_trellis *t,
                      const uint16_t code[8], const float *v, const float *w)
{
    float e[8][8];
    uint32_t state[8];
    for (int i = 0; i < 8; i++)
        state[i] = code[i] + t->offset;
    for (int k = 0; k < t->group; k++)
        put_distances(e[k], state, t->absolute, v[k], w[k]);
    for (int i = 0; i < 8; i++) {
        float score = t->group == 8
                          ? ((e[0][i] + e[4][i]) + (e[2][i] + e[6][i])) +
                                ((e[1][i] + e[5][i]) + (e[3][i] + e[7][i]))
                          : (e[0][i] + e[2][i]) + (e[1][i] + e[3][i]);
        if (score < l->score[i]) {
            l->score[i] = score;
            l->code[i] = code[i];
        }
    }
}

static unsigned find_code(const struct gg_kern_trellis *t,
                          const uint16_t *list, size_t n, const float *v,
                          const float *w)
{
    static const uint8_t order[8] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    struct least l = { { 0 }, { 0 } };
    unsigned code = 0;
    float least = INFINITY;
    for (int i = 0; i < 8; i++)
        l.score[i] = INFINITY;
    for (size_t i = 0; i < n; i += 8) {
        uint16_t all[8];
        for (size_t k = 0; k < 8; k++)
            all[k] = list ? list[i + k] : (uint16_t)(i + k);
        try_codes(&l, t, all, v, w);
    }
    for (int i = 0; i < 8; i++) {
        int lane = t->group == 8 ? i : order[i];
        if (l.score[lane] < least) {
            least = l.score[lane];
            code = l.code[lane];
        }
    }
    return code;
}

GG_TRELLIS_ENCODERS(c)
