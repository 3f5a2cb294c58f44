/* SPDX-License-Identifier: MIT */
/* check-image.c - image and video models in one .safetensors file or a folder
 *
 * A file has the tensors that tell its architecture, and others. Expected
 * names, types, shapes and keys follow from the rules of image.h.
 */
#include "config.h"
#include "tests/convert/image_file.h"
#include "tests/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#define FLUX   "double_blocks.0.img_attn.proj.weight"
#define HYVID  "double_blocks.0.img_attn_proj.weight"
#define REFINE "txt_in.individual_token_refiner.blocks.1.self_attn_qkv.weight"
#define COMFY  "model.diffusion_model."
#define QWEN                                                                  \
    "time_text_embed.timestep_embedder.linear_2.weight 4,4 "                  \
    "transformer_blocks.0.attn.norm_added_q.weight 4 "                        \
    "transformer_blocks.0.img_mlp.net.0.proj.weight 4,4"
#define PIXART                                                                \
    "t_block.1.weight 4,4 blocks.0.scale_shift_table 6,4 "                    \
    "x_embedder.proj.weight 4,4,1,1 y_embedder.y_proj.fc1.weight 4,4"
#define SHAPE "comfy.gguf.orig_shape."

static bool has_text(const char *key, const char *want)
{
    struct gguf_str s;
    const struct gguf_kv *kv = made ? gguf_file_kv_find(made, key) : NULL;
    return kv && gguf_kv_get_str(kv, &s, NULL) == GGUF_OK &&
           s.size == strlen(want) && !memcmp(s.data, want, s.size);
}

static bool has_shape(const char *key, const int32_t *want, size_t n)
{
    int32_t x[8];
    const struct gguf_kv *kv = made ? gguf_file_kv_find(made, key) : NULL;
    return kv && kv->type == GGUF_VAL_ARR && kv->n == n && n <= 8 &&
           gguf_kv_get_elems_i32(kv, 0, n, x, NULL) == GGUF_OK &&
           !memcmp(x, want, n * sizeof *x);
}

static void check_types(void)
{
    stfile_begin(&st);
    stfile_add(&st, COMFY FLUX, "BF16", "40,64", 5120);
    stfile_add(&st, COMFY "img_in.weight", "BF16", "40,64", 5120);
    stfile_add(&st, COMFY "img_in.bias", "BF16", "40", 80);
    stfile_add(&st, COMFY "small.weight", "BF16", "32,32", 2048);
    stfile_add(&st, COMFY "pad_token", "BF16", "1,1280", 2560);
    stfile_add(&st, COMFY "f32.weight", "F32", "40,64", 10240);
    stfile_add(&st, COMFY "f16.bias", "F16", "40", 80);
    stfile_add(&st, COMFY "number", "F32", "", 4);
    stfile_add(&st, COMFY "ids", "I64", "3", 24);
    stfile_add(&st, COMFY "__mark__", "F32", "0", 0);
    stfile_add(&st, "vae.decoder.weight", "BF16", "4,4", 32);
    stfile_add(&st, "ema." COMFY "img_in.weight", "BF16", "4,4", 32);
    ok(convert_file("COPY") == GGUF_OK, "a checkpoint is converted: %s",
       err.message);
    ok(made && gguf_file_n_tensors(made) == 10 &&
           has_text("general.architecture", "flux"),
       "only tensors that begin with the prefix are kept, without it");
    ok(has_tensor(FLUX, GGUF_DTYPE_BF16, 2, 64, 40, 1, 1), "BF16 stays");
    ok(has_tensor("img_in.bias", GGUF_DTYPE_F32, 1, 40, 1, 1, 1) &&
           has_tensor("small.weight", GGUF_DTYPE_F32, 2, 32, 32, 1, 1),
       "vectors and small tensors of BF16 become F32");
    ok(has_tensor("pad_token", GGUF_DTYPE_F32, 2, 1280, 1, 1, 1),
       "so does a parameter that is no layer's; its dimension of 1 stays");
    ok(has_tensor("f32.weight", GGUF_DTYPE_F16, 2, 64, 40, 1, 1) &&
           has_tensor("f16.bias", GGUF_DTYPE_F16, 1, 40, 1, 1, 1),
       "F32 becomes F16, F16 stays");
    ok(has_tensor("number", GGUF_DTYPE_F32, 1, 1, 1, 1, 1) &&
           has_tensor("ids", GGUF_DTYPE_I64, 1, 3, 1, 1, 1),
       "a number has one dimension; whole numbers stay");
    ok(has_tensor("__mark__", GGUF_DTYPE_F32, 1, 0, 1, 1, 1),
       "a tensor without elements stays");
    ok(convert_file("Q8_0") == GGUF_OK &&
           has_tensor(FLUX, GGUF_DTYPE_Q8_0, 2, 64, 40, 1, 1) &&
           has_tensor("img_in.weight", GGUF_DTYPE_BF16, 2, 64, 40, 1, 1) &&
           has_tensor("pad_token", GGUF_DTYPE_F32, 2, 1280, 1, 1, 1) &&
           has_tensor("__mark__", GGUF_DTYPE_F32, 1, 0, 1, 1, 1),
       "quantization keeps what the architecture names: %s", err.message);
}

static void check_dimensions(void)
{
    static const int32_t five[] = { 8, 4, 3, 2, 2 }, conv[] = { 16, 32, 3, 3 };
    stfile_begin(&st);
    stfile_add(&st, HYVID, "BF16", "4,4", 32);
    stfile_add(&st, REFINE, "BF16", "4,4", 32);
    uint8_t *x =
        stfile_add(&st, "img_in.proj.weight", "BF16", "8,4,3,2,2", 768);
    x[766] = 0x80, x[767] = 0x3f; /* 1 */
    ok(convert_file("COPY") == GGUF_OK &&
           has_tensor("img_in.proj.weight", GGUF_DTYPE_F32, 4, 2, 2, 3, 32) &&
           has_shape(SHAPE "img_in.proj.weight", five, 5),
       "five dimensions become four and a key: %s", err.message);
    stfile_begin(&st);
    stfile_add(&st, "label_emb.0.0.weight", "F16", "512,512", 2 * 512 * 512);
    stfile_add(&st, "conv.weight", "F16", "16,32,3,3", 9216);
    stfile_add(&st, "odd.weight", "F16", "3,3", 18);
    ok(convert_file("COPY") == GGUF_OK &&
           has_text("general.architecture", "sdxl") &&
           has_tensor("conv.weight", GGUF_DTYPE_F16, 2, 256, 18, 1, 1) &&
           has_shape(SHAPE "conv.weight", conv, 4) &&
           has_tensor("odd.weight", GGUF_DTYPE_F16, 2, 3, 3, 1, 1) &&
           !gguf_file_kv_find(made, SHAPE "odd.weight") &&
           !gguf_file_kv_find(made, SHAPE "label_emb.0.0.weight"),
       "filters get rows of 256, if they have so many: %s", err.message);
}

static void check_scales(void)
{
    stfile_begin(&st);
    uint8_t *x = stfile_add(&st, FLUX, "F8_E4M3", "40,64", 2560);
    x[1] = 0x38;                                                /* 1 */
    stfile_add(&st, "a.weight", "F8_E4M3", "2,2", 4)[2] = 0x40; /* 2 */
    put_float(stfile_add(&st, "a.weight_scale", "F32", "2,1", 8) + 4, 3);
    put_float(stfile_add(&st, "double_blocks.0.img_attn.proj.scale_weight",
                         "F32", "", 4),
              0.75f);
    stfile_add(&st, "double_blocks.0.img_attn.proj.scale_input", "F32", "", 4);
    stfile_add(&st, "scaled_fp8", "F8_E4M3", "2", 2);
    static const char form[] = "{\"format\":\"float8_e4m3fn\"}";
    memcpy(stfile_add(&st, "a.comfy_quant", "U8", "26", 26), form, 26);
    ok(convert_file("COPY") == GGUF_OK && gguf_file_n_tensors(made) == 2,
       "scales and notes are not in the file: %s", err.message);
    ok(read_number(FLUX, 1) == 0.75f && read_number("a.weight", 2) == 6,
       "8-bit floats are multiplied by their scales");
}

static void check_config(void)
{
    stfile_begin(&st);
    st.n_header += (size_t)sprintf(
        st.header + st.n_header,
        "\"__metadata__\":{\"format\":\"pt\",\"config\":\"{\\\"a\\\":1}\"}");
    stfile_add(&st, "net." FLUX, "BF16", "4,4", 32);
    stfile_add(&st, "logvar.weight", "BF16", "4,4", 32);
    ok(convert_file("COPY") == GGUF_OK && has_text("config", "{\"a\":1}") &&
           gguf_file_n_tensors(made) == 1,
       "the text config of the metadata is a key: %s", err.message);
}

/* ---- the layout of diffusers ---- */

#define BLOCK  "transformer_blocks.0."
#define SINGLE "single_transformer_blocks.11."

/* Add a tensor of rows of four F32 numbers: first, first + 1, ... */
static void add_rows(const char *name, unsigned n_rows, unsigned first)
{
    char shape[32];
    snprintf(shape, sizeof shape, "%u,4", n_rows);
    uint8_t *p = stfile_add(&st, name, "F32", shape, 16 * n_rows);
    for (unsigned i = 0; i < 4 * n_rows; i++)
        put_float(p + 4 * i, (float)(first + i));
}

/* FLUX in diffusers, from its second tensor on. lacks: it is left out. */
static void add_flux(const char *lacks)
{
    static const struct {
        const char *name;
        unsigned n_rows, first;
    } t[] = { { "context_embedder.weight", 1, 0 },
              { BLOCK "attn.add_q_proj.weight", 1, 4 },
              { BLOCK "attn.add_k_proj.weight", 1, 8 },
              { BLOCK "attn.add_v_proj.weight", 1, 12 },
              { BLOCK "attn.to_k.weight", 2, 24 },
              { BLOCK "attn.to_q.weight", 2, 16 },
              { BLOCK "attn.to_v.weight", 2, 32 },
              { "single_transformer_blocks.0.attn.to_q.weight", 1, 0 },
              { "single_transformer_blocks.0.attn.to_k.weight", 1, 0 },
              { "single_transformer_blocks.0.attn.to_v.weight", 1, 0 },
              { "single_transformer_blocks.0.proj_mlp.weight", 3, 0 },
              { SINGLE "attn.norm_k.weight", 1, 0 },
              { "norm_out.linear.weight", 4, 100 } };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (!lacks || strcmp(lacks, t[i].name) != 0)
            add_rows(t[i].name, t[i].n_rows, t[i].first);
}

/* Has the tensor these numbers at the beginning of its rows? */
static float read_number_of_row(const char *name, uint64_t row)
{
    struct gguf_rows *rows = NULL;
    float x[4] = { -1 };
    const struct gguf_tensor_info *t = gguf_file_tensor_find(made, name);
    if (gguf_rows_create(&rows, NULL, NULL) != GGUF_OK ||
        gguf_rows_decode(rows, made, t->index, 4 * row, 4, x, NULL) != GGUF_OK)
        x[0] = -1;
    gguf_rows_destroy(rows);
    return x[0];
}

static bool has_rows(const char *name, const float *want, unsigned n)
{
    const struct gguf_tensor_info *t =
        made ? gguf_file_tensor_find(made, name) : NULL;
    for (unsigned i = 0; t && i < n; i++)
        if (read_number_of_row(name, i) != want[i])
            return false;
    return t && t->ne[0] == 4 && t->ne[1] == n;
}

static void check_names(void)
{
    static const float qkv[] = { 16, 20, 24, 28, 32, 36 };
    static const float swapped[] = { 108, 112, 100, 104 };
    stfile_begin(&st);
    add_rows("x_embedder.weight", 1, 0);
    add_flux(NULL);
    ok(convert_file("COPY") == GGUF_OK &&
           has_text("general.architecture", "flux") &&
           gguf_file_n_tensors(made) == 7,
       "FLUX of diffusers is converted: %s", err.message);
    ok(has_rows("double_blocks.0.img_attn.qkv.weight", qkv, 6),
       "rows of query, key and value follow each other");
    ok(has_rows("final_layer.adaLN_modulation.1.weight", swapped, 4),
       "shift comes before scale");
    ok(made &&
           gguf_file_tensor_find(made, "single_blocks.11.norm.key_norm.scale"),
       "numbers of blocks are kept");
    stfile_begin(&st);
    add_rows("x_embedder.weight", 1, 0);
    add_flux(BLOCK "attn.to_k.weight");
    ok(convert_file("COPY") == GGUF_E_TENSOR &&
           strstr(err.message, "'" BLOCK "attn.to_k.weight' is missing"),
       "a missing part: %s", err.message);
    stfile_begin(&st);
    add_rows("x_embedder.weight", 1, 0);
    add_rows("unheard_of.weight", 1, 0);
    add_flux(NULL);
    ok(convert_file("COPY") == GGUF_E_TENSOR &&
           strstr(err.message, "'unheard_of.weight' of diffusers"),
       "a name of no row: %s", err.message);
    stfile_begin(&st);
    add_rows("x_embedder.weight", 1, 0);
    stfile_add(&st, BLOCK "attn.to_k.weight", "F32", "2,3", 24);
    add_flux(BLOCK "attn.to_k.weight");
    ok(convert_file("COPY") == GGUF_E_SHAPE, "rows of two sizes: %s",
       err.message);
}

/* ---- folders ---- */

static char dir[300];

static bool write_text(const char *path, const char *text)
{
    return write_file(path, text, strlen(text));
}

static bool put_text(const char *name, const char *text)
{
    return write_text(scratch_path(dir, name), text);
}

static void check_folders(void)
{
#define SHARD "diffusion_pytorch_model-0000%d-of-00002.safetensors"
    char path[400], name[100], pipe[280];
    snprintf(pipe, sizeof pipe, "%s", scratch_path(top, "pipe"));
    snprintf(dir, sizeof dir, "%s/transformer", pipe);
    gg_os_make_folder(pipe);
    gg_os_make_folder(dir);
    stfile_begin(&st);
    stfile_add(&st, FLUX, "BF16", "40,64", 5120);
    snprintf(name, sizeof name, SHARD, 1);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    bool good = write_weights(path);
    stfile_begin(&st);
    stfile_add(&st, "img_in.weight", "BF16", "40,64", 5120);
    snprintf(name, sizeof name, SHARD, 2);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    good = write_weights(path) && good;
    good = put_text("diffusion_pytorch_model.safetensors.index.json",
                    "{\"weight_map\":{\"" FLUX
                    "\":\"diffusion_pytorch_model-00001-of-00002."
                    "safetensors\",\"img_in.weight\":\"diffusion_pytorch_"
                    "model-00002-of-00002.safetensors\"}}") &&
           good;
    ok(good && convert_path(dir, "COPY") == GGUF_OK &&
           gguf_file_n_tensors(made) == 2,
       "the shards of a folder of diffusers: %s", err.message);
    ok(put_text("config.json", "{\"_class_name\":\"FluxTransformer2D\"}") &&
           convert_path(dir, "COPY") == GGUF_OK,
       "with its config.json: %s", err.message);
    snprintf(path, sizeof path, "%s/model_index.json", pipe);
    static const char index[] =
        "{\"transformer\":[\"diffusers\",\"F\"],\"unet\":[null,null],"
        "\"text_encoder\":[\"transformers\",\"T5EncoderModel\"]}";
    ok(write_text(path, index) && convert_path(pipe, "COPY") == GGUF_OK &&
           has_text("general.architecture", "flux"),
       "the pipeline's folder: %s", err.message);
    ok(write_text(path, "{\"vae\":[\"diffusers\",\"A\"]}") &&
           convert_path(pipe, "COPY") == GGUF_E_NOTFOUND &&
           strstr(err.message, "neither a transformer nor a unet"),
       "a pipeline without either: %s", err.message);
    ok(write_text(path, "{\"unet\":[\"diffusers\",\"A\"]}") &&
           convert_path(pipe, "COPY") == GGUF_E_NOTFOUND &&
           strstr(err.message,
                  "neither diffusion_pytorch_model.safetensors nor "
                  "diffusion_pytorch_model.safetensors.index.json"),
       "a part without weights: %s", err.message);
    scratch_clean(dir);
    rmdir(dir);
    scratch_clean(pipe);
    rmdir(pipe);
}

static void refuse_file(const char *why, const char *what)
{
    ok(convert_file("COPY") == GGUF_E_ARCH && strstr(err.message, why),
       "%s: %s", what, err.message);
}

/* Tensors that tell an architecture: its name, and "NAME SHAPE ..." of them. */
static const struct {
    const char *arch, *tensors;
} known[] = {
    { "qwen_image", "txt_norm.weight 3584 proj_out.weight 64,4 " QWEN },
    { "mage_flow", "txt_norm.weight 2560 proj_out.weight 128,4 " QWEN },
    { "qwen_image", "txt_norm.weight 2560 proj_out.weight 64,4 " QWEN },
    { "lens", "transformer_blocks.0.attn.norm_added_q.weight 4,4 "
              "transformer_blocks.0.img_mlp.w1.weight 4,4" },
    { "qwen_image_2", "txt_in.text_norm.weight 4 modulation.1.weight 4,4 "
                      "transformer_blocks.0.img_mlp.gate_up.weight 4,4" },
    { "krea2", "txtfusion.projector.weight 4,4 last.linear.weight 4,4 "
               "blocks.0.attn.wq.weight 4,4" },
    { "ideogram4", "embed_image_indicator.weight 4,4 input_proj.weight 4,4 "
                   "layers.0.attention.qkv.weight 4,4" },
    { "ernie_image", "layers.0.adaLN_sa_ln.weight 4 text_proj.weight 4,4 "
                     "layers.0.mlp.linear_fc2.weight 4,4" },
    { "omnigen2", "time_caption_embed.timestep_embedder.linear_1.bias 4" },
    { "boogu", "time_caption_embed.timestep_embedder.linear_1.bias 4 "
               "x_embedder.weight 4,4 double_stream_layers.0."
               "img_instruct_attn.processor.img_to_q.weight 4,4" },
    { "hidream_o1", "t_embedder1.mlp.0.weight 4,4 "
                    "x_embedder.proj1.weight 4,4" },
    { "minimax_h3", "video_patch_proj.weight 4,4 "
                    "audio_patch_proj.weight 4,4" },
    { "kandinsky5",
      "visual_transformer_blocks.0.cross_attention.key_norm.weight 4 "
      "visual_embeddings.in_layer.weight 4,4" },
    { "hunyuan3d", "latent_in.weight 4,4 cond_in.weight 4,4 " FLUX " 4,4" },
    { "hunyuan3d", "t_embedder.mlp.2.weight 4,4 x_embedder.weight 4,4 "
                   "blocks.0.attn1.k_norm.weight 4" },
    { "mochi", "t5_yproj.weight 4,4 x_embedder.proj.weight 4,4" },
    { "pixart", PIXART },
    { "cogvideox", "blocks.0.norm1.linear.weight 4,4 "
                   "patch_embed.proj.weight 4,4 "
                   "patch_embed.text_proj.weight 4,4" },
    { "seedvr2", "blocks.31.mlp.all.proj_in_gate.weight 4,4" },
    { NULL, PIXART " attention_y_norm.weight 4" },
    { NULL, "t5_yproj.weight 4,4" },
    { NULL, "double_blocks.0.img_attn.qkv.weight 4,4" },
};

static void add_tensors(const char *list)
{
    while (*list) {
        char name[100], shape[20];
        int n = 0, rows = 1, cols = 1;
        if (sscanf(list, "%99s %19s%n", name, shape, &n) != 2)
            return;
        (void)sscanf(shape, "%d,%d", &rows, &cols);
        stfile_add(&st, name, "BF16", shape, 2 * (size_t)(rows * cols));
        list += n + (list[n] == ' ');
    }
}

static void check_known(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        stfile_begin(&st);
        add_tensors(known[i].tensors);
        const enum gguf_status s = convert_file("COPY");
        ok(known[i].arch ? s == GGUF_OK &&
                               has_text("general.architecture", known[i].arch)
                         : s == GGUF_E_ARCH,
           "tensors of %s: %s", known[i].arch ? known[i].arch : "none",
           err.message);
    }
}

static void check_refused(void)
{
    char name[140];
    stfile_begin(&st);
    stfile_add(&st, FLUX, "BF16", "4,4", 32);
    stfile_add(&st, HYVID, "BF16", "4,4", 32);
    stfile_add(&st, REFINE, "BF16", "4,4", 32);
    refuse_file("flux and hyvid", "names of two architectures");
    stfile_begin(&st);
    stfile_add(&st, COMFY FLUX, "BF16", "4,4", 32);
    stfile_add(&st, "net.joint_blocks.0.x_block.attn.qkv.weight", "BF16",
               "4,4", 32);
    refuse_file("two models: flux with names that begin with "
                "'model.diffusion_model.', and sd3 with 'net.'",
                "two models behind two prefixes");
    stfile_begin(&st);
    stfile_add(&st, HYVID, "BF16", "4,4", 32);
    refuse_file("nearest is hyvid, whose 'txt_in.individual_token_refiner.",
                "one name of two");
    refuse_file("converted as its folder", "a file of another model");
    stfile_begin(&st);
    stfile_add(&st, "transformer_blocks.0.attn.add_q_proj.weight", "BF16",
               "4,4", 32);
    refuse_file("layout of diffusers; nearest is that of",
                "an incomplete layout of diffusers");
    for (size_t n = 127; n <= 128; n++) {
        memset(name, 'x', n);
        name[n] = 0;
        stfile_begin(&st);
        stfile_add(&st, FLUX, "BF16", "4,4", 32);
        stfile_add(&st, name, "BF16", "4,4", 32);
        ok(convert_file("COPY") == (n == 127 ? GGUF_OK : GGUF_E_LIMIT),
           "a name of %zu bytes: %s", n, err.message);
    }
    unlink(scratch_path(top, "in.safetensors"));
    struct gguf_convert *c;
    ok(gguf_convert_open(&c, scratch_path(top, "in.safetensors"), NULL,
                         &err) == GGUF_E_NOTFOUND &&
           !c,
       "a missing file: %s", err.message);
}

int main(void)
{
    snprintf(top, sizeof top, "check-image.%d.tmp", (int)getpid());
    if (gg_os_make_folder(top) != 0)
        return 99;
    check_types();
    check_dimensions();
    check_scales();
    check_config();
    check_names();
    check_folders();
    check_known();
    check_refused();
    gguf_file_close(made);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
