/* SPDX-License-Identifier: MIT */
/* check-devices.c - models on devices with memory of their own
 *
 * Digits are those of the CPU alone, and copies and allocations are counted.
 */
#include "config.h"
#include "gguf/model.h"
#include "run/session_int.h"
#include "tests/graph/fake_backend.h"
#include "tests/model/gen.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"

enum { N_TOK = 40, N_VOCAB = 96, MOST_DEVICES = 3 };

/* A model on n fake devices and the CPU, and a session. */
struct world {
    struct fake_backend fake[MOST_DEVICES];
    struct gguf_backend *list[MOST_DEVICES], *cpu;
    unsigned n;
    void *data;
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_session *session;
    struct gguf_session_params sp;
    struct gguf_error err;
    size_t n_copies, n_splits; /* copies and splits of the last pass */
};

static bool see_pass(void *user, struct gguf_graph *g,
                     struct gguf_sched *sched)
{
    struct world *w = user;
    if (w->session && sched != w->session->sched)
        return false;
    (void)g;
    w->n_copies = gguf_sched_n_copies(sched);
    w->n_splits = gguf_sched_n_splits(sched);
    return false;
}

static void open_devices(struct world *w, unsigned n)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    for (unsigned i = 0; i < n; i++) {
        static const char *const name[] = { "A", "B", "C" };
        must(fake_backend_init(&w->fake[i], name[i], i & 1, NULL, &w->err),
             &w->err);
        w->list[i] = &w->fake[i].backend;
    }
    must(gguf_cpu_backend_create(&w->cpu, NULL, &w->err), &w->err);
    w->sp = (struct gguf_session_params)GGUF_SESSION_PARAMS_INIT;
    w->sp.backend = w->cpu;
    w->sp.preferred = w->list;
    w->sp.n_preferred = n;
    w->sp.n_ctx = 64;
    w->sp.on_graph.fn = see_pass;
    w->sp.on_graph.user = w;
}

static void open_model(struct world *w, const struct gen *g, uint32_t dtype)
{
    size_t size;
    w->data = gen_file(g, dtype, &size);
    must(gguf_file_open_memory(&w->file, w->data, size, NULL, &w->err),
         &w->err);
    must(gguf_model_create(&w->model, w->file, NULL, &w->err), &w->err);
}

static void open_llama(struct world *w, unsigned n_devices, uint32_t n_layer)
{
    const struct gen_spec spec = { GEN_WIDE(n_layer), .n_vocab = N_VOCAB };
    struct gen g;
    open_devices(w, n_devices);
    gen_init(&g, 7);
    gen_model(&g, &spec);
    open_model(w, &g, GGUF_DTYPE_F16);
    gen_fini(&g);
}

static void close_world(struct world *w)
{
    gguf_session_destroy(w->session);
    gguf_model_destroy(w->model);
    gguf_file_close(w->file);
    gguf_backend_destroy(w->cpu);
    for (unsigned i = 0; i < w->n; i++)
        gguf_backend_destroy(w->list[i]);
    free(w->data);
}

static void place_weights(struct world *w)
{
    must(gguf_model_place_weights(w->model, &w->sp, NULL, &w->err), &w->err);
}

static void start_session(struct world *w)
{
    must(gguf_session_create(&w->session, w->model, &w->sp, &w->err), &w->err);
}

/* Compute logits of N_TOK tokens in two batches, and of one more token. */
static void compute_logits(struct world *w, float out[(N_TOK + 1) * N_VOCAB])
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[N_TOK + 1];
    for (int i = 0; i <= N_TOK; i++)
        tok[i] = (i * 37 + 11) % N_VOCAB;
    struct run r = { .model = w->model,
                     .session = w->session,
                     .n_vocab = N_VOCAB };
    const size_t end[] = { N_TOK - 8, N_TOK, N_TOK + 1 };
    size_t at = 0;
    for (size_t i = 0; i < GG_LEN(end); at = end[i++]) {
        b.n = end[i] - at;
        b.token = tok + at;
        bool good = run_logits(&r, &b, out + at * N_VOCAB);
        must(good ? GGUF_OK : r.err.status, &r.err);
    }
}

/* Logits of a llama with n_layer layers on the CPU alone. */
static const float *reference_logits(uint32_t n_layer)
{
    static float want[(N_TOK + 1) * N_VOCAB];
    static struct world w;
    open_llama(&w, 0, n_layer);
    start_session(&w);
    compute_logits(&w, want);
    close_world(&w);
    return want;
}

static bool same_digits(struct world *w, const float *want)
{
    static float out[(N_TOK + 1) * N_VOCAB];
    compute_logits(w, out);
    return !memcmp(out, want, sizeof out);
}

/* Count the tensors of the session's cache that lie on a device; -1: in host
 * memory. */
static unsigned count_kept(const struct world *w, int device, unsigned *all)
{
    unsigned n = 0;
    *all = 0;
    for (const struct gguf_tensor *t =
             gguf_ctx_first_tensor(w->session->cache_ctx);
         t; t = gguf_ctx_next_tensor(w->session->cache_ctx, t)) {
        const struct gguf_buft *buft = gguf_buffer_buft(t->buffer);
        n += device < 0 ? gguf_buft_is_host(buft)
                        : buft == &w->fake[device].buft;
        ++*all;
    }
    return n;
}

/* ---- one device that computes everything ---- */

/* A pass copies five inputs to the device, however many layers it has: tokens,
 * positions, rows to write, the mask, and rows to output. */
static void check_one(void)
{
    static struct world w;
    static const uint32_t layers[] = { 2, 6 };
    for (size_t i = 0; i < GG_LEN(layers); i++) {
        const float *want = reference_logits(layers[i]);
        uint64_t cache[2], graph[2];
        unsigned all;
        open_llama(&w, 1, layers[i]);
        place_weights(&w);
        start_session(&w);
        ok(same_digits(&w, want) && !w.fake[0].n_foreign,
           "%u layers on a device: the CPU's bits", layers[i]);
        const int before = w.fake[0].n_sets;
        const gguf_token tok = 3;
        struct gguf_batch b = GGUF_BATCH_INIT;
        b.n = 1;
        b.token = &tok;
        must(gguf_session_decode(w.session, &b, &w.err), &w.err);
        ok(w.n_copies == 5 && w.n_splits == 1 &&
               w.fake[0].n_sets - before == 5,
           "a pass of %u layers makes %zu copies, in %zu part", layers[i],
           w.n_copies, w.n_splits);
        ok(count_kept(&w, 0, &all) == all && all == 2 * layers[i],
           "all %u keys and values lie there", all);
        gguf_session_memory_size(w.session, &cache[0], &graph[0]);
        must(gguf_session_estimate_memory(w.model, &w.sp, &cache[1], &graph[1],
                                          &w.err),
             &w.err);
        ok(cache[0] == cache[1] && graph[0] == graph[1],
           "%" PRIu64 " and %" PRIu64 " bytes, as estimated", cache[0],
           graph[0]);
        close_world(&w);
    }
}

/* ---- devices that cannot keep it ---- */

static void check_refused(void)
{
    static struct world w;
    static const uint32_t ops[] = { GGUF_OP_SET_ROWS, GGUF_OP_ATTENTION,
                                    GGUF_OP_ROPE, GGUF_OP_GET_ROWS };
    const float *want = reference_logits(3);
    for (size_t i = 0; i < GG_LEN(ops); i++) {
        unsigned all, there;
        open_llama(&w, 1, 3);
        w.fake[0].refuses[ops[i]] = true;
        place_weights(&w);
        start_session(&w);
        there = count_kept(&w, 0, &all);
        ok(same_digits(&w, want) && !w.fake[0].n_foreign &&
               there == (i < 2 ? 0 : all),
           "without %s, %u of %u keys and values lie there: the CPU's bits",
           gguf_op_name(ops[i]), there, all);
        close_world(&w);
    }
}

static void check_small(void)
{
    static struct world w;
    const float *want = reference_logits(6);
    unsigned all;
    open_llama(&w, 1, 6);
    place_weights(&w);
    w.sp.n_ctx = 4096;
    w.sp.n_ubatch = 8;
    /* room for the graphs, but not for a cache of 6 MiB */
    w.fake[0].n_total = w.fake[0].n_used + (4 << 20);
    start_session(&w);
    ok(count_kept(&w, -1, &all) == all && same_digits(&w, want),
       "keys and values that a device has no room for lie in host memory: the "
       "CPU's bits");
    close_world(&w);
}

/* ---- several devices ---- */

/* The device that holds a layer's query matrix; -1: the host, -2: parts of the
 * layer lie elsewhere. */
static int layer_at(const struct world *w, uint32_t il)
{
    char prefix[32];
    int at = -3;
    snprintf(prefix, sizeof prefix, "blk.%" PRIu32 ".", il);
    for (size_t i = 0; i < gguf_file_n_tensors(w->file); i++) {
        const struct gguf_tensor *t = w->model->of[i];
        int here = -1;
        if (!t || strncmp(t->name, prefix, strlen(prefix)) != 0)
            continue;
        for (unsigned k = 0; k < w->n; k++)
            if (gguf_buffer_buft(t->buffer) == &w->fake[k].buft)
                here = (int)k;
        at = at == -3 || at == here ? here : -2;
    }
    return at;
}

/* Do the layers lie where the split points say? */
static bool lies_by(const struct world *w, uint32_t n_layer,
                    const uint32_t *split)
{
    bool all = true;
    for (uint32_t il = 0; il < n_layer; il++) {
        int want = -1;
        for (unsigned k = w->n; k-- > 0;)
            if (il < split[k])
                want = (int)k;
        if (layer_at(w, il) != want) {
            printf("# layer %u is at %d, not %d\n", il, layer_at(w, il), want);
            all = false;
        }
    }
    return all;
}

static bool get_split(struct world *w, uint32_t *split)
{
    return gguf_model_split(w->model, &w->sp, split, w->n, &w->err) == GGUF_OK;
}

/* Bytes that a device needs for all weights, the cache, graphs and alignment.
 */
static uint64_t size_of_all(struct world *w)
{
    uint64_t cache, graph;
    must(gguf_session_estimate_memory(w->model, &w->sp, &cache, &graph,
                                      &w->err),
         &w->err);
    return gguf_model_info(w->model)->weight_size + cache + graph +
           256 * (gguf_file_n_tensors(w->file) + 40);
}

/* Two devices have free memory for tenths of the model. Each gets layers in
 * proportion to its free memory. */
static void check_divided(unsigned tenths_a, unsigned tenths_b,
                          uint32_t least_a, uint32_t most_a, bool left_over)
{
    static struct world w;
    enum { N_LAYER = 10 };
    const float *want = reference_logits(N_LAYER);
    uint32_t split[2], again[2];
    open_llama(&w, 2, N_LAYER);
    w.sp.n_ubatch = 32;
    const uint64_t all = size_of_all(&w);
    uint64_t cache, graph;
    must(gguf_session_estimate_memory(w.model, &w.sp, &cache, &graph, &w.err),
         &w.err);
    w.fake[0].n_total = graph + (all - graph) * tenths_a / 10;
    w.fake[1].n_total = graph + (all - graph) * tenths_b / 10;
    const bool told = get_split(&w, split);
    place_weights(&w);
    ok(told && lies_by(&w, N_LAYER, split) && split[0] >= least_a &&
           split[0] <= most_a && (split[1] < N_LAYER + 1) == left_over,
       "%u and %u tenths of what all needs: layers divided at %u and %u",
       tenths_a, tenths_b, split[0], split[1]);
    ok(get_split(&w, again) && !memcmp(split, again, sizeof split),
       "asked again, divided as before");
    start_session(&w);
    ok(same_digits(&w, want) && !w.fake[0].n_foreign && !w.fake[1].n_foreign &&
           w.fake[0].n_nodes > 20 && w.fake[1].n_nodes > 20,
       "the CPU's bits");
    ok(w.n_splits <= 2u + left_over && w.n_copies <= 12u + 6u * left_over,
       "a pass in %zu parts, %zu copies", w.n_splits, w.n_copies);
    close_world(&w);
}

static void check_set(void)
{
    static struct world w;
    enum { N_LAYER = 6 };
    static const uint32_t splits[][2] = {
        { 2, 5 }, { 0, 7 }, { 3, 3 }, { 7, 7 }, { 0, 0 }, { 6, UINT32_MAX },
    };
    const float *want = reference_logits(N_LAYER);
    for (size_t i = 0; i < GG_LEN(splits); i++) {
        struct gguf_place_params p = GGUF_PLACE_PARAMS_INIT;
        open_llama(&w, 2, N_LAYER);
        p.split = splits[i];
        p.n_split = 2;
        if (i % 2) /* place the weights twice */
            place_weights(&w);
        must(gguf_model_place_weights(w.model, &w.sp, &p, &w.err), &w.err);
        start_session(&w);
        ok(lies_by(&w, N_LAYER, splits[i]) && same_digits(&w, want),
           "split points %u and %u are set: the CPU's bits", splits[i][0],
           splits[i][1]);
        close_world(&w);
    }
    static const struct {
        uint32_t split[3];
        size_t n;
        const char *says;
    } wrong[] = {
        { { 3, 2 }, 2, "split point 1 is 2, less than the one before, 3" },
        { { 3, 3, 3 }, 3, "3 split points for 2 preferred backends" },
    };
    for (size_t i = 0; i < GG_LEN(wrong); i++) {
        struct gguf_place_params p = GGUF_PLACE_PARAMS_INIT;
        uint32_t split[3];
        open_llama(&w, 2, N_LAYER);
        p.split = wrong[i].split;
        p.n_split = wrong[i].n;
        ok(gguf_model_place_weights(w.model, &w.sp, &p, &w.err) ==
                   GGUF_E_INVALID &&
               strstr(w.err.message, wrong[i].says),
           "%s", w.err.message);
        ok(gguf_model_split(w.model, &w.sp, split, 3, &w.err) ==
               GGUF_E_INVALID,
           "%s", w.err.message);
        close_world(&w);
    }
}

/* All layers share RoPE factors, which lie on one device. A pass still has one
 * split per device. */
static void check_shared_weight(void)
{
    static struct world w;
    struct gguf_place_params p = GGUF_PLACE_PARAMS_INIT;
    const uint32_t split[] = { 3, 7 };
    struct gen g;
    const struct gen_spec spec = { GEN_WIDE(6), .n_vocab = N_VOCAB,
                                   .rope_freqs = 1 };
    gen_init(&g, 7);
    gen_model(&g, &spec);
    open_devices(&w, 2);
    open_model(&w, &g, GGUF_DTYPE_F16);
    gen_fini(&g);
    p.split = split;
    p.n_split = 2;
    must(gguf_model_place_weights(w.model, &w.sp, &p, &w.err), &w.err);
    start_session(&w);
    const gguf_token tok[4] = { 3, 5, 7, 9 };
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = 4;
    b.token = tok;
    must(gguf_session_decode(w.session, &b, &w.err), &w.err);
    ok(w.n_splits == 2, "factors of all layers: a pass has %zu parts",
       w.n_splits);
    close_world(&w);
}

/* ---- several micro-batches at a time ---- */

/* Decode a batch of N_TOK tokens, 4 at a time, on two devices with half of the
 * layers each. Returns the largest number of devices that worked at the same
 * time. */
static int count_workers(uint32_t n_copies, const float *want, bool *same)
{
    static struct world w;
    static float out[N_TOK * N_VOCAB];
    struct gguf_place_params p = GGUF_PLACE_PARAMS_INIT;
    struct fake_backend_gauge gauge = { 0, 0 };
    const uint32_t split[] = { 3, 7 };
    uint64_t cache[2], graph[2];
    gguf_token tok[N_TOK];
    for (int i = 0; i < N_TOK; i++)
        tok[i] = (i * 37 + 11) % N_VOCAB;
    open_llama(&w, 2, 6);
    for (unsigned k = 0; k < 2; k++) {
        gguf_backend_destroy(w.list[k]);
        must(fake_backend_init(&w.fake[k], k ? "B" : "A", true, NULL, &w.err),
             &w.err);
    }
    p.split = split;
    p.n_split = 2;
    must(gguf_model_place_weights(w.model, &w.sp, &p, &w.err), &w.err);
    w.sp.n_ubatch = 4;
    w.sp.n_copies = n_copies;
    start_session(&w);
    for (unsigned k = 0; k < 2; k++) {
        w.fake[k].gauge = &gauge;
        w.fake[k].slow = 3000;
    }
    struct gguf_batch b = GGUF_BATCH_INIT;
    struct run r = { .model = w.model,
                     .session = w.session,
                     .n_vocab = N_VOCAB };
    b.n = N_TOK;
    b.token = tok;
    *same = run_logits(&r, &b, out) && !memcmp(out, want, sizeof out) &&
            !w.fake[0].n_foreign && !w.fake[1].n_foreign;
    gguf_session_memory_size(w.session, &cache[0], &graph[0]);
    must(gguf_session_estimate_memory(w.model, &w.sp, &cache[1], &graph[1],
                                      &w.err),
         &w.err);
    *same = *same && cache[0] == cache[1] && graph[0] == graph[1];
    close_world(&w);
    return gauge.most;
}

static void check_overlap(void)
{
    const float *want = reference_logits(6);
    for (uint32_t n_copies = 0; n_copies <= 3; n_copies++) {
        bool same;
        const int n = count_workers(n_copies, want, &same);
        ok(same && n == (n_copies > 1 ? 2 : 1),
           "%u copies of inputs: %d devices at the same time, the CPU's bits, "
           "memory as estimated",
           n_copies, n);
    }
    static struct world w;
    open_llama(&w, 1, 1);
    w.sp.n_copies = 9;
    ok(gguf_session_create(&w.session, w.model, &w.sp, &w.err) ==
               GGUF_E_INVALID &&
           !w.session,
       "%s", w.err.message);
    close_world(&w);
}

/* A device that shares host memory computes on the file's mapping. */
static void check_mapped(bool other_type)
{
    static struct world w;
    struct gguf_buft other;
    const float *want = reference_logits(3);
    open_llama(&w, 1, 3);
    w.fake[0].device.caps |= GGUF_DEVICE_CAP_HOST_PTR;
    w.fake[0].n_total = 250 << 10; /* room for graphs and cache, not for
                                    * weights */
    other = w.fake[0].buft;
    w.fake[0].shared_buft = other_type ? &other : NULL;
    place_weights(&w);
    place_weights(&w); /* the weights stay in the mapping */
    const int there = other_type ? -1 : 0;
    ok(!w.fake[0].n_bytes && !w.fake[0].n_used && w.fake[0].n_shared == 1 &&
           layer_at(&w, 0) == there && layer_at(&w, 2) == there &&
           !gguf_model_info(w.model)->copied_size,
       "a device of shared memory%s: nothing is copied",
       other_type ? ", of another type than its own" : "");
    const struct gguf_tensor *t = w.model->of[0];
    const char *from = w.data, *at = t->data;
    ok(at > from, "weights lie in the file's bytes");
    start_session(&w);
    ok(same_digits(&w, want) && !w.fake[0].n_foreign, "the CPU's bits");
    close_world(&w);
    ok(!w.fake[0].n_shared, "its buffer is given back");
}

/* ---- other kinds of memory ---- */

static void check_kinds(void)
{
    static const char *const names[] = {
        "mamba", "jamba", "rwkv7", "t5", "deepseek2", "deepseek4-moe"
    };
    for (size_t i = 0; i < GG_LEN(names); i++) {
        static struct world w;
        struct skeleton k;
        unsigned all;
        if (!skeleton_open(&k, names[i]))
            exit(99);
        open_devices(&w, 1);
        open_model(&w, &k.g, GGUF_DTYPE_F32);
        skeleton_close(&k);
        place_weights(&w);
        w.sp.n_ubatch = 16;
        start_session(&w);
        ok(count_kept(&w, 0, &all) == all && all > 0,
           "%s: all %u tensors that it keeps lie on the device", names[i],
           all);
        close_world(&w);
    }
}

/* Switches of a session keep the cache and its operations on the host. */
static void check_switches(void)
{
    static float out[(N_TOK + 1) * N_VOCAB];
    static struct world w;
    const float *want = reference_logits(2);
    for (int on_host = 0; on_host < 2; on_host++) {
        open_llama(&w, 1, 2);
        place_weights(&w);
        w.sp.no_offload_memory = on_host;
        start_session(&w);
        size_t n_far = 0;
        for (unsigned i = 0; i < w.session->n_cache_buffers; i++)
            n_far += !gguf_buft_is_host(
                gguf_buffer_buft(w.session->cache_buffer[i]));
        compute_logits(&w, out);
        ok(!memcmp(out, want, sizeof out) && n_far == (on_host ? 0u : 1u),
           "keys and values %s: the same bits",
           on_host ? "in host memory" : "on the device");
        close_world(&w);
    }
    size_t n[2];
    for (int stay = 0; stay < 2; stay++) {
        open_llama(&w, 1, 2);
        w.fake[0].offloads = true;
        w.sp.no_offload_ops = stay;
        start_session(&w);
        const int before = w.fake[0].n_nodes;
        compute_logits(&w, out);
        n[stay] = (size_t)(w.fake[0].n_nodes - before);
        ok(!memcmp(out, want, sizeof out),
           "weights on the host: %zu nodes go to the device%s", n[stay],
           stay ? " with no_offload_ops" : "");
        close_world(&w);
    }
    ok(n[0] > 40 && n[1] < n[0] / 2, "operations stay with their weights");
}

int main(void)
{
    check_one();
    check_refused();
    check_small();
    check_divided(6, 6, 4, 6, false);
    check_divided(3, 9, 2, 3, false);
    check_divided(9, 3, 7, 8, false);
    check_divided(2, 3, 1, 2, true);
    check_set();
    check_shared_weight();
    check_overlap();
    check_mapped(false);
    check_mapped(true);
    check_kinds();
    check_switches();
    return done_testing();
}
