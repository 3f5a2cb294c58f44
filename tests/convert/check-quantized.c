/* SPDX-License-Identifier: MIT */
/* check-quantized.c - folders with packed and 8-bit weights become files
 *
 * Here: the descriptions in config.json, the numbers in the file, and refused
 * folders. tests/data/check-packed.c tests the place of each number.
 */
#include "config.h"
#include "gguf/stats.h"
#include "tests/convert/folder.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/stfile.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { N = 32, GROUPS = 2 };

static char top[200];
static struct folder folder;
static struct stfile file;

/* Matrices of a layer, N x N each. */
static const char *const matrices[] = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
    "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
    "mlp.down_proj",
};

/* Code of row r, column c. The scale is 2 in the first half of the columns and
 * 0.5 in the second; the zero point is 3. */
static int code_of(size_t matrix, int r, int c)
{
    return (int)((matrix * 5 + (size_t)r * 3 + (size_t)c * 7) % 16);
}

static float value_of(size_t matrix, int r, int c)
{
    return (float)(code_of(matrix, r, c) - 3) * (c < N / 2 ? 2.0f : 0.5f);
}

static void put_bits(uint8_t *word, int at, int v)
{
    gg_bytes_store32le(word,
                       gg_bytes_load32le(word) | (uint32_t)v << (4 * at));
}

static void add_gptq(const char *base, size_t m, int zero)
{
    char name[120];
    snprintf(name, sizeof name, "%s.qweight", base);
    uint8_t *q = stfile_add(&file, name, "I32", "4,32", 4 * 4 * N);
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++)
            put_bits(q + 4 * (c / 8 * N + r), c % 8, code_of(m, r, c));
    snprintf(name, sizeof name, "%s.qzeros", base);
    memset(stfile_add(&file, name, "I32", "2,4", 32), zero * 17, 32);
    snprintf(name, sizeof name, "%s.scales", base);
    uint8_t *s = stfile_add(&file, name, "F16", "2,32", 2 * GROUPS * N);
    for (int i = 0; i < GROUPS * N; i++)
        gg_bytes_store16le(s + 2 * i, i < N ? 0x4000 : 0x3800);
    snprintf(name, sizeof name, "%s.g_idx", base);
    uint8_t *g = stfile_add(&file, name, "I32", "32", 4 * N);
    for (int c = 0; c < N; c++)
        gg_bytes_store32le(g + 4 * c, c >= N / 2);
}

/* Add bytes with a scale of 0.5 for each row: half of (code - 3). */
static void add_bytes(const char *base, size_t m, bool f8)
{
    static const uint8_t f8_codes[16] = { /* -3 to 12 as E4M3 */
                                          0xc4, 0xc0, 0xb8, 0x00, 0x38, 0x40,
                                          0x44, 0x48, 0x4a, 0x4c, 0x4e, 0x50,
                                          0x51, 0x52, 0x53, 0x54
    };
    char name[120];
    snprintf(name, sizeof name, "%s.weight", base);
    uint8_t *q =
        stfile_add(&file, name, f8 ? "F8_E4M3" : "I8", "32,32", N * N);
    for (int i = 0; i < N * N; i++) {
        const int code = code_of(m, i / N, i % N);
        q[i] = f8 ? f8_codes[code] : (uint8_t)(code - 3);
    }
    snprintf(name, sizeof name, "%s.weight_scale", base);
    uint8_t *s = stfile_add(&file, name, "F32", "32,1", 4 * N);
    for (int r = 0; r < N; r++)
        gg_bytes_store32le(s + 4 * r, gg_bytes_f32_bits(0.5f));
    snprintf(name, sizeof name, "%s.input_scale", base);
    stfile_add(&file, name, "F32", "", 4);
}

/* Add NVFP4: scales of 2 or 1 (E4M3) for 16 numbers, and 0.25 for all. */
static void add_nvfp4(const char *base, size_t m)
{
    char name[120];
    snprintf(name, sizeof name, "%s.weight", base);
    uint8_t *q = stfile_add(&file, name, "U8", "32,16", N * N / 2);
    for (int i = 0; i < N * N; i++)
        q[i / 2] |= (uint8_t)(code_of(m, i / N, i % N) << 4 * (i % 2));
    snprintf(name, sizeof name, "%s.weight_scale", base);
    uint8_t *s = stfile_add(&file, name, "F8_E4M3", "32,2", 2 * N);
    for (int i = 0; i < 2 * N; i++)
        s[i] = i % 2 ? 0x38 : 0x40;
    snprintf(name, sizeof name, "%s.weight_scale_2", base);
    gg_bytes_store32le(stfile_add(&file, name, "F32", "", 4),
                       gg_bytes_f32_bits(0.25f));
    snprintf(name, sizeof name, "%s.input_scale", base);
    stfile_add(&file, name, "F32", "", 4);
}

/* Add NF4: blocks of 32 with a scale of 3. The table has squares. */
static void add_nf4(const char *base, size_t m)
{
    static const char state[] = "{\"blocksize\":32,\"dtype\":\"float16\","
                                "\"shape\":[32,32],\"quant_type\":\"nf4\"}";
    char name[160], shape[20];
    snprintf(name, sizeof name, "%s.weight", base);
    uint8_t *q = stfile_add(&file, name, "U8", "512,1", N * N / 2);
    for (int i = 0; i < N * N; i++)
        q[i / 2] |= (uint8_t)(code_of(m, i / N, i % N) << (i % 2 ? 0 : 4));
    snprintf(name, sizeof name, "%s.weight.absmax", base);
    uint8_t *s = stfile_add(&file, name, "F32", "32", 4 * N);
    for (int i = 0; i < N; i++)
        gg_bytes_store32le(s + 4 * i, gg_bytes_f32_bits(3));
    snprintf(name, sizeof name, "%s.weight.quant_map", base);
    s = stfile_add(&file, name, "F32", "16", 64);
    for (int i = 0; i < 16; i++)
        gg_bytes_store32le(s + 4 * i, gg_bytes_f32_bits((float)(i * i)));
    snprintf(name, sizeof name, "%s.weight.quant_state.bitsandbytes__nf4",
             base);
    snprintf(shape, sizeof shape, "%zu", sizeof state - 1);
    memcpy(stfile_add(&file, name, "U8", shape, sizeof state - 1), state,
           sizeof state - 1);
}

/* Add MXFP4: a block for each row, whose scale is 1/2, 1 or 2 in turn. */
static void add_mxfp4(const char *base, size_t m)
{
    char name[120];
    snprintf(name, sizeof name, "%s.weight_packed", base);
    uint8_t *q = stfile_add(&file, name, "U8", "32,16", N * N / 2);
    for (int i = 0; i < N * N; i++)
        q[i / 2] |= (uint8_t)(code_of(m, i / N, i % N) << 4 * (i % 2));
    snprintf(name, sizeof name, "%s.weight_scale", base);
    uint8_t *s = stfile_add(&file, name, "U8", "32,1", N);
    for (int r = 0; r < N; r++)
        s[r] = (uint8_t)(126 + r % 3);
}

enum form { GPTQ, GPTQ_V2, I8, F8, NVFP4, MXFP4, NF4 };

/* Expected number. bytes: half of (code - 3). */
static float wanted_number(enum form form, size_t m, int r, int c)
{
    static const float levels[16] = {
        0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6
    };
    const int code = code_of(m, r, c);
    switch (form) {
    case NVFP4: return levels[code] * (c < N / 2 ? 0.5f : 0.25f);
    case MXFP4: return ldexpf(levels[code], r % 3 - 1);
    case NF4: return 3 * (float)(code * code);
    case I8:
    case F8: return 0.5f * (float)(code - 3);
    default: return value_of(m, r, c);
    }
}

/* Make the folder. A description that begins with '@' goes to
 * hf_quant_config.json. */
static void make_folder(enum form form, const char *quantization)
{
    static const char *const norms[] = { "input_layernorm",
                                         "post_attention_layernorm" };
    char base[100], text[1000];
    folder_begin(&folder, scratch_path(top, "q"));
    const bool alone = *quantization == '@';
    if (alone)
        folder_text(&folder, "hf_quant_config.json", quantization + 1);
    snprintf(text, sizeof text,
             "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":32,"
             "\"intermediate_size\":32,\"num_hidden_layers\":1,"
             "\"num_attention_heads\":4,\"num_key_value_heads\":4,"
             "\"vocab_size\":260,\"max_position_embeddings\":64,"
             "\"rms_norm_eps\":1e-6,\"quantization_config\":%s%s%s}",
             alone ? "" : "{", alone ? "null" : quantization,
             alone ? "" : "}");
    folder_text(&folder, "config.json", text);
    folder_bpe(&folder, false);
    stfile_begin(&file);
    stfile_add(&file, "model.embed_tokens.weight", "F16", "260,32",
               2 * N * FOLDER_VOCAB);
    stfile_add(&file, "model.norm.weight", "F32", "32", 4 * N);
    for (size_t i = 0; i < 2; i++) {
        snprintf(base, sizeof base, "model.layers.0.%s.weight", norms[i]);
        stfile_add(&file, base, "F32", "32", 4 * N);
    }
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        snprintf(base, sizeof base, "model.layers.0.%s", matrices[i]);
        if (form <= GPTQ_V2)
            add_gptq(base, i, form == GPTQ ? 2 : 3);
        else if (form == NVFP4)
            add_nvfp4(base, i);
        else if (form == MXFP4)
            add_mxfp4(base, i);
        else if (form == NF4)
            add_nf4(base, i);
        else
            add_bytes(base, i, form == F8);
    }
    const size_t size = stfile_end(&file);
    FILE *f = fopen(scratch_path(folder.dir, "model.safetensors"), "wb");
    if (!f || fwrite(file.bytes, 1, size, f) != size || fclose(f) != 0)
        exit(99);
}

static enum gguf_status convert_folder(struct gguf_file **out,
                                       struct gguf_error *err)
{
    const char *path = scratch_path(top, "out.gguf");
    gguf_error_clear(err);
    *out = NULL;
    const enum gguf_status st = folder_convert(folder.dir, path, NULL, err);
    return st == GGUF_OK ? gguf_file_open(out, path, NULL, err) : st;
}

static void check_numbers(enum form form, const char *quantization,
                          uint32_t type)
{
    struct gguf_rows *rows;
    struct gguf_file *f;
    struct gguf_error e;
    float x[N * N];
    make_folder(form, quantization);
    bool good = convert_folder(&f, &e) == GGUF_OK &&
                gguf_rows_create(&rows, NULL, NULL) == GGUF_OK;
    ok(good, "%s: %s", quantization, e.message);
    if (!good)
        return;
    const struct gguf_tensor_info *t =
        gguf_file_tensor_find(f, "blk.0.ffn_up.weight");
    good = t && t->dtype == type && t->ne[0] == N && t->ne[1] == N &&
           !gguf_rows_decode(rows, f, t->index, 0, N * N, x, NULL);
    for (int i = 0; good && i < N * N; i++)
        good = x[i] == wanted_number(form, 5, i / N, i % N);
    ok(good, "its numbers, in type %d", (int)type);
    gguf_file_close(f);
    gguf_rows_destroy(rows);
}

static void check_refused(const char *quantization, const char *word)
{
    struct gguf_file *f;
    struct gguf_error e;
    make_folder(GPTQ, quantization);
    const enum gguf_status st = convert_folder(&f, &e);
    ok(st == GGUF_E_UNSUPPORTED && strstr(e.message, word) &&
           e.offset != GGUF_NO_OFFSET,
       "refused: %s", e.message);
}

/* Check that the current folder is refused. */
static void refused_file(enum gguf_status status, const char *word)
{
    struct gguf_file *f;
    struct gguf_error e;
    const enum gguf_status st = convert_folder(&f, &e);
    ok(st == status && strstr(e.message, word) && e.offset != GGUF_NO_OFFSET,
       "refused: %s", e.message);
}

#define GPTQ_4 "\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":16"
#define CT                                                                    \
    "\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":" \
    "{\"weights\":{\"num_bits\":8,\"strategy\":\"channel\"}}},"

int main(void)
{
    snprintf(top, sizeof top, "check-quantized.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    check_numbers(GPTQ, GPTQ_4, GGUF_DTYPE_F16);
    check_numbers(GPTQ, GPTQ_4 ",\"checkpoint_format\":\"gptq\"",
                  GGUF_DTYPE_F16);
    check_numbers(GPTQ_V2, GPTQ_4 ",\"checkpoint_format\":\"gptq_v2\"",
                  GGUF_DTYPE_F16);
    check_numbers(I8, CT "\"format\":\"int-quantized\"", GGUF_DTYPE_BF16);
    check_numbers(F8, CT "\"format\":\"float-quantized\"", GGUF_DTYPE_BF16);
    check_numbers(F8, CT "\"format\":\"naive-quantized\"", GGUF_DTYPE_BF16);
    check_numbers(F8, "\"quant_method\":\"fp8\"", GGUF_DTYPE_BF16);
    check_numbers(F8, "\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"",
                  GGUF_DTYPE_BF16);
    check_numbers(NVFP4,
                  "\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"",
                  GGUF_DTYPE_BF16);
    check_numbers(MXFP4, CT "\"format\":\"mxfp4-pack-quantized\"",
                  GGUF_DTYPE_MXFP4);
    check_numbers(NF4,
                  "\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true",
                  GGUF_DTYPE_F16);
    check_refused("\"quant_method\":\"hqq\",\"bits\":4",
                  "quant_method 'hqq' is not supported");
    check_refused("\"quant_method\":\"modelopt\",\"quant_algo\":\"W4A8_AWQ\"",
                  "quant_algo 'W4A8_AWQ'");
    check_refused("\"quant_method\":\"modelopt\"", "quant_algo 'missing'");
    check_refused("\"bits\":4", "quant_method 'missing'");
    check_refused("\"quant_method\":\"gptq\",\"bits\":5", "bits '5'");
    check_refused("\"quant_method\":\"gptq\"", "bits 'missing'");
    check_refused(GPTQ_4 ",\"checkpoint_format\":\"marlin\"",
                  "checkpoint_format 'marlin'");
    check_refused("\"quant_method\":\"awq\",\"bits\":4,\"version\":\"gemv\"",
                  "version 'gemv'");
    check_refused("\"quant_method\":\"awq\",\"bits\":8", "bits '8'");
    check_refused(CT "\"format\":\"marlin-24\"", "format 'marlin-24'");
    check_refused(CT "\"x\":1", "format 'missing'");
    check_numbers(NVFP4, "@{\"quantization\":{\"quant_algo\":\"NVFP4\"}}",
                  GGUF_DTYPE_BF16);
    make_folder(NVFP4, "@{\"quantization\":{\"quant_algo\":\"W4A8_AWQ\"}}");
    refused_file(GGUF_E_UNSUPPORTED,
                 "hf_quant_config.json: quantization: quant_algo 'W4A8_AWQ'");
    make_folder(NVFP4, "@{\"producer\":{}}");
    refused_file(GGUF_E_FORMAT, "missing object \"quantization\"");
    make_folder(NVFP4, "@{\"quantization\"}");
    refused_file(GGUF_E_FORMAT, "hf_quant_config.json: JSON, line 1");
    scratch_clean(folder.dir);
    rmdir(folder.dir);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
