/* SPDX-License-Identifier: MIT */
/* check-integers.c - tensors of 64-bit integers that become keys, and tensors
 * that are joined by rows: embeddings of n-grams (Qwen 3.8)
 *
 * Folders of tests/family have floats only. Here the header of a file says that
 * some tensors have n integers of 64 bits instead of 2 n floats.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "tests/convert/converted_file.h"
#include "tests/convert/folder_text.h"
#include "tests/scratch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WIDTH = 8, SHARD = 5, SHARDS = 3 };

#define PLE "model.language_model.layers.0.ple."

/* Tensors of integers, and their keys. The factors need more than 53 bits. */
static const struct list {
    const char *name, *key;
    uint64_t x[4];
    size_t n;
} lists[] = {
    { PLE "ple_embedding.layer_multipliers",
      "qwen4exp.ple.layer_multipliers",
      { UINT64_C(9007199254740993), 7, UINT64_C(0x7fffffffffffffff) },
      3 },
    { PLE "ple_embedding.ngram_heads_offsets",
      "qwen4exp.ple.head_offsets",
      { 0, 3, 6, 10 },
      4 },
    { PLE "ple_embedding.ngram_heads_vocab_sizes",
      "qwen4exp.ple.head_vocab_sizes",
      { 3, 3, 4, 5 },
      4 },
};

static char top[64];
static struct folder f;

/* Lines of tensors with n-grams. Tensors of n integers have 2 n floats. */
static const char tensors[] =
    PLE "key_proj.weight 96 32\n" PLE "value_proj.weight 32 32\n" PLE
        "norm_key.weight 96\n" PLE "norm_query.weight 96\n" PLE
        "norm_conv.weight 96\n" PLE "conv1d.weight 96 1 4\n" PLE
        "ple_embedding.ngram_embedding.shard_@.weight 5 8\n" PLE
        "ple_embedding.layer_multipliers 6\n" PLE
        "ple_embedding.ngram_heads_offsets 8\n" PLE
        "ple_embedding.ngram_heads_vocab_sizes 8\n";

static _Noreturn void stop_test(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(99);
}

/* Turn a tensor of floats in the bytes of a file into one of integers. */
static void make_integers(char *file, const struct list *l, const char *type)
{
    char have[200], want[200];
    uint64_t begin, end;
    const uint64_t data = 8 + gg_bytes_load64le((const uint8_t *)file);
    snprintf(have, sizeof have, "\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu]",
             l->name, 2 * l->n);
    snprintf(want, sizeof want, "\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu]",
             l->name, type, l->n);
    char *at = strstr(file + 8, have);
    if (!at || strlen(have) != strlen(want) ||
        sscanf(at + strlen(have),
               ",\"data_offsets\":[%" SCNu64 ",%" SCNu64 "]", &begin,
               &end) != 2 ||
        end - begin != 8 * l->n)
        stop_test(l->name);
    memcpy(at, want, strlen(want));
    for (size_t i = 0; i < l->n; i++)
        gg_bytes_store64le((uint8_t *)file + data + begin + 8 * i, l->x[i]);
}

static void make_folder(const char *type)
{
    static struct folder_text t;
    static char file[1 << 20];
    char path[400];
    t = *folder_text_find("Qwen4ExpForCausalLM");
    strcat(t.tensors, tensors);
    if (!folder_text_set(&t, "\"ple_layer_ids\":[1], \"image_token_id\":7, "
                             "\"ple_conv_kernel_size\":4, "
                             "\"eos_token_id\":[3, 258], "
                             "\"split_ngram_parts\":3"))
        stop_test("members");
    folder_text_make(&t, scratch_path(top, "in"), false, &f);
    folder_weights(&f, "F32", 1);
    snprintf(path, sizeof path, "%s/model.safetensors", f.dir);
    FILE *o = fopen(path, "r+b");
    const size_t n = o ? fread(file, 1, sizeof file - 1, o) : 0;
    if (n < 9 || n == sizeof file - 1)
        stop_test(path);
    for (size_t i = 0; i < GG_LEN(lists) && type; i++)
        make_integers(file, &lists[i], type);
    rewind(o);
    if (fwrite(file, 1, n, o) != n || fclose(o) != 0)
        stop_test(path);
}

static void check_lists(const struct gguf_file *m)
{
    for (size_t i = 0; i < GG_LEN(lists); i++) {
        const struct list *l = &lists[i];
        const struct gguf_kv *kv = m ? gguf_file_kv_find(m, l->key) : NULL;
        uint64_t x[4];
        ok(kv && kv->elem_type == GGUF_VAL_U64 && kv->n == l->n &&
               gguf_kv_get_elems_uint(kv, 0, l->n, x, NULL) == GGUF_OK &&
               !memcmp(x, l->x, l->n * sizeof *x),
           "%s has the tensor's numbers", l->key);
    }
}

static void check_keys(const struct gguf_file *m)
{
    int32_t layer = -1;
    const struct gguf_kv *kv =
        m ? gguf_file_kv_find(m, "qwen4exp.ple.layers") : NULL;
    ok(kv && kv->n == 1 &&
           gguf_kv_get_elems_i32(kv, 0, 1, &layer, NULL) == GGUF_OK &&
           layer == 0,
       "layers are counted from 0");
    ok(converted_file_uint(m, "qwen4exp.ple.ngram_size", 3) &&
           converted_file_uint(m, "qwen4exp.ple.heads_per_ngram", 2) &&
           converted_file_uint(m, "qwen4exp.ple.conv_kernel", 4) &&
           converted_file_uint(m, "qwen4exp.ple.image_token_id", 7) &&
           converted_file_uint(m, "qwen4exp.embedding_length_per_layer_input",
                               WIDTH),
       "numbers of n-grams");
    ok(converted_file_uint(m, "qwen4exp.ple.eos_token_id", 258),
       "the last token that ends texts ends n-grams");
}

static void check_rows(const struct gguf_file *m)
{
    const float *x = converted_file_matrix(m, "per_layer_token_embd.weight",
                                           WIDTH, SHARDS * SHARD);
    unsigned n = 0;
    for (int i = 0; x && i < SHARDS * SHARD * WIDTH; i++) {
        char name[160];
        snprintf(name, sizeof name,
                 PLE "ple_embedding.ngram_embedding.shard_%d.weight",
                 i / (SHARD * WIDTH));
        n += x[i] == folder_value(name, (uint64_t)(i % (SHARD * WIDTH)));
    }
    ok(n == SHARDS * SHARD * WIDTH, "shards are joined by rows");
}

static void check_refused(const char *type, const char *why)
{
    struct gguf_error e = { .message = "" };
    make_folder(type);
    ok(folder_convert(f.dir, scratch_path(top, "no.gguf"), NULL, &e) ==
               GGUF_E_TENSOR &&
           strstr(e.message, why),
       "refused: %s", e.message);
}

int main(void)
{
    struct gguf_error e = { .message = "" };
    snprintf(top, sizeof top, "check-integers.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    make_folder("I64");
    const char *out = scratch_path(top, "out.gguf");
    struct gguf_file *m = converted_file_convert(f.dir, out, "n-grams");
    check_lists(m);
    check_keys(m);
    check_rows(m);
    gguf_file_close(m);
    ok(folder_roundtrip(out, "in", scratch_path(top, "back"), &e),
       "a folder of it becomes the same file: %s", e.message);
    check_refused(NULL, "F32 of 8 elements, expected at most 65536 of I64");
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
