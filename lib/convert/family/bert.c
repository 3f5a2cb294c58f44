/* SPDX-License-Identifier: MIT */
/* bert.c - classes of BERT and encoders built like it */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"

#define E "encoder.layer.%."

static const struct gg_convert_name bert_names[] = {
    N("embeddings.word_embeddings", "token_embd"),
    N("embeddings.token_type_embeddings", "token_types"),
    N("embeddings.position_embeddings", "position_embd"),
    N("embeddings.LayerNorm", "token_embd_norm"),
    N(E "attention.self.query", B "attn_q"),
    N(E "attention.self.key", B "attn_k"),
    N(E "attention.self.value", B "attn_v"),
    N(E "attention.output.dense", B "attn_output"),
    N(E "attention.output.LayerNorm", B "attn_output_norm"),
    N(E "intermediate.dense", B "ffn_up"),
    N(E "output.dense", B "ffn_down"),
    N(E "output.LayerNorm", B "layer_output_norm"),
    N("classifier.dense", "cls"),
    N("classifier.out_proj", "cls.output"),
    N("classifier", "cls.output"),
    N_NOT("embeddings.position_ids"),
    N_NOT("pooler.dense"),
    N_NOT("cls.predictions"),
    N_NOT("cls.predictions.transform.dense"),
    N_NOT("cls.predictions.transform.LayerNorm"),
    N_NOT("cls.predictions.decoder"),
    N_NOT("cls.seq_relationship"),
    N_NOT("lm_head"),
    N_NOT("lm_head.dense"),
    N_NOT("lm_head.layer_norm"),
    N_NOT("lm_head.decoder"),
    END_NAMES
};

/* The pooler, with its tanh, is a part of the classifier (modeling_bert.py,
 * BertForSequenceClassification). */
static const struct gg_convert_name bert_classifier_names[] = {
    N("pooler.dense", "cls"), END_NAMES
};

/* The first positions belong to padding. */
static const struct gg_convert_name roberta_names[] = {
    N_AXES("embeddings.position_embeddings", "position_embd",
           "[@first] x, c > x, c"),
    END_NAMES
};

#define D "transformer.layer.%."

static const struct gg_convert_name distil_names[] = {
    N(D "attention.q_lin", B "attn_q"),
    N(D "attention.k_lin", B "attn_k"),
    N(D "attention.v_lin", B "attn_v"),
    N(D "attention.out_lin", B "attn_output"),
    N(D "sa_layer_norm", B "attn_output_norm"),
    N(D "ffn.lin1", B "ffn_up"),
    N(D "ffn.lin2", B "ffn_down"),
    N(D "output_layer_norm", B "layer_output_norm"),
    N("pre_classifier", "cls"),
    N_NOT("vocab_transform"),
    N_NOT("vocab_layer_norm"),
    N_NOT("vocab_projector"),
    END_NAMES
};

#define S "encoder.layers.%."

static const struct gg_convert_name nomic_names[] = {
    N("emb_ln", "token_embd_norm"),
    N(S "attn.Wqkv", B "attn_qkv"),
    N(S "attn.out_proj", B "attn_output"),
    N(S "norm1", B "attn_output_norm"),
    N(S "norm2", B "layer_output_norm"),
    N(S "mlp.fc11", B "ffn_up"),
    N(S "mlp.fc12", B "ffn_gate"),
    N(S "mlp.fc1", B "ffn_up"),
    N(S "mlp.fc2", B "ffn_down"),
    N(S "mlp.router.layer", B "ffn_gate_inp"),
    N_AXES(S "mlp.experts.mlp.w1", B "ffn_up_exps.weight", "e f, c > e, f, c"),
    N_AXES(S "mlp.experts.mlp.w2", B "ffn_down_exps.weight",
           "e f, c > e, c, f"),
    N_NOT(S "mlp.experts.bias"),
    END_NAMES
};

/* Matrices with parametrizations of task adapters, which are left out: each
 * task is an adapter of its own. */
#define PARAM(FROM, TO)                                                       \
    N(FROM, TO), /* folder without adapters */                                \
        N(FROM ".parametrizations.weight.original", TO ".weight"),            \
        N_NOT(FROM ".parametrizations.weight.0.lora_A"),                      \
        N_NOT(FROM ".parametrizations.weight.0.lora_B")

static const struct gg_convert_name jina3_names[] = {
    PARAM("embeddings.word_embeddings", "token_embd"),
    PARAM("embeddings.token_type_embeddings", "token_types"),
    PARAM(S "mixer.Wqkv", B "attn_qkv"),
    PARAM(S "mixer.out_proj", B "attn_output"),
    PARAM(S "mlp.fc1", B "ffn_up"),
    PARAM(S "mlp.fc2", B "ffn_down"),
    N_NOT("pooler.dense.parametrizations.weight.original"),
    N_NOT("pooler.dense.parametrizations.weight.0.lora_A"),
    N_NOT("pooler.dense.parametrizations.weight.0.lora_B"),
    END_NAMES
};

static const struct gg_convert_name jina2_names[] = {
    N(E "attention.self.layer_norm_q", B "attn_q_norm"),
    N(E "attention.self.layer_norm_k", B "attn_k_norm"),
    N(E "layer_norm_1", B "attn_norm_2"),
    N(E "layer_norm_2", B "layer_output_norm"),
    N(E "mlp.gated_layers", B "ffn_up"),
    N(E "mlp.up_gated_layer", B "ffn_up"),
    N(E "mlp.wo", B "ffn_down"),
    N(E "mlp.down_layer", B "ffn_down"),
    N(E "mlp.layernorm", B "layer_output_norm"),
    END_NAMES
};

static const struct gg_convert_name modern_names[] = {
    N("embeddings.tok_embeddings", "token_embd"),
    N("embeddings.norm", "token_embd_norm"),
    N("final_norm", "output_norm"),
    N("layers.%.attn_norm", B "attn_norm"),
    N("layers.%.attn.Wqkv", B "attn_qkv"),
    N("layers.%.attn.Wo", B "attn_output"),
    N("layers.%.mlp_norm", B "ffn_norm"),
    N("layers.%.mlp.Wi", B "ffn_up"),
    N("layers.%.mlp.Wo", B "ffn_down"),
    N("classifier", "cls.output"),
    N("head.dense", "cls"),
    N("head.norm", "cls.norm"),
    N_NOT("decoder"),
    END_NAMES
};

#define NEO "transformer_encoder.%."

static const struct gg_convert_name neo_names[] = {
    N("encoder", "token_embd"),
    N("layer_norm", "enc.output_norm"),
    N(NEO "attention_norm", B "attn_norm"),
    N(NEO "qkv", B "attn_qkv"),
    N(NEO "wo", B "attn_output"),
    N(NEO "ffn_norm", B "ffn_norm"),
    N(NEO "ffn.w12", B "ffn_up"),
    N(NEO "ffn.w3", B "ffn_down"),
    N_NOT("decoder"),
    END_NAMES
};

static const struct gg_convert_name euro_names[] = {
    N("embed_tokens", "token_embd"),
    N("norm", "output_norm"),
    N("layers.%.input_layernorm", B "attn_norm"),
    N("layers.%.self_attn.q_proj", B "attn_q"),
    N("layers.%.self_attn.k_proj", B "attn_k"),
    N("layers.%.self_attn.v_proj", B "attn_v"),
    N("layers.%.self_attn.o_proj", B "attn_output"),
    N("layers.%.post_attention_layernorm", B "ffn_norm"),
    N("layers.%.mlp.gate_proj", B "ffn_gate"),
    N("layers.%.mlp.up_proj", B "ffn_up"),
    N("layers.%.mlp.down_proj", B "ffn_down"),
    N_NOT("lm_head"),
    END_NAMES
};

#define NOT_CAUSAL ALWAYS("attention.causal", BOOL, 0)
#define TYPE_COUNT "/tokenizer.ggml.token_type_count"

/* after the version */
#define TYPES FILE_VERSION, OR(TYPE_COUNT, "type_vocab_size", U32, 1)

/* All of these are bidirectional, have pooling and may be classifiers. */
#define BERT_KEYS                                                             \
    NOT_CAUSAL, U32("pooling_type", "modules_pooling"),                       \
        OR("classifier.output_labels", "id2label", LABELS, 0)
#define ROBERTA_CTX OF("context_length", U32, context_without_padding, IN_BACK)

/* ---- functions of rows ---- */

static bool is_classifier(const struct gg_hf_config *cfg)
{
    return is_true(num_of(cfg, "classifies")); /* reranker.c */
}

/* Rows of positions of RoBERTa: those up to the padding token's are unused. */
static double first_position(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "pad_token_id") + 1;
}

static double context_without_padding(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "max_position_embeddings") - first_position(cfg);
}

static const struct gg_convert_size roberta_sizes[] = {
    { .name = "first", .of = first_position }, { .name = NULL }
};

static bool has_task_adapters(const struct gg_hf_config *cfg)
{
    return gg_hf_config_list_len(cfg, "lora_adaptations") > 0;
}

/* The file has no task adapters, and config.json may lack the padding token. */
static void put_jina_v3(struct gg_back_maker *m)
{
    static const char *const tasks[] = { "retrieval.query",
                                         "retrieval.passage", "separation",
                                         "classification", "text-matching" };
    json_t *list = json_array();
    const double pad = num_or(&m->keys, "pad_token_id", 1);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        json_array_append_new(list, json_string(tasks[i]));
    gg_back_put_num(m, "pad_token_id", pad);
    gg_back_put_num(m, "max_position_embeddings",
                    num_of(&m->keys, "context_length") + pad + 1);
    gg_back_put(m->root, "lora_adaptations", list);
    gg_back_put_flag(m, "load_trained_adapters", 0);
}

/* Length that Nomic's models are trained with. config.json has a longer one,
 * which scaled positions reach. */
static double nomic_context(const struct gg_hf_config *cfg)
{
    const double n = num_of(cfg, "n_positions");
    return n == 8192 ? 2048 : n == 2048 ? 512 : n;
}

static void put_nomic(struct gg_back_maker *m)
{
    const double n = num_of(&m->keys, "context_length");
    gg_back_put_num(m, "n_positions", n == 2048 ? 8192 : n == 512 ? 2048 : n);
}

static bool has_experts(const struct gg_hf_config *cfg)
{
    return num_of(cfg, "moe_every_n_layers") > 0;
}

/* ModernBERT uses norm_eps alone; most folders have its value as layer_norm_eps
 * as well (configuration_modernbert.py: 1e-5). */
static enum gguf_status fix_epsilon(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    double eps = 1e-5, other;
    const bool has = gg_json_num(gg_convert_get_config(c, "norm_eps"), &eps);
    if (gg_json_num(gg_convert_get_config(c, "layer_norm_eps"), &other)) {
        if (!has || other == eps)
            return GGUF_OK;
        gg_folder_warn(&c->folder,
                       "config.json: norm_eps is %.15g, and layer_norm_eps "
                       "%.15g: norm_eps is taken, as by transformers",
                       eps, other);
    }
    return gg_convert_set_config(c, "layer_norm_eps", json_real(eps), err);
}

/* Width of a gated part, of that of one that is not gated. */
static double neo_feed_forward(const struct gg_hf_config *cfg)
{
    return floor(2 * num_of(cfg, "intermediate_size") / 3);
}

static void put_neo(struct gg_back_maker *m)
{
    gg_back_put_num(
        m, "intermediate_size",
        floor((3 * num_of(&m->keys, "feed_forward_length") + 1) / 2));
}

/* ---- rows ---- */

const struct gg_convert_arch gg_convert_family_bert[] = {
    { .classes = "BertModel BertForSequenceClassification",
      .arch = "bert",
      .when = is_classifier,
      .strip = "bert.",
      .names = { bert_classifier_names, bert_names },
      .keys = ROWS(BERT_KEYS, TYPES) },
    { .classes = "BertModel BertForMaskedLM CamembertModel "
                 "BertForSequenceClassification",
      .arch = "bert",
      .strip = "bert.",
      .names = { bert_names },
      .keys = ROWS(BERT_KEYS, TYPES) },
    { .classes = "DistilBertModel DistilBertForMaskedLM "
                 "DistilBertForSequenceClassification",
      .arch = "bert",
      .strip = "distilbert.",
      .names = { distil_names, bert_names },
      .keys = ROWS(ALWAYS("attention.layer_norm_epsilon", F32, 1e-12),
                   FILE_TYPE, BERT_KEYS, TYPES) },
    { .classes = "XLMRobertaModel",
      .arch = "jina-bert-v3",
      .when = has_task_adapters,
      .back = put_jina_v3,
      .strip = "roberta.",
      .names = { jina3_names, nomic_names, bert_names },
      .keys = ROWS(ROBERTA_CTX, BERT_KEYS, TYPES) },
    { .classes = "RobertaModel RobertaForSequenceClassification "
                 "RobertaForMaskedLM XLMRobertaModel XLMRobertaForMaskedLM "
                 "XLMRobertaForSequenceClassification",
      .arch = "bert",
      .strip = "roberta.",
      .sizes = roberta_sizes,
      .names = { roberta_names, bert_names },
      .keys = ROWS(ROBERTA_CTX, BERT_KEYS, TYPES) },
    { .classes = "NomicBertModel",
      .arch = "nomic-bert-moe",
      .when = has_experts,
      .back = put_nomic,
      .strip = "bert.",
      .names = { nomic_names, bert_names },
      .keys = ROWS(OF("context_length", U32, nomic_context, IN_BACK),
                   BERT_KEYS, U32("moe_every_n_layers", "moe_every_n_layers"),
                   U32("expert_used_count", "moe_top_k"), TYPES) },
    { .classes = "NomicBertModel",
      .arch = "nomic-bert",
      .back = put_nomic,
      .strip = "bert.",
      .names = { nomic_names, bert_names },
      .keys = ROWS(OF("context_length", U32, nomic_context, IN_BACK),
                   BERT_KEYS, TYPES) },
    { .classes = "JinaBertModel JinaBertForMaskedLM",
      .arch = "jina-bert-v2",
      .strip = "bert.",
      .names = { jina2_names, bert_names },
      .keys = ROWS(BERT_KEYS, TYPES) },
    { .classes = "ModernBertModel ModernBertForMaskedLM "
                 "ModernBertForSequenceClassification",
      .arch = "modern-bert",
      .fix_config = fix_epsilon,
      .strip = "model.",
      .names = { modern_names },
      .keys =
          ROWS(BERT_KEYS, U32("attention.sliding_window", "local_attention"),
               U32("attention.sliding_window_pattern",
                   "global_attn_every_n_layers"),
               NO_SCALING, U32("vocab_size", "vocab_size"),
               TEXT("hidden_activation", "hidden_activation"),
               /* unless the tokenizer's files say otherwise */
               FILE_VERSION, ALWAYS("/tokenizer.ggml.add_bos_token", BOOL, 1),
               ALWAYS("/tokenizer.ggml.add_eos_token", BOOL, 1),
               ALWAYS("/tokenizer.ggml.add_sep_token", BOOL, 1)) },
    { .classes = "NeoBERT NeoBERTLMHead NeoBERTForSequenceClassification",
      .arch = "neo-bert",
      .back = put_neo,
      .strip = "model.",
      .names = { neo_names },
      .keys = ROWS(
          OF("feed_forward_length", U32, neo_feed_forward, IN_BACK),
          OR("attention.layer_norm_rms_epsilon", "norm_eps", F32, 1e-6),
          NOT_CAUSAL, OR("classifier.output_labels", "id2label", LABELS, 0),
          ALWAYS("rope.freq_base", F32, 10000), NO_SCALING,
          ALWAYS("pooling_type", U32, 2), TYPES) },
    { .classes = "EuroBertModel JinaEmbeddingsV5Model",
      .arch = "eurobert",
      .strip = "model.",
      .names = { euro_names },
      .keys = ROWS(NOT_CAUSAL, NO_SCALING) },
    { .classes = NULL }
};
