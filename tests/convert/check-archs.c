/* check-archs.c - a small folder of each architecture becomes a sound model
 *
 * Names and shapes are written here from each model's definition in
 * transformers. What is checked of the result: verification (keys, names and
 * shapes as the architecture's row in model/ wants them) finds no error, and
 * every number of every tensor is the one that it should be, by loops from the
 * definitions.
 */
#include "config.h"
#include "convert/classes.h"
#include "gguf/convert.h"
#include "gguf/stats.h"
#include "gguf/verify.h"
#include "tests/convert/folder.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { LAYERS = 2, EXPERTS = 3 };

#define SIZES                                                                 \
    "\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"    \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":260," \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,"                   \
    "\"rope_theta\":10000.0,\"eos_token_id\":258,\"bos_token_id\":258"
#define L    "model.layers.%."
#define TOP  "model.embed_tokens.weight 260 32\nmodel.norm.weight 32\n"
#define HEAD "lm_head.weight 260 32\n"
#define QKV                                                                   \
    L "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 16 32\n" L \
      "self_attn.v_proj.weight 16 32\n" L "self_attn.o_proj.weight 32 32\n"
#define QKV_B                                                                 \
    L "self_attn.q_proj.bias 32\n" L "self_attn.k_proj.bias 16\n" L           \
      "self_attn.v_proj.bias 16\n"
#define QK_NORM L "self_attn.q_norm.weight 8\n" L "self_attn.k_norm.weight 8\n"
#define NORMS                                                                 \
    L "input_layernorm.weight 32\n" L "post_attention_layernorm.weight 32\n"
#define POST                                                                  \
    L "post_attention_layernorm.weight 32\n" L                                \
      "post_feedforward_layernorm.weight 32\n"
#define MLP                                                                   \
    L "mlp.gate_proj.weight 48 32\n" L "mlp.up_proj.weight 48 32\n" L         \
      "mlp.down_proj.weight 32 48\n"
#define MOE                                                                   \
    L "mlp.gate.weight 3 32\n" L "mlp.experts.@.gate_proj.weight 24 32\n" L   \
      "mlp.experts.@.up_proj.weight 24 32\n" L                                \
      "mlp.experts.@.down_proj.weight 32 24\n"
#define MOE_SIZES                                                             \
    ",\"num_experts\":3,\"num_experts_per_tok\":2,\"moe_intermediate_size\":24"

/* What is done to a tensor, told by the beginning of its name here. */
struct change {
    const char *to, *from; /* %: layer; @: expert */
    float (*value)(const struct folder_tensor *t, uint64_t i);
};

static float same(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i);
}

static float plus_1(const struct folder_tensor *t, uint64_t i)
{
    return folder_value(t->name, i) + 1;
}

static float neg_exp(const struct folder_tensor *t, uint64_t i)
{
    return -expf(folder_value(t->name, i));
}

/* Row r of a head, in pairs, is row r / 2 of its half r % 2. */
static float paired(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t cols = t->n_dims > 1 ? t->shape[1] : 1, head = 8;
    const uint64_t row = i / cols, col = i % cols;
    const uint64_t from =
        row / head * head + row % 2 * (head / 2) + row % head / 2;
    return folder_value(t->name, from * cols + col);
}

static float turned(const struct folder_tensor *t, uint64_t i)
{
    const uint64_t rows = t->shape[0], cols = t->shape[1];
    return folder_value(t->name, i % rows * cols + i / rows);
}

/* Of [matrices,] rows, columns. */
static float half(const struct folder_tensor *t, uint64_t i, uint64_t no)
{
    const uint64_t cols = t->shape[t->n_dims - 1];
    const uint64_t rows = t->shape[t->n_dims - 2], part = rows / 2 * cols;
    return folder_value(t->name,
                        i / part * rows * cols + no * part + i % part);
}

static float half_1(const struct folder_tensor *t, uint64_t i)
{
    return half(t, i, 0);
}

static float half_2(const struct folder_tensor *t, uint64_t i)
{
    return half(t, i, 1);
}

#define B "blk.%."
#define MOE_NAMES                                                             \
    { B "ffn_gate_exps.weight", L "mlp.experts.@.gate_proj.weight", same },   \
    {                                                                         \
        B "ffn_down_exps.weight", L "mlp.experts.@.down_proj.weight", same    \
    }

static const struct arch {
    const char *class_name, *arch, *config, *tensors;
    struct change change[8];
} archs[] = {
    { "LlamaForCausalLM",
      "llama",
      SIZES,
      TOP HEAD QKV NORMS MLP L "self_attn.rotary_emb.inv_freq 4\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired },
        { B "attn_k.weight", L "self_attn.k_proj.weight", paired },
        { B "attn_v.weight", L "self_attn.v_proj.weight", same },
        { "output.weight", "lm_head.weight", same },
        { B "ffn_norm.weight", L "post_attention_layernorm.weight", same } } },
    { "MistralForCausalLM",
      "llama",
      SIZES,
      TOP HEAD QKV NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } } },
    { "MixtralForCausalLM",
      "llama",
      SIZES ",\"num_local_experts\":3,\"num_experts_per_tok\":2",
      TOP HEAD QKV NORMS L "block_sparse_moe.gate.weight 3 32\n" L
                           "block_sparse_moe.experts.@.w1.weight 48 32\n" L
                           "block_sparse_moe.experts.@.w2.weight 32 48\n" L
                           "block_sparse_moe.experts.@.w3.weight 48 32\n",
      { { B "ffn_gate_exps.weight", L "block_sparse_moe.experts.@.w1.weight",
          same },
        { B "ffn_down_exps.weight", L "block_sparse_moe.experts.@.w2.weight",
          same },
        { B "ffn_up_exps.weight", L "block_sparse_moe.experts.@.w3.weight",
          same },
        { B "attn_k.weight", L "self_attn.k_proj.weight", paired } } },
    { "Qwen2ForCausalLM",
      "qwen2",
      SIZES,
      TOP QKV QKV_B NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same },
        { B "attn_q.bias", L "self_attn.q_proj.bias", same } } },
    { "Qwen2MoeForCausalLM",
      "qwen2moe",
      SIZES MOE_SIZES ",\"shared_expert_intermediate_size\":40",
      TOP HEAD QKV QKV_B NORMS MOE L
      "mlp.shared_expert_gate.weight 1 32\n" L
      "mlp.shared_expert.gate_proj.weight 40 32\n" L
      "mlp.shared_expert.up_proj.weight 40 32\n" L
      "mlp.shared_expert.down_proj.weight 32 40\n",
      { MOE_NAMES,
        { B "ffn_gate_inp_shexp.weight", L "mlp.shared_expert_gate.weight",
          same } } },
    { "Qwen3ForCausalLM",
      "qwen3",
      SIZES ",\"head_dim\":8",
      TOP HEAD QKV QK_NORM NORMS MLP,
      { { B "attn_q_norm.weight", L "self_attn.q_norm.weight", same } } },
    { "Qwen3MoeForCausalLM",
      "qwen3moe",
      SIZES MOE_SIZES ",\"head_dim\":8",
      TOP HEAD QKV QK_NORM NORMS MOE,
      { MOE_NAMES } },
    { "OlmoeForCausalLM",
      "olmoe",
      SIZES ",\"num_experts\":3,\"num_experts_per_tok\":2",
      TOP HEAD QKV NORMS L
      "self_attn.q_norm.weight 32\n" L "self_attn.k_norm.weight 16\n" L
      "mlp.gate.weight 3 32\n" L "mlp.experts.@.gate_proj.weight 48 32\n" L
      "mlp.experts.@.up_proj.weight 48 32\n" L
      "mlp.experts.@.down_proj.weight 32 48\n",
      { MOE_NAMES } },
    { "Olmo2ForCausalLM",
      "olmo2",
      SIZES,
      TOP HEAD QKV POST MLP L "self_attn.q_norm.weight 32\n" L
                              "self_attn.k_norm.weight 16\n",
      { { B "post_ffw_norm.weight", L "post_feedforward_layernorm.weight",
          same } } },
    { "GemmaForCausalLM",
      "gemma",
      SIZES ",\"head_dim\":8",
      TOP QKV NORMS MLP,
      { { B "attn_norm.weight", L "input_layernorm.weight", plus_1 },
        { B "ffn_norm.weight", L "post_attention_layernorm.weight", plus_1 },
        { "output_norm.weight", "model.norm.weight", plus_1 },
        { "token_embd.weight", "model.embed_tokens.weight", same } } },
    { "Gemma2ForCausalLM",
      "gemma2",
      SIZES ",\"head_dim\":8,\"sliding_window\":16,\"attn_logit_softcapping\":"
            "50.0,\"final_logit_softcapping\":30.0",
      TOP QKV L "input_layernorm.weight 32\n" POST L
                "pre_feedforward_layernorm.weight 32\n" MLP,
      { { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          plus_1 },
        { B "ffn_norm.weight", L "pre_feedforward_layernorm.weight",
          plus_1 } } },
    { "Gemma3ForCausalLM",
      "gemma3",
      SIZES ",\"head_dim\":8,\"sliding_window\":16",
      TOP QKV QK_NORM L "input_layernorm.weight 32\n" POST L
                        "pre_feedforward_layernorm.weight 32\n" MLP,
      { { B "attn_k_norm.weight", L "self_attn.k_norm.weight", plus_1 } } },
    { "Phi3ForCausalLM",
      "phi3",
      SIZES ",\"sliding_window\":32",
      TOP HEAD NORMS L
      "self_attn.qkv_proj.weight 64 32\n" L "self_attn.o_proj.weight 32 32\n" L
      "mlp.gate_up_proj.weight 96 32\n" L "mlp.down_proj.weight 32 48\n",
      { { B "attn_qkv.weight", L "self_attn.qkv_proj.weight", same },
        { B "ffn_up.weight", L "mlp.gate_up_proj.weight", same } } },
    { "PhiForCausalLM",
      "phi2",
      SIZES ",\"layer_norm_eps\":1e-5,\"partial_rotary_factor\":0.5",
      "model.embed_tokens.weight 260 32\n" HEAD
      "lm_head.bias 260\nmodel.final_layernorm.weight 32\n"
      "model.final_layernorm.bias 32\n" L "input_layernorm.weight 32\n" L
      "input_layernorm.bias 32\n" L "self_attn.q_proj.weight 32 32\n" L
      "self_attn.k_proj.weight 16 32\n" L "self_attn.v_proj.weight 16 32\n" L
      "self_attn.dense.weight 32 32\n" L "self_attn.q_proj.bias 32\n" L
      "self_attn.k_proj.bias 16\n" L "self_attn.v_proj.bias 16\n" L
      "self_attn.dense.bias 32\n" L "mlp.fc1.weight 48 32\n" L
      "mlp.fc1.bias 48\n" L "mlp.fc2.weight 32 48\n" L "mlp.fc2.bias 32\n",
      { { B "ffn_up.bias", L "mlp.fc1.bias", same },
        { B "attn_output.weight", L "self_attn.dense.weight", same } } },
    { "Starcoder2ForCausalLM",
      "starcoder2",
      SIZES ",\"norm_epsilon\":1e-5",
      TOP "model.norm.bias 32\n" QKV QKV_B NORMS L
          "input_layernorm.bias 32\n" L "post_attention_layernorm.bias 32\n" L
          "self_attn.o_proj.bias 32\n" L "mlp.c_fc.weight 48 32\n" L
          "mlp.c_fc.bias 48\n" L "mlp.c_proj.weight 32 48\n" L
          "mlp.c_proj.bias 32\n",
      { { B "ffn_down.weight", L "mlp.c_proj.weight", same } } },
    { "StableLmForCausalLM",
      "stablelm",
      SIZES ",\"layer_norm_eps\":1e-5,\"partial_rotary_factor\":0.25,"
            "\"use_parallel_residual\":false",
      TOP HEAD "model.norm.bias 32\n" QKV NORMS L "input_layernorm.bias 32\n" L
               "post_attention_layernorm.bias 32\n" MLP,
      { { B "attn_norm.bias", L "input_layernorm.bias", same } } },
    { "GraniteForCausalLM",
      "granite",
      SIZES ",\"attention_multiplier\":0.1,\"embedding_multiplier\":12.0,"
            "\"residual_multiplier\":0.2,\"logits_scaling\":8.0",
      TOP QKV NORMS MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } } },
    { "GraniteMoeForCausalLM",
      "granitemoe",
      SIZES ",\"attention_multiplier\":0.1,\"embedding_multiplier\":12.0,"
            "\"residual_multiplier\":0.2,\"logits_scaling\":8.0,"
            "\"num_local_experts\":3,\"num_experts_per_tok\":2",
      TOP QKV NORMS L "block_sparse_moe.router.layer.weight 3 32\n" L
                      "block_sparse_moe.input_linear.weight 3 96 32\n" L
                      "block_sparse_moe.output_linear.weight 3 32 48\n",
      { { B "ffn_gate_exps.weight", L "block_sparse_moe.input_linear.weight",
          half_1 },
        { B "ffn_up_exps.weight", L "block_sparse_moe.input_linear.weight",
          half_2 } } },
    { "SmolLM3ForCausalLM",
      "smollm3",
      SIZES,
      TOP QKV NORMS MLP,
      { { B "attn_k.weight", L "self_attn.k_proj.weight", paired } } },
    { "SeedOssForCausalLM",
      "seed_oss",
      SIZES ",\"head_dim\":8",
      TOP HEAD QKV QKV_B NORMS MLP,
      { { NULL, NULL, NULL } } },
    { "ArceeForCausalLM",
      "arcee",
      SIZES,
      TOP HEAD QKV NORMS L "mlp.up_proj.weight 48 32\n" L
                           "mlp.down_proj.weight 32 48\n",
      { { B "attn_q.weight", L "self_attn.q_proj.weight", paired } } },
    { "CohereForCausalLM",
      "command-r",
      SIZES ",\"layer_norm_eps\":1e-5,\"logit_scale\":0.0625",
      TOP QKV L "input_layernorm.weight 32\n" MLP,
      { { B "attn_q.weight", L "self_attn.q_proj.weight", same } } },
    { "Cohere2ForCausalLM",
      "cohere2",
      SIZES ",\"layer_norm_eps\":1e-5,\"logit_scale\":0.0625,"
            "\"sliding_window\":16,\"head_dim\":8",
      TOP QKV L "input_layernorm.weight 32\n" MLP,
      { { NULL, NULL, NULL } } },
    { "Exaone4ForCausalLM",
      "exaone4",
      SIZES ",\"sliding_window\":16",
      TOP HEAD QKV QK_NORM POST MLP,
      { { B "post_attention_norm.weight", L "post_attention_layernorm.weight",
          same } } },
    { "GPT2LMHeadModel",
      "gpt2",
      "\"n_embd\":32,\"n_layer\":2,\"n_head\":4,\"n_ctx\":64,\"n_positions\":"
      "64,\"n_inner\":48,\"layer_norm_epsilon\":1e-5,\"vocab_size\":260",
      "transformer.wte.weight 260 32\ntransformer.wpe.weight 64 32\n"
      "transformer.ln_f.weight 32\ntransformer.ln_f.bias 32\n"
      "transformer.h.%.ln_1.weight 32\ntransformer.h.%.ln_1.bias 32\n"
      "transformer.h.%.ln_2.weight 32\ntransformer.h.%.ln_2.bias 32\n"
      "transformer.h.%.attn.bias 1 1 64 64\n"
      "transformer.h.%.attn.c_attn.weight 32 96\n"
      "transformer.h.%.attn.c_attn.bias 96\n"
      "transformer.h.%.attn.c_proj.weight 32 32\n"
      "transformer.h.%.attn.c_proj.bias 32\n"
      "transformer.h.%.mlp.c_fc.weight 32 48\n"
      "transformer.h.%.mlp.c_fc.bias 48\n"
      "transformer.h.%.mlp.c_proj.weight 48 32\n"
      "transformer.h.%.mlp.c_proj.bias 32\n",
      { { B "attn_qkv.weight", "transformer.h.%.attn.c_attn.weight", turned },
        { B "attn_qkv.bias", "transformer.h.%.attn.c_attn.bias", same },
        { B "ffn_down.weight", "transformer.h.%.mlp.c_proj.weight",
          turned } } },
    { "MambaForCausalLM",
      "mamba",
      "\"hidden_size\":32,\"num_hidden_layers\":2,\"vocab_size\":260,"
      "\"conv_kernel\":4,\"intermediate_size\":64,\"state_size\":8,"
      "\"time_step_rank\":6,\"layer_norm_epsilon\":1e-5",
      "backbone.embeddings.weight 260 32\nbackbone.norm_f.weight 32\n"
      "backbone.layers.%.norm.weight 32\n"
      "backbone.layers.%.mixer.in_proj.weight 128 32\n"
      "backbone.layers.%.mixer.conv1d.weight 64 1 4\n"
      "backbone.layers.%.mixer.conv1d.bias 64\n"
      "backbone.layers.%.mixer.x_proj.weight 22 64\n"
      "backbone.layers.%.mixer.dt_proj.weight 64 6\n"
      "backbone.layers.%.mixer.dt_proj.bias 64\n"
      "backbone.layers.%.mixer.A_log 64 8\nbackbone.layers.%.mixer.D 64\n"
      "backbone.layers.%.mixer.out_proj.weight 32 64\n",
      { { B "ssm_a", "backbone.layers.%.mixer.A_log", neg_exp },
        { B "ssm_d", "backbone.layers.%.mixer.D", same },
        { B "ssm_conv1d.weight", "backbone.layers.%.mixer.conv1d.weight",
          same } } },
};

static char top[200];

/* ---- the result ---- */

struct seen {
    int n_errors;
    char first[200];
};

static int note(void *user, const struct gguf_finding *f)
{
    struct seen *s = user;
    if (f->severity == GGUF_SEVERITY_ERROR && !s->n_errors++)
        snprintf(s->first, sizeof s->first, "%s", f->message);
    return 0;
}

/* The name of a pattern for a layer and an expert. */
static void fill(char out[160], const char *pattern, int il, int ie)
{
    for (; *pattern; pattern++)
        out += *pattern == '%'   ? sprintf(out, "%d", il)
               : *pattern == '@' ? sprintf(out, "%d", ie)
                                 : sprintf(out, "%c", *pattern);
    *out = 0;
}

/* Does tensor c->to of f have the numbers that it should, in all layers? */
static bool check_change(const struct folder *from, const struct gguf_file *f,
                         struct gguf_rows *rows, const struct change *c)
{
    static float x[200000];
    char name[160];
    const bool layers = strchr(c->to, '%') != NULL;
    const bool experts = strchr(c->from, '@') != NULL;
    for (int il = 0; il < (layers ? LAYERS : 1); il++) {
        fill(name, c->to, il, 0);
        const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
        if (!t || t->n_elements > sizeof x / sizeof *x ||
            gguf_rows_get(rows, f, t->index, 0, t->n_elements, x, NULL))
            return false;
        uint64_t at = 0;
        for (int ie = 0; ie < (experts ? EXPERTS : 1); ie++) {
            fill(name, c->from, il, ie);
            const struct folder_tensor *s = folder_find(from, name);
            const uint64_t n =
                experts ? t->n_elements / EXPERTS : t->n_elements;
            for (uint64_t i = 0; i < n; i++, at++)
                if (!s || x[at] != c->value(s, i))
                    return false;
        }
    }
    return true;
}

static void make(struct folder *f, const struct arch *a, const char *dtype,
                 int n_files)
{
    char config[1000];
    folder_begin(f, scratch_path(top, a->class_name));
    snprintf(config, sizeof config, "{\"architectures\":[\"%s\"],%s}",
             a->class_name, a->config);
    folder_text(f, "config.json", config);
    folder_tensors(f, a->tensors, LAYERS, EXPERTS);
    folder_weights(f, dtype, n_files);
    folder_bpe(f, n_files > 1);
}

static void check_arch(const struct arch *a, struct gguf_rows *rows)
{
    static struct folder f;
    struct gguf_error e;
    struct gguf_file *file = NULL;
    struct seen seen = { 0, "" };
    struct gguf_str name = { "", 0 };
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    make(&f, a, "F32", 1);
    enum gguf_status st = folder_convert(f.dir, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_open(&file, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_verify(file, NULL, note, &seen, &e);
    if (file)
        gguf_kv_get_str(gguf_file_kv_find(file, "general.architecture"), &name,
                        NULL);
    ok(st == GGUF_OK && !seen.n_errors && name.size == strlen(a->arch) &&
           !memcmp(name.data, a->arch, name.size),
       "%s becomes a sound %s: %s%s", a->class_name, a->arch, e.message,
       seen.first);
    ok(folder_roundtrip(out, a->class_name, scratch_path(top, "back"), &e),
       "%s: a folder of it becomes the same file %s", a->class_name,
       e.message);
    for (size_t i = 0; i < 8 && a->change[i].to; i++)
        ok(file && check_change(&f, file, rows, &a->change[i]),
           "%s: numbers of %s", a->class_name, a->change[i].to);
    gguf_file_close(file);
    scratch_clean(top);
}

/* Several files, BF16: the same numbers in files of their own types. */
static void check_files(struct gguf_rows *rows)
{
    static struct folder f;
    struct gguf_error e;
    struct gguf_file *file = NULL;
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    make(&f, &archs[2], "BF16", 3);
    bool good = folder_convert(f.dir, out, NULL, &e) == GGUF_OK &&
                gguf_file_open(&file, out, NULL, &e) == GGUF_OK;
    for (size_t i = 0; good && i < 4; i++)
        good = check_change(&f, file, rows, &archs[2].change[i]);
    ok(good, "three files of BF16, experts in all of them: %s", e.message);
    good = file != NULL;
    for (size_t i = 0; good && i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
        const bool vector = t->n_dims < 2 || strstr(t->name.data, "gate_inp.");
        good = t->dtype == (vector ? GGUF_DTYPE_F32 : GGUF_DTYPE_BF16);
    }
    ok(good, "matrices are BF16, vectors and routers F32");
    gguf_file_close(file);
    scratch_clean(top);
}

/* Every row of the table is met here. */
static void check_all_met(void)
{
    for (size_t i = 0; gg_convert_arch_row(i); i++) {
        bool met = false;
        for (size_t k = 0; k < sizeof archs / sizeof *archs; k++)
            met = met ||
                  gg_convert_arch_find((struct gguf_str){
                      archs[k].class_name, strlen(archs[k].class_name) }) ==
                      gg_convert_arch_row(i);
        ok(met, "%s is tested", gg_convert_arch_row(i)->classes);
    }
}

int main(void)
{
    struct gguf_rows *rows;
    snprintf(top, sizeof top, "check-archs-convert.%d.tmp", (int)getpid());
    if (system(NULL) == 0 || gguf_rows_create(&rows, NULL, NULL) != GGUF_OK)
        return 99;
    static struct folder f;
    folder_begin(&f, top);
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        check_arch(&archs[i], rows);
    check_files(rows);
    check_all_met();
    gguf_rows_destroy(rows);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
