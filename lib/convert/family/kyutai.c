/* SPDX-License-Identifier: MIT */
/* kyutai.c - classes of Kyutai's speech models
 *
 * Pocket TTS: the transformer of pocket_tts/models/flow_lm.py, which becomes a
 * language model; the network that makes sound of its states is left out. A
 * folder has no config.json: sizes follow from the tensors, and llama.cpp's
 * converter (conversion/pockettts.py, September 2026) has the rest. It also
 * appends two vectors to the embedding, each as a token: the one before a
 * voice, if the model has it, and the projected first latent.
 */
#include "config.h"
#include "convert/class_row.h"
#include "convert/convert_int.h"
#include "convert/vocab/vocab_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FLOW         "flow_lm."
#define EMBED        FLOW "conditioner.embed.weight"
#define FIRST_LATENT FLOW "bos_emb"
#define BEFORE_VOICE FLOW "bos_before_voice"
#define TO_WIDTH     FLOW "input_linear.weight"
#define FIRST_INPUT  FLOW "audio_bos" /* a name of this converter */

static const struct gg_safetensors_tensor *
find_tensor(const struct gguf_convert *c, const char *name)
{
    const struct gg_safetensors *s = c->folder.weights;
    const uint32_t i = gg_safetensors_find(s, gg_str_z(name));
    return i == GG_INDEX_NONE ? NULL : &s->tensor[i];
}

/* ---- config.json ---- */

#define MIMI "mimi.encoder_transformer.transformer.layers."

/* Number of layers that have the vector PREFIX N.norm1.weight. */
static int count_layers(const struct gguf_convert *c, const char *prefix)
{
    char name[80];
    int n = 0;
    do
        snprintf(name, sizeof name, "%s%d.norm1.weight", prefix, n);
    while (find_tensor(c, name) && ++n);
    return n;
}

/* Add the sizes of the transformers of the codec, if the folder has one. */
static void add_audio_config(const struct gguf_convert *c, char *text,
                             size_t size)
{
    const struct gg_safetensors_tensor *norm =
        find_tensor(c, MIMI "0.norm1.weight");
    const struct gg_safetensors_tensor *up =
        find_tensor(c, MIMI "0.linear1.weight");
    const size_t n = strlen(text);
    if (norm && up && n)
        snprintf(text + n - 1, size - (n - 1),
                 ",\"audio_config\":{\"num_hidden_layers\":%d,"
                 "\"hidden_size\":%" PRId64 ",\"intermediate_size\":%" PRId64
                 ",\"num_attention_heads\":%" PRId64 "}}",
                 count_layers(c, MIMI), norm->ne[0], up->ne[1],
                 norm->ne[0] / 64);
}

/* Heads have 64 elements in all published models. */
static void make_config(const struct gguf_convert *c, char *text, size_t size)
{
    const struct gg_safetensors_tensor *embed = find_tensor(c, EMBED), *up;
    if (!find_tensor(c, FIRST_LATENT) || !embed)
        return;
    up = find_tensor(c, FLOW "transformer.layers.0.linear1.weight");
    snprintf(text, size,
             "{\"architectures\":[\"PocketTTSModel\"],"
             "\"model_type\":\"pockettts\",\"num_hidden_layers\":%d,"
             "\"hidden_size\":%" PRId64 ",\"intermediate_size\":%" PRId64
             ",\"max_position_embeddings\":4096,"
             "\"num_attention_heads\":%" PRId64
             ",\"rope_theta\":10000.0,\"layer_norm_eps\":1e-05}",
             count_layers(c, FLOW "transformer.layers."), embed->ne[0],
             up ? up->ne[1] : 0, embed->ne[0] / 64);
    add_audio_config(c, text, size);
}

/* ---- tensors ---- */

/* A vector as one row of a matrix. */
static enum gguf_status view_row(struct gg_convert_view *v,
                                 struct gguf_error *err)
{
    (void)err;
    v->n_dims = 2;
    v->ne[0] = (int64_t)v->from->n_elements;
    v->ne[1] = v->ne[2] = v->ne[3] = 1;
    return GGUF_OK;
}

static const struct gg_convert_transform one_row = { .text = "one row",
                                                     .view = view_row };

/* rows of TO_WIDTH times the first latent: y[i] = sum over j of w[i, j] x[j] */
static enum gguf_status project_latent(struct gguf_convert *c, uint32_t matrix,
                                       uint32_t vector, struct gguf_error *err)
{
    const struct gg_safetensors_tensor *w = &c->folder.weights->tensor[matrix];
    const size_t cols = (size_t)w->ne[0], rows = (size_t)w->ne[1];
    float *a = NULL, *x = NULL;
    double *y = gg_mem_alloc_zero(c->p.allocator, rows, sizeof *y);
    enum gguf_status st =
        y ? GGUF_OK : gg_error_set_nomem(err, rows * sizeof *y);
    if (st == GGUF_OK)
        st = gg_convert_read_tensor(c, matrix, &a, err);
    if (st == GGUF_OK)
        st = gg_convert_read_tensor(c, vector, &x, err);
    for (size_t i = 0; i < rows && st == GGUF_OK; i++)
        for (size_t j = 0; j < cols; j++)
            y[i] += (double)a[i * cols + j] * (double)x[j];
    if (st == GGUF_OK)
        st = gg_convert_add_computed(c, FIRST_INPUT, y, rows, err);
    gg_mem_free(c->p.allocator, a);
    gg_mem_free(c->p.allocator, x);
    gg_mem_free(c->p.allocator, y);
    return st;
}

static enum gguf_status add_first_input(struct gguf_convert *c,
                                        struct gguf_error *err)
{
    const struct gg_safetensors *s = c->folder.weights;
    const uint32_t matrix = gg_safetensors_find(s, gg_str_z(TO_WIDTH));
    const uint32_t vector = gg_safetensors_find(s, gg_str_z(FIRST_LATENT));
    c->out.summary.kind = "text part of a speech model";
    c->out.summary.reason = "its class";
    if (vector ==
        GG_INDEX_NONE) /* a folder made of a file: the row is there */
        return GGUF_OK;
    if (matrix == GG_INDEX_NONE || s->tensor[matrix].n_dims != 2 ||
        (uint64_t)s->tensor[matrix].ne[0] != s->tensor[vector].n_elements)
        return gg_error_set(err, GGUF_E_TENSOR, GGUF_NO_OFFSET,
                            "tensor '" TO_WIDTH "' is missing or has not one "
                            "column for each element of '" FIRST_LATENT "'");
    return project_latent(c, matrix, vector, err);
}

#define T FLOW "transformer.layers.%."

static const struct gg_convert_name pocket_names[] = {
    N(FLOW "conditioner.embed.weight", "token_embd.weight"),
    N_HOW(BEFORE_VOICE, "token_embd.weight", one_row),
    N_HOW(FIRST_INPUT, "token_embd.weight", one_row),
    N_NOT(FIRST_LATENT),
    N_NOT(FLOW "input_linear"),
    N(FLOW "out_norm", "output_norm"),
    N(T "norm1", B "attn_norm"),
    N_AXES(T "self_attn.in_proj", B "attn_q", "3[1@0] x, * > x, *"),
    N_AXES(T "self_attn.in_proj", B "attn_k", "3[1@1] x, * > x, *"),
    N_AXES(T "self_attn.in_proj", B "attn_v", "3[1@2] x, * > x, *"),
    N(T "self_attn.out_proj", B "attn_output"),
    N(T "norm2", B "ffn_norm"),
    N(T "linear1", B "ffn_up"),
    N(T "linear2", B "ffn_down"),
    END_NAMES
};

/* ---- tokens ---- */

/* The rows of the embedding after the tokenizer's pieces. Special tokens get no
 * ids, as by llama.cpp's converter. */
static enum gguf_status name_tokens(struct gg_convert_vocab *v,
                                    struct gguf_error *err)
{
    static const char *const names[] = { "<|audio_bos|>",
                                         "<|bos_before_voice|>", "<|pad|>" };
    const struct gg_safetensors *s = v->folder->weights;
    const bool voice =
        gg_safetensors_find(s, gg_str_z(BEFORE_VOICE)) != GG_INDEX_NONE;
    (void)err;
    v->role_text = NULL;
    v->unk = -1;
    if (gg_safetensors_find(s, gg_str_z(FIRST_LATENT)) == GG_INDEX_NONE)
        return GGUF_OK; /* a folder made of a file: they have names */
    for (size_t i = 0, id = v->n; i < GG_LEN(names) && id; i++) {
        if (i == 1 && !voice)
            continue;
        id--;
        v->token[id] = gg_str_z(names[i]);
        v->type[id] = GG_CONVERT_CONTROL;
        v->score[id] = -1000;
    }
    return GGUF_OK;
}

static double put_none(const struct gg_hf_config *cfg)
{
    (void)cfg;
    return 0;
}

const struct gg_convert_arch gg_convert_family_kyutai[] = {
    { .classes = "PocketTTSModel",
      .model_type = "pockettts",
      .arch = "pockettts",
      .make_config = make_config,
      .add_tensors = add_first_input,
      .fix_vocab = name_tokens,
      .skip = "mimi. flow_lm.flow_net. flow_lm.out_eos. flow_lm.emb_ "
              "flow_lm.speaker_proj_weight",
      .names = { pocket_names },
      .last =
          ROWS(OF("/tokenizer.ggml.add_bos_token", BOOL, put_none, NO_BACK),
               OF("/tokenizer.ggml.add_eos_token", BOOL, put_none, NO_BACK)) },
    { .classes = NULL }
};
