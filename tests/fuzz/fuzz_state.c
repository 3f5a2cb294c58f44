/* SPDX-License-Identifier: MIT */
/* fuzz_state.c - session states are refused at a byte, or restored, continued
 * and saved again
 *
 * The first byte chooses a model and how its session keeps sequences, the
 * second the sequence to restore. The rest is the state. Unless the second
 * byte says otherwise, size, digest and checksum are corrected, so that the
 * content is read.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "gguf/cpu.h"
#include "gguf/session.h"
#include "tests/fuzz/fuzz.h"
#include "tests/family/skeleton.h"
#include "tests/ignore_status.h"

#include <string.h>
#include <xxhash.h>

enum { HEAD = 44, SUM = 8, N_SEQ = 3, AS_IT_IS = 0x80 };

static const struct shape {
    const char *model;
    uint32_t n_ctx, dtype;
    bool unified, full_windows;
} shapes[] = {
    { "llama", 24, GGUF_DTYPE_F32, false, false },
    { "llama", 24, GGUF_DTYPE_Q8_0, true, false },
    { "gemma3", 400, GGUF_DTYPE_F16, false, false },
    { "gemma3", 400, GGUF_DTYPE_F32, true, false },
    { "gemma3", 24, GGUF_DTYPE_F32, false, true },
    { "falcon-h1", 24, GGUF_DTYPE_F32, false, false },
    { "rwkv7", 24, GGUF_DTYPE_F32, true, false },
    { "t5", 24, GGUF_DTYPE_F32, false, false },
    { "deepseek32-t", 24, GGUF_DTYPE_F32, false, false },
};

static struct made {
    void *file_bytes;
    struct gguf_file *file;
    struct gguf_model *model;
    struct gguf_session *session;
    uint8_t digest[8];
} made[GG_LEN(shapes)];

/* ---- a session of each shape, kept ---- */

static bool decode_tokens(struct made *m, int32_t seq, gguf_token first,
                          size_t n)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[16];
    int32_t seqs[16];
    for (size_t i = 0; i < n; i++) {
        tok[i] = (first + (gguf_token)i) % 32;
        seqs[i] = seq;
    }
    b.n = n;
    b.token = tok;
    b.seq = seqs;
    if (gguf_model_info(m->model)->encodes_first &&
        !gguf_session_n_tokens(m->session, (uint32_t)seq) &&
        gguf_session_encode(m->session, &b, NULL) != GGUF_OK)
        return false;
    return gguf_session_decode(m->session, &b, NULL) == GGUF_OK;
}

static void fill_session(struct made *m)
{
    MUST(gguf_session_clear(m->session, NULL) == GGUF_OK);
    MUST(decode_tokens(m, 0, 1, 9) && decode_tokens(m, 2, 5, 4));
    ignore_status(gguf_session_copy_tokens(m->session, 0, 1, 0, -1, NULL));
}

static uint8_t *save_state(struct made *m, uint32_t seq, uint64_t *size)
{
    MUST(gguf_session_state_size(m->session, seq, size, NULL) == GGUF_OK);
    uint8_t *p = malloc((size_t)*size);
    MUST(p);
    MUST(gguf_session_state_get(m->session, seq, p, *size, NULL) == GGUF_OK);
    return p;
}

static struct made *make_model(size_t i)
{
    struct made *m = &made[i];
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    static struct gguf_backend *backend;
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct skeleton s;
    uint64_t n;
    size_t size;
    if (m->session)
        return m;
    cp.n_threads = 1;
    if (!backend)
        MUST(gguf_cpu_backend_create(&backend, &cp, NULL) == GGUF_OK);
    MUST(skeleton_open(&s, shapes[i].model));
    m->file_bytes = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    skeleton_close(&s);
    p.backend = backend;
    p.n_ctx = shapes[i].n_ctx;
    p.n_seq = N_SEQ;
    p.n_ubatch = 16;
    p.key_dtype = p.value_dtype = gguf_dtype_find(shapes[i].dtype);
    p.unified = shapes[i].unified;
    p.full_windows = shapes[i].full_windows;
    MUST(gguf_file_open_memory(&m->file, m->file_bytes, size, NULL, NULL) ==
         GGUF_OK);
    MUST(gguf_model_create(&m->model, m->file, NULL, NULL) == GGUF_OK);
    MUST(gguf_session_create(&m->session, m->model, &p, NULL) == GGUF_OK);
    uint8_t *state = save_state(m, 0, &n);
    memcpy(m->digest, state + 24, 8);
    free(state);
    return m;
}

/* ---- a state ---- */

static void make_good(const struct made *m, uint8_t *p, size_t size)
{
    if (size < HEAD + SUM)
        return;
    gg_bytes_store64le(p + 16, size);
    memcpy(p + 24, m->digest, 8);
    gg_bytes_store64le(p + size - SUM, XXH3_64bits(p, size - SUM));
}

/* Decode in, remove from and copy every sequence. A state saved afterwards can
 * be restored. */
static void use_sequences(struct made *m, uint32_t seq)
{
    uint32_t n[N_SEQ];
    uint64_t size;
    for (int32_t q = 0; q < N_SEQ; q++)
        (void)decode_tokens(m, q, 3, q == 1 ? 5 : 1);
    ignore_status(gguf_session_copy_tokens(m->session, 0, 2, 0, -1, NULL));
    ignore_status(gguf_session_remove_tokens(m->session, 1, 2, 5, NULL));
    for (int32_t q = 0; q < N_SEQ; q++)
        (void)decode_tokens(m, q, 7, 4);
    uint8_t *p = save_state(m, seq, &size);
    for (uint32_t q = 0; q < N_SEQ; q++)
        n[q] = gguf_session_n_tokens(m->session, q);
    if (seq == GGUF_ALL_SEQUENCES)
        MUST(gguf_session_clear(m->session, NULL) == GGUF_OK);
    /* cells that it shared become its own, which may be too many */
    const enum gguf_status st =
        gguf_session_state_set(m->session, seq, p, size, NULL);
    MUST(st == GGUF_OK || (st == GGUF_E_FULL && seq != GGUF_ALL_SEQUENCES));
    for (uint32_t q = 0; q < N_SEQ; q++)
        MUST(n[q] == gguf_session_n_tokens(m->session, q));
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = { data, size };
    struct gguf_error err;
    struct made *m = make_model(take(&in) % GG_LEN(shapes));
    const uint8_t what = take(&in);
    const uint32_t seq =
        (what & 3) == 3 ? GGUF_ALL_SEQUENCES : (uint32_t)(what & 3);
    uint8_t *state = malloc(in.n + 1);
    MUST(state);
    memcpy(state, in.p, in.n);
    if (!(what & AS_IT_IS))
        make_good(m, state, in.n);
    fill_session(m);
    gguf_error_clear(&err);
    const uint32_t before = gguf_session_n_tokens(m->session, 0);
    const enum gguf_status st =
        gguf_session_state_set(m->session, seq, state, in.n, &err);
    if (st != GGUF_OK) {
        MUST(err.status == st && err.message[0] && err.offset <= in.n);
        MUST(before == gguf_session_n_tokens(m->session, 0));
    }
    use_sequences(m, seq);
    free(state);
    return 0;
}

/* ---- seeds ---- */

static void seed_state(size_t shape, uint8_t what)
{
    struct made *m = make_model(shape);
    uint64_t n;
    fill_session(m);
    uint8_t *p =
        save_state(m, (what & 3) == 3 ? GGUF_ALL_SEQUENCES : what & 3u, &n);
    struct fix *f = new_seed();
    const uint8_t head[2] = { (uint8_t)shape, what };
    fix_bytes(f, head, 2);
    fix_bytes(f, p, (size_t)n);
    free(p);
}

void fuzz_make_seeds(void)
{
    for (size_t i = 0; i < GG_LEN(shapes); i++) {
        seed_state(i, 0);
        seed_state(i, 3);
    }
    seed_state(0, 3 | AS_IT_IS);
}
