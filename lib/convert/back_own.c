/* back_own.c - what config.json has and no row can be turned round to
 *
 * Rows of classes compute keys of config.json; where that is more than a name,
 * what config.json had is computed here of the keys, in the same language
 * (expr.h), which here speaks of them: "attention.key_length" is the key of the
 * file's architecture, num_hidden_layers the layers that do not draft.
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
    EACH,   /* a number for each layer */
    WORDS,  /* for each layer a word: the first of these if it is 0 */
    COUNT,  /* 0, 1, ...: as many */
    NOT     /* nothing, if it is true */
};

#define ROT_OF_WIDTH                                                          \
    "rope.dimension_count*attention.head_count/embedding_length"
#define ROT_OF_KEY  "rope.dimension_count/attention.key_length"
#define WINDOWED    "attention.sliding_window_pattern"
#define LATER       "(i<leading_dense_block_count)=0"
#define LAYER_TYPES "full_attention,sliding_attention"

/* Layers with attention among others; those with neither it nor a state. */
#define HAS_KEYS       "(attention.head_count_kv>0)"
#define KEY_HEADS      HAS_KEYS "?attention.head_count_kv"
#define LETTERS        HAS_KEYS "+2*(feed_forward_length>0)"
#define EXPAND         "ssm.inner_size/embedding_length"
#define HEAD_OF_STATES "ssm.inner_size/ssm.time_step_rank"

/* What is missing in value leaves the member out. */
static const struct {
    const char *arch, *name;
    enum kind kind;
    const char *value, *words;
} rows[] = {
    { "bloom", "seq_length", NUMBER, "context_length", NULL },
    { "chatglm", "rope_ratio", NUMBER, "rope.freq_base/10000", NULL },
    { "chatglm", "partial_rotary_factor", NUMBER, ROT_OF_WIDTH, NULL },
    { "codeshell", "rope_scaling", NOT, "1", NULL },
    { "cohere2moe", "intermediate_size", NUMBER, "expert_feed_forward_length",
      NULL },
    { "cohere2moe", "prefix_dense_intermediate_size", NUMBER,
      "feed_forward_length", NULL },
    { "cohere2moe", "mlp_layer_types", WORDS, LATER, "dense,sparse" },
    { "deepseek2-ocr", "rope_theta", NOT, "rope.freq_base=10000", NULL },
    { "deepseek2-ocr", "rms_norm_eps", NOT,
      "attention.layer_norm_rms_epsilon=1e-6", NULL },
    { "gptneox", "rotary_pct", NUMBER, ROT_OF_WIDTH, NULL },
    { "granitehybrid", "layer_types", WORDS, HAS_KEYS, "mamba,attention" },
    { "granitehybrid", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "granitehybrid", "mamba_expand", NUMBER, EXPAND, NULL },
    { "grok", "rope_type", TEXT, "rope.scaling.type:yarn", "yarn" },
    { "grok", "rope_scaling", NOT, "rope.scaling.type:yarn", NULL },
    { "grok", "attn_output_multiplier", NUMBER, "attention.output_scale",
      NULL },
    { "hunyuan-moe", "max_position_embeddings", NUMBER, "context_length",
      NULL },
    { "jamba", "attn_layer_offset", NUMBER, "first(" HAS_KEYS ")", NULL },
    { "jamba", "attn_layer_period", NUMBER, "num_hidden_layers", NULL },
    { "jamba", "attn_layer_period", PICK,
      HAS_KEYS "*(i>first(" HAS_KEYS "))?i-first(" HAS_KEYS ")", NULL },
    { "jamba", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "jamba", "mamba_expand", NUMBER, EXPAND, NULL },
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
    { "nemotron_h", "layers_block_type", WORDS, LETTERS,
      "mamba,attention,mlp" },
    { "nemotron_h", "num_key_value_heads", PICK, KEY_HEADS, NULL },
    { "nemotron_h", "intermediate_size", PICK,
      "feed_forward_length>0?feed_forward_length", NULL },
    { "nemotron_h", "mamba_head_dim", NUMBER, HEAD_OF_STATES, NULL },
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
    { "smallthinker", "sliding_window_size", NUMBER,
      "attention.sliding_window", NULL },
    { "smallthinker", "sliding_window_layout", EACH,
      "attention.sliding_window>0?(i%4>0)", NULL },
    { "smallthinker", "moe_primary_router_apply_softmax", FLAG,
      "expert_gating_func=1", NULL },
};

/* A whole number as such; what is the key's, in its digits. */
static json_t *number(double x)
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
static json_t *word(const char *words, double n)
{
    for (; n > 0 && *words; n--) {
        words += strcspn(words, ",");
        words += *words == ',';
    }
    return json_stringn(words, strcspn(words, ","));
}

/* A list for all layers; NULL: something is missing in one. */
static json_t *list(const struct gguf_convert *c, const char *value,
                    const char *words)
{
    json_t *out = json_array();
    for (int64_t i = 0; i < n_layers(c->config); i++) {
        const double x = gg_convert_eval(c, value, i);
        if (isnan(x)) {
            json_decref(out);
            return NULL;
        }
        json_array_append_new(out, words ? word(words, x) : number(x));
    }
    return out;
}

static json_t *pick(const struct gguf_convert *c, const char *value)
{
    double x = NAN;
    for (int64_t i = 0; i < n_layers(c->config) && isnan(x); i++)
        x = gg_convert_eval(c, value, i);
    return isnan(x) ? NULL : number(x);
}

static json_t *count(double n)
{
    json_t *out = json_array();
    for (int i = 0; i < n && i < 1000; i++)
        json_array_append_new(out, json_integer(i));
    return out;
}

static void put(struct gg_back_maker *m, const struct gguf_convert *c,
                size_t i)
{
    const enum kind kind = rows[i].kind;
    json_t *v = NULL;
    const double x = kind == EACH || kind == WORDS || kind == PICK
                         ? 0
                         : gg_convert_eval(c, rows[i].value, -1);
    if (isnan(x))
        return;
    switch (kind) {
    case NUMBER: v = number(x); break;
    case PICK: v = pick(c, rows[i].value); break;
    case FLAG: v = json_boolean(x != 0); break;
    case TEXT: v = x != 0 ? json_string(rows[i].words) : NULL; break;
    case EACH:
    case WORDS: v = list(c, rows[i].value, rows[i].words); break;
    case COUNT: v = count(x); break;
    case NOT:
        if (x != 0)
            json_object_del(m->root, rows[i].name);
        break;
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
    c->config = keys;
    c->text[GG_CONVERT_CONFIG].json.root = keys;
    for (size_t i = 0; i < GG_LEN(rows); i++)
        if (!strcmp(rows[i].arch, m->arch->arch))
            put(m, c, i);
    json_decref(keys);
    gg_mem_free(m->b->p.allocator, c);
    return GGUF_OK;
}
