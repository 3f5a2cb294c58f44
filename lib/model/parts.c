/* SPDX-License-Identifier: MIT */
/* parts.c - parts of a model that the names and shapes of its tensors tell
 *
 * GGUF files of all architectures use the same names for the same parts
 * (weight/weight.h), so that most parts of an unknown architecture can be
 * named. Each fact comes with the tensor that tells it.
 */
#include "config.h"
#include "gguf/recognize.h"

#include "base/str.h"
#include "data/source.h"
#include "gguf/model_base.h"
#include "model/weight/weight.h"

#include <stdio.h>
#include <string.h>

typedef const struct gguf_tensor_info tensor;

struct parts {
    struct gg_source src;
    struct gguf_inferred_callback report;
    struct gguf_error *err;
    enum gguf_status status; /* the first failure */
    uint32_t n_layer;        /* layers of one scope */
    enum gg_model_scope scope;
    char name[GG_WEIGHT_NAME]; /* scratch */
    const char *told[64];      /* names of the facts that were reported */
    size_t n_told;
};

/* ---- look-up ---- */

/* Tensor of a layer. NULL: the file lacks it. */
static tensor *of_layer(struct parts *p, uint32_t il, const char *name)
{
    size_t i;
    snprintf(p->name, sizeof p->name, "%s%" PRIu32 ".%s",
             gg_model_scopes[p->scope], il, name);
    return gg_source_find(&p->src, p->name, &i)
               ? gg_source_tensor(&p->src, i).info
               : NULL;
}

static tensor *of_model(const struct parts *p, const char *name)
{
    size_t i;
    return gg_source_find(&p->src, name, &i)
               ? gg_source_tensor(&p->src, i).info
               : NULL;
}

/* First tensor of that name in any layer. n, if not NULL, receives the number
 * of layers that have it. */
static tensor *of_any(struct parts *p, const char *name, uint32_t *n)
{
    tensor *first = NULL;
    uint32_t count = 0;
    for (uint32_t il = 0; il < p->n_layer; il++) {
        tensor *t = of_layer(p, il, name);
        count += t != NULL;
        first = first ? first : t;
    }
    if (n)
        *n = count;
    return first;
}

/* Elements along dimension d; 0 without a tensor. */
static uint64_t size_of(tensor *t, unsigned d)
{
    return t && t->ne[d] > 0 ? (uint64_t)t->ne[d] : 0;
}

/* ---- reports ---- */

static void put_part(struct parts *p, const char *name, const char *label,
                     uint64_t value, const char *text, tensor *from)
{
    const struct gguf_inferred part = { .name = name,
                                        .label = label,
                                        .value = value,
                                        .text = text,
                                        .from =
                                            from ? from->name : GG_STR("") };
    for (size_t i = 0; i < p->n_told; i++)
        if (!strcmp(p->told[i], name))
            return; /* another tensor told it first */
    if (p->n_told < GG_LEN(p->told))
        p->told[p->n_told++] = name;
    if (p->status == GGUF_OK && p->report.fn(p->report.user, &part))
        p->status = gg_error_set(p->err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                                 "cancelled");
}

/* Report a number that a tensor tells; nothing for 0. */
static void put_number(struct parts *p, const char *name, const char *label,
                       uint64_t value, tensor *from)
{
    if (from && value)
        put_part(p, name, label, value, NULL, from);
}

static void put_text(struct parts *p, const char *name, const char *label,
                     const char *text, tensor *from)
{
    put_part(p, name, label, 0, text, from);
}

/* ---- the model ---- */

/* Layers of a scope: one more than the largest number in a name. */
static tensor *count_scope(struct parts *p, enum gg_model_scope scope)
{
    const uint64_t n = gg_source_n_tensors(&p->src);
    tensor *last = NULL;
    uint64_t il;
    p->scope = scope;
    p->n_layer = 0;
    for (size_t i = 0; i < n; i++) {
        tensor *t = gg_source_tensor(&p->src, i).info;
        struct gguf_str name = t->name;
        if (gg_weight_scope(&name, &il) != scope || il >= n || il < p->n_layer)
            continue;
        p->n_layer = (uint32_t)il + 1;
        last = t;
    }
    return last;
}

static void put_embeddings(struct parts *p)
{
    tensor *embd = of_model(p, "token_embd.weight");
    tensor *out = of_model(p, "output.weight");
    tensor *norm = of_model(p, "output_norm.weight");
    tensor *any = embd ? embd : out;
    put_number(p, "embedding_length", "embedding width",
               size_of(any ? any : norm, 0), any ? any : norm);
    put_number(p, "vocabulary_size", "vocabulary", size_of(any, 1), any);
    if (out)
        put_text(p, "output", "output matrix", "own matrix", out);
    else if (embd)
        put_text(p, "output", "output matrix", "the embeddings (tied)", NULL);
}

/* ---- mixers ---- */

/* Kinds of recurrent parts by tensors that only they have together. with NULL:
 * mark is enough. owns: the tensors attn_* of such a layer belong to the part,
 * so that the layer has no attention. */
static const struct {
    const char *mark, *with, *text;
    bool owns;
} recurrent[] = {
    { "ssm_f_a.weight", NULL, "Kimi delta attention (KDA)", true },
    { "ssm_ba.weight", NULL, "gated delta rule", true },
    { "ssm_beta.weight", NULL, "gated delta rule", true },
    { "attn_norm_2.weight", "attn_gate.weight", "lightning attention", true },
    { "ssm_x.weight", NULL, "state space (Mamba)", false },
    { "ssm_in.weight", NULL, "state space (Mamba 2)", false },
    { "time_mix_w0.weight", NULL, "RWKV 7", false },
    { "time_mix_first.weight", NULL, "RWKV 6", false },
    { "time_mix_key.weight", NULL, "RWKV", false },
    { "shortconv.conv.weight", NULL, "short convolution", false },
};

/* Number of the kind of a layer's recurrent part; GG_LEN(recurrent): none. */
static size_t recurrent_kind(struct parts *p, uint32_t il)
{
    size_t i = 0;
    while (i < GG_LEN(recurrent) &&
           (!of_layer(p, il, recurrent[i].mark) ||
            (recurrent[i].with && !of_layer(p, il, recurrent[i].with))))
        i++;
    return i;
}

/* Tensor that shows that a layer has attention. NULL: no attention. */
static tensor *attention_mark(struct parts *p, uint32_t il)
{
    static const char *const marks[] = { "attn_q.weight", "attn_qkv.weight",
                                         "attn_kv_a_mqa.weight",
                                         "attn_q_a.weight" };
    const size_t kind = recurrent_kind(p, il);
    tensor *t = NULL;
    if (kind < GG_LEN(recurrent) && recurrent[kind].owns)
        return NULL;
    for (size_t i = 0; i < GG_LEN(marks) && !t; i++)
        t = of_layer(p, il, marks[i]);
    return t;
}

/* Sizes of the recurrent part of a layer. delta: it is a delta rule. */
static void put_sizes_of_recurrent(struct parts *p, uint32_t il, bool delta)
{
    static const char *const convs[] = { "ssm_conv1d.weight",
                                         "ssm_conv1d_q.weight",
                                         "shortconv.conv.weight" };
    tensor *a = of_layer(p, il, "ssm_a");
    tensor *out = of_layer(p, il, "ssm_out.weight");
    tensor *beta = of_layer(p, il, "ssm_beta.weight");
    tensor *ba = of_layer(p, il, "ssm_ba.weight");
    tensor *norm = of_layer(p, il, "ssm_norm.weight");
    tensor *first = of_layer(p, il, "time_mix_first.weight");
    tensor *conv = NULL;
    for (size_t i = 0; i < GG_LEN(convs) && !conv; i++)
        conv = of_layer(p, il, convs[i]);
    put_number(p, "conv_kernel", "taps of the convolution", size_of(conv, 0),
               conv);
    put_number(p, "ssm_inner_size", "inner width", size_of(out, 0), out);
    put_number(p, "recurrent_heads", "recurrent heads",
               beta ? size_of(beta, 1) : size_of(ba, 1) / 2, beta ? beta : ba);
    put_number(p, "recurrent_heads", "recurrent heads", size_of(first, 1),
               first);
    if (delta)
        put_number(p, "recurrent_head_length", "width of a recurrent head",
                   size_of(norm, 0), norm);
    else if (size_of(a, 0) == 1)
        put_number(p, "recurrent_heads", "recurrent heads", size_of(a, 1), a);
    else if (a && a->n_dims > 1)
        put_number(p, "ssm_state_size", "state-space width", size_of(a, 0), a);
    put_number(p, "recurrent_head_length", "width of a recurrent head",
               size_of(first, 0), first);
}

static void put_recurrent(struct parts *p)
{
    uint32_t n = 0, first = 0;
    size_t kind = GG_LEN(recurrent);
    for (uint32_t il = 0; il < p->n_layer; il++) {
        const size_t k = recurrent_kind(p, il);
        if (k == GG_LEN(recurrent))
            continue;
        first = n++ ? first : il;
        kind = n == 1 ? k : kind;
    }
    if (!n)
        return;
    tensor *from = of_layer(p, first, recurrent[kind].mark);
    put_number(p, "recurrent_layers", "layers with a recurrent part", n, from);
    put_text(p, "recurrent", "recurrent part", recurrent[kind].text, from);
    put_sizes_of_recurrent(p, first, recurrent[kind].owns);
}

/* ---- attention with heads ---- */

/* Widths of a layer's attention. 0: unknown. */
struct heads {
    uint64_t q, k, v;       /* elements of all heads together */
    uint64_t n, n_kv;       /* heads */
    uint64_t d, d_v;        /* elements of a head's key and value */
    tensor *wq, *wk, *told; /* told: it tells the number of heads */
};

static void find_widths(struct parts *p, uint32_t il, struct heads *h)
{
    tensor *qkv = of_layer(p, il, "attn_qkv.weight");
    tensor *v = of_layer(p, il, "attn_v.weight");
    const uint64_t out = size_of(of_layer(p, il, "attn_output.weight"), 0);
    h->wq = of_layer(p, il, "attn_q.weight");
    h->wk = of_layer(p, il, "attn_k.weight");
    h->q = size_of(h->wq, 1);
    h->k = size_of(h->wk, 1);
    h->v = v ? size_of(v, 1) : h->k;
    if (h->wq && out && h->q == 2 * out)
        h->q = out; /* the other rows are gates */
    if (h->wq || size_of(qkv, 1) <= out || !out)
        return;
    h->wq = h->wk = qkv;
    h->q = out;
    h->k = h->v = (size_of(qkv, 1) - out) / 2;
}

/* Number of heads by a tensor with an element or a row for each. */
static void find_heads(struct parts *p, uint32_t il, struct heads *h)
{
    tensor *norm = of_layer(p, il, "attn_q_norm.weight");
    tensor *sinks = of_layer(p, il, "attn_sinks.weight");
    const uint64_t d = size_of(norm, 0);
    if (d > 1 && d < h->q && h->q % d == 0) {
        h->told = norm;
        h->d = d;
    } else if (size_of(sinks, 0) && h->q % size_of(sinks, 0) == 0) {
        h->told = sinks;
        h->d = h->q / size_of(sinks, 0);
    }
}

/* The key attention.head_count, if no tensor tells. */
static uint64_t head_count_key(const struct parts *p)
{
    const struct gguf_file *meta = gg_source_meta(&p->src);
    struct gguf_str arch;
    char key[160];
    uint64_t n = 0;
    if (gguf_kv_get_str(gguf_file_kv_find(meta, "general.architecture"), &arch,
                        NULL) != GGUF_OK ||
        !gg_str_join(key, sizeof key, arch, ".attention.head_count") ||
        gguf_kv_get_uint(gguf_file_kv_find(meta, key), &n, NULL) != GGUF_OK)
        return 0;
    return n;
}

static const char *name_grouping(const struct heads *h)
{
    if (h->k == h->q)
        return "a key and a value for each head";
    return h->d && h->k == h->d ? "one key and value for all heads (MQA)"
                                : "heads share keys and values (GQA)";
}

static void put_heads(struct parts *p, uint32_t il)
{
    struct heads h = { .q = 0 };
    find_widths(p, il, &h);
    find_heads(p, il, &h);
    if (!h.q || !h.k)
        return;
    const uint64_t n = h.told ? 0 : head_count_key(p);
    if (n && h.q % n == 0) {
        h.told = h.wq;
        h.d = h.q / n;
    }
    put_text(p, "attention", "attention", name_grouping(&h), h.wk);
    if (!h.d || h.k % h.d) {
        put_number(p, "query_width", "width of all heads", h.q, h.wq);
        put_number(p, "key_width", "width of all keys", h.k, h.wk);
        if (h.q != h.k && h.q % h.k == 0)
            put_number(p, "heads_per_key", "heads that share a key", h.q / h.k,
                       h.wk);
        return;
    }
    put_number(p, "head_count", "attention heads", h.q / h.d, h.told);
    put_number(p, "head_count_kv", "key/value heads", h.k / h.d, h.wk);
    put_number(p, "key_length", "key width of a head", h.d, h.told);
    if (h.v && h.v % (h.k / h.d) == 0)
        put_number(p, "value_length", "value width of a head",
                   h.v / (h.k / h.d), h.wk);
}

/* Latent attention: ranks, and heads if keys and values have matrices of their
 * own. */
static void put_latent(struct parts *p, uint32_t il)
{
    tensor *kv = of_layer(p, il, "attn_kv_a_mqa.weight");
    tensor *norm = of_layer(p, il, "attn_kv_a_norm.weight");
    tensor *q_norm = of_layer(p, il, "attn_q_a_norm.weight");
    tensor *k = of_layer(p, il, "attn_k_b.weight");
    tensor *v = of_layer(p, il, "attn_v_b.weight");
    const uint64_t rank = size_of(norm, 0), all = size_of(kv, 1);
    put_text(p, "attention", "attention", "latent attention (MLA)", kv);
    put_number(p, "kv_lora_rank", "rank of keys and values", rank, norm);
    put_number(p, "q_lora_rank", "rank of queries", size_of(q_norm, 0),
               q_norm);
    if (rank && all > rank)
        put_number(p, "rope_dimension_count", "rotary dimensions", all - rank,
                   kv);
    put_number(p, "head_count", "attention heads", size_of(k, 2), k);
    if (k && rank && all > rank)
        put_number(p, "key_length_mla", "key width of MLA",
                   size_of(k, 0) + all - rank, k);
    put_number(p, "value_length_mla", "value width of MLA", size_of(v, 1), v);
}

static void put_attention(struct parts *p)
{
    uint32_t n = 0, first = 0;
    for (uint32_t il = 0; il < p->n_layer; il++)
        if (attention_mark(p, il))
            first = n++ ? first : il;
    if (!n)
        return;
    put_number(p, "attention_layers", "layers with attention", n,
               attention_mark(p, first));
    tensor *gate = of_layer(p, first, "attn_gate.weight");
    if (gate)
        put_text(p, "attention_gate", "gate of attention",
                 size_of(gate, 1) ==
                         size_of(of_layer(p, first, "attn_output.weight"), 0)
                     ? "of each element"
                     : "of each head",
                 gate);
    if (of_layer(p, first, "attn_kv_a_mqa.weight"))
        put_latent(p, first);
    else
        put_heads(p, first);
}

/* ---- feed-forward parts ---- */

static void put_dense(struct parts *p)
{
    uint32_t n;
    tensor *down = of_any(p, "ffn_down.weight", &n);
    tensor *gate = of_any(p, "ffn_gate.weight", NULL);
    tensor *up = of_any(p, "ffn_up.weight", NULL);
    tensor *mix = of_any(p, "channel_mix_key.weight", NULL);
    const uint64_t ff = size_of(down, 0);
    put_number(p, "feed_forward_length", "feed-forward width", size_of(mix, 1),
               mix);
    if (!down)
        return;
    put_number(p, "dense_layers", "layers with a dense part", n, down);
    put_number(p, "feed_forward_length", "feed-forward width", ff, down);
    if (gate)
        put_text(p, "feed_forward", "feed-forward part", "gated", gate);
    else if (up)
        put_text(p, "feed_forward", "feed-forward part",
                 size_of(up, 1) == 2 * ff ? "gated, in one matrix"
                                          : "without a gate",
                 up);
}

static void put_experts(struct parts *p)
{
    uint32_t n;
    tensor *down = of_any(p, "ffn_down_exps.weight", &n);
    tensor *shared = of_any(p, "ffn_down_shexp.weight", NULL);
    if (!down)
        return;
    put_number(p, "expert_layers", "layers with experts", n, down);
    put_number(p, "expert_count", "experts", size_of(down, 2), down);
    put_number(p, "expert_feed_forward_length", "expert width",
               size_of(down, 0), down);
    put_number(p, "expert_shared_feed_forward_length",
               "width of shared experts", size_of(shared, 0), shared);
}

/* ---- other parts ---- */

/* Report the number of layers that have each of these parts. */
static void put_counts(struct parts *p)
{
    static const struct {
        const char *mark, *name, *label;
    } counted[] = {
        { "attn_q_norm.weight", "query_norm_layers",
          "layers with norms of queries" },
        { "attn_sinks.weight", "sink_layers", "layers with attention sinks" },
        { "indexer.proj.weight", "indexer_layers", "layers with an indexer" },
        { "exp_probs_b.bias", "expert_bias_layers",
          "layers with expert biases" },
        { "post_attention_norm.weight", "post_norm_layers",
          "layers with norms after attention" },
        { "hc_attn_fn.weight", "hyper_connection_layers",
          "layers with hyper-connections" },
        { "nextn.eh_proj.weight", "nextn_layers", "nextn layers" },
    };
    for (size_t i = 0; i < GG_LEN(counted); i++) {
        uint32_t n;
        tensor *t = of_any(p, counted[i].mark, &n);
        put_number(p, counted[i].name, counted[i].label, n, t);
    }
}

/* Does any architecture have a weight of this name? */
static bool is_known(const struct parts *p, struct gguf_str name)
{
    uint64_t il;
    struct gguf_str rest = name;
    const enum gg_model_scope scope = gg_weight_scope(&rest, &il);
    static const char *const ends[] = { ".scale", ".input_scale" };
    char weight[256];
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++)
        if (gg_weights[id].scope == scope &&
            gg_str_eqz(rest, gg_weights[id].name))
            return true;
    for (size_t i = 0; i < GG_LEN(ends); i++) {
        struct gguf_str stem = name;
        if (!gg_str_ends(name, ends[i]))
            continue;
        stem.size -= strlen(ends[i]);
        if (gg_str_join(weight, sizeof weight, stem, ".weight") &&
            gg_source_find(&p->src, weight, NULL))
            return true;
    }
    return false;
}

static void put_unknown(struct parts *p)
{
    tensor *first = NULL;
    uint64_t n = 0;
    for (size_t i = 0; i < gg_source_n_tensors(&p->src); i++) {
        tensor *t = gg_source_tensor(&p->src, i).info;
        if (is_known(p, t->name))
            continue;
        n++;
        first = first ? first : t;
    }
    put_number(p, "unknown_tensors", "tensors of unknown names", n, first);
}

enum gguf_status gguf_file_infer_parts(const struct gguf_file *file,
                                       struct gguf_inferred_callback report,
                                       struct gguf_error *err)
{
    struct parts p = { .src = { .file = file }, .report = report, .err = err };
    if (!report.fn)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "no callback");
    tensor *decoder = count_scope(&p, GG_DECODER);
    const uint32_t n_decoder = p.n_layer;
    tensor *encoder = count_scope(&p, GG_ENCODER);
    const uint32_t n_encoder = p.n_layer;
    tensor *layer = count_scope(&p, GG_LAYER);
    if (!layer && !encoder && !decoder && !of_model(&p, "token_embd.weight"))
        return GGUF_OK;
    put_number(&p, "block_count", "layers", p.n_layer, layer);
    put_number(&p, "encoder_block_count", "encoder layers", n_encoder,
               encoder);
    put_number(&p, "decoder_block_count", "decoder layers", n_decoder,
               decoder);
    if (!layer)
        (void)count_scope(&p, encoder ? GG_ENCODER : GG_DECODER);
    put_embeddings(&p);
    put_attention(&p);
    put_recurrent(&p);
    put_dense(&p);
    put_experts(&p);
    put_counts(&p);
    put_unknown(&p);
    return p.status;
}
