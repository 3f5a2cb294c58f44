/* SPDX-License-Identifier: MIT */
/* check-span.c - bytes and words of a text's tokens, added up over any two
 * parts
 *
 * The expected counts come from a loop over the text itself.
 */
#include "config.h"
#include "base/compiler.h"
#include "eval/text_counter.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#define TINY_LLAMA "share/tiny-llama/tiny-llama-f16.gguf"

static void count_words(const char *s, size_t n, uint64_t *n_words)
{
    *n_words = 0;
    for (size_t i = 0; i < n; i++)
        *n_words += !strchr(" \t\n\v\f\r", s[i]) &&
                    (!i || strchr(" \t\n\v\f\r", s[i - 1]));
}

/* The counts of two parts of a text add up to the text's, wherever it is cut.
 */
static void check_texts(void)
{
    static const char *const texts[] = {
        "one",
        " one",
        "  one two",
        "one two ",
        "one\ttwo\n\nthree  four\v5",
        "\n",
        " ",
        "",
        "na\303\257ve caf\303\251s, \342\202\254 5",
        "a\rb\fc d-e \360\237\230\200\360\237\230\200 unbelievably"
    };
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct run r;
    char path[4096];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/" TINY_LLAMA, top ? top : ".");
    sp.n_ctx = 4;
    bool good = run_open_path(&r, path, 1, &sp);
    struct gg_text_counter s = {
        .vocab = good ? gguf_model_vocab(r.model) : NULL,
    };
    for (size_t i = 0; good && i < GG_LEN(texts); i++)
        for (unsigned flags = 0; flags < 2; flags++) {
            struct gguf_tokens t = GGUF_TOKENS_INIT;
            const size_t size = strlen(texts[i]);
            uint64_t want;
            count_words(texts[i], size, &want);
            good = gguf_vocab_tokenize(s.vocab, texts[i], size,
                                       flags * GGUF_TOKENIZE_ADD_SPECIAL, &t,
                                       &r.err) == GGUF_OK;
            size_t n_wrong = 0;
            for (size_t k = 0; good && k <= t.n; k++) {
                s.n_bytes = s.n_words = 0;
                good = !gg_text_counter_add(&s, t.id, k, t.n, &r.err) &&
                       !gg_text_counter_add(&s, t.id, 0, k, &r.err);
                n_wrong += s.n_bytes != size || s.n_words != want;
            }
            ok(good && !n_wrong, "%zu tokens%s: %zu bytes, %d words", t.n,
               flags ? " with BOS" : "", size, (int)want);
            gguf_tokens_fini(&t);
        }
    gg_text_counter_fini(&s);
    run_close(&r);
}

int main(void)
{
    check_texts();
    return done_testing();
}
