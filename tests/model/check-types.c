/* SPDX-License-Identifier: MIT */
/* check-types.c - weights of every type that has a decoder: the logits are,
 * bit by bit, those of the decoded weights in F32 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "data/stored.h"
#include "dtype/interleave.h"
#include "kern/kern.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

/* Rows have two blocks of 256, the largest block: the second one does not
 * follow a header. */
enum { E = 512, V = 96, KV = 128, FF = 256, N_EXPERT = 4, N = 40 };

static struct gg_kern kern;

static void must_set(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    printf("# %s\n", err->message);
    abort();
}

static void add_matrix(struct gen *g, int64_t ne0, int64_t ne1, int64_t ne2,
                       const char *name)
{
    gen_tensor(g, ne0, ne1, "%s", name);
    struct gen_tensor *t = &g->t[g->n - 1];
    t->ne[2] = ne2;
    t->n_dims = ne2 > 1 ? 3 : 2;
}

/* A layer with attention and one with experts, for get_rows, products, and
 * products by expert. */
static void describe_model(struct gen *g)
{
    static const struct {
        const char *key;
        uint32_t v;
    } keys[] = { { "vocab_size", V },
                 { "context_length", 64 },
                 { "embedding_length", E },
                 { "block_count", 1 },
                 { "feed_forward_length", FF },
                 { "attention.head_count", 8 },
                 { "attention.head_count_kv", 2 },
                 { "expert_count", N_EXPERT },
                 { "expert_used_count", 2 } };
    struct gguf_error err;
    char name[64];
    gen_init(g, 7);
    must_set(
        gguf_meta_set_strz(g->meta, "general.architecture", "llama", &err),
        &err);
    must_set(
        gguf_meta_set_strz(g->meta, "tokenizer.ggml.model", "no_vocab", &err),
        &err);
    for (size_t i = 0; i < GG_LEN(keys); i++) {
        snprintf(name, sizeof name, "llama.%s", keys[i].key);
        must_set(gguf_meta_set_u32(g->meta, name, keys[i].v, &err), &err);
    }
    must_set(gguf_meta_set_f32(g->meta,
                               "llama.attention.layer_norm_rms_epsilon", 1e-5f,
                               &err),
             &err);
    add_matrix(g, E, V, 1, "token_embd.weight");
    add_matrix(g, E, V, 1, "output.weight");
    gen_tensor(g, E, 0, "output_norm.weight");
    gen_tensor(g, E, 0, "blk.0.attn_norm.weight");
    gen_tensor(g, E, 0, "blk.0.ffn_norm.weight");
    add_matrix(g, E, E, 1, "blk.0.attn_q.weight");
    add_matrix(g, E, KV, 1, "blk.0.attn_k.weight");
    add_matrix(g, E, KV, 1, "blk.0.attn_v.weight");
    add_matrix(g, E, E, 1, "blk.0.attn_output.weight");
    add_matrix(g, E, N_EXPERT, 1, "blk.0.ffn_gate_inp.weight");
    add_matrix(g, E, FF, N_EXPERT, "blk.0.ffn_gate_exps.weight");
    add_matrix(g, E, FF, N_EXPERT, "blk.0.ffn_up_exps.weight");
    add_matrix(g, FF, E, N_EXPERT, "blk.0.ffn_down_exps.weight");
}

/* ---- files ---- */

struct file {
    struct gguf_writer *w;
    uint8_t *bytes;
    size_t size;
};

/* Type of a tensor of a file whose matrices have type dtype if their rows form
 * whole groups. */
static uint32_t type_of(const struct gen_tensor *t, uint32_t dtype)
{
    const int64_t rows = gg_interleave_rows(gg_dtype_index(dtype));
    return t->n_dims > 1 && t->ne[1] % rows == 0 ? dtype : GGUF_DTYPE_F32;
}

static struct file begin_file(const struct gen *g, uint32_t dtype)
{
    struct file f;
    struct gguf_error err;
    const void *head;
    size_t n_head;
    must_set(gguf_writer_create(&f.w, g->meta, NULL, &err), &err);
    for (size_t i = 0; i < g->n; i++) {
        const struct gen_tensor *t = &g->t[i];
        must_set(gguf_writer_add_tensor(
                     f.w, (struct gguf_str){ t->name, strlen(t->name) },
                     type_of(t, dtype), t->n_dims, t->ne, &err),
                 &err);
    }
    must_set(gguf_writer_header(f.w, &head, &n_head, &err), &err);
    f.size = (size_t)gguf_writer_file_size(f.w);
    f.bytes = calloc(1, f.size);
    if (!f.bytes)
        abort();
    memcpy(f.bytes, head, n_head);
    return f;
}

static uint8_t *data_of(const struct file *f, size_t i)
{
    return f->bytes + gguf_writer_data_off(f->w) +
           gguf_writer_tensor(f->w, i)->off;
}

static void put_floats(uint8_t *to, const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        gg_bytes_store32le(to + 4 * i, bits);
    }
}

static void end_file(struct file *f)
{
    gguf_writer_destroy(f->w);
    free(f->bytes);
}

/* ---- weights of a type ---- */

/* Make a row of a type that has no encoder: random bytes with small scales. A
 * scale is at the start of the row or of each block, in F32 or F16. */
static void make_up(const struct gguf_dtype_info *dt, uint8_t *row,
                    size_t n_blocks, uint32_t *state)
{
    const size_t size = dt->row_header + n_blocks * dt->block_size;
    for (size_t i = 0; i < size; i++) {
        *state = *state * 1664525u + 1013904223u;
        row[i] = (uint8_t)(*state >> 24);
    }
    if (dt->row_header >= 4)
        gg_bytes_store32le(row, 0x3a000000u | (*state >> 12)); /* 2^-11 */
    if (dt->row_header == 2)
        gg_bytes_store16le(row, (uint16_t)(0x1000 | *state >> 24));
    for (size_t b = 0; b < n_blocks && !dt->row_header; b++)
        gg_bytes_store16le(row + b * dt->block_size,
                           (uint16_t)(0x1000 | *state >> 24));
}

/* Rows are reused, since encoders are slow. The number is prime, so that equal
 * rows are rarely neighbours. */
enum { POOL = 11 };

static void put_rows(uint8_t *to, const struct gen *g,
                     const struct gen_tensor *t,
                     const struct gguf_dtype_info *dt, float *v)
{
    const size_t n_rows = (size_t)(t->ne[1] * (t->n_dims > 2 ? t->ne[2] : 1));
    const size_t k = (size_t)t->ne[0], n_blocks = k / dt->block_len;
    const size_t size = dt->row_header + n_blocks * dt->block_size;
    const size_t n = GG_MIN(n_rows, (size_t)POOL);
    const struct gg_codec_kern *c = &kern.codec[gg_dtype_index(dt->id)];
    float ones[E];
    uint32_t state = (uint32_t)n_rows;
    for (size_t i = 0; i < E; i++)
        ones[i] = 1;
    gen_weights(v, g, t);
    if (c->encode)
        c->encode(v, to, n, k, ones);
    for (size_t r = 0; r < n && !c->encode; r++)
        make_up(dt, to + r * size, n_blocks, &state);
    for (size_t r = n; r < n_rows; r++)
        memcpy(to + r * size, to + r % POOL * size, size);
}

/* Bytes of a group of rows of k elements, or of a row. */
static size_t group_size(const struct gguf_dtype_info *dt, size_t k)
{
    return gg_interleave_rows(gg_dtype_index(dt->id)) *
           (dt->row_header + k / dt->block_len * dt->block_size);
}

/* Make groups of rows: of encoded rows, or for types that have no way back
 * random bytes with small scales, which stand first in the headers or in each
 * block. */
static void put_groups(uint8_t *to, const struct gen *g,
                       const struct gen_tensor *t,
                       const struct gguf_dtype_info *dt, float *v)
{
    static uint8_t rows[E * FF * N_EXPERT * 4];
    const int type = gg_dtype_index(dt->id);
    const struct gguf_dtype_info *p =
        gg_dtype_by_index(gg_interleave_plain(type));
    const unsigned n = gg_interleave_rows(type);
    const size_t k = (size_t)t->ne[0], size = group_size(dt, k);
    const size_t n_groups =
        (size_t)(t->ne[1] * (t->n_dims > 2 ? t->ne[2] : 1)) / n;
    const struct gguf_dtype_info together = { .row_header = n * dt->row_header,
                                              .block_size =
                                                  n * dt->block_size };
    uint32_t state = (uint32_t)k;
    if (gg_interleave_has_put(type))
        put_rows(rows, g, t, p, v);
    for (size_t i = 0; i < n_groups; i++, to += size)
        if (gg_interleave_has_put(type)) {
            gg_interleave_put(type, to, k, rows + i * n * group_size(p, k));
        } else {
            make_up(&together, to, k / dt->block_len, &state);
            const size_t each = dt->row_header ? size : n * dt->block_size;
            for (size_t at = 0; at < size; at += each)
                for (unsigned r = 0; r < n; r++)
                    gg_bytes_store16le(to + at + 2 * r,
                                       (uint16_t)(0x1000 + 16 * r + i % 7));
        }
}

/* Make the weights of a tensor, and decode them. */
static void put_weights(uint8_t *to, const struct gen *g,
                        const struct gen_tensor *t, uint32_t dtype, float *v)
{
    const struct gguf_dtype_info *dt = gguf_dtype_find(type_of(t, dtype));
    const size_t k = (size_t)t->ne[0];
    const size_t n_rows = (size_t)(t->ne[1] * (t->n_dims > 2 ? t->ne[2] : 1));
    const int type = gg_dtype_index(dt->id);
    struct gg_stored stored;
    if (dt->id == GGUF_DTYPE_F32) {
        gen_weights(v, g, t);
        put_floats(to, v, k * (t->n_dims == 1 ? 1 : n_rows));
        return;
    }
    if (gg_interleave_rows(type) > 1)
        put_groups(to, g, t, dt, v);
    else
        put_rows(to, g, t, dt, v);
    if (!gg_stored_init(&stored, kern.codec, dt->id, to, k,
                        group_size(dt, k) / gg_interleave_rows(type), false))
        abort();
    gg_stored_read(&stored, 0, k * n_rows, v);
}

/* Make the files of a type: one with encoded weights, one with the same
 * weights decoded. false: a weight is not finite, and the test skips it. */
static bool make_files(const struct gen *g, const struct gguf_dtype_info *dt,
                       struct file *typed, struct file *plain)
{
    static float v[E * FF * N_EXPERT];
    bool finite = true;
    *typed = begin_file(g, dt->id);
    *plain = begin_file(g, GGUF_DTYPE_F32);
    for (size_t i = 0; i < g->n; i++) {
        const struct gen_tensor *t = &g->t[i];
        const size_t n = (size_t)(t->ne[0] * (t->n_dims > 1 ? t->ne[1] : 1) *
                                  (t->n_dims > 2 ? t->ne[2] : 1));
        put_weights(data_of(typed, i), g, t, dt->id, v);
        put_floats(data_of(plain, i), v, n);
        for (size_t e = 0; e < n; e++)
            finite = finite && isfinite(v[e]);
    }
    return finite;
}

/* ---- the same bits ---- */

static bool get_logits(const struct file *f, size_t n, float *out)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[N];
    struct run r;
    for (int i = 0; i < N; i++)
        tok[i] = (i * 37 + 11) % V;
    p.n_ctx = N;
    b.n = n;
    b.token = tok;
    const bool good =
        run_open(&r, f->bytes, f->size, 2, &p) && run_logits(&r, &b, out);
    if (!good)
        printf("# %s\n", r.err.message);
    run_close(&r);
    return good;
}

static void check_type(const struct gen *g, const struct gguf_dtype_info *dt)
{
    static float a[N * V], b[N * V];
    /* a narrow product and a wide one */
    static const size_t counts[] = { 1, N };
    struct file typed, plain;
    bool good = make_files(g, dt, &typed, &plain), moves = true;
    for (size_t i = 0; i < GG_LEN(counts) && good; i++) {
        good = get_logits(&typed, counts[i], a) &&
               get_logits(&plain, counts[i], b) &&
               !memcmp(a, b, counts[i] * V * sizeof *a);
        moves = moves && a[0] != a[1] && isfinite(a[0]);
    }
    ok(good && moves, "%s: the bits of what its weights decode to", dt->name);
    end_file(&typed);
    end_file(&plain);
}

int main(void)
{
    static struct gen g;
    unsigned n = 0, headers = 0, groups = 0;
    gg_kern_init(&kern, 0);
    describe_model(&g);
    for (int i = 0; i < GG_N_DTYPES; i++) {
        const struct gguf_dtype_info *dt = gg_dtype_by_index(i);
        if (!kern.codec[gg_interleave_plain(i)].decode ||
            dt->family == GGUF_FAMILY_INT)
            continue;
        check_type(&g, dt);
        n++;
        groups += gg_interleave_rows(i) > 1;
        headers += dt->row_header != 0;
    }
    ok(n >= 70 && headers >= 5 && groups == 30,
       "%u types, %u with rows that have headers, %u with groups of rows", n,
       headers, groups);
    gen_fini(&g);
    return done_testing();
}
