/* SPDX-License-Identifier: MIT */
/* fix_model.c - models that open, each with one fault in its content
 *
 * A model is a list of keys and tensors: two layers with a vocabulary. A
 * fixture changes them before they are written. The last column has the
 * findings that a verification must report, in order.
 */
#include "config.h"
#include "tests/fix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EMBD = 8, FF = 16, HEADS = 2, KV = 4, LAYERS = 2 };
enum { N_TOKENS = 3 + 256 + 3, MAX_KEYS = 40, MAX_TENSORS = 40 };

struct key {
    char name[64];
    struct fix value; /* type and value, as in a file */
};

struct tensor {
    char name[64];
    uint64_t ne[5]; /* ends with 0 */
    uint32_t type;
};

struct model {
    struct key key[MAX_KEYS];
    size_t n_keys;
    struct tensor tensor[MAX_TENSORS];
    size_t n_tensors;
};

/* ------------------------------------------------------------- keys --- */

static void drop_key(struct model *m, const char *name)
{
    for (size_t i = 0; i < m->n_keys; i++)
        if (!strcmp(m->key[i].name, name)) {
            fix_fini(&m->key[i].value);
            memmove(&m->key[i], &m->key[i + 1],
                    (--m->n_keys - i) * sizeof m->key[0]);
            return;
        }
}

/* The value of a key, new or replaced; the type is written already. */
static struct fix *set_key(struct model *m, const char *name, uint32_t type)
{
    drop_key(m, name);
    struct key *k = &m->key[m->n_keys++];
    snprintf(k->name, sizeof k->name, "%s", name);
    fix_init(&k->value);
    fix_u32(&k->value, type);
    return &k->value;
}

static void set_u32(struct model *m, const char *name, uint32_t v)
{
    fix_u32(set_key(m, name, GGUF_VAL_U32), v);
}

static void set_f32(struct model *m, const char *name, float v)
{
    fix_f32(set_key(m, name, GGUF_VAL_F32), v);
}

static void set_str(struct model *m, const char *name, const char *v)
{
    fix_str(set_key(m, name, GGUF_VAL_STR), v);
}

static struct fix *set_array(struct model *m, const char *name, uint32_t elem,
                             uint64_t n)
{
    struct fix *f = set_key(m, name, GGUF_VAL_ARR);
    fix_u32(f, elem);
    fix_u64(f, n);
    return f;
}

static void set_strs(struct model *m, const char *name, const char *const *v,
                     size_t n)
{
    struct fix *f = set_array(m, name, GGUF_VAL_STR, n);
    for (size_t i = 0; i < n; i++)
        fix_str(f, v[i]);
}

/* ---------------------------------------------------------- vocabulary --- */

/* Text of token i of N_TOKENS. The 256 after the first three stand for bytes,
 * in one of two notations. */
static const char *token_text(size_t i, bool bpe, char out[8])
{
    static const char *const others[] = { "<unk>", "<s>", "</s>",
                                          "zz",    "xy",  "zzxy" };
    unsigned b = (unsigned)i - 3, c = b;
    if (i < 3 || i >= 259)
        return others[i < 3 ? i : i - 256];
    if (!bpe) {
        snprintf(out, 8, "<0x%02X>", b);
        return out;
    }
    /* bytes that are not printable become characters from U+0100 on */
    if (b <= 32)
        c = 256 + b;
    else if (b >= 127 && b <= 160)
        c = 256 + 33 + b - 127;
    else if (b == 173)
        c = 256 + 67;
    snprintf(out, 8, c < 128 ? "%c" : "%c%c",
             (char)(c < 128 ? c : 0xc0 | c >> 6), (char)(0x80 | (c & 63)));
    return out;
}

/* Set the texts of all tokens; token `at' gets text, unless text is NULL. */
static void set_texts(struct model *m, const char *key, bool bpe, size_t at,
                      const char *text)
{
    struct fix *f = set_array(m, key, GGUF_VAL_STR, N_TOKENS);
    char buf[8];
    for (size_t i = 0; i < N_TOKENS; i++)
        fix_str(f, text && i == at ? text : token_text(i, bpe, buf));
}

static void set_tokens(struct model *m, bool bpe, size_t at, const char *text)
{
    set_texts(m, "tokenizer.ggml.tokens", bpe, at, text);
}

static void set_scores(struct model *m, uint32_t elem, size_t n, float last)
{
    struct fix *f = set_array(m, "tokenizer.ggml.scores", elem, n);
    for (size_t i = 0; i < n; i++)
        fix_f32(f, i + 1 < n ? -(float)i : last);
}

/* All scores are 0 but the last. */
static void set_scores_i32(struct model *m, uint32_t last)
{
    struct fix *f =
        set_array(m, "tokenizer.ggml.scores", GGUF_VAL_I32, N_TOKENS);
    for (size_t i = 0; i < N_TOKENS; i++)
        fix_u32(f, i + 1 < N_TOKENS ? 0 : last);
}

/* Set the kinds of all tokens. bytes: of the 256 byte tokens; last: of the
 * last one. */
static void set_kinds(struct model *m, size_t n, uint32_t bytes, uint32_t last)
{
    struct fix *f = set_array(m, "tokenizer.ggml.token_type", GGUF_VAL_I32, n);
    for (size_t i = 0; i < n; i++)
        fix_u32(f, i + 1 == n ? last
                   : i == 0   ? 2
                   : i < 3    ? 3
                   : i < 259  ? bytes
                              : 1);
}

static const char *const merges[] = { "z z", "x y", "zz xy" };

static void set_bpe(struct model *m)
{
    set_str(m, "tokenizer.ggml.model", "gpt2");
    set_str(m, "tokenizer.ggml.pre", "default");
    set_strs(m, "tokenizer.ggml.merges", merges, 3);
    set_tokens(m, true, 0, NULL);
    set_kinds(m, N_TOKENS, 1, 1);
    drop_key(m, "tokenizer.ggml.scores");
}

/* ------------------------------------------------------------- tensors --- */

static struct tensor *add_tensor(struct model *m, const char *name,
                                 uint64_t ne0, uint64_t ne1)
{
    struct tensor *t = &m->tensor[m->n_tensors++];
    *t = (struct tensor){ .ne = { ne0, ne1 } };
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

static void add_block(struct model *m, unsigned il, const char *name,
                      uint64_t ne0, uint64_t ne1)
{
    char full[64];
    snprintf(full, sizeof full, "blk.%u.%s.weight", il, name);
    add_tensor(m, full, ne0, ne1);
}

static struct tensor *find_tensor(struct model *m, const char *name)
{
    for (size_t i = 0; i < m->n_tensors; i++)
        if (!strcmp(m->tensor[i].name, name))
            return &m->tensor[i];
    abort();
}

static void drop_tensor(struct model *m, const char *name)
{
    *find_tensor(m, name) = m->tensor[--m->n_tensors];
}

/* ------------------------------------------------------------ all of it --- */

static void begin_model(struct model *m)
{
    memset(m, 0, sizeof *m);
    set_str(m, "general.architecture", "llama");
    set_u32(m, "llama.block_count", LAYERS);
    set_u32(m, "llama.context_length", 32);
    set_u32(m, "llama.embedding_length", EMBD);
    set_u32(m, "llama.feed_forward_length", FF);
    set_u32(m, "llama.attention.head_count", HEADS);
    set_u32(m, "llama.attention.head_count_kv", HEADS / 2);
    set_f32(m, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    set_str(m, "tokenizer.ggml.model", "llama");
    set_tokens(m, false, 0, NULL);
    set_scores(m, GGUF_VAL_F32, N_TOKENS, 0);
    set_kinds(m, N_TOKENS, 6, 1);
    set_u32(m, "tokenizer.ggml.bos_token_id", 1);
    set_u32(m, "tokenizer.ggml.eos_token_id", 2);
    add_tensor(m, "token_embd.weight", EMBD, N_TOKENS);
    add_tensor(m, "output_norm.weight", EMBD, 0);
    for (unsigned il = 0; il < LAYERS; il++) {
        add_block(m, il, "attn_norm", EMBD, 0);
        add_block(m, il, "attn_q", EMBD, EMBD);
        add_block(m, il, "attn_k", EMBD, KV);
        add_block(m, il, "attn_v", EMBD, KV);
        add_block(m, il, "attn_output", EMBD, EMBD);
        add_block(m, il, "ffn_norm", EMBD, 0);
        add_block(m, il, "ffn_gate", EMBD, FF);
        add_block(m, il, "ffn_up", EMBD, FF);
        add_block(m, il, "ffn_down", FF, EMBD);
    }
}

static uint64_t size_of(const struct tensor *t)
{
    uint64_t n = 1;
    for (int i = 0; t->ne[i]; i++)
        n *= t->ne[i];
    return n * (t->type == GGUF_DTYPE_F32 ? 4 : 1);
}

/* Write the file; data are zeros. */
static void end_model(struct model *m, struct fix *f)
{
    uint64_t off = 0;
    fix_head(f, 3, m->n_tensors, m->n_keys);
    for (size_t i = 0; i < m->n_keys; i++) {
        fix_str(f, m->key[i].name);
        fix_bytes(f, m->key[i].value.data, m->key[i].value.size);
        fix_fini(&m->key[i].value);
    }
    for (size_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensor[i];
        fix_info(f, t->name, t->ne, t->type, off);
        off += (size_of(t) + 31) / 32 * 32;
    }
    fix_pad(f, 32);
    fix_fill(f, 0, (size_t)off);
}

/* --------------------------------------------------------- the fixtures --- */

/* Define a function that makes a model, changes it and writes it. */
#define MODEL(name, ...)                                                      \
    static void name(struct fix *f)                                           \
    {                                                                         \
        struct model m;                                                       \
        begin_model(&m);                                                      \
        __VA_ARGS__;                                                          \
        end_model(&m, f);                                                     \
    }

#define TOK "tokenizer.ggml."

MODEL(as_it_is, (void)0)
MODEL(as_bpe, set_bpe(&m))
MODEL(no_model, drop_key(&m, TOK "model"))
MODEL(model_number, set_u32(&m, TOK "model", 1))
MODEL(model_unknown, set_str(&m, TOK "model", "nonsense"))
MODEL(no_tokens, drop_key(&m, TOK "tokens"))
MODEL(tokens_empty, set_array(&m, TOK "tokens", GGUF_VAL_STR, 0))
MODEL(tokens_type, fix_u32(set_array(&m, TOK "tokens", GGUF_VAL_U32, 1), 0))
MODEL(scores_short, set_scores(&m, GGUF_VAL_F32, N_TOKENS - 1, 0))
MODEL(scores_type, set_texts(&m, TOK "scores", false, 0, NULL))
MODEL(scores_i32, set_scores_i32(&m, 1))
MODEL(scores_unfit, set_scores_i32(&m, (1 << 24) + 1))
MODEL(scores_nan, set_scores(&m, GGUF_VAL_F32, N_TOKENS, (float)NAN))
MODEL(scores_none, drop_key(&m, TOK "scores"))
MODEL(kinds_long, set_kinds(&m, N_TOKENS + 1, 6, 1))
MODEL(kinds_value, set_kinds(&m, N_TOKENS, 6, 99))
MODEL(kind_byte, set_kinds(&m, N_TOKENS, 6, 6))
MODEL(byte_bad, set_tokens(&m, false, 3 + 'A', "<0xZZ>"))
MODEL(token_empty, set_tokens(&m, false, N_TOKENS - 1, ""))
MODEL(token_twice, set_tokens(&m, false, N_TOKENS - 1, "xy"))
MODEL(token_not_utf8, set_tokens(&m, false, N_TOKENS - 1, "\xe2\x96"))
MODEL(bos_range, set_u32(&m, TOK "bos_token_id", N_TOKENS))
MODEL(fim_range,
      fix_u32(set_key(&m, TOK "fim_pre_token_id", GGUF_VAL_I32), UINT32_MAX))
MODEL(eos_type, set_str(&m, TOK "eos_token_id", "2"))
MODEL(suppress_range,
      fix_u32(set_array(&m, TOK "suppress_tokens", GGUF_VAL_I32, 1), 1000))
MODEL(suppress_type,
      fix_f32(set_array(&m, TOK "suppress_tokens", GGUF_VAL_F32, 1), 1))
MODEL(bos_switch, set_str(&m, TOK "add_bos_token", "true"))
MODEL(pre_type, set_bpe(&m); set_u32(&m, TOK "pre", 1))
MODEL(pre_none, set_bpe(&m); drop_key(&m, TOK "pre"))
MODEL(pre_unknown, set_bpe(&m); set_str(&m, TOK "pre", "lama-bpe"))
MODEL(pre_other, set_bpe(&m); set_str(&m, TOK "pre", "tekken"))
MODEL(merges_none, set_bpe(&m); drop_key(&m, TOK "merges"))
MODEL(merges_str, set_bpe(&m); set_str(&m, TOK "merges", "z z"))
MODEL(merge_empty, set_bpe(&m);
      set_strs(&m, TOK "merges", (const char *[]){ "z z", "" }, 2))
MODEL(merge_blank_first, set_bpe(&m);
      set_strs(&m, TOK "merges", (const char *[]){ " z" }, 1))
MODEL(merge_blank_last, set_bpe(&m);
      set_strs(&m, TOK "merges", (const char *[]){ "z " }, 1))
MODEL(merge_blanks, set_bpe(&m);
      set_strs(&m, TOK "merges", (const char *[]){ "z z z" }, 1))
MODEL(merge_unknown, set_bpe(&m);
      set_strs(&m, TOK "merges", (const char *[]){ "z z", "z x" }, 2))
MODEL(merge_twice, set_bpe(&m);
      set_strs(&m, TOK "merges", (const char *[]){ "z z", "x y", "z z" }, 3))
MODEL(charsmap,
      fix_u32(set_array(&m, TOK "precompiled_charsmap", GGUF_VAL_U8, 4), 4))
MODEL(charsmap_short,
      fix_u8(set_array(&m, TOK "precompiled_charsmap", GGUF_VAL_U8, 1), 0))
MODEL(charsmap_empty, /* a trie of no unit, and texts */
      fix_u64(set_array(&m, TOK "precompiled_charsmap", GGUF_VAL_U8, 8), 0))
MODEL(charsmap_unit, /* a trie of one unit, which leads out of it */
      fix_u64(set_array(&m, TOK "precompiled_charsmap", GGUF_VAL_U8, 8),
              UINT64_C(1) << 42 | 4))

MODEL(arch_unknown, set_str(&m, "general.architecture", "gargantua"))
MODEL(arch_empty, set_str(&m, "general.architecture", ""))
MODEL(adapter, set_str(&m, "general.type", "adapter");
      drop_tensor(&m, "token_embd.weight"))
MODEL(embd_none, drop_key(&m, "llama.embedding_length"))
MODEL(eps_none, drop_key(&m, "llama.attention.layer_norm_rms_epsilon"))
MODEL(layers_type, set_str(&m, "llama.block_count", "2"))
MODEL(layers_zero, set_u32(&m, "llama.block_count", 0))
MODEL(layers_huge, set_u32(&m, "llama.block_count", UINT32_MAX))
MODEL(layers_more, set_u32(&m, "llama.block_count", 5))
MODEL(layers_less, set_u32(&m, "llama.block_count", 1))
MODEL(heads_zero, set_u32(&m, "llama.attention.head_count", 0))
MODEL(heads_kv, set_u32(&m, "llama.attention.head_count_kv", 2))
MODEL(key_length, set_u32(&m, "llama.attention.key_length", 8))
MODEL(ff_wrong, set_u32(&m, "llama.feed_forward_length", 15))
MODEL(vocab_size, set_u32(&m, "llama.vocab_size", N_TOKENS + 1))
MODEL(embd_rows, find_tensor(&m, "token_embd.weight")->ne[1] = 3)
MODEL(embd_turned, find_tensor(&m, "token_embd.weight")->ne[0] = N_TOKENS;
      find_tensor(&m, "token_embd.weight")->ne[1] = EMBD)
MODEL(norm_short, find_tensor(&m, "blk.1.ffn_norm.weight")->ne[0] = EMBD - 1)
MODEL(norm_type, find_tensor(&m, "output_norm.weight")->type = GGUF_DTYPE_I8)
MODEL(matrix_type,
      find_tensor(&m, "blk.0.ffn_up.weight")->type = GGUF_DTYPE_I8)
MODEL(tensor_none, drop_tensor(&m, "blk.1.attn_v.weight"))
MODEL(tensor_more, add_tensor(&m, "blk.0.extra.weight", EMBD, 0);
      add_tensor(&m, "blk.7.attn_q.weight", EMBD, EMBD))
MODEL(experts, set_u32(&m, "llama.expert_count", 2);
      set_u32(&m, "llama.expert_used_count", 3))
MODEL(scale, add_tensor(&m, "blk.0.attn_q.scale", 1, 0))
MODEL(shard, fix_u16(set_key(&m, "split.count", GGUF_VAL_U16), 3);
      fix_u16(set_key(&m, "split.no", GGUF_VAL_U16), 1))

#define GATE_UP_DOWN "extra-tensor extra-tensor extra-tensor "

const struct fix_model fix_models[] = {
    { "model-spm", as_it_is, "" },
    { "model-bpe", as_bpe, "" },
    { "model-no-tokenizer", no_model, "no-tokenizer" },
    { "model-tokenizer-type", model_number, "no-tokenizer" },
    { "model-tokenizer-unknown", model_unknown, "unknown-tokenizer" },
    { "model-no-tokens", no_tokens, "no-tokens missing-key" },
    { "model-tokens-empty", tokens_empty, "no-tokens missing-key" },
    { "model-tokens-type", tokens_type, "vocab-type tensor-shape" },
    { "model-scores-short", scores_short, "vocab-length" },
    { "model-scores-type", scores_type, "vocab-type" },
    { "model-scores-i32", scores_i32, "vocab-numbers" },
    { "model-scores-unfit", scores_unfit, "vocab-numbers vocab-type" },
    { "model-scores-nan", scores_nan, "nonfinite-score" },
    { "model-scores-none", scores_none, "no-scores" },
    { "model-kinds-long", kinds_long, "vocab-length" },
    { "model-kinds-value", kinds_value, "token-type" },
    { "model-kind-byte", kind_byte, "byte-token" },
    { "model-byte-bad", byte_bad, "byte-token missing-bytes" },
    { "model-token-empty", token_empty, "empty-token" },
    { "model-token-twice", token_twice, "duplicate-token" },
    { "model-token-not-utf8", token_not_utf8, "text-not-utf8" },
    { "model-bos-range", bos_range, "special-token-id" },
    { "model-fim-range", fim_range, "token-id" },
    { "model-eos-type", eos_type, "vocab-type" },
    { "model-suppress-range", suppress_range, "token-id" },
    { "model-suppress-type", suppress_type, "vocab-type" },
    { "model-add-bos-type", bos_switch, "vocab-type" },
    { "model-pre-type", pre_type, "vocab-type" },
    { "model-pre-none", pre_none, "no-pre-tokenizer" },
    { "model-pre-unknown", pre_unknown, "unknown-pre-tokenizer" },
    { "model-pre-other", pre_other, "" },
    { "model-merges-none", merges_none, "no-merges" },
    { "model-merges-type", merges_str, "no-merges" },
    { "model-merge-empty", merge_empty, "malformed-merge" },
    { "model-merge-blank-first", merge_blank_first, "malformed-merge" },
    { "model-merge-blank-last", merge_blank_last, "malformed-merge" },
    { "model-merge-blanks", merge_blanks, "merge-blanks unknown-merge" },
    { "model-merge-unknown", merge_unknown, "unknown-merge" },
    { "model-merge-twice", merge_twice, "duplicate-merge" },
    { "model-charsmap", charsmap, "charsmap" },
    { "model-charsmap-short", charsmap_short, "charsmap" },
    { "model-charsmap-empty", charsmap_empty, "charsmap" },
    { "model-charsmap-unit", charsmap_unit, "charsmap" },
    { "model-arch-unknown", arch_unknown, "unknown-architecture" },
    { "model-arch-empty", arch_empty, "no-architecture" },
    { "model-adapter", adapter, "" },
    { "model-embd-none", embd_none, "missing-key" },
    { "model-eps-none", eps_none, "missing-key" },
    { "model-layers-type", layers_type, "key-type" },
    { "model-layers-zero", layers_zero, "key-value" },
    { "model-layers-huge", layers_huge, "key-value" },
    { "model-layers-more", layers_more, "missing-block" },
    { "model-layers-less", layers_less,
      GATE_UP_DOWN GATE_UP_DOWN "extra-tensor extra-tensor extra-tensor" },
    { "model-heads-zero", heads_zero, "key-value" },
    { "model-heads-kv", heads_kv,
      "tensor-shape tensor-shape tensor-shape tensor-shape" },
    { "model-key-length", key_length,
      "tensor-shape tensor-shape tensor-shape tensor-shape" },
    { "model-ff-wrong", ff_wrong,
      "tensor-shape tensor-shape tensor-shape tensor-shape tensor-shape "
      "tensor-shape" },
    { "model-vocab-size", vocab_size, "vocab-size" },
    { "model-embd-rows", embd_rows, "tensor-shape" },
    { "model-embd-turned", embd_turned, "tensor-shape" },
    { "model-norm-short", norm_short, "tensor-shape" },
    { "model-norm-type", norm_type, "tensor-type" },
    { "model-matrix-type", matrix_type, "tensor-type" },
    { "model-tensor-none", tensor_none, "missing-tensor" },
    { "model-tensor-more", tensor_more, "extra-tensor extra-tensor" },
    { "model-experts", experts,
      "key-value " GATE_UP_DOWN GATE_UP_DOWN "missing-tensor missing-tensor "
      "missing-tensor" },
    { "model-scale", scale, "" },
    { "model-shard", shard, "shard" },
    { NULL, NULL, NULL },
};
