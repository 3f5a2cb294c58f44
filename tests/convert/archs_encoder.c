/* SPDX-License-Identifier: MIT */
/* archs_encoder.c - encoders, and T5 */
#include "config.h"
#include "tests/convert/archs.h"

/* RoBERTa: two positions are of padding. */
static float from_2(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, 2 * t->shape[1] + i);
}

/* Nomic: experts of 24 rows; here the matrix of the way back is turned. */
static float nomic_down(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t expert = i / (24 * 32), row = i % (24 * 32) / 24;
    return folder_value(t->name, (expert * 24 + i % 24) * 32 + row);
}

#define E "encoder.layer.%."
#define BERT                                                                  \
    "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"    \
    "\"num_attention_heads\":4,\"vocab_size\":260,\"max_position_embeddings"  \
    "\":64,\"layer_norm_eps\":1e-12,\"type_vocab_size\":2"
#define LN(NAME) NAME ".weight 32\n" NAME ".bias 32\n"
#define LIN(NAME, ROWS, COLS)                                                 \
    NAME ".weight " #ROWS " " #COLS "\n" NAME ".bias " #ROWS "\n"
#define BERT_TENSORS(P)                                                       \
    P "embeddings.word_embeddings.weight 260 32\n" P                          \
      "embeddings.token_type_embeddings.weight 2 32\n" LN(                    \
          P "embeddings.LayerNorm") LIN(P E "attention.self.query", 32, 32)   \
          LIN(P E "attention.self.key", 32, 32)                               \
              LIN(P E "attention.self.value", 32, 32)                         \
                  LIN(P E "attention.output.dense", 32, 32)                   \
                      LN(P E "attention.output.LayerNorm")                    \
                          LIN(P E "intermediate.dense", 48, 32)               \
                              LIN(P E "output.dense", 32, 48)                 \
                                  LN(P E "output.LayerNorm")
#define S "encoder.layers.%."
#define T "decoder.block.%.layer."
#define U "encoder.block.%.layer."
#define T5_SIZES                                                              \
    "\"d_model\":32,\"d_ff\":48,\"d_kv\":8,\"num_layers\":2,"                 \
    "\"num_decoder_layers\":2,\"num_heads\":4,\"vocab_size\":260,"            \
    "\"layer_norm_epsilon\":1e-6,\"relative_attention_num_buckets\":8,"       \
    "\"decoder_start_token_id\":0,\"n_positions\":64"
#define ATTN(P)                                                               \
    P ".q.weight 32 32\n" P ".k.weight 32 32\n" P ".v.weight 32 32\n" P       \
      ".o.weight 32 32\n"
#define T5_ENCODER                                                            \
    "shared.weight 260 32\nencoder.embed_tokens.weight 260 32\n"              \
    "encoder.final_layer_norm.weight 32\n" ATTN(U "0.SelfAttention") U        \
        "0.layer_norm.weight 32\n" U "1.layer_norm.weight 32\n" U             \
        "1.DenseReluDense.wi_0.weight 48 32\n" U                              \
        "1.DenseReluDense.wi_1.weight 48 32\n" U                              \
        "1.DenseReluDense.wo.weight 32 48\nencoder.block.0.layer.0."          \
        "SelfAttention.relative_attention_bias.weight 8 4\n"

const struct arch archs_encoder[] = {
    { .vocab = archs_wordpiece,
      .class_name = "BertModel",
      "bert",
      BERT,
      BERT_TENSORS("bert.") "bert.embeddings.position_embeddings.weight 64 "
                            "32\nbert.embeddings.position_ids 1 64\n" LIN(
                                "bert.pooler.dense", 32, 32),
      { { B "attn_q.weight", "bert." E "attention.self.query.weight", same },
        { B "attn_output_norm.bias",
          "bert." E "attention.output.LayerNorm.bias", same },
        { "position_embd.weight", "bert.embeddings.position_embeddings.weight",
          same } },
      { { "attention.causal", "false" },
        { "attention.layer_norm_epsilon", "1e-12" } } },
#define D "distilbert.transformer.layer.%."
    { .vocab = archs_wordpiece,
      .class_name = "DistilBertModel",
      "bert",
      "\"dim\":32,\"hidden_dim\":48,\"n_layers\":2,\"n_heads\":4,"
      "\"vocab_size\":260,\"max_position_embeddings\":64",
      "distilbert.embeddings.word_embeddings.weight 260 32\n"
      "distilbert.embeddings.position_embeddings.weight 64 32\n" LN(
          "distilbert.embeddings.LayerNorm") LIN(D "attention.q_lin", 32, 32)
          LIN(D "attention.k_lin", 32, 32) LIN(D "attention.v_lin", 32, 32)
              LIN(D "attention.out_lin", 32, 32) LN(D "sa_layer_norm")
                  LIN(D "ffn.lin1", 48, 32) LIN(D "ffn.lin2", 32, 48)
                      LN(D "output_layer_norm") LIN("vocab_transform", 32, 32),
      { { B "ffn_up.weight", D "ffn.lin1.weight", same } },
      { { "feed_forward_length", "48" } } },
    { .class_name = "RobertaModel",
      "bert",
      BERT ",\"pad_token_id\":1",
      BERT_TENSORS(
          "roberta.") "roberta.embeddings.position_embeddings.weight 64 32\n",
      { { "position_embd.weight",
          "roberta.embeddings.position_embeddings.weight", from_2 } },
      { { "context_length", "62" } } },
    { .vocab = archs_wordpiece,
      .class_name = "NomicBertModel",
      "nomic-bert",
      "\"n_embd\":32,\"n_inner\":48,\"n_layer\":2,\"n_head\":4,\"vocab_size\":"
      "260,\"n_positions\":8192,\"layer_norm_epsilon\":1e-12,"
      "\"type_vocab_size\":2,\"rotary_emb_base\":1000",
      "embeddings.word_embeddings.weight 260 32\n"
      "embeddings.token_type_embeddings.weight 2 32\n" LN("emb_ln") S
      "attn.Wqkv.weight 96 32\n" S "attn.out_proj.weight 32 32\n" LN(S "norm1")
          LN(S "norm2") S "mlp.fc11.weight 48 32\n" S
                          "mlp.fc12.weight 48 32\n" S "mlp.fc2.weight 32 48\n",
      { { B "ffn_gate.weight", S "mlp.fc12.weight", same } },
      { { "context_length", "2048" }, { "rope.freq_base", "1000" } } },
    { .vocab = archs_unigram,
      .class_name = "NomicBertModel",
      "nomic-bert-moe",
      "\"n_embd\":32,\"n_inner\":24,\"n_layer\":2,\"n_head\":4,\"vocab_size\":"
      "260,\"n_positions\":2048,\"layer_norm_epsilon\":1e-5,"
      "\"type_vocab_size\":1,\"rotary_emb_base\":10000,"
      "\"moe_every_n_layers\":2,\"moe_top_k\":2,\"num_experts\":3",
      "embeddings.word_embeddings.weight 260 32\n"
      "embeddings.token_type_embeddings.weight 1 32\n" LN("emb_ln") LIN(
          S "attn.Wqkv", 96, 32) LIN(S "attn.out_proj", 32, 32) LN(S "norm1")
          LN(S "norm2") LIN("encoder.layers.0.mlp.fc1", 24, 32)
              LIN("encoder.layers.0.mlp.fc2", 32,
                  24) "encoder.layers.1.mlp.router.layer.weight 3 32\n"
                      "encoder.layers.1.mlp.experts.mlp.w1 72 32\n"
                      "encoder.layers.1.mlp.experts.mlp.w2 72 32\n"
                      "encoder.layers.1.mlp.experts.bias 32\n",
      { { "blk.1.ffn_up_exps.weight", "encoder.layers.1.mlp.experts.mlp.w1",
          same },
        { "blk.1.ffn_down_exps.weight", "encoder.layers.1.mlp.experts.mlp.w2",
          nomic_down } },
      { { "context_length", "512" }, { "moe_every_n_layers", "2" } } },
    { .vocab = archs_wordpiece,
      .class_name = "JinaBertModel",
      "jina-bert-v2",
      BERT,
      "embeddings.word_embeddings.weight 260 32\n"
      "embeddings.token_type_embeddings.weight 2 32\n" LN(
          "embeddings.LayerNorm") LIN(E "attention.self.query", 32, 32)
          LIN(E "attention.self.key", 32, 32)
              LIN(E "attention.self.value", 32, 32)
                  LIN(E "attention.output.dense", 32, 32)
                      LN(E "attention.output.LayerNorm") E
      "mlp.gated_layers.weight 96 32\n" LIN(E "mlp.wo", 32, 48)
          LN(E "mlp.layernorm"),
      { { B "ffn_up.weight", E "mlp.gated_layers.weight", same } } },
    { .class_name = "ModernBertModel",
      "modern-bert",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"vocab_size\":260,"
      "\"max_position_embeddings\":64,\"norm_eps\":1e-5,\"layer_norm_eps\":"
      "1e-5,\"local_attention\":16,\"global_attn_every_n_layers\":3,"
      "\"global_rope_theta\":160000.0,\"local_rope_theta\":10000.0,"
      "\"hidden_activation\":\"gelu\"",
      "model.embeddings.tok_embeddings.weight 260 32\n"
      "model.embeddings.norm.weight 32\nmodel.final_norm.weight 32\n"
      "model.layers.1.attn_norm.weight 32\n" L "attn.Wqkv.weight 96 32\n" L
      "attn.Wo.weight 32 32\n" L "mlp_norm.weight 32\n" L
      "mlp.Wi.weight 96 32\n" L "mlp.Wo.weight 32 48\n",
      { { B "ffn_up.weight", L "mlp.Wi.weight", same } },
      { { "rope.freq_base", "160000" },
        { "rope.freq_base_swa", "10000" },
        { "attention.sliding_window", "16" },
        { BOS, "false" },
        { "/tokenizer.ggml.add_eos_token", "true" },
        { "/tokenizer.ggml.add_sep_token", "true" } } },
#define N "model.transformer_encoder.%."
    { .vocab = archs_wordpiece,
      .class_name = "NeoBERT",
      "neo-bert",
      "\"hidden_size\":32,\"intermediate_size\":72,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"vocab_size\":260,\"max_length\":64,"
      "\"norm_eps\":1e-6",
      "model.encoder.weight 260 32\nmodel.layer_norm.weight 32\n" N
      "attention_norm.weight 32\n" N "qkv.weight 96 32\n" N
      "wo.weight 32 32\n" N "ffn_norm.weight 32\n" N "ffn.w12.weight 96 32\n" N
      "ffn.w3.weight 32 48\ndecoder.weight 260 32\ndecoder.bias 260\n",
      { { "enc.output_norm.weight", "model.layer_norm.weight", same } },
      { { "feed_forward_length", "48" },
        { "/tokenizer.ggml.token_type_count", "1" } } },
    { .class_name = "EuroBertModel",
      "eurobert",
      SIZES,
      TOP QKV NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same } },
      { { "attention.causal", "false" } } },
    { .vocab = archs_spiece,
      .class_name = "T5ForConditionalGeneration",
      "t5",
      T5_SIZES,
      T5_ENCODER ATTN(T "0.SelfAttention") ATTN(T "1.EncDecAttention") T
      "0.layer_norm.weight 32\n" T "1.layer_norm.weight 32\n" T
      "2.layer_norm.weight 32\n" T "2.DenseReluDense.wi_0.weight 48 32\n" T
      "2.DenseReluDense.wi_1.weight 48 32\n" T
      "2.DenseReluDense.wo.weight 32 48\ndecoder.embed_tokens.weight 260 32\n"
      "decoder.final_layer_norm.weight 32\ndecoder.block.0.layer.0."
      "SelfAttention.relative_attention_bias.weight 8 4\n" HEAD,
      { { "token_embd.weight", "shared.weight", same },
        { "enc.blk.0.attn_rel_b.weight",
          "encoder.block.0.layer.0.SelfAttention.relative_attention_bias."
          "weight",
          same },
        { "dec.blk.1.cross_attn_k.weight",
          "decoder.block.1.layer.1.EncDecAttention.k.weight", same },
        { "dec.blk.1.ffn_gate.weight",
          "decoder.block.1.layer.2.DenseReluDense.wi_0.weight", same } },
      { { "attention.relative_buckets_count", "8" },
        { "decoder_start_token_id", "0" } } },
    { .vocab = archs_unigram,
      .class_name = "T5EncoderModel",
      "t5encoder",
      T5_SIZES,
      T5_ENCODER,
      { { "enc.output_norm.weight", "encoder.final_layer_norm.weight",
          same } } },
#define J "roberta.encoder.layers.%."
#define TASKS(NAME, OUT, IN)                                                  \
    NAME ".parametrizations.weight.original " OUT " " IN "\n" NAME            \
         ".parametrizations.weight.0.lora_A 5 4 " IN "\n" NAME                \
         ".parametrizations.weight.0.lora_B 5 " OUT " 4\n"
    /* rows of positions before the first are of padding: it has none */
    { .class_name = "XLMRobertaModel",
      "jina-bert-v3",
      "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
      "\"num_attention_heads\":4,\"vocab_size\":260,\"layer_norm_eps\":1e-5,"
      "\"max_position_embeddings\":66,\"pad_token_id\":1,"
      "\"type_vocab_size\":1,\"rotary_emb_base\":20000.0,"
      "\"lora_adaptations\":[\"a\",\"b\",\"c\",\"d\",\"e\"]",
      TASKS("roberta.embeddings.word_embeddings", "260",
            "32") TASKS("roberta.embeddings.token_type_embeddings", "1", "32")
          TASKS("roberta.pooler.dense", "32",
                "32") "roberta.pooler.dense.bias 32\n" TASKS(J "mixer.Wqkv",
                                                             "96", "32")
              TASKS(J "mixer.out_proj", "32", "32") TASKS(
                  J "mlp.fc1", "48", "32") TASKS(J "mlp.fc2", "32", "48") J
      "mixer.Wqkv.bias 96\n" J "mixer.out_proj.bias 32\n" J
      "mlp.fc1.bias 48\n" J "mlp.fc2.bias 32\n" J "norm1.weight 32\n" J
      "norm1.bias 32\n" J "norm2.weight 32\n" J "norm2.bias 32\n"
      "roberta.emb_ln.weight 32\nroberta.emb_ln.bias 32\n",
      { { "token_embd.weight",
          "roberta.embeddings.word_embeddings.parametrizations.weight.original",
          same },
        { B "attn_qkv.weight", J "mixer.Wqkv.parametrizations.weight.original",
          same },
        { B "attn_qkv.bias", J "mixer.Wqkv.bias", same },
        { B "ffn_up.weight", J "mlp.fc1.parametrizations.weight.original",
          same },
        { B "layer_output_norm.weight", J "norm2.weight", same } },
      { { "context_length", "64" },
        { "rope.freq_base", "20000" },
        { "attention.causal", "false" } },
      .vocab = archs_unigram },
    { .class_name = NULL },
};
