/* SPDX-License-Identifier: MIT */
/* check-states.c - state spaces and RWKV beyond their samples: keys and tensors
 * that files may have, by changes of these models after which something must
 * be the same, or refused */
#include "config.h"
#include "base/compiler.h"
#include "model/arch.h"
#include "tests/model/vary.h"
#include "tests/tap.h"

enum { N = VARY_N, V = VARY_V, MOST = 128 * 160 };

/* ---- values of tensors ---- */

static float pool[64][MOST];
static size_t n_pool;

/* Room for the values of a tensor. */
static float *room(void)
{
    if (n_pool == GG_LEN(pool))
        abort();
    return pool[n_pool++];
}

/* All values of a tensor of layer il are v. */
static void fill(int il, const char *name, float v)
{
    char full[80];
    float *to = room();
    for (size_t i = 0; i < MOST; i++)
        to[i] = v;
    snprintf(full, sizeof full, "blk.%d.%s", il, name);
    vary_values(full, to);
}

/* What the weights of a tensor would be under its first name. */
static const float *weights(const char *name)
{
    float *to = room();
    gen_weights(to, &vary_model.g, vary_find(name));
    return to;
}

static void tensor(int il, const char *name, int64_t ne0, int64_t ne1,
                   const float *v)
{
    char full[80];
    snprintf(full, sizeof full, "blk.%d.%s", il, name);
    gen_tensor(&vary_model.g, ne0, ne1, "%s", full);
    if (v)
        vary_values(full, v);
}

/* How far two variants are from each other. */
static double apart(const char *name, vary_fn *a, vary_fn *b)
{
    n_pool = 0;
    return vary_apart(name, a, b, N, N);
}

static void same(const char *name, vary_fn *a, vary_fn *b, const char *what)
{
    const double d = apart(name, a, b);
    ok(d == 0, "%s: %s: %g", name, what, d);
}

static void counts(const char *name, vary_fn *a, vary_fn *b, const char *what)
{
    const double d = apart(name, a, b);
    ok(d > 1e-4 && d < 9, "%s: %s: %g", name, what, d);
}

/* ---- state spaces ---- */

static void rms(void)
{
    vary_bool(".ssm.dt_b_c_rms", true);
}
/* Norms of dt, b and c are of any size of them. */
static void rms_of_larger(void)
{
    rms();
    vary_gain("ssm_x.weight", 4096);
}
static void rms_of_large(void)
{
    rms();
    vary_gain("ssm_x.weight", 1024);
}
static void no_bare_keys(void)
{
    vary_drop(".ssm.dt_b_c_rms");
    vary_drop(".attention.head_count");
    vary_drop(".feed_forward_length");
}
static void one_tap(void)
{
    vary_u32(".ssm.conv_kernel", 1);
    for (int il = 0; il < 2; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ssm_conv1d.weight", il);
        vary_find(name)->ne[0] = 1;
        fill(il, "ssm_conv1d.weight", 0.5f);
    }
}
/* Of four taps only that of the token itself. */
static void last_tap(void)
{
    for (int il = 0; il < 2; il++) {
        fill(il, "ssm_conv1d.weight", 0);
        for (size_t i = 3; i < MOST; i += 4)
            pool[n_pool - 1][i] = 0.5f;
    }
}

/* The norm before the feed-forward part under its usual name. */
static void usual_name(void)
{
    for (int il = 0; il < 2; il++) {
        char old[64];
        snprintf(old, sizeof old, "blk.%d.ffn_norm", il);
        const float *w = weights(old);
        vary_drop_tensor(old);
        tensor(il, "ffn_norm.weight", 128, 0, w);
    }
}
static void idle(void)
{
    tensor(0, "attn_output.bias", 128, 0, NULL);
    tensor(1, "attn_output.bias", 128, 0, NULL);
    gen_tensor(&vary_model.g, 16, 0, "rope_freqs.weight");
}
static void no_ssm_norm(void)
{
    vary_drop_tensor("blk.0.ssm_norm.weight");
    vary_drop_tensor("blk.1.ssm_norm.weight");
}

static void based(void)
{
    vary_f32(".rope.freq_base", 100);
}
static void first_heads(void)
{
    vary_i32s(".attention.head_count", (const int32_t[]){ 4, 4, 0 }, 3);
}
static void first_heads_based(void)
{
    first_heads();
    based();
}

static void check_spaces(void)
{
    const double d = apart("mamba", rms_of_large, rms_of_larger);
    ok(d < 1e-8, "mamba: norms of dt, b and c: %g", d);
    counts("mamba", NULL, rms, "ssm.dt_b_c_rms counts");
    same("mamba", NULL, no_bare_keys, "keys that say 0 or false");
    same("mamba", last_tap, one_tap, "a convolution of one tap");
    same("falcon-h1", NULL, usual_name, "ffn_norm.weight is ffn_norm");
    same("falcon-h1", NULL, idle, "attn_output.bias, rope_freqs do nothing");
    counts("falcon-h1", NULL, no_ssm_norm, "without ssm_norm");
    same("plamo2", NULL, based, "no positions if the first has no heads");
    counts("plamo2", first_heads, first_heads_based, "else they turn");
}

/* ---- RWKV ---- */

/* The rows of how much is mixed as tensors of their own. */
static void five_lerps(void)
{
    static const char *const of[] = { "w", "k", "v", "r", "g" };
    for (int il = 0; il < 2; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.time_mix_lerp_fused.weight", il);
        const float *w = weights(name);
        vary_drop_tensor(name);
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "time_mix_lerp_%s.weight", of[i]);
            tensor(il, name, 128, 0, w + (ptrdiff_t)128 * i);
        }
    }
}
static void rescale(uint32_t step)
{
    vary_u32(".rescale_every_n_layers", step);
}
static void rescale_1(void)
{
    rescale(1);
}
static void rescale_3(void)
{
    rescale(3);
}
/* The second layer reads a norm of half of what it did, and adds half. */
static void rescaled(void)
{
    rescale(1);
    vary_gain("blk.1.(time_mix_output|channel_mix_value)", 0.5);
}
static void all_keys(void)
{
    vary_u32(".attention.head_count_kv", 2);
    for (int il = 0; il < 2; il++)
        for (int i = 0; i < 2; i++) {
            static const char *const of[] = { "key", "value" };
            char name[64];
            float *to = room();
            snprintf(name, sizeof name, "blk.%d.time_mix_%s.weight", il,
                     of[i]);
            const float *w = weights(name);
            vary_find(name)->ne[1] = 128;
            memcpy(to, w, 64 * 128 * sizeof *w); /* each head the same */
            memcpy(to + (ptrdiff_t)64 * 128, w, 64 * 128 * sizeof *w);
            vary_values(name, to);
            snprintf(name, sizeof name, "blk.%d.time_mix_%s.bias", il, of[i]);
            to = room();
            w = weights(name);
            vary_find(name)->ne[0] = 128;
            memcpy(to, w, 64 * sizeof *w);
            memcpy(to + 64, w, 64 * sizeof *w);
            vary_values(name, to);
        }
}
static void no_kv(void)
{
    all_keys();
    vary_u32(".attention.head_count_kv", 0);
}
static void no_eps(void)
{
    vary_drop(".attention.layer_norm_rms_epsilon");
    vary_drop(".attention.layer_norm_epsilon");
}
static void eps_0(void)
{
    vary_f32(".attention.layer_norm_rms_epsilon", 0);
    vary_f32(".attention.layer_norm_epsilon", 0);
}

/* A gate of 1: 32 times a sigmoid of 0 by 1/16. */
static void open_gate(void)
{
    for (int il = 0; il < 2; il++) {
        fill(il, "time_mix_g1.weight", 0);
        fill(il, "time_mix_g2.weight", 1.0f / 16);
    }
}
static void no_gate(void)
{
    vary_drop(".attention.gate_lora_rank");
    for (int il = 0; il < 2; il++)
        for (int i = 1; i < 3; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.time_mix_g%d.weight", il, i);
            vary_drop_tensor(name);
        }
}
static void no_gate_row(void)
{
    no_gate();
    for (int il = 0; il < 2; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.time_mix_lerp_fused.weight", il);
        vary_find(name)->ne[3] = 5;
    }
}
/* Dummies of the first layer, which its values are not mixed with. */
static void dummies(void)
{
    fill(0, "time_mix_v0.weight", 9);
    fill(0, "time_mix_v1.weight", 9);
    fill(0, "time_mix_v2.weight", 9);
}
static void no_first_values(void)
{
    fill(1, "time_mix_v0.weight", -200); /* sigmoid is 0 */
}
static void no_head_norm(void)
{
    for (int il = 0; il < 2; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.time_mix_ln.weight", il);
        vary_drop_tensor(name);
        snprintf(name, sizeof name, "blk.%d.time_mix_ln.bias", il);
        vary_drop_tensor(name);
    }
}
static void no_shift_count(void)
{
    vary_drop(".token_shift_count");
}
static void shift_2(void)
{
    vary_u32(".token_shift_count", 2);
}

static void check_rwkv(void)
{
    same("rwkv6", NULL, five_lerps, "one tensor of five rows, or five");
    same("rwkv6", NULL, rescale_3, "rescale_every_n_layers of 3 of 2 layers");
    same("rwkv6", NULL, shift_2, "token_shift_count is 2 unless given");
    same("rwkv6", no_eps, eps_0, "without epsilons");
    counts("rwkv6", NULL, rescale_1, "rescale_every_n_layers counts");
    const double d = apart("rwkv6", NULL, rescaled);
    ok(d > 0 && d < 1e-8, "rwkv6: what is halved, and added: %g", d);
    same("rwkv6qwen2", NULL, all_keys, "keys that heads share");
    same("rwkv6qwen2", NULL, no_kv, "or not");
    same("rwkv6qwen2", NULL, rescale_1, "rescale_every_n_layers does nothing");
    same("rwkv7", open_gate, no_gate, "without a gate");
    same("rwkv7", NULL, dummies,
         "tensors of the first layer that are dummies");
    counts("rwkv7", NULL, no_first_values, "values of the first layer count");
    same("arwkv7", open_gate, no_gate_row, "without a row for the gate");
    same("arwkv7", NULL, no_shift_count, "token_shift_count is 1");
    counts("arwkv7", NULL, no_head_norm, "without norms of heads");
}

/* ---- refused ---- */

static void shift_1(void)
{
    vary_u32(".token_shift_count", 1);
}
static void four_lerps(void)
{
    five_lerps();
    vary_drop_tensor("blk.1.time_mix_lerp_g.weight");
}
static void odd_heads(void)
{
    vary_u32(".wkv.head_size", 48);
}
static void half_gate(void)
{
    vary_drop_tensor("blk.1.time_mix_g1.weight");
}
static void half_norm(void)
{
    vary_drop_tensor("blk.0.time_mix_ln.bias");
}
static void gate_without_row(void)
{
    vary_find("blk.1.time_mix_lerp_fused.weight")->ne[3] = 5;
}
static void many_lerps(void)
{
    vary_find("blk.0.time_mix_lerp_fused.weight")->ne[3] = 7;
}
static void other_rank(void)
{
    vary_u32(".attention.value_residual_mix_lora_rank", 8);
}
static void own_part(void)
{
    tensor(1, "time_mix_first.weight", 64, 2, NULL);
}
static void kv_4(void)
{
    vary_u32(".attention.head_count_kv", 4);
}
static void no_experts(void)
{
    vary_drop(".expert_count");
    vary_drop(".expert_used_count");
}
static void plamo_groups(void)
{
    vary_u32(".ssm.group_count", 1);
}
static void plamo_heads(void)
{
    vary_u32(".ssm.time_step_rank", 7);
}

static const struct {
    const char *name;
    vary_fn *change;
    const char *says;
} refused[] = {
    { "rwkv6", shift_1, "rwkv6.token_shift_count is 1, must be 2" },
    { "arwkv7", shift_2, "arwkv7.token_shift_count is 2, must be 1" },
    { "rwkv6", four_lerps, "'blk.1.time_mix_lerp_g.weight' is missing" },
    { "rwkv7", odd_heads, "rwkv7.wkv.head_size is 48, must divide" },
    { "rwkv7", half_gate, "'blk.1.time_mix_g1.weight' is missing" },
    { "rwkv7", half_norm, "'blk.0.time_mix_ln.bias' is missing" },
    { "rwkv7", gate_without_row,
      "lerp_fused.weight' has 5 rows, must have 6" },
    { "arwkv7", many_lerps, "lerp_fused.weight' has 7 rows" },
    { "rwkv7", other_rank, "'blk.1.time_mix_v1.weight' has shape" },
    { "rwkv6qwen2", own_part, "'blk.1.time_mix_first.weight': such" },
    { "rwkv6qwen2", kv_4, "head_count_kv is 4, must divide 2 heads" },
    { "jamba-moe", no_experts, "jamba.expert_count: it is missing" },
    { "plamo2", plamo_groups, "plamo2.ssm.group_count is 1, must be 0" },
    { "plamo2", plamo_heads, "plamo2.ssm.time_step_rank is 7, must divide" },
};

static void check_refused(void)
{
    static float out[N * V];
    for (size_t i = 0; i < GG_LEN(refused); i++) {
        struct gguf_error err;
        n_pool = 0;
        const bool opens =
            vary_outputs(refused[i].name, refused[i].change, N, N, out, &err);
        ok(!opens && strstr(err.message, refused[i].says), "%s: %s",
           refused[i].name, opens ? "is evaluated" : err.message);
    }
}

/* ---- sequences side by side, and passes without outputs ---- */

/* Logits of the last of LEN tokens of three sequences, alone and together, in
 * a batch of which only these are wanted, and in two. */
static void check_together(const char *name)
{
    enum { LEN = 6, SEQS = 3 };
    static float out[SEQS][V], alone[V];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[SEQS * LEN];
    int32_t seq[SEQS * LEN];
    uint8_t want[SEQS * LEN];
    size_t size;
    struct run r;
    double worst = 0;
    if (!skeleton_open(&vary_model, name))
        abort();
    void *file = gen_file(&vary_model.g, GGUF_DTYPE_F32, &size);
    p.n_ctx = 2 * LEN;
    p.n_seq = SEQS;
    for (int i = 0; i < SEQS * LEN; i++) {
        tok[i] = (i * 29 + 7) % V;
        seq[i] = i / LEN;
        want[i] = i % LEN == LEN - 1;
    }
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = SEQS * LEN;
    b.token = tok;
    b.seq = seq;
    b.want = want;
    bool good = run_open(&r, file, size, 2, &p);
    for (int round = 0; good && round < 2; round++) {
        const float *rows;
        good =
            gguf_session_decode(r.session, &b, &r.err) == GGUF_OK &&
            gguf_session_logits(r.session, 0, SEQS, &rows, &r.err) == GGUF_OK;
        if (good)
            memcpy(out, rows, sizeof out);
    }
    (void)gguf_session_clear(r.session, NULL);
    for (int q = 0; good && q < SEQS; q++) {
        const float *rows;
        struct gguf_batch one = GGUF_BATCH_INIT;
        one.n = LEN;
        one.token = tok + (ptrdiff_t)q * LEN;
        one.seq = seq + (ptrdiff_t)(SEQS - 1 - q) * LEN; /* another place */
        one.want = want;
        memset(want, 0, LEN); /* a pass without outputs moves states, too */
        good = gguf_session_decode(r.session, &one, &r.err) == GGUF_OK;
        want[LEN - 1] = 1;
        good = good &&
               gguf_session_decode(r.session, &one, &r.err) == GGUF_OK &&
               gguf_session_logits(r.session, 0, 1, &rows, &r.err) == GGUF_OK;
        if (!good)
            break;
        memcpy(alone, rows, sizeof alone);
        const double d = run_nmse(out[q], alone, V);
        worst = d > worst ? d : worst;
    }
    ok(good && worst < 1e-10, "%s: three sequences, one and together: %.2g %s",
       name, worst, good ? "" : r.err.message);
    run_close(&r);
    free(file);
    skeleton_close(&vary_model);
}

int main(void)
{
    static const char *const names[] = {
        "mamba", "jamba",     "falcon-h1", "plamo2",     "rwkv6",
        "rwkv7", "arwkv7",    "mamba2",    "jamba-moe",  "rwkv6qwen2",
        "lfm2",  "qwen3next", "qwen35",    "kimi-linear"
    };
    check_spaces();
    check_rwkv();
    check_refused();
    for (size_t i = 0; i < GG_LEN(names); i++)
        check_together(names[i]);
    return done_testing();
}
