/* SPDX-License-Identifier: MIT */
/* check-microscaling.c - published forms of DeepSeek V4 and gpt-oss
 *
 * DeepSeek V4 has 8-bit floats with scales that are powers of two, experts
 * with two 4-bit floats per byte, and tables of integers. gpt-oss has experts
 * in MXFP4, whose gate rows and up rows alternate, and which become blocks
 * with the same numbers. The values of the folder's bytes are computed here
 * from the definitions: OCP 8-bit Floating Point (E4M3), OCP Microscaling 1.0
 * (E2M1, E8M0), with the first of two neighbours in the low half of a byte.
 */
#include "config.h"
#include "gguf/stats.h"
#include "gguf/verify.h"
#include "tests/convert/folder.h"
#include "tests/convert/roundtrip.h"
#include "tests/model/findings.h"
#include "tests/scratch.h"
#include "tests/stfile.h"
#include "tests/tap.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    E = 64,
    F = 32,
    X = 3,
    USED = 2
}; /* width; width of an expert; number
                                           * of experts; experts per token */
enum {
    ROWS = 16,
    COLS = 32
}; /* rows and columns that share a
                                           * scale */

static char top[100];
static struct folder folder;
static struct stfile file;

/* ---- numbers ---- */

static unsigned mix_bits(const char *name, int r, int c)
{
    unsigned h = (unsigned)(r * 31 + c * 7 + r * c);
    while (*name)
        h = h * 33 + (unsigned char)*name++;
    return h ^ h >> 15;
}

/* The exponent is 0 to 14, so that the code is not NaN. */
static unsigned e4m3_of(const char *name, int r, int c)
{
    const unsigned x = mix_bits(name, r, c);
    return (x & 0x87) | x % 15 << 3;
}

static int scale_of(const char *name, int r, int c)
{
    return 118 + (int)(mix_bits(name, r, c) % 9);
}

static float f8_value(const char *name, int r, int c)
{
    const unsigned x = e4m3_of(name, r, c);
    const int e = (int)(x >> 3 & 15), m = (int)(x & 7);
    const double v = e ? (1 + m / 8.0) * pow(2, e - 7) : m / 8.0 * pow(2, -6);
    return (float)((x & 128 ? -v : v) *
                   pow(2, scale_of(name, r / ROWS, c / COLS) - 127));
}

static unsigned code_of(const char *name, int r, int c)
{
    return mix_bits(name, r, c) % 16;
}

static float f4_value(const char *name, int r, int c)
{
    static const float e2m1[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    const unsigned code = code_of(name, r, c);
    const float v = e2m1[code & 7];
    return ldexpf(code & 8 ? -v : v, scale_of(name, r, c / 32) - 127);
}

static float plain_value(const char *name, int r, int c)
{
    (void)c;
    return folder_value(name, (uint64_t)r);
}

static float table_value(const char *name, int r, int c)
{
    return (float)((mix_bits(name, r, 0) + (unsigned)c) % X);
}

/* ---- the folder ---- */

static uint8_t *add_tensor(const char *name, const char *end, const char *type,
                           int rows, int cols, int size)
{
    char full[120], shape[60];
    snprintf(full, sizeof full, "%s%s", name, end);
    snprintf(shape, sizeof shape, cols ? "%d,%d" : "%d", rows, cols);
    return stfile_add(&file, full, type, shape,
                      (size_t)rows * (size_t)(cols ? cols : 1) * (size_t)size);
}

static void add_floats(const char *name, int rows, int cols)
{
    uint8_t *p = add_tensor(name, "", "F32", rows, cols, 4);
    for (int i = 0; i < rows * (cols ? cols : 1); i++)
        gg_bytes_store32le(p + 4 * i,
                           gg_bytes_f32_bits(folder_value(name, (uint64_t)i)));
}

static void add_f8(const char *name, int rows, int cols)
{
    const int down = (rows + ROWS - 1) / ROWS,
              along = (cols + COLS - 1) / COLS;
    uint8_t *q = add_tensor(name, ".weight", "F8_E4M3", rows, cols, 1);
    uint8_t *s = add_tensor(name, ".scale", "F8_E8M0", down, along, 1);
    for (int i = 0; i < rows * cols; i++)
        q[i] = (uint8_t)e4m3_of(name, i / cols, i % cols);
    for (int i = 0; i < down * along; i++)
        s[i] = (uint8_t)scale_of(name, i / along, i % along);
}

/* Faults: no scale of an expert, a wrong shape, a table of wide integers, a
 * table of floats. */
enum fault { NONE, NO_SCALE, SHAPE, WIDE, FLOATS };

static void add_f4(const char *name, int rows, int cols, enum fault fault)
{
    uint8_t *q = add_tensor(name, ".weight", "I8", rows, cols / 2, 1), *s;
    for (int i = 0; i < rows * cols; i += 2)
        *q++ = (uint8_t)(code_of(name, i / cols, i % cols) |
                         code_of(name, i / cols, i % cols + 1) << 4);
    if (fault == NO_SCALE)
        return;
    if (fault == SHAPE)
        s = add_tensor(name, ".scale", "F8_E8M0", cols / 32, rows, 1);
    else
        s = add_tensor(name, ".scale", "F8_E8M0", rows, cols / 32, 1);
    for (int i = 0; i < rows * cols / 32; i++)
        s[i] = (uint8_t)scale_of(name, i / (cols / 32), i % (cols / 32));
}

static void add_table(enum fault fault)
{
    const char *name = "layers.0.ffn.gate.tid2eid";
    if (fault == FLOATS) {
        add_floats(name, FOLDER_VOCAB, USED);
        return;
    }
    uint8_t *p = add_tensor(name, "", "I64", FOLDER_VOCAB, USED, 8);
    for (int i = 0; i < FOLDER_VOCAB * USED; i++)
        gg_bytes_store64le(p + 8 * i,
                           (uint64_t)table_value(name, i / USED, i % USED));
    if (fault == WIDE)
        gg_bytes_store64le(p + 8 * 5, UINT64_C(0xffffffff7fffffff));
}

static const char config[] =
    "{\"architectures\":[\"DeepseekV4ForCausalLM\"],\"hidden_size\":64,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":1,\"head_dim\":16,\"qk_rope_head_dim\":8,"
    "\"q_lora_rank\":24,\"o_lora_rank\":16,\"o_groups\":2,\"vocab_size\":260,"
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,\"rope_theta\":"
    "10000,\"compress_ratios\":[0],\"compress_rope_theta\":160000,"
    "\"sliding_window\":16,\"moe_intermediate_size\":32,"
    "\"n_shared_experts\":1,\"n_routed_experts\":3,\"num_experts_per_tok\":2,"
    "\"routed_scaling_factor\":1.5,\"norm_topk_prob\":true,"
    "\"scoring_func\":\"sqrtsoftplus\",\"index_n_heads\":2,"
    "\"index_head_dim\":8,\"index_topk\":4,\"hc_mult\":4,"
    "\"hc_sinkhorn_iters\":3,\"hc_eps\":1e-6,\"num_hash_layers\":1,"
    "\"swiglu_limit\":10.0,\"expert_dtype\":\"fp4\",\"eos_token_id\":258,"
    "\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\","
    "\"scale_fmt\":\"ue8m0\",\"activation_scheme\":\"dynamic\","
    "\"weight_block_size\":[16,32]}}";

/* Names, rows and columns of 8-bit matrices, and of float matrices. */
static const struct {
    const char *name, *to;
    int rows, cols;
} f8[] = {
    { "layers.0.attn.wq_a", "attn_q_a.weight", 24, E },
    { "layers.0.attn.wq_b", "attn_q_b.weight", 64, 24 },
    { "layers.0.attn.wkv", "attn_kv.weight", 16, E },
    { "layers.0.attn.wo_a", "attn_output_a.weight", 32, 32 },
    { "layers.0.attn.wo_b", "attn_output_b.weight", E, 32 },
    { "layers.0.ffn.shared_experts.w1", "ffn_gate_shexp.weight", F, E },
    { "layers.0.ffn.shared_experts.w2", "ffn_down_shexp.weight", E, F },
    { "layers.0.ffn.shared_experts.w3", "ffn_up_shexp.weight", F, E },
};
static const struct {
    const char *name;
    int rows, cols;
} floats[] = {
    { "embed.weight", FOLDER_VOCAB, E },
    { "head.weight", FOLDER_VOCAB, E },
    { "norm.weight", E, 0 },
    { "hc_head_fn", 4, 4 * E },
    { "hc_head_base", 4, 0 },
    { "hc_head_scale", 1, 0 },
    { "layers.0.attn_norm.weight", E, 0 },
    { "layers.0.ffn_norm.weight", E, 0 },
    { "layers.0.hc_attn_fn", 24, 4 * E },
    { "layers.0.hc_attn_base", 24, 0 },
    { "layers.0.hc_attn_scale", 3, 0 },
    { "layers.0.hc_ffn_fn", 24, 4 * E },
    { "layers.0.hc_ffn_base", 24, 0 },
    { "layers.0.hc_ffn_scale", 3, 0 },
    { "layers.0.attn.attn_sink", 4, 0 },
    { "layers.0.attn.q_norm.weight", 24, 0 },
    { "layers.0.attn.kv_norm.weight", 16, 0 },
    { "layers.0.ffn.gate.weight", X, E },
};

static void expert_name(char out[80], int x, int no)
{
    snprintf(out, 80, "layers.0.ffn.experts.%d.w%d", x, no);
}

static void begin_folder(const char *name, const char *text)
{
    folder_begin(&folder, scratch_path(top, name));
    folder_text(&folder, "config.json", text);
    folder_bpe(&folder, false);
    stfile_begin(&file);
}

static void write_weights(void)
{
    const size_t size = stfile_end(&file);
    FILE *f = folder_create(&folder, "model.safetensors");
    if (fwrite(file.bytes, 1, size, f) != size || fclose(f) != 0)
        exit(99);
}

static void make_deepseek(enum fault fault)
{
    begin_folder("deepseek-v4", config);
    for (size_t i = 0; i < sizeof f8 / sizeof *f8; i++)
        add_f8(f8[i].name, f8[i].rows, f8[i].cols);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        add_floats(floats[i].name, floats[i].rows, floats[i].cols);
    for (int x = 0; x < X; x++)
        for (int no = 1; no <= 3; no++) {
            char name[80];
            expert_name(name, x, no);
            add_f4(name, no == 2 ? E : F, no == 2 ? F : E,
                   x == 1 ? fault : NONE);
        }
    add_table(fault);
    write_weights();
}

#define EXPERTS "model.layers.0.mlp.experts."

/* Add a tensor of all experts: blocks of 32 numbers, and their scales. */
static void add_mxfp4(const char *name, int rows, int cols)
{
    char full[120], shape[60];
    const size_t n = (size_t)X * (size_t)rows * (size_t)cols / 32;
    snprintf(full, sizeof full, "%s_blocks", name);
    snprintf(shape, sizeof shape, "%d,%d,%d,16", X, rows, cols / 32);
    uint8_t *q = stfile_add(&file, full, "U8", shape, 16 * n);
    snprintf(full, sizeof full, "%s_scales", name);
    snprintf(shape, sizeof shape, "%d,%d,%d", X, rows, cols / 32);
    uint8_t *s = stfile_add(&file, full, "U8", shape, n);
    for (int r = 0; r < X * rows; r++)
        for (int c = 0; c < cols; c += 2) {
            *q++ =
                (uint8_t)(code_of(name, r, c) | code_of(name, r, c + 1) << 4);
            if (c % 32 == 0)
                *s++ = (uint8_t)scale_of(name, r, c / 32);
        }
}

static void make_gpt_oss(void)
{
    static const struct {
        const char *name;
        int rows, cols;
    } linear[] = { { "self_attn.q_proj", 64, E },
                   { "self_attn.k_proj", 32, E },
                   { "self_attn.v_proj", 32, E },
                   { "self_attn.o_proj", E, 64 },
                   { "mlp.router", X, E } };
    begin_folder(
        "gpt-oss",
        "{\"architectures\":[\"GptOssForCausalLM\"],\"hidden_size\":64,"
        "\"intermediate_size\":32,\"num_hidden_layers\":1,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":2,"
        "\"head_dim\":16,\"vocab_size\":260,"
        "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,"
        "\"num_local_experts\":3,\"num_experts_per_tok\":2,"
        "\"sliding_window\":16,\"rope_theta\":150000,\"rope_scaling\":{"
        "\"rope_type\":\"yarn\",\"factor\":32.0,\"beta_fast\":32.0,"
        "\"beta_slow\":1.0,\"truncate\":false,"
        "\"original_max_position_embeddings\":4096},"
        "\"quantization_config\":{\"quant_method\":\"mxfp4\","
        "\"modules_to_not_convert\":[\"model.layers.*.self_attn\","
        "\"model.layers.*.mlp.router\",\"model.embed_tokens\",\"lm_head\"]}"
        "}");
    add_floats("model.embed_tokens.weight", FOLDER_VOCAB, E);
    add_floats("model.norm.weight", E, 0);
    add_floats("lm_head.weight", FOLDER_VOCAB, E);
    add_floats("model.layers.0.input_layernorm.weight", E, 0);
    add_floats("model.layers.0.post_attention_layernorm.weight", E, 0);
    add_floats("model.layers.0.self_attn.sinks", 4, 0);
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++) {
        char name[100];
        snprintf(name, sizeof name, "model.layers.0.%s.weight",
                 linear[i].name);
        add_floats(name, linear[i].rows, linear[i].cols);
        snprintf(name, sizeof name, "model.layers.0.%s.bias", linear[i].name);
        add_floats(name, linear[i].rows, 0);
    }
    add_mxfp4(EXPERTS "gate_up_proj", 2 * F, E);
    add_mxfp4(EXPERTS "down_proj", E, F);
    add_floats(EXPERTS "gate_up_proj_bias", X, 2 * F);
    add_floats(EXPERTS "down_proj_bias", X, E);
    write_weights();
}

/* ---- the file ---- */

typedef float value_fn(const char *name, int r, int c);

/* Rows to check: from row to on of n rows. Row r is row step * r + from of the
 * folder's tensor. */
struct part {
    int to, n, step, from;
};

static void check_part(const struct gguf_file *f, struct gguf_rows *rows,
                       const char *to, uint32_t dtype, const char *from,
                       struct part p, int n_cols, value_fn *value)
{
    static float x[FOLDER_VOCAB * E];
    char name[80];
    snprintf(name, sizeof name, "blk.0.%s", to);
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    const uint64_t n = (uint64_t)p.n * (uint64_t)n_cols;
    bool good =
        t && t->dtype == dtype &&
        (t->ne[0] == n_cols || value == plain_value) &&
        gguf_rows_decode(rows, f, t->index, (uint64_t)p.to * (uint64_t)n_cols,
                         n, x, NULL) == GGUF_OK;
    for (int i = 0; good && i < (int)n; i++)
        good = x[i] == value(from, i / n_cols * p.step + p.from, i % n_cols);
    ok(good, "%s has the numbers of %s", name, from);
}

static void check_all(const struct gguf_file *f, struct gguf_rows *rows,
                      bool published)
{
    static const char *const to[] = { "ffn_gate_exps.weight",
                                      "ffn_down_exps.weight",
                                      "ffn_up_exps.weight" };
    const uint32_t four = published ? GGUF_DTYPE_MXFP4 : GGUF_DTYPE_F16;
    for (size_t i = 0; i < sizeof f8 / sizeof *f8; i++)
        check_part(f, rows, f8[i].to, GGUF_DTYPE_BF16, f8[i].name,
                   (struct part){ 0, f8[i].rows, 1, 0 }, f8[i].cols, f8_value);
    for (int x = 0; x < X; x++)
        for (int no = 1; no <= 3; no++) {
            char name[80];
            const int n = no == 2 ? E : F;
            expert_name(name, x, no);
            check_part(f, rows, to[no - 1], four, name,
                       (struct part){ x * n, n, 1, 0 }, no == 2 ? F : E,
                       f4_value);
        }
    check_part(f, rows, "ffn_gate_tid2eid.weight", GGUF_DTYPE_I32,
               "layers.0.ffn.gate.tid2eid",
               (struct part){ 0, FOLDER_VOCAB, 1, 0 }, USED, table_value);
}

static void check_folder(const char *dir, const char *out,
                         struct gguf_rows *rows, bool published)
{
    struct gguf_error e;
    struct gguf_file *f = NULL;
    struct findings found = { .n = 0 };
    gguf_error_clear(&e);
    const bool good =
        folder_convert(dir, out, NULL, &e) == GGUF_OK &&
        gguf_file_open(&f, out, NULL, &e) == GGUF_OK &&
        !gguf_file_verify(
            f, NULL, (struct gguf_finding_callback){ findings_note, &found },
            &e);
    ok(good && !found.n_error, "it becomes a sound file: %s%s", found.last,
       e.message);
    if (good)
        check_all(f, rows, published);
    gguf_file_close(f);
}

static void check_deepseek(struct gguf_rows *rows, const char *out)
{
    static const struct {
        enum fault fault;
        const char *why;
    } faults[] = {
        { NO_SCALE, "scales or zero points are missing" },
        { SHAPE, "exponents do not fit its blocks" },
        { WIDE, "tid2eid': element 5 does not fit 32 bits" },
        { FLOATS, "tid2eid': F32 are not integers" },
    };
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    struct gguf_error e;
    char back[256];
    make_deepseek(NONE);
    snprintf(back, sizeof back, "%s/back", top);
    check_folder(folder.dir, out, rows, true);
    gguf_error_clear(&e);
    ok(gguf_folder_write(out, back, &p, &e) == GGUF_OK,
       "and a folder again: %s", e.message);
    check_folder(back, out, rows, false);
    gguf_error_clear(&e);
    ok(folder_convert(folder.dir, out, "Q8_0", &e) == GGUF_OK, "and Q8_0: %s",
       e.message);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        make_deepseek(faults[i].fault);
        ok(folder_convert(folder.dir, out, NULL, &e) == GGUF_E_TENSOR &&
               strstr(e.message, faults[i].why),
           "refused: %s", e.message);
    }
    scratch_clean(back);
    rmdir(back);
}

/* Gate rows and up rows alternate. */
static void check_gpt_oss(struct gguf_rows *rows, const char *out)
{
    static const struct {
        const char *to, *from;
        int rows, cols, step, first;
    } experts[] = { { "ffn_gate_exps", EXPERTS "gate_up_proj", F, E, 2, 0 },
                    { "ffn_up_exps", EXPERTS "gate_up_proj", F, E, 2, 1 },
                    { "ffn_down_exps", EXPERTS "down_proj", E, F, 1, 0 } };
    struct gguf_error e;
    struct gguf_file *f = NULL;
    make_gpt_oss();
    gguf_error_clear(&e);
    ok(folder_convert(folder.dir, out, NULL, &e) == GGUF_OK &&
           gguf_file_open(&f, out, NULL, &e) == GGUF_OK,
       "gpt-oss becomes a file: %s", e.message);
    for (size_t i = 0; f && i < sizeof experts / sizeof *experts; i++) {
        const struct part p = { 0, X * experts[i].rows, experts[i].step,
                                experts[i].first };
        char to[60], from[80];
        snprintf(to, sizeof to, "blk.0.%s.weight", experts[i].to);
        const struct gguf_tensor_info *t = gguf_file_tensor_find(f, to);
        ok(t && t->n_dims == 3 && t->ne[0] == experts[i].cols &&
               t->ne[1] == experts[i].rows && t->ne[2] == X,
           "%s has the shape of all experts", to);
        snprintf(to, sizeof to, "%s.weight", experts[i].to);
        check_part(f, rows, to, GGUF_DTYPE_MXFP4, experts[i].from, p,
                   experts[i].cols, f4_value);
        snprintf(to, sizeof to, "%s.bias", experts[i].to);
        snprintf(from, sizeof from, "%s_bias", experts[i].from);
        check_part(f, rows, to, GGUF_DTYPE_F32, from, p, 1, plain_value);
    }
    gguf_file_close(f);
    ok(folder_convert(folder.dir, out, "Q8_0", &e) == GGUF_OK,
       "gpt-oss and Q8_0: %s", e.message);
}

int main(void)
{
    struct gguf_rows *rows;
    char out[256];
    snprintf(top, sizeof top, "check-microscaling.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    if (gguf_rows_create(&rows, NULL, NULL) != GGUF_OK)
        return 99;
    snprintf(out, sizeof out, "%s/out.gguf", top);
    check_deepseek(rows, out);
    scratch_clean(folder.dir);
    rmdir(folder.dir);
    check_gpt_oss(rows, out);
    scratch_clean(folder.dir);
    rmdir(folder.dir);
    gguf_rows_destroy(rows);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
