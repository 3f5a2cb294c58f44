/* SPDX-License-Identifier: MIT */
/* check-no-config.c - folders without config.json
 *
 * Sizes follow from the tensors. Rows that the conversion appends to the
 * embedding are compared with products in double precision.
 */
#include "config.h"
#include "gguf/stats.h"
#include "tests/convert/converted_vocab.h"
#include "tests/convert/folder_text.h"

#include <math.h>
#include <unistd.h>

enum { WIDTH = 128, PIECES = 260, LATENT = 4 };

static char top[200];
static struct folder f;

/* The folder of Pocket TTS without its texts; tensors named omit are left
 * out. */
static void make_folder(const char *omit)
{
    static struct folder_text t;
    t = *folder_text_find("PocketTTSModel");
    char *at = omit ? strstr(t.tensors, omit) : NULL;
    if (at)
        memmove(at, at + strcspn(at, "\n") + 1, strlen(strchr(at, '\n')));
    folder_text_make(&t, scratch_path(top, "folder"), false, &f);
    folder_weights(&f, "F32", 1);
    unlink(scratch_path(f.dir, "config.json"));
    unlink(scratch_path(f.dir, "tokenizer_config.json"));
}

static uint64_t key_of(const struct converted_vocab *m, const char *key)
{
    uint64_t x = UINT64_MAX;
    const struct gguf_kv *kv = gguf_file_kv_find(m->file, key);
    if (kv && gguf_kv_get_uint(kv, &x, NULL) != GGUF_OK)
        x = UINT64_MAX;
    return x;
}

static bool is_token(const struct converted_vocab *m, gguf_token id,
                     const char *text)
{
    const struct gguf_str s = gguf_vocab_token_text(m->vocab, id);
    return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

/* Row of the embedding. */
static bool read_row(const struct converted_vocab *m, uint64_t row,
                     float out[WIDTH])
{
    struct gguf_rows *rows = NULL;
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(m->file, "token_embd.weight");
    const bool good = t && t->ne[0] == WIDTH && (uint64_t)t->ne[1] > row &&
                      gguf_rows_create(&rows, NULL, NULL) == GGUF_OK &&
                      gguf_rows_decode(rows, m->file, t->index, row * WIDTH,
                                       WIDTH, out, NULL) == GGUF_OK;
    gguf_rows_destroy(rows);
    return good;
}

static bool is_row_of(const struct converted_vocab *m, uint64_t row,
                      const char *name)
{
    float x[WIDTH];
    bool same = read_row(m, row, x);
    for (uint64_t i = 0; i < WIDTH && same; i++)
        same = x[i] == folder_value(name, i);
    return same;
}

/* Is the row the first latent times the matrix after it? */
static bool is_product(const struct converted_vocab *m, uint64_t row)
{
    float x[WIDTH];
    bool same = read_row(m, row, x);
    for (uint64_t i = 0; i < WIDTH && same; i++) {
        double sum = 0;
        for (uint64_t j = 0; j < LATENT; j++)
            sum += (double)folder_value("flow_lm.input_linear.weight",
                                        LATENT * i + j) *
                   (double)folder_value("flow_lm.bos_emb", j);
        same = x[i] == (float)sum;
    }
    return same;
}

static void check_sizes(const struct converted_vocab *m)
{
    static const struct {
        const char *key;
        uint64_t value;
    } keys[] = {
        { "block_count", 2 },          { "embedding_length", WIDTH },
        { "feed_forward_length", 48 }, { "attention.head_count", WIDTH / 64 },
        { "context_length", 4096 },
    };
    char name[80];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(name, sizeof name, "pockettts.%s", keys[i].key);
        ok(key_of(m, name) == keys[i].value, "%s by tensors: %llu", name,
           (unsigned long long)key_of(m, name));
    }
    ok(key_of(m, "tokenizer.ggml.eos_token_id") == UINT64_MAX &&
           key_of(m, "tokenizer.ggml.unknown_token_id") == UINT64_MAX &&
           key_of(m, "tokenizer.ggml.padding_token_id") == UINT64_MAX,
       "special tokens have no ids");
}

static void check_folder(void)
{
    const char *out = scratch_path(top, "out.gguf");
    struct converted_vocab m;
    struct gguf_error e;
    make_folder(NULL);
    ok(converted_vocab_open(&m, f.dir, out, &e) == GGUF_OK,
       "a folder without config.json: %s", e.message);
    check_sizes(&m);
    ok(is_token(&m, PIECES, "<|pad|>") &&
           is_token(&m, PIECES + 1, "<|bos_before_voice|>") &&
           is_token(&m, PIECES + 2, "<|audio_bos|>"),
       "tokens after the tokenizer's");
    ok(is_row_of(&m, PIECES + 1, "flow_lm.bos_before_voice") &&
           is_product(&m, PIECES + 2),
       "their rows: a vector, and the first latent's product");
    ok(folder_roundtrip(out, "folder", scratch_path(top, "back"), &e),
       "a folder of the file becomes the same file: %s", e.message);
    converted_vocab_close(&m);
    scratch_clean(top);
}

static void check_without_voice(void)
{
    struct converted_vocab m;
    struct gguf_error e;
    make_folder("flow_lm.bos_before_voice ");
    ok(converted_vocab_open(&m, f.dir, scratch_path(top, "out.gguf"), &e) ==
               GGUF_OK &&
           is_token(&m, PIECES, "<|pad|>") &&
           is_token(&m, PIECES + 1, "<|audio_bos|>") &&
           is_product(&m, PIECES + 1),
       "without the vector before a voice: %s", e.message);
    converted_vocab_close(&m);
    scratch_clean(top);
}

static void refuse_folder(const char *omit, enum gguf_status status,
                          const char *why)
{
    struct gguf_error e;
    make_folder(omit);
    gguf_error_clear(&e);
    ok(folder_convert(f.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
               status &&
           strstr(e.message, why),
       "without '%s': %s", omit, e.message);
    scratch_clean(top);
}

int main(void)
{
    snprintf(top, sizeof top, "check-no-config.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_folder();
    check_without_voice();
    refuse_folder("flow_lm.bos_emb ", GGUF_E_NOTFOUND, "no config.json");
    refuse_folder("flow_lm.input_linear.weight ", GGUF_E_TENSOR,
                  "'flow_lm.input_linear.weight'");
    rmdir(top);
    return done_testing();
}
