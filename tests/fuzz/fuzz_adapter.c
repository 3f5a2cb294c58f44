/* SPDX-License-Identifier: MIT */
/* fuzz_adapter.c - adapter files are refused with a message, or used, merged
 * into a model and removed again
 *
 * The first byte chooses a model, the second the use of the adapter. The rest
 * is its file, a LoRA adapter or a control vector.
 */
#include "config.h"
#include "base/compiler.h"
#include "gguf/quant.h"
#include "tests/fuzz/fuzz.h"
#include "tests/model/lora.h"
#include "tests/family/skeleton.h"

#include <string.h>

enum {
    N = 4,        /* tokens */
    MERGE = 0x80, /* merge if one of these bits is set */
    TWICE = 0x40,
    LAYERS = 0x07 /* last layer of a control vector */
};

static const struct shape {
    const char *model;
    const char *weight[3]; /* weights that the seeds' adapters change */
} shapes[] = {
    { "llama",
      { "token_embd.weight", "blk.1.attn_q.weight", "output.weight" } },
    { "llama-moe", { "blk.0.ffn_gate_inp.weight", "blk.1.attn_k.weight" } },
    { "gemma", { "token_embd.weight", "blk.0.ffn_up.weight" } },
    { "bert", { "blk.0.attn_output.weight", "position_embd.weight" } },
    { "rwkv7", { "blk.0.time_mix_key.weight" } },
    { "mamba", { "blk.1.ssm_in.weight" } },
};

static struct made {
    struct skeleton s;
    void *data; /* the model's file */
    size_t size;
    struct run r;
    float *plain; /* outputs without an adapter */
    size_t width;
} made[GG_LEN(shapes)];

/* ---- a model ---- */

/* Outputs of every token: logits or states. */
static bool get_outputs(struct made *m, float *out)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run *r = &m->r;
    static const bool want[N] = { 1, 1, 1, 1 };
    gguf_token tok[SKELETON_TOKENS];
    const float *rows;
    skeleton_tokens_of(&m->s, tok);
    b.n = N;
    b.token = tok;
    b.want = want;
    if (gguf_session_clear(r->session, &r->err) != GGUF_OK ||
        gguf_session_decode(r->session, &b, &r->err) != GGUF_OK ||
        (gguf_model_info(r->model)->has_logits
             ? gguf_session_logits(r->session, 0, N, &rows, &r->err)
             : gguf_session_states(r->session, 0, N, &rows, &r->err)) !=
            GGUF_OK)
        return false;
    memcpy(out, rows, N * m->width * sizeof *out);
    return true;
}

static struct made *make_model(size_t i)
{
    struct made *m = &made[i];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    if (m->plain)
        return m;
    MUST(skeleton_open(&m->s, shapes[i].model));
    m->data = gen_file(&m->s.g, GGUF_DTYPE_F32, &m->size);
    p.n_ctx = 16;
    p.n_ubatch = 8;
    MUST(run_open(&m->r, m->data, m->size, 1, &p));
    m->width = skeleton_width(&m->s);
    m->plain = malloc(N * m->width * sizeof(float));
    MUST(m->plain && get_outputs(m, m->plain));
    return m;
}

/* ---- an adapter ---- */

static void must_be_plain(struct made *m, float *out)
{
    MUST(get_outputs(m, out));
    MUST(!memcmp(out, m->plain, N * m->width * sizeof *out));
}

/* Compute with the adapter, and then without it: these must be the model's
 * bits. */
static void compute_with(struct made *m, const struct gguf_adapter *a,
                         const uint8_t what)
{
    struct gguf_adapter_use use[2] = { { a, 1 }, { a, -0.5f } };
    const size_t n = what & TWICE ? 2 : 1;
    struct gguf_session *s = m->r.session;
    struct gguf_error err;
    float *out = malloc(N * m->width * sizeof *out);
    MUST(out);
    gguf_error_clear(&err);
    const enum gguf_status st = gguf_session_set_adapters(s, use, n, &err);
    if (st == GGUF_OK) {
        MUST(gguf_session_n_adapters(s) == n && get_outputs(m, out));
        use[0].scale = use[1].scale = 0;
        MUST(!gguf_session_set_adapters(s, use, n, NULL));
        must_be_plain(m, out);
        MUST(!gguf_session_set_adapters(s, NULL, 0, NULL));
    } else {
        MUST(err.status == st && err.message[0]);
    }
    must_be_plain(m, out);
    free(out);
}

static void look_at(const struct gguf_adapter *a)
{
    const struct gguf_adapter_info *info = gguf_adapter_info(a);
    MUST((info->n_weights != 0) != (info->n_directions != 0));
    MUST(info->n_params && info->size >= info->n_params * sizeof(float));
    MUST(info->n_directions ||
         (info->rank_min > 0 && info->rank_min <= info->rank_max));
}

/* Write the model with the adapter merged in as another file. */
static void merge_adapter(const struct made *m, const struct gguf_file *file)
{
    const struct gguf_quant_lora lora = { file, 0.5f, "lora" };
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *r;
    struct gguf_quant *q;
    struct gguf_file *f;
    struct gguf_error err;
    MUST(gguf_recipe_preset(&r, "F32", NULL, NULL) == GGUF_OK);
    p.recipe = r;
    p.loras = &lora;
    p.n_loras = 1;
    o.no_sync = 1;
    scratch_write(scratch_path("in.gguf"), m->data, m->size);
    gguf_error_clear(&err);
    enum gguf_status st =
        gguf_quant_create(&q, scratch_path("in.gguf"), &p, &err);
    if (st == GGUF_OK) {
        st = gguf_quant_run(q, scratch_path("out.gguf"), &o, &err);
        gguf_quant_destroy(q);
    }
    MUST(st == GGUF_OK || (err.status == st && err.message[0]));
    if (st == GGUF_OK) {
        MUST(!gguf_file_open(&f, scratch_path("out.gguf"), NULL, NULL));
        gguf_file_close(f);
    }
    gguf_recipe_destroy(r);
    scratch_clean();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_adapter_params p = GGUF_ADAPTER_PARAMS_INIT;
    struct bytes in = { data, size };
    struct made *m = make_model(take(&in) % GG_LEN(shapes));
    const uint8_t what = take(&in);
    struct gguf_file *file;
    struct gguf_adapter *a;
    struct gguf_error err;
    if (gguf_file_open_memory(&file, in.p, in.n, NULL, NULL) != GGUF_OK)
        return 0;
    p.last_layer = what & LAYERS;
    gguf_error_clear(&err);
    const enum gguf_status st =
        gguf_adapter_create(&a, m->r.model, file, &p, &err);
    if (st == GGUF_OK) {
        look_at(a);
        compute_with(m, a, what);
    } else {
        MUST(!a && err.status == st && err.message[0]);
    }
    if (what & MERGE)
        merge_adapter(m, file);
    gguf_adapter_destroy(a);
    gguf_file_close(file);
    return 0;
}

/* ---- seeds ---- */

static void seed_file(size_t shape, uint8_t what, void *file, size_t size)
{
    const uint8_t head[2] = { (uint8_t)shape, what };
    struct fix *f = new_seed();
    fix_bytes(f, head, sizeof head);
    fix_bytes(f, file, size);
    free(file);
}

static const char *arch_of(const struct made *m)
{
    static char name[64];
    struct gguf_str s;
    MUST(!gguf_kv_get_str(gguf_meta_find(m->s.g.meta, "general.architecture"),
                          &s, NULL));
    MUST(s.size < sizeof name);
    memcpy(name, s.data, s.size);
    name[s.size] = '\0';
    return name;
}

static void seed_lora(size_t shape, uint8_t what, uint32_t dtype, double alpha)
{
    struct made *m = make_model(shape);
    struct lora l;
    size_t size;
    lora_init(&l, arch_of(m), alpha);
    for (size_t k = 0; k < 3 && shapes[shape].weight[k]; k++)
        for (size_t i = 0; i < m->s.g.n; i++)
            if (!strcmp(m->s.g.t[i].name, shapes[shape].weight[k]))
                lora_pair(&l, &m->s.g.t[i], 1, 0.1);
    MUST(l.g.n);
    void *file = lora_file(&l, dtype, &size);
    seed_file(shape, what, file, size);
    lora_fini(&l);
}

static void seed_control(size_t shape, uint8_t what)
{
    struct made *m = make_model(shape);
    struct gen g;
    size_t size;
    gen_init(&g, 3);
    MUST(!gguf_meta_set_strz(g.meta, "general.architecture", "controlvector",
                             NULL));
    MUST(!gguf_meta_set_strz(g.meta, "controlvector.model_hint", arch_of(m),
                             NULL));
    MUST(!gguf_meta_set_i32(g.meta, "controlvector.layer_count", 1, NULL));
    gen_tensor(&g, gguf_model_info(m->r.model)->n_embd, 0, "direction.1");
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    seed_file(shape, what, file, size);
    gen_fini(&g);
}

void fuzz_make_seeds(void)
{
    for (size_t i = 0; i < GG_LEN(shapes); i++) {
        seed_lora(i, MERGE, GGUF_DTYPE_F32, 2);
        seed_lora(i, TWICE, GGUF_DTYPE_F16, i % 2 ? 0 : 0.5);
        seed_control(i, (uint8_t)i & 1 ? TWICE : 0);
    }
}
