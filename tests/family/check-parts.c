/* SPDX-License-Identifier: MIT */
/* check-parts.c - parts of models that their tensors tell
 *
 * The keys of each model of tests/family say the same as its tensors. Some
 * models are compared with whole lists of facts.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/recognize.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- facts and keys ---- */

/* Facts, the keys that say the same, and models in which a key says something
 * else, between blanks. */
static const struct {
    const char *part, *key, *except;
} same[] = {
    { "block_count", "block_count", " hrm_text " },
    { "decoder_block_count", "decoder_block_count", "" },
    { "embedding_length", "embedding_length", "" },
    { "vocabulary_size", "vocab_size", "" },
    { "feed_forward_length", "feed_forward_length", " arctic qwen " },
    { "head_count", "attention.head_count", "" },
    { "head_count_kv", "attention.head_count_kv", " modern-bert " },
    { "key_length", "attention.key_length", "" },
    { "value_length", "attention.value_length", "" },
    { "key_length_mla", "attention.key_length_mla", "" },
    { "value_length_mla", "attention.value_length_mla", "" },
    { "kv_lora_rank", "attention.kv_lora_rank", "" },
    { "q_lora_rank", "attention.q_lora_rank", "" },
    { "rope_dimension_count", "rope.dimension_count", "" },
    { "expert_count", "expert_count", "" },
    { "expert_feed_forward_length", "expert_feed_forward_length",
      " hunyuan-moe minimax-m2 " },
    { "expert_shared_feed_forward_length", "expert_shared_feed_forward_length",
      "" },
    { "conv_kernel", "ssm.conv_kernel", "" },
    { "ssm_inner_size", "ssm.inner_size", "" },
    { "ssm_state_size", "ssm.state_size", "" },
    { "nextn_layers", "nextn_predict_layers", "" },
};

struct told {
    const struct skeleton *m;
    char text[2000]; /* " name=value" for each fact */
    char wrong[400];
    unsigned n; /* facts that a key confirms */
};

static void compare_key(struct told *t, const struct gguf_inferred *p,
                        size_t i)
{
    char dotted[128], key[192], name[80];
    uint64_t v;
    snprintf(dotted, sizeof dotted, ".%s", same[i].key);
    skeleton_key(t->m, dotted, key);
    const struct gguf_kv *kv = gguf_meta_find(t->m->g.meta, key);
    if (gguf_kv_get_uint(kv, &v, NULL) != GGUF_OK)
        return; /* no key, or a number for each layer */
    snprintf(name, sizeof name, " %s ", t->m->name);
    if ((v != p->value) != (strstr(same[i].except, name) != NULL))
        snprintf(t->wrong, sizeof t->wrong, "%s is %u, the key says %u",
                 p->name, (unsigned)p->value, (unsigned)v);
    else
        t->n += v == p->value;
}

static bool note_part(void *user, const struct gguf_inferred *p)
{
    struct told *t = user;
    const size_t n = strlen(t->text);
    if (p->text)
        snprintf(t->text + n, sizeof t->text - n, " %s=%s", p->name, p->text);
    else
        snprintf(t->text + n, sizeof t->text - n, " %s=%u", p->name,
                 (unsigned)p->value);
    for (size_t i = 0; i < GG_LEN(same); i++)
        if (!p->text && !strcmp(p->name, same[i].part))
            compare_key(t, p, i);
    return false;
}

static enum gguf_status infer_parts(const struct skeleton *m, struct told *t,
                                    struct gguf_error *err)
{
    struct gguf_file *file;
    size_t size;
    void *data = gen_empty_file(&m->g, &size);
    *t = (struct told){ .m = m };
    enum gguf_status st = gguf_file_open_memory(&file, data, size, NULL, err);
    if (st == GGUF_OK)
        st = gguf_file_infer_parts(
            file, (struct gguf_inferred_callback){ note_part, t }, err);
    gguf_file_close(file);
    free(data);
    return st;
}

static void check_keys(const char *name)
{
    static struct skeleton m;
    static struct told t;
    struct gguf_error err;
    if (!skeleton_open(&m, name) || infer_parts(&m, &t, &err) != GGUF_OK)
        ok(0, "%s", name);
    else
        ok(t.n >= 3 && !*t.wrong, "%s: %u keys confirm the tensors: %s", name,
           t.n, t.wrong);
    skeleton_close(&m);
}

/* ---- whole lists ---- */

/* Models with changes, and all facts about each, from its text. */
static const struct {
    const char *model, *what;
    const char *nokey;  /* suffix of a key to remove; NULL: none */
    const char *drop;   /* tensor to remove; NULL: none */
    const char *tensor; /* tensor to add, of one element; NULL: none */
    const char *facts;
} lists[] = {
    { .model = "llama",
      .what = "heads by the key",
      .facts = " block_count=2 embedding_length=128 vocabulary_size=128"
               " output=own matrix attention_layers=2"
               " attention=heads share keys and values (GQA) head_count=4"
               " head_count_kv=2 key_length=32 value_length=32 dense_layers=2"
               " feed_forward_length=192 feed_forward=gated" },
    { .model = "llama",
      .what = "widths only, tied, with a tensor of an unknown name",
      .nokey = ".attention.head_count",
      .drop = "output.weight",
      .tensor = "blk.1.strange.weight",
      .facts = " block_count=2 embedding_length=128 vocabulary_size=128"
               " output=the embeddings (tied) attention_layers=2"
               " attention=heads share keys and values (GQA)"
               " query_width=128 key_width=64 heads_per_key=2 dense_layers=2"
               " feed_forward_length=192 feed_forward=gated"
               " unknown_tensors=1" },
    { .model = "qwen3",
      .what = "heads by the norms of queries",
      .nokey = ".attention.head_count",
      .facts = " block_count=2 embedding_length=128 vocabulary_size=128"
               " output=own matrix attention_layers=2"
               " attention=heads share keys and values (GQA) head_count=4"
               " head_count_kv=2 key_length=32 value_length=32 dense_layers=2"
               " feed_forward_length=192 feed_forward=gated"
               " query_norm_layers=2" },
    { .model = "gpt-oss",
      .what = "heads by the sinks",
      .nokey = ".attention.head_count",
      .facts = " block_count=2 embedding_length=128 vocabulary_size=128"
               " output=own matrix attention_layers=2"
               " attention=heads share keys and values (GQA) head_count=4"
               " head_count_kv=2 key_length=32 value_length=32"
               " expert_layers=2 expert_count=4 expert_feed_forward_length=96"
               " sink_layers=2 post_norm_layers=2" },
    { .model = "deepseek2",
      .what = "latent attention",
      .facts = " block_count=2 embedding_length=128 vocabulary_size=128"
               " output=own matrix attention_layers=2"
               " attention=latent attention (MLA) kv_lora_rank=64"
               " q_lora_rank=48 rope_dimension_count=16 head_count=4"
               " key_length_mla=48 value_length_mla=32 dense_layers=1"
               " feed_forward_length=192 feed_forward=gated expert_layers=1"
               " expert_count=4 expert_feed_forward_length=96"
               " expert_shared_feed_forward_length=96 expert_bias_layers=1" },
    { .model = "qwen35moe",
      .what = "delta rule and gated queries",
      .facts = " block_count=4 embedding_length=128 vocabulary_size=128"
               " output=own matrix attention_layers=2"
               " attention=heads share keys and values (GQA) head_count=4"
               " head_count_kv=2 key_length=32 value_length=32"
               " recurrent_layers=2 recurrent=gated delta rule conv_kernel=4"
               " ssm_inner_size=128 recurrent_heads=4"
               " recurrent_head_length=32 expert_layers=4 expert_count=4"
               " expert_feed_forward_length=96"
               " expert_shared_feed_forward_length=96 query_norm_layers=2"
               " post_norm_layers=4" },
    { .model = "t5",
      .what = "encoder and decoder",
      .facts = " encoder_block_count=2 decoder_block_count=2"
               " embedding_length=128 vocabulary_size=128 output=own matrix"
               " attention_layers=2 attention=a key and a value for each head"
               " head_count=4 head_count_kv=4 key_length=32 value_length=32"
               " dense_layers=2 feed_forward_length=192 feed_forward=gated" },
};

static void check_list(size_t i)
{
    static struct skeleton m;
    static struct told t;
    struct gguf_error err = { .status = GGUF_OK };
    char key[192];
    if (!skeleton_open(&m, lists[i].model)) {
        ok(0, "%s", lists[i].model);
        return;
    }
    if (lists[i].nokey) {
        skeleton_key(&m, lists[i].nokey, key);
        (void)gguf_meta_remove(m.g.meta, key);
    }
    if (lists[i].drop)
        gen_drop(&m.g, lists[i].drop);
    if (lists[i].tensor)
        gen_tensor(&m.g, 1, 0, "%s", lists[i].tensor);
    const bool good = infer_parts(&m, &t, &err) == GGUF_OK;
    ok(good && !strcmp(t.text, lists[i].facts), "%s, %s:%s%s", lists[i].model,
       lists[i].what, t.text, err.message);
    skeleton_close(&m);
}

static bool stop_at_two(void *user, const struct gguf_inferred *p)
{
    unsigned *n = user;
    (void)p;
    return ++*n == 2;
}

static bool keep_from(void *user, const struct gguf_inferred *p)
{
    if (!strcmp(p->name, "head_count_kv"))
        snprintf(user, 64, "%.*s", (int)p->from.size, p->from.data);
    if (!strcmp(p->name, "output") && p->from.size)
        snprintf(user, 64, "output has a tensor");
    return false;
}

static void check_calls(void)
{
    static struct skeleton m;
    struct gguf_file *file = NULL;
    struct gguf_error err = { .status = GGUF_OK };
    char from[64] = "";
    unsigned n = 0;
    size_t size;
    if (!skeleton_open(&m, "llama"))
        return;
    gen_drop(&m.g, "output.weight");
    void *data = gen_empty_file(&m.g, &size);
    bool good =
        gguf_file_open_memory(&file, data, size, NULL, &err) == GGUF_OK;
    ok(good &&
           gguf_file_infer_parts(
               file, (struct gguf_inferred_callback){ stop_at_two, &n },
               &err) == GGUF_E_CANCELLED &&
           n == 2,
       "a callback that stops is not called again: %s", err.message);
    ok(good && gguf_file_infer_parts(
                   file, (struct gguf_inferred_callback){ NULL, NULL },
                   &err) == GGUF_E_INVALID,
       "a callback is required");
    ok(good &&
           gguf_file_infer_parts(
               file, (struct gguf_inferred_callback){ keep_from, from },
               &err) == GGUF_OK &&
           !strcmp(from, "blk.0.attn_k.weight"),
       "a fact has its tensor, or none if one is missing: %s", from);
    gguf_file_close(file);
    free(data);
    skeleton_close(&m);
    gen_init(&m.g, 1);
    gen_tensor(&m.g, 4, 4, "v.patch_embd.weight");
    static struct told t;
    ok(infer_parts(&m, &t, &err) == GGUF_OK && !*t.text,
       "nothing is told of tensors of other models:%s", t.text);
    gen_fini(&m.g);
}

int main(void)
{
    static char names[512][64];
    size_t n = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < n; i++)
        check_keys(names[i]);
    for (size_t i = 0; i < GG_LEN(lists); i++)
        check_list(i);
    check_calls();
    return done_testing();
}
