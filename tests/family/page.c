/* SPDX-License-Identifier: MIT */
/* page.c - prints doc/architectures.md from the rows of the table */
#include "config.h"
#include "base/compiler.h"
#include "model/weight/needs.h"
#include "tests/family/page.h"
#include "base/str.h"
#include "tests/family/skeleton.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define X(ID, TEXT) TEXT,
static const char *const norms[] = { GG_NORM_LIST(X) };
static const char *const orders[] = { GG_ORDER_LIST(X) };
static const char *const qks[] = { GG_QK_LIST(X) };
static const char *const gatings[] = { GG_GATING_LIST(X) };
static const char *const outputs[] = { GG_OUTPUT_LIST(X) };
#undef X

/* ---- a cell: phrases with commas between ---- */

struct cell {
    char s[1024];
};

/* Add a phrase to a cell, unless it is empty. */
static void add_text(struct cell *c, const char *fmt, ...) GGUF_PRINTF(2, 3);

static void add_text(struct cell *c, const char *fmt, ...)
{
    size_t n = strlen(c->s);
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (*text)
        snprintf(c->s + n, sizeof c->s - n, "%s%s", n ? "; " : "", text);
}

static void add_if(struct cell *c, bool yes, const char *text)
{
    add_text(c, "%s", yes ? text : "");
}

/* Add the text of a hook to a cell. */
#define add_hook(C, HOOK) add_if(C, (HOOK).fn != NULL, (HOOK).text)

static const char *use_text(unsigned u)
{
    return u == GG_MUST ? "" : " (optional)";
}

/* Does a row list an item of needs.h beyond those that its columns imply? */
static bool has_item(const struct gg_arch *a, uint16_t item)
{
    const uint16_t *i = a->more;
    while (i && *i && *i != item)
        i++;
    return i && *i;
}

static bool has_key(const struct gg_arch *a, enum gg_model_hparam id)
{
    struct gg_needs n;
    gg_needs_fill_keys(a, &n);
    return n.key[id];
}

/* Add the number that is used if the file lacks the key. */
static void add_default(struct cell *c, const struct gg_arch *a,
                        enum gg_model_hparam id, const char *fmt)
{
    for (const struct gg_arch_default *d = a->defaults; d && d->key; d++)
        if (d->key == id)
            add_text(c, fmt, (double)d->value);
}

/* Weights and keys that a row needs, whatever the hyperparameters. */
static struct gg_needs needs_of(const struct gg_arch *a)
{
    static const struct gg_hparams hp;
    struct gg_needs n;
    gg_needs_fill_weights(a, &hp, NULL, &n);
    return n;
}

/* ---- the columns ---- */

static void norm_name(struct cell *c, const char *where, unsigned id)
{
    if (id)
        add_text(c, "%s %.*s", where, (int)strcspn(gg_weights[id].name, "."),
                 gg_weights[id].name);
}

/* Add the order of a layer, and its norms if they are not llama's. */
static void add_layer(struct cell *c, const struct gg_arch *a)
{
    const bool usual = a->mix_norm.pre == GG_W_ATTN_NORM &&
                       !a->mix_norm.post && !a->mix_norm.add &&
                       a->ffn_norm.pre == GG_W_FFN_NORM && !a->ffn_norm.post &&
                       !a->ffn_norm.add;
    add_text(c, "%s", orders[a->order]);
    add_hook(c, a->is_parallel);
    add_hook(c, a->place_norms);
    add_hook(c, a->norm_result);
    add_hook(c, a->join_part);
    add_hook(c, a->finish_layer);
    if (a->unroll)
        add_text(c, "%s", a->unroll->text);
    add_hook(c, a->build_layers);
    add_text(c, "%s", norms[a->norm]);
    add_hook(c, a->choose_norm);
    add_hook(c, a->choose_weights);
    if (a->norm_b)
        add_text(c, "norms with biases%s", use_text(a->norm_b));
    if (usual)
        return;
    norm_name(c, "mixer on", a->mix_norm.pre);
    norm_name(c, "its result through", a->mix_norm.post);
    norm_name(c, "the sum through", a->mix_norm.add);
    norm_name(c, "feed-forward on", a->ffn_norm.pre);
    norm_name(c, "its result through", a->ffn_norm.post);
    norm_name(c, "the sum through", a->ffn_norm.add);
}

static void add_mixer(struct cell *c, const struct gg_arch *a)
{
    add_text(c, "%s", gg_arch_mixer(a)->text);
    if (a->mix_rule)
        add_text(c, "%s: %s",
                 *a->other->text ? a->other->text : "plain attention",
                 a->mix_rule->text);
    add_if(c, a->bidirectional, "bidirectional");
    add_if(c, a->whole_sequence, "no cache");
}

static void add_attention(struct cell *c, const struct gg_arch *a)
{
    add_text(c, "%s", a->qkv ? a->qkv->text : "");
    if (a->qkv_b)
        add_text(c, "q, k, v with biases%s", use_text(a->qkv_b));
    if (a->out_b)
        add_text(c, "output with a bias%s", use_text(a->out_b));
    if (a->qk_norm.form)
        add_text(c, "norms of q and k %s%s%s%s%s", qks[a->qk_norm.form],
                 a->qk_norm.kind ? ", layer norms" : "",
                 a->qk_norm.after_rope ? ", after RoPE" : "",
                 a->qk_norm.optional ? " (optional)" : "",
                 a->qk_norm.norm_values.fn ? a->qk_norm.norm_values.text : "");
    add_hook(c, a->qk_norm.norm_heads);
    add_hook(c, a->n_kv_layers);
    add_hook(c, a->head_width);
    if (a->scale)
        add_text(c, "scale %s", a->scale->text);
    add_hook(c, a->gate_attention);
    if (a->sinks)
        add_text(c, "attention sinks%s", use_text(a->sinks));
    add_if(c, a->clamp_qkv, "q, k, v clamped");
    add_default(c, a, GG_HP_attn_softcap, "soft cap of scores %g");
    if (a->window.rule)
        add_text(c, "sliding window%s, %s%s", use_text(a->window.key),
                 a->window.rule->text, a->whole_sequence ? ", centred" : "");
    add_hook(c, a->window.size);
    if (a->window.period)
        add_text(c, "period %u", a->window.period);
}

static void add_positions(struct cell *c, const struct gg_arch *a)
{
    static const char *const kinds[] = { "RoPE on adjacent pairs",
                                         "RoPE on halves", "M-RoPE",
                                         "interleaved M-RoPE" };
    add_text(c, "%s", a->rope == GG_ROPE_NONE ? "" : kinds[a->rope]);
    add_text(c, "%s", a->rope_rule ? a->rope_rule->text : "");
    if (a->window.rope)
        add_text(c, "in windows %s", a->window.rope->text);
    add_hook(c, a->fill_full_rope);
    add_if(c, a->mrope_sections && a->rope < GGUF_ROPE_MROPE,
           "M-RoPE with sections");
    add_if(c, a->rope_freqs, "rope_freqs");
    add_if(c, a->longrope, "LongRoPE factors");
    add_default(c, a, GG_HP_yarn_fast, "YaRN's fast beta %g unless given");
    add_text(c, "%s", a->temperature ? a->temperature->text : "");
    if (a->alibi)
        add_text(c, "ALiBi %u", a->alibi);
    add_if(c, has_key(a, GG_HP_max_alibi), "ALiBi by key");
    if (a->position)
        add_text(c, "learned%s", use_text(a->position));
    add_if(c, !*c->s, "none");
}

static void feed_forward(struct cell *c, const struct gg_arch *a)
{
    const struct gg_moe *m = &a->moe;
    add_hook(c, a->layer_sizes);
    add_text(c, "%s", gg_arch_ffn(a)->text);
    add_text(c, "%s", a->act ? a->act->text : "");
    if (a->ffn_b)
        add_text(c, "biases%s", use_text(a->ffn_b));
    add_hook(c, a->activation_sparsity);
    if (!m->where)
        return;
    add_text(c, "experts: %s", m->where->text);
    add_text(c, "%s%s",
             m->gating_of_model.fn ? m->gating_of_model.text
             : m->gating == GG_GATING_SOFTMAX && m->gating_key
                 ? "softmax"
                 : gatings[m->gating],
             m->gating_key ? " by key" : "");
    if (m->expert_bias)
        add_text(c, "expert bias%s", use_text(m->expert_bias));
    add_text(c, "%s",
             m->norm == GG_MUST  ? "normalised weights"
             : m->norm == GG_MAY ? "weights normalised by key"
                                 : "");
    add_if(c, m->scale, "scaled weights");
    add_text(c, "%s", m->ff ? m->ff->text : "");
    add_if(c, m->plain, "no gate");
    add_if(c, has_item(a, GG_NEED(ROUTER_B)), "with biases");
    add_text(c, "%s", m->shared ? m->shared->text : "");
    add_if(c, m->shared_gate, "with a sigmoid gate");
    add_hook(c, m->add_shared);
    add_hook(c, m->router_input);
    add_text(c, "%s", m->dense_branch ? m->dense_branch->text : "");
}

static void add_ends(struct cell *c, const struct gg_arch *a)
{
    if (a->embd_scale)
        add_text(c, "embeddings %s", a->embd_scale->text);
    add_default(c, a, GG_HP_n_per_layer,
                "per-layer inputs, %g wide unless given");
    add_if(c, has_item(a, GG_MAYBE(LAYER_OUT_SCALE)),
           "scale of layers' results (optional)");
    add_if(c, a->embd_norm,
           needs_of(a).weight[GG_W_EMBD_NORM] == GG_MAY
               ? "norm of embeddings (optional)"
               : "norm of embeddings");
    if (a->types)
        add_text(c, "token types%s", use_text(a->types));
    if (a->final_norm != GG_W_OUTPUT_NORM)
        norm_name(c, "last norm", a->final_norm);
    if (a->output)
        add_text(c, "output: %s", outputs[a->output]);
    if (a->output_b)
        add_text(c, "output with a bias%s", use_text(a->output_b));
    if (a->logit_scale)
        add_text(c, "logits %s", a->logit_scale->text);
    add_text(c, "%s", a->rank ? a->rank->text : "");
    add_if(c, has_item(a, GG_KEY_MAYBE(logit_softcap)),
           "soft cap of logits by key");
    add_default(c, a, GG_HP_logit_softcap, "soft cap of logits %g");
    if (a->residual_scale)
        add_text(c, "residual multiplier%s",
                 a->fill_hparams.fn ? a->fill_hparams.text : "");
    add_if(c, a->nextn, "nextn layers");
}

static const char intro[] =
    "# Architectures\n"
    "\n"
    "Printed from the rows of `lib/model/family/*.c` by "
    "`tests/family/check-archs --page`; `make check` compares it with\n"
    "this page. A cell has the differences from Llama: RMS norms before "
    "attention and before a gated feed-forward part\n"
    "with SiLU, separate or fused q, k, v, scores over sqrt(d), causal "
    "attention, a cached key and value for each token,\n"
    "an output matrix that may be the embeddings. \"(optional)\" marks parts "
    "that files may lack. `gguf-info --check`\n"
    "checks all architectures; those in bold can be evaluated.\n"
    "\n"
    "Where llama.cpp, for which most files are made, departs from a model's "
    "own definition, the file's keys and the\n"
    "definition are followed.\n"
    "\n"
    "The last column says how results were checked. \"logits\": against "
    "llama.cpp (August 2026) on a small model.\n"
    "\"doubles\": against a calculation in double precision that follows the "
    "papers or a description alone.\n"
    "\"names\": names and shapes.\n"
    "\n"
    "| architecture | layer | mixer | attention | positions | feed-forward "
    "part | embeddings, output | remarks | checked |\n"
    "|---|---|---|---|---|---|---|---|---|\n";

/* ---- how it was checked ---- */

static const char *const by_doubles[] = {
    "bert",           "chameleon",  "deepseek4", "eurobert", "jina-bert-v2",
    "jina-bert-v3",   "k2-horizon", "llama",     "neo-bert", "nomic-bert",
    "nomic-bert-moe", "qwen2",      "t5",        "t5encoder"
};

/* Architectures that no other program's outputs were at hand for: the digest
 * belongs to a calculation in double precision. */
static const char *const digest_of_doubles[] = { "k2-horizon" };

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i], name))
            return true;
    return false;
}

/* Does a model of the architecture have a digest of logits? */
static bool has_logits(const struct gg_arch *a)
{
    static char names[512][64];
    static struct skeleton m;
    static size_t n;
    const size_t stem = strlen(a->name);
    bool yes = false;
    n = n ? n : skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < n && !yes; i++) {
        struct gguf_str arch = { "", 0 };
        const struct gguf_kv *kv;
        if (strncmp(names[i], a->name, stem) || !skeleton_open(&m, names[i]))
            continue;
        kv = gguf_meta_find(m.g.meta, "general.architecture");
        yes = m.n_rows && kv && gguf_kv_get_str(kv, &arch, NULL) == GGUF_OK &&
              gg_str_eqz(arch, a->name);
        skeleton_close(&m);
    }
    return yes;
}

static void add_checked(struct cell *c, const struct gg_arch *a)
{
    if (!a->runs) {
        add_text(c, "names");
        return;
    }
    add_if(c,
           has_logits(a) && !is_one_of(a->name, digest_of_doubles,
                                       GG_LEN(digest_of_doubles)),
           "logits");
    add_if(c, is_one_of(a->name, by_doubles, GG_LEN(by_doubles)), "doubles");
}

void page_print(FILE *out)
{
    fputs(intro, out);
    for (const struct gg_arch *a = NULL; (a = gg_arch_next(a));) {
        struct cell cells[6] = { { "" } }, how = { "" };
        add_layer(&cells[0], a);
        add_mixer(&cells[1], a);
        add_attention(&cells[2], a);
        add_positions(&cells[3], a);
        feed_forward(&cells[4], a);
        add_ends(&cells[5], a);
        fprintf(out, a->runs ? "| **%s** |" : "| %s |", a->name);
        for (size_t k = 0; k < GG_LEN(cells); k++)
            fprintf(out, " %s |", cells[k].s);
        add_checked(&how, a);
        fprintf(out, " %s | %s |\n", a->remark ? a->remark : "", how.s);
    }
}
