/* SPDX-License-Identifier: MIT */
/* check-adapter.c - PEFT folders of adapters become files
 *
 * With the converted adapter merged in, each matrix of the converted model is
 * W + alpha / rank B A in double precision. This includes matrices whose rows
 * the conversion permutes, and the embedding.
 */
#include "config.h"
#include "gguf/stats.h"
#include "tests/convert/folder.h"
#include "tests/convert/key_order.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/stfile.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { N = 32, RANK = 4 };

static char top[200];
static struct folder folder;
static struct stfile file;

#define L "model.layers.%."
static const char tensors[] =
    "model.embed_tokens.weight 260 32\nmodel.norm.weight 32\n" L
    "input_layernorm.weight 32\n" L "post_attention_layernorm.weight 32\n" L
    "self_attn.q_proj.weight 32 32\n" L "self_attn.k_proj.weight 16 32\n" L
    "self_attn.v_proj.weight 16 32\n" L "self_attn.o_proj.weight 32 32\n" L
    "mlp.gate_proj.weight 48 32\n" L "mlp.up_proj.weight 48 32\n" L
    "mlp.down_proj.weight 32 48\n";

/* Adapted modules, with their rows and columns. */
static const struct {
    const char *name, *to;
    int rows, cols;
} modules[] = {
    { "model.layers.0.self_attn.q_proj", "blk.0.attn_q.weight", 32, 32 },
    { "model.layers.1.self_attn.k_proj", "blk.1.attn_k.weight", 16, 32 },
    { "model.layers.0.mlp.down_proj", "blk.0.ffn_down.weight", 32, 48 },
    { "model.embed_tokens", "token_embd.weight", 260, 32 },
};

/* Differences from the name "base_model.model.MODULE.lora_A.weight": another
 * prefix, the prefix that MODULE lacks, text after "lora_A". */
static struct {
    const char *front, *lack, *mid;
} names = { "base_model.model.", "", "" };

/* Element i of matrix A or B, by its name in the file. */
static float half_value(const char *module, char half, size_t i)
{
    char name[100];
    snprintf(name, sizeof name, "%s %c", module, half);
    return folder_value(name, i);
}

static void put_half(const char *name, const char *module, char half, int rows,
                     int cols)
{
    char text[300], shape[40];
    const size_t n_lack = strlen(names.lack);
    const char *as =
        strncmp(module, names.lack, n_lack) ? module : module + n_lack;
    const char *end = strstr(name, ".weight");
    snprintf(text, sizeof text, "%s%s%.*s%s%s", names.front, as,
             (int)(strlen(name) - strlen(end ? end : "")), name,
             end ? names.mid : "", end ? end : "");
    snprintf(shape, sizeof shape, "%d,%d", rows, cols);
    const size_t n = (size_t)rows * (size_t)cols;
    uint8_t *p = stfile_add(&file, text, "F32", shape, 4 * n);
    for (size_t i = 0; i < n; i++)
        gg_bytes_store32le(p + 4 * i,
                           gg_bytes_f32_bits(half_value(module, half, i)));
}

static void put_file(const char *dir, const char *name)
{
    const size_t size = stfile_end(&file);
    FILE *f = fopen(scratch_path(dir, name), "wb");
    if (!f || fwrite(file.bytes, 1, size, f) != size || fclose(f) != 0)
        exit(99);
}

/* more: a tensor that is neither A nor B; skip: leave out the last B. */
static void make_adapter(const char *config, const char *more, bool skip)
{
    folder_begin(&folder, scratch_path(top, "lora"));
    folder_text(&folder, "adapter_config.json", config);
    stfile_begin(&file);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        const bool embed = modules[i].rows == FOLDER_VOCAB;
        const int rows = modules[i].rows, cols = modules[i].cols;
        put_half(embed ? ".lora_embedding_A" : ".lora_A.weight",
                 modules[i].name, 'A', RANK, embed ? rows : cols);
        if (!skip || i + 1 < sizeof modules / sizeof *modules)
            put_half(embed ? ".lora_embedding_B" : ".lora_B.weight",
                     modules[i].name, 'B', embed ? cols : rows, RANK);
    }
    if (more)
        stfile_add(&file, more, "F32", "4,4", 64);
    put_file(folder.dir, "adapter_model.safetensors");
}

static void make_base(void)
{
    folder_begin(&folder, scratch_path(top, "hf"));
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":32,"
                "\"intermediate_size\":48,\"num_hidden_layers\":2,"
                "\"num_attention_heads\":4,\"num_key_value_heads\":2,"
                "\"vocab_size\":260,\"max_position_embeddings\":64,"
                "\"rms_norm_eps\":1e-6}");
    folder_tensors(&folder, tensors, 2, 1);
    folder_weights(&folder, "F32", 1);
    folder_bpe(&folder, false);
}

static enum gguf_status convert_adapter(const char *base,
                                        struct gguf_error *err)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c;
    struct gguf_quant *q = NULL;
    struct gguf_recipe *r = NULL;
    struct gguf_quant_params qp = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    p.base = base;
    gguf_error_clear(err);
    enum gguf_status st =
        gguf_convert_open(&c, scratch_path(top, "lora"), &p, err);
    o.force = o.no_sync = 1;
    if (st == GGUF_OK)
        st = gguf_recipe_preset(&r, "COPY", NULL, err);
    qp.recipe = r;
    if (st == GGUF_OK)
        st = gguf_convert_create_job(&q, c, &qp, err);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, scratch_path(top, "lora.gguf"), &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    gguf_convert_close(c);
    return st;
}

/* Merge the adapter into the model. */
static enum gguf_status merge_adapter(struct gguf_error *err)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant_lora lora = { NULL, 1, "lora.gguf" };
    struct gguf_file *of;
    struct gguf_recipe *r = NULL;
    struct gguf_quant *q = NULL;
    enum gguf_status st =
        gguf_file_open(&of, scratch_path(top, "lora.gguf"), NULL, err);
    if (st == GGUF_OK)
        st = gguf_recipe_preset(&r, "COPY", NULL, err);
    lora.file = of;
    p.recipe = r;
    p.loras = &lora;
    p.n_loras = 1;
    o.force = o.no_sync = 1;
    if (st == GGUF_OK)
        st = gguf_quant_create(&q, scratch_path(top, "hf.gguf"), &p, err);
    if (st == GGUF_OK)
        st = gguf_quant_run(q, scratch_path(top, "merged.gguf"), &o, err);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(r);
    gguf_file_close(of);
    return st;
}

/* Row of the folder's matrix that becomes row r of the file's: RoPE pairs are
 * halves in the one and neighbours in the other. */
static int row_of(size_t m, int r)
{
    const int head = 8;
    return strstr(modules[m].name, "q_proj") ||
                   strstr(modules[m].name, "k_proj")
               ? r / head * head + r % 2 * (head / 2) + r % head / 2
               : r;
}

static double want_of(size_t m, int row, int col, double factor)
{
    const char *name = modules[m].name;
    const int rows = modules[m].rows, cols = modules[m].cols;
    const bool embed = rows == FOLDER_VOCAB;
    char weight[100];
    double sum = 0;
    for (int k = 0; k < RANK; k++)
        sum +=
            embed
                ? (double)half_value(name, 'A', (size_t)(k * rows + row)) *
                      (double)half_value(name, 'B', (size_t)(col * RANK + k))
                : (double)half_value(name, 'B', (size_t)(row * RANK + k)) *
                      (double)half_value(name, 'A', (size_t)(k * cols + col));
    snprintf(weight, sizeof weight, "%s.weight", name);
    return (double)folder_value(weight, (uint64_t)(row * cols + col)) +
           factor * sum;
}

static void check_merged(const char *what, double factor)
{
    static float x[FOLDER_VOCAB * N];
    struct gguf_error e;
    struct gguf_file *f = NULL;
    struct gguf_rows *rows = NULL;
    gguf_error_clear(&e);
    bool good = merge_adapter(&e) == GGUF_OK &&
                gguf_file_open(&f, scratch_path(top, "merged.gguf"), NULL,
                               &e) == GGUF_OK &&
                gguf_rows_create(&rows, NULL, &e) == GGUF_OK;
    ok(good, "%s: merged %s", what, e.message);
    for (size_t m = 0; good && m < sizeof modules / sizeof *modules; m++) {
        const struct gguf_tensor_info *t =
            gguf_file_tensor_find(f, modules[m].to);
        const int cols = modules[m].cols;
        double worst = 0;
        good = t && t->n_elements <= sizeof x / sizeof *x &&
               !gguf_rows_decode(rows, f, t->index, 0, t->n_elements, x, NULL);
        for (int i = 0; good && i < modules[m].rows * cols; i++)
            worst =
                fmax(worst, fabs((double)x[i] - want_of(m, row_of(m, i / cols),
                                                        i % cols, factor)));
        ok(good && worst < 1e-6, "%s: %s, %.1e at most", what, modules[m].to,
           worst);
    }
    gguf_file_close(f);
    gguf_rows_destroy(rows);
}

/* Keys have the order and the type of llama.cpp's adapter converter. */
static void check_order(void)
{
    struct gguf_error e;
    struct gguf_file *f = NULL;
    gguf_error_clear(&e);
    ok(gguf_file_open(&f, scratch_path(top, "lora.gguf"), NULL, &e) ==
               GGUF_OK &&
           keys_follow(f, "general.architecture general.type adapter.type") &&
           keys_follow(f, "adapter.lora.alpha general.quantization_version "
                          "general.file_type"),
       "the order of keys %s", e.message);
    gguf_file_close(f);
}

/* Names as wrappers, older versions and other classes write them. */
static void check_names(const char *base, const char *config)
{
    static const struct {
        const char *front, *lack, *mid;
    } ways[] = {
        { "", "", "" },
        { "base_model.model.", "", ".default" },
        { "base_model.model.", "model.", "" }, /* AutoModel has no prefix */
        { "base_model.model.", "", ".sql" },   /* the adapter's own name */
        { "base_model.model._orig_mod.", "", "" },
        { "base_model.model.model.language_model.", "model.", ".default" },
        { "base_model.model.language_model.", "", "" },
        { "_fsdp_wrapped_module._orig_mod._fsdp_wrapped_module.base_model."
          "model.pretrained_model._fsdp_wrapped_module._orig_mod.",
          "", ".default" },
    };
    struct gguf_error e;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        names.front = ways[i].front;
        names.lack = ways[i].lack;
        names.mid = ways[i].mid;
        make_adapter(config, NULL, false);
        const enum gguf_status st = convert_adapter(base, &e);
        ok(st == GGUF_OK, "names '%s...' without '%s' %s", names.front,
           names.lack, e.message);
        check_merged(names.front, 6.0 / RANK);
    }
    names.front = "base_model.model.";
    names.lack = names.mid = "";
}

#define CONFIG(...)                                                           \
    "{\"peft_type\":\"LORA\",\"base_model_name_or_path\":\"some/model\","     \
    "\"r\":4,\"lora_alpha\":6,\"bias\":\"none\"" __VA_ARGS__ "}"

static void check_refused_adapter(const char *config, const char *more,
                                  bool skip, const char *base,
                                  const char *word)
{
    struct gguf_error e;
    make_adapter(config, more, skip);
    ok(convert_adapter(base, &e) != GGUF_OK && strstr(e.message, word),
       "refused: %s", e.message);
}

int main(void)
{
    struct gguf_error e;
    snprintf(top, sizeof top, "check-adapter.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    make_base();
    char *base = strdup(scratch_path(top, "hf"));
    char *gguf = strdup(scratch_path(top, "hf.gguf"));
    ok(folder_convert(base, gguf, NULL, &e) == GGUF_OK, "the model %s",
       e.message);
    make_adapter(CONFIG(), NULL, false);
    ok(convert_adapter(base, &e) == GGUF_OK, "by the model's folder %s",
       e.message);
    check_merged("a folder", 6.0 / RANK);
    check_order();
    ok(convert_adapter(gguf, &e) == GGUF_OK, "by the model's file %s",
       e.message);
    check_merged("a file", 6.0 / RANK);
    make_adapter(CONFIG(",\"use_rslora\":true"), NULL, false);
    ok(convert_adapter(base, &e) == GGUF_OK, "with use_rslora %s", e.message);
    check_merged("use_rslora", 6.0 / 2);

    check_names(base, CONFIG());
    check_names(gguf, CONFIG());

    check_refused_adapter(CONFIG(), NULL, false, NULL, "'some/model'");
    check_refused_adapter(CONFIG(), NULL, true, base, "lacks its other half");
    for (int i = 0; i < 2; i++)
        check_refused_adapter(
            CONFIG(),
            "base_model.model.model.layers.2.self_attn.q_proj.lora_A."
            "weight",
            false, i ? gguf : base,
            "belongs to layer 2, the base model has 2, from 0 on; --base may name "
            "another model");
    check_refused_adapter(CONFIG(), "base_model.model.lm_head.weight", false,
                          base, "no place");
    check_refused_adapter(CONFIG(), "base_model.model.model.odd.lora_A.weight",
                          false, base,
                          "'base_model.model.model.odd.lora_A.weight'");
    check_refused_adapter(CONFIG(",\"use_dora\":true"), NULL, false, base,
                          "use_dora");
    check_refused_adapter(CONFIG(",\"lora_bias\":true"), NULL, false, base,
                          "lora_bias");
    check_refused_adapter(CONFIG(",\"alpha_pattern\":{\"x\":1}"), NULL, false,
                          base, "alpha_pattern");
    check_refused_adapter(
        CONFIG(",\"use_rslora\":true,\"rank_pattern\":{\"x\":8}"), NULL, false,
        base, "rank_pattern");
    check_refused_adapter(
        "{\"peft_type\":\"LORA\",\"modules_to_save\":[\"lm_head\"],"
        "\"lora_alpha\":1}",
        NULL, false, base, "modules_to_save");
    check_refused_adapter("{\"peft_type\":\"IA3\"}", NULL, false, base,
                          "peft_type");
    check_refused_adapter("{\"peft_type\":\"LORA\",\"bias\":\"all\"}", NULL,
                          false, base, "bias");
    check_refused_adapter("{\"peft_type\":\"LORA\"}", NULL, false, base,
                          "lora_alpha");
    check_refused_adapter("{", NULL, false, base, "adapter_config.json: JSON");
    free(base);
    free(gguf);
    scratch_clean(scratch_path(top, "hf"));
    scratch_clean(scratch_path(top, "lora"));
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
