/* SPDX-License-Identifier: MIT */
/* mkfolder.c - "mkfolder DIR [ARG]...": a small Hugging Face folder of a llama
 *
 * ARG: bf16, files=N, extra (a tensor that no model has), wide (rows of 256,
 * which all types' blocks divide).
 */
#include "config.h"
#include "tests/convert/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define L "model.layers.%%."

int main(int argc, char **argv)
{
    static struct folder f;
    static char config[1000], tensors[2000];
    const char *dtype = "F32";
    int n_files = 1, width = 32, extra = 0;
    if (argc < 2)
        return 2;
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "bf16"))
            dtype = "BF16";
        else if (!strncmp(argv[i], "files=", 6))
            n_files = atoi(argv[i] + 6);
        else if (!strcmp(argv[i], "extra"))
            extra = 1;
        else if (!strcmp(argv[i], "wide"))
            width = 256;
        else
            return 2;
    }
    folder_begin(&f, argv[1]);
    snprintf(config, sizeof config,
             "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":%d,"
             "\"intermediate_size\":%d,\"num_hidden_layers\":2,"
             "\"num_attention_heads\":4,\"num_key_value_heads\":2,"
             "\"vocab_size\":260,\"max_position_embeddings\":64,"
             "\"rms_norm_eps\":1e-6,\"rope_theta\":10000.0,\"eos_token_id\":"
             "258,\"bos_token_id\":258}",
             width, width);
    folder_text(&f, "config.json", config);
    snprintf(
        tensors, sizeof tensors,
        "model.embed_tokens.weight 260 %d\nmodel.norm.weight %d\n" L
        "input_layernorm.weight %d\n" L
        "post_attention_layernorm.weight %d\n" L
        "self_attn.q_proj.weight %d %d\n" L "self_attn.k_proj.weight %d %d\n" L
        "self_attn.v_proj.weight %d %d\n" L "self_attn.o_proj.weight %d %d\n" L
        "mlp.gate_proj.weight %d %d\n" L "mlp.up_proj.weight %d %d\n" L
        "mlp.down_proj.weight %d %d\n%s",
        width, width, width, width, width, width, width / 2, width, width / 2,
        width, width, width, width, width, width, width, width, width,
        extra ? "model.layers.%.odd.weight 3\n" : "");
    folder_tensors(&f, tensors, 2, 1);
    folder_weights(&f, dtype, n_files);
    folder_bpe(&f, false);
    return 0;
}
