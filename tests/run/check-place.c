/* SPDX-License-Identifier: MIT */
/* check-place.c - each weight lies once, in the memory of the backend that
 * computes with it */
#include "config.h"
#include "gguf/model.h"
#include "model/adapter/adapter_int.h"
#include "model/model_int.h"
#include "tests/failalloc.h"
#include "tests/graph/fake_backend.h"
#include "tests/model/gen.h"
#include "tests/model/lora.h"
#include "tests/model/run.h"

enum { N_TOK = 40, N_VOCAB = 96 };

static const struct gen_spec spec = { GEN_WIDE(3), .n_vocab = N_VOCAB };

static void *data;
static size_t data_size;
static float want[N_TOK * N_VOCAB];

/* A model and a session on two fake backends and the CPU. */
struct world {
    struct fake_backend a, b;
    struct gguf_backend *list[2], *cpu;
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_session *session;
    struct gguf_session_params sp;
    struct gguf_place_params pp;
    struct gguf_error err;
};

static void open_world(struct world *w, const struct gguf_allocator *allocator)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    memset(w, 0, sizeof *w);
    mp.allocator = allocator;
    w->sp = (struct gguf_session_params)GGUF_SESSION_PARAMS_INIT;
    w->pp = (struct gguf_place_params)GGUF_PLACE_PARAMS_INIT;
    must(fake_backend_init(&w->a, "A", false, NULL, &w->err), &w->err);
    must(fake_backend_init(&w->b, "B", true, NULL, &w->err), &w->err);
    must(gguf_cpu_backend_create(&w->cpu, NULL, &w->err), &w->err);
    must(gguf_file_open_memory(&w->file, data, data_size, NULL, &w->err),
         &w->err);
    must(gguf_model_create(&w->model, w->file, &mp, &w->err), &w->err);
    w->list[0] = &w->a.backend;
    w->list[1] = &w->b.backend;
    w->sp.backend = w->cpu;
    w->sp.preferred = w->list;
    w->sp.n_preferred = 2;
    w->sp.n_ctx = 64;
}

static void close_world(struct world *w)
{
    gguf_session_destroy(w->session);
    gguf_model_destroy(w->model);
    gguf_file_close(w->file);
    gguf_backend_destroy(w->cpu);
    gguf_backend_destroy(&w->a.backend);
    gguf_backend_destroy(&w->b.backend);
}

static enum gguf_status place_weights(struct world *w)
{
    return gguf_model_place_weights(w->model, &w->sp, &w->pp, &w->err);
}

/* Compute logits of N_TOK tokens in two batches. */
static void compute_logits(struct world *w, float out[N_TOK * N_VOCAB])
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[N_TOK];
    for (int i = 0; i < N_TOK; i++)
        tok[i] = (i * 37 + 11) % N_VOCAB;
    must(gguf_session_create(&w->session, w->model, &w->sp, &w->err), &w->err);
    struct run r = { .model = w->model,
                     .session = w->session,
                     .n_vocab = N_VOCAB };
    b.n = N_TOK - 8;
    b.token = tok;
    bool good = run_logits(&r, &b, out);
    b.n = 8;
    b.token = tok + N_TOK - 8;
    good = good && run_logits(&r, &b, out + (N_TOK - 8) * N_VOCAB);
    must(good ? GGUF_OK : r.err.status, &r.err);
}

/* Are the logits bit by bit the CPU's? */
static bool same_logits(struct world *w)
{
    static float out[N_TOK * N_VOCAB];
    compute_logits(w, out);
    return !memcmp(out, want, sizeof out);
}

/* Decode one token and read its logits. Returns the bytes copied to the fake
 * backends. */
static uint64_t decode_one(struct world *w)
{
    static float row[N_VOCAB];
    const gguf_token tok = 3;
    struct gguf_batch b = { .struct_size = sizeof b, .n = 1, .token = &tok };
    struct run r = { .model = w->model,
                     .session = w->session,
                     .n_vocab = N_VOCAB };
    const uint64_t before = w->a.n_bytes + w->b.n_bytes;
    must(run_logits(&r, &b, row) ? GGUF_OK : r.err.status, &r.err);
    return w->a.n_bytes + w->b.n_bytes - before;
}

/* Memory of a weight: 'A', 'B', or 'h' for the host. */
static char place_of(const struct world *w, const struct gguf_tensor *t)
{
    const struct gguf_buft *buft = gguf_buffer_buft(t->buffer);
    return buft == &w->a.buft                     ? 'A'
           : buft == &w->b.buft                   ? 'B'
           : gguf_buffer_buft(t->buffer)->is_host ? 'h'
                                                  : '?';
}

/* Count the weights in a memory, and their bytes. */
static size_t count_weights(const struct world *w, char where, uint64_t *size)
{
    size_t n = 0;
    *size = 0;
    for (size_t i = 0; i < gguf_file_n_tensors(w->file); i++) {
        const struct gguf_tensor *t = w->model->of[i];
        if (t && place_of(w, t) == where) {
            n++;
            *size += gguf_tensor_size(t);
        }
    }
    return n;
}

static bool is_norm(const struct gguf_tensor *t)
{
    return strstr(t->name, "norm") != NULL;
}

/* ---- one that computes everything ---- */

static void check_all(void)
{
    static struct world w;
    uint64_t size, once;
    open_world(&w, NULL);
    const uint64_t all = gguf_model_info(w.model)->weight_size;
    w.a.offloads = w.b.offloads = true;
    ok(same_logits(&w), "weights in the file's memory: the CPU's bits");
    decode_one(&w);
    const uint64_t each = decode_one(&w);
    close_world(&w);

    open_world(&w, NULL);
    w.a.offloads = w.b.offloads = true;
    const enum gguf_status st = place_weights(&w);
    const size_t n = count_weights(&w, 'A', &size);
    ok(st == GGUF_OK && size == all && n == gguf_file_n_tensors(w.file) &&
           w.a.n_bytes == all && !w.b.n_bytes &&
           gguf_model_info(w.model)->copied_size == all,
       "all %zu weights are copied to the first, %" PRIu64 " bytes", n,
       w.a.n_bytes);
    const struct gguf_tensor_info *info =
        gguf_file_tensor_find(w.file, "output_norm.weight");
    const struct gguf_tensor *t =
        gguf_model_tensor_find(w.model, "output_norm.weight");
    float there[64], here[64]; /* [n_embd] */
    ok(t && info->size <= sizeof there && place_of(&w, t) == 'A' &&
           gguf_tensor_get(t, there, 0, info->size, NULL) == GGUF_OK &&
           gguf_file_read_tensor(w.file, info->index, 0, here, info->size,
                                 NULL) == GGUF_OK &&
           !memcmp(there, here, info->size),
       "one that is found by its name is read from there");
    ok(place_weights(&w) == GGUF_OK && w.a.n_bytes == all,
       "placed again they stay");
    ok(same_logits(&w), "placed: the CPU's bits");
    decode_one(&w);
    once = decode_one(&w);
    ok(each == once + all && w.a.n_nodes > 100 && !w.a.n_foreign &&
           !w.b.n_foreign,
       "a token brings %" PRIu64 " bytes, before %" PRIu64, once, each);
    close_world(&w);
}

/* ---- those that lack operations ---- */

static bool expect_places(const struct world *w, char matrix, char norm,
                          char embd)
{
    bool good = true;
    for (size_t i = 0; i < gguf_file_n_tensors(w->file); i++) {
        const struct gguf_tensor *t = w->model->of[i];
        const char where = is_norm(t)                              ? norm
                           : !strcmp(t->name, "token_embd.weight") ? embd
                                                                   : matrix;
        if (place_of(w, t) != where) {
            printf("# %s is at %c, not %c\n", t->name, place_of(w, t), where);
            good = false;
        }
    }
    return good;
}

static const struct {
    uint32_t a, b; /* operations that A and B refuse */
    char matrix, norm, embd;
} lacks[] = {
    { GGUF_OP_NONE, GGUF_OP_NONE, 'A', 'A', 'A' },
    { GGUF_OP_MATMUL, GGUF_OP_NONE, 'B', 'A', 'A' },
    { GGUF_OP_MATMUL, GGUF_OP_MATMUL, 'h', 'A', 'A' },
    { GGUF_OP_GET_ROWS, GGUF_OP_MATMUL, 'A', 'A', 'B' },
    { GGUF_OP_GET_ROWS, GGUF_OP_GET_ROWS, 'A', 'A', 'h' },
    { GGUF_OP_MUL, GGUF_OP_GET_ROWS, 'A', 'B', 'A' },
};

static void check_lacks(void)
{
    for (size_t i = 0; i < GG_LEN(lacks); i++) {
        static struct world w;
        open_world(&w, NULL);
        w.a.refuses[lacks[i].a] = true;
        w.b.refuses[lacks[i].b] = true;
        must(place_weights(&w), &w.err);
        ok(expect_places(&w, lacks[i].matrix, lacks[i].norm, lacks[i].embd) &&
               same_logits(&w) && !w.a.n_foreign && !w.b.n_foreign,
           "without %s and %s matrices are at %c, norms at %c, embeddings at "
           "%c: the CPU's bits",
           gguf_op_name(lacks[i].a), gguf_op_name(lacks[i].b), lacks[i].matrix,
           lacks[i].norm, lacks[i].embd);
        close_world(&w);
    }
}

/* ---- rules ---- */

static void check_rules(void)
{
    static struct world w;
    uint64_t size;
    open_world(&w, NULL);
    const struct gguf_place_rule rules[] = {
        { "blk\\.1\\.FFN", &w.b.buft },
        { "ffn|norm", gguf_host_buft() },
    };
    w.pp.rules = rules;
    w.pp.n_rules = 2;
    must(place_weights(&w), &w.err);
    bool good = true;
    for (size_t i = 0; i < gguf_file_n_tensors(w.file); i++) {
        const struct gguf_tensor *t = w.model->of[i];
        const char where = strstr(t->name, "blk.1.ffn")           ? 'B'
                           : strstr(t->name, "ffn") || is_norm(t) ? 'h'
                                                                  : 'A';
        good = good && place_of(&w, t) == where;
    }
    ok(good && count_weights(&w, 'B', &size) == 4 && same_logits(&w),
       "the first rule that matches says where a weight goes");
    close_world(&w);

    static const struct {
        const char *pattern;
        bool refuses;
        enum gguf_status status;
        const char *says;
    } wrong[] = {
        { "blk.9", false, GGUF_E_NOTFOUND, "'blk.9' matches no weight" },
        { "attn_(q", false, GGUF_E_FORMAT, "attn_(q" },
        { NULL, false, GGUF_E_INVALID, "rule 0 has no pattern" },
        { "attn_q\\.", true, GGUF_E_OP,
          "'blk.0.attn_q.weight': no backend computes all that reads it in "
          "memory of type 'B'" },
    };
    for (size_t i = 0; i < GG_LEN(wrong); i++) {
        open_world(&w, NULL);
        const struct gguf_place_rule rule = { wrong[i].pattern, &w.b.buft };
        w.b.refuses[GGUF_OP_MATMUL] = wrong[i].refuses;
        w.pp.rules = &rule;
        w.pp.n_rules = 1;
        const enum gguf_status st = place_weights(&w);
        ok(st == wrong[i].status && strstr(w.err.message, wrong[i].says) &&
               count_weights(&w, 'h', &size) == gguf_file_n_tensors(w.file),
           "%s", w.err.message);
        close_world(&w);
    }
}

/* ---- failures ---- */

static bool stop_job(void *user, uint64_t done, uint64_t total)
{
    unsigned *left = user;
    (void)done;
    (void)total;
    return (*left)-- == 0;
}

static void check_cancel(void)
{
    static struct world w;
    bool good = true;
    unsigned n = 0;
    for (unsigned k = 0; k < 100; k += 7, n++) {
        struct gguf_model_job job = GGUF_MODEL_JOB_INIT;
        unsigned left = k;
        uint64_t size;
        open_world(&w, NULL);
        job.progress.fn = stop_job;
        job.progress.user = &left;
        w.pp.job = &job;
        const enum gguf_status st = place_weights(&w);
        const size_t all = gguf_file_n_tensors(w.file);
        good = good &&
               (st == GGUF_OK ? count_weights(&w, 'A', &size) == all
                              : st == GGUF_E_CANCELLED &&
                                    count_weights(&w, 'h', &size) == all &&
                                    w.a.n_open == 0 && same_logits(&w));
        close_world(&w);
        if (st == GGUF_OK)
            break;
    }
    ok(good && n > 2, "stopped %u times, all weights are where they were", n);
}

static void check_nomem(void)
{
    enum gguf_status st = GGUF_E_NOMEM;
    int bad = 0;
    long n;
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        static struct world w;
        struct failalloc f;
        const struct gguf_allocator *a = failalloc_from(&f, UINT32_MAX);
        uint64_t size;
        open_world(&w, a);
        f.fail_at = f.calls + (unsigned)n;
        w.sp.allocator = a;
        st = place_weights(&w);
        bad += st != GGUF_OK &&
               count_weights(&w, 'h', &size) != gguf_file_n_tensors(w.file);
        close_world(&w);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 5,
       "each of %ld allocations may fail; nothing is lost", n - 1);
}

/* Compute the logits on the CPU alone, in one batch. */
static void compute_reference(void)
{
    struct run r;
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    gguf_token tok[N_TOK];
    for (int i = 0; i < N_TOK; i++)
        tok[i] = (i * 37 + 11) % N_VOCAB;
    p.n_ctx = 64;
    b.n = N_TOK;
    b.token = tok;
    bool good =
        run_open(&r, data, data_size, 1, &p) && run_logits(&r, &b, want);
    must(good ? GGUF_OK : r.err.status, &r.err);
    run_close(&r);
}

/* ---- adapters ---- */

/* Count the adapter's pairs that do not lie beside their weight. */
static size_t n_elsewhere(const struct world *w, const struct gguf_adapter *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_pairs; i++) {
        const struct gg_adapter_pair *p = &a->pair[i];
        const char at = place_of(w, p->weight);
        n += place_of(w, p->a) != at || place_of(w, p->b) != at;
    }
    return n;
}

/* With a placed adapter, decoding a token copies no pair to the fake backends.
 * Tried with all matrices on one backend, and with matrices that two backends
 * share with the host. */
static void check_adapter(uint32_t a_lacks, uint32_t b_lacks)
{
    static struct world w;
    static float plain[N_TOK * N_VOCAB];
    struct gen g;
    struct lora l;
    struct lora_opened o;
    gen_init(&g, 7);
    gen_model(&g, &spec);
    lora_of_llama(&l, &g, 2, 2);
    memcpy(plain, want, sizeof plain);
    uint64_t once[2] = { 0 }, size = 0;
    bool good = true;
    size_t n = 0;
    for (int i = 0; i < 3; i++) { /* 0: CPU alone, 1: not placed, 2: placed */
        open_world(&w, NULL);
        w.a.refuses[a_lacks] = w.b.refuses[b_lacks] = true;
        must(lora_open(&o, w.model, &l, &w.err), &w.err);
        const struct gguf_adapter_use use = { o.adapter, 0.5f };
        w.sp.adapters = &use;
        w.sp.n_adapters = 1;
        w.sp.n_preferred = i ? 2 : 0;
        must(i ? place_weights(&w) : GGUF_OK, &w.err);
        n = n_elsewhere(&w, o.adapter);
        good = good && (i ? n > 0 : n == 0);
        if (i == 2) {
            must(gguf_adapter_place_weights(o.adapter, &w.err), &w.err);
            const uint64_t before = w.a.n_bytes + w.b.n_bytes;
            good = good && !n_elsewhere(&w, o.adapter) &&
                   !gguf_adapter_place_weights(o.adapter, &w.err) &&
                   before == w.a.n_bytes + w.b.n_bytes;
            /* tables are read by operations of two backends */
            for (size_t k = 0; k < o.adapter->n_pairs; k++) {
                const struct gg_adapter_pair *x = &o.adapter->pair[k];
                if (place_of(&w, x->weight) != 'h' &&
                    strcmp(x->weight->name, "token_embd.weight") != 0)
                    size += gguf_tensor_size(x->a) + gguf_tensor_size(x->b);
            }
        }
        w.a.offloads = w.b.offloads = true;
        const bool same = same_logits(&w);
        good = good && same == (i > 0);
        if (!i) { /* keep the CPU's logits for the next rounds */
            gguf_session_destroy(w.session);
            w.session = NULL;
            compute_logits(&w, want);
        } else {
            decode_one(&w);
            once[i - 1] = decode_one(&w);
        }
        gguf_session_destroy(w.session);
        w.session = NULL;
        lora_close(&o);
        close_world(&w);
    }
    ok(good && size && once[0] >= once[1] + size,
       "%zu pairs lie where their weights do: a token brings %" PRIu64
       " bytes, before %" PRIu64 ", pairs among them %" PRIu64,
       n, once[1], once[0], size);
    memcpy(want, plain, sizeof plain);
    lora_fini(&l);
    gen_fini(&g);
}

int main(void)
{
    data = gen_model_file(&spec, 7, GGUF_DTYPE_F16, &data_size);
    compute_reference();
    check_all();
    check_lacks();
    check_rules();
    check_adapter(GGUF_OP_NONE, GGUF_OP_NONE);
    check_adapter(GGUF_OP_GET_ROWS, GGUF_OP_MATMUL);
    check_cancel();
    check_nomem();
    free(data);
    return done_testing();
}
