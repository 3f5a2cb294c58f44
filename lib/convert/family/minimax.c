/* SPDX-License-Identifier: MIT */
/* minimax.c - classes of MiniMax */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"
#include "convert/vocab/vocab_folder.h"

#include "base/str.h"

/* ---- MiniMax-01, MiniMax-M1 ---- */

/* distance of layers with full attention, unless a key gives another */
enum { USUAL_STEP = 8 };

static double is_linear(const struct gg_hf_config *cfg, int64_t layer)
{
    return is_equal(num_at(cfg, "attn_type_list", layer), 0);
}

/* Layers with lightning attention, unless they are all but every eighth, as
 * readers take them without a key. */
static double is_recurrent(const struct gg_hf_config *cfg, int64_t layer)
{
    const double n =
        fmin(num_of(cfg, "num_hidden_layers"), GG_HF_CONFIG_LAYERS);
    bool usual = true;
    for (int64_t i = 0; (double)i < n && usual; i++)
        usual = is_linear(cfg, i) == ((i + 1) % USUAL_STEP != 0);
    return usual ? NAN : is_linear(cfg, layer);
}

static bool is_factor(const struct gg_hf_config *cfg, const char *name,
                      double x)
{
    return (float)num_of(cfg, name) == (float)x;
}

/* One factor for all residuals, 1 for all results, residuals after norms. */
static bool is_minimax_01(const struct gg_hf_config *cfg)
{
    const double alpha = num_of(cfg, "layernorm_full_attention_alpha");
    return is_factor(cfg, "layernorm_linear_attention_alpha", alpha) &&
           is_factor(cfg, "layernorm_mlp_alpha", alpha) &&
           is_factor(cfg, "layernorm_full_attention_beta", 1) &&
           is_factor(cfg, "layernorm_linear_attention_beta", 1) &&
           is_factor(cfg, "layernorm_mlp_beta", 1) &&
           num_or(cfg, "postnorm", 1) != 0 &&
           !is_true(num_of(cfg, "shared_intermediate_size"));
}

static double attention_type(const struct gg_hf_config *keys, int64_t layer)
{
    const double recurrent = num_at(keys, "attention.recurrent_layers", layer);
    const int64_t step =
        (int64_t)num_or(keys, "full_attention_interval", USUAL_STEP);
    return isnan(recurrent) ? (layer + 1) % (step > 0 ? step : 1) == 0
                            : recurrent == 0;
}

static void put_minimax_01(struct gg_back_maker *m)
{
    const double alpha = num_of(&m->keys, "residual_scale");
    gg_back_put_num(m, "layernorm_linear_attention_alpha", alpha);
    gg_back_put_num(m, "layernorm_mlp_alpha", alpha);
    gg_back_put_num(m, "layernorm_full_attention_beta", 1);
    gg_back_put_num(m, "layernorm_linear_attention_beta", 1);
    gg_back_put_num(m, "layernorm_mlp_beta", 1);
    gg_back_put_flag(m, "postnorm", 1);
    gg_back_put_layers(m, "attn_type_list", attention_type);
}

/* Numbers of tokens that no text becomes: rows of the embedding are 0. */
struct fillers {
    const struct gg_data *list;
    struct gg_data_rows rows;
    uint32_t tensor;
    uint64_t width;
    float *row; /* buffer of width numbers */
    int32_t *id;
    size_t n;
};

static enum gguf_status test_row(struct fillers *f, uint64_t no,
                                 struct gguf_error *err)
{
    const uint64_t first = no * f->width;
    uint64_t k = 0;
    GG_TRY(gg_data_hold(f->list, f->tensor, first, f->width, err));
    gg_data_read(&f->rows, first, f->width, f->row);
    gg_data_release(f->list, f->tensor, first, f->width);
    while (k < f->width && f->row[k] == 0)
        k++;
    if (k == f->width)
        f->id[f->n++] = (int32_t)no;
    return GGUF_OK;
}

/* llama.cpp's converter names the tokens after the tokenizer's own whose rows
 * are 0, so that they are never drawn. */
static enum gguf_status write_fillers(const struct gg_convert_vocab *v,
                                      struct fillers *f, uint64_t n_rows,
                                      struct gguf_error *err)
{
    for (uint64_t i = 0; i < v->n && i < n_rows; i++)
        if (v->type[i] != GG_CONVERT_NORMAL)
            GG_TRY(test_row(f, i, err));
    return f->n
               ? gguf_meta_set_array(v->meta, "tokenizer.ggml.suppress_tokens",
                                     GGUF_VAL_I32, f->id, f->n, err)
               : GGUF_OK;
}

static enum gguf_status suppress_fillers(struct gg_convert_vocab *v,
                                         struct gguf_error *err)
{
    const struct gguf_allocator *a = v->folder->p->allocator;
    const struct gg_safetensors *s = v->folder->weights;
    const uint32_t i =
        gg_safetensors_find(s, gg_str_z("model.embed_tokens.weight"));
    if (i == GG_INDEX_NONE || s->tensor[i].n_dims != 2)
        return GGUF_OK;
    struct fillers f = { .list = &s->list,
                         .tensor = i,
                         .width = (uint64_t)s->tensor[i].ne[0] };
    GG_TRY(gg_data_rows(f.list, i, &f.rows, err));
    f.row = gg_mem_alloc_zero(a, f.width + 1, sizeof *f.row);
    f.id = gg_mem_alloc_zero(a, v->n + 1, sizeof *f.id);
    enum gguf_status st =
        f.row && f.id ? GGUF_OK
                      : gg_error_set_nomem(err, f.width * sizeof *f.row);
    if (st == GGUF_OK)
        st = write_fillers(v, &f, (uint64_t)s->tensor[i].ne[1], err);
    gg_mem_free(a, f.row);
    gg_mem_free(a, f.id);
    return st;
}

static const struct gg_convert_name minimax_01_names[] = {
    N(L "self_attn.qkv_proj", B "attn_qkv"),
    N(L "self_attn.output_gate", B "attn_gate"),
    N(L "self_attn.norm", B "attn_norm_2"),
    { .from = L "self_attn.out_proj",
      .to = B "attn_output",
      .only_if = is_linear },
    END_NAMES
};

/* ---- MiniMax-M2, M3 ---- */

#define SHARED L "block_sparse_moe.shared_experts."

static const struct gg_convert_name minimax3_names[] = {
    NORMS_PLUS_1,
    N_HOW(L "self_attn.index_q_norm", B "indexer.q_norm", PLUS_1),
    N_HOW(L "self_attn.index_k_norm", B "indexer.k_norm", PLUS_1),
    N(L "self_attn.index_q_proj", B "indexer.q_proj"),
    N(L "self_attn.index_k_proj", B "indexer.k_proj"),
    N(SHARED "gate_proj", B "ffn_gate_shexp"),
    N(SHARED "up_proj", B "ffn_up_shexp"),
    N(SHARED "down_proj", B "ffn_down_shexp"),
    END_NAMES
};

#define SPARSE(NAME, FROM)                                                    \
    U32("attention.indexer." NAME, "sparse_attention_config.sparse_" FROM)

static double has_experts(const struct gg_hf_config *cfg, int64_t layer)
{
    return num_at(cfg, "moe_layer_freq", layer);
}

static double n_dense(const struct gg_hf_config *cfg)
{
    return gg_hf_config_first_layer(cfg, has_experts);
}

static void put_m3(struct gg_back_maker *m)
{
    gg_back_put_num(m, "intermediate_size",
                    num_of(&m->keys, "expert_feed_forward_length"));
    gg_back_put_num(m, "dense_intermediate_size",
                    num_of(&m->keys, "feed_forward_length"));
    gg_back_put_layers(m, "moe_layer_freq", gg_back_is_sparse);
}

const struct gg_convert_arch gg_convert_family_minimax[] = {
    { .classes = "MiniMaxText01ForCausalLM MiniMaxM1ForCausalLM",
      .model_type = "minimax_text_01",
      .arch = "minimax-01",
      .when = is_minimax_01,
      .back = put_minimax_01,
      .fix_vocab = suppress_fillers,
      .names = OVER_2(minimax_01_names, gg_convert_names_mixtral),
      .keys = ROWS(
          F32("residual_scale", "layernorm_full_attention_alpha"), N_ROT,
          EACH("attention.recurrent_layers", BOOL, is_recurrent, IN_BACK)) },
    { .classes = "MiniMaxM2ForCausalLM",
      .arch = "minimax-m2",
      .names = OVER(gg_convert_names_mixtral),
      .keys = ROWS(U32("expert_feed_forward_length", "intermediate_size"),
                   N_ROT) },
    { .classes = "MiniMaxM3SparseForCausalLM "
                 "MiniMaxM3SparseForConditionalGeneration",
      .arch = "minimax-m3",
      .back = put_m3,
      .names = OVER_2(minimax3_names, gg_convert_names_mixtral),
      .keys = ROWS(U32("expert_feed_forward_length", "intermediate_size"),
                   N_ROT, U32("expert_shared_count", "n_shared_experts"),
                   WEIGHTS_SCALE, ALWAYS("expert_weights_norm", BOOL, 1),
                   SPARSE("head_count", "num_index_heads"),
                   SPARSE("key_length", "index_dim"),
                   SPARSE("top_k", "topk_blocks"),
                   SPARSE("block_size", "block_size"),
                   SPARSE("local_blocks", "local_block"),
                   OF("leading_dense_block_count", U32, n_dense, IN_BACK)) },
    { .classes = NULL }
};
