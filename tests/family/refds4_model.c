/* SPDX-License-Identifier: MIT */
/* refds4_model.c - models of DeepSeek-V4: keys and tensors */
#include "config.h"
#include "tests/family/refds4.h"

#include <stdio.h>
#include <stdlib.h>

static void must_set(enum gguf_status st)
{
    if (st != GGUF_OK)
        abort();
}

static const char *full_key(const char *what)
{
    static char s[96];
    snprintf(s, sizeof s, "deepseek4.%s", what);
    return s;
}

static void put_key(struct gen *g, const char *what, int v)
{
    must_set(gguf_meta_set_u32(g->meta, full_key(what), (uint32_t)v, NULL));
}

static void put_f(struct gen *g, const char *what, float v)
{
    must_set(gguf_meta_set_f32(g->meta, full_key(what), v, NULL));
}

static void add_matrices(struct gen *g, int64_t ne0, int64_t ne1, int64_t ne2,
                         int il, const char *what)
{
    gen_tensor(g, ne0, ne1, "blk.%d.%s.weight", il, what);
    g->t[g->n - 1].n_dims = 3;
    g->t[g->n - 1].ne[2] = ne2;
}

static void put_keys(struct gen *g, const struct refds4 *s, int n_layer)
{
    put_key(g, "vocab_size", REFDS4_VOCAB);
    put_key(g, "context_length", 4096);
    put_key(g, "embedding_length", s->n_embd);
    put_key(g, "block_count", n_layer);
    put_key(g, "attention.head_count", s->n_head);
    put_key(g, "attention.head_count_kv", 1);
    put_key(g, "attention.key_length", s->d);
    put_key(g, "attention.value_length", s->d);
    put_key(g, "rope.dimension_count", s->rot);
    put_f(g, "rope.freq_base", s->base);
    put_f(g, "attention.layer_norm_rms_epsilon", s->eps);
    put_key(g, "attention.q_lora_rank", s->rank_q);
    put_key(g, "attention.sliding_window", s->window);
    put_key(g, "expert_feed_forward_length", s->n_ff);
    put_key(g, "expert_shared_count", s->shared);
    put_f(g, "expert_weights_scale", (float)s->scale);
    must_set(gguf_meta_set_bool(g->meta, full_key("expert_weights_norm"),
                                s->norm, NULL));
    put_key(g, "attention.indexer.head_count", s->n_idx);
    put_key(g, "attention.indexer.key_length", s->d_idx);
    put_key(g, "attention.indexer.top_k", s->top);
    put_key(g, "attention.output_group_count", s->groups);
    put_key(g, "attention.output_lora_rank", s->out_rank);
    put_f(g, "attention.compress_rope_freq_base", s->compress_base);
    put_key(g, "hyper_connection.count", s->streams);
    put_key(g, "hyper_connection.sinkhorn_iterations", s->iterations);
    put_f(g, "hyper_connection.epsilon", s->hyper_eps);
    put_key(g, "hash_layer_count", s->hashed);
    put_key(g, "expert_gating_func", 4);
    put_key(g, "expert_count", s->experts);
    put_key(g, "expert_used_count", s->used);
    if (s->drafts)
        put_key(g, "nextn_predict_layers", 1);
    if (s->scaling) {
        must_set(gguf_meta_set_strz(g->meta, full_key("rope.scaling.type"),
                                    s->scaling, NULL));
        put_f(g, "rope.scaling.factor", s->factor);
        put_key(g, "rope.scaling.original_context_length", s->n_ctx_orig);
    }
}

static void put_arrays(struct gen *g, const struct refds4 *s, int n_layer)
{
    int32_t ratio[REFDS4_LAYERS + 1] = { 0 };
    float clamp[REFDS4_LAYERS + 1] = { 0 };
    for (int il = 0; il < s->n_layer; il++) {
        ratio[il] = s->ratio[il];
        clamp[il] = s->clamp[il];
    }
    must_set(gguf_meta_set_array(g->meta,
                                 full_key("attention.compress_ratios"),
                                 GGUF_VAL_I32, ratio, (size_t)n_layer, NULL));
    must_set(gguf_meta_set_array(g->meta, full_key("swiglu_clamp_exp"),
                                 GGUF_VAL_F32, clamp, (size_t)n_layer, NULL));
    if (s->clamp_shared >= 0)
        put_f(g, "swiglu_clamp_shexp", s->clamp_shared);
}

static void put_compressor(struct gen *g, int e, int d, int r, int il,
                           const char *what)
{
    const int wide = r == 4 ? 2 : 1;
    gen_tensor(g, e, wide * d, "blk.%d.%s_kv.weight", il, what);
    gen_tensor(g, e, wide * d, "blk.%d.%s_gate.weight", il, what);
    gen_tensor(g, wide * d, r, "blk.%d.%s_ape.weight", il, what);
    gen_tensor(g, d, 0, "blk.%d.%s_norm.weight", il, what);
}

/* A different choice for each token. */
const int32_t *refds4_table(const struct refds4 *s)
{
    static int32_t ids[REFDS4_VOCAB * 8];
    for (int t = 0; t < REFDS4_VOCAB; t++)
        for (int k = 0; k < s->used; k++)
            ids[t * s->used + k] = (t * 5 + k * 3 + 1) % s->experts;
    return ids;
}

static void put_experts(struct gen *g, const struct refds4 *s, int il)
{
    const int e = s->n_embd, ff = s->n_ff;
    gen_tensor(g, e, s->experts, "blk.%d.ffn_gate_inp.weight", il);
    if (il < s->hashed) {
        gen_tensor(g, s->used, REFDS4_VOCAB, "blk.%d.ffn_gate_tid2eid.weight",
                   il);
        g->t[g->n - 1].ints = refds4_table(s);
    } else {
        gen_tensor(g, s->experts, 0, "blk.%d.exp_probs_b.bias", il);
    }
    add_matrices(g, e, ff, s->experts, il, "ffn_gate_exps");
    add_matrices(g, e, ff, s->experts, il, "ffn_up_exps");
    add_matrices(g, ff, e, s->experts, il, "ffn_down_exps");
    gen_tensor(g, e, ff * s->shared, "blk.%d.ffn_gate_shexp.weight", il);
    gen_tensor(g, e, ff * s->shared, "blk.%d.ffn_up_shexp.weight", il);
    gen_tensor(g, ff * s->shared, e, "blk.%d.ffn_down_shexp.weight", il);
}

static void put_meeting(struct gen *g, const struct refds4 *s, int il,
                        const char *what)
{
    const int n = s->streams, all = (2 + n) * n;
    gen_tensor(g, n * s->n_embd, all, "blk.%d.hc_%s_fn.weight", il, what);
    gen_tensor(g, all, 0, "blk.%d.hc_%s_base.weight", il, what);
    gen_tensor(g, 3, 0, "blk.%d.hc_%s_scale.weight", il, what);
}

static void put_layer(struct gen *g, const struct refds4 *s, int il, int r)
{
    const int e = s->n_embd, q = s->n_head * s->d;
    gen_tensor(g, e, 0, "blk.%d.attn_norm.weight", il);
    gen_tensor(g, s->n_head, 0, "blk.%d.attn_sinks.weight", il);
    gen_tensor(g, e, s->rank_q, "blk.%d.attn_q_a.weight", il);
    gen_tensor(g, s->rank_q, 0, "blk.%d.attn_q_a_norm.weight", il);
    gen_tensor(g, s->rank_q, q, "blk.%d.attn_q_b.weight", il);
    gen_tensor(g, e, s->d, "blk.%d.attn_kv.weight", il);
    gen_tensor(g, s->d, 0, "blk.%d.attn_kv_a_norm.weight", il);
    if (s->flat)
        gen_tensor(g, q / s->groups, s->out_rank * s->groups,
                   "blk.%d.attn_output_a.weight", il);
    else
        add_matrices(g, q / s->groups, s->out_rank, s->groups, il,
                     "attn_output_a");
    gen_tensor(g, s->out_rank * s->groups, e, "blk.%d.attn_output_b.weight",
               il);
    put_meeting(g, s, il, "attn");
    put_meeting(g, s, il, "ffn");
    if (r)
        put_compressor(g, e, s->d, r, il, "attn_compressor");
    if (r == 4) {
        gen_tensor(g, e, s->n_idx, "blk.%d.indexer.proj.weight", il);
        gen_tensor(g, s->rank_q, s->n_idx * s->d_idx,
                   "blk.%d.indexer.attn_q_b.weight", il);
        put_compressor(g, e, s->d_idx, r, il, "indexer_compressor");
    }
    gen_tensor(g, e, 0, "blk.%d.ffn_norm.weight", il);
    put_experts(g, s, il);
}

void refds4_model(struct gen *g, const struct refds4 *s)
{
    const int e = s->n_embd, n = s->streams, n_layer = s->n_layer;
    const int all = n_layer + (s->drafts == 1);
    must_set(gguf_meta_set_strz(g->meta, "general.architecture", "deepseek4",
                                NULL));
    must_set(
        gguf_meta_set_strz(g->meta, "tokenizer.ggml.model", "no_vocab", NULL));
    put_keys(g, s, all);
    put_arrays(g, s, all);
    gen_tensor(g, e, REFDS4_VOCAB, "token_embd.weight");
    gen_tensor(g, e, 0, "output_norm.weight");
    gen_tensor(g, e, REFDS4_VOCAB, "output.weight");
    gen_tensor(g, n * e, n, "output_hc_fn.weight");
    gen_tensor(g, n, 0, "output_hc_base.weight");
    gen_tensor(g, 1, 0, "output_hc_scale.weight");
    for (int il = 0; il < n_layer; il++)
        put_layer(g, s, il, s->ratio[il]);
    if (s->drafts != 1)
        return;
    put_layer(g, s, n_layer, 0);
    gen_tensor(g, 2 * e, e, "blk.%d.nextn.eh_proj.weight", n_layer);
    gen_tensor(g, e, 0, "blk.%d.nextn.enorm.weight", n_layer);
    gen_tensor(g, e, 0, "blk.%d.nextn.hnorm.weight", n_layer);
}
