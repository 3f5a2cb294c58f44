/* SPDX-License-Identifier: MIT */
/* check-reranker.c - folders of Qwen3-Reranker, told by a name or a heading,
 * become files whose classifier is the head's rows of "yes" and "no"
 *
 * What is asked for, and which tokens answer, is in the model card of
 * Qwen3-Reranker-0.6B; keys are those that llama.cpp's converter writes.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/convert/archs.h"
#include "tests/convert/filed.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <unistd.h>

enum { YES = 256, NO = 257 };

static char top[200];
static struct folder folder;

/* tokenizer.json with the last two tokens of bytes' own called like this. */
static void name_tokens(const char *yes, const char *no)
{
    static char text[20000];
    char pair[64];
    FILE *f = fopen(scratch_path(folder.dir, "tokenizer.json"), "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    char *at = strstr(text, "\"ab\":256");
    if (!at || fclose(f))
        exit(99);
    text[n] = 0;
    snprintf(pair, sizeof pair, "\"%s\":%d,\"%s\":%d},\"merges\":[\"n o\"]}}",
             yes, YES, no, NO);
    strcpy(at, pair);
    folder_text(&folder, "tokenizer.json", text);
}

static void make(const char *name, bool tied, const char *card)
{
    char *dir = strdup(scratch_path(top, name));
    folder_begin(&folder, dir);
    free(dir);
    folder_text(&folder, "config.json",
                tied ? "{\"architectures\":[\"Qwen3ForCausalLM\"]," SIZES
                       ",\"head_dim\":8,\"tie_word_embeddings\":true}"
                     : "{\"architectures\":[\"Qwen3ForCausalLM\"]," SIZES
                       ",\"head_dim\":8}");
    folder_tensors(&folder, TOP QKV QK_NORM NORMS MLP, LAYERS, EXPERTS);
    if (!tied)
        folder_tensors(&folder, HEAD, LAYERS, EXPERTS);
    folder_weights(&folder, "F32", 1);
    folder_bpe(&folder, false);
    if (card)
        folder_text(&folder, "README.md", card);
}

static struct gguf_file *converted(void)
{
    return filed_convert(folder.dir, scratch_path(top, "out.gguf"),
                         folder.dir);
}

/* Its rows, in this order, are those of the tensor of the folder. */
static bool has_answers(const struct gguf_file *f, const char *from)
{
    const float *x = filed_matrix(f, "cls.output.weight", 32, 2);
    for (uint64_t i = 0; x && i < 32; i++)
        if (x[i] != folder_value(from, YES * 32 + i) ||
            x[32 + i] != folder_value(from, NO * 32 + i))
            return false;
    return x;
}

static bool has_labels(const struct gguf_file *f)
{
    static const char *const want[] = { "yes", "no" };
    const struct gguf_kv *kv =
        f ? gguf_file_kv_find(f, "qwen3.classifier.output_labels") : NULL;
    struct gguf_kv_iter it;
    struct gguf_str s;
    size_t n = 0;
    if (!kv)
        return false;
    for (gguf_kv_iter_init(&it, kv); gguf_kv_next_str(&it, &s); n++)
        if (n == 2 || s.size != strlen(want[n]) ||
            memcmp(s.data, want[n], s.size) != 0)
            return false;
    return n == 2;
}

static void check_one(const char *name, bool tied, const char *card)
{
    const char *from = tied ? "model.embed_tokens.weight" : "lm_head.weight";
    make(name, tied, card);
    name_tokens("yes", "no");
    struct gguf_file *f = converted();
    ok(has_answers(f, from), "two rows of %s", from);
    ok(f && !gguf_file_tensor_find(f, "output.weight") &&
           filed_matrix(f, "token_embd.weight", 32, 260),
       "a head of its own is not there, embeddings are");
    ok(filed_uint(f, "qwen3.pooling_type", 4) && has_labels(f),
       "how it is pooled, and what its numbers are of");
    ok(filed_text(f, "tokenizer.chat_template", "{{x}}") &&
           filed_text(f, "tokenizer.chat_template.rerank",
                      "<|im_start|>system\nJudge whether the Document "),
       "and how it is asked, beside the tokenizer's own template");
    gguf_file_close(f);
    struct gguf_error e;
    gguf_error_clear(&e);
    ok(!folder_roundtrip(scratch_path(top, "out.gguf"), name,
                         scratch_path(top, "back"), &e) &&
           strstr(e.message, "no folder of class"),
       "there is no way back: %s", e.message);
    scratch_clean(top);
}

static void check_others(void)
{
    struct gguf_error e;
    make("hf", true, "# Qwen3\nnot Qwen3-Reranker\n");
    struct gguf_file *f = converted();
    ok(f && !gguf_file_tensor_find(f, "cls.output.weight") &&
           !gguf_file_kv_find(f, "qwen3.pooling_type") &&
           !gguf_file_kv_find(f, "tokenizer.chat_template.rerank"),
       "another model is as it was");
    gguf_file_close(f);
    scratch_clean(top);
    make("Qwen3-Reranker-0", true, NULL);
    name_tokens("yes", "nope");
    ok(folder_convert(folder.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
               GGUF_E_VOCAB &&
           strstr(e.message, "has no token \"no\""),
       "refused: %s", e.message);
    scratch_clean(top);
}

int main(void)
{
    snprintf(top, sizeof top, "check-reranker.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    check_one("Qwen3-Reranker-0", true, NULL);
    check_one("qwen3-reranker-0", false, NULL);
    check_one("hf", true, "---\na: b\n---\n# Qwen3-Reranker-0\n");
    check_others();
    rmdir(top);
    return done_testing();
}
