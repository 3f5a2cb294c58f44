/* SPDX-License-Identifier: MIT */
/* check-archs.c - a small folder of each architecture becomes a sound model
 *
 * archs.h has what is made. What is checked of the result: verification (keys,
 * names and shapes as the architecture's row in model/ wants them) finds no
 * error, the model opens and computes, tensors have the numbers that they
 * should, by loops from the definitions, and keys the values.
 *
 *     check-archs DIR     leaves the folders in DIR, for other programs
 */
#include "config.h"
#include "convert/classes.h"
#include "gguf/convert.h"
#include "gguf/cpu.h"
#include "gguf/session.h"
#include "gguf/stats.h"
#include "gguf/verify.h"
#include "tests/convert/archs.h"
#include "tests/convert/findings.h"
#include "tests/convert/follow.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

static const struct arch *const lists[] = {
    archs_first,  archs_dense,     archs_kin,     archs_early,  archs_vision,
    archs_plamo,  archs_rwkv6,     archs_experts, archs_latent, archs_mixed,
    archs_routed, archs_recurrent, archs_encoder, archs_packed
};
enum { N_LISTS = sizeof lists / sizeof *lists };

static char top[200];
static bool keep;

/* ---- the result ---- */

/* The name of a pattern for a layer and an expert. */
static void fill(char out[160], const char *pattern, int il, int ie)
{
    for (; *pattern; pattern++)
        out += *pattern == '%'   ? sprintf(out, "%d", il)
               : *pattern == '@' ? sprintf(out, "%d", ie)
                                 : sprintf(out, "%c", *pattern);
    *out = 0;
}

/* Does tensor c->to of f have the numbers that it should, in all layers? */
static bool check_change(const struct folder *from, const struct gguf_file *f,
                         struct gguf_rows *rows, const struct change *c)
{
    static float x[1500000];
    char name[160];
    const bool layers = strchr(c->to, '%') != NULL;
    const bool experts = strchr(c->from, '@') != NULL;
    for (int il = 0; il < (layers ? LAYERS : 1); il++) {
        fill(name, c->to, il, 0);
        const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
        if (!t || t->n_elements > sizeof x / sizeof *x ||
            gguf_rows_get(rows, f, t->index, 0, t->n_elements, x, NULL))
            return false;
        uint64_t at = 0;
        for (int ie = 0; ie < (experts ? EXPERTS : 1); ie++) {
            fill(name, c->from, il, ie);
            const struct folder_tensor *s = folder_find(from, name);
            const uint64_t n =
                experts ? t->n_elements / EXPERTS : t->n_elements;
            for (uint64_t i = 0; i < n; i++, at++)
                if (!s || x[at] != c->value(s, i))
                    return false;
        }
    }
    return true;
}

static void make(struct folder *f, const struct arch *a, const char *dtype,
                 int n_files)
{
    char config[2000], name[48];
    snprintf(name, sizeof name, "%.31s-%.14s", a->class_name, a->arch);
    folder_begin(f, scratch_path(top, name));
    snprintf(config, sizeof config, "{\"architectures\":[\"%s\"],%s}",
             a->class_name, a->config);
    folder_text(f, "config.json", config);
    folder_tensors(f, a->tensors, a->layers ? a->layers : LAYERS, EXPERTS);
    folder_weights(f, dtype, n_files);
    if (a->vocab)
        a->vocab(f);
    else
        folder_bpe(f, n_files > 1);
}

/* ---- keys ---- */

static void put_number(char *out, const struct gguf_kv *kv)
{
    uint64_t u;
    double x;
    int yes;
    struct gguf_str text;
    if (gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK)
        sprintf(out, "%s", yes ? "true" : "false");
    else if (gguf_kv_get_uint(kv, &u, NULL) == GGUF_OK)
        sprintf(out, "%llu", (unsigned long long)u);
    else if (gguf_kv_get_float(kv, &x, NULL) == GGUF_OK)
        sprintf(out, "%.7g", x);
    else if (gguf_kv_get_str(kv, &text, NULL) == GGUF_OK)
        sprintf(out, "%.*s", (int)text.size, text.data);
    else
        sprintf(out, "?");
}

/* As archs.h has it. */
static void put_value(char out[400], const struct gguf_kv *kv)
{
    struct gguf_kv_iter it;
    struct gguf_kv e;
    if (!kv || kv->type != GGUF_VAL_ARR) {
        *out = 0;
        if (kv)
            put_number(out, kv);
        return;
    }
    gguf_kv_iter_init(&it, kv);
    for (size_t n = 0; gguf_kv_next(&it, &e) && n < 300; n += strlen(out + n))
        put_number(out + n + (n ? (size_t)sprintf(out + n, ",") : 0), &e);
}

/* "@NAME": the numbers of that tensor, of each layer if it has "%". */
static const char *expected(const char *text, char out[400])
{
    char name[160];
    size_t n = 0;
    if (*text != '@')
        return text;
    for (int il = 0; il < (strchr(text, '%') ? LAYERS : 1); il++) {
        fill(name, text + 1, il, 0);
        n += (size_t)sprintf(out + n, "%s%.7g", n ? "," : "",
                             (double)folder_value(name, 0));
    }
    return out;
}

static void check_keys(const struct arch *a, const struct gguf_file *f)
{
    char key[128], value[400], buf[400];
    for (size_t i = 0; i < 12 && a->keys[i][0]; i++) {
        const char *want = expected(a->keys[i][1], buf);
        if (*a->keys[i][0] == '/')
            snprintf(key, sizeof key, "%s", a->keys[i][0] + 1);
        else
            snprintf(key, sizeof key, "%s.%s", a->arch, a->keys[i][0]);
        put_value(value, f ? gguf_file_kv_find(f, key) : NULL);
        ok(!strcmp(value, want), "%s: %s is %s: %s", a->class_name, key, want,
           value);
    }
}

/* ---- computing ---- */

static enum gguf_status compute(const struct gguf_file *f,
                                struct gguf_error *err)
{
    static const gguf_token ids[] = { 65, 66, 67, 68, 69 };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch batch = GGUF_BATCH_INIT;
    struct gguf_model *m = NULL;
    struct gguf_session *s = NULL;
    enum gguf_status st = gguf_model_open(&m, f, NULL, err);
    if (st == GGUF_OK)
        st = gguf_cpu_backend_create(&p.backend, NULL, err);
    p.n_ctx = 16;
    if (st == GGUF_OK)
        st = gguf_session_create(&s, m, &p, err);
    batch.token = ids;
    batch.n = sizeof ids / sizeof *ids;
    if (st == GGUF_OK && gguf_model_get_info(m)->encodes_first) {
        st = gguf_session_encode(s, &batch, err);
        batch.token = &gguf_model_get_info(m)->decoder_start;
        batch.n = 1;
    }
    if (st == GGUF_OK)
        st = gguf_session_decode(s, &batch, err);
    gguf_session_destroy(s);
    gguf_backend_destroy(p.backend);
    gguf_model_destroy(m);
    return st;
}

static bool is_arch(const struct gguf_file *f, const char *arch)
{
    struct gguf_str name = { "", 0 };
    gguf_kv_get_str(gguf_file_kv_find(f, "general.architecture"), &name, NULL);
    return name.size == strlen(arch) && !memcmp(name.data, arch, name.size);
}

static void check_arch(const struct arch *a, struct gguf_rows *rows)
{
    static struct folder f;
    struct gguf_error e;
    struct gguf_file *file = NULL;
    struct findings seen = { 0, "" };
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    make(&f, a, "F32", 1);
    enum gguf_status st = folder_convert(f.dir, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_open(&file, out, NULL, &e);
    if (st == GGUF_OK)
        st = gguf_file_verify(file, NULL, findings_note, &seen, &e);
    ok(st == GGUF_OK && !seen.n_errors && is_arch(file, a->arch),
       "%s becomes a sound %s: %s%s", a->class_name, a->arch, e.message,
       seen.first);
    if (st == GGUF_OK)
        st = compute(file, &e);
    ok(st == GGUF_OK, "%s computes: %s", a->class_name, e.message);
    ok(folder_roundtrip(out, strrchr(f.dir, '/') + 1,
                        scratch_path(top, "back"), &e),
       "%s: a folder of it becomes the same file %s", a->class_name,
       e.message);
    for (size_t i = 0; i < 10 && a->change[i].to; i++)
        ok(file && check_change(&f, file, rows, &a->change[i]),
           "%s: numbers of %s", a->class_name, a->change[i].to);
    check_keys(a, file);
    gguf_file_close(file);
    if (!keep)
        scratch_clean(top);
}

/* ---- the order of keys ---- */

/* Keys of the first file of a class, one after the other with nothing between,
 * as the converter of llama.cpp writes them: what it takes from tensors comes
 * first, the type after what all configurations have, the version after what
 * the class adds, then the tokenizer, whose ids that a text says come before
 * those that a number says. */
static const struct {
    const char *class_name, *keys;
} orders[] = {
    { "LlamaForCausalLM",
      "llama.attention.layer_norm_rms_epsilon general.file_type "
      "llama.vocab_size llama.rope.dimension_count "
      "general.quantization_version tokenizer.ggml.model "
      "tokenizer.ggml.pre" },
    { "LlamaForCausalLM",
      "tokenizer.ggml.eos_token_id tokenizer.ggml.bos_token_id "
      "tokenizer.ggml.add_bos_token tokenizer.chat_template" },
    { "ApertusForCausalLM",
      "general.architecture xielu.alpha_n xielu.alpha_p xielu.beta xielu.eps "
      "general.type" },
    { "BloomForCausalLM",
      "bloom.attention.layer_norm_epsilon general.file_type "
      "general.quantization_version tokenizer.ggml.model" },
    { "CodeShellForCausalLM",
      "codeshell.attention.layer_norm_epsilon general.file_type "
      "codeshell.rope.freq_base" },
    { "PhiForCausalLM",
      "phi2.rope.dimension_count general.file_type "
      "tokenizer.ggml.add_bos_token general.quantization_version" },
    { "Gemma2ForCausalLM",
      "gemma2.attention.layer_norm_rms_epsilon gemma2.attention.key_length "
      "gemma2.attention.value_length general.file_type "
      "gemma2.attn_logit_softcapping" },
    { "MiniCPM3ForCausalLM",
      "general.size_label general.file_type minicpm3.context_length" },
    { "Phi3ForCausalLM", "phi3.rope.freq_base general.file_type "
                         "phi3.attention.sliding_window" },
    { "ChatGLMModel", "chatglm.attention.layer_norm_rms_epsilon "
                      "general.file_type chatglm.rope.dimension_count" },
    { "FalconH1ForCausalLM",
      "falcon-h1.attention.layer_norm_rms_epsilon general.file_type "
      "falcon-h1.vocab_size" },
    { "Rwkv6ForCausalLM",
      "rwkv6.feed_forward_length general.file_type "
      "rwkv6.attention.head_count general.quantization_version" },
    { "BertModel", "bert.attention.causal general.quantization_version "
                   "tokenizer.ggml.token_type_count tokenizer.ggml.model" },
    { "LLaDAModelLM",
      "llada.vocab_size llada.rope.dimension_count llada.embedding_length "
      "llada.feed_forward_length" },
    { "Step3p5ForCausalLM", "step35.rope.freq_base step35.rope.freq_base_swa "
                            "step35.attention.layer_norm_rms_epsilon" },
    { "Qwen3_5MoeForCausalLM",
      "qwen35moe.expert_shared_feed_forward_length "
      "qwen35moe.nextn_predict_layers qwen35moe.ssm.conv_kernel" },
    { "DeepseekOCRForCausalLM",
      "deepseek2-ocr.attention.layer_norm_rms_epsilon "
      "deepseek2-ocr.expert_count" },
    { "DreamModel", "dream.attention.causal tokenizer.ggml.mask_token_id "
                    "general.quantization_version" },
    { "Plamo3ForCausalLM", "plamo3.rope.freq_base plamo3.rope.freq_base_swa "
                           "plamo3.attention.layer_norm_rms_epsilon" },
};

/* The first of a class. */
static const struct arch *find_class(const char *class_name)
{
    for (size_t k = 0; k < N_LISTS; k++)
        for (const struct arch *a = lists[k]; a->class_name; a++)
            if (!strcmp(a->class_name, class_name))
                return a;
    exit(99);
}

static void check_orders(void)
{
    static struct folder f;
    struct gguf_error e;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const struct arch *a = find_class(orders[i].class_name);
        struct gguf_file *file = NULL;
        gguf_error_clear(&e);
        make(&f, a, "F32", 1);
        const char *out = scratch_path(top, "out.gguf");
        ok(folder_convert(f.dir, out, NULL, &e) == GGUF_OK &&
               gguf_file_open(&file, out, NULL, &e) == GGUF_OK &&
               follow(file, orders[i].keys),
           "%s: %s %s", orders[i].class_name, orders[i].keys, e.message);
        gguf_file_close(file);
        scratch_clean(top);
    }
}

/* Several files, BF16: the same numbers in files of their own types. */
static void check_files(struct gguf_rows *rows)
{
    static struct folder f;
    struct gguf_error e;
    struct gguf_file *file = NULL;
    const char *out = scratch_path(top, "out.gguf");
    gguf_error_clear(&e);
    make(&f, &archs_first[2], "BF16", 3);
    bool good = folder_convert(f.dir, out, NULL, &e) == GGUF_OK &&
                gguf_file_open(&file, out, NULL, &e) == GGUF_OK;
    for (size_t i = 0; good && i < 4; i++)
        good = check_change(&f, file, rows, &archs_first[2].change[i]);
    ok(good, "three files of BF16, experts in all of them: %s", e.message);
    good = file != NULL;
    for (size_t i = 0; good && i < gguf_file_n_tensors(file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
        const bool vector = t->n_dims < 2 || strstr(t->name.data, "gate_inp.");
        good = t->dtype == (vector ? GGUF_DTYPE_F32 : GGUF_DTYPE_BF16);
    }
    ok(good, "matrices are BF16, vectors and routers F32");
    gguf_file_close(file);
    scratch_clean(top);
}

/* Models of known classes that files of the architecture cannot say. */
static void check_refused(void)
{
    static const struct {
        const char *class_name, *config;
    } cases[] = {
        { "BailingMoeForCausalLM", "\"norm_head\":true" },
        { "AfmoeForCausalLM", "\"mup_enabled\":false" },
        { "AfmoeForCausalLM",
          "\"mup_enabled\":true,\"global_attn_every_n_layers\":3" },
        { "BitNetForCausalLM", "\"hidden_act\":\"relu2\"" },
        { "Cohere2MoeForCausalLM",
          "\"num_shared_experts\":1,"
          "\"shared_expert_combination_strategy\":\"sum\"" },
        { "LagunaForCausalLM",
          "\"sliding_window\":16,\"layer_types\":[\"sliding_attention\","
          "\"full_attention\"]" },
        { "LagunaForCausalLM", "\"moe_router_logit_softcapping\":30.0" },
        { "MiMoV2FlashForCausalLM",
          "\"head_dim\":8,\"swa_head_dim\":4,\"v_head_dim\":8" },
        { "Step3p5ForCausalLM",
          "\"layer_types\":[\"full_attention\",\"sliding_attention\"],"
          "\"partial_rotary_factors\":[1.0,1.0]" },
        { "DeepseekOCRForCausalLM", "\"use_mla\":true" },
    };
    static struct folder f;
    char config[400];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_convert *c;
        struct gguf_error e;
        folder_begin(&f, scratch_path(top, "refused"));
        snprintf(config, sizeof config,
                 "{\"architectures\":[\"%s\"]," SIZES ",%s}",
                 cases[i].class_name, cases[i].config);
        folder_text(&f, "config.json", config);
        const enum gguf_status st = gguf_convert_open(&c, f.dir, NULL, &e);
        ok(st == GGUF_E_ARCH && strstr(e.message, cases[i].class_name),
           "%s with %s is refused: %s", cases[i].class_name, cases[i].config,
           e.message);
        gguf_convert_close(c);
    }
    scratch_clean(top);
}

/* Tensors that are numbers of keys: of one number, in each layer. */
static void check_numbers(void)
{
    static const struct {
        const char *from, *to, *why;
    } rows[] = {
        { "beta 1", "beta 2", "is of 2 numbers, not of one" },
        { L "mlp.act_fn.beta", "model.layers.1.mlp.act_fn.beta",
          "after a layer without one" },
    };
    static struct folder f;
    const struct arch *a = archs_kin;
    const char *out = scratch_path(top, "out.gguf");
    struct gguf_error e;
    while (a->class_name && strcmp(a->arch, "apertus") != 0)
        a++;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char lines[2000];
        const char *at = strstr(a->tensors, rows[i].from);
        struct arch changed = *a;
        gguf_error_clear(&e);
        snprintf(lines, sizeof lines, "%.*s%s%s", (int)(at - a->tensors),
                 a->tensors, rows[i].to, at + strlen(rows[i].from));
        changed.tensors = lines;
        make(&f, &changed, "F32", 1);
        ok(folder_convert(f.dir, out, NULL, &e) == GGUF_E_TENSOR &&
               strstr(e.message, rows[i].why),
           "a tensor %s", e.message);
        scratch_clean(top);
    }
}

/* Rows of heads that are put in halves: whole heads, and not any number, since
 * each takes memory. */
static void check_halves(void)
{
    static const struct {
        const char *rows, *why;
    } cases[] = {
        { "33", "has no rows of whole heads" },
        { "32776", "has too many heads" }, /* 4097 of 8 */
    };
    static const char from[] = "self_attn.q_proj.bias 32\n";
    static struct folder f;
    const struct arch *a = archs_vision;
    struct gguf_error e;
    while (a->class_name && strncmp(a->class_name, "Glm4v", 5) != 0)
        a++;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char lines[8000];
        const char *at = strstr(a->tensors, from);
        struct arch changed = *a;
        gguf_error_clear(&e);
        snprintf(lines, sizeof lines, "%.*s%.*s%s%s", (int)(at - a->tensors),
                 a->tensors, (int)sizeof from - 4, from, cases[i].rows,
                 at + sizeof from - 2);
        changed.tensors = lines;
        make(&f, &changed, "F32", 1);
        ok(folder_convert(f.dir, scratch_path(top, "out.gguf"), NULL, &e) ==
                   GGUF_E_TENSOR &&
               strstr(e.message, cases[i].why),
           "a tensor %s", e.message);
        scratch_clean(top);
    }
}

/* The beginning of a file. */
static void read_text(const char *dir, const char *name, char *out, size_t n)
{
    FILE *f = fopen(scratch_path(dir, name), "rb");
    const size_t got = f ? fread(out, 1, n - 1, f) : 0;
    out[got] = 0;
    if (f)
        fclose(f);
}

/* Rows of zeros that a folder does not have: the folder that is made again has
 * none of them either, where transformers takes fewer. */
static void check_filled(void)
{
    static struct folder f;
    static char text[100000];
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    const struct arch *a = archs_experts;
    const char *out = scratch_path(top, "out.gguf");
    const char *back = scratch_path(top, "back");
    struct gguf_error e;
    while (a->class_name && strcmp(a->arch, "gemma3n") != 0)
        a++;
    gguf_error_clear(&e);
    make(&f, a, "BF16", 1);
    p.no_sync = 1;
    ok(folder_convert(f.dir, out, NULL, &e) == GGUF_OK &&
           gguf_folder_write(out, back, &p, &e) == GGUF_OK,
       "BF16 with rows of zeros: %s", e.message);
    read_text(back, "model.safetensors", text, sizeof text);
    ok(strstr(text + 8, "\"model.embed_tokens.weight\":{\"dtype\":\"BF16\","
                        "\"shape\":[260,32]") &&
           strstr(text + 8, "\"model.embed_tokens_per_layer.weight\":{"
                            "\"dtype\":\"BF16\",\"shape\":[256,5632]"),
       "a folder of it has as many as transformers takes");
    read_text(back, "config.json", text, sizeof text);
    ok(strstr(text, "\"vocab_size_per_layer_input\": 256") &&
           strstr(text, "\"vocab_size\": 260"),
       "and says how many");
    scratch_clean(back);
    scratch_clean(top);
}

/* Every row of the table is met here. */
static void check_all_met(void)
{
    for (size_t i = 0; gg_convert_arch_row(i); i++) {
        const struct gg_convert_arch *row = gg_convert_arch_row(i);
        bool met = false;
        for (size_t k = 0; k < N_LISTS; k++)
            for (const struct arch *a = lists[k]; a->class_name; a++)
                met = met ||
                      (!strcmp(row->arch, a->arch) &&
                       gg_convert_arch_has(
                           row, (struct gguf_str){ a->class_name,
                                                   strlen(a->class_name) }));
        ok(met, "%s is tested", row->classes);
    }
}

int main(int argc, char **argv)
{
    struct gguf_rows *rows;
    keep = argc > 1;
    if (keep)
        snprintf(top, sizeof top, "%.150s", argv[1]);
    else
        snprintf(top, sizeof top, "check-archs-convert.%d.tmp", (int)getpid());
    if (system(NULL) == 0 || gguf_rows_create(&rows, NULL, NULL) != GGUF_OK)
        return 99;
    static struct folder f;
    folder_begin(&f, top);
    for (size_t i = 0; i < N_LISTS; i++)
        for (const struct arch *a = lists[i]; a->class_name; a++)
            check_arch(a, rows);
    if (!keep) {
        check_files(rows);
        check_orders();
        check_refused();
        check_numbers();
        check_halves();
        check_filled();
        check_all_met();
        scratch_clean(top);
        rmdir(top);
    }
    gguf_rows_destroy(rows);
    return done_testing();
}
