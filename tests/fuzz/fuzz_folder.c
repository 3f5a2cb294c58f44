/* SPDX-License-Identifier: MIT */
/* fuzz_folder.c - a Hugging Face folder: its texts, and the weights of a small
 * llama; as a language model and as a projector; or one file of an image model
 *
 * The input is a sequence of files, each a line with its name and then its
 * content, with a byte 0x1e between them. A file NAME.tensors is a list of
 * tensors (tensors.c) and becomes NAME.safetensors. model.safetensors is one of
 * zeros, unless the input has it. The content of a file "as" is a class, for
 * folders of an unknown one. Without config.json, model.safetensors is an image
 * or video model, or the folder has one of diffusers.
 *
 * Files outside of the folder must not be opened, and a folder of some KB must
 * not take more than 64 MB. A small plan is written.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/failalloc.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/projectors.h"
#include "tests/fuzz/tensors.h"

#include <stdio.h>
#include <string.h>

#define FAR "far:f/"

enum {
    MOST_MEMORY = 64 << 20, /* bytes that a plan may take */
    MOST_FILES = 32,
    MOST_WRITTEN = 1 << 20, /* bytes of tensors of plans that are written */
    MOST_NAME = 128
};

/* Rows of 8 numbers: 8 x 8 matrices, and vectors. */
#define M(NAME, FROM, TO)                                                     \
    "\"" NAME "\":{\"dtype\":\"F32\",\"shape\":[8,8],\"data_offsets\":[" FROM \
    "," TO "]},"
#define V(NAME, FROM, TO, END)                                                \
    "\"" NAME "\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[" FROM   \
    "," TO "]}" END
#define L "model.layers.0."
static const char header[] = "{" M("model.embed_tokens.weight", "0", "256")
    M("lm_head.weight", "256", "512") M(L "self_attn.q_proj.weight", "512",
                                        "768")
        M(L "self_attn.k_proj.weight", "768", "1024")
            M(L "self_attn.v_proj.weight", "1024", "1280")
                M(L "self_attn.o_proj.weight", "1280", "1536")
                    M(L "mlp.gate_proj.weight", "1536", "1792")
                        M(L "mlp.up_proj.weight", "1792", "2048")
                            M(L "mlp.down_proj.weight", "2048", "2304")
                                V("model.norm.weight", "2304", "2336", ",")
                                    V(L "input_layernorm.weight", "2336",
                                      "2368", ",")
                                        V(L "post_attention_layernorm.weight",
                                          "2368", "2400", "}");
enum { NUMBERS = 2400 };

struct far_file {
    const uint8_t *name, *data;
    size_t n_name, size;
    char made_name[MOST_NAME];
    uint8_t *made; /* data, if it was made from a list of tensors */
};

struct far_folder {
    struct far_file file[MOST_FILES];
    size_t n;
};

static bool far_takes(void *user, const char *path)
{
    (void)user;
    return !strncmp(path, "far:", 4);
}

static enum gguf_status far_read(void *user, uint64_t off, void *dst,
                                 size_t size, struct gguf_error *err)
{
    const struct far_file *f = user;
    (void)err;
    MUST(size && off <= f->size && size <= f->size - off);
    memcpy(dst, f->data + off, size);
    return GGUF_OK;
}

static enum gguf_status far_open(void *user, const char *path,
                                 struct gguf_reader *out,
                                 struct gguf_error *err)
{
    struct far_folder *d = user;
    const char *name = path + sizeof FAR - 1;
    MUST(!strncmp(path, FAR, sizeof FAR - 1) && !strstr(name, "..") &&
         *name != '/');
    for (size_t i = 0; i < d->n; i++)
        if (d->file[i].n_name == strlen(name) &&
            !memcmp(d->file[i].name, name, strlen(name))) {
            out->user = &d->file[i];
            out->size = d->file[i].size;
            out->read_at = far_read;
            return GGUF_OK;
        }
    return gguf_error_set(err, GGUF_E_NOTFOUND, "is not there");
}

/* Make NAME.safetensors of a file NAME.tensors. */
static void make_tensors(struct far_file *f)
{
    static const char end[] = ".tensors";
    const size_t n = f->n_name - (f->n_name < sizeof end ? 0 : sizeof end - 1);
    if (f->n_name < sizeof end || f->n_name > MOST_NAME / 2 ||
        memcmp(f->name + n, end, sizeof end - 1))
        return;
    const int k = snprintf(f->made_name, MOST_NAME, "%.*s.safetensors", (int)n,
                           (const char *)f->name);
    f->n_name = k < 0 ? 0 : (size_t)k;
    f->name = (const uint8_t *)f->made_name;
    f->made = tensors_make(f->data, f->size, &f->size);
    f->data = f->made;
}

/* Split the input into files; the last is that of the weights. */
static void take_files(struct far_folder *d, const uint8_t *data, size_t size,
                       const uint8_t *weights, size_t n_weights)
{
    static const char name[] = "model.safetensors";
    while (size && d->n + 1 < MOST_FILES) {
        const uint8_t *end = memchr(data, 0x1e, size);
        const size_t n = end ? (size_t)(end - data) : size;
        const uint8_t *line = memchr(data, '\n', n);
        const size_t k = line ? (size_t)(line - data) : n;
        struct far_file *f = &d->file[d->n++];
        *f = (struct far_file){ .name = data,
                                .data = data + k + (k < n),
                                .n_name = k,
                                .size = n - k - (k < n) };
        make_tensors(f);
        data += n + (n < size);
        size -= n + (n < size);
    }
    d->file[d->n++] = (struct far_file){ .name = (const uint8_t *)name,
                                         .data = weights,
                                         .n_name = sizeof name - 1,
                                         .size = n_weights };
}

static const struct far_file *find_file(const struct far_folder *d,
                                        const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->file[i].n_name == strlen(name) &&
            !memcmp(d->file[i].name, name, strlen(name)))
            return &d->file[i];
    return NULL;
}

/* Write a small plan. A folder may have tensors that cannot be read. */
static void write_plan(struct gguf_convert *c)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *r;
    struct gguf_quant *q;
    struct gguf_error err;
    gguf_error_clear(&err);
    MUST(gguf_recipe_preset(&r, "COPY", NULL, NULL) == GGUF_OK);
    p.recipe = r;
    o.no_sync = true;
    if (gguf_convert_create_job(&q, c, &p, &err) == GGUF_OK) {
        uint64_t size = 0;
        for (size_t i = 0; i < gguf_quant_n_tensors(q); i++)
            size += gguf_quant_tensor(q, i)->to_size;
        if (size <= MOST_WRITTEN)
            MUST(gguf_quant_run(q, scratch_path("out.gguf"), &o, &err) ==
                     GGUF_OK ||
                 err.message[0]);
        gguf_quant_destroy(q);
        scratch_clean();
    } else {
        MUST(err.message[0]);
    }
    gguf_recipe_destroy(r);
}

enum kind { LANGUAGE, PROJECTOR, IMAGE };

static void describe_folder(const struct gguf_opener *opener, enum kind kind,
                            const struct far_file *as)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c;
    struct gguf_error err;
    struct failalloc fa;
    char class_name[MOST_NAME];
    gguf_error_clear(&err);
    p.opener = opener;
    p.projector = kind == PROJECTOR;
    if (as) {
        snprintf(class_name, sizeof class_name, "%.*s",
                 (int)(as->size < MOST_NAME ? as->size : MOST_NAME),
                 (const char *)as->data);
        p.as = class_name;
    }
    p.allocator = failalloc_init(&fa, UINT_MAX);
    const enum gguf_status st = gguf_convert_open(
        &c, kind == IMAGE ? FAR "model.safetensors" : "far:f", &p, &err);
    MUST(st == GGUF_OK ? c != NULL : !c && err.message[0]);
    MUST(fa.most < MOST_MEMORY);
    if (st == GGUF_OK)
        write_plan(c);
    gguf_convert_close(c);
    MUST(!fa.live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t weights[8 + sizeof header + NUMBERS];
    struct far_folder folder = { .n = 0 };
    const struct gguf_opener opener = { sizeof opener, far_takes, far_open,
                                        &folder };
    weights[0] = (uint8_t)(sizeof header - 1);
    weights[1] = (uint8_t)((sizeof header - 1) >> 8);
    memcpy(weights + 8, header, sizeof header - 1);
    take_files(&folder, data, size, weights, sizeof weights - 1);
    const struct far_file *as = find_file(&folder, "as");
    if (find_file(&folder, "config.json") ||
        find_file(&folder, "params.json")) {
        describe_folder(&opener, LANGUAGE, as);
        describe_folder(&opener, PROJECTOR, NULL);
    } else {
        describe_folder(&opener, IMAGE, NULL);
        describe_folder(&opener, LANGUAGE, NULL); /* a folder of diffusers */
    }
    for (size_t i = 0; i < folder.n; i++)
        free(folder.file[i].made);
    return 0;
}

#define CONFIG                                                                \
    "config.json\n{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":" \
    "8,\"intermediate_size\":8,\"num_hidden_layers\":1,"                      \
    "\"num_attention_heads\":2,\"num_key_value_heads\":2,"                    \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,\"rope_theta\":"    \
    "10000.0,\"bos_token_id\":0,\"vocab_size\":"
#define TOKENIZER                                                             \
    "\x1etokenizer.json\n{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\","   \
    "\"special\":true}],\"pre_tokenizer\":{\"type\":\"ByteLevel\","           \
    "\"add_prefix_space\":false,\"use_regex\":true},\"model\":{\"type\":"     \
    "\"BPE\",\"vocab\":{\"<s>\":0,\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,"   \
    "\"f\":6,\"ab\":7},\"merges\":[\"a b\"]}}"                                \
    "\x1etokenizer_config.json\n{\"bos_token\":\"<s>\",\"add_bos_token\":"    \
    "true,\"chat_template\":\"{{x}}\"}"

#define PROJECTOR(CLASS, SETTINGS)                                            \
    "config.json\n{\"architectures\":[\"" CLASS                               \
    "ForConditionalGeneration\"],\"hidden_size\":8," SETTINGS                 \
    "\"vision_config\":{\"hidden_size\":8,\"num_hidden_layers\":2,"           \
    "\"num_attention_heads\":2,\"image_size\":8,\"patch_size\":4,"            \
    "\"intermediate_size\":8,\"model_type\":\"clip_vision_model\"}}"          \
    "\x1epreprocessor_config.json\n{\"image_mean\":[0,0,0],"                  \
    "\"image_std\":[1,1,1],\"min_pixels\":4,\"max_pixels\":64}"

#define FLUX "double_blocks.0.img_attn.proj.weight BF16 8 8\n"

/* Image models whose layers are quantized, each as it says. */
static void seed_quantized(void)
{
    seed_text("model.tensors\n" FLUX "a.weight F8_E4M3 16 32\n"
              "a.weight_scale F32\n"
              "a.comfy_quant TEXT {\"format\":\"float8_e4m3fn\"}\n"
              "b.weight I8 16 32\nb.weight_scale F32 16 1\n"
              "b.comfy_quant TEXT {\"format\":\"int8_tensorwise\"}");
    seed_text("model.tensors\n" FLUX "a.weight U8 128 32\n"
              "a.weight_scale F8_E4M3 128 4\na.weight_scale_2 F32\n"
              "a.comfy_quant TEXT {\"format\":\"nvfp4\"}");
    seed_text("model.tensors\n" FLUX "a.weight F8_E4M3 128 128\n"
              "a.weight_scale U8 128 4\n"
              "a.comfy_quant TEXT {\"format\":\"mxfp8\"}");
    seed_text("model.tensors\n" FLUX "a.weight F8_E4M3 16 32\n"
              "a.weight_scale F32\n__metadata__ _quantization_metadata "
              "{\\\"layers\\\":{\\\"a\\\":{\\\"format\\\":"
              "\\\"float8_e4m3fn\\\"}}}");
}

static const char sentence[] =
    "config.json\n{\"architectures\":[\"BertModel\"],\"hidden_size\":8,"
    "\"intermediate_size\":8,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"vocab_size\":8,"
    "\"max_position_embeddings\":8,\"layer_norm_eps\":1e-12,"
    "\"type_vocab_size\":2}\x1e"
    "vocab.txt\n[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\x1e"
    "modules.json\n[{\"path\":\"\",\"type\":\"a.Transformer\"},"
    "{\"path\":\"1_Pooling\",\"type\":\"a.Pooling\"},"
    "{\"path\":\"2_Dense\",\"type\":\"a.Dense\"},"
    "{\"path\":\"3_Normalize\",\"type\":\"a.Normalize\"}]\x1e"
    "1_Pooling/config.json\n{\"word_embedding_dimension\":8,"
    "\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":false,"
    "\"include_prompt\":true}\x1e"
    "2_Dense/config.json\n{\"in_features\":8,\"out_features\":8,"
    "\"bias\":true,\"activation_function\":"
    "\"torch.nn.modules.linear.Identity\"}\x1e"
    "2_Dense/model.tensors\nlinear.weight F32 8 8\nlinear.bias F32 8\x1e"
    "sentence_bert_config.json\n{\"max_seq_length\":8,"
    "\"do_lower_case\":false}\x1e"
    "config_sentence_transformers.json\n{\"prompts\":{\"query\":\"q: \","
    "\"document\":\"\"},\"default_prompt_name\":\"query\"}\x1e"
    "model.tensors\nembeddings.word_embeddings.weight F32 8 8\n"
    "embeddings.token_type_embeddings.weight F32 2 8\n"
    "embeddings.position_embeddings.weight F32 8 8\n";

/* A folder of sentence-transformers, with all its texts. */
static void seed_sentence(void)
{
    static const char *const names[] = {
        "attention.self.query",       "attention.self.key",
        "attention.self.value",       "attention.output.dense",
        "intermediate.dense",         "output.dense",
        "attention.output.LayerNorm", "output.LayerNorm",
    };
    struct fix *f = new_seed();
    char line[200];
    fix_bytes(f, sentence, sizeof sentence - 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(line, sizeof line,
                 "encoder.layer.0.%s.weight F32 8%s\n"
                 "encoder.layer.0.%s.bias F32 8\n",
                 names[i], strstr(names[i], "Norm") ? "" : " 8", names[i]);
        fix_bytes(f, line, strlen(line));
    }
    snprintf(line, sizeof line,
             "embeddings.LayerNorm.weight F32 8\n"
             "embeddings.LayerNorm.bias F32 8\n");
    fix_bytes(f, line, strlen(line));
}

#define TALKER  "talker.model."
#define SPEAKER TALKER "layers.0."

/* A talker (text to speech), as a language model. */
static void seed_talker(void)
{
    seed_text(
        "config.json\n{\"architectures\":["
        "\"Qwen3TTSForConditionalGeneration\"],\"model_type\":\"qwen3_tts\","
        "\"talker_config\":{\"hidden_size\":8,\"intermediate_size\":8,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":2,"
        "\"num_key_value_heads\":2,\"head_dim\":4,\"rms_norm_eps\":1e-6,"
        "\"rope_theta\":1e6,\"max_position_embeddings\":64,"
        "\"rope_scaling\":{\"rope_type\":\"default\",\"interleaved\":true,"
        "\"mrope_section\":[1,1,0]},\"text_vocab_size\":8,"
        "\"vocab_size\":16,\"hidden_act\":\"silu\",\"codec_bos_id\":9,"
        "\"codec_eos_token_id\":10,\"codec_language_id\":{\"chinese\":5},"
        "\"spk_id\":{\"ryan\":6}}}" TOKENIZER "\x1emodel.tensors\n" TALKER
        "norm.weight F32 8\n" TALKER "text_embedding.weight F32 8 4\n"
        "talker.text_projection.linear_fc1.weight F32 4 4\n"
        "talker.text_projection.linear_fc1.bias F32 4\n"
        "talker.text_projection.linear_fc2.weight F32 8 4\n"
        "talker.text_projection.linear_fc2.bias F32 8\n" TALKER
        "codec_embedding.weight F32 16 8\n"
        "talker.codec_head.weight F32 16 8\n" SPEAKER
        "self_attn.q_proj.weight F32 8 8\n" SPEAKER
        "self_attn.k_proj.weight F32 8 8\n" SPEAKER
        "self_attn.v_proj.weight F32 8 8\n" SPEAKER
        "self_attn.o_proj.weight F32 8 8\n" SPEAKER
        "self_attn.q_norm.weight F32 4\n" SPEAKER
        "self_attn.k_norm.weight F32 4\n" SPEAKER
        "input_layernorm.weight F32 8\n" SPEAKER
        "post_attention_layernorm.weight F32 8\n" SPEAKER
        "mlp.gate_proj.weight F32 8 8\n" SPEAKER
        "mlp.up_proj.weight F32 8 8\n" SPEAKER "mlp.down_proj.weight F32 8 8");
}

/* Folders that once took minutes: by numbers of layers, or of positions. */
static void seed_hostile(void)
{
    seed_text("config.json\n{\"architectures\":[\"XForCausalLM\"],"
              "\"num_hidden_layers\":1e30}\x1emodel.tensors\na F32 8\n");
    seed_text(
        "config.json\n{\"architectures\":[\"MuseGlimmerForConditionalGeneration\"],"
        "\"num_hidden_layers\":1000000}");
    seed_text("config.json\n{\"architectures\":[\"NemotronH_Nano_VL_V2\"],"
              "\"force_image_size\":65536,\"vision_config\":{"
              "\"patch_size\":16}}\x1epreprocessor_config.json\n{}"
              "\x1emodel.tensors\n"
              "vision_model.radio_model.model.patch_generator.pos_embed "
              "F32 1 4 1280\n");
    seed_text("config.json\n{\"architectures\":["
              "\"Qwen2AudioForConditionalGeneration\"],\"audio_config\":{"
              "\"d_model\":65536}}\x1emodel.tensors\naudio_tower.x F32 8\n");
}

void fuzz_make_seeds(void)
{
    seed_text(CONFIG "8}" TOKENIZER);
    seed_text(CONFIG "8}" TOKENIZER
                     "\x1eREADME.md\n---\nlicense: mit\ntags: [a, 'b']\n"
                     "language:\n- en\n---\n# A model\n"
                     "\x1egeneration_config.json\n{\"temperature\":0.5}"
                     "\x1e"
                     "chat_template.jinja\n{{y}}");
    seed_text(CONFIG "16000000}" TOKENIZER);
    seed_text(CONFIG "8,\"layer_types\":[\"full_attention\"],"
                     "\"sliding_window\":4,\"tie_word_embeddings\":true,"
                     "\"rope_scaling\":{\"rope_type\":\"linear\","
                     "\"factor\":2.0}}" TOKENIZER);
    seed_text("as\nLlamaForCausalLM\x1e"
              "config.json\n{\"architectures\":[\"XForCausalLM\"],"
              "\"hidden_size\":8,\"intermediate_size\":8,"
              "\"num_hidden_layers\":1,\"num_attention_heads\":2,"
              "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,"
              "\"vocab_size\":8,\"other\":1}" TOKENIZER);
    seed_text("adapter_config.json\n{\"peft_type\":\"LORA\",\"r\":2,"
              "\"lora_alpha\":4,\"base_model_name_or_path\":\"x/y\"}"
              "\x1e" CONFIG "8}");
    seed_text(PROJECTOR("Granite4Vision", "\"deepstack_layer_map\":[[0,1]],"
                                          "\"image_grid_pinpoints\":[[8,8]],"
                                          "\"downsample_rate\":\"4/8\","));
    seed_text(PROJECTOR("LlavaNext", "\"vision_feature_layer\":[-2,1],"));
    seed_text(PROJECTOR("KimiK25", "\"vt_num_attention_heads\":2,"));
    seed_text(PROJECTOR("Gemma3n", "\"audio_config\":{\"hidden_size\":8,"
                                   "\"conf_num_hidden_layers\":1},"));
    for (size_t i = 0; put_projector_folder(new_seed(), i); i++) {
    }
    for (size_t i = 0; put_image_tensors(new_seed(), i); i++) {
    }
    for (size_t i = 0; put_diffusers_folder(new_seed(), i); i++) {
    }
    seed_text("model_index.json\n{\"transformer\":[\"diffusers\",\"X\"],"
              "\"text_encoder\":[\"transformers\",\"Y\"]}\x1e"
              "transformer/diffusion_pytorch_model.tensors\n"
              "double_blocks.0.img_attn.proj.weight BF16 8 8\n");
    seed_quantized();
    seed_sentence();
    seed_talker();
    seed_hostile();
    seed_text("config.json\n{\"architectures\":[\"Lfm2ForCausalLM\"],"
              "\"num_hidden_layers\":1000000,\"full_attn_idxs\":[0]}");
}
