/* SPDX-License-Identifier: MIT */
/* build.c - the graph of a pass: layers in the order of an architecture's row
 */
#include "config.h"
#include "model/build_int.h"

#include "base/compiler.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef struct gguf_tensor tensor;

static enum gguf_status refuse_key(const struct gguf_model *m, const char *key,
                                   const char *why, struct gguf_error *err)
{
    char name[128];
    gg_model_key(m, key, name, sizeof name);
    const struct gguf_kv *kv =
        gguf_file_kv_find(gg_source_meta(&m->src), name);
    return gg_error_set(err, GGUF_E_UNSUPPORTED, kv ? kv->off : GGUF_NO_OFFSET,
                        "%s: %s", name, why);
}

/* Refuse keys whose values are not supported yet. */
static enum gguf_status check_keys(const struct gguf_model *m,
                                   struct gguf_error *err)
{
    if (m->hp.n_expert && m->hp.expert_gating == GG_EXPERT_UNKNOWN)
        return refuse_key(m, "expert_gating_func",
                          "missing or of a kind that is not supported", err);
    if (!gg_model_n_main_layers(m))
        return refuse_key(m, "nextn_predict_layers",
                          "the file has only nextn layers", err);
    return GGUF_OK;
}

/* The matrices to and from another width come together. */
static enum gguf_status check_latent(const struct gguf_model *m, uint32_t il,
                                     struct gguf_error *err)
{
    const bool down = gg_model_has_weight(m, GG_W_LATENT_DOWN, il);
    if (!m->hp.layer[il].moe ||
        down == gg_model_has_weight(m, GG_W_LATENT_UP, il))
        return GGUF_OK;
    return gg_model_fail_missing_weight(
        down ? GG_W_LATENT_UP : GG_W_LATENT_DOWN, il, err);
}

/* A dense part of a layer with experts must have all of its matrices or
 * none. */
static enum gguf_status check_beside(const struct gguf_model *m, uint32_t il,
                                     struct gguf_error *err)
{
    static const enum gg_weight ids[] = { GG_W_FFN_GATE, GG_W_FFN_UP,
                                          GG_W_FFN_DOWN };
    unsigned n = 0, lacks = 0;
    for (unsigned i = 0; i < GG_LEN(ids); i++)
        if (gg_model_has_weight(m, ids[i], il))
            n++;
        else
            lacks = i;
    return m->arch->moe.dense_branch && n && n < GG_LEN(ids)
               ? gg_model_fail_missing_weight(ids[lacks], il, err)
               : GGUF_OK;
}

/* A layer with a router has experts: then expert_count must be given. */
static enum gguf_status check_number(const struct gguf_model *m, uint32_t il,
                                     struct gguf_error *err)
{
    return m->hp.layer[il].moe && !m->hp.n_expert
               ? refuse_key(m, "expert_count",
                            "missing or 0, but a layer has a router", err)
               : GGUF_OK;
}

enum gguf_status gg_build_check(const struct gguf_model *m,
                                struct gguf_error *err)
{
    GG_TRY(check_keys(m, err));
    for (uint32_t il = 0; il < m->hp.n_layer && il < gg_model_n_main_layers(m);
         il++) {
        const struct gg_model_layer *l = &m->hp.layer[il];
        GG_TRY(check_latent(m, il, err));
        GG_TRY(check_beside(m, il, err));
        GG_TRY(check_number(m, il, err));
        const struct gg_mixer *mixer = l->mixer;
        if (mixer && !m->hp.causal && !mixer->looks_ahead &&
            mixer->memory & ~(unsigned)GG_MODEL_MEMORY_KV)
            return refuse_key(m, "attention.causal",
                              "false, but layers support causal attention "
                              "only",
                              err);
        if (mixer && mixer->check)
            GG_TRY(mixer->check(m, il, err));
        if (m->arch->check_layer)
            GG_TRY(m->arch->check_layer(m, il, err));
        if (mixer && mixer->stack)
            continue;
        if (!gg_ffn_is_supported(m, l))
            return gg_error_set(
                err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                "layer %" PRIu32 " has parts that are not supported", il);
    }
    return GGUF_OK;
}

enum gguf_status gg_build_check_loaded(const struct gguf_model *m,
                                       struct gguf_error *err)
{
    for (uint32_t il = 0; il < gg_model_n_main_layers(m) && il < m->hp.n_layer;
         il++) {
        const struct gg_mixer *mixer = m->hp.layer[il].mixer;
        if (mixer && mixer->loaded)
            GG_TRY(mixer->loaded(m, il, err));
    }
    return GGUF_OK;
}

/* ---- a layer ---- */

/* Do both parts read the layer's input? A layer with a single part does not. */
static bool is_parallel(const struct gg_model_at *at)
{
    return at->arch->is_parallel.fn ? at->arch->is_parallel.fn(at)
                                    : at->arch->order != GG_ORDER_SERIAL;
}

/* Norms around a part of the layer. */
static struct gg_model_norms norms_of(const struct gg_model_at *at,
                                      const struct gg_model_norms *n)
{
    return at->arch->place_norms.fn ? at->arch->place_norms.fn(at, n) : *n;
}

/* Norm before the feed-forward part. If the row names none, the file may still
 * have one. */
static unsigned ffn_norm(const struct gg_model_at *at)
{
    const struct gg_model_norms *n = &at->arch->ffn_norm;
    return n->pre == GG_W_NONE && gg_weight_at(at, GG_W_FFN_NORM)
               ? GG_W_FFN_NORM
               : norms_of(at, n).pre;
}

/* Does the feed-forward part of the last layer read tokens before those whose
 * output is wanted? */
static bool ffn_shifts(const struct gg_model_layer *l)
{
    return l->ffn && l->ffn->shifts;
}

/* The result y of a part joins the stream x. normed: the part's input. */
static tensor *join_part(const struct gg_model_at *at,
                         const struct gg_model_norms *norms, tensor *x,
                         tensor *normed, tensor *y)
{
    if (at->arch->join_part.fn)
        return at->arch->join_part.fn(at, normed, y);
    const struct gg_model_norms n = norms_of(at, norms);
    const bool scaled = at->arch->residual_scale;
    y = at->arch->norm_result.fn ? at->arch->norm_result.fn(at, n.post, y)
                                 : gg_model_apply_norm_if(at, n.post, y);
    y = gg_model_apply_scale(at, y, scaled ? at->m->hp.residual_scale : 1);
    y = gg_model_apply_norm_if(at, n.add, gguf_op_add(at->c, x, y));
    return y;
}

/* Input of the mixer. With parallel parts and two norms (Falcon 40B) the mixer
 * has the second. */
static tensor *mixer_input(const struct gg_model_at *at, tensor *x,
                           tensor *normed)
{
    return at->arch->order == GG_ORDER_PARALLEL &&
                   gg_weight_at(at, GG_W_ATTN_NORM_2)
               ? gg_model_apply_norm_if(at, GG_W_ATTN_NORM_2, x)
               : normed;
}

/* Build the mixer of a layer. Returns the residual stream after it; *normed
 * receives the input of a parallel feed-forward part. NULL: the last layer of a
 * pass without outputs. */
static tensor *build_mixer(struct gg_model_at *at, tensor *x, tensor **normed)
{
    const struct gg_arch *a = at->arch;
    const struct gg_mixer *mixer = at->layer->mixer;
    const bool parallel = is_parallel(at);
    at->in = x;
    *normed = gg_model_apply_norm_if(at, norms_of(at, &a->mix_norm).pre, x);
    tensor *y = mixer ? mixer->mix(at, mixer_input(at, x, *normed)) : NULL;
    if (gg_model_is_last_layer(at) && !ffn_shifts(at->layer)) {
        if (!at->p->n_out)
            return NULL;
        y = mixer ? gg_model_take_output_rows(at, y)
                  : NULL; /* after this only tokens whose output is wanted */
        x = at->in = gg_model_take_output_rows(at, x);
        if (parallel || a->join_part.fn)
            *normed = gg_model_take_output_rows(at, *normed);
    }
    if (parallel && ffn_norm(at) != GG_W_NONE)
        *normed = gg_model_apply_norm_if(at, ffn_norm(at), x);
    if (!mixer)
        return x;
    if (gg_weight_at(at, GG_W_ATTN_SUB_NORM))
        y = gg_model_apply_norm_if(at, GG_W_ATTN_SUB_NORM, y);
    if (mixer->out != GG_W_NONE)
        y = gg_model_linear(at, mixer->out, y);
    y = gg_model_apply_scale(at, y, at->m->hp.value_scale);
    y = join_part(at, &a->mix_norm, x, *normed, y);
    return a->finish_mixer ? a->finish_mixer(at, x, y) : y;
}

/* Add a layer's additional input to the residual stream, and the terms of its
 * architecture. */
static tensor *add_extras(const struct gg_model_at *at, tensor *x)
{
    tensor *own = gg_model_project_layer_input(at, x);
    x = own ? gguf_op_add(at->c, x, own) : x;
    return at->arch->finish_layer.fn ? at->arch->finish_layer.fn(at, x) : x;
}

static tensor *build_layer(struct gg_model_at *at, tensor *x)
{
    const struct gg_arch *a = at->arch;
    tensor *normed;
    x = at->sum = build_mixer(at, x, &normed);
    if (!x || (!at->layer->moe && !at->layer->ffn))
        return x;
    if (!is_parallel(at))
        normed = gg_model_apply_norm_if(at, ffn_norm(at), x);
    tensor *y = gg_model_name_activation(at, "ffn_output",
                                         gg_model_build_ffn(at, normed));
    x = join_part(at, &a->ffn_norm, x, normed, y);
    if (gg_model_is_last_layer(at) && ffn_shifts(at->layer))
        x = gg_model_take_output_rows(
            at, x); /* it needed the tokens before them */
    return add_extras(at, x);
}

/* ---- a pass ---- */

static float sqrt_of_width(const struct gg_hparams *hp)
{
    return sqrtf((float)hp->n_embd);
}

static float embedding_scale(const struct gg_hparams *hp)
{
    return hp->embd_scale;
}

const struct gg_arch_factor gg_arch_embd_sqrt = { .text = "times sqrt(n_embd)",
                                                  .of_model = sqrt_of_width },
                            gg_arch_embd_by_key = {
                                .text = "times embedding_scale",
                                .of_model = embedding_scale,
                                .key = true
                            };

static tensor *build_embeddings(const struct gg_model_at *at)
{
    struct gguf_ctx *c = at->c;
    const struct gg_arch *a = at->arch;
    tensor *types = gg_weight_at(at, GG_W_TOKEN_TYPES);
    tensor *position = gg_weight_at(at, GG_W_POSITION);
    tensor *x = gg_model_look_up_rows(at, GG_W_TOKEN_EMBD, at->p->tokens);
    if (a->embd_scale)
        x = gg_model_apply_scale(at, x, a->embd_scale->of_model(&at->m->hp));
    if (types && at->p->types)
        x = gguf_op_add(
            c, x, gg_model_look_up_rows(at, GG_W_TOKEN_TYPES, at->p->types));
    else if (types) /* all tokens have type 0 */
        x = gguf_op_add(c, x, gguf_op_view_1d(c, types, types->ne[0], 0));
    if (position)
        x = gguf_op_add(c, x,
                        gg_model_look_up_rows(at, GG_W_POSITION, at->p->pos));
    return a->embd_norm ? gg_model_apply_norm_if(at, GG_W_EMBD_NORM, x) : x;
}

tensor *gg_model_build_layer(const struct gg_model_pass *p,
                             struct gg_model_layer_links *across, uint32_t il,
                             tensor *x)
{
    struct gg_model_at at = gg_model_at_layer(p, across, il);
    return gg_model_name_activation(
        &at, "output", gg_model_add_control_vector(&at, build_layer(&at, x)));
}

/* All layers, of one stream. */
static tensor *build_stream(const struct gg_model_pass *p,
                            struct gg_model_layer_links *across, tensor *x)
{
    const struct gguf_model *m = p->model;
    for (uint32_t il = 0; il < gg_model_n_main_layers(m); il++) {
        const struct gg_model_at at = gg_model_at_layer(p, across, il);
        if (il && il % m->hp.n_layer == 0 && !m->hp.skip_loop_norm)
            x = gg_model_apply_norm_if(&at, m->arch->final_norm, x);
        x = gg_model_build_layer(p, across, il, x);
    }
    return x;
}

static tensor *build_layers(const struct gg_model_pass *p, tensor *x)
{
    const struct gguf_model *m = p->model;
    struct gg_model_layer_links across = { .first = x };
    const struct gg_model_at at = gg_model_at_layer(p, &across, 0);
    across.inputs = gg_model_build_layer_inputs(&at, x);
    x = m->arch->build_layers.fn ? m->arch->build_layers.fn(p, &across, x)
                                 : build_stream(p, &across, x);
    return p->n_out ? gg_model_apply_norm_if(&at, m->arch->final_norm, x)
                    : NULL;
}

tensor *gg_build_pass(const struct gg_model_pass *p)
{
    const struct gguf_model *m = p->model;
    const struct gg_model_at at = gg_model_at_layer(p, NULL, 0);
    gg_mixer_stack_fn *stack = gg_arch_mixer(m->arch)->stack;
    tensor *x = (stack ? stack : build_layers)(p, build_embeddings(&at));
    if (!p->n_out)
        return NULL;
    gguf_graph_add(p->graph, gguf_tensor_add_flags(x, GGUF_TENSOR_OUTPUT));
    return x;
}

size_t gg_build_n_nodes(const struct gguf_model *m)
{
    size_t experts = 0; /* largest number of experts in use in a layer */
    for (uint32_t il = 0; il < m->hp.n_layer; il++)
        experts = GG_MAX(experts, m->hp.layer[il].n_expert_used);
    experts = 32 + 2 * experts;
    const size_t states =
        gg_model_all_memory_kinds(m) & GG_MODEL_MEMORY_STATES ? 128 : 0;
    const size_t streams = m->arch->build_layers.fn ? 192 : 0;
    const size_t inputs = m->hp.n_per_layer ? 16 : 0;
    const size_t terms = m->hp.switch_on ? 64 : 0;
    return 96 + (size_t)gg_model_n_unrolled_layers(m) *
                    (64 + states + streams + inputs + terms +
                     (m->hp.n_expert ? experts : 0));
}
