/* SPDX-License-Identifier: MIT */
/* check-random-calls.c - thousands of random calls on sessions of every kind:
 * decode, copy, keep, remove, shift, divide, clear, save, restore
 *
 * Sessions of kind "streams" compute on the host, the others on a fake device
 * with memory of its own. GGUF_TEST_LONG makes twenty times the number of
 * calls.
 *
 * Bounds. A key that is shifted is off by at most 11 u of its pair's length, u
 * = 2^-24 (gguf/session.h; check-sequences tests it). Rounding of exact
 * products is larger, so one bound serves for both: an NMSE of 1e-9 per row.
 *
 * With a shorter cache type, two sessions may round one number to different
 * sides, and shifted keys are rounded twice. Let e be the largest rounding
 * error relative to the largest number of a block (gguf/session.h). Rows are
 * less than 16 e apart: 7 e were measured for F16 and BF16, and less for block
 * types. For types of 4 bits 16 e would allow anything, so their bound is 4 e.
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/run/random_calls.h"
#include "tests/tap.h"

#define STREAMS                                                               \
    {                                                                         \
        "streams", false, true, 16, false                                     \
    }
#define UNIFIED                                                               \
    {                                                                         \
        "unified", true, true, 24, true                                       \
    }
#define WINDOWS                                                               \
    {                                                                         \
        "windows", false, false, 16, true                                     \
    }
#define SHARED_WINDOWS                                                        \
    {                                                                         \
        "unified windows", true, false, 8, true                               \
    }
#define PLAIN .kind = { STREAMS, UNIFIED }, .n_kinds = 2

#define SQUARE(x)  ((x) * (x))
#define F16_ROW    SQUARE(16.0 / 2048)
#define BF16_ROW   SQUARE(16.0 / 256)
#define Q8_0_ROW   SQUARE(16.0 / 254)
#define Q5_1_ROW   SQUARE(16.0 / 62)
#define Q4_0_ROW   SQUARE(4.0 / 8)
#define IQ4_NL_ROW SQUARE(4.0 * 14 / 127)

static const struct {
    int calls;
    struct random_calls_model m;
} tests[] = {
    { 700, { NULL, PLAIN, .most = 96 } },
    { 400,
      { NULL, .window = 12, .kind = { WINDOWS, STREAMS, UNIFIED },
        .n_kinds = 3, .most = 224 } },
    { 300,
      { NULL, .window = 12, .kind = { SHARED_WINDOWS, STREAMS }, .n_kinds = 2,
        .most = 192 } },
    { 150,
      { "gemma2", .kind = { WINDOWS, STREAMS, UNIFIED }, .n_kinds = 3,
        .most = 224, .closed = true } },
    { 150,
      { "llama4", .window = 16, .absolute = true,
        .kind = { WINDOWS, STREAMS, UNIFIED }, .n_kinds = 3, .most = 224 } },
    { 150, { "deepseek2", PLAIN, .most = 96 } },
    { 150, { "minicpm3", PLAIN, .most = 96 } },
    { 100, { "mistral3", .absolute = true, PLAIN, .most = 96 } },
    { 100, { "qwen2vl", PLAIN, .most = 96 } },
    { 100, { "bloom", PLAIN, .most = 96 } },
    { 100, { "gpt2", .still = true, PLAIN, .most = 48 } },
    { 200, { "mamba", .states = true, PLAIN, .most = 96 } },
    { 150, { "rwkv7", .states = true, PLAIN, .most = 96 } },
    { 200, { "jamba", .states = true, PLAIN, .most = 96, .closed = true } },
    { 150, { "falcon-h1", .states = true, PLAIN, .most = 96 } },
    { 200, { "t5", PLAIN, .most = 64 } },
    { 150, { "graniteswitch", PLAIN, .most = 96 } },
    { 150,
      { "deepseek4-moe", .states = true, .still = true, .close = true,
        .kind = { WINDOWS, STREAMS }, .n_kinds = 2, .most = 224 } },
    { 100,
      { "qwen4exp", .states = true, .still = true, .close = true,
        .kind = { STREAMS }, .n_kinds = 1, .most = 96 } },
    { 300,
      { NULL, PLAIN, .most = 96, .dtype = GGUF_DTYPE_F16, .apart = F16_ROW } },
    { 300,
      { NULL, .window = 12, .kind = { WINDOWS, STREAMS, UNIFIED },
        .n_kinds = 3, .most = 224, .dtype = GGUF_DTYPE_BF16,
        .apart = BF16_ROW } },
    { 150,
      { "llama", PLAIN, .most = 96, .dtype = GGUF_DTYPE_Q8_0,
        .apart = Q8_0_ROW } },
    { 150,
      { "llama", PLAIN, .most = 96, .dtype = GGUF_DTYPE_Q4_0,
        .apart = Q4_0_ROW } },
    { 150,
      { "llama4", .window = 16, .absolute = true,
        .kind = { WINDOWS, STREAMS, UNIFIED }, .n_kinds = 3, .most = 224,
        .dtype = GGUF_DTYPE_Q5_1, .apart = Q5_1_ROW } },
    { 150,
      { "deepseek2", PLAIN, .most = 96, .dtype = GGUF_DTYPE_F16,
        .apart = F16_ROW } },
    { 150,
      { "t5", PLAIN, .most = 64, .dtype = GGUF_DTYPE_IQ4_NL,
        .apart = IQ4_NL_ROW } },
};

int main(int argc, char **argv)
{
    static struct random_calls s;
    const int more = getenv("GGUF_TEST_LONG") ? 20 : 1;
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    for (size_t i = 0; i < GG_LEN(tests); i++) {
        const struct random_calls_model *m = &tests[i].m;
        random_calls_seed(seed + i);
        bool good = random_calls_open(&s, m);
        while (good && s.n_calls < more * tests[i].calls)
            good = random_calls_step(&s);
        const struct gguf_dtype_info *type = gguf_dtype_find(m->dtype);
        ok(good,
           "%s%s, %s: %d calls, %d refused, %d tokens; %d states saved, %d "
           "restored, %d the same bytes, %d rows after one; rows: %d the same "
           "bits, %d by the reference, %d from scratch, %d of two kinds, %.2g apart%s%s",
           m->name ? m->name : "llama", m->window ? " with windows" : "",
           type->name, s.n_calls, s.n_refused, s.n_tok, s.n_saved,
           s.n_restored, s.n_same, s.n_lent, s.n_exact, s.n_reference,
           s.n_plain, s.n_kinds, s.worst, good ? "" : ": ", s.why);
        random_calls_close(&s);
    }
    return done_testing();
}
