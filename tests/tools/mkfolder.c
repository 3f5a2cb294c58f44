/* SPDX-License-Identifier: MIT */
/* mkfolder.c - writes a small Hugging Face folder of a llama, or of a BERT
 *
 *   mkfolder DIR [ARG]...
 *
 * ARG: bf16, files=N, extra (a tensor that no model has), vision (it also sees,
 * as Janus), bert (BertModel with WordPiece), wide (rows of 256, which the
 * blocks of all types divide), large=N: N layers with the sizes of Llama 3 8B
 * (36: 8e9 weights), all of them 0, in sparse files. class=NAME: a class other
 * than LlamaForCausalLM. members=TEXT: more members of config.json, each after
 * a comma. tensor=LINE: a further tensor, its name and sizes.
 */
#include "config.h"
#include "tests/convert/bert.h"
#include "tests/convert/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define L "model.layers.%%."

struct sizes {
    int layers, width, ff, heads, kv, vocab;
};

#define VISION                                                                \
    ",\"vision_config\":{\"hidden_size\":16,\"image_size\":8,"                \
    "\"patch_size\":4,\"num_attention_heads\":2,\"num_hidden_layers\":1,"     \
    "\"mlp_ratio\":2}"
#define TOWER "model.vision_model.encoder.layers.0."

static void put_config(const struct folder *f, const struct sizes *s,
                       const char *name, const char *members)
{
    char config[1000];
    snprintf(config, sizeof config,
             "{\"architectures\":[\"%s\"],\"hidden_size\":%d,"
             "\"intermediate_size\":%d,\"num_hidden_layers\":%d,"
             "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,"
             "\"vocab_size\":%d,\"max_position_embeddings\":64,"
             "\"rms_norm_eps\":1e-6,\"rope_theta\":10000.0,\"eos_token_id\":"
             "258,\"bos_token_id\":258%s}",
             name, s->width, s->ff, s->layers, s->heads, s->kv, s->vocab,
             members);
    folder_text(f, "config.json", config);
}

static void put_tensors(struct folder *f, const struct sizes *s, bool extra)
{
    char lines[2000];
    const int n = s->width, ff = s->ff, kv = n / s->heads * s->kv;
    snprintf(
        lines, sizeof lines,
        "model.embed_tokens.weight %d %d\nmodel.norm.weight %d\n" L
        "input_layernorm.weight %d\n" L
        "post_attention_layernorm.weight %d\n" L
        "self_attn.q_proj.weight %d %d\n" L "self_attn.k_proj.weight %d %d\n" L
        "self_attn.v_proj.weight %d %d\n" L "self_attn.o_proj.weight %d %d\n" L
        "mlp.gate_proj.weight %d %d\n" L "mlp.up_proj.weight %d %d\n" L
        "mlp.down_proj.weight %d %d\n%s",
        s->vocab, n, n, n, n, n, n, kv, n, kv, n, n, n, ff, n, ff, n, n, ff,
        extra ? "model.layers.%.odd.weight 3\n" : "");
    folder_tensors(f, lines, s->layers, 1);
}

static void put_bert(struct folder *f)
{
    folder_text(f, "config.json",
                "{\"architectures\":[\"BertModel\"],\"hidden_size\":32,"
                "\"intermediate_size\":48,\"num_hidden_layers\":2,"
                "\"num_attention_heads\":4,\"vocab_size\":260,"
                "\"max_position_embeddings\":64,\"layer_norm_eps\":1e-12,"
                "\"type_vocab_size\":2}");
    folder_tensors(f, BERT_TENSORS, 2, 1);
}

/* text: width of the language model */
static void put_tower(struct folder *f, int text)
{
    char lines[300];
    folder_tensors(f,
                   "model.vision_model.embeddings.patch_embedding.weight "
                   "16 3 4 4\n" TOWER "layer_norm1.weight 16\n" TOWER
                   "self_attn.q_proj.weight 16 16\n" TOWER
                   "self_attn.k_proj.weight 16 16\n" TOWER
                   "self_attn.v_proj.weight 16 16\n" TOWER
                   "self_attn.projection_layer.weight 16 16\n" TOWER
                   "mlp.fc1.weight 32 16\n" TOWER "mlp.fc2.weight 16 32\n",
                   1, 1);
    snprintf(lines, sizeof lines,
             "model.aligner.fc1.weight %d 16\nmodel.aligner.fc1.bias %d\n"
             "model.aligner.hidden_layers.0.weight %d %d\n"
             "model.aligner.hidden_layers.0.bias %d\n",
             text, text, text, text, text);
    folder_tensors(f, lines, 1, 1);
    folder_text(f, "preprocessor_config.json",
                "{\"image_mean\":[0,0,0],\"image_std\":[1,1,1]}");
}

int main(int argc, char **argv)
{
    static struct folder f;
    struct sizes s = { 2, 32, 32, 4, 2, FOLDER_VOCAB };
    const char *dtype = "F32", *name = "LlamaForCausalLM", *members = "";
    const char *tensors[64];
    size_t n_tensors = 0;
    int n_files = 1, large = 0;
    bool extra = false, vision = false, bert = false;
    if (argc < 2)
        return 2;
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "bf16"))
            dtype = "BF16";
        else if (!strncmp(argv[i], "files=", 6))
            n_files = atoi(argv[i] + 6);
        else if (!strcmp(argv[i], "extra"))
            extra = true;
        else if (!strcmp(argv[i], "vision"))
            vision = true;
        else if (!strcmp(argv[i], "bert"))
            bert = true;
        else if (!strcmp(argv[i], "wide"))
            s.width = s.ff = 256;
        else if (!strncmp(argv[i], "class=", 6))
            name = argv[i] + 6;
        else if (!strncmp(argv[i], "members=", 8))
            members = argv[i] + 8;
        else if (!strncmp(argv[i], "tensor=", 7) && n_tensors < 64)
            tensors[n_tensors++] = argv[i] + 7;
        else if (!strncmp(argv[i], "large=", 6))
            large = atoi(argv[i] + 6);
        else
            return 2;
    }
    if (large)
        s = (struct sizes){ large, 4096, 14336, 32, 8, 32000 };
    folder_begin(&f, argv[1]);
    f.sparse = large > 0;
    if (bert) {
        put_bert(&f);
        folder_weights(&f, dtype, n_files);
        folder_wordpiece(&f, true);
        return 0;
    }
    put_config(&f, &s, vision ? "JanusForConditionalGeneration" : name,
               vision ? VISION : members);
    put_tensors(&f, &s, extra);
    for (size_t i = 0; i < n_tensors; i++)
        folder_tensors(&f, tensors[i], 1, 1);
    if (vision)
        put_tower(&f, s.width);
    folder_weights(&f, dtype, n_files);
    folder_bpe(&f, false);
    return 0;
}
