/* SPDX-License-Identifier: MIT */
/* tensors.h - models from lists of tensors, for tests of jobs that decode and
 * encode
 *
 * A program that includes this has one folder, with the model `in' and the
 * outputs `out' and `out_2'.
 */
#ifndef TESTS_QUANT_TENSORS_H
#define TESTS_QUANT_TENSORS_H

#include "gguf/quant.h"
#include "gguf/writer.h"
#include "kern/codec.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <unistd.h>

static char dir[3000], in[4000], out[4000], out_2[4000];
static uint32_t n_shards; /* split.count of the model; 0: no key */

/* Make the folder. false: failed. */
static inline bool make_dir(const char *program)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/%s.XXXXXX", tmp ? tmp : "/tmp", program);
    if (!scratch_make(dir))
        return false;
    snprintf(in, sizeof in, "%s/in.gguf", dir);
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    snprintf(out_2, sizeof out_2, "%s/out2.gguf", dir);
    return true;
}

static inline void remove_dir(void)
{
    unlink(in);
    unlink(out);
    rmdir(dir);
}

struct tensor {
    const char *name;
    uint32_t type;
    int64_t ne[4];
    const void *data; /* F32: floats; NULL: random, with finite scales */
};

/* Random bytes. Bits that could make an F16 or float infinite are cleared,
 * whatever field the byte belongs to. */
static inline uint8_t *random_data(uint64_t size)
{
    uint8_t *p = malloc((size_t)size);
    for (uint64_t i = 0; i < size; i++)
        p[i] = (uint8_t)rnd64() & 0xb7;
    return p;
}

/* Data of tensor t: size bytes as in its file. */
static inline uint8_t *file_data(const struct tensor *t, uint64_t size)
{
    if (!t->data)
        return random_data(size);
    uint8_t *p = malloc((size_t)size);
    if (t->type == GGUF_DTYPE_F32)
        gg_kern_encode_f32_c(t->data, p, 1, (size_t)size / sizeof(float),
                             NULL);
    else
        memcpy(p, t->data, (size_t)size);
    return p;
}

/* Write the model `in' of n tensors. */
static inline bool write_model(const struct tensor *t, size_t n)
{
    struct gguf_meta *m;
    struct gguf_writer *w;
    struct gguf_output_params p = GGUF_INIT(struct gguf_output_params);
    p.force = p.no_sync = 1;
    if (gguf_meta_create(&m, NULL, NULL) != GGUF_OK)
        return false;
    bool good = gguf_meta_set_strz(m, "general.architecture", "test", NULL) ==
                    GGUF_OK &&
                (!n_shards || gguf_meta_set_u32(m, "split.count", n_shards,
                                                NULL) == GGUF_OK) &&
                gguf_writer_create(&w, m, NULL, NULL) == GGUF_OK;
    gguf_meta_destroy(m);
    if (!good)
        return false;
    for (size_t i = 0; good && i < n; i++) {
        struct gguf_str name = { t[i].name, strlen(t[i].name) };
        good = gguf_writer_add_tensor(w, name, t[i].type, 3, t[i].ne, NULL) ==
               GGUF_OK;
    }
    good = good && gguf_writer_begin_file(w, in, &p, NULL) == GGUF_OK;
    for (size_t i = 0; good && i < n; i++) {
        uint64_t row;
        good = gguf_dtype_row_size(t[i].type, (uint64_t)t[i].ne[0], &row,
                                   NULL) == GGUF_OK;
        row *= (uint64_t)(t[i].ne[1] * t[i].ne[2]);
        uint8_t *data = file_data(&t[i], row);
        good = good && gguf_writer_begin_tensor(w, i, NULL) == GGUF_OK &&
               gguf_writer_write(w, data, row, NULL) == GGUF_OK;
        free(data);
    }
    good = good && gguf_writer_commit(w, NULL) == GGUF_OK;
    gguf_writer_destroy(w);
    return good;
}

/* ------------------------------------------------ NVFP4 and its scales --- */

enum { Q, Q_SCALE, Q_INPUT, UP, UP_SCALE, K, OTHER, N_TENSORS };

static const float scales[] = { 0.37f, 3, -0.5f, 0x1.8p-9f };

static struct tensor nvfp4[N_TENSORS] = {
    { "blk.0.attn_q.weight", GGUF_DTYPE_NVFP4, { 128, 6, 1, 1 }, NULL },
    { "blk.0.attn_q.scale", GGUF_DTYPE_F32, { 1, 1, 1, 1 }, scales },
    { "blk.0.attn_q.input_scale", GGUF_DTYPE_F32, { 1, 1, 1, 1 }, scales },
    { "blk.0.ffn_up_exps.weight", GGUF_DTYPE_NVFP4, { 64, 4, 3, 1 }, NULL },
    { "blk.0.ffn_up_exps.scale", GGUF_DTYPE_F32, { 3, 1, 1, 1 }, scales + 1 },
    { "blk.0.attn_k.weight", GGUF_DTYPE_NVFP4, { 64, 2, 1, 1 }, NULL },
    { "blk.0.other.scale", GGUF_DTYPE_F32, { 1, 1, 1, 1 }, scales },
};

/* Write it with random blocks. */
static inline void write_nvfp4(void)
{
    nvfp4[Q].data = random_data(6 * 128 / 64 * 36);
    nvfp4[UP].data = random_data(12 * 36);
    nvfp4[K].data = random_data(2 * 36);
    if (!write_model(nvfp4, N_TENSORS))
        exit(99);
}

#endif
