/* SPDX-License-Identifier: MIT */
/* back_own.c - what config.json has and no row can be turned round to
 *
 * Rows of classes compute keys of config.json; where that is more than a name,
 * what config.json had is computed here of the keys, in the same language
 * (expr.h), which here speaks of them: "attention.key_length" is the key of the
 * file's architecture, num_hidden_layers the layers that do not draft,
 * pad_token_id the token of padding.
 */
#include "config.h"
#include "convert/back_maker.h"
#include "convert/expr.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum kind {
    NUMBER, /* once; without a layer, a list is its first */
    PICK,   /* of the first layer in which it is not missing */
    FLAG,   /* true or false */
    TEXT,   /* the word, if it is true */
    EACH,   /* a number for each layer; ".i." in the name: of its member, and
             * nothing where it is missing */
    SOME,   /* a number for each layer, or null */
    FLAGS,  /* so true or false */
    ENUM,   /* a text: the numbers of layers in which it is true */
    COPY,   /* the key as it is */
    WORDS,  /* for each layer a word: the first of these if it is 0 */
    COUNT,  /* 0, 1, ...: as many */
    LIST,   /* these words */
    FILLED, /* rows of the file's tensor, without those of zeros at its end */
    NOT     /* nothing, if it is true */
};

#define ROT_OF_WIDTH                                                          \
    "rope.dimension_count*attention.head_count/embedding_length"
#define ROT_OF_KEY "rope.dimension_count/attention.key_length"
/* The base of positions is the usual one, stretched by alpha. */
#define HUNYUAN(ARCH)                                                         \
    { ARCH, "max_position_embeddings", NUMBER, "context_length", NULL },      \
        { ARCH, "rope_theta", NUMBER, DYNAMIC "?10000:rope.freq_base",        \
          NULL },                                                             \
        { ARCH, "rope_scaling.type", TEXT, DYNAMIC, "dynamic" },              \
        { ARCH, "rope_scaling.alpha", NUMBER,                                 \
          DYNAMIC "?pow(rope.freq_base/10000,(attention.key_length-2)/"       \
                  "attention.key_length)",                                    \
          NULL },                                                             \
    {                                                                         \
        ARCH, "rope_scaling.factor", NUMBER, DYNAMIC "?rope.scaling.factor",  \
            NULL                                                              \
    }
#define DYNAMIC "rope.scaling.original_context_length!"

#define WINDOWED    "attention.sliding_window_pattern"
#define LATER       "(i<leading_dense_block_count)=0"
#define LAYER_TYPES "full_attention,sliding_attention"

/* Blocks of layers that differ; widths are multiples of 256, rounded up. */
#define BLOCKS "len(feed_forward_length)>0?"
#define MULTIPLIER                                                            \
    "feed_forward_length>0?3*(feed_forward_length-128)/(2*embedding_length)"

/* Layers with attention among others; those with neither it nor a state. */
#define HAS_KEYS  "(attention.head_count_kv>0)"
#define KEY_HEADS HAS_KEYS "?attention.head_count_kv"
#define NEXT_WITH_KEYS                                                        \
    HAS_KEYS "*(i>first(" HAS_KEYS "))?i-first(" HAS_KEYS ")"
#define LETTERS HAS_KEYS "+2*(feed_forward_length>0)"
/* ..., if they differ by layers. */
#define LISTED         "len(attention.head_count_kv)>0?"
#define EXPAND         "ssm.inner_size/embedding_length"
#define HEAD_OF_STATES "ssm.inner_size/ssm.time_step_rank"

/* What is missing in value leaves the member out. */
static const struct {
    const char *arch, *name;
    enum kind kind;
    const char *value, *words;
} rows[] = {
    { "bitnet", "hidden_act", TEXT, "1", "silu" },
    { "bitnet", "rope_scaling", NOT, "1", NULL },
    { "bloom", "seq_length", NUMBER, "context_length", NULL },
    { "chatglm", "rope_ratio", NUMBER, "rope.freq_base/10000", NULL },
    { "chatglm", "partial_rotary_factor", NUMBER, ROT_OF_WIDTH, NULL },
    { "codeshell", "rope_scaling", NOT, "1", NULL },
    { "cohere2moe", "intermediate_size", NUMBER, "expert_feed_forward_length",
      NULL },
    { "cohere2moe", "prefix_dense_intermediate_size", NUMBER,
      "feed_forward_length", NULL },
    { "cohere2moe", "mlp_layer_types", WORDS, LATER, "dense,sparse" },
    { "deci", "num_attention_heads", PICK,
      "attention.head_count>0?attention.head_count", NULL },
    { "deci", "num_key_value_heads", NOT, "len(attention.head_count_kv)>0",
      NULL },
    { "deci", "num_key_value_heads_per_layer", EACH,
      "(len(feed_forward_length)=0)*(len(attention.head_count_kv)>0)?"
      "attention.head_count_kv",
      NULL },
    { "deci", "intermediate_size", NUMBER, "feed_forward_length", NULL },
    { "deci", "intermediate_size", NOT, "len(feed_forward_length)>0", NULL },
    { "deci", "block_configs.i.attention.n_heads_in_group", EACH,
      BLOCKS HAS_KEYS "?attention.head_count/attention.head_count_kv", NULL },
    { "deci", "block_configs.i.attention.replace_with_linear", FLAGS,
      BLOCKS "(attention.head_count>0)*(attention.head_count_kv=0)", NULL },
    { "deci", "block_configs.i.attention.no_op", FLAGS,
      BLOCKS "attention.head_count=0", NULL },
    { "deci", "block_configs.i.ffn.ffn_mult", EACH, BLOCKS MULTIPLIER, NULL },
    { "deci", "block_configs.i.ffn.no_op", FLAGS,
      BLOCKS "feed_forward_length=0", NULL },
    { "deepseek2-ocr", "rope_theta", NOT, "rope.freq_base=10000", NULL },
    { "deepseek2-ocr", "rms_norm_eps", NOT,
      "attention.layer_norm_rms_epsilon=1e-6", NULL },
    { "falcon", "num_attention_heads", NUMBER, "attention.head_count", NULL },
    { "falcon", "num_kv_heads", NUMBER, "attention.head_count_kv", NULL },
    { "falcon", "multi_query", FLAG, "attention.head_count_kv=1", NULL },
    { "falcon", "new_decoder_architecture", FLAG, "attention.head_count_kv>1",
      NULL },
    { "falcon", "alibi", FLAG, "0", NULL },
    { "falcon-h1", "mamba_d_head", NUMBER, HEAD_OF_STATES, NULL },
    { "gemma3n", "activation_sparsity_pattern", EACH,
      "part(activation_sparsity_scale)|0", NULL },
    { "gemma3n", "vocab_size_per_layer_input", FILLED,
      "per_layer_token_embd.weight", NULL },
    { "gptneox", "rotary_pct", NUMBER, ROT_OF_WIDTH, NULL },
    { "gemma4", "intermediate_size", NUMBER, "feed_forward_length", NULL },
    { "gemma4", "use_double_wide_mlp", FLAG, "len(feed_forward_length)>0?1",
      NULL },
    { "gemma4", "num_key_value_heads", NUMBER, "attention.head_count_kv",
      NULL },
    { "gemma4", "num_key_value_heads", PICK,
      LISTED WINDOWED "=1?attention.head_count_kv", NULL },
    { "gemma4", "num_global_key_value_heads", PICK,
      LISTED WINDOWED "=0?attention.head_count_kv", NULL },
    { "glm4", "partial_rotary_factor", NUMBER,
      "rope.dimension_count/(attention.key_length|(embedding_length/"
      "attention.head_count))",
      NULL },
    { "glm4moe", "partial_rotary_factor", NUMBER, ROT_OF_KEY, NULL },
    { "granite", "layer_types", WORDS, LISTED HAS_KEYS, "mamba,attention" },
    { "granite", "num_key_value_heads", PICK, LISTED KEY_HEADS, NULL },
    { "granite", "mamba_expand", NUMBER, EXPAND, NULL },
    { "granitemoe", "layer_types", WORDS, LISTED HAS_KEYS, "mamba,attention" },
    { "granitemoe", "num_key_value_heads", PICK, LISTED KEY_HEADS, NULL },
    { "granitemoe", "mamba_expand", NUMBER, EXPAND, NULL },
    { "granitehybrid", "max_position_embeddings", NUMBER, "context_length",
      NULL },
    { "granitehybrid", "layer_types", WORDS, HAS_KEYS, "mamba,attention" },
    { "granitehybrid", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "granitehybrid", "mamba_expand", NUMBER, EXPAND, NULL },
    { "grok", "rope_type", TEXT, "rope.scaling.type:yarn", "yarn" },
    { "grok", "rope_scaling", NOT, "rope.scaling.type:yarn", NULL },
    { "grok", "attn_output_multiplier", NUMBER, "attention.output_scale",
      NULL },
    HUNYUAN("hunyuan-dense"),
    HUNYUAN("hunyuan-moe"),
    { "hunyuan_vl", "rope_scaling.type", TEXT, "rope.scaling.alpha>0",
      "xdrope" },
    { "hunyuan_vl", "rope_scaling.xdrope_section", COPY,
      "rope.dimension_sections", NULL },
    { "hunyuan_vl", "rope_scaling.alpha", NUMBER, "rope.scaling.alpha", NULL },
    { "hunyuan_vl", "rope_scaling.factor", NUMBER,
      "rope.scaling.alpha>0?rope.scaling.factor", NULL },
    { "jamba", "attn_layer_offset", NUMBER, "first(" HAS_KEYS ")", NULL },
    { "jamba", "attn_layer_period", NUMBER, "num_hidden_layers", NULL },
    { "jamba", "attn_layer_period", PICK, NEXT_WITH_KEYS, NULL },
    { "jamba", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "jamba", "mamba_expand", NUMBER, EXPAND, NULL },
    /* the first rows of positions would be of padding, if it had any; it has
     * no adapters of the tasks */
    { "jina-bert-v3", "pad_token_id", NUMBER, "pad_token_id|1", NULL },
    { "jina-bert-v3", "max_position_embeddings", NUMBER,
      "context_length+pad_token_id|1+1", NULL },
    { "jina-bert-v3", "lora_adaptations", LIST, "1",
      "retrieval.query,retrieval.passage,separation,classification,"
      "text-matching" },
    { "jina-bert-v3", "load_trained_adapters", FLAG, "0", NULL },
    { "laguna", "num_attention_heads", NUMBER, "attention.head_count", NULL },
    { "laguna", "num_attention_heads_per_layer", EACH, "attention.head_count",
      NULL },
    { "laguna", "mlp_layer_types", WORDS, LATER, "dense,sparse" },
    { "laguna", "layer_types", WORDS, "attention.sliding_window>0?(i%4>0)",
      LAYER_TYPES },
    { "laguna", "rope_parameters.full_attention.partial_rotary_factor", NUMBER,
      ROT_OF_KEY, NULL },
    { "laguna", "rope_parameters.sliding_attention.partial_rotary_factor",
      NUMBER, "rope.dimension_count_swa/attention.key_length", NULL },
    { "lfm2", "intermediate_size", NUMBER, "feed_forward_length", NULL },
    { "lfm2", "layer_types", WORDS, HAS_KEYS, "conv,full_attention" },
    { "lfm2", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "lfm2moe", "layer_types", WORDS, HAS_KEYS, "conv,full_attention" },
    { "lfm2moe", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "llama-embed", "pooling", TEXT, "pooling_type=1", "avg" },
    { "mamba2", "expand", NUMBER, EXPAND, NULL },
    { "mamba2", "head_dim", NUMBER, HEAD_OF_STATES, NULL },
    { "mellum", "sliding_window", NUMBER, "attention.sliding_window", NULL },
    { "mimo2", "num_hidden_layers", NUMBER, "num_hidden_layers", NULL },
    { "mimo2", "hybrid_layer_pattern", EACH, WINDOWED, NULL },
    { "mimo2", "num_key_value_heads", PICK,
      WINDOWED "=0?attention.head_count_kv", NULL },
    { "mimo2", "swa_num_key_value_heads", PICK,
      WINDOWED "=1?attention.head_count_kv", NULL },
    { "mimo2", "partial_rotary_factor", NUMBER, ROT_OF_KEY, NULL },
    { "minicpm", "scale_depth", NUMBER, "residual_scale*sqrt(block_count)",
      NULL },
    { "minicpm", "dim_model_base", NUMBER, "embedding_length/logit_scale",
      NULL },
    { "minimax-m3", "intermediate_size", NUMBER, "expert_feed_forward_length",
      NULL },
    { "minimax-m3", "dense_intermediate_size", NUMBER, "feed_forward_length",
      NULL },
    { "minimax-m3", "moe_layer_freq", EACH, LATER, NULL },
    { "mpt", "attn_config.alibi", FLAG, "attention.max_alibi_bias>0", NULL },
    { "mpt", "attn_config.alibi_bias_max", NUMBER,
      "attention.max_alibi_bias>0?attention.max_alibi_bias", NULL },
    { "nemotron", "partial_rotary_factor", NUMBER, ROT_OF_WIDTH, NULL },
    { "nemotron_h", "max_position_embeddings", NUMBER, "context_length",
      NULL },
    { "nemotron_h", "layers_block_type", WORDS, LETTERS,
      "mamba,attention,mlp" },
    { "nemotron_h", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "nemotron_h", "intermediate_size", PICK,
      "feed_forward_length>0?feed_forward_length", NULL },
    { "nemotron_h", "mamba_head_dim", NUMBER, HEAD_OF_STATES, NULL },
    { "nemotron_h_moe", "max_position_embeddings", NUMBER, "context_length",
      NULL },
    { "nemotron_h_moe", "intermediate_size", PICK,
      "feed_forward_length>0?feed_forward_length", NULL },
    { "nemotron_h_moe", "layers_block_type", WORDS, LETTERS,
      "mamba,attention,moe" },
    { "nemotron_h_moe", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "nemotron_h_moe", "mamba_head_dim", NUMBER, HEAD_OF_STATES, NULL },
    { "neo-bert", "intermediate_size", NUMBER, "(3*feed_forward_length+1)//2",
      NULL },
    { "nomic-bert", "n_positions", NUMBER,
      "context_length=2048?8192:(context_length=512?2048:context_length)",
      NULL },
    { "nomic-bert-moe", "n_positions", NUMBER,
      "context_length=2048?8192:(context_length=512?2048:context_length)",
      NULL },
    { "openelm", "ffn_multipliers", EACH,
      "feed_forward_length/embedding_length", NULL },
    { "openelm", "ffn_dim_divisor", NUMBER, "1", NULL },
    { "plamo", "n_shared_head", NUMBER,
      "attention.head_count/attention.head_count_kv", NULL },
    { "plamo2", "mamba_enabled", FLAG, "len(attention.head_count)>0", NULL },
    { "plamo2", "mamba_step", NUMBER, "max(1,2*first(" HAS_KEYS "))", NULL },
    { "plamo2", "mamba_step", PICK, NEXT_WITH_KEYS, NULL },
    { "plamo2", "num_attention_heads", PICK,
      "attention.head_count>0?attention.head_count", NULL },
    { "plamo2", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "qwen35", "linear_value_head_dim", NUMBER, HEAD_OF_STATES, NULL },
    { "qwen35", "partial_rotary_factor", NUMBER, ROT_OF_KEY, NULL },
    { "qwen35moe", "linear_value_head_dim", NUMBER, HEAD_OF_STATES, NULL },
    { "qwen35moe", "partial_rotary_factor", NUMBER, ROT_OF_KEY, NULL },
    { "qwen3next", "linear_value_head_dim", NUMBER, HEAD_OF_STATES, NULL },
    { "qwen3next", "partial_rotary_factor", NUMBER, ROT_OF_KEY, NULL },
    { "qwen3vl", "vision_config.deepstack_visual_indexes", COUNT,
      "n_deepstack_layers", NULL },
    { "qwen3vlmoe", "vision_config.deepstack_visual_indexes", COUNT,
      "n_deepstack_layers", NULL },
    { "rwkv6qwen2", "num_attention_heads", NUMBER,
      "embedding_length/wkv.head_size", NULL },
    { "smallthinker", "sliding_window_size", NUMBER,
      "attention.sliding_window", NULL },
    { "smallthinker", "sliding_window_layout", EACH,
      "attention.sliding_window>0?(i%4>0)", NULL },
    { "smallthinker", "moe_primary_router_apply_softmax", FLAG,
      "expert_gating_func=1", NULL },
    { "step35", "num_attention_heads", PICK,
      WINDOWED "=0?attention.head_count", NULL },
    { "step35", "num_attention_groups", PICK,
      WINDOWED "=0?attention.head_count_kv", NULL },
    { "step35", "attention_other_setting.num_attention_heads", PICK,
      WINDOWED "=1?attention.head_count", NULL },
    { "step35", "attention_other_setting.num_attention_groups", PICK,
      WINDOWED "=1?attention.head_count_kv", NULL },
    { "step35", "partial_rotary_factors", EACH, WINDOWED "=1?1:0.5", NULL },
    { "step35", "rope_theta", EACH,
      WINDOWED "=1?(rope.freq_base_swa):rope.freq_base", NULL },
    { "step35", "moe_layers_enum", ENUM, LATER, NULL },
    { "step35", "swiglu_limits", SOME, "swiglu_clamp_exp>0?swiglu_clamp_exp",
      NULL },
    { "step35", "swiglu_limits_shared", SOME,
      "swiglu_clamp_shexp>0?swiglu_clamp_shexp", NULL },
    { "talkie", "rms_norm_eps", NUMBER, "attention.layer_norm_rms_epsilon",
      NULL },
};

/* A whole number as such; what is the key's, in its digits. */
static json_t *number_json(double x)
{
    if (x == floor(x) && fabs(x) < 1e15)
        return json_integer((json_int_t)x);
    return fabs((double)(float)x - x) <= 1e-15 * fabs(x)
               ? gg_back_real((float)x)
               : json_real(x);
}

/* The keys of the architecture as members of members. */
static json_t *keys_of(const struct gg_back_maker *m)
{
    json_t *root = json_object();
    const size_t n = strlen(m->arch->arch);
    char name[128];
    for (size_t i = 0; i < gguf_file_n_kv(m->b->meta); i++) {
        const struct gguf_kv *kv = gguf_file_kv(m->b->meta, i);
        if (kv->key.size <= n + 1 || kv->key.size >= sizeof name ||
            memcmp(kv->key.data, m->arch->arch, n) != 0 ||
            kv->key.data[n] != '.')
            continue;
        memcpy(name, kv->key.data + n + 1, kv->key.size - n - 1);
        name[kv->key.size - n - 1] = 0;
        gg_back_put(root, name, gg_back_value(kv));
    }
    const struct gguf_kv *pad =
        gguf_file_kv_find(m->b->meta, "tokenizer.ggml.padding_token_id");
    if (pad)
        json_object_set_new(root, "pad_token_id", gg_back_value(pad));
    const json_int_t all =
        json_integer_value(json_object_get(root, "block_count"));
    const json_int_t drafts =
        json_integer_value(json_object_get(root, "nextn_predict_layers"));
    json_object_set_new(root, "num_hidden_layers",
                        json_integer(all > drafts ? all - drafts : 0));
    return root;
}

static int64_t n_layers(const json_t *keys)
{
    const json_int_t n =
        json_integer_value(json_object_get(keys, "num_hidden_layers"));
    return n > 0 && n <= 100000 ? (int64_t)n : 0;
}

/* The n-th of words with commas between. */
static json_t *word_json(const char *words, double n)
{
    for (; n > 0 && *words; n--) {
        words += strcspn(words, ",");
        words += *words == ',';
    }
    return json_stringn(words, strcspn(words, ","));
}

static json_t *layer_json(size_t i, double x)
{
    switch (rows[i].kind) {
    case FLAGS: return json_boolean(x != 0);
    case WORDS: return word_json(rows[i].words, x);
    default: return number_json(x);
    }
}

/* A list for all layers; NULL: something is missing in one. */
static json_t *list_json(const struct gguf_convert *c, size_t i)
{
    json_t *out = json_array();
    for (int64_t k = 0; k < n_layers(c->folder.config); k++) {
        const double x = gg_convert_eval(c, rows[i].value, k);
        if (isnan(x) && rows[i].kind != SOME) {
            json_decref(out);
            return NULL;
        }
        json_array_append_new(out, isnan(x) ? json_null() : layer_json(i, x));
    }
    return out;
}

/* "LIST.i.NAME": members of the objects of a list, one for each layer. */
static void put_members(json_t *root, const struct gguf_convert *c, size_t i)
{
    char name[64];
    const char *at = strstr(rows[i].name, ".i.");
    snprintf(name, sizeof name, "%.*s", (int)(at - rows[i].name),
             rows[i].name);
    for (int64_t k = 0; k < n_layers(c->folder.config); k++) {
        const double x = gg_convert_eval(c, rows[i].value, k);
        json_t *all = json_object_get(root, name);
        if (isnan(x))
            continue;
        if (!json_is_array(all)) {
            all = json_array();
            json_object_set_new(root, name, all);
        }
        while (json_array_size(all) < (size_t)n_layers(c->folder.config))
            json_array_append_new(all, json_object());
        gg_back_put(json_array_get(all, (size_t)k), at + 3, layer_json(i, x));
    }
}

/* "N,N,N": layers in which it is true. */
static json_t *enumerate_layers(const struct gguf_convert *c,
                                const char *value)
{
    json_t *out = json_string("");
    for (int64_t k = 0; k < n_layers(c->folder.config); k++)
        if (gg_convert_eval(c, value, k) > 0) {
            json_t *more = json_sprintf("%s%s%" PRId64, json_string_value(out),
                                        *json_string_value(out) ? "," : "", k);
            json_decref(out);
            out = more;
        }
    return out;
}

static json_t *pick_layer(const struct gguf_convert *c, const char *value)
{
    double x = NAN;
    for (int64_t i = 0; i < n_layers(c->folder.config) && isnan(x); i++)
        x = gg_convert_eval(c, value, i);
    return isnan(x) ? NULL : number_json(x);
}

static json_t *count_json(double n)
{
    json_t *out = json_array();
    for (int i = 0; i < n && i < 1000; i++)
        json_array_append_new(out, json_integer(i));
    return out;
}

static json_t *all_words(const char *words)
{
    json_t *out = json_array();
    for (size_t n; *words; words += n + (words[n] == ',')) {
        n = strcspn(words, ",");
        json_array_append_new(out, json_stringn(words, n));
    }
    return out;
}

/* Are the numbers of a row, from element first on, all 0? */
static bool is_zero(const struct gg_data_rows *from, uint64_t first,
                    uint64_t n)
{
    float x[1024];
    for (uint64_t at = 0, k; at < n; at += k) {
        k = GG_MIN(n - at, GG_LEN(x));
        gg_data_read(from, first + at, k, x);
        for (uint64_t i = 0; i < k; i++)
            if (x[i] != 0)
                return false;
    }
    return true;
}

static json_t *filled_rows(const struct gg_back *b, const char *name)
{
    struct gg_data_rows from;
    size_t at;
    if (!gg_source_find(&b->source, name, &at) ||
        gg_data_rows(&b->numbers.list, at, &from, NULL) != GGUF_OK)
        return NULL;
    const struct gguf_tensor_info *t = gg_source_tensor(&b->source, at).info;
    const uint64_t row = (uint64_t)t->ne[0];
    int64_t n = t->ne[1];
    bool zero = true;
    while (zero && n > 1) {
        const uint64_t first = (uint64_t)(n - 1) * row;
        if (gg_data_hold(&b->numbers.list, at, first, row, NULL) != GGUF_OK)
            return NULL;
        zero = is_zero(&from, first, row);
        gg_data_release(&b->numbers.list, at, first, row);
        n -= zero;
    }
    return json_integer(n);
}

/* What is computed once; NULL: nothing. */
static json_t *once_json(const struct gguf_convert *c, size_t i)
{
    const double x = gg_convert_eval(c, rows[i].value, -1);
    if (isnan(x))
        return NULL;
    switch (rows[i].kind) {
    case NUMBER: return number_json(x);
    case FLAG: return json_boolean(x != 0);
    case TEXT: return x != 0 ? json_string(rows[i].words) : NULL;
    default: return count_json(x);
    }
}

static void put_row(struct gg_back_maker *m, const struct gguf_convert *c,
                    size_t i)
{
    const char *value = rows[i].value;
    json_t *v = NULL;
    if (strstr(rows[i].name, ".i.")) {
        put_members(m->root, c, i);
        return;
    }
    switch (rows[i].kind) {
    case PICK: v = pick_layer(c, value); break;
    case EACH:
    case SOME:
    case FLAGS:
    case WORDS: v = list_json(c, i); break;
    case ENUM: v = enumerate_layers(c, value); break;
    case LIST: v = all_words(rows[i].words); break;
    case FILLED: v = filled_rows(m->b, value); break;
    case COPY: v = json_deep_copy(gg_convert_get(c, value)); break;
    case NOT:
        if (gg_convert_eval(c, value, -1) > 0)
            json_object_del(m->root, rows[i].name);
        break;
    default: v = once_json(c, i); break;
    }
    if (v)
        gg_back_put(m->root, rows[i].name, v);
}

enum gguf_status gg_back_put_own(struct gg_back_maker *m,
                                 struct gguf_error *err)
{
    struct gguf_convert *c =
        gg_mem_alloc_zero(m->b->p.allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    json_t *keys = keys_of(m);
    c->folder.config = keys;
    c->folder.text[GG_CONVERT_CONFIG].json.root = keys;
    for (size_t i = 0; i < GG_LEN(rows); i++)
        if (!strcmp(rows[i].arch, m->arch->arch))
            put_row(m, c, i);
    json_decref(keys);
    gg_mem_free(m->b->p.allocator, c);
    return GGUF_OK;
}
