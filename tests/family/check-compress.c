/* SPDX-License-Identifier: MIT */
/* check-compress.c - sizes and options of DeepSeek-V4 in double precision */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/ref.h"
#include "tests/family/refds4.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { V = REFDS4_VOCAB, MOST = 300 };

/* Two blocks of 128 tokens, 75 of 4. The indexer has many heads, so that no
 * score is 0: the choice between equal scores is undefined. */
static const struct refds4 plain = { .n_embd = 16,
                                     .n_head = 4,
                                     .d = 8,
                                     .rot = 4,
                                     .rank_q = 12,
                                     .n_layer = 3,
                                     .window = 5,
                                     .ratio = { 0, 4, 128 },
                                     .n_idx = 20,
                                     .d_idx = 8,
                                     .top = 7,
                                     .groups = 2,
                                     .out_rank = 6,
                                     .streams = 4,
                                     .iterations = 3,
                                     .experts = 6,
                                     .used = 2,
                                     .n_ff = 8,
                                     .shared = 1,
                                     .norm = 1,
                                     .scale = 1.5,
                                     .clamp = { 7, 7, 7 },
                                     .clamp_shared = -1,
                                     .eps = 1e-5f,
                                     .base = 10000,
                                     .compress_base = 40000,
                                     .hyper_eps = 1e-6f,
                                     .n_ctx_orig = 64 };

/* Members of a variant that differ from plain. */
#define CHANGE(NAME, ...)                                                     \
    static void NAME(struct refds4 *s)                                        \
    {                                                                         \
        __VA_ARGS__;                                                          \
    }
#define EACH(MEMBER, A, B, C)                                                 \
    s->MEMBER[0] = (A), s->MEMBER[1] = (B), s->MEMBER[2] = (C)

CHANGE(nothing, (void)s)
CHANGE(yarn, s->scaling = "yarn", s->factor = 4)
CHANGE(linear, s->scaling = "linear", s->factor = 2)
CHANGE(other_order, EACH(ratio, 4, 128, 0))
CHANGE(far_only, EACH(ratio, 128, 128, 128); s->window = 1)
CHANGE(windows_only, EACH(ratio, 0, 0, 0))
CHANGE(all_turns, s->d = s->rot = s->d_idx = 6)
CHANGE(one_block, s->d_idx = 12, s->top = 1)
CHANGE(all_blocks, s->top = 4000)
CHANGE(all_hashed, s->hashed = 3, s->used = 3)
CHANGE(one_hashed, s->hashed = 1)
CHANGE(limits, EACH(clamp, 0.5f, 0, 0.05f); s->clamp_shared = 0.2f)
CHANGE(limits_of_all, EACH(clamp, 0.1f, 0.2f, 0.05f))
CHANGE(no_limit_shared, EACH(clamp, 0.1f, 0.2f, 0.05f); s->clamp_shared = 0)
CHANGE(two_shared, s->norm = 0, s->scale = 0.5, s->shared = 2)
CHANGE(two_streams, s->streams = 2, s->iterations = 1)
CHANGE(three_streams, s->streams = 3, s->iterations = 0, s->hyper_eps = 0.1f)
CHANGE(one_group, s->groups = 1)
CHANGE(flat_groups, s->groups = 4, s->flat = 1)
CHANGE(drafts, s->drafts = 1)
CHANGE(drafts_gone, s->drafts = 2)
CHANGE(blocks_of_32, s->d = s->d_idx = 32, s->rot = 8, s->top = 4000)

static const struct variant {
    const char *what;
    void (*change)(struct refds4 *s);
    int n;
} variants[] = {
    { "the sample's form", nothing, MOST },
    { "a text shorter than a block", nothing, 3 },
    { "one whole block", nothing, 4 },
    { "YaRN where keys are compressed", yarn, 200 },
    { "linear scaling where keys are compressed", linear, 200 },
    { "layers of 4, of 128, without", other_order, MOST },
    { "layers of 128 only, a window of 1", far_only, MOST },
    { "layers without compressed keys only", windows_only, 40 },
    { "all of a head turns", all_turns, 150 },
    { "an indexer with wider heads, and one block", one_block, 60 },
    { "more blocks than there are", all_blocks, MOST },
    { "tokens choose three of six experts of all layers", all_hashed, 60 },
    { "tokens choose experts of the first layer", one_hashed, 60 },
    { "limits by layer, one of them none, and of shared experts", limits, 60 },
    { "limits of experts are those of shared ones", limits_of_all, 60 },
    { "no limit of shared experts", no_limit_shared, 60 },
    { "weights that add to what they do, two shared experts", two_shared, 60 },
    { "two streams, one iteration", two_streams, 60 },
    { "three streams, no iteration, a large epsilon", three_streams, 60 },
    { "one group of heads", one_group, 60 },
    { "a group a head, in a matrix of two dimensions", flat_groups, 60 },
    { "a layer that drafts", drafts, 60 },
    { "a key of layers that draft, which are not there", drafts_gone, 60 },
};

static struct gen g;
static gguf_token tok[2 * MOST];
static float all[2 * MOST * V];

static void *make_file(const struct refds4 *s, size_t *size)
{
    gen_init(&g, 77);
    refds4_model(&g, s);
    return gen_file(&g, GGUF_DTYPE_F32, size);
}

/* ---- against doubles ---- */

static double from_doubles(const struct refds4 *s, int n)
{
    static float want[MOST * V];
    double *ref = ref_doubles((size_t)(n * V));
    refds4_run(&g, s, tok, n, ref);
    for (int i = 0; i < n * V; i++)
        want[i] = (float)ref[i];
    free(ref);
    return run_nmse(all, want, (size_t)(n * V));
}

/* Logits of n tokens, in batches of step tokens and micro-batches of ubatch. */
static bool run_all(const void *file, size_t size, int n, int step,
                    uint32_t ubatch, unsigned n_threads, uint32_t dtype,
                    float *out)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    p.n_ctx = MOST;
    p.n_ubatch = ubatch;
    p.key_dtype = p.value_dtype = gguf_dtype_find(dtype);
    bool good = run_open(&r, file, size, n_threads, &p);
    for (int t = 0; good && t < n; t += step) {
        struct gguf_batch b = GGUF_BATCH_INIT;
        b.n = (size_t)GG_MIN(step, n - t);
        b.token = tok + t;
        good = run_logits(&r, &b, out + t * V);
    }
    if (!good)
        printf("# %s\n", r.err.message);
    run_close(&r);
    return good;
}

static void check_variant(const struct variant *v)
{
    static float got[MOST * V];
    static const struct {
        int step;
        uint32_t ubatch;
        unsigned n_threads;
    } cuts[] = { { MOST, 1, 1 }, { MOST, 7, 1 }, { MOST, 130, 3 } };
    const size_t bytes = (size_t)(v->n * V) * sizeof *got;
    struct refds4 s = plain;
    size_t size, n_same = 0;
    v->change(&s);
    void *file = make_file(&s, &size);
    const bool good =
        run_all(file, size, v->n, MOST, MOST, 1, GGUF_DTYPE_F32, all);
    const double d = good ? from_doubles(&s, v->n) : 1;
    ok(good && d < 1e-10, "%s: %.2g from doubles", v->what, d);
    for (size_t i = 0; i < GG_LEN(cuts) && good; i++)
        n_same += run_all(file, size, v->n, cuts[i].step, cuts[i].ubatch,
                          cuts[i].n_threads, GGUF_DTYPE_F32, got) &&
                  !memcmp(got, all, bytes);
    const double one =
        good && run_all(file, size, v->n, 1, MOST, 2, GGUF_DTYPE_F32, got)
            ? run_nmse(got, all, (size_t)(v->n * V))
            : 1;
    ok(n_same == GG_LEN(cuts) && one < 1e-10,
       "%s: the same bits in pieces (%zu), %.2g token by token", v->what,
       n_same, one);
    free(file);
    gen_fini(&g);
}

/* ---- several sequences, and forgetting ---- */

/* Decode a batch of two sequences. The second is n_more tokens ahead. */
static bool decode_beside(struct run *r, int from, int to, int n_more,
                          float *out)
{
    static gguf_token t[2 * MOST];
    static int32_t seq[2 * MOST];
    static float rows[2 * MOST * V];
    struct gguf_batch b = GGUF_BATCH_INIT;
    const int n = to - from;
    for (int i = 0; i < 2 * n; i++) {
        seq[i] = i % 2;
        t[i] = tok[from + i / 2 + (i % 2 ? n_more : 0)];
    }
    b.n = (size_t)(2 * n);
    b.token = t;
    b.seq = seq;
    if (!run_logits(r, &b, rows))
        return false;
    for (int i = 0; i < 2 * n; i++)
        memcpy(out +
                   ((i % 2) * MOST + from + i / 2 + (i % 2 ? n_more : 0)) * V,
               rows + i * V, V * sizeof *out);
    return true;
}

static void check_sequences(void)
{
    enum { N = 150, MORE = 21 };
    const struct refds4 s = plain;
    static float got[2 * MOST * V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    static int32_t second[MORE];
    struct run r;
    size_t size;
    void *file = make_file(&s, &size);
    const bool whole =
        run_all(file, size, N + MORE, MOST, MOST, 1, GGUF_DTYPE_F32, all);
    p.n_ctx = MOST;
    p.n_seq = 2;
    bool good = run_open(&r, file, size, 2, &p);
    b.n = MORE;
    b.token = tok;
    b.seq = second;
    for (int i = 0; i < MORE; i++)
        second[i] = 1;
    good = good && run_logits(&r, &b, got + MOST * V) &&
           decode_beside(&r, 0, 9, MORE, got) &&
           decode_beside(&r, 9, 100, MORE, got) &&
           decode_beside(&r, 100, N, MORE, got);
    double d[2] = { 1, 1 };
    for (int q = 0; q < 2 && good; q++)
        d[q] = run_nmse(got + q * MOST * V, all,
                        (size_t)((N + (q ? MORE : 0)) * V));
    ok(whole && good && d[0] < 1e-10 && d[1] < 1e-10,
       "two sequences side by side, one ahead: %.2g, %.2g", d[0], d[1]);

    bool refused = gguf_session_remove_tokens(r.session, 0, 100, -1, &r.err) ==
                   GGUF_E_UNSUPPORTED;
    ok(good && refused, "a part is not forgotten: %s", r.err.message);
    good = gguf_session_remove_tokens(r.session, 0, 0, -1, &r.err) == GGUF_OK;
    b.n = N;
    b.seq = NULL;
    good = good && run_logits(&r, &b, got);
    ok(good && !memcmp(got, all, N * V * sizeof *got),
       "after a sequence was forgotten it gives the same bits again");
    good =
        gguf_session_remove_tokens(r.session, 1, 0, -1, &r.err) == GGUF_OK &&
        gguf_session_copy_tokens(r.session, 0, 1, 0, -1, &r.err) == GGUF_OK;
    b.n = MORE;
    b.token = tok + N;
    b.seq = second;
    good = good && run_logits(&r, &b, got);
    const double on =
        good ? run_nmse(got, all + N * V, (size_t)(MORE * V)) : 1;
    ok(on < 1e-10, "a copy goes on as the sequence would: %.2g %s", on,
       good ? "" : r.err.message);
    run_close(&r);
    free(file);
    gen_fini(&g);
}

/* ---- positions that leave gaps ---- */

static void check_positions(void)
{
    const struct refds4 s = plain;
    static const struct {
        int32_t pos[3];
        const char *says;
    } cases[] = {
        { { 1, 2, 3 },
          "token 0 of sequence 0 is at position 1, must be at 0" },
        { { 0, 1, 3 },
          "token 2 of sequence 0 is at position 3, must be at 2" },
        { { 0, 1, 1 },
          "token 2 of sequence 0 is at position 1, must be at 2" },
        { { 0, 1, 2 }, NULL },
    };
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    size_t size;
    void *file = make_file(&s, &size);
    p.n_ctx = 16;
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_batch b = GGUF_BATCH_INIT;
        struct run r;
        float out[3 * V];
        b.n = 3;
        b.token = tok;
        b.pos = cases[i].pos;
        bool good = run_open(&r, file, size, 1, &p) && run_logits(&r, &b, out);
        ok(cases[i].says ? !good && r.err.status == GGUF_E_INVALID &&
                               strstr(r.err.message, cases[i].says)
                         : good,
           "positions: %s", good ? "in order" : r.err.message);
        run_close(&r);
    }
    free(file);
    gen_fini(&g);
}

/* Calls that compressed keys do not allow are refused, and the sequence
 * continues as if they had not been made. */
static void check_calls(void)
{
    enum { N = 60, MORE = 9 };
    static const struct {
        const char *name, *says;
    } cases[] = {
        { "forgetting the end", "cannot forget some of its tokens" },
        { "forgetting the beginning", "cannot forget some of its tokens" },
        { "copying the beginning", "cannot copy some of its tokens" },
        { "shifting all", "tokens cannot change positions" },
        { "shifting some", "cannot shift some of its tokens" },
        { "dividing", "tokens cannot change positions" },
    };
    const struct refds4 s = plain;
    static float got[MORE * V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run r;
    size_t size;
    void *file = make_file(&s, &size);
    const bool whole =
        run_all(file, size, N + MORE, MOST, MOST, 1, GGUF_DTYPE_F32, all);
    p.n_ctx = MOST;
    p.n_seq = 2;
    bool good = run_open(&r, file, size, 1, &p);
    b.n = N;
    b.token = tok;
    good = good && gguf_session_decode(r.session, &b, &r.err) == GGUF_OK;
    struct gguf_session *x = r.session;
    for (size_t i = 0; good && i < GG_LEN(cases); i++) {
        gguf_error_clear(&r.err);
        const enum gguf_status st =
            i == 0   ? gguf_session_remove_tokens(x, 0, 50, -1, &r.err)
            : i == 1 ? gguf_session_remove_tokens(x, 0, 0, 10, &r.err)
            : i == 2 ? gguf_session_copy_tokens(x, 0, 1, 0, 20, &r.err)
            : i == 3 ? gguf_session_shift_positions(x, 0, 0, -1, 4, &r.err)
            : i == 4 ? gguf_session_shift_positions(x, 0, 30, -1, 4, &r.err)
                     : gguf_session_divide_positions(x, 0, 0, -1, 2, &r.err);
        ok(st == GGUF_E_UNSUPPORTED && strstr(r.err.message, cases[i].says) &&
               gguf_session_n_tokens(x, 0) == N &&
               gguf_session_next_pos(x, 0) == N &&
               !gguf_session_n_tokens(x, 1),
           "%s: %s", cases[i].name, r.err.message);
    }
    b.n = MORE;
    b.token = tok + N;
    good = good && whole && run_logits(&r, &b, got);
    const double d = good ? run_nmse(got, all + N * V, MORE * V) : 1;
    ok(d < 1e-10, "and it goes on: %.2g", d);
    run_close(&r);
    free(file);
    gen_fini(&g);
}

static void check_unified(void)
{
    const struct refds4 s = plain;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    size_t size;
    void *file = make_file(&s, &size);
    p.n_ctx = 16;
    p.unified = true;
    const bool good = run_open(&r, file, size, 1, &p);
    ok(!good && r.err.status == GGUF_E_UNSUPPORTED &&
           strstr(r.err.message, "unified"),
       "%s", r.err.message);
    run_close(&r);
    free(file);
    gen_fini(&g);
}

/* A session takes the memory that was planned. */
static void check_planned(void)
{
    const struct refds4 s = plain;
    static const uint32_t contexts[] = { 7, 64, 513, 1000 };
    size_t size, n_same = 0;
    void *file = make_file(&s, &size);
    for (size_t i = 0; i < GG_LEN(contexts); i++) {
        struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
        uint64_t cache[2] = { 0, 1 }, graph[2] = { 0, 1 };
        struct run r;
        p.n_ctx = contexts[i];
        p.n_seq = 1 + (uint32_t)i % 3;
        const bool good = run_open(&r, file, size, 1, &p);
        p.backend = r.backend;
        if (good && gguf_session_estimate_memory(r.model, &p, &cache[0],
                                                 &graph[0], &r.err) == GGUF_OK)
            gguf_session_memory_size(r.session, &cache[1], &graph[1]);
        n_same += cache[0] == cache[1] && graph[0] == graph[1];
        run_close(&r);
    }
    ok(n_same == GG_LEN(contexts), "the planned memory: %zu of %zu", n_same,
       GG_LEN(contexts));
    free(file);
    gen_fini(&g);
}

/* ---- types of keys ---- */

static void check_types(void)
{
    struct refds4 s = plain;
    static const struct {
        uint32_t dtype;
        double most;
    } types[] = { { GGUF_DTYPE_F16, 1e-5 }, { GGUF_DTYPE_Q8_0, 1e-2 } };
    static float got[MOST * V];
    size_t size;
    blocks_of_32(&s);
    void *file = make_file(&s, &size);
    bool good = run_all(file, size, 200, MOST, MOST, 1, GGUF_DTYPE_F32, all);
    for (size_t i = 0; i < GG_LEN(types); i++) {
        good =
            good && run_all(file, size, 200, MOST, 64, 1, types[i].dtype, got);
        const double d = good ? run_nmse(got, all, 200 * V) : 1;
        ok(good && d > 0 && d < types[i].most, "rows of type %s: %.2g",
           gguf_dtype_find(types[i].dtype)->name, d);
    }
    free(file);
    gen_fini(&g);
}

/* ---- refused models ---- */
static void set_u32(const char *key, uint32_t v)
{
    char name[96];
    snprintf(name, sizeof name, "deepseek4.%s", key);
    if (gguf_meta_set_u32(g.meta, name, v, NULL))
        abort();
}
static void set_ratios(const int32_t *v, size_t n)
{
    if (gguf_meta_set_array(g.meta, "deepseek4.attention.compress_ratios",
                            GGUF_VAL_I32, v, n, NULL))
        abort();
}
static void ratio_of_8(void)
{
    set_ratios((const int32_t[]){ 0, 8, 0 }, 3);
}
static void ratio_below_0(void)
{
    set_ratios((const int32_t[]){ 0, -4, 0 }, 3);
}
static void two_ratios(void)
{
    set_ratios((const int32_t[]){ 0, 4 }, 2);
}
static void one_ratio(void)
{
    set_u32("attention.compress_ratios", 4);
}
static void three_groups(void)
{
    set_u32("attention.output_group_count", 3);
}
static void other_gate(void)
{
    set_u32("expert_gating_func", 2);
}
static void no_rank(void)
{
    set_u32("attention.q_lora_rank", 0);
}
static void no_window(void)
{
    set_u32("attention.sliding_window", 0);
}
static void other_values(void)
{
    set_u32("attention.value_length", 6);
}
static void narrow_index(void)
{
    set_u32("attention.indexer.key_length", 2);
}
static void all_drafts(void)
{
    set_u32("nextn_predict_layers", 4);
}
static void looks_ahead(void)
{
    if (gguf_meta_set_bool(g.meta, "deepseek4.attention.causal", 0, NULL))
        abort();
}
static void other_rank(void)
{
    set_u32("attention.output_lora_rank", 5);
}
static void no_table(void)
{
    gen_drop(&g, "blk.0.ffn_gate_tid2eid.weight");
}
static void no_bias(void)
{
    gen_drop(&g, "blk.1.exp_probs_b.bias");
}
static void no_ape(void)
{
    gen_drop(&g, "blk.2.attn_compressor_ape.weight");
}
static void no_index(void)
{
    gen_drop(&g, "blk.1.indexer.proj.weight");
}
static void bad_id(int32_t id)
{
    static int32_t ids[2 * V];
    for (size_t i = 0; i < g.n; i++)
        if (g.t[i].ints) {
            memcpy(ids, g.t[i].ints, sizeof ids);
            g.t[i].ints = ids;
        }
    ids[5] = id;
}
static void expert_6(void)
{
    bad_id(6);
}
static void expert_below_0(void)
{
    bad_id(-1);
}

static void check_refused(void)
{
    static const struct {
        void (*change)(void);
        const char *says;
    } cases[] = {
        { ratio_of_8, "deepseek4.attention.compress_ratios is unsupported "
                      "in layer 1, must be 0, 4 or 128" },
        { ratio_below_0, "compress_ratios is unsupported in layer 1" },
        { two_ratios, "compress_ratios must be an array of 3" },
        { one_ratio, "compress_ratios must be an array of 3" },
        { three_groups, "output_group_count is 3, must divide head_count 4" },
        { other_gate, "expert_gating_func is 2, must be 4" },
        { no_rank, "attention.q_lora_rank is 0, must be 1" },
        { no_window, "attention.sliding_window is 0, must be 1" },
        { other_values, "attention.value_length is 6, must be 8" },
        { narrow_index, "attention.indexer.key_length is 2, must be 4" },
        { all_drafts, "nextn_predict_layers is 4" },
        { looks_ahead, "attention.causal: false" },
        { other_rank, "blk.0.attn_output_" },
        { no_table, "'blk.0.ffn_gate_tid2eid.weight' is missing" },
        { no_bias, "'blk.1.exp_probs_b.bias' is missing" },
        { no_ape, "'blk.2.attn_compressor_ape.weight' is missing" },
        { no_index, "'blk.1.indexer.proj.weight' is missing" },
        { expert_6, "'blk.0.ffn_gate_tid2eid.weight': element 5 is 6, there "
                    "are 6 experts" },
        { expert_below_0, "'blk.0.ffn_gate_tid2eid.weight': element 5 is -1" },
    };
    struct refds4 s = plain;
    one_hashed(&s);
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
        struct run r;
        size_t size;
        gen_init(&g, 77);
        refds4_model(&g, &s);
        cases[i].change();
        void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
        p.n_ctx = 16;
        const bool good = run_open(&r, file, size, 1, &p);
        ok(!good && strstr(r.err.message, cases[i].says), "%s",
           good ? cases[i].says : r.err.message);
        run_close(&r);
        free(file);
        gen_fini(&g);
    }
}

int main(void)
{
    for (int i = 0; i < 2 * MOST; i++)
        tok[i] = (i * 37 + i / 11 * 5 + 11) % V;
    for (size_t i = 0; i < GG_LEN(variants); i++)
        check_variant(&variants[i]);
    check_sequences();
    check_positions();
    check_unified();
    check_calls();
    check_planned();
    check_types();
    check_refused();
    return done_testing();
}
