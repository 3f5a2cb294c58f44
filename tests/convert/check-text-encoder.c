/* SPDX-License-Identifier: MIT */
/* check-text-encoder.c - text encoders of image models in one file
 *
 * A T5 encoder of two blocks: 8 columns, 2 heads of 3, 5 hidden units, 11
 * tokens, 4 buckets.
 */
#include "config.h"
#include "tests/convert/image_file.h"
#include "tests/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#define BLOCK "encoder.block.%d."

static void add_tensor(const char *name, const char *shape, unsigned n)
{
    stfile_add(&st, name, "F16", shape, 2 * (size_t)n);
}

static void add_block(int no, bool bias)
{
    char name[100];
    static const struct {
        const char *name, *shape;
        unsigned n;
    } t[] = { { "layer.0.SelfAttention.q.weight", "6,8", 48 },
              { "layer.0.SelfAttention.k.weight", "6,8", 48 },
              { "layer.0.SelfAttention.v.weight", "6,8", 48 },
              { "layer.0.SelfAttention.o.weight", "8,6", 48 },
              { "layer.0.layer_norm.weight", "8", 8 },
              { "layer.1.DenseReluDense.wi_0.weight", "5,8", 40 },
              { "layer.1.DenseReluDense.wi_1.weight", "5,8", 40 },
              { "layer.1.DenseReluDense.wo.weight", "8,5", 40 },
              { "layer.1.layer_norm.weight", "8", 8 },
              { "layer.0.SelfAttention.relative_attention_bias.weight", "4,2",
                8 } };
    for (unsigned i = 0; i < sizeof t / sizeof *t - !bias; i++) {
        snprintf(name, sizeof name, BLOCK "%s", no, t[i].name);
        add_tensor(name, t[i].shape, t[i].n);
    }
}

static void add_encoder(bool each)
{
    stfile_begin(&st);
    add_tensor("shared.weight", "11,8", 88);
    add_block(0, true);
    add_block(1, each);
    add_tensor("encoder.final_layer_norm.weight", "8", 8);
}

static bool has_number(const char *key, uint32_t want)
{
    uint32_t x;
    const struct gguf_kv *kv = made ? gguf_file_kv_find(made, key) : NULL;
    return kv && gguf_kv_get_u32(kv, &x, NULL) == GGUF_OK && x == want;
}

int main(void)
{
    snprintf(top, sizeof top, "check-text-encoder.%d.tmp", (int)getpid());
    if (gg_os_make_folder(top) != 0)
        return 99;
    add_encoder(false);
    ok(convert_file("COPY") == GGUF_OK &&
           has_tensor("enc.blk.1.attn_q.weight", GGUF_DTYPE_F16, 2, 8, 6, 1,
                      1) &&
           has_tensor("enc.blk.0.attn_rel_b.weight", GGUF_DTYPE_F16, 2, 2, 4,
                      1, 1) &&
           has_tensor("token_embd.weight", GGUF_DTYPE_F16, 2, 8, 11, 1, 1),
       "a T5 encoder in one file: %s", err.message);
    ok(has_number("t5encoder.block_count", 2) &&
           has_number("t5encoder.embedding_length", 8) &&
           has_number("t5encoder.attention.head_count", 2) &&
           has_number("t5encoder.attention.key_length", 3) &&
           has_number("t5encoder.feed_forward_length", 5) &&
           has_number("t5encoder.attention.relative_buckets_count", 4),
       "sizes of tensors give its numbers");
    add_encoder(true);
    ok(convert_file("Q8_0") == GGUF_OK &&
           gguf_file_tensor_find(made, "enc.blk.1.attn_rel_b.weight"),
       "a bias in each block: %s", err.message);
    add_encoder(false);
    add_tensor("decoder.block.0.layer.0.SelfAttention.q.weight", "6,8", 48);
    ok(convert_file("COPY") == GGUF_E_ARCH, "with a decoder it is another: %s",
       err.message);
    add_encoder(false);
    FILE *o = fopen(scratch_path(top, "config.json"), "w");
    ok(o && fputs("{}", o) >= 0 && fclose(o) == 0 &&
           convert_file("COPY") == GGUF_E_ARCH &&
           strstr(err.message, "converted as its folder"),
       "a file of a folder with config.json: %s", err.message);
    gguf_file_close(made);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
