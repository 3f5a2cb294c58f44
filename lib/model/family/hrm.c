/* SPDX-License-Identifier: MIT */
/* hrm.c - hierarchical reasoning models of text (Wang et al., arXiv
 * 2506.21734)
 *
 * Two stacks of layers, low and high, run in turn over the same tokens. With
 * embeddings x and a learned vector z:
 *
 *     high = x, low = z
 *     n_high times:
 *         n_low times: low = the low stack's result for high + low
 *         high = the high stack's result for high + low
 *
 * The file has the layers of the low stack first. block_count counts computed
 * layers, each with keys and values of its own.
 */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>

typedef struct gguf_tensor tensor;

/* ---- computed layers ---- */

static uint32_t n_computed(const struct gg_hparams *hp)
{
    return hp->n_stack * hp->n_high * (hp->n_low + 1);
}

static uint32_t n_low_passes(const struct gg_hparams *hp)
{
    return hp->n_high * hp->n_low;
}

/* Is pass no of a stack one of the high stack? */
static bool is_high(const struct gg_hparams *hp, uint32_t no)
{
    return no % (hp->n_low + 1) == hp->n_low;
}

static uint32_t layer_in_stacks(const struct gg_hparams *hp, uint32_t il)
{
    return il % hp->n_stack +
           (is_high(hp, il / hp->n_stack) ? hp->n_stack : 0);
}

static const struct gg_arch_unroll in_turn = {
    .text = "two stacks of layers in turn, by hrm.h_cycles and hrm.l_cycles",
    .n_layers = n_computed,
    .most = n_low_passes,
    .layer_of = layer_in_stacks
};

static enum gguf_status count_layers(struct gg_hparams_reader *r)
{
    enum { MOST = 1 << 16 };
    struct gg_hparams *hp = r->hp;
    const uint64_t n_tensors = gg_source_n_tensors(r->src);
    const uint64_t n =
        (uint64_t)hp->n_stack * hp->n_high * ((uint64_t)hp->n_low + 1);
    if (!hp->n_stack || !hp->n_high || !hp->n_low)
        return GGUF_OK; /* reported */
    if (2 * (uint64_t)hp->n_stack > n_tensors)
        return gg_hparams_fail_range(r, GG_HP_n_stack, hp->n_stack, 1,
                                     n_tensors / 2);
    if (hp->has[GG_HP_n_layer] && hp->n_layer != n)
        GG_TRY(gg_hparams_fail_range(r, GG_HP_n_layer, hp->n_layer, n, n));
    hp->n_layer = 2 * hp->n_stack;
    return n <= MOST ? GGUF_OK
                     : gg_hparams_fail_range(r, GG_HP_n_layer, n, 1, MOST);
}

/* ---- the graph ---- */

static tensor *build_stacks(const struct gg_model_pass *p,
                            struct gg_model_layer_links *across, tensor *x)
{
    const struct gg_model_at at = gg_model_at_layer(p, across, 0);
    const struct gg_hparams *hp = &p->model->hp;
    const uint32_t n_passes = hp->n_high * (hp->n_low + 1);
    tensor *high = x, *low = gg_weight_at(&at, GG_W_HRM_LOW_INIT);
    for (uint32_t no = 0, il = 0; no < n_passes; no++) {
        x = gguf_op_add(p->ctx, high, low);
        for (uint32_t k = 0; k < hp->n_stack; k++)
            x = gg_model_build_layer(p, across, il++, x);
        if (no + 1 < n_passes) /* the caller applies the last norm */
            x = gg_model_apply_norm(&at, GG_NORM_RMS, GG_W_NONE, x);
        *(is_high(hp, no) ? &high : &low) = x;
    }
    return high;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "hrm_text", .runs = true, LLAMA, NEOX,
      .choose_weights = { gg_arch_without_norm_weights,
                          "norms without weights" },
      .unroll = &in_turn, .count_layers = { count_layers, "" },
      .build_layers = { build_stacks, "" },
      .gate_attention = { gg_arch_gate_elements, "sigmoid gate" },
      .embd_scale = &gg_arch_embd_by_key,
      MORE(N(ATTN_GATE), N(HRM_LOW_INIT), K(n_stack), K(n_high), K(n_low),
           KM(prefix_lm)),
      .remark = "hrm.prefix_lm is ignored, as by llama.cpp: prompts are "
                "causal, too" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_hrm = { rows, GG_LEN(rows) };
