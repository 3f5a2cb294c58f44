/* back_config.c - config.json of what keys say
 *
 * The rows that tell keys by the names of config.json tell these by the keys.
 * Of several names the class's own is taken, where it is in the list here, else
 * the one that most have.
 */
#include "config.h"
#include "convert/back.h"

#include "base/compiler.h"
#include "base/str.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that are used where a row has them among others. */
static const char *const usual[] = {
    "num_hidden_layers", "max_position_embeddings", "hidden_size",
    "intermediate_size", "num_attention_heads",     "num_key_value_heads",
    "rms_norm_eps",      "layer_norm_eps",          "rope_theta",
    "num_experts",       "num_experts_per_tok",
};

/* What a class has instead; model_type where it is not the class's name in
 * small letters. In the place of "" stands what is true in all files. */
static const struct {
    const char *class_name, *type;
    const char *instead[8][2];
} own[] = {
    { "GPT2LMHeadModel",
      NULL,
      { { "num_hidden_layers", "n_layer" },
        { "max_position_embeddings", "n_positions" },
        { "hidden_size", "n_embd" },
        { "intermediate_size", "n_inner" },
        { "num_attention_heads", "n_head" },
        { "layer_norm_eps", "layer_norm_epsilon" } } },
    { "MixtralForCausalLM", NULL, { { "num_experts", "num_local_experts" } } },
    { "GraniteMoeForCausalLM",
      "granitemoe",
      { { "num_experts", "num_local_experts" } } },
    { "GraniteMoeSharedForCausalLM",
      "granitemoeshared",
      { { "num_experts", "num_local_experts" } } },
    { "Starcoder2ForCausalLM",
      NULL,
      { { "layer_norm_eps", "norm_epsilon" } } },
    { "MambaForCausalLM", NULL, { { "rms_norm_eps", "layer_norm_epsilon" } } },
    { "StableLmForCausalLM", "stablelm", { { NULL } } },
    { "SmolLM3ForCausalLM", "smollm3", { { NULL } } },
    { "Gemma3ForCausalLM", "gemma3_text", { { NULL } } },
    { "GPTNeoXForCausalLM", "gpt_neox", { { NULL } } },
    { "BailingMoeV2ForCausalLM",
      "bailing_moe",
      { { "scoring_func", "score_function" } } },
    { "AfmoeForCausalLM",
      NULL,
      { { "scoring_func", "score_func" }, { "", "mup_enabled" } } },
    { "LLaDAModelLM",
      "llada",
      { { "num_hidden_layers", "n_layers" },
        { "num_attention_heads", "n_heads" },
        { "num_key_value_heads", "n_kv_heads" },
        { "hidden_size", "d_model" },
        { "intermediate_size", "mlp_hidden_size" } } },
    { "LLaDAMoEModelLM", "llada", { { NULL } } },
};

struct maker {
    struct gg_back *b;
    const struct gg_convert_arch *arch;
    char class_name[80];
    json_t *root;
};

static const struct gguf_kv *find_key(const struct maker *m, const char *key)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", m->arch->arch, key);
    return gguf_file_kv_find(m->b->meta, *key == '/' ? key + 1 : name);
}

/* ---- names ---- */

/* One of the n bytes of names separated by blanks, as the class has it. */
static void choose(const struct maker *m, const char *names, char out[64])
{
    const char *best = names;
    size_t n = strcspn(names, " ");
    bool found = false;
    for (const char *p = names; *p && !found;) {
        const size_t k = strcspn(p, " ");
        for (size_t i = 0; i < GG_LEN(usual); i++)
            if (strlen(usual[i]) == k && !memcmp(p, usual[i], k)) {
                best = p;
                n = k;
                found = true;
            }
        p += k + (p[k] == ' ');
    }
    snprintf(out, 64, "%.*s", (int)GG_MIN(n, 63), best);
    for (size_t i = 0; i < GG_LEN(own); i++)
        for (size_t k = 0; !strcmp(own[i].class_name, m->class_name) &&
                           k < GG_LEN(own[i].instead) && own[i].instead[k][0];
             k++)
            if (!strcmp(own[i].instead[k][0], out)) {
                snprintf(out, 64, "%s", own[i].instead[k][1]);
                return;
            }
}

/* Small letters, with '_' before a large one that follows a small one or a
 * digit. */
static void model_type(const struct maker *m, char out[96])
{
    static const char *const ends[] = { "ForCausalLM", "LMHeadModel",
                                        "ForConditionalGeneration", "Model" };
    char name[80];
    size_t n = 0;
    for (size_t i = 0; i < GG_LEN(own); i++)
        if (!strcmp(own[i].class_name, m->class_name) && own[i].type) {
            snprintf(out, 96, "%s", own[i].type);
            return;
        }
    snprintf(name, sizeof name, "%s", m->class_name);
    for (size_t i = 0; i < GG_LEN(ends); i++)
        if (gg_str_ends(gg_str_z(name), ends[i])) {
            name[strlen(name) - strlen(ends[i])] = 0;
            break;
        }
    for (size_t i = 0; name[i] && n + 2 < 96; i++) {
        if (i && isupper((unsigned char)name[i]) &&
            !isupper((unsigned char)name[i - 1]))
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)name[i]);
    }
    out[n] = 0;
}

/* ---- values ---- */

/* The shortest number that is x in single precision. */
static json_t *real(float x)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            break;
    }
    return json_real(strtod(text, NULL));
}

static json_t *value_of(const struct gguf_kv *kv)
{
    struct gguf_str s;
    int yes;
    int64_t i;
    double x;
    switch (kv->type) {
    case GGUF_VAL_STR:
        return gguf_kv_get_str(kv, &s, NULL) ? NULL
                                             : json_stringn(s.data, s.size);
    case GGUF_VAL_BOOL:
        return gguf_kv_get_bool(kv, &yes, NULL) ? NULL : json_boolean(yes);
    case GGUF_VAL_F32:
    case GGUF_VAL_F64:
        return gguf_kv_get_float(kv, &x, NULL) || !isfinite(x)
                   ? NULL
                   : real((float)x);
    case GGUF_VAL_ARR: {
        struct gguf_kv_iter it;
        struct gguf_kv e;
        json_t *list = json_array();
        gguf_kv_iter_init(&it, kv);
        while (gguf_kv_next(&it, &e))
            json_array_append_new(list, e.type == GGUF_VAL_ARR ? json_null()
                                                               : value_of(&e));
        return list;
    }
    default: return gguf_kv_get_int(kv, &i, NULL) ? NULL : json_integer(i);
    }
}

/* Members of members by points. */
static void put(json_t *o, const char *name, json_t *v)
{
    char part[64];
    const char *dot;
    for (; (dot = strchr(name, '.')); name = dot + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - name), name);
        json_t *in = json_object_get(o, part);
        if (!json_is_object(in)) {
            in = json_object();
            json_object_set_new(o, part, in);
        }
        o = in;
    }
    json_object_set_new(o, name, v);
}

/* Has the architecture a row of its own for what row i says? */
static bool is_replaced(const struct maker *m, size_t i)
{
    const char *key = gg_convert_key_row(m->arch, i)->key;
    for (size_t k = 0; k < i; k++)
        if (!strcmp(gg_convert_key_row(m->arch, k)->key, key))
            return true;
    return false;
}

/* The names of a row: of one that is computed, those of "A|B|C" and what there
 * is besides, "A|B|16" or "A|B|(...)"; false: it is of another kind. */
static bool names_of(const struct gg_convert_key *k, char out[256])
{
    size_t n = 0, end = 0;
    *out = 0;
    if (!k->hf || *k->hf == '=' || k->kind >= GG_KIND_EACH_U32)
        return false;
    snprintf(out, 256, "%s", k->hf);
    if (k->kind < GG_KIND_U32_OF)
        return true;
    while (isalnum((unsigned char)out[n]) || out[n] == '_' || out[n] == '.' ||
           out[n] == '|') {
        if (out[n] == '|')
            end = n;
        n++;
    }
    if (out[n] == '(' && end == n - 1 && out[strlen(out) - 1] == ')')
        n = end; /* all of what is besides */
    else if (out[n])
        return false;
    out[n] = 0;
    for (char *p = out; *p; p++)
        *p = *p == '|' ? ' ' : *p;
    return true;
}

/* Names whose sum a row is, "A+B|0", of which B has a row of its own; false:
 * it is of another kind. */
static bool sum_of(const struct maker *m, const struct gg_convert_key *k,
                   char first[64], uint64_t *second)
{
    const size_t n = k->hf ? strcspn(k->hf, "+*/(?") : 0;
    const char *b = k->hf && k->hf[n] == '+' ? k->hf + n + 1 : "";
    const size_t n_b = strcspn(b, "|");
    *second = 0;
    if (k->kind != GG_KIND_U32_OF || strcmp(b + n_b, "|0") != 0 || n >= 64)
        return false;
    for (size_t i = 0; gg_convert_key_row(m->arch, i); i++) {
        const struct gg_convert_key *o = gg_convert_key_row(m->arch, i);
        const struct gguf_kv *kv = find_key(m, o->key);
        if (kv && o->hf && !strncmp(o->hf, b, n_b))
            (void)gguf_kv_get_uint(kv, second, NULL);
    }
    snprintf(first, 64, "%.*s", (int)n, k->hf);
    return true;
}

static void put_true(struct maker *m)
{
    for (size_t i = 0; i < GG_LEN(own); i++)
        for (size_t k = 0; !strcmp(own[i].class_name, m->class_name) &&
                           k < GG_LEN(own[i].instead) && own[i].instead[k][0];
             k++)
            if (!*own[i].instead[k][0])
                put(m->root, own[i].instead[k][1], json_true());
}

/* "layer_types:WORD" of each layer: the others see all. */
static void put_types(struct maker *m, const struct gg_convert_key *k,
                      const struct gguf_kv *kv)
{
    static const char name[] = "layer_types";
    const char *at = k->hf ? strstr(k->hf, name) : NULL;
    struct gguf_kv_iter it;
    struct gguf_kv e;
    char word[64];
    int yes;
    if (k->kind != GG_KIND_EACH_BOOL || !at || kv->type != GGUF_VAL_ARR ||
        sscanf(at + sizeof name - 1, ":%63[a-z_]", word) != 1)
        return;
    json_t *list = json_array();
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_next(&it, &e))
        json_array_append_new(
            list,
            json_string(gguf_kv_get_bool(&e, &yes, NULL) == GGUF_OK && yes
                            ? word
                            : "full_attention"));
    put(m->root, name, list);
}

/* How experts are chosen, where all classes have it under the same names. */
static void put_gating(struct maker *m)
{
    static const char *const words[] = { NULL, "softmax", "sigmoid", NULL,
                                         "sqrtsoftplus" };
    static const char key[] = "expert_gating_func";
    const struct gguf_kv *kv = find_key(m, key);
    uint64_t x;
    char name[64];
    for (const struct gg_convert_key *k = m->arch->keys; k && k->key; k++)
        if (!strcmp(k->key, key))
            return;
    if (!kv || gguf_kv_get_uint(kv, &x, NULL) || x >= GG_LEN(words) ||
        !words[x])
        return;
    choose(m, "scoring_func", name);
    put(m->root, name, json_string(words[x]));
}

static void put_keys(struct maker *m)
{
    char name[64], names[256];
    for (size_t i = 0; gg_convert_key_row(m->arch, i); i++) {
        const struct gg_convert_key *k = gg_convert_key_row(m->arch, i);
        const struct gguf_kv *kv = find_key(m, k->key);
        uint64_t x, less = 0;
        json_t *v = kv && names_of(k, names) ? value_of(kv) : NULL;
        if (!v && kv && sum_of(m, k, names, &less) &&
            !gguf_kv_get_uint(kv, &x, NULL) && x >= less)
            v = json_integer((json_int_t)(x - less));
        if (kv && !is_replaced(m, i))
            put_types(m, k, kv);
        if (!v || is_replaced(m, i)) {
            json_decref(v);
            continue;
        }
        choose(m, names, name);
        put(m->root, name, v);
    }
}

/* ---- positions ---- */

/* The numbers of a tensor; false: there is none, or not of at most 4096. */
static bool numbers(const struct maker *m, const char *name, float x[4096],
                    size_t *n)
{
    struct gg_data_rows rows;
    struct gg_data_info info;
    size_t i;
    if (!gg_source_find(&m->b->source, name, &i))
        return false;
    gg_data_info(&m->b->numbers.list, i, &info);
    if (info.n_elements > 4096 ||
        gg_data_rows(&m->b->numbers.list, i, &rows, NULL))
        return false;
    gg_data_read(&rows, 0, info.n_elements, x);
    *n = (size_t)info.n_elements;
    return true;
}

/* Are these the factors that "llama3" gives? As rope.c computes them. */
static bool is_llama3(const float *x, size_t n, double base, double factor,
                      double old)
{
    for (size_t i = 0; i < n; i++) {
        const double wave =
            6.283185307179586 * pow(base, (double)i / (double)n);
        const double between = (old / wave - 1) / 3;
        const double want = wave < old / 4 ? 1
                            : wave > old
                                ? factor
                                : 1 / ((1 - between) / factor + between);
        if (x[i] != (float)want)
            return false;
    }
    return true;
}

static enum gguf_status put_llama3(struct maker *m, const float *x, size_t n,
                                   struct gguf_error *err)
{
    static const double factors[] = { 8, 32, 2, 4, 16, 64, 128 };
    static const double lengths[] = { 8192, 4096, 2048, 16384, 32768, 131072 };
    const struct gguf_kv *kv = find_key(m, "rope.freq_base");
    double base = 10000;
    if (kv)
        (void)gguf_kv_get_float(kv, &base, NULL);
    base = json_real_value(json_object_get(m->root, "rope_theta")) > 0
               ? json_real_value(json_object_get(m->root, "rope_theta"))
               : base;
    for (size_t i = 0; i < GG_LEN(factors) * GG_LEN(lengths); i++) {
        const double f = factors[i % GG_LEN(factors)];
        const double old = lengths[i / GG_LEN(factors)];
        if (is_llama3(x, n, base, f, old)) {
            put(m->root, "rope_scaling",
                json_pack(
                    "{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3",
                    "factor", f, "low_freq_factor", 1.0, "high_freq_factor",
                    4.0, "original_max_position_embeddings", (json_int_t)old));
            return GGUF_OK;
        }
    }
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "tensor 'rope_freqs.weight' is not of factors that "
                        "rope_scaling of type llama3 gives");
}

static void put_list(struct maker *m, const char *name, const float *x,
                     size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, real(x[i]));
    put(m->root, name, list);
}

/* Axes of positions: three, unless the fourth has some. */
static void put_sections(struct maker *m)
{
    static const char name[] = "rope_scaling.mrope_section";
    const struct gguf_kv *kv = find_key(m, "rope.dimension_sections");
    json_t *list = kv ? value_of(kv) : NULL;
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || !n) {
        json_decref(list);
        return;
    }
    if (n == 4 && json_integer_value(json_array_get(list, 3)) == 0)
        json_array_remove(list, 3);
    put(m->root, "rope_scaling.rope_type", json_string("default"));
    put(m->root, name, list);
}

static enum gguf_status put_rope(struct maker *m, struct gguf_error *err)
{
    float x[4096];
    size_t n;
    const struct gguf_kv *type = find_key(m, "rope.scaling.type");
    const struct gguf_kv *old =
        find_key(m, "rope.scaling.original_context_length");
    const struct gguf_kv *factor = find_key(m, "rope.scaling.factor");
    struct gguf_str s;
    put_sections(m);
    if (numbers(m, "rope_freqs.weight", x, &n))
        return put_llama3(m, x, n, err);
    if (numbers(m, "rope_factors_long.weight", x, &n)) {
        put_list(m, "rope_scaling.long_factor", x, n);
        if (numbers(m, "rope_factors_short.weight", x, &n))
            put_list(m, "rope_scaling.short_factor", x, n);
        put(m->root, "rope_scaling.rope_type", json_string("longrope"));
        if (old)
            put(m->root, "original_max_position_embeddings", value_of(old));
        return GGUF_OK;
    }
    if (!type || gguf_kv_get_str(type, &s, NULL) || gg_str_eqz(s, "none"))
        return GGUF_OK;
    put(m->root, "rope_scaling.rope_type", json_stringn(s.data, s.size));
    if (factor)
        put(m->root, "rope_scaling.factor", value_of(factor));
    if (old)
        put(m->root, "rope_scaling.original_max_position_embeddings",
            value_of(old));
    return GGUF_OK;
}

/* ---- the rest ---- */

/* The part of a head that turns, where it is not all. */
static void put_partial(struct maker *m)
{
    const struct gguf_kv *turns = find_key(m, "rope.dimension_count");
    const struct gguf_kv *key = find_key(m, "attention.key_length");
    const struct gguf_kv *width = find_key(m, "embedding_length");
    const struct gguf_kv *heads = find_key(m, "attention.head_count");
    uint64_t n, head = 0, w = 0, h = 0;
    if (!turns || gguf_kv_get_uint(turns, &n, NULL))
        return;
    if (key)
        (void)gguf_kv_get_uint(key, &head, NULL);
    else if (width && heads && !gguf_kv_get_uint(width, &w, NULL) &&
             !gguf_kv_get_uint(heads, &h, NULL) && h)
        head = w / h;
    if (head > n && m->arch->rope_count)
        put(m->root, "partial_rotary_factor",
            json_real((double)n / (double)head));
}

static void put_ids(struct maker *m)
{
    static const char *const roles[][2] = {
        { "tokenizer.ggml.bos_token_id", "bos_token_id" },
        { "tokenizer.ggml.eos_token_id", "eos_token_id" },
        { "tokenizer.ggml.padding_token_id", "pad_token_id" },
    };
    for (size_t i = 0; i < GG_LEN(roles); i++) {
        const struct gguf_kv *kv = gguf_file_kv_find(m->b->meta, roles[i][0]);
        if (kv)
            put(m->root, roles[i][1], value_of(kv));
    }
}

/* How many rows the embedding has, whether it is the output too, and the type
 * of most numbers. */
static void put_tensors(struct maker *m)
{
    static const char *const types[] = { "float32", "float16", "bfloat16" };
    double n[GG_LEN(types)] = { 0 };
    size_t at, most = 0;
    if (gg_source_find(&m->b->source, "token_embd.weight", &at))
        put(m->root, "vocab_size",
            json_integer(gg_source_tensor(&m->b->source, at).info->ne[1]));
    put(m->root, "tie_word_embeddings",
        json_boolean(!gg_source_find(&m->b->source, "output.weight", NULL)));
    for (size_t i = 0; i < gg_source_n_tensors(&m->b->source); i++) {
        const struct gguf_tensor_info *t =
            gg_source_tensor(&m->b->source, i).info;
        const uint32_t to = gg_back_dtype(m->b, t->dtype);
        if (t->n_dims > 1)
            n[to == GGUF_DTYPE_F32   ? 0
              : to == GGUF_DTYPE_F16 ? 1
                                     : 2] += (double)t->n_elements;
    }
    for (size_t k = 1; k < GG_LEN(types); k++)
        most = n[k] > n[most] ? k : most;
    put(m->root, "torch_dtype", json_string(types[most]));
    if (gg_source_find(&m->b->source, "blk.0.attn_q.bias", NULL))
        put(m->root, "attention_bias", json_true());
}

enum gguf_status gg_back_config(struct gg_back *b,
                                const struct gg_convert_arch *arch,
                                struct gguf_error *err)
{
    struct maker m = { .b = b, .arch = arch, .root = json_object() };
    char type[96];
    const size_t n =
        GG_MIN(strcspn(arch->classes, " "), sizeof m.class_name - 1);
    memcpy(m.class_name, arch->classes, n);
    m.class_name[n] = 0;
    put(m.root, "architectures", json_pack("[s]", m.class_name));
    model_type(&m, type);
    put(m.root, "model_type", json_string(type));
    put_true(&m);
    put_keys(&m);
    put_gating(&m);
    put_partial(&m);
    put_ids(&m);
    put_tensors(&m);
    const enum gguf_status st = put_rope(&m, err);
    free(b->config);
    b->config =
        st == GGUF_OK
            ? json_dumps(m.root, JSON_INDENT(2) | JSON_REAL_PRECISION(15))
            : NULL;
    b->n_config = b->config ? strlen(b->config) : 0;
    json_decref(m.root);
    return st == GGUF_OK && !b->config ? gg_error_set_nomem(err, 4096) : st;
}
