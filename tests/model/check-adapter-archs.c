/* check-adapter-archs.c - adapters of every architecture that is evaluated */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/lora.h"
#include "tests/model/skeleton.h"
#include "tests/tap.h"

#include <math.h>

enum { N = LORA_TOKENS };

static const struct gguf_session_params *small(void)
{
    static struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    p.n_ctx = 64;
    return &p;
}

/* ---- every architecture ---- */

/* Has it the form of a matrix, but is none, or is not the model's? */
static bool is_other(const char *name)
{
    static const char *const ends[] = { "_norm.weight", "ssm_a", "ssm_d",
                                        ".bias" };
    const size_t n = strlen(name);
    for (size_t i = 0; i < GG_LEN(ends); i++)
        if (n > strlen(ends[i]) &&
            !strcmp(name + n - strlen(ends[i]), ends[i]))
            return true;
    return strstr(name, ".vis_") != NULL;
}

/* Matrices that adapters may not change, since they are used otherwise than in
 * products and by tokens. */
static bool is_refused(const char *name)
{
    static const char *const parts[] = {
        "token_types.", "altup_proj.",    "altup_unembd_proj.",
        "conv1d",       ".conv.",         "attn_rel_b.",
        "_lerp_",       "time_mix_first",
    };
    for (size_t i = 0; i < GG_LEN(parts); i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

/* Does a session take a pair for that weight alone? */
static bool takes(struct run *r, const char *arch, const struct gen_tensor *t)
{
    struct lora l;
    struct lora_opened o;
    struct gguf_adapter_use use = { NULL, 1 };
    lora_init(&l, arch, 2);
    lora_pair(&l, t, 2, 0.1);
    enum gguf_status st = lora_open(&o, r->model, &l, &r->err);
    use.adapter = o.adapter;
    if (st == GGUF_OK)
        st = gguf_session_set_adapters(r->session, &use, 1, &r->err);
    if (st == GGUF_OK)
        st = gguf_session_set_adapters(r->session, NULL, 0, &r->err);
    lora_close(&o);
    lora_fini(&l);
    return st == GGUF_OK;
}

/* Pairs for all weights that take one; how many. */
static size_t fill(struct lora *l, struct run *r, const char *arch,
                   const struct gen *g, bool *good)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct gen_tensor *t = &g->t[i];
        if (t->n_dims < 2 || is_other(t->name))
            continue;
        const bool can = takes(r, arch, t);
        if (can && !is_refused(t->name))
            lora_pair(l, t, 1 + (int64_t)(i % 3),
                      0.3 / sqrt((double)t->ne[0]));
        if (can == is_refused(t->name)) {
            printf("# %s: '%s' takes %s: %s\n", arch, t->name,
                   can ? "one" : "none", r->err.message);
            *good = false;
        }
        n += can;
    }
    return n;
}

static void check_arch(const char *name)
{
    static float plain[N * 1024], with[N * 1024], none[N * 1024],
        added[N * 1024];
    struct skeleton s;
    struct lora l;
    struct lora_opened o = { 0 };
    struct run r, sum;
    size_t size, sum_size;
    gguf_token tok[SKELETON_TOKENS];
    struct gguf_str arch;
    char arch_z[64];
    if (!skeleton_open(&s, name) || !s.n_rows) {
        skeleton_close(&s);
        return;
    }
    skeleton_tokens_of(&s, tok);
    if (gguf_kv_get_str(gguf_meta_find(s.g.meta, "general.architecture"),
                        &arch, NULL))
        abort();
    snprintf(arch_z, sizeof arch_z, "%.*s", (int)arch.size, arch.data);
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    bool good =
        run_open(&r, data, size, 1, small()) && lora_outputs(&r, tok, plain);
    lora_init(&l, arch_z, 3);
    const size_t n = good ? fill(&l, &r, arch_z, &s.g, &good) : 0;
    struct gguf_adapter_use use = { NULL, 0.75f };
    good = good && lora_open(&o, r.model, &l, &r.err) == GGUF_OK;
    use.adapter = good ? o.adapter : NULL;
    good = good && !gguf_session_set_adapters(r.session, &use, 1, &r.err) &&
           lora_outputs(&r, tok, with);
    use.scale = 0;
    good = good && !gguf_session_set_adapters(r.session, &use, 1, &r.err) &&
           lora_outputs(&r, tok, none);
    const struct lora *ls[] = { &l };
    lora_add_in(&s.g, ls, (const double[]){ 0.75 }, 1);
    void *both = gen_file(&s.g, GGUF_DTYPE_F32, &sum_size);
    lora_drop_values(&s.g);
    const bool opened = run_open(&sum, both, sum_size, 1, small()) &&
                        lora_outputs(&sum, tok, added);
    const struct gguf_model_info *info =
        good ? gguf_model_get_info(r.model) : NULL;
    const size_t n_out =
        good ? N * (info->has_logits ? info->n_vocab : info->n_embd) : 0;
    const double d = n_out ? run_nmse(with, added, n_out) : 9;
    const double far = n_out ? run_nmse(with, plain, n_out) : 0;
    ok(good && opened && d < 1e-9 && far > 1e-4 &&
           !memcmp(plain, none, n_out * sizeof *plain),
       "%s: %zu pairs: %.2g from the sum, %.2g from the model %s%s", name, n,
       d, far, good ? "" : r.err.message, opened ? "" : sum.err.message);
    run_close(&sum);
    run_close(&r);
    if (o.data)
        lora_close(&o);
    lora_fini(&l);
    free(both);
    free(data);
    skeleton_close(&s);
}

/* A classifier of pooled states is multiplied in a graph that adapters are no
 * part of: its pair is refused, in a session that has that graph. */
static void check_classifier(void)
{
    struct skeleton s;
    struct lora l;
    struct lora_opened o = { 0 };
    struct run r;
    struct gguf_session_params p = *small();
    size_t size;
    if (!skeleton_open(&s, "bert"))
        abort();
    const int64_t n = (int64_t)skeleton_width(&s);
    gen_tensor(&s.g, n, n, "cls.weight");
    lora_init(&l, "bert", 1);
    lora_pair(&l, &s.g.t[s.g.n - 1], 2, 0.1);
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    p.pooling = GGUF_POOLING_RANK;
    const bool good =
        run_open(&r, data, size, 1, &p) && !lora_open(&o, r.model, &l, &r.err);
    const struct gguf_adapter_use use = { o.adapter, 1 };
    ok(good &&
           gguf_session_set_adapters(r.session, &use, 1, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           strstr(r.err.message, "changes 'cls.weight'"),
       "a classifier: %s", r.err.message);
    gguf_session_destroy(r.session);
    p.backend = r.backend;
    p.adapters = &use;
    p.n_adapters = 1;
    ok(good &&
           gguf_session_create(&r.session, r.model, &p, &r.err) ==
               GGUF_E_UNSUPPORTED &&
           !r.session,
       "from the beginning: %s", r.err.message);
    run_close(&r);
    lora_close(&o);
    lora_fini(&l);
    free(data);
    skeleton_close(&s);
}

/* A direction after layer 1: of a model of one stream it counts, of an encoder
 * and a decoder or of several streams it is refused. */
static void check_direction(const char *name, bool counts)
{
    struct skeleton s;
    struct gen g;
    struct lora_opened o = { 0 };
    struct run r;
    size_t size, g_size;
    if (!skeleton_open(&s, name))
        abort();
    const int64_t n = s.g.t[0].ne[0];
    float *v = calloc((size_t)n, sizeof *v);
    gen_init(&g, 1);
    if (!v || gguf_meta_set_strz(g.meta, "general.architecture",
                                 "controlvector", NULL))
        abort();
    gen_tensor(&g, n, 0, "direction.1");
    g.t[0].values = v;
    void *data = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    void *control = gen_file(&g, GGUF_DTYPE_F32, &g_size);
    bool good = run_open(&r, data, size, 1, small()) &&
                !lora_open_data(&o, r.model, control, g_size, &r.err);
    const struct gguf_adapter_use use = { o.adapter, 1 };
    gguf_error_clear(&r.err);
    const enum gguf_status st =
        good ? gguf_session_set_adapters(r.session, &use, 1, &r.err)
             : GGUF_E_INVALID;
    ok(counts ? st == GGUF_OK
              : st == GGUF_E_UNSUPPORTED && strstr(r.err.message, "layer 1"),
       "%s: a direction %s%s", name,
       counts ? "counts" : "is refused: ", r.err.message);
    run_close(&r);
    lora_close(&o);
    gen_fini(&g);
    free(v);
    free(data);
    skeleton_close(&s);
}

int main(void)
{
    static char names[256][64];
    const size_t n = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < n; i++)
        check_arch(names[i]);
    check_classifier();
    check_direction("qwen3moe", true);
    check_direction("rwkv7", true);
    check_direction("bert", true);
    check_direction("t5", false);
    check_direction("gemma3n", false);
    return done_testing();
}
