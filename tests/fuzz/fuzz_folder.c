/* SPDX-License-Identifier: MIT */
/* fuzz_folder.c - a Hugging Face folder: its texts, and the weights of a small
 * llama; as a language model and as a projector
 *
 * The input is a sequence of files, each a line with its name and then its
 * content, with a byte 0x1e between them. model.safetensors is one of zeros,
 * unless the input has it. Files outside of the folder must not be opened, and
 * a folder of some KB must not take more than 64 MB.
 */
#include "config.h"
#include "gguf/convert.h"
#include "tests/failalloc.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define FAR "far:f/"

enum { MOST_MEMORY = 64 << 20, MOST_FILES = 32 };

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
        d->file[d->n++] =
            (struct far_file){ data, data + k + (k < n), k, n - k - (k < n) };
        data += n + (n < size);
        size -= n + (n < size);
    }
    d->file[d->n++] = (struct far_file){ (const uint8_t *)name, weights,
                                         sizeof name - 1, n_weights };
}

/* Describe the folder, as a projector or not. */
static void describe_folder(const struct gguf_opener *opener, bool projector)
{
    struct gguf_convert_params p = GGUF_CONVERT_PARAMS_INIT;
    struct gguf_convert *c;
    struct gguf_error err;
    struct failalloc fa;
    gguf_error_clear(&err);
    p.opener = opener;
    p.projector = projector;
    p.allocator = failalloc_init(&fa, UINT_MAX);
    const enum gguf_status st = gguf_convert_open(&c, "far:f", &p, &err);
    MUST(st == GGUF_OK ? c != NULL : !c && err.message[0]);
    MUST(fa.most < MOST_MEMORY);
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
    describe_folder(&opener, false);
    describe_folder(&opener, true);
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
    seed_text("config.json\n{\"architectures\":[\"Lfm2ForCausalLM\"],"
              "\"num_hidden_layers\":1000000,\"full_attn_idxs\":[0]}");
}
