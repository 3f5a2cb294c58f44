/* SPDX-License-Identifier: MIT */
/* expert_rules.c - rules for layers with experts, and widths of experts */
#include "config.h"
#include "model/hparam/hparams_int.h"

#include <math.h>

/* ---- which layers ---- */

static bool has_everywhere(const struct gg_hparams_reader *r, uint32_t il)
{
    (void)r;
    (void)il;
    return true;
}

static bool is_after_leading(const struct gg_hparams_reader *r, uint32_t il)
{
    return il >= r->hp->n_dense;
}

static bool has_router(const struct gg_hparams_reader *r, uint32_t il)
{
    char name[GG_WEIGHT_NAME];
    return gg_source_find(r->src, gg_weight_name(GG_W_ROUTER, il, name), NULL);
}

const struct gg_arch_experts
    gg_arch_experts_if_any = { .text = "all layers, if the file has experts",
                               .of_layer = has_everywhere },
    gg_arch_experts_all = { .text = "all layers",
                            .of_layer = has_everywhere,
                            .everywhere = true },
    gg_arch_experts_leading = { .text = "after leading_dense_block_count",
                                .of_layer = is_after_leading },
    gg_arch_experts_by_router = { .text = "layers with a router",
                                  .of_layer = has_router,
                                  .uncounted = true };

/* ---- how they are chosen ---- */

uint32_t gg_hparams_expert_gating(const struct gg_arch *a,
                                  const struct gg_hparams *hp)
{
    static const uint32_t numbers[GG_N_GATINGS] = {
        [GG_GATING_SOFTMAX] = GG_EXPERT_SOFTMAX,
        [GG_GATING_SIGMOID] = GG_EXPERT_SIGMOID,
        [GG_GATING_KEY] = GG_EXPERT_UNKNOWN
    };
    if (a->moe.gating_key && hp->expert_gating)
        return hp->expert_gating;
    return a->moe.gating_of_model.fn ? a->moe.gating_of_model.fn(hp)
                                     : numbers[a->moe.gating];
}

/* ---- how wide ---- */

/* A number that is known, or NAN. */
static double known_or_nan(double n)
{
    return n > 0 ? n : NAN;
}

static double width_given(const struct gg_model_layer *l, double ff)
{
    (void)ff;
    return known_or_nan(l->n_ff_expert);
}

static double width_or_part(const struct gg_model_layer *l, double ff)
{
    return l->n_ff_expert ? l->n_ff_expert
                          : floor(ff / known_or_nan(l->n_expert_used));
}

static double width_or_model(const struct gg_model_layer *l, double ff)
{
    return l->n_ff_expert ? l->n_ff_expert : ff;
}

const struct gg_arch_expert_width
    gg_arch_expert_width_given = { .text = "own width",
                                   .width = width_given,
                                   .needs_key = true },
    gg_arch_expert_width_or_part = { .text = "own width, or a part of the "
                                             "model's",
                                     .width = width_or_part },
    gg_arch_expert_width_or_model = { .text = "own width if given",
                                      .width = width_or_model };

static double shared_counted(const struct gg_hparams *hp, double own,
                             double ff)
{
    (void)ff;
    return hp->n_shared ? own * hp->n_shared : 0;
}

static double shared_wide(const struct gg_hparams *hp, double own, double ff)
{
    (void)ff;
    return hp->n_ff_shared ? hp->n_ff_shared : own;
}

static double shared_or_model(const struct gg_hparams *hp, double own,
                              double ff)
{
    (void)own;
    return hp->n_ff_shared ? hp->n_ff_shared : ff;
}

static double shared_if_wide(const struct gg_hparams *hp, double own,
                             double ff)
{
    (void)own;
    (void)ff;
    return hp->n_ff_shared;
}

/* Without a key there is one. */
static double shared_wide_or_counted(const struct gg_hparams *hp, double own,
                                     double ff)
{
    (void)ff;
    if (hp->has[GG_HP_n_shared] && !hp->n_shared)
        return 0;
    if (hp->n_ff_shared)
        return hp->n_ff_shared;
    return own * (hp->has[GG_HP_n_shared] ? hp->n_shared : 1);
}

const struct gg_arch_shared
    gg_arch_shared_counted = { .text = "shared: expert_shared_count",
                               .width = shared_counted },
    gg_arch_shared_wide = { .text = "shared: own width or an expert's",
                            .width = shared_wide },
    gg_arch_shared_or_model = { .text = "shared: own width or the model's",
                                .width = shared_or_model },
    gg_arch_shared_if_wide = { .text = "shared if it has a width",
                               .width = shared_if_wide },
    gg_arch_shared_wide_or_counted = {
        .text = "shared: own width or expert_shared_count",
        .width = shared_wide_or_counted
    };

void gg_hparams_expert_sizes(const struct gg_hparams *hp,
                             const struct gg_moe *moe,
                             const struct gg_model_layer *l,
                             struct gg_model_sizes *z)
{
    const double ff = known_or_nan(l->n_ff ? l->n_ff : hp->layer[0].n_ff);
    z->experts = known_or_nan(hp->n_expert);
    z->used = known_or_nan(l->n_expert_used);
    z->expert_ff = moe->ff ? moe->ff->width(l, ff) : ff;
    z->shared_ff = moe->shared
                       ? known_or_nan(moe->shared->width(hp, z->expert_ff, ff))
                       : NAN;
    z->expert_in = hp->moe_latent ? hp->moe_latent : z->embd;
    z->chunk_ff = hp->n_ff_chunk ? hp->n_ff_chunk : z->head;
    z->chunks = z->experts / known_or_nan(hp->n_per_group);
}
