/* SPDX-License-Identifier: MIT */
/* check-talker.c - folders of Qwen3-TTS
 *
 * The embedding is compared with the two layers in double precision. Its tokens
 * after those of texts have names of codes.
 */
#include "config.h"
#include "gguf/stats.h"
#include "tests/convert/converted_vocab.h"
#include "tests/convert/roundtrip.h"

#include <math.h>
#include <unistd.h>

/* Widths of a row: of texts, between the layers, of the talker. TEXTS are two
 * more than the tokenizer has. */
enum { IN = 12, MID = 20, OUT = 32, TEXTS = 262, CODES = 3072 };

#define TENSORS                                                               \
    "talker.model.norm.weight 32\n"                                           \
    "talker.model.text_embedding.weight 262 12\n"                             \
    "talker.text_projection.linear_fc1.weight 20 12\n"                        \
    "talker.text_projection.linear_fc1.bias 20\n"                             \
    "talker.text_projection.linear_fc2.weight 32 20\n"                        \
    "talker.text_projection.linear_fc2.bias 32\n"                             \
    "talker.model.codec_embedding.weight 3072 32\n"                           \
    "talker.codec_head.weight 3072 32\n"                                      \
    "talker.code_predictor.model.norm.weight 16\n"                            \
    "speaker_encoder.fc.conv.weight 4 4 1\n"
#define L "talker.model.layers.%."
#define LAYERS                                                                \
    L "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 16 32\n" L \
      "self_attn.v_proj.weight 16 32\n" L "self_attn.o_proj.weight 32 32\n" L \
      "self_attn.q_norm.weight 8\n" L "self_attn.k_norm.weight 8\n" L         \
      "input_layernorm.weight 32\n" L                                         \
      "post_attention_layernorm.weight 32\n" L                                \
      "mlp.gate_proj.weight 48 32\n" L "mlp.up_proj.weight 48 32\n" L         \
      "mlp.down_proj.weight 32 48\n"
#define COUNTS "\"text_vocab_size\":262,\"vocab_size\":3072"
#define USUAL                                                                 \
    COUNTS ",\"hidden_act\":\"silu\",\"codec_bos_id\":2149,"                  \
           "\"codec_eos_token_id\":2150,\"codec_language_id\":{"              \
           "\"chinese\":2055},\"spk_id\":{\"ryan\":3061},"                    \
           "\"spk_is_dialect\":{\"ryan\":false}"

static char top[200];
static struct folder f;

static void make_folder(const char *talker, const char *omit)
{
    static char tensors[4000], config[2000];
    strcpy(tensors, TENSORS LAYERS);
    char *at = omit ? strstr(tensors, omit) : NULL;
    if (at)
        memmove(at, at + strcspn(at, "\n") + 1, strlen(strchr(at, '\n')));
    snprintf(config, sizeof config,
             "{\"architectures\":[\"Qwen3TTSForConditionalGeneration\"],"
             "\"model_type\":\"qwen3_tts\",\"talker_config\":{"
             "\"hidden_size\":32,\"intermediate_size\":48,"
             "\"num_hidden_layers\":2,\"num_attention_heads\":4,"
             "\"num_key_value_heads\":2,\"head_dim\":8,\"rms_norm_eps\":1e-6,"
             "\"rope_theta\":1e6,\"max_position_embeddings\":64,"
             "\"rope_scaling\":{\"rope_type\":\"default\","
             "\"interleaved\":true,\"mrope_section\":[2,1,1]},%s}}",
             talker);
    folder_begin(&f, scratch_path(top, "folder"));
    folder_text(&f, "config.json", config);
    folder_tensors(&f, tensors, FOLDER_LAYERS, FOLDER_EXPERTS);
    folder_weights(&f, "F32", 1);
    folder_bpe(&f, false);
}

static bool is_token(const struct converted_vocab *m, gguf_token id,
                     const char *text)
{
    const struct gguf_str s = gguf_vocab_token_text(m->vocab, id);
    return s.size == strlen(text) && !memcmp(s.data, text, s.size);
}

static float value_of(const char *layer, uint64_t i)
{
    char name[100];
    snprintf(name, sizeof name, "talker.text_projection.linear_%s", layer);
    return folder_value(name, i);
}

/* Element j of row i of the embedding. */
static double compute_element(uint64_t i, uint64_t j)
{
    double y = (double)value_of("fc2.bias", j);
    for (uint64_t k = 0; k < MID; k++) {
        double x = (double)value_of("fc1.bias", k);
        for (uint64_t n = 0; n < IN; n++)
            x += (double)value_of("fc1.weight", IN * k + n) *
                 (double)folder_value("talker.model.text_embedding.weight",
                                      IN * i + n);
        y += (double)value_of("fc2.weight", MID * j + k) * x / (1 + exp(-x));
    }
    return y;
}

/* The largest error of the projected rows, and of the codes' rows. */
static void check_numbers(const struct converted_vocab *m)
{
    static float x[(TEXTS + CODES) * OUT];
    struct gguf_rows *rows = NULL;
    double worst = 0, worst_code = 0;
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(m->file, "token_embd.weight");
    const bool good =
        t && t->ne[0] == OUT && t->ne[1] == TEXTS + CODES &&
        gguf_rows_create(&rows, NULL, NULL) == GGUF_OK &&
        gguf_rows_decode(rows, m->file, t->index, 0, sizeof x / sizeof *x, x,
                         NULL) == GGUF_OK;
    for (uint64_t i = 0; i < TEXTS + CODES && good; i++)
        for (uint64_t j = 0; j < OUT; j++) {
            const double got = (double)x[i * OUT + j];
            if (i < TEXTS)
                worst = fmax(worst, fabs(got - compute_element(i, j)));
            else
                worst_code =
                    fmax(worst_code,
                         fabs(got - (double)folder_value(
                                        "talker.model.codec_embedding.weight",
                                        (i - TEXTS) * OUT + j)));
        }
    ok(good && worst < 1e-5 && worst > 0,
       "rows of texts are the result of two layers: %g", worst);
    ok(good && worst_code == 0, "rows of codes follow: %g", worst_code);
    gguf_rows_destroy(rows);
}

static void check_suppressed(const struct converted_vocab *m)
{
    int32_t id[1023];
    const struct gguf_kv *kv =
        gguf_file_kv_find(m->file, "tokenizer.ggml.suppress_tokens");
    const int32_t first = TEXTS + CODES - 1024, end = TEXTS + 2150;
    bool good = kv && kv->n == 1023 &&
                gguf_kv_get_elems_i32(kv, 0, 1023, id, NULL) == GGUF_OK;
    for (int32_t i = 0; good && i < 1023; i++)
        good = id[i] == first + i + (first + i >= end);
    ok(good, "the last 1024 tokens but the end of codes are not drawn");
}

static uint64_t key_of(const struct converted_vocab *m, const char *key)
{
    uint64_t x = UINT64_MAX;
    const struct gguf_kv *kv = gguf_file_kv_find(m->file, key);
    return kv && gguf_kv_get_uint(kv, &x, NULL) == GGUF_OK ? x : UINT64_MAX;
}

static void check_folder(void)
{
    const char *out = scratch_path(top, "out.gguf");
    struct converted_vocab m;
    struct gguf_error e;
    make_folder(USUAL, NULL);
    ok(converted_vocab_open(&m, f.dir, out, &e) == GGUF_OK,
       "a folder of Qwen3-TTS: %s", e.message);
    check_numbers(&m);
    ok(is_token(&m, TEXTS, "<|codec_0|>") &&
           is_token(&m, TEXTS + CODES - 1, "<|codec_3071|>") &&
           is_token(&m, TEXTS + 2149, "<|codec_bos|>") &&
           is_token(&m, TEXTS + 2150, "<|codec_eos_token|>") &&
           is_token(&m, TEXTS + 2055, "<|codec_language_chinese|>") &&
           is_token(&m, TEXTS + 3061, "<|spk_ryan|>"),
       "names of codes");
    check_suppressed(&m);
    ok(key_of(&m, "tokenizer.ggml.eos_token_id") == TEXTS + 2150,
       "the end of codes ends a text: %llu",
       (unsigned long long)key_of(&m, "tokenizer.ggml.eos_token_id"));
    ok(!folder_roundtrip(out, "folder", scratch_path(top, "back"), &e) &&
           strstr(e.message, "two layers"),
       "no way back: %s", e.message);
    converted_vocab_close(&m);
    scratch_clean(top);
}

static void refuse_folder(const char *talker, const char *omit,
                          enum gguf_status status, const char *why)
{
    struct gguf_error e;
    make_folder(talker, omit);
    gguf_error_clear(&e);
    ok(folder_convert(f.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
               status &&
           strstr(e.message, why),
       "refused: %s", e.message);
    scratch_clean(top);
}

int main(void)
{
    snprintf(top, sizeof top, "check-talker.%d.tmp", (int)getpid());
    folder_begin(&f, top);
    check_folder();
    refuse_folder(USUAL, "talker.text_projection.linear_fc2.bias ",
                  GGUF_E_TENSOR, "fc2.bias' is missing");
    refuse_folder(COUNTS ",\"hidden_act\":\"gelu\"", NULL, GGUF_E_UNSUPPORTED,
                  "silu");
    refuse_folder(COUNTS ",\"codec_bos_id\":3072", NULL, GGUF_E_VOCAB,
                  "<|codec_bos|>");
    refuse_folder("\"vocab_size\":3072", NULL, GGUF_E_HPARAM,
                  "text_vocab_size");
    rmdir(top);
    return done_testing();
}
